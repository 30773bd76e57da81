"""Tensor-level statements to Python closures.

    compiled ::= frame -> None | signal        signal ::= BREAK | CONTINUE | ("return", value)

Loops of every kind run serially in order; where a loop of a reduction's nest is empty, the init of its block runs all
the same. A block binds its variables, tests its predicate, allocates, runs `init` when all its reduce variables are at
their start, then its body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import (
    ASSERTION_CODES,
    ArgumentError,
    BoundsError,
    DTypeError,
    OutOfMemoryError,
    PassError,
    ShapeError,
    UnwrittenError,
    VerifyError,
    WeftError,
)
from weft.ir.interpret.compiled import CallKernel, Compiled, Frame, Lookup
from weft.ir.interpret.expressions import FunctionCompiler, is_vector
from weft.ir.interpret.indices import doubt_of, exact_condition
from weft.ir.interpret.memory import Memory, Pointer, View
from weft.ir.interpret.scalars import wrapper
from weft.ir.node import replace
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Block,
    Break,
    Buffer,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IterVar,
    MatchBufferRegion,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["BREAK", "CONTINUE", "Returned", "StatementCompiler"]

BREAK, CONTINUE = object(), object()

_ERRORS: dict[str, type[Exception]] = {
    "AssertionError": AssertionError, "ValueError": ValueError, "TypeError": TypeError, "RuntimeError": RuntimeError,
    "IndexError": IndexError, "ShapeError": ShapeError, "BoundsError": BoundsError, "ArgumentError": ArgumentError,
    "DTypeError": DTypeError, "PassError": PassError, "VerifyError": VerifyError,
    "UnwrittenError": UnwrittenError,
}  # fmt: skip


class Returned:
    """The signal of a return statement, with its value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class StatementCompiler(FunctionCompiler):
    """The statements of one function as closures; `unit` is the granularity of marks (see `memory`), 0 for elements."""

    def __init__(self, call_kernel: CallKernel, lookup: Lookup, unit: int) -> None:
        super().__init__(call_kernel, lookup)
        self.unit = unit

    def unit_of(self, dtype: str) -> int:
        """Bytes per mark for memory of a dtype."""
        return self.unit or dtypes.storage(dtype).itemsize

    def statement(self, node: Stmt) -> Compiled:
        """The closure of a statement."""
        compile_node = _STATEMENTS.get(type(node))
        if compile_node is None:
            raise WeftError(f"cannot interpret the statement {type(node).__name__}", code="W860", span=node.span)
        return compile_node(self, node)

    def _sequence(self, node: SeqStmt) -> Compiled:
        steps = [self.statement(step) for step in node.stmts]

        def run(frame: Frame) -> Any:
            for step in steps:
                signal = step(frame)
                if signal is not None:
                    return signal
            return None

        return run

    def _store(self, node: BufferStore) -> Compiled:
        slot, value = self.slot(node.buffer), self.expression(node.value)
        if is_vector(node.indices):
            return self._store_lanes(node)
        locate = self.locator(node.buffer, node.indices, node.span)
        guard = None if node.predicate is None else self.expression(node.predicate)

        def store(frame: Frame) -> None:
            if guard is not None and not guard(frame):
                return
            stored = value(frame)
            view: View = frame[slot]
            address = locate(frame, view)
            view.write(address, stored)
            if view.marks is not None:
                view.marks[address] = 1
                view.memory.touched = True

        return store

    def _store_lanes(self, node: BufferStore) -> Compiled:
        slot, value = self.slot(node.buffer), self.expression(node.value)
        locate = self.lanes_locator(node.buffer, node.indices, node.predicate, node.span)

        def store(frame: Frame) -> None:
            stored = value(frame)
            view: View = frame[slot]
            addresses, active = locate(frame, view)
            lanes = len(addresses) if active is None else len(active)
            stored = np.broadcast_to(stored, (lanes,))
            view.write_lanes(addresses, stored if active is None else stored[active])
            view.memory.touched = True

        return store

    # Loops

    def _for(self, node: For) -> Compiled:
        start, extent = self.extent(node.start), self.extent(node.extent)
        step = self.extent(1 if node.step is None else node.step)
        slot, body = self.slot(node.loop_var), self.statement(node.body)
        nothing = self._init_without_steps(node)

        def loop(frame: Frame) -> Any:
            first, increment = start(frame), step(frame)
            if increment <= 0:
                raise BoundsError(f"the step of a loop is {increment}", code="W907", span=node.span)
            count = extent(frame)
            if count <= 0 and nothing is not None:
                nothing(frame)
            for value in range(first, first + count, increment):
                frame[slot] = value
                signal = body(frame)
                if signal is not None:
                    if signal is BREAK:
                        break
                    if signal is not CONTINUE:
                        return signal
            frame[slot] = None
            return None

        return loop

    def _init_without_steps(self, node: For) -> Compiled | None:
        """For a loop of a reduction's nest: the init alone, because a reduction over nothing has a result too."""
        inner = node.body
        while isinstance(inner, For):
            inner = inner.body
        if not isinstance(inner, Block) or inner.init is None or node.loop_var not in _reduction_loops(inner):
            return None
        return self._init_nest(node, _reduction_loops(inner))

    def _init_nest(self, node: Stmt, reduction: set[PrimVar]) -> Compiled:
        if isinstance(node, Block):
            return self._init_block(node)
        assert isinstance(node, For)
        start, extent = self.extent(node.start), self.extent(node.extent)
        step = self.extent(1 if node.step is None else node.step)
        slot, inner, once = self.slot(node.loop_var), self._init_nest(node.body, reduction), node.loop_var in reduction

        def loop(frame: Frame) -> None:
            first = start(frame)
            for value in (first,) if once else range(first, first + extent(frame), step(frame)):
                frame[slot] = value
                inner(frame)
            frame[slot] = None

        return loop

    def _init_block(self, node: Block) -> Compiled:
        assert node.init is not None
        own = [v for v in node.iter_vars if v.kind not in ("reduce", "scan")]
        return self._block(replace(node, iter_vars=tuple(own), init=None, body=node.init, match_buffers=()))

    def _while(self, node: While) -> Compiled:
        condition, body = self.expression(node.condition), self.statement(node.body)

        def loop(frame: Frame) -> Any:
            while condition(frame):
                signal = body(frame)
                if signal is not None:
                    if signal is BREAK:
                        break
                    if signal is not CONTINUE:
                        return signal
            return None

        return loop

    def _if(self, node: IfThenElse) -> Compiled:
        condition, then = self.expression(node.condition), self.statement(node.then_body)
        otherwise = (lambda frame: None) if node.else_body is None else self.statement(node.else_body)
        return lambda frame: then(frame) if condition(frame) else otherwise(frame)

    def _break(self, node: Break) -> Compiled:
        return lambda frame: BREAK

    def _continue(self, node: Continue) -> Compiled:
        return lambda frame: CONTINUE

    def _return(self, node: Return) -> Compiled:
        value = (lambda frame: None) if node.value is None else self.expression(node.value)
        return lambda frame: Returned(value(frame))

    # Names

    def _bind(self, node: Bind) -> Compiled:
        value, slot = self.expression(node.value), self.slot(node.var)
        doubt = doubt_of(self, node.var, node.value)

        def bind(frame: Frame) -> None:
            frame[slot] = value(frame)

        def bind_in_doubt(frame: Frame) -> None:
            assert doubt is not None
            doubt(frame)
            frame[slot] = value(frame)

        return bind if doubt is None else bind_in_doubt

    def _allocate(self, buffer: Buffer) -> Callable[[Frame], None]:
        """The closure that gives a buffer new memory, or a view of the memory that its `data` points to."""
        if buffer.data is not None:
            return self._view(buffer)
        slot, make = self.slot(buffer), self.view_maker(buffer)

        def allocate(frame: Frame) -> None:
            try:
                shape, strides, offset = make(frame)
            except BoundsError as error:
                if error.code != "W905":
                    raise
                message = f"no memory for the buffer {buffer.name}: {error.message}"
                raise OutOfMemoryError(message, code="W950", span=error.span, notes=error.notes) from None
            if strides is None:
                count = _product(shape)
            else:
                count = (
                    1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
                    if 0 not in shape
                    else 0
                )
            memory = Memory.allocate(count + offset, buffer.dtype, self.unit_of(buffer.dtype), buffer.name)
            frame[slot] = View(memory, buffer.dtype, shape, strides, offset, buffer.name)

        return allocate

    def view_maker(self, buffer: Buffer) -> Callable[[Frame], tuple[tuple[int, ...], tuple[int, ...] | None, int]]:
        """The closure that evaluates (shape, strides, offset) of a buffer."""
        shape = [self.extent(extent) for extent in buffer.shape]
        strides = None if buffer.strides is None else [self.extent(stride) for stride in buffer.strides]
        offset = self.extent(0 if buffer.elem_offset is None else buffer.elem_offset)

        def make(frame: Frame) -> tuple[tuple[int, ...], tuple[int, ...] | None, int]:
            sizes = tuple(extent(frame) for extent in shape)
            if min(sizes, default=0) < 0:
                raise ShapeError(
                    f"buffer {buffer.name!r} has the negative shape {sizes}",
                    code="W221",
                    span=buffer.span,
                    notes=self.values_in(frame),
                )
            return sizes, None if strides is None else tuple(stride(frame) for stride in strides), offset(frame)

        return make

    def _view(self, buffer: Buffer) -> Callable[[Frame], None]:
        assert buffer.data is not None
        slot, make, data = self.slot(buffer), self.view_maker(buffer), self.expression(buffer.data)

        def view(frame: Frame) -> None:
            shape, strides, offset = make(frame)
            pointer = data(frame)
            if not isinstance(pointer, Pointer):
                raise BoundsError(f"the data of buffer {buffer.name!r} is not a pointer", code="W903", span=buffer.span)
            base = pointer.element_offset(buffer.dtype)
            frame[slot] = View(pointer.memory, buffer.dtype, shape, strides, base + offset, buffer.name)

        return view

    def _alloc_statement(self, node: AllocBuffer | DeclBuffer) -> Compiled:
        return self._allocate(node.buffer)

    # Blocks

    def _block(self, node: Block) -> Compiled:
        bindings = [self._iteration(node, variable) for variable in node.iter_vars]
        predicate = None if node.predicate is None else self.expression(node.predicate)
        allocations = [self._allocate(buffer) for buffer in node.alloc_buffers]
        matches = [self._match(match) for match in node.match_buffers]
        values = [(slot, value) for slot, value, _, _ in bindings]
        domains = [(slot, start, extent) for slot, _, start, extent in bindings]
        reduces = [
            (slot, start)
            for (slot, _, start, _), v in zip(bindings, node.iter_vars, strict=True)
            if v.kind in ("reduce", "scan")
        ]
        init = None if node.init is None else self.statement(node.init)
        body = self.statement(node.body)

        def run(frame: Frame) -> Any:
            for slot, value in values:
                frame[slot] = value(frame)
            if predicate is not None and not predicate(frame):
                return None
            for slot, start, extent in domains:
                first = start(frame)
                if not first <= frame[slot] < first + extent(frame):
                    raise self._outside(frame, node, slot, first, extent(frame))
            for allocate in allocations:
                allocate(frame)
            for match in matches:
                match(frame)
            if init is not None and all(frame[slot] == start(frame) for slot, start in reduces):
                init(frame)
            return body(frame)

        return run

    def _iteration(self, node: Block, variable: IterVar) -> tuple[int, Compiled, Compiled, Compiled]:
        if variable.value is None:
            raise BoundsError(
                f"variable {variable.var.name!r} of block {node.name!r} has no binding, so it cannot run",
                code="W908", span=node.span,
            )  # fmt: skip
        value = self.index(variable.value)
        if variable.value.dtype != variable.var.dtype:
            value = self.converted(value, variable.var.dtype)
        return self.slot(variable.var), value, self.extent(variable.start), self.extent(variable.extent)

    def converted(self, value: Compiled, dtype: str) -> Compiled:
        """An integer value wrapped to a dtype."""
        wrap = wrapper(dtype)
        return lambda frame: wrap(value(frame))

    def _outside(self, frame: Frame, node: Block, slot: int, first: int, extent: int) -> BoundsError:
        name = next(v.var.name for v in node.iter_vars if self.slot(v.var) == slot)
        return BoundsError(
            f"variable {name!r} of block {node.name!r} is {frame[slot]}, outside [{first}, {first + extent})",
            code="W909", span=node.span, notes=self.values_in(frame), hint="guard the block with T.where(...)",
        )  # fmt: skip

    def _match(self, node: MatchBufferRegion) -> Callable[[Frame], None]:
        """A buffer over a region of another: strides and offset follow from the region; bare symbols are bound."""
        source, target = node.source, node.buffer
        source_slot = self.slot(source.buffer)
        starts = [self.extent(part.start) for part in source.region]
        extents = [self.extent(part.extent) for part in source.region]
        layout = (
            *target.shape,
            *(target.strides or ()),
            *(() if target.elem_offset is None else (target.elem_offset,)),
        )
        fresh = [self.slot(part) for part in layout if isinstance(part, PrimVar) and id(part) not in self.slots]
        slot, bind = self.slot(target), self.binder(target)

        def match(frame: Frame) -> None:
            view: View = frame[source_slot]
            first = [start(frame) for start in starts]
            sizes = [extent(frame) for extent in extents]
            for position, size, limit in zip(first, sizes, view.shape, strict=True):
                if position < 0 or position + size > limit:
                    raise BoundsError(
                        f"region {_box(first, sizes)} is out of range for buffer {view.name!r} of shape {view.shape}",
                        code="W900", span=node.span, notes=self.values_in(frame),
                    )  # fmt: skip
            # Leading dimensions of extent 1 may be dropped by the matched buffer.
            dropped = len(sizes) - target.ndim
            offset = view.offset + sum(p * s for p, s in zip(first, view.strides, strict=True))
            shape, strides = tuple(sizes[dropped:]), tuple(view.strides[dropped:])
            for symbol in fresh:
                frame[symbol] = None
            bind(frame, shape, strides, offset)
            frame[slot] = View(view.memory, target.dtype, shape, strides, offset, target.name)

        return match

    def binder(self, buffer: Buffer) -> Callable[[Frame, tuple[int, ...], tuple[int, ...], int], None]:
        """The closure that binds the bare symbols of a buffer's layout and compares sizes and strides (W220)."""
        parts = [("shape", tuple(buffer.shape)), ("strides", buffer.strides)]
        compared = [
            (what, [(_symbol_slot(self, p), self.extent(p)) for p in part]) for what, part in parts if part is not None
        ]
        offset_slot = self.slot(buffer.elem_offset) if isinstance(buffer.elem_offset, PrimVar) else None

        def bind(frame: Frame, sizes: tuple[int, ...], steps: tuple[int, ...], start: int) -> None:
            if offset_slot is not None and frame[offset_slot] is None:
                frame[offset_slot] = start
            for what, entries in compared:
                actual = sizes if what == "shape" else steps
                if len(entries) != len(actual):
                    raise ShapeError(
                        f"buffer {buffer.name!r} has {len(entries)} dimensions, got {what} {actual}",
                        code="W220",
                        span=buffer.span,
                    )
                for (slot, _), value in zip(entries, actual, strict=True):
                    if slot is not None and frame[slot] is None:
                        frame[slot] = value
                expected = tuple(extent(frame) for _, extent in entries)
                if expected != actual:
                    raise ShapeError(
                        f"buffer {buffer.name!r}: expected {what} {expected}, got {actual}",
                        code="W220", span=buffer.span, notes=self.values_in(frame),
                    )  # fmt: skip

        return bind

    # Others

    def _assert(self, node: AssertStmt) -> Compiled:
        exact = node.kind == "BoundsError"
        condition = exact_condition(self, node.condition) if exact else self.expression(node.condition)

        def check(frame: Frame) -> None:
            if not condition(frame):
                kind = _ERRORS.get(node.kind, RuntimeError)
                if issubclass(kind, WeftError):
                    code = ASSERTION_CODES.get(node.kind)
                    raise kind(node.message, code=code, span=node.span, notes=self.values_in(frame))
                raise kind(node.message)

        return check

    def _attribute(self, node: AttrStmt) -> Compiled:
        body = self.statement(node.body)
        if node.key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
            return self._threads(node, node.node, body)
        return body

    def _threads(self, node: AttrStmt, variable: IterVar, body: Compiled) -> Compiled:
        """A launch runs its threads one after another."""
        slot = self.slot(variable.var)
        extent = self.extent(node.value)  # type: ignore[arg-type]

        def launch(frame: Frame) -> Any:
            for value in range(extent(frame)):
                frame[slot] = value
                signal = body(frame)
                if signal is not None:
                    return signal
            return None

        return launch

    def _evaluate(self, node: Evaluate) -> Compiled:
        value = self.expression(node.value)

        def evaluate(frame: Frame) -> None:
            value(frame)

        return evaluate


