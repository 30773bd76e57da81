"""Checks of blocks: declared regions, bindings, roles of variables, init."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.dim import prove_lt
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.regions import Access, Bounds, Interval, accesses, block_accesses
from weft.ir.node import Node
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    DeclBuffer,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Unary,
)
from weft.ir.verify.accesses import may_cross_rows
from weft.ir.verify.findings import Report
from weft.ir.verify.outputs import updates_itself

__all__ = ["check_block", "check_locals"]

_KINDS = ("spatial", "reduce", "scan", "opaque")
_AFFINE = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max")


def check_block(block: Block, varying: set[PrimVar], report: Report) -> None:
    """W470-W474 and W476 for a block; `varying` are the variables of loops and blocks around it and inside it."""
    for variable in block.iter_vars:
        _check_variable(block, variable, varying, report)
    reduce = [variable.var for variable in block.iter_vars if variable.kind == "reduce"]
    if block.init is not None and not reduce:
        report.add("W474", f"block {block.name!r} has an init and no reduction variable", block.span)
    if reduce:
        _check_reduction(block, set(reduce), report)
    declared = block.reads is not None or block.writes is not None
    is_root = block.name == "root" and not block.iter_vars and not block.reads and not block.writes
    if declared and not is_root:  # the field writes the outermost block as one that declares nothing
        _check_regions(block, report)


# Variables ----------------------------------------------------------------------------------------------------------


def _check_variable(block: Block, variable: IterVar, varying: set[PrimVar], report: Report) -> None:
    name = variable.var.name
    if variable.kind not in _KINDS:
        report.add(
            "W476", f"variable {name!r} has the kind {variable.kind!r}", block.span, hint=f"one of {', '.join(_KINDS)}"
        )
    elif variable.kind != "opaque" and variable.value is not None and not _is_affine(variable.value, varying):
        message = f"the binding of {name!r} is not affine in the variables around the block"
        report.add(
            "W472", message, variable.span or variable.value.span or block.span, hint="declare it with T.axis.opaque"
        )


def _is_affine(root: PrimExpr, varying: set[PrimVar]) -> bool:
    """Sums, and products, quotients and remainders by what does not vary; variables stand for themselves."""
    stack: list[Node] = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, Binary):
            if current.kind not in _AFFINE:
                return False
            if current.kind == "mul" and not (_is_factor(current.a, varying) or _is_factor(current.b, varying)):
                return False
            if current.kind in ("floordiv", "floormod", "truncdiv", "truncmod") and not _is_factor(current.b, varying):
                return False
            stack.extend((current.a, current.b))
        elif isinstance(current, Unary) and current.kind == "neg":
            stack.append(current.a)
        elif isinstance(current, Cast):
            stack.append(current.value)
        elif not isinstance(current, (PrimVar, IntImm)):
            return False
    return True


def _is_factor(expr: PrimExpr, varying: set[PrimVar]) -> bool:
    """A constant, or an expression over what does not vary: symbols and scalar parameters."""
    return all(isinstance(node, (IntImm, PrimVar, Binary, Cast)) and node not in varying for node in walk(expr))


# Reductions ---------------------------------------------------------------------------------------------------------


def _check_reduction(block: Block, reduce: set[PrimVar], report: Report) -> None:
    """W473: each step of a reduction writes the same elements."""
    for node in _stores(block):
        used = {part for index in node.indices for part in walk(index) if isinstance(part, PrimVar)} & reduce
        if used:
            names = ", ".join(sorted(repr(variable.name) for variable in used))
            message = f"the reduction variable {names} indexes {node.buffer.name!r}, which block {block.name!r} writes"
            report.add("W473", message, node.span or block.span, hint="declare the variable spatial")


def _stores(block: Block) -> list[BufferStore]:
    local = {*block.alloc_buffers}
    found = [node for node in walk(block.body) if isinstance(node, BufferStore)]
    for node in walk(block.body):
        if isinstance(node, (AllocBuffer, DeclBuffer)):
            local.add(node.buffer)
        elif isinstance(node, Block):
            local.update(node.alloc_buffers)
    return [node for node in found if node.buffer not in local]


# Regions ------------------------------------------------------------------------------------------------------------


def _check_regions(block: Block, report: Report) -> None:
    """W470 and W471: what the body provably touches lies in a declared region of its buffer."""
    local = {region.buffer for found in block_accesses(block) for region in found}
    for kind, code, declared in (("read", "W470", block.reads), ("write", "W471", block.writes)):
        if declared is None:
            continue
        own = _stores(block) if kind == "read" else []
        for access in _of_kind(block, kind):
            buffer = access.buffer
            if buffer not in local or _updates(access.node, own):
                continue
            regions = [region for region in declared if region.buffer is buffer]
            if not regions:
                report.add(
                    code,
                    f"block {block.name!r} {kind}s {buffer.name!r} and does not declare it",
                    access.node.span or block.span,
                    key=buffer,
                )
            elif all(_outside(access, region) for region in regions):
                message = f"block {block.name!r} {kind}s {buffer.name!r} outside the declared region"
                report.add(code, message, access.node.span or block.span, key=access.node)


def _of_kind(block: Block, kind: str) -> Iterable[Access]:
    found = [*accesses(block.body, Bounds())]
    if block.init is not None:
        found.extend(accesses(block.init, Bounds()))
    return (access for access in found if access.kind == kind)


def _updates(node: Node, stores: list[BufferStore]) -> bool:
    """Whether a load reads an element that the block writes: what is updated in place need not be declared as read."""
    if not isinstance(node, BufferLoad):
        return False
    return any(store.buffer is node.buffer and structural_equal(store.indices, node.indices) for store in stores)


def _outside(access: Access, region: BufferRegion) -> bool:
    """Whether the access certainly leaves the region in some dimension."""
    if not access.certain or len(access.intervals) != len(region.region) or 0 in access.buffer.shape:
        return False
    for position, (interval, part) in enumerate(zip(access.intervals, region.region, strict=True)):
        if may_cross_rows(access, position):
            continue
        start, extent = access.bounds.of(part.start), access.bounds.of(part.extent)
        if interval is None or not interval.exact or start is None or extent is None:
            continue
        if _misses(interval, start, extent):
            return True
    return False


def _misses(interval: Interval, start: Interval, extent: Interval) -> bool:
    return bool(prove_lt(interval.low, start.low)) or bool(prove_lt(start.high + extent.high - 1, interval.high))


# Local buffers ------------------------------------------------------------------------------------------------------


def _reads_itself_always(store: BufferStore) -> bool:
    """Whether a store reads its buffer whenever it runs: what is stored first under a condition sets an element."""
    found = accesses(store.value, Bounds())
    return any(access.buffer is store.buffer and access.kind == "read" and access.certain for access in found)


def check_locals(function: PrimFunc, report: Report) -> None:
    """W475: a buffer that the function allocates is read only if something writes it, other than from itself."""
    allocated: dict[Buffer, None] = {}
    written: set[Buffer] = set()
    reads: dict[Buffer, BufferLoad] = {}
    for node in walk(function.body):
        if isinstance(node, AllocBuffer):
            allocated[node.buffer] = None
        elif isinstance(node, Block):
            allocated.update(dict.fromkeys(node.alloc_buffers))
            written.update(match.source.buffer for match in node.match_buffers)
        elif isinstance(node, DeclBuffer) and node.buffer.data is not None:
            written.update(part.buffer for part in walk(node.buffer.data) if isinstance(part, BufferLoad))
        elif isinstance(node, BufferStore):
            if not updates_itself(node) or not _reads_itself_always(node):
                written.add(node.buffer)
        elif isinstance(node, PrimCall):
            written.update(arg for arg in node.args if isinstance(arg, Buffer))
            if node.op not in INTRINSICS:  # a call of a device may set the elements that it names
                written.update(arg.buffer for arg in node.args if isinstance(arg, BufferLoad))
            if node.op == "address_of" and isinstance(node.args[0], BufferLoad):
                written.add(node.args[0].buffer)
        elif isinstance(node, BufferLoad):
            reads.setdefault(node.buffer, node)
    for buffer in allocated:
        if buffer in reads and buffer not in written and buffer.data is None:
            report.add("W475", f"buffer {buffer.name!r} is read and never set", reads[buffer].span or buffer.span)
