"""Copies in order stay plain loops: views where memory allows it, else loops without quotients."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft.ir import PrimFunc, structural_equal
from weft.transform.analysis.accesses import is_reshape
from weft.transform.infra.decisions import decisions_of

SHAPES = [
    ('("n", "m")', "(n * m,)"),
    ('("n * m",)', "(n, m)"),
    ('("n", 4, 6)', "(n, 24)"),
    ('("n", 24)', "(n, 4, 6)"),
    ('("n", "4 * m")', "(n, 4, m)"),
    ('("n", 64, 7, 7)', "(n, 3136)"),
    ('("n", "m", 12, 32)', "(n * m, 384)"),
    ('("n * m", 12, 32)', "(n, m, 384)"),
    ("(80, 24)", "(48, 40)"),
    ("(3, 1, 130)", "(3, 130, 1)"),
]
SIZES = {"n": 5, "m": 37}


def reshaped(given: str, wanted: str, *, of_parameter: bool) -> weft.IRModule:
    """A reshape of a parameter, or of what the function computed."""
    value = "x" if of_parameter else "R.nn.softmax(x)"
    symbols = "".join(f', {name}0: R.Tensor(("{name}",), "float32")' for name in SIZES if name in given + wanted)
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor({given}, "float32"){symbols}):
        y = {value}
        return R.reshape(y, {wanted})
"""
    module = weft.parse(text)
    assert isinstance(module, weft.IRModule)
    return module


@pytest.mark.parametrize(("given", "wanted"), SHAPES)
def test_what_only_changes_its_shape_is_not_copied(given: str, wanted: str) -> None:
    lowered = weft.lower(reshaped(given, wanted, of_parameter=False), "llvm -mcpu=x86-64-v4", stop="plan")
    text = lowered.script()
    assert "R.memory.view" in text
    assert "cls.reshape" not in text


@pytest.mark.parametrize(("given", "wanted"), SHAPES)
def test_copies_read_and_write_in_order(given: str, wanted: str) -> None:
    module = reshaped(given, wanted, of_parameter=True)
    lowered = weft.lower(module, "llvm -mcpu=x86-64-v4", stop="schedule")
    kernel = lowered["reshape"]
    assert isinstance(kernel, PrimFunc)
    assert is_reshape(kernel)
    assert [item.kind for item in decisions_of(kernel)] == ["copy", "parallel"]
    loops = kernel.script().split("T.func_attr")[1].split("\n", 1)[1]
    has_quotients = "//" in loops or "%" in loops
    assert has_quotients is (given == "(80, 24)")  # axes of which none is a product of others
    assert structural_equal(weft.parse(lowered.script()), lowered)
    shape = tuple(int(eval(size, dict(SIZES))) for size in re.sub('[()"]', "", given).split(",") if size.strip())
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    others = [np.zeros(size, "float32") for name, size in SIZES.items() if name in given + wanted]
    result = weft.compile(module)["main"](x, *others)
    np.testing.assert_array_equal(result.ravel(), x.ravel())
    assert not np.shares_memory(result, x)


def test_a_kernel_that_does_more_is_no_view() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(x: T.Buffer((4, 8), "float32"), y: T.Buffer((32,), "float32")):
        for i in range(32):
            with T.sblock("y"):
                v = T.axis.spatial(32, i)
                y[v] = x[v // 8, v % 8]
        for i in range(32):
            with T.sblock("doubled"):
                v = T.axis.spatial(32, i)
                y[v] = y[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        y = R.nn.relu(x)
        return R.call_tir(Module.kernel, (y,), out_ty=R.Tensor((32,), "float32"))
"""
    module = weft.parse(text)
    lowered = weft.lower(module, "llvm -mcpu=x86-64-v4", stop="schedule")
    kernel = lowered["kernel"]
    assert isinstance(kernel, PrimFunc)
    assert not is_reshape(kernel)
    x = np.arange(32, dtype="float32").reshape(4, 8)
    np.testing.assert_array_equal(weft.compile(module)["main"](x), 2 * x.ravel())


def test_the_start_of_a_longer_tensor_is_copied_and_no_more() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        return R.split(x, [3])
"""
    x = np.arange(300000, dtype="float32")
    first, rest = weft.compile(weft.parse(text))["main"](x)
    np.testing.assert_array_equal(first, x[:3])
    np.testing.assert_array_equal(rest, x[3:])


def test_products_that_read_rows_through_a_view_leave_them_alone() -> None:
    module = weft.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("b", "t", 4, 16), "float32"), w: R.Tensor((64, 48), "float32")):
        y = R.reshape(R.nn.softmax(x), (b, t, 64))
        return R.matmul(y, w) + R.const(1.0, "float32")
""")
    lowered = weft.lower(module, "llvm -mcpu=x86-64-v4", stop="plan")
    assert "T.address_of" in lowered.script()  # (b, t, 64) as (b * t, 64)
    assert "R.memory.view" in lowered.script()
    assert "cls.reshape" not in lowered.script()
    x, w = np.random.default_rng(0).random((2, 9, 4, 16), "float32"), np.ones((64, 48), "float32")
    np.testing.assert_allclose(weft.compile(module)["main"](x, w), np.full((2, 9, 48), 5.0), rtol=1e-5)


def test_a_copy_of_nothing_writes_its_output_up_to_both_ends() -> None:
    """Sizes with a 0 among them have one product, whatever order they are in."""
    module = weft.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 0, 2), "float32")):
        y = R.strided_slice(x, (2,), (0,), (1,))
        return R.permute_dims(R.squeeze(y, (2,)), (1, 0))
""")
    assert isinstance(module, weft.IRModule)
    assert weft.verify(weft.lower(module, stop="schedule")) == []
    assert weft.compile(module)["main"](np.zeros((4, 0, 2), "float32")).shape == (0, 4)
