"""Parts of other kinds than fields state: found wherever they stand, whatever was looked at before."""

from __future__ import annotations

from typing import Any

import pytest

from weft.ir.graph import Tuple, Var
from weft.ir.structure.malformed import malformed
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, Evaluate, FloatImm, For, IntImm, PrimVar, SeqStmt
from weft.ir.types import TensorType

X = Buffer("x", (4,))
AXIS = PrimVar("i", "int64")
SOUND = (
    For(AXIS, 0, 4, BufferStore(X, BufferLoad(X, (AXIS,)) * 2, (AXIS,))),
    Tuple((Var("a", TensorType((2,), "float32")),)),
    Tuple(()),
    IntImm(1),
)
WRONG: tuple[tuple[str, Any], ...] = (
    ("a number for a statement", SeqStmt((Evaluate(IntImm(1)), 3))),
    ("no tuple where one is wanted", Tuple(X)),
    ("an empty tuple where none is wanted", Evaluate(())),
    ("a tuple of the right parts where none is wanted", Evaluate((IntImm(1),))),
    ("a part of a tuple after right ones", BufferStore(X, FloatImm(1.0), (AXIS, "i"))),
    ("a truth value for a number", IntImm(True)),
    ("in a list", [Evaluate(IntImm(1)), Evaluate("1")]),
    ("in a mapping", {"a": Evaluate("1")}),
)


@pytest.mark.parametrize("wrong", [value for _, value in WRONG], ids=[name for name, _ in WRONG])
def test_a_wrong_part_is_found_though_right_ones_passed(wrong: Any) -> None:
    for _ in range(2):
        assert [malformed(value) for value in SOUND] == [None] * len(SOUND)
        error = malformed(wrong)
        assert error is not None
        assert error.code == "W467"
