"""What the families share: tensor arguments, axes, broadcasting, and the frame of a kernel.

A kernel takes the tensors of its call in the order of `Call.args`, tuples flattened, then the outputs, then the
symbols that no buffer shape binds (`kernel_call` writes the matching `call_tir`). Numbers and 0-d constants are part
of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np

from weft.dtypes import (
    bits,
    can_hold,
    check_dtype,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    is_numpy,
    max_value,
    min_value,
    presented,
    storage,
)
from weft.errors import DTypeError, ScriptError, ShapeError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of, type_text
from weft.ir.dim import Dim, DimExpr, prove_equal, prove_le, same, symbol
from weft.ir.graph import Call, Constant, Expr, GlobalVar, Op, PrimValue, ShapeExpr, Tuple, TupleGetItem, Var
from weft.ir.kernel import prim
from weft.ir.kernel.prim import unary
from weft.ir.node import Node
from weft.ir.op.declare import Arguments, Example, Lower
from weft.ir.structure.visit import walk
from weft.ir.tensor import Binary, Buffer, PrimCall, PrimExpr, PrimFunc, PrimVar, Unary
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, TensorType, TupleType, Type

__all__ = [
    "Immediate",
    "Kernel",
    "axes_of",
    "axis_of",
    "broadcast",
    "converted",
    "dtype_error",
    "example",
    "f32",
    "i64",
    "kernel_call",
    "kernel_lowering",
    "require_dtype",
    "require_parts",
    "require_rank",
    "require_scalar",
    "rounded_once",
    "same_dtype",
    "scalar_of",
    "shape_error",
    "shape_of_arg",
    "tensor",
    "tensors",
    "typed",
    "wrapped_index",
]

Dims = tuple[Dim, ...]


# ---------------------------------------------------------------------------------------------------------------------
# Examples
# ---------------------------------------------------------------------------------------------------------------------


def typed(dtype: str, *dims: int | str) -> TensorType:
    """A tensor type for an example; strings are symbols: typed("float32", "n", 4)."""
    return TensorType(tuple(symbol(dim) if isinstance(dim, str) else dim for dim in dims), dtype)


def f32(*dims: int | str) -> TensorType:
    """A float32 tensor type for an example."""
    return typed("float32", *dims)


def i64(*dims: int | str) -> TensorType:
    """An int64 tensor type for an example."""
    return typed("int64", *dims)


def example(*args: Any, ranges: dict[str, tuple[Any, Any]] | None = None, least: int = 0, **kwargs: Any) -> Example:
    """An example call; see `Example`."""
    return Example(args, kwargs, ranges or {}, least)


# ---------------------------------------------------------------------------------------------------------------------
# Arguments
# ---------------------------------------------------------------------------------------------------------------------


def tensor(args: Arguments, name: str, context: TypeContext) -> TensorType:
    """The type of a tensor argument; ScriptError W134 when it is none. Of a value of type Any nothing is known."""
    return _as_tensor(args, name, context.type_of(args[name]))


def _as_tensor(args: Arguments, name: str, ty: Type) -> TensorType:
    if isinstance(ty, TensorType):
        return ty
    if isinstance(ty, PrimType):
        return TensorType((), ty.dtype)
    if isinstance(ty, AnyType):
        return TensorType()
    raise ScriptError(f"{args.name}: {name} must be a tensor, got {type_text(ty)}", code="W134", span=args.span)


def tensors(args: Arguments, name: str, context: TypeContext) -> list[TensorType]:
    """The types of a tuple of tensors."""
    ty = context.type_of(args[name])
    if not isinstance(ty, TupleType):
        raise ScriptError(
            f"{args.name}: {name} must be a tuple of tensors, got {type_text(ty)}", code="W134", span=args.span
        )
    return [_as_tensor(args, f"{name}[{index}]", part) for index, part in enumerate(ty.fields)]


def shape_of_arg(args: Arguments, name: str, context: TypeContext) -> tuple[Dims | None, int]:
    """The dimensions (None when unknown) and the rank (-1) of a shape argument."""
    ty = context.type_of(args[name])
    if not isinstance(ty, ShapeType):
        raise ScriptError(f"{args.name}: {name} must be a shape, got {type_text(ty)}", code="W134", span=args.span)
    return ty.dims, ty.ndim


def tensor_of_shape(args: Arguments, name: str, context: TypeContext, dtype: str | None, **fields: Any) -> TensorType:
    """The type of a tensor of the shape that an argument is: its dimensions, else the shape variable, else the rank."""
    dims, ndim = shape_of_arg(args, name, context)
    given = args[name]
    return TensorType(given if dims is None and isinstance(given, Var) else dims, dtype, ndim, **fields)


def dtype_error(args: Arguments, message: str, code: str = "W320", hint: str | None = None) -> DTypeError:
    """A dtype error of an operator call."""
    return DTypeError(f"{args.name}: {message}", code=code, span=args.span, hint=hint)


def shape_error(args: Arguments, message: str, code: str = "W202", hint: str | None = None) -> ShapeError:
    """A shape error of an operator call."""
    return ShapeError(f"{args.name}: {message}", code=code, span=args.span, hint=hint)


_DOMAINS: dict[str, Callable[[str], bool]] = {
    "any": lambda dtype: True,
    "float": is_float,
    "number": lambda dtype: is_float(dtype) or is_integer(dtype),
    "arithmetic": lambda dtype: is_float(dtype) or is_integer(dtype) or is_complex(dtype),
    "inexact": lambda dtype: is_float(dtype) or is_complex(dtype),
    "complex": is_complex,
    "ordered": lambda dtype: not is_complex(dtype),
    "integer": is_integer,
    "bits": lambda dtype: is_integer(dtype) or is_bool(dtype),
    "bool": is_bool,
}
_DOMAIN_TEXT = {
    "float": "floating",
    "number": "numeric",
    "arithmetic": "numeric",
    "inexact": "floating or complex",
    "complex": "complex",
    "ordered": "real",
    "integer": "integer",
    "bits": "integer or bool",
    "bool": "bool",
}


def require_dtype(args: Arguments, name: str, ty: TensorType, domain: str) -> None:
    """DTypeError W321 unless the dtype (when known) is in the domain: any, float, number (no complex one), arithmetic
    (those too), inexact (float or complex), integer, bits, bool, complex or ordered (all but complex)."""
    if ty.dtype is None or _DOMAINS[domain](ty.dtype):
        return
    wanted, hint = _DOMAIN_TEXT[domain], "convert it with R.astype"
    if is_complex(ty.dtype):
        wanted = "real" if domain in ("number", "ordered") else wanted
        hint = "complex numbers have no order and no whole parts: take R.real(x), R.imag(x) or R.abs(x)"
    elif domain == "complex":
        hint = "R.complex(real, imag) makes complex numbers, R.astype of real ones"
    raise dtype_error(args, f"{name} must be {wanted}, got {ty.dtype}", "W321", hint)


def require_parts(args: Arguments, x: TensorType, dtype: str | None) -> None:
    """DTypeError W321 where the dtype of a result would drop the imaginary part of x."""
    if x.dtype is not None and dtype is not None and is_complex(x.dtype) and not (is_complex(dtype) or is_bool(dtype)):
        hint = "take R.real(x), R.imag(x) or R.abs(x)"
        raise dtype_error(args, f"{x.dtype} to {dtype} would drop the imaginary part", "W321", hint)


def same_dtype(args: Arguments, *operands: TensorType) -> str | None:
    """The one dtype of the operands that have one; DTypeError W320 when two differ."""
    known = [operand.dtype for operand in operands if operand.dtype is not None]
    for dtype in known:
        if dtype != known[0]:
            raise dtype_error(args, f"the operands are {known[0]} and {dtype}", hint="convert one with R.astype")
    return known[0] if known else None


def require_scalar(args: Arguments, name: str, context: TypeContext, dtype: str | None) -> Type:
    """The type of a scalar argument that stands for a value of `dtype`; W134 no scalar, W321 does not fit."""
    ty = context.type_of(args[name])
    if isinstance(ty, TensorType) and ty.ndim not in (0, -1):
        raise ScriptError(f"{args.name}: {name} must be a scalar, got {type_text(ty)}", code="W134", span=args.span)
    if not isinstance(ty, (PrimType, TensorType, AnyType)):
        raise ScriptError(f"{args.name}: {name} must be a scalar, got {type_text(ty)}", code="W134", span=args.span)
    own = None if isinstance(ty, AnyType) else ty.dtype
    if dtype is not None and own is not None and is_complex(own) and not is_complex(dtype):
        raise dtype_error(args, f"{name} is {own}, which does not fit {dtype}", "W321", "take R.real(x)")
    if dtype is not None and own is not None and is_float(own) and not (is_float(dtype) or is_complex(dtype)):
        value = args[name].value if isinstance(args[name], PrimValue) else None
        if not (isinstance(value, float) and value.is_integer()):
            raise dtype_error(args, f"{name} is {own}, which does not fit {dtype}", "W321", "convert with R.astype")
    given = args[name].value if isinstance(args[name], PrimValue) else None
    whole = int(given) if isinstance(given, int) or (isinstance(given, float) and given.is_integer()) else None
    if dtype is not None and is_integer(dtype) and whole is not None and not can_hold(dtype, whole):
        raise dtype_error(args, f"{name} is {given}, which does not fit {dtype}", "W321")
    return ty


def require_rank(args: Arguments, name: str, ty: TensorType, *ranks: int) -> None:
    """ShapeError W202 unless the rank (when known) is one of the given."""
    if ty.ndim >= 0 and ty.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise shape_error(args, f"{name} must have {wanted} dimensions, got {type_text(ty)}")


def require_known_rank(args: Arguments, name: str, ty: TensorType, *ranks: int) -> None:
    """ShapeError W202 unless the rank is known, and one of the given where there are some."""
    if ty.ndim < 0:
        hint = "annotate it, or name its type by R.match_cast"
        raise shape_error(args, f"the number of dimensions of {name} is not known", "W202", hint)
    if ranks:
        require_rank(args, name, ty, *ranks)


def axis_of(args: Arguments, axis: int, ndim: int) -> int:
    """The axis counted from the front; ShapeError W203 when out of range."""
    if not -ndim <= axis < ndim:
        hint = f"axes are {-ndim} to {ndim - 1}; negative ones count from the last" if ndim else None
        raise shape_error(args, f"axis {axis} of {ndim} dimensions", "W203", hint)
    return axis % ndim if ndim else axis


def axes_of(args: Arguments, axes: Iterable[int], ndim: int) -> tuple[int, ...]:
    """Distinct axes counted from the front; ShapeError W203 when out of range, W204 when one occurs twice."""
    found = tuple(axis_of(args, axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise shape_error(args, f"an axis occurs twice in {tuple(axes)}", "W204")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Broadcasting
# ---------------------------------------------------------------------------------------------------------------------


def broadcast_dim(args: Arguments, a: Dim, b: Dim, context: TypeContext) -> Dim:
    """One dimension of a broadcast: 1 gives way; else both are equal (proved, refuted, or checked at run time)."""
    if same(a, b) or b == 1:
        return a
    if a == 1:
        return b
    answer = prove_equal(a, b, context.facts)
    if answer is False and not (isinstance(a, DimExpr) or isinstance(b, DimExpr)):
        raise shape_error(args, f"cannot broadcast {a} with {b}", "W201", "sizes must be equal, or one of them 1")
    context.require_equal(a, b, f"{args.name}: broadcast sizes", args.span)
    return b if isinstance(a, DimExpr) and not isinstance(b, DimExpr) else a


def broadcast(args: Arguments, context: TypeContext, *operands: TensorType) -> TensorType:
    """The shape that NumPy's broadcast of the operands has (dtype left open)."""
    shapes = [operand.shape for operand in operands]
    if all(shape is shapes[0] and shape is not None for shape in shapes):
        return TensorType(shapes[0])
    known = [dims_of(operand) for operand in operands]
    if any(dims is None for dims in known):
        ranks = [operand.ndim for operand in operands]
        return TensorType(ndim=-1 if -1 in ranks else max(ranks))
    result: Dims = ()
    for dims in known:
        assert dims is not None
        count = max(len(result), len(dims))
        left, right = (1,) * (count - len(result)) + result, (1,) * (count - len(dims)) + dims
        try:
            result = tuple(broadcast_dim(args, a, b, context) for a, b in zip(left, right, strict=True))
        except ShapeError as error:
            shapes_text = " and ".join(f"({', '.join(map(str, dims or ()))})" for dims in known)
            error.notes = (*error.notes, f"the shapes are {shapes_text}")
            raise
    return TensorType(result)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------------------------------


