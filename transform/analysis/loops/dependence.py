"""Which loops may be reordered or run in parallel, told from the accesses below them.

    independent(nest)   for each buffer written in a nest of loops: the loops of which different iterations never touch
                        one element of it, one of them writing
    conflict(nest, order)  what a new order of the loops would change, or None
    shared(nest)        what the iterations of the outermost loop share, or None

Loops are taken one after the other: iterations of one that agree on those already found independent must have accesses
that are apart, the loops left over their whole ranges. A sum (a block that updates one element by an operation that is
associative and commutative) may be computed in any order as long as its init comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from weft.dtypes import bits
from weft.ir import replace, rewrite, structural_equal, substitute, walk
from weft.ir.dim import Dim, Facts, as_dim, ceildiv, prove_lt, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import GlobalVar
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import cast
from weft.ir.kernel.regions import Bounds, Interval, accesses
from weft.ir.node import Node
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Block,
    Break,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.analysis.loops.affine import Bindings, Reader
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.tree import blocks_in, buffers_of, loads_in, stores_in

__all__ = [
    "Conflict",
    "Nest",
    "Touch",
    "Update",
    "barrier",
    "conflict",
    "conflict_at_distance",
    "has_index_of_its_own",
    "loop_carried_dependence",
    "outer_accesses",
    "private_buffers",
    "shared",
    "update_of",
]

ASSOCIATIVE = ("add", "mul", "min", "max", "and", "or", "bitwise_and", "bitwise_or", "bitwise_xor")


# Updates ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Update:
    """The body of a reduction: buffer[indices] = buffer[indices] `kind` value."""

    store: BufferStore
    kind: str
    value: PrimExpr
    left: bool  # whether the element stands on the left of the operation


def update_of(block: Block) -> Update | None:
    """The update that a block's body is, by an operation whose order does not matter; None for anything else."""
    return _update(block.body) if isinstance(block.body, BufferStore) else None


def _update(store: BufferStore) -> Update | None:
    if store.predicate is not None:
        return None
    total = store.value
    if not isinstance(total, Binary) or total.kind not in ASSOCIATIVE:
        return None
    for own, value, left in ((total.a, total.b, True), (total.b, total.a, False)):
        if not isinstance(own, BufferLoad) or own.buffer is not store.buffer or own.predicate is not None:
            continue
        same = own.indices == store.indices or structural_equal(own.indices, store.indices)
        if same and not loads_in(value, store.buffer) and not any(loads_in(i, store.buffer) for i in store.indices):
            return Update(store, total.kind, value, left)
    return None


# Accesses -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Touch:
    """An access to memory that outlives the statement: where, whether it writes, and what is it in the code."""

    buffer: Buffer
    writes: bool
    reads: bool
    intervals: tuple[Interval | None, ...]
    node: Node
    bounds: Bounds


def private_buffers(stmt: Stmt) -> set[Buffer]:
    """The buffers that a statement allocates itself."""
    found: set[Buffer] = set()
    for part in walk(stmt):
        if isinstance(part, AllocBuffer):
            found.add(part.buffer)
        elif isinstance(part, Block):
            found.update(part.alloc_buffers)
    return found


def _views(stmt: Stmt) -> dict[Buffer, BufferRegion | Buffer | None]:
    """Buffers that show other memory: the region they show, the buffer, or None when that is not known."""
    found: dict[Buffer, BufferRegion | Buffer | None] = {}
    for part in walk(stmt):
        if isinstance(part, Block):
            found.update((match.buffer, match.source) for match in part.match_buffers)
        elif isinstance(part, DeclBuffer) and part.buffer.data is not None:
            loads = loads_in(part.buffer.data)
            found[part.buffer] = loads[0].buffer if loads else None
    return found


def outer_accesses(stmt: Stmt, bounds: Bounds) -> list[Touch]:
    """The accesses of a statement to memory of others, views followed to what they show."""
    private, views = private_buffers(stmt), _views(stmt)
    found: list[Touch] = []
    for access in accesses(stmt, bounds):
        buffer, intervals = access.buffer, access.intervals
        while buffer in views:
            behind = views[buffer]
            if isinstance(behind, BufferRegion):
                buffer, intervals = behind.buffer, tuple(access.bounds.of_range(part) for part in behind.region)
            elif behind is not None:
                buffer, intervals = behind, (None,) * behind.ndim
            else:
                break
        if buffer not in private:
            writes, reads = access.kind != "read", access.kind != "write"
            found.append(Touch(buffer, writes, reads, intervals, access.node, access.bounds))
    return found


