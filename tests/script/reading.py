"""What the tests of texts share."""

from __future__ import annotations

import weft
from weft.ir import Function, IRModule, PrimFunc
from weft.script import parse, script_of


def check(text: str) -> IRModule | Function | PrimFunc:
    """Read a text; what it prints reads back equal, and prints the same again."""
    first = parse(text)
    printed = script_of(first)
    second = parse(printed)
    weft.assert_structural_equal(first, second)
    assert script_of(second) == printed
    return first
