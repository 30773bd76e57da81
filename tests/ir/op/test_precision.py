"""Policies of precision: every operator has one, and those that change compute in half precision."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.ir import Call, Type, Var, replace
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.op import OPS
from weft.ir.op.precision import UNDECLARED, Policy, always, follow, never
from weft.ir.types import TensorType, TupleType

SOURCE = """
@R.function
def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
    with R.dataflow():
        y = R.demo.precise(R.matmul(x, x))
        R.output(y)
    return y
"""
CHANGING = [name for name, definition in OPS.items() if definition.precision.operands]


def test_every_operator_of_weft_states_a_policy() -> None:
    without = [name for name, definition in OPS.items() if definition.precision is UNDECLARED]
    assert without == []


def test_a_policy_names_run_time_operands_of_its_operator() -> None:
    for name in CHANGING:
        params = {param.name for param in OPS[name].params}
        assert set(OPS[name].precision.operands) <= params, name


def test_every_policy_is_used() -> None:
    used = {definition.precision.policy for definition in OPS.values()}
    assert used == set(Policy)


def test_never_says_why_and_the_others_name_operands() -> None:
    with pytest.raises(ValueError, match="why"):
        never("")
    with pytest.raises(ValueError, match="operands"):
        always()
    with pytest.raises(ValueError, match="operands"):
        follow()


def in_type(name: str, place: int, dtype: str) -> Call | None:
    """The call of an example of float32 with the operands that its policy names in another type."""
    definition, found = OPS[name], OPS[name].examples[place]

    def value(item: Any, changed: bool) -> Any:
        if isinstance(item, Type):
            ty = replace(item, dtype=dtype) if changed and isinstance(item, TensorType) else item
            return Var("x", ty)
        if isinstance(item, (list, tuple)) and any(isinstance(part, Type) for part in item):
            return tuple(value(part, changed) for part in item)
        return item

    named = dict(zip((param.name for param in definition.params), found.args, strict=False)) | dict(found.kwargs)
    floats = {ty.dtype for key in definition.precision.operands for ty in tensors(named.get(key))}
    if floats != {"float32"}:
        return None
    return definition.bind((), {key: value(item, key in definition.precision.operands) for key, item in named.items()})


def tensors(item: Any) -> list[TensorType]:
    if isinstance(item, (list, tuple)):
        return [ty for part in item for ty in tensors(part)]
    return [item] if isinstance(item, TensorType) else []


def results(ty: Type) -> list[Type]:
    return list(ty.fields) if isinstance(ty, TupleType) else [ty]


@pytest.mark.parametrize("name", [name for name in CHANGING if OPS[name].examples])
def test_an_operator_that_may_compute_in_half_gives_half_of_half(name: str) -> None:
    checked = 0
    for place in range(len(OPS[name].examples)):
        for dtype in ("float16", "bfloat16"):
            call = in_type(name, place, dtype)
            if call is None or "out_dtype" in call.attrs:
                continue
            given = infer_type(call, TypeContext({}))
            assert [getattr(ty, "dtype", None) for ty in results(given)] == [dtype] * len(results(given))
            checked += 1
    assert checked, "no example is of float32"


def test_a_policy_of_an_operator_from_outside_is_never() -> None:
    from weft.ir.op import Param, register_op

    @register_op("demo.precise", [Param("x")], builtin="an example", pure=True)
    def precise(args: Any, context: Any) -> Any:
        "The value itself."
        return context.type_of(args.x)

    try:
        assert OPS["demo.precise"].precision is UNDECLARED
        function = weft.parse(SOURCE)
        assert isinstance(function, weft.ir.Function)
        text = weft.transform.ToMixedPrecision()(weft.IRModule({"main": function})).script()
        assert "its declaration says nothing of precision" in text
    finally:
        OPS.pop("demo.precise")
