"""Concatenations of more tensors than one kernel joins: values, checks of the other sizes, and how much is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

COUNT = 34


def _joined(axis: str, sizes: list[str]) -> Any:
    params = ", ".join(f'x{i}: R.Tensor(({size}), "float32")' for i, size in enumerate(sizes))
    names = ", ".join(f"x{i}" for i in range(len(sizes)))
    return weft.parse(f"@R.function\ndef main({params}):\n    y = R.concat(({names}), axis={axis})\n    return y\n")


@pytest.fixture(scope="module")
def program() -> tuple[Any, Any]:
    module = _joined("1", [f'"m{i % 3}", "n{i}"' if i % 4 == 1 else f'"m{i % 3}", 2' for i in range(COUNT)])
    return weft.compile(module)["main"], weft.interpret(module)["main"]


def test_many_parts_stand_one_after_the_other(program: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.random((3, int(rng.integers(0, 5)) if i % 4 == 1 else 2), "float32") for i in range(COUNT)]
    for run in program:
        np.testing.assert_array_equal(run(*arrays), np.concatenate(arrays, 1))


def test_the_other_sizes_of_many_parts_are_checked(program: tuple[Any, Any]) -> None:
    arrays = [np.ones((4 if i % 3 == 1 else 3, 2), "float32") for i in range(COUNT)]
    for run in program:
        with pytest.raises(weft.ShapeError):
            run(*arrays)


def test_parts_of_unknown_or_whole_rank() -> None:
    arrays = [np.full(2, i, "float32") for i in range(COUNT)]
    for module in (_joined("None", ["2,"] * COUNT), _joined("0", ['"n",'] * COUNT)):
        np.testing.assert_array_equal(weft.compile(module)["main"](*arrays), np.concatenate(arrays))
