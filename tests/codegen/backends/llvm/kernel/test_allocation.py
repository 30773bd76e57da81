"""Memory of kernels: on the stack, in registers, or on the heap where a function would take too much of the stack."""

from __future__ import annotations

import numpy as np
import pytest

import weft

KERNEL = """
from weft.script import tir as T

@T.prim_func
def main(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
    a = T.alloc_buffer((3072,), "float32")
    b = T.alloc_buffer((3072,), "float32")
    c = T.alloc_buffer((SIZE,), "float32", scope="SCOPE")
    for i in T.serial(3072):
        a[i] = x[i] + T.float32(1)
    for i in T.serial(3072):
        b[i] = a[i] * x[i + 1024]
    for i in T.serial(4096):
        c[i % SIZE] = x[i] + T.float32(2)
        y[i] = c[i % SIZE] + b[i % 3072]
"""


@pytest.mark.parametrize(
    ("scope", "size", "on_heap"), [("local", 1024, 0), ("global", 1024, 1), ("local", 2048, 1), ("global", 1, 1)]
)
def test_what_is_to_be_in_registers_has_room_of_its_own_on_the_stack(scope: str, size: int, on_heap: int) -> None:
    made = weft.compile(weft.parse(KERNEL.replace("SIZE", str(size)).replace("SCOPE", scope)), opt=0)
    x, y = np.random.default_rng(0).standard_normal(4096).astype("float32"), np.zeros(4096, "float32")
    made["main"](x, y)
    b = (x[:3072] + 1) * x[1024:]
    np.testing.assert_allclose(y, x + 2 + np.resize(b, 4096), rtol=1e-5)
    kernel = made.source("llvm").split("i32 @weft.kernel.main(")[1].split("\n}")[0]
    assert kernel.count(" @aligned_alloc(") == on_heap