def barrier(stmt: Stmt) -> Node | None:
    """Something in a statement whose effects are not known, or that leaves loops."""
    for part in walk(stmt):
        if isinstance(part, (Break, Continue, Return)):
            return part
        if isinstance(part, PrimCall):
            entry = None if isinstance(part.op, GlobalVar) else INTRINSICS.get(str(part.op))
            if part.op not in ("address_of", "if_then_else", "likely") and (entry is None or not entry.pure):
                return part
    return None


# Nests --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nest:
    """Loops directly inside one another, and the body of the innermost; `point` is just outside of them."""

    loops: tuple[For, ...]
    body: Stmt
    point: Point

    @cached_property
    def plain(self) -> Stmt:
        """The body with the values of block variables in their places."""
        return without_bindings(self.body)

    def written(self) -> list[Buffer]:
        """The buffers that the body writes, those that it allocates itself left out."""
        found = outer_accesses(self.plain, self.point.relaxed(self.loops))
        return list(dict.fromkeys(touch.buffer for touch in found if touch.writes))

    def independent(self, buffer: Buffer) -> list[For]:
        """The loops of which different iterations never touch one element of a buffer, one of them writing."""
        found = _independent(self.loops, self.plain, self.point, buffer)
        left = [loop for loop in self.loops if loop not in found]
        if not left:
            return found
        parts, body = _in_digits(left, self.plain, self.point)
        if not parts:
            return found
        loops = [part for loop in self.loops for part in parts.get(loop, (loop,))]
        apart = _independent(loops, body, self.point, buffer)
        return [loop for loop in self.loops if all(part in apart for part in parts.get(loop, (loop,)))]


def _independent(loops: Sequence[For], body: Stmt, point: Point, buffer: Buffer) -> list[For]:
    found: list[For] = []
    left = list(loops)
    while True:
        loop = next((item for item in left if _apart(loops, body, point, buffer, item, found)), None)
        if loop is None:
            return found
        found.append(loop)
        left.remove(loop)


def _apart(loops: Sequence[For], body: Stmt, point: Point, buffer: Buffer, loop: For, fixed: Sequence[For]) -> bool:
    """Whether two iterations of a loop, those of `fixed` being the same, touch different elements."""
    if loop.step is not None and not isinstance(loop.step, int):
        return False
    inner = point.copy()
    bounds = inner.bounds()
    for item in loops:  # in order, so that ranges that depend on outer loops are known
        if item is loop or item in fixed:
            inner.enter(item)
            bounds = Bounds(inner.names, {**bounds.ranges, **dict.fromkeys(inner.unknown)})
        else:
            bounds = bounds.with_range(item.loop_var, item.start, item.extent)
    if loop.loop_var in inner.unknown:
        return False
    found = [touch for touch in outer_accesses(body, bounds) if touch.buffer is buffer]
    every = [*loops, *(part for part in walk(body) if isinstance(part, For))]
    return _disjoint(found, inner, inner.name(loop.loop_var), every)


def without_bindings(stmt: Stmt) -> Stmt:
    """The statement with the values of block variables in their places."""

    def post(node: Node) -> Node | None:
        if not isinstance(node, Block) or not node.iter_vars:
            return None
        values = {item.var: cast(item.var.dtype, item.value) for item in node.iter_vars if item.value is not None}
        init = None if node.init is None else substitute(node.init, values)
        body = substitute(node.body, values)
        matches = tuple(substitute(match, values) for match in node.match_buffers)
        left = tuple(item for item in node.iter_vars if item.var not in values)
        return replace(node, iter_vars=left, init=init, body=body, match_buffers=matches, reads=None, writes=None)

    return rewrite(stmt, post)


