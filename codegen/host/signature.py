"""Types and functions of a module as what the runtime checks arguments against (`weft.runtime.abi.types`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.codegen.host.kernels import result_dtype, written_positions
from weft.dtypes import is_complex
from weft.errors import Span, TargetError
from weft.ir.deduction.subtyping import type_text
from weft.ir.dim import Dim, operation
from weft.ir.graph import Function
from weft.ir.kernel.prim_dim import kernel_signature, prim_to_dim, symbol_names
from weft.ir.kernel.views import HANDLE_BYTES, handle_bytes, handles_of
from weft.ir.tensor import Buffer, Extent, PrimFunc, PrimVar
from weft.ir.types import AnyType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Dim as AbiDim
from weft.runtime.abi.dims import Expression, Operation, Tree

__all__ = ["abi_dim", "abi_dims", "abi_type", "graph_signature", "graph_symbol", "kernel_abi", "span_json"]


def graph_symbol(name: str) -> str:
    """The linker's name of an entry (frame, arguments, results)."""
    return f"weft.entry.{name}"


def span_json(span: Span | None) -> list[Any] | None:
    """A span as data: file name, the lines of text it covers, first line number, offsets within those lines, origin."""
    if span is None:
        return None
    line, column = span.source.position(span.start)
    end_line, _ = span.source.position(max(span.start, span.end))
    lines = [span.source.line_text(number) for number in range(line, end_line + 1)]
    start = column - 1
    return [span.filename, "\n".join(lines), line, start, start + span.end - span.start, span.origin]


def abi_dim(dim: Dim) -> int | str | Expression:
    """A dimension as the runtime knows it: a number, a symbol, or its text with its tree."""
    tree = _tree(dim)
    return Expression(str(dim), tree) if isinstance(tree, Operation) else tree


def _tree(dim: Dim) -> Tree:
    kind, operands = operation(dim)
    if kind in ("constant", "symbol"):
        return operands[0]
    return Operation(kind, tuple(_tree(operand) for operand in operands))


def abi_dims(dims: Sequence[Dim]) -> tuple[AbiDim, ...]:
    """The dimensions of a shape."""
    return tuple(map(abi_dim, dims))


def abi_type(ty: Type) -> abi.Type:
    """A graph-level type as the runtime knows it; TargetError W743 for one whose values compiled code cannot hold."""
    if isinstance(ty, TensorType):
        return abi.Tensor(ty.dtype, None if ty.dims is None else abi_dims(ty.dims), ty.ndim)
    if isinstance(ty, ShapeType):
        return abi.Shape(None if ty.dims is None else abi_dims(ty.dims), ty.ndim)
    if isinstance(ty, PrimType):
        if (ty.value is not None and ty.dims is None) or is_complex(ty.dtype):
            raise TargetError(f"llvm: {type_text(ty)} has no compiled form", code="W743", span=ty.span)
        return abi.Scalar(ty.dtype) if ty.dims is None else abi.Scalar(ty.dtype, abi_dim(ty.dims[0]), is_size=True)
    if isinstance(ty, TupleType):
        return abi.Tuple(tuple(map(abi_type, ty.fields)))
    if isinstance(ty, StringType):
        return abi.String()
    if isinstance(ty, AnyType):
        return abi.Object()
    raise TargetError(
        f"llvm: a value of type {type(ty).__name__} has no compiled form",
        code="W743",
        span=ty.span,
        hint="run LambdaLift first, or use weft.interpret",
    )


def graph_signature(name: str, function: Function, written: Collection[int] = ()) -> abi.Signature:
    """The signature of a graph function that writes some parameters in place: a pure one writes copies of them."""
    use = "copied" if function.pure else "written"
    params = []
    for i, param in enumerate(function.params):
        ty = abi_type(param.ty)
        if i in written and isinstance(ty, abi.Tensor):
            ty = replace(ty, use=use)
        params.append(abi.Parameter(param.name or f"arg{i}", ty, span_json(param.span)))
    return abi.Signature(
        name,
        "graph",
        graph_symbol(name),
        tuple(params),
        abi_type(function.ret_type),
        span_json(function.span),
        function.private,
    )


def _scalar(function: PrimFunc, param: PrimVar, names: Mapping[PrimVar, str]) -> abi.Scalar:
    """A number; behind a bare handle there are as many bytes as the kernel looks at."""
    if param.dtype != "handle":
        return abi.Scalar(param.dtype, names.get(param) if "int" in param.dtype else None)
    noted, handles = function.attrs.get(HANDLE_BYTES, ()), handles_of(function)
    if len(noted) != len(handles):
        return abi.Scalar("handle", handle_bytes(function, param, {}))
    return abi.Scalar("handle", int(noted[handles.index(param)]))


def kernel_abi(name: str, function: PrimFunc, functions: Mapping[str, Any]) -> abi.Signature:
    """The signature of a tensor-level function that Python calls; `functions` are those that it may call."""
    names, types, written = symbol_names(function), kernel_signature(function), written_positions(function, functions)
    params = []
    for i, (param, given) in enumerate(zip(function.params, types, strict=True)):
        ty: abi.Type
        if isinstance(param, Buffer) and isinstance(given, TensorType):
            strides = None if param.strides is None else tuple(_stride(stride, names) for stride in param.strides)
            ty = abi.Buffer(param.dtype, abi_dims(given.dims or ()), strides, i in written)
        else:
            ty = _scalar(function, param, names)  # type: ignore[arg-type]
        params.append(abi.Parameter(param.name or f"arg{i}", ty, span_json(param.span)))
    dtype = result_dtype(function)
    result = abi.Scalar(dtype) if dtype else None
    return abi.Signature(
        name, "kernel", graph_symbol(name), tuple(params), result, span_json(function.span), function.private
    )


def _stride(stride: Extent, names: Mapping[PrimVar, str]) -> AbiDim:
    """A stride; None for what is no dimension."""
    dim = prim_to_dim(stride, names)
    return None if dim is None else abi_dim(dim)
