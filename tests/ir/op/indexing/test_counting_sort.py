"""Values of few bits are counted: the same rows as by comparisons, zeros and nan as they came."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import IRModule, PrimFunc, walk
from weft.ir.tensor import AllocBuffer
from weft.transform import LegalizeOps

SIZES = {"int8": 1500, "uint8": 1500, "int16": 263_000, "uint16": 263_000, "float16": 263_000}


def sort(dtype: str, shape: str, value: str) -> IRModule:
    found = weft.parse(f'@R.function\ndef main(x: R.Tensor({shape}, "{dtype}")):\n    y = R.{value}\n    return y')
    return found if isinstance(found, IRModule) else IRModule({"main": found})


def counts(module: IRModule) -> list[int]:
    """The sizes of tables of counts in the kernels of a module."""
    kernels = (item for item in LegalizeOps()(module).functions.values() if isinstance(item, PrimFunc))
    buffers = (part.buffer for kernel in kernels for part in walk(kernel) if isinstance(part, AllocBuffer))
    return [buffer.shape[0] for buffer in buffers if buffer.name == "counts"]  # type: ignore[misc]


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Bits of all kinds: every number, and of floats all nan, infinities and zeros."""
    bits = np.random.default_rng(0).integers(0, 1 << 8 * np.dtype(dtype).itemsize, shape)
    return bits.astype(f"uint{8 * np.dtype(dtype).itemsize}").view(dtype)


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("descending", [False, True])
def test_counted_rows_have_the_bits_of_sorted_ones(dtype: str, descending: bool) -> None:
    size = SIZES[dtype]
    module = sort(dtype, f"({size},)", f"sort(x, descending={descending})")
    x = values(dtype, (size,))
    assert counts(module) == [1 << 8 * x.itemsize]
    got, want = weft.compile(module)["main"](x), weft.interpret(module)["main"](x)
    as_bits = f"uint{8 * x.itemsize}"
    np.testing.assert_array_equal(got.view(as_bits), want.view(as_bits))


def test_each_row_is_counted_anew() -> None:
    x = values("int8", (3, 1500))
    module = sort("int8", "(3, 1500)", "sort(x, axis=1)")
    assert counts(module) == [256]
    np.testing.assert_array_equal(weft.compile(module)["main"](x), np.sort(x, 1))


def test_few_elements_positions_and_wide_elements_are_compared() -> None:
    assert counts(sort("int16", "(1000000,)", "sort(x)")) == [1 << 16]
    for module in (
        sort("int16", "(100000,)", "sort(x)"),
        sort("int16", "(1000000,)", "argsort(x)"),
        sort("int32", "(1000000,)", "sort(x)"),
        sort("int16", '("n",)', "sort(x)"),
    ):
        assert 1 << 16 not in counts(module)
