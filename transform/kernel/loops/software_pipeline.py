"""A loop that works on several iterations at once: its body in stages, each of them an iteration behind.

    for i in range(n): load(i); compute(i)      load(0)
                                          ->    for i in range(n - 1): load(i + 1); compute(i)
                                                compute(n - 1)

    pipelined(function, loop, stages, order)

Step t of the pipeline runs part k of iteration t - stages[k], the parts of one step in the order that `order` gives. A
buffer that an iteration allocates gets as many versions as iterations are under way between its first and its last
use. What the loop computes stays: parts that touch the same elements keep their order, which is proved, or the request
is refused (PassError W591). A loop that may be shorter than the pipeline is asked for its length first.

Source: Lam, Software pipelining, 1988 (modulo scheduling and modulo variable expansion).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.errors import PassError
from weft.ir import replace, rewrite, substitute, walk
from weft.ir.attrs import PIPELINE_ASYNC, PIPELINE_ORDER, PIPELINE_STAGE
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.node import Node
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.analysis.loops.dependence import (
    Touch,
    barrier,
    conflict_at_distance,
    outer_accesses,
    without_bindings,
)
from weft.transform.analysis.loops.points import Point
from weft.transform.kernel.own_names import with_own_names
from weft.transform.schedule.tree import Tree, sequence, statements_of

__all__ = ["body_of", "of_parts", "parts_of", "pipelined"]


@dataclass(frozen=True)
class Part:
    """A statement of the body, when it runs, and what it touches; None: what it does is not known."""

    stmt: Stmt
    stage: int
    order: int
    touches: tuple[Touch, ...] | None

    @property
    def time(self) -> tuple[int, int]:
        """When it runs, counted from the start of its iteration."""
        return self.stage, self.order


def pipelined(function: PrimFunc, loop: For, stages: Sequence[int], order: Sequence[int]) -> PrimFunc:
    """The function with a loop of it as a pipeline.

    PassError W590 when the loop cannot be one, or the numbers are not those of its parts; W591 when it would compute
    something else.
    """
    buffers, statements = parts_of(loop)
    _require_numbers(loop, statements, stages, order)
    point = Point.inside(Tree("", function), loop)
    touches = [_touches(stmt, point) for stmt in statements]
    parts = tuple(Part(*each) for each in zip(statements, stages, order, touches, strict=True))
    pipeline = _Pipeline(function, loop, buffers, parts, point)
    new = pipeline.statement()
    return rewrite(function, pre=lambda node: new if node is loop else None)


def parts_of(loop: For) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
    """The buffers that each iteration of a loop allocates, and the statements that are its parts.

    PassError W590 where the body is no sequence of statements, each of its own.
    """
    if loop.kind != "serial" or loop.step not in (None, 1):
        raise _refused(loop, "it is no serial loop that counts in ones")
    buffers, parts = body_of(loop)
    for part in parts:
        if isinstance(part, (Bind, DeclBuffer)):
            raise _refused(loop, "a part of its body binds what later parts use", part)
    return buffers, parts


def body_of(loop: For) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
    """The buffers that each iteration of a loop allocates, and the statements of its body."""
    body: Stmt = loop.body
    buffers: list[Buffer] = []
    while isinstance(body, Block) and _is_wrapper(body):
        buffers += body.alloc_buffers
        body = body.body
    statements = statements_of(body)
    buffers += (stmt.buffer for stmt in statements if isinstance(stmt, AllocBuffer))
    return tuple(buffers), tuple(stmt for stmt in statements if not isinstance(stmt, AllocBuffer))


def of_parts(loop: For, stages: Sequence[int], order: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Stages and order of the parts alone, where those given are of allocations too, as texts for TVM count them."""
    statements = statements_of(loop.body)
    if not len(stages) == len(order) == len(statements):
        return stages, order
    kept = [place for place, stmt in enumerate(statements) if not isinstance(stmt, AllocBuffer)]
    places = sorted(order[place] for place in kept)
    return [stages[place] for place in kept], [places.index(order[place]) for place in kept]


def _is_wrapper(block: Block) -> bool:
    """Whether a block only holds statements and memory."""
    plain = not block.iter_vars and block.predicate is None and block.init is None and not block.match_buffers
    return plain and not block.annotations and (bool(block.alloc_buffers) or isinstance(block.body, SeqStmt))


