"""Declarations of operators: the kinds of their parameters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from weft.ir.op import OPS, Param
from weft.ir.op.declare import ParamKind, ValueKind


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "attribute"}, "parameter x: unknown kind 'attribute'; one of expr, exprs, "),
        ({"kind": "attr", "of": "integer"}, "parameter x: unknown value kind 'integer'; one of int, bool, "),
        ({"kind": "attr", "of": "int??"}, "parameter x: unknown value kind 'int?'"),
    ],
)
def test_a_parameter_of_an_unknown_kind_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Param("x", **fields)


def test_kinds_are_enumerations_that_declarations_write_as_texts() -> None:
    param = Param("axis", "attr", None, "ints?")
    assert (param.kind, param.of, param.optional) == (ParamKind.ATTR, ValueKind.INTS, True)
    assert replace(param, name="axes").optional
    assert {kind.value for kind in ParamKind} == {str(param.kind) for op in OPS.values() for param in op.params}
    assert {kind.value for kind in ValueKind} == {str(param.of) for op in OPS.values() for param in op.params}