def _reduction_loops(block: Block) -> set[PrimVar]:
    """The variables that only the bindings of a block's reduction variables use."""
    steps, others = (
        {
            n
            for v in block.iter_vars
            if (v.kind in ("reduce", "scan")) == steps and v.value is not None
            for n in walk(v.value)
        }
        for steps in (True, False)
    )
    return {variable for variable in steps - others if isinstance(variable, PrimVar)}


def _symbol_slot(compiler: StatementCompiler, part: Any) -> int | None:
    return compiler.slot(part) if isinstance(part, PrimVar) else None


def _product(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _box(first: list[int], sizes: list[int]) -> str:
    return "[" + ", ".join(f"{start}:{start + size}" for start, size in zip(first, sizes, strict=True)) + "]"


_STATEMENTS: dict[type, Callable[[StatementCompiler, Any], Compiled]] = {
    SeqStmt: StatementCompiler._sequence,
    BufferStore: StatementCompiler._store,
    For: StatementCompiler._for,
    While: StatementCompiler._while,
    IfThenElse: StatementCompiler._if,
    Break: StatementCompiler._break,
    Continue: StatementCompiler._continue,
    Return: StatementCompiler._return,
    Bind: StatementCompiler._bind,
    AllocBuffer: StatementCompiler._alloc_statement,
    DeclBuffer: StatementCompiler._alloc_statement,
    Block: StatementCompiler._block,
    AssertStmt: StatementCompiler._assert,
    AttrStmt: StatementCompiler._attribute,
    Evaluate: StatementCompiler._evaluate,
}