class Immediate:
    """A number that is part of the kernel, used like a tensor."""

    shape: tuple[Any, ...] = ()
    ndim = 0

    def __init__(self, value: PrimExpr) -> None:
        self.value = value
        self.dtype = value.dtype

    def __getitem__(self, indices: Any) -> PrimExpr:
        return self.value

    def __call__(self, *indices: Any) -> PrimExpr:
        """The number; a 0-d tensor has no indices."""
        return self.value


Operand = te.Tensor | Immediate


def scalar_of(operand: Operand) -> PrimExpr:
    """The value of a scalar operand."""
    return operand.value if isinstance(operand, Immediate) else operand()


def converted(value: Any, dtype: str | np.dtype[Any]) -> Any:
    """An array in a dtype, as kernels convert: floats become the nearest integer towards zero that the dtype has, nan
    becomes 0. Floats that NumPy lacks stay as they are given, for the interpreter to round.

    >>> converted(np.array([-1.5, 300.0, np.nan]), "uint8").tolist()
    [0, 255, 0]
    """
    array, dtype = np.asarray(value), check_dtype(dtype)
    if is_float(dtype) and not is_numpy(dtype):
        return array
    target = storage(dtype)
    if array.dtype.kind != "f" or not is_integer(dtype):
        return array.astype(target)
    low, high, wide = int(min_value(dtype)), int(max_value(dtype)), array.astype(np.float64)
    above, below = wide >= float(high), wide <= float(low)
    inside = np.where(above | below | np.isnan(wide), 0, wide).astype(target)
    return np.where(above, target.type(high), np.where(below, target.type(low), inside))


