"""How much there is to do in a statement, which the program estimates from the sizes when it runs."""

from __future__ import annotations

from collections.abc import Iterator

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.matrices.nest import ROWS, matrix_nest_of
from weft.ir.kernel.intrinsics import WITHIN_MEMORY
from weft.ir.node import Node
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    MATRIX_TILES,
    AssertStmt,
    AttrStmt,
    Bind,
    BufferLoad,
    BufferStore,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.access_pattern import most_of

__all__ = ["reads_memory", "variables_in", "work_of"]

_UNKNOWN_EXTENT = 8
_LANES_AT_ONCE = 8
_FOR_EACH_KEY = 8


def work_of(emitter: KernelEmitter, stmt: Stmt) -> Size:
    """Scalar operations of a statement, roughly; sizes that depend on the iteration count as a few."""
    w = emitter.w
    if isinstance(stmt, SeqStmt):
        total: Size = 0
        for part in stmt.stmts:
            total = w.add(total, work_of(emitter, part))
        return total
    if isinstance(stmt, For):
        return _work_of_rounds(emitter, stmt.extent, work_of(emitter, stmt.body))
    if isinstance(stmt, IfThenElse):
        other = 0 if stmt.else_body is None else work_of(emitter, stmt.else_body)
        return w.add(work_of(emitter, stmt.then_body), other)
    if isinstance(stmt, AttrStmt):
        return _work_under(emitter, stmt)
    if isinstance(stmt, Evaluate):
        return _work_of_call(emitter, stmt.value)
    value = stmt.value if isinstance(stmt, (BufferStore, Bind)) else None
    value = stmt.condition if isinstance(stmt, AssertStmt) else value
    if value is None:
        return 0
    lanes = max(1, dtypes.lanes(value.dtype) // _LANES_AT_ONCE)
    return lanes * sum(16 if isinstance(node, PrimCall) else 1 for node in walk(value))


def _work_of_rounds(emitter: KernelEmitter, extent: Extent, each: Size) -> Size:
    """Operations of so many iterations."""
    if _is_known(emitter, extent):
        return emitter.w.mul(emitter.size(extent), each)
    return emitter.w.mul(most_of(extent) or _UNKNOWN_EXTENT, each)


def _work_under(emitter: KernelEmitter, stmt: AttrStmt) -> Size:
    """Operations of a statement under an attribute; each instruction over a matrix is one for each row."""
    nest = matrix_nest_of(stmt, emitter.arith) if stmt.key == MATRIX_TILES else None
    if nest is None:
        return work_of(emitter, stmt.body)
    instructions = nest.rows + nest.columns + nest.rows * nest.columns
    return _work_of_rounds(emitter, nest.step.extent, instructions * ROWS)


def _work_of_call(emitter: KernelEmitter, call: Node) -> Size:
    """Operations of a call for what it does: of a sort, by how many keys it has."""
    if not isinstance(call, PrimCall) or call.op not in WITHIN_MEMORY:
        return 0
    size = next(arg for arg in call.args if isinstance(arg, PrimExpr) and arg.dtype != "handle")
    return emitter.w.mul(emitter.size(size) if _is_known(emitter, size) else _UNKNOWN_EXTENT, _FOR_EACH_KEY)


def _is_known(emitter: KernelEmitter, extent: Extent) -> bool:
    """Whether an extent has its value here: what it reads may be written, and its memory made, inside of the loop."""
    return all(v in emitter.variables for v in variables_in(extent)) and not reads_memory(extent)


def reads_memory(extent: Extent) -> bool:
    """Whether an extent follows from elements of a buffer."""
    return isinstance(extent, PrimExpr) and any(isinstance(node, BufferLoad) for node in walk(extent))


def variables_in(extent: Extent) -> Iterator[PrimVar]:
    """The variables that an extent follows from."""
    if isinstance(extent, PrimExpr):
        yield from (node for node in walk(extent) if isinstance(node, PrimVar))
