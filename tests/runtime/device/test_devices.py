"""Devices: memory, copies, streams and launches, with the processor of the process as the one that is built in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentError
from weft.runtime import Executable
from weft.runtime.device.base import Device, Launcher, device_names, find_device, register_device, unregister_device
from weft.runtime.device.cpu import CPU, HostMemory, Processor

MODULE = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.add(x, R.const([1.0, 2.0], "float32"))
        return y
"""


class Counting(Processor):
    """The processor, under another name, with a count of what is asked of it."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def allocate(self, size: int) -> HostMemory:
        self.asked.append("allocate")
        return super().allocate(size)

    def write(self, *args: Any, **options: Any) -> None:
        self.asked.append("write")
        super().write(*args, **options)

    def launcher(self, address: int, keep: Any) -> Launcher:
        self.asked.append("launcher")
        return super().launcher(address, keep)


@pytest.fixture
def counting() -> Iterator[Counting]:
    device = Counting()
    register_device(device)
    yield device
    unregister_device("counting")


def test_an_executable_lives_on_the_device_that_is_given(counting: Counting) -> None:
    exe = weft.compile(weft.parse(MODULE), opt=0)
    moved = Executable(exe._program, device=find_device("counting"))
    assert (moved["main"](np.zeros(2, "float32")) == [1, 2]).all()
    assert set(counting.asked) == {"allocate", "write", "launcher"}


def test_memory_goes_to_a_device_and_back() -> None:
    values = np.arange(6, dtype="float32").reshape(2, 3)
    memory, other, stream = CPU.allocate(64), CPU.allocate(64), CPU.stream()
    assert memory.address % 64 == 0
    assert memory.size == 64
    CPU.write(memory, values.T, offset=8, stream=stream)
    CPU.copy(other, memory, 64, stream)
    stream.synchronize()
    back = np.zeros((3, 2), "float32")
    CPU.read(back, other, offset=8)
    assert (back == values.T).all()


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_arrays_are_copied_too(shape: tuple[int, ...]) -> None:
    values = np.full(shape, 7, "int64")
    memory = CPU.allocate(values.nbytes)
    CPU.write(memory, values)
    back = np.zeros(shape, "int64")
    CPU.read(back, memory)
    assert (back == values).all()


def test_a_device_has_one_name_and_a_name_one_device(counting: Counting) -> None:
    assert device_names() == ("counting", "cpu")
    register_device(counting)
    with pytest.raises(ArgumentError, match="there is a device 'counting' already") as caught:
        register_device(Counting())
    assert caught.value.code == "W867"
    with pytest.raises(ArgumentError, match="there is no device 'gpu'") as caught:
        find_device("gpu")
    assert "counting, cpu" in (caught.value.hint or "")


def test_a_device_must_have_all_of_it() -> None:
    with pytest.raises(TypeError):
        type("Half", (Device,), {"name": "half"})()