def _in_digits(loops: Sequence[For], body: Stmt, point: Point) -> tuple[dict[For, tuple[For, ...]], Stmt]:
    """Loops that a body uses only as f // c and f % c, as a loop over each of the two; and the body over those."""
    parts: dict[For, tuple[For, ...]] = {}
    for loop in loops:
        variable = loop.loop_var
        divisors = [
            part.b
            for part in walk(body)
            if isinstance(part, Binary) and part.kind in ("floordiv", "floormod") and part.a is variable
        ]
        extent = point.dim(loop.extent)
        if not divisors or extent is None or loop.start != 0 or loop.step not in (None, 1):
            continue
        by = point.dim(divisors[0])
        if by is None or not all(structural_equal(divisors[0], other) for other in divisors[1:]):
            continue
        high = PrimVar(f"{variable.name}_high", variable.dtype)
        low = PrimVar(f"{variable.name}_low", variable.dtype)
        digits = {"floordiv": high, "floormod": low}

        def post(node: Node, variable: PrimVar = variable, digits: dict[str, PrimVar] = digits) -> Node | None:
            divides = isinstance(node, Binary) and node.kind in digits and node.a is variable
            return digits[node.kind] if divides else None  # type: ignore[attr-defined]

        new = rewrite(body, post)
        if any(part is variable for part in walk(new)):
            continue
        body = new
        outer = For(high, 0, point.extent(ceildiv(extent, by), variable.dtype), loop.body)
        parts[loop] = (outer, For(low, 0, point.extent(by, variable.dtype), loop.body))
    return parts, body


def _disjoint(found: Sequence[Touch], point: Point, name: str, loops: Sequence[For]) -> bool:
    """Whether accesses at the value `name` and at any later one are apart in one of the ways to look at them."""
    if any(not touch.intervals for touch in found):
        return False
    later = symbol(name) + 1 + symbol("_more")
    known = _known_of_both(point, name, later)
    return any(_grows(ranges, found, name, later, known) for ranges in _projections(found, point, loops))


def _known_of_both(point: Point, name: str, later: Dim) -> Facts:
    """What is known of the present value of a loop's symbol and of a later one."""
    facts = point.facts
    shifted = Facts(
        tuple((substitute_dim(a, {name: later}), substitute_dim(b, {name: later})) for a, b in facts.equalities),
        tuple((substitute_dim(a, {name: later}), substitute_dim(b, {name: later})) for a, b in facts.orders),
    )
    return Facts((*facts.equalities, *shifted.equalities), (*facts.orders, *shifted.orders))


def _projections(found: Sequence[Touch], point: Point, loops: Sequence[For]) -> Iterable[list[tuple[Dim, Dim]]]:
    """The inclusive range of each access: along one dimension, or along several ones counted as one."""
    ndim = len(found[0].intervals)
    for axis in range(ndim):
        parts = [touch.intervals[axis] for touch in found]
        if all(part is not None for part in parts):
            yield [(part.low, part.high) for part in parts if part is not None]
    shape = [point.dim(extent) for extent in found[0].buffer.shape]
    for first in range(ndim - 1):
        for end in range(first + 2, ndim + 1):
            flat = _flat(found, shape, first, end)
            if flat is not None:
                yield flat
    joined = _joined(found, shape, point, loops)
    if joined is not None:
        yield joined


def _joined(
    found: Sequence[Touch], shape: Sequence[Dim | None], point: Point, loops: Sequence[For]
) -> list[tuple[Dim, Dim]] | None:
    """The ranges of whole indices into flat memory, with the digits of fused loops put together again."""
    inner = point.copy(loops)
    extents = inner.whole_extents(loops)
    nodes = [touch.node for touch in found]
    given = [x for node in nodes if isinstance(node, (BufferLoad, BufferStore)) for x in node.indices]
    reader = Reader(inner, extents, {}, [dim for x in given if (dim := inner.dim(x)) is not None])
    ranges: list[tuple[Dim, Dim]] = []
    for touch in found:
        node = touch.node
        if not isinstance(node, (BufferLoad, BufferStore)) or node.buffer is not touch.buffer:
            return None
        flat: Dim = 0
        for index, size in zip(node.indices, shape, strict=True):
            here = inner.dim(index)
            if here is None or size is None:
                return None
            flat = flat * size + here
        value = reader.read(flat)
        interval = None if value is None else touch.bounds.of(reader.expr_of(value, "int64"))
        if interval is None:
            return None
        ranges.append((interval.low, interval.high))
    return ranges


