"""Operators on constants of one element: kernels agree with the interpreter, and what is no operand is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ShapeError, WeftError
from weft.ir.module import IRModule
from weft.ir.op import OPS
from weft.transform import LegalizeOps, PassContext

CONSTANTS = {"float32": "0.5", "int32": "1", "bool": "True"}
CALLS = [
    f"R.{name}({', '.join([one] * count)})"
    for name in sorted(OPS)
    for one in (f"R.const({value}, '{dtype}')" for dtype, value in CONSTANTS.items())
    for count in (1, 2)
]


def module_of(call: str, x: str = 'R.Tensor((), "float32")') -> IRModule:
    return IRModule({"main": weft.parse(f"@R.function\ndef main(x: {x}):\n    return {call}\n")})  # type: ignore[dict-item]


def arrays(value: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kernels_of_constants_are_well_formed_and_give_what_the_interpreter_does() -> None:
    x, compared = np.array(1, "float32"), 0
    for call in CALLS:
        try:
            module = module_of(call)
            expected = weft.interpret(module)["main"](x)
        except WeftError:  # not of such operands
            continue
        kernels = LegalizeOps()(module)
        assert weft.verify(kernels) == [], call
        for want, got in zip(arrays(expected), arrays(weft.interpret(kernels)["main"](x)), strict=True):
            if want.dtype.kind in "fiub":
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=call)
        compared += 1
    assert compared > 200


def test_a_median_of_a_constant_is_the_constant() -> None:
    assert weft.compile(module_of("R.median(R.const(0.5, 'float32'), keepdims=True)"))["main"](np.float32(1)) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("R.invoke_pure_closure(x, (x,), ty_args=R.Tensor((), 'float32'))", "W131.*is not a function"),
        ("R.memory.alloc_storage(x, 0, 'global', 'float32')", "W134.*size must be a shape"),
        ("R.vm.alloc_storage(x, 0, 'float32')", "W134.*size must be a shape"),
        ("R.eye(R.const(True, 'bool'))", "W205.*n must be a size"),
    ],
)
def test_what_is_no_operand_is_refused_when_it_is_read(call: str, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        module_of(call)


def test_a_transform_of_no_values_is_an_error_of_the_program() -> None:
    module = module_of("R.fft.irfft(x, axis=0)", 'R.Tensor(("n", 0), "float32")')
    x = np.zeros((1, 0), "float32")
    for functions in (weft.interpret(module), weft.interpret(LegalizeOps()(module)), weft.compile(module)):
        with pytest.raises(ShapeError, match="W224"):
            functions["main"](x)


def test_the_comparison_of_level_3_runs_functions_of_wefts_own() -> None:
    module = module_of("R.linalg.svd(x)", 'R.Tensor((3, 2), "float32")')
    with PassContext(config={"check.level": 3}):
        assert LegalizeOps()(module) is not module
