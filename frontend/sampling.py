"""Images at other sizes and positions, as importers read them.

sampled(x, grid, ...)            at the positions of a grid, whose last axis holds them
product_along(x, axis, matrix)   an axis at another size, each new element being a sum of old ones by their weights
smoothed_weights(size, new, ...) the weights of antialiasing, for sizes of the run too
triangle_weight, cubic_weight    the weight of a neighbour by its distance
"""

from __future__ import annotations

from collections.abc import Callable

from weft.frontend.emitter import Unsupported
from weft.ir.dim import Dim
from weft.ir.graph import Expr, PrimValue
from weft.script import relax as R

__all__ = ["cubic_weight", "product_along", "sampled", "smoothed_weights", "triangle_weight"]


def sampled(x: Expr, grid: Expr, spatial: int, method: str, padding: str, align_corners: bool) -> Expr:
    """An image of two or three spatial axes at the positions of a grid (n, ..., positions); Unsupported for others."""
    if spatial not in (2, 3):
        raise Unsupported(f"a grid over {'one axis' if spatial == 1 else f'{spatial} axes'}")
    if method == "bicubic" and spatial == 3:
        raise Unsupported("a cubic grid over three axes")
    axes = (0, spatial + 1, *range(1, spatial + 1))
    layout = "NCHW" if spatial == 2 else "NCDHW"
    return R.image.grid_sample(x, R.permute_dims(grid, axes), method, layout, padding, align_corners)


def product_along(x: Expr, rank: int, axis: int, matrix: Expr) -> Expr:
    """A tensor with one axis multiplied by a matrix (new, old)."""
    if axis == rank - 1:
        return R.matmul(x, R.permute_dims(matrix, (1, 0)))
    if axis == rank - 2:
        return R.matmul(matrix, x)
    order = [*(a for a in range(rank) if a != axis), axis]
    back = [order.index(a) for a in range(rank)]
    return R.permute_dims(R.matmul(R.permute_dims(x, order), R.permute_dims(matrix, (1, 0))), back)


def smoothed_weights(
    size: Dim, new: Dim, step: float | Expr, cubic: float | None, emit: Callable[[Expr, str], Expr]
) -> Expr:
    """The matrix (new, size), in float64, whose row i weighs old elements by their distance from step * (i + 1/2).

    `step` is the old elements for each new one. The triangle, or the cubic of a coefficient, reaches over as many
    neighbours as are merged into one, those inside of the image, and the weights of a row add up to 1.
    """
    width = emit(R.maximum(step, 1.0) if isinstance(step, Expr) else R.const(max(step, 1.0), _WIDE), "width")
    centres = R.multiply(R.add(_positions(new), 0.5), step)
    places = emit(R.add(_positions(size), 0.5), "places")
    apart = R.subtract(R.expand_dims(places, [0]), R.expand_dims(emit(centres, "centres"), [1]))
    distance = emit(R.abs(R.divide(apart, width)), "distance")
    weights = emit(triangle_weight(distance) if cubic is None else cubic_weight(distance, cubic), "weights")
    return R.divide(weights, R.sum(weights, [1], True))


_WIDE = "float64"


def _positions(size: Dim) -> Expr:
    return R.astype(R.arange(PrimValue(size)), _WIDE)


def triangle_weight(distance: Expr) -> Expr:
    """The weight of a neighbour at a distance, in float64: 1 at none, 0 from 1 on."""
    return R.maximum(R.subtract(R.const(1.0, _WIDE), distance), 0.0)


def cubic_weight(d: Expr, a: float) -> Expr:
    """The weight of a neighbour at a distance, in float64, by the cubic of a coefficient: 0 from 2 on."""
    near = R.add(R.multiply(R.multiply(R.subtract(R.multiply(d, a + 2), a + 3), d), d), 1.0)
    far = R.subtract(R.multiply(R.add(R.multiply(R.subtract(R.multiply(d, a), 5 * a), d), 8 * a), d), 4 * a)
    return R.where(R.less_equal(d, 1.0), near, R.where(R.less(d, 2.0), far, R.zeros_like(d)))
