"""Gathers of short rows are checked a block at a time: what they give, and what they refuse, is the same."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import IRModule, walk
from weft.ir.tensor import AssertStmt, For, IfThenElse, Select
from weft.transform import LegalizeOps
from weft.transform.autoschedule.explain import explain
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.vectorize_nests import VectorizeNests
from weft.transform.kernel.check_bounds import CheckBounds

TAKE = """@R.function
def main(x: R.Tensor(("n", 3), "float32"), i: R.Tensor({dims}, "int64")):
    y = R.take(x, i, 0)
    return y
"""
PAIRS = """@R.function
def main(x: R.Tensor(("n", 5, 3), "float32"), i: R.Tensor(("m", 2), "int32")):
    y = R.gather_nd(x, i)
    return y
"""


def lowered(text: str) -> IRModule:
    return CheckBounds()(LegalizeOps()(IRModule({"main": weft.parse(text)})))  # type: ignore[dict-item]


def in_blocks(text: str, size: int = 4) -> IRModule:
    return VectorizeNests(knobs=Knobs(gather_block=size))(lowered(text))


@functools.cache
def runs(text: str) -> list[Any]:
    new = in_blocks(text)
    assert [record["block"] for record in explain(new) if record["kind"] == "gather"] in ([4], [1], [2])
    return [weft.interpret(new)["main"], weft.compile(new)["main"]]


@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 9), places=st.lists(st.integers(-10, 9), max_size=40), wraps=st.booleans())
@pytest.mark.parametrize("dims", ['("m",)', "(10,)", '("m", 2)', '("m", 7)'])
def test_rows_in_blocks_are_those_of_numpy_or_refused(dims: str, size: int, places: list[int], wraps: bool) -> None:
    inner = {'("m", 2)': 2, '("m", 7)': 7}.get(dims, 1)
    indices = np.resize(np.array(places or [0], "int64"), 10 if dims == "(10,)" else len(places) // inner * inner)
    if not wraps:
        indices = np.abs(indices)
    indices = indices if inner == 1 else indices.reshape(-1, inner)
    x = np.arange(size * 3, dtype="float32").reshape(size, 3)
    for run in runs(TAKE.format(dims=dims)):
        if ((indices >= -size) & (indices < size)).all():
            np.testing.assert_array_equal(run(x, indices), x[indices])
        else:
            with pytest.raises(weft.BoundsError, match=r"R\.take: index out of range"):
                run(x, indices)


@settings(max_examples=25, deadline=None)
@given(places=st.lists(st.tuples(st.integers(-4, 4), st.integers(-6, 5)), max_size=20))
def test_several_indices_of_a_row_are_all_checked(places: list[tuple[int, int]]) -> None:
    indices = np.array(places, "int32").reshape(-1, 2)
    x = np.arange(60, dtype="float32").reshape(4, 5, 3)
    for run in runs(PAIRS):
        if ((indices >= [-4, -5]) & (indices < [4, 5])).all():
            np.testing.assert_array_equal(run(x, indices), x[indices[:, 0], indices[:, 1]])
        else:
            with pytest.raises(weft.BoundsError, match=r"R\.gather_nd: index out of range"):
                run(x, indices)


def test_blocks_without_indices_from_the_end_are_read_without_a_choice() -> None:
    new = in_blocks(TAKE.format(dims='("m",)'))
    branches = [part for _, f in new.items() for part in walk(f) if isinstance(part, IfThenElse)]
    (branch,) = [part for part in branches if part.else_body is not None]
    assert not any(isinstance(part, (Select, AssertStmt)) for part in walk(branch.then_body))
    assert branch.else_body is not None
    assert {Select, AssertStmt} <= {type(part) for part in walk(branch.else_body)}


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        ('"n", 3', '"n", 300', 4),  # long rows
        ('"n", 3', '"n", "k"', 4),  # perhaps
        ("{dims}", "(4,)", 4),  # few
        ("{dims}", '("m", "k")', 4),
        ("{dims}", '("m",)', 0),
    ],
)
def test_other_gathers_check_all_indices_before(old: str, new: str, size: int) -> None:
    module = in_blocks(TAKE.replace(old, new).format(dims='("m",)'), size)
    records = {record["kind"]: record for record in explain(module)}
    assert records["assertion"]["form"] == "before"
    assert records["gather"]["block"] == 0


def test_blocks_are_shared_among_threads() -> None:
    module = weft.lower(weft.parse(TAKE.format(dims='("m",)')), stop="schedule")
    shared = [
        part.loop_var.name
        for _, f in module.items()
        for part in walk(f)
        if isinstance(part, For) and part.kind == "parallel"
    ]
    assert shared == ["block"]