def _flat(found: Sequence[Touch], shape: Sequence[Dim | None], first: int, end: int) -> list[tuple[Dim, Dim]] | None:
    ranges: list[tuple[Dim, Dim]] = []
    for touch in found:
        low: Dim = 0
        high: Dim = 0
        for axis in range(first, end):
            part, size = touch.intervals[axis], shape[axis]
            if part is None or size is None:
                return None
            low, high = low * size + part.low, high * size + part.high
        ranges.append((low, high))
    return ranges


def _grows(ranges: Sequence[tuple[Dim, Dim]], found: Sequence[Touch], name: str, later: Dim, facts: Facts) -> bool:
    distinct: dict[tuple[Dim, Dim], bool] = {}
    for place, touch in zip(ranges, found, strict=True):
        distinct[place] = distinct.get(place, False) or touch.writes
    places = list(distinct.items())
    pairs = [(a, b) for a, writes in places for b, other in places if writes or other]
    upward = all(prove_lt(a[1], substitute_dim(as_dim(b[0]), {name: later}), facts) is True for a, b in pairs)
    return upward or all(prove_lt(substitute_dim(as_dim(b[1]), {name: later}), a[0], facts) is True for a, b in pairs)


# Questions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conflict:
    """Why loops cannot be reordered or run at once."""

    reason: str
    buffer: Buffer | None = None
    loop: For | None = None


def conflict(nest: Nest, order: Sequence[For]) -> Conflict | None:
    """What would change if the loops of a nest ran in another order; None when nothing does."""
    if list(order) == list(nest.loops):
        return None
    stop = barrier(nest.body)
    if stop is not None:
        return Conflict("the body does something whose order cannot be changed")
    for buffer in nest.written():
        apart = nest.independent(buffer)
        ordered = [loop for loop in nest.loops if loop not in apart]
        if [loop for loop in order if loop not in apart] == ordered:
            continue
        if not _is_free_sum(nest, buffer, ordered):
            return Conflict(f"iterations of {_named(ordered)} touch the same elements of {buffer.name!r}", buffer)
    return None


def shared(nest: Nest) -> Conflict | None:
    """What iterations of the outermost loop of a nest have in common, so that they cannot run at once; or None."""
    outer = nest.loops[0]
    stop = barrier(nest.body)
    if stop is not None:
        return Conflict("the body does something that cannot be done at once")
    for buffer in nest.written():
        if outer not in nest.independent(buffer):
            return Conflict(
                f"different iterations of {outer.loop_var.name!r} touch the same elements of {buffer.name!r}", buffer
            )
    return None


_SIMPLE = (PrimVar, Binary, IntImm, Buffer, SeqStmt, IfThenElse)


def has_index_of_its_own(loops: Sequence[For]) -> bool:
    """Whether the iterations of the outermost of nested loops share nothing, as an index says.

    In each buffer that is written one index is another one in each iteration; all accesses of the buffer have it, and
    no loop further in moves it: so it is in most elementwise loops, of which this is told quickly.
    """
    bound = {loop.loop_var for loop in loops[1:]}
    places: dict[Buffer, list[tuple[PrimExpr, ...]]] = {}
    written: set[Buffer] = set()
    body = loops[-1].body
    for part in walk(without_bindings(body) if any(blocks_in(body)) else body):
        if part.__class__ in _SIMPLE:
            continue
        if isinstance(part, (BufferStore, BufferLoad)):
            places.setdefault(part.buffer, []).append(part.indices)
            if isinstance(part, BufferStore):
                written.add(part.buffer)
        elif isinstance(part, For):
            bound.add(part.loop_var)
        elif not _is_plain(part):
            return False
    return all(_share_an_index(places[buffer], loops[0], bound) for buffer in written)


def _is_plain(part: Node) -> bool:
    """Whether a part of a body touches no memory but by loads and stores, and binds nothing but loops."""
    if isinstance(part, PrimCall):
        entry = None if isinstance(part.op, GlobalVar) else INTRINSICS.get(str(part.op))
        return entry is not None and entry.pure and not any(isinstance(arg, Buffer) for arg in part.args)
    if isinstance(part, Block):
        return not (part.iter_vars or part.alloc_buffers or part.match_buffers)
    return isinstance(part, PrimExpr) and not isinstance(part, Let)


