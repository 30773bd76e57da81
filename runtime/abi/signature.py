"""Signatures of compiled functions as plain data, and their checks.

    signature ::= {name, kind, symbol, params: [{name, type, span}], result: type}
    type      ::= ["tensor", dtype | null, dims | null, rank, use?]  rank -1 is unknown; use: copied | written
                | ["buffer", dtype, dims, strides | null, written]   a tensor-level parameter
                | ["shape", dims | null, rank] | ["prim", dtype, dim | null, "size"?]
                | ["tuple", type*] | ["string"] | ["object"]
    dim       ::= int | name | [text, tree] | null                   null: any size
    tree      ::= int | name | [operation, tree*]                    add mul floordiv mod min max pow

`Binder` collects the values of symbols with the place each came from, and says what does not fit.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from weft.errors import ArgumentError

__all__ = ["Binder", "arranged", "dim_names", "dim_tree", "evaluate_dim", "expected_text", "shape_text", "solve_linear"]

Tree = Any


def _product(values: Sequence[int]) -> int:
    return reduce(lambda a, b: a * b, values, 1)


_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda *values: sum(values),
    "mul": lambda *values: _product(values),
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "pow": lambda a, b: a**b,
}


def evaluate_dim(tree: Tree, values: dict[str, int]) -> int | None:
    """The value of a dimension; None when a symbol has no value or a divisor is 0."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return values.get(tree)
    operands = [evaluate_dim(part, values) for part in tree[1:]]
    if any(operand is None for operand in operands):
        return None
    try:
        return _OPERATIONS[tree[0]](*operands)
    except ZeroDivisionError:
        return None


def dim_names(tree: Tree) -> list[str]:
    """The symbols of a dimension's tree, in order."""
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, list):
        return [name for part in tree[1:] for name in dim_names(part)]
    return []


def dim_tree(dim: Any) -> Tree:
    """The tree of a dimension."""
    return dim[1] if isinstance(dim, list) else dim


def _dim_text(dim: Any) -> str:
    return "?" if dim is None else str(dim[0] if isinstance(dim, list) else dim)


def shape_text(dims: Sequence[Any]) -> str:
    """Dimensions as a shape is written.

    >>> shape_text(["n", 4]), shape_text([3])
    ('(n, 4)', '(3,)')
    """
    return f"({', '.join(_dim_text(dim) for dim in dims)}{',' if len(dims) == 1 else ''})"


def expected_text(ty: Sequence[Any]) -> str:
    """A type as messages show it.

    >>> expected_text(["tensor", "float32", ["n", 128], 2])
    'float32[(n, 128)]'
    """
    kind = ty[0]
    if kind in ("tensor", "buffer"):
        dtype = ty[1] or "tensor"
        if ty[2] is not None:
            return f"{dtype}[{shape_text(ty[2])}]"
        return dtype if ty[3] < 0 else f"{dtype} of rank {ty[3]}"
    if kind == "strides":
        return f"strides {shape_text(ty[1])}"
    if kind == "shape":
        if ty[1] is not None:
            return f"shape {shape_text(ty[1])}"
        return "a shape" if ty[2] < 0 else f"a shape of {ty[2]} sizes"
    if kind == "tuple":
        return f"tuple({', '.join(expected_text(field) for field in ty[1:])})"
    return str(ty[1]) if kind == "prim" else {"string": "a string", "object": "anything"}.get(kind, "a value")


