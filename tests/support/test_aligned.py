"""Memory of arrays at addresses that suit vectors, cache lines, and pages."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from weft.support.aligned import ALIGNMENT, aligned_zeros

LARGE_PAGE = 2 << 20


@pytest.mark.parametrize("count", [0, 1, 100, LARGE_PAGE // 8 - 1, LARGE_PAGE // 8, 3 * LARGE_PAGE // 8 + 5])
def test_zeros_begin_a_line_and_can_be_written(count: int) -> None:
    array = aligned_zeros((count,), np.dtype("float64"))
    assert array.shape == (count,)
    assert count == 0 or array.__array_interface__["data"][0] % ALIGNMENT == 0
    assert not array.any()
    array[:] = np.arange(count)
    np.testing.assert_array_equal(array, np.arange(count))


def test_large_arrays_begin_a_large_page_where_the_system_has_them() -> None:
    array = aligned_zeros((LARGE_PAGE + 1,), np.uint8)
    assert array.__array_interface__["data"][0] % (LARGE_PAGE if hasattr(mmap, "MADV_HUGEPAGE") else ALIGNMENT) == 0


def test_views_keep_large_memory_alive() -> None:
    view = aligned_zeros((2, LARGE_PAGE), np.uint8)[1, -3:]
    view[:] = 7
    assert view.tolist() == [7, 7, 7]
