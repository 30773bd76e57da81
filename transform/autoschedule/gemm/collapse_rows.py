"""Collapsed rows: neighbouring axes of rows as one, so that tiles and blocks go on from one to the next.

    for n, l, v, k: C[n, l, v] += A[n, l, k] * B[k, v]       for r, v, k: C'[r, v] += A'[r, k] * B[k, v]

C' and A' are views in which the axes n and l are one; r counts n * l rows, whatever each of the sizes is when it is
symbolic. The epilogue reads its operands through such views as well, and where an operand has only some of
the axes at r // l and r % l.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from weft.ir import Node, replace, rewrite, substitute
from weft.ir.kernel.prim import as_expr, binary, extent_product
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, DeclBuffer, PrimExpr, PrimVar
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.autoschedule.gemm.match import Contraction, rows_length, uses
from weft.transform.autoschedule.gemm.tiles import flat_view
from weft.transform.autoschedule.gemm.tiling import INDEX

__all__ = ["with_collapsed_rows"]


def with_collapsed_rows(found: Contraction, enough: int) -> Contraction:
    """The contraction with neighbouring axes of rows collapsed; itself where there are none, or r has `enough` rows.

    Rows of an outer axis are far from each other, as far as the inner axes are long: however many they are, collapsed
    ones are neighbours.
    """
    if found.r is None:
        return found
    run = max(_runs(found), key=lambda axes: rows_length(axes, found.extents), default=())
    rows = found.extents[found.r]
    is_inner = found.r not in run[:-1]
    return found if len(run) < 2 or (is_inner and isinstance(rows, int) and rows >= enough) else _collapsed(found, run)


def _runs(found: Contraction) -> list[tuple[PrimVar, ...]]:
    """The longest runs of variables of rows that are neighbours in the result and in A alike."""
    candidates = {x for x in (found.r, *found.outer) if x is not None and _is_row(found, x)}
    indices = found.store.indices
    runs: list[tuple[PrimVar, ...]] = []
    for start in range(len(indices)):
        run: list[PrimVar] = []
        for index in indices[start:]:
            longer = [*run, index]
            if not isinstance(index, PrimVar) or index not in candidates or _place(found, found.scalar, longer) is None:
                break
            run.append(index)
        if run and _place(found, found.store, run) == start:
            runs.append(tuple(run))
    return runs


def _is_row(found: Contraction, var: PrimVar) -> bool:
    return uses(found.scalar.indices, var) and not uses(found.vector.indices, var) and var in found.store.indices


def _place(found: Contraction, access: BufferLoad | BufferStore, axes: Sequence[PrimExpr]) -> int | None:
    """Where an access has the axes one after another, each whole and nowhere else; None where it does not."""
    indices, shape = access.indices, access.buffer.shape
    for start in range(len(indices) - len(axes) + 1):
        end = start + len(axes)
        if all(x is y for x, y in zip(indices[start:end], axes, strict=True)):
            sizes = [found.extents[x] for x in axes if isinstance(x, PrimVar)]
            others = (*indices[:start], *indices[end:])
            once = not any(uses(others, x) for x in axes if isinstance(x, PrimVar))
            plain = access.buffer.strides is None and same_extents(shape[start:end], sizes)
            return start if once and plain else None
    return None


def _collapsed(found: Contraction, axes: tuple[PrimVar, ...]) -> Contraction:
    row = PrimVar("rows", INDEX)
    count = len(axes)
    views: dict[tuple[Buffer, int], Buffer] = {}

    def place_in(access: BufferLoad | BufferStore, place: int) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        key = (access.buffer, place)
        if key not in views:
            views[key] = flat_view(access.buffer, count, place)
        return views[key], (*access.indices[:place], row, *access.indices[place + count :])

    def moved(node: Node) -> Node | None:
        place = _place(found, node, axes) if isinstance(node, BufferLoad) else None
        if not isinstance(node, BufferLoad) or place is None:
            return None
        buffer, indices = place_in(node, place)
        return replace(node, buffer=buffer, indices=indices)

    scalar = moved(found.scalar)
    assert isinstance(scalar, BufferLoad)

    def moved_store(store: BufferStore) -> BufferStore:
        at = _place(found, store, axes)
        assert at is not None
        buffer, indices = place_in(store, at)
        return replace(store, buffer=buffer, indices=indices)

    store = moved_store(found.store)
    epilogue = found.epilogue
    if epilogue is not None:
        value = substitute(rewrite(epilogue.value, moved), _separate(found, axes, row))
        epilogue = dataclasses.replace(epilogue, value=value)
    rest = {x: extent for x, extent in found.extents.items() if x not in axes}
    return dataclasses.replace(
        found,
        store=store,
        scalar=scalar,
        epilogue=epilogue,
        r=row,
        partial_sums=None if found.partial_sums is None else moved_store(found.partial_sums),
        extents={row: extent_product([found.extents[x] for x in axes]), **rest},
        outer=tuple(x for x in (found.r, *found.outer) if x is not None and x not in axes),
        views=(*found.views, *map(DeclBuffer, views.values())),
    )


def _separate(found: Contraction, axes: Sequence[PrimVar], row: PrimVar) -> dict[PrimVar, PrimExpr]:
    """The collapsed axes from the number of the row."""
    left: PrimExpr = row
    places: dict[PrimVar, PrimExpr] = {}
    for axis in reversed(axes[1:]):
        extent = as_expr(found.extents[axis], INDEX)
        places[axis] = binary("floormod", left, extent)
        left = binary("floordiv", left, extent)
    return {**places, axes[0]: left}
