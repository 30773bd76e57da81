"""Iterations that count as independent are: against brute force over starts of any sign, scalars and narrow indices;
so are memory that an output may share with an input, and copies that are reshapes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.analysis.index_values import index_value

import weft
from weft import parse
from weft.ir import replace
from weft.ir.kernel.prim import binary, cast
from weft.ir.tensor import (
    Binary,
    Bind,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    SeqStmt,
)
from weft.transform.analysis.accesses import is_reshape, iterations_are_apart, sharing_pairs
from weft.transform.analysis.loops.dependence import has_index_of_its_own

ROW, COL, SHIFT = PrimVar("i", "int64"), PrimVar("j", "int64"), PrimVar("s", "int64")
NARROW = PrimVar("i", "int8")
KINDS = ("add", "sub", "mul", "min", "max", "floordiv", "floormod")
SCALARS = (-9, -1, 0, 1, 5)


def nest(index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]]) -> tuple[For, Buffer]:
    """Two loops around a store."""
    buffer = Buffer("x", (1 << 20,), "float32")
    (first, count), (low, size) = ranges
    return For(ROW, first, count, For(COL, low, size, BufferStore(buffer, FloatImm(1.0, "float32"), (index,)))), buffer


def written(index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]]) -> Iterator[list[set[int]]]:
    """For each value of the scalar: what each iteration of the outer loop writes."""
    (first, count), (low, size) = ranges
    for s in SCALARS:
        yield [
            {index_value(index, {ROW: i, COL: j, SHIFT: s}) for j in range(low, low + size)}
            for i in range(first, first + count)
        ]


def really_apart(index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    """Whether no two iterations of the outer loop write one element, whatever the scalar is."""
    return not any(a & b for parts in written(index, ranges) for a, b in itertools.combinations(parts, 2))


def indices() -> st.SearchStrategy[PrimExpr]:
    """Index arithmetic over i, j and s, with divisors that are positive."""
    leaf = st.sampled_from([ROW, ROW, COL, SHIFT]) | st.integers(-3, 8).map(lambda number: IntImm(number, "int64"))

    def more(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
        divided = st.builds(
            lambda kind, a, b: Binary(kind, a, IntImm(b, "int64")),
            st.sampled_from(("floordiv", "floormod", "mul")),
            inner,
            st.integers(1, 6),
        )
        narrow = inner.map(lambda part: cast("int64", cast("int8", part)))
        plain = st.builds(lambda kind, a, b: Binary(kind, a, b), st.sampled_from(KINDS[:5]), inner, inner)
        return plain | plain | divided | narrow

    return st.recursive(leaf, more, max_leaves=6)


def nested(loop: For) -> list[For]:
    """The loops directly inside one another."""
    inner = [loop]
    while isinstance(inner[-1].body, For):
        inner.append(inner[-1].body)
    return inner


RANGES = st.tuples(st.tuples(st.integers(-3, 3), st.integers(1, 4)), st.tuples(st.integers(-2, 2), st.integers(1, 4)))


@settings(deadline=None, max_examples=150)
@given(indices(), RANGES)
def test_iterations_that_count_as_independent_write_different_elements(
    index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    loop, buffer = nest(index, ranges)
    assert not iterations_are_apart(loop, {buffer}) or really_apart(index, ranges)
    assert not has_index_of_its_own(nested(loop)) or really_apart(index, ranges)


@pytest.mark.parametrize(
    ("index", "ranges", "apart"),
    [
        (ROW, ((0, 4), (0, 1)), True),
        (ROW * 4 + COL, ((0, 4), (0, 4)), True),
        (ROW * 4 + COL, ((0, 4), (0, 5)), False),
        (ROW * 4 + COL, ((-3, 4), (0, 4)), True),
        (15 - (ROW * 4 + COL), ((0, 4), (0, 4)), True),
        (ROW + SHIFT, ((0, 4), (0, 1)), True),
        (ROW * SHIFT, ((0, 4), (0, 1)), False),
        (binary("max", ROW, 0), ((-4, 8), (0, 1)), False),
        (binary("max", ROW, 0), ((0, 8), (0, 1)), True),
        (binary("max", ROW + SHIFT, 0), ((0, 8), (0, 1)), False),
        (ROW - binary("max", ROW, 0), ((-4, 8), (0, 1)), False),
        (cast("int64", cast("int8", ROW)), ((0, 127), (0, 1)), True),
        (cast("int64", cast("int8", ROW)), ((0, 300), (0, 1)), False),
        (binary("floormod", ROW, 3), ((0, 4), (0, 1)), False),
        (binary("floordiv", ROW, 2) * 4 + COL, ((0, 4), (0, 4)), False),
        (COL, ((0, 4), (0, 1)), False),
    ],
)
def test_each_claim_of_independence_has_its_counter_example(
    index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]], apart: bool
) -> None:
    loop, buffer = nest(index, ranges)
    assert iterations_are_apart(loop, {buffer}) is apart
    assert really_apart(index, ranges) is apart


@pytest.mark.parametrize(
    ("index", "extent", "own"),
    [
        (ROW, 8, True),
        (ROW + SHIFT, 8, True),
        (5 - 3 * ROW, 8, True),
        (4 * ROW, 8, True),
        (4 * ROW - 4 * ROW, 8, False),
        (4 * ROW + COL, 8, False),
        (ROW * SHIFT, 8, False),
        (cast("int64", cast("int8", ROW)), 300, False),
        (Binary("mul", NARROW, IntImm(64, "int8")), 4, False),  # 4 * 64 is 0 in eight bits
        (Binary("mul", NARROW, IntImm(64, "int8")), 1, True),
    ],
)
def test_an_index_of_its_own_is_another_one_in_each_iteration(index: PrimExpr, extent: int, own: bool) -> None:
    variable = NARROW if index.dtype == "int8" else ROW
    store = BufferStore(Buffer("x", (1 << 20,), "float32"), FloatImm(1.0, "float32"), (index,))
    assert has_index_of_its_own(nested(For(variable, 0, extent, For(COL, 0, 4, store)))) is own


def test_an_index_of_its_own_is_that_of_all_accesses_to_a_buffer_that_is_written() -> None:
    x, y = Buffer("x", (9, 9), "float32"), Buffer("y", (9, 9), "float32")

    def own(value: PrimExpr) -> bool:
        return has_index_of_its_own([For(ROW, 0, 8, BufferStore(x, value, (ROW, IntImm(0, "int64"))))])

    assert own(BufferLoad(y, (ROW + 1, COL)))
    assert own(BufferLoad(x, (ROW, COL)))
    assert not own(BufferLoad(x, (ROW + 1, COL)))
    assert not own(BufferLoad(x, (COL, ROW)))


BOUNDS = st.tuples(indices(), indices())


@settings(deadline=None, max_examples=150)
@given(st.builds(lambda row, rest: ROW * row + rest, st.integers(1, 8), indices()), RANGES, BOUNDS, st.booleans())
def test_iterations_that_a_condition_keeps_apart_write_different_elements(
    index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]], bound: tuple[PrimExpr, PrimExpr], inverted: bool
) -> None:
    (first, count), (low, size) = ranges
    loop, buffer = guarded(index, ranges, binary("lt", *bound), inverted)
    if not iterations_are_apart(loop, {buffer}):
        return
    for s in SCALARS:
        parts: list[set[int]] = []
        for i in range(first, first + count):
            places = [{ROW: i, COL: j, SHIFT: s} for j in range(low, low + size)]
            holds = [index_value(bound[0], place) < index_value(bound[1], place) for place in places]
            parts.append({index_value(index, x) for x, lt in zip(places, holds, strict=True) if lt is not inverted})
        assert not any(a & b for a, b in itertools.combinations(parts, 2))


def guarded(
    index: PrimExpr, ranges: tuple[tuple[int, int], tuple[int, int]], condition: PrimExpr, inverted: bool = False
) -> tuple[For, Buffer]:
    """Two loops around a store where a condition holds, or where it does not."""
    loop, buffer = nest(index, ranges)
    assert isinstance(loop.body, For)
    store = loop.body.body
    branches = (Evaluate(IntImm(0, "int32")), store) if inverted else (store, None)
    return replace(loop, body=replace(loop.body, body=IfThenElse(condition, *branches))), buffer


@pytest.mark.parametrize(
    ("condition", "inverted", "apart"),
    [
        (COL < 4, False, True),
        (COL + 1 < 5, False, True),
        (binary("and", COL + SHIFT < 9, COL < 4), False, True),
        (COL < 5, False, False),
        (COL < 4, True, False),
        (binary("or", COL < 4, COL < 5), False, False),
        (COL < SHIFT, False, False),
        (COL < 4 - ROW, False, False),  # it is so where `i` is not negative, which is not looked at
    ],
)
def test_conditions_keep_iterations_apart(condition: PrimExpr, inverted: bool, apart: bool) -> None:
    loop, buffer = guarded(ROW * 4 + COL, ((0, 4), (0, 7)), condition, inverted)
    assert iterations_are_apart(loop, {buffer}) is apart


@pytest.mark.parametrize(("width", "apart"), [(12, True), (13, False)])
def test_masks_keep_iterations_apart(width: int, apart: bool) -> None:
    buffer, mask = Buffer("x", (1 << 20,), "float32"), PrimVar("mask", "boolx8")
    left = Broadcast(IntImm(width, "int64") - COL * 8, 8)
    there = Binary("lt", Ramp(IntImm(0, "int64"), IntImm(1, "int64"), 8), left)
    place = Ramp(ROW * 12 + COL * 8, IntImm(1, "int64"), 8)
    value = Broadcast(FloatImm(1.0, "float32"), 8)
    body = SeqStmt((Bind(mask, there), BufferStore(buffer, value, (place,), mask)))
    assert iterations_are_apart(For(ROW, 0, 4, For(COL, 0, 2, body)), {buffer}) is apart


def test_a_scalar_of_any_sign_does_not_make_results_depend_on_threads() -> None:
    module = weft.parse("""
