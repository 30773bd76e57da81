"""The loops of a contraction with weights of few bits: what is made of A, panels of columns, tiles of rows."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import substitute
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import AllocBuffer, Buffer, For, IfThenElse, PrimExpr, PrimVar, Stmt
from weft.transform.autoschedule.gemm.groups.arrangement import Grouped
from weft.transform.autoschedule.gemm.groups.digits import Digits, DigitTile, digits_of
from weft.transform.autoschedule.gemm.groups.matrices import many_rows
from weft.transform.autoschedule.gemm.groups.operands import Operands, copies, operands_of, sums_of_a
from weft.transform.autoschedule.gemm.groups.tile import Row, Tile
from weft.transform.autoschedule.gemm.groups.unpacked import UnpackedTile, unpacked, values_of
from weft.transform.autoschedule.gemm.tiles import Access, cover_rows, fresh, plus, times
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["grouped"]


def grouped(form: Grouped) -> Stmt:
    """The copies of the constants, the digits or sums of A, and the loops."""
    operands = operands_of(form)
    packed, r = copies(operands), form.found.plain.r
    if form.matrices is None or r is None:
        return sequence([*packed, _few_rows(form, operands)])
    many, extent = many_rows(operands), form.found.plain.extents[r]
    if isinstance(extent, int):
        return sequence([*packed, many])
    are_few = binary("lt", extent, const(form.min_rows_of_matrices, INDEX))
    return sequence([*packed, IfThenElse(are_few, _few_rows(form, operands), many)])


def _few_rows(form: Grouped, operands: Operands) -> Stmt:
    """The digits or sums of A, and the loops, by instructions over vectors."""
    digits = digits_of(form) if form.has_digits else None
    made = sums_of_a(operands) if digits is None else digits.fill()
    panel = PrimVar("panel", INDEX)
    if digits is not None:
        loop = _loop(form, _around(form, _rows_of_digits(digits, digits.operands(operands), panel)), panel)
    elif form.chunks:
        values = values_of(form)
        loop = _in_chunks(form, values, _around(form, _many_rows(operands, panel, values)), panel)
    else:
        loop = _loop(form, _around(form, _rows(operands, panel)), panel)
    return sequence([*made, loop])


def _around(form: Grouped, body: Stmt) -> Stmt:
    """The loops over the axes of a panel's results that are no rows."""
    for var in reversed(form.found.plain.outer):
        outer = fresh(var)
        body = For(outer, 0, form.found.plain.extents[var], substitute(body, {var: outer}))
    return body


def _loop(form: Grouped, body: Stmt, panel: PrimVar) -> Stmt:
    return For(panel, 0, form.panels, body, span=form.found.plain.store.span)


def _in_chunks(form: Grouped, values: Buffer, body: Stmt, panel: PrimVar) -> Stmt:
    """The panels in chunks, each of which has a buffer for the floats of a panel."""
    count, chunk, own = ceil_div(form.panels, form.chunks), PrimVar("chunk", INDEX), fresh(panel)
    chunks = ceil_div(form.panels, count)
    at = plus(times(chunk, count), own)
    body = substitute(body, {panel: at})
    if chunks * count != form.panels:
        body = IfThenElse(binary("lt", at, const(form.panels, INDEX)), body)
    inner = sequence([AllocBuffer(values), For(own, 0, count, body)])
    return For(chunk, 0, chunks, inner, span=form.found.plain.store.span)


def _rows(operands: Operands, panel: PrimVar) -> Stmt:
    """All rows of a panel, in tiles."""
    if operands.form.found.plain.r is None:
        return Tile(operands, panel, 1, lambda i: None).build()
    return _tiles(operands, lambda rows, row: Tile(operands, panel, rows, row))


def _many_rows(operands: Operands, panel: PrimVar, values: Buffer) -> Stmt:
    """All rows of a panel: of more than a few it is converted first."""
    form, plain = operands.form, operands.form.found.plain
    many = _tiles(operands, lambda rows, row: UnpackedTile(operands, panel, rows, row, values))
    converted = sequence([unpacked(operands, panel, values), many])
    assert plain.r is not None
    extent = plain.extents[plain.r]
    if isinstance(extent, int):
        return converted
    is_few = binary("lt", extent, const(form.min_rows_unpacked, INDEX))
    return IfThenElse(is_few, _rows(operands, panel), converted)


def _tiles(operands: Operands, made: Callable[[int, Row], Tile]) -> Stmt:
    """All rows in tiles."""
    r, most = operands.form.found.plain.r, operands.form.max_rows
    assert r is not None

    def tile(start: PrimExpr, rows: int, clamp: Access) -> Stmt:
        return made(rows, lambda i: clamp(plus(start, const(i, INDEX)))).build()

    extent = operands.form.found.plain.extents[r]
    return cover_rows(r.name, extent, most, [size for size in (1, 2, 4) if size < most], tile)


def _rows_of_digits(digits: Digits, operands: Operands, panel: PrimVar) -> Stmt:
    """All rows of a panel, one after another: the panel stays in caches."""
    plain = operands.form.found.plain
    if plain.r is None:
        return DigitTile(digits, operands, panel, lambda i: None).build()
    row = fresh(plain.r)
    return For(row, 0, plain.extents[plain.r], DigitTile(digits, operands, panel, lambda i: row).build())
