"""Sums over windows: response normalisation and power-average pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.graph import Expr
from weft.ir.op.common import example, f32
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Param

__all__: list[str] = []


def _local_response(data: Any, *, size: int, alpha: float, beta: float, bias: float) -> Any:
    wide = data.astype("float64") ** 2
    before, after = (min(side, data.shape[1]) for side in ((size - 1) // 2, size // 2))
    padded = np.pad(wide, ((0, 0), (before, after)) + ((0, 0),) * (data.ndim - 2))
    total = sum((padded[:, k : k + data.shape[1]] for k in range(before + after + 1)), np.zeros_like(wide))
    return (data / (bias + alpha / size * total) ** beta).astype(data.dtype)


_MOST_PARTS = 512
"""To either side of a channel that are added, where fewer channels may be all that there are."""


@composite(
    "nn.local_response_norm",
    [
        Param("data"),
        Param("size", "attr", of="int"),
        Param("alpha", "attr", 1e-4, "float"),
        Param("beta", "attr", 0.75, "float"),
        Param("bias", "attr", 1.0, "float"),
    ],
    numpy=_local_response,
    family="nn_norm",
    examples=(example(f32(2, 5, 3), size=3, alpha=0.5), example(f32("n", 4, 2, 3), size=2, beta=0.5, bias=2.0)),
)
def local_response_norm(args: Parts) -> Expr:
    """data / (bias + alpha / size * s)**beta, s the sum of squares of size channels (axis 1) around each.

    Source: Krizhevsky et al., ImageNet classification with deep convolutional neural networks, 2012.
    """
    args.require("data", "float")
    dims, size = args.dims("data"), args.size
    if len(dims) < 2 or size < 1:
        raise args.error("data has channels on axis 1, and size is at least 1")
    channels = dims[1]
    most = channels if isinstance(channels, int) else _MOST_PARTS
    if size > 2 * most and not isinstance(channels, int):
        raise args.error(f"size is at most {2 * most:,} where the number of channels is unknown, got {size:,}")
    before, after = min((size - 1) // 2, most), min(size // 2, most)
    widths = [0, 0, before, after, *(0, 0) * (len(dims) - 2)]
    padded = call("nn.pad", call("multiply", args.data, args.data), widths)
    parts = [call("strided_slice", padded, [1], [place], [channels + place]) for place in range(before + after + 1)]
    total = parts[0]
    for part in parts[1:]:
        total = call("add", total, part)
    scale = call("add", call("multiply", total, args.alpha / size), args.bias)
    return call("divide", args.data, call("power", scale, args.beta))


def _pooled(data: Any, *, p: float, pool_size: Any, strides: Any, padding: Any) -> Any:
    (kh, kw), (sh, sw) = pool_size, strides
    top, left, bottom, right = padding if len(padding) == 4 else (*padding, *padding)
    powers = np.pad(np.abs(data.astype("float64")) ** p, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(powers, (kh, kw), (2, 3))[:, :, ::sh, ::sw]
    return (windows.sum((-2, -1)) ** (1 / p)).astype(data.dtype)


@composite(
    "nn.lp_pool2d",
    [
        Param("data"),
        Param("p", "attr", 2.0, "float"),
        Param("pool_size", "attr", (1, 1), "ints"),
        Param("strides", "attr", (1, 1), "ints"),
        Param("padding", "attr", (0, 0), "ints"),
    ],
    numpy=_pooled,
    family="nn_pool",
    examples=(
        example(f32(1, 2, 5, 4), pool_size=[2, 2], strides=[1, 2]),
        example(f32("n", 2, 4, 4), p=3.0, pool_size=[3, 2], padding=[1, 0]),
    ),
)
def lp_pool2d(args: Parts) -> Expr:
    """The p norm of each window of the last two axes: (sum |x|**p)**(1 / p); padding counts as 0."""
    args.require("data", "float")
    if len(args.pool_size) != 2 or len(args.strides) != 2 or len(args.padding) not in (2, 4):
        raise args.error("pool_size and strides are pairs, padding has 2 or 4 values")
    power = call("multiply", args.data, args.data) if args.p == 2 else call("power", call("abs", args.data), args.p)
    mean = call(
        "nn.avg_pool2d",
        power,
        pool_size=args.pool_size,
        strides=args.strides,
        padding=args.padding,
        count_include_pad=True,
    )
    total = call("multiply", mean, float(args.pool_size[0] * args.pool_size[1]))
    return call("sqrt", total) if args.p == 2 else call("power", total, 1 / args.p)
