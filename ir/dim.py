"""Symbolic dimensions: integer expressions over named, nonnegative sizes, and what can be proved about them.

A dimension is a plain ``int`` or a `DimExpr`. Every `DimExpr` is in canonical form and interned, so that two equal
polynomials are one object and ``==`` costs nothing::

    dim      ::= int | DimExpr
    DimExpr  ::= coefficient * monomial + ... + constant        (never a bare constant: that is an int)
    monomial ::= atom ** power * ...
    atom     ::= symbol | dim // dim | dim % dim | min(dim, ...) | max(dim, ...)

Text form (what `format_dim` prints and `parse_dim` reads)::

    sum     ::= [sum ("+" | "-")] product
    product ::= [product ("*" | "//" | "%")] unary
    unary   ::= "-" unary | "+" unary | power
    power   ::= leaf ["**" unary]
    leaf    ::= NAME | INTEGER | "(" sum ")" | ("min" | "max" | "ceildiv") "(" sum ("," sum)* ")"

``//`` and ``%`` are Python's (floor). An expression has no value where one of its divisors is zero; canonical form and
proofs speak about the values at which both sides are defined.

Errors are ShapeErrors: W280 division by zero, W281 over 64 bits, W282 too large, W283 bad name, W284 not a dimension,
W285 asked for a value or an order that is not decided, W286 symbol without a value, W287 syntax, W288 text over the
limits, W289 bad exponent or no operands.

Answers have three values: True (holds for all nonnegative symbol values), False (holds for none), None (it depends on the
values, or is not known). True and False are always sound. This is the only module that imports sympy, and it does so on
the first question that needs it; plain integers never get there.
"""

from __future__ import annotations

import keyword
import math
import re
import threading
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import product as cartesian
from operator import attrgetter, index
from typing import Any, SupportsIndex, TypeAlias
from weakref import WeakValueDictionary

from weft.errors import ShapeError, Source, Span

__all__ = [
    "Dim",
    "DimExpr",
    "as_dim",
    "ceildiv",
    "evaluate",
    "floordiv",
    "floormod",
    "format_dim",
    "free_symbols",
    "fresh_name",
    "is_symbolic",
    "maximum",
    "minimum",
    "operation",
    "parse_dim",
    "product",
    "same",
    "substitute",
    "symbol",
]

MAX_COEFFICIENT = 2**63 - 1
MAX_DEGREE = 64
MAX_NESTING = 64
MAX_SIZE = 4096

_Bound: TypeAlias = "int | float"  # float only for the two infinities
_Interval: TypeAlias = "tuple[_Bound, _Bound]"


# ---------------------------------------------------------------------------------------------------------------------
# Representation
# ---------------------------------------------------------------------------------------------------------------------


class _Atom:
    """An indivisible factor: a symbol, or a division, remainder, minimum or maximum of canonical dimensions."""

    __slots__ = ("__weakref__", "arguments", "kind", "names", "nesting", "size", "text")

    def __init__(self, kind: str, arguments: tuple[Any, ...]) -> None:
        self.kind = kind
        self.arguments = arguments
        if kind == "symbol":
            self.names: frozenset[str] = frozenset(arguments)
            self.nesting = 0
            self.size = 1
        else:
            expressions = [argument for argument in arguments if isinstance(argument, DimExpr)]
            self.names = frozenset().union(*(argument.names for argument in expressions))
            self.nesting = 1 + max(argument.nesting for argument in expressions)
            self.size = 1 + sum(argument.size for argument in expressions)
        self.text = _atom_text(kind, arguments)


class _Monomial:
    """A product of powers of distinct atoms, sorted by the atoms' text; the empty product is `_ONE`."""

    __slots__ = ("__weakref__", "degree", "key", "powers")

    def __init__(self, powers: tuple[tuple[_Atom, int], ...]) -> None:
        self.powers = powers
        self.degree = sum(power for _, power in powers)
        # Graded lexicographic order: a monomial order, so that polynomial division terminates.
        self.key = (-self.degree, tuple((atom.kind != "symbol", atom.text, -power) for atom, power in powers))


_Terms: TypeAlias = "tuple[tuple[_Monomial, int], ...]"

_intern_lock = threading.Lock()
_atoms: WeakValueDictionary[tuple[Any, ...], _Atom] = WeakValueDictionary()
_monomials: WeakValueDictionary[tuple[tuple[_Atom, int], ...], _Monomial] = WeakValueDictionary()
_expressions: WeakValueDictionary[_Terms, DimExpr] = WeakValueDictionary()
_recent: deque[DimExpr] = deque(maxlen=1 << 12)  # keeps what is in use from being made again and again


