"""Statements of a merged kernel with fewer buffers between them.

    t[i, j] = x[i, j] + 1.0                      y[i, j] = T.exp(x[j, i] + 1.0)
    y[i, j] = T.exp(t[j, i])            becomes  and t is gone

    c[i, j] = c[i, j] + a[i, k] * b[k, j]        the same into y, then y[i, j] = T.max(y[i, j], 0.0):
    y[i, j] = T.max(c[i, j], 0.0)                y holds the sums while they grow, and c is gone

`inline_producers` does the first: the value stored by a nest is put where it is loaded, with the indices of the load.
It does so where `pays` says that this saves more than it computes twice. `reuse_outputs` does the second, for nests
that stay. Both change where values are kept and never the order of sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir import Node, replace, rewrite, substitute, walk
from weft.ir.structure.visit import nodes_of
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Let,
    PrimExpr,
    Stmt,
)
from weft.transform.analysis.access_pattern import (
    Cost,
    Nest,
    Reading,
    cost,
    nest_of,
    reading,
    same_extents,
    size_of,
    writes_whole,
)

__all__ = ["LARGEST_VALUE", "divides_indices", "inline_producers", "pays", "reuse_outputs"]

LARGEST_VALUE = 400
"""Nodes of an expression beyond which nothing more is put into it."""
_MOST_IN_ONE_PLACE = 8
_MOST_USES = {Cost.MOVE: 8, Cost.ARITHMETIC: 4, Cost.EXPENSIVE: 1}
_WORST_READING = {Cost.MOVE: Reading.REPEATED, Cost.ARITHMETIC: Reading.ONCE, Cost.EXPENSIVE: Reading.SAME}


def pays(value: Cost, how: Reading, uses: int, reduces: bool) -> bool:
    """Whether a value of a cost is better computed where it is read: `uses` times in the text, `reduces` in a sum.

    Loads in one place are one computation after compilation (their number is bounded since the text grows with it),
    those in different places are not: only what costs nothing is computed several times. What is expensive stays
    outside of sums.
    """
    if reduces and (uses > 1 or value is Cost.EXPENSIVE or how > Reading.ONCE):
        return False
    return how <= _WORST_READING[value] and uses <= (_MOST_IN_ONE_PLACE if how is Reading.SAME else _MOST_USES[value])


def divides_indices(value: PrimExpr) -> bool:
    """Whether a value finds its elements by division (a reshape): loads that vectors cannot do together."""
    return any(
        isinstance(part, Binary) and part.kind in ("floordiv", "floormod", "truncdiv", "truncmod")
        for load in walk(value)
        if isinstance(load, BufferLoad)
        for index in load.indices
        for part in walk(index)
    )


# Producers into consumers --------------------------------------------------------------------------------------------


def inline_producers(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements without the buffers that can be computed where they are read, from the last one to the first."""
    current = list(stmts)
    for alloc in reversed([stmt for stmt in stmts if isinstance(stmt, AllocBuffer)]):
        current = _without(current, alloc.buffer)
    return tuple(current)


def _without(stmts: list[Stmt], buffer: Buffer) -> list[Stmt]:
    """The statements without a buffer, or as they are where it has to stay."""
    using = [(position, stmt) for position, stmt in enumerate(stmts) if _mentions(stmt, buffer)]
    if len(using) < 3:  # the allocation, the producer, consumers
        return stmts
    (start, _), (place, stmt), *consumers = using
    producer = nest_of(stmt)
    if producer is None or producer.store.buffer is not buffer or not _can_move(producer, stmts[place + 1 :]):
        return stmts
    if not _pays_everywhere(producer, [stmt for _, stmt in consumers]):
        return stmts
    new = list(stmts)
    for position, consumer in consumers:
        new[position] = _with_value(consumer, producer)
    return [stmt for position, stmt in enumerate(new) if position not in (start, place)]


def _mentions(stmt: Stmt, buffer: Buffer) -> bool:
    return any(part is buffer for part in nodes_of(stmt, Buffer))


