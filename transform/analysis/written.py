"""Whether what a kernel reads was written before: scratch, and outputs, which hold nothing when the kernel begins.

    c = T.alloc_buffer((n,))
    for i in range(n): c[i] = x[i]          writes the box [0, n) of c
    for j in range(n): y[j] = c[n - 1 - j]  reads inside of it: proved

A box is written by a store in each iteration of loops over it. What a branch writes counts where both branches do, and
what the first iteration of a loop writes counts in all that follow (an init that a condition guards). A buffer that is
seen through a view, or whose address is taken, cannot be followed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import compress
from operator import is_not
from typing import Any

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import walk
from weft.ir.dim import Dim, operation
from weft.ir.structure.visit import statements
from weft.ir.tensor import (
    PREFETCH,
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Continue,
    DeclBuffer,
    For,
    IfThenElse,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Fact, Facts, negated
from weft.transform.kernel.bounds.jumps import always_jumps
from weft.transform.kernel.bounds.values import bind, parameter_facts

__all__ = [
    "Unproved",
    "guarded_loads",
    "is_plainly_written",
    "opaque_buffers",
    "unproved_reads",
    "written_by_iteration",
]

Span = tuple[Dim, Dim]
Box = tuple[Span, ...]
Boxes = Mapping[Buffer, tuple[Box, ...]]
_MAX_BOXES = 16  # that are kept of one buffer


@dataclass(frozen=True)
class Unproved:
    """Buffers of which some read is not proved to see a written element, those that cannot be followed, and outputs of
    which it is not proved that every element is written in the end."""

    read: frozenset[Buffer] = frozenset()
    opaque: frozenset[Buffer] = frozenset()
    partial: frozenset[Buffer] = frozenset()


def unproved_reads(function: PrimFunc, outputs: Set[Buffer] = frozenset()) -> Unproved:
    """What is not proved of the scratch of a kernel without blocks, and of parameters that hold nothing at first."""
    scratch = {part.buffer for part in walk(function.body) if isinstance(part, AllocBuffer)}
    opaque = frozenset(opaque_buffers(function.body, scratch | outputs))
    followed = (scratch | outputs) - opaque
    loaded = {part.buffer for part in walk(function.body) if isinstance(part, BufferLoad)}
    if not followed & (loaded | outputs):
        return Unproved(opaque=opaque)
    flow = _Flow(function, followed)
    facts = parameter_facts(function, flow.known)
    boxes = flow.statement(function.body, {}, facts)
    partial = {buffer for buffer in followed & outputs if not flow.is_whole(buffer, boxes, facts)}
    read = flow.unproved | {read.buffer for read in flow.waiting}
    return Unproved(frozenset(read), opaque, frozenset(partial))


def written_by_iteration(function: PrimFunc, loop: For, buffers: Set[Buffer]) -> frozenset[Buffer]:
    """The buffers among these of which an iteration of a loop is proved to read only what it wrote itself."""
    followed = buffers - opaque_buffers(loop.body, buffers)
    flow = _FlowOfIteration(function, followed, loop)
    with contextlib.suppress(_Reached):
        flow.statement(function.body, {}, parameter_facts(function, flow.known))
    return frozenset(followed - flow.unproved - {read.buffer for read in flow.waiting})


def opaque_buffers(body: Stmt, buffers: Set[Buffer]) -> set[Buffer]:
    """Those that are seen through views or passed on."""
    found: set[Buffer] = set()
    for part in walk(body):
        if isinstance(part, PrimCall):
            found |= {arg for arg in part.args if isinstance(arg, Buffer)}
            if part.op in ("address_of", "access_ptr", "tvm_access_ptr"):
                found |= {arg.buffer for arg in part.args if isinstance(arg, BufferLoad)}
        elif isinstance(part, DeclBuffer) and part.buffer.data is not None:
            found |= {load.buffer for load in walk(part.buffer.data) if isinstance(load, BufferLoad)}
    return found & set(buffers)


def guarded_loads(expr: Any, guards: tuple[PrimExpr, ...] = ()) -> Iterator[tuple[BufferLoad, tuple[PrimExpr, ...]]]:
    """The loads of an expression, each with the conditions under which it is evaluated."""
    if isinstance(expr, (int, type(None))):
        return
    if isinstance(expr, BufferLoad):
        for index in expr.indices:
            yield from guarded_loads(index, guards)
        yield expr, guards if expr.predicate is None else (*guards, expr.predicate)
    elif isinstance(expr, PrimCall) and expr.op == "if_then_else":
        condition, *arms = (arg for arg in expr.args if isinstance(arg, PrimExpr))
        yield from guarded_loads(condition, guards)
        for test, arm in zip((condition, negated(condition)), arms, strict=False):
            yield from guarded_loads(arm, (*guards, test))
    elif isinstance(expr, Binary) and expr.kind in ("and", "or") and dtypes.lanes(expr.dtype) == 1:
        yield from guarded_loads(expr.a, guards)
        yield from guarded_loads(expr.b, (*guards, expr.a if expr.kind == "and" else negated(expr.a)))
    elif isinstance(expr, PrimCall) and expr.op in ("address_of", "access_ptr", "tvm_access_ptr"):
        return
    else:
        for child in _operands(expr):
            yield from guarded_loads(child, guards)


def _operands(expr: PrimExpr) -> Iterator[PrimExpr]:
    for name in ("a", "b", "value", "condition", "true_value", "false_value", "base", "stride", "body"):
        part = getattr(expr, name, None)
        if isinstance(part, PrimExpr):
            yield part
    for name in ("args", "vectors", "indices"):
        yield from (part for part in getattr(expr, name, ()) if isinstance(part, PrimExpr))


@dataclass(frozen=True)
class _Read:
    """A read that is not proved yet, with the boxes that are known to be written there."""

    buffer: Buffer
    box: Box
    facts: Facts
    boxes: tuple[Box, ...]


class _Flow:
    """Goes through a kernel once, in order, with the boxes that are written so far.

    What earlier iterations of a loop wrote is known at its end only: reads that miss something wait until then.
    """

    def __init__(self, function: PrimFunc, buffers: Set[Buffer]) -> None:
        self.buffers = buffers
        self.known = IndexAnalyzer()
        self.unproved: set[Buffer] = set()
        self.waiting: list[_Read] = []
        self.loops: list[For] = []
        self.allocated_in: dict[Buffer, tuple[For, ...]] = dict.fromkeys(buffers, ())

    def statement(self, stmt: Stmt, boxes: Boxes, facts: Facts) -> Boxes:
        """The boxes that are written after a statement."""
        if isinstance(stmt, SeqStmt):
            return self._sequence(stmt, boxes, facts)
        if isinstance(stmt, For):
            return self._for(stmt, boxes, facts)
        if isinstance(stmt, IfThenElse):
            return self._if(stmt, boxes, facts)
        if isinstance(stmt, While):
            self.reads(stmt.condition, boxes, facts.after_write())
            self.statement(stmt.body, boxes, self.known.assume(stmt.condition, facts.after_write()))
            return boxes
        if isinstance(stmt, AttrStmt):
            if stmt.key != PREFETCH:
                self.reads(stmt.value, boxes, facts)
            variable = getattr(stmt.node, "var", None)
            if isinstance(variable, PrimVar) and variable not in self.known.values:
                facts = self.known.unknown(variable, facts)
            return self.statement(stmt.body, boxes, facts)
        if isinstance(stmt, AllocBuffer):
            self.allocated_in[stmt.buffer] = tuple(self.loops)
            return {**boxes, stmt.buffer: ()}
        if isinstance(stmt, BufferStore):
            return self._store(stmt, boxes, facts)
        for part in (getattr(stmt, "condition", None), getattr(stmt, "value", None)):
            self.reads(part, boxes, facts)
        return boxes

    def reads(self, expr: Any, boxes: Boxes, facts: Facts) -> None:
        """Note the loads of an expression that are not proved."""
        for part in walk(expr) if isinstance(expr, PrimExpr) else ():
            if isinstance(part, Let):
                self.known.lets[part.var] = part.value
        for load, guards in guarded_loads(expr):
            if load.buffer in self.buffers and load.buffer not in self.unproved:
                inside = facts
                for guard in guards:
                    inside = self.known.assume(self.known.closed(guard), inside)
                box = self._box(load, inside)
                if box is None:
                    self.unproved.add(load.buffer)
                else:
                    self._wait(_Read(load.buffer, box, inside, boxes.get(load.buffer, ())), boxes.get(load.buffer, ()))

    def _wait(self, read: _Read, boxes: Iterable[Box]) -> None:
        """Keep a read that none of the boxes holds."""
        if not any(self._covers(box, read.box, read.facts) for box in boxes):
            self.waiting.append(read)

    def is_whole(self, buffer: Buffer, boxes: Boxes, facts: Facts) -> bool:
        """Whether the boxes are proved to hold every element of a buffer that has any."""
        sizes = [self.known.dim(extent, facts) for extent in buffer.shape]
        facts = facts.with_facts(*(Fact(size - 1) for size in sizes))
        whole = tuple((0, size - 1) for size in sizes)
        return any(self._covers(box, whole, facts) for box in boxes.get(buffer, ()))

    def _sequence(self, stmt: SeqStmt, boxes: Boxes, facts: Facts) -> Boxes:
        for part in stmt.stmts:
            boxes = self.statement(part, boxes, facts)
            if isinstance(part, Bind):
                facts = bind(self.known, part.var, part.value, facts)
            elif isinstance(part, AssertStmt):
                facts = self.known.assume(part.condition, facts, exact=part.kind == "BoundsError")
            elif isinstance(part, IfThenElse) and part.else_body is None and always_jumps(part.then_body):
                facts = self.known.assume(negated(part.condition), facts.after_write())
            elif not isinstance(part, (AllocBuffer, DeclBuffer)):
                facts = facts.after_write()
        return boxes

    def _store(self, stmt: BufferStore, boxes: Boxes, facts: Facts) -> Boxes:
        for part in (stmt.value, *stmt.indices, stmt.predicate):
            self.reads(part, boxes, facts)
        if stmt.buffer not in self.buffers or stmt.predicate is not None:
            return boxes
        box = self._box(stmt, facts)
        return boxes if box is None else self._with(boxes, stmt.buffer, box)

    def _with(self, boxes: Boxes, buffer: Buffer, box: Box) -> Boxes:
        """The boxes with one more, and with what it makes together with those beside it."""
        return {**boxes, buffer: _with_box(boxes.get(buffer, ()), box)}

    def _for(self, stmt: For, boxes: Boxes, facts: Facts) -> Boxes:
        for part in (stmt.start, stmt.extent, stmt.step):
            self.reads(part, boxes, facts)
        start, extent = self.known.dim(stmt.start, facts), self.known.dim(stmt.extent, facts)
        inside = self.known.range(stmt.loop_var, start, extent, facts).after_write()
        self.loops.append(stmt)
        first, whole = len(self.waiting), stmt.step in (None, 1) and not _has_jumps(stmt.body)
        after = self.statement(stmt.body, boxes, inside)
        if whole and len(self.waiting) > first:
            done = self.known.values[stmt.loop_var] - start
            earlier = self._all_iterations(after, boxes, stmt.loop_var, (start, done), inside)
            self._look_back(stmt, first, earlier, boxes)
        self.loops.pop()
        return self._all_iterations(after, boxes, stmt.loop_var, (start, extent), facts) if whole else boxes

    def _look_back(self, loop: For, first: int, earlier: Boxes, boxes: Boxes) -> None:
        """Prove what waits in a loop by what its earlier iterations wrote, besides what was written before it."""
        waiting = self.waiting[first:]
        del self.waiting[first:]
        for read in waiting:
            known: tuple[Box, ...] = read.boxes
            if loop not in self.allocated_in[read.buffer]:
                for box in earlier.get(read.buffer, ()):
                    if box not in boxes.get(read.buffer, ()):
                        known = _with_box(known, box)
            self._wait(replace(read, boxes=known), [box for box in known if box not in read.boxes])

    def _all_iterations(
        self, after: Boxes, boxes: Boxes, var: PrimVar, iterations: tuple[Dim, Dim], facts: Facts
    ) -> Boxes:
        """What iterations from a start on, in some number, write of what each writes."""
        changed = compress(after, map(is_not, after.values(), map(boxes.get, after)))
        for buffer in list(changed):  # a kernel has many buffers, of which a loop writes few
            for box in after[buffer]:
                if box not in boxes.get(buffer, ()):
                    lifted = self._lifted(box, var, *iterations, facts)
                    boxes = boxes if lifted is None else self._with(boxes, buffer, lifted)
        return boxes

    def _lifted(self, box: Box, var: PrimVar, start: Dim, extent: Dim, facts: Facts) -> Box | None:
        """What all iterations of a loop write together, where each writes a box."""
        known = self.known
        moving = [axis for axis, span in enumerate(box) if any(var in known.variables(dim) for dim in span)]
        if not moving:
            return box if known.proves(extent - 1, facts) else None
        if len(moving) > 1:
            return self._digits(box, moving, var, start, extent, facts)
        low, high = box[moving[0]]
        try:
            step = known.replaced(low, var, known.values[var] + 1) - low
            if known.replaced(high, var, known.values[var] + 1) - high != step or var in known.variables(step):
                return None
            first, last = (known.replaced(dim, var, start) for dim in (low, high))
            if var in known.variables(first) or var in known.variables(last):
                return None
            reach = step * (extent - 1)
            width = high - low + 1
            if width not in (step, -step) and not known.proves(extent - 1, facts):
                return None  # a loop that does not run would leave what its steps overlap in
            if known.proves(step, facts) and known.proves(width - step, facts):
                span = (first, last + reach)
            elif known.proves(-step, facts) and known.proves(width + step, facts):
                span = (first + reach, last)
            else:
                return None
        except ShapeError:  # over the limits of dimensions
            return None
        return (*box[: moving[0]], span, *box[moving[0] + 1 :])

    def _digits(self, box: Box, moving: list[int], var: PrimVar, start: Dim, extent: Dim, facts: Facts) -> Box | None:
        """The box of v // c and v % c, which takes all pairs of values where the extent is a multiple of c."""
        spans = [box[axis] for axis in moving]
        if len(moving) != 2 or start != 0 or any(low != high for low, high in spans):
            return None
        (kind, high), (other, low) = (operation(span[0]) for span in spans)
        value = self.known.values[var]
        if (kind, other) != ("floordiv", "mod") or tuple(high) != tuple(low) or high[0] != value:
            return None
        by = high[1]
        if not isinstance(by, int) or not isinstance(extent, int) or extent % by:
            return None
        new = list(box)
        new[moving[0]], new[moving[1]] = (0, extent // by - 1), (0, by - 1)
        return tuple(new)

    def _if(self, stmt: IfThenElse, boxes: Boxes, facts: Facts) -> Boxes:
        self.reads(stmt.condition, boxes, facts)
        taken = self.statement(stmt.then_body, boxes, self.known.assume(stmt.condition, facts))
        inside = self.known.assume(negated(stmt.condition), facts)
        other = boxes if stmt.else_body is None else self.statement(stmt.else_body, boxes, inside)
        if always_jumps(stmt.then_body):
            return other
        if stmt.else_body is not None and always_jumps(stmt.else_body):
            return taken
        if self.known.holds(stmt.condition, facts):
            return taken
        both = {buffer: tuple(box for box in found if box in other.get(buffer, ())) for buffer, found in taken.items()}
        for buffer, found in taken.items():
            for box in found:
                if box not in both[buffer] and (
                    self._is_beyond(buffer, box, inside) or self._was_first(stmt.condition, buffer, box, facts)
                ):
                    both = dict(self._with(both, buffer, box))
        return both

    def _is_beyond(self, buffer: Buffer, box: Box, facts: Facts) -> bool:
        """Whether a box has no element of the buffer where the facts hold: nothing has to be written there."""
        try:
            sizes = [self.known.dim(extent, facts) for extent in buffer.shape]
            return any(self.known.proves(low - size, facts) for (low, _), size in zip(box, sizes, strict=True))
        except ShapeError:  # over the limits of dimensions
            return False

    def _was_first(self, condition: PrimExpr, buffer: Buffer, box: Box, facts: Facts) -> bool:
        """Whether a branch runs in the first iteration of the loops that its condition is about, over the same box."""
        used = {part for part in walk(self.known.closed(condition)) if isinstance(part, PrimVar)}
        loops = [loop for loop in self.loops if loop.loop_var in used]
        own = {variable for span in box for dim in span for variable in self.known.variables(dim)}
        if any(loop.loop_var in own or loop in self.allocated_in.get(buffer, ()) for loop in loops):
            return False
        try:
            for loop in loops:
                start = self.known.dim(loop.start, facts)
                facts = self.known.assume(_equals(loop.loop_var, start), facts) if isinstance(start, int) else facts
        except ShapeError:
            return False
        return self.known.holds(condition, facts)

    def _box(self, access: BufferLoad | BufferStore, facts: Facts) -> Box | None:
        """The box of an access; None for lanes that are not beside one another."""
        spans: list[Span] = []
        for index in access.indices:
            reach: Dim = 0
            if isinstance(index, Ramp):
                if isinstance(index.lanes, dtypes.Scalable) or not _is_one(index.stride):
                    return None
                index, reach = index.base, index.lanes - 1
            elif isinstance(index, Broadcast):
                index = index.value
            if dtypes.lanes(index.dtype) != 1:
                return None
            low = self.known.dim(index, facts)
            if self.known.is_volatile(low) and isinstance(access, BufferStore):
                return None
            spans.append((low, low + reach))
        return tuple(spans)

    def _covers(self, box: Box, inner: Box, facts: Facts) -> bool:
        try:
            return all(
                self.known.proves(low - first, facts) and self.known.proves(last - high, facts)
                for (first, last), (low, high) in zip(box, inner, strict=True)
            )
        except ShapeError:  # over the limits of dimensions
            return False


class _Reached(Exception):
    """The loop that is looked at has been."""


class _FlowOfIteration(_Flow):
    """Goes through a kernel as far as a loop, for the facts, and through its body with nothing written so far."""

    def __init__(self, function: PrimFunc, buffers: Set[Buffer], loop: For) -> None:
        super().__init__(function, buffers)
        self.loop = loop

    def _for(self, stmt: For, boxes: Boxes, facts: Facts) -> Boxes:
        if stmt is not self.loop:
            return super()._for(stmt, boxes, facts)
        start, extent = self.known.dim(stmt.start, facts), self.known.dim(stmt.extent, facts)
        inside = self.known.range(stmt.loop_var, start, extent, facts).after_write()
        self.unproved, self.waiting, self.loops = set(), [], []
        self.statement(stmt.body, {}, inside)
        raise _Reached


def _has_jumps(body: Stmt) -> bool:
    return any(isinstance(part, (Break, Continue, Return)) for part in statements(body))


def _is_one(stride: PrimExpr | int) -> bool:
    return (stride if isinstance(stride, int) else getattr(stride, "value", 0)) == 1


def _equals(variable: PrimVar, value: int) -> PrimExpr:
    return Binary("eq", variable, variable - variable + value)


def _with_box(known: tuple[Box, ...], box: Box) -> tuple[Box, ...]:
    """The boxes of a buffer with one more, and with what it makes together with those beside it."""
    joined = [whole for other in known if (whole := _joined(other, box) or _joined(box, other)) is not None]
    return tuple(dict.fromkeys((*known, box, *joined)))[-_MAX_BOXES:]


def _joined(first: Box, second: Box) -> Box | None:
    """Two boxes as one where the second follows on the first along one axis."""
    axes = [axis for axis, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    if len(axes) != 1:
        return None
    (low, end), (begin, high) = first[axes[0]], second[axes[0]]
    if end + 1 != begin:
        return None
    return (*first[: axes[0]], (low, high), *first[axes[0] + 1 :])


def is_plainly_written(body: Stmt, buffer: Buffer) -> bool:
    """Whether a kernel has the plainest form of a store of every element: loops over a whole buffer, no condition.

    A quick look, which spares the analysis in most cases; False says nothing.
    """
    return not _has_jumps(body) and _stores_all(body, buffer, {})


def _stores_all(stmt: Stmt, buffer: Buffer, ranges: Mapping[PrimVar, Any]) -> bool:
    """`ranges` are the variables of the loops around, or what blocks call them, with their extents."""
    if isinstance(stmt, SeqStmt):
        return any(_stores_all(part, buffer, ranges) for part in stmt.stmts)
    if isinstance(stmt, For):
        whole = stmt.start == 0 and stmt.step in (None, 1)
        return whole and _stores_all(stmt.body, buffer, {**ranges, stmt.loop_var: stmt.extent})
    if isinstance(stmt, Block):
        return stmt.predicate is None and _block_stores_all(stmt, buffer, ranges)
    if not isinstance(stmt, BufferStore) or stmt.buffer is not buffer or stmt.predicate is not None:
        return False
    others = [extent for variable, extent in ranges.items() if variable not in stmt.indices]
    if len(set(stmt.indices)) != buffer.ndim or not all(isinstance(extent, int) and extent > 0 for extent in others):
        return False
    return all(_same(ranges.get(index), size) for index, size in zip(stmt.indices, buffer.shape, strict=True))  # type: ignore[arg-type]


def _block_stores_all(block: Block, buffer: Buffer, ranges: Mapping[PrimVar, Any]) -> bool:
    """An init stores what it does even where the loops of the reduction are empty."""
    bound = [item for item in block.iter_vars if item.start == 0 and _same(ranges.get(item.value), item.extent)]  # type: ignore[arg-type]
    if len({item.value for item in bound}) != len(block.iter_vars):
        return False
    if block.init is not None:
        kept = {item.var: item.extent for item in bound if item.kind not in ("reduce", "scan")}
        if _stores_all(block.init, buffer, kept):
            return True
    named = {item.value for item in bound}
    free = {variable: extent for variable, extent in ranges.items() if variable not in named}
    return _stores_all(block.body, buffer, {**free, **{item.var: item.extent for item in bound}})


def _same(extent: Any, size: Any) -> bool:
    return extent is size or (isinstance(extent, int) and extent == size)
