"""What a tensor-level function reads and writes, iteration by iteration.

    Access   one load or store: its buffer, its indices over the loops around it, and those loops

Blocks are lowered first and bound names replaced by what they stand for, so indices are arithmetic on loop variables
and symbols. On this stand two answers: whether the iterations of a loop write apart from each other
(`iterations_are_apart`), and whether an output may take the memory of an input (`sharing_pairs`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

from weft.dtypes import Scalable, bits, is_bool, is_integer, lanes
from weft.errors import ShapeError
from weft.ir import structural_equal, substitute, walk
from weft.ir.dim import Dim, free_symbols, product, value_at
from weft.ir.kernel.intrinsics import WITHIN_MEMORY, WRITES_FIRST
from weft.ir.kernel.prim import binary, const
from weft.ir.kernel.views import place_of
from weft.ir.node import Node
from weft.ir.structure.fingerprint import fingerprint
from weft.ir.structure.visit import statements
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.analysis.loops.iteration_space import IterationSpace, Loop
from weft.transform.kernel.lower_blocks import lower_blocks

__all__ = [
    "Access",
    "Loop",
    "accesses_of",
    "copies_in_order",
    "is_plain",
    "is_reshape",
    "iterations_are_apart",
    "memory_of",
    "outliving_buffers",
    "sharing_pairs",
]


Bounds = tuple[tuple[PrimExpr, PrimExpr], ...]
"""Pairs (a, b) with a < b wherever an access happens: comparisons in the conditions and masks that it stands under."""


@dataclass(frozen=True, eq=False)
class Access:
    """A load, or a store of `value`. `top` numbers the statement of the function's body that it stands in."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    loops: tuple[Loop, ...]
    top: int
    path: tuple[tuple[int, bool], ...] = ()
    """The choices outside of all loops that lead here: which conditional, and whether its first branch."""
    value: PrimExpr | None = None
    store: Access | None = None
    """The store in whose value a load stands."""
    bounds: Bounds = ()


class _Unknown(Exception):
    """A construct whose accesses are not understood."""


def accesses_of(stmt: Stmt, *, views: bool = False, repeats: bool = False) -> list[Access] | None:
    """The accesses of a statement without blocks; None when something in it is not understood.

    With `views` it may declare views of buffers, whose accesses count as those of buffers of their own (`memory_of`).
    With `repeats` stores may be done many times by one iteration of the loops around them, and memory that the
    statement allocates may be handed to intrinsics that stay within it.
    """
    walker = _Walker(views, repeats)
    try:
        for number, part in enumerate(stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)):
            walker.top = number
            walker.statement(part, (), ())
    except _Unknown:
        return None
    return walker.found


def _copied(stmt: Stmt) -> Stmt | None:
    """A copy that looks at the memory that T.sort_values and its kin do: so many elements from two addresses.

    It copies them in the opposite order, so that nobody takes it for one that may be done in place. Memory between the
    two is written at its address.
    """
    call = stmt.value if isinstance(stmt, Evaluate) else None
    if not isinstance(call, PrimCall) or call.op not in WRITES_FIRST:
        return None
    pointers = [arg for arg in call.args if isinstance(arg, PrimExpr) and arg.dtype == "handle"]
    size = call.args[len(pointers)]
    places = [place for place in map(place_of, pointers) if place is not None]
    if len(places) < len(pointers) or not isinstance(size, PrimExpr):
        return None
    i = PrimVar("i", size.dtype)
    (to, first), *others, (of, start) = places
    read = (*start[:-1], binary("add", start[-1], binary("sub", binary("sub", size, const(1, size.dtype)), i)))
    copy = For(i, 0, size, BufferStore(to, BufferLoad(of, read), (*first[:-1], binary("add", first[-1], i))))
    notes = (BufferStore(buffer, const(0, buffer.dtype), indices) for buffer, indices in others)
    return SeqStmt((copy, *notes)) if others else copy