def _require_numbers(loop: For, statements: Sequence[Stmt], stages: Sequence[int], order: Sequence[int]) -> None:
    count = len(statements)
    if len(stages) != count or len(order) != count:
        raise _refused(loop, f"it has {count} parts, and {len(stages)} stages and {len(order)} places in the order")
    if sorted(order) != list(range(count)):
        raise _refused(loop, f"{list(order)} does not give its {count} parts each a place from 0 to {count - 1}")
    if min(stages, default=0) != 0:
        raise _refused(loop, f"its stages {list(stages)} do not start at 0")


def _touches(stmt: Stmt, point: Point) -> tuple[Touch, ...] | None:
    """What a part touches: what its code does, or, where that is not known, what its block states."""
    bounds = point.bounds()
    if barrier(stmt) is None:
        return tuple(outer_accesses(without_bindings(stmt), bounds))
    if not isinstance(stmt, Block) or stmt.iter_vars or stmt.reads is None or stmt.writes is None:
        return None
    found: list[Touch] = []
    for regions, writes in ((stmt.reads, False), (stmt.writes, True)):
        for region in regions:
            spans = tuple(bounds.of_range(part) for part in region.region)
            found.append(Touch(region.buffer, writes, not writes, spans, region, bounds))
    return tuple(found)


@dataclass(frozen=True)
class _Pipeline:
    function: PrimFunc
    loop: For
    buffers: tuple[Buffer, ...]
    parts: tuple[Part, ...]
    point: Point

    @cached_property
    def depth(self) -> int:
        """How many iterations an iteration may be behind."""
        return max((part.stage for part in self.parts), default=0)

    @cached_property
    def sequence(self) -> list[Part]:
        """The parts in the order in which a step runs them."""
        return sorted(self.parts, key=lambda part: part.order)

    def statement(self) -> Stmt:
        """The pipeline in the place of the loop."""
        self._require_order()
        versions = self._versions()
        loop = replace(self.loop, annotations=self.loop.annotations.without(*_KEYS))
        extent = self.loop.extent
        body = sequence((*map(AllocBuffer, self._memory(versions)), *self._steps(versions)))
        size = self.point.dim(extent)
        if self.depth == 0 or (size is not None and self.point.at_most(self.depth, size)) or isinstance(extent, int):
            return body
        assert isinstance(extent, PrimExpr)
        long = binary("ge", extent, const(self.depth, extent.dtype))
        return IfThenElse(long, body, with_own_names(loop, self.function))

    def _memory(self, versions: dict[Buffer, tuple[Buffer, int]]) -> list[Buffer]:
        return [versions[buffer][0] if buffer in versions else buffer for buffer in self.buffers]

    # What has to keep its order --------------------------------------------------------------------------------------

    def _require_order(self) -> None:
        for position, first in enumerate(self.parts):
            for second in self.parts[position + 1 :]:
                if first.time > second.time:
                    self._require_apart(first, second, 0)
        outside = [self._outside(part) for part in self.parts]
        for first in outside:
            for second in outside:
                behind = first.stage - second.stage + (first.order > second.order)
                for distance in range(1, behind):
                    self._require_apart(first, second, distance)

    def _outside(self, part: Part) -> Part:
        """A part without what it does to the memory of its own iteration, which others have versions of."""
        if part.touches is None:
            return part
        return Part(part.stmt, *part.time, tuple(t for t in part.touches if t.buffer not in self.buffers))

    def _require_apart(self, earlier: Part, later: Part, distance: int) -> None:
        """Refuse what runs a part of an iteration before what it should come after, unless they share nothing."""
        if earlier.touches is None or later.touches is None:
            which = earlier if earlier.touches is None else later
            hint = "a block around it with T.reads and T.writes says what it touches"
            raise _changes(self.loop, "a part does something whose order cannot be changed", which.stmt, hint)
        buffer = conflict_at_distance(earlier.touches, later.touches, self.point, self.loop, distance)
        if buffer is not None:
            iteration = "the same iteration" if not distance else f"the iteration {distance} before"
            why = f"a part would run before one of {iteration} that touches the same elements of {buffer.name!r}"
            hint = None
            if buffer not in (*self.function.params, *self.buffers):
                hint = (
                    f"{buffer.name!r} is allocated outside of the loop; inside of it (which"
                    " plan-and-update-buffer-allocation-location does) each iteration has its own"
                )
            raise _changes(self.loop, why, later.stmt, hint)

    # Memory ----------------------------------------------------------------------------------------------------------

    def _versions(self) -> dict[Buffer, tuple[Buffer, int]]:
        """The buffers that need several versions, each with what takes its place and their number."""
        found: dict[Buffer, tuple[Buffer, int]] = {}
        for buffer in self.buffers:
            count = self._count(buffer)
            if count == 1:
                continue
            if buffer.strides is not None or buffer.elem_offset is not None or buffer.data is not None:
                raise _refused(self.loop, f"{buffer.name!r} needs {count} versions, and says how it lies in memory")
            separators = tuple(axis + 1 for axis in buffer.axis_separators)
            whole = replace(buffer, shape=(count, *buffer.shape), axis_separators=separators)
            found[buffer] = whole, count
        return found

    def _count(self, buffer: Buffer) -> int:
        """How many iterations use a buffer at once: a version is free after its last use."""
        users = [(part, *_use(part, buffer)) for part in self.parts]
        users = [user for user in users if user[1] or user[2]]
        under_way = (
            last.stage - first.stage + (last.order >= first.order)
            for last, _, writes in users
            for first, _, overwrites in users
            if writes or overwrites
        )
        return max(1, *under_way)

    # Steps -----------------------------------------------------------------------------------------------------------

    def _steps(self, versions: dict[Buffer, tuple[Buffer, int]]) -> Iterator[Stmt]:
        loop, depth = self.loop, self.depth
        dtype = loop.loop_var.dtype
        extent = as_expr(loop.extent, dtype)

        def run(part: Part, number: PrimExpr) -> Stmt:
            stmt = _in_versions(part.stmt, versions, number, loop)
            value = binary("add", as_expr(loop.start, dtype), number)
            return with_own_names(substitute(stmt, {loop.loop_var: value}), self.function)

        if isinstance(loop.extent, int) and loop.extent < depth:
            for step in range(loop.extent + depth):
                for part in self.sequence:
                    if 0 <= step - part.stage < loop.extent:
                        yield run(part, const(step - part.stage, dtype))
            return
        for step in range(depth):
            yield from (run(part, const(step - part.stage, dtype)) for part in self.sequence if part.stage <= step)
        variable = PrimVar(loop.loop_var.name, dtype)
        steady = [run(part, binary("add", variable, const(depth - part.stage, dtype))) for part in self.sequence]
        yield replace(
            loop,
            loop_var=variable,
            start=0,
            extent=loop.extent - depth if isinstance(loop.extent, int) else binary("sub", extent, const(depth, dtype)),
            body=sequence(steady),
            annotations=loop.annotations.without(*_KEYS),
        )
        for step in range(depth):
            left = [part for part in self.sequence if part.stage > step]
            yield from (run(part, binary("add", extent, const(step - part.stage, dtype))) for part in left)


