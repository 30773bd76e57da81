"""Operators of onnxruntime (domain com.microsoft) that exported and optimised models use: fused activations, products
and norms, embeddings, and quantised integers. Attention has a file of its own.

Source: the descriptions of onnxruntime's contrib operators; its kernels for processors are what the tests compare with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import array_dtype
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.operators import indexing, networks, quantization, shapes
from weft.frontend.onnx.table import row
from weft.ir.graph import Constant, Expr, TupleGetItem
from weft.script import relax as R

_MICROSOFT = "com.microsoft"


def microsoft(operator: str, function: Any) -> None:
    """A row of the domain."""
    row(operator, function, domain=_MICROSOFT)


def _added(*values: Expr | None) -> Expr:
    """The sum of the values that are given."""
    given = [value for value in values if value is not None]
    total = given[0]
    for value in given[1:]:
        total = R.add(total, value)
    return total


# Activations ----------------------------------------------------------------------------------------------------------

_ACTIVATIONS = {
    "Relu": lambda x: R.nn.relu(x),
    "Tanh": lambda x: R.tanh(x),
    "Sigmoid": lambda x: R.sigmoid(x),
    "LeakyRelu": lambda x, alpha: R.where(R.less(x, 0.0), R.multiply(x, float(alpha)), x),
    "Clip": lambda x, low, high: R.clip(x, float(low), float(high)),
    "HardSigmoid": lambda x, alpha, beta: R.clip(R.add(R.multiply(x, float(alpha)), float(beta)), 0.0, 1.0),
}


def activated(n: OnnxNode, x: Expr, parameters: Any = ()) -> Expr:
    """A value after the activation that the node's attribute names, if it names one."""
    name = n.attr("activation", "")
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise Unsupported(f"the activation {name}")
    return _ACTIVATIONS[name](n.emit(x), *parameters)


microsoft("Gelu", lambda n, x: R.nn.gelu(x))
microsoft("FastGelu", lambda n, x, bias: R.nn.gelu_tanh(_added(x, bias)))
microsoft("BiasGelu", lambda n, x, bias: R.nn.gelu(R.add(x, bias)))
microsoft("QuickGelu", lambda n, x: R.multiply(x, R.sigmoid(R.multiply(x, float(n.attr("alpha", 1.702))))))
microsoft("BiasAdd", lambda n, x, bias, skip: R.add(R.add(x, bias), skip))

# Products and convolutions --------------------------------------------------------------------------------------------


def _turned(n: OnnxNode, x: Expr, name: str) -> Expr:
    """A matrix turned as the attributes say: its first axis after the batch axes, its last two axes exchanged."""
    order = list(range(n.rank(x)))
    if n.attr(f"transBatch{name}", 0):
        order = [*order[1:-1], 0, order[-1]]
    if n.attr(f"trans{name}", 0) and len(order) > 1:
        order[-1], order[-2] = order[-2], order[-1]
    return x if order == sorted(order) else R.permute_dims(x, order)


def fused_matmul(n: OnnxNode, a: Expr, b: Expr) -> Expr:
    """alpha times the product of matrices that may be turned."""
    product, alpha = R.matmul(_turned(n, a, "A"), _turned(n, b, "B")), float(n.attr("alpha", 1.0))
    return product if alpha == 1.0 else R.multiply(product, alpha)


def fused_gemm(n: OnnxNode, a: Expr, b: Expr, c: Expr | None) -> Expr:
    """alpha A B + beta C, and an activation."""
    product, beta = fused_matmul(n, a, b), float(n.attr("beta", 1.0))
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    parameters = [n.attr(name) for name in names if n.given(name)]
    result = product if c is None else R.add(product, c if beta == 1.0 else R.multiply(c, beta))
    return activated(n, result, parameters)


def fused_conv(n: OnnxNode, x: Expr, w: Expr, bias: Expr | None, more: Expr | None) -> Expr:
    """A convolution, what is added to it, and an activation."""
    return activated(n, _added(networks.conv(n, x, w, bias), more), n.attr("activation_params", []))