class _Walker:
    def __init__(self, views: bool, repeats: bool) -> None:
        self.views, self.repeats = views, repeats
        self.own: set[Buffer] = set()
        self.depth = 0
        self.found: list[Access] = []
        self.values: dict[PrimVar, PrimExpr] = {}
        self.masks: dict[PrimVar, PrimExpr] = {}
        self.bounds: Bounds = ()
        self.top = 0
        self.choices = 0

    def statement(self, stmt: Stmt, loops: tuple[Loop, ...], path: tuple[tuple[int, bool], ...]) -> None:
        if isinstance(stmt, SeqStmt):
            for part in stmt.stmts:
                self.statement(part, loops, path)
        elif isinstance(stmt, For):
            if stmt.step not in (None, 1) or stmt.thread is not None:
                raise _Unknown
            for extent in (stmt.start, stmt.extent):
                self.loads(extent, loops, path)
            loop = Loop(stmt.loop_var, self.closed(stmt.start), self.closed(stmt.extent))
            self.repeated(stmt.body, (*loops, loop), path)
        elif isinstance(stmt, IfThenElse):
            self.loads(stmt.condition, loops, path)
            self.choices += 1
            number, bounds = self.choices, self.bounds
            for first, branch in ((True, stmt.then_body), (False, stmt.else_body)):
                if branch is not None:
                    self.bounds = (*bounds, *self.bounds_of(stmt.condition)) if first else bounds
                    self.statement(branch, loops, path if loops else (*path, (number, first)))
            self.bounds = bounds
        elif isinstance(stmt, BufferStore):
            self.store(stmt, loops, path)
        elif isinstance(stmt, Bind):
            if is_integer(stmt.var.dtype) and lanes(stmt.var.dtype) == 1:  # what indices are made of
                value = self.closed(stmt.value)
                assert isinstance(value, PrimExpr)
                self.values[stmt.var] = value
            elif is_bool(stmt.var.dtype):
                self.masks[stmt.var] = stmt.value
            self.loads(stmt.value, loops, path)
        elif isinstance(stmt, AssertStmt):
            self.loads(stmt.condition, loops, path)
        elif isinstance(stmt, AttrStmt):
            self.statement(stmt.body, loops, path)
        elif isinstance(stmt, DeclBuffer):
            if not self.views or not isinstance(memory_of(stmt.buffer), Buffer):
                raise _Unknown
        elif isinstance(stmt, AllocBuffer):
            self.own.add(stmt.buffer)
        elif isinstance(stmt, While) and self.repeats:
            self.loads(stmt.condition, loops, path)
            self.repeated(stmt.body, loops, path)
        elif (copied := _copied(stmt)) is not None:
            self.statement(copied, loops, path)
        elif not (self.repeats and self.is_harmless(stmt)):
            raise _Unknown

    def repeated(self, body: Stmt, loops: tuple[Loop, ...], path: tuple[tuple[int, bool], ...]) -> None:
        self.depth += 1
        self.statement(body, loops, path)
        self.depth -= 1

    def is_harmless(self, stmt: Stmt) -> bool:
        """Whether a statement only leaves a loop inside of the whole, or works on memory of its own."""
        if isinstance(stmt, (Break, Continue)):
            return self.depth > 0
        return isinstance(stmt, Evaluate) and self.is_within(stmt.value)

    def is_within(self, call: Node) -> bool:
        """Whether a call touches no memory but what the statement allocated before."""
        if not isinstance(call, PrimCall) or call.op not in WITHIN_MEMORY:
            return False
        pointers = [arg for arg in call.args if isinstance(arg, PrimExpr) and arg.dtype == "handle"]
        places = [place_of(pointer) for pointer in pointers]
        return all(place is not None and place[0] in self.own for place in places)

    def closed(self, value: Extent) -> Extent:
        return value if isinstance(value, int) or not self.values else substitute(value, self.values)

    def store(self, stmt: BufferStore, loops: tuple[Loop, ...], path: tuple[tuple[int, bool], ...]) -> None:
        indices, inner, bounds = self.lanes(stmt.indices, loops, stmt.predicate)
        access = Access(stmt.buffer, indices, inner, self.top, path, stmt.value, bounds=bounds)
        self.found.append(access)
        for part in stmt.indices:
            self.loads(part, loops, path)
        if stmt.predicate is not None:
            self.loads(stmt.predicate, loops, path)
        self.loads(stmt.value, loops, path, access)

    def loads(
        self, value: Extent, loops: tuple[Loop, ...], path: tuple[tuple[int, bool], ...], store: Access | None = None
    ) -> None:
        if isinstance(value, int):
            return
        if isinstance(value, (PrimVar, IntImm)):
            return
        read: set[int] = set()
        for node in walk(value):
            if isinstance(node, BufferLoad):
                read.add(id(node.buffer))
                indices, inner, bounds = self.lanes(node.indices, loops, node.predicate)
                self.found.append(Access(node.buffer, indices, inner, self.top, path, None, store, bounds))
            elif isinstance(node, Buffer) and id(node) not in read:
                raise _Unknown  # its address is taken: anything may be read and written there

    def lanes(
        self, indices: Sequence[PrimExpr], loops: tuple[Loop, ...], mask: PrimExpr | None
    ) -> tuple[tuple[PrimExpr, ...], tuple[Loop, ...], Bounds]:
        """Closed scalar indices, a vector index as a loop over its lanes, and what is known of those of a mask."""
        new, bounds, lane = [self.closed(index) for index in indices], self.bounds, None
        if new and isinstance(new[-1], Ramp):
            ramp = new[-1]
            if isinstance(ramp.lanes, Scalable):
                raise _Unknown
            lane = PrimVar("lane", ramp.base.dtype)
            new[-1] = binary("add", ramp.base, binary("mul", lane, ramp.stride))
            loops = (*loops, Loop(lane, 0, ramp.lanes))
        if mask is not None:
            bounds = (*bounds, *self.bounds_of(mask, lane))
        return tuple(index for index in new if isinstance(index, PrimExpr)), loops, bounds

    def bounds_of(self, condition: PrimExpr, lane: PrimVar | None = None) -> Iterator[tuple[PrimExpr, PrimExpr]]:
        """The pairs (a, b) of numbers with a < b where a condition holds, or in that lane where it is a mask."""
        condition = self.masks.get(condition, condition) if isinstance(condition, PrimVar) else condition
        if not isinstance(condition, Binary):
            return
        if condition.kind == "and":
            yield from self.bounds_of(condition.a, lane)
            yield from self.bounds_of(condition.b, lane)
        elif condition.kind == "lt":
            a, b = (self.in_lane(side, lane) for side in (condition.a, condition.b))
            if a is not None and b is not None:
                yield a, b

    def in_lane(self, value: PrimExpr, lane: PrimVar | None) -> PrimExpr | None:
        """A closed integer, or that of a lane where there are several; None for what is neither."""
        if not is_integer(value.dtype):
            return None
        if lane is not None and isinstance(value, Ramp):
            value = binary("add", value.base, binary("mul", lane, value.stride))
        elif lane is not None and isinstance(value, Broadcast):
            value = value.value
        closed = self.closed(value)
        return closed if isinstance(closed, PrimExpr) and lanes(closed.dtype) == 1 else None


