"""Online softmax: what a block of rows does with one block of keys.

Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018: maximum and sum in one pass, the sum scaled
whenever the maximum grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.ir import walk
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.transform.autoschedule.attention.match import INFINITY, scores_of
from weft.transform.autoschedule.attention.row_block import RowBlock
from weft.transform.autoschedule.rules.axes import in_place
from weft.transform.autoschedule.rules.loops import INDEX, block_nest

__all__ = ["OnlineSoftmax"]


class OnlineSoftmax:
    """The steps of one block of rows; `uses_several` says whether several buffers have a value for each key."""

    def __init__(self, block: RowBlock) -> None:
        self.block, self.uses_several = block, False

    def all_keys(self, count: Extent) -> Stmt:
        """The only block of keys: nothing accumulates."""
        block = self.block
        number, keys = const(0, INDEX), (const(0, INDEX), count)
        body: list[Stmt] = [self._scores(number, count)]
        for role in block.found.roles:
            if role.name in ("score_map", "row_max", "exp", "row_sum", "probs"):
                body.append(block.cut(role, {**block.row_buffers, **block.score_buffers}, keys))
        return self._with_memory([*body, self._product(number, count, accumulates=False)])

    def some_keys(self, number: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        """One block of keys."""
        block = self.block
        body: list[Stmt] = [self._scores(number, count)]
        for role in block.found.roles:
            if role.name == "score_map":
                body.append(block.cut(role, {**block.row_buffers, **block.score_buffers}, (start, count)))
        body.extend(self._update_row_max(count))
        body.extend(self._exponentials(start, count))
        body.append(
            block.each_accumulator(
                lambda row, d: binary(
                    "mul", BufferLoad(block.accumulators, (row, d)), BufferLoad(block.correction, (row,))
                )
            )
        )
        body.append(self._product(number, count))
        return self._with_memory(body)

    def _with_memory(self, body: list[Stmt]) -> Stmt:
        """The statements with the memory that they alone need."""
        block = self.block
        score_buffers = sorted(block.score_buffers.values(), key=lambda buffer: buffer.name)
        body = in_place(body, score_buffers)
        used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
        self.uses_several = self.uses_several or sum(buffer in used for buffer in score_buffers) > 1
        rows = {block.new_max, block.finite_max, block.correction, block.block_sum, block.scale, block.divisor}
        buffers = (*score_buffers, block.rounded_probs, *sorted(rows, key=lambda buffer: buffer.name))
        return SeqStmt((*(AllocBuffer(buffer) for buffer in buffers if buffer in used), *body))

    def _scores(self, number: PrimExpr, count: Extent) -> Stmt:
        block = self.block
        row, key, k = PrimVar("vs", INDEX), PrimVar("vt", INDEX), PrimVar("vk", INDEX)
        buffer = block.score_buffers[block.role("scores").nest.store.buffer]
        at = block.place_of_score(block.role("scores").nest.store.buffer, row, key)
        whole = block.key_blocks
        query, key_of = BufferLoad(block.query, (row, k)), BufferLoad(whole.key, (number, k, key))
        product = binary("mul", whole.widened(query), whole.widened(key_of))
        store = BufferStore(buffer, binary("add", BufferLoad(buffer, at), product), at)
        init = BufferStore(buffer, const(0.0, buffer.dtype), at)
        columns = block.key_blocks.columns_of(count)
        reduction = [(k, block.key_blocks.head_size)]
        return block_nest(buffer.name, [(row, block.padded), (key, columns)], reduction, store, init)

    def _update_row_max(self, count: Extent) -> Iterator[Stmt]:
        """The maxima so far, and the correction of the partial sums."""
        block = self.block
        dtype, row, key = block.key_blocks.dtype, PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        scores = scores_of(block.found)
        assert scores is not None
        load = BufferLoad(block.score_buffers[scores], block.place_of_score(scores, row, key))
        store = BufferStore(block.new_max, binary("max", BufferLoad(block.new_max, (row,)), load), (row,))
        init = BufferStore(block.new_max, BufferLoad(block.row_max, (row,)), (row,))
        yield block_nest(block.new_max.name, [(row, block.count)], [(key, count)], store, init)
        lowest = const(-INFINITY, dtype)
        if not block.found.zeroes_masked:
            yield block.each_row(
                block.finite_max,
                lambda new_max: Select(binary("eq", new_max, lowest), const(0.0, dtype), new_max),
                block.new_max,
            )

        def correction(before: PrimExpr, finite_max: PrimExpr) -> PrimExpr:
            power = PrimCall("exp", (binary("sub", before, finite_max),), dtype)
            if not block.found.zeroes_masked:
                return power
            return Select(binary("eq", before, lowest), const(0.0, dtype), power)

        yield block.each_row(block.correction, correction, block.row_max, block.finite_max)
        yield block.each_row(block.row_max, lambda new_max: new_max, block.new_max)

    def _exponentials(self, start: PrimExpr, count: Extent) -> Iterator[Stmt]:
        """Exponentials and their sum; with probabilities, these and the scale of the sums before."""
        block = self.block
        dtype, row, key = block.key_blocks.dtype, PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        exponentials, keys = block.role("exp"), (start, count)
        buffers = {**block.score_buffers, block.role("row_max").nest.store.buffer: block.finite_max}
        yield block.cut(exponentials, buffers, keys)
        buffer = exponentials.nest.store.buffer
        load = BufferLoad(block.score_buffers[buffer], block.place_of_score(buffer, row, key))
        total = BufferStore(block.block_sum, binary("add", BufferLoad(block.block_sum, (row,)), load), (row,))
        init = BufferStore(block.block_sum, const(0.0, dtype), (row,))
        yield block_nest(block.block_sum.name, [(row, block.count)], [(key, count)], total, init)
        probs = block.found.get("probs")
        if probs is None:
            yield block.each_row(
                block.row_sum,
                lambda row_sum, correction, part: binary("add", binary("mul", row_sum, correction), part),
                block.row_sum,
                block.correction,
                block.block_sum,
            )
            return
        yield block.each_row(block.scale, lambda a, b: binary("mul", a, b), block.row_sum, block.correction)
        yield block.each_row(block.row_sum, lambda a, b: binary("add", a, b), block.scale, block.block_sum)
        one, zero = const(1.0, dtype), const(0.0, dtype)
        yield block.each_row(block.divisor, lambda a: Select(binary("eq", a, zero), one, a), block.row_sum)
        yield block.each_row(block.correction, lambda a, b: binary("div", a, b), block.scale, block.divisor)
        buffers = {**block.score_buffers, block.role("row_sum").nest.store.buffer: block.divisor}
        yield block.cut(probs, buffers, keys)

    def _product(self, number: PrimExpr, count: Extent, accumulates: bool = True) -> Stmt:
        """The partial sums with the values of a block of keys added to them."""
        block, whole = self.block, self.block.key_blocks
        probs = (block.found.get("probs") or block.role("exp")).nest.store.buffer

        def prob(row: PrimExpr, key: PrimExpr) -> BufferLoad:
            return BufferLoad(block.score_buffers[probs], block.place_of_score(probs, row, key))

        if whole.narrow is None:
            return self._added(number, count, prob, accumulates)
        rounded = block.rounded_probs

        def of_rounded(row: PrimExpr, key: PrimExpr) -> PrimExpr:
            return whole.widened(BufferLoad(rounded, (row, key)))

        return SeqStmt((self._narrowed(rounded, count, prob), self._added(number, count, of_rounded, accumulates)))

    def _narrowed(self, buffer: Buffer, count: Extent, value: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> Stmt:
        """A value for each row and key, rounded."""
        row, key = PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        store = BufferStore(buffer, Cast(buffer.dtype, value(row, key)), (row, key))
        return block_nest(buffer.name, [(row, self.block.padded), (key, count)], [], store)

    def _added(
        self,
        number: PrimExpr,
        count: Extent,
        prob: Callable[[PrimExpr, PrimExpr], PrimExpr],
        accumulates: bool,
    ) -> Stmt:
        """The sums of probabilities times the values of a block of keys, added to those that there are."""
        block, whole = self.block, self.block.key_blocks
        row, d, key = PrimVar("vs", INDEX), PrimVar("vd", INDEX), PrimVar("vt", INDEX)
        product = binary("mul", prob(row, key), whole.widened(BufferLoad(whole.value, (number, key, d))))
        total = BufferLoad(block.accumulators, (row, d))
        store = BufferStore(block.accumulators, binary("add", total, product), (row, d))
        init = None if accumulates else BufferStore(block.accumulators, const(0.0, whole.dtype), (row, d))
        spatial = [(row, block.padded), (d, whole.value_size)]
        return block_nest(block.accumulators.name, spatial, [(key, count)], store, init)
