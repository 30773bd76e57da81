"""Index arithmetic in its shortest form, where that is proved to have the same value.

    i * 8 + j * 4 - i * 8       j * 4               (i * 8 + j) // 8  for j in [0, 8)       i

`shortest` goes through dimensions (`weft.transform.analysis.index_analyzer`), whose normal form cancels and divides by
what loops and conditions say. Dimensions are integers, arithmetic wraps: sums, differences and products keep their
value modulo the width whatever wraps in between; quotients, remainders, minima, and what is converted to another
width, have to be of numbers that the dtype holds. Both the old and the new expression are held to that.
"""

from __future__ import annotations

import math

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import replace, walk
from weft.ir.dim import Dim, as_dim, floordiv, free_symbols, operation, product
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.tensor import Binary, Cast, IntImm, PrimExpr, PrimVar, Unary
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts

__all__ = ["is_arithmetic", "rejoined", "shortest", "size_of", "spelled"]

_RING = ("add", "sub", "mul")
_EXACT = ("floordiv", "floormod", "truncdiv", "truncmod", "min", "max")


def is_arithmetic(value: object) -> bool:
    """Whether a value is a sum, product, quotient or conversion of scalar integers."""
    if not isinstance(value, (Binary, Unary, Cast)) or not _is_number(value.dtype):
        return False
    if isinstance(value, Cast):
        return _is_number(value.value.dtype)
    return value.kind in (*_RING, *_EXACT, "neg")


def _is_number(dtype: str) -> bool:
    return dtypes.is_integer(dtype) and not dtypes.is_bool(dtype) and dtypes.lanes(dtype) == 1


def size_of(value: PrimExpr) -> int:
    """How many nodes an expression has."""
    return sum(1 for _ in walk(value))


def shortest(known: IndexAnalyzer, value: PrimExpr, facts: Facts) -> PrimExpr:
    """The same integer in fewer nodes, as far as it is proved to be the same; itself where nothing is shorter."""
    if not is_arithmetic(value) or any(part in known.lets for part in walk(value) if isinstance(part, PrimVar)):
        return value
    try:
        new = _in_normal_form(known, value, facts)
    except ShapeError:  # over the limits of dimensions
        new = None
    if new is not None:
        return new if size_of(new) < size_of(value) else value
    if isinstance(value, Binary):
        return replace(value, a=shortest(known, value.a, facts), b=shortest(known, value.b, facts))
    if isinstance(value, Cast):
        return replace(value, value=shortest(known, value.value, facts))
    return replace(value, a=shortest(known, value.a, facts)) if isinstance(value, Unary) else value


def _in_normal_form(known: IndexAnalyzer, value: PrimExpr, facts: Facts) -> PrimExpr | None:
    """The spelling of the dimension of an expression; None where it is not proved to have that value."""
    if not _is_faithful(known, value, facts):
        return None
    dim = rejoined(known.dim(value, facts))
    new = spelled(known, dim, value.dtype)
    if new is None or rejoined(known.dim(new, facts)) != dim or not _is_faithful(known, new, facts):
        return None
    return new


def rejoined(dim: Dim) -> Dim:
    """A sum with x in place of b * (x // b) + x % b, for numbers b.

    >>> from weft.ir.dim import symbol
    >>> x = symbol("x")
    >>> rejoined(x // 8 * 16 + x % 8 * 2 + 1)
    2 * x + 1
    """
    changed = True
    while changed and operation(dim)[0] == "add":
        changed = False
        terms = [_scaled(term) for term in operation(dim)[1]]
        for scale, low in terms:
            kind, (x, by) = operation(low) if operation(low)[0] == "mod" else ("", (low, low))
            if kind and isinstance(by, int) and by > 0 and (scale * by, floordiv(x, by)) in terms:
                dim = dim - low * scale - floordiv(x, by) * (scale * by) + as_dim(x) * scale
                changed = True
                break
    return dim


def _scaled(term: Dim) -> tuple[int, Dim]:
    """A term as a number times the rest."""
    kind, operands = operation(term)
    if kind != "mul":
        return 1, term
    numbers = [part for part in operands if isinstance(part, int)]
    return math.prod(numbers), product(part for part in operands if not isinstance(part, int))


def spelled(known: IndexAnalyzer, dim: Dim, dtype: str) -> PrimExpr | None:
    """A dimension as an expression of a dtype; products by a constant end with it, as users write them."""
    dim = known.symbols.spelled(dim)
    values = {name: cast(dtype, known.symbols.spelling[name]) for name in free_symbols(dim)}
    if operation(dim)[0] == "constant" and not dtypes.can_hold(dtype, int(dim)):  # type: ignore[arg-type]
        return None
    return _ordered(as_expr(dim_to_prim(dim, values), dtype))  # type: ignore[arg-type]


def _ordered(value: PrimExpr) -> PrimExpr:
    """Products and sums by a constant with the constant last."""
    if not isinstance(value, Binary):
        return value
    a, b = _ordered(value.a), _ordered(value.b)
    if value.kind in ("mul", "add") and isinstance(a, IntImm) and not isinstance(b, IntImm):
        a, b = b, a
    if value.kind == "add" and isinstance(b, IntImm) and b.value < 0 and dtypes.can_hold(b.dtype, -b.value):
        return binary("sub", a, -b.value)
    return binary(value.kind, a, b)


def _is_faithful(known: IndexAnalyzer, value: PrimExpr, facts: Facts) -> bool:
    """Whether the dimension of an expression is its value, modulo its width at most."""
    if isinstance(value, Unary) and value.kind == "neg":
        return _is_faithful(known, value.a, facts)
    if isinstance(value, Cast) and is_arithmetic(value):
        return _is_exact(known, value.value, facts)
    if not isinstance(value, Binary) or not is_arithmetic(value):
        return True
    if value.kind in _RING:
        return _is_faithful(known, value.a, facts) and _is_faithful(known, value.b, facts)
    return _is_exact(known, value.a, facts) and _is_exact(known, value.b, facts)


def _is_exact(known: IndexAnalyzer, value: PrimExpr, facts: Facts) -> bool:
    return _is_faithful(known, value, facts) and known.is_exact(known.dim(value, facts), facts, value.dtype)
