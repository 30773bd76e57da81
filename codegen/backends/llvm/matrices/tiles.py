"""The code of statements under `MATRIX_TILES`: matrices of A and B loaded and multiplied step by step."""

from __future__ import annotations

import itertools

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import binary, icmp, phi
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.matrices.nest import (
    NUMBER,
    PREFIX,
    MatrixNest,
    configure,
    do_matrices,
    matrix_nest_of,
    release,
)
from weft.ir.structure.visit import substitute
from weft.ir.tensor import AttrStmt, BufferLoad, PrimExpr, PrimVar
from weft.transform.autoschedule.rules.strides import step_along

__all__ = ["emit_matrix_tiles"]

_A, _B = 4, 6
"""The first matrix of each operand."""


def emit_matrix_tiles(emitter: KernelEmitter, stmt: AttrStmt) -> bool:
    """Emit a statement by an instruction over matrices; False where it has to be emitted as it is."""
    nest = matrix_nest_of(stmt, emitter.arith)
    if nest is None:
        return False
    emitter.stores = True
    if emitter.has_matrices:
        _emit(emitter, nest)
    else:  # in a parallel loop that runs in order after all
        configure(emitter.w)
        _emit(emitter, nest)
        release(emitter.w)
    return True


def _emit(emitter: KernelEmitter, nest: MatrixNest) -> None:
    w = emitter.w
    places = [(m, n) for m in range(nest.rows) for n in range(nest.columns)]
    _begin(emitter, nest, places)
    start, extent = emitter.size(nest.step.start), emitter.size(nest.step.extent)
    end = w.add(start, extent)
    body, done, before = w.label("matrices"), w.label("matrices.done"), w.block_label
    enters = w.emit(icmp("slt", "i64", start, end))
    w.begin_loop()
    w.branch(enters, body, done)
    w.open(body)
    index, following = f"%{body}.i", f"%{body}.n"
    w.define(index, phi("i64", (start, before), (following, body)))
    emitter.bind(nest.step.loop_var, index, wide=index)
    _emit_step(emitter, nest)
    w.define(following, binary("add", "i64", index, 1, "nsw"))
    w.branch(w.emit(icmp("ne", "i64", following, end)), body, done)
    w.end_loop()
    w.open(done)
    for m, n in places:
        _move(emitter, "tilestored64", _sum(m, n), nest.i, nest.sums, nest.at(m, n))


def _begin(emitter: KernelEmitter, nest: MatrixNest, places: list[tuple[int, int]]) -> None:
    """Sums cleared, or loaded where the nest goes on with those that there are."""
    w = emitter.w

    def clear() -> None:
        for m, n in places:
            do_matrices(w, "tilezero", (NUMBER,), [("i8", _sum(m, n))])

    if nest.clears is None:
        clear()
        return
    begins, goes_on, ready = w.label("sums.clear"), w.label("sums.load"), w.label("sums.ready")
    w.branch(emitter.value(nest.clears), begins, goes_on)
    w.open(begins)
    clear()
    w.jump(ready)
    w.open(goes_on)
    for m, n in places:
        _move(emitter, "tileloadd64", _sum(m, n), nest.i, nest.sums, nest.at(m, n))
    w.jump(ready)
    w.open(ready)


def _emit_step(emitter: KernelEmitter, nest: MatrixNest) -> None:
    """The matrices of A and B of a step, each loaded once, and all their products."""
    name = nest.row.intrinsic.removeprefix(PREFIX)
    load_a = "tileloadd64" if nest.clears is None else "tileloaddt164"
    for part, m in itertools.product(range(nest.parts), range(nest.rows)):
        _move(emitter, load_a, _A + m, nest.i, nest.a, nest.at(m, 0, part))
        for n in range(nest.columns):
            if part == 0 and m == 0:
                _move(emitter, "tileloadd64", _B + n, nest.g, nest.b, nest.at(0, n))
            do_matrices(emitter.w, name, (NUMBER,) * 3, [("i8", x) for x in (_sum(m, n), _A + m, _B + n)])


def _sum(m: int, n: int) -> int:
    return 2 * m + n


def _move(
    emitter: KernelEmitter,
    name: str,
    matrix: int,
    row: PrimVar,
    load: BufferLoad,
    at: dict[PrimVar, PrimExpr],
) -> None:
    """Load or store a matrix, whose rows are numbered by a variable, from its first element on."""
    step, place = step_along(load, row), substitute(load, at)
    assert step is not None
    view = emitter.view(load.buffer)
    address = emitter.memory.lane_address(view, emitter.index.offset(view, place.indices), 0)
    stride = step * dtypes.bits(load.buffer.dtype) // 8
    do_matrices(emitter.w, name, (NUMBER, "ptr", "i64"), [("i8", matrix), ("ptr", address), ("i64", stride)])
