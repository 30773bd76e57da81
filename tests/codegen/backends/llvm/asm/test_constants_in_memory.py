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


def test_the_greater_of_a_sum_and_a_number_in_memory_is_one_instruction() -> None:
    """No comparison with nan, and zeros from no memory."""
    text = CONVOLUTION.replace("DTYPE", "float32").replace("WEIGHTS", str(np.ones((40, 32, 1, 1)).tolist()))
    module = weft.parse(text.replace("ACTIVATION", 'R.minimum(R.nn.relu(y), R.const(6.0, "float32"))'))
    made = weft.compile(module, "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")
    assert {"vmaxps", "vminps"} <= set(made.source("asm").split())
    assert "vcmpunordps" not in made.source("asm")
    assert "@weft.constant.float.0x4018000000000000" in made.source("llvm")
    assert "@weft.constant.float.0x0000000000000000" not in made.source("llvm")


def test_what_is_not_a_number_stays_so_beside_numbers_in_memory() -> None:
    weights = np.zeros((40, 32, 1, 1), "float32")
    weights[:3, 0, 0, 0] = 1, -1, np.nan
    text = CONVOLUTION.replace("DTYPE", "float32").replace("WEIGHTS", "W")
    text = text.replace('R.const(W, "float32")', "w").replace(
        '7, 5), "float32")', '7, 5), "float32"), w: R.Tensor((40, 32, 1, 1), "float32")'
    )
    module = weft.parse(text.replace("ACTIVATION", 'R.minimum(R.nn.relu(y), R.const(6.0, "float32"))'))
    x = np.zeros((1, 32, 7, 5), "float32")
    x[0, 0].ravel()[:4] = np.nan, 9, -9, 3
    got = weft.compile(module, params={"w": weights})["main"](x)
    np.testing.assert_array_equal(got, np.clip(np.einsum("nchw,oc->nohw", x, weights[:, :, 0, 0]), 0, 6))