class DimExpr:
    """A canonical, interned integer expression over named symbols; equal expressions are the same object.

    Built by `symbol` and arithmetic, never directly. Ordering comparisons raise ShapeError: ask `prove_le`.

    >>> n = symbol("n")
    >>> n * 2 * 4, (n + 1) * (n - 1) == n * n - 1, (4 * n + 1) // 2
    (8 * n, True, 2 * n)
    """

    __slots__ = ("__weakref__", "_interval", "_normal", "_text", "names", "nesting", "size", "terms")

    terms: _Terms
    names: frozenset[str]
    nesting: int
    size: int
    _interval: _Interval | None
    _normal: Dim | None
    _text: str | None

    def __init__(self) -> None:
        raise TypeError("dimensions are built by weft.ir.dim.symbol(name) and arithmetic")

    # Equality and hash are by identity, which interning makes structural.

    def __add__(self, other: Dim) -> Dim:
        return _sum(self, other, 1) if _is_dim(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return _sum(self, other, -1) if _is_dim(other) else NotImplemented

    def __rsub__(self, other: Dim) -> Dim:
        return _sum(other, self, -1) if _is_dim(other) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        return _product(self, other) if _is_dim(other) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return _product(self, -1)

    def __pos__(self) -> Dim:
        return self

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other) if _is_dim(other) else NotImplemented

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floordiv(other, self) if _is_dim(other) else NotImplemented

    def __mod__(self, other: Dim) -> Dim:
        return floormod(self, other) if _is_dim(other) else NotImplemented

    def __rmod__(self, other: Dim) -> Dim:
        return floormod(other, self) if _is_dim(other) else NotImplemented

    def __pow__(self, exponent: int) -> Dim:
        return _power(self, exponent)

    def __bool__(self) -> bool:
        raise _error(
            "W285", f"the truth of the dimension {self} is not decided", "compare it: prove_ne(d, 0) or d == e"
        )

    def __int__(self) -> int:
        raise _error(
            "W285",
            f"the dimension {self} is not a constant",
            "evaluate(d, values) gives its value for given symbols",
        )

    def __index__(self) -> int:
        return self.__int__()

    def _no_order(self, other: object) -> bool:
        raise _error(
            "W285",
            f"the order of {self} and {other} depends on the values of its symbols",
        )

    __lt__ = __le__ = __gt__ = __ge__ = _no_order

    def __repr__(self) -> str:
        return format_dim(self)

    def __copy__(self) -> DimExpr:
        return self

    def __deepcopy__(self, memo: object) -> DimExpr:
        return self

    def __reduce__(self) -> tuple[Callable[[str], Dim], tuple[str]]:
        return parse_dim, (format_dim(self),)

    def _sympy_(self) -> Any:
        """The same expression for sympy, with nonnegative integer symbols."""
        return _to_sympy(self)


Dim: TypeAlias = int | DimExpr


def _error(code: str, message: str, hint: str | None = None, span: Span | None = None) -> ShapeError:
    return ShapeError(message, code=code, hint=hint, span=span)


def _is_dim(value: object) -> bool:
    if isinstance(value, int | DimExpr):
        return True
    return hasattr(value, "__index__")


def as_dim(value: Dim | SupportsIndex) -> Dim:
    """The value as a dimension: a DimExpr as it is, any integer (NumPy's too) as int; ShapeError W284 otherwise."""
    if isinstance(value, DimExpr):
        return value
    try:
        return index(value)
    except TypeError:
        raise _error("W284", f"{value!r} is not a dimension", "use an int or weft.ir.dim.symbol(name)") from None


def _atom(kind: str, *arguments: Any) -> _Atom:
    key = (kind, *arguments)
    found = _atoms.get(key)
    if found is None:
        made = _Atom(kind, arguments)
        with _intern_lock:
            found = _atoms.get(key)
            if found is None:
                _atoms[key] = found = made
    return found


def _monomial(powers: tuple[tuple[_Atom, int], ...]) -> _Monomial:
    found = _monomials.get(powers)
    if found is None:
        made = _Monomial(powers)
        if made.degree > MAX_DEGREE:
            raise _error("W282", f"a dimension of degree {made.degree} is refused (limit {MAX_DEGREE})")
        with _intern_lock:
            found = _monomials.get(powers)
            if found is None:
                _monomials[powers] = found = made
    return found


_ONE = _monomial(())
_term_key = attrgetter("key")


def _expression(terms: dict[_Monomial, int]) -> Dim:
    """The dimension with these coefficients: an int when only the constant is left."""
    kept = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if not kept:
        return 0
    if len(kept) == 1 and _ONE in kept:
        return kept[_ONE]
    if len(kept) > 1:
        ordered = tuple((monomial, kept[monomial]) for monomial in sorted(kept, key=_term_key))
    else:
        ordered = tuple(kept.items())
    found = _expressions.get(ordered)
    if found is None:
        made = _make(ordered)
        with _intern_lock:
            found = _expressions.get(ordered)
            if found is None:
                _expressions[ordered] = found = made
                _recent.append(made)
    return found


def _make(terms: _Terms) -> DimExpr:
    made = object.__new__(DimExpr)
    atoms = {atom for monomial, _ in terms for atom, _ in monomial.powers}
    made.terms = terms
    made.names = frozenset().union(*(atom.names for atom in atoms))
    made.nesting = max(atom.nesting for atom in atoms)
    made.size = sum(1 + sum(atom.size for atom, _ in monomial.powers) for monomial, _ in terms)
    made._interval = made._normal = made._text = None
    if max(abs(coefficient) for _, coefficient in terms) > MAX_COEFFICIENT:
        raise _error("W281", "a coefficient of a dimension does not fit in 64 bits")
    if made.size > MAX_SIZE or made.nesting > MAX_NESTING:
        raise _error("W282", f"a dimension of {made.size} parts, nested {made.nesting} deep, is refused")
    return made


