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


def test_an_array_that_can_be_written_comes_as_such_beside_one_of_the_same_memory_that_cannot() -> None:
    for size in (0, 3):
        out = np.zeros(size)
        x = out.view()
        x.flags.writeable = False
        seen: list[np.ndarray] = []

        def fill(given: np.ndarray, result: np.ndarray, *again: np.ndarray, seen: list[np.ndarray] = seen) -> None:
            result[...] = 2
            seen += [given, *again]

        isolated(fill)(x, out, np.zeros(1), x)
        assert (out == 2).all()
        assert (seen[0] == 2).all()
        assert [array.flags.writeable for array in seen] == [False, True, False]
