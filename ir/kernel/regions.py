"""Which parts of buffers a piece of code touches: boxes, derived from the code.

    block_accesses(block)      (reads, writes) as BufferRegions over the block's variables and what is visible outside
    stated_accesses(block)     those that it states and that are not as derived
    accesses(stmt, ranges)     every access below a statement with the interval of each index
    Interval                   inclusive bounds of an index as dimensions; `exact` when both are reached

Inner loop variables and the variables of inner blocks run over their ranges; what cannot be bounded counts as the whole
dimension of the buffer. A region is never too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, cast

from weft.dtypes import Scalable
from weft.errors import ShapeError
from weft.ir.dim import Dim, floordiv, floormod, maximum, minimum, prove_le, prove_nonnegative, symbol, symbol_name
from weft.ir.kernel.layered_map import LayeredMap
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.node import Node, fields_of
from weft.ir.structure.visit import children
from weft.ir.tensor import (
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
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Range,
    Return,
    Select,
    SeqStmt,
    Stmt,
    Unary,
    While,
)
from weft.support.records import dataclass

__all__ = ["Access", "Bounds", "Interval", "accesses", "block_accesses", "stated_accesses"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Interval:
    """Inclusive bounds; `exact` says that both are reached whenever the code runs."""

    low: Dim
    high: Dim
    exact: bool = True


_FREE = Interval(0, 0)
"""Stands for the interval of a variable that has none of its own."""
_DEEPEST = 100
"""The most levels of an expression that has an interval."""


class Bounds:
    """Intervals of index expressions, given those of some variables; others stand for themselves.

    >>> i = PrimVar("i")
    >>> Bounds().with_range(i, 0, 4).of(i * 2 + 1)
    Interval(low=1, high=7, exact=True)
    """

    def __init__(
        self,
        names: dict[PrimVar, str] | None = None,
        ranges: Mapping[PrimVar, Interval | None] | None = None,
        roots: Mapping[PrimVar, frozenset[PrimVar]] | None = None,
    ) -> None:
        self.names = {} if names is None else names
        self.ranges = _layered(ranges)
        self.roots = _layered(roots)  # what variables that stand for an expression vary with

    def with_range(self, variable: PrimVar, start: Extent, extent: Extent) -> Bounds:
        """These bounds with a variable that runs over [start, start + extent)."""
        first, count = self.of(start), self.of(extent)
        interval = None
        if first is not None and count is not None:
            exact = first.exact and count.exact and first.low == first.high
            interval = Interval(first.low, first.high + count.high - 1, exact)
        bounds = self.with_interval(variable, interval)
        if interval is None:
            return bounds
        others = {x for part in (start, extent) if isinstance(part, PrimExpr) for x in self._varies(part)}
        if not others:
            return bounds
        # How far it runs varies with them, so that it need not reach its bound where they reach theirs.
        known = self.roots.with_item(variable, frozenset((variable, *others)))
        return Bounds(self.names, bounds.ranges, known)

    def with_interval(self, variable: PrimVar, interval: Interval | None) -> Bounds:
        """These bounds with the interval of a variable; None: nothing is known of it."""
        return Bounds(self.names, self.ranges.with_item(variable, interval), self.roots)

    def with_value(self, variable: PrimVar, value: PrimExpr) -> Bounds:
        """These bounds with a variable that stands for an expression: it varies with the variables of that."""
        interval = self.of(value)
        if interval is None:
            return self.with_interval(variable, None)
        known = self.roots.with_item(variable, frozenset(self._varies(value)))
        return Bounds(self.names, self.ranges.with_item(variable, interval), known)

    def of_range(self, part: Range) -> Interval | None:
        """The interval of the indices of a range; None where its ends have no bounds."""
        start, extent = self.of(part.start), self.of(part.extent)
        if start is None or extent is None:
            return None
        return Interval(start.low, start.high + extent.high - 1, False)

    def name(self, variable: PrimVar) -> str:
        """The symbol that stands for a variable in dimensions: its name, made unique."""
        if variable not in self.names:
            base = symbol_name(variable.name, "v")
            used, count, name = set(self.names.values()), 1, base
            while name in used:
                name, count = f"{base}_{count}", count + 1
            self.names[variable] = name
        return self.names[variable]

    def extent(self, value: Dim) -> Extent:
        """A dimension back as an expression over the variables."""
        return dim_to_prim(value, {name: variable for variable, name in self.names.items()})

    def of(self, expr: Extent, room: int = _DEEPEST) -> Interval | None:
        """The interval of an expression, or None where it has no bounds that dimensions can say.

        Nor has one that nests deeper than `room`: dimensions of that many steps say nothing to anyone.
        """
        if not room:
            return None
        if isinstance(expr, int):
            return Interval(expr, expr)
        if isinstance(expr, IntImm):
            return Interval(expr.value, expr.value)
        if isinstance(expr, PrimVar):
            known = self.ranges.get(expr, _FREE)
            if known is not _FREE:
                return known
            value = symbol(self.name(expr))
            return Interval(value, value)
        if isinstance(expr, (Cast, Broadcast)):
            return self.of(expr.value, room - 1)
        if isinstance(expr, Unary) and expr.kind == "neg":
            inner = self.of(expr.a, room - 1)
            return None if inner is None else Interval(-inner.high, -inner.low, inner.exact)
        if isinstance(expr, Ramp):
            return self._ramp(expr, room - 1)
        if isinstance(expr, Binary):
            try:
                return self._binary(expr, room - 1)
            except ShapeError:  # a division by zero, or over 64 bits: no dimension
                return None
        return None

    def _ramp(self, expr: Ramp, room: int) -> Interval | None:
        base, stride = self.of(expr.base, room), self.of(expr.stride, room)
        if base is None or stride is None or not isinstance(stride.low, int) or stride.low != stride.high:
            return None
        if isinstance(expr.lanes, Scalable):  # how far it reaches is known to the machine alone
            return None
        reach = stride.low * (expr.lanes - 1)
        return Interval(base.low + min(reach, 0), base.high + max(reach, 0), base.exact)

    def _binary(self, expr: Binary, room: int) -> Interval | None:
        a = self.of(expr.a, room)
        b = None if a is None else self.of(expr.b, room)
        if a is None or b is None:
            return None
        # Two operands that vary together reach their extremes apart: the bounds hold but are not exact.
        exact = a.exact and b.exact and not (self._varies(expr.a) & self._varies(expr.b))
        kind = expr.kind
        if kind == "add":
            return Interval(a.low + b.low, a.high + b.high, exact)
        if kind == "sub":
            return Interval(a.low - b.high, a.high - b.low, exact)
        if kind == "mul":
            return _multiply(a, b, exact) or _multiply(b, a, exact)
        if kind in ("min", "max"):
            choose = minimum if kind == "min" else maximum
            return Interval(choose(a.low, b.low), choose(a.high, b.high), exact)
        if kind == "floordiv" and isinstance(b.low, int) and b.low == b.high and b.low > 0:
            return Interval(floordiv(a.low, b.low), floordiv(a.high, b.low), exact)
        if kind == "floormod" and isinstance(b.low, int) and b.low == b.high and b.low > 0:
            return _remainder(a, b.low)
        if kind in ("floordiv", "floormod") and a.low == a.high and b.low == b.high:
            value = (floordiv if kind == "floordiv" else floormod)(a.low, b.low)
            return Interval(value, value, exact)
        return None

    def _varies(self, expr: PrimExpr) -> set[PrimVar]:
        found: set[PrimVar] = set()
        stack: list[Node] = [expr]
        while stack:
            current = stack.pop()
            if isinstance(current, PrimVar):
                if current in self.ranges:
                    found.update(self.roots.get(current, (current,)))
            elif not isinstance(current, Buffer):
                stack.extend(children(current, types=False))
        return found


def _layered(items: Mapping[K, V] | None) -> LayeredMap[K, V]:
    return items if isinstance(items, LayeredMap) else LayeredMap(items)


def _multiply(a: Interval, b: Interval, exact: bool) -> Interval | None:
    """a * b where b is one value of known sign."""
    if not (b.low == b.high or b.low == b.high):
        return None
    if prove_nonnegative(b.low):
        return Interval(a.low * b.low, a.high * b.low, exact)
    if isinstance(b.low, int):
        return Interval(a.high * b.low, a.low * b.low, exact)
    return None


def _remainder(a: Interval, divisor: int) -> Interval:
    if a.low == a.high:
        value = floormod(a.low, divisor)
        return Interval(value, value, a.exact)
    if isinstance(a.low, int) and isinstance(a.high, int) and a.low // divisor == a.high // divisor:
        return Interval(a.low % divisor, a.high % divisor, a.exact)
    return Interval(0, divisor - 1, False)


# Accesses -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Access:
    """One access: the intervals of its indices (None: unknown), and whether it happens whenever the code runs."""

    buffer: Buffer
    kind: str
    intervals: tuple[Interval | None, ...]
    certain: bool
    node: Node
    bounds: Bounds


def accesses(root: Node, bounds: Bounds | None = None, *, certain: bool = True) -> Iterator[Access]:
    """Every read and write below a statement or expression (`kind` read, write or opaque), in no particular order.

    A block inside stands for what its body does, with its variables over the intervals of their bindings. Accesses
    under a condition are not `certain`.
    """
    stack: list[tuple[Node, Bounds, bool]] = [(root, bounds or Bounds(), certain)]
    while stack:
        current, inside, sure = stack.pop()
        if isinstance(current, BufferStore):
            active = sure and current.predicate is None
            yield Access(
                current.buffer, "write", tuple(inside.of(index) for index in current.indices), active, current, inside
            )
            stack.extend((child, inside, sure) for child in (current.value, *current.indices))
        elif isinstance(current, BufferLoad):
            active = sure and current.predicate is None
            yield Access(
                current.buffer, "read", tuple(inside.of(index) for index in current.indices), active, current, inside
            )
            stack.extend((child, inside, sure) for child in current.indices)
        elif isinstance(current, PrimCall):
            yield from _call_accesses(current, inside, sure, stack)
        else:
            stack.extend(_inside(current, inside, sure))


def _call_accesses(
    node: PrimCall, bounds: Bounds, sure: bool, stack: list[tuple[Node, Bounds, bool]]
) -> Iterator[Access]:
    """A call: an address that is taken may be used for anything; a lazy choice is not certain to read."""
    if node.op == "if_then_else":
        stack.append((node.args[0], bounds, sure))
        stack.extend((arg, bounds, False) for arg in node.args[1:])
        return
    for arg in node.args:
        buffer = arg if isinstance(arg, Buffer) else None
        if node.op == "address_of" and isinstance(arg, BufferLoad):
            buffer = arg.buffer
            stack.extend((index, bounds, sure) for index in arg.indices)
        if buffer is not None:
            yield Access(buffer, "opaque", (None,) * buffer.ndim, False, node, bounds)
        elif not (node.op == "address_of" and isinstance(arg, BufferLoad)):
            stack.append((arg, bounds, sure))


def _inside(node: Node, bounds: Bounds, sure: bool) -> Iterator[tuple[Node, Bounds, bool]]:
    """The parts of a node with what is known inside them."""
    if isinstance(node, For):
        inner = bounds.with_range(node.loop_var, node.start, node.extent)
        if node.step is not None and node.step != 1:
            inner = _inexact(inner, node.loop_var)
        if _may_stop(node.body, of_loop=True):  # not all iterations need run
            inner = _inexact(inner, node.loop_var)
        runs = isinstance(node.extent, int) and node.extent > 0
        # A symbolic loop may be empty; for a reader of intervals that is the case in which nothing matters.
        yield node.body, inner, sure and (runs or not isinstance(node.extent, int))
        yield from ((part, bounds, sure) for part in (node.start, node.extent, node.step) if isinstance(part, PrimExpr))
    elif isinstance(node, Block):
        yield from _block_parts(node, bounds, sure)
    elif isinstance(node, (Let, Bind)):
        yield node.value, bounds, sure
        if isinstance(node, Let):
            yield node.body, bounds.with_value(node.var, node.value), sure
    elif isinstance(node, SeqStmt):
        for step in node.stmts:
            yield step, bounds, sure
            if isinstance(step, Bind):
                bounds = bounds.with_value(step.var, step.value)
            sure = sure and not _may_stop(step)
    elif isinstance(node, IfThenElse):
        yield node.condition, bounds, sure
        yield from ((part, bounds, False) for part in (node.then_body, node.else_body) if part is not None)
    elif isinstance(node, While):
        yield from ((part, bounds, False) for part in (node.condition, node.body))
    elif isinstance(node, Select):
        yield from ((part, bounds, sure) for part in (node.condition, node.true_value, node.false_value))
    elif isinstance(node, Binary) and node.kind in ("and", "or"):
        yield node.a, bounds, sure
        yield node.b, bounds, False
    elif isinstance(node, (AllocBuffer, DeclBuffer, Buffer)):
        return
    elif isinstance(node, AttrStmt):
        yield node.body, bounds, sure
    elif isinstance(node, (Stmt, PrimExpr, Evaluate)):
        yield from ((child, bounds, sure) for child in children(node, types=False))


def _inexact(bounds: Bounds, variable: PrimVar) -> Bounds:
    known = bounds.ranges[variable]
    return bounds.with_interval(variable, known and Interval(known.low, known.high, False))


def _may_stop(stmt: Stmt, *, of_loop: bool = False) -> bool:
    """Whether what follows a statement may not run: it asserts, assumes, jumps or returns.

    Of the body of a loop, whether later iterations may not run.
    """
    stack: list[tuple[Node, bool]] = [(stmt, False)]
    while stack:
        current, nested = stack.pop()
        if isinstance(current, (AssertStmt, Return)) or (isinstance(current, Evaluate) and _promises(current.value)):
            return True
        if isinstance(current, (Break, Continue)):
            if not nested and not (of_loop and isinstance(current, Continue)):
                return True
        elif isinstance(current, (SeqStmt, IfThenElse, For, While, Block, AttrStmt)):
            inner = nested or isinstance(current, (For, While))
            stack.extend((part, inner) for part in children(current, types=False) if isinstance(part, Stmt))
    return False


def _promises(value: object) -> bool:
    return isinstance(value, PrimCall) and value.op in ("assume", "thread_return")


def _block_parts(node: Block, bounds: Bounds, sure: bool) -> Iterator[tuple[Node, Bounds, bool]]:
    inner = bounds
    for variable in node.iter_vars:
        if variable.value is not None:
            yield variable.value, bounds, sure
            inner = inner.with_value(variable.var, variable.value)
        else:
            inner = inner.with_range(variable.var, variable.start, variable.extent)
    guarded = node.predicate is not None
    if node.predicate is not None:
        yield node.predicate, inner, sure
    if node.init is not None:
        yield node.init, inner, False
    yield node.body, inner, sure and not guarded


# Regions of a block -------------------------------------------------------------------------------------------------


def block_accesses(block: Block) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """(reads, writes) of a block, one region per buffer in the order of the code, over the block's own variables.

    Buffers that the block allocates are left out; a matched buffer counts as its whole source region. What a reduction
    reads of its own output is left out when it has an `init`.

    >>> x, y, v = Buffer("x", (8,)), Buffer("y", (4,)), PrimVar("v")
    >>> k = PrimVar("k")
    >>> body = For(k, 0, 2, BufferStore(y, BufferLoad(x, (v * 2 + k,)), (v,)))
    >>> reads, writes = block_accesses(Block("b", body))
    >>> [(r.buffer.name, r.region[0].extent) for r in (*reads, *writes)]
    [('x', 2), ('y', 1)]
    """
    reads, writes, bounds = _touched(block)
    return _regions(reads, bounds), _regions(writes, bounds)


Boxes = dict[Buffer, list[Interval | None]]


def stated_accesses(block: Block) -> tuple[tuple[BufferRegion, ...] | None, tuple[BufferRegion, ...] | None]:
    """The (reads, writes) that a block states and its body does not say: None for those that are as derived.

    What a block states says the same as its body where it has the same box of every buffer, in any order and spelling.

    >>> x, y, v = Buffer("x", (8,)), Buffer("y", (8,)), PrimVar("v")
    >>> body = BufferStore(y, BufferLoad(x, (v,)), (v,))
    >>> stated_accesses(Block("b", body, reads=(BufferRegion(x, (Range(v, 1),)),)))
    (None, None)
    """
    if not block.iter_vars and not block.reads and not block.writes:
        return None, None  # the outermost block of a text for TVM, which states nothing
    reads, writes, bounds = _touched(block)
    return _unsaid(block.reads, reads, bounds), _unsaid(block.writes, writes, bounds)


def _unsaid(stated: tuple[BufferRegion, ...] | None, said: Boxes, bounds: Bounds) -> tuple[BufferRegion, ...] | None:
    if stated is None:
        return None
    boxes: Boxes = {}
    for region in stated:
        _add(boxes, region.buffer, [bounds.of_range(part) for part in region.region])
    same = boxes.keys() == said.keys() and all(
        _ends(own, extent, bounds) == _ends(other, extent, bounds)
        for buffer in boxes
        for own, other, extent in zip(boxes[buffer], said[buffer], buffer.shape, strict=True)
    )
    return None if same else stated


def _ends(interval: Interval | None, extent: Extent, bounds: Bounds) -> tuple[Dim, Dim] | None:
    """The bounds of an index, those of its dimension where it has none."""
    whole = bounds.of(extent) if interval is None else None
    if whole is not None:
        interval = Interval(0, whole.high - 1)
    return None if interval is None else (interval.low, interval.high)


def _add(table: Boxes, buffer: Buffer, intervals: list[Interval | None]) -> None:
    """Widen the box of a buffer."""
    if buffer in table:
        intervals = [_union(a, b) for a, b in zip(table[buffer], intervals, strict=True)]
    table[buffer] = intervals


def _touched(block: Block) -> tuple[Boxes, Boxes, Bounds]:
    """The boxes that a block reads and writes."""
    bounds = Bounds()
    local = set(block.alloc_buffers) | _allocated(block)
    sources = {match.buffer: match.source for match in block.match_buffers}
    reads: Boxes = {}
    writes: Boxes = {}
    found = [*accesses(block.body, bounds)]
    if block.init is not None:
        found.extend(accesses(block.init, bounds))
    own = [access.node for access in found if isinstance(access.node, BufferStore)] if block.init is not None else []
    for access in reversed(found):
        buffer, intervals = access.buffer, list(access.intervals)
        if buffer in sources:
            source = sources[buffer]
            buffer, intervals = source.buffer, [bounds.of_range(part) for part in source.region]
        if buffer in local or (access.kind == "read" and _reads_own(access.node, own)):
            continue
        for kind, table in (("read", reads), ("write", writes)):
            if access.kind in (kind, "opaque"):
                _add(table, buffer, intervals)
    return reads, writes, bounds


def _allocated(block: Block) -> set[Buffer]:
    found: set[Buffer] = set()
    stack: list[Node] = [block.body]
    while stack:
        current = stack.pop()
        if isinstance(current, (AllocBuffer, DeclBuffer)):
            found.add(current.buffer)
        elif isinstance(current, Block):
            found.update(current.alloc_buffers)
            found.update(match.buffer for match in current.match_buffers)
        if isinstance(current, Stmt):
            stack.extend(child for child in children(current, types=False) if isinstance(child, Stmt))
    return found


def _reads_own(node: Node, stores: list[BufferStore]) -> bool:
    if not isinstance(node, BufferLoad):
        return False
    spelled = _spelled(node.indices)
    return any(store.buffer is node.buffer and _spelled(store.indices) == spelled for store in stores)


def _spelled(indices: tuple[PrimExpr, ...]) -> list[object]:
    """What tells indices over the same variables apart."""
    parts: list[object] = []
    stack: list[object] = [indices]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            inner = cast("tuple[object, ...]", current)
            parts.append(len(inner))
            stack.extend(inner)
        elif isinstance(current, Node) and not isinstance(current, (PrimVar, Buffer)):
            parts.append(type(current))
            stack.extend(getattr(current, info.name) for info in fields_of(type(current)) if info.role != "ignored")
        else:
            parts.append(current)
    return parts


def _union(a: Interval | None, b: Interval | None) -> Interval | None:
    if a is None or b is None:
        return None
    low = a.low if prove_le(a.low, b.low) else b.low if prove_le(b.low, a.low) else None
    high = a.high if prove_le(b.high, a.high) else b.high if prove_le(a.high, b.high) else None
    return None if low is None or high is None else Interval(low, high, a.exact and b.exact)


def _regions(table: Boxes, bounds: Bounds) -> tuple[BufferRegion, ...]:
    return tuple(
        BufferRegion(
            buffer,
            tuple(_range(interval, extent, bounds) for interval, extent in zip(intervals, buffer.shape, strict=True)),
        )
        for buffer, intervals in table.items()
    )


def _range(interval: Interval | None, extent: Extent, bounds: Bounds) -> Range:
    if interval is None:
        return Range(0, extent)
    return Range(bounds.extent(interval.low), bounds.extent(interval.high - interval.low + 1))
