"""Reading the simple statements of tensor-level functions: clauses of blocks, assignments, allocations, axes.

A name that is assigned once is an immutable binding; one that is assigned again is a local scalar in memory.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from weft.ir import dtype as dtypes
from weft.ir.graph import Expr
from weft.ir.node import EMPTY, FrozenMap, Node, replace
from weft.ir.prim import cast, const
from weft.ir.tensor import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Break,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    Extent,
    FloatImm,
    For,
    IntImm,
    IterVar,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Range,
    Return,
    Stmt,
)
from weft.ir.types import PrimType
from weft.script.defaults import axis_dtype, loop_dtype
from weft.script.macros import Macro
from weft.script.read_buffer import BufferReader
from weft.script.read_call import KnownValue
from weft.script.read_device import THREAD_AXES, is_thread_axis
from weft.script.read_scalar import extent_of, index_const
from weft.script.reader import ModuleScope, Scope, describe, is_plain
from weft.script.source import MISSING, Unit
from weft.script.syntax import ALL_FORMS, CLAUSES, LOOPS, SCOPES

__all__ = ["BindingReader", "BlockHeader"]

_POINTERS = ("T.handle", "T.Ptr", "T.ptr")
_AXIS_LETTERS = {"S": "spatial", "R": "reduce", "C": "scan", "O": "opaque"}


class BlockHeader:
    """What the clauses of a block say."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.iter_vars: list[IterVar] = []
        self.predicate: PrimExpr | None = None
        self.reads: tuple[BufferRegion, ...] | None = None
        self.writes: tuple[BufferRegion, ...] | None = None
        self.init: Stmt | None = None
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[MatchBufferRegion] = []
        self.annotations: FrozenMap = EMPTY


