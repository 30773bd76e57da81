"""Types and functions as the plain data that the runtime checks arguments against (`weft.runtime.abi.signature`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from weft.codegen.host.kernels import result_dtype, written_positions
from weft.errors import Span, TargetError
from weft.ir.deduction.subtyping import type_text
from weft.ir.dim import Dim, operation
from weft.ir.graph import Function
from weft.ir.kernel.prim_dim import kernel_signature, prim_to_dim, symbol_names
from weft.ir.tensor import Buffer, Extent, PrimFunc, PrimVar
from weft.ir.types import AnyType, PrimType, ShapeType, StringType, TensorType, TupleType, Type

__all__ = ["dim_data", "graph_signature", "graph_symbol", "kernel_data", "span_json", "type_data"]


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


def dim_data(dim: Dim) -> Any:
    """A dimension as data: an int, a name, or its text with its tree."""
    tree = _tree(dim)
    return tree if isinstance(tree, (int, str)) else [str(dim), tree]


def _tree(dim: Dim) -> Any:
    kind, operands = operation(dim)
    if kind in ("constant", "symbol"):
        return operands[0]
    return [kind, *(_tree(operand) for operand in operands)]


def type_data(ty: Type) -> list[Any]:
    """A graph-level type as data; TargetError W743 for one whose values compiled code cannot hold."""
    if isinstance(ty, TensorType):
        return ["tensor", ty.dtype, None if ty.dims is None else [dim_data(dim) for dim in ty.dims], ty.ndim]
    if isinstance(ty, ShapeType):
        return ["shape", None if ty.dims is None else [dim_data(dim) for dim in ty.dims], ty.ndim]
    if isinstance(ty, PrimType):
        if ty.value is not None and ty.dims is None:
            raise TargetError(f"llvm: {type_text(ty)} has no compiled form", code="W743", span=ty.span)
        return ["prim", ty.dtype, None] if ty.dims is None else ["prim", ty.dtype, dim_data(ty.dims[0]), "size"]
    if isinstance(ty, TupleType):
        return ["tuple", *(type_data(field) for field in ty.fields)]
    if isinstance(ty, StringType):
        return ["string"]
    if isinstance(ty, AnyType):
        return ["object"]
    raise TargetError(
        f"llvm: a value of type {type(ty).__name__} has no compiled form", code="W743", span=ty.span,
        hint="run LambdaLift first, or use weft.interpret",
    )  # fmt: skip


def graph_signature(name: str, function: Function, written: Collection[int] = ()) -> dict[str, Any]:
    """The signature of a graph function that writes some parameters in place: a pure one writes copies of them."""
    params = [
        {"name": p.name or f"arg{i}", "type": type_data(p.ty), "span": span_json(p.span)}
        for i, p in enumerate(function.params)
    ]
    for position in written:
        params[position]["type"].append("copied" if function.pure else "written")
    return {
        "name": name,
        "kind": "graph",
        "symbol": graph_symbol(name),
        "params": params,
        "result": type_data(function.ret_type),
        "span": span_json(function.span),
        "private": function.private,
    }


def kernel_data(name: str, function: PrimFunc) -> dict[str, Any]:
    """The signature of a tensor-level function that Python calls."""
    names, types, written = symbol_names(function), kernel_signature(function), written_positions(function)
    params = []
    for i, (param, ty) in enumerate(zip(function.params, types, strict=True)):
        if isinstance(param, Buffer) and isinstance(ty, TensorType):
            dims = [dim_data(dim) for dim in ty.dims or ()]
            strides = None if param.strides is None else [_stride(stride, names) for stride in param.strides]
            data: list[Any] = ["buffer", param.dtype, dims, strides, i in written]
        else:
            data = [
                "prim",
                param.dtype,
                names.get(param) if isinstance(param, PrimVar) and "int" in param.dtype else None,
            ]
        params.append({"name": param.name or f"arg{i}", "type": data, "span": span_json(param.span)})
    dtype = result_dtype(function)
    result = ["prim", dtype, None] if dtype else []
    return {
        "name": name, "kind": "kernel", "symbol": graph_symbol(name), "params": params, "result": result,
        "span": span_json(function.span), "private": function.private,
    }  # fmt: skip


def _stride(stride: Extent, names: Mapping[PrimVar, str]) -> Any:
    """A stride as data; None for what is no dimension."""
    dim = prim_to_dim(stride, names)
    return None if dim is None else dim_data(dim)
