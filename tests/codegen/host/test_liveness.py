"""What a text says of memory is believed as far as it holds: not after it was given back, and constants stay."""

from __future__ import annotations

import numpy as np
import pytest

import weft

MODULE = """
from weft.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        w = R.const([1.0, 2.0, 3.0, 4.0], "float32")
        a = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        v = R.memory.view(a, R.shape([4]))
        u = R.memory.view(v, R.shape([4]))
        k = R.memory.view(w, R.shape([4]))
        b = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
{lines}
        return b
"""
COPY, KILL = "        cls.copy({}, {})\n", "        R.memory.kill_tensor({})\n"
EXECUTORS = ("native", "vm")


def text(*lines: str) -> weft.IRModule:
    found = weft.parse(MODULE.replace("{lines}", "".join(lines).rstrip("\n")))
    assert isinstance(found, weft.IRModule)
    return found


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("used", ["a", "v", "u"])
@pytest.mark.parametrize("killed", ["a", "v"])
def test_what_lies_in_memory_that_was_given_back_is_not_used(executor: str, used: str, killed: str) -> None:
    """H10: also through views of views; what the memory lies in stays."""
    module = text(COPY.format("x", "a"), KILL.format(killed), COPY.format(used, "b"))
    if (killed, used) == ("v", "a"):
        assert weft.compile(module, executor=executor)["main"](np.ones(4, "float32")).tolist() == [3.0] * 4
        return
    with pytest.raises(weft.BoundsError, match=f"'{used}' is used after its memory was given back") as caught:
        weft.compile(module, executor=executor)
    assert caught.value.code == "W911"
    assert caught.value.span is not None


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("written", ["w", "k"])
def test_a_kernel_does_not_write_a_constant(executor: str, written: str) -> None:
    """H10: nor what is a view of one."""
    with pytest.raises(weft.VerifyError, match="writes its parameter 'y', which is a constant here") as caught:
        weft.compile(text(COPY.format("x", written), COPY.format("x", "b")), executor=executor)
    assert caught.value.code == "W438"
    read = text(COPY.format(written, "b"))
    assert weft.compile(read, executor=executor)["main"](np.ones(4, "float32")).tolist() == [2.0, 3.0, 4.0, 5.0]
