"""Digests of arrays: kept where nobody can write, and made anew elsewhere."""

from __future__ import annotations

import hashlib

import numpy as np

from weft.ir.structure.array_digests import array_digest, array_digests


def test_a_view_that_cannot_be_written_of_an_array_that_can_is_read_again() -> None:
    """Only what cannot change keeps its digest."""
    base = np.zeros(4096, "uint8")
    view = base[:]
    view.flags.writeable = False
    before = array_digest(view)
    base[7] = 1
    assert array_digest(view) == hashlib.sha256(base.tobytes()).digest() != before


def test_a_number_that_another_array_had_tells_nothing() -> None:
    """Arrays that are gone leave no digest behind, whatever memory the next one gets."""
    for value in range(50):
        array = np.full(4096, value, "uint8")
        array.flags.writeable = False
        assert array_digest(array) == array_digest(array) == hashlib.sha256(array.tobytes()).digest()
        del array


def test_large_arrays_are_hashed_as_small_ones_are() -> None:
    """Several at once, some twice, in the order in which they are given."""
    arrays = [np.full(n, n % 251, "uint8") for n in (3, 2 << 20, 5000, (1 << 20) + 7)]
    arrays.append(arrays[1])
    assert array_digests(arrays) == [hashlib.sha256(array.tobytes()).digest() for array in arrays]