# Independence -------------------------------------------------------------------------------------------------------


def iterations_are_apart(loop: For, buffers: Mapping[Buffer, object] | set[Buffer]) -> bool:
    """Whether what one iteration of a loop writes to any of the buffers no other iteration reads or writes."""
    stored = dict.fromkeys(part.buffer for part in statements(loop.body) if isinstance(part, BufferStore))
    written = tuple(buffer for buffer in stored if buffer in buffers or memory_of(buffer) in buffers)
    asked = (loop.loop_var, loop.start, loop.extent, written)
    answers = _ANSWERS_OF.setdefault(loop.body, {})
    if asked not in answers:  # the schedule asks, then the back end, which has the same body
        answers[asked] = _are_apart(loop, written)
    return answers[asked]


def _are_apart(loop: For, written: Sequence[Buffer]) -> bool:
    """The answer for the buffers that a loop writes, looked up by what it says: layers of a model are alike."""
    key = fingerprint((loop.loop_var, loop.start, loop.extent, loop.body, tuple(written)), places=False)
    answer = None if key is None else _ANSWERS.get(key)
    if answer is None:
        answer = _prove_apart(loop, written)
        if key is not None:
            if len(_ANSWERS) >= _MOST_ANSWERS:
                _ANSWERS.clear()
            _ANSWERS[key] = answer
    return answer


