"""Images at the positions of a grid, as importers read them: the last axis of the grid holds the positions."""

from __future__ import annotations

from weft.frontend.emitter import Unsupported
from weft.ir.graph import Expr
from weft.script import relax as R

__all__ = ["sampled"]


def sampled(x: Expr, grid: Expr, spatial: int, method: str, padding: str, align_corners: bool) -> Expr:
    """An image of two or three spatial axes at the positions of a grid (n, ..., positions); Unsupported for others."""
    if spatial not in (2, 3):
        raise Unsupported(f"a grid over {'one axis' if spatial == 1 else f'{spatial} axes'}")
    if method == "bicubic" and spatial == 3:
        raise Unsupported("a cubic grid over three axes")
    axes = (0, spatial + 1, *range(1, spatial + 1))
    layout = "NCHW" if spatial == 2 else "NCDHW"
    return R.image.grid_sample(x, R.permute_dims(grid, axes), method, layout, padding, align_corners)
