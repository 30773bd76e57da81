"""Tensor-level expression constructors and dtypes."""

from __future__ import annotations

import pytest

from weft import DTypeError
from weft import dtypes as dtype
from weft.ir import Binary, Broadcast, Cast, IntImm, PrimVar
from weft.ir.kernel import prim


def test_python_numbers_take_the_dtype_of_the_other_side() -> None:
    i = PrimVar("i", "int64")
    total = i + 1
    assert isinstance(total, Binary)
    assert (total.dtype, total.b.dtype) == ("int64", "int64")
    assert (2.5 * PrimVar("x", "float16")).dtype == "float16"


def test_mixed_dtypes_are_promoted() -> None:
    total = PrimVar("i", "int32") + PrimVar("j", "int64")
    assert total.dtype == "int64"
    assert isinstance(total.a, Cast)
    assert (PrimVar("i", "int32") < PrimVar("j", "int64")).dtype == "bool"


def test_scalars_are_broadcast_against_vectors() -> None:
    vector = Broadcast(prim.const(1.0, "float32"), 4)
    assert (vector + 2.0).dtype == "float32x4"
    assert (vector < vector).dtype == "boolx4"


def test_nothing_is_folded() -> None:
    assert isinstance(prim.const(1, "int32") + 2, Binary)


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: prim.const(300, "int8"), "W310"),
        (lambda: prim.const(1.5, "int32"), "W310"),
        (lambda: PrimVar("h", "handle") + PrimVar("i", "int32"), "W311"),
        (lambda: PrimVar("i", "int32") / 2, "W312"),
        (lambda: prim.binary("and", PrimVar("i", "int32"), PrimVar("j", "int32")), "W313"),
        (lambda: prim.unary("not", PrimVar("i", "int32")), "W313"),
        (lambda: prim.intrinsic("exp", PrimVar("i", "int32")), "W314"),
        (lambda: dtype.check_dtype("float31"), "W301"),
        (lambda: dtype.check_dtype("flaot32"), "W301"),
    ],
)
def test_wrong_operands_are_refused_with_a_code(build, code: str) -> None:
    with pytest.raises(DTypeError) as caught:
        build()
    assert caught.value.code == code


def test_an_unknown_dtype_suggests_a_known_one() -> None:
    with pytest.raises(DTypeError) as caught:
        dtype.check_dtype("flaot32")
    assert caught.value.hint == "did you mean 'float32'?"


def test_equality_is_identity_and_equal_builds_a_node() -> None:
    i = PrimVar("i", "int32")
    assert (i == PrimVar("i", "int32")) is False
    assert prim.equal(i, 3).kind == "eq"  # type: ignore[attr-defined]


def test_integers_get_the_smallest_index_type() -> None:
    assert prim.as_expr(5).dtype == "int32"
    assert prim.as_expr(2**40).dtype == "int64"
    assert isinstance(prim.as_expr(True), IntImm)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("int8", "uint8", "uint8"),
        ("int64", "float16", "float16"),
        ("bool", "int8", "int8"),
        ("bfloat16", "float16", None),
        ("float32x4", "float32", "float32x4"),
        ("float32x4", "float32x8", None),
        ("handle", "int32", None),
    ],
)
def test_promotion(a: str, b: str, expected: str | None) -> None:
    assert dtype.promote(a, b) == expected
    assert dtype.promote(b, a) == expected
