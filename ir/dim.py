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
limits, W289 bad exponent or no operands, W290 different numbers of dimensions.

Answers have three values: True (holds for all nonnegative symbol values), False (holds for none), None (it depends on
the values, or is not known). True and False are always sound. This is the only module that imports sympy, and it does
so on the first question that needs it; plain integers never get there.
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
from functools import cached_property, lru_cache, partial, reduce
from itertools import islice
from itertools import product as cartesian
from operator import attrgetter, index
from typing import Any, SupportsIndex, TypeAlias, cast
from weakref import WeakValueDictionary

from weft.errors import ShapeError, Source, Span

__all__ = [
    "Dim",
    "DimExpr",
    "Facts",
    "as_dim",
    "bounds",
    "ceildiv",
    "counterexample",
    "counterexample_le",
    "evaluate",
    "floordiv",
    "floormod",
    "format_dim",
    "free_symbols",
    "fresh_name",
    "is_symbolic",
    "match_dims",
    "maximum",
    "minimum",
    "operation",
    "parse_dim",
    "product",
    "prove_equal",
    "prove_le",
    "prove_lt",
    "prove_ne",
    "prove_nonnegative",
    "same",
    "solve_for",
    "substitute",
    "symbol",
    "symbol_name",
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


_Terms: TypeAlias = tuple[tuple[_Monomial, int], ...]

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

    __array_ufunc__ = None  # NumPy scalars leave arithmetic with a dimension to the dimension

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
            "prove_le(a, b) and prove_lt(a, b) answer True, False or None",
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
    plain = symbol_name(name, "") if isinstance(name, str) else ""
    if plain:
        return _symbol(plain)
    raise _error("W283", f"{name!r} is not a name for a symbol", "use a Python identifier")


def symbol_name(hint: str, otherwise: str = "s") -> str:
    """The name of a symbol after a hint: as Python reads it as a name; the other one where it is none.

    >>> symbol_name("n"), symbol_name("None"), symbol_name("two words", "x")
    ('n', 's', 'x')
    """
    name = hint if hint.isascii() else unicodedata.normalize("NFKC", hint)
    return name if name.isidentifier() and not keyword.iskeyword(name) else otherwise


def _symbol(name: str) -> DimExpr:
    return _of_atom(_atom("symbol", name))


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
    if exponent < 0 or (exponent > MAX_DEGREE and isinstance(base, DimExpr)):
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
        return a if k == 1 else a // k
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


def _merge_nested_division(numerator: DimExpr, k: Dim, by_symbols: bool = True) -> Dim | None:
    """(x // a + rest) // k as (x + a * rest) // (a * k) for k > 0, where x // a is the numerator's only division.

    Without ``by_symbols`` a and k must be constants.
    """
    divisions = [
        (monomial, coefficient)
        for monomial, coefficient in numerator.terms
        if any(atom.kind == "floordiv" for atom, _ in monomial.powers)
    ]
    if len(divisions) != 1 or divisions[0][1] != 1 or divisions[0][0].degree != 1:
        return None
    inner = divisions[0][0].powers[0][0]
    dividend, divisor = inner.arguments
    rest = numerator - _of_atom(inner)
    if isinstance(divisor, int) and isinstance(k, int):
        if divisor * k > MAX_COEFFICIENT:
            return None
    elif rest != 0 or not by_symbols:
        return None  # the products would say less than the nested divisions
    return floordiv(dividend + divisor * rest, divisor * k)


def _floormod_constant(a: Dim, k: int) -> Dim:
    """a % k for k > 0, with coefficients of least absolute value."""
    if not isinstance(a, DimExpr) or k == 1:
        return 0 if k == 1 else a % k
    rest: dict[_Monomial, int] = {}
    for monomial, coefficient in a.terms:
        remainder = coefficient % k
        rest[monomial] = remainder - k if monomial is not _ONE and 2 * remainder > k else remainder
    value = _expression(rest)
    if not isinstance(value, DimExpr):
        return value
    for monomial, coefficient in value.terms:
        atom = _only_atom(monomial)
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
    merged = _merge_nested_division(rest, b) if positive and isinstance(rest, DimExpr) else None
    if merged is not None:
        return whole + merged
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
        assert numerator is not None
        assert denominator is not None
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
        assert numerator is not None
        assert denominator is not None
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


def _only_atom(monomial: _Monomial) -> _Atom | None:
    return monomial.powers[0][0] if monomial.degree == 1 else None


def _single_atom(value: Dim) -> _Atom | None:
    """The atom that the dimension consists of, if it is just one."""
    if isinstance(value, DimExpr):
        (monomial, coefficient), *others = value.terms
        if coefficient == 1 and not others:
            return _only_atom(monomial)
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
    (monomial, coefficient), *others = d.terms
    if others:
        return "add", tuple(_expression({monomial: coefficient}) for monomial, coefficient in d.terms)
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
    plain = isinstance(right, int) or (atom is not None and atom.kind not in _OPERATOR_TEXT)
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
    at_end = "a dimension ends too early" if text else "a dimension is missing"
    return _error(
        "W287",
        f"unexpected {text[where]!r} at character {where} of a dimension" if where < len(text) else at_end,
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
    builder = type("_Builder", (Transformer,), members)()
    return Lark(_GRAMMAR, parser="lalr", transformer=builder, maybe_placeholders=False)


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


# ---------------------------------------------------------------------------------------------------------------------
# Normal form for proofs: no remainders, no maxima, every residue reduced
# ---------------------------------------------------------------------------------------------------------------------


def _normal(d: Dim) -> Dim:
    """The dimension without ``%`` and ``max``, and with one spelling for divisions that differ by whole multiples.

    Canonical form keeps what a reader wants to see (``n % 4``, ``(n + 1) // 2``); here ``a % b`` is
    ``a - b * (a // b)``, so that identities between the two become equal polynomials.
    """
    if not isinstance(d, DimExpr):
        return d
    if d._normal is None:
        result = _map_atoms(d, _normal_atom)
        if isinstance(result, DimExpr):
            result._normal = result
        d._normal = result
    return d._normal


def _normal_atom(atom: _Atom) -> Dim:
    if atom.kind == "symbol":
        return _of_atom(atom)
    arguments = [_normal(argument) for argument in atom.arguments]
    if atom.kind == "floordiv":
        return _normal_division(arguments[0], arguments[1])
    if atom.kind == "mod":
        return arguments[0] - arguments[1] * _normal_division(arguments[0], arguments[1])
    if atom.kind == "min":
        return _normal_minimum(arguments)
    return -_normal_minimum([-argument for argument in arguments])


def _normal_division(a: Dim, b: Dim) -> Dim:
    if isinstance(b, DimExpr):
        return _map_atoms(floordiv(a, b), _nested_division)
    if not isinstance(a, DimExpr) or b <= 1:
        return floordiv(a, b)
    rest = {monomial: coefficient % b for monomial, coefficient in a.terms}
    whole = _expression({monomial: coefficient // b for monomial, coefficient in a.terms})
    numerator = _expression(rest)
    if not isinstance(numerator, DimExpr):
        return whole
    divisor = _content(rest, b)
    if divisor > 1:
        return whole + _normal_division(_scaled_down(rest, divisor), b // divisor)
    # Of the two spellings floor(a / b) and -floor((b - 1 - a) / b), take the one with the smaller residues.
    opposite = {monomial: (b - 1 if monomial is _ONE else 0) - rest.get(monomial, 0) for monomial in (*rest, _ONE)}
    opposite = {monomial: coefficient % b for monomial, coefficient in opposite.items()}
    if _residues(opposite) < _residues(rest):
        raised = _expression({m: (opposite[m] + rest.get(m, 0) - (b - 1 if m is _ONE else 0)) // b for m in opposite})
        return whole + raised - _normal_division(_expression(opposite), b)
    merged = _merge_nested_division(numerator, b, by_symbols=False)
    if merged is not None:
        return whole + _normal(merged)
    low, high = _interval(numerator)
    if not math.isinf(low) and not math.isinf(high) and low // b == high // b:
        return whole + int(low // b)
    return whole + _of_atom(_atom("floordiv", numerator, b))


def _nested_division(atom: _Atom) -> Dim:
    """x // (2 * m * n) as x // m // n // 2: so it shares its inner divisions with others."""
    if atom.kind != "floordiv" or not isinstance(atom.arguments[1], DimExpr):
        return _of_atom(atom)
    dividend, divisor = atom.arguments
    (monomial, coefficient), *others = divisor.terms
    if others or _interval(divisor)[0] < 0 or (monomial.degree == 1 and coefficient == 1):
        return _of_atom(atom)
    for factor in [_of_atom(factor) for factor, power in monomial.powers for _ in range(power)]:
        if dividend is atom.arguments[0]:
            dividend = floordiv(dividend, factor)
        elif isinstance(dividend, DimExpr):
            dividend = _of_atom(_atom("floordiv", dividend, factor))
        else:
            dividend = floordiv(dividend, factor)
    return _normal_division(dividend, coefficient)


def _residues(terms: Mapping[_Monomial, int]) -> list[int]:
    ordered = sorted((monomial for monomial in terms if monomial is not _ONE), key=_term_key)
    return [terms[monomial] for monomial in ordered] + [terms.get(_ONE, 0)]


def _normal_minimum(arguments: list[Dim]) -> Dim:
    """min with what its arguments share (an offset, a factor) taken out."""
    tables = [_terms(argument) for argument in arguments]
    shared = {m: min(table.get(m, 0) for table in tables) for table in tables for m in table}
    offset = _expression(shared)
    moved = [argument - offset for argument in arguments]
    factor = math.gcd(*(coefficient for argument in moved for coefficient in _terms(argument).values()))
    if factor == 0:
        return offset
    return offset + factor * minimum(*(_scaled_down(_terms(argument), factor) for argument in moved))


# ---------------------------------------------------------------------------------------------------------------------
# Facts
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """An immutable set of learnt equalities and bounds, under which the prove functions answer.

    >>> n, m = symbol("n"), symbol("m")
    >>> prove_equal(n // 2, m, Facts().assume_equal(n, 2 * m))
    True
    """

    equalities: tuple[tuple[Dim, Dim], ...] = ()
    orders: tuple[tuple[Dim, Dim], ...] = ()

    def assume_equal(self, a: Dim, b: Dim) -> Facts:
        """These facts and ``a == b``."""
        return self if same(a, b) else Facts((*self.equalities, (as_dim(a), as_dim(b))), self.orders)

    def assume_le(self, a: Dim, b: Dim) -> Facts:
        """These facts and ``a <= b``."""
        return self if same(a, b) else Facts(self.equalities, (*self.orders, (as_dim(a), as_dim(b))))

    def assume_bounds(self, name: str, low: int | None = None, high: int | None = None) -> Facts:
        """These facts and ``low <= name <= high``; None leaves a side open."""
        facts = self if low is None else self.assume_le(low, symbol(name))
        return facts if high is None else facts.assume_le(symbol(name), high)

    def simplify(self, d: Dim) -> Dim:
        """The dimension after the equalities that define a symbol by others (``n == 2 * m``)."""
        for name, value in self._definitions:
            d = substitute(d, {name: value})
        return d

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether these symbol values satisfy every fact (and give each a value)."""
        try:
            return all(evaluate(a, values) == evaluate(b, values) for a, b in self.equalities) and all(
                evaluate(a, values) <= evaluate(b, values) for a, b in self.orders
            )
        except ShapeError as error:
            if error.code != "W280":
                raise
            return False

    @cached_property
    def names(self) -> frozenset[str]:
        """The symbols that the facts speak about."""
        dims = [side for pair in (*self.equalities, *self.orders) for side in pair]
        return frozenset().union(*(d.names for d in dims if isinstance(d, DimExpr)))

    @cached_property
    def contradictory(self) -> bool:
        """Whether the facts are proved to exclude each other (False may mean: not found)."""
        return _nonnegative_linearly(-1, self._world.assumptions)

    @cached_property
    def _definitions(self) -> tuple[tuple[str, Dim], ...]:
        found: list[tuple[str, Dim]] = []
        for a, b in self.equalities:
            difference = a - b
            for name, value in found:
                difference = substitute(difference, {name: value})
            definition = _definition_in(difference)
            if definition is not None:
                found.append(definition)
        return tuple(found)

    @cached_property
    def _world(self) -> _World:
        return _world_of(self)


_NO_FACTS = Facts()


@dataclass(frozen=True)
class _World:
    """Facts in solved form: symbols rewritten step by step over new parameters, and what is left as ``d >= 0``.

    A step may map a name to an expression over the same name (``n`` to ``4 * n + 1``): after it the name stands for the
    new, nonnegative parameter.
    """

    steps: tuple[Mapping[str, Dim], ...]
    assumptions: tuple[Dim, ...]

    def translate(self, d: Dim) -> Dim | None:
        """The dimension over the parameters; None where the facts make it a division by zero."""
        try:
            for step in self.steps:
                d = substitute(d, step)
        except ShapeError as error:
            if error.code != "W280":
                raise
            return None
        return d


def _world_of(facts: Facts) -> _World:
    steps: list[Mapping[str, Dim]] = []
    zeros: list[Dim] = [a - b for a, b in facts.equalities]
    positives: list[Dim] = [b - a for a, b in facts.orders]
    for _ in range(64):
        step = _next_step(zeros, positives)
        if step is None:
            break
        moved = _World((step,), ())
        after = [[moved.translate(d) for d in dims] for dims in (zeros, positives)]
        if any(d is None for dims in after for d in dims):
            break
        steps.append(step)
        zeros, positives = ([d for d in dims if d is not None] for dims in after)
        positives.extend(value for name, value in step.items() if _interval(value)[0] < 0)
    rest = [side for zero in zeros if zero != 0 for side in (zero, -zero)] + positives
    kept = [d for d in map(_normal, rest) if _interval(d)[0] < 0]
    return _World(tuple(steps), tuple(dict.fromkeys(kept)))


def _next_step(zeros: list[Dim], positives: list[Dim]) -> dict[str, Dim] | None:
    for zero in zeros:
        definition = _definition_in(zero)
        if definition is not None:
            return dict([definition])
        step = _ratio_step(zero) or _residue_step(zero)
        if step is not None:
            return step
    for positive in positives:
        least = _least_value(positive)
        if least is not None:
            return {least[0]: symbol(least[0]) + least[1]}
    for positive in positives:
        step = _above_step(positive)
        if step is not None:
            return step
    return None


def _above_step(positive: Dim) -> dict[str, Dim] | None:
    """The step for ``name >= rest`` with a rest that is never negative: name becomes the rest and a new parameter."""
    if not isinstance(positive, DimExpr) or len(positive.terms) < 2:
        return None
    for monomial, coefficient in positive.terms:
        if coefficient == 1 and monomial.degree == 1 and monomial.powers[0][0].kind == "symbol":
            name = monomial.powers[0][0].arguments[0]
            rest = symbol(name) - positive
            if name not in free_symbols(rest) and _interval(rest)[0] >= 0:
                return {name: rest + symbol(name)}
    return None


def _least_value(positive: Dim) -> tuple[str, int] | None:
    """(name, least) where ``positive >= 0`` says ``name >= least > 0`` and nothing else."""
    if isinstance(positive, DimExpr) and len(positive.terms) == 2:
        (monomial, coefficient), (last, constant) = positive.terms
        if last is _ONE and monomial.degree == 1 and monomial.powers[0][0].kind == "symbol":
            if coefficient > 0 and constant < 0:
                return monomial.powers[0][0].arguments[0], -(constant // coefficient)
    return None


def _definition_in(zero: Dim) -> tuple[str, Dim] | None:
    """(name, value) that ``zero == 0`` says, where a symbol stands alone with coefficient 1 or -1."""
    if not isinstance(zero, DimExpr):
        return None
    candidates: list[tuple[bool, str, Dim]] = []
    for monomial, coefficient in zero.terms:
        if monomial.degree == 1 and abs(coefficient) == 1 and monomial.powers[0][0].kind == "symbol":
            name = monomial.powers[0][0].arguments[0]
            rest = zero - coefficient * symbol(name)
            if name not in free_symbols(rest):
                value = -coefficient * rest
                candidates.append((_interval(value)[0] < 0, name, value))
    if not candidates:
        return None
    _, name, value = min(candidates, key=lambda candidate: candidate[:2])
    return name, value


def _ratio_step(zero: Dim) -> dict[str, Dim] | None:
    """The step for ``a * x == b * y``: x and y in terms of one parameter."""
    if not isinstance(zero, DimExpr) or len(zero.terms) != 2:
        return None
    (first, one), (second, other) = zero.terms
    if first.degree != 1 or second.degree != 1 or (one < 0) == (other < 0):
        return None
    atoms = first.powers[0][0], second.powers[0][0]
    if atoms[0].kind != "symbol" or atoms[1].kind != "symbol":
        return None
    divisor = math.gcd(one, other)
    parameter = _of_atom(atoms[0])
    return {
        atoms[0].arguments[0]: abs(other) // divisor * parameter,
        atoms[1].arguments[0]: abs(one) // divisor * parameter,
    }


def _residue_step(zero: Dim) -> dict[str, Dim] | None:
    """The step for a fact such as ``n % 4 == 1`` that leaves one residue of its only symbol."""
    names = free_symbols(zero)
    period = _period(_normal(zero), names[0]) if len(names) == 1 else 1
    if not 1 < period <= 256:
        return None
    possible: list[Dim] = []
    for residue in range(period):
        image = period * symbol(names[0]) + residue
        value = _normal(substitute(zero, {names[0]: image}))
        if isinstance(value, DimExpr):
            return None
        if value == 0:
            possible.append(image)
    return {names[0]: possible[0]} if len(possible) == 1 else None


# ---------------------------------------------------------------------------------------------------------------------
# Linear reasoning: Fourier-Motzkin elimination, each monomial a variable
# ---------------------------------------------------------------------------------------------------------------------

_MAX_ROWS = 160
_MAX_MONOMIALS = 24

_Row: TypeAlias = "dict[_Monomial, int]"


def _known_bounds(assumptions: Iterable[Dim]) -> dict[str, _Interval]:
    """Bounds of the symbols that follow from the assumptions one at a time."""
    known: dict[str, _Interval] = {}
    linear = [d for d in assumptions if isinstance(d, DimExpr) and d.terms[0][0].degree == 1]
    for _ in range(min(len(linear), 4)):  # one fact may bound what the next one speaks about
        for assumption in linear:
            for monomial, coefficient in assumption.terms:
                atom = _only_atom(monomial)
                if atom is not None and atom.kind == "symbol":
                    _tighten(known, atom.arguments[0], coefficient, assumption - _expression({monomial: coefficient}))
    return known


def _tighten(known: dict[str, _Interval], name: str, coefficient: int, rest: Dim) -> None:
    """Uses coefficient * name + rest >= 0."""
    most = _interval(rest, known)[1]
    low, high = known.get(name, _NATURAL)
    if math.isinf(most):
        return
    if coefficient < 0:
        high = min(high, most // -coefficient)
    else:
        low = max(low, -(most // coefficient))
    if low <= high:  # otherwise the facts exclude each other, which elimination finds
        known[name] = low, high


def _nonnegative_linearly(goal: Dim, assumptions: tuple[Dim, ...]) -> bool:
    """Whether goal >= 0 follows linearly from the assumptions and from what its atoms mean; True is a proof."""
    known = _known_bounds(assumptions)
    if _interval(goal, known)[0] >= 0:
        return True
    if not isinstance(goal, DimExpr) and not assumptions:
        return False
    facts = [*assumptions, *_raised_assumptions(goal, assumptions)]
    rows = [-goal - 1, *facts, *_axioms([goal, *facts], known)]
    return _infeasible([_terms(row) for row in rows])


def _raised_assumptions(goal: Dim, assumptions: tuple[Dim, ...]) -> Iterator[Dim]:
    """Assumptions times the symbols of the goal's products: from n <= m follows n * k <= m * k."""
    if isinstance(goal, DimExpr) and goal.terms[0][0].degree == 2:
        atoms = {atom: None for monomial, _ in goal.terms if monomial.degree == 2 for atom, _ in monomial.powers}
        factors = [_of_atom(atom) for atom in atoms if atom.kind == "symbol"][:3]
        for assumption in assumptions[:4]:
            if isinstance(assumption, DimExpr) and assumption.terms[0][0].degree == 1:
                yield from (assumption * factor for factor in factors)


def _axioms(dims: Iterable[Dim], known: Mapping[str, _Interval]) -> Iterator[Dim]:
    """Dimensions that are nonnegative because of what the monomials mean."""
    queue = list(dict.fromkeys(monomial for d in dims for monomial in _terms(d) if monomial is not _ONE))
    limit = 1 + max((monomial.degree for monomial in queue), default=0)
    seen = set(queue)
    used: set[tuple[_Atom, Dim]] = set()
    for monomial in queue:  # grows while it is walked
        variable = _expression({monomial: 1})
        low, high = _monomial_interval(monomial, known)
        if not math.isinf(low):
            yield variable - int(low)
        if not math.isinf(high):
            yield int(high) - variable
        for atom, _ in monomial.powers:
            cofactor = _expression({_divide_monomials(monomial, _monomial(((atom, 1),))) or _ONE: 1})
            square = _divide_monomials(monomial, _monomial(((atom, 2),)))
            if square is not None and _monomial_interval(square, known)[0] >= 0:
                yield variable - cofactor  # x * x >= x for every integer
            if atom.kind == "symbol" or _interval(cofactor, known)[0] < 0:
                continue
            factors = [factor for factor in dict.fromkeys((1, cofactor)) if (atom, factor) not in used]
            used.update((atom, factor) for factor in factors)
            for row in [factor * axiom for factor in factors for axiom in _atom_axioms(atom, known)]:
                new = [m for m in _terms(row) if m is not _ONE and m not in seen]
                if all(m.degree <= limit for m in new) and len(queue) + len(new) <= _MAX_MONOMIALS:
                    queue.extend(new)
                    seen.update(new)
                    yield row


def _atom_axioms(atom: _Atom, known: Mapping[str, _Interval]) -> Iterator[Dim]:
    value = _of_atom(atom)
    if atom.kind == "min":
        yield from (argument - value for argument in atom.arguments)
    elif atom.kind == "floordiv":
        dividend, divisor = atom.arguments
        if _interval(divisor, known)[0] >= 0:  # not zero, as the division has a value
            yield dividend - divisor * value
            yield divisor * value + divisor - 1 - dividend
            if isinstance(divisor, DimExpr):
                yield divisor - 1
                if _interval(value, known)[0] >= 0:
                    yield divisor * value - value


def _infeasible(rows: list[_Row]) -> bool:
    """Whether no integers satisfy all rows >= 0 (False: not shown)."""
    table: dict[tuple[tuple[_Monomial, int], ...], int] = {}
    for row in rows:
        if not _add_row(table, row):
            return True
    while table:
        counts: dict[_Monomial, list[int]] = {}
        for key in table:
            for monomial, coefficient in key:
                counts.setdefault(monomial, [0, 0])[coefficient > 0] += 1
        victim = min(counts, key=lambda m: (counts[m][0] * counts[m][1] - sum(counts[m]), m.key))
        if len(table) + counts[victim][0] * counts[victim][1] > _MAX_ROWS:
            return False
        table_or_none = _eliminate(table, victim)
        if table_or_none is None:
            return True
        table = table_or_none
    return False


def _add_row(table: dict[tuple[tuple[_Monomial, int], ...], int], row: _Row) -> bool:
    """Adds a row, divided by its content; False when it is a constant below zero."""
    constant = row.pop(_ONE, 0)
    items = [(monomial, coefficient) for monomial, coefficient in row.items() if coefficient]
    if not items:
        return constant >= 0
    divisor = math.gcd(*(coefficient for _, coefficient in items))
    key = tuple(sorted(((m, coefficient // divisor) for m, coefficient in items), key=lambda item: id(item[0])))
    constant //= divisor
    table[key] = min(constant, table.get(key, constant))
    return True


def _eliminate(
    table: dict[tuple[tuple[_Monomial, int], ...], int], victim: _Monomial
) -> dict[tuple[tuple[_Monomial, int], ...], int] | None:
    """The rows without one monomial; None when they contradict each other."""
    result: dict[tuple[tuple[_Monomial, int], ...], int] = {}
    below: list[tuple[_Row, int]] = []
    above: list[tuple[_Row, int]] = []
    for key, constant in table.items():
        row = dict(key)
        coefficient = row.pop(victim, 0)
        if coefficient == 0:
            result[key] = constant
            continue
        row[_ONE] = constant
        (below if coefficient > 0 else above).append((row, abs(coefficient)))
    for low, one in below:
        for high, other in above:
            row = {m: low.get(m, 0) * other + high.get(m, 0) * one for m in (*low, *high)}
            if not _add_row(result, row):
                return None
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Proofs
# ---------------------------------------------------------------------------------------------------------------------

_Case: TypeAlias = "tuple[Dim, tuple[Dim, ...]]"
_MAX_CASES = 200
_MAX_PERIOD = 64
_MAX_SPLITS = 4


class _Fuel:
    """How many more cases one question may look at."""

    def __init__(self) -> None:
        self.left = _MAX_CASES

    def burn(self, cases: int) -> bool:
        self.left -= cases
        return self.left >= 0


def _proved_zero(d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    return d == 0 or (
        bool(assumptions) and _nonnegative_linearly(d, assumptions) and _nonnegative_linearly(-d, assumptions)
    )


def _proved_nonzero(d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    if isinstance(d, DimExpr):
        divisor = _content(_terms(d), 0)
        if _terms(d).get(_ONE, 0) % divisor:
            return True
    elif d != 0:
        return True
    return _nonnegative_linearly(d - 1, assumptions) or _nonnegative_linearly(-d - 1, assumptions)


_Claim: TypeAlias = Callable[[Dim, "tuple[Dim, ...]"], bool]


def _proved(claim: _Claim, d: Dim, assumptions: tuple[Dim, ...], fuel: _Fuel, splits: int = _MAX_SPLITS) -> bool:
    """Whether the claim holds of a normal form, directly or in each of a complete set of cases."""
    if claim(d, assumptions):
        return True
    if splits == 0 or not isinstance(d, DimExpr):
        return False
    cases = _cases(d, assumptions)
    if cases is None or not fuel.burn(len(cases)):
        return False
    return all(_proved(claim, case, given, fuel, splits - 1) for case, given in cases)


def _cases(d: DimExpr, assumptions: tuple[Dim, ...]) -> list[_Case] | None:
    atoms = list(_all_atoms(d))
    for atom in atoms:
        if atom.kind == "min":
            return _defined(partial(_minimum_case, d, assumptions, atom, argument) for argument in atom.arguments)
    for atom in atoms:
        if atom.kind == "floordiv" and isinstance(atom.arguments[1], int):
            for inner in _all_atoms(atom.arguments[0]):
                if inner.kind == "floordiv" and isinstance(inner.arguments[1], DimExpr):
                    return _opaque_cases(d, assumptions, inner)
    periods = [(_period(d, name), name) for name in sorted(d.names)]
    for period, name in periods:
        coarse = _coarser(d, assumptions, name) if period > _MAX_PERIOD else None
        if coarse is not None:
            return [coarse]
    periods = [item for item in periods if 1 < item[0] <= _MAX_PERIOD]
    if periods:
        period, name = min(periods)
        images: list[Dim] = [period * _symbol(name) + residue for residue in range(period)]
        return _defined(partial(_substituted, d, assumptions, {name: image}) for image in images)
    names = [name for name in sorted(d.names) if _nonlinear_in(d, name)]
    if names:
        name = names[0]
        return _defined(partial(_substituted, d, assumptions, {name: value}) for value in (0, _symbol(name) + 1))
    return None


def _defined(cases: Iterable[Callable[[], _Case]]) -> list[_Case]:
    """The cases in which the dimension and the assumptions have a value."""
    found: list[_Case] = []
    for case in cases:
        try:
            found.append(case())
        except ShapeError as error:
            if error.code != "W280":
                raise
    return found


def _substituted(d: Dim, assumptions: tuple[Dim, ...], values: Mapping[str, Dim]) -> _Case:
    given = tuple(_normal(substitute(assumption, values)) for assumption in assumptions)
    return _normal(substitute(d, values)), given


def _minimum_case(d: Dim, assumptions: tuple[Dim, ...], atom: _Atom, chosen: Dim) -> _Case:
    given = [_normal(_replace_atom(assumption, atom, chosen)) for assumption in assumptions]
    given += [_normal(other - chosen) for other in atom.arguments if other is not chosen]
    return _normal(_replace_atom(d, atom, chosen)), tuple(given)


def _opaque_cases(d: Dim, assumptions: tuple[Dim, ...], atom: _Atom) -> list[_Case]:
    """The division by a symbol as a new symbol, of which only the axioms are kept; it can then be split by residues."""
    value = _symbol(f"({atom.text})")  # no name of a user's
    images: list[Dim] = [value] if _atom_interval(atom, _NO_BOUNDS)[0] >= 0 else [value, -value - 1]
    known = (*assumptions, *_atom_axioms(atom, _NO_BOUNDS))

    def case(image: Dim) -> _Case:
        given = tuple(_normal(_replace_atom(assumption, atom, image)) for assumption in known)
        return _normal(_replace_atom(d, atom, image)), given

    return _defined(partial(case, image) for image in images)


def _replace_atom(d: Dim, atom: _Atom, value: Dim) -> Dim:
    def replace(candidate: _Atom) -> Dim:
        if candidate is atom:
            return value
        if candidate.kind == "symbol":
            return _of_atom(candidate)
        return _BUILD[candidate.kind](*(_replace_atom(argument, atom, value) for argument in candidate.arguments))

    return _map_atoms(d, replace)


def _all_atoms(d: Dim) -> Iterator[_Atom]:
    """Every atom of the dimension, inner ones first."""
    for monomial in _terms(d):
        for atom, _ in monomial.powers:
            if atom.kind != "symbol":
                for argument in atom.arguments:
                    yield from _all_atoms(argument)
            yield atom


def _period(d: Dim, name: str) -> int:
    """P such that replacing the symbol by P * symbol + r removes it from every division by a constant; 1 for none."""
    result = 1
    for monomial in _terms(d):
        for atom, _ in monomial.powers:
            if atom.kind == "floordiv" and name in atom.names and isinstance(atom.arguments[1], int):
                result = math.lcm(result, atom.arguments[1] * _period(atom.arguments[0], name))
            elif atom.kind != "symbol" and name in atom.names:
                result = math.lcm(result, *(_period(argument, name) for argument in atom.arguments))
    return result


def _coarser(d: Dim, assumptions: tuple[Dim, ...], name: str) -> _Case | None:
    """The case n == g * q + r with 0 <= r < g, where every division of n looks only at q; q is called n again."""
    dims = (d, *assumptions)
    divisions = [atom for dim in dims for atom in _all_atoms(dim) if atom.kind != "symbol" and name in atom.names]
    grain = 0
    for atom in divisions:
        dividend, divisor = (*atom.arguments, None)[:2]
        offset = dividend - _symbol(name) if isinstance(dividend, DimExpr) else 0
        if atom.kind != "floordiv" or not isinstance(divisor, int) or name in free_symbols(offset):
            return None
        grain = math.gcd(grain, divisor, *_terms(offset).values())
    if grain <= 1:
        return None
    rest = _symbol(name + "'")  # no name of a user's

    def coarse(atom: _Atom) -> Dim:
        if atom.kind == "symbol":
            return grain * _symbol(name) + rest if atom.arguments[0] == name else _of_atom(atom)
        if name not in atom.names:
            return _of_atom(atom)
        offset = atom.arguments[0] - _symbol(name)
        return floordiv(_symbol(name) + _scaled_down(_terms(offset), grain), atom.arguments[1] // grain)

    given = [_normal(_map_atoms(assumption, coarse)) for assumption in assumptions]
    return _normal(_map_atoms(d, coarse)), (*given, grain - 1 - rest)


def _nonlinear_in(d: DimExpr, name: str) -> bool:
    for monomial, _ in d.terms:
        if monomial.degree > 1 or (monomial.degree == 1 and monomial.powers[0][0].kind != "symbol"):
            if any(name in atom.names for atom, _ in monomial.powers):
                return True
    return False


# Values at which a claim is tried before anyone tries to prove it.
_UNIFORM = (1, 2, 3, 0, 4, 5, 7, 8, 16, 31, 64, 100)
_MIXED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 255, 1000, 4096)


@lru_cache(maxsize=256)
def _points(names: tuple[str, ...], count: int) -> tuple[dict[str, int], ...]:
    points = [dict.fromkeys(names, value) for value in _UNIFORM]
    if len(names) > 1:
        state = 12345
        for _ in range(count):
            point = {}
            for name in names:
                state = (state * 1103515245 + 12345) % 2**31
                point[name] = _MIXED[(state >> 12) % len(_MIXED)]
            points.append(point)
    else:
        points.extend(dict.fromkeys(names, value) for value in _MIXED)
    return tuple(points)


def _value_at(d: Dim, assumptions: Iterable[Dim], point: Mapping[str, int]) -> int | None:
    """The value at a point; None where it has none or an assumption fails."""
    try:
        if all(evaluate(assumption, point) >= 0 for assumption in assumptions):
            return evaluate(d, point)
    except ShapeError:
        pass
    return None


def _signs(d: DimExpr, assumptions: tuple[Dim, ...]) -> set[int]:
    names = tuple(sorted(d.names.union(*(set(free_symbols(assumption)) for assumption in assumptions))))
    values = (_value_at(d, assumptions, point) for point in _points(names, 24))
    return {(value > 0) - (value < 0) for value in values if value is not None}


def _question(a: Dim, b: Dim, facts: Facts | None) -> tuple[Dim, tuple[Dim, ...]]:
    """b - a, and what may be assumed, over the parameters of the facts."""
    difference = as_dim(b) - as_dim(a)
    if facts is None or not isinstance(difference, DimExpr) or not (facts.equalities or facts.orders):
        return _normal(difference), ()
    translated = facts._world.translate(difference)
    return (_normal(difference), ()) if translated is None else (_normal(translated), facts._world.assumptions)


def _never_divisible(d: DimExpr) -> bool:
    """Whether a polynomial is never zero because of its residues: n * n is never 4 * m + 2."""
    if d.nesting or d.size > 64:
        return False
    names = sorted(d.names)
    for modulus in (2, 3, 4, 5, 8):
        if modulus ** len(names) <= 64:
            points = cartesian(range(modulus), repeat=len(names))
            if all(evaluate(d, dict(zip(names, point, strict=True))) % modulus for point in points):
                return True
    return False


def _only_limits(error: ShapeError) -> None:
    """Gives up a proof whose cases grew past the limits; anything else is an error of ours."""
    if error.code not in ("W281", "W282"):
        raise error


@lru_cache(maxsize=1 << 14)
def _decide_zero(d: Dim, assumptions: tuple[Dim, ...]) -> bool | None:
    if not isinstance(d, DimExpr):
        return d == 0
    signs = _signs(d, assumptions)
    if 0 in signs and len(signs) > 1:
        return None
    try:
        if signs <= {0} and _proved(_proved_zero, d, assumptions, _Fuel()):
            return True
        if 0 not in signs:
            if _proved(_proved_nonzero, d, assumptions, _Fuel()) or _never_divisible(d):
                return False
            if _factors_prove(_proved_nonzero, d, assumptions):
                return False
            if any(_factors_prove(_nonnegative_linearly, side, assumptions) for side in (d - 1, -d - 1)):
                return False
    except ShapeError as error:
        _only_limits(error)
    return None


@lru_cache(maxsize=1 << 14)
def _decide_nonnegative(d: Dim, assumptions: tuple[Dim, ...]) -> bool | None:
    if not isinstance(d, DimExpr):
        return d >= 0
    signs = _signs(d, assumptions)
    try:
        if -1 not in signs:
            claims = _nonnegative_linearly
            if _proved(claims, d, assumptions, _Fuel()) or _factors_prove(claims, d, assumptions):
                return True
        opposite = -d - 1
        if signs <= {-1} and (
            _proved(_nonnegative_linearly, opposite, assumptions, _Fuel())
            or _factors_prove(_nonnegative_linearly, opposite, assumptions)
        ):
            return False
    except ShapeError as error:
        _only_limits(error)
    return None


def prove_equal(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a == b for all symbol values under the facts (True), for none (False), or None: it depends or is unknown.

    >>> n = symbol("n")
    >>> prove_equal((n + 1) // 2 + n // 2, n), prove_equal(2 * n, 2 * n + 1), prove_equal(n, 4)
    (True, False, None)
    """
    if a is b:
        return True
    return _decide_zero(*_question(a, b, facts))


def prove_ne(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a != b for all symbol values (True), for none (False), or None."""
    equal = prove_equal(a, b, facts)
    return None if equal is None else not equal


def prove_le(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a <= b for all symbol values under the facts (True), for none (False), or None.

    >>> n = symbol("n")
    >>> prove_le(n // 2, n), prove_le(n + 1, n), prove_le(n, 4)
    (True, False, None)
    """
    return _decide_nonnegative(*_question(a, b, facts))


def prove_lt(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a < b for all symbol values under the facts (True), for none (False), or None."""
    return prove_le(as_dim(a) + 1, b, facts)


def prove_nonnegative(d: Dim, facts: Facts | None = None) -> bool | None:
    """Whether d >= 0 for all symbol values under the facts (True), for none (False), or None."""
    return prove_le(0, d, facts)


def bounds(d: Dim, facts: Facts | None = None) -> tuple[int | None, int | None]:
    """Inclusive lower and upper bounds of the dimension; None where none is known.

    >>> bounds(symbol("n") % 8), bounds(symbol("n") + 1)
    ((0, 7), (1, None))
    """
    if not isinstance(d, DimExpr):
        return d, d
    image, assumptions = _question(0, d, facts)
    if not isinstance(image, DimExpr):
        return image, image
    known = _known_bounds(assumptions)
    translated = None if facts is None else facts._world.translate(d)
    ends = [_interval(form, known) for form in (image, d if translated is None else translated)]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    names = tuple(sorted(image.names.union(*(set(free_symbols(assumption)) for assumption in assumptions))))
    points = [*_points(names, 24), *(islice(_candidates(names), 200) if assumptions else ())]
    found = [value for value in (_value_at(image, assumptions, point) for point in points) if value is not None]
    # An extreme value that was seen is the bound if it can be proved to be one.
    if found and min(found) > low and _decide_nonnegative(image - min(found), assumptions):
        low = min(found)
    if found and max(found) < high and _decide_nonnegative(max(found) - image, assumptions):
        high = max(found)
    return None if math.isinf(low) else int(low), None if math.isinf(high) else int(high)


# ---------------------------------------------------------------------------------------------------------------------
# Counter-examples
# ---------------------------------------------------------------------------------------------------------------------

_MAX_TRIES = 3000


def counterexample(a: Dim, b: Dim, facts: Facts | None = None) -> dict[str, int] | None:
    """Symbol values (small ones first) that satisfy the facts and make a != b; None when none was found.

    >>> n = symbol("n")
    >>> counterexample(n * n, n)
    {'n': 2}
    """
    return _search(a, b, facts, lambda left, right: left != right)


def counterexample_le(a: Dim, b: Dim, facts: Facts | None = None) -> dict[str, int] | None:
    """Symbol values (small ones first) that satisfy the facts and make a > b; None when none was found."""
    return _search(a, b, facts, lambda left, right: left > right)


def _search(a: Dim, b: Dim, facts: Facts | None, wanted: Callable[[int, int], bool]) -> dict[str, int] | None:
    facts = facts or _NO_FACTS
    a, b = as_dim(a), as_dim(b)
    if same(a, b):
        return None
    names = sorted({*free_symbols(a), *free_symbols(b), *facts.names})
    translated = {name: facts._world.translate(symbol(name)) for name in names}
    images = {name: image for name, image in translated.items() if image is not None}
    if len(images) < len(translated):
        return None
    parameters = tuple(sorted({name for image in images.values() for name in free_symbols(image)}))
    for point in _candidates(parameters):
        try:
            values = {name: evaluate(image, point) for name, image in images.items()}
            if min(values.values(), default=0) >= 0 and wanted(evaluate(a, values), evaluate(b, values)):
                if facts.holds(values):
                    return values
        except ShapeError:  # a division by zero: not a value to show
            continue
    return None


def _candidates(names: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Points to try: small positive ones, then with zeros, then larger and mixed ones."""
    if not names:
        yield {}
        return
    side = max(2, int(_MAX_TRIES ** (1 / len(names)) / 2)) if len(names) <= 10 else 1
    side = min(side, 300)
    if side > 1:
        for low, ring in [(1, high) for high in range(1, side + 1)] + [(0, high) for high in range(side + 1)]:
            for point in _ring(len(names), low, ring):
                if low == 1 or 0 in point:
                    yield dict(zip(names, point, strict=True))
    yield from _points(names, 400)


def _ring(count: int, low: int, high: int) -> Iterator[tuple[int, ...]]:
    """The points of a cube whose largest coordinate is ``high``."""
    for point in cartesian(range(low, high + 1), repeat=count):
        if max(point) == high:
            yield point


# ---------------------------------------------------------------------------------------------------------------------
# Solving and matching
# ---------------------------------------------------------------------------------------------------------------------


def solve_for(expr: Dim, name: str, value: Dim) -> Dim | None:
    """The d with ``substitute(expr, {name: d}) == value``, for an expr linear in the symbol and an exact division.

    None where that is not proved, or where the solution is negative for all symbol values.

    >>> solve_for(2 * symbol("n"), "n", 2 * symbol("m"))
    m
    """
    parts = _linear_parts(expr, name)
    return None if parts is None else _solve_linear(*parts, value)


def _linear_parts(expr: Dim, name: str) -> tuple[Dim, Dim] | None:
    """(c, r) with expr == c * name + r, neither depending on the name; None where there are none or c is 0."""
    factor: dict[_Monomial, int] = {}
    rest: dict[_Monomial, int] = {}
    if not isinstance(expr, DimExpr) or name not in expr.names:
        return None
    for monomial, coefficient in expr.terms:
        holders = [(atom, power) for atom, power in monomial.powers if name in atom.names]
        if not holders:
            rest[monomial] = coefficient
        elif len(holders) == 1 and holders[0][1] == 1 and holders[0][0].kind == "symbol":
            reduced = _divide_monomials(monomial, _monomial(((holders[0][0], 1),)))
            assert reduced is not None
            factor[reduced] = coefficient
        else:
            return None
    return _expression(factor), _expression(rest)


def _solve_linear(factor: Dim, rest: Dim, value: Dim) -> Dim | None:
    wanted = as_dim(value) - rest
    if prove_ne(factor, 0) is not True:
        return None
    solution = _divide_exactly(wanted, factor)
    if solution is None and prove_equal(floormod(wanted, factor), 0):
        solution = floordiv(wanted, factor)
    return None if solution is None or prove_lt(solution, 0) else solution


def match_dims(pattern: Sequence[Dim], values: Sequence[Dim]) -> tuple[dict[str, Dim], list[tuple[Dim, Dim]]]:
    """Binds the pattern's symbols to values: bare symbols first, then those that a linear equation determines.

    Returns the bindings, and the pairs that remain to be checked for equality (pattern side over the values' symbols,
    value); pairs that are equal by canonical form are left out. A symbol of the pattern that nothing determines stays
    in its pair under its own name. ShapeError W290 when the numbers of dimensions differ.

    >>> n, m = symbol("n"), symbol("m")
    >>> match_dims([n, 2 * m, n + m], [8, 6, 11])
    ({'n': 8, 'm': 3}, [])
    """
    if len(pattern) != len(values):
        raise _error("W290", f"{len(pattern)} dimensions expected, {len(values)} given")
    bindings: dict[str, Dim] = {}
    checks: list[tuple[Dim, Dim]] = []
    pending: list[tuple[Dim, Dim]] = []
    for expected, given in zip(pattern, values, strict=True):
        atom = _single_atom(expected)
        if atom is not None and atom.kind == "symbol" and atom.arguments[0] not in bindings:
            bindings[atom.arguments[0]] = as_dim(given)
        else:
            pending.append((as_dim(expected), as_dim(given)))
    while True:
        solved = next((pair for pair in pending if _bind_linear(*pair, bindings, checks)), None)
        if solved is None:
            break
        pending.remove(solved)
    checks.extend((substitute(expected, bindings), given) for expected, given in pending)
    return bindings, [(expected, given) for expected, given in checks if not same(expected, given)]


def _bind_linear(expected: Dim, given: Dim, bindings: dict[str, Dim], checks: list[tuple[Dim, Dim]]) -> bool:
    """Binds the one unbound symbol of ``expected``, if ``expected == given`` determines it."""
    unbound = [name for name in free_symbols(expected) if name not in bindings]
    parts = _linear_parts(expected, unbound[0]) if len(unbound) == 1 else None
    if parts is None:
        return False
    factor, rest = (substitute(part, bindings) for part in parts)
    solution = _solve_linear(factor, rest, given)
    if solution is None:
        return False
    if prove_nonnegative(solution) is not True:
        # A symbol is a size: that the solution is not negative is one more thing to check.
        checks.append((factor * maximum(solution, 0) + rest, given))
    bindings[unbound[0]] = solution
    return True


# ---------------------------------------------------------------------------------------------------------------------
# sympy: the last resort
# ---------------------------------------------------------------------------------------------------------------------


def _to_sympy(d: Dim) -> Any:
    import sympy

    if not isinstance(d, DimExpr):
        return sympy.Integer(d)
    terms = []
    for monomial, coefficient in d.terms:
        terms.append(sympy.Mul(coefficient, *(_atom_to_sympy(atom) ** power for atom, power in monomial.powers)))
    return sympy.Add(*terms)


def _atom_to_sympy(atom: _Atom) -> Any:
    import sympy

    if atom.kind == "symbol":
        return sympy.Symbol(atom.arguments[0], integer=True, nonnegative=True)
    arguments = [_to_sympy(argument) for argument in atom.arguments]
    if atom.kind == "floordiv":
        return sympy.floor(arguments[0] / arguments[1])
    build = {"mod": sympy.Mod, "min": sympy.Min, "max": sympy.Max}[atom.kind]
    return build(*arguments)


def _factors_prove(claim: _Claim, d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    """Whether the claim (nonnegative, or nonzero) holds for each factor that can spoil it."""
    if not isinstance(d, DimExpr) or d.nesting or len(d.names) > 4 or d.size > 64:
        return False
    if not 2 <= d.terms[0][0].degree <= 8:
        return False
    constant, factors = _factor(d)
    if claim is _nonnegative_linearly:
        if constant < 0:
            return False
        factors = [(factor, power) for factor, power in factors if power % 2]
    elif len(factors) == 1 and factors[0][1] == 1:
        return False
    return all(_proved(claim, _normal(factor), assumptions, _Fuel()) for factor, _ in factors)


@lru_cache(maxsize=1 << 10)
def _factor(d: DimExpr) -> tuple[int, list[tuple[Dim, int]]]:
    """The constant and the irreducible factors, with their powers, of a polynomial."""
    import sympy

    symbols = {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in sorted(d.names)}
    constant, factors = cast("tuple[Any, list[Any]]", sympy.factor_list(_to_sympy(d), *symbols.values()))
    return int(constant), [(_from_polynomial(factor, symbols), int(power)) for factor, power in factors]


def _from_polynomial(expression: Any, symbols: Mapping[str, Any]) -> Dim:
    import sympy

    total: Dim = 0
    for powers, coefficient in sympy.Poly(expression, *symbols.values()).terms():
        total = total + product([int(coefficient), *(symbol(n) ** p for n, p in zip(symbols, powers, strict=True))])
    return total