_KEYS = (PIPELINE_STAGE, PIPELINE_ORDER, PIPELINE_ASYNC)


def _use(part: Part, buffer: Buffer) -> tuple[bool, bool]:
    """Whether a part reads a buffer, and whether it writes it."""
    if part.touches is None:
        used = any(node is buffer or getattr(node, "buffer", None) is buffer for node in walk(part.stmt))
        return used, used
    touches = [touch for touch in part.touches if touch.buffer is buffer]
    return any(touch.reads for touch in touches), any(touch.writes for touch in touches)


def _in_versions(stmt: Stmt, versions: dict[Buffer, tuple[Buffer, int]], number: PrimExpr, loop: For) -> Stmt:
    """A part with the versions of buffers that an iteration uses."""
    if not versions:
        return stmt

    def version(count: int) -> PrimExpr:
        return binary("floormod", number, const(count, number.dtype))

    def post(node: Node) -> Node | None:
        if isinstance(node, PrimCall) and any(arg in versions for arg in node.args if isinstance(arg, Buffer)):
            raise _refused(loop, "a buffer that needs several versions is handed to a function as a whole", stmt)
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in versions:
            whole, count = versions[node.buffer]
            return replace(node, buffer=whole, indices=(version(count), *node.indices))
        if isinstance(node, BufferRegion) and node.buffer in versions:
            whole, count = versions[node.buffer]
            return replace(node, buffer=whole, region=(Range(version(count), 1), *node.region))
        return None

    return rewrite(stmt, post)


def _refused(loop: For, why: str, at: Stmt | None = None) -> PassError:
    span = loop.span if at is None else at.span or loop.span
    return PassError(f"the loop {loop.loop_var.name!r} cannot be a pipeline: {why}", code="W590", span=span)


def _changes(loop: For, why: str, at: Stmt, hint: str | None = None) -> PassError:
    message = f"as a pipeline the loop {loop.loop_var.name!r} would compute something else: {why}"
    return PassError(message, code="W591", span=at.span or loop.span, hint=hint)
