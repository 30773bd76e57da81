"""Symbolic dimensions: integer expressions over named, nonnegative sizes, and what can be proved about them.

A dimension is a plain ``int`` or a `DimExpr`. Every `DimExpr` is in canonical form and interned, so that two equal
polynomials are one object and ``==`` costs nothing::

    dim      ::= int | DimExpr
    DimExpr  ::= coefficient * monomial + ... + constant        (never a bare constant: that is an int)
    monomial ::= atom ** power * ...
    atom     ::= symbol | dim // dim | dim % dim | min(dim, ...) | max(dim, ...)

``//`` and ``%`` are Python's (floor). An expression has no value where one of its divisors is zero; canonical form and
proofs speak about the values at which both sides are defined.

Errors are ShapeErrors: W280 division by zero, W281 over 64 bits, W282 too large, W283 bad name, W284 not a dimension,
W285 asked for a value or an order that is not decided, W286 symbol without a value, W287 syntax, W288 text over the
limits, W289 bad exponent or no operands, W290 different numbers of dimensions.

Answers have three values: True (holds for all nonnegative symbol values), False (holds for none), None (it depends on
the values, or is not known). True and False are always sound. This is the only package that imports sympy, and it does
so on the first question that needs it; plain integers never get there.

Each file uses the ones before it: `representation`, `notation`, `intervals`, `expression` (arithmetic), `inspection`,
`parsing`, `normal_form`, `linear`, `facts`, `points`, `proofs`, `counterexamples`, `solving`.
"""

from __future__ import annotations

from weft.ir.dim.counterexamples import counterexample, counterexample_le
from weft.ir.dim.expression import (
    Dim,
    DimExpr,
    as_dim,
    ceildiv,
    floordiv,
    floormod,
    maximum,
    minimum,
    product,
    symbol,
    symbol_name,
)
from weft.ir.dim.facts import Facts
from weft.ir.dim.formatting import format_dim
from weft.ir.dim.inspection import (
    evaluate,
    free_symbols,
    fresh_name,
    is_symbolic,
    joined_axes,
    operation,
    pattern,
    same,
    substitute,
    value_at,
)
from weft.ir.dim.intervals import interval_of
from weft.ir.dim.parsing import parse_dim
from weft.ir.dim.proofs import bounds, prove_equal, prove_le, prove_lt, prove_ne, prove_nonnegative
from weft.ir.dim.solving import determined, linear_parts, match_dims, solve_for

__all__ = [
    "Dim",
    "DimExpr",
    "Facts",
    "as_dim",
    "bounds",
    "ceildiv",
    "counterexample",
    "counterexample_le",
    "determined",
    "evaluate",
    "floordiv",
    "floormod",
    "format_dim",
    "free_symbols",
    "fresh_name",
    "interval_of",
    "is_symbolic",
    "joined_axes",
    "linear_parts",
    "match_dims",
    "maximum",
    "minimum",
    "operation",
    "parse_dim",
    "pattern",
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
    "value_at",
]
