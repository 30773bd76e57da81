"""What is proved of indices over loops, of points inside of them and of bindings of blocks, beside every iteration.

`IterationSpace` and `Point` are asked whether one index is at most another; z3 and all values of the variables say
whether that is so. `Bindings` are asked whether loops reach a whole domain.
"""

from __future__ import annotations

import itertools

import pytest
import z3
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.transform.analysis.index_values import index_value
from tests.transform.analysis.test_independence import COL, ROW, SCALARS, SHIFT, indices

from weft.ir import walk
from weft.ir.kernel.prim import binary
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IntImm,
    IterVar,
    PrimExpr,
    PrimFunc,
    PrimVar,
)
from weft.transform.analysis.loops.affine import Bindings
from weft.transform.analysis.loops.iteration_space import IterationSpace, Loop
from weft.transform.analysis.loops.points import Point

Ranges = tuple[tuple[int, int], tuple[int, int]]
RANGES = st.tuples(st.tuples(st.integers(-3, 3), st.integers(1, 4)), st.tuples(st.integers(-2, 2), st.integers(1, 4)))


def points(ranges: Ranges) -> list[dict[PrimVar, int]]:
    (first, count), (low, size) = ranges
    return [
        {ROW: i, COL: j, SHIFT: s} for i in range(first, first + count) for j in range(low, low + size) for s in SCALARS
    ]


@settings(deadline=None, max_examples=60)
@given(indices(), indices(), RANGES)
def test_what_is_at_most_another_index_is_so_in_every_iteration(a: PrimExpr, b: PrimExpr, ranges: Ranges) -> None:
    space = IterationSpace()
    loops = [Loop(var, *bounds) for var, bounds in zip((ROW, COL), ranges, strict=True)]
    assert space.enter(loops)
    one, other = space.dim(a), space.dim(b)
    assume(one is not None and other is not None)
    assert one is not None
    assert other is not None
    values = [(index_value(a, point), index_value(b, point)) for point in points(ranges)]
    assert not space.at_most(one, other) or all(x <= y for x, y in values)
    assert not space.below(one, other) or all(x < y for x, y in values)
    assert not space.same(one, other) or all(x == y for x, y in values)
    for variable, loop in zip((ROW, COL), loops, strict=True):
        slope = space.slope(one, loop)
        if isinstance(slope, int):
            moved = [({**point, variable: point[variable] + 1}, point) for point in points(ranges)]
            assert all(index_value(a, after) - index_value(a, before) == slope for after, before in moved)


@pytest.mark.parametrize(
    ("a", "b", "holds"),
    [
        (ROW * 4 + COL, IntImm(15, "int64"), True),
        (ROW * 4 + COL, IntImm(14, "int64"), False),
        (binary("floordiv", ROW, 2), IntImm(1, "int64"), True),
        (binary("floormod", ROW + COL, 3), IntImm(2, "int64"), True),
        (binary("floormod", ROW + COL, 3), IntImm(1, "int64"), False),
        (binary("min", ROW + SHIFT, 7), IntImm(7, "int64"), True),
        (ROW + SHIFT, IntImm(7, "int64"), False),
        (ROW - COL, ROW, True),
        (ROW, ROW - COL, False),
    ],
)
def test_plain_bounds_are_found_and_false_ones_are_not(a: PrimExpr, b: PrimExpr, holds: bool) -> None:
    space = IterationSpace()
    assert space.enter([Loop(ROW, 0, 4), Loop(COL, 0, 4)])
    one, other = space.dim(a), space.dim(b)
    assert one is not None
    assert other is not None
    assert space.at_most(one, other) is holds
    assert is_valid(a, b) is holds


def is_valid(a: PrimExpr, b: PrimExpr) -> bool:
    """What z3 says of a <= b for i and j from 0 to 3 and any s."""
    names = {variable: z3.Int(variable.name) for variable in (ROW, COL, SHIFT)}
    solver = z3.Solver()
    solver.add(*(z3.And(names[variable] >= 0, names[variable] < 4) for variable in (ROW, COL)))
    solver.add(z3.Not(formula(a, names) <= formula(b, names)))
    return solver.check() == z3.unsat


def formula(expr: PrimExpr, names: dict[PrimVar, z3.ArithRef]) -> z3.ArithRef:
    """An index as a term of z3, whose division rounds down for positive divisors."""
    if isinstance(expr, PrimVar):
        return names[expr]
    if isinstance(expr, IntImm):
        return z3.IntVal(expr.value)
    assert isinstance(expr, Binary)
    a, b = formula(expr.a, names), formula(expr.b, names)
    made = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "floordiv": lambda: a / b,
        "floormod": lambda: a % b,
        "min": lambda: z3.If(a < b, a, b),
        "max": lambda: z3.If(a < b, b, a),
    }
    return made[expr.kind]()


