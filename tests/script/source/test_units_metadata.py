"""Constants of a metadata section in a file of several units."""

from __future__ import annotations

from pathlib import Path

import weft
from weft.script.source.units import read_units

_TEXT = (Path(__file__).parents[1] / "corpus" / "valid" / "metadata.txt").read_text(encoding="utf-8")
_UNIT = _TEXT.partition("### constants_of_an_older_version\n")[2]


def test_units_of_a_file_see_the_constants_of_its_metadata_section() -> None:
    (unit,) = read_units(_UNIT)
    assert not isinstance(unit.value, weft.WeftError)
    assert weft.structural_equal(unit.value, weft.parse(_UNIT))


def test_a_damaged_section_is_the_fault_of_the_units_that_name_it() -> None:
    other = '\n\n@R.function\ndef g(x: R.Tensor((3,), "int64")):\n    return x\n'
    first, second = read_units(_UNIT.replace("b64ndarrays", "arrays") + other)
    assert isinstance(first.value, weft.WeftError)
    assert first.value.code == "W110"
    assert not isinstance(second.value, weft.WeftError)
