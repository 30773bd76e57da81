"""Types and errors of the products, reductions and neural-network operators: what is known, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from weft.errors import DTypeError, ShapeError, WeftError
from weft.ir.deduction.infer import TypeContext, infer_type, type_text
from weft.ir.dim import symbol
from weft.ir.graph import Call, Expr, Var
from weft.ir.op import get_op
from weft.ir.types import TensorType, TupleType, Type

n, m, k, h, w = (symbol(name) for name in "nmkhw")


def t(*dims: Any, dtype: str | None = "float32") -> TensorType:
    return TensorType(dims, dtype)


def unknown(ndim: int = -1, dtype: str | None = "float32") -> TensorType:
    return TensorType(dtype=dtype, ndim=ndim)


def call(name: str, *types: Any, **attrs: Any) -> Call:
    """A call of an operator on variables of the given types; other values are passed as they are."""

    def value(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(map(value, item))
        return Var("x", item) if isinstance(item, Type) else item

    return get_op(name).bind([value(item) for item in types], attrs)


def names(rows: Sequence[tuple[Call, Any] | tuple[Call, Any, Any]]) -> list[str]:
    """Test names: the number of the row and its operator."""
    return [f"{index}-{getattr(row[0].op, 'name', '')}" for index, row in enumerate(rows)]


def typed(expr: Expr) -> tuple[str, list[str]]:
    """The type as text, and the checks left for run time."""
    context = TypeContext()
    ty = infer_type(expr, context)
    return type_text(ty), [f"{check.lhs} == {check.rhs}" for check in context.checks]


KNOWN: list[tuple[Call, str]] = [
    (call("matmul", t(n, 4), t(4, m)), 'R.Tensor((n, m), "float32")'),
    (call("matmul", t(4), t(4)), 'R.Tensor((), "float32")'),
    (call("matmul", t(k, 1, n, 4), t(5, 4, m)), 'R.Tensor((k, 5, n, m), "float32")'),
    (call("matmul", t(n, 4, dtype="int8"), t(4, m, dtype="int8"), out_dtype="int32"), 'R.Tensor((n, m), "int32")'),
    (call("matmul", unknown(3), t(4, m)), 'R.Tensor(dtype="float32", ndim=3)'),
    (call("matmul", unknown(1), t(4, m)), 'R.Tensor(dtype="float32", ndim=1)'),
    (call("matmul", unknown(), t(4, m)), 'R.Tensor(dtype="float32")'),
    (call("linear", t(n, 2, 4), t(3, 4), t(3)), 'R.Tensor((n, 2, 3), "float32")'),
    (call("einsum", (t(n, k), t(k, m)), subscripts="ij,jk->ki"), 'R.Tensor((m, n), "float32")'),
    (call("einsum", (t(2, n, k), t(k, m)), subscripts="...ij,jk"), 'R.Tensor((2, n, m), "float32")'),
    (call("einsum", (unknown(2), t(k, m)), subscripts="ij,jk->ki"), 'R.Tensor(dtype="float32", ndim=2)'),
    (call("sum", t(n, 4, m), axis=[0, -1]), 'R.Tensor((4,), "float32")'),
    (call("sum", t(n, 4, m), axis=1, keepdims=True), 'R.Tensor((n, 1, m), "float32")'),
    (call("sum", t(n, 4)), 'R.Tensor((), "float32")'),
    (call("sum", unknown(3), axis=[0]), 'R.Tensor(dtype="float32", ndim=2)'),
    (call("sum", unknown(3), keepdims=True), 'R.Tensor((1, 1, 1), "float32")'),
    (call("sum", unknown()), 'R.Tensor((), "float32")'),
    (call("argmax", t(n, 4), axis=1), 'R.Tensor((n,), "int64")'),
    (call("cumsum", t(n, 4)), 'R.Tensor((4 * n,), "float32")'),
    (call("cumsum", t(n, 4, dtype="int32"), axis=0, dtype="int64"), 'R.Tensor((n, 4), "int64")'),
    (call("where", t(n, 1, dtype="bool"), t(4), t()), 'R.Tensor((n, 4), "float32")'),
    (call("nn.softmax", unknown(2)), 'R.Tensor(dtype="float32", ndim=2)'),
    (
        call("nn.conv2d", t(n, 3, h, w), t(8, 3, 3, 3), strides=2, padding=1),
        'R.Tensor((n, 8, (h + 1) // 2, (w + 1) // 2), "float32")',
    ),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3, 3), out_layout="NHWC"), 'R.Tensor((n, 5, 5, 8), "float32")'),
    (call("nn.conv1d", unknown(3), t(8, 3, 3)), 'R.Tensor(dtype="float32", ndim=3)'),
    (
        call("nn.conv2d", t(n, m, 7, 7, 4), t(2, 4 * m, 3, 3, 8), data_layout="NCHW4c", kernel_layout="OIHW8o"),
        'R.Tensor((n, 4, 5, 5, 4), "float32")',
    ),
    (
        call("nn.conv2d", unknown(5), t(8, 4, 3, 3), data_layout="NCHW4c", out_layout="NCHW2n8c"),
        'R.Tensor(dtype="float32", ndim=6)',
    ),
    (
        call(
            "nn.conv2d_transpose",
            t(4, 2, 3, 3, 4),
            t(8, 1, 2, 2, 4),
            data_layout="NCHW4c",
            kernel_layout="IOHW4o",
            out_layout="N2nHWC",
        ),
        'R.Tensor((2, 2, 4, 4, 4), "float32")',
    ),
    (
        call("nn.max_pool2d", t(n, m, 6, 6, 4), pool_size=2, layout="NCHW4c", out_layout="NHWC"),
        'R.Tensor((n, 5, 5, 4 * m), "float32")',
    ),
    (call("image.resize2d", t(n, m, h, w, 16), (5, 6), layout="NCHW16c"), 'R.Tensor((n, m, 5, 6, 16), "float32")'),
    (
        call("nn.conv2d_transpose", t(n, 3, 4, 5), t(3, 2, 3, 3), strides=2, padding=1, output_padding=1),
        'R.Tensor((n, 2, 8, 10), "float32")',
    ),
    (
        call("nn.max_pool2d", t(n, 3, h, 7), pool_size=2, strides=2, ceil_mode=True),
        'R.Tensor((n, 3, (h + 1) // 2, 4), "float32")',
    ),
    (
        call("nn.adaptive_avg_pool2d", t(n, h, w, 3), output_size=[1, 2], layout="NHWC"),
        'R.Tensor((n, 1, 2, 3), "float32")',
    ),
    (call("nn.pad", t(n, 4), pad_width=[1, 2, 0, 3]), 'R.Tensor((n + 3, 7), "float32")'),
    (call("nn.batch_flatten", t(n, 2, m)), 'R.Tensor((n, 2 * m), "float32")'),
    (call("nn.pixel_shuffle", t(n, 8, h, 3), 2), 'R.Tensor((n, 2, 2 * h, 6), "float32")'),
    (call("nn.attention", t(n, m, 2, 4), t(n, k, 2, 4), t(n, k, 2, 8)), 'R.Tensor((n, m, 2, 8), "float32")'),
    (call("nn.attention", t(n, m, 6, 4), t(n, k, 2, 4), t(n, k, 3, 8)), 'R.Tensor((n, m, 6, 8), "float32")'),
    (call("nn.nll_loss", t(n, 3, m), t(n, m, dtype="int64")), 'R.Tensor((), "float32")'),
    (call("nn.nll_loss", t(n, 3, m), t(n, m, dtype="int64"), reduction="none"), 'R.Tensor((n, m), "float32")'),
]


@pytest.mark.parametrize(("expr", "text"), KNOWN, ids=names(KNOWN))
def test_the_type_is_known_as_far_as_the_operands_are(expr: Call, text: str) -> None:
    """D4."""
    assert typed(expr) == (text, [])


def test_tuples_have_a_type_for_each_part() -> None:
    triple = infer_type(call("nn.batch_norm", t(n, 3, m), *(t(3) for _ in range(4)), axis=1))
    assert isinstance(triple, TupleType)
    assert [type_text(part) for part in triple.fields] == [
        'R.Tensor((n, 3, m), "float32")',
        'R.Tensor((3,), "float32")',
        'R.Tensor((3,), "float32")',
    ]
    assert isinstance(infer_type(call("nn.dropout", t(n, 3))), TupleType)


LEFT_OPEN: list[tuple[Call, str]] = [
    (call("matmul", t(n, 4), t(m, 5)), "4 == m"),
    (call("linear", t(n, k), t(3, m)), "k == m"),
    (call("einsum", (t(n, m),), subscripts="ii"), "n == m"),
    (call("nn.layer_norm", t(n, m), t(4), t(4), axes=-1, scale=True), "m == 4"),
    (call("nn.conv1d", t(n, k, 4), t(8, 3, 1)), "k == 3"),
    (call("nn.attention", t(n, 1, 2, 4), t(m, 1, 2, 4), t(n, 1, 2, 4)), "n == m"),
]


@pytest.mark.parametrize(("expr", "check"), LEFT_OPEN, ids=names(LEFT_OPEN))
def test_an_equality_that_is_not_proved_is_left_for_run_time(expr: Call, check: str) -> None:
    """D5: no fact is lost in silence."""
    _, checks = typed(expr)
    assert check in checks


REFUSED: list[tuple[Call, type[WeftError], str]] = [
    (call("matmul", t(n, 4), t(5, m)), ShapeError, "W201"),
    (call("matmul", t(), t(5, m)), ShapeError, "W202"),
    (call("matmul", t(2, 3, 4), t(3, 4, 5)), ShapeError, "W201"),
    (call("matmul", t(3, 4), t(4, 5, dtype="float16")), DTypeError, "W320"),
    (call("matmul", t(3, 4, dtype="bool"), t(4, 5, dtype="bool")), DTypeError, "W321"),
    (call("linear", t(3, 4), t(5, 4), t(4)), ShapeError, "W201"),
    (call("linear", t(3, 4), t(4)), ShapeError, "W202"),
    (call("einsum", (t(3, 4),), subscripts="ij,jk->ik"), ShapeError, "W205"),
    (call("einsum", (t(3, 4),), subscripts="ijk->i"), ShapeError, "W205"),
    (call("einsum", (t(3, 4),), subscripts="ij->k"), ShapeError, "W205"),
    (call("einsum", (t(3, 4),), subscripts="ij->ii"), ShapeError, "W205"),
    (call("einsum", (t(3, 4),), subscripts="i1->i"), ShapeError, "W205"),
    (call("einsum", (t(3, 4), t(5, 6)), subscripts="ij,jk->ik"), ShapeError, "W201"),
    (call("sum", t(3, 4), axis=2), ShapeError, "W203"),
    (call("sum", t(3, 4), axis=[0, -2]), ShapeError, "W204"),
    (call("mean", t(3, 4, dtype="bool")), DTypeError, "W321"),
    (call("max", t(3, 0), axis=1), ShapeError, "W226"),
    (call("cumsum", t(3, 4), axis=2), ShapeError, "W203"),
    (call("argmax", t(3, 4), axis=-3), ShapeError, "W203"),
    (call("where", t(3), t(3), t(3)), DTypeError, "W321"),
    (call("nn.softmax", t(3, dtype="int32")), DTypeError, "W321"),
    (call("nn.softmax", t(3), axis=1), ShapeError, "W203"),
    (call("nn.layer_norm", t(n, 4), t(5), t(4), axes=-1), ShapeError, "W201"),
    (call("nn.layer_norm", t(n, 4), t(4, 1), t(4), axes=-1), ShapeError, "W202"),
    (call("nn.group_norm", t(n, 4, 3), t(4), t(4), num_groups=3, channel_axis=1, axes=[2]), ShapeError, "W201"),
    (call("nn.group_norm", t(n, 4, 3), t(4), t(4), num_groups=2, channel_axis=1, axes=[1]), ShapeError, "W204"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 4, 3, 3)), ShapeError, "W201"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3)), ShapeError, "W202"),
    (call("nn.conv2d", t(n, 3, 2, 7), t(8, 3, 3, 3)), ShapeError, "W227"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3, 3), strides=0), ShapeError, "W205"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3, 3), strides=[1, 2, 3]), ShapeError, "W205"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3, 3), padding=[1, 2, 3]), ShapeError, "W205"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3, 3), padding=-1), ShapeError, "W205"),
    (call("nn.conv2d", t(n, 4, 7, 7), t(3, 2, 3, 3), groups=2), ShapeError, "W201"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(8, 3, 3, 3), data_layout="NCWX"), ShapeError, "W228"),
    (call("nn.conv2d", t(n, 3, 7, 7, 2), t(8, 8, 3, 3), data_layout="NCHW4c"), ShapeError, "W201"),
    (call("nn.conv2d", t(n, 3, 7, 7), t(6, 3, 3, 3), out_layout="NCHW4c"), ShapeError, "W201"),
    (call("nn.conv2d", t(n, 3, 7, 7, 4), t(8, 8, 3, 3), data_layout="NCHW4c"), ShapeError, "W201"),  # 12 channels
    *(
        (call("nn.conv2d", t(n, 2, 7, 7, 4), t(8, 8, 3, 3), data_layout=layout), ShapeError, "W228")
        for layout in ("NCHWc", "NCHW0c", "NCHW4c4c", "NCHW4d", "NCHW4h", "4cNHW", "NCHW4", "nchw4c", "")
    ),
    (call("nn.max_pool2d", t(n, 3, 7, 7), pool_size=[2, 0]), ShapeError, "W205"),
    (call("nn.avg_pool2d", t(n, 3, 7, 7, dtype="bool"), pool_size=2), DTypeError, "W321"),
    (call("nn.adaptive_avg_pool1d", t(n, 3, 7), output_size=[1, 1]), ShapeError, "W205"),
    (call("nn.max_pool2d_with_indices", t(n, 3, 7), pool_size=2), ShapeError, "W202"),
    (call("nn.max_pool2d_with_indices", t(n, 3, 7, 7), pool_size=[2, 0]), ShapeError, "W205"),
    (call("nn.max_pool1d_with_indices", t(n, 3, 7), pool_size=8), ShapeError, "W227"),
    (call("nn.max_pool3d_with_indices", t(n, 3, 7, 7, 7, dtype="bool"), pool_size=2), DTypeError, "W321"),
    (call("nn.fractional_max_pool2d", t(n, 3, 7, 7), t(n, 3, 3), 2, 2), ShapeError, "W201"),
    (call("nn.fractional_max_pool2d", t(n, 3, 7, 7), t(n, 3, 2, dtype="float64"), 2, 2), DTypeError, "W320"),
    (call("nn.fractional_max_pool2d", t(n, 3, 7, 7), t(n, 3, 2, dtype="int32"), 2, 2), DTypeError, "W321"),
    (call("nn.fractional_max_pool2d", t(n, 3, 7, 7), t(n, 3, 2), 2, 7), ShapeError, "W227"),
    (call("nn.fractional_max_pool3d", t(n, 3, 7, 7, 7), t(n, 3, 3), [2, 2], 2), ShapeError, "W205"),
    (call("nn.ctc_loss", t(5, n, 4), t(n, 2, dtype="int64"), t(3), t(n, dtype="int64")), DTypeError, "W321"),
    (call("nn.ctc_loss", t(5, 4, 4), t(3, 2, dtype="int64"), *(t(3, dtype="int64"),) * 2), ShapeError, "W201"),
    (call("nn.ctc_loss", t(5, 4), t(3, 2, dtype="int64"), *(t(3, dtype="int64"),) * 2), ShapeError, "W202"),
    (call("nn.ctc_loss", t(5, n, 4), t(6, dtype="int64"), *(t(n, dtype="int64"),) * 2, blank=4), ShapeError, "W205"),
    (
        call("nn.ctc_loss", t(5, n, 4), t(6, dtype="int64"), *(t(n, dtype="int64"),) * 2, reduction="max"),
        ShapeError,
        "W205",
    ),
    (call("nn.deformable_conv2d", t(n, 4, 5, 5), t(n, 18, 3, 3), t(2, 3, 3, 3)), ShapeError, "W201"),
    (call("nn.deformable_conv2d", t(n, 4, 5, 5), t(n, 9, 3, 3), t(2, 4, 3, 3)), ShapeError, "W201"),
    (call("nn.deformable_conv2d", t(n, 4, 5, 5), t(n, 18, 3), t(2, 4, 3, 3)), ShapeError, "W202"),
    (call("nn.deformable_conv2d", t(n, 4, 5, 5), t(n, 18, 3, 3), t(2, 4, 3, 3), groups=0), ShapeError, "W205"),
    (call("nn.deformable_conv2d", t(n, 4, 2, 5), t(n, 18, 3, 3), t(2, 4, 3, 3)), ShapeError, "W227"),
    (
        call("nn.deformable_conv2d", t(n, 4, 5, 5), t(n, 18, 3, 3, dtype="float16"), t(2, 4, 3, 3)),
        DTypeError,
        "W320",
    ),
    (call("nn.fractional_max_pool3d", unknown(), t(n, 3, 3), 2, 2), ShapeError, "W202"),
    (call("nn.pad", t(3, 4), pad_width=[1, 1]), ShapeError, "W205"),
    (call("nn.pad", t(3), pad_width=[1, 1], pad_mode="mirror"), ShapeError, "W205"),
    (call("nn.pad", t(3), pad_width=[3, 0], pad_mode="reflect"), ShapeError, "W227"),
    (call("nn.attention", t(1, 2, 3, 4), t(1, 2, 3, 5), t(1, 2, 3, 4)), ShapeError, "W201"),
    (call("nn.attention", t(1, 2, 6, 4), t(1, 2, 4, 4), t(1, 2, 6, 4)), ShapeError, "W201"),
    (call("nn.attention", t(1, 2, 6, 4), t(1, 2, 2, 4), t(1, 2, 5, 4)), ShapeError, "W201"),
    (call("nn.attention", t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), causal_mask="Middle"), ShapeError, "W205"),
    (call("nn.attention_bias", t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 2, 2)), ShapeError, "W201"),
    (call("nn.nll_loss", t(n, 3), t(n)), DTypeError, "W321"),
    (call("nn.nll_loss", t(n, 3), t(n, 3, dtype="int64")), ShapeError, "W202"),
    (call("nn.nll_loss", t(n, 3), t(n, dtype="int64"), t(4)), ShapeError, "W201"),
    (call("nn.nll_loss", t(n, 3), t(n, dtype="int64"), reduction="max"), ShapeError, "W205"),
    (call("nn.pixel_shuffle", t(1, 3, 4, 4), 2), ShapeError, "W201"),
]


@pytest.mark.parametrize(("expr", "kind", "code"), REFUSED, ids=names(REFUSED))
def test_what_does_not_fit_is_refused_with_a_code(expr: Call, kind: type[WeftError], code: str) -> None:
    with pytest.raises(kind) as caught:
        infer_type(expr)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"{code}: R.")


def test_a_mismatch_of_a_product_shows_both_shapes() -> None:
    with pytest.raises(ShapeError) as caught:
        infer_type(call("matmul", t(n, 4), t(5, m)))
    assert caught.value.message == "R.matmul: contracted sizes: 4 is not 5"
    assert caught.value.notes == ("the shapes are (n, 4) and (5, m)",)
