"""ParallelizeOuterLoops."""

from __future__ import annotations

import pytest
from tests.transform.helpers import check, left_alone, module

from weft.ir.structure.visit import walk
from weft.ir.tensor import For, PrimFunc
from weft.transform import ParallelizeOuterLoops

NEST = """
        @T.prim_func
        def k(x: T.Buffer(("n", 64), "float32"), y: T.Buffer(("n", 64), "float32")):
            n = T.int64()
            for i in {outer}(n):
                for j in range(64):
                    with T.block("y"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        y[vi, vj] = T.exp(x[vi, vj])
"""


def test_the_outermost_loop_whose_iterations_are_apart_is_marked() -> None:
    check(ParallelizeOuterLoops(), NEST.format(outer="range"), NEST.format(outer="T.parallel"))


def marked(body: str, params: str) -> list[str]:
    """The parallel loops of a kernel, by their variables."""
    text = f"""
        @T.prim_func
        def k({params}):
            n = T.int64()
{body}
    """
    function = ParallelizeOuterLoops()(module(text))["k"]
    assert isinstance(function, PrimFunc)
    return [node.loop_var.name for node in walk(function.body) if isinstance(node, For) and node.kind == "parallel"]


X = 'x: T.Buffer(("n", 64, 32), "float32"), y: T.Buffer(("n", 64, 32), "float32")'


def test_a_short_outer_loop_gives_way_to_a_longer_one() -> None:
    body = """
            for b in range(2):
                for i in range(4096):
                    y[b, i] = x[b, i] * T.float32(2)
    """
    params = 'x: T.Buffer((2, 4096), "float32"), y: T.Buffer((2, 4096), "float32"), z: T.Buffer(("n",), "float32")'
    assert marked(body, params) == ["i"]


@pytest.mark.parametrize(
    ("outer", "inner", "alloc", "loops"),
    [
        (2, 64, 16, ["b", "i"]),
        (8, 12, 16, ["b", "i"]),
        (16, 4, 16, ["b"]),  # enough
        (1, 64, 16, ["i"]),
        (2, 64, 1 << 16, ["i"]),  # each iteration would need so much memory
    ],
)
def test_a_short_loop_is_shared_with_the_one_inside_of_it(outer: int, inner: int, alloc: int, loops: list[str]) -> None:
    body = f"""
            for b in range({outer}):
                for i in range({inner}):
                    t = T.alloc_buffer(({alloc},), "float32")
                    for j in range(32):
                        t[j % 16] = x[b, i, j]
                        y[b, i, j] = t[j % 16] * T.float32(2)
    """
    params = X.replace('"n", 64', f"{outer}, {inner}") + ', z: T.Buffer(("n",), "float32")'
    assert marked(body, params) == loops


@pytest.mark.parametrize(
    ("outer", "inner", "loops"),
    [
        ("n", 64, ["b", "i"]),  # n may turn out to be short
        ("n", 8, ["b"]),  # too little work for each b
        ("32", 64, ["b"]),
        ("8", "n", ["b"]),  # half as many as are enough, for certain
        ("7", "n", ["i"]),
    ],
)
def test_loops_inside_of_one_that_may_be_short_are_marked_too(outer: str, inner: int | str, loops: list[str]) -> None:
    body = f"""
            for b in range({outer}):
                for i in range({inner}):
                    for j in range(128):
                        y[b, i, j] = x[b, i, j] * T.float32(2)
    """
    sizes = ", ".join('"n"' if size == "n" else str(size) for size in (outer, inner))
    shape = f"({sizes}, 128)"
    assert marked(body, f'x: T.Buffer({shape}, "float32"), y: T.Buffer({shape}, "float32")') == loops


def test_a_sum_is_not_split() -> None:
    body = """
            for i in range(n):
                for j in range(64):
                    for k in range(32):
                        s[j] = s[j] + x[i, j, k]
    """
    params = 'x: T.Buffer(("n", 64, 32), "float32"), s: T.Buffer((64,), "float32")'
    assert marked(body, params) == ["j"]


