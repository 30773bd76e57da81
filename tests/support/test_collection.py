"""Collections are rare while compiling, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from weft.support.collection import rare_collections


def test_the_last_one_out_restores_the_thresholds() -> None:
    """Uses may nest; what the program had set is there again after the outermost."""
    before = gc.get_threshold()
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold()[0] > before[0]
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_an_error_restores_them() -> None:
    """Errors pass through."""
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="no"), rare_collections():
        raise ValueError("no")
    assert gc.get_threshold() == before


def test_thresholds_that_mean_none_stay() -> None:
    """A program that collects by itself, or rarely, goes on so."""
    before = gc.get_threshold()
    try:
        for own in ((0, 10, 10), (1_000_000, 5, 5)):
            gc.set_threshold(*own)
            with rare_collections():
                assert gc.get_threshold() == own
            assert gc.get_threshold() == own
    finally:
        gc.set_threshold(*before)
