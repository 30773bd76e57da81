"""Sizes for which an operator has no value are refused alike by the interpreter and by compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import relax as R


@R.function
def median(x: R.Tensor(("n", 3), "float32")) -> R.Tensor((3,), "float32"):
    return R.median(x, axis=0)[0]


@R.function
def pool(x: R.Tensor((1, 1, "n"), "float32")):
    return R.nn.max_pool1d(x, pool_size=3)


@R.function
def adaptive(x: R.Tensor((1, 1, "n"), "float32")):
    return R.nn.adaptive_avg_pool1d(x, output_size=2)


@R.function
def convolution(x: R.Tensor((1, 1, "n"), "float32"), w: R.Tensor((2, 1, 3), "float32")):
    return R.nn.conv1d(x, w)


KERNEL = np.ones((2, 1, 3), "float32")


@pytest.mark.parametrize(
    ("function", "wrong", "right", "more"),
    [
        (median, (0, 3), (2, 3), ()),
        (pool, (1, 1, 2), (1, 1, 3), ()),
        (adaptive, (1, 1, 0), (1, 1, 1), ()),
        (convolution, (1, 1, 2), (1, 1, 3), (KERNEL,)),
    ],
    ids=lambda item: getattr(item, "name", None),
)
def test_what_has_no_value_is_a_shape_error_everywhere(function, wrong, right, more) -> None:
    for run in (weft.interpret(function), weft.compile(function)["main"]):
        run(np.ones(right, "float32"), *more)
        with pytest.raises(weft.ShapeError):
            run(np.ones(wrong, "float32"), *more)
