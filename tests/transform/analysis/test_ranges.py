"""Touched ranges and inverted indices against brute force: what is left out is really not touched, what is inverted for
really gives the index."""

from __future__ import annotations

import itertools

import pytest
from tests.transform.analysis.index_values import index_value

from weft.ir.kernel.prim import binary
from weft.ir.tensor import Buffer, BufferStore, FloatImm, For, PrimExpr, PrimFunc, PrimVar, SeqStmt
from weft.transform.analysis.loops.inverted_indices import inverted
from weft.transform.analysis.loops.points import Point
from weft.transform.analysis.loops.touched_ranges import touched

ROW, COL, OTHER = PrimVar("i", "int64"), PrimVar("j", "int64"), PrimVar("o", "int64")
SIZES = (3, 4)


INDICES: list[PrimExpr] = [
    ROW * 4 + COL,
    COL * 3 + ROW,
    ROW + COL,
    11 - (ROW * 4 + COL),
    binary("floordiv", ROW * 4 + COL, 5),
    binary("floormod", ROW * 4 + COL, 5),
    binary("max", ROW - COL, 0),
    binary("min", ROW * COL, 4),
    ROW * ROW,
]


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_nothing_outside_of_a_touched_range_is_touched(index: PrimExpr) -> None:
    buffer = Buffer("x", (64,), "float32")
    store = BufferStore(buffer, FloatImm(1.0, "float32"), (index,))
    loops = For(ROW, 0, SIZES[0], For(COL, 0, SIZES[1], store))
    (span,) = touched([loops], buffer, Point(PrimFunc((buffer,), loops)))
    places = {index_value(index, {ROW: i, COL: j}) for i, j in itertools.product(*map(range, SIZES))}
    assert span is None or (span[0] <= min(places) and max(places) <= span[1])  # type: ignore[operator]
    if index in INDICES[:4]:
        assert span == (min(places), max(places))


@pytest.mark.parametrize(
    ("indices", "is_solved"),
    [
        ((ROW * 4 + COL,), True),
        ((COL * 3 + ROW,), True),
        ((ROW, COL), True),
        ((COL, ROW), True),
        ((ROW + COL,), False),
        ((ROW * 4,), False),
        ((ROW * 2 + COL,), False),
    ],
)
def test_what_an_index_is_solved_for_gives_it_back(indices: tuple[PrimExpr, ...], is_solved: bool) -> None:
    given = tuple(PrimVar(f"g{axis}", "int64") for axis in range(len(indices)))
    buffer = Buffer("x", (64,) * len(indices), "float32")
    point = Point(PrimFunc((buffer,), SeqStmt()))
    for variable in given:
        point.range(variable, 0, 64)
    found = inverted(indices, {ROW: (0, SIZES[0]), COL: (0, SIZES[1])}, given, point)
    assert (found is not None) is is_solved
    reached = {
        tuple(index_value(index, {ROW: i, COL: j}) for index in indices): (i, j)
        for i, j in itertools.product(*map(range, SIZES))
    }
    if found is None:
        assert len(reached) < SIZES[0] * SIZES[1]  # two points give one place
        return
    solution, conditions = found
    for place in itertools.product(*(range(16) for _ in given)):
        at = dict(zip(given, place, strict=True))
        if all(index_value(condition, at) for condition in conditions):
            assert reached[place] == (index_value(solution[ROW], at), index_value(solution[COL], at))
        else:
            assert place not in reached


def test_the_ranges_of_several_stores_are_those_around_them() -> None:
    buffer = Buffer("x", (64,), "float32")
    stores = [BufferStore(buffer, FloatImm(1.0, "float32"), (ROW + shift,)) for shift in (0, 9)]
    loops = For(ROW, 0, 3, SeqStmt(tuple(stores)))
    assert touched([loops], buffer, Point(PrimFunc((buffer,), loops))) == [(0, 11)]
