"""Functions from outside work on arrays of their own."""

from __future__ import annotations

import numpy as np

from weft.support.isolation import isolated


def test_an_array_that_cannot_be_written_comes_as_one_that_cannot() -> None:
    """H10: nothing is written back into it, and the function is told as it writes."""
    x, out = np.arange(3), np.zeros(3, "int64")
    x.flags.writeable = False
    seen: list[bool] = []

    def double(given: np.ndarray, result: np.ndarray) -> None:
        seen.append(given.flags.writeable)
        result[...] = 2 * given

    isolated(double)(x, out)
    assert seen == [False]
    assert out.tolist() == [0, 2, 4]


def test_copies_overlap_where_the_arrays_do_and_nowhere_else() -> None:
    memory = np.arange(8)
    seen: list[bool] = []

    def look(first: np.ndarray, *others: np.ndarray) -> None:
        seen.extend(np.may_share_memory(first, other) for other in others)

    isolated(look)(memory[:4], memory[4:], memory[:0])
    isolated(look)(memory[:4], memory[:4], memory[3:], memory[4:], memory[::2])
    assert seen == [False, False, True, True, False, True]
