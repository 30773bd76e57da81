"""A program for tests that save it."""

from __future__ import annotations

import numpy as np

__all__ = ["SOURCE", "X"]

SOURCE = """
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 3), "float32"):
    y = R.matmul(x, R.const([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32"))
    return y
"""
X = np.ones((2, 2), "float32")
