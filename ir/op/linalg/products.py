"""Products of matrices and general contractions.

Operands have one dtype. The result has `out_dtype`, by default that dtype; sums of types narrower than float32 run in
float32. An equality of sizes that is not proved is a check of the kernel (its buffers share the size).
Errors: DTypeError W320, W321; ShapeError W201 contracted sizes that differ, W202 wrong rank, W205 wrong subscripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.dtypes import is_complex, part
from weft.errors import ShapeError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.graph import Expr
from weft.ir.op.common import (
    Dims,
    Kernel,
    broadcast,
    broadcast_dim,
    converted,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_parts,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    tensors,
    typed,
)
from weft.ir.op.composite.declaring import call
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.precision import always, follow
from weft.ir.op.reductions.reduction import accumulator, sizes_of
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType
from weft.support.records import dataclass

__all__ = ["contraction"]


def wide(array: Any) -> Any:
    """An array for a reference computation: float16 as float32."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def contraction(kernel: Kernel, shape: Dims, formula: Any, axes: Any, name: str) -> te.Tensor:
    """The sum of products with the kernel's result dtype, accumulated in a type that is wide enough.

    `formula(dtype)` gives the function of the indices for an accumulator dtype.
    """
    dtype = accumulator(kernel.dtype)
    body = formula(dtype)
    out = te.compute(shape, lambda *i: te.sum(body(*i), axis=axes), name)
    return out if dtype == kernel.dtype else te.compute(shape, lambda *i: te.cast(kernel.dtype, out(*i)), "rounded")


# ---------------------------------------------------------------------------------------------------------------------
# matmul
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Matmul:
    """The sizes of a product: batch, rows (None: a vector on the left), columns (None: on the right), contracted."""

    batch: Dims
    rows: Dim | None
    columns: Dim | None
    inner: Dim

    @property
    def result(self) -> Dims:
        return (*self.batch, *(size for size in (self.rows, self.columns) if size is not None))


def _matmul_sizes(args: Arguments, a: Dims, b: Dims, context: TypeContext) -> _Matmul:
    left, right = a[-1], b[-2:][0]
    try:
        context.require_equal(left, right, f"{args.name}: contracted sizes", args.span)
    except ShapeError as error:
        error.notes = (*error.notes, f"the shapes are ({', '.join(map(str, a))}) and ({', '.join(map(str, b))})")
        raise
    batch = dims_of(broadcast(args, context, TensorType(a[:-2]), TensorType(b[:-2]))) or ()
    inner = left if isinstance(left, int) else right
    return _Matmul(batch, a[-2] if len(a) > 1 else None, b[-1] if len(b) > 1 else None, inner)


def _batch_required(own: Dims, batch: Dims) -> Dims:
    """What the kernel requires of an operand's batch sizes: 1 where it is 1, else the result's."""
    return tuple(1 if size == 1 else out for size, out in zip(own, batch[len(batch) - len(own) :], strict=True))


def _batch_indices(own: Dims, indices: Sequence[PrimExpr], batch: Dims) -> list[Any]:
    first = len(batch) - len(own)
    return [0 if size == 1 else index for size, index in zip(own, indices[first : len(batch)], strict=True)]


