"""Reading dimensions from text; nothing is evaluated.

sum     ::= [sum ("+" | "-")] product
product ::= [product ("*" | "//" | "%")] unary
unary   ::= "-" unary | "+" unary | power
power   ::= leaf ["**" unary]
leaf    ::= NAME | INTEGER | "(" sum ")" | ("min" | "max" | "ceildiv") "(" sum ("," sum)* ")"
"""

# What callers give is checked as they run, too.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import copyreg
import keyword
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from weft.errors import ShapeError, Source, Span
from weft.ir.dim.expression import (
    Dim,
    DimExpr,
    ceildiv,
    floordiv,
    floormod,
    maximum,
    minimum,
    power_of,
    product_of,
    sum_of,
    symbol,
)
from weft.ir.dim.formatting import format_dim
from weft.ir.dim.representation import dim_error

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
        raise dim_error("W287", f"a dimension is read from text, not from {type(text).__name__}")
    stripped = text.strip()
    if len(text) > max_length:
        raise dim_error("W288", f"a dimension of {len(text)} characters is refused (limit {max_length})")
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
        raise dim_error("W281", f"the integer {str(value)[:24]}... does not fit in 64 bits")
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
        raise dim_error("W288", f"a dimension nested {deepest} deep is refused (limit {max_depth})")


def _syntax_error(text: str, position: int | None) -> ShapeError:
    where = len(text) if position is None or position < 0 else min(position, len(text))
    at_end = "a dimension ends too early" if text else "a dimension is missing"
    return dim_error(
        "W287",
        f"unexpected {text[where]!r} at character {where} of a dimension" if where < len(text) else at_end,
        "dimensions are made of names, integers, + - * // % **, parentheses, min, max and ceildiv",
        Span(Source("<dimension>", text), where, where + 1),
    )


Member: TypeAlias = "Callable[[object, list[Any]], Dim]"
"""What makes the value of a rule of the grammar of the values of its parts."""


@lru_cache(maxsize=1)
def _parser() -> Any:
    from lark import Lark, Transformer

    def call(self: object, items: list[Any]) -> Dim:
        function, *arguments = items
        if function == "ceildiv":
            if len(arguments) != 2:
                raise dim_error("W287", f"ceildiv takes two dimensions, not {len(arguments)}")
            return ceildiv(*arguments)
        return minimum(*arguments) if function == "min" else maximum(*arguments)

    def integer(self: object, items: list[Any]) -> int:
        digits = str(items[0]).lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > 2**63:  # 2**63 itself only as -2**63
            raise dim_error("W281", f"the integer {digits[:24]}... does not fit in 64 bits")
        return int(digits)

    def binary(build: Callable[[Dim, Any], Dim]) -> Member:
        return lambda self, items: _checked_range(build(items[0], items[1]))

    members: dict[str, Member] = {
        "add": binary(lambda a, b: sum_of(a, b, 1)),
        "sub": binary(lambda a, b: sum_of(a, b, -1)),
        "mul": binary(product_of),
        "floordiv": binary(floordiv),
        "mod": binary(floormod),
        "pow": binary(power_of),
        "neg": lambda self, items: -items[0],
        "pos": lambda self, items: items[0],
        "name": lambda self, items: symbol(str(items[0])),
        "integer": integer,
        "call": call,
    }
    # Built while parsing, without a tree: no recursion over the depth of the text.
    builder = type("_Builder", (Transformer,), members)()
    return Lark(_GRAMMAR, parser="lalr", transformer=builder, maybe_placeholders=False)


def _reduced(d: DimExpr) -> tuple[Callable[[str], Any], tuple[str]]:
    return parse_dim, (format_dim(d),)


copyreg.pickle(DimExpr, _reduced)  # as text: what is unpickled is interned