def outliving_buffers(loop: For) -> set[Buffer]:
    """The buffers that a loop writes and that outlive an iteration."""
    own: set[object] = set()
    stored: set[Buffer] = set()
    for part in statements(loop.body):
        if isinstance(part, AllocBuffer):
            own.add(part.buffer)
        elif isinstance(part, BufferStore):
            stored.add(part.buffer)
    return {buffer for buffer in stored if memory_of(buffer) not in own}


_ANSWERS_OF: WeakKeyDictionary[Stmt, dict[tuple[object, ...], bool]] = WeakKeyDictionary()
"""The answers of `iterations_are_apart` by the body of the loop and by what else it was asked for."""
_MOST_ANSWERS = 4096
_ANSWERS: dict[str, bool] = {}
"""The answers of `iterations_are_apart`, which follow from the loop alone, by everything that the loop says."""


def _prove_apart(loop: For, written: Sequence[Buffer]) -> bool:
    found = accesses_of(loop.body, views=True, repeats=True)
    if found is None:
        return False
    outer = Loop(loop.loop_var, loop.start, loop.extent)
    if any(_has_other_views(buffer, {access.buffer for access in found}) for buffer in written):
        return False
    space = _space_of(found)
    return all(_apart(space, outer, [access for access in found if access.buffer is buffer]) for buffer in written)


def memory_of(buffer: Buffer) -> Buffer | PrimExpr:
    """The buffer whose memory another one is a view of, itself for most; the pointer where that is all there is."""
    while isinstance(buffer.data, PrimCall) and buffer.data.op == "address_of":
        (place,) = buffer.data.args
        if not isinstance(place, BufferLoad):
            return buffer.data
        buffer = place.buffer
    return buffer if buffer.data is None else buffer.data


def _has_other_views(buffer: Buffer, others: set[Buffer]) -> bool:
    """Whether the memory of a buffer may be reached through another one of these."""
    own = memory_of(buffer)
    if isinstance(own, (Buffer, PrimVar)):
        return any(other is not buffer and memory_of(other) is own for other in others)
    return True


def _apart(space: IterationSpace, loop: Loop, found: Sequence[Access]) -> bool:
    """Whether along some axis each iteration stays within its own interval."""
    rank = len(found[0].indices)
    if any(len(access.indices) != rank for access in found):
        return False
    inside = [_loops_that_matter(access) for access in found]
    if not space.enter([loop]) or not all(map(space.enter, inside)):
        return False
    bounds = [_bounds_that_matter(access, inner) for access, inner in zip(found, inside, strict=True)]
    axes = ([access.indices[axis] for access in found] for axis in range(rank))
    loops = list(dict.fromkeys((loop, *(inner for loops in inside for inner in loops))))
    return any(_own_interval(space, loop, loops, list(zip(indices, bounds, strict=True))) for indices in axes)


def _bounds_that_matter(access: Access, loops: Sequence[Loop]) -> Bounds:
    """The bounds of an access that are about none of the loops around it but those."""
    other = {loop.var for loop in access.loops} - {loop.var for loop in loops}
    return tuple((a, b) for a, b in access.bounds if other.isdisjoint(part for end in (a, b) for part in walk(end)))


def _loops_that_matter(access: Access) -> list[Loop]:
    """The loops whose variables the indices use, by themselves or by the ranges of others, from the outside."""
    used = {part for index in access.indices for part in walk(index) if isinstance(part, PrimVar)}
    found: list[Loop] = []
    for loop in reversed(access.loops):
        if loop.var in used:
            found.append(loop)
            ends = (end for end in (loop.start, loop.extent) if isinstance(end, PrimExpr))
            used |= {part for end in ends for part in walk(end) if isinstance(part, PrimVar)}
    return found[::-1]


def _space_of(found: Sequence[Access]) -> IterationSpace:
    return IterationSpace(list(dict.fromkeys(access.buffer for access in found)))


