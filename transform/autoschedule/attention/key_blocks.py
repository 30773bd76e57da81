"""Attention: a chain of two products with a softmax between them, over blocks of rows and of keys.

    c[s, t] = q[s, :] . k[t, :]                   for blocks of keys:  k, transposed, and v copied side by side
    x[s, t] = anything of c[s, t]                 for blocks of rows:
    m[s]    = max(x[s, :])                            m, l, y = -inf, 0, 0
    p[s, t] = exp(x[s, t] - m[s])                     for blocks of keys:
    l[s]    = sum(p[s, :])                                x[s, t] = anything of q[s, :] . k[t, :]
    y[s, d] = p[s, :] . v[:, d]                           n[s] = max(m[s], max(x[s, :]))
                                                          f[s] = exp(m[s] - n[s]);  m[s] = n[s]
                                                          p[s, t] = exp(x[s, t] - n[s])
                                                          l[s] = l[s] * f[s] + sum(p[s, :])
                                                          y[s, d] = y[s, d] * f[s] + p[s, :] . v[:, d]

Partial sums are scaled to the maximum so far (online softmax), so that scores are never stored for more than a block.
Probabilities that are divided by l before the second product are divided by what l is so far, and y is scaled by the
quotient of both. Keys and values are copied once for all rows, into float types that vectors sum in. Where instructions
over matrices take what they are stored in, they stay as they are: scores are sums of the same products then, and
probabilities are rounded to that type for the second product (not for l), as oneDNN does it.

Masked scores (-inf) have probability 0. While a row has seen nothing else, its m is -inf; where the kernel takes
exp(x - m) as it is, such a row is nan in the end, as it would be at once. Keys that a condition on the positions
(`mask_bounds`: causal masks, windows) masks for all rows of a block are left out: those behind the last visible one
one by one, those before the first one in whole blocks. Not so where a value is not finite: 0 * nan and 0 * inf are nan,
and belong to the sum.

Source: Dao et al., FlashAttention, 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from weft.dtypes import storage
from weft.ir import FrozenMap, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.autoschedule.attention.mask_bounds import mask_bounds_of
from weft.transform.autoschedule.attention.match import Attention, Role, factors_of, other_variable
from weft.transform.autoschedule.rules.axes import Chains
from weft.transform.autoschedule.rules.loops import CHAIN, INDEX, block_nest, plus, times, vector_loop
from weft.transform.autoschedule.rules.strides import loads_in, uses

__all__ = ["KeyBlocks", "ceil_div", "narrow_type", "total_nest"]


class KeyBlocks:
    """Keys and values in blocks: their sizes, their copies, the loop over them."""

    def __init__(self, found: Attention, loops: Sequence[PrimVar], size: Chains) -> None:
        self.found, self.loops = found, loops
        self.line_bytes = size.machine.line_bytes
        self.mask_bounds = mask_bounds_of(found)
        # Smaller blocks where some are skipped: those that a bound of the mask goes through are done whole.
        skips = self.mask_bounds is not None and bool(self.mask_bounds.starts)
        self.size = _block_of_keys(found.keys, max(1, size.keys // 2) if skips else size.keys)
        self.dtype = found.roles[0].nest.store.buffer.dtype
        self.value_size = self._extent("product", self.variable("product"))
        (self.head_size,) = (found.roles[0].nest.extents[var] for var in found.roles[0].nest.reduction)
        blocks = ceil_div(found.keys, self.size)
        self.blocks = blocks
        self.narrow = narrow_type(found, size)
        self.stored = self.narrow or self.dtype  # of copies
        self.value = Buffer("values", (blocks, self.size, self._padded(self.value_size)), self.stored)
        self.checks, self.totals = (self._check_buffers(size) for size in (blocks, 1))
        rows, columns = size.tile(self.dtype)
        self.tile = rows if self._ignores(lambda role: found.row.variables[role.number]) else 1
        self.columns = columns if self._ignores(lambda role: role.key) else 1
        self.padded_size = self._padded(-(-self.size // self.columns) * self.columns)
        self.key = Buffer("keys", (blocks, self.head_size, self.padded_size), self.stored)

    # Sizes and places

    def as_stored(self, value: PrimExpr) -> PrimExpr:
        """A factor of a product in the type of its copy: where that is narrow, what was converted."""
        return value.value if self.narrow is not None and isinstance(value, Cast) else value

    def widened(self, value: PrimExpr) -> PrimExpr:
        """An element of a copy in the type that is summed in."""
        return value if value.dtype == self.dtype else Cast(self.dtype, value)

    def _padded(self, extent: Extent) -> Extent:
        """The elements from one row of a copy to the next: an odd number of cache lines, so that columns spread over
        all of the cache."""
        if not isinstance(extent, int):
            return extent
        line = self.line_bytes // storage(self.dtype).itemsize
        return (-(-extent // line) | 1) * line

    def variable(self, name: str) -> PrimVar:
        """The variable of a nest that is none of the axes."""
        role = self.found.get(name)
        assert role is not None
        var = other_variable(role.nest, role.number, (*self.found.outer, self.found.row))
        assert var is not None
        return var

    def _extent(self, name: str, var: PrimVar) -> Extent:
        role = self.found.get(name)
        assert role is not None
        return role.nest.extents[var]

    def outer_values(self, number: int) -> dict[PrimVar, PrimExpr]:
        """The loops outside for the outer variables of a nest."""
        return {axis.variables[number]: loop for axis, loop in zip(self.found.outer, self.loops, strict=True)}

    def _ignores(self, variable: Callable[[Role], PrimVar | None]) -> bool:
        """Whether maps of scores use an axis for nothing but scores, so that they may go beyond its end."""
        for role in self.found.roles:
            var = variable(role)
            loads = [load for load in loads_in(role.nest.store.value) if load.buffer not in self.found.key_axes]
            if role.name != "score_map" or var is None:
                continue
            if any(uses(x, var) for load in loads for x in load.indices):
                return False
        return True

    def columns_of(self, count: Extent) -> Extent:
        """Columns of products with so many keys: whole tiles, where their number is not known."""
        if isinstance(count, int) or self.columns == 1:
            return count
        return binary("mul", as_expr(ceil_div(count, self.columns), INDEX), const(self.columns, INDEX))

    def over_keys(self, body: Callable[[PrimVar, PrimExpr, Extent], Stmt], keys: Extent | None = None) -> Stmt:
        """A loop over the blocks of keys, of so many of them as are given: `body(block, first key, how many)`."""
        index, extent = PrimVar("key_block", INDEX), self.found.keys if keys is None else keys
        start = as_expr(times(index, self.size), INDEX)
        count: Extent = self.size
        if not isinstance(extent, int) or extent % self.size:
            count = binary("min", binary("sub", as_expr(extent, INDEX), start), const(self.size, INDEX))
        blocks = ceil_div(extent, self.size)
        return For(index, 0, blocks, body(index, start, count), annotations=FrozenMap({CHAIN: True}))

    # Copies

    def copies(self, block: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        """The copies of a block of keys and of its values."""
        key, k = PrimVar("vt", INDEX), PrimVar("vk", INDEX)
        scores, product = self.found.get("scores"), self.found.get("product")
        assert scores is not None
        assert product is not None
        assert scores.key is not None
        assert product.key is not None
        here = {scores.key: plus(start, key), scores.nest.reduction[0]: k, **self.outer_values(0)}
        value = self.as_stored(substitute(factors_of(self.found, "scores")[1], here))
        store = BufferStore(self.key, value, (block, k, key))
        parts = [block_nest("keys", [(key, count), (k, self.head_size)], [], store)]
        if self.columns > 1 and self._has_remainder(count):
            parts.insert(0, self._zeros(block, count))
        row, d = PrimVar("vt", INDEX), PrimVar("vd", INDEX)
        here = {product.key: plus(start, row), self.variable("product"): d, **self.outer_values(product.number)}
        value = self.as_stored(substitute(factors_of(self.found, "product")[1], here))
        copy = BufferStore(self.value, value, (block, row, d))
        parts.append(block_nest("values", [(row, count), (d, self.value_size)], [], copy))
        parts.extend(self._checks(block, count))
        return SeqStmt(tuple(parts))

    def _has_remainder(self, count: Extent) -> bool:
        """Whether tiles of keys may read beyond a block's: those of a mask are any number of it."""
        if not isinstance(count, int):
            return True
        masked = self.mask_bounds is not None and bool(self.mask_bounds.ends)
        return masked and count % self.columns > 0

    def _zeros(self, block: PrimVar, count: Extent) -> Stmt:
        """Zeros in the last tile of keys, where that is not full."""
        k, columns = PrimVar("k", INDEX), const(self.columns, INDEX)
        done = times(binary("floordiv", as_expr(count, INDEX), columns), self.columns)
        zero = const(0.0, self.stored)
        row = vector_loop(done, self.columns, lambda j: BufferStore(self.key, zero, (block, k, j)))
        clear = For(k, 0, self.head_size, row)
        rest = binary("floormod", as_expr(count, INDEX), columns)
        return IfThenElse(binary("gt", rest, const(0, INDEX)), clear, None)

    def _checks(self, block: PrimVar, count: Extent) -> Iterator[Stmt]:
        """What hidden keys of a block may be left out by: 0 where all values are finite (else nan), squares of keys."""
        if not self.checks:
            return
        row, d, zero = PrimVar("vt", INDEX), PrimVar("vd", INDEX), const(0.0, self.dtype)
        term = binary("mul", self.widened(BufferLoad(self.value, (block, row, d))), zero)
        yield total_nest(self.checks[0], block, [(row, count), (d, self.value_size)], term)
        for squares in self.checks[1:]:
            row, k = PrimVar("vt", INDEX), PrimVar("vk", INDEX)
            load = self.widened(BufferLoad(self.key, (block, k, row)))
            yield total_nest(squares, block, [(k, self.head_size), (row, count)], binary("mul", load, load))

    def _check_buffers(self, size: Extent) -> tuple[Buffer, ...]:
        """What `_checks` and `total_checks` are kept in."""
        if self.mask_bounds is None:
            return ()
        names = ("nonfinite", "key_squares") if self.mask_bounds.added else ("nonfinite",)
        return tuple(Buffer(name, (size,), self.dtype) for name in names)

    def total_checks(self) -> Iterator[Stmt]:
        """The checks of all blocks."""
        for total, checks in zip(self.totals, self.checks, strict=True):
            block = PrimVar("block", INDEX)
            yield total_nest(total, const(0, INDEX), [(block, self.blocks)], BufferLoad(checks, (block,)))