from weft.script import ir as I, tir as T

@I.ir_module
class M:
    @T.prim_func
    def main(x: T.Buffer((1 << 20,), "int64"), s: T.int64):
        for i in T.parallel(0, 1 << 20):
            x[T.max(i + s, 0)] = i
""")
    text = weft.lower(module).script()
    kernel = module["main"]
    assert isinstance(kernel, PrimFunc)
    assert isinstance(kernel.body, For)
    assert not iterations_are_apart(kernel.body, set(kernel.params))  # type: ignore[arg-type]
    assert "T.max" in text


# Memory of an input for an output, and reshapes

X, Y = Buffer("x", (4, 6), "float32"), Buffer("y", (4, 6), "float32")


def copy(source: tuple[PrimExpr, ...], given: Buffer = X, output: Buffer = Y, *, twice: bool = False) -> PrimFunc:
    """y[i, j] = x[source], once more from the other end where asked for."""
    store = BufferStore(output, BufferLoad(given, source), (ROW, COL))
    extents = [int(extent) for extent in output.shape]  # type: ignore[call-overload]
    return PrimFunc((given, output), For(ROW, 0, extents[0], For(COL, 0, extents[1], store)))


def survives(function: PrimFunc, source: tuple[PrimExpr, ...]) -> bool:
    """Whether the copy gives the same with one memory for both, by running it in order."""
    rows, columns = 4, 6
    memory = {(i, j): i * columns + j for i in range(rows) for j in range(columns)}
    apart = {}
    for i, j in itertools.product(range(rows), range(columns)):
        at = tuple(index_value(part, {ROW: i, COL: j, SHIFT: 0}) for part in source)
        apart[i, j] = at[0] * columns + at[1]
        memory[i, j] = memory[at]
    return memory == apart


@pytest.mark.parametrize(
    ("source", "shares"),
    [
        ((ROW, COL), True),
        ((3 - ROW, COL), False),
        ((ROW, 5 - COL), False),
        ((ROW, binary("max", COL - 1, 0)), False),
        ((ROW, binary("min", COL + 1, 5)), None),  # safe in order, though not each in its place
    ],
)
def test_an_output_shares_memory_only_where_nothing_is_read_after_it_was_overwritten(
    source: tuple[PrimExpr, ...], shares: bool | None
) -> None:
    function = copy(source)
    claimed = sharing_pairs(function) == ((0, 1),)
    assert not claimed or survives(function, source)
    if shares is not None:
        assert claimed is shares


FLAT = ROW * 6 + COL


@pytest.mark.parametrize(
    ("source", "shape", "is_one"),
    [
        ((ROW, COL), (4, 6), True),
        ((binary("floordiv", FLAT, 8), binary("floormod", FLAT, 8)), (3, 8), True),
        ((binary("floormod", FLAT, 3), binary("floordiv", FLAT, 3)), (3, 8), False),
        ((3 - ROW, COL), (4, 6), False),
    ],
)
def test_a_reshape_copies_all_elements_in_their_order(
    source: tuple[PrimExpr, ...], shape: tuple[int, ...], is_one: bool
) -> None:
    given = Buffer("x", shape, "float32")
    points = [{ROW: i, COL: j} for i in range(4) for j in range(6)]
    places = [index_value(source[0], point) * shape[1] + index_value(source[1], point) for point in points]
    assert (places == list(range(24))) is is_one
    assert is_reshape(copy(source, given)) is is_one


@pytest.mark.parametrize(
    ("given", "wanted", "is_one"),
    [
        ('("k", "n", "m")', '("k", "m * n")', True),
        ('(2, "n", "m")', '(2, "n * m")', True),
        ('("k", "n", "m", 3)', '("k", "n * m", 3)', True),
        ('("k", "n", "m")', '("k", "n * m + 1")', False),
        ('("k", "m", "n")', '("k", "n * m")', False),
    ],
)
@pytest.mark.parametrize("scattered", [False, True])
def test_axes_of_symbolic_sizes_that_join_are_reshaped(given: str, wanted: str, is_one: bool, scattered: bool) -> None:
    rest = ", v3" if "3)" in given else ""
    places = [f"v0, v1, v2{rest}", f"v0, v1 * m + v2{rest}"]
    loads = [f"v0, v1 // m, v1 % m{rest}", f"v0, v1{rest}"]
    grid = f"{'2' if '(2' in given else 'k'}, {{}}{', 3' if rest else ''}"
    names = ["v0", "v1", "v2", *(["v3"] if rest else [])] if scattered else ["v0", "v1", *(["v3"] if rest else [])]
    left, right = (places[1], places[0]) if scattered else (loads[1], loads[0])
    text = f"""
@T.prim_func
def kernel(x: T.Buffer({given}, "float32"), y: T.Buffer({wanted}, "float32")):
    for {", ".join(f"i{name[1:]}" for name in names)} in T.grid({grid.format("n, m" if scattered else "n * m")}):
        with T.block("b"):
            {", ".join(names)} = T.axis.remap("{"S" * len(names)}", [{", ".join(f"i{name[1:]}" for name in names)}])
            y[{left}] = x[{right}]
"""
    if not is_one and given == '("k", "m", "n")':
        text = text.replace(f"x[{right}]", "x[v0, v1 % m, v1 // m]" if not scattered else "x[v0, v2, v1]")
    assert is_reshape(parse(text)) is is_one