def is_immediate(expr: Expr) -> bool:
    """Whether an argument is part of the kernel and not passed to it."""
    if isinstance(expr, Constant):
        return expr.data.ndim == 0 and (expr.is_numpy or is_float(expr.dtype))
    return isinstance(expr, (PrimValue, ShapeExpr))


def immediate_value(expr: PrimValue | Constant) -> PrimExpr:
    """A number of the call as a tensor-level expression; dimensions are int64."""
    if isinstance(expr, Constant):
        return prim.const(presented(expr.data, expr.dtype).item(), expr.dtype)
    if isinstance(expr.value, DimExpr):
        return prim.cast(expr.dtype, te.size(expr.value))
    return prim.const(expr.value, expr.dtype)


def _leaves(expr: Expr, context: TypeContext) -> list[tuple[Expr, Type]]:
    """The parts of an argument, tuples flattened."""
    ty = context.type_of(expr)
    if not isinstance(ty, TupleType):
        return [(expr, ty)]
    parts = expr.fields if isinstance(expr, Tuple) else [TupleGetItem(expr, i) for i in range(len(ty.fields))]
    return [leaf for part in parts for leaf in _leaves(part, context)]


def kernel_inputs(call: Call, context: TypeContext, immediate: Callable[[Expr], bool] = is_immediate) -> list[Expr]:
    """The arguments that the kernel of a call takes, in order; those that are `immediate` are part of it."""
    return [
        leaf
        for arg in call.args
        for leaf, ty in _leaves(arg, context)
        if not immediate(leaf) and isinstance(ty, (TensorType, PrimType))
    ]


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, (PrimValue, ShapeExpr))