def _of_atom(atom: _Atom) -> DimExpr:
    made = _expression({_monomial(((atom, 1),)): 1})
    assert isinstance(made, DimExpr)
    return made


def _terms(value: Dim) -> dict[_Monomial, int]:
    if isinstance(value, DimExpr):
        return dict(value.terms)
    return {_ONE: value} if value else {}


# ---------------------------------------------------------------------------------------------------------------------
# Arithmetic
# ---------------------------------------------------------------------------------------------------------------------


def symbol(name: str) -> DimExpr:
    """The size called ``name``: a nonnegative integer; two symbols of one name are the same. ShapeError W283.

    >>> symbol("n") == symbol("n")
    True
    """
    if isinstance(name, str):
        if not name.isascii():
            name = unicodedata.normalize("NFKC", name)  # as Python does with its identifiers
        if name.isidentifier() and not keyword.iskeyword(name):
            return _of_atom(_atom("symbol", name))
    raise _error("W283", f"{name!r} is not a name for a symbol", "use a Python identifier")


def _sum(left: Dim, right: Dim, sign: int) -> Dim:
    terms = _terms(as_dim(left))
    right = as_dim(right)
    for monomial, coefficient in right.terms if isinstance(right, DimExpr) else ((_ONE, right),):
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _expression(terms)


def _product(left: Dim, right: Dim) -> Dim:
    left, right = as_dim(left), as_dim(right)
    if not isinstance(left, DimExpr):
        left, right = right, left
    if not isinstance(left, DimExpr):
        return left * right
    if not isinstance(right, DimExpr):
        return left if right == 1 else _expression({m: right * coefficient for m, coefficient in left.terms})
    if len(left.terms) * len(right.terms) > MAX_SIZE:
        raise _error("W282", f"a product of {len(left.terms)} and {len(right.terms)} terms is refused")
    terms: dict[_Monomial, int] = {}
    for first, one in left.terms:
        for second, other in right.terms:
            monomial = _multiply_monomials(first, second)
            terms[monomial] = terms.get(monomial, 0) + one * other
    return _expression(terms)


@lru_cache(maxsize=1 << 14)
def _multiply_monomials(left: _Monomial, right: _Monomial) -> _Monomial:
    powers = dict(left.powers)
    for atom, power in right.powers:
        powers[atom] = powers.get(atom, 0) + power
    return _sorted_monomial(powers)


def _sorted_monomial(powers: dict[_Atom, int]) -> _Monomial:
    kept = [(atom, power) for atom, power in powers.items() if power]
    return _monomial(tuple(sorted(kept, key=lambda item: (item[0].kind != "symbol", item[0].text))))


def _divide_monomials(left: _Monomial, right: _Monomial) -> _Monomial | None:
    """left / right where it is a monomial, else None."""
    powers = dict(left.powers)
    for atom, power in right.powers:
        powers[atom] = powers.get(atom, 0) - power
        if powers[atom] < 0:
            return None
    return _sorted_monomial(powers)


def _power(base: Dim, exponent: int) -> Dim:
    exponent = index(exponent) if hasattr(exponent, "__index__") and not isinstance(exponent, DimExpr) else -1
    if exponent < 0 or exponent > MAX_DEGREE and isinstance(base, DimExpr):
        raise _error("W289", f"the exponent of {base} must be a constant from 0 to {MAX_DEGREE}")
    if not isinstance(base, DimExpr):
        if abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > 63:
            raise _error("W281", f"{base} ** {exponent} does not fit in 64 bits")
        return base**exponent
    result: Dim = 1
    for _ in range(exponent):
        result = result * base
    return result


def product(dims: Iterable[Dim]) -> Dim:
    """The product of the dimensions; 1 for none.

    >>> product([2, symbol("n"), 3])
    6 * n
    """
    return reduce(_product, dims, 1)


def ceildiv(a: Dim, b: Dim) -> Dim:
    """a / b rounded up; ShapeError W280 where b is the constant 0.

    >>> ceildiv(7, 2), ceildiv(symbol("n"), 128)
    (4, (n + 127) // 128)
    """
    return -floordiv(-as_dim(a), b)


def floordiv(a: Dim, b: Dim) -> Dim:
    """a // b as Python rounds it (down); ShapeError W280 where b is the constant 0.

    >>> floordiv(4 * symbol("n") + 1, 2)
    2 * n
    """
    a, b = as_dim(a), as_dim(b)
    if isinstance(b, DimExpr):
        return _floordiv_symbolic(a, b)
    if b == 0:
        raise _error("W280", f"{a} // 0: division by zero")
    if not isinstance(a, DimExpr):
        return a // b
    return _floordiv_constant(a, b) if b > 0 else _floordiv_constant(-a, -b)


def floormod(a: Dim, b: Dim) -> Dim:
    """a % b as Python defines it (sign of b); ShapeError W280 where b is the constant 0.

    >>> n, m = symbol("n"), symbol("m")
    >>> floormod(n + 4 * m, 4), floormod(2 * n, 2)
    (n % 4, 0)
    """
    a, b = as_dim(a), as_dim(b)
    if isinstance(b, DimExpr):
        return _floormod_symbolic(a, b)
    if b == 0:
        raise _error("W280", f"{a} % 0: division by zero")
    if not isinstance(a, DimExpr):
        return a % b
    return _floormod_constant(a, b) if b > 0 else -_floormod_constant(-a, -b)


