"""Constants in memory: what is read where it is used, what stays, and that kernels with tiles compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.backends.llvm.asm.assembly import instruction_of

import weft
from weft.codegen.backends.llvm.asm.constants_in_memory import ConstantsInMemory
from weft.codegen.backends.llvm.asm.instructions import text_of

THREE = "splat (float 0x4008000000000000)"
ZERO = "splat (float 0x0000000000000000)"


def read(text: str) -> tuple[list[str], list[str]]:
    """The lines that an instruction becomes, and the variables that these read."""
    constants = ConstantsInMemory()
    lines = [f"{name} = {text_of(made)}" for name, made in constants.read([("%y", instruction_of(text))])]
    return lines, list(constants.definitions())


def test_a_constant_is_read_once_before_what_uses_it() -> None:
    assert read(f"fmul contract <4 x float> {THREE}, {THREE}") == (
        [
            "%constant.1 = load float, ptr @weft.constant.float.0x4008000000000000",
            "%constant.2 = insertelement <4 x float> poison, float %constant.1, i64 0",
            "%constant.3 = shufflevector <4 x float> %constant.2, <4 x float> poison, <4 x i32> zeroinitializer",
            "%y = fmul contract <4 x float> %constant.3, %constant.3",
        ],
        ["@weft.constant.float.0x4008000000000000 = internal global float 0x4008000000000000"],
    )


def test_signs_are_changed_by_masks_that_are_read() -> None:
    lines, variables = read("fneg <2 x double> %x")
    assert variables == [f"@weft.constant.i64.{1 << 63} = internal global i64 {1 << 63}"]
    assert lines[0] == "%constant.1 = bitcast <2 x double> %x to <2 x i64>"
    assert lines[-2:] == [
        "%constant.2 = xor <2 x i64> %constant.1, %constant.5",
        "%y = bitcast <2 x i64> %constant.2 to <2 x double>",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "fadd float %x, 0x4008000000000000",
        "fadd <4 x float> %x, %z",
        "fneg float %x",
        f"select <4 x i1> %m, <4 x float> %x, <4 x float> {ZERO}",
        "add <4 x i32> %x, splat (i32 3)",
        f"fadd <vscale x 4 x float> %x, {THREE}",
    ],
)
def test_what_takes_no_register_stays(text: str) -> None:
    assert read(text) == ([f"%y = {text}"], [])


CONVOLUTION = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 32, 7, 5), "DTYPE")):
        with R.dataflow():
            y = R.nn.conv2d(x, R.const(WEIGHTS, "DTYPE"))
            z = ACTIVATION
            R.output(z)
        return z
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", ["R.nn.silu(y)", "R.abs(R.negative(R.tanh(y)))"])
def test_what_is_done_to_the_sums_of_tiles_is_computed_with_constants_in_memory(activation: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    weights = np.round(random.standard_normal((40, 32, 1, 1)), 1).tolist()
    text = CONVOLUTION.replace("DTYPE", dtype).replace("WEIGHTS", str(weights)).replace("ACTIVATION", activation)
    module = weft.parse(text)
    made = weft.compile(module)
    x = random.standard_normal((2, 32, 7, 5)).astype(dtype)
    np.testing.assert_allclose(made["main"](x), weft.interpret(module)["main"](x), rtol=1e-5, atol=1e-5)
    assert " = load " + {"float32": "float", "float64": "double"}[dtype] + ", ptr @weft.constant." in made.source(
        "llvm"
    )
