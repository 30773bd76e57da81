"""Proofs that two graph functions compute the same, for all sizes: normal forms of one element of the result.

    element(value, indices) ::= sum of coefficient * monomial          a polynomial
    monomial                ::= sum over bound indices of a product of atoms
    atom                    ::= parameter[flat index] | constant[flat index] | function(normal forms, ...)

Indices are dimensions (`weft.ir.dim`), so that arithmetic of indices is theirs. An element of a parameter goes by its
place in memory (row major), which makes reshaping an identity; what lies between is taken apart with // and %. With
`exact` nothing is known of arithmetic but that sums and products commute, which keeps bits; else it is that of real
numbers, sums over indices are linear, and the names of bound indices do not count.

The proof is sound for elements that exist, and says nothing (False) where an operator or a rank is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import WeftError
from weft.ir import Call, Constant, Expr, Function, Op, TensorType, Var
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, DimExpr, floordiv, floormod, product, substitute, symbol
from weft.ir.op import OPS
from weft.support.records import dataclass
from weft.transform.analysis.value_numbering import expr_key, same_type
from weft.transform.infra.rewriting import value_behind
from weft.transform.pattern.matching import bindings_of_function
from weft.transform.pattern.rule import Sides

__all__ = ["proved_equal"]

Index = tuple[Dim, ...]
_MAX_BOUND = 5
_MAX_TERMS = 200


class _Unknown(Exception):
    """The proof does not know this."""


@dataclass(frozen=True)
class _Monomial:
    """A product of atoms with their powers, summed over bound indices (name, extent)."""

    atoms: tuple[tuple[Hashable, int], ...] = ()
    bound: tuple[tuple[str, Dim], ...] = ()


@dataclass(frozen=True)
class _Terms:
    """A polynomial inside an atom."""

    terms: tuple[tuple[_Monomial, Fraction], ...]


Polynomial = Mapping[_Monomial, Fraction]
_ONE = _Monomial()


def _number(value: float) -> Polynomial:
    return {_ONE: Fraction(value)} if value else {}


def _atom(key: Hashable) -> Polynomial:
    return {_Monomial(((key, 1),)): Fraction(1)}


def _sum(left: Polynomial, right: Polynomial, sign: int = 1) -> Polynomial:
    made = dict(left)
    for monomial, factor in right.items():
        made[monomial] = made.get(monomial, Fraction(0)) + sign * factor
        if not made[monomial]:
            del made[monomial]
    return made


class _Fresh:
    """Names of indices that nothing else has."""

    def __init__(self) -> None:
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"r{self.count}__"


def proved_equal(sides: Sides, exact: bool) -> bool:
    """Whether the sides of a rule are proved equal for all sizes and values; False where that is not known."""
    try:
        fresh = _Fresh()
        params = {param: number for number, param in enumerate(sides.pattern.params)}
        others = {param: number for number, param in enumerate(sides.replacement.params)}
        left, right = _Side(sides.pattern, params, exact, fresh), _Side(sides.replacement, others, exact, fresh)
        ours, theirs = left.type_of(sides.pattern.body.body), right.type_of(sides.replacement.body.body)
        if not same_type(ours, theirs) or not isinstance(ours, TensorType):
            return False
        index = tuple(symbol(f"i{axis}__") for axis in range(len(left.dims(ours))))
        return _canonical(left.element(sides.pattern.body.body, index)) == _canonical(
            right.element(sides.replacement.body.body, index)
        )
    except (_Unknown, WeftError, RecursionError):
        return False


def _canonical(value: Polynomial) -> dict[str, Fraction]:
    """The polynomial with its monomials as text: what sums commute and how bound indices are called does not show."""
    made: dict[str, Fraction] = {}
    for monomial, factor in value.items():
        key = _text(monomial, 0)
        made[key] = made.get(key, Fraction(0)) + factor
    return {key: factor for key, factor in made.items() if factor}


def _text(value: Any, depth: int) -> str:
    """The text of a part of a normal form; bound indices are named by the order in which the text is least."""
    if isinstance(value, _Monomial):
        if len(value.bound) > _MAX_BOUND:
            raise _Unknown
        return min(_ordered(value, order, depth) for order in permutations(value.bound))
    if isinstance(value, _Terms):
        made: dict[str, Fraction] = {}
        for monomial, factor in value.terms:
            key = _text(monomial, depth)
            made[key] = made.get(key, Fraction(0)) + factor
        return " + ".join(f"{factor} {key}" for key, factor in sorted(made.items()) if factor)
    if isinstance(value, tuple):
        parts = [_text(part, depth) for part in value]
        return f"({', '.join([*parts[:2], *sorted(parts[2:])] if value[:1] in _UNORDERED else parts)})"
    return str(value) if isinstance(value, (str, int, DimExpr)) else repr(value)


def _ordered(value: _Monomial, order: Sequence[tuple[str, Dim]], depth: int) -> str:
    names = {name: symbol(f"b{depth}_{place}__") for place, (name, _) in enumerate(order)}
    atoms = sorted(f"{_text(_substituted(atom, names), depth + 1)}^{power}" for atom, power in value.atoms)
    return f"[{', '.join(str(extent) for _, extent in order)}]{'*'.join(atoms)}"


def _substituted(value: Any, names: Mapping[str, Dim]) -> Any:
    """A part of a normal form with other indices."""
    if not names:
        return value
    if isinstance(value, tuple):
        return tuple(_substituted(part, names) for part in value)
    if isinstance(value, _Monomial):
        return _Monomial(tuple((_substituted(atom, names), power) for atom, power in value.atoms), value.bound)
    if isinstance(value, _Terms):
        return _Terms(tuple((_substituted(monomial, names), factor) for monomial, factor in value.terms))
    return substitute(value, names) if isinstance(value, DimExpr) else value


class _Side:
    """One function, whose elements are asked for."""

    def __init__(self, function: Function, params: Mapping[Var, int], exact: bool, fresh: _Fresh) -> None:
        self.params, self.exact, self.fresh = params, exact, fresh
        self.values = bindings_of_function(function)
        self.context = TypeContext()

    # Types -----------------------------------------------------------------------------------------------------------

    def type_of(self, expr: Expr) -> Any:
        return expr.ty if isinstance(expr, Var) else infer_type(expr, self.context)

    def dims(self, of: Any) -> Index:
        ty = self.type_of(of) if isinstance(of, Expr) else of
        dims = dims_of(ty) if isinstance(ty, TensorType) else None
        if dims is None or ty.dtype is None:
            raise _Unknown
        return dims

    # Elements --------------------------------------------------------------------------------------------------------

    def element(self, expr: Expr, index: Index) -> Polynomial:
        """The element of a value at an index."""
        expr = value_behind(expr, self.values)
        if isinstance(expr, Var):
            return self.read(("parameter", self.params[expr]), expr, index)
        if isinstance(expr, Constant):
            if expr.data.size == 1 and expr.is_numpy and expr.data.dtype.kind in "fiu" and not self.exact:
                number = float(expr.data.reshape(-1)[0])
                if np.isfinite(number):
                    return _number(number)
            return self.read(("constant", expr_key(expr)), expr, index)
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            raise _Unknown
        rule = _RULES.get(expr.op.name)
        if rule is not None:
            return rule(self, expr, OPS[expr.op.name].values(expr), index)
        if expr.op.name in _ELEMENTWISE:
            operands = [self.broadcast(arg, index) for arg in expr.args]
            return self.function(expr.op.name, operands, self.type_of(expr.args[0]).dtype)
        raise _Unknown

    def read(self, key: Hashable, expr: Expr, index: Index) -> Polynomial:
        """An element of something that is given, by its place in memory."""
        place: Dim = 0
        for size, at in zip(self.dims(expr), index, strict=True):
            place = place * size + at
        return _atom((key, place))

    def flat(self, expr: Expr, place: Dim) -> Polynomial:
        """The element at a place in memory."""
        expr = value_behind(expr, self.values)
        dims = self.dims(expr)
        if isinstance(expr, Var):
            return _atom((("parameter", self.params[expr]), place))
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in ("reshape", "flatten"):
            return self.flat(expr.args[0], place)
        index: list[Dim] = []
        for axis, size in enumerate(dims):
            rest = product(dims[axis + 1 :])
            at = floordiv(place, rest) if rest != 1 else place
            index.append(floormod(at, size) if axis else at)
        return self.element(expr, tuple(index))

    def broadcast(self, expr: Expr, index: Index) -> Polynomial:
        """The element of an operand that is broadcast to the index of a result."""
        dims = self.dims(expr)
        at = index[len(index) - len(dims) :]
        return self.element(expr, tuple(0 if size == 1 else place for size, place in zip(dims, at, strict=True)))

    # Arithmetic ------------------------------------------------------------------------------------------------------

    def function(self, name: str, operands: Sequence[Polynomial], dtype: str | None) -> Polynomial:
        """A function of elements that nothing is known of, but that some commute."""
        return _atom((name, dtype or "", *(_Terms(tuple(value.items())) for value in operands)))

    def add(self, left: Polynomial, right: Polynomial, dtype: str | None, sign: int = 1) -> Polynomial:
        """The sum or difference."""
        if self.exact:
            return self.function("add" if sign > 0 else "subtract", (left, right), dtype)
        return _sum(left, right, sign)

    def multiply(self, left: Polynomial, right: Polynomial, dtype: str | None) -> Polynomial:
        """The product."""
        if self.exact:
            return self.function("multiply", (left, right), dtype)
        made: Polynomial = {}
        for one, factor in left.items():
            for other, second in right.items():
                made = _sum(made, {self.times(one, other): factor * second})
                if len(made) > _MAX_TERMS:
                    raise _Unknown
        return made

    def times(self, one: _Monomial, other: _Monomial) -> _Monomial:
        """The product of monomials, whose bound indices stay apart."""
        taken = {name for name, _ in one.bound}
        names = {name: self.fresh.name() for name, _ in other.bound if name in taken}
        renamed = {name: symbol(new) for name, new in names.items()}
        powers = dict(one.atoms)
        for atom, power in other.atoms:
            key = _substituted(atom, renamed)
            powers[key] = powers.get(key, 0) + power
        bound = (*one.bound, *((names.get(name, name), extent) for name, extent in other.bound))
        return _Monomial(tuple(item for item in powers.items() if item[1]), bound)

    def total(self, value: Polynomial, bound: Sequence[tuple[str, Dim]], dtype: str | None) -> Polynomial:
        """The sum of a value over indices."""
        summed = {_Monomial(m.atoms, (*m.bound, *bound)): factor for m, factor in value.items()}
        return self.function("sum", (summed,), dtype) if self.exact and bound else summed


# The operators that are taken apart ----------------------------------------------------------------------------------

Element = Callable[[_Side, Call, Mapping[str, Any], Index], Polynomial]


def _arithmetic(sign: int) -> Element:
    def element(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
        left, right = (side.broadcast(arg, index) for arg in call.args)
        return side.add(left, right, side.type_of(call).dtype, sign)

    return element


def _multiply(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    left, right = (side.broadcast(arg, index) for arg in call.args)
    return side.multiply(left, right, side.type_of(call).dtype)


def _divide(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    left, right = (side.broadcast(arg, index) for arg in call.args)
    dtype = side.type_of(call).dtype
    if side.exact or not dtypes.is_float(dtype):
        return side.function("divide", (left, right), dtype)
    constant = right.get(_ONE)
    if len(right) == 1 and constant:
        return {monomial: factor / constant for monomial, factor in left.items()}
    if len(right) == 1 and not next(iter(right)).bound:
        monomial, factor = next(iter(right.items()))
        inverse = {_Monomial(tuple((atom, -power) for atom, power in monomial.atoms)): 1 / factor}
        return side.multiply(left, inverse, dtype)
    return side.multiply(left, side.function("inverse", (right,), dtype), dtype)


def _negative(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    value = side.element(call.args[0], index)
    if side.exact:
        return side.function("negative", (value,), side.type_of(call).dtype)
    return _sum({}, value, -1)


def _permute(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    rank = len(index)
    axes = values.get("axes")
    order = tuple(reversed(range(rank))) if axes is None else tuple(axis % rank for axis in axes)
    source = [index[order.index(axis)] for axis in range(rank)]
    return side.element(call.args[0], tuple(source))


def _reshape(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    place: Dim = 0
    for size, at in zip(side.dims(call), index, strict=True):
        place = place * size + at
    return side.flat(call.args[0], place)


def _expand_dims(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    axes = {axis % len(index) for axis in values["axis"]}
    return side.element(call.args[0], tuple(at for axis, at in enumerate(index) if axis not in axes))


def _broadcast_to(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    return side.broadcast(call.args[0], index)


def _astype(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    source, target = side.type_of(call.args[0]).dtype, side.type_of(call).dtype
    value = side.element(call.args[0], index)
    return value if source == target else side.function(f"astype {target}", (value,), source)


def _reduction(mean: bool) -> Element:
    def element(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
        dims = side.dims(call.args[0])
        given = values.get("axis")
        axes = set(range(len(dims))) if given is None else {axis % len(dims) for axis in given}
        rest = iter(index)
        at: list[Dim] = []
        bound: list[tuple[str, Dim]] = []
        for axis, size in enumerate(dims):
            if axis in axes:
                name = side.fresh.name()
                bound.append((name, size))
                at.append(symbol(name))
                if values.get("keepdims"):
                    next(rest)
            else:
                at.append(next(rest))
        dtype = side.type_of(call).dtype
        total = side.total(side.element(call.args[0], tuple(at)), bound, dtype)
        if not mean:
            return total
        count = ("count", *(dims[axis] for axis in sorted(axes)))
        return side.multiply(total, _atom(count), dtype)

    return element


def _matmul(side: _Side, call: Call, values: Mapping[str, Any], index: Index) -> Polynomial:
    left, right = call.args
    a, b = side.dims(left), side.dims(right)
    if len(a) < 2 or len(b) < 2 or values.get("out_dtype"):
        raise _Unknown
    name = side.fresh.name()
    inner = symbol(name)
    batch = index[:-2]
    one = _at_batch(side, left, batch, (index[-2], inner))
    other = _at_batch(side, right, batch, (inner, index[-1]))
    dtype = side.type_of(call).dtype
    if side.exact:  # the order of the operands tells one sum from another
        summed = side.function("product", (one, other), dtype)
        return side.total(summed, ((name, a[-1]),), f"matmul {dtype}")
    return side.total(side.multiply(one, other, dtype), ((name, a[-1]),), dtype)


def _at_batch(side: _Side, operand: Expr, batch: Index, last: Index) -> Polynomial:
    dims = side.dims(operand)
    own = batch[len(batch) - (len(dims) - 2) :] if len(dims) > 2 else ()
    at = tuple(0 if size == 1 else place for size, place in zip(dims[:-2], own, strict=True))
    return side.element(operand, (*at, *last))


_RULES: dict[str, Element] = {
    "add": _arithmetic(1),
    "subtract": _arithmetic(-1),
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "permute_dims": _permute,
    "reshape": _reshape,
    "flatten": _reshape,
    "expand_dims": _expand_dims,
    "broadcast_to": _broadcast_to,
    "astype": _astype,
    "sum": _reduction(False),
    "mean": _reduction(True),
    "matmul": _matmul,
}
_ELEMENTWISE = frozenset(
    (
        "abs",
        "ceil",
        "cos",
        "erf",
        "exp",
        "floor",
        "log",
        "maximum",
        "minimum",
        "nn.relu",
        "power",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "equal",
        "greater",
        "less",
        "where",
        "nn.gelu",
        "nn.silu",
        "logical_not",
        "floor_divide",
        "mod",
        "greater_equal",
        "less_equal",
        "not_equal",
    )
)
_UNORDERED = frozenset((name,) for name in ("add", "multiply", "maximum", "minimum", "equal", "not_equal"))
"""Operators whose operands commute, bits and all, as the first part of an atom."""
