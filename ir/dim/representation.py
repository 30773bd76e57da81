"""What symbolic dimensions consist of: atoms, and monomials of them, each interned.

monomial ::= atom ** power * ...
atom     ::= symbol | dim // dim | dim % dim | min(dim, ...) | max(dim, ...)
"""

from __future__ import annotations

import threading
from operator import attrgetter
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from weft.errors import ShapeError, Span
from weft.support.forks import free_in_child

INTERN_LOCK = free_in_child(threading.Lock())
MAX_COEFFICIENT = 2**63 - 1
MAX_DEGREE = 64
MAX_NESTING = 64
MAX_SIZE = 4096
Bound: TypeAlias = "int | float"  # float only for the two infinities
Interval: TypeAlias = "tuple[Bound, Bound]"


def dim_error(code: str, message: str, hint: str | None = None, span: Span | None = None) -> ShapeError:
    """A ShapeError about a dimension."""
    return ShapeError(message, code=code, hint=hint, span=span)


class Atom:
    """An indivisible factor: a symbol, or a division, remainder, minimum or maximum of canonical dimensions."""

    __slots__ = ("__weakref__", "arguments", "kind", "names", "nesting", "size", "text")

    def __init__(self, kind: str, arguments: tuple[Any, ...], text: str) -> None:
        self.kind = kind
        self.arguments = arguments
        if kind == "symbol":
            self.names: frozenset[str] = frozenset(arguments)
            self.nesting = 0
            self.size = 1
        else:
            expressions = [argument for argument in arguments if isinstance(argument, Polynomial)]
            self.names = frozenset().union(*(argument.names for argument in expressions))
            self.nesting = 1 + max(argument.nesting for argument in expressions)
            self.size = 1 + sum(argument.size for argument in expressions)
        self.text = text


class Monomial:
    """A product of powers of distinct atoms, sorted by the atoms' text; the empty product is `ONE`."""

    __slots__ = ("__weakref__", "degree", "key", "powers")

    def __init__(self, powers: tuple[tuple[Atom, int], ...]) -> None:
        self.powers = powers
        self.degree = sum(power for _, power in powers)
        # Graded lexicographic order: a monomial order, so that polynomial division terminates.
        self.key = (-self.degree, tuple((atom.kind != "symbol", atom.text, -power) for atom, power in powers))


Terms: TypeAlias = tuple[tuple[Monomial, int], ...]


class Polynomial:
    """What a symbolic dimension consists of; `DimExpr` adds the arithmetic."""

    __slots__ = ("__weakref__", "known_interval", "known_normal", "known_text", "names", "nesting", "size", "terms")

    terms: Terms
    names: frozenset[str]
    nesting: int
    size: int
    _interval: Interval | None
    _normal: int | Polynomial | None
    _text: str | None


_monomials: WeakValueDictionary[tuple[tuple[Atom, int], ...], Monomial] = WeakValueDictionary()


def make_monomial(powers: tuple[tuple[Atom, int], ...]) -> Monomial:
    """The one monomial of these powers; ShapeError W282 over the limit of degrees."""
    found = _monomials.get(powers)
    if found is None:
        made = Monomial(powers)
        if made.degree > MAX_DEGREE:
            raise dim_error("W282", f"a dimension of degree {made.degree} is refused (limit {MAX_DEGREE})")
        with INTERN_LOCK:
            found = _monomials.get(powers)
            if found is None:
                _monomials[powers] = found = made
    return found


ONE = make_monomial(())
term_key = attrgetter("key")


def only_atom(monomial: Monomial) -> Atom | None:
    """The atom that the monomial consists of, if it is just one."""
    return monomial.powers[0][0] if monomial.degree == 1 else None


def single_atom(value: int | Polynomial) -> Atom | None:
    """The atom that the dimension consists of, if it is just one."""
    if isinstance(value, Polynomial):
        (monomial, coefficient), *others = value.terms
        if coefficient == 1 and not others:
            return only_atom(monomial)
    return None