def _truncated(coefficient: int, divisor: int) -> int:
    """The quotient rounded towards zero."""
    quotient = abs(coefficient) // abs(divisor)
    return quotient if (coefficient < 0) == (divisor < 0) else -quotient


def _content(terms: Mapping[_Monomial, int], start: int) -> int:
    """The greatest common divisor of ``start`` and the coefficients, the constant's left out."""
    return math.gcd(start, *(coefficient for monomial, coefficient in terms.items() if monomial is not _ONE))


def _scaled_down(terms: Mapping[_Monomial, int], divisor: int) -> Dim:
    return _expression({monomial: coefficient // divisor for monomial, coefficient in terms.items()})


def _floordiv_constant(a: Dim, k: int) -> Dim:
    """a // k for k > 0: whole multiples of k leave the division, the rest starts with a positive coefficient."""
    if not isinstance(a, DimExpr) or k == 1:
        return a // k
    whole: dict[_Monomial, int] = {}
    rest: dict[_Monomial, int] = {}
    for monomial, coefficient in a.terms:
        quotient = coefficient // k if monomial is _ONE else _truncated(coefficient, k)
        whole[monomial] = quotient
        if coefficient != quotient * k:
            rest[monomial] = coefficient - quotient * k
    numerator = _expression(rest)
    if not isinstance(numerator, DimExpr):
        return _expression(whole)  # 0 <= numerator < k
    if numerator.terms[0][1] < 0:
        return _expression(whole) - _floordiv_constant(k - 1 - numerator, k)
    divisor = _content(rest, k)
    if divisor > 1:
        return _expression(whole) + _floordiv_constant(_scaled_down(rest, divisor), k // divisor)
    merged = _merge_nested_division(numerator, k)
    if merged is not None:
        return _expression(whole) + merged
    low, high = _interval(numerator)
    if not math.isinf(low) and not math.isinf(high) and low // k == high // k:
        return _expression(whole) + int(low // k)
    return _expression(whole) + _of_atom(_atom("floordiv", numerator, k))


def _merge_nested_division(numerator: DimExpr, k: int) -> Dim | None:
    """(x // a + rest) // k as (x + a * rest) // (a * k), where x // a is the only division in the numerator."""
    divisions = [
        (monomial, coefficient)
        for monomial, coefficient in numerator.terms
        if any(atom.kind == "floordiv" for atom, _ in monomial.powers)
    ]
    if len(divisions) != 1 or divisions[0][1] != 1 or divisions[0][0].degree != 1:
        return None
    inner = divisions[0][0].powers[0][0]
    dividend, divisor = inner.arguments
    if isinstance(divisor, DimExpr) or divisor * k > MAX_COEFFICIENT:
        return None
    return _floordiv_constant(dividend + divisor * (numerator - _of_atom(inner)), divisor * k)


def _floormod_constant(a: Dim, k: int) -> Dim:
    """a % k for k > 0, with coefficients of least absolute value."""
    if not isinstance(a, DimExpr) or k == 1:
        return a % k
    rest: dict[_Monomial, int] = {}
    for monomial, coefficient in a.terms:
        remainder = coefficient % k
        rest[monomial] = remainder - k if monomial is not _ONE and 2 * remainder > k else remainder
    value = _expression(rest)
    if not isinstance(value, DimExpr):
        return value
    for monomial, coefficient in value.terms:
        atom = monomial.powers[0][0] if monomial.degree == 1 else None
        if atom is not None and atom.kind == "mod" and isinstance(atom.arguments[1], int):
            if coefficient * atom.arguments[1] % k == 0:
                return _floormod_constant(value + coefficient * (atom.arguments[0] - _of_atom(atom)), k)
    divisor = _content(rest, k)
    if divisor > 1:
        return divisor * _floormod_constant(_scaled_down(rest, divisor), k // divisor) + rest.get(_ONE, 0) % divisor
    low, high = _interval(value)
    if not math.isinf(low) and not math.isinf(high) and low // k == high // k:
        return value - k * int(low // k)
    return _of_atom(_atom("mod", value, k))


def _split_by_term(a: Dim, divisor: DimExpr) -> tuple[Dim, Dim]:
    """(quotient, rest) with a == quotient * divisor + rest, term by term, for a divisor of one term."""
    (by, by_coefficient), *others = divisor.terms
    if others:
        return 0, a
    whole: dict[_Monomial, int] = {}
    rest: dict[_Monomial, int] = {}
    for monomial, coefficient in _terms(a).items():
        reduced = _divide_monomials(monomial, by)
        quotient = 0 if reduced is None else _truncated(coefficient, by_coefficient)
        if reduced is not None and quotient:
            whole[reduced] = quotient
        rest[monomial] = coefficient - quotient * by_coefficient
    return _expression(whole), _expression(rest)


def _common_factor(a: Dim, b: DimExpr) -> Dim:
    """The greatest single term that divides every term of both."""
    terms = [*_terms(a).items(), *b.terms]
    number = math.gcd(*(coefficient for _, coefficient in terms))
    powers = dict(terms[0][0].powers)
    for monomial, _ in terms[1:]:
        present = dict(monomial.powers)
        powers = {atom: min(power, present.get(atom, 0)) for atom, power in powers.items()}
    return _expression({_sorted_monomial(powers): number})


def _divide_exactly(a: Dim, b: Dim) -> Dim | None:
    """The polynomial q with q * b == a, else None."""
    if not isinstance(b, DimExpr):
        if b == 0 or any(coefficient % b for coefficient in _terms(a).values()):
            return None
        return _expression({monomial: coefficient // b for monomial, coefficient in _terms(a).items()})
    lead, lead_coefficient = b.terms[0]
    quotient: Dim = 0
    for _ in range(MAX_SIZE):
        if isinstance(a, int):
            return quotient if a == 0 else None
        monomial, coefficient = a.terms[0]
        reduced = _divide_monomials(monomial, lead)
        if reduced is None or coefficient % lead_coefficient:
            return None
        step = _expression({reduced: coefficient // lead_coefficient})
        quotient = quotient + step
        a = a - step * b
    return None


def _floordiv_symbolic(a: Dim, b: DimExpr) -> Dim:
    if b.terms[0][1] < 0:
        return floordiv(-a, -b)
    exact = _divide_exactly(a, b)
    if exact is not None:
        return exact
    whole, rest = _split_by_term(a, b)
    positive = _interval(b)[0] >= 0  # b is not zero where a // b has a value
    if positive and isinstance(rest, DimExpr) and rest.terms[0][1] < 0:
        return whole - floordiv(b - 1 - rest, b)
    reduced = _cancel(rest, b, positive)
    if reduced is not None:
        return whole + floordiv(*reduced)
    low, high = _quotient_interval(_interval(rest), _interval(b))
    if low == high:
        return whole + int(low)
    if _interval(rest)[0] >= 0 and _interval(b - rest)[0] > 0:
        return whole
    return whole + _of_atom(_atom("floordiv", rest, b))


def _cancel(a: Dim, b: DimExpr, positive: bool) -> tuple[Dim, Dim] | None:
    """The operands of a // b without their common factor, None when they have none."""
    factor = _common_factor(a, b)
    if factor != 1:
        numerator, denominator = _divide_exactly(a, factor), _divide_exactly(b, factor)
        assert numerator is not None and denominator is not None
        return numerator, denominator
    number = math.gcd(_content(_terms(a), 0), *(coefficient for _, coefficient in b.terms))
    if positive and number > 1:
        return _scaled_down(_terms(a), number), _scaled_down(_terms(b), number)
    return None


def _floormod_symbolic(a: Dim, b: DimExpr) -> Dim:
    if b.terms[0][1] < 0:
        return -floormod(-a, -b)
    if _divide_exactly(a, b) is not None:
        return 0
    _, rest = _split_by_term(a, b)
    if rest == 0:
        return 0
    factor = _common_factor(rest, b)
    if factor != 1:
        numerator, denominator = _divide_exactly(rest, factor), _divide_exactly(b, factor)
        assert numerator is not None and denominator is not None
        return factor * floormod(numerator, denominator)
    if _interval(rest)[0] >= 0 and _interval(b - rest)[0] > 0:
        return rest
    return _of_atom(_atom("mod", rest, b))


def minimum(*dims: Dim) -> Dim:
    """The least of the dimensions (at least one); arguments that are never the least are dropped.

    >>> n = symbol("n")
    >>> minimum(n, n + 1), minimum(n, 8)
    (n, min(n, 8))
    """
    return _extremum("min", dims)


def maximum(*dims: Dim) -> Dim:
    """The greatest of the dimensions (at least one); arguments that are never the greatest are dropped.

    >>> maximum(symbol("n"), 0)
    n
    """
    return _extremum("max", dims)


def _extremum(kind: str, dims: Sequence[Dim]) -> Dim:
    if not dims:
        raise _error("W289", f"{kind}() of no dimensions")
    flat: list[Dim] = []
    for value in map(as_dim, dims):
        inner = _single_atom(value)
        flat.extend(inner.arguments if inner is not None and inner.kind == kind else (value,))
    kept = _prune(kind, list(dict.fromkeys(flat)))
    if len(kept) == 1:
        return kept[0]
    return _of_atom(_atom(kind, *sorted(kept, key=_argument_key)))


def _prune(kind: str, candidates: list[Dim]) -> list[Dim]:
    sign = 1 if kind == "min" else -1
    kept: list[Dim] = []
    for candidate in candidates:
        if any(_interval(sign * (candidate - other))[0] >= 0 for other in kept):
            continue
        kept = [other for other in kept if _interval(sign * (other - candidate))[0] < 0]
        kept.append(candidate)
    return kept


def _argument_key(value: Dim) -> tuple[bool, str]:
    return isinstance(value, int), format_dim(value)


def _single_atom(value: Dim) -> _Atom | None:
    """The atom that the dimension consists of, if it is just one."""
    if isinstance(value, DimExpr) and len(value.terms) == 1:
        monomial, coefficient = value.terms[0]
        if coefficient == 1 and monomial.degree == 1:
            return monomial.powers[0][0]
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Inspection, substitution, evaluation
# ---------------------------------------------------------------------------------------------------------------------


def is_symbolic(d: Dim) -> bool:
    """Whether the dimension depends on a symbol."""
    return isinstance(d, DimExpr)


def free_symbols(d: Dim) -> tuple[str, ...]:
    """The names of the symbols that occur in the dimension, sorted."""
    return tuple(sorted(d.names)) if isinstance(d, DimExpr) else ()


def same(a: Dim, b: Dim) -> bool:
    """Whether the two are one canonical expression (True proves equality; False proves nothing)."""
    return a is b or a == b


def operation(d: Dim) -> tuple[str, tuple[Any, ...]]:
    """One step of the dimension's structure, for code that translates it: (kind, operands).

    Kinds: ``constant`` (int,), ``symbol`` (name,), ``add`` and ``mul`` (dims of two or more), ``pow`` (dim, int),
    ``floordiv``, ``mod`` (dim, dim), ``min`` and ``max`` (dims of two or more).

    >>> operation(2 * symbol("n") + 1)
    ('add', (2 * n, 1))
    """
    if not isinstance(d, DimExpr):
        return "constant", (d,)
    if len(d.terms) > 1:
        return "add", tuple(_expression({monomial: coefficient}) for monomial, coefficient in d.terms)
    monomial, coefficient = d.terms[0]
    factors = [_expression({_monomial(((atom, power),)): 1}) for atom, power in monomial.powers]
    if coefficient != 1 or len(factors) > 1:
        return "mul", (*([coefficient] if coefficient != 1 else []), *factors)
    atom, power = monomial.powers[0]
    if power > 1:
        return "pow", (_of_atom(atom), power)
    return atom.kind, atom.arguments


_BUILD: dict[str, Callable[..., Dim]] = {"floordiv": floordiv, "mod": floormod, "min": minimum, "max": maximum}


def substitute(d: Dim, values: Mapping[str, Dim]) -> Dim:
    """The dimension with symbols replaced, all at once; names that do not occur are ignored.

    >>> n = symbol("n")
    >>> substitute((n + 1) // 2, {"n": 2 * n})
    n
    """
    if not isinstance(d, DimExpr) or d.names.isdisjoint(values):
        return d

    def replace(atom: _Atom) -> Dim:
        if atom.kind == "symbol":
            name = atom.arguments[0]
            return as_dim(values[name]) if name in values else _of_atom(atom)
        return _BUILD[atom.kind](*(substitute(argument, values) for argument in atom.arguments))

    return _map_atoms(d, replace)


def _map_atoms(d: Dim, replace: Callable[[_Atom], Dim]) -> Dim:
    """The polynomial with every atom of its monomials replaced."""
    if not isinstance(d, DimExpr):
        return d
    images: dict[_Atom, Dim] = {}
    total: Dim = 0
    for monomial, coefficient in d.terms:
        term: Dim = coefficient
        for atom, power in monomial.powers:
            if atom not in images:
                images[atom] = replace(atom)
            for _ in range(power):
                term = term * images[atom]
        total = total + term
    return total


def evaluate(d: Dim, values: Mapping[str, int]) -> int:
    """The dimension's value; ShapeError W286 names a missing symbol, W280 a zero divisor.

    >>> evaluate(symbol("n") // 2, {"n": 7})
    3
    """
    if not isinstance(d, DimExpr):
        return d
    total = 0
    for monomial, coefficient in d.terms:
        for atom, power in monomial.powers:
            value = _evaluate_atom(atom, values)
            coefficient *= value if power == 1 else value**power
        total += coefficient
    return total


def _evaluate_atom(atom: _Atom, values: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        name = atom.arguments[0]
        if name not in values:
            raise _error("W286", f"the symbol {name} has no value", f"values are given for {sorted(values)}")
        return index(values[name])
    arguments = [evaluate(argument, values) for argument in atom.arguments]
    if atom.kind == "min":
        return min(arguments)
    if atom.kind == "max":
        return max(arguments)
    if arguments[1] == 0:
        raise _error("W280", f"division by zero in {atom.text}: {atom.arguments[1]} is 0")
    return arguments[0] // arguments[1] if atom.kind == "floordiv" else arguments[0] % arguments[1]


def fresh_name(base: str, used: Iterable[str]) -> str:
    """``base``, or ``base_1``, ``base_2``, ...: the first that is not used.

    >>> fresh_name("n", {"n", "n_1"})
    'n_2'
    """
    taken = used if isinstance(used, set | frozenset | dict) else set(used)
    if base not in taken:
        return base
    number = 1
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"


# ---------------------------------------------------------------------------------------------------------------------
# Text
# ---------------------------------------------------------------------------------------------------------------------


def format_dim(d: Dim) -> str:
    """The dimension as a Python expression that `parse_dim` reads back as the same object.

    >>> n = symbol("n")
    >>> format_dim((n + 1) // 2 * 3 - n * n)
    '3 * ((n + 1) // 2) - n ** 2'
    """
    if not isinstance(d, DimExpr):
        return str(d)
    if d._text is None:
        d._text = _sum_text(d)
    return d._text


def _sum_text(d: DimExpr) -> str:
    terms = list(d.terms)
    first = next((position for position, (_, coefficient) in enumerate(terms) if coefficient > 0), 0)
    terms.insert(0, terms.pop(first))  # `m - n` reads better than `-n + m`
    parts: list[str] = []
    for monomial, coefficient in terms:
        text = _term_text(monomial, abs(coefficient), bool(parts) or coefficient > 0)
        if not parts:
            parts.append(text if coefficient > 0 else f"-{text}")
        else:
            parts.append(f" {'+' if coefficient > 0 else '-'} {text}")
    return "".join(parts)


def _term_text(monomial: _Monomial, coefficient: int, bare: bool) -> str:
    """One term without its sign; ``bare`` lets a lone division stand without parentheses."""
    if monomial is _ONE:
        return str(coefficient)
    if bare and coefficient == 1 and monomial.degree == 1:
        return monomial.powers[0][0].text
    factors = [str(coefficient)] if coefficient != 1 else []
    for atom, power in monomial.powers:
        text = f"({atom.text})" if atom.kind in ("floordiv", "mod") else atom.text
        factors.append(text if power == 1 else f"{text} ** {power}")
    return " * ".join(factors)


_OPERATOR_TEXT = {"floordiv": "//", "mod": "%"}


def _atom_text(kind: str, arguments: tuple[Any, ...]) -> str:
    if kind == "symbol":
        return arguments[0]
    if kind in ("min", "max"):
        return f"{kind}({', '.join(map(format_dim, arguments))})"
    left, right = arguments
    if isinstance(left, DimExpr):
        simple = len(left.terms) == 1
        left_text = _sum_text_of_product(left) if simple else f"({format_dim(left)})"
    else:
        left_text = str(left) if left >= 0 else f"({left})"
    atom = _single_atom(right)
    plain = isinstance(right, int) or atom is not None and atom.kind not in _OPERATOR_TEXT
    return f"{left_text} {_OPERATOR_TEXT[kind]} {format_dim(right) if plain else f'({format_dim(right)})'}"


def _sum_text_of_product(d: DimExpr) -> str:
    monomial, coefficient = d.terms[0]
    return f"{'-' if coefficient < 0 else ''}{_term_text(monomial, abs(coefficient), False)}"


_GRAMMAR = r"""
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: unary | product "*" unary -> mul | product "//" unary -> floordiv | product "%" unary -> mod
?unary: power | "-" unary -> neg | "+" unary -> pos
?power: leaf | leaf "**" unary -> pow
?leaf: NAME -> name | INTEGER -> integer | "(" sum ")" | FUNCTION "(" sum ("," sum)* ")" -> call
FUNCTION.2: /(min|max|ceildiv)(?=\s*\()/
NAME: /[^\W\d]\w*/
INTEGER: /\d+/
%ignore /[ \t\r\n\f]+/
"""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")


def parse_dim(text: str, max_length: int = 1 << 16, max_depth: int = 256) -> Dim:
    """Reads a dimension; evaluates nothing. ShapeError W287 (with the position), W288, and arithmetic's codes.

    Integers must fit in 64 bits; text longer than ``max_length`` or nested deeper than ``max_depth`` is refused.

    >>> parse_dim("n * 2 * 4 + ceildiv(m, 2)")
    8 * n + (m + 1) // 2
    """
    if not isinstance(text, str):
        raise _error("W287", f"a dimension is read from text, not from {type(text).__name__}")
    stripped = text.strip()
    if len(text) > max_length:
        raise _error("W288", f"a dimension of {len(text)} characters is refused (limit {max_length})")
    if _IDENTIFIER.match(stripped) and not keyword.iskeyword(stripped):
        return symbol(stripped)
    if _INTEGER.match(stripped):
        return int(stripped)
    return _parse_general(text, max_depth)


@lru_cache(maxsize=1 << 12)
def _parse_general(text: str, max_depth: int) -> Dim:
    _check_depth(text, max_depth)
    from lark.exceptions import UnexpectedInput, VisitError

    try:
        result = _parser().parse(text)
    except VisitError as failure:
        if isinstance(failure.orig_exc, ShapeError):
            raise failure.orig_exc from None
        raise
    except UnexpectedInput as failure:
        at_end = getattr(getattr(failure, "token", None), "type", "") == "$END"
        raise _syntax_error(text, None if at_end else failure.pos_in_stream) from None
    return _checked_range(result)


def _checked_range(value: Dim) -> Dim:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _error("W281", f"the integer {str(value)[:24]}... does not fit in 64 bits")
    return value


def _check_depth(text: str, max_depth: int) -> None:
    depth = deepest = 0
    for character in text:
        if character == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ")":
            depth -= 1
    if deepest > max_depth:
        raise _error("W288", f"a dimension nested {deepest} deep is refused (limit {max_depth})")


def _syntax_error(text: str, position: int | None) -> ShapeError:
    where = len(text) if position is None or position < 0 else min(position, len(text))
    found = repr(text[where]) if where < len(text) else "the end"
    return _error(
        "W287",
        f"unexpected {found} at character {where} of a dimension",
        "dimensions are made of names, integers, + - * // % **, parentheses, min, max and ceildiv",
        Span(Source("<dimension>", text), where, where + 1),
    )


@lru_cache(maxsize=1)
def _parser() -> Any:
    from lark import Lark, Transformer

    def call(self: object, items: list[Any]) -> Dim:
        function, *arguments = items
        if function == "ceildiv":
            if len(arguments) != 2:
                raise _error("W287", f"ceildiv takes two dimensions, not {len(arguments)}")
            return ceildiv(*arguments)
        return minimum(*arguments) if function == "min" else maximum(*arguments)

    def integer(self: object, items: list[Any]) -> int:
        digits = str(items[0]).lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > 2**63:  # 2**63 itself only as -2**63
            raise _error("W281", f"the integer {digits[:24]}... does not fit in 64 bits")
        return int(digits)

    def binary(build: Callable[[Dim, Any], Dim]) -> Callable[[object, list[Any]], Dim]:
        return lambda self, items: _checked_range(build(items[0], items[1]))

    members: dict[str, Any] = {
        "add": binary(lambda a, b: _sum(a, b, 1)),
        "sub": binary(lambda a, b: _sum(a, b, -1)),
        "mul": binary(_product),
        "floordiv": binary(floordiv),
        "mod": binary(floormod),
        "pow": binary(_power),
        "neg": lambda self, items: -items[0],
        "pos": lambda self, items: items[0],
        "name": lambda self, items: symbol(str(items[0])),
        "integer": integer,
        "call": call,
    }
    # Built while parsing, without a tree: no recursion over the depth of the text.
    return Lark(_GRAMMAR, parser="lalr", transformer=type("_Builder", (Transformer,), members)(), maybe_placeholders=False)


# ---------------------------------------------------------------------------------------------------------------------
# Intervals
# ---------------------------------------------------------------------------------------------------------------------

_INFINITY = math.inf
_NATURAL: _Interval = (0, _INFINITY)
_UNKNOWN: _Interval = (-_INFINITY, _INFINITY)
_NO_BOUNDS: Mapping[str, _Interval] = {}


def _scaled(a: _Bound, b: _Bound) -> _Bound:
    if a == 0 or b == 0:
        return 0
    if isinstance(a, float) or isinstance(b, float):
        return _INFINITY if (a > 0) == (b > 0) else -_INFINITY
    return a * b


def _plus(a: _Bound, b: _Bound) -> _Bound:
    if isinstance(a, float):
        return a
    return b if isinstance(b, float) else a + b


def _interval(d: Dim, known: Mapping[str, _Interval] = _NO_BOUNDS) -> _Interval:
    """Bounds of the dimension by interval arithmetic; cheap, sound, not tight."""
    if not isinstance(d, DimExpr):
        return d, d
    if not known and d._interval is not None:
        return d._interval
    low: _Bound = 0
    high: _Bound = 0
    for monomial, coefficient in d.terms:
        bottom, top = _monomial_interval(monomial, known)
        if coefficient < 0:
            bottom, top = top, bottom
        low, high = _plus(low, _scaled(coefficient, bottom)), _plus(high, _scaled(coefficient, top))
    if not known:
        d._interval = low, high
    return low, high


def _monomial_interval(monomial: _Monomial, known: Mapping[str, _Interval]) -> _Interval:
    result: _Interval = (1, 1)
    for atom, power in monomial.powers:
        base = _atom_interval(atom, known)
        if power % 2 == 0 and base[0] < 0:
            top = max(abs(base[0]), abs(base[1]))
            base = (0 if base[1] >= 0 else min(abs(base[0]), abs(base[1])), top)
        factor: _Interval = (1, 1)
        for _ in range(power):
            factor = _product_interval(factor, base)
        result = _product_interval(result, factor)
    return result


def _product_interval(a: _Interval, b: _Interval) -> _Interval:
    corners = [_scaled(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _atom_interval(atom: _Atom, known: Mapping[str, _Interval]) -> _Interval:
    if atom.kind == "symbol":
        return known.get(atom.arguments[0], _NATURAL)
    arguments = [_interval(argument, known) for argument in atom.arguments]
    if atom.kind == "min":
        return min(low for low, _ in arguments), min(high for _, high in arguments)
    if atom.kind == "max":
        return max(low for low, _ in arguments), max(high for _, high in arguments)
    if atom.kind == "floordiv":
        return _quotient_interval(*arguments)
    return _remainder_interval(*arguments)


def _floor_bound(a: _Bound, b: _Bound) -> _Bound:
    """a // b in the limit, for b >= 1."""
    if isinstance(a, float):
        return a
    if isinstance(b, float):
        return 0 if a >= 0 else -1
    return a // b


def _quotient_interval(a: _Interval, b: _Interval) -> _Interval:
    if b[0] < 0:
        return _UNKNOWN
    least, most = max(b[0], 1), max(b[1], 1)
    corners = [_floor_bound(x, y) for x in a for y in (least, most)]
    return min(corners), max(corners)


def _remainder_interval(a: _Interval, b: _Interval) -> _Interval:
    if b[0] < 0:
        return _UNKNOWN
    top = _plus(max(b[1], 1), -1)
    return 0, min(top, a[1]) if a[0] >= 0 else top