@kernel_lowering
def _lower_matmul(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    if is_complex(kernel.dtype):
        return None
    a, b = sizes_of(args, "x1", context), sizes_of(args, "x2", context)
    sizes = _matmul_sizes(args, a, b, context)
    a_batch, b_batch = _batch_required(a[:-2], sizes.batch), _batch_required(b[:-2], sizes.batch)
    x1 = kernel.input("x1", (*a_batch, *(() if sizes.rows is None else (sizes.rows,)), sizes.inner))
    x2 = kernel.input("x2", (*b_batch, sizes.inner, *(() if sizes.columns is None else (sizes.columns,))))
    k = te.reduce_axis((0, sizes.inner), name="k")

    def formula(dtype: str) -> Any:
        def body(*indices: PrimExpr) -> PrimExpr:
            row = [] if sizes.rows is None else [indices[len(sizes.batch)]]
            column = [] if sizes.columns is None else [indices[-1]]
            left = x1(*_batch_indices(a_batch, indices, sizes.batch), *row, k)
            right = x2(*_batch_indices(b_batch, indices, sizes.batch), k, *column)
            return te.cast(dtype, left) * te.cast(dtype, right)

        return body

    return kernel.finish(contraction(kernel, sizes.result, formula, k, "matmul"))


def _complex_matmul(args: Arguments, builder: Any) -> Expr:
    """One real product, of twice as many columns and rows: the numbers of the left operand as they lie in memory, each
    of the right one with itself times i below it, and the parts of the result side by side.

        [a b] [c  d]  =  [a c - b d,  a d + b c]
              [-d c]
    """
    context, out_dtype = builder.types, args.out_dtype
    a, b = (tensor(args, name, context) for name in ("x1", "x2"))
    own, other = (tuple(dims_of(ty) or ()) for ty in (a, b))
    dtype = str(out_dtype or a.dtype)
    if not own or not other or not is_complex(dtype):
        return args.call  # sizes are not known, and the call stays as it is
    sizes = _matmul_sizes(args, own, other, context)
    left, right = (x if ty.dtype == dtype else call("astype", x, dtype) for x, ty in ((args.x1, a), (args.x2, b)))
    rows = 1 if sizes.rows is None else sizes.rows
    columns = 1 if sizes.columns is None else sizes.columns
    left = call("memory.view", left, (*own[:-2], rows, 2 * own[-1]), part(dtype))
    turned = call("complex", call("negative", call("imag", right)), call("real", right))
    both = call("stack", [right, turned], len(other[:-2]) + 1)
    both = call("memory.view", both, (*other[:-2], 2 * other[-2:][0], 2 * columns), part(dtype))
    return call("memory.view", call("matmul", left, both), sizes.result, dtype)


def _matmul_reference(x1: Any, x2: Any, *, out_dtype: str | None) -> Any:
    target = np.dtype(out_dtype or x1.dtype)
    computed = np.dtype("float32") if target == np.float16 else target
    return np.asarray(np.matmul(converted(x1, computed), converted(x2, computed))).astype(target)


@register_op(
    "matmul",
    [Param("x1"), Param("x2"), Param("out_dtype", "dtype", None)],
    lowering=_lower_matmul,
    decompose=_complex_matmul,
    numpy=_matmul_reference,
    pure=True,
    family="linear_algebra",
    examples=(
        example(f32(3, 4), f32(4, 5)),
        example(f32("n", 4), f32(4, "m")),
        example(f32(4), f32(4)),
        example(f32(4), f32("b", 4, 3)),
        example(f32("b", 3, 4), f32(4)),
        example(f32("b", 1, 3, "k"), f32(2, "k", 5)),
        example(f32("n", "k"), f32("l", 2)),
        example(typed("float16", 3, 80), typed("float16", 80, 2)),
        example(typed("int8", 3, 4), typed("int8", 4, 2), out_dtype="int32"),
        example(typed("float16", 3, 4), typed("float16", 4, 2), out_dtype="float32"),
        example(typed("complex64", "n", 3), typed("complex64", 3, "m")),
        example(typed("complex128", 3), typed("complex128", "b", 3, 2)),
    ),
    precision=always("x1", "x2"),
)
def matmul(args: Arguments, context: TypeContext) -> TensorType:
    """The product of matrices, as NumPy's.

    Leading axes are batches that broadcast; one-dimensional operands are vectors.
    Dtype: out_dtype, by default that of the operands.
    """
    x1, x2 = tensor(args, "x1", context), tensor(args, "x2", context)
    for name, operand in (("x1", x1), ("x2", x2)):
        require_dtype(args, name, operand, "arithmetic")
        require_parts(args, operand, args.out_dtype)
        if operand.ndim == 0:
            raise shape_error(args, f"{name} is a scalar; a product of matrices needs at least one dimension")
    dtype = args.out_dtype or same_dtype(args, x1, x2)
    same_dtype(args, x1, x2)
    a, b = dims_of(x1), dims_of(x2)
    if a is None or b is None:
        if -1 in (x1.ndim, x2.ndim):
            return TensorType(dtype=dtype)
        vectors = (x1.ndim == 1) + (x2.ndim == 1)
        return TensorType(dtype=dtype, ndim=max(x1.ndim, x2.ndim, 2) - vectors)
    return TensorType(_matmul_sizes(args, a, b, context).result, dtype, vdevice=x1.vdevice)


# ---------------------------------------------------------------------------------------------------------------------
# linear, outer
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_linear(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    data_dims, weight_dims = sizes_of(args, "data", context), sizes_of(args, "weight", context)
    inner = data_dims[-1] if isinstance(data_dims[-1], int) else weight_dims[1]
    data = kernel.input("data", (*data_dims[:-1], inner))
    weight = kernel.input("weight", (weight_dims[0], inner))
    bias = kernel.input("bias", (weight_dims[0],)) if args.bias is not None else None
    k = te.reduce_axis((0, inner), name="k")

    def formula(dtype: str) -> Any:
        def element(*i: PrimExpr) -> PrimExpr:
            return te.cast(dtype, data(*i[:-1], k)) * te.cast(dtype, weight(i[-1], k))

        return element

    out = contraction(kernel, kernel.dims, formula, k, "linear")
    if bias is not None:
        product = out
        out = te.compute(kernel.dims, lambda *i: product(*i) + te.cast(kernel.dtype, bias(i[-1])), "biased")
    return kernel.finish(out)


def _linear_reference(data: Any, weight: Any, bias: Any, *, out_dtype: str | None) -> Any:
    product = _matmul_reference(data, weight.T, out_dtype=out_dtype)
    return product if bias is None else product + bias.astype(product.dtype)


@register_op(
    "linear",
    [Param("data"), Param("weight"), Param("bias", default=None), Param("out_dtype", "dtype", None)],
    lowering=_lower_linear,
    numpy=_linear_reference,
    pure=True,
    family="linear_algebra",
    examples=(
        example(f32("n", 4), f32(3, 4)),
        example(f32("n", 4), f32(3, 4), f32(3)),
        example(f32(2, "n", 4), f32("m", 4), f32("m")),
        example(typed("float16", 2, 70), typed("float16", 3, 70), typed("float16", 3)),
    ),
    precision=always("data", "weight", "bias"),
)
def linear(args: Arguments, context: TypeContext) -> TensorType:
    """data times the transpose of weight, plus bias: (..., k), (n, k), (n,) -> (..., n)."""
    data, weight = tensor(args, "data", context), tensor(args, "weight", context)
    operands = {"data": data, "weight": weight}
    require_rank(args, "weight", weight, 2)
    if data.ndim == 0:
        raise shape_error(args, "data is a scalar; it needs at least one dimension")
    if args.bias is not None:
        operands["bias"] = tensor(args, "bias", context)
        require_rank(args, "bias", operands["bias"], 1)
    for name, operand in operands.items():
        require_dtype(args, name, operand, "arithmetic")
        require_parts(args, operand, args.out_dtype)
    dtype = same_dtype(args, *operands.values())
    a, b = dims_of(data), dims_of(weight)
    if a is None or b is None:
        return TensorType(dtype=args.out_dtype or dtype, ndim=data.ndim)
    context.require_equal(a[-1], b[1], f"{args.name}: the last size of data and weight", args.span)
    bias = dims_of(operands["bias"]) if "bias" in operands else None
    if bias is not None:
        context.require_equal(bias[0], b[0], f"{args.name}: the size of bias and the first of weight", args.span)
    return TensorType((*a[:-1], b[0]), args.out_dtype or dtype, vdevice=data.vdevice)


@kernel_lowering
def _lower_outer(kernel: Kernel) -> PrimFunc | None:
    x1, x2 = kernel.input("x1"), kernel.input("x2")

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        return x1(i) * x2(j)

    return kernel.compute(element, "outer")


@register_op(
    "outer",
    [Param("x1"), Param("x2")],
    lowering=_lower_outer,
    numpy=np.multiply.outer,
    pure=True,
    family="linear_algebra",
    examples=(example(f32(3), f32(4)), example(f32("n"), f32("m"))),
    precision=follow("x1", "x2"),
)
def outer(args: Arguments, context: TypeContext) -> TensorType:
    """The products of all pairs of elements of two vectors: (n,), (m,) -> (n, m)."""
    x1, x2 = tensor(args, "x1", context), tensor(args, "x2", context)
    for name, operand in (("x1", x1), ("x2", x2)):
        require_rank(args, name, operand, 1)
        require_dtype(args, name, operand, "arithmetic")
    a, b = dims_of(x1), dims_of(x2)
    dtype = same_dtype(args, x1, x2)
    return TensorType(dtype=dtype, ndim=2) if a is None or b is None else TensorType((*a, *b), dtype)


# ---------------------------------------------------------------------------------------------------------------------
# einsum
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Einsum:
    """Labels of each operand and of the result; the axes of an ellipsis are numbered labels."""

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]


def _einsum_labels(args: Arguments, ranks: Sequence[int]) -> _Einsum:
    """Parse the subscripts: `ij,jk->ik`, implicit results, and ellipses."""
    text = args.subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise shape_error(args, f"the subscripts {text!r} name {len(terms)} operands, got {len(ranks)}", "W205")
    operands = tuple(_term(args, term, rank) for term, rank in zip(terms, ranks, strict=True))
    longest = max((labels for labels in (_dots(term) for term in operands)), key=len, default=())
    if arrow:
        result = _result_term(args, output, longest)
    else:
        letters = [label for term in operands for label in term if not label.startswith(".")]
        result = (*longest, *sorted(label for label in set(letters) if letters.count(label) == 1))
    known = {label for term in operands for label in term}
    for label in result:
        if label not in known:
            raise shape_error(args, f"the result's subscript {label!r} is in no operand", "W205")
    if len(set(result)) != len(result):
        raise shape_error(args, f"a subscript occurs twice in the result {output!r}", "W205")
    return _Einsum(operands, result)


def _dots(term: Sequence[str]) -> tuple[str, ...]:
    return tuple(label for label in term if label.startswith("."))


def _term(args: Arguments, term: str, rank: int) -> tuple[str, ...]:
    """The labels of an operand; `...` stands for as many axes as are left, counted from the last: .1 is the last."""
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise shape_error(args, f"wrong subscripts {term!r}", "W205", "write letters, as in 'ij,jk->ik'")
    count = rank - len(before) - len(after)
    if count < 0 or (count > 0 and not dots):
        raise shape_error(args, f"the subscripts {term!r} do not fit an operand of {rank} dimensions", "W205")
    return (*before, *(f".{position}" for position in range(count, 0, -1)), *after)


def _result_term(args: Arguments, term: str, ellipsis: tuple[str, ...]) -> tuple[str, ...]:
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise shape_error(args, f"wrong subscripts {term!r} of the result", "W205")
    return (*before, *(ellipsis if dots else ()), *after)


def _einsum_sizes(args: Arguments, labels: _Einsum, shapes: Sequence[Dims], context: TypeContext) -> dict[str, Dim]:
    sizes: dict[str, Dim] = {}
    for term, dims in zip(labels.operands, shapes, strict=True):
        for label, size in zip(term, dims, strict=True):
            if label not in sizes:
                sizes[label] = size
            elif label.startswith("."):
                sizes[label] = broadcast_dim(args, sizes[label], size, context)
            else:
                context.require_equal(sizes[label], size, f"{args.name}: the sizes of {label!r}", args.span)
                sizes[label] = sizes[label] if isinstance(sizes[label], int) else size
    return sizes


@kernel_lowering
def _lower_einsum(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    shapes = [dims_of(ty) or () for ty in tensors(args, "operands", context)]
    labels = _einsum_labels(args, [len(shape) for shape in shapes])
    sizes = _einsum_sizes(args, labels, shapes, context)
    own = [
        tuple(
            1 if size == 1 and label.startswith(".") else sizes[label] for label, size in zip(term, shape, strict=True)
        )
        for term, shape in zip(labels.operands, shapes, strict=True)
    ]
    operands = kernel.inputs("operands", own)
    summed = {
        label: te.reduce_axis((0, size), name=f"k{label.strip('.')}")
        for label, size in sizes.items()
        if label not in labels.result
    }

    def formula(dtype: str) -> Any:
        def body(*indices: PrimExpr) -> PrimExpr:
            place: dict[str, Any] = {**dict(zip(labels.result, indices, strict=True)), **summed}
            product: PrimExpr | None = None
            for operand, term, shape in zip(operands, labels.operands, own, strict=True):
                stays = [label.startswith(".") and size == 1 for label, size in zip(term, shape, strict=True)]
                at = [0 if stay else place[label] for label, stay in zip(term, stays, strict=True)]
                factor = te.cast(dtype, operand(*at))
                product = factor if product is None else product * factor
            assert product is not None
            return product

        return body

    shape = tuple(sizes[label] for label in labels.result)
    if not summed:
        body = formula(kernel.dtype)
        return kernel.finish(te.compute(shape, body, "einsum"))
    return kernel.finish(contraction(kernel, shape, formula, list(summed.values()), "einsum"))


def _einsum_reference(operands: Any, *, subscripts: str) -> Any:
    dtype = operands[0].dtype
    return np.asarray(np.einsum(subscripts, *(wide(operand) for operand in operands))).astype(dtype)


@register_op(
    "einsum",
    [Param("operands", "exprs", of="several"), Param("subscripts", "attr", of="str")],
    lowering=_lower_einsum,
    numpy=_einsum_reference,
    pure=True,
    family="linear_algebra",
    examples=(
        example((f32(2, 3), f32(3, 4)), "ij,jk->ik"),
        example((f32("b", 2, 3), f32("b", 3, "n")), "bij,bjk->bik"),
        example((f32(3, 3),), "ii->i"),
        example((f32("n", "n"),), "ii"),
        example((f32(2, 3, 4), f32(4, 2)), "abc,ca"),
        example((f32("n"), f32("m")), "i,j->ij"),
        example((f32(5, 2, 3), f32(3, 4)), "...ij,jk->...ik"),
        example((f32(2), f32(2, 3), f32(3)), "i,ij,j->"),
    ),
    precision=always("operands"),
)
def einsum(args: Arguments, context: TypeContext) -> TensorType:
    """The sum of products that the subscripts describe, as NumPy's.

    Letters name axes; those that are not in the result are summed.
    """
    operands = tensors(args, "operands", context)
    if not operands:
        raise shape_error(args, "no operands", "W205")
    for index, operand in enumerate(operands):
        require_dtype(args, f"operands[{index}]", operand, "arithmetic")
    dtype = same_dtype(args, *operands)
    if any(operand.ndim < 0 for operand in operands):
        return TensorType(dtype=dtype)
    labels = _einsum_labels(args, [operand.ndim for operand in operands])
    shapes = [dims_of(operand) for operand in operands]
    if any(shape is None for shape in shapes):
        return TensorType(dtype=dtype, ndim=len(labels.result))
    sizes = _einsum_sizes(args, labels, [shape or () for shape in shapes], context)
    return TensorType(tuple(sizes[label] for label in labels.result), dtype)