def _share_an_index(places: Sequence[tuple[PrimExpr, ...]], loop: For, fixed: Set[PrimVar]) -> bool:
    """Whether all of some places have the same index along an axis, another one in each iteration of a loop."""
    for first, *others in zip(*places, strict=True):
        if all(first is x or structural_equal(first, x) for x in others) and _moves(first, loop, fixed):
            return True
    return False


def _moves(index: PrimExpr, loop: For, fixed: Set[PrimVar]) -> bool:
    """Whether an index is another one in each iteration of a loop, and uses none of some other variables."""
    if any(part in fixed or isinstance(part, BufferLoad) for part in walk(index)):
        return False
    factor = _factor_of(index, loop.loop_var)
    if not factor:
        return False
    width = bits(index.dtype)
    reach = loop.extent if isinstance(loop.extent, int) else 1 << 48 if width == 64 else 1 << width
    return factor % 2 == 1 or abs(factor) * reach < 1 << (width - 1)  # odd factors are apart even where numbers wrap


def _factor_of(index: PrimExpr, variable: PrimVar) -> int | None:
    """The constant that a variable is multiplied by in a sum; None where it occurs in another way."""
    if index is variable:
        return 1
    if isinstance(index, Binary) and index.kind in ("add", "sub", "mul"):
        a, b = _factor_of(index.a, variable), _factor_of(index.b, variable)
        if a is None or b is None:
            return None
        if index.kind != "mul":
            return a + b if index.kind == "add" else a - b
        for factor, other in ((a, index.b), (b, index.a)):
            if isinstance(other, IntImm):
                return factor * other.value
        return None if a or b else 0
    return None if any(part is variable for part in walk(index)) else 0


def loop_carried_dependence(loop: For, body: Stmt, point: Point) -> Conflict | None:
    """What keeps a body from running in a loop, after the loop's own body, instead of after the whole loop; or None.

    An iteration of the body must have nothing to do with later iterations of the loop.
    """
    if barrier(loop.body) is not None or barrier(body) is not None:
        return Conflict("a body does something whose order cannot be changed")
    inner = point.copy([loop])
    first, second = outer_accesses(loop.body, inner.bounds()), outer_accesses(body, inner.bounds())
    later = symbol(inner.name(loop.loop_var)) + 1 + symbol("_more")
    buffer = _common(first, second, inner, loop, later)
    if buffer is None:
        return None
    reason = f"an iteration needs elements of {buffer.name!r} that a later one of the loop before touches"
    return Conflict(reason, buffer)


def conflict_at_distance(
    earlier: Sequence[Touch], later: Sequence[Touch], point: Point, loop: For, distance: int
) -> Buffer | None:
    """A buffer of which an iteration and the one `distance` after it may touch one element, one writing; or None.

    `point` is inside of the loop, and the accesses are those of one iteration, of two parts of the body.
    """
    return _common(later, earlier, point, loop, symbol(point.name(loop.loop_var)) + distance)


def _common(ours: Sequence[Touch], theirs: Sequence[Touch], point: Point, loop: For, later: Dim) -> Buffer | None:
    """A buffer of which our accesses at a later iteration and theirs now may be of one element, one of them writing."""
    name = point.name(loop.loop_var)
    known = _known_of_both(point, name, later)
    for buffer in dict.fromkeys(touch.buffer for touch in ours):
        first = [touch for touch in ours if touch.buffer is buffer]
        second = [touch for touch in theirs if touch.buffer is buffer]
        if not any(touch.writes for touch in (*first, *second)) or not second:
            continue
        if loop.loop_var in point.unknown or not _all_apart(first, second, point, name, later, known):
            return buffer
    return None


