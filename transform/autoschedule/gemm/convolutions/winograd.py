"""Winograd convolutions: tiles of m x m results from (m + 2) x (m + 2) products for each input channel, where windows
by channels take 9 m x m.

Weights are transformed when the module is compiled, windows as blocks of them are copied, products back to results
where they are summed (`winograd_block` has the loops). What saves products costs arithmetic of its own, and larger
weights: `form_of_windows` compares. Results are equal in real arithmetic; what they round is in
docs/reference/accuracy.md.

Sources: Winograd, Arithmetic complexity of computations, 1980; Lavin and Gray, Fast algorithms for convolutional neural
networks, 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.dtypes import bits
from weft.ir import substitute
from weft.ir.kernel.prim import binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import Buffer, Cast, IntImm, PrimExpr, PrimVar, Stmt
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import block_size, known
from weft.transform.autoschedule.gemm.convolutions.channels import (
    Channels,
    cost_of_channels,
    panels_of_weights,
)
from weft.transform.autoschedule.gemm.convolutions.columns import columns_of, cost_of_columns
from weft.transform.autoschedule.gemm.convolutions.positions import Positions
from weft.transform.autoschedule.gemm.convolutions.toom_cook import Transform, transform_of
from weft.transform.autoschedule.gemm.match import Contraction, Filling, uses
from weft.transform.autoschedule.gemm.tiles import plus, times
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.registry import checked
from weft.transform.autoschedule.rules.strides import difference_along
from weft.transform.infra.decisions import Decision, refused

__all__ = ["FORMS", "Winograd", "form_of_windows", "winograd_of"]

FORMS = {"winograd2": 2, "winograd4": 4}
"""Form -> m."""
_TRANSFORMING, _STREAMING = 10, 6
"""What an element costs to transform, and a byte of weights that the second cache does not keep, in multiplications, as
measured with 16 to 512 channels on pictures of 7 to 56: tiles of small pictures are too few to hide how they come."""
_GAIN = 0.9
"""The cost up to which less arithmetic is worth larger weights, as a part of that of all products."""
_GAIN_OF_LARGER = 0.85
"""The same for larger tiles beside smaller ones: weights that a far cache has take much longer on busy machines."""
_MAX_TERMS = 4096
"""Of a sum in one accumulator."""


@dataclass(frozen=True, eq=False)
class Winograd(Positions):
    """The sizes of blocks and tiles: `rows` rows of tiles of m x m results in a block, `mr` of them in a register tile.

    `c` is the variable of input channels, `window_y` and `window_x` those of the window.
    """

    channels: Channels
    transform: Transform
    c: PrimVar
    window_y: PrimVar
    window_x: PrimVar
    rows: int
    mr: int

    @property
    def across(self) -> int:
        """Tiles in a row."""
        return ceil_div(self.width, self.transform.m)

    @property
    def down(self) -> int:
        """Rows of tiles."""
        return ceil_div(self.height, self.transform.m)

    @property
    def terms(self) -> int:
        """Input channels."""
        return known(self.found.extents[self.c])

    @property
    def products(self) -> int:
        """Products of a tile for each channel."""
        return self.transform.n**2

    @cached_property
    def weights(self) -> Buffer:
        """The transformed weights: a row for each panel, of each product the vectors along the input channels."""
        shape = self.channels.weights.shape[0], self.products * self.terms * self.channels.nr
        return Buffer("weights_transformed", shape, self.found.dtype)

    @property
    def has_near_weights(self) -> bool:
        """Whether the second cache has all weights beside the windows: others are what tiles wait for."""
        return 2 * _bytes(self.weights) <= self.channels.capacity.machine.l2_bytes

    @property
    def filling(self) -> Filling | None:
        """What computes the input, of which each block does its part."""
        return self.found.filling

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "mr": self.mr,
            "nr_vectors": self.channels.nr_vectors,
            "lanes": self.channels.capacity.lanes,
            "mc": self.rows * self.across,
            "a": "transformed",
            "b": "constant",
        }

    def check(self, decision: Decision) -> None:
        """PassError W528 for values that cannot be followed."""
        high = self.down * self.across
        for name in ("mr", "mc"):
            value = checked(decision, name, 1, high, f"there are {high} tiles of results")
            if value != self.values()[name]:
                why = f"no multiple of the {self.across} tiles of a row" if name == "mc" else "more than a block has"
                raise refused(f"gemm of {decision.about!r}: {name}={value} is {why}")

    def place_of_weight(self, product: PrimExpr, c: PrimExpr) -> PrimExpr:
        """Where in a panel the weights of an input channel for a product are."""
        return times(plus(times(product, self.terms), c), self.channels.nr)

    def packed_weights(self) -> Iterator[Stmt]:
        """What transforms the weights."""
        found, r = self.found, self.channels.r
        values = []
        for product in range(self.products):
            c, channel = PrimVar("in_channel", INDEX), PrimVar("channel", INDEX)
            value = simplify(self._transformed_weight(product, {self.c: c, r: channel}))
            values.append(([(c, self.terms)], channel, value, self.place_of_weight(const(product, INDEX), c)))
        return panels_of_weights(self.weights, known(found.extents[r]), self.channels.nr, values)

    def _transformed_weight(self, product: int, places: dict[PrimVar, PrimExpr]) -> PrimExpr:
        """A sum of weights, which is rounded once."""
        y, x = divmod(product, self.transform.n)
        total: PrimExpr | None = None
        for row, in_y in enumerate(self.transform.weights[y]):
            for column, in_x in enumerate(self.transform.weights[x]):
                if not in_y * in_x:
                    continue
                here = {**places, self.window_y: const(row, INDEX), self.window_x: const(column, INDEX)}
                weight = Cast("float64", self.found.of_a(substitute(self.found.scalar, here)))
                term = binary("mul", weight, const(float(in_y * in_x), "float64"))
                total = term if total is None else binary("add", total, term)
        assert total is not None
        return Cast(self.found.dtype, total)

    @property
    def cost(self) -> float:
        """Products, the arithmetic of transforms, and weights from a far cache, in multiplications."""
        tiles, results = self.down * self.across, known(self.found.extents[self.channels.r])
        empty = self.channels.nr * known(self.weights.shape[0]) / results
        products = self.products * tiles * self.terms * results * empty
        transforms = self.products * tiles * (self.terms + results) * _TRANSFORMING
        size = _bytes(self.weights)
        streamed = size * _STREAMING if size > self.channels.capacity.machine.l2_bytes else 0
        return products + transforms + streamed


def form_of_windows(channels: Channels, highest: int, matrices: float | None) -> str | None:
    """The form of windows that costs least: by channels or columns, or Winograd's up to a number of results; None where
    that is a product of matrices, which costs so much (None: it is no option)."""
    costs: dict[str | None, float] = {"channels": cost_of_channels(channels)}
    if matrices is not None:
        costs[None] = matrices
    columns = columns_of(channels)
    if columns is not None and (columns.is_one_run or columns.has_several_tiles):
        costs["columns"] = cost_of_columns(columns)
        if not columns.is_one_run:  # a product of matrices would copy as much, in shorter runs
            costs.pop(None, None)
    for form, m in FORMS.items():
        winograd = winograd_of(channels, m) if m <= highest else None
        if winograd is not None:
            costs[form] = winograd.cost / (_GAIN if m == min(FORMS.values()) else _GAIN * _GAIN_OF_LARGER)
    return min(costs, key=lambda form: costs[form])


def winograd_of(channels: Channels | None, m: int) -> Winograd | None:
    """The nest; None where windows are others than 3x3 that move by one, or channels too many for one sum."""
    if channels is None or len(channels.window.axes) != 2 or channels.found.dtype != "float32":
        return None
    found, axes, indices = channels.found, channels.window.axes, channels.found.vector.indices
    y, x = (_moved_by(found, index, axis) for index, axis in zip(indices[-2:], axes, strict=True))
    rest = [var for var in found.reduction if var is not y and var is not x]
    if y is None or x is None or len(rest) != 1 or len(found.outer) != 1:
        return None
    terms = found.extents[rest[0]]
    if any(uses(indices[:-2], var) for var in (y, x, *axes)) or not isinstance(terms, int) or terms > _MAX_TERMS:
        return None
    return _sized(channels, transform_of(m), rest[0], (y, x))


def _moved_by(found: Contraction, index: PrimExpr, axis: PrimVar) -> PrimVar | None:
    """The variable of three steps of a window that, added to an axis, is an index."""
    for var in found.reduction:
        moves = found.extents[var] == 3 and all(uses((index,), item) for item in (axis, var))
        if moves and [difference_along(index, item) for item in (axis, var)] == [1, 1]:
            rest = simplify(substitute(index, {axis: const(0, INDEX), var: const(0, INDEX)}))
            return var if isinstance(rest, IntImm) and rest.value == 0 else None
    return None


def _sized(channels: Channels, transform: Transform, c: PrimVar, window: tuple[PrimVar, PrimVar]) -> Winograd:
    """Blocks whose transformed windows stay in the second cache: beside weights that do, else as large as it is."""
    capacity, found = channels.capacity, channels.found
    largest = Winograd(found, channels, transform, c, *window, 1, 1)
    row_bytes = largest.products * largest.terms * largest.across * bits(found.dtype) // 8
    l2 = capacity.machine.l2_bytes
    room = l2 // 4 if _bytes(largest.weights) <= l2 else l2 - l2 // 8
    rows = block_size(largest.down, max(1, room // row_bytes))
    rows = max(1, capacity.pins["mc"] // largest.across) if "mc" in capacity.pins else rows
    vectors = channels.nr_vectors
    most = max(1, (capacity.machine.vector_registers - vectors - 2) // vectors)
    tiles = rows * largest.across
    mr = min(tiles, capacity.pins["mr"]) if "mr" in capacity.pins else ceil_div(tiles, ceil_div(tiles, most))
    return Winograd(found, channels, transform, c, *window, rows, mr)


def _bytes(buffer: Buffer) -> int:
    size = bits(buffer.dtype) // 8
    for extent in buffer.shape:
        size *= known(extent)
    return size
