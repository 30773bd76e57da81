"""Reading what a name is declared to be: a symbol, a pointer, memory, a view of memory.

    symbol  ::= n = T.int64() | T.var(dtype)
    pointer ::= T.handle(dtype, scope), as an annotation or a value
    memory  ::= A = T.alloc_buffer(shape, dtype, ...) | T.allocate(...) | T.alloc_shared(...) | T.local_scalar(dtype)
    view    ::= B = T.match_buffer(handle | region, ...) | T.decl_buffer(..., data=p) | A.view(...)

A buffer has a name of its own: a second definition is W118.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.ir.node import EMPTY
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Extent,
    IntImm,
    MatchBufferRegion,
    PrimVar,
    Stmt,
)
from weft.ir.types import PrimType
from weft.script.forms.reading import TENSOR
from weft.script.reader.expression.arguments import argument_trees
from weft.script.reader.expression.names import dotted_name, dtype_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.scope import describe
from weft.script.reader.tensor.block import block_header
from weft.script.reader.tensor.buffer import as_region, bind_buffer, make_buffer, name_offset
from weft.script.reader.tensor.scalar import address_of_data, as_extent, as_prim, extent_of, index_const
from weft.script.reader.tensor.session import TensorSession

__all__ = [
    "POINTERS",
    "alloc_in_scope",
    "declare_view",
    "declared_type",
    "handle_annotation",
    "pointer_dtype",
    "read_match_buffer",
    "symbol_declaration",
]

POINTERS = ("T.handle", "T.Ptr", "T.ptr")


def symbol_declaration(session: TensorSession, tree: ast.expr) -> str | None:
    """The dtype of `T.int64()` or `T.var("int64")` (a new symbol), or None for another expression."""
    if not isinstance(tree, ast.Call) or any(word.arg != "is_size_var" for word in tree.keywords):
        return None
    name = dotted_name(session, tree.func)
    if name in ("T.var", "T.dyn"):
        if len(tree.args) > 1:
            raise session.fail("W113", f"{name} takes a dtype", tree)
        return session.fold(lambda: dtypes.check_dtype(session.constant(tree.args[0])), tree) if tree.args else "int64"
    dtype = dtype_name(name) if name and not tree.args else None
    return dtype if dtype is not None and dtype != "handle" else None


def handle_annotation(session: TensorSession, annotation: ast.expr, place: ast.AST) -> PrimVar | None:
    """The pointer that `T.handle(dtype, scope)` declares, or None for another annotation."""
    name = getattr(place, "arg", "") or getattr(place, "id", "")
    if dotted_name(session, annotation) in POINTERS:
        return PrimVar(name, "handle", span=session.span(place))
    if isinstance(annotation, ast.Subscript) and dotted_name(session, annotation.value) in POINTERS:
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        annotation = ast.copy_location(ast.Call(annotation.value, list(parts), []), annotation)
    if isinstance(annotation, ast.Call) and dotted_name(session, annotation.func) in POINTERS:
        given = dict(zip(("dtype", "storage_scope"), annotation.args, strict=False))
        words = {str(word.arg): word.value for word in annotation.keywords}
        if len(annotation.args) > 2 or words.keys() - {"dtype", "storage_scope"} or words.keys() & given.keys():
            raise session.fail("W113", "T.handle takes a dtype and a scope", annotation)
        values = {key: session.constant(item) for key, item in {**given, **words}.items()}
        to = "void" if values.get("dtype") is None else values["dtype"]
        pointee = session.fold(lambda: dtypes.check_dtype(to), annotation) if values else None
        return PrimVar(name, "handle", pointee, values.get("storage_scope", "global"), span=session.span(place))
    return None


def pointer_dtype(session: TensorSession, tree: ast.Attribute) -> str | None:
    """The dtype of `T.handle("float32").ty`, None for any other attribute."""
    if tree.attr != "ty" or not isinstance(tree.value, ast.Call):
        return None
    return "handle" if handle_annotation(session, tree.value, tree) is not None else None


def declared_type(session: TensorSession, annotation: ast.expr | None) -> tuple[PrimVar | None, bool]:
    """The dtype that an annotation states (as a variable), and whether it is `T.let`."""
    if annotation is None:
        return None, False
    if isinstance(annotation, ast.Subscript) and dotted_name(session, annotation.value) in ("T.let", "T.LetStmt"):
        return declared_type(session, annotation.slice)[0], True
    if dotted_name(session, annotation) in ("T.let", "T.LetStmt"):
        return None, True
    handle = handle_annotation(session, annotation, ast.copy_location(ast.Name("", ast.Load()), annotation))
    if handle is not None:
        return handle, False
    value = session.value(annotation)
    if isinstance(value, str):
        return PrimVar("", session.fold(lambda: dtypes.check_dtype(value), annotation)), False
    if isinstance(value, PrimType):
        return PrimVar("", value.dtype), False
    hint = "write `x: T.int32 = 3`, or `x = 3` for a value that is not named in the kernel"
    raise session.fail("W114", f"expected T.let or a dtype, got {describe(value)}", annotation, hint)


def _new_buffer(session: TensorSession, values: dict[str, Any], target: ast.Name) -> Buffer:
    """A buffer under a name of its own; W118 where the name is that of another buffer already."""
    known = session.scope.get(target.id)
    place = session.buffer_places.get(known) if isinstance(known, Buffer) else None
    if place is not None and place is not target and values.get("data") is None and not session.expanding:
        if not isinstance(known, Buffer) or known not in session.declared:
            raise session.fail("W118", f"the buffer '{target.id}' is defined already", target, "choose another name")
    buffer = make_buffer(session, values, target.id, target)
    session.buffer_places[buffer] = target
    session.scope.names[target.id] = buffer
    return buffer


@TENSOR.assigned("T.alloc_buffer")
def _alloc(session: TensorSession, target: ast.Name, tree: ast.Call) -> Stmt | None:
    values = bind_buffer(session, "T.alloc_buffer", tree)
    buffer = _new_buffer(session, values, target)
    # Where the dialect has a name of its own for the buffers of a block, the other name is a statement.
    stated = session.s_tir and isinstance(tree.func, ast.Attribute) and tree.func.attr == "alloc_buffer"
    if session.block is not None and values["block"] and not values["annotations"] and not stated:
        session.block.alloc_buffers.append(buffer)
        return None
    return AllocBuffer(buffer, values["annotations"], span=session.span(tree))


def alloc_in_scope(session: TensorSession, name: str, scope: str | None) -> Callable[[ast.Name, ast.Call], Stmt]:
    """The function that reads an allocation in a scope of memory."""

    def read(target: ast.Name, tree: ast.Call) -> Stmt:
        values = bind_buffer(session, name, tree)
        condition = values.get("condition")
        if condition is not None and not (isinstance(condition, IntImm) and condition.value):
            raise session.fail("W115", "an allocation under a condition", tree, "write the allocation inside an `if`")
        if "shape" not in values:
            values["shape"] = (1,)
            session.scalars = session.scalars | {target.id}
        buffer = _new_buffer(session, {**values, "scope": scope or values["scope"]}, target)
        return AllocBuffer(buffer, values.get("annotations", EMPTY) or EMPTY, span=session.span(tree))

    return read


@TENSOR.assigned("T.allocate")
def _allocate(session: TensorSession, target: ast.Name, tree: ast.Call) -> Stmt:
    return alloc_in_scope(session, "T.allocate", None)(target, tree)


@TENSOR.assigned("T.allocate_const")
def _allocate_const(session: TensorSession, target: ast.Name, tree: ast.Call) -> list[Stmt]:
    """Memory with known content: what it holds is stored into it."""
    values = bind_buffer(session, "T.allocate_const", tree)
    data = session.constant(values.pop("data"))
    numbers = np.asarray(data).ravel().tolist() if isinstance(data, (list, tuple, np.ndarray)) else None
    sizes = [size for size in values["shape"] if isinstance(size, int)]
    if numbers is None or len(sizes) != len(values["shape"]) or math.prod(sizes) != len(numbers):
        raise session.fail("W114", "T.allocate_const takes the numbers of a shape", tree)
    buffer = _new_buffer(session, values, target)
    stmts: list[Stmt] = [AllocBuffer(buffer, values["annotations"], span=session.span(tree))]
    for position, number in zip(np.ndindex(*sizes), numbers, strict=True):
        indices = tuple(index_const(index) for index in position)
        stmts.append(
            BufferStore(buffer, as_prim(session, number, tree, buffer.dtype), indices, span=session.span(tree))
        )
    return stmts


def _allocates(form: str, scope: str) -> None:
    """Read a form that allocates in a scope of its own."""
    TENSOR.assigned(form)(lambda session, target, tree: alloc_in_scope(session, form, scope)(target, tree))


for _form in ("T.alloc_local", "T.alloc_shared", "T.local_scalar", "T.shared_scalar"):
    _allocates(_form, "local" if "local" in _form else "shared")


@TENSOR.assigned("T.decl_buffer")
def _decl(session: TensorSession, target: ast.Name, tree: ast.Call) -> Stmt:
    values = bind_buffer(session, "T.decl_buffer", tree)
    buffer = _new_buffer(session, values, target)
    if buffer.data is None:  # a declaration of memory that nobody owns yet
        return AllocBuffer(buffer, span=session.span(tree))
    return DeclBuffer(buffer, span=session.span(tree))


@TENSOR.assigned("T.decl_scalar")
def _decl_scalar(session: TensorSession, target: ast.Name, tree: ast.Call) -> Stmt:
    """`x = T.decl_scalar("float32", data=p)`: a local scalar in memory that is there already."""
    values = {"shape": (1,), **bind_buffer(session, "T.decl_scalar", tree)}
    session.scalars = session.scalars | {target.id}
    return DeclBuffer(_new_buffer(session, values, target), span=session.span(tree))


@TENSOR.assigned("T.match_buffer")
def read_match_buffer(session: TensorSession, target: ast.Name, tree: ast.Call) -> None:
    """`A = T.match_buffer(handle | region, ...)`: a parameter, or a view of a region."""
    before, session.defining = session.defining, True  # strings in strides and offsets may introduce symbols
    try:
        values = bind_buffer(session, "T.match_buffer", tree)
    finally:
        session.defining = before
    source = values.pop("source")
    if isinstance(source, PrimVar) and source in session.params:
        if values["shape"] is None:
            raise session.fail("W113", "T.match_buffer lacks its argument 'shape'", tree)
        if source.dtype != "handle":
            raise session.fail("W114", f"'{source.name}' is a {source.dtype}, not a T.handle", tree)
        name_offset(session, values, target.id, target)
        buffer = _new_buffer(session, values, target)
        session.params[session.params.index(source)] = buffer
        return
    if isinstance(source, (BufferRegion, BufferLoad, Buffer)):
        region = as_region(session, source, tree)
        if values["shape"] is None:
            values["shape"] = tuple(item.extent for item in region.region)
        if not any(keyword.arg == "dtype" for keyword in tree.keywords) and len(tree.args) < 3:
            values["dtype"] = region.buffer.dtype
        header = block_header(session, tree, "T.match_buffer of a region")
        _check_view(session, values, region, tree)
        name_offset(session, values, target.id, target)
        buffer = _new_buffer(session, values, target)
        header.match_buffers.append(MatchBufferRegion(buffer, region, span=session.span(tree)))
        return
    raise session.fail("W114", "T.match_buffer takes a handle parameter or a region of a buffer", tree)


def _check_view(session: TensorSession, values: dict[str, Any], region: BufferRegion, tree: ast.AST) -> None:
    """W121 and W123: what a buffer sees of another one has its shape, but for leading 1s, and its dtype."""
    extents, shape = [item.extent for item in region.region], values["shape"]
    dropped, rest = extents[: len(extents) - len(shape)], extents[len(extents) - len(shape) :]
    known = [(a, b) for a, b in zip(rest, shape, strict=False) if isinstance(a, int) and isinstance(b, int)]
    leading = all(e == 1 for e in dropped if isinstance(e, int))
    if len(shape) > len(extents) or not leading or any(a != b for a, b in known):
        sizes = ", ".join(str(e) if isinstance(e, int) else "..." for e in extents)
        raise session.fail("W121", f"the region has the shape ({sizes}), which is not that of the buffer", tree)
    if values["dtype"] != region.buffer.dtype:
        raise session.fail("W123", f"'{region.buffer.name}' holds {region.buffer.dtype}, not {values['dtype']}", tree)


@TENSOR.assigned("T.preflattened_buffer")
def _preflattened(session: TensorSession, target: ast.Name | None, tree: ast.Call) -> Stmt:
    """`T.preflattened_buffer(A, shape, dtype, data=A.data)`: the parameter in the shape that callers see."""
    source = session.value(tree.args[0]) if tree.args else None
    if not isinstance(source, Buffer):
        raise session.fail("W114", "T.preflattened_buffer takes a buffer and its shape", tree)
    rest = ast.copy_location(ast.Call(tree.func, tree.args[1:], tree.keywords), tree)
    values = bind_buffer(session, "T.decl_buffer", rest)
    if values["data"] is None:
        values["data"] = address_of_data(session, source, tree)
    name = target or ast.copy_location(ast.Name(f"{source.name}_preflattened", ast.Store()), tree)
    buffer = make_buffer(session, values, name.id, name)
    session.scope.names[name.id] = buffer
    return DeclBuffer(buffer, span=session.span(tree))


@TENSOR.statement("T.preflattened_buffer")
def _preflattened_statement(session: TensorSession, tree: ast.Call) -> Stmt:
    return _preflattened(session, None, tree)


def declare_view(session: TensorSession, target: ast.Name, tree: ast.expr, statement: ast.stmt) -> Stmt | None:
    """`B = A.view(8, 4)`, `A.view("int32")`: the memory of a buffer in another shape or dtype."""
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "view"):
        return None
    source = session.value(tree.func.value)
    if not isinstance(source, Buffer):
        return None
    values = [session.value(argument) for argument in argument_trees(session, tree)]
    named = {keyword.arg: session.value(keyword.value) for keyword in tree.keywords if keyword.arg != "layout"}
    if any(name != "dtype" for name in named):
        raise session.fail("W113", "view takes sizes or a dtype", tree)
    if values and isinstance(values[-1], str):
        named["dtype"] = values.pop()
    dtype = session.fold(lambda: dtypes.check_dtype(named.get("dtype", source.dtype)), tree)
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = list(values[0])
    shape = tuple(as_extent(session, value, tree) for value in values) or _shape_in(session, source, dtype, tree)
    data = source.data if source.data is not None else address_of_data(session, source, tree)
    buffer = session.fold(
        lambda: Buffer(
            target.id,
            shape,
            dtype,
            source.scope,
            None,
            source.elem_offset,
            data,
            source.align,
            source.offset_factor,
            span=session.span(target),
        ),
        tree,
    )
    session.scope.names[target.id] = buffer
    return DeclBuffer(buffer, span=session.span(statement))


def _shape_in(session: TensorSession, buffer: Buffer, dtype: str, tree: ast.AST) -> tuple[Extent, ...]:
    """The shape of a buffer whose memory is seen in another dtype: the last dimension changes."""
    old, new = (dtypes.bits(name) * dtypes.lanes(name) for name in (buffer.dtype, dtype))
    if old == new or not buffer.shape:
        return buffer.shape
    scaled = apply_binary(session, "mul", extent_of(buffer.shape[-1]), old, tree)
    return (*buffer.shape[:-1], extent_of(apply_binary(session, "floordiv", scaled, new, tree)))