microsoft("FusedMatMul", fused_matmul)
microsoft("TransposeMatMul", fused_matmul)
microsoft("FusedGemm", fused_gemm)
microsoft("FusedConv", fused_conv)

# Norms and embeddings -------------------------------------------------------------------------------------------------


def _norm(n: OnnxNode, x: Expr, scale: Expr, bias: Expr | None, epsilon: float) -> Expr:
    beta = R.zeros_like(scale) if bias is None else bias
    return R.nn.layer_norm(x, scale, beta, (n.rank(x) - 1,), epsilon)


def _rms(n: OnnxNode, x: Expr, scale: Expr, epsilon: float) -> Expr:
    scale = scale if n.dtype(scale) == n.dtype(x) else R.astype(scale, n.dtype(x))
    return R.nn.rms_norm(x, scale, (n.rank(x) - 1,), epsilon)


def _skipped(n: OnnxNode, x: Expr, skip: Expr, bias: Expr | None) -> Expr:
    """The sum that is normalised; a skip of one batch is of all."""
    return n.emit(_added(x, skip, bias), "sum")


def skip_layer_norm(n: OnnxNode, x: Expr, skip: Expr, scale: Expr, beta: Expr | None, bias: Expr | None) -> Any:
    """The norm of a sum, and the sum."""
    if n.output_wanted(1) or n.output_wanted(2):
        raise Unsupported("the statistics of the norm")
    total = _skipped(n, x, skip, bias)
    y = _norm(n, total, scale, beta, float(n.attr("epsilon", 1e-12)))
    return (y, None, None, total)[: len(n.proto.output)] if n.output_wanted(3) else y


def skip_rms_norm(n: OnnxNode, x: Expr, skip: Expr, scale: Expr, bias: Expr | None) -> Any:
    """The root mean square norm of a sum, and the sum."""
    if n.output_wanted(1) or n.output_wanted(2):
        raise Unsupported("the statistics of the norm")
    total = _skipped(n, x, skip, bias)
    y = _rms(n, total, scale, float(n.attr("epsilon", 1e-12)))
    return (y, None, None, total)[: len(n.proto.output)] if n.output_wanted(3) else y


def simplified_norm(n: OnnxNode, x: Expr, scale: Expr) -> Expr:
    """The root mean square norm of the last axis."""
    if n.output_wanted(1) or int(n.attr("axis", -1)) not in (-1, n.rank(x) - 1):
        raise Unsupported("the statistics of the norm, or more than one axis")
    return _rms(n, x, scale, float(n.attr("epsilon", 1e-5)))


def embeddings(
    n: OnnxNode,
    ids: Expr,
    segments: Expr | None,
    words: Expr,
    positions: Expr,
    kinds: Expr | None,
    scale: Expr,
    beta: Expr,
    mask: Expr | None,
    places: Expr | None,
) -> Any:
    """The norm of the sum of the embeddings of words, positions and segments, and how many words each row has."""
    b, s = n.shape(ids)
    place = (
        R.take(positions, places, 0)
        if places is not None
        else R.expand_dims(R.strided_slice(positions, [0], [0], [s], assume_inbound=True), [0])
    )
    parts = [R.take(words, ids, 0), place]
    if segments is not None and kinds is not None:
        parts.append(R.take(kinds, segments, 0))
    total = n.emit(_added(*parts), "embedding")
    y = _norm(n, total, scale, beta, float(n.attr("epsilon", 1e-12)))
    counts = R.zeros((b,), "int32") if mask is None else R.astype(R.sum(R.astype(mask, "int32"), 1), "int32")
    return (y, counts, total)[: len(n.proto.output)]


def image_group_norm(n: OnnxNode, x: Expr, scale: Expr, bias: Expr) -> Expr:
    """Groups of channels, which lie last, normalised together; 1 as the activation is silu."""
    if not n.attr("channels_last", 1):
        raise Unsupported("channels that lie first")
    rank = n.rank(x)
    first = R.permute_dims(x, (0, rank - 1, *range(1, rank - 1)))
    y = R.nn.group_norm(
        n.emit(first), scale, bias, int(n.attr("groups")), 1, tuple(range(2, rank)), float(n.attr("epsilon", 1e-5))
    )
    last = R.permute_dims(y, (0, *range(2, rank), 1))
    return R.nn.silu(last) if n.attr("activation", 0) else last


