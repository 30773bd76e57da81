"""Sizes that PyTorch calls by sympy expressions over its symbols, as dimensions of ours.

s77, 2*s77 + 1, s77//2, Mod(s0, 4), Max(1, s0)     the same over symbols that the user named
                                                   (`torch.export.Dim("batch")`), or that an input names: `ids_1`
any other expression                               the dimension that the import has computed for it, if it has
"""

from __future__ import annotations

import keyword
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from weft.frontend.emitter import Unsupported, identifier
from weft.ir.dim import Dim, ceildiv, maximum, minimum, symbol

__all__ = ["Sizes"]

_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "Add": lambda *parts: reduce(operator.add, parts),
    "Mul": lambda *parts: reduce(operator.mul, parts),
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "PythonMod": operator.mod,
    "Mod": operator.mod,
    "CeilDiv": ceildiv,
    "Max": lambda *parts: reduce(maximum, parts),
    "Min": lambda *parts: reduce(minimum, parts),
    "Pow": lambda base, exponent: reduce(operator.mul, [base] * exponent),
    "PowByNatural": operator.pow,
}


def _symbolic(shapes: Iterable[tuple[str, Sequence[Any]]]) -> list[tuple[str, int, Any]]:
    """The sizes that are no numbers: whose, which axis, and the expression."""
    return [
        (name, axis, size.node.expr)
        for name, sizes in shapes
        for axis, size in enumerate(sizes)
        if not isinstance(size, int) and size.node.maybe_as_int() is None
    ]


class Sizes:
    """The sizes that are known so far."""

    def __init__(self) -> None:
        self._learnt: dict[str, Dim] = {}
        self._bound: set[str] = set()
        """Symbols that a parameter or a result has given a value."""
        self._signed: set[str] = set()

    def name(self, sources: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Call symbols as the user does: which symbol a size of an input is, and what it is called."""
        for source, called in names.items():
            found = sources.get(source)
            if found is not None and found.is_Symbol and called.isidentifier() and not keyword.iskeyword(called):
                self._learnt.setdefault(str(found), symbol(called))

    def name_axes(self, inputs: Mapping[str, Sequence[Any]]) -> None:
        """Call the other symbols by the first input whose size they are: `ids_1` is axis 1 of `ids`."""
        taken = {*map(str, self._learnt.values()), *inputs}
        for name, axis, expr in _symbolic(inputs.items()):
            if expr.is_Symbol and str(expr) not in self._learnt:
                called = f"{identifier(name)}_{axis}"
                while called in taken:
                    called += "_"
                self._learnt[str(expr)] = symbol(called)

    def learn(self, size: Any, dim: Dim) -> None:
        """A dimension that was computed for a size."""
        node = getattr(size, "node", None)
        if node is not None and node.maybe_as_int() is None:
            self._learnt[str(node.expr)] = dim

    def learn_symbols(self, sizes: Sequence[Any], dims: Sequence[Dim]) -> None:
        """The dimensions of a result, for the symbols that no size before it has."""
        for _, axis, expr in _symbolic([("", sizes)]):
            if expr.is_Symbol and str(expr) not in self._bound:
                self._bound.add(str(expr))
                self._learnt[str(expr)] = dims[axis]

    def is_never_negative(self, size: Any) -> bool:
        """Whether PyTorch knows of a whole number that it may be a size."""
        node = getattr(size, "node", None)
        return node is None or node.shape_env is None or bool(node.shape_env.bound_sympy(node.expr).lower >= 0)

    def forget(self, number: Any) -> None:
        """A whole number of either sign, which no size is made of: its symbol has no dimension."""
        self._signed.add(str(number.node.expr))

    def bind(self, shapes: Sequence[tuple[str, Sequence[Any]]], fresh: Callable[[str], Dim]) -> None:
        """Give a value to symbols that are no size alone: where 2*s is a size, that is a symbol n, and s is n // 2."""
        exprs = [(f"{name}_{axis}", expr) for name, axis, expr in _symbolic(shapes)]
        self._bound.update(str(inner) for _, expr in exprs for inner in expr.free_symbols)
        alone = {expr for _, expr in exprs if expr.is_Symbol}
        for name, expr in exprs:
            left = expr.free_symbols - alone
            if len(left) != 1 or len(expr.free_symbols) != 1:
                continue
            (inner,) = left
            factor, rest = expr.coeff(inner), expr.subs(inner, 0)
            if factor.is_Integer and factor > 0 and rest.is_Integer and expr == factor * inner + rest:
                dim = fresh(name)
                self._learnt[str(expr)] = dim
                self._learnt[str(inner)] = (dim - int(rest)) // int(factor)
                alone.add(inner)

    def dim(self, size: Any) -> Dim:
        """A size as a dimension; Unsupported for an expression that nothing has computed."""
        if isinstance(size, int):
            return size
        node = getattr(size, "node", None)
        if node is None:
            return self._converted(size)
        known = node.maybe_as_int()
        return known if known is not None else self._converted(node.expr)

    def _converted(self, expr: Any) -> Dim:
        learnt = self._learnt.get(str(expr))
        if learnt is not None:
            return learnt
        if expr.is_Integer:
            return int(expr)
        if str(expr) in self._signed:
            raise Unsupported(f"the size {expr}, which may be negative")
        if expr.is_Symbol:
            return symbol(str(expr))
        function = _FUNCTIONS.get(type(expr).__name__)
        if function is None or (type(expr).__name__ == "Pow" and not (expr.args[1].is_Integer and expr.args[1] > 0)):
            raise Unsupported(f"the size {expr}")
        return function(*map(self._converted, expr.args))