def _can_move(producer: Nest, later: Sequence[Stmt]) -> bool:
    """Whether the value means the same anywhere after the producer: it gives the whole buffer from ones that stay."""
    value = producer.store.value
    sources = {part.buffer for part in walk(value) if isinstance(part, BufferLoad)}
    if not writes_whole(producer) or producer.store.buffer in sources or any(isinstance(x, Let) for x in walk(value)):
        return False
    return not any(x.buffer in sources for stmt in later for x in nodes_of(stmt, BufferStore))


def _pays_everywhere(producer: Nest, consumers: Sequence[Stmt]) -> bool:
    buffer, value = producer.store.buffer, producer.store.value
    uses, how, reduces = 0, Reading.SAME, False
    for stmt in consumers:
        nest = nest_of(stmt)
        if nest is None or nest.is_contraction or not _only_loads(stmt, buffer):
            return False
        loads = [part for part in walk(nest.store.value) if isinstance(part, BufferLoad) and part.buffer is buffer]
        uses += len(loads)
        how = max([how, *(reading(nest, load) for load in loads)])
        reduces = reduces or bool(nest.reduction)
        if size_of(nest.store.value) + len(loads) * size_of(value) > LARGEST_VALUE:
            return False
        if divides_indices(value) and cost(nest.store.value) is Cost.EXPENSIVE:
            return False
    return pays(cost(value), how, uses, reduces)


def _only_loads(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether a nest reads the buffer in its value and does nothing else with it (declared regions aside)."""
    nest = nest_of(stmt)
    assert nest is not None
    stored = nest.store.buffer is buffer or (nest.init is not None and _mentions(nest.init, buffer))
    return not stored and not any(_mentions_in(index, buffer) for index in nest.store.indices)


def _mentions_in(value: PrimExpr, buffer: Buffer) -> bool:
    return any(part is buffer for part in walk(value))


def _with_value(consumer: Stmt, producer: Nest) -> Stmt:
    """The consumer with the producer's value in place of each load of its buffer."""
    store = producer.store

    def inlined(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is store.buffer:
            return substitute(store.value, dict(zip(store.indices, node.indices, strict=True)))
        if isinstance(node, Block) and (node.reads is not None or node.writes is not None):
            return replace(node, reads=None, writes=None)  # as the new body does
        return None

    return rewrite(consumer, inlined)


# Sums in the output -------------------------------------------------------------------------------------------------


def reuse_outputs(stmts: Sequence[Stmt], outputs: Sequence[Buffer]) -> tuple[Stmt, ...]:
    """The statements with an output in place of a buffer that one nest turns into it element by element."""
    current = tuple(stmts)
    mentions = _mentioning(current)
    for alloc in [stmt for stmt in stmts if isinstance(stmt, AllocBuffer)]:
        output = _taken_over(current, alloc.buffer, outputs, mentions)
        if output is not None:
            kept = [stmt for stmt in current if stmt is not alloc]
            current = tuple(substitute(stmt, {alloc.buffer: output}) for stmt in kept)
            mentions = _mentioning(current)
    return current


def _mentioning(stmts: Sequence[Stmt]) -> Mapping[Node, Sequence[int]]:
    """For each buffer the positions of the statements that mention it, in order."""
    found: dict[Node, list[int]] = {}
    for position, stmt in enumerate(stmts):
        for buffer in dict.fromkeys(nodes_of(stmt, Buffer)):
            found.setdefault(buffer, []).append(position)
    return found


def _taken_over(
    stmts: Sequence[Stmt], buffer: Buffer, outputs: Sequence[Buffer], mentions: Mapping[Node, Sequence[int]]
) -> Buffer | None:
    """The output that may hold a buffer's values until the last nest that uses them replaces them."""
    using = mentions.get(buffer, ())
    last = nest_of(stmts[using[-1]]) if using else None
    if last is None or not writes_whole(last):
        return None
    output = last.store.buffer
    plain = buffer.strides is None and buffer.data is None and buffer.scope == output.scope
    alike = buffer.dtype == output.dtype and same_extents(buffer.shape, output.shape)
    if output not in outputs or not plain or not alike:
        return None
    if mentions[output][0] < using[-1]:
        return None
    loads = [part for part in walk(last.store.value) if isinstance(part, BufferLoad)]
    in_place = all(reading(last, load) is Reading.SAME for load in loads if load.buffer is buffer)
    return output if in_place and not any(load.buffer is output for load in loads) else None
