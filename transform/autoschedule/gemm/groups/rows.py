"""The loops of a contraction with weights of few bits: what is made of A, panels of columns, tiles of rows."""

from __future__ import annotations

from weft.ir import substitute
from weft.ir.kernel.prim import const
from weft.ir.tensor import For, PrimExpr, PrimVar, Stmt
from weft.transform.autoschedule.gemm.groups.arrangement import Grouped
from weft.transform.autoschedule.gemm.groups.digits import Digits, DigitTile, digits_of
from weft.transform.autoschedule.gemm.groups.operands import Operands, copies, operands_of, sums_of_a
from weft.transform.autoschedule.gemm.groups.tile import Tile
from weft.transform.autoschedule.gemm.tiles import Access, cover_rows, fresh, plus
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["grouped"]


def grouped(form: Grouped) -> Stmt:
    """The copies of the constants, the digits or sums of A, and the loops."""
    operands, plain = operands_of(form), form.found.plain
    packed, digits = copies(operands), digits_of(form) if form.has_digits else None
    made = sums_of_a(operands) if digits is None else digits.fill()
    panel = PrimVar("panel", INDEX)
    body = _rows(operands, panel) if digits is None else _rows_of_digits(digits, digits.operands(operands), panel)
    for var in reversed(plain.outer):
        outer = fresh(var)
        body = For(outer, 0, plain.extents[var], substitute(body, {var: outer}))
    return sequence([*packed, *made, For(panel, 0, form.panels, body, span=plain.store.span)])


def _rows(operands: Operands, panel: PrimVar) -> Stmt:
    """All rows of a panel, in tiles."""
    plain, most = operands.form.found.plain, operands.form.max_rows
    r = plain.r
    if r is None:
        return Tile(operands, panel, 1, lambda i: None).build()

    def tile(start: PrimExpr, rows: int, clamp: Access) -> Stmt:
        return Tile(operands, panel, rows, lambda i: clamp(plus(start, const(i, INDEX)))).build()

    return cover_rows(r.name, plain.extents[r], most, [size for size in (1, 2, 4) if size < most], tile)


def _rows_of_digits(digits: Digits, operands: Operands, panel: PrimVar) -> Stmt:
    """All rows of a panel, one after another: the panel stays in caches."""
    plain = operands.form.found.plain
    if plain.r is None:
        return DigitTile(digits, operands, panel, lambda i: None).build()
    row = fresh(plain.r)
    return For(row, 0, plain.extents[plain.r], DigitTile(digits, operands, panel, lambda i: row).build())
