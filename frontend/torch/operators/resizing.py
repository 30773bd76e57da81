"""Images at another size, and at the positions of a grid.

    upsample_bilinear2d(x, output_size, align_corners, scales_h, scales_w)        the first overload
    upsample_bilinear2d.vec(x, output_size, align_corners, scale_factors)         the second one

PyTorch reads position (i + 0.5) / scale - 0.5 where a scale is given, and ours (i + 0.5) * size / new - 0.5: rows take
scales for which the two are the same, which those that are whole numbers are at every size.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from weft.dtypes import is_float
from weft.frontend.emitter import Unsupported
from weft.frontend.sampling import product_along, sampled, smoothed_weights
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.dim import Dim, prove_equal
from weft.ir.graph import Expr
from weft.script import relax as R


def _same_positions(size: Dim, new: Dim, scale: float) -> bool:
    """Whether a scale is that of the sizes."""
    if isinstance(size, int) and isinstance(new, int):
        return size * scale == new
    return float(scale).is_integer() and size * int(scale) == new


def _scales(given: tuple[Any, ...]) -> Iterator[Any]:
    for item in given:
        yield from item if isinstance(item, (list, tuple)) else [item]


def _resized(n: FxNode, x: Expr, scales: tuple[Any, ...], **how: Any) -> Expr:
    """The last axes at the sizes that PyTorch computed."""
    spatial = n.rank(x) - 2
    if "floor" not in how.values() and not is_float(n.dtype(x)):
        raise Unsupported(f"interpolation of {n.dtype(x)}")
    old, new = n.shape(x)[2:], n.dims_out[2:]
    given = [scale for scale in _scales(scales) if scale is not None]
    if how["coordinate_transformation_mode"] != "align_corners":
        for size, wanted, scale in zip(old, new, given, strict=False):
            if not _same_positions(size, wanted, n.number(scale)):
                raise Unsupported(f"a scale of {scale}, which is not {wanted} / {size}")
    if spatial == 3:
        return R.image.resize3d(x, new, **how)
    if spatial == 2:
        return R.image.resize2d(x, new, **how)
    flat = n.emit(R.reshape(x, (*n.shape(x)[:2], 1, *old)), "image")
    return R.reshape(R.image.resize2d(flat, (1, *new), **how), n.dims_out)


def nearest(n: FxNode, x: Expr, size: Any, *scales: Any, mode: str) -> Expr:
    """The element whose position is below the new one's."""
    return _resized(
        n, x, scales, method="nearest_neighbor", coordinate_transformation_mode=mode, rounding_method="floor"
    )


def interpolated(n: FxNode, x: Expr, size: Any, align_corners: bool, *scales: Any, method: str) -> Expr:
    """Neighbours by their weights."""
    mode = "align_corners" if align_corners else "half_pixel"
    return _resized(n, x, scales, method=method, coordinate_transformation_mode=mode)


def smoothed(n: FxNode, x: Expr, size: Any, align_corners: bool, *scales: Any, cubic: float | None) -> Expr:
    """All the elements that are merged into one, by their weights: a product along each axis."""
    if n.dtype(x) not in ("float16", "bfloat16", "float32", "float64"):
        raise Unsupported(f"antialiasing of {n.dtype(x)}")
    rank, given = n.rank(x), [*_scales(scales), None, None]
    for axis, new, scale in zip((rank - 2, rank - 1), n.dims_out[2:], given, strict=False):
        size = n.shape(x)[axis]
        if prove_equal(size, new) and scale in (None, 1.0):
            continue
        step = _step(n, size, new, align_corners, scale)
        weights = n.emit(smoothed_weights(size, new, step, cubic, n.emit), "weights")
        x = n.emit(product_along(x, rank, axis, R.astype(weights, n.dtype(x))), "resized")
    return x


def _step(n: FxNode, size: Dim, new: Dim, align_corners: bool, scale: Any) -> float | Expr:
    """How many old elements there are for each new one."""
    if align_corners:
        if isinstance(size, int) and isinstance(new, int):
            return (size - 1) / (new - 1) if new > 1 else 0.0
        raise Unsupported("antialiasing between corners at sizes of the run")
    if scale is not None:
        return 1.0 / n.number(scale)
    if isinstance(size, int) and isinstance(new, int):
        return size / new
    return n.emit(R.divide(n.cast(size, "float64"), n.cast(new, "float64")), "step")


_FAR = -1e4
"""Outside of every image: where nan lies, which PyTorch takes for the edge where positions outside are moved inside."""


def grid_sample(n: FxNode, x: Expr, grid: Expr, method: int, padding: int, align_corners: bool) -> Expr:
    """The image at positions of a grid, whose last axis holds them."""
    methods, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if methods[method] != "bicubic":  # whose weights are nan there
        edge = n.cast(_FAR if paddings[padding] == "zeros" else -1.0, n.dtype(grid))
        grid = R.where(R.isnan(grid), edge, grid)
    return sampled(x, grid, n.rank(x) - 2, methods[method], paddings[padding], bool(align_corners))


row("upsample_nearest1d upsample_nearest2d upsample_nearest3d", partial(nearest, mode="asymmetric"))
row(
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d",
    partial(nearest, mode="tf_half_pixel_for_nn"),
)
row("upsample_linear1d upsample_bilinear2d upsample_trilinear3d", partial(interpolated, method="linear"))
row("upsample_bicubic2d", partial(interpolated, method="cubic"))
row("_upsample_bilinear2d_aa", partial(smoothed, cubic=None))
row("_upsample_bicubic2d_aa", partial(smoothed, cubic=-0.5))
row("grid_sampler grid_sampler_2d grid_sampler_3d", grid_sample)
