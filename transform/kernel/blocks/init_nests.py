"""A reduction's init as a loop nest of its own before the reduction loops, so that it runs before no iterations too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.ir import replace, substitute, walk
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import as_expr, cast
from weft.ir.kernel.simplify import simplify
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IterVar,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)

__all__ = ["split_init"]


def split_init(loop: For) -> Stmt | None:
    """The nest with the init of its block moved before the reduction loops; None when its form does not allow it."""
    loops, inner = perfect_nest(loop)
    if not isinstance(inner, Block) or inner.init is None or inner.match_buffers:
        return None
    reduction = _loops_used(loops, (i.value for i in inner.iter_vars if i.kind in ("reduce", "scan")))
    spatial = _loops_used(loops, (i.value for i in inner.iter_vars if i.kind not in ("reduce", "scan")))
    if not reduction or reduction & spatial or not _same_when_split(loops, inner, reduction):
        return None
    if not all(_starts_with_the_loops(item, loops) for item in inner.iter_vars if item.kind in ("reduce", "scan")):
        return None
    first = next(index for index, item in enumerate(loops) if item.loop_var in reduction)
    spatial |= _loops_used(loops, (inner.predicate,))
    if any(item.extent != 1 for item in loops[first:] if item.loop_var not in spatial | reduction):
        return None  # repeats what it does, the init too
    wanted = [item for item in loops[first:] if item.loop_var in spatial]
    before = _rebuilt(wanted, _init_alone(inner), fresh=True)
    after = _rebuilt(loops[first:], replace(inner, init=None), fresh=False)
    return _rebuilt(loops[:first], SeqStmt((before, after)), fresh=False)


def _variables(parts: Iterable[PrimExpr | Extent | None]) -> set[PrimVar]:
    return {x for part in parts if isinstance(part, PrimExpr) for x in walk(part) if isinstance(x, PrimVar)}


def _loops_used(loops: Sequence[For], values: Iterable[PrimExpr | None]) -> set[PrimVar]:
    return _variables(values) & {loop.loop_var for loop in loops}


def _same_when_split(loops: Sequence[For], block: Block, reduction: set[PrimVar]) -> bool:
    """Whether nothing that the init needs depends on the reduction loops, and no loop belongs to threads."""
    first = next(index for index, loop in enumerate(loops) if loop.loop_var in reduction)
    sizes = _variables(extent for loop in loops[first:] for extent in (loop.start, loop.extent, loop.step))
    names = reduction | {i.var for i in block.iter_vars if i.kind in ("reduce", "scan")}
    needed = _variables((block.predicate,))
    init = {x for x in walk(block.init) if isinstance(x, (PrimVar, Buffer))} if block.init is not None else set()
    accesses = (BufferLoad, BufferStore)
    touched = {x.buffer for x in walk(block.init) if isinstance(x, accesses)} if block.init is not None else set()
    threads = any(loop.kind == "thread_binding" for loop in loops)
    return not (threads or sizes & reduction or needed & names or init & names or touched & set(block.alloc_buffers))


def _starts_with_the_loops(item: IterVar, loops: Sequence[For]) -> bool:
    """Whether a variable is at its start in the first iteration of the loops, whatever else is around them."""
    if item.value is None:
        return True
    first = {loop.loop_var: as_expr(loop.start, loop.loop_var.dtype) for loop in loops}
    value = simplify(substitute(cast(item.var.dtype, item.value), first))
    return structural_equal(value, as_expr(item.start, item.var.dtype))


def _init_alone(block: Block) -> Stmt:
    """The init as a block with variables of its own: both nests may bind theirs."""
    assert block.init is not None
    kept = [item for item in block.iter_vars if item.kind not in ("reduce", "scan")]
    own = {item.var: replace(item.var, name=f"{item.var.name}_init") for item in kept}
    items = tuple(replace(item, var=own[item.var]) for item in kept)
    predicate = None if block.predicate is None else substitute(block.predicate, own)
    return Block(f"{block.name}_init", substitute(block.init, own), items, predicate, span=block.init.span)


def _rebuilt(loops: Sequence[For], body: Stmt, *, fresh: bool) -> Stmt:
    for loop in reversed(loops):
        if fresh:
            var = replace(loop.loop_var, name=f"{loop.loop_var.name}_init")
            body = replace(loop, loop_var=var, body=substitute(body, {loop.loop_var: var}))
        else:
            body = replace(loop, body=body)
    return body
