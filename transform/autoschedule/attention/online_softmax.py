"""Online softmax: what a block of rows does with one block of keys.

Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018: maximum and sum in one pass, the sum scaled
whenever the maximum grows.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir import walk
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
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
                body.append(block.cut(role, {**block.small, **block.wide}, keys))
        return self._with_memory([*body, self._product(number, count, accumulates=False)])

    def some_keys(self, number: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        """One block of keys."""
        block = self.block
        body: list[Stmt] = [self._scores(number, count)]
        for role in block.found.roles:
            if role.name == "score_map":
                body.append(block.cut(role, {**block.small, **block.wide}, (start, count)))
        body.extend(self._update_row_max(count))
        body.extend(self._exponentials(start, count))
        body.append(block.each_sum(lambda row, d: binary(
            "mul", BufferLoad(block.sums, (row, d)), BufferLoad(block.factor, (row,))
        )))  # fmt: skip
        body.append(self._product(number, count))
        return self._with_memory(body)

    def _with_memory(self, body: list[Stmt]) -> Stmt:
        """The statements with the memory that they alone need."""
        block = self.block
        wide = sorted(block.wide.values(), key=lambda buffer: buffer.name)
        body = in_place(body, wide)
        used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
        self.uses_several = self.uses_several or sum(buffer in used for buffer in wide) > 1
        rows = {block.newest, block.reference, block.factor, block.part, block.scale, block.divisor}
        buffers = (*wide, *sorted(rows, key=lambda buffer: buffer.name))
        return SeqStmt((*(AllocBuffer(buffer) for buffer in buffers if buffer in used), *body))

    def _scores(self, number: PrimExpr, count: Extent) -> Stmt:
        block = self.block
        row, key, k = PrimVar("vs", INDEX), PrimVar("vt", INDEX), PrimVar("vk", INDEX)
        buffer = block.wide[block.role("scores").nest.store.buffer]
        at = block.place_in_wide(block.role("scores").nest.store.buffer, row, key)
        product = binary("mul", BufferLoad(block.query, (row, k)), BufferLoad(block.whole.key, (number, k, key)))
        store = BufferStore(buffer, binary("add", BufferLoad(buffer, at), product), at)
        init = BufferStore(buffer, const(0.0, buffer.dtype), at)
        columns = block.whole.columns_of(count)
        return block_nest(buffer.name, [(row, block.padded), (key, columns)], [(k, block.whole.terms)], store, init)

    def _update_row_max(self, count: Extent) -> Iterator[Stmt]:
        """The maxima so far, and what the sums shrink by."""
        block = self.block
        dtype, row, key = block.whole.dtype, PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        scores = scores_of(block.found)
        assert scores is not None
        load = BufferLoad(block.wide[scores], block.place_in_wide(scores, row, key))
        store = BufferStore(block.newest, binary("max", BufferLoad(block.newest, (row,)), load), (row,))
        init = BufferStore(block.newest, BufferLoad(block.row_max, (row,)), (row,))
        yield block_nest(block.newest.name, [(row, block.count)], [(key, count)], store, init)
        unseen = const(-INFINITY, dtype)
        if not block.found.hides:
            yield block.each_row(block.reference, lambda newest: Select(
                binary("eq", newest, unseen), const(0.0, dtype), newest
            ), block.newest)  # fmt: skip

        def factor(before: PrimExpr, reference: PrimExpr) -> PrimExpr:
            power = PrimCall("exp", (binary("sub", before, reference),), dtype)
            return Select(binary("eq", before, unseen), const(0.0, dtype), power) if block.found.hides else power

        yield block.each_row(block.factor, factor, block.row_max, block.reference)
        yield block.each_row(block.row_max, lambda newest: newest, block.newest)

    def _exponentials(self, start: PrimExpr, count: Extent) -> Iterator[Stmt]:
        """Exponentials and their sum; with probabilities, these and the scale of the sums before."""
        block = self.block
        dtype, row, key = block.whole.dtype, PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        exponentials, keys = block.role("exp"), (start, count)
        buffers = {**block.wide, block.role("row_max").nest.store.buffer: block.reference}
        yield block.cut(exponentials, buffers, keys)
        buffer = exponentials.nest.store.buffer
        load = BufferLoad(block.wide[buffer], block.place_in_wide(buffer, row, key))
        sums = BufferStore(block.part, binary("add", BufferLoad(block.part, (row,)), load), (row,))
        init = BufferStore(block.part, const(0.0, dtype), (row,))
        yield block_nest(block.part.name, [(row, block.count)], [(key, count)], sums, init)
        probs = block.found.get("probs")
        if probs is None:
            yield block.each_row(block.row_sum, lambda row_sum, factor, part: binary(
                "add", binary("mul", row_sum, factor), part
            ), block.row_sum, block.factor, block.part)  # fmt: skip
            return
        yield block.each_row(block.scale, lambda a, b: binary("mul", a, b), block.row_sum, block.factor)
        yield block.each_row(block.row_sum, lambda a, b: binary("add", a, b), block.scale, block.part)
        one, zero = const(1.0, dtype), const(0.0, dtype)
        yield block.each_row(block.divisor, lambda a: Select(binary("eq", a, zero), one, a), block.row_sum)
        yield block.each_row(block.factor, lambda a, b: binary("div", a, b), block.scale, block.divisor)
        buffers = {**block.wide, block.role("row_sum").nest.store.buffer: block.divisor}
        yield block.cut(probs, buffers, keys)

    def _product(self, number: PrimExpr, count: Extent, accumulates: bool = True) -> Stmt:
        """The sums with the values of a block of keys added to them."""
        block = self.block
        role = block.found.get("probs") or block.role("exp")
        row, d, key = PrimVar("vs", INDEX), PrimVar("vd", INDEX), PrimVar("vt", INDEX)
        buffer = role.nest.store.buffer
        prob = BufferLoad(block.wide[buffer], block.place_in_wide(buffer, row, key))
        product = binary("mul", prob, BufferLoad(block.whole.value, (number, key, d)))
        sums = BufferLoad(block.sums, (row, d))
        store = BufferStore(block.sums, binary("add", sums, product), (row, d))
        init = None if accumulates else BufferStore(block.sums, const(0.0, block.whole.dtype), (row, d))
        return block_nest(block.sums.name, [(row, block.padded), (d, block.whole.depth)], [(key, count)], store, init)