def _own_interval(
    space: IterationSpace, loop: Loop, loops: Sequence[Loop], indices: Sequence[tuple[PrimExpr, Bounds]]
) -> bool:
    """Whether all indices lie in [step * iteration + shift, step * (iteration + 1) + shift) for some step and shift."""
    each = ((space.dim(index), _rooms(space, loop, bounds)) for index, bounds in indices)
    found = list(dict.fromkeys(each))  # unrolled loops say the same many times
    slopes = [None if dim is None else space.slope(dim, loop) for dim, _ in found]
    step = slopes[0]
    if step is None or any(slope is None or slope != step for slope in slopes):
        return False
    if space.depends(step, loops):
        return False
    if not space.below(0, step):
        if not space.below(step, 0):
            return False
        found, step = [(None if dim is None else -dim, ()) for dim, _ in found], -step
    rests = [(rest, rooms) for dim, rooms in found if dim is not None and (rest := space.rest(dim, loop)) is not None]
    shifts = dict.fromkeys(_at_the_starts(space, rest, loops) for rest, _ in rests)
    return any(
        shift is not None
        and all(_lies_between(space, loops, shift, rest, shift + step, rooms) for rest, rooms in rests)
        for shift in shifts
    )


def _rooms(space: IterationSpace, loop: Loop, bounds: Bounds) -> tuple[Dim, ...]:
    """Of each pair a < b: b - a - 1, which is not negative; of those that are the same in all iterations."""
    rooms: list[Dim] = []
    for a, b in bounds:
        low, high = space.dim(a), space.dim(b)
        with contextlib.suppress(ShapeError):  # over the limits of dimensions
            if low is not None and high is not None and not space.depends(room := high - low - 1, [loop]):
                rooms.append(room)
    return tuple(rooms)


def _lies_between(
    space: IterationSpace, loops: Sequence[Loop], low: Dim, dim: Dim, high: Dim, rooms: Sequence[Dim]
) -> bool:
    """Whether low <= dim < high; where the dimension as it stands leaves the latter open, its greatest value is looked
    at, and that of what it is no more than: its sum with something that is not negative."""
    if not space.at_most(low, dim):
        return False
    if space.below(dim, high) or space.below(space.greatest(dim, loops), high):
        return True
    with contextlib.suppress(ShapeError):  # over the limits of dimensions
        return any(space.below(space.greatest(dim + room, loops), high) for room in rooms)
    return False


def _at_the_starts(space: IterationSpace, dim: Dim, loops: Sequence[Loop]) -> Dim | None:
    """A dimension in the first iteration of all loops; None where atoms in it depend on them."""
    found: Dim | None = dim
    for loop in reversed(loops):
        found = None if found is None else space.rest(found, loop)
    return None if found is None or space.depends(found, loops) else found


def _is_injective(space: IterationSpace, access: Access) -> bool:
    """Whether no two iterations of the loops around an access touch the same element."""
    if not space.enter(access.loops):
        return False
    moving = [loop for loop in access.loops if loop.extent != 1]
    told: set[PrimVar] = set()
    for index in access.indices:
        dim = space.dim(index)
        if dim is None:
            continue
        slopes = {loop.var: space.slope(dim, loop) for loop in moving if space.depends(dim, [loop])}
        if slopes and _is_mixed_radix(slopes, space, access.loops):
            told.update(slopes)
    return told >= {loop.var for loop in moving}


def _is_mixed_radix(slopes: Mapping[PrimVar, Dim | None], space: IterationSpace, loops: Sequence[Loop]) -> bool:
    """Whether the values of a sum of multiples of variables tell the variables apart."""
    if any(slope is None or space.depends(slope, loops) for slope in slopes.values()):
        return False

    def weight(variable: PrimVar) -> int:
        slope = slopes[variable]
        assert slope is not None
        return value_at(slope, dict.fromkeys(free_symbols(slope), 64)) or 0

    reach: Dim = 0
    for variable in sorted(slopes, key=weight):
        slope, extent = slopes[variable], space.dim(space.loops[variable].extent)
        if slope is None or extent is None or not space.below(reach, slope):
            return False
        reach = reach + slope * (extent - 1)
    return True


# Sharing ------------------------------------------------------------------------------------------------------------


def sharing_pairs(function: PrimFunc) -> tuple[tuple[int, int], ...]:
    """(input, output) positions of buffer parameters of one size whose memory may be the same: the kernel reads each
    element of the input for the last time when it computes the element of the output that stands at its place.
    """
    body = lower_blocks(function).body
    found = accesses_of(body)
    if found is None:
        return ()
    stored = {access.buffer for access in found if access.value is not None}
    plain = [(i, p) for i, p in enumerate(function.params) if isinstance(p, Buffer) and is_plain(p)]
    outputs = [(o, p) for o, p in plain if p in stored]
    inputs = [(i, p) for i, p in plain if p not in stored]
    seen = _Seen({body: found}, {})
    return tuple((i, o) for o, y in outputs for i, x in inputs if _alike(x, y) and _may_share(x, y, body, seen))


