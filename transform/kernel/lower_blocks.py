"""LowerBlocks: tensor-level blocks become plain loops, conditions and allocations.

    iteration variables   their binding values stand in their place (a `Bind` where the value is a compound one)
    predicate             a condition around the instance
    init                  a loop nest of its own before the reduction loops, so that a reduction over nothing still
                          initialises its output; where the nest is not of that form, a condition "every reduction
                          variable is at its start" before the body
    alloc_buffers         allocations inside the instance
    match_buffers         declared views of the region's memory; symbolic strides and offsets get their values

What is left: loops, stores, conditions, binds, allocations, views, asserts, calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import IRModule, replace, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, buffer_strides, cast
from weft.ir.kernel.simplify import simplify
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import map_statements
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.infra.base import FunctionPass

__all__ = ["LowerBlocks", "lower_blocks"]


@dataclass(frozen=True)
class LowerBlocks(FunctionPass):
    """Replace blocks by loops, conditions and allocations."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without blocks."""
        return lower_blocks(function)


def lower_blocks(function: PrimFunc) -> PrimFunc:
    """A tensor-level function without blocks; the same object when it has none."""
    return replace(function, body=_lower(function.body))


def _lower(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Block):
        return _lower_block(stmt)
    split = _split_init(stmt) if isinstance(stmt, For) else None
    return map_statements(stmt, _lower) if split is None else _lower(split)


def _lower_block(block: Block) -> Stmt:
    body = block.body
    if block.init is not None:
        body = SeqStmt((_first_time(block), body))
    parts: list[Stmt] = [AllocBuffer(buffer, span=block.span) for buffer in block.alloc_buffers]
    for match in block.match_buffers:
        sizes, placed = _view(match)
        parts += [*sizes, DeclBuffer(placed, span=match.span)]
        body = substitute(body, {match.buffer: placed})
    body = SeqStmt((*parts, body)) if parts else body
    if block.predicate is not None:
        body = IfThenElse(block.predicate, body, span=block.span)
    return _lower(_bound(block.iter_vars, body))


def _bound(iter_vars: Sequence[IterVar], body: Stmt) -> Stmt:
    """The body with iteration variables standing for their values."""
    direct: dict[PrimVar, PrimExpr] = {}
    binds: list[Stmt] = []
    for item in iter_vars:
        value = cast(item.var.dtype, item.value if item.value is not None else as_expr(item.start))
        if isinstance(value, (PrimVar, IntImm)):
            direct[item.var] = value
        else:
            binds.append(Bind(item.var, value, span=item.span))
    body = substitute(body, direct)
    return SeqStmt((*binds, body)) if binds else body


def _all(conditions: Iterable[PrimExpr]) -> PrimExpr | None:
    result: PrimExpr | None = None
    for condition in conditions:
        result = condition if result is None else binary("and", result, condition)
    return result


def _first_time(block: Block) -> Stmt:
    """The init, run when every reduction variable is at its start."""
    assert block.init is not None
    at_start = _all(
        binary("eq", item.var, cast(item.var.dtype, as_expr(item.start)))
        for item in block.iter_vars
        if item.kind in ("reduce", "scan")
    )
    return block.init if at_start is None else IfThenElse(at_start, block.init, span=block.init.span)


# A reduction's init as a nest of its own --------------------------------------------------------------------------


def _split_init(loop: For) -> Stmt | None:
    """The nest with the init of its block moved before the reduction loops; None when its form does not allow it."""
    loops, inner = _nest(loop)
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


def _nest(loop: For) -> tuple[list[For], Stmt]:
    loops = [loop]
    while isinstance(loops[-1].body, For):
        loops.append(loops[-1].body)
    return loops, loops[-1].body


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


# Views of regions -------------------------------------------------------------------------------------------------


def _view(match: MatchBufferRegion) -> tuple[list[Stmt], Buffer]:
    """The matched buffer as a view of the region's memory, and values for its symbolic sizes, strides and offset."""
    source, buffer = match.source.buffer, match.buffer
    start = BufferLoad(source, tuple(as_expr(axis.start) for axis in match.source.region))
    region = [axis.extent for axis in match.source.region]
    strides = buffer_strides(source)[source.ndim - buffer.ndim :]
    parts = _solve(buffer.shape, region[source.ndim - buffer.ndim :], match)
    parts += _solve(buffer.strides or (), strides, match)
    if isinstance(buffer.elem_offset, PrimVar):  # the view's pointer is that of the region's first element
        parts.append(Bind(buffer.elem_offset, as_expr(0, buffer.elem_offset.dtype), span=match.span))
    address = PrimCall("address_of", (start,), "handle", span=match.span)
    return parts, replace(buffer, data=address, strides=buffer.strides or tuple(strides), elem_offset=None)


def _solve(wanted: Sequence[Extent], given: Sequence[Extent], match: MatchBufferRegion) -> list[Stmt]:
    """Give the variables among `wanted` the sizes in `given`."""
    known: set[PrimVar] = set()
    parts: list[Stmt] = []
    for variable, value in zip(wanted, given, strict=False):
        if isinstance(variable, PrimVar) and variable is not value and variable not in known:
            known.add(variable)
            parts.append(Bind(variable, cast(variable.dtype, as_expr(value, variable.dtype)), span=match.span))
    return parts
