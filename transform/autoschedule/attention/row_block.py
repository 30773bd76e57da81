"""The memory of one block of rows of attention, and small nests over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.autoschedule.attention.key_blocks import KeyBlocks, ceil_div
from weft.transform.autoschedule.attention.match import Role
from weft.transform.autoschedule.rules.axes import Cut, in_part, small_buffer
from weft.transform.autoschedule.rules.loops import INDEX, block_nest

__all__ = ["RowBlock"]


class RowBlock:
    """One block of rows: `count` from `start` on, `size` at most.

    Products of an unknown number of rows go in whole tiles: what stands beyond the last row are zeros. `row_buffers`
    have a value for each row, `score_buffers` one for each key of it; `keys` are those that are looked at.
    """

    def __init__(self, whole: KeyBlocks, start: PrimExpr, count: Extent, size: int, tile: int) -> None:
        self.key_blocks, self.found, self.start, self.count, self.tile = whole, whole.found, start, count, tile
        found, dtype = whole.found, whole.dtype
        self.padded: Extent = count
        if tile > 1:
            self.padded = binary("mul", as_expr(ceil_div(count, tile), INDEX), const(tile, INDEX))
            size = -(-size // tile) * tile
        self.query = Buffer("queries", (size, whole.head_size), whole.stored)
        self.rounded_probs = Buffer("rounded_probs", (size, whole.padded_size), whole.stored)
        self.squares = Buffer("query_squares", (1,), dtype)
        self.keys: Extent = found.keys
        self.row_buffers = {
            buffer: small_buffer(buffer, found.outer, [(found.row.places[buffer], size)])
            for buffer in found.own
            if buffer not in found.key_axes
        }
        self.score_buffers = {
            buffer: small_buffer(buffer, found.outer, [(found.row.places[buffer], size), (place, whole.padded_size)])
            for buffer, place in found.key_axes.items()
        }
        product = self.role("product")
        self.target = product.nest.store.buffer
        self.accumulators = Buffer(self.target.name, (size, whole.value_size), dtype)
        per_row = (self.role(name).nest.store.buffer for name in ("row_max", "row_sum"))
        self.row_max, self.row_sum = (self.row_buffers[buffer] for buffer in per_row)
        self.new_max, self.correction, self.block_sum, self.scale, self.divisor = (
            Buffer(name, (size,), dtype) for name in ("new_max", "correction", "block_sum", "scale", "divisor")
        )
        self.finite_max = self.new_max if found.zeroes_masked else Buffer("finite_max", (size,), dtype)

    def role(self, name: str) -> Role:
        """The nest with a role that is there."""
        role = self.found.get(name)
        assert role is not None
        return role

    def each_row(self, buffer: Buffer, value: Callable[..., PrimExpr], *operands: Buffer) -> Stmt:
        """A value for each row, made of those of operands."""
        row = PrimVar("vs", INDEX)
        store = BufferStore(buffer, value(*(BufferLoad(operand, (row,)) for operand in operands)), (row,))
        return block_nest(buffer.name, [(row, self.count)], [], store)

    def each_accumulator(self, value: Callable[[PrimVar, PrimVar], PrimExpr], count: Extent | None = None) -> Stmt:
        """A value for each accumulator of each row."""
        row, d = PrimVar("vs", INDEX), PrimVar("vd", INDEX)
        store = BufferStore(self.accumulators, value(row, d), (row, d))
        rows = self.count if count is None else count
        return block_nest(self.accumulators.name, [(row, rows), (d, self.key_blocks.value_size)], [], store)

    def place_of_score(self, buffer: Buffer, row: PrimExpr, key: PrimExpr) -> tuple[PrimExpr, ...]:
        """The place of a row and a key in a buffer that has both."""
        first = self.found.row.places[buffer] < self.found.key_axes[buffer]
        return (row, key) if first else (key, row)

    def cut(self, role: Role, buffers: Mapping[Buffer, Buffer], keys: tuple[PrimExpr, Extent] | None) -> Stmt:
        """A nest of the chain on this block."""
        count = self.padded if role.name == "score_map" else self.count
        cuts = [Cut(self.found.row.variables[role.number], self.found.row.places, self.start, count)]
        if keys is not None and role.key is not None:
            start, columns = keys
            columns = self.key_blocks.columns_of(columns) if role.name == "score_map" else columns
            cuts.append(Cut(role.key, self.found.key_axes, start, columns))
        return in_part(role.nest, self.key_blocks.outer_values(role.number), cuts, buffers, self.found.outer)
