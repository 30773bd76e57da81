"""Symbolic dimensions and their arithmetic, always in canonical form."""

# What callers give is checked as they run, too.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import keyword
import math
import unicodedata
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import index
from typing import Any, NamedTuple, SupportsIndex, TypeAlias
from weakref import WeakValueDictionary

from weft.ir.dim.formatting import atom_text, format_dim, to_sympy
from weft.ir.dim.intervals import interval_of, quotient_interval
from weft.ir.dim.representation import (
    INTERN_LOCK,
    MAX_COEFFICIENT,
    MAX_DEGREE,
    MAX_NESTING,
    MAX_SIZE,
    ONE,
    Atom,
    Monomial,
    Polynomial,
    Terms,
    dim_error,
    make_monomial,
    only_atom,
    term_key,
)

_atoms: WeakValueDictionary[tuple[Any, ...], Atom] = WeakValueDictionary()
_expressions: WeakValueDictionary[Terms, DimExpr] = WeakValueDictionary()
_recent: deque[DimExpr] = deque(maxlen=1 << 12)  # keeps what is in use from being made again and again


class DimExpr(Polynomial):
    """A canonical, interned integer expression over named symbols; equal expressions are the same object.

    Built by `symbol` and arithmetic, never directly. Ordering comparisons raise ShapeError: ask `prove_le`.

    >>> n = symbol("n")
    >>> n * 2 * 4, (n + 1) * (n - 1) == n * n - 1, (4 * n + 1) // 2
    (8 * n, True, 2 * n)
    """

    __slots__ = ()

    __array_ufunc__ = None  # NumPy scalars leave arithmetic with a dimension to the dimension

    def __init__(self) -> None:
        raise TypeError("dimensions are built by weft.ir.dim.symbol(name) and arithmetic")

    # Equality and hash are by identity, which interning makes structural.

    def __add__(self, other: Dim) -> Dim:
        return sum_of(self, other, 1) if _is_dim(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return sum_of(self, other, -1) if _is_dim(other) else NotImplemented

    def __rsub__(self, other: Dim) -> Dim:
        return sum_of(other, self, -1) if _is_dim(other) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        return product_of(self, other) if _is_dim(other) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return product_of(self, -1)

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
        return power_of(self, exponent)

    def __bool__(self) -> bool:
        raise dim_error(
            "W285", f"the truth of the dimension {self} is not decided", "compare it: prove_ne(d, 0) or d == e"
        )

    def __int__(self) -> int:
        raise dim_error(
            "W285",
            f"the dimension {self} is not a constant",
            "evaluate(d, values) gives its value for given symbols",
        )

    def __index__(self) -> int:
        return self.__int__()

    def _no_order(self, other: object) -> bool:
        raise dim_error(
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

    def _sympy_(self) -> Any:
        """The same expression for sympy, with nonnegative integer symbols."""
        return to_sympy(self)


Dim: TypeAlias = int | DimExpr


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
        raise dim_error("W284", f"{value!r} is not a dimension", "use an int or weft.ir.dim.symbol(name)") from None


def make_atom(kind: str, *arguments: Any) -> Atom:
    """The one atom of this kind with these arguments, which are in canonical form."""
    key = (kind, *arguments)
    found = _atoms.get(key)
    if found is None:
        made = Atom(kind, arguments, atom_text(kind, arguments))
        with INTERN_LOCK:
            found = _atoms.get(key)
            if found is None:
                _atoms[key] = found = made
    return found


def make_expression(terms: dict[Monomial, int]) -> Dim:
    """The dimension with these coefficients: an int when only the constant is left."""
    kept = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if not kept:
        return 0
    if len(kept) == 1 and ONE in kept:
        return kept[ONE]
    if len(kept) > 1:
        ordered = tuple((monomial, kept[monomial]) for monomial in sorted(kept, key=term_key))
    else:
        ordered = tuple(kept.items())
    found = _expressions.get(ordered)
    if found is None:
        made = _make(ordered)
        with INTERN_LOCK:
            found = _expressions.get(ordered)
            if found is None:
                _expressions[ordered] = found = made
                _recent.append(made)
    return found


def _make(terms: Terms) -> DimExpr:
    made = object.__new__(DimExpr)
    atoms = {atom for monomial, _ in terms for atom, _ in monomial.powers}
    made.terms = terms
    made.names = frozenset().union(*(atom.names for atom in atoms))
    made.nesting = max(atom.nesting for atom in atoms)
    made.size = sum(1 + sum(atom.size for atom, _ in monomial.powers) for monomial, _ in terms)
    made.known_interval = made.known_normal = made.known_text = None
    if max(abs(coefficient) for _, coefficient in terms) > MAX_COEFFICIENT:
        raise dim_error("W281", "a coefficient of a dimension does not fit in 64 bits")
    if made.size > MAX_SIZE or made.nesting > MAX_NESTING:
        raise dim_error("W282", f"a dimension of {made.size} parts, nested {made.nesting} deep, is refused")
    return made


def atom_dim(atom: Atom) -> DimExpr:
    """The atom as a dimension."""
    made = make_expression({make_monomial(((atom, 1),)): 1})
    assert isinstance(made, DimExpr)
    return made


def terms_of(value: Dim) -> dict[Monomial, int]:
    """The coefficients by monomial; a constant's monomial is `ONE`."""
    if isinstance(value, DimExpr):
        return dict(value.terms)
    return {ONE: value} if value else {}


def symbol(name: str) -> DimExpr:
    """The size called ``name``: a nonnegative integer; two symbols of one name are the same. ShapeError W283.

    >>> symbol("n") == symbol("n")
    True
    """
    plain = symbol_name(name, "") if isinstance(name, str) else ""
    if plain:
        return unchecked_symbol(plain)
    raise dim_error("W283", f"{name!r} is not a name for a symbol", "use a Python identifier")


def symbol_name(hint: str, otherwise: str = "s") -> str:
    """The name of a symbol after a hint: as Python reads it as a name; the other one where it is none.

    >>> symbol_name("n"), symbol_name("None"), symbol_name("two words", "x")
    ('n', 's', 'x')
    """
    name = hint if hint.isascii() else unicodedata.normalize("NFKC", hint)
    return name if name.isidentifier() and not keyword.iskeyword(name) else otherwise


def unchecked_symbol(name: str) -> DimExpr:
    """A symbol whose name is known to be one, or is nobody's."""
    return atom_dim(make_atom("symbol", name))


def sum_of(left: Dim, right: Dim, sign: int) -> Dim:
    """left + sign * right."""
    terms = terms_of(as_dim(left))
    right = as_dim(right)
    for monomial, coefficient in right.terms if isinstance(right, DimExpr) else ((ONE, right),):
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return make_expression(terms)


def product_of(left: Dim, right: Dim) -> Dim:
    """left * right; ShapeError W282 where it has too many terms."""
    left, right = as_dim(left), as_dim(right)
    if not isinstance(left, DimExpr):
        left, right = right, left
    if not isinstance(left, DimExpr):
        return left * right
    if not isinstance(right, DimExpr):
        return left if right == 1 else make_expression({m: right * coefficient for m, coefficient in left.terms})
    if len(left.terms) * len(right.terms) > MAX_SIZE:
        raise dim_error("W282", f"a product of {len(left.terms)} and {len(right.terms)} terms is refused")
    terms: dict[Monomial, int] = {}
    for first, one in left.terms:
        for second, other in right.terms:
            monomial = _multiply_monomials(first, second)
            terms[monomial] = terms.get(monomial, 0) + one * other
    return make_expression(terms)


@lru_cache(maxsize=1 << 14)
def _multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left.powers)
    for atom, power in right.powers:
        powers[atom] = powers.get(atom, 0) + power
    return _sorted_monomial(powers)


def _sorted_monomial(powers: dict[Atom, int]) -> Monomial:
    kept = [(atom, power) for atom, power in powers.items() if power]
    return make_monomial(tuple(sorted(kept, key=lambda item: (item[0].kind != "symbol", item[0].text))))


def divide_monomials(left: Monomial, right: Monomial) -> Monomial | None:
    """left / right where it is a monomial, else None."""
    powers = dict(left.powers)
    for atom, power in right.powers:
        powers[atom] = powers.get(atom, 0) - power
        if powers[atom] < 0:
            return None
    return _sorted_monomial(powers)


def power_of(base: Dim, exponent: int) -> Dim:
    """base ** exponent; ShapeError W281, W289."""
    exponent = index(exponent) if hasattr(exponent, "__index__") and not isinstance(exponent, DimExpr) else -1
    if exponent < 0 or (exponent > MAX_DEGREE and isinstance(base, DimExpr)):
        raise dim_error("W289", f"the exponent of {base} must be a constant from 0 to {MAX_DEGREE}")
    if not isinstance(base, DimExpr):
        if abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > 63:
            raise dim_error("W281", f"{base} ** {exponent} does not fit in 64 bits")
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
    return reduce(product_of, dims, 1)


_FAR = 1 << 32
"""A constant above it brings sums near the end of 64 bits."""


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
        raise dim_error("W280", f"{a} // 0: division by zero")
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
        raise dim_error("W280", f"{a} % 0: division by zero")
    if not isinstance(a, DimExpr):
        return a % b
    return _floormod_constant(a, b) if b > 0 else -_floormod_constant(-a, -b)


def _truncated(coefficient: int, divisor: int) -> int:
    """The quotient rounded towards zero."""
    quotient = abs(coefficient) // abs(divisor)
    return quotient if (coefficient < 0) == (divisor < 0) else -quotient


def content_of(terms: Mapping[Monomial, int], start: int) -> int:
    """The greatest common divisor of ``start`` and the coefficients, the constant's left out."""
    return math.gcd(start, *(coefficient for monomial, coefficient in terms.items() if monomial is not ONE))


def scaled_down(terms: Mapping[Monomial, int], divisor: int) -> Dim:
    """The terms divided by what divides them all, as a dimension."""
    return make_expression({monomial: coefficient // divisor for monomial, coefficient in terms.items()})


def _floordiv_constant(a: Dim, k: int) -> Dim:
    """a // k for k > 0: whole multiples of k leave the division, the rest starts with a positive coefficient."""
    if not isinstance(a, DimExpr) or k == 1:
        return a if k == 1 else a // k
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in a.terms:
        quotient = coefficient // k if monomial is ONE else _truncated(coefficient, k)
        whole[monomial] = quotient
        if coefficient != quotient * k:
            rest[monomial] = coefficient - quotient * k
    numerator = make_expression(rest)
    if not isinstance(numerator, DimExpr):
        return make_expression(whole)  # 0 <= numerator < k
    if numerator.terms[0][1] < 0:
        return make_expression(whole) - _floordiv_constant(k - 1 - numerator, k)
    divisor = content_of(rest, k)
    if divisor > 1:
        return make_expression(whole) + _floordiv_constant(scaled_down(rest, divisor), k // divisor)
    merged = merge_nested_division(numerator, k)
    if merged is not None:
        return make_expression(whole) + merged
    low, high = interval_of(numerator)
    if not math.isinf(low) and not math.isinf(high) and low // k == high // k:
        return make_expression(whole) + int(low // k)
    extreme = _extreme_in(numerator)
    if extreme is not None and extreme.coefficient > 0 and isinstance(extreme.rest, int):
        return make_expression(whole) + _extremum(
            extreme.atom.kind, [_floordiv_constant(choice, k) for choice in extreme.choices()]
        )
    if rest.get(ONE, 0) > max(_FAR, k // 2):  # (n + k - 1) // k as (n - 1) // k + 1, which 64 bits hold for any n
        return make_expression(whole) + 1 + atom_dim(make_atom("floordiv", numerator - k, k))
    return make_expression(whole) + atom_dim(make_atom("floordiv", numerator, k))


def merge_nested_division(numerator: DimExpr, k: Dim, by_symbols: bool = True) -> Dim | None:
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
    rest = numerator - atom_dim(inner)
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
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in a.terms:
        remainder = coefficient % k
        rest[monomial] = remainder - k if monomial is not ONE and 2 * remainder > k else remainder
    value = make_expression(rest)
    if not isinstance(value, DimExpr):
        return value
    for monomial, coefficient in value.terms:
        atom = only_atom(monomial)
        if atom is not None and atom.kind == "mod" and isinstance(atom.arguments[1], int):
            if coefficient * atom.arguments[1] % k == 0:
                return _floormod_constant(value + coefficient * (atom.arguments[0] - atom_dim(atom)), k)
    divisor = content_of(rest, k)
    if divisor > 1:
        return divisor * _floormod_constant(scaled_down(rest, divisor), k // divisor) + rest.get(ONE, 0) % divisor
    low, high = interval_of(value)
    if not math.isinf(low) and not math.isinf(high) and low // k == high // k:
        return value - k * int(low // k)
    return atom_dim(make_atom("mod", value, k))


def _split_by_term(a: Dim, divisor: DimExpr) -> tuple[Dim, Dim]:
    """(quotient, rest) with a == quotient * divisor + rest, term by term, for a divisor of one term."""
    (by, by_coefficient), *others = divisor.terms
    if others:
        return 0, a
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in terms_of(a).items():
        reduced = divide_monomials(monomial, by)
        quotient = 0 if reduced is None else _truncated(coefficient, by_coefficient)
        if reduced is not None and quotient:
            whole[reduced] = quotient
        rest[monomial] = coefficient - quotient * by_coefficient
    return make_expression(whole), make_expression(rest)


def _common_factor(a: Dim, b: DimExpr) -> Dim:
    """The greatest single term that divides every term of both."""
    terms = [*terms_of(a).items(), *b.terms]
    number = math.gcd(*(coefficient for _, coefficient in terms))
    powers = dict(terms[0][0].powers)
    for monomial, _ in terms[1:]:
        present = dict(monomial.powers)
        powers = {atom: min(power, present.get(atom, 0)) for atom, power in powers.items()}
    return make_expression({_sorted_monomial(powers): number})


def divide_exactly(a: Dim, b: Dim) -> Dim | None:
    """The polynomial q with q * b == a, else None."""
    if not isinstance(b, DimExpr):
        if b == 0 or any(coefficient % b for coefficient in terms_of(a).values()):
            return None
        return make_expression({monomial: coefficient // b for monomial, coefficient in terms_of(a).items()})
    lead, lead_coefficient = b.terms[0]
    quotient: Dim = 0
    for _ in range(MAX_SIZE):
        if isinstance(a, int):
            return quotient if a == 0 else None
        monomial, coefficient = a.terms[0]
        reduced = divide_monomials(monomial, lead)
        if reduced is None or coefficient % lead_coefficient:
            return None
        step = make_expression({reduced: coefficient // lead_coefficient})
        quotient = quotient + step
        a = a - step * b
    return None


def _floordiv_symbolic(a: Dim, b: DimExpr) -> Dim:
    if b.terms[0][1] < 0:
        return floordiv(-a, -b)
    exact = divide_exactly(a, b)
    if exact is not None:
        return exact
    whole, rest = _split_by_term(a, b)
    positive = interval_of(b)[0] >= 0  # b is not zero where a // b has a value
    if positive and isinstance(rest, DimExpr) and rest.terms[0][1] < 0:
        return whole - floordiv(b - 1 - rest, b)
    reduced = _cancel(rest, b, positive)
    if reduced is not None:
        return whole + floordiv(*reduced)
    merged = merge_nested_division(rest, b) if positive and isinstance(rest, DimExpr) else None
    if merged is not None:
        return whole + merged
    low, high = quotient_interval(interval_of(rest), interval_of(b))
    if low == high:
        return whole + int(low)
    if interval_of(rest)[0] >= 0 and interval_of(b - rest)[0] > 0:
        return whole
    return whole + atom_dim(make_atom("floordiv", rest, b))


def _cancel(a: Dim, b: DimExpr, positive: bool) -> tuple[Dim, Dim] | None:
    """The operands of a // b without their common factor, None when they have none."""
    factor = _common_factor(a, b)
    if factor != 1:
        numerator, denominator = divide_exactly(a, factor), divide_exactly(b, factor)
        assert numerator is not None
        assert denominator is not None
        return numerator, denominator
    number = math.gcd(content_of(terms_of(a), 0), *(coefficient for _, coefficient in b.terms))
    if positive and number > 1:
        return scaled_down(terms_of(a), number), scaled_down(terms_of(b), number)
    return None


def _floormod_symbolic(a: Dim, b: DimExpr) -> Dim:
    if b.terms[0][1] < 0:
        return -floormod(-a, -b)
    if divide_exactly(a, b) is not None:
        return 0
    _, rest = _split_by_term(a, b)
    if rest == 0:
        return 0
    factor = _common_factor(rest, b)
    if factor != 1:
        numerator, denominator = divide_exactly(rest, factor), divide_exactly(b, factor)
        assert numerator is not None
        assert denominator is not None
        return factor * floormod(numerator, denominator)
    if interval_of(rest)[0] >= 0 and interval_of(b - rest)[0] > 0:
        return rest
    return atom_dim(make_atom("mod", rest, b))


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
        raise dim_error("W289", f"{kind}() of no dimensions")
    spread = (choice for value in map(as_dim, dims) for choice in _choices(kind, value))
    kept = _prune(kind, list(dict.fromkeys(spread)))
    for place, value in enumerate(kept):
        others = kept[:place] + kept[place + 1 :]
        relaxed = _relaxed(kind, value, others)
        if relaxed is not value:
            return _extremum(kind, [*others, relaxed])
    if len(kept) == 1:
        return kept[0]
    return atom_dim(make_atom(kind, *sorted(kept, key=_argument_key)))


class _Extreme(NamedTuple):
    """coefficient * atom + rest, where the atom is the value's only minimum or maximum."""

    coefficient: int
    atom: Atom
    rest: Dim

    def kind(self) -> str:
        """What the whole is of its choices."""
        return self.atom.kind if self.coefficient > 0 else _OPPOSITE[self.atom.kind]

    def choices(self) -> list[Dim]:
        """The whole with each argument of the atom in the place of the atom."""
        return [self.coefficient * argument + self.rest for argument in self.atom.arguments]

    def of(self, arguments: Sequence[Dim]) -> Dim:
        """The whole with other arguments."""
        return self.coefficient * _extremum(self.atom.kind, arguments) + self.rest


_OPPOSITE = {"min": "max", "max": "min"}


def _extreme_in(value: Dim) -> _Extreme | None:
    found: list[tuple[Monomial, int]] = []
    if isinstance(value, DimExpr) and value.nesting:
        found = [term for term in value.terms if any(atom.kind in _OPPOSITE for atom, _ in term[0].powers)]
    atom = only_atom(found[0][0]) if len(found) == 1 else None
    if atom is None:
        return None
    rest = {monomial: coefficient for monomial, coefficient in terms_of(value).items() if monomial is not found[0][0]}
    return _Extreme(found[0][1], atom, make_expression(rest))


def _choices(kind: str, value: Dim) -> list[Dim]:
    """What the value is the minimum or maximum of: max(n, 8) - 1 is the maximum of n - 1 and 7.

    Of the other kind it is one choice, with a constant moved into it: min(n, 8) - 1 is min(n - 1, 7).
    """
    extreme = _extreme_in(value)
    if extreme is None:
        return [value]
    if extreme.kind() == kind:
        return [part for choice in extreme.choices() for part in _choices(kind, choice)]
    movable = extreme.coefficient == 1 and isinstance(extreme.rest, int)
    return [_extremum(extreme.atom.kind, extreme.choices()) if movable and extreme.rest else value]


def _relaxed(kind: str, value: Dim, others: list[Dim]) -> Dim:
    """The value without bounds inside of it that others state: max(a, 0) in max(min(max(a, 0), b), 0) is a."""
    extreme = _extreme_in(value)
    if extreme is None or extreme.kind() == kind:
        return value
    arguments = [_without_bounds(kind, extreme, argument, others) for argument in extreme.atom.arguments]
    changed = any(new is not old for new, old in zip(arguments, extreme.atom.arguments, strict=True))
    return extreme.of(arguments) if changed else value


def _without_bounds(kind: str, outer: _Extreme, argument: Dim, others: list[Dim]) -> Dim:
    inner = _extreme_in(argument)
    if inner is None or (inner.kind() == kind) != (outer.coefficient > 0):
        return argument
    placed = zip(inner.atom.arguments, inner.choices(), strict=True)
    kept = [
        given
        for given, choice in placed
        if not any(_never_better(kind, outer.coefficient * choice + outer.rest, other) for other in others)
    ]
    return argument if len(kept) == len(inner.atom.arguments) else inner.of(kept or inner.atom.arguments[:1])


def _prune(kind: str, candidates: list[Dim]) -> list[Dim]:
    kept: list[Dim] = []
    for candidate in candidates:
        if any(_never_better(kind, candidate, other) for other in kept):
            continue
        kept = [other for other in kept if not _never_better(kind, other, candidate)]
        kept.append(candidate)
    return kept


def _never_better(kind: str, value: Dim, other: Dim) -> bool:
    """Whether the minimum or maximum of both is always the other."""
    return _never_less(value, other) if kind == "min" else _never_less(other, value)


def _never_less(a: Dim, b: Dim, depth: int = 2) -> bool:
    """Whether a >= b follows from intervals, of some or all arguments of what is a minimum or maximum."""
    if interval_of(a - b)[0] >= 0:
        return True
    upper, lower = (_extreme_in(a), _extreme_in(b)) if depth else (None, None)
    if lower is not None:
        every = all if lower.kind() == "max" else any
        if every(_never_less(a, choice, depth - 1) for choice in lower.choices()):
            return True
    if upper is None:
        return False
    every = all if upper.kind() == "min" else any
    return every(_never_less(choice, b, depth - 1) for choice in upper.choices())


def _argument_key(value: Dim) -> tuple[bool, str]:
    return isinstance(value, int), format_dim(value)
