"""Which box of a buffer code touches: inclusive ranges of indices as dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir import rewrite, walk
from weft.ir.dim import Dim, maximum, minimum
from weft.ir.tensor import Bind, Block, Buffer, Extent, For, IfThenElse, Let, PrimExpr, PrimVar, Stmt, While
from weft.transform.analysis.loops.affine import Reader, Value
from weft.transform.analysis.loops.dependence import outer_accesses, without_bindings
from weft.transform.analysis.loops.points import Point
from weft.transform.schedule.tree import stores_in

__all__ = ["Span", "box_of", "inside", "iterated_box", "names_of", "stored_box", "touched", "union"]

Span = tuple[Dim, Dim]


def union(a: Span, b: Span, point: Point) -> Span:
    """The range around two."""
    low = a[0] if point.at_most(a[0], b[0]) else b[0] if point.at_most(b[0], a[0]) else minimum(a[0], b[0])
    high = b[1] if point.at_most(a[1], b[1]) else a[1] if point.at_most(b[1], a[1]) else maximum(a[1], b[1])
    return low, high


def names_of(*dims: Dim) -> set[str]:
    """The symbols in some dimensions."""
    return {name for dim in dims if not isinstance(dim, int) for name in dim.names}


def touched(parts: Sequence[Stmt], buffer: Buffer, point: Point) -> list[Span | None]:
    """The range of each index with which statements touch a buffer, over all their loops; None: anywhere."""
    ranges: list[Span | None] | None = None
    for touch in (touch for part in parts for touch in outer_accesses(without_bindings(part), point.bounds())):
        if touch.buffer is not buffer:
            continue
        here: list[Span | None] = [None if part is None else (part.low, part.high) for part in touch.intervals]
        if ranges is None:
            ranges = here
        else:
            pairs = zip(ranges, here, strict=True)
            ranges = [None if a is None or b is None else union(a, b, point) for a, b in pairs]
    return [None] * buffer.ndim if ranges is None else ranges


def inside(spans: Sequence[Span | None], buffer: Buffer, point: Point) -> list[Span] | None:
    """The ranges where they are proved to be inside of a buffer, else its whole dimensions; None: unknown sizes."""
    found: list[Span] = []
    for span, extent in zip(spans, buffer.shape, strict=True):
        size = point.dim(extent)
        if size is None:
            return None
        fits = span is not None and point.at_most(0, span[0]) and point.below(span[1], size)
        found.append(span if fits and span is not None else (0, size - 1))
    return found


def stored_box(block: Block, buffer: Buffer, point: Point, loops: Sequence[For] = ()) -> list[Span] | None:
    """The box of elements that the stores of a block write over its domain, every one of them; else None.

    The box is not over the variables of `loops`, those between the point and the block.
    """
    inner = point.copy()
    inner.enter_block(block)
    body = without_bindings(block.body)
    ranges = [(item.var, item.start, item.extent) for item in block.iter_vars if item.kind == "spatial"]
    hidden = {item.var for item in block.iter_vars} | {loop.loop_var for loop in loops}
    return _box_of_stores(body, buffer, inner, ranges, hidden)


def iterated_box(nest: Stmt, buffer: Buffer, point: Point) -> list[Span] | None:
    """The box of elements that the stores of some loops and blocks write, every one of them; else None.

    Unlike the domains of blocks, the loops tell what is run here; inits of blocks are left out.
    """
    plain = without_bindings(nest)
    if any(isinstance(part, Block) and part.predicate is not None for part in walk(plain)):
        return None
    body = rewrite(plain, lambda node: node.body if isinstance(node, Block) else None)
    return _box_of_stores(body, buffer, point.copy(), [], set())


def _box_of_stores(
    body: Stmt,
    buffer: Buffer,
    inner: Point,
    ranges: list[tuple[PrimVar, Extent, Extent]],
    hidden: set[PrimVar],
) -> list[Span] | None:
    """The box that stores under loops write, over `ranges` too; it is not over those and `hidden` variables."""
    parts = list(walk(body))
    loops = [part for part in parts if isinstance(part, For)]
    if any(isinstance(part, (IfThenElse, While)) or getattr(part, "predicate", None) is not None for part in parts):
        return None
    ranges = [*ranges, *((loop.loop_var, loop.start, loop.extent) for loop in loops if loop.step in (None, 1))]
    for loop in loops:
        inner.enter(loop)
    extents: dict[str, Dim] = {}
    for variable, start, extent in ranges:
        size = inner.dim(extent)
        if start == 0 and size is not None:
            extents[inner.name(variable)] = size
    bound = hidden | {loop.loop_var for loop in loops}
    bound |= {part.var for part in parts if isinstance(part, (Bind, Let))}
    unknown = {inner.name(var) for var in bound if inner.name(var) not in extents}
    boxes = [box_of(store.indices, inner, extents, unknown) for store in stores_in(body, buffer)]
    same = bool(boxes) and all(box is not None and box == boxes[0] for box in boxes)
    return boxes[0] if same else None


def box_of(
    indices: Sequence[PrimExpr], point: Point, extents: Mapping[str, Dim], hidden: set[str]
) -> list[Span] | None:
    """The ranges of indices that take all their values independently of one another; None for other indices.

    `extents` are those of the variables that run, by symbol; `hidden` are symbols that a range must not be over.
    """
    found: list[Span] = []
    seen: set[Dim] = set()
    for index in indices:
        dim = point.dim(index)
        reader = Reader(point, extents, {}, [] if dim is None else [dim])
        value = None if dim is None else reader.read(dim)
        if dim is None or value is None or any(term.source.parts is not None for term in value.terms):
            return None
        if not isinstance(dim, int) and set(dim.names) & hidden:
            return None
        used = [term.source.dim for term in value.terms]
        whole = all(point.same(t.lower, 1) and point.same(t.extent, t.source.extent) for t in value.terms)
        count = reader.extent_of(Value(value.terms))
        if count is None or not whole or len(set(used)) != len(used) or seen & set(used):
            return None
        seen |= set(used)
        found.append((value.base, value.base + count - 1))
    return found
