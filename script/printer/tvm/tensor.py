"""Showing tensor-level functions as TVM's readers of this language want them.

The same module, with what those readers need said: symbols are declared before they are used and buffers with
symbolic sizes are matched with a handle, sizes are typed constants (see `print_widths`), the variable of a `T.Let`
exists before it, block variables that do not start at zero have a range, and device intrinsics go by the name of their
operator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from weft import dtypes
from weft.errors import ScriptError
from weft.ir.graph import GlobalVar
from weft.ir.node import FrozenMap, Node
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Break,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Continue,
    DeclBuffer,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    Return,
    SeqStmt,
)
from weft.script.forms.constants import float_text
from weft.script.forms.defaults import (
    DTYPE_LAST,
    DTYPE_MAYBE_FIRST,
    DTYPE_OF_ARGUMENT,
    HINT,
    OPERATORS_ONLY,
    RENAMED_OPERATORS,
    RESULT_DTYPES,
    SCOPE_IDS,
    is_device_name,
)
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import ATOM, BINARY, BUFFERS, CLAUSES, LOOPS, SCALARS
from weft.script.printer.base import Piece, Ready, separated
from weft.script.printer.tensor import TensorPrinter, has_blocks

__all__ = ["PeerTensorPrinter"]

USUAL_WIDTH = "int32"  # of a number without a dtype

# What makes the nodes of Python's operators.
_CONSTRUCTORS = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "floordiv": "FloorDiv", "floormod": "FloorMod",
    "min": "Min", "max": "Max", "eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "and": "And",
    "or": "Or", "truncmod": "Mod",
}  # fmt: skip
_POINTER_CALLS = ("tvm_struct_get", "tvm_stack_alloca", "TVMBackendAllocWorkspace", "reinterpret")
# Operands with which readers compute operators.
_FOLDED = {
    "add": (0,), "sub": (0,), "mul": (0, 1), "div": (0, 1), "floordiv": (0, 1), "floormod": (0, 1),
    "truncmod": (0, 1), "and": (0, 1), "or": (0, 1),
}  # fmt: skip


class PeerTensorPrinter(TensorPrinter):
    """Prints tensor-level nodes for other readers."""

    if TYPE_CHECKING:
        functions: Mapping[str, Any]  # of the module around the function

        def refuse(self, what: str, node: Any = None, hint: str | None = None) -> ScriptError:
            """The error that a construct has no form in the spelling (module level)."""
            ...

    older = False  # whether the reader is version 0.20
    operators = "tirx"  # the namespace of the operators that intrinsics are
    pending: list[PrimVar]  # variables of T.Let that the next line uses

    def show_lanes(self, lanes: int) -> str:
        """A number of lanes; W116 for one lane for each unit of the vector length, which TVM has no dtype for."""
        if isinstance(lanes, dtypes.Scalable) and int(lanes) == 1:
            raise self.refuse("a vector of T.vscale() lanes")
        return super().show_lanes(lanes)

    def reset(self) -> None:
        """Forget the names of the last function."""
        super().reset()
        self.pending = []
        self.blocks_inside = False

    def line(self, text: str) -> None:
        """Add a line at the current depth, after the declarations that it needs."""
        pending, self.pending = self.pending, []
        for variable in pending:
            super().line(f"{self.name(variable)} = {self._declaration(variable)}")
        super().line(text)

    def prim_function(self, written: str, name: str, function: PrimFunc) -> None:
        """`@T.prim_func def ...`."""
        self.blocks_inside = has_blocks(function)
        super().prim_function(written, name, function)

    def says_s_tir(self, function: PrimFunc) -> bool:
        """Whether the function is of the dialect that has blocks, which the newer reader is told."""
        return not self.older and (function.s_tir or self.blocks_inside)

    def _variable_type(self, variable: PrimVar) -> str:
        if variable.pointee == "handle" and not self.older:
            raise self.refuse(f"the pointer to pointers '{variable.name}'", variable)
        return super()._variable_type(variable)

    def signature(self, function: PrimFunc) -> tuple[str, list[str]]:
        """The parameters as text, and the lines that declare symbols and match buffers of symbolic sizes."""
        texts: list[str] = []
        matched: list[tuple[Buffer, PrimVar]] = []
        for param in function.params:
            if isinstance(param, Buffer) and _is_symbolic(param):
                handle = PrimVar(f"var_{param.name}", "handle")
                matched.append((param, handle))
                texts.append(f"{self.name(handle)}: T.handle")
            else:
                texts.append(self._parameter(param))
        known = set(self.names)
        lines = []
        for buffer, handle in matched:
            text = self.form_text(BUFFERS["T.match_buffer"], {**self._buffer_values(buffer), "source": handle})
            lines.append(f"{self.name(buffer)} = {text}")
        symbols = [item for item in self.names if isinstance(item, PrimVar) and item not in known]
        return ", ".join(texts), [*(f"{self.name(item)} = {self._declaration(item)}" for item in symbols), *lines]

    def function_body(self, function: PrimFunc) -> None:
        """The statements; buffers that come first belong to the block around a function that has blocks."""
        body = function.body
        items = list(body.stmts) if isinstance(body, SeqStmt) else [body]
        first = 0
        while self.blocks_inside and first < len(items) and isinstance(items[first], AllocBuffer):
            stmt: Any = items[first]
            values = {**self._buffer_values(stmt.buffer), "annotations": dict(stmt.annotations)}
            self.line(f"{self.name(stmt.buffer)} = {self.form_text(self.block_buffer, values)}")
            first += 1
        for item in items[first:]:
            self.statement(item)
        if not items:
            self.line("pass")

    # -----------------------------------------------------------------------------------------------------------------
    # Sizes
    # -----------------------------------------------------------------------------------------------------------------

    def _width(self, buffer: Buffer, axis: int) -> str:
        dtypes_of = buffer.size_dtypes
        return dtypes_of[axis] if len(dtypes_of) == buffer.ndim and axis < buffer.ndim else USUAL_WIDTH

    def _sized(self, value: Any, dtype: str) -> Any:
        """A size as a constant of a dtype."""
        return IntImm(value, dtype) if isinstance(value, int) and dtype != USUAL_WIDTH else value

    def _buffer_values(self, buffer: Buffer) -> dict[str, Any]:
        if buffer.axis_separators and not self.older:
            raise self.refuse(f"the buffer '{buffer.name}' with axis_separators", buffer)
        values = super()._buffer_values(buffer)
        for field in ("shape", "strides"):
            if values[field] is not None:
                values[field] = tuple(
                    self._sized(size, self._width(buffer, axis)) for axis, size in enumerate(values[field])
                )
        return values

    def region(self, region: BufferRegion) -> list[Piece]:
        """A box: single elements and `start:stop` slices."""
        if not region.region:
            return [f"{self.name(region.buffer)}[()]"]
        # An element among others has their dtype: what wrote the numbers counted in it.
        counted = {item.start.dtype for item in region.region if isinstance(item.start, PrimExpr)}
        of_elements = counted.pop() if len(counted) == 1 else None
        parts = (
            self._side_of(item, (of_elements if item.extent == 1 else None) or self._width(region.buffer, axis))
            for axis, item in enumerate(region.region)
        )
        return [f"{self.name(region.buffer)}[", *separated(parts), "]"]

    def _side_of(self, item: Range, width: str) -> list[Piece]:
        start, extent = item.start, item.extent
        if width == USUAL_WIDTH or not isinstance(start, int):
            return self._range(item)
        first = self.immediate(IntImm(start, width))
        if isinstance(extent, int):
            return [first] if extent == 1 else [first, ":", self.immediate(IntImm(start + extent, width))]
        offset: list[Piece] = [] if start == 0 else [first, " + "]
        return [first, ":", *offset, (extent, BINARY["add"].precedence + 1 if offset else 0)]

    def _decl(self, stmt: DeclBuffer) -> None:
        # Offsets have the dtype of the first size; a view keeps that of the buffer it looks at.
        buffer, source = stmt.buffer, _source_of(stmt.buffer)
        differs = source is not None and self._offset_dtype(buffer) != self._offset_dtype(source)
        if source is not None and differs and not self.older:
            sizes = separated(self.show_extent(size) for size in self._buffer_values(buffer)["shape"])
            self.line(self.join([f"{self.name(buffer)} = {self.name(source)}.view(", *sizes, ")"]))
            return
        super()._decl(stmt)

    def _offset_dtype(self, buffer: Buffer) -> str:
        first = buffer.shape[0] if buffer.shape else 0
        return first.dtype if isinstance(first, PrimExpr) else self._width(buffer, 0)

    # -----------------------------------------------------------------------------------------------------------------
    # Loops and block variables
    # -----------------------------------------------------------------------------------------------------------------

    def _for(self, stmt: For) -> None:
        plain = isinstance(stmt.start, int) and stmt.start == 0 and stmt.step is None and not stmt.annotations
        if stmt.launched and plain and stmt.kind == "thread_binding" and stmt.loop_var not in self.threads:
            extent = self._sized(stmt.extent, stmt.loop_var.dtype)
            text = self.form_text(LOOPS["T.launch_thread"], {"thread": stmt.thread, "extent": extent})
            self._loop([stmt], f"with {text} as {self.name(stmt.loop_var)}:")
            return
        super()._for(stmt)

    def _loop_head(self, stmt: For) -> str:
        dtype = stmt.loop_var.dtype
        start, extent = (self._sized(side, dtype) for side in (stmt.start, stmt.extent))
        if self.older and stmt.step is not None:
            raise self.refuse(f"the step of the loop over '{stmt.loop_var.name}'", stmt)
        values: dict[str, Any] = {"step": stmt.step, "annotations": dict(stmt.annotations), "thread": stmt.thread or ""}
        for side in (start, extent):
            if isinstance(side, PrimExpr) and side.dtype != dtype:
                raise self.refuse(f"the loop over '{stmt.loop_var.name}' counts in {dtype} up to a {side.dtype}", stmt)
        if isinstance(stmt.start, int) and stmt.start == 0:
            values["start"] = extent
        else:
            values.update(start=start, stop=self._sum(start, extent, dtype))
        return self._loop_text(stmt, values)

    @staticmethod
    def _sum(start: Any, extent: Any, dtype: str) -> Any:
        """The end of a loop, a constant where both are."""
        plain = [side.value if isinstance(side, IntImm) else side for side in (start, extent)]
        if isinstance(plain[0], int) and isinstance(plain[1], int):
            total = plain[0] + plain[1]
            return total if dtype == USUAL_WIDTH else IntImm(total, dtype)
        left, right = (IntImm(side, dtype) if isinstance(side, int) else side for side in plain)
        return Binary("add", left, right)

    def _axis(self, item: IterVar) -> None:
        dtype = item.var.dtype
        start, extent = (self._sized(side, dtype) for side in (item.start, item.extent))
        if isinstance(extent, PrimExpr) and extent.dtype != dtype:
            raise self.refuse(f"the block variable '{item.var.name}' is {dtype}, its extent {extent.dtype}", item)
        if item.value is None:
            raise self.refuse(f"the block variable '{item.var.name}', which is bound to nothing,", item)
        text = self.join(self.show_extent(extent))
        if not (isinstance(item.start, int) and item.start == 0):
            stop = self._sum(start, extent, dtype)
            text = f"({self.join(self.show_extent(start))}, {self.join(self.show_extent(stop))})"
        values = {"extent": Ready(text), "value": item.value}
        self.line(f"{self.name(item.var)} = {self.form_text(CLAUSES[f'T.axis.{item.kind}'], values)}")

    def _if_statement(self, stmt: IfThenElse) -> None:
        """Branches; a condition with a `T.Let` stands in an `if` of its own, after the declaration of its variable."""
        inner = stmt.else_body
        if isinstance(inner, IfThenElse) and any(isinstance(item, Let) for item in walk(inner.condition)):
            self._inner(f"if {self.join(self._condition(stmt.condition))}:", stmt.then_body)
            self._inner("else:", inner)
            return
        super()._if_statement(stmt)

    # -----------------------------------------------------------------------------------------------------------------
    # Expressions
    # -----------------------------------------------------------------------------------------------------------------

    def _let(self, expr: Let) -> tuple[list[Piece], int]:
        if expr.var not in self.names:
            self.pending.append(expr.var)
        return super()._let(expr)

    def immediate(self, value: IntImm | FloatImm) -> str:
        """A typed constant."""
        dtype, number = value.dtype, value.value
        if isinstance(value, FloatImm):
            if math.isfinite(number) and abs(number) > dtypes.max_value(dtype):
                raise self.refuse(f"the {dtype} constant {number}", value)
            if math.isfinite(number) and abs(number) > dtypes.max_value("float32"):
                return f'T.FloatImm("{dtype}", {float_text(number)})'  # T.float64 refuses them
        elif number >= 2**63 or (number < 0 and dtypes.is_unsigned(dtype)):
            raise self.refuse(f"the {dtype} constant {number}", value)
        elif dtype != "bool" and dtypes.bits(dtype) < 8:
            return f'T.IntImm("{dtype}", {number})'
        return super().immediate(value)

    def _binary(self, expr: Binary) -> tuple[list[Piece], int]:
        constants = [side for side in (expr.a, expr.b) if isinstance(side, (IntImm, FloatImm))]
        computed = len(constants) == 2 or any(side.value in _FOLDED.get(expr.kind, ()) for side in constants)
        floating = dtypes.is_float(dtypes.element(expr.a.dtype))
        if floating and expr.kind in ("floordiv", "floormod", "truncdiv"):
            raise self.refuse(f"{expr.kind} of {expr.a.dtype}", expr, "compute it: T.floor(a / b), T.fmod(a, b)")
        integral = expr.kind == "div" and not floating
        name = _CONSTRUCTORS.get(expr.kind)
        if name is None or not (integral or computed):
            return super()._binary(expr)
        # Readers compute what they can (`x + 0`); what makes the node computes nothing, and converts no numbers.
        sides = [
            [self.immediate(side)] if isinstance(side, (IntImm, FloatImm)) else [(side, 0)] for side in (expr.a, expr.b)
        ]
        return [f"T.{name}(", *separated(sides), ")"], ATOM

    def _side(self, value: Any, other: PrimExpr) -> list[Piece]:
        return [self._int(value)[0][0]] if isinstance(value, IntImm) else [self.immediate(value)]

    def _load(self, expr: BufferLoad) -> tuple[list[Piece], int]:
        if expr.predicate is None or self.older:
            return super()._load(expr)
        self._check_vector(expr, f"a load from '{expr.buffer.name}' with a predicate")
        parts = [[(part, 0)] for part in (*expr.indices, expr.predicate)]
        head = [string_text(expr.dtype)], [self.name(expr.buffer)]
        return ["T.masked_load(", *separated([*head, *parts]), ")"], ATOM

    def _check_vector(self, node: BufferLoad | BufferStore, what: str) -> None:
        """W116 for a predicate of one element: readers know it for vectors only."""
        if not node.indices or dtypes.lanes(node.indices[-1].dtype) == 1:
            raise self.refuse(what, node)

    def _store(self, stmt: BufferStore) -> None:
        if stmt.predicate is None or self.older:
            super()._store(stmt)
            return
        self._check_vector(stmt, f"a store to '{stmt.buffer.name}' with a predicate")
        rest = [[(part, 0)] for part in (stmt.value, *stmt.indices, stmt.predicate)]
        self.line(self.join(["T.masked_store(", *separated([[self.name(stmt.buffer)], *rest]), ")"]))

    def module_alias(self, function: Node) -> None:
        """Say what `cls` is, in graph functions: in others names of the class are plain values."""
        if not isinstance(function, PrimFunc):
            super().module_alias(function)

    def _prim_call(self, expr: PrimCall) -> tuple[list[Piece], int]:
        if isinstance(expr.op, GlobalVar) and self.module_class:
            args = separated([piece] for piece in self._arguments_of(expr.op, expr))
            return [f"{self.module_class}.{expr.op.name}(", *args, ")"], ATOM
        if expr.op == "if_then_else" and expr.dtype == "handle" and not self.older:
            raise self.refuse("a choice between pointers", expr, "make it with an `if`")
        moved = _moved_pointer(expr)
        pointer, offset = moved if moved is not None else (expr, None)
        if pointer.op == "access_ptr" and pointer.args and _is_first_data(pointer.args[0]):
            name = self.name(pointer.args[0].args[0].buffer)  # type: ignore[union-attr]
            rest: list[list[Piece]] = [[self._call_argument(item)] for item in pointer.args[1:]]
            rest += [[f"{key}={self.show_literal(item)}"] for key, item in pointer.attrs.items()]
            if offset is not None:
                rest.append(["offset=", str(offset) if isinstance(offset, int) else (offset, 0)])
            return [f"{name}.access_ptr(", *separated(rest), ")"], ATOM
        if expr.op == "address_of" and len(expr.args) == 1 and _is_first_element(expr.args[0]):
            return [f"{self.name(expr.args[0].buffer)}.data"], ATOM  # type: ignore[union-attr]
        return super()._prim_call(expr)

    def _arguments_of(self, callee: GlobalVar, expr: PrimCall) -> list[Piece]:
        """The arguments of a call of a function of the module: the buffer itself where that is what it takes."""
        function = self.functions.get(callee.name)
        params = function.params if isinstance(function, PrimFunc) else ()
        made: list[Piece] = []
        for place, argument in enumerate(expr.args):
            whole = place < len(params) and isinstance(params[place], Buffer) and _is_first_data(argument)
            made.append(self.name(argument.args[0].buffer) if whole else self._call_argument(argument))  # type: ignore[union-attr]
        return made

    def _call_intrin(self, name: str, expr: PrimCall) -> tuple[list[Piece], int]:
        renamed = None if self.older else RENAMED_OPERATORS.get(name)
        if name.startswith("ptx_") and not self.older and renamed is None:
            raise self.refuse(f"T.{name}", expr, hint="that version spells it T.ptx... with other arguments")
        if expr.attrs:
            raise self.refuse(f"attributes of a call of '{name}'", expr)
        args = [[self._call_argument(argument)] for argument in expr.args]
        stated: list[Piece] = [string_text(expr.dtype)]
        values = {"dtype": expr.dtype, "op": f"{self.operators}.{renamed or name}", "args": expr.args, "attrs": {}}
        if renamed is not None or name in OPERATORS_ONLY:
            return self.fill(SCALARS["T.call_intrin"], values), ATOM
        if name in DTYPE_MAYBE_FIRST and expr.dtype != "void":
            return [f"T.{name}(", *separated([stated, *args]), ")"], ATOM
        if name in DTYPE_LAST and len(args) == DTYPE_LAST[name]:
            return [f"T.{name}(", *separated([*args, stated]), ")"], ATOM
        if is_device_name(name) and expr.dtype == _device_dtype(name, expr):
            return [f"T.{name}(", *separated(args), ")"], ATOM
        return self.fill(SCALARS["T.call_intrin"], values), ATOM

    def _alloc(self, stmt: AllocBuffer, in_block: bool = False) -> None:
        name, values = stmt.buffer.name, self._buffer_values(stmt.buffer)
        if self.older:
            if stmt.annotations:
                raise self.refuse(f"the allocation '{name}' with annotations", stmt)
            self.line(f"{self.name(stmt.buffer)} = {self.form_text(BUFFERS['T.decl_buffer'], values)}")
            return
        super()._alloc(stmt)

    def _attr(self, stmt: AttrStmt) -> None:
        if stmt.value is None:
            raise self.refuse(f"the attribute '{stmt.key}' without a value", stmt)
        if stmt.key == HINT and isinstance(stmt.node, str) and isinstance(stmt.value, FrozenMap):
            if self.older or not all(key.isidentifier() for key in stmt.value):
                raise self.refuse("a hint", stmt)
            told = [f"{key}={self.show_literal(item)}" for key, item in stmt.value.items()]
            self._inner(f"with T.hint({', '.join([string_text(stmt.node), *told])}):", stmt.body)
            return
        if stmt.node is not None:
            super()._attr(stmt)
            return
        value = self.immediate(stmt.value) if isinstance(stmt.value, (IntImm, FloatImm)) else None
        text = value or self.join(_as_pieces(self.show_anything(stmt.value)))
        key = string_text(stmt.key)
        self._inner(f"with T.attr(0, {key}, {text}):" if self.older else f"with T.attr({{{key}: {text}}}):", stmt.body)

    def _bind(self, stmt: Bind) -> None:
        if isinstance(stmt.value, PrimCall) and stmt.value.op in SCOPE_IDS:
            self._scope_id(stmt, stmt.value)
            return
        if not self.older and self._is_pointer_call(stmt):
            kind = self._variable_type(stmt.var)
            op = f'"{self.operators}.{stmt.value.op}"'  # type: ignore[union-attr]
            args = [[self._call_argument(argument)] for argument in stmt.value.args]  # type: ignore[union-attr]
            text = self.join([f"T.call_intrin({kind}.ty, ", *separated([[op], *args]), ")"])
            self.line(f"{self.name(stmt.var)}: T.let[{kind}] = {text}")
            return
        if not self.older:
            super()._bind(stmt)
            return
        value = self.immediate(stmt.value) if isinstance(stmt.value, (IntImm, FloatImm)) else None
        text = value or self.join(self.operand(stmt.value))
        self.line(f"{self.name(stmt.var)}: {self._variable_type(stmt.var)} = {text}")

    def _scope_id(self, stmt: Bind, call: PrimCall) -> None:
        if self.older or call.attrs or call.dtype != "int32":
            raise self.refuse(f"T.{call.op} of several extents, or of another dtype than int32", stmt)
        extents = ", ".join(self.join(self.operand(extent)) for extent in call.args if isinstance(extent, PrimExpr))
        self.line(f"{self.name(stmt.var)} = T.{call.op}({f'[{extents}]' if call.args else ''})")

    @staticmethod
    def _is_pointer_call(stmt: Bind) -> bool:
        """Whether a call gives a pointer to elements of a dtype, which the call has to say."""
        call, var = stmt.value, stmt.var
        typed = var.dtype == "handle" and (var.pointee is not None or var.scope != "global")
        return typed and isinstance(call, PrimCall) and call.op in _POINTER_CALLS and not call.attrs

    def _return(self, stmt: Return) -> None:
        if not self.older:
            super()._return(stmt)
            return
        if stmt.value is None:
            raise self.refuse("a return without a value", stmt)
        value = self.immediate(stmt.value) if isinstance(stmt.value, (IntImm, FloatImm)) else None
        self.line(f"T.ret({value or self.join(self.operand(stmt.value))})")

    def _leave(self, stmt: Break | Continue) -> None:
        word = "break" if isinstance(stmt, Break) else "continue"
        if self.older:
            raise self.refuse(f"`{word}`", stmt)
        self.line(word)

    def _assert(self, stmt: AssertStmt) -> None:
        if self.older and stmt.kind != "AssertionError":
            raise self.refuse(f"an assertion that raises {stmt.kind}", stmt)
        if self.older and stmt.parts:
            raise self.refuse("an assertion with a message of parts", stmt, "give it one message")
        super()._assert(stmt)

    def _seq(self, stmt: SeqStmt) -> None:
        for item in stmt.stmts:
            self.statement(item)
        if not stmt.stmts:
            self.line("pass")

    _PRIMS: ClassVar[dict[type, Any]] = {
        **TensorPrinter._PRIMS, Binary: _binary, Let: _let, BufferLoad: _load, PrimCall: _prim_call,
    }  # fmt: skip
    _STATEMENTS: ClassVar[dict[type, Any]] = {
        **TensorPrinter._STATEMENTS, For: _for, IfThenElse: _if_statement, BufferStore: _store, AttrStmt: _attr,
        SeqStmt: _seq, DeclBuffer: _decl, AllocBuffer: _alloc, Bind: _bind, Return: _return, Break: _leave,
        Continue: _leave, AssertStmt: _assert,
    }  # fmt: skip


def _is_symbolic(buffer: Buffer) -> bool:
    """Whether a size, stride or offset of a buffer is more than a number."""
    parts = (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset)
    return any(isinstance(part, PrimExpr) for part in parts)


def _is_first_element(value: Any) -> bool:
    """Whether an expression is the first element of a buffer, whose address is that of its data."""
    if not isinstance(value, BufferLoad) or value.predicate is not None:
        return False
    return all(isinstance(index, IntImm) and index.value == 0 for index in value.indices)


def _as_pieces(shown: Any) -> list[Piece]:
    return shown if isinstance(shown, list) else [shown]


def _source_of(buffer: Buffer) -> Buffer | None:
    """The buffer that another one sees whole, in the same dtype."""
    data = buffer.data
    if not isinstance(data, PrimCall) or data.op != "address_of" or not _is_first_element(data.args[0]):
        return None
    source: Buffer = data.args[0].buffer  # type: ignore[union-attr]
    plain = (buffer.strides, buffer.elem_offset, source.elem_offset, buffer.axis_separators) == (None, None, None, ())
    same = all(getattr(buffer, name) == getattr(source, name) for name in ("dtype", "scope", "align", "offset_factor"))
    return source if plain and same else None


def _device_dtype(name: str, expr: PrimCall) -> str:
    """The dtype of a call of a device that states none."""
    position = DTYPE_OF_ARGUMENT.get(name)
    if position is not None and position < len(expr.args):
        return expr.args[position].dtype  # type: ignore[union-attr]
    return RESULT_DTYPES.get(name, "void")


def _moved_pointer(expr: PrimCall) -> tuple[PrimCall, Any] | None:
    """The pointer and the number of elements of `A.access_ptr("r", offset=n)`, which is read as a number of bytes."""
    if expr.op != "handle_add_byte_offset" or len(expr.args) != 2:
        return None
    pointer, moved = expr.args
    if not isinstance(pointer, PrimCall) or pointer.op != "access_ptr" or not _is_first_data(pointer.args[0]):
        return None
    dtype = pointer.args[0].args[0].buffer.dtype  # type: ignore[union-attr]
    size = dtypes.bits(dtype) * dtypes.lanes(dtype) // 8
    if isinstance(moved, IntImm) and moved.dtype == USUAL_WIDTH and size and moved.value % size == 0:
        return pointer, moved.value // size
    if isinstance(moved, Binary) and moved.kind == "mul" and isinstance(moved.b, IntImm) and moved.b.value == size:
        return pointer, moved.a
    return (pointer, moved) if size == 1 else None


def _is_first_data(value: Any) -> bool:
    """Whether an expression is the data of a buffer."""
    return isinstance(value, PrimCall) and value.op == "address_of" and _is_first_element(value.args[0])
