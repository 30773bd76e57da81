"""Calls inside of one whose frames are in one piece ask the system for no memory, however deep it is."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from weft.support.stack import frames_in_one_piece

resource = pytest.importorskip("resource")
DEPTHS = 160
"""Frames of some 100 bytes, more than fill a piece of memory."""
CALLS = 100


def most_faults(work: Callable[[], object], depth: int = DEPTHS) -> int:
    """The most pages that the system gave for `work`, called at each of so many depths."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work()
    found = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return max(found, most_faults(work, depth - 1)) if depth else found


def inner(depth: int = 4) -> None:
    """Calls that need more memory than a step to the next depth, so that they lie across the end of a piece at one."""
    if depth:
        inner(depth - 1)


def many_calls() -> None:
    """A loop of calls."""
    for _ in range(CALLS):
        inner()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count pages in other ways")
def test_no_depth_asks_for_a_page_in_every_call() -> None:
    """Without the decorator one of the depths does, in the Pythons that keep no spare piece."""
    assert most_faults(frames_in_one_piece(many_calls)) < CALLS / 2


def test_arguments_results_errors_and_names_pass_through() -> None:
    """Nothing else changes."""

    @frames_in_one_piece
    def divide(a: int, *, by: int) -> float:
        """The quotient."""
        return a / by

    assert divide(1, by=2) == 0.5
    assert (divide.__name__, divide.__doc__) == ("divide", "The quotient.")
    with pytest.raises(ZeroDivisionError):
        divide(1, by=0)


def test_deep_recursion_ends_in_an_error_still() -> None:
    """The limit of Python holds inside, where the calls fill several pieces."""

    @frames_in_one_piece
    def endless(depth: int) -> int:
        return endless(depth + 1)

    with pytest.raises(RecursionError):
        endless(0)