def _all_apart(
    ours: Sequence[Touch], theirs: Sequence[Touch], point: Point, name: str, later: Dim, known: Facts
) -> bool:
    both = [*ours, *theirs]
    if any(not touch.intervals for touch in both):
        return False
    for ranges in _projections(both, point, ()):
        old = [(substitute_dim(as_dim(a), {name: later}), substitute_dim(as_dim(b), {name: later})) for a, b in ranges]
        pairs = [
            (old[i], ranges[len(ours) + j])
            for i, x in enumerate(ours)
            for j, y in enumerate(theirs)
            if x.writes or y.writes
        ]
        if all(prove_lt(y[1], x[0], known) is True for x, y in pairs):
            return True
        if all(prove_lt(x[1], y[0], known) is True for x, y in pairs):
            return True
    return False


def _named(loops: Iterable[For]) -> str:
    return ", ".join(repr(loop.loop_var.name) for loop in loops)


def _is_free_sum(nest: Nest, buffer: Buffer, ordered: Sequence[For]) -> bool:
    """Whether a buffer is only updated by one reduction, in which the order of some loops does not matter."""
    blocks = [block for block in blocks_in(nest.body) if buffer in buffers_of(block)]
    if len(blocks) != 1 or _views(nest.body):
        return False
    block = blocks[0]
    parts = [block.body] if block.init is None else [block.body, block.init]
    inside = sum(len(loads_in(part, buffer)) + len(stores_in(part, buffer)) for part in parts)
    if inside != len(loads_in(nest.body, buffer)) + len(stores_in(nest.body, buffer)):
        return False
    if not _only_updates(block, buffer):
        return False
    moving = {loop.loop_var for loop in ordered}
    for item in block.iter_vars:
        if item.kind != "reduce" and variables_in(item.value) & moving:
            return False
    return block.init is None or _init_is_first(nest, block, ordered)


def _only_updates(block: Block, buffer: Buffer) -> bool:
    """Whether a block does nothing to a buffer but update elements of it by one operation, its init aside."""
    stores = stores_in(block.body, buffer)
    kinds = {update.kind if (update := _update(store)) is not None else "" for store in stores}
    inits = any(inner.init is not None for inner in blocks_in(block.body, nested=True))
    return len(kinds) == 1 and "" not in kinds and not inits and len(loads_in(block.body, buffer)) == len(stores)


def _init_is_first(nest: Nest, block: Block, ordered: Sequence[For]) -> bool:
    """Whether the first iteration of some loops, in any order of them, and no other one runs the init of a block."""
    inner = _loops_to(nest.body, block)
    if inner is None:
        return False
    loops = [*nest.loops, *inner]
    bindings = Bindings.of(block, loops, nest.point)
    reduce = [item for item in block.iter_vars if item.kind in ("reduce", "scan")]
    moving = {loop.loop_var for loop in ordered}
    if variables_in(block.predicate) & moving and not _holds_at_the_start(block.predicate):
        return False
    steps = [loop for loop in inner if any(loop.loop_var in variables_in(item.value) for item in reduce)]
    own = moving | {loop.loop_var for loop in steps}
    others = {loop.loop_var for loop in loops} - own
    if any(loop.start != 0 for loop in (*ordered, *steps)):
        return False
    for item in reduce:
        value = bindings.values.get(item.var)
        if variables_in(item.value) & others or value is None:
            return False  # what the first iteration is depends on the other loops
        if not bindings.reader.point.same(value.base, bindings.reader.point.dim(item.start)):
            return False
    return bindings.injective([item.var for item in reduce], [*ordered, *steps])


def _holds_at_the_start(predicate: PrimExpr | None) -> bool:
    """Whether a predicate only keeps what grows with the loops below limits: it holds at 0 if it ever does."""
    parts = [] if predicate is None else list(walk(predicate))
    kinds = {part.kind for part in parts if isinstance(part, Binary)}
    plain = all(isinstance(part, (Binary, PrimVar, Cast)) or _is_natural(part) for part in parts)
    return plain and kinds <= {"and", "lt", "le", "add", "mul", "floordiv"}


def _is_natural(part: Node) -> bool:
    return isinstance(part, IntImm) and part.value >= 0


def _loops_to(body: Stmt, block: Block) -> list[For] | None:
    """The loops from a statement down to a block."""
    if body is block:
        return []
    if isinstance(body, For):
        rest = _loops_to(body.body, block)
        return None if rest is None else [body, *rest]
    for child in getattr(body, "stmts", ()):
        rest = _loops_to(child, block)
        if rest is not None:
            return rest
    return None
