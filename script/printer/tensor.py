"""Showing tensor-level functions: loops, blocks, buffers and the other statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import dtypes
from weft.errors import ScriptError
from weft.ir.graph import StringImm
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import children, walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Buffer,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    MatchBufferRegion,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    Unary,
    While,
)
from weft.ir.types import PrimType, Type
from weft.script.forms.defaults import axis_dtype, loop_dtype
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import (
    ALL_FORMS,
    BUFFERS,
    CLAUSES,
    LOOPS,
    SCOPES,
)
from weft.script.printer.base import Always, Piece, Ready
from weft.script.printer.scalars import ScalarPrinter

__all__ = ["TensorPrinter", "has_blocks"]

_LOOP_NAMES = {
    "serial": "T.serial",
    "parallel": "T.parallel",
    "vectorized": "T.vectorized",
    "unrolled": "T.unroll",
    "thread_binding": "T.thread_binding",
}

_AXIS_LETTERS = {"spatial": "S", "reduce": "R", "scan": "C", "opaque": "O"}


class TensorPrinter(ScalarPrinter):
    """Prints tensor-level functions and statements."""

    block_buffer = BUFFERS["T.alloc_buffer"]  # what makes a buffer of a block

    def prim_function(self, written: str, name: str, function: PrimFunc) -> None:
        """`@T.prim_func def ...`."""
        self.decorator("T.prim_func", {
            "private": (function.private, False), "name": (name, name if self.foreign else written),
            "s_tir": (self.says_s_tir(function), False),
        })  # fmt: skip
        for param in function.params:
            if isinstance(param, PrimVar):
                self.name(param)
        params, declared = self.signature(function)
        result = f" -> {self._scalar_type(function.ret_type)}" if function.ret_type is not None else ""
        self.line(f"def {written}({params}){result}:")
        outer = self.indent
        self.indent += "    "
        if function.attrs:
            self.line(self.form_text(ALL_FORMS["T.func_attr"], {"attrs": function.attrs}))
        self.module_alias(function)
        for text in declared:
            self.line(text)
        free = [variable for variable in _free_variables(function.body) if variable not in self.names]
        self.threads = _threads(function.body, free) if free else {}
        for variable in free:
            self.line(f"{self.name(variable)} = {self._declaration(variable)}")
        self.function_body(function)
        self.indent = outer

    def says_s_tir(self, function: PrimFunc) -> bool:
        """Whether the text says so: blocks say it anyway."""
        return function.s_tir and not has_blocks(function)

    def signature(self, function: PrimFunc) -> tuple[str, list[str]]:
        """The parameters as text, and the lines that declare what they mention."""
        before, self.quoted = self.quoted, True
        known = set(self.names)
        params = ", ".join(self._parameter(param) for param in function.params)
        declared = [v for v in self.names if isinstance(v, PrimVar) and v not in known and v.dtype != "int64"]
        self.quoted = before
        return params, [f"{self.name(variable)} = T.{variable.dtype}()" for variable in declared]

    def function_body(self, function: PrimFunc) -> None:
        """The statements of a function."""
        self.statements(function.body)

    def _scalar_type(self, ty: Type) -> str:
        return f"T.{ty.dtype}" if isinstance(ty, PrimType) else self.show_type(ty)

    def _parameter(self, param: Buffer | PrimVar) -> str:
        if isinstance(param, Buffer):
            return f"{self.name(param)}: {self.form_text(BUFFERS['T.Buffer'], self._buffer_values(param))}"
        return f"{self.name(param)}: {self._variable_type(param)}"

    def _variable_type(self, variable: PrimVar) -> str:
        if variable.dtype != "handle":
            return f"T.{variable.dtype}"
        if variable.pointee is None:
            return "T.handle"
        scope = "" if variable.scope == "global" else f", {string_text(variable.scope)}"
        return f"T.handle({string_text(variable.pointee)}{scope})"

    def _declaration(self, variable: PrimVar) -> str:
        """What declares a variable that occurs where nothing binds it."""
        if variable in self.threads:
            dtype = "" if variable.dtype == "int32" else f', "{variable.dtype}"'
            return f"T.env_thread({string_text(self.threads[variable])}{dtype})"
        text = self._variable_type(variable)
        return text if text.endswith(")") else f"{text}()"

    def _buffer_values(self, buffer: Buffer) -> dict[str, Any]:
        fields = ("shape", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "axis_separators")
        # The dtype is always written: a reader should not have to know the default.
        return {**{field: getattr(buffer, field) for field in fields}, "dtype": Always(buffer.dtype)}

    def statements(self, body: Stmt) -> None:
        """The statements of a block."""
        items = body.stmts if isinstance(body, SeqStmt) and len(body.stmts) != 1 else (body,)
        if not items:
            self.line("pass")
        for item in items:
            self.statement(item)

    def statement(self, stmt: Stmt) -> None:
        """One statement."""
        method = self._STATEMENTS.get(type(stmt))
        if method is None:
            raise ScriptError(f"a {type(stmt).__name__} has no text form", code="W114")
        method(self, stmt)

    def _inner(self, head: str, body: Stmt) -> None:
        self.block_of(head, lambda: self.statements(body))

    def _seq(self, stmt: SeqStmt) -> None:
        def body() -> None:
            for item in stmt.stmts:
                self.statement(item)

        self.block_of("with T.seq():", body, empty=not stmt.stmts)

    def _store(self, stmt: BufferStore) -> None:
        if stmt.predicate is not None:
            head = [f"{self.name(stmt.buffer)}.vstore(", *self._position(stmt.indices), ", ", *self.operand(stmt.value)]
            self.line(self.join([*head, ", predicate=", (stmt.predicate, 0), ")"]))
            return
        pieces = [*self._element(stmt.buffer, stmt.indices), " = ", *self.operand(stmt.value)]
        self.line(self.join(pieces))

    def _for(self, stmt: For) -> None:
        if stmt.loop_var in self.threads:  # declared before, because something outside of the loop names it
            head = self.form_text(LOOPS["T.launch_thread"], {"thread": stmt.loop_var, "extent": stmt.extent})
            self._loop([stmt], f"with {head}:")
            return
        group = self._grid_of(stmt)
        if len(group) > 1:
            extents = [
                self._typed_extent(loop.extent, loop.loop_var.dtype, loop_dtype(0, loop.extent)) for loop in group
            ]
            head = self.form_text(LOOPS["T.grid"], {"extents": extents})
            self._loop(group, f"for {', '.join(self.name(loop.loop_var) for loop in group)} in {head}:")
            return
        head = self._loop_head(stmt)
        self._loop([stmt], f"for {self.name(stmt.loop_var)} in {head}:")

    def _loop(self, group: list[For], head: str) -> None:
        for loop in group:
            self.loops[loop.loop_var] = loop
        self._inner(head, group[-1].body)

    @staticmethod
    def _grid_of(stmt: For) -> list[For]:
        """The loops that `T.grid` can say at once."""
        group: list[For] = []
        inner: Stmt = stmt
        variables: set[PrimVar] = set()
        while isinstance(inner, For) and inner.kind == "serial" and inner.step is None and not inner.annotations:
            plain = isinstance(inner.start, int) and inner.start == 0 and inner.thread is None
            if not plain or _mentions(inner.extent, variables):
                break
            if not isinstance(inner.extent, int) and inner.extent.dtype != inner.loop_var.dtype:
                break
            group.append(inner)
            variables.add(inner.loop_var)
            inner = inner.body
        return group

    def _typed_extent(self, extent: Any, wanted: str, natural: str) -> Any:
        """The extent, as a typed constant where that says the dtype of the variable."""
        if wanted != natural and isinstance(extent, int) and dtypes.is_integer(wanted):
            return f"T.{wanted}({extent})"
        return extent

    def _loop_head(self, stmt: For) -> str:
        start, extent, dtype = stmt.start, stmt.extent, stmt.loop_var.dtype
        values: dict[str, Any] = {"step": stmt.step, "annotations": dict(stmt.annotations), "thread": stmt.thread or ""}
        natural = loop_dtype(start, extent)
        if isinstance(start, int) and isinstance(extent, int):
            values.update(self._constant_range(start, extent, dtype))
        else:
            if isinstance(start, int) and start == 0:
                values["start"] = extent
            else:
                values.update(start=start, extent=extent)
            if natural != dtype:
                values["dtype"] = dtype
        return self._loop_text(stmt, values)

    def _loop_text(self, stmt: For, values: dict[str, Any]) -> str:
        """What stands after `in`: `range` where it says everything."""
        if stmt.kind == "serial" and not stmt.annotations and "extent" not in values and "dtype" not in values:
            if stmt.step is not None and "stop" not in values:
                values = {**values, "start": 0, "stop": values["start"]}
            return self.form_text(LOOPS["range"], values)
        return self.form_text(LOOPS[_LOOP_NAMES[stmt.kind]], values)

    @staticmethod
    def _constant_range(start: int, extent: int, dtype: str) -> dict[str, Any]:
        def typed(value: int) -> Any:
            return value if dtype == "int32" else f"T.{dtype}({value})"

        return {"start": typed(extent)} if start == 0 else {"start": typed(start), "stop": typed(start + extent)}

    def _while(self, stmt: While) -> None:
        self._inner(f"while {self.join(self._condition(stmt.condition))}:", stmt.body)

    def _condition(self, condition: PrimExpr) -> list[Piece]:
        """A condition that is not known while reading, even when it is a constant."""
        return [self.immediate(condition)] if isinstance(condition, (IntImm, FloatImm)) else [(condition, 0)]

    def _if_statement(self, stmt: IfThenElse) -> None:
        head = "if"
        current: Stmt | None = stmt
        while isinstance(current, IfThenElse):
            self._inner(f"{head} {self.join(self._condition(current.condition))}:", current.then_body)
            head = "elif"
            current = current.else_body
        if current is not None:
            self._inner("else:", current)

    def _block(self, stmt: Block) -> None:
        values = {"name": stmt.name, "no_realize": stmt.bare or any(item.value is None for item in stmt.iter_vars)}
        self.block_of(f"with {self.form_text(SCOPES['T.block'], values)}:", lambda: self._block_body(stmt))

    def _block_body(self, stmt: Block) -> None:
        self._axes(stmt.iter_vars)
        if stmt.predicate is not None:
            self.line(self.form_text(CLAUSES["T.where"], {"predicate": stmt.predicate}))
        for buffer in stmt.alloc_buffers:
            values = {**self._buffer_values(buffer), "block": True, "annotations": {}}
            self.line(f"{self.name(buffer)} = {self.form_text(self.block_buffer, values)}")
        for match in stmt.match_buffers:
            self._match(match)
        for name, regions in (("T.reads", stmt.reads), ("T.writes", stmt.writes)):
            if regions is not None:
                self.line(self.form_text(CLAUSES[name], {"regions": regions}))
        if stmt.annotations:
            self.line(self.form_text(CLAUSES["T.block_attr"], {"attrs": stmt.annotations}))
        if stmt.init is not None:
            self._inner("with T.init():", stmt.init)
        items = stmt.body.stmts if isinstance(stmt.body, SeqStmt) and len(stmt.body.stmts) != 1 else (stmt.body,)
        for item in items:
            if isinstance(item, AllocBuffer):
                self._alloc(item, in_block=True)
            else:
                self.statement(item)
        if not items:
            self.line("pass")

    def _match(self, match: MatchBufferRegion) -> None:
        values = {**self._buffer_values(match.buffer), "source": match.source}
        text = self.form_text(BUFFERS["T.match_buffer"], values)
        self.line(f"{self.name(match.buffer)} = {text}")

    def _axes(self, iter_vars: Sequence[IterVar]) -> None:
        if len(iter_vars) > 1 and all(self._is_remap(item) for item in iter_vars):
            letters = "".join(_AXIS_LETTERS[item.kind] for item in iter_vars)
            text = self.form_text(
                CLAUSES["T.axis.remap"], {"kinds": letters, "values": [item.value for item in iter_vars]}
            )
            self.line(f"{', '.join(self.name(item.var) for item in iter_vars)} = {text}")
            return
        for item in iter_vars:
            self._axis(item)

    def _is_remap(self, item: IterVar) -> bool:
        loop = self.loops.get(item.value) if isinstance(item.value, PrimVar) else None  # type: ignore[arg-type]
        if loop is None or item.kind not in ("spatial", "reduce") or item.var.dtype != loop.loop_var.dtype:
            return False
        return _same_extent(item.start, loop.start) and _same_extent(item.extent, loop.extent)

    def _axis(self, item: IterVar) -> None:
        values: dict[str, Any] = {"value": item.value, "start": item.start}
        extent = item.extent
        if axis_dtype(extent, item.value) != item.var.dtype:
            if isinstance(extent, int) and dtypes.is_integer(item.var.dtype):
                values["extent"] = Ready(f"T.{item.var.dtype}({extent})")
            else:
                values["dtype"] = item.var.dtype
        values.setdefault("extent", Ready(self.join(self.show_extent(extent))))
        text = self.form_text(CLAUSES[f"T.axis.{item.kind}"], values)
        self.line(f"{self.name(item.var)} = {text}")

    def _bind(self, stmt: Bind) -> None:
        value = self.join(self.operand(stmt.value))
        variable = stmt.var
        typed = variable.dtype == "handle" and variable.pointee is not None
        annotation = f"T.let[{self._variable_type(variable)}]" if typed else "T.let"
        self.line(f"{self.name(variable)}: {annotation} = {value}")

    def _alloc(self, stmt: AllocBuffer, in_block: bool = False) -> None:
        values = {**self._buffer_values(stmt.buffer), "block": not in_block, "annotations": dict(stmt.annotations)}
        self.line(f"{self.name(stmt.buffer)} = {self.form_text(BUFFERS['T.alloc_buffer'], values)}")

    def _decl(self, stmt: DeclBuffer) -> None:
        form = "T.decl_buffer" if stmt.buffer.data is not None else "T.Buffer"  # the former would allocate memory
        text = self.form_text(BUFFERS[form], self._buffer_values(stmt.buffer))
        self.line(f"{self.name(stmt.buffer)} = {text}")

    def _assert(self, stmt: AssertStmt) -> None:
        message = string_text(stmt.message)
        if stmt.parts or (stmt.kind != "AssertionError" and not stmt.message):
            message = f"[{', '.join(map(string_text, stmt.parts))}]"
        if stmt.kind != "AssertionError" or stmt.parts:
            message = f"({string_text(stmt.kind)}, {message})"
        self.line(f"assert {self.join([*self._condition(stmt.condition), f', {message}'])}")

    def _attr(self, stmt: AttrStmt) -> None:
        # A typed constant, so that it does not read back as a plain number.
        value = Ready(self.immediate(stmt.value)) if isinstance(stmt.value, (IntImm, FloatImm)) else stmt.value
        values = {"node": self._string_node(stmt.node), "key": stmt.key, "value": self._string_node(value)}
        self._inner(f"with {self.form_text(SCOPES['T.attr'], values)}:", stmt.body)

    @staticmethod
    def _string_node(value: Any) -> Any:
        """A string that is a node of its own, as no plain string reads back."""
        return Ready(f"T.StringImm({string_text(value.value)})") if isinstance(value, StringImm) else value

    def _evaluate(self, stmt: Evaluate) -> None:
        value = self._string_node(stmt.value)
        if isinstance(value, Ready):
            self.line(f"T.evaluate({value.text})")
        elif isinstance(value, PrimExpr):
            self.line(self.form_text(CLAUSES["T.evaluate"], {"value": value}))
        else:
            self.line(f"T.evaluate({self.value(value)})")

    def _return(self, stmt: Return) -> None:
        self.line("return" if stmt.value is None else f"return {self.join(self.operand(stmt.value))}")

    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        SeqStmt: _seq,
        BufferStore: _store,
        For: _for,
        While: _while,
        IfThenElse: _if_statement,
        Block: _block,
        Bind: _bind,
        AllocBuffer: _alloc,
        DeclBuffer: _decl,
        AssertStmt: _assert,
        AttrStmt: _attr,
        Evaluate: _evaluate,
        Return: _return,
        Break: lambda self, stmt: self.line("break"),
        Continue: lambda self, stmt: self.line("continue"),
    }


def _free_variables(body: Stmt) -> list[PrimVar]:
    """The variables that occur where nothing of the body binds them, in the order of their occurrence."""
    free: dict[PrimVar, None] = {}
    bound: set[Any] = set()
    stack: list[tuple[Any, Any]] = [(body, None)]
    while stack:
        current, leaving = stack.pop()
        if leaving is not None:
            bound.difference_update(leaving)
            continue
        if isinstance(current, PrimVar):
            if current not in bound:
                free[current] = None
            continue
        if isinstance(current, Buffer) and current in bound:
            continue
        own = [variable for variable in _binds(current) if variable not in bound]
        bound.update(own)
        if own and not isinstance(current, (Bind, Buffer)):
            stack.append((None, own))  # what a sequence introduces stays for its rest, all else for its inside
        stack.extend((child, None) for child in reversed(list(children(current, types=False))))
    return list(free)


def _threads(body: Stmt, variables: Sequence[PrimVar]) -> dict[PrimVar, str]:
    """Those of the variables that a thread axis binds somewhere, and its name."""
    found: dict[PrimVar, str] = {}
    for node in walk(body):
        if isinstance(node, For) and node.thread and node.loop_var in variables and node.step is None:
            if node.kind == "thread_binding" and node.start == 0 and not node.annotations:
                found[node.loop_var] = node.thread
    return found


def _binds(node: Any) -> list[Any]:
    if isinstance(node, (For, Block)):
        return [node.loop_var] if isinstance(node, For) else [item.var for item in node.iter_vars]
    if isinstance(node, (Bind, Let, IterVar)):
        return [node.var]
    return [node] if isinstance(node, Buffer) else []


def has_blocks(function: PrimFunc) -> bool:
    """Whether a function holds a block."""
    return any(isinstance(item, Block) for item in walk(function))


def _same_extent(a: Any, b: Any) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or structural_equal(a, b)


def _mentions(extent: Any, variables: set[PrimVar]) -> bool:
    """Whether a size uses one of the variables."""
    stack = [extent] if isinstance(extent, PrimExpr) and variables else []
    while stack:
        current = stack.pop()
        if current in variables:
            return True
        if isinstance(current, Binary):
            stack.extend((current.a, current.b))
        elif isinstance(current, Cast):
            stack.append(current.value)
        elif isinstance(current, Unary):
            stack.append(current.a)
        elif not isinstance(current, (PrimVar, IntImm, FloatImm)):
            return True  # something richer: do not merge
    return False
