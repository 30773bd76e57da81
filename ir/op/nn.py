"""Neural-network operators."""

from __future__ import annotations

import numpy as np

from weft.ir import te
from weft.ir.op.unary import elementwise

elementwise(
    "nn.relu",
    "max(data, 0), elementwise.",
    "number",
    scalar=lambda x: te.maximum(x, 0),
    numpy=lambda x: np.maximum(x, 0),
    param="data",
)
