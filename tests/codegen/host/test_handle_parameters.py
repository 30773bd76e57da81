"""Kernels with bare handles (`a: T.handle`) that graph functions call: a tensor's memory is behind the handle."""

from __future__ import annotations

import numpy as np
import pytest

import weft

MODULE = """
@I.ir_module
class M:
    @T.prim_func
    def f(a: T.handle("float32"), b: T.handle("float32", "global")):
        A = T.decl_buffer((4,), "float32", data=a)
        B = T.decl_buffer((4,), "float32", data=b)
        for i in range(4):
            B[i] = A[i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_tir(cls.f, (x,), out_ty=R.Tensor((4,), "float32"))
            z = R.call_tir(cls.f, (y,), out_ty=R.Tensor((4,), "float32"))
            w = R.add(R.call_tir(cls.f, (z,), out_ty=R.Tensor((4,), "float32")), y)
            R.output(w)
        return w
"""


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_every_executor_passes_the_memory_of_a_tensor_behind_a_handle(executor: str, opt: int) -> None:
    module = weft.parse(MODULE)
    x = np.arange(4, dtype="float32")
    expected = [4, 6, 8, 10]
    assert weft.interpret(module)["main"](x).tolist() == expected
    assert weft.compile(module, executor=executor, opt=opt)["main"](x).tolist() == expected
    assert x.tolist() == [0, 1, 2, 3]