@dataclass(frozen=True)
class _Seen:
    """What was found of the parts of a kernel: their accesses, and the outputs that each stores to once."""

    accesses: dict[Stmt, list[Access]]
    once: dict[tuple[Stmt, Buffer], bool]


def _may_share(given: Buffer, output: Buffer, body: Stmt, seen: _Seen) -> bool:
    """Whether a part of a kernel lets an output take the memory of an input."""
    own = [access for access in seen.accesses[body] if access.buffer in (given, output)]
    stores = [access for access in own if access.buffer is output and access.value is not None]
    if _read_in_place(given, stores, own):
        if (body, output) not in seen.once:
            seen.once[body, output] = _each_once(stores)
        if seen.once[body, output]:
            return True
    tops = {access.top for access in own}
    statements = body.stmts if isinstance(body, SeqStmt) else (body,)
    loop = statements[tops.pop()] if len(tops) == 1 else None
    if not isinstance(loop, For):
        return False
    if loop.body not in seen.accesses:
        seen.accesses[loop.body] = accesses_of(loop.body) or []
    outer = Loop(loop.loop_var, loop.start, loop.extent)
    inside = [access for access in seen.accesses[loop.body] if access.buffer in (given, output)]
    apart = _apart(_space_of(inside), outer, inside)
    return apart and _may_share(given, output, loop.body, seen)


def is_plain(buffer: Buffer) -> bool:
    """Whether a buffer lies in plain memory, row by row from where it starts."""
    return buffer.strides is None and buffer.elem_offset is None and buffer.data is None and buffer.scope == "global"


def _alike(a: Buffer, b: Buffer) -> bool:
    if bits(a.dtype) != bits(b.dtype) or len(a.shape) != len(b.shape):
        return False
    return all(
        x == y if isinstance(x, int) or isinstance(y, int) else structural_equal(x, y)
        for x, y in zip(a.shape, b.shape, strict=True)
    )


def _each_once(stores: Sequence[Access]) -> bool:
    """Whether each element is stored at most once in a run."""
    space = _space_of(stores)
    exclusive = all(_exclude(space, a, b) for k, a in enumerate(stores) for b in stores[:k])
    return exclusive and all(_is_injective(space, store) for store in stores)


def _exclude(space: IterationSpace, a: Access, b: Access) -> bool:
    """Whether only one of two stores can reach an element."""
    chosen = dict(a.path)
    if any(chosen.get(number, first) != first for number, first in b.path):
        return True
    if not space.enter(a.loops) or not space.enter(b.loops) or set(map(id, a.loops)) & set(map(id, b.loops)):
        return False
    for x, y in zip(a.indices, b.indices, strict=True):
        left, right = space.dim(x), space.dim(y)
        if left is None or right is None:
            continue
        if space.below(left, right) or space.below(right, left):
            return True
    return False


def _read_in_place(given: Buffer, stores: Sequence[Access], found: Sequence[Access]) -> bool:
    first = min(store.top for store in stores)
    for access in found:
        if access.buffer is not given or access.top < first:
            continue
        if access.store is None or access.store not in stores:
            return False
        places = zip(_named(access), _named(access.store), strict=True)
        if not all(x is y or structural_equal(x, y) for x, y in places):
            return False
    return True


def _named(access: Access) -> Iterator[PrimExpr]:
    """The indices with the variable of the lanes, which each access has its own of, by one name."""
    own = {loop.var: _LANE for loop in access.loops if loop.var.name == "lane"}
    return (substitute(index, own) if own else index for index in access.indices)


_LANE = PrimVar("lane", "int64")


def is_reshape(function: PrimFunc) -> bool:
    """Whether a kernel (input, output, sizes) copies all elements in order: its output may be a view of its input."""
    buffers = [param for param in function.params if isinstance(param, Buffer) and is_plain(param)]
    sizes = [param for param in function.params if isinstance(param, PrimVar)]
    if len(buffers) != 2 or (*buffers, *sizes) != function.params:
        return False
    return copies_in_order(lower_blocks(function).body, *buffers)


