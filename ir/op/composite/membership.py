"""Whether elements are in a set: compared with each of it, looked up in a table, or searched in halves."""

from __future__ import annotations

from itertools import product as tuples
from typing import Any

import numpy as np

from weft.dtypes import bits, is_float, is_integer, is_numpy
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import product
from weft.ir.graph import Expr
from weft.ir.kernel.prim import cast, unary
from weft.ir.op.common import Kernel, example, f32, i64, kernel_lowering, same_dtype, tensor, typed
from weft.ir.op.composite.declaring import Parts, call
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.kernel_builder import INDEX, Loops, counted, load, loops, loops_lowering, store
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimCall, PrimExpr, PrimFunc, Stmt
from weft.ir.types import TensorType, Type

__all__: list[str] = []

_FEW = 64
"""So many elements of a set are all compared; more are searched."""
_LISTED = 8
"""The bits of elements of which a table has every one."""


def _known_count(args: Arguments, context: TypeContext) -> int | None:
    """How many elements the set has, where that is known."""
    count = product(dims_of(tensor(args, "test_elements", context)) or (0,))
    return count if isinstance(count, int) else None


def _is_number(dtype: str | None) -> bool:
    """Whether a dtype is one of NumPy's numbers that are in order."""
    return dtype is not None and is_numpy(dtype) and (is_float(dtype) or is_integer(dtype))


def _is_listed(dtype: str | None) -> bool:
    """Whether a table has a place for every element of a dtype."""
    return dtype == "bool" or (dtype is not None and is_integer(dtype) and bits(dtype) == _LISTED)


@kernel_lowering
def _compare(kernel: Kernel) -> PrimFunc | None:
    """Elements are compared with each of the set, so that vectors of them are."""
    x, test = kernel.input("x"), kernel.input("test_elements")
    places = list(tuples(*(range(int(extent)) for extent in test.shape)))

    def is_member(*i: PrimExpr) -> PrimExpr:
        value = x(*i)
        found = te.any(*(te.equal(value, test(*place)) for place in places))
        return unary("not", found) if kernel.args.invert else found

    return kernel.compute(is_member, "member")


@loops_lowering
def _look_up(frame: Loops) -> PrimFunc | None:
    """A table says of every number whether it is in the set."""
    x, test, out = frame.input("x"), frame.input("test_elements"), frame.output()
    table = frame.local("table", "bool", (1 << _LISTED,))

    def slot(value: PrimExpr) -> PrimExpr:
        number = value if str(value.dtype) in ("bool", "uint8") else PrimCall("reinterpret", (value,), "uint8")
        return cast(INDEX, number)

    def answer(i: list[Any]) -> Stmt:
        return store(out, load(table, [slot(load(x, i))]), i)

    invert = bool(frame.args.invert)
    return frame.finish(
        counted("d", 1 << _LISTED, lambda d: store(table, invert, [d])),
        loops(test.shape if hasattr(test, "shape") else (), lambda i: store(table, not invert, [slot(load(test, i))])),
        loops(out.shape, answer),
    )


def _lower(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    count, dtype = _known_count(args, context), tensor(args, "test_elements", context).dtype
    if count is not None and count <= _FEW:
        return _compare(args, context, name)
    return _look_up(args, context, name) if _is_listed(dtype) else None


def _written(args: Arguments, context: TypeContext) -> Expr:
    """In other operators: a search in a set of a known number, comparisons with each of one of an unknown number."""
    parts = Parts(args, context)
    ty, count = parts.type("test_elements"), _known_count(args, context)
    test = call("flatten", parts.test_elements) if ty.ndim != 1 else parts.test_elements
    if count is not None and count > _FEW and _is_number(ty.dtype):
        ordered = call("sort", test)
        place = call("minimum", call("searchsorted", ordered, parts.x), call("full", (), count - 1, "int64"))
        found = call("equal", call("take", ordered, place, axis=0), parts.x)
    else:
        found = call("any", call("equal", call("expand_dims", parts.x, axis=-1), test), axis=-1)
    return call("logical_not", found) if parts.invert else found


@register_op(
    "isin",
    [Param("x"), Param("test_elements"), Param("invert", "attr", False, "bool")],
    lowering=_lower,
    decompose=lambda args, builder: _written(args, builder.types),
    numpy=lambda x, test_elements, invert: np.isin(x, test_elements, invert=invert),
    pure=True,
    family="reductions_statistical",
    examples=(
        example(typed("int32", 2, 3), typed("int32", 4)),
        example(i64("n"), i64("m"), invert=True),
        example(f32(3), f32(2, 2)),
        example(typed("int32", "n", 3), typed("int32", 9, 9), ranges={"x": (-60, 60), "test_elements": (-60, 60)}),
        example(typed("float64", "n"), typed("float64", 70), invert=True),
        example(typed("int8", 2, "n"), typed("int8", "m"), invert=True),
    ),
)
def isin(args: Arguments, context: TypeContext) -> Type:
    """Whether each element of x is one of test_elements (none of them, with invert); bool, in the shape of x.

    Up to 64 of them are compared with each element; numbers of 8 bits and bools are looked up in a table; more numbers
    are sorted, and searched in halves; those of an unknown number are compared with each element. Errors: DTypeError
    W320 two dtypes.
    """
    x, test = (tensor(args, name, context) for name in ("x", "test_elements"))
    same_dtype(args, x, test)
    return TensorType(x.shape, "bool", x.ndim, x.vdevice)