def test_a_range_that_memory_says_or_another_one_is_not_taken_in() -> None:
    table = Buffer("t", (4,), "int64")
    space = IterationSpace([table])
    assert not space.enter([Loop(ROW, 0, BufferLoad(table, (COL,)))])
    assert space.enter([Loop(COL, 0, 4)])
    assert not space.enter([Loop(COL, 0, 5)])


CONDITIONS = [binary("lt", ROW, COL), binary("le", ROW + COL, 3), binary("eq", ROW, COL * 2), binary("gt", ROW, 1)]


@settings(deadline=None, max_examples=60)
@given(indices(), indices(), st.sampled_from([None, *CONDITIONS]))
def test_what_holds_at_a_point_holds_wherever_its_condition_does(
    a: PrimExpr, b: PrimExpr, condition: PrimExpr | None
) -> None:
    inner = For(COL, 0, 4, BufferStore(Buffer("x", (64,), "int64"), ROW, (COL,)))
    point = Point(PrimFunc((), For(ROW, 0, 4, inner)), [For(ROW, 0, 4, inner), inner])
    point.assume(condition)
    one, other = point.dim(a), point.dim(b)
    found = [
        (index_value(a, at), index_value(b, at))
        for at in points(((0, 4), (0, 4)))
        if at[SHIFT] >= 0 and (condition is None or holds(condition, at))
    ]
    if not mentions(a, SHIFT) and not mentions(b, SHIFT):  # a size is not negative, and no scalar is one
        assert not point.at_most(one, other) or all(x <= y for x, y in found)
        assert not point.below(one, other) or all(x < y for x, y in found)
        assert not point.equal(a, b) or all(x == y for x, y in found)


def mentions(expr: PrimExpr, variable: PrimVar) -> bool:
    return any(node is variable for node in walk(expr))


def holds(condition: PrimExpr, at: dict[PrimVar, int]) -> bool:
    assert isinstance(condition, Binary)
    a, b = index_value(condition.a, at), index_value(condition.b, at)
    return {"lt": a < b, "le": a <= b, "gt": a > b, "eq": a == b}[condition.kind]


# Bindings of blocks

BINDINGS: list[tuple[PrimExpr, PrimExpr | None, PrimExpr | None, tuple[int, int], bool | None]] = [
    (ROW, COL, None, (4, 3), True),
    (COL, ROW, None, (3, 4), True),
    (ROW, COL, None, (4, 2), None),  # more than the domain
    (ROW, COL, None, (5, 3), False),  # less of it
    (ROW * 3 + COL, None, None, (12, 1), True),
    (ROW * 4 + COL, None, None, (16, 1), False),  # 3 is left out
    (ROW * 2 + COL, None, None, (9, 1), None),  # every value, some of them twice
    (binary("floordiv", ROW * 3 + COL, 4), binary("floormod", ROW * 3 + COL, 4), None, (3, 4), True),
    (binary("floordiv", ROW * 3 + COL, 4), binary("floormod", ROW * 3 + COL, 2), None, (3, 4), False),
    (ROW * 3 + COL, None, binary("lt", ROW * 3 + COL, 10), (10, 1), True),
    (ROW * 3 + COL, None, binary("lt", ROW * 3 + COL, 9), (10, 1), False),
    (ROW, COL, binary("lt", ROW + COL, 5), (4, 3), False),
    (ROW, ROW, None, (4, 4), False),
]


@pytest.mark.parametrize(("first", "second", "predicate", "domain", "whole"), BINDINGS)
def test_bindings_that_cover_a_domain_reach_each_point_of_it(
    first: PrimExpr, second: PrimExpr | None, predicate: PrimExpr | None, domain: tuple[int, int], whole: bool | None
) -> None:
    exprs = [first] if second is None else [first, second]
    items = tuple(IterVar(PrimVar(f"v{n}", "int64"), 0, domain[n], "spatial", e) for n, e in enumerate(exprs))
    x = Buffer("x", (64,), "int64")
    block = Block(name="b", iter_vars=items, body=BufferStore(x, ROW, (items[0].var,)), predicate=predicate)
    inner = For(COL, 0, 3, block)
    loops = (For(ROW, 0, 4, inner), inner)
    claimed = Bindings.of(block, loops, Point(PrimFunc((x,), loops[0]))).covers()
    reached = {
        tuple(index_value(e, at) for e in exprs)
        for at in points(((0, 4), (0, 3)))
        if predicate is None or holds(predicate, at)
    }
    wanted = set(itertools.product(*(range(size) for size, _ in zip(domain, exprs, strict=False))))
    assert not claimed or wanted <= reached
    if whole is not None:
        assert (wanted <= reached) is whole
        assert claimed is whole