def kernel_call(call: Call, kernel: PrimFunc, callee: GlobalVar, context: TypeContext) -> Call:
    """The `call_tir` of a kernel that `OpDef.lower` gave for an operator call."""
    ty = context.type_of(call)
    inputs = kernel_inputs(call, context)
    outputs = len(ty.fields) if isinstance(ty, TupleType) else 1
    if sum(isinstance(param, Buffer) for param in kernel.params) > len(inputs) + outputs:
        inputs = kernel_inputs(call, context, _is_number)  # a kernel that takes constants of one element as tensors
    scalars = kernel.params[len(inputs) + outputs :]
    args: tuple[Expr, ...] = (callee, Tuple(tuple(inputs)))
    if scalars:
        args = (*args, ShapeExpr(tuple(symbol(scalar.name) for scalar in scalars)))
    return Call(Op("call_tir"), args, ty_args=(ty,), span=call.span)


class Kernel:
    """The frame of a kernel: inputs by parameter name, asserted conditions, outputs.

    `known` is False where a shape or dtype is unknown: then there is no kernel.
    """

    def __init__(self, args: Arguments, context: TypeContext, name: str) -> None:
        self.args = args
        self.context = context
        self.name = name
        self.result = context.type_of(args.call)
        self.checks: list[te.Check] = []
        self._inputs: dict[str, list[Operand]] = {}
        self._parameters: list[te.Tensor | PrimVar] = []
        self.known = all(_is_known(ty) for ty in (self.result, *(context.type_of(arg) for arg in args.call.args)))

    def input(self, name: str, shape: Dims | None = None) -> Operand:
        """The tensor of a parameter; `shape` states what the kernel requires of it (default: its type's).

        Inputs are asked for in the order of the parameters.
        """
        return self.inputs(name, None if shape is None else [shape])[0]

    def inputs(self, name: str, shapes: Sequence[Dims] | None = None) -> list[Operand]:
        """The tensors of a parameter that holds several."""
        value = self.args[name]
        values: tuple[Any, ...] = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        leaves = [leaf for part in values for leaf in _leaves(part, self.context)]
        found: list[Operand] = []
        for index, (expr, ty) in enumerate(leaves):
            label = name if len(leaves) == 1 else f"{name}_{index}"
            operand = self._operand(expr, ty, label, None if shapes is None else shapes[index])
            found.append(operand)
        return found

    def _operand(self, expr: Expr, ty: Type, label: str, shape: Dims | None) -> Operand:
        if isinstance(expr, (PrimValue, Constant)) and is_immediate(expr):
            return Immediate(immediate_value(expr))
        if isinstance(ty, PrimType):
            variable = PrimVar(label, ty.dtype)
            self._parameters.append(variable)
            return Immediate(variable)
        dims = dims_of(ty)
        assert isinstance(ty, TensorType)
        assert dims is not None
        assert ty.dtype is not None  # `known` was asked before
        operand = te.placeholder(dims if shape is None else shape, ty.dtype, label)
        self._parameters.append(operand)
        return operand

    def require(self, condition: PrimExpr, message: str) -> None:
        """A condition that the kernel asserts, as a shape error."""
        self.checks.append(te.Check(condition, f"{self.args.name}: {message}"))

    def require_equal(self, a: Dim, b: Dim, message: str) -> None:
        """Assert that two dimensions are equal, unless that is proved."""
        if prove_equal(a, b, self.context.facts) is not True:
            self.require(te.equal(te.size(a), te.size(b)), message)

    def require_le(self, a: Dim, b: Dim, message: str) -> None:
        """Assert that a <= b, unless that is proved."""
        if prove_le(a, b, self.context.facts) is not True:
            self.require(te.size(a) <= te.size(b), message)

    def check_indices(self, indices: Operand, size: Dim, *, any_value: bool = False, last: int | None = None) -> None:
        """Have the kernel stop with a BoundsError where an index of an axis of that size is out of range.

        Negative indices count from the end. With `any_value` the index is made to fit, and only an empty axis is an
        error. `last` restricts the check to that position of the last axis of the indices.
        """
        extent, message = te.size(size), "index out of range"
        if isinstance(indices, Immediate):
            self.require_inside(_in_range(te.cast(te.INDEX, indices.value), extent, any_value), message)
            return
        shape = indices.shape if last is None else indices.shape[:-1]
        fixed = () if last is None else (last,)

        def inside(*i: PrimExpr) -> PrimExpr:
            return _in_range(te.cast(te.INDEX, indices(*i, *fixed)), extent, any_value)

        self.checks.append(te.check(shape, inside, f"{self.args.name}: {message}", "BoundsError"))

    def require_inside(self, condition: PrimExpr, message: str) -> None:
        """A condition that the kernel asserts, as a bounds error."""
        self.checks.append(te.Check(condition, f"{self.args.name}: {message}", "BoundsError"))

    @property
    def dims(self) -> Dims:
        """The dimensions of the (one) result."""
        return dims_of(self.result) or ()

    @property
    def dtype(self) -> str:
        """The dtype of the (one) result."""
        assert isinstance(self.result, TensorType)
        assert self.result.dtype is not None
        return self.result.dtype

    def finish(self, *outputs: te.Tensor) -> PrimFunc:
        """The kernel."""
        return te.create_prim_func([*self._parameters, *outputs], self.name, self.checks)

    def compute(self, formula: Callable[..., Any], name: str = "out") -> PrimFunc:
        """The kernel of one output, given by a formula over the result's indices; cast to the result's dtype."""
        out = te.compute(self.dims, lambda *indices: te.cast(self.dtype, formula(*indices)), name)
        return self.finish(out)


