"""Every declared operator, by its examples: types, the NumPy reference, the lowered loops, binding and documentation.

D3: deduced shapes are those of NumPy at random symbol values. D4: they come out in canonical form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.ir import IRModule, assert_structural_equal, verify
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import DimExpr
from weft.ir.graph import GlobalVar
from weft.ir.op import OPS, Example, OpDef
from weft.ir.op.common import kernel_call
from weft.ir.types import Type
from weft.testing.operators import TOLERANCE, Run, bound_example, has_no_kernel

EXAMPLES = [
    pytest.param(definition, example, id=f"{definition.name}-{index}")
    for definition in OPS.values()
    for index, example in enumerate(definition.examples)
]


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_types_and_loops_agree_with_numpy(definition: OpDef, example: Example) -> None:
    """D3.

    The generator stands inside: hypothesis keeps the settings of every case of a parametrized test in one chain, and
    a thousand of them are more than the recursion limit.
    """

    @settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(seed=st.integers(0, 10**6))
    def agree(seed: int) -> None:
        run = Run(definition, example, seed)
        expected = run.reference()
        types = run.outputs()
        assert [array.shape for array in expected] == [run.shape(ty) for ty in types]
        assert [str(array.dtype) for array in expected] == [ty.dtype for ty in types]
        if has_no_kernel(definition, run.call, run.context):
            return
        for got, want in zip(run.lowered(), expected, strict=True):
            relative, absolute = TOLERANCE.get(str(want.dtype), (0, 0))
            np.testing.assert_allclose(got, want, rtol=relative, atol=absolute)

    agree()


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_binding_what_unbind_gives_makes_the_same_call(definition: OpDef, example: Example) -> None:
    call, _ = bound_example(definition, example)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, (param, value) in enumerate(definition.unbind(call)):
        if param.kind == "variadic":
            args.extend(value)
        elif len(args) == index and param is definition.params[index]:
            args.append(value)
        else:
            kwargs[param.name] = value
    assert_structural_equal(definition.bind(args, kwargs), call)


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_kernels_are_well_formed_and_fit_their_calls(definition: OpDef, example: Example) -> None:
    call, _ = bound_example(definition, example)
    context = TypeContext()
    kernel = definition.lower(call, context, "kernel")
    if kernel is None:
        assert has_no_kernel(definition, call, context)
        return
    assert verify(IRModule({"kernel": kernel})) == []
    replaced = kernel_call(call, kernel, GlobalVar("kernel"), context)
    assert_structural_equal(infer_type(replaced, TypeContext({"kernel": kernel})), infer_type(call))


@pytest.mark.parametrize("definition", OPS.values(), ids=list(OPS))
def test_every_operator_is_documented(definition: OpDef) -> None:
    paragraph = definition.doc.split("\n\n")[0]
    assert paragraph.endswith(".")
    assert len(paragraph) > 10
    assert definition.signature.startswith(definition.name + "(")
    assert isinstance(definition.pure, bool)


@pytest.mark.parametrize("definition", [d for d in OPS.values() if not d.builtin], ids=lambda d: d.name)
def test_every_operator_has_a_symbolic_example(definition: OpDef) -> None:
    def symbolic(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(map(symbolic, value))
        return isinstance(value, DimExpr) or (isinstance(value, Type) and bool(type_symbols(value)))

    assert any(any(map(symbolic, (*e.args, *e.kwargs.values()))) for e in definition.examples)
