"""Attention, built: blocks of rows over blocks of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.ir import FrozenMap, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const, unary
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.transform.autoschedule.attention.key_blocks import KeyBlocks
from weft.transform.autoschedule.attention.match import INFINITY, Attention, factors_of
from weft.transform.autoschedule.attention.online_softmax import OnlineSoftmax
from weft.transform.autoschedule.attention.row_block import RowBlock
from weft.transform.autoschedule.attention.visible_keys import VisibleKeys
from weft.transform.autoschedule.rules.axes import Chains, over_rows
from weft.transform.autoschedule.rules.loops import CHAIN, INDEX, block_nest, minus, plus
from weft.transform.fusion.fuse_tir import copied

__all__ = ["build_attention"]


def build_attention(found: Attention, loops: Sequence[PrimVar], size: Chains) -> Stmt:
    """What is done for one value of the outer loops: copies of keys and values, then the blocks of rows.

    Each statement is a nest that other rules turn into tiles and vectors.
    """
    whole = KeyBlocks(found, loops, size)
    buffers = (whole.key, whole.value, *whole.checks, *whole.totals)
    rows = over_rows(found.row, size.rows, lambda start, count, bound: _rows(whole, start, count, bound))
    return SeqStmt((*map(AllocBuffer, buffers), whole.over_keys(whole.copies), *whole.total_checks(), *rows))


def _rows(whole: KeyBlocks, start: PrimExpr, count: Extent, size: int) -> Stmt:
    tile = 1 if isinstance(count, int) else whole.tile
    rows = _Rows(RowBlock(whole, start, count, size, tile))
    stmt = rows.build()
    if tile > 1 and rows.softmax.uses_several:
        return _Rows(RowBlock(whole, start, count, size, 1)).build()
    return stmt


class _Rows:
    """One block of rows over all keys."""

    def __init__(self, block: RowBlock) -> None:
        self.block, self.softmax = block, OnlineSoftmax(block)

    def build(self) -> Stmt:
        """Start, all blocks of keys, the nests after the products."""
        block = self.block
        k, row = PrimVar("vk", INDEX), PrimVar("vs", INDEX)
        nest, whole = block.role("scores").nest, block.key_blocks
        here = {block.found.row.variables[0]: plus(block.start, row), nest.reduction[0]: k, **whole.outer_values(0)}
        value = whole.as_stored(substitute(factors_of(block.found, "scores")[0], here))
        copy = BufferStore(block.query, value, (row, k))
        body: list[Stmt] = [block_nest("queries", [(row, block.count), (k, whole.head_size)], [], copy)]
        if block.tile > 1:
            beyond, k = PrimVar("beyond", INDEX), PrimVar("vk", INDEX)
            zero = BufferStore(block.query, const(0.0, whole.stored), (plus(block.count, beyond), k))
            fill, rest = block_nest("queries", [(k, whole.head_size)], [], zero), minus(block.padded, block.count)
            body.append(For(beyond, 0, rest, fill, annotations=FrozenMap({CHAIN: True})))
        body.extend(self._over_visible_keys())
        body.extend(self._after())
        used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
        buffers = (block.query, block.squares, block.accumulators, *block.row_buffers.values())
        kept = [buffer for buffer in buffers if buffer in used]
        return SeqStmt((*map(AllocBuffer, sorted(kept, key=lambda buffer: buffer.name)), *body))

    def _over_keys(self) -> Stmt:
        """The keys, at once where they are few."""
        block, whole = self.block, self.block.key_blocks
        if isinstance(block.keys, int):
            return self.softmax.all_keys(whole.size) if whole.blocks == 1 else self._blocks_of_keys()
        if whole.blocks == 1:
            return self.softmax.all_keys(block.keys)
        keys = as_expr(block.keys, INDEX)
        few = binary("le", keys, const(whole.size, INDEX))
        count = binary("min", keys, const(whole.size, INDEX))
        at_once = copied(self.softmax.all_keys(count), {}, lambda name: name)
        return IfThenElse(few, at_once, self._blocks_of_keys())

    def _over_visible_keys(self) -> Iterator[Stmt]:
        """The keys up to the last one that the mask shows to a row; all of them again where hidden ones count."""
        visible = VisibleKeys(self.block)
        yield from visible.squares()
        again = PrimVar("again", INDEX)
        end = visible.end(again)
        if end is None:
            yield self._over_keys()
            return
        self.block.keys, first = end, binary("eq", again, const(0, INDEX))
        needed = IfThenElse(binary("or", first, unary("not", visible.vanish())), self._over_keys(), None)
        yield For(again, 0, 2, needed, annotations=FrozenMap({CHAIN: True}))

    def _fully_masked(self) -> Iterator[Stmt]:
        """Rows whose scores are all -inf: nan, where there was a key at all."""
        block = self.block
        nan, extent = const(float("nan"), block.key_blocks.dtype), block.found.keys

        def corrected(value: PrimExpr, row_max: PrimExpr) -> PrimExpr:
            test = binary("eq", row_max, const(-INFINITY, block.key_blocks.dtype))
            test = test if isinstance(extent, int) else binary("and", test, binary("gt", extent, const(0, INDEX)))
            return Select(test, nan, value)

        yield block.each_accumulator(
            lambda row, d: corrected(BufferLoad(block.accumulators, (row, d)), BufferLoad(block.row_max, (row,)))
        )
        yield block.each_row(block.row_sum, corrected, block.row_sum, block.row_max)

    def _after(self) -> Iterator[Stmt]:
        """The nests after the products; the results to where they belong, where others use them."""
        block = self.block
        product = block.role("product")
        buffers = {**block.row_buffers, block.target: block.accumulators}
        if block.target not in block.found.own:
            row, d = PrimVar("vs", INDEX), PrimVar("vd", INDEX)
            row_of, d_of = block.found.row.variables[product.number], block.key_blocks.variable("product")
            here = {row_of: plus(block.start, row), d_of: d, **block.key_blocks.outer_values(product.number)}
            indices = tuple(substitute(index, here) for index in product.nest.store.indices)
            value = BufferLoad(block.accumulators, (row, d))
            store = BufferStore(block.target, value, indices, span=product.nest.store.span)
            yield block_nest(block.target.name, [(row, block.count), (d, block.key_blocks.value_size)], [], store)
            buffers = block.row_buffers
        for role in block.found.roles:
            if role.name == "after":
                yield block.cut(role, buffers, None)

    def _visible_keys(self, number: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        """A block of keys, unless the mask hides it from all rows of the block."""
        body, seen = (
            self.softmax.some_keys(number, start, count),
            VisibleKeys(self.block).in_block(number, start, count),
        )
        return body if seen is None else IfThenElse(seen, body, None)

    def _blocks_of_keys(self) -> Stmt:
        """Chains of keys one after another."""
        block = self.block
        dtype = block.key_blocks.dtype
        body = [
            block.each_row(block.row_max, lambda: const(-INFINITY, dtype)),
            block.each_row(block.row_sum, lambda: const(0.0, dtype)),
            block.each_accumulator(lambda row, d: const(0.0, dtype), block.padded),
            block.key_blocks.over_keys(self._visible_keys, block.keys),
        ]
        return SeqStmt((*body, *(() if block.found.zeroes_masked else self._fully_masked())))
