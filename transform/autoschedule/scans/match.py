"""What a nest is whose elements use those before them along one axis.

    out[i, k] = T.if_then_else(k > 0, join(out[i, k - 1], x[i, k]), first)

`first` is the value at 0, `later` the one at any other place, in which `previous` stands for the element before. Where
that joins an element by an operation that may be grouped in any way, there is a `Join`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from weft import dtypes
from weft.ir import Node, rewrite, structural_equal, substitute
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import binary, const
from weft.ir.op.elementwise.binary import log_add_exp
from weft.ir.tensor import (
    Binary,
    Block,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import is_pure_value, same_extents
from weft.transform.autoschedule.rules.accumulators import IDENTITIES
from weft.transform.autoschedule.rules.strides import kinds_in, loads_in, same_place, uses

__all__ = ["Join", "Scan", "join_of", "scan_of", "start_of"]


@dataclass(frozen=True)
class Join:
    """An operation that may be grouped in any way, the value that changes nothing, and the element that is joined."""

    combine: Callable[[PrimExpr, PrimExpr], PrimExpr]
    identity: PrimExpr
    element: PrimExpr


@dataclass(frozen=True, eq=False)
class Scan:
    """One nest: its variables with extents, that of the axis, and what is stored where."""

    extents: dict[PrimVar, Extent]
    axis: PrimVar
    store: BufferStore
    first: PrimExpr
    later: PrimExpr
    previous: PrimVar
    kinds: tuple[str, ...]

    @property
    def spatial(self) -> list[PrimVar]:
        """The variables of the other axes."""
        return [var for var in self.extents if var is not self.axis]

    @property
    def loads(self) -> list[BufferLoad]:
        """What is read of other buffers."""
        return [*loads_in(self.first), *loads_in(self.later)]

    @property
    def before(self) -> BufferLoad:
        """The element before, as the nest reads it."""
        place = binary("sub", self.axis, const(1, self.axis.dtype))
        return BufferLoad(self.store.buffer, tuple(place if x is self.axis else x for x in self.store.indices))


def scan_of(stmt: Stmt) -> Scan | None:
    """The nest as a scan, or None."""
    loops, block = perfect_nest(stmt)
    if not isinstance(block, Block) or not _is_bare(block) or not all(map(_is_plain, loops)):
        return None
    by_loop = {item.value: item for item in block.iter_vars}
    if len(block.iter_vars) != len(loops) or set(by_loop) != {loop.loop_var for loop in loops}:
        return None
    items = [by_loop[loop.loop_var] for loop in loops]
    axes = [item.var for item in items if item.kind == "scan"]
    if len(axes) != 1 or not same_extents([item.extent for item in items], [loop.extent for loop in loops]):
        return None
    return _scan({item.var: item.extent for item in items}, axes[0], block.body)


def _is_bare(block: Block) -> bool:
    """Whether nothing else is attached to a block, whose axes are spatial or gone through in order."""
    if block.init or block.predicate is not None or block.alloc_buffers or block.match_buffers or block.annotations:
        return False
    return all(item.kind in ("spatial", "scan") and item.start == 0 for item in block.iter_vars)


def _is_plain(loop: For) -> bool:
    return loop.kind == "serial" and not loop.annotations and loop.start == 0 and loop.step in (None, 1)


def _scan(extents: dict[PrimVar, Extent], axis: PrimVar, store: Stmt) -> Scan | None:
    if not isinstance(store, BufferStore) or store.predicate is not None or not is_pure_value(store.value):
        return None
    if len(store.indices) != len(extents) or set(store.indices) != set(extents):
        return None
    previous = PrimVar("previous", store.buffer.dtype)
    found = Scan(extents, axis, store, store.value, store.value, previous, ())
    before = found.before

    def named(node: Node) -> Node | None:
        return previous if isinstance(node, BufferLoad) and same_place(node, before) else None

    first = _where(store.value, axis, positive=False)
    later = rewrite(_where(store.value, axis, positive=True), pre=named)
    kinds = kinds_in(first, later)
    reads_itself = any(load.buffer is store.buffer for load in (*loads_in(first), *loads_in(later)))
    if kinds is None or reads_itself or store.buffer.dtype not in kinds or dtypes.is_bool(store.buffer.dtype):
        return None
    return Scan(extents, axis, store, first, later, previous, tuple(kinds))


def _where(value: PrimExpr, axis: PrimVar, *, positive: bool) -> PrimExpr:
    """A value where the place along the axis is 0, or where it is more."""
    zero = const(0, axis.dtype)
    forms = (binary("gt", axis, zero), binary("lt", zero, axis))

    def chosen(node: Node) -> Node | None:
        if not isinstance(node, PrimCall) or node.op != "if_then_else":
            return None
        condition, then, other = node.args
        if not any(structural_equal(condition, form) for form in forms):
            return None
        return rewrite(then if positive else other, pre=chosen)

    return rewrite(value, pre=chosen)


# Joins --------------------------------------------------------------------------------------------------------------

_GROUPED = frozenset(("max", "min", "add"))
"""Operations that may be grouped in any way, and of integers, which wrap around, products too."""


def join_of(found: Scan) -> Join | None:
    """The operation that joins an element with what is before it, where it may be grouped in any way.

    Sums of floats may: a shorter chain loses fewer digits. Products may not: one of a later group can overflow though
    what is before it is small.
    """
    value, dtype = found.later, found.store.buffer.dtype
    if isinstance(value, Binary):
        return _of_binary(value, found.previous, dtype)
    if not isinstance(value, Select) or not isinstance(value.condition, Binary):
        return None
    element = value.condition.b
    if uses(element, found.previous) or not structural_equal(value, log_add_exp(found.previous, element)):
        return None
    return Join(log_add_exp, const(float("-inf"), dtype), element)


def _of_binary(value: Binary, previous: PrimVar, dtype: str) -> Join | None:
    kind = value.kind
    element = value.b if value.a is previous else value.a
    if previous not in (value.a, value.b) or uses(element, previous):
        return None
    if kind not in _GROUPED and not (kind == "mul" and dtypes.is_integer(dtype)):
        return None
    # Of sums of floats it is minus zero: plus zero would make that of it. Vectors with zeros at the start have an
    # instruction that is slow.
    identity = -0.0 if kind == "add" and dtypes.is_float(dtype) else IDENTITIES[kind](dtype)
    return Join(partial(binary, kind), const(identity, dtype), element)


def start_of(found: Scan, join: Join) -> PrimExpr | None:
    """What is before the first element where that is one like the others; None where it is something else."""
    if structural_equal(found.first, join.element):
        return join.identity
    zero = const(0, join.identity.dtype)
    for start in (join.identity, zero):
        if structural_equal(found.first, substitute(found.later, {found.previous: start})):
            return start
    return None
