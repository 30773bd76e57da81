"""Layouts by index maps (`weft.ir.kernel.index_map`): where each element goes is a formula of its position."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import evaluate
from weft.ir.kernel.index_map import IndexMap, read_index_map
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.op.common import example, f32, require_scalar, shape_error, tensor, typed
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.kernel_builder import Loops, index, load, loops, loops_lowering, store, zero
from weft.ir.op.precision import Reads, follow
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimFunc
from weft.ir.types import TensorType


def _map_of(args: Arguments, ndim: int) -> IndexMap:
    found = read_index_map(args.index_map)
    if ndim not in (-1, len(found.names)):
        raise shape_error(args, f"the index map takes {len(found.names)} indices, x has {ndim} dimensions")
    return found


@loops_lowering
def _lower_layout_transform(frame: Loops) -> PrimFunc | None:
    args = frame.args
    x = frame.input("x")
    pad = frame.input("pad_value") if args.pad_value is not None else None
    out = frame.output()
    targets = _map_of(args, x.ndim)

    def move(i: list[Any]) -> Any:
        variables = dict(zip(targets.names, i, strict=True))
        return store(out, load(x, i), [index(dim_to_prim(target, variables)) for target in targets.targets])

    value = zero(out.dtype) if pad is None else load(pad)
    return frame.finish(loops(out.shape, lambda i: store(out, value, i)), loops(x.shape, move))


def _numpy_layout_transform(
    x: np.ndarray, pad_value: Any, index_map: str, axis_separators: Any, input_axis_separators: Any
) -> np.ndarray:
    targets = read_index_map(index_map)
    out = np.full(targets.sizes(x.shape), 0 if pad_value is None else pad_value).astype(x.dtype)
    for at in np.ndindex(x.shape):
        symbols = dict(zip(targets.names, at, strict=True))
        out[tuple(evaluate(target, symbols) for target in targets.targets)] = x[at]
    return out


@register_op(
    "layout_transform",
    [
        Param("x"),
        Param("index_map", "attr", of="index_map"),
        Param("pad_value", "prim", None),
        Param("axis_separators", "attr", (), "ints?"),
        Param("input_axis_separators", "attr", (), "ints?"),
    ],
    lowering=_lower_layout_transform,
    numpy=_numpy_layout_transform,
    pure=True,
    examples=(
        example(f32(2, 8, 3), "lambda n, c, w: (n, c // 4, w, c % 4)"),
        example(f32("n", 6), "lambda i, j: (j, i)"),
        example(f32("n"), "lambda i: (i // 4, i % 4)", pad_value=-1),
        example(typed("int32", 2, "m"), "lambda i, j: (i + 2 * j,)"),
        example(f32(3, 5), "lambda i, j: (j // 2, i, j % 2)", pad_value=0.5),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def layout_transform(args: Arguments, context: TypeContext) -> TensorType:
    """The elements of x where an index map puts them: out[index_map(i, j)] = x[i, j].

    The map is a Python function of the indices, or its text. Sizes: one more than the greatest index; c for a remainder
    by c. Elements that nothing is put at are pad_value (0 by default); of several put at one place the last in
    row-major order stays. The separators say which dimensions other compilers keep apart in memory; values do not
    depend on them. Errors: ScriptError W142 no index map; ShapeError W202 the number of indices, W205 an index
    that may be negative, or another form; DTypeError W321 pad_value.
    """
    x = tensor(args, "x", context)
    targets = _map_of(args, x.ndim)
    if args.pad_value is not None:
        require_scalar(args, "pad_value", context, x.dtype)
    dims = dims_of(x)
    try:
        sizes = None if dims is None else targets.sizes(dims)
    except ShapeError as error:
        error.message = f"{args.name}: {error.message}"
        raise
    return TensorType(sizes, x.dtype, len(targets.targets), x.vdevice)
