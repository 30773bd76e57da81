"""A few seconds of hostile input, and that what goes wrong is found; `make fuzz TIME=3600` goes on for an hour."""

from __future__ import annotations

import random

from tests.fuzz.hostile import fuzz


def test_hostile_input_of_every_kind_ends_with_right_values_or_errors_of_weft() -> None:
    *findings, count = fuzz(6, start=random.randrange(1 << 20))
    assert findings == []
    assert int(count.split()[0]) > 20


def test_a_wrong_value_and_a_process_that_dies_are_findings() -> None:
    assert next(fuzz(20, names=["_wrong"])).startswith("_wrong 0 AssertionError")
    assert next(fuzz(20, names=["_dies"])).startswith("_dies 0 ended the process with -6")
