"""The table of dtypes: what NumPy and `ml_dtypes` say of them, and the numbers that compiled programs hold."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from weft import dtypes
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.llvm.asm.types import memory_type, value_type

FLOATS = [name for name, row in dtypes.SCALARS.items() if row.layout]


@pytest.mark.parametrize("name", FLOATS)
def test_the_greatest_and_the_least_value_are_those_of_the_arrays(name: str) -> None:
    info = ml_dtypes.finfo(dtypes.array_dtype(name))
    assert (dtypes.max_value(name), dtypes.min_value(name)) == (float(info.max), float(info.min))
    assert info.bits == dtypes.bits(name)


@pytest.mark.parametrize("name", [name for name, row in dtypes.SCALARS.items() if row.formats])
def test_the_formats_are_those_of_the_buffer_protocol(name: str) -> None:
    assert memoryview(np.zeros(1, name)).format in dtypes.SCALARS[name].formats


def test_numbers_of_dtypes_stay() -> None:
    """They stand in artifacts of earlier releases."""
    codes = {"bool": 1, "int64": 5, "uint64": 9, "float16": 10, "float64": 12, "bfloat16": 13, "float4_e2m1fn": 24}
    assert {name: dtypes.CODES[name] for name in codes} == codes
    assert list(dtypes.CODES)[24:] == ["int4", "uint4", "int1", "uint1", "int2", "uint2", "complex64", "complex128"]


def test_types_of_back_ends_are_as_wide_as_the_elements() -> None:
    widths = {"half": 16, "float": 32, "double": 64, "<2 x float>": 64, "<2 x double>": 128}
    for name in dtypes.SCALARS:
        assert widths.get(memory_type(name), memory_type(name)) in (
            8 * dtypes.storage(name).itemsize,
            f"i{8 * dtypes.storage(name).itemsize}",
        )
    assert [value_type(name) for name in ("bool", "int4", "bfloat16", "float16x4")] == ["i1", "i4", "i16", "<4 x half>"]
    assert [c_type(name) for name in ("bool", "int64", "float16", "float64")] == [
        "uint8_t",
        "int64_t",
        "uint16_t",
        "double",
    ]


def test_complex_types_have_two_parts() -> None:
    assert dtypes.check_dtype("complex64") == dtypes.check_dtype(np.complex64) == "complex64"
    assert [dtypes.part(name) for name in ("complex64", "complex128", "complex64x4")] == [
        "float32",
        "float64",
        "float32x4",
    ]
    assert dtypes.lanes("complex64") == 1
    assert dtypes.item_bytes("complex128") == 16
    assert dtypes.promote("complex64", "float32") == dtypes.promote("int64", "complex64") == "complex64"
    assert dtypes.promote("complex64", "float64") == "complex128"
    assert dtypes.with_parts("float64") == "complex128"