def copies_in_order(stmt: Stmt, given: Buffer, output: Buffer) -> bool:
    """Whether a statement without blocks does nothing but copy all elements of one buffer in order to another."""
    found = accesses_of(stmt)
    if given.dtype != output.dtype or found is None or len(found) != 2:
        return False
    store, load = found
    if store.value is None or store.buffer is not output or load.buffer is not given:
        return False
    space = _space_of(found)
    if not isinstance(store.value, BufferLoad) or store.value.buffer is not given or not _is_injective(space, store):
        return False
    if not space.enter(store.loops):
        return False
    places = [_flat(space, access) for access in (load, store)]
    extents = [space.dim(extent) for buffer in (given, output) for extent in buffer.shape]
    if None in places or None in extents:
        return False
    whole = _covers(store, output) or (_covers(load, given) and _have_as_many(space, given, output))
    left, right = places
    assert left is not None
    assert right is not None
    return whole and space.same(left, right)


def _covers(access: Access, buffer: Buffer) -> bool:
    """Whether the loops run over all of a buffer: those of each axis are its own and count from 0 to its end."""
    space = _space_of([access])
    if not space.enter(access.loops):
        return False
    used: set[PrimVar] = set()
    for index, size in zip(access.indices, buffer.shape, strict=True):
        if size == 1:
            continue
        place, extent = space.dim(index), space.dim(size)
        if place is None or extent is None:
            return False
        own = [loop for loop in access.loops if loop.extent != 1 and space.depends(place, [loop])]
        count = _count_in_a_row(space, place, own)
        if count is None or not used.isdisjoint(loop.var for loop in own) or not space.same(count, extent):
            return False
        used.update(loop.var for loop in own)
    return True


def _count_in_a_row(space: IterationSpace, place: Dim, loops: Sequence[Loop]) -> Dim | None:
    """How many values an index takes when they are all of 0, 1, 2 and so on to the last; None where they are not."""
    if _at_the_starts(space, place, loops) != 0:
        return None
    steps = {loop: space.slope(place, loop) for loop in loops}
    count: Dim = 1
    while steps:
        inner = next((loop for loop, step in steps.items() if step is not None and space.same(step, count)), None)
        extent = None if inner is None else space.dim(inner.extent)
        if inner is None or extent is None:
            return None
        del steps[inner]
        count = count * extent
    return count


def _have_as_many(space: IterationSpace, a: Buffer, b: Buffer) -> bool:
    """Whether two buffers have equally many elements, whose sizes are all dimensions."""
    left, right = ([space.dim(extent) for extent in buffer.shape] for buffer in (a, b))
    if None in left or None in right:
        return False
    return space.same(*(product(dim for dim in dims if dim is not None) for dims in (left, right)))


def _flat(space: IterationSpace, access: Access) -> Dim | None:
    """The place of an element in row-major order."""
    place: PrimExpr | None = None
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        if space.dim(index) is None or space.dim(extent) is None:
            return None
        place = index if place is None else _joined(place, index, _as_index(extent, index))
    return 0 if place is None else space.dim(place)


def _as_index(extent: Extent, like: PrimExpr) -> PrimExpr:
    return IntImm(extent, like.dtype) if isinstance(extent, int) else extent


def _joined(outer: PrimExpr, inner: PrimExpr, size: PrimExpr) -> PrimExpr:
    """outer * size + inner: of e // size and e % size, whatever the size is (where loops run, not 0), e."""
    if isinstance(outer, Binary) and isinstance(inner, Binary):
        if (outer.kind, inner.kind) == ("floordiv", "floormod") and structural_equal(outer.a, inner.a):
            if structural_equal(outer.b, inner.b) and structural_equal(outer.b, size):
                return outer.a
        if outer.kind == "add" and isinstance(outer.b, Binary) and outer.b.kind == "floordiv":
            low = _joined(outer.b, inner, size)
            if low is outer.b.a:
                return binary("add", binary("mul", outer.a, size), low)
    return binary("add", binary("mul", outer, size), inner)
