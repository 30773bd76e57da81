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
from weft.script.reader.base import ModuleScope, describe
from weft.script.reader.tensor.block import BlockReader
from weft.script.reader.tensor.scalar import extent_of, index_const
from weft.script.source.text import Unit

__all__ = ["POINTERS", "DeclarationReader"]

POINTERS = ("T.handle", "T.Ptr", "T.ptr")


class DeclarationReader(BlockReader):
    """Reads declarations of symbols, pointers and buffers."""

    s_tir = False  # whether the function says that it is of the dialect with blocks

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.params: list[Buffer | PrimVar] = []
        self.buffer_places: dict[Buffer, ast.AST] = {}  # where each buffer that has a name of its own is defined
        self.declared: set[Buffer] = set()  # by `A = T.Buffer(...)`: its memory may follow

    def symbol_declaration(self, tree: ast.expr) -> str | None:
        """The dtype of `T.int64()` or `T.var("int64")` (a new symbol), or None for another expression."""
        if not isinstance(tree, ast.Call) or any(word.arg != "is_size_var" for word in tree.keywords):
            return None
        name = self.dotted(tree.func)
        if name in ("T.var", "T.dyn"):
            if len(tree.args) > 1:
                raise self.fail("W113", f"{name} takes a dtype", tree)
            return self.fold(lambda: dtypes.check_dtype(self.constant(tree.args[0])), tree) if tree.args else "int64"
        dtype = self.dtype_name(name) if name and not tree.args else None
        return dtype if dtype is not None and dtype != "handle" else None

    def _handle_annotation(self, annotation: ast.expr, place: ast.AST) -> PrimVar | None:
        name = getattr(place, "arg", "") or getattr(place, "id", "")
        if self.dotted(annotation) in POINTERS:
            return PrimVar(name, "handle", span=self.span(place))
        if isinstance(annotation, ast.Subscript) and self.dotted(annotation.value) in POINTERS:
            parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
            annotation = ast.copy_location(ast.Call(annotation.value, list(parts), []), annotation)
        if isinstance(annotation, ast.Call) and self.dotted(annotation.func) in POINTERS:
            given = dict(zip(("dtype", "storage_scope"), annotation.args, strict=False))
            words = {str(word.arg): word.value for word in annotation.keywords}
            if len(annotation.args) > 2 or words.keys() - {"dtype", "storage_scope"} or words.keys() & given.keys():
                raise self.fail("W113", "T.handle takes a dtype and a scope", annotation)
            values = {key: self.constant(item) for key, item in {**given, **words}.items()}
            to = "void" if values.get("dtype") is None else values["dtype"]
            pointee = self.fold(lambda: dtypes.check_dtype(to), annotation) if values else None
            return PrimVar(name, "handle", pointee, values.get("storage_scope", "global"), span=self.span(place))
        return None

    def pointer_dtype(self, tree: ast.Attribute) -> str | None:
        """The dtype of `T.handle("float32").ty`, None for any other attribute."""
        if tree.attr != "ty" or not isinstance(tree.value, ast.Call):
            return None
        return "handle" if self._handle_annotation(tree.value, tree) is not None else None

    def _declared(self, annotation: ast.expr | None) -> tuple[PrimVar | None, bool]:
        """The dtype that an annotation states (as a variable), and whether it is `T.let`."""
        if annotation is None:
            return None, False
        if isinstance(annotation, ast.Subscript) and self.dotted(annotation.value) in ("T.let", "T.LetStmt"):
            return self._declared(annotation.slice)[0], True
        if self.dotted(annotation) in ("T.let", "T.LetStmt"):
            return None, True
        handle = self._handle_annotation(annotation, ast.copy_location(ast.Name("", ast.Load()), annotation))
        if handle is not None:
            return handle, False
        value = self.value(annotation)
        if isinstance(value, str):
            return PrimVar("", self.fold(lambda: dtypes.check_dtype(value), annotation)), False
        if isinstance(value, PrimType):
            return PrimVar("", value.dtype), False
        raise self.fail("W114", f"expected T.let or a dtype, got {describe(value)}", annotation)

    def _new_buffer(self, values: dict[str, Any], target: ast.Name) -> Buffer:
        """A buffer under a name of its own; W118 where the name is that of another buffer already."""
        known = self.scope.get(target.id)
        place = self.buffer_places.get(known) if isinstance(known, Buffer) else None
        if place is not None and place is not target and values.get("data") is None and not self.expanding:
            if not isinstance(known, Buffer) or known not in self.declared:
                raise self.fail("W118", f"the buffer '{target.id}' is defined already", target, "choose another name")
        buffer = self.make_buffer(values, target.id, target)
        self.buffer_places[buffer] = target
        self.scope.names[target.id] = buffer
        return buffer

    def _alloc(self, target: ast.Name, tree: ast.Call) -> Stmt | None:
        values = self.bind_buffer("T.alloc_buffer", tree)
        buffer = self._new_buffer(values, target)
        # Where the dialect has a name of its own for the buffers of a block, the other name is a statement.
        stated = self.s_tir and isinstance(tree.func, ast.Attribute) and tree.func.attr == "alloc_buffer"
        if self.block is not None and values["block"] and not values["annotations"] and not stated:
            self.block.alloc_buffers.append(buffer)
            return None
        return AllocBuffer(buffer, values["annotations"], span=self.span(tree))

    def _alloc_scope(self, name: str, scope: str | None) -> Callable[[ast.Name, ast.Call], Stmt]:
        def read(target: ast.Name, tree: ast.Call) -> Stmt:
            values = self.bind_buffer(name, tree)
            condition = values.get("condition")
            if condition is not None and not (isinstance(condition, IntImm) and condition.value):
                raise self.fail("W115", "an allocation under a condition", tree, "write the allocation inside an `if`")
            if "shape" not in values:
                values["shape"] = (1,)
                self.scalars = self.scalars | {target.id}
            buffer = self._new_buffer({**values, "scope": scope or values["scope"]}, target)
            return AllocBuffer(buffer, values.get("annotations", EMPTY) or EMPTY, span=self.span(tree))

        return read

    def _allocate(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.allocate", None)(target, tree)

    def _allocate_const(self, target: ast.Name, tree: ast.Call) -> list[Stmt]:
        """Memory with known content: what it holds is stored into it."""
        values = self.bind_buffer("T.allocate_const", tree)
        data = self.constant(values.pop("data"))
        numbers = np.asarray(data).ravel().tolist() if isinstance(data, (list, tuple, np.ndarray)) else None
        sizes = [size for size in values["shape"] if isinstance(size, int)]
        if numbers is None or len(sizes) != len(values["shape"]) or math.prod(sizes) != len(numbers):
            raise self.fail("W114", "T.allocate_const takes the numbers of a shape", tree)
        buffer = self._new_buffer(values, target)
        stmts: list[Stmt] = [AllocBuffer(buffer, values["annotations"], span=self.span(tree))]
        for position, number in zip(np.ndindex(*sizes), numbers, strict=True):
            indices = tuple(index_const(index) for index in position)
            stmts.append(BufferStore(buffer, self.as_prim(number, tree, buffer.dtype), indices, span=self.span(tree)))
        return stmts

    def _alloc_local(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.alloc_local", "local")(target, tree)

    def _alloc_shared(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.alloc_shared", "shared")(target, tree)

    def _local_scalar(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.local_scalar", "local")(target, tree)

    def _shared_scalar(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.shared_scalar", "shared")(target, tree)

    def _decl(self, target: ast.Name, tree: ast.Call) -> Stmt:
        values = self.bind_buffer("T.decl_buffer", tree)
        buffer = self._new_buffer(values, target)
        if buffer.data is None:  # a declaration of memory that nobody owns yet
            return AllocBuffer(buffer, span=self.span(tree))
        return DeclBuffer(buffer, span=self.span(tree))

    def _decl_scalar(self, target: ast.Name, tree: ast.Call) -> Stmt:
        """`x = T.decl_scalar("float32", data=p)`: a local scalar in memory that is there already."""
        values = {"shape": (1,), **self.bind_buffer("T.decl_scalar", tree)}
        self.scalars = self.scalars | {target.id}
        return DeclBuffer(self._new_buffer(values, target), span=self.span(tree))

    def _match_buffer(self, target: ast.Name, tree: ast.Call) -> None:
        before, self.defining = self.defining, True  # strings in strides and offsets may introduce symbols
        try:
            values = self.bind_buffer("T.match_buffer", tree)
        finally:
            self.defining = before
        source = values.pop("source")
        if isinstance(source, PrimVar) and source in self.params:
            if values["shape"] is None:
                raise self.fail("W113", "T.match_buffer lacks its argument 'shape'", tree)
            if source.dtype != "handle":
                raise self.fail("W114", f"'{source.name}' is a {source.dtype}, not a T.handle", tree)
            self.name_offset(values, target.id, target)
            buffer = self._new_buffer(values, target)
            self.params[self.params.index(source)] = buffer
            return
        if isinstance(source, (BufferRegion, BufferLoad, Buffer)):
            region = self.as_region(source, tree)
            if values["shape"] is None:
                values["shape"] = tuple(item.extent for item in region.region)
            if not any(keyword.arg == "dtype" for keyword in tree.keywords) and len(tree.args) < 3:
                values["dtype"] = region.buffer.dtype
            header = self._header(tree, "T.match_buffer of a region")
            self._check_view(values, region, tree)
            self.name_offset(values, target.id, target)
            buffer = self._new_buffer(values, target)
            header.match_buffers.append(MatchBufferRegion(buffer, region, span=self.span(tree)))
            return
        raise self.fail("W114", "T.match_buffer takes a handle parameter or a region of a buffer", tree)

    def _check_view(self, values: dict[str, Any], region: BufferRegion, tree: ast.AST) -> None:
        """W121 and W123: what a buffer sees of another one has its shape, but for leading 1s, and its dtype."""
        extents, shape = [item.extent for item in region.region], values["shape"]
        dropped, rest = extents[: len(extents) - len(shape)], extents[len(extents) - len(shape) :]
        known = [(a, b) for a, b in zip(rest, shape, strict=False) if isinstance(a, int) and isinstance(b, int)]
        leading = all(e == 1 for e in dropped if isinstance(e, int))
        if len(shape) > len(extents) or not leading or any(a != b for a, b in known):
            sizes = ", ".join(str(e) if isinstance(e, int) else "..." for e in extents)
            raise self.fail("W121", f"the region has the shape ({sizes}), which is not that of the buffer", tree)
        if values["dtype"] != region.buffer.dtype:
            raise self.fail("W123", f"'{region.buffer.name}' holds {region.buffer.dtype}, not {values['dtype']}", tree)

    def _preflattened(self, target: ast.Name | None, tree: ast.Call) -> Stmt:
        """`T.preflattened_buffer(A, shape, dtype, data=A.data)`: the parameter in the shape that callers see."""
        source = self.value(tree.args[0]) if tree.args else None
        if not isinstance(source, Buffer):
            raise self.fail("W114", "T.preflattened_buffer takes a buffer and its shape", tree)
        rest = ast.copy_location(ast.Call(tree.func, tree.args[1:], tree.keywords), tree)
        values = self.bind_buffer("T.decl_buffer", rest)
        if values["data"] is None:
            values["data"] = self._data_of(source, tree)
        name = target or ast.copy_location(ast.Name(f"{source.name}_preflattened", ast.Store()), tree)
        buffer = self.make_buffer(values, name.id, name)
        self.scope.names[name.id] = buffer
        return DeclBuffer(buffer, span=self.span(tree))

    def _preflattened_statement(self, tree: ast.Call) -> Stmt:
        return self._preflattened(None, tree)

    def _view(self, target: ast.Name, tree: ast.expr, statement: ast.stmt) -> Stmt | None:
        """`B = A.view(8, 4)`, `A.view("int32")`: the memory of a buffer in another shape or dtype."""
        if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "view"):
            return None
        source = self.value(tree.func.value)
        if not isinstance(source, Buffer):
            return None
        values = [self.value(argument) for argument in self._spread(tree)]
        named = {keyword.arg: self.value(keyword.value) for keyword in tree.keywords if keyword.arg != "layout"}
        if any(name != "dtype" for name in named):
            raise self.fail("W113", "view takes sizes or a dtype", tree)
        if values and isinstance(values[-1], str):
            named["dtype"] = values.pop()
        dtype = self.fold(lambda: dtypes.check_dtype(named.get("dtype", source.dtype)), tree)
        if len(values) == 1 and isinstance(values[0], (tuple, list)):
            values = list(values[0])
        shape = tuple(self.as_extent(value, tree) for value in values) or self._shape_in(source, dtype, tree)
        data = source.data if source.data is not None else self._data_of(source, tree)
        buffer = self.fold(
            lambda: Buffer(
                target.id, shape, dtype, source.scope, None, source.elem_offset, data, source.align,
                source.offset_factor, span=self.span(target),
            ), tree,
        )  # fmt: skip
        self.scope.names[target.id] = buffer
        return DeclBuffer(buffer, span=self.span(statement))

    def _shape_in(self, buffer: Buffer, dtype: str, tree: ast.AST) -> tuple[Extent, ...]:
        """The shape of a buffer whose memory is seen in another dtype: the last dimension changes."""
        old, new = (dtypes.bits(name) * dtypes.lanes(name) for name in (buffer.dtype, dtype))
        if old == new or not buffer.shape:
            return buffer.shape
        scaled = self.binary("mul", extent_of(buffer.shape[-1]), old, tree)
        return (*buffer.shape[:-1], extent_of(self.binary("floordiv", scaled, new, tree)))
