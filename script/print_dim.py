"""Dimensions as TVM's readers take them and as its printer writes them: `n * 4 + 1`, `T.min(n, 4)`.

Those readers compare expressions as they are written, so the order matters: a coefficient stands last.
"""

from __future__ import annotations

from typing import Any

from weft.ir.dim import Dim, DimExpr

__all__ = ["peer_dim"]

_SUM, _PRODUCT, _ATOM = 1, 2, 3


def peer_dim(dim: Dim) -> str:
    """The text of a dimension.

    >>> from weft.ir.dim import symbol, minimum
    >>> n = symbol("n")
    >>> peer_dim(4 * n + 1), peer_dim((n + 1) // 2 * 3), peer_dim(minimum(n, 4))
    ('n * 4 + 1', '(n + 1) // 2 * 3', 'T.min(n, 4)')
    """
    return _dim(dim, _SUM)


def _dim(dim: Dim, place: int) -> str:
    if not isinstance(dim, DimExpr):
        return str(dim) if dim >= 0 or place == _SUM else f"({dim})"
    terms = list(dim.terms)
    first = next((position for position, (_, coefficient) in enumerate(terms) if coefficient > 0), 0)
    terms.insert(0, terms.pop(first))
    parts: list[str] = []
    level = _SUM
    for monomial, coefficient in terms:
        text, level = _term(monomial, abs(coefficient) if parts else coefficient)
        parts.append(text if not parts else f" {'+' if coefficient > 0 else '-'} {text}")
    if len(terms) > 1:
        level = _SUM
    text = "".join(parts)
    return f"({text})" if level < place else text


def _term(monomial: Any, coefficient: int) -> tuple[str, int]:
    """A product: its factors, then its coefficient."""
    factors = [text for atom, power in monomial.powers for text in [_atom(atom)] * power]
    if coefficient != 1 or not factors:
        factors.append((str(coefficient), _ATOM if coefficient >= 0 or not factors else _SUM))
    if len(factors) == 1:
        return factors[0]
    first, *rest = factors
    text = first[0] if first[1] >= _PRODUCT else f"({first[0]})"
    return " * ".join([text, *(item if level == _ATOM else f"({item})" for item, level in rest)]), _PRODUCT


def _atom(atom: Any) -> tuple[str, int]:
    if atom.kind == "symbol":
        return atom.arguments[0], _ATOM
    if atom.kind in ("min", "max"):
        text = _dim(atom.arguments[0], _SUM)
        for argument in atom.arguments[1:]:
            text = f"T.{atom.kind}({text}, {_dim(argument, _SUM)})"
        return text, _ATOM
    sign = "//" if atom.kind == "floordiv" else "%"
    left, right = atom.arguments
    return f"{_dim(left, _PRODUCT)} {sign} {_dim(right, _ATOM)}", _PRODUCT
