"""The operators with windows by the number of their spatial axes, as the tables of importers choose them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.ir.graph import Expr
from weft.script import relax as R

__all__ = ["AVG_POOL", "CONV", "CONV_TRANSPOSE", "MAX_POOL", "MAX_POOL_WITH_INDICES"]

Operators = Mapping[int, Callable[..., Expr]]

CONV: Operators = {1: R.nn.conv1d, 2: R.nn.conv2d, 3: R.nn.conv3d}
CONV_TRANSPOSE: Operators = {1: R.nn.conv1d_transpose, 2: R.nn.conv2d_transpose, 3: R.nn.conv3d_transpose}
MAX_POOL: Operators = {1: R.nn.max_pool1d, 2: R.nn.max_pool2d, 3: R.nn.max_pool3d}
MAX_POOL_WITH_INDICES: Operators = {
    1: R.nn.max_pool1d_with_indices,
    2: R.nn.max_pool2d_with_indices,
    3: R.nn.max_pool3d_with_indices,
}
AVG_POOL: Operators = {1: R.nn.avg_pool1d, 2: R.nn.avg_pool2d, 3: R.nn.avg_pool3d}
