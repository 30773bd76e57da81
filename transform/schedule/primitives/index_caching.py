"""The primitive cache_index: indices that are computed are computed once, into a buffer."""

from __future__ import annotations

from weft.ir import replace, rewrite, structural_equal, substitute, walk
from weft.ir.dim import fresh_name
from weft.ir.kernel.prim_dim import symbol_names
from weft.ir.node import Node
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    IntImm,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.buffers import (
    with_allocation,
)
from weft.transform.schedule.copies import fresh_variable
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.caching import nest_over
from weft.transform.schedule.tree import (
    Tree,
    loads_in,
    sequence,
    stores_in,
    without_regions,
)

__all__ = ["IndexCaching"]


class IndexCaching(ScheduleCore):
    """Buffers of computed indices."""

    @primitive
    def cache_index(self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0) -> list[BlockRV]:
        """Compute the indices of a block's accesses before it, into buffers over those of its variables that they need.

        Indices count that are computed by more than additions, of the block's variables and symbols alone, and stand
        more than `cse_thresh` times in the block. Gives the blocks that compute them; none where nothing is to be done.
        """
        tree, found = self._block(block)
        place = tree.place_of(found)
        point = Point.inside(tree, found)
        names: list[str] = []
        nests: list[Stmt] = []
        caches: list[tuple[PrimExpr, BufferLoad]] = []
        taken = set(tree.blocks)
        for expr in _computed_indices(tree, found, point, cse_thresh):
            items = [item for item in found.iter_vars if item.var in variables_in(expr)]
            shape = tuple(item.extent for item in items)
            name = fresh_name(f"{found.name}_index", taken)
            taken.add(name)
            cache = Buffer(name, shape, expr.dtype, storage_scope)
            fresh = [replace(item, var=fresh_variable(item.var), kind="spatial") for item in items]
            own = {old.var: new.var for old, new in zip(items, fresh, strict=True)}
            store = BufferStore(cache, substitute(expr, own), tuple(item.var for item in fresh))
            names.append(name)
            nests.append(nest_over(name, fresh, store))
            caches.append((expr, BufferLoad(cache, tuple(item.var for item in items))))
        if not caches:
            return []

        def cached(node: Node) -> Node | None:
            if not isinstance(node, PrimExpr):
                return None
            return next((load for expr, load in caches if expr is node or structural_equal(expr, node)), None)

        changed = without_regions(rewrite(found, pre=cached))
        small = Tree("", replace(tree.function, body=place)).replaced((found, changed)).body
        function = tree.replaced((place, sequence((*nests, small))))
        for _, load in reversed(caches):
            function = with_allocation(function, tree.scope(place), load.buffer)
        self._set(tree, function)
        return [self._block_handle(tree.name, name) for name in names]


def _computed_indices(tree: Tree, block: Block, point: Point, least: int) -> list[PrimExpr]:
    """The index expressions of a block that are worth a buffer, each once, in the order of the code."""
    domains = {item.var for item in block.iter_vars if item.start == 0 and not variables_in(item.extent) - _fixed(tree)}
    known = domains | _fixed(tree)
    counts: list[tuple[PrimExpr, int]] = []
    for access in (*loads_in(block.body), *stores_in(block.body)):
        for index in access.indices:
            plain = variables_in(index) <= known and variables_in(index) & domains and not loads_in(index)
            if not plain or not _is_work(index, point):
                continue
            at = next((i for i, (expr, _) in enumerate(counts) if structural_equal(expr, index)), None)
            if at is None:
                counts.append((index, 1))
            else:
                counts[at] = (counts[at][0], counts[at][1] + 1)
    return [expr for expr, count in counts if count > least]


def _fixed(tree: Tree) -> set[PrimVar]:
    return set(symbol_names(tree.function))


def _is_work(index: PrimExpr, point: Point) -> bool:
    """Whether an index takes more than additions, and can be computed for all values of its variables."""
    parts = [part for part in walk(index) if isinstance(part, PrimExpr)]
    divisors = [part.b for part in parts if isinstance(part, Binary) and part.kind in ("floordiv", "floormod")]
    kinds = {part.kind for part in parts if isinstance(part, Binary)}
    if any(not isinstance(part, (Binary, PrimVar, IntImm, Cast)) for part in parts) or kinds - _ARITHMETIC:
        return False
    return bool(kinds - {"add", "sub"}) and all(point.at_most(1, point.dim(divisor)) for divisor in divisors)


_ARITHMETIC = {"add", "sub", "mul", "floordiv", "floormod", "min", "max"}
