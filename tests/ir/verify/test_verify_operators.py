"""The loops that operators lower to are well formed."""

from __future__ import annotations

from typing import Any

import pytest

from weft.ir import verify
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.graph import Var
from weft.ir.op import OPS, Example, OpDef
from weft.ir.types import Type

EXAMPLES = [
    pytest.param(definition, example, id=f"{definition.name}-{index}")
    for definition in OPS.values()
    for index, example in enumerate(definition.examples)
    if definition.lowering is not None
]


def variables(value: Any) -> Any:
    if isinstance(value, Type):
        return Var("a", value)
    return tuple(map(variables, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_the_kernel_of_an_operator_is_well_formed(definition: OpDef, example: Example) -> None:
    call = definition.bind(variables(example.args), {k: variables(v) for k, v in example.kwargs.items()})
    context = TypeContext()
    infer_type(call, context)
    kernel = definition.lower(call, context, "kernel")
    if kernel is not None:
        assert verify(kernel) == []