class Binder:
    """The symbols of one call: values, and where each came from.

    >>> binder = Binder("main")
    >>> binder.add(["tensor", "float32", ["n", 4], 2], (3, 4), "float32[(3, 4)]", 1, "x")
    >>> binder.solve()
    >>> binder.values
    {'n': 3}
    """

    def __init__(self, function: str) -> None:
        self.function = function
        self.values: dict[str, int] = {}
        self.sources: dict[str, str] = {}
        self.refused = 0  # the position of the argument that `solve` refused
        self._claims: list[tuple[Sequence[Any], Sequence[Any], Sequence[int], str, int, str]] = []

    def add(self, ty: Sequence[Any], sizes: Sequence[int], got: str, position: int, name: str) -> None:
        """Note that an argument's dimensions have the given sizes; bare symbols get their values."""
        dims = ty[1] if ty[0] in ("shape", "strides") else [ty[2]] if ty[0] == "prim" else ty[2]
        self._claims.append((ty, dims, sizes, got, position, name))
        for dim, size in zip(dims, sizes, strict=True):
            if isinstance(dim, str) and dim not in self.values:
                self._set(dim, size, position, name)

    def _set(self, symbol: str, value: int, position: int, name: str) -> None:
        self.values[symbol] = int(value)
        self.sources[symbol] = f"argument {position} `{name}`"

    def solve(self) -> None:
        """Solve compound dimensions for symbols without a value, then compare everything; ArgumentError W852."""
        while any(self._solve_one(*claim) for claim in self._claims):
            pass
        for ty, dims, sizes, got, position, name in self._claims:
            for dim, size in zip(dims, sizes, strict=True):
                if dim is not None and evaluate_dim(dim_tree(dim), self.values) != size:
                    self.refused = position
                    raise self.refuse(position, name, expected_text(ty), got, self.explain(dims))

    def _solve_one(
        self, ty: Sequence[Any], dims: Sequence[Any], sizes: Sequence[int], got: str, position: int, name: str
    ) -> bool:
        for dim, size in zip(dims, sizes, strict=True):
            missing = {symbol for symbol in dim_names(dim_tree(dim)) if symbol not in self.values}
            if len(missing) == 1:
                symbol = missing.pop()
                value = solve_linear(dim_tree(dim), symbol, size, self.values)
                if value is not None:
                    self._set(symbol, value, position, name)
                    return True
        return False

    def explain(self, dims: Sequence[Any]) -> str:
        """The symbols in some dimensions with their values and sources."""
        names = dict.fromkeys(name for dim in dims for name in dim_names(dim_tree(dim)))
        return ", ".join(
            f"{name}={self.values[name]} from {self.sources[name]}" if name in self.values else f"{name} has no value"
            for name in names
        )

    def refuse(
        self,
        position: int,
        name: str,
        expected: str,
        got: str,
        why: str = "",
        code: str = "W852",
        hint: str | None = None,
    ) -> ArgumentError:
        """The error for an argument."""
        message = f"argument {position} `{name}` of {self.function}: expected {expected}, got {got}"
        return ArgumentError(message + (f"; {why}" if why else ""), code=code, hint=hint)


def solve_linear(tree: Tree, symbol: str, size: int, values: dict[str, int]) -> int | None:
    """The value of a symbol at which a dimension that is linear in it has the given size."""
    at = [evaluate_dim(tree, {**values, symbol: point}) for point in (0, 1)]
    if at[0] is None or at[1] is None or at[0] == at[1]:
        return None
    value, rest = divmod(size - at[0], at[1] - at[0])
    return value if rest == 0 and value >= 0 and evaluate_dim(tree, {**values, symbol: value}) == size else None


def arranged(signature: Mapping[str, Any], args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    """Positional and named arguments in order; ArgumentError W850 when some lack or are too many."""
    names, function = [param["name"] for param in signature["params"]], signature["name"]
    if not named and len(args) == len(names):
        return args
    takes = f"{function} takes {len(names)} arguments ({', '.join(names)})"
    for name in named:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {close[0]!r}?" if close else None
            raise ArgumentError(f"{function} has no parameter {name!r}", code="W850", notes=[takes], hint=hint)
    if len(args) > len(names):
        raise ArgumentError(f"{takes}, got {len(args)}", code="W850")
    values = dict(zip(names, args, strict=False))
    twice = [name for name in named if name in values]
    if twice:
        raise ArgumentError(f"{function} got two values for {twice[0]!r}", code="W850")
    values.update(named)
    missing = [name for name in names if name not in values]
    if missing:
        raise ArgumentError(f"{takes}, got {len(values)}: {', '.join(missing)} missing", code="W850")
    return [values[name] for name in names]