class BindingReader(BufferReader):
    """Reads simple statements."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.loops: dict[PrimVar, tuple[Extent, Extent]] = {}  # enclosing loops: start and extent
        self.block: BlockHeader | None = None
        self.attrs: FrozenMap = EMPTY
        self.assigned: dict[str, int] = {}  # how often each name is assigned
        self.offsets_read = set()
        self.params: list[Buffer | PrimVar] = []
        self.threads: dict[str, str] = {}
        self.buffer_places: dict[Buffer, ast.AST] = {}  # where each buffer that has a name of its own is defined
        self.declared: set[Buffer] = set()  # by `A = T.Buffer(...)`: its memory may follow
        self.realized: frozenset[str] = frozenset()  # names that a T.realize gives memory

    def expand_statement(self, tree: ast.Call) -> list[Stmt] | None:
        """The statements of a macro that is called as one, or None for another call (see `read_tensor`)."""
        return None

    s_tir = False  # whether the function says that it is of the dialect with blocks

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
        if self.dotted(annotation) in _POINTERS:
            return PrimVar(name, "handle", span=self.span(place))
        if isinstance(annotation, ast.Subscript) and self.dotted(annotation.value) in _POINTERS:
            parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
            annotation = ast.copy_location(ast.Call(annotation.value, list(parts), []), annotation)
        if isinstance(annotation, ast.Call) and self.dotted(annotation.func) in _POINTERS:
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

    def _pass(self, tree: ast.stmt) -> None:
        return None

    def _expression(self, tree: ast.Expr) -> Any:
        call = tree.value
        if isinstance(call, ast.Constant) and isinstance(call.value, str):
            return None  # a docstring
        if isinstance(call, ast.Call):
            name = self.dotted(call.func)
            method = self._CLAUSE_METHODS.get(name or "")
            if method is not None:
                return method(self, call)
            if isinstance(call.func, ast.Attribute) and call.func.attr == "vstore":
                return self._vstore(call)
            expanded = self.expand_statement(call)
            if expanded is not None:
                return expanded
        value = self.value(call)
        if value is None and isinstance(call, ast.Call):
            return None  # what happened while reading, such as adding to a list
        if not isinstance(value, Expr) or isinstance(value, PrimVar):
            raise self.fail("W115", f"a statement of {describe(value)} does nothing", tree)
        return Evaluate(value, span=self.span(tree))

    def _vstore(self, tree: ast.Call) -> Stmt:
        assert isinstance(tree.func, ast.Attribute)
        buffer = self.value(tree.func.value)
        values = self._values(tree, ("predicate",))
        if not isinstance(buffer, Buffer) or len(values) != 2:
            raise self.fail("W113", "vstore takes indices and a value", tree)
        indices = [
            self.as_prim(index, tree) for index in (values[0] if isinstance(values[0], (tuple, list)) else [values[0]])
        ]
        value = self.as_prim(values[1], tree)
        lanes = dtypes.lanes(value.dtype)
        if lanes > 1 and dtypes.lanes(indices[-1].dtype) == 1:
            indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), lanes)
        return BufferStore(buffer, value, tuple(indices), self._predicate(tree), span=self.span(tree))

    def _masked_store(self, tree: ast.Call) -> Stmt:
        """`T.masked_store(A, value, *indices, mask)`: a store with a predicate; a call where A is a pointer."""
        target = self.value(tree.args[0]) if len(tree.args) > 3 and not tree.keywords else None
        if isinstance(target, Buffer):
            indices, mask = self.masked_indices(target, tree.args[2:], tree)
            if indices:
                value = self.prim(tree.args[1])
                return BufferStore(target, value, indices, mask, span=self.span(tree))
        return Evaluate(self.prim(tree), span=self.span(tree))

    def _header(self, tree: ast.AST, what: str) -> BlockHeader:
        if self.block is None:
            raise self.fail("W114", f"`{what}` belongs directly inside a `with T.block(...)`", tree)
        return self.block

    def _func_attr(self, tree: ast.Call) -> None:
        values = self.bind(ALL_FORMS["T.func_attr"], tree)
        if not isinstance(values["attrs"], FrozenMap):
            raise self.fail("W114", "T.func_attr takes a dictionary", tree)
        self._check_private(values["attrs"], tree)
        self.attrs = self.joined(self.attrs, values["attrs"], "function", tree)

    def _reads(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.reads")
        self._once(header.reads, "T.reads", tree)
        header.reads = self._regions(tree, "T.reads")

    def _writes(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.writes")
        self._once(header.writes, "T.writes", tree)
        header.writes = self._regions(tree, "T.writes")

    def _regions(self, tree: ast.Call, name: str) -> tuple[BufferRegion, ...]:
        values = self.bind(CLAUSES[name], tree)["regions"]
        flat: list[BufferRegion] = []
        for value in values:
            flat.extend(value if isinstance(value, tuple) else (value,))
        return tuple(flat)

    def _where(self, tree: ast.Call) -> None:
        predicate = self.bind(CLAUSES["T.where"], tree)["predicate"]
        header = self._header(tree, "T.where")
        self._once(header.predicate, "T.where", tree)
        header.predicate = self._as_bool(predicate, tree)

    def _once(self, known: object, name: str, tree: ast.AST) -> None:
        if known is not None:
            raise self.fail("W118", f"a block has one {name}", tree)

    def _block_attr(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.block_attr")
        attrs = self.bind(CLAUSES["T.block_attr"], tree)["attrs"]
        if not isinstance(attrs, FrozenMap):
            raise self.fail("W114", "T.block_attr takes a dictionary", tree)
        header.annotations = self.joined(header.annotations, attrs, "block", tree)

    def _evaluate(self, tree: ast.Call) -> Any:
        inner = tree.args[0] if len(tree.args) == 1 else None
        statement = self._JUMPS.get(self.dotted(inner.func) or "") if isinstance(inner, ast.Call) else None
        if statement is not None and isinstance(inner, ast.Call):
            return statement(self, inner)
        if isinstance(inner, ast.Call) and self.dotted(inner.func) == "T.StringImm":
            return Evaluate(self.value(inner), span=self.span(tree))
        return Evaluate(self.bind(CLAUSES["T.evaluate"], tree)["value"], span=self.span(tree))

    def _bare_axis(self, tree: ast.Call) -> None:
        raise self.fail("W114", "a block variable needs a name", tree, "write `vi = T.axis.spatial(4, i)`")

    def _break_loop(self, tree: ast.Call) -> Stmt:
        return Break(span=self.span(tree))

    def _continue_loop(self, tree: ast.Call) -> Stmt:
        return Continue(span=self.span(tree))

    def _ret(self, tree: ast.Call) -> Stmt:
        values = self._values(tree)
        return Return(self.as_prim(values[0], tree) if values else None, span=self.span(tree))

    def _attr_statement(self, tree: ast.Call) -> Any:
        if len(tree.args) == 1 and not tree.keywords:
            return self._attr_pairs(tree)
        values = self.bind(SCOPES["T.attr"], tree)
        axis = values["node"]
        if isinstance(axis, ast.Call) and self.dotted(axis.func) == "T.iter_var":
            return self._thread_of(axis, values["key"], self.value(values["value"]), tree)
        node, value = self.attr_operand(values["node"]), self.attr_operand(values["value"])
        if type(node) is int and node == 0:  # how older texts say that it is of no node in particular
            node = None
        return lambda body: AttrStmt(node, values["key"], value, body, span=self.span(tree))

    def _thread_of(self, axis: ast.Call, key: str, extent: Any, tree: ast.Call) -> Any:
        """`T.attr(T.iter_var(v, (0, n), "ThreadIndex", tag), "thread_extent", n)`: a thread axis around the rest.

        Any other attribute is of what the tag names, of no node in particular where there is none.
        """
        named = {word.arg: word.value for word in axis.keywords}
        places = [*axis.args, *(named[name] for name in ("iter_type", "thread_tag") if name in named)]
        var, tag = (self._axis_variable(places[0]), self.value(places[3])) if len(places) == 4 else (None, None)
        bound = key in ("thread_extent", "virtual_thread")
        if not isinstance(var, PrimVar) or not isinstance(tag, str) or (bound and not tag):
            raise self.fail("W113", "T.iter_var takes a variable, its range, its kind and its thread", axis)
        if not bound:
            value = extent if isinstance(extent, Node) else self.attribute_value(extent, tree)
            return lambda body: AttrStmt(tag or None, key, value, body, span=self.span(tree))
        self.thread_axis(tag, tree)
        size = self.as_extent(extent, tree)
        self.loops[var] = (0, size)
        return lambda body: For(var, 0, size, body, "thread_binding", tag, span=self.span(tree))

    def _axis_variable(self, tree: ast.expr) -> Any:
        """The variable of an iteration axis; a declaration in its place is one that nothing names."""
        dtype = self.symbol_declaration(tree)
        return PrimVar("v", dtype, span=self.span(tree)) if dtype is not None else self.value(tree)

    def _attr_pairs(self, tree: ast.Call) -> Any:
        """`T.attr({"key": value, ...})`: attributes of no node in particular, the first outermost."""
        pairs = self.read_literal(tree.args[0])
        if not isinstance(pairs, FrozenMap):
            raise self.fail("W114", "T.attr takes a node, a key and a value, or a dictionary", tree)

        def wrap(body: Stmt) -> Stmt:
            for key, value in reversed(list(pairs.items())):
                body = AttrStmt(None, key, value, body, span=self.span(tree))
            return body

        return wrap

    def attr_operand(self, tree: ast.expr) -> Any:
        """The node or value of an attribute statement."""
        value = self.value(tree)
        return value if isinstance(value, Node) else self.attribute_value(value, tree)

    def _static_assert(self, tree: ast.Call) -> None:
        values = self._values(tree)
        if not values or not is_plain(values[0]):
            raise self.fail("W114", "T.static_assert takes a condition known while reading", tree)
        if not values[0]:
            raise self.fail("W124", str(values[1]) if len(values) > 1 else "the static assertion is false", tree)

    def _assign(self, tree: ast.Assign) -> Any:
        if len(tree.targets) != 1:
            return self._assign_all(tree)
        target = tree.targets[0]
        if isinstance(target, ast.Subscript):
            return self._store(target, tree.value, tree)
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._assign_many(target, tree.value, tree)
        if isinstance(target, ast.Name):
            return self._assign_name(target, tree.value, None, tree)
        raise self.fail("W115", "only names and buffer elements can be assigned", target)

    def _assign_all(self, tree: ast.Assign) -> list[Stmt]:
        """`a = b[i] = e`: the value is computed once."""
        value = self.value(tree.value)
        made: list[Any] = []
        if isinstance(value, PrimExpr) and not isinstance(value, (IntImm, FloatImm, PrimVar)):
            var = PrimVar("value", value.dtype, span=self.span(tree.value))
            made.append(Bind(var, value, span=self.span(tree)))
            value = var
        for target in tree.targets:
            one = ast.copy_location(ast.Assign([target], KnownValue(value, tree.value)), tree)
            part = self._assign(one)
            made.extend(part if isinstance(part, list) else [part])
        return [part for part in made if part is not None]

    def _assign_many(self, target: ast.Tuple | ast.List, tree: ast.expr, statement: ast.stmt) -> Any:
        names = [item for item in target.elts if isinstance(item, ast.Name)]
        name = self.dotted(tree.func) if isinstance(tree, ast.Call) else None
        if len(names) != len(target.elts):
            if name == "T.axis.remap" and isinstance(tree, ast.Call):
                self._remap_starred(target, tree)
                return None
            return self._assign_parts(target, self.value(tree), tree, statement)
        if name == "T.axis.remap" and isinstance(tree, ast.Call):
            self._remap(names, tree)
            return None
        if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(names):
            parts = [
                self._assign_name(item, part, None, statement) for item, part in zip(names, tree.elts, strict=True)
            ]
            return [part for made in parts for part in (made if isinstance(made, list) else [made]) if part is not None]
        return self._assign_parts(target, self.value(tree), tree, statement)

    def _assign_parts(
        self, target: ast.Tuple | ast.List, values: Any, tree: ast.expr, statement: ast.stmt
    ) -> list[Any]:
        """`a, (b, *c) = values`."""
        if not isinstance(values, (tuple, list, range)):
            raise self.fail("W115", f"cannot unpack {describe(values)} into {len(target.elts)} names", statement)
        made: list[Any] = []
        for item, value in self.unpacked(target, values, target):
            one = ast.copy_location(ast.Assign([item], KnownValue(value, tree)), statement)
            part = self._assign(one)
            made.extend(part if isinstance(part, list) else [part])
        return [part for part in made if part is not None]

    def _assign_name(self, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> Any:
        name = self.dotted(tree.func) if isinstance(tree, ast.Call) else None
        method = self._NAMED.get(name or "")
        if method is not None and isinstance(tree, ast.Call):
            return method(self, target, tree)
        dtype = self.symbol_declaration(tree)
        if dtype is not None:
            self.scope.names[target.id] = self.symbol_value(target.id, target)
            return None
        pointer = self._handle_annotation(tree, target) if name in _POINTERS else None
        if pointer is not None:
            self.scope.names[target.id] = pointer
            return None
        if annotation is None and self.names_module(tree):
            self.scope.names[target.id] = self.module
            return None
        buffer = self.buffer_expression(tree, target.id, target)
        if buffer is not None:
            self.scope.names[target.id] = buffer
            if buffer.data is None:
                self.declared.add(buffer)
                if target.id in self.realized:
                    return None
            return DeclBuffer(buffer, span=self.span(statement))
        return self._assign_value(target, tree, annotation, statement)

    def _assign_value(self, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> Any:
        """`x = e`: a store into a local scalar, a new one, an immutable binding, or a plain value."""
        known = self.scope.get(target.id)
        if isinstance(known, Buffer) and (known.name in self.scalars or self._is_one_element(known)):
            return self._store_into(known, (index_const(0),), self.value(tree), statement)
        view = self._view(target, tree, statement)
        if view is not None:
            return view
        value = self.value(tree)
        if isinstance(known, Buffer) and any(known is param for param in self.params):
            hint = f"`{target.id}[...] = ...` writes elements: give {known.ndim} indices"
            raise self.fail("W115", f"`{target.id}` is a parameter: another value of that name is lost", target, hint)
        dtype, is_let = self._declared(annotation)
        self._refuse_taken(known, target)
        repeated = self.assigned.get(target.id, 0) > 1 and not is_let
        if annotation is None and self._is_static(value, repeated, target):
            self.scope.names[target.id] = value
            return None
        made = self.as_prim(value, tree, dtype.dtype if dtype is not None and dtype.dtype != "handle" else None)
        if dtype is not None and isinstance(made, PrimCall) and made.dtype == "void":
            made = replace(made, dtype=dtype.dtype)
        if dtype is not None and annotation is not None:
            self._check_declared(target, made, dtype.dtype, is_let, annotation)
        if dtype is not None and dtype.dtype not in ("handle", made.dtype):
            made = self.fold(lambda: cast(dtype.dtype, made), tree)
        if repeated:
            return self._new_scalar(target, made, statement)
        return self._bind_name(target, made, dtype, statement)

    def _is_one_element(self, buffer: Buffer) -> bool:
        """Whether a buffer is a parameter of one element, which the newest printers write like a local scalar."""
        return buffer.shape == (1,) and any(buffer is param for param in self.params)

    def _refuse_taken(self, known: Any, target: ast.Name) -> None:
        """W118: a parameter, or a variable of a loop or block, is not assigned."""
        if not isinstance(known, PrimVar):
            return
        of_block = self.block is not None and any(item.var is known for item in self.block.iter_vars)
        what = "parameter" if known in self.params else "loop variable" if known in self.loops else ""
        if what or of_block:
            what = what or "block variable"
            raise self.fail("W118", f"'{target.id}' is a {what}: it is not assigned", target, "use another name")

    def _check_declared(
        self, target: ast.Name, value: PrimExpr, dtype: str, is_let: bool, annotation: ast.expr
    ) -> None:
        """W123: a name that stands for a value has its dtype; a declared integer is no float."""
        lossy = dtypes.is_integer(dtype) and dtypes.is_float(value.dtype)
        if lossy or (is_let and dtype not in ("handle", value.dtype)):
            message = f"'{target.id}' is declared {dtype}, the value is {value.dtype}"
            raise self.fail("W123", message, annotation, f'T.Cast("{dtype}", ...)')

    def thread_axis(self, tag: Any, tree: ast.AST) -> str:
        """The name of an axis of threads; W114 for any other text."""
        if not is_thread_axis(tag):
            raise self.fail("W114", f"there is no axis of threads {tag!r}", tree, f"such as {THREAD_AXES}")
        return tag

    def _bind_name(self, target: ast.Name, value: PrimExpr, declared: PrimVar | None, statement: ast.AST) -> Stmt:
        """A new immutable name; a pointer is what its declaration says it points to."""
        pointee, scope = (declared.pointee, declared.scope) if declared is not None else (None, "global")
        var = PrimVar(target.id, value.dtype, pointee, scope, span=self.span(target))
        self.scope.names[target.id] = var
        return Bind(var, value, span=self.span(statement))

    def _is_static(self, value: Any, repeated: bool, target: ast.Name) -> bool:
        """Whether a name only stands for a value while reading; W115 where it would change as the kernel runs."""
        if isinstance(value, (PrimExpr, BufferRegion)):
            return False
        if not repeated or isinstance(value, (Macro, ModuleScope)):
            return True
        if isinstance(value, (bool, int, float, Buffer)):
            return False
        known = self.scope.names.get(target.id, MISSING)
        if known is not MISSING and not isinstance(known, (PrimExpr, Buffer)):
            return True  # bound anew in the block that bound it
        if self.scope.get(target.id) is MISSING:
            return True
        raise self.fail(
            "W115", f"'{target.id}' is bound by an outer block: {describe(value)} cannot be stored as the kernel runs",
            target, "use another name",
        )  # fmt: skip

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

    def _new_scalar(self, target: ast.Name, value: PrimExpr, statement: ast.stmt) -> list[Stmt]:
        buffer = Buffer(target.id, (1,), value.dtype, "local", span=self.span(target))
        self.scalars = self.scalars | {target.id}
        self.scope.names[target.id] = buffer
        store = BufferStore(buffer, value, (index_const(0),), span=self.span(statement))
        return [AllocBuffer(buffer, span=self.span(statement)), store]

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

    def _annotated(self, tree: ast.AnnAssign) -> Any:
        if not isinstance(tree.target, ast.Name):
            raise self.fail("W115", "only names take annotations", tree)
        if tree.value is None:
            dtype, _ = self._declared(tree.annotation)
            assert dtype is not None
            buffer = Buffer(tree.target.id, (1,), dtype.dtype, "local", span=self.span(tree.target))
            self.scalars = self.scalars | {tree.target.id}
            self.scope.names[tree.target.id] = buffer
            return AllocBuffer(buffer, span=self.span(tree))
        return self._assign_name(tree.target, tree.value, tree.annotation, tree)

    def _augmented(self, tree: ast.AugAssign) -> Any:
        kind = _kind_of(tree.op)
        right = self.value(tree.value)
        if isinstance(tree.target, ast.Name):
            known = self.lookup(tree.target.id, tree.target)
            if isinstance(known, Buffer) and known.name in self.scalars:
                left: Any = self.as_prim(known, tree.target)
                return self._store_into(known, (index_const(0),), self.binary(kind, left, right, tree), tree)
            if is_plain(known) and is_plain(right):
                self.scope.names[tree.target.id] = self.binary(kind, known, right, tree)
                return None
            raise self.fail("W115", f"'{tree.target.id}' is not a local scalar", tree.target)
        if not isinstance(tree.target, ast.Subscript):
            raise self.fail("W115", "only buffer elements and local scalars can be updated", tree)
        base = self.value(tree.target.value)
        if not isinstance(base, Buffer):
            raise self.fail("W114", f"{describe(base)} is not a buffer", tree.target)
        indices = self._store_indices(base, tree.target)
        left = BufferLoad(base, indices, span=self.span(tree.target))
        return self._store_into(base, indices, self.binary(kind, left, right, tree), tree)

    def _store(self, target: ast.Subscript, tree: ast.expr, statement: ast.stmt) -> Stmt:
        base = self.value(target.value)
        if not isinstance(base, Buffer):
            raise self.fail("W114", f"{describe(base)} is not a buffer", target.value)
        indices = self._store_indices(base, target)
        return self._store_into(base, indices, self.value(tree), statement, tree)

    def _store_indices(self, buffer: Buffer, target: ast.Subscript) -> tuple[PrimExpr, ...]:
        indices = self.indices(buffer, target)
        if any(isinstance(index, Range) for index in indices):
            region = tuple(index if isinstance(index, Range) else Range(extent_of(index), 1) for index in indices)
            return self._vector_indices(BufferRegion(buffer, region), target)
        return tuple(indices)  # type: ignore[arg-type]

    def _store_into(
        self, buffer: Buffer, indices: tuple[PrimExpr, ...], value: Any, statement: ast.AST, tree: ast.AST | None = None
    ) -> Stmt:
        place = tree or statement
        lanes = dtypes.lanes(indices[-1].dtype) if indices else 1
        wanted = dtypes.with_lanes(buffer.dtype, dtypes.lanes(buffer.dtype) * lanes)
        made = self.as_prim(value, place, wanted)
        if made.dtype != wanted:
            made = self._converted(made, wanted, buffer, place)
        return BufferStore(buffer, made, indices, span=self.span(statement))

    def _converted(self, value: PrimExpr, wanted: str, buffer: Buffer, tree: ast.AST) -> PrimExpr:
        """A value in the dtype of the buffer it is stored into: a store converts between integers and between floats.

        W123 where a float would become an integer, or the lanes differ.
        """
        if isinstance(value, PrimCall) and value.dtype == "void":
            return replace(value, dtype=wanted)  # a call of a device that does not say what it gives
        same = dtypes.lanes(value.dtype) in (1, dtypes.lanes(wanted))
        scalar, target = dtypes.element(value.dtype), dtypes.element(wanted)
        widens = dtypes.promote(value.dtype, wanted) == wanted
        kind = all(map(dtypes.is_float, (scalar, target))) or all(map(dtypes.is_integer, (scalar, target)))
        if same and (widens or kind):
            return self.fold(lambda: cast(wanted, value), tree)
        raise self.fail(
            "W123",
            f"'{buffer.name}' holds {wanted}, the value is {value.dtype}",
            tree,
            f'write `T.Cast("{wanted}", ...)`',
        )

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

    def _axis_domain(self, tree: ast.expr, start: Extent) -> tuple[Extent, Extent]:
        pair = tree.elts if isinstance(tree, (ast.Tuple, ast.List)) else []
        if isinstance(tree, ast.Call) and self.dotted(tree.func) == "T.Range" and not tree.keywords:
            pair = tree.args
        if len(pair) == 2:
            low, high = (self.read_extent(item) for item in pair)
            return low, self._difference(low, high, tree)
        return start, self.read_extent(tree)

    def _difference(self, low: Extent, high: Extent, tree: ast.AST) -> Extent:
        """high - low, plain when both are."""
        if isinstance(low, int) and low == 0:
            return high
        if isinstance(low, IntImm) and isinstance(high, IntImm):
            return IntImm(high.value - low.value, high.dtype)
        return self._length(low, high, tree)

    def _add_axis(
        self, header: BlockHeader, target: ast.Name, kind: str, start: Extent, extent: Extent, value: PrimExpr | None,
        dtype: str, tree: ast.AST,
    ) -> None:  # fmt: skip
        if any(item.var.name == target.id for item in header.iter_vars):
            raise self.fail("W118", f"two variables of the block are named '{target.id}'", target)
        if value is not None and not dtypes.is_integer(value.dtype):
            raise self.fail("W123", f"a block variable is bound to an integer, not to {value.dtype}", tree)
        if isinstance(extent, int) and extent < 0:
            raise self.fail("W114", f"an extent cannot be negative, got {extent}", tree)
        var = PrimVar(target.id, dtype, span=self.span(target))
        header.iter_vars.append(IterVar(var, start, extent, kind, value, span=self.span(tree)))
        self.scope.names[target.id] = var

    def _remap(self, names: list[ast.Name], tree: ast.Call) -> None:
        header = self._header(tree, "T.axis.remap")
        values = self.bind(CLAUSES["T.axis.remap"], tree)
        letters, variables = values["kinds"], values["values"]
        if len(letters) != len(variables) or len(letters) != len(names):
            raise self.fail(
                "W113", f"T.axis.remap: {len(letters)} kinds, {len(variables)} loops, {len(names)} names", tree
            )
        for target, letter, variable in zip(names, letters, variables, strict=True):
            if letter not in _AXIS_LETTERS:
                raise self.fail("W114", f"axis kind {letter!r}: expected S (spatial) or R (reduce)", tree.args[0])
            domain = self.loops.get(variable) if isinstance(variable, PrimVar) else None
            if domain is None:
                raise self.fail(
                    "W114", "T.axis.remap takes variables of enclosing loops", tree, "use T.axis.spatial(extent, value)"
                )
            start, extent = domain  # type: ignore[misc]
            self._add_axis(header, target, _AXIS_LETTERS[letter], start, extent, variable, variable.dtype, tree)

    def _remap_one(self, target: ast.Name, tree: ast.Call) -> None:
        """`v = T.axis.remap("SS", [i, j])`: one variable, or the tuple of several."""
        kinds = self.constant(tree.args[0]) if tree.args else ""
        if not isinstance(kinds, str) or len(kinds) == 1:
            self._remap([target], tree)
            return
        self.scope.names[target.id] = self._remap_unnamed([target] * len(kinds), tree)

    def _remap_unnamed(self, targets: list[ast.Name], tree: ast.Call) -> tuple[PrimExpr, ...]:
        """Block variables that the text names as parts of a tuple."""
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            names = [
                ast.copy_location(ast.Name(f"{target.id}{axis}" if targets.count(target) > 1 else target.id), target)
                for axis, target in enumerate(targets)
            ]
            self._remap(names, tree)
            return tuple(self.scope.names[name.id] for name in names)
        finally:
            self.scope = outer

    def _remap_starred(self, target: ast.Tuple | ast.List, tree: ast.Call) -> None:
        """`*v, k = T.axis.remap("SSR", [...])`: the starred name is the tuple of its variables."""
        kinds = self.constant(tree.args[0]) if tree.args else ""
        if not isinstance(kinds, str):
            raise self.fail("W114", "expected the kinds of the axes as a string", tree.args[0])
        groups = self.unpacked(target, list(range(len(kinds))), target)
        flat: list[ast.Name] = []
        for item, part in groups:
            if not isinstance(item, ast.Name):
                raise self.fail("W115", "only names can be unpacked into", item)
            flat.extend([item] * (len(part) if isinstance(part, list) else 1))
        made = self._remap_unnamed(flat, tree)
        for item, part in groups:
            assert isinstance(item, ast.Name)
            self.scope.names[item.id] = tuple(made[axis] for axis in part) if isinstance(part, list) else made[part]

    def _bind_call(self, target: ast.Name, tree: ast.Call) -> Stmt:
        value = self.bind(CLAUSES["T.bind"], tree)["value"]
        var = PrimVar(target.id, value.dtype, span=self.span(target))
        self.scope.names[target.id] = var
        return Bind(var, value, span=self.span(tree))

    def _env_thread(self, target: ast.Name, tree: ast.Call) -> None:
        values = self._values(tree, ("dtype",))
        stated = [self.constant(keyword.value) for keyword in tree.keywords if keyword.arg == "dtype"] or values[1:]
        if not 1 <= len(values) <= 2 or not isinstance(values[0], str):
            raise self.fail("W113", "T.env_thread takes the name of a thread axis", tree)
        tag = self.thread_axis(values[0], tree)
        dtype = self.fold(lambda: dtypes.check_dtype(stated[0]), tree) if stated else "int32"
        var = PrimVar(target.id, dtype, span=self.span(target))
        self.threads[target.id] = tag
        self.scope.names[target.id] = var

    def _launch_named(self, target: ast.Name, tree: ast.Call) -> Any:
        values = self.bind(LOOPS["T.launch_thread"], tree)
        return self._launch(target.id, values, tree, target)

    def _launch_statement(self, tree: ast.Call) -> Any:
        values = self.bind(LOOPS["T.launch_thread"], tree)
        return self._launch(None, values, tree, tree)

    def _launch(self, name: str | None, values: dict[str, Any], tree: ast.Call, place: ast.AST) -> Any:
        """A thread axis as a loop around the rest of the block."""
        thread = values["thread"]
        for argument in tree.args[1:2]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                raise self.fail("W114", f"an extent is an integer, got {argument.value!r}", argument)
        if isinstance(thread, ast.Name) and thread.id in self.threads:
            tag, var = self.threads[thread.id], self.scope.get(thread.id)
            if var in self.loops:  # launched before: the axis of another loop, under the same name
                var = PrimVar(thread.id, var.dtype, span=self.span(place))
                self.scope.names[thread.id] = var
        elif isinstance(thread, ast.Name) and isinstance(self.scope.get(thread.id), PrimVar):
            # declared as a symbol before; printers of passes name it after its axis
            var, tag = self.scope.get(thread.id), thread.id.replace("_", ".", 1)
        else:
            tag = self.thread_axis(self.constant(thread), thread)
            var = PrimVar(name or str(tag).replace(".", "_"), loop_dtype(0, values["extent"]), span=self.span(place))
            if name:
                self.scope.names[name] = var
        self.loops[var] = (0, values["extent"])
        return lambda body: For(
            var, 0, values["extent"], body, "thread_binding", str(tag), span=self.span(tree), launched=True,
        )  # fmt: skip

    _CLAUSE_METHODS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}

    _JUMPS: ClassVar[dict[str, Callable[[Any, ast.Call], Stmt]]] = {}

    _NAMED: ClassVar[dict[str, Callable[[Any, ast.Name, ast.Call], Any]]] = {}


def _kind_of(op: ast.operator) -> str:
    from weft.script.syntax import BINARY_BY_TREE

    return BINARY_BY_TREE[type(op)]


def _axis(kind: str) -> Callable[[Any, ast.Name, ast.Call], None]:
    """The method that reads `v = T.axis.<kind>(...)`."""

    def read(self: BindingReader, target: ast.Name, tree: ast.Call) -> None:
        header = self._header(tree, f"T.axis.{kind}")
        values = self.bind(CLAUSES[f"T.axis.{kind}"], tree)
        start, extent = self._axis_domain(values["extent"], values["start"])
        value = values["value"]
        dtype = values["dtype"] or axis_dtype(extent, value)
        self._add_axis(header, target, kind, start, extent, value, dtype, tree)

    return read


_AXES = {f"T.axis.{kind}": _axis(kind) for kind in _AXIS_LETTERS.values()}
BindingReader._NAMED = {
    "T.alloc_buffer": BindingReader._alloc,
    "T.allocate": BindingReader._allocate,
    "T.allocate_const": BindingReader._allocate_const,
    "T.alloc_local": BindingReader._alloc_local,
    "T.alloc_shared": BindingReader._alloc_shared,
    "T.local_scalar": BindingReader._local_scalar,
    "T.shared_scalar": BindingReader._shared_scalar,
    "T.decl_buffer": BindingReader._decl,
    "T.decl_scalar": BindingReader._decl_scalar,
    "T.match_buffer": BindingReader._match_buffer,
    "T.axis.remap": BindingReader._remap_one,
    "T.bind": BindingReader._bind_call,
    "T.env_thread": BindingReader._env_thread,
    "T.preflattened_buffer": BindingReader._preflattened,
    "T.launch_thread": BindingReader._launch_named,
    **_AXES,
}
BindingReader._JUMPS = {
    "T.ret": BindingReader._ret,
    "T.break_loop": BindingReader._break_loop,
    "T.continue_loop": BindingReader._continue_loop,
}
BindingReader._CLAUSE_METHODS = {
    "T.func_attr": BindingReader._func_attr,
    "T.reads": BindingReader._reads,
    "T.writes": BindingReader._writes,
    "T.where": BindingReader._where,
    "T.block_attr": BindingReader._block_attr,
    "T.evaluate": BindingReader._evaluate,
    "T.attr": BindingReader._attr_statement,
    **BindingReader._JUMPS,
    "T.launch_thread": BindingReader._launch_statement,
    "T.masked_store": BindingReader._masked_store,
    "T.static_assert": BindingReader._static_assert,
    "T.preflattened_buffer": BindingReader._preflattened_statement,
    **{name: BindingReader._bare_axis for name in _AXES},
}
