"""Dimensions as TVM's readers take them and as its printer writes them: `n * 4 + 1`, `T.min(n, 4)`.

Those readers compare expressions as they are written, so the order matters: a coefficient stands last, symbols stand
in the order of the signature (`n * m` where n is named first), as people and deduction write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ir.dim import Dim, DimExpr, free_symbols

__all__ = ["tvm_dim"]

_SUM, _PRODUCT, _ATOM = 1, 2, 3


def tvm_dim(dim: Dim, order: Mapping[str, int] | None = None) -> str:
    """The text of a dimension; `order` numbers the symbols that a signature names.

    >>> from weft.ir.dim import symbol, minimum
    >>> n = symbol("n")
    >>> tvm_dim(4 * n + 1), tvm_dim((n + 1) // 2 * 3), tvm_dim(minimum(n, 4))
    ('n * 4 + 1', '(n + 1) // 2 * 3', 'T.min(n, 4)')
    >>> tvm_dim(n * symbol("m") + symbol("m") * 2, {"n": 0, "m": 1})
    'n * m + m * 2'
    """
    return _dim(dim, _SUM, order or {})


def _dim(dim: Dim, place: int, order: Mapping[str, int]) -> str:
    if not isinstance(dim, DimExpr):
        return str(dim) if dim >= 0 or place == _SUM else f"({dim})"
    terms = sorted(dim.terms, key=lambda term: _place_of(term[0], order))
    first = next((position for position, (_, coefficient) in enumerate(terms) if coefficient > 0), 0)
    terms.insert(0, terms.pop(first))
    parts: list[str] = []
    level = _SUM
    for monomial, coefficient in terms:
        text, level = _term(monomial, abs(coefficient) if parts else coefficient, order)
        parts.append(text if not parts else f" {'+' if coefficient > 0 else '-'} {text}")
    if len(terms) > 1:
        level = _SUM
    text = "".join(parts)
    return f"({text})" if level < place else text


def _place_of(monomial: Any, order: Mapping[str, int]) -> tuple[Any, ...]:
    """Where a term stands: products of many factors first, then by the places of their symbols."""
    return -monomial.degree, [_key(atom, -power, order) for atom, power in _powers(monomial, order)]


def _key(atom: Any, power: int, order: Mapping[str, int]) -> tuple[Any, ...]:
    return atom.kind != "symbol", order.get(atom.text, len(order)), atom.text, power


def _powers(monomial: Any, order: Mapping[str, int]) -> list[Any]:
    return sorted(monomial.powers, key=lambda item: _key(item[0], item[1], order))


def _term(monomial: Any, coefficient: int, order: Mapping[str, int]) -> tuple[str, int]:
    """A product: its factors, then its coefficient."""
    factors = [text for atom, power in _powers(monomial, order) for text in [_atom(atom, order)] * power]
    if coefficient != 1 or not factors:
        factors.append((str(coefficient), _ATOM if coefficient >= 0 or not factors else _SUM))
    if len(factors) == 1:
        return factors[0]
    (first, _), *rest = factors  # a quotient may stand first as it is
    return " * ".join([first, *(item if level == _ATOM else f"({item})" for item, level in rest)]), _PRODUCT


def _atom(atom: Any, order: Mapping[str, int]) -> tuple[str, int]:
    if atom.kind == "symbol":
        return atom.arguments[0], _ATOM
    if atom.kind in ("min", "max"):
        first, *rest = sorted(atom.arguments, key=lambda item: _first_place(item, order))
        text = _dim(first, _SUM, order)
        for argument in rest:
            text = f"T.{atom.kind}({text}, {_dim(argument, _SUM, order)})"
        return text, _ATOM
    sign = "//" if atom.kind == "floordiv" else "%"
    left, right = atom.arguments
    return f"{_dim(left, _PRODUCT, order)} {sign} {_dim(right, _ATOM, order)}", _PRODUCT


def _first_place(dim: Dim, order: Mapping[str, int]) -> int:
    """The place of the first symbol of an operand of min or max; numbers stand last."""
    if not isinstance(dim, DimExpr):
        return len(order) + 1
    return min((order.get(name, len(order)) for name in free_symbols(dim)), default=len(order))
