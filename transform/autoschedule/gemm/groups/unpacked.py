"""Panels of weights as floats, for rows that are more than a tile: converted once, then read by every tile.

for panels of B:
  values = what the elements of the panel stand for        floats, whole along k: the second cache has them
  for tiles of rows:
    total = 0;  total += A * values for each k;  C = total
"""

from __future__ import annotations

from weft.ir.kernel.prim import const
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, For, PrimExpr, PrimVar, Stmt
from weft.transform.autoschedule.gemm.groups.arrangement import FLOAT, Grouped
from weft.transform.autoschedule.gemm.groups.operands import Operands
from weft.transform.autoschedule.gemm.groups.tile import Row, Tile
from weft.transform.autoschedule.gemm.tiles import plus, times, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["UnpackedTile", "unpacked", "values_of"]


def values_of(form: Grouped) -> Buffer:
    """The buffer of a panel's floats."""
    return Buffer("values", (form.found.size * form.width,), FLOAT)


def unpacked(operands: Operands, panel: PrimVar, values: Buffer) -> Stmt:
    """The loops that fill the buffer of a panel's floats."""
    return UnpackedTile(operands, panel, 1, lambda i: None, values).fill()


class UnpackedTile(Tile):
    """The sums of `rows` rows in a panel whose elements are floats already."""

    def __init__(self, operands: Operands, panel: PrimVar, rows: int, row: Row, values: Buffer) -> None:
        super().__init__(operands, panel, rows, row)
        self.values, self.scales_elements = values, True

    def fill(self) -> Stmt:
        """What the elements of the panel stand for, in the order of k."""
        g, q = PrimVar("g", INDEX), PrimVar("q", INDEX)
        begin, scales, shifts = self._scales_of_group(g)
        step: list[Stmt] = []
        for h in range(self.form.per):
            for j in range(self.form.vectors):
                value = self._scaled_element(g, q, h, j, scales, shifts)
                step.append(BufferStore(self.values, value, (self._value_at(g, q, h, j),)))
        return For(g, 0, self.form.groups, sequence([*begin, For(q, 0, self._steps, sequence(step))]))

    @property
    def _steps(self) -> int:
        return self.found.group // self.form.per

    def _value_at(self, g: PrimVar, q: PrimVar, h: int, j: int) -> PrimExpr:
        k = plus(times(plus(times(g, self._steps), q), self.form.per), const(h, INDEX))
        return vector_index(plus(times(k, self.form.width), const(j * self.form.lanes, INDEX)), self.form.lanes)

    def _scaled_group(self, g: PrimVar) -> Stmt:
        q = PrimVar("q", INDEX)
        step: list[Stmt] = []
        for h in range(self.form.per):
            for j in range(self.form.vectors):
                value = BufferLoad(self.values, (self._value_at(g, q, h, j),))
                step.append(self._put(self.line, 0, j, value))
            step += self._each(lambda i, j, h=h: self._add_scaled(g, q, h, i, j))  # type: ignore[misc]
        return For(q, 0, self._steps, sequence(step))
