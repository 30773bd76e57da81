"""A dimension written down: as text (the grammar stands in `parsing`), and as a sympy expression.

Only this module and `proofs` import sympy, and only when asked.
"""

from __future__ import annotations

import importlib
from typing import Any

from weft.ir.dim.representation import ONE, Atom, Monomial, Polynomial, single_atom


def format_dim(d: int | Polynomial) -> str:
    """The dimension as a Python expression that `parse_dim` reads back as the same object.

    >>> from weft.ir.dim import symbol
    >>> n = symbol("n")
    >>> format_dim((n + 1) // 2 * 3 - n * n)
    '3 * ((n + 1) // 2) - n ** 2'
    """
    if not isinstance(d, Polynomial):
        return str(d)
    if d.known_text is None:
        d.known_text = _sum_text(d)
    return d.known_text


def _sum_text(d: Polynomial) -> str:
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


def _term_text(monomial: Monomial, coefficient: int, bare: bool) -> str:
    """One term without its sign; ``bare`` lets a lone division stand without parentheses."""
    if monomial is ONE:
        return str(coefficient)
    if bare and coefficient == 1 and monomial.degree == 1:
        return monomial.powers[0][0].text
    factors = [str(coefficient)] if coefficient != 1 else []
    for atom, power in monomial.powers:
        text = f"({atom.text})" if atom.kind in ("floordiv", "mod") else atom.text
        factors.append(text if power == 1 else f"{text} ** {power}")
    return " * ".join(factors)


_OPERATOR_TEXT = {"floordiv": "//", "mod": "%"}


def atom_text(kind: str, arguments: tuple[Any, ...]) -> str:
    """An atom as text, from which atoms are ordered."""
    if kind == "symbol":
        return arguments[0]
    if kind in ("min", "max"):
        return f"{kind}({', '.join(map(format_dim, arguments))})"
    left, right = arguments
    if isinstance(left, Polynomial):
        simple = len(left.terms) == 1
        left_text = _sum_text_of_product(left) if simple else f"({format_dim(left)})"
    else:
        left_text = str(left) if left >= 0 else f"({left})"
    atom = single_atom(right)
    plain = isinstance(right, int) or (atom is not None and atom.kind not in _OPERATOR_TEXT)
    return f"{left_text} {_OPERATOR_TEXT[kind]} {format_dim(right) if plain else f'({format_dim(right)})'}"


def _sum_text_of_product(d: Polynomial) -> str:
    monomial, coefficient = d.terms[0]
    return f"{'-' if coefficient < 0 else ''}{_term_text(monomial, abs(coefficient), False)}"


def load_sympy() -> Any:
    """The package sympy, which is slow to load and has no types."""
    return importlib.import_module("sympy")


def to_sympy(d: int | Polynomial) -> Any:
    """The same expression for sympy, with nonnegative integer symbols."""
    sympy = load_sympy()

    if not isinstance(d, Polynomial):
        return sympy.Integer(d)
    terms: list[Any] = []
    for monomial, coefficient in d.terms:
        terms.append(sympy.Mul(coefficient, *(_atom_to_sympy(atom) ** power for atom, power in monomial.powers)))
    return sympy.Add(*terms)


def _atom_to_sympy(atom: Atom) -> Any:
    sympy = load_sympy()

    if atom.kind == "symbol":
        return sympy.Symbol(atom.arguments[0], integer=True, nonnegative=True)
    arguments = [to_sympy(argument) for argument in atom.arguments]
    if atom.kind == "floordiv":
        return sympy.floor(arguments[0] / arguments[1])
    build = {"mod": sympy.Mod, "min": sympy.Min, "max": sympy.Max}[atom.kind]
    return build(*arguments)
