"""Windows: convolutions, whose second operand is read where a window moves over it.

    C[n, o, y, x] = C[n, o, y, x] + W[o, c, dy, dx] * X[n, c, 2 * y + dy, x + dx]

The positions (y, x) become one variable of columns v: a row of C is then a row of the product of W with the matrix of
all windows. That matrix is never stored: its blocks are gathered while they are packed. Strides, dilations and the
number of axes do not matter. A window of one element that moves by one is a product of matrices as it is.

Groups o // 4 in X split the variable of rows into a group and a row.

Source: Chetlur et al., cuDNN: efficient primitives for deep learning, 2014.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from weft.ir import Node, replace, rewrite, substitute, walk
from weft.ir.kernel.prim import binary, const, extent_product
from weft.ir.tensor import (
    Binary,
    BufferLoad,
    DeclBuffer,
    IntImm,
    PrimExpr,
    PrimVar,
)
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.autoschedule.gemm.match import Contraction, Products, Window, row_variable, uses
from weft.transform.autoschedule.gemm.tiles import flat_view
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.strides import step_along

__all__ = ["match_planes", "match_windows"]


def match_windows(found: Products, min_axes: int = 1, keeps_windows: bool = False) -> Contraction | None:
    """The contraction whose columns are the positions of windows along at min_axes so many axes, or None.

    Windows of one element that are a product of matrices as they are have none, unless it `keeps_windows`.
    """
    if found.accumulates:
        return None
    for order in found.orders:
        split = _without_groups(order)
        result = None if split is None else _match(split, *split.factors, min_axes, keeps_windows)
        if result is not None and result.r is not None:
            return result
    return None


def match_planes(found: Products) -> Contraction | None:
    """The contraction of windows for each of which there is one row only, or None."""
    if found.accumulates:
        return None
    results = (_match(order, *order.factors, 1, keeps_windows=True) for order in found.orders)
    return next((result for result in results if result is not None and result.r is None), None)


def _without_groups(found: Products) -> Products | None:
    """The products with the variable of rows split where the second factor has its quotient."""
    scalar, vector = found.factors
    for var in found.spatial:
        if not uses(scalar.indices, var) or not uses(vector.indices, var):
            continue
        size, extent = _group(vector, var), found.extents[var]
        if size is None or not isinstance(extent, int) or extent % size:
            return None
        group, row = PrimVar(f"{var.name}_group", INDEX), PrimVar(var.name, INDEX)
        whole = binary("add", binary("mul", group, const(size, INDEX)), row)

        def divided(node: Node, var: PrimVar = var, group: PrimVar = group) -> Node | None:
            return group if _is_quotient(node, var) else None

        new_vector = rewrite(vector, divided)
        extents = {group: extent // size, row: size, **{x: e for x, e in found.extents.items() if x is not var}}
        spatial = tuple(y for x in found.spatial for y in ((group, row) if x is var else (x,)))
        store, factors = substitute(found.store, {var: whole}), (substitute(scalar, {var: whole}), new_vector)
        return dataclasses.replace(found, store=store, factors=factors, extents=extents, spatial=spatial)
    return found


def _is_quotient(node: object, var: PrimVar) -> bool:
    return isinstance(node, Binary) and node.kind == "floordiv" and node.a is var and isinstance(node.b, IntImm)


def _group(load: BufferLoad, var: PrimVar) -> int | None:
    """The size of the groups when a variable occurs in quotients by one number only."""
    parts = [part for index in load.indices for part in walk(index)]
    sizes = {
        part.b.value
        for part in parts
        if _is_quotient(part, var) and isinstance(part, Binary) and isinstance(part.b, IntImm)
    }
    bare = sum(part is var for part in parts) - sum(_is_quotient(part, var) for part in parts)
    return sizes.pop() if len(sizes) == 1 and not bare else None


def _match(
    found: Products, scalar: BufferLoad, vector: BufferLoad, min_axes: int, keeps_windows: bool
) -> Contraction | None:
    store = found.store
    axes: list[PrimVar] = []
    for index in reversed(store.indices):
        if not isinstance(index, PrimVar) or index not in found.extents:  # a loop around the products has others
            break
        if uses(scalar.indices, index) or not uses(vector.indices, index):
            break
        axes.insert(0, index)
    shape = store.buffer.shape[len(store.indices) - len(axes) :]
    sizes = tuple(found.extents[x] for x in axes)
    if len(axes) < min_axes or store.buffer.strides is not None or not same_extents(sizes, shape):
        return None
    if step_along(vector, axes[-1]) is None or any(not isinstance(found.extents[x], int) for x in found.reduction[1:]):
        return None
    rest = [x for x in found.spatial if x not in axes]
    row = [x for x in rest if uses(scalar.indices, x) and not uses(vector.indices, x)]
    r = row_variable(replace(store, indices=tuple(rest)), scalar, vector, row, found.extents)
    v = PrimVar("columns", INDEX)
    count = extent_product(sizes)
    extents = {v: count, **{x: extent for x, extent in found.extents.items() if x not in axes}}
    flat = flat_view(store.buffer, len(axes))
    target = replace(store, buffer=flat, indices=(*store.indices[: -len(axes)], v))
    outer = tuple(x for x in rest if x is not r)
    plain = None if keeps_windows else _plain_product(found, vector, axes, v)
    if plain is not None:
        load, view_of_b, reduction, gone = plain
        scalar = substitute(scalar, dict.fromkeys(gone, const(0, INDEX)))
        kept = {x: extent for x, extent in extents.items() if x not in gone}
        views = (DeclBuffer(flat), view_of_b)
        return Contraction(
            target, scalar, load, kept, outer, reduction, v, r, None, views, store.buffer, casts=found.casts
        )
    window = Window(tuple(axes), sizes)
    views = (DeclBuffer(flat),)
    return Contraction(
        target, scalar, vector, extents, outer, found.reduction, v, r, window, views, store.buffer, casts=found.casts
    )


def _plain_product(
    found: Products, vector: BufferLoad, axes: Sequence[PrimVar], v: PrimVar
) -> tuple[BufferLoad, DeclBuffer, tuple[PrimVar, ...], list[PrimVar]] | None:
    """B as a matrix, where the window has one element and meets all elements of the last axes in order."""
    gone = [x for x in found.reduction if isinstance(found.extents[x], int) and found.extents[x] == 1]
    reduction = tuple(x for x in found.reduction if x not in gone)
    lead = len(vector.indices) - len(axes)
    at_zero = substitute(vector, dict.fromkeys(gone, const(0, INDEX)))
    steps = all(_is_axis(index, x) for index, x in zip(at_zero.indices[lead:], axes, strict=False))
    whole = lead >= 0 and same_extents(vector.buffer.shape[lead:], [found.extents[x] for x in axes])
    inside = any(uses(at_zero.indices[:lead], x) for x in axes)
    if not reduction or not steps or not whole or inside or vector.buffer.strides is not None:
        return None
    flat = flat_view(vector.buffer, len(axes))
    return BufferLoad(flat, (*at_zero.indices[:lead], v)), DeclBuffer(flat), reduction, gone


def _is_axis(index: PrimExpr, var: PrimVar) -> bool:
    """Whether an index is the variable itself, perhaps with a zero added."""
    while isinstance(index, Binary) and index.kind == "add" and isinstance(index.b, IntImm) and index.b.value == 0:
        index = index.a
    return index is var
