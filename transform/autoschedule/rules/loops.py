"""Loops over vectors: whole ones, then the remainder under a mask.

for i in range(n // 16): for j in T.vectorized(16): body(i * 16 + j)
for j in T.vectorized(16): if n // 16 * 16 + j < n: body(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.ir import substitute
from weft.ir.attrs import CHAIN, SHARED
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)

__all__ = [
    "BLOCK",
    "CHAIN",
    "INDEX",
    "SHARED",
    "as_int",
    "block_nest",
    "in_blocks",
    "is_chain",
    "minus",
    "nested",
    "over_vectors",
    "plus",
    "sequence",
    "split",
    "times",
    "vector_loop",
]

INDEX = "int64"
BLOCK = 1024
"""Steps of a sum of floats that are added up by themselves where there are more: one long sum loses digits."""
Body = Callable[[PrimExpr], Stmt]


def plus(a: Extent, b: Extent) -> PrimExpr:
    """a + b, without zeros."""
    if isinstance(a, int) and a == 0:
        return as_expr(b, INDEX)
    if isinstance(b, int) and b == 0:
        return as_expr(a, INDEX)
    return binary("add", as_expr(a, INDEX), as_expr(b, INDEX))


def times(a: Extent, b: int) -> Extent:
    """a * b."""
    if isinstance(a, int):
        return a * b
    return a if b == 1 else binary("mul", a, const(b, INDEX))


def split(start: Extent, end: Extent, width: int) -> tuple[Extent, Extent]:
    """(how often `width` goes into the range, where the remainder starts)."""
    length = minus(end, start)
    if isinstance(length, int):
        steps: Extent = length // width
        return steps, as_int(plus(start, steps * width))
    steps = binary("floordiv", length, const(width, INDEX))
    return steps, plus(start, times(steps, width))


def as_int(value: Extent) -> Extent:
    """A constant as a number."""
    return value.value if isinstance(value, IntImm) else value


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """Statements one after another."""
    found = tuple(stmts)
    return found[0] if len(found) == 1 else SeqStmt(found)


def nested(loops: Sequence[tuple[PrimVar, Extent]], body: Stmt) -> Stmt:
    """Serial loops around a statement, the first one outermost."""
    for var, extent in reversed(loops):
        body = For(var, 0, extent, body)
    return body


def vector_loop(start: Extent, lanes: int, body: Body, left: Extent | None = None) -> Stmt:
    """One vector from `start` on; with `left`, only as many lanes of it."""
    j = PrimVar("j", INDEX)
    inner = body(plus(start, j))
    if left is not None:
        inner = IfThenElse(binary("lt", j, as_expr(left, INDEX)), inner, None)
    return For(j, 0, lanes, inner, "vectorized")


def over_vectors(
    name: str, extent: Extent, lanes: int, unroll: int, body: Body, masks: bool = True, *, wide: bool = False
) -> list[Stmt]:
    """`body(index)` for every index below the extent, in vectors, `unroll` of them in a step of the first loop.

    `wide` makes these one long vector: its parts go through each operation side by side, so that none of them waits
    for a long chain of operations. Without `masks` the remainder is done one by one.
    """
    parts: list[Stmt] = []
    start: Extent = 0
    for count in sorted({unroll, 1}, reverse=True):
        steps, end = split(start, extent, lanes * count)
        if isinstance(steps, int) and steps == 0:
            continue
        i, u = PrimVar(f"{name}_{lanes * count}", INDEX), PrimVar("u", INDEX)
        at = plus(start, times(i, lanes * count))
        inner = (
            vector_loop(at, lanes * count, body)
            if count == 1 or wide
            else For(u, 0, count, vector_loop(plus(at, times(u, lanes)), lanes, body), "unrolled")
        )
        parts.append(For(i, 0, steps, inner))
        start = end
    left = minus(extent, start)
    if not (isinstance(left, int) and left == 0):
        parts.append(_rest(name, start, left, lanes, body, masks))
    return parts


def _rest(name: str, start: Extent, left: Extent, lanes: int, body: Body, masks: bool) -> Stmt:
    if isinstance(left, int) and left == 1:
        return body(as_expr(start, INDEX))
    if not masks:
        i = PrimVar(f"{name}_rest", INDEX)
        return For(i, 0, left, body(plus(start, i)))
    if isinstance(left, int):
        width = 1 << (left - 1).bit_length()
        return vector_loop(start, width, body, None if width == left else left)
    return IfThenElse(binary("gt", left, const(0, INDEX)), vector_loop(start, lanes, body, left), None)


def minus(a: Extent, b: Extent) -> Extent:
    """a - b."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if isinstance(b, int) and b == 0 else binary("sub", as_expr(a, INDEX), as_expr(b, INDEX))


def block_nest(
    name: str,
    spatial: Sequence[tuple[PrimVar, Extent]],
    reduction: Sequence[tuple[PrimVar, Extent]],
    store: BufferStore,
    init: BufferStore | None = None,
) -> Stmt:
    """Loops around one block over the given iteration variables."""
    items, loops = [], []
    for kind, variables in (("spatial", spatial), ("reduce", reduction)):
        for var, extent in variables:
            loop = PrimVar(var.name.removeprefix("v"), INDEX)
            items.append(IterVar(var, 0, extent, kind, loop))
            loops.append((loop, extent))
    return nested(loops, Block(name, store, tuple(items), init=init))


def in_blocks(
    loop: For, block: int, total: Buffer, zero: PrimExpr, each: Callable[[Callable[[PrimExpr], Stmt]], Stmt]
) -> Stmt:
    """A loop that adds to the accumulators of a buffer, in blocks of so many steps that are added up by themselves.

    `each` does something at the place of every accumulator (or vector of them), `zero` is what stands there at first.
    One block needs no further accumulators, which the sizes tell.
    """
    sums = Buffer("sums", total.shape, total.dtype, "local")
    number = PrimVar(f"{loop.loop_var.name}_block", INDEX)
    extent, size = as_expr(loop.extent, INDEX), const(block, INDEX)
    count, start = binary("floordiv", plus(extent, block - 1), size), binary("mul", number, size)
    left = binary("min", binary("sub", extent, start), size)
    inner = For(loop.loop_var, 0, left, substitute(loop.body, {loop.loop_var: plus(start, loop.loop_var)}))

    def cleared(buffer: Buffer) -> Stmt:
        return each(lambda at: BufferStore(buffer, zero, (at,)))

    def added(to: Buffer, value: Buffer) -> Stmt:
        return each(lambda at: BufferStore(to, binary("add", BufferLoad(to, (at,)), BufferLoad(value, (at,))), (at,)))

    several, more = binary("gt", count, const(1, INDEX)), binary("lt", plus(number, 1), count)
    flush = IfThenElse(more, sequence((added(sums, total), cleared(total))), None)
    return sequence(
        (
            AllocBuffer(sums),
            IfThenElse(several, cleared(sums), None),
            For(number, 0, count, sequence((inner, flush))),
            IfThenElse(several, added(total, sums), None),
        )
    )


def is_chain(loop: For) -> bool:
    """Whether a loop is one of those around a chain."""
    if CHAIN in loop.annotations:
        return True
    body = loop.body
    inner = body.stmts if isinstance(body, SeqStmt) else (body,)
    return any(isinstance(stmt, For) and is_chain(stmt) for stmt in inner)
