"""Registered functions: what they return is checked, what they keep is theirs, what they raise comes out."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.errors import ArgumentError, ShapeError, WeftError
from weft.ir import IRModule
from weft.runtime.registry import register_func, unregister_func

EXECUTORS = ("native", "vm")
SIZES = """
@I.ir_module
class M:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")) -> R.Shape(ndim={ndim}):
        s = R.call_packed("tests.sizes", x, ty_args=R.Shape(ndim={ndim}))
        return s
"""
X = np.arange(2, dtype="float32")
LONG = np.ones(1000, "float32")


def module(text: str) -> IRModule:
    made = weft.parse(text)
    assert isinstance(made, IRModule)
    return made


@pytest.fixture(scope="module")
def programs():
    """A program that returns the sizes that a registered function gives, by executor and rank."""
    return {
        (executor, ndim): weft.compile(module(SIZES.format(ndim=ndim)), executor=executor)["main"]
        for executor in EXECUTORS
        for ndim in (-1, 0, 3, 17)
    }


def expected(value: Any, ndim: int) -> tuple[int, ...] | None:
    """What comes back for the sizes that a function returns; None when they are no shape of that rank."""
    plain = all(type(size) is int or isinstance(size, np.integer) for size in value)
    fits = len(value) == ndim if ndim >= 0 else len(value) <= 16
    return tuple(map(int, value)) if plain and fits and all(0 <= size < 2**63 for size in value) else None


SIZE = st.one_of(
    st.integers(0, 5),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63 - 1, 2**63, 2**64, -1, True, 1.0, 1.9]),
    st.sampled_from([None, np.int8(3), np.uint64(2**63), np.float32(1), "1"]),
)
MANY = st.integers(0, 1200).map(lambda count: [1] * count)


@settings(max_examples=150, deadline=None)
@given(
    value=st.one_of(st.lists(SIZE, max_size=20), MANY),
    ndim=st.sampled_from([-1, -1, 0, 3, 17]),
    executor=st.sampled_from(EXECUTORS),
)
def test_sizes_come_back_as_they_are_or_are_refused(programs: Any, value: list[Any], ndim: int, executor: str) -> None:
    register_func("tests.sizes", lambda x: tuple(value))
    wanted = expected([np.nan if isinstance(size, str | None) else size for size in value], ndim)
    if wanted is not None:
        assert programs[executor, ndim](X) == wanted
    else:
        with pytest.raises(ShapeError) as caught:
            programs[executor, ndim](X)
        assert caught.value.code == "W223"


@pytest.mark.parametrize("count", [17, 1000])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_more_sizes_than_there_is_room_for_are_refused_as_an_argument_too(count: int, executor: str) -> None:
    text = "@R.function\ndef main(s: R.Shape(ndim=-1)) -> R.Shape(ndim=-1):\n    return s\n"
    run = weft.compile(IRModule({"main": weft.parse(text)}), executor=executor)["main"]  # pyright: ignore
    assert run((1,) * 16) == (1,) * 16
    if executor == "native":
        with pytest.raises(ArgumentError, match="ranks up to 16"):
            run((1,) * count)


KEEPS = """
@I.ir_module
class M:
    @R.function(pure=False)
    def main(x: R.Tensor((1000,), "float32")) -> R.Tensor((1000,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            R.output(a)
        b = R.call_dps_packed("tests.keep", (a,), out_ty=R.Tensor((1000,), "float32"))
        c = R.multiply(b, b)
        return c
"""
KERNEL = """
@I.ir_module
class M:
    @T.prim_func
    def main(x: T.Buffer((1000,), "float32"), y: T.Buffer((1000,), "float32")):
        T.evaluate(T.call_packed("tests.keep", x.data, y.data, dtype="void"))
"""


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_arrays_that_a_function_keeps_stay_as_they_were(executor: str) -> None:
    kept: list[np.ndarray] = []

    def keep(a: np.ndarray, out: np.ndarray) -> None:
        out[...] = a + 1
        kept.extend([a, a[::2], out])

    register_func("tests.keep", keep)
    exe = weft.compile(module(KEEPS), executor=executor)
    for turn in range(3):
        x = np.full(1000, turn, "float32")
        np.testing.assert_array_equal(exe["main"](x), (2 * x + 1) ** 2)
        del x
    del exe
    gc.collect()
    junk = [np.full(1000, -7, "float32") for _ in range(50)]
    for turn in range(3):
        a, half, out = kept[3 * turn : 3 * turn + 3]
        np.testing.assert_array_equal(a, 2 * turn)
        np.testing.assert_array_equal(half, 2 * turn)
        np.testing.assert_array_equal(out, 2 * turn + 1)
    assert len(junk) == 50


def test_arrays_that_a_kernel_hands_out_are_the_functions_too() -> None:
    kept: list[np.ndarray] = []

    def keep(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = x * 3
        kept.extend([x, y])

    register_func("tests.keep", keep)
    exe = weft.compile(module(KERNEL))
    x, y = np.ones(1000, "float32"), np.zeros(1000, "float32")
    exe["main"](x, y)
    np.testing.assert_array_equal(y, 3)
    x[...] = y[...] = 9
    np.testing.assert_array_equal(kept[0], 1)
    np.testing.assert_array_equal(kept[1], 3)


def test_an_array_that_is_given_twice_is_one_array() -> None:
    def both(x: np.ndarray, y: np.ndarray) -> None:
        x[0] = 5
        assert y[0] == 5

    register_func("tests.keep", both)
    text = KERNEL.replace("x.data, y.data", "x.data, x.data")
    x = np.ones(1000, "float32")
    weft.compile(module(text))["main"](x, np.zeros(1000, "float32"))
    assert x[0] == 5


class RefusesNotes(Exception):
    """An exception that cannot be added to."""

    def add_note(self, note: str, /) -> None:
        raise RuntimeError("no notes")


class OddNotes(Exception):
    """One whose notes are no list."""

    __notes__ = 3  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize("kind", [RefusesNotes, OddNotes, ValueError, KeyboardInterrupt])
def test_what_a_function_raises_comes_out_whatever_its_notes_do(kind: type[BaseException]) -> None:
    def fail(a: np.ndarray, out: np.ndarray) -> None:
        raise kind("mine")

    register_func("tests.keep", fail)
    with pytest.raises(kind) as caught:
        weft.compile(module(KEEPS))["main"](LONG)
    assert caught.value.args == ("mine",)


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
@pytest.mark.parametrize(
    "name", ["weft.null", "weft.assert", "weft.cast", "weft.print", "weft.print_format", "weft.tensor_to_shape"]
)
def test_actions_of_the_runtime_are_no_names(name: str, executor: str) -> None:
    with pytest.raises(WeftError) as caught:
        weft.compile(module(KEEPS.replace("tests.keep", name)), executor=executor)["main"](LONG)
    assert caught.value.code == ("W760" if executor == "aot" else "W861")
    register_func(name, lambda a, out: out.fill(2))
    try:
        result = weft.compile(module(KEEPS.replace("tests.keep", name)), executor=executor)["main"](LONG)
        np.testing.assert_array_equal(result, 4)
    finally:
        unregister_func(name)