def rounded_once(scalar: Callable[..., PrimExpr], *values: PrimExpr) -> PrimExpr:
    """A formula of elements. One of several steps goes through float32 where they are floats of less than 32 bits, so
    that the result is rounded once, when it is stored."""
    plain = scalar(*values)
    short = any(is_float(value.dtype) and bits(value.dtype) < 32 for value in values)
    if not short or sum(_is_float_step(x) for x in walk(plain)) < 2:
        return plain
    return scalar(*(te.cast("float32", value) if is_float(value.dtype) else value for value in values))


def _is_float_step(node: Node) -> bool:
    operands = node.args if isinstance(node, PrimCall) else (node.a,) if isinstance(node, (Binary, Unary)) else ()
    return any(isinstance(operand, PrimExpr) and is_float(operand.dtype) for operand in operands)


def kernel_lowering(lower: Callable[[Kernel], PrimFunc | None]) -> Lower:
    """A decorator of `lower(kernel)`: it is called with a frame whose shapes and dtypes are known.

    What stands in a declaration as `lowering` gives no kernel where something is not known.
    """

    @wraps(lower)
    def lowering(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
        kernel = Kernel(args, context, name)
        return lower(kernel) if kernel.known else None

    return lowering


def _in_range(value: PrimExpr, size: PrimExpr, any_value: bool) -> PrimExpr:
    """Whether an index is in range; when any value is made to fit: whether there is anything to index."""
    return size > 0 if any_value else te.all(value >= unary("neg", size), value < size)


def wrapped_index(value: PrimExpr, size: Dim) -> PrimExpr:
    """An index as int64, counted from the end where it is negative."""
    value = te.cast(te.INDEX, value)
    return te.select(value < 0, value + te.size(size), value)


def _is_known(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return all(_is_known(part) for part in ty.fields)
    if isinstance(ty, TensorType):
        return dims_of(ty) is not None and ty.dtype is not None
    if isinstance(ty, ShapeType):
        return ty.dims is not None
    return not isinstance(ty, (AnyType, FuncType))


def broadcast_load(operand: Operand, indices: Sequence[PrimExpr]) -> PrimExpr:
    """The element of a broadcast operand: trailing axes are aligned, axes of size 1 stay at 0."""
    own = indices[len(indices) - operand.ndim :]
    return operand(*(0 if size == 1 else index for size, index in zip(operand.shape, own, strict=True)))


def broadcast_shape(ty: TensorType, result: Dims) -> Dims:
    """What a broadcast kernel requires of an operand: 1 where it is 1, else the result's size."""
    dims = dims_of(ty) or ()
    return tuple(1 if dim == 1 else out for dim, out in zip(dims, result[len(result) - len(dims) :], strict=True))