def test_scratch_memory_that_iterations_share_keeps_them_in_order() -> None:
    body = """
            t = T.alloc_buffer((64,), "float32")
            for i in range(n):
                for j in range(64):
                    t[j] = x[i, j, 0]
                for j2 in range(64):
                    for k in range(32):
                        y[i, j2, k] = t[j2]
    """
    assert marked(body, X) == []


@pytest.mark.parametrize(
    "store",
    ["y[T.cast(x[i, 0, 0], 'int32'), j, k] = x[i, j, k]", "y[T.max(i - 1, 0), j, k] = x[i, j, k]"],
    ids=["the data choose the place", "two iterations on one row"],
)
def test_iterations_that_may_meet_are_not_marked(store: str) -> None:
    body = f"""
            for i in range(n):
                for j in range(64):
                    for k in range(32):
                        {store}
    """
    assert "i" not in marked(body, X)


SORTED = """
            for i in range(n):
                t = T.alloc_buffer((2048,), "uint32")
                spare = T.alloc_buffer((2048,), "uint32")
                {before}
                for j in range(2048):
                    t[j] = T.cast(x[i, j // 32, j % 32], "uint32")
                T.evaluate(T.sort_keys(T.address_of({keys}[0]), T.address_of(spare[0]), 2048))
                for j2 in range(64):
                    for k in range(32):
                        y[i, j2, k] = T.cast(t[j2 * 32 + k], "float32")
"""


@pytest.mark.parametrize(
    ("before", "keys", "loops"),
    [
        ("t[0] = 1", "t", ["i"]),
        ("while t[0] > 0:\n                    break", "t", ["i"]),
        ("t[0] = 1", "z", []),
        ("if x[i, 0, 0] > 0:\n                    break", "t", []),
    ],
    ids=["memory of each iteration", "a loop inside ends early", "memory that all share", "the loop itself ends early"],
)
def test_sorts_of_memory_of_their_own_are_shared(before: str, keys: str, loops: list[str]) -> None:
    found = marked(SORTED.format(before=before, keys=keys), X + ', z: T.Buffer((2048,), "uint32")')
    assert [name for name in found if name == "i"] == loops


def test_little_work_and_loops_that_the_user_marked_stay() -> None:
    left_alone(
        ParallelizeOuterLoops(),
        """
        @T.prim_func
        def k(x: T.Buffer((8, 8), "float32"), y: T.Buffer((8, 8), "float32")):
            for i in range(8):
                for j in range(8):
                    y[i, j] = x[i, j]
        """,
    )
    left_alone(ParallelizeOuterLoops(), NEST.format(outer="T.parallel"))


def test_steps_that_follow_one_another_are_shared_each_for_itself() -> None:
    body = """
            t = T.alloc_buffer((64, 128), "float32")
            for b in range(n):
                for i in range(64):
                    for k in range(128):
                        t[i, k] = x[b, i, k]
                for j in range(64):
                    for l in range(128):
                        y[b, j, l] = t[63 - j, l]
    """
    params = 'x: T.Buffer(("n", 64, 128), "float32"), y: T.Buffer(("n", 64, 128), "float32")'
    assert marked(body, params) == ["i", "j"]


def test_memory_that_is_written_through_a_view_and_read_otherwise_keeps_iterations_in_order() -> None:
    body = """
            v = T.decl_buffer((n, 2048), "float32", data=T.address_of(y[0, 0, 0]))
            for i in range(n):
                for j in range(2048):
                    v[i, j] = {read}
    """
    assert marked(body.format(read="x[i, 0, 0]"), X) == ["i"]
    assert marked(body.format(read="y[n - 1 - i, 0, 0]"), X) == []


def test_a_view_that_an_iteration_declares_counts_as_its_memory() -> None:
    body = """
            for i in range(n):
                v = T.decl_buffer((n, 2048), "float32", data=T.address_of(y[0, 0, 0]))
                for j in range(2048):
                    {store}
    """
    assert marked(body.format(store="v[i, j] = x[i, 0, 0]"), X) == ["i"]
    assert marked(body.format(store="v[T.min(i, 1), j] = x[i, 0, 0]"), X) == []