def narrow_type(found: Attention, size: Chains) -> str | None:
    """The type that the operands of both products are stored in, where instructions over matrices take it as it is and
    sizes are known to fill them; None elsewhere. Probabilities are rounded to it."""
    if not size.knobs.narrow_attention:
        return None
    factors = (*factors_of(found, "scores"), factors_of(found, "product")[1])
    types = {x.value.dtype if isinstance(x, Cast) and isinstance(x.value, BufferLoad) else None for x in factors}
    dtype = found.roles[0].nest.store.buffer.dtype
    (only,) = types if len(types) == 1 else (None,)
    row = next((row for row in size.machine.dot_products if row.is_matrix and row.types == (only, only, dtype)), None)
    if only is None or row is None:
        return None
    (head_size,) = (found.roles[0].nest.extents[var] for var in found.roles[0].nest.reduction)
    sizes = (found.row.extent, found.keys, head_size)
    least = (2 * row.shape[0], 2 * row.terms, 2 * row.terms)
    fills = all(isinstance(extent, int) and extent >= low for extent, low in zip(sizes, least, strict=True))
    return only if fills else None


def total_nest(buffer: Buffer, at: PrimExpr, over: Sequence[tuple[PrimVar, Extent]], term: PrimExpr) -> Stmt:
    """The sum of terms at a place of a buffer."""
    store = BufferStore(buffer, binary("add", BufferLoad(buffer, (at,)), term), (at,))
    return block_nest(buffer.name, [], list(over), store, BufferStore(buffer, const(0.0, buffer.dtype), (at,)))


def ceil_div(extent: Extent, size: int) -> Extent:
    """extent / size, rounded up."""
    if isinstance(extent, int):
        return -(-extent // size)
    return binary("floordiv", plus(extent, size - 1), const(size, INDEX))


def _block_of_keys(extent: Extent, limit: int) -> int:
    """The keys of a block: a known number in even blocks, of whole vectors where that is possible."""
    if not isinstance(extent, int):
        return limit
    if extent <= limit:
        return extent
    even = next((size for size in range(limit, limit // 2, -16) if extent % size == 0), 0)
    blocks = -(-extent // limit)
    return even or min(limit, -(-extent // (blocks * 16)) * 16)