microsoft("SkipLayerNormalization", skip_layer_norm)
microsoft("SkipSimplifiedLayerNormalization", skip_rms_norm)
microsoft("EmbedLayerNormalization", embeddings)
microsoft("GroupNorm", image_group_norm)
for _domain in ("", _MICROSOFT):  # onnxruntime writes it into both
    row("SimplifiedLayerNormalization", simplified_norm, domain=_domain)

# Weights of few bits --------------------------------------------------------------------------------------------------


def _unpacked(n: OnnxNode, packed: Expr, width: int) -> Expr:
    """The numbers of a row of bytes, the lowest bits first: the last axis grows."""
    *front, last = n.dims(packed, range(n.rank(packed)))
    packed = n.emit(packed, "packed")
    mask = Constant(np.asarray((1 << width) - 1, "uint8"))
    parts = [
        R.bitwise_and(R.right_shift(packed, Constant(np.asarray(shift, "uint8"))), mask) for shift in range(0, 8, width)
    ]
    return R.reshape(R.stack(parts, n.rank(packed)), (*front, last * (8 // width)))


def _codes(n: OnnxNode, index: int, width: int, shape: tuple[int, int], kept: int) -> Expr:
    """An input of packed numbers as a matrix of which so many columns are kept: a constant, or bytes of the run."""
    known = n.known(index)
    if known is not None:
        parts = np.right_shift(known[..., None], np.arange(0, 8, width, dtype="uint8")) & ((1 << width) - 1)
        return Constant(parts.reshape(shape[0], -1)[:, :kept].astype(array_dtype(f"uint{width}")))
    packed = n.need(index)
    rows = R.reshape(packed, (shape[0], shape[1] * width // 8))
    unpacked = rows if width == 8 else _unpacked(n, n.emit(rows), width)
    return unpacked if shape[1] == kept else R.strided_slice(unpacked, [1], [0], [kept], assume_inbound=True)


def _matrix_of(n: OnnxNode, index: int, shape: tuple[int, int]) -> Expr:
    known = n.known(index)
    return Constant(known.reshape(shape)) if known is not None else R.reshape(n.need(index), shape)


def matmul_of_bits(
    n: OnnxNode, a: Expr, b: Expr, scales: Expr, zeros: Expr | None, groups: Expr | None, bias: Expr | None
) -> Expr:
    """A product with weights of 2, 4 or 8 bits, in blocks along k that have a scale and a zero point each.

    Accuracy level 4 lets activations be quantized to int8 by blocks, as onnxruntime does.
    """
    k, columns, width, block = (int(n.attr(name, 4)) for name in ("K", "N", "bits", "block_size"))
    if width not in (2, 4, 8) or groups is not None:
        raise Unsupported(f"weights of {width} bits, or blocks in another order")
    blocks, dtype, per = -(-k // block), n.dtype(a), 8 // width
    if zeros is None:
        zero: Any = 1 << (width - 1)
    elif n.dtype(zeros) == "uint8":
        zero = _codes(n, 3, width, (columns, -(-blocks // per) * per), blocks)
    else:
        zero = _matrix_of(n, 3, (columns, blocks))
    codes = _codes(n, 1, width, (columns, blocks * block), k)
    scale = _matrix_of(n, 2, (columns, blocks))
    weights = R.dequantize(codes, scale, zero, axis=1, group_size=block, out_dtype=dtype)
    if int(n.attr("accuracy_level", 0)) == 4 and dtype == "float32" and k % block == 0:
        short = n.emit(R.quantize_dynamic(a, group_size=block), "quantized")
        a = R.dequantize(TupleGetItem(short, 0), TupleGetItem(short, 1), 0, group_size=block)
    return _added(R.matmul(a, R.permute_dims(weights, (1, 0))), bias)


microsoft("MatMulNBits", matmul_of_bits)

# Quantised integers ---------------------------------------------------------------------------------------------------


def _real(n: OnnxNode, x: Expr, scale: Expr, zero: Expr | None) -> Expr:
    """(x - zero point) * scale."""
    wide = R.astype(x, "float32")
    if zero is not None:
        wide = R.subtract(wide, R.astype(_scalar(n, zero), "float32"))
    return R.multiply(wide, _scalar(n, scale))


def _scalar(n: OnnxNode, x: Expr) -> Expr:
    """A scale of one element as a scalar; one for each column as it is."""
    return R.reshape(x, ()) if n.shape(x) == (1,) else x


def _whole(n: OnnxNode, x: Expr, scale: Expr, zero: Expr | None, like: Expr) -> Expr:
    """round(x / scale) + zero point within the values of a dtype."""
    quotient = R.round(R.divide(x, _scalar(n, scale)))
    return quantization.saturated(n, quotient, None if zero is None else _scalar(n, zero), n.dtype(like))


def quantized_binary(operator: Any) -> Any:
    """An operator of two quantised tensors."""

    def made(
        n: OnnxNode,
        a: Expr,
        a_scale: Expr,
        a_zero: Expr | None,
        b: Expr,
        b_scale: Expr,
        b_zero: Expr | None,
        y_scale: Expr,
        y_zero: Expr | None,
    ) -> Expr:
        result = operator(_real(n, a, a_scale, a_zero), _real(n, b, b_scale, b_zero))
        return _whole(n, result, y_scale, y_zero, a)

    return made


def quantized_unary(operator: Any) -> Any:
    """An operator of one quantised tensor: `operator(node, real values)`."""

    def made(n: OnnxNode, x: Expr, scale: Expr, zero: Expr | None, y_scale: Expr, y_zero: Expr | None) -> Expr:
        return _whole(n, operator(n, n.emit(_real(n, x, scale, zero), "real")), y_scale, y_zero, x)

    return made


def _channels_first(n: OnnxNode, x: Expr, operator: Any) -> Expr:
    """An operator on images whose channels may lie last."""
    if not n.attr("channels_last", 0):
        return operator(n, x)
    rank = n.rank(x)
    first = n.emit(R.permute_dims(x, (0, rank - 1, *range(1, rank - 1))), "first")
    return R.permute_dims(operator(n, first), (0, *range(2, rank), 1))


def quantized_concat(n: OnnxNode, scale: Expr, zero: Expr, *parts: Expr) -> Expr:
    """Quantised tensors one after another, with one scale."""
    real = [_real(n, *parts[at : at + 3]) for at in range(0, len(parts), 3)]
    return _whole(n, R.concat(real, int(n.attr("axis")) % n.rank(parts[0])), scale, zero, parts[0])


def quantized_where(
    n: OnnxNode,
    c: Expr,
    a: Expr,
    a_scale: Expr,
    a_zero: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero: Expr,
    y_scale: Expr,
    y_zero: Expr,
) -> Expr:
    """One quantised value or another."""
    chosen = R.where(c, _real(n, a, a_scale, a_zero), _real(n, b, b_scale, b_zero))
    return _whole(n, chosen, y_scale, y_zero, a)


def quantized_gemm(
    n: OnnxNode,
    a: Expr,
    a_scale: Expr,
    a_zero: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero: Expr,
    c: Expr | None,
    y_scale: Expr | None,
    y_zero: Expr | None,
) -> Expr:
    """alpha A B + C of quantised matrices, where C is in steps of alpha times both scales."""
    left, right = (R.astype(v, "int32") for v in (a, b))
    left = R.subtract(left, R.astype(_scalar(n, a_zero), "int32"))
    right = R.subtract(right, R.astype(_columns(n, b_zero), "int32"))
    product = R.matmul(_turned(n, left, "A"), _turned(n, right, "B"))
    product = product if c is None else R.add(product, c)
    steps = R.multiply(R.multiply(_scalar(n, a_scale), _scalar(n, b_scale)), float(n.attr("alpha", 1.0)))
    real = R.multiply(R.astype(product, "float32"), steps)
    return real if y_scale is None else _whole(n, real, y_scale, y_zero, y_zero if y_zero is not None else a)


def _columns(n: OnnxNode, zero: Expr) -> Expr:
    """Zero points of the columns of a matrix that is turned lie along its rows."""
    if n.rank(zero) and n.shape(zero) != (1,) and n.attr("transB", 0):
        return R.expand_dims(zero, [1])
    return _scalar(n, zero)


def integer_to_float(
    n: OnnxNode,
    a: Expr,
    b: Expr,
    a_scale: Expr,
    b_scale: Expr,
    a_zero: Expr | None,
    b_zero: Expr | None,
    bias: Expr | None,
) -> Expr:
    """The product of quantised matrices as real numbers."""

    def whole(v: Expr, zero: Expr | None) -> Expr:
        wide = R.astype(v, "int32")
        return wide if zero is None else R.subtract(wide, R.astype(_scalar(n, zero), "int32"))

    product = R.astype(R.matmul(whole(a, a_zero), whole(b, b_zero)), "float32")
    return _added(R.multiply(product, R.multiply(_scalar(n, a_scale), _scalar(n, b_scale))), bias)


def dynamic_matmul(n: OnnxNode, a: Expr, b: Expr, b_scale: Expr, b_zero: Expr | None, bias: Expr | None) -> Expr:
    """A product with quantised weights; the other matrix is quantised first."""
    y, scale, zero = (n.emit(part) for part in quantization.dynamic_quantize(n, a))
    return integer_to_float(n, y, b, scale, b_scale, zero, b_zero, bias)


def quantized_softmax(n: OnnxNode, x: Expr) -> Expr:
    """The softmax of one axis, before version 13 of all axes from one on."""
    rank = n.rank(x)
    axis = int(n.attr("axis", -1)) % rank
    if int(n.attr("opset", 13)) < 13 and axis != rank - 1:
        raise Unsupported("several axes together")
    return R.nn.softmax(x, axis)


microsoft("QLinearAdd", quantized_binary(R.add))
microsoft("QLinearMul", quantized_binary(R.multiply))
microsoft("QLinearSigmoid", quantized_unary(lambda n, x: R.sigmoid(x)))
microsoft(
    "QLinearLeakyRelu",
    quantized_unary(lambda n, x: R.where(R.less(x, 0.0), R.multiply(x, float(n.attr("alpha", 0.01))), x)),
)
microsoft("QLinearSoftmax", quantized_unary(quantized_softmax))
microsoft("QLinearGlobalAveragePool", quantized_unary(lambda n, x: _channels_first(n, x, networks.over_space(R.mean))))
microsoft("QLinearAveragePool", quantized_unary(lambda n, x: _channels_first(n, x, networks.average_pool)))
microsoft(
    "QLinearReduceMean",
    quantized_unary(lambda n, x: R.mean(x, tuple(n.attr("axes") or range(n.rank(x))), bool(n.attr("keepdims", 1)))),
)
microsoft("QLinearConcat", quantized_concat)
microsoft("QLinearWhere", quantized_where)
microsoft("QGemm", quantized_gemm)
microsoft("MatMulIntegerToFloat", integer_to_float)
microsoft("DynamicQuantizeMatMul", dynamic_matmul)

# Operators that ONNX has as well --------------------------------------------------------------------------------------

microsoft("QuantizeLinear", quantization.quantize)
microsoft("DequantizeLinear", quantization.dequantize)
microsoft("QLinearConv", quantization.quantized_conv)
microsoft("Trilu", shapes.trilu)
microsoft("Pad", shapes.pad)
microsoft("GatherND", lambda n, x, indices: R.gather_nd(x, R.astype(indices, "int64"), 0))
microsoft("ExpandDims", lambda n, x: R.expand_dims(x, [int(n.constant(1).item()) % (n.rank(x) + 1)]))
microsoft("GridSample", networks.grid_sample)
microsoft("Unique", indexing.unique)
