"""Sorting by vector code: the same as NumPy's and as the form for other machines, for every dtype, ties, nan, -0.0."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import PrimFunc, walk
from weft.ir.tensor import Evaluate, PrimCall
from weft.runtime.device.frames import stack_need
from weft.transform import LegalizeOps
from weft.transform.infra.phases import run_phases

DTYPES = ("float16", "float32", "float64", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int8")
WIDE, NARROW = "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3"


def program(dtype: str, shape: str, descending: bool, axis: int = -1) -> weft.IRModule:
    body = ", ".join(f"R.{name}(x, axis={axis}, descending={descending})" for name in ("sort", "argsort"))
    made = weft.parse(f'@R.function\ndef main(x: R.Tensor(({shape},), "{dtype}")):\n    return ({body})')
    return weft.IRModule({"main": made})  # type: ignore[dict-item]


@functools.cache
def compiled(dtype: str, shape: str, descending: bool, axis: int = -1) -> Any:
    return weft.compile(program(dtype, shape, descending, axis))["main"]


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Few different ones, so that there are ties; nan of two payloads and signs, zeros of both, the number below."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind != "f":
        info = np.iinfo(kind)
        pool = np.array([info.min, info.max, 0, 1, 7, *rng.integers(info.min, info.max, 20, kind)], kind)
        return rng.choice(pool, shape)
    raw = np.dtype(f"u{kind.itemsize}")
    nan, sign = np.array(np.nan, kind).view(raw), 1 << (8 * kind.itemsize - 1)
    other = np.array([int(nan) + 1, int(nan) + 1 | sign, sign | 1], raw)
    pool = np.concatenate([np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -2.5, 1e-7], kind), other.view(kind)])
    return np.where(rng.random(shape) < 0.5, rng.choice(pool, shape), rng.standard_normal(shape).astype(kind)).astype(
        kind
    )


def order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def assert_same_bits(a: np.ndarray, b: np.ndarray) -> None:
    raw = f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(np.ascontiguousarray(a).view(raw), np.ascontiguousarray(b).view(raw))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_stands_where_a_stable_sort_puts_it(dtype: str) -> None:
    descending = dtype in ("float16", "float64", "int32", "uint64")

    @settings(max_examples=12, deadline=None)
    @given(st.sampled_from([0, 1, 2, 15, 64, 129, 257, 300, 1000]) | st.integers(0, 1200), st.integers(0, 99))
    def check(size: int, seed: int) -> None:
        x = values(dtype, (size,), seed)
        ordered, positions = compiled(dtype, "'n'", descending)(x)
        wanted = order(x, -1, descending)
        np.testing.assert_array_equal(positions, wanted)
        assert_same_bits(ordered, x[wanted])

    check()


@pytest.mark.parametrize(("dtype", "axis"), [("float32", 0), ("int16", 1), ("float64", 2)])
def test_any_axis_is_sorted(dtype: str, axis: int) -> None:
    x = values(dtype, (17, 30, 19), axis)
    ordered, positions = compiled(dtype, "17, 30, 19", False, axis)(x)
    wanted = order(x, axis, False)
    np.testing.assert_array_equal(positions, wanted)
    assert_same_bits(ordered, np.take_along_axis(x, wanted, axis))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_median_is_selected(dtype: str) -> None:
    module = weft.parse(f'@R.function\ndef main(x: R.Tensor((5, "n"), "{dtype}")):\n    return R.median(x, axis=1)')
    run = weft.compile(module)["main"]
    for size in (1, 2, 16, 17, 300, 1001):
        x = values(dtype, (5, size), size)
        x[1:] = np.nan_to_num(x[1:])
        found, positions = run(x)
        wanted = order(x, 1, False)
        rank = np.where(np.isnan(x).any(1), size - 1, (size - 1) // 2)
        np.testing.assert_array_equal(positions, wanted[np.arange(5), rank])
        assert_same_bits(found, x[np.arange(5), positions])


def intrinsics(target: str, dtype: str = "float32") -> set[str]:
    """The intrinsics that the kernels of a sort for a target call."""
    module = run_phases(program(dtype, "1000", False), target, stop="legalize")
    kernels = [function for function in module.functions.values() if isinstance(function, PrimFunc)]
    calls = [part.value for kernel in kernels for part in walk(kernel.body) if isinstance(part, Evaluate)]
    return {str(call.op) for call in calls if isinstance(call, PrimCall)}


def test_machines_that_put_picked_lanes_together_take_vector_code() -> None:
    assert intrinsics(WIDE) == {"sort_keys", "sort_positions", "sort_values"}
    assert intrinsics(NARROW) == intrinsics("c") == intrinsics("llvm -mcpu=generic-aarch64") == set()
    assert intrinsics(WIDE, "int8") == set()  # one byte is counted
    assert intrinsics(WIDE, "int16") == {"sort_keys", "sort_positions"}
    assert intrinsics("llvm -mcpu=icelake-server", "int16") == {"sort_keys", "sort_positions", "sort_values"}
    assert intrinsics(WIDE, "float64") == {"sort_pairs", "sort_positions", "sort_values"}


@pytest.mark.parametrize("dtype", ["int16", "float32", "int64"])
def test_sorts_of_values_call_without_a_question_for_the_stack(dtype: str) -> None:
    made = weft.parse(f'@R.function\ndef main(x: R.Tensor((100,), "{dtype}")):\n    return R.sort(x)')
    assert stack_need(weft.compile(made)._program.objects) == 0


def test_both_forms_of_a_kernel_mean_the_same() -> None:
    x = values("float32", (3, 200), 1)
    module = program("float32", "3, 200", True)
    weft.testing.assert_same_meaning(module, LegalizeOps()(module), arguments=[x])
    weft.testing.assert_same_meaning(module, run_phases(module, WIDE, stop="legalize"), arguments=[x])
    weft.testing.assert_same_meaning(module, weft.compile(module, NARROW), arguments=[x])


def test_keys_with_positions_beside_mean_what_the_interpreter_says() -> None:
    x = values("int64", (2, 150), 1)
    module = program("int64", "2, 150", False)
    weft.testing.assert_same_meaning(module, run_phases(module, WIDE, stop="legalize"), arguments=[x])


@pytest.mark.parametrize("turn", [1, -1])
def test_rows_in_order_already_keep_ties_in_theirs(turn: int) -> None:
    x = np.sort(values("float64", (3, 1000), 0))[:, ::turn].copy()
    ordered, positions = compiled("float64", "3, 1000", False)(x)
    wanted = order(x, -1, False)
    np.testing.assert_array_equal(positions, wanted)
    assert_same_bits(ordered, np.take_along_axis(x, wanted, -1))


@pytest.mark.parametrize("shape", ["40, 700", "40, 3, 700", "'m', 'n'", "4, 20000"])
def test_threads_share_rows_out(shape: str) -> None:
    extents = tuple({"'m'": 40, "'n'": 700}.get(part) or int(part) for part in shape.split(", "))
    x = values("float32", extents, 5)
    body = "R.sort(x), R.argsort(x), R.topk(x, k=7)"
    module = weft.parse(f'@R.function\ndef main(x: R.Tensor(({shape}), "float32")):\n    return ({body})')
    made = weft.compile(module)
    assert made.explain().count("(iterations are proved independent)") >= 2
    before = weft.get_num_threads()
    try:
        for threads in (1, 3):
            weft.set_num_threads(threads)
            ordered, positions, (first, places) = made["main"](x)
            wanted = order(x, -1, False)
            np.testing.assert_array_equal(positions, wanted)
            assert_same_bits(ordered, np.take_along_axis(x, wanted, -1))
            best = order(x, -1, True)[..., :7]
            np.testing.assert_array_equal(places, best)
            assert_same_bits(first, np.take_along_axis(x, best, -1))
    finally:
        weft.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64"])
def test_a_vector_of_known_size_is_sorted_into_its_result(dtype: str) -> None:
    for descending, size in ((False, 16), (True, 300)):
        made = weft.parse(
            f'@R.function\ndef main(x: R.Tensor(({size},), "{dtype}")):\n    return R.sort(x, 0, {descending})'
        )
        x = values(dtype, (size,), size)
        before = x.copy()
        assert_same_bits(weft.compile(made)["main"](x), x[order(x, 0, descending)])
        assert_same_bits(x, before)
        module = weft.IRModule({"main": made})  # type: ignore[dict-item]
        weft.testing.assert_same_meaning(module, run_phases(module, WIDE, stop="legalize"), arguments=[x])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_threads_share_one_long_row(dtype: str) -> None:
    run = compiled(dtype, "'n'", False)
    before = weft.get_num_threads()
    try:
        for threads, size in ((1, 80_000), (3, 80_000), (3, 65_536), (3, 65_535)):
            weft.set_num_threads(threads)
            x = values(dtype, (size,), size)
            x[::3] = np.random.default_rng(1).integers(0, 1 << 20, len(x[::3]))
            wanted = np.argsort(x, kind="stable")
            ordered, positions = run(x)
            np.testing.assert_array_equal(positions, wanted)
            assert_same_bits(ordered, x[wanted])
    finally:
        weft.set_num_threads(before)


def test_what_was_chosen_is_explained() -> None:
    made = weft.compile(program("float32", "1000", False), NARROW)
    assert made.explain().count("intrinsic: sort_keys=no (the machine lacks it for uint64)") == 1
    assert made.explain().count("intrinsic: sort_values=no (the machine lacks it for float32)") == 1


@pytest.mark.parametrize(
    ("dtype", "largest"), [("float32", True), ("float64", False), ("int16", True), ("uint64", True)]
)
@pytest.mark.parametrize("extent", ["'n'", "1000"])
def test_the_first_elements_are_those_of_a_stable_sort(dtype: str, largest: bool, extent: str) -> None:
    body = f"R.topk(x, 40, axis=1, largest={largest}), R.topk(x, 40, axis=1, ret_type='values', largest={largest})"
    made = weft.parse(f'@R.function\ndef main(x: R.Tensor((3, {extent}), "{dtype}")):\n    return ({body})')
    run = weft.compile(made)["main"]
    for size in (40, 41, 100, 119, 120, 1000) if extent != "1000" else (1000,):
        x = values(dtype, (3, size), size)
        (found, positions), alone = run(x)
        wanted = order(x, 1, largest)[:, :40]
        np.testing.assert_array_equal(positions, wanted)
        assert_same_bits(found, np.take_along_axis(x, wanted, 1))
        assert_same_bits(alone, found)


@pytest.mark.parametrize("shape", [(10,), (3000,), (4, 5000)])
def test_elements_that_were_computed_are_sorted_into_other_memory(shape: tuple[int, ...]) -> None:
    dims = ", ".join(map(str, shape)) + ","
    text = f'@R.function\ndef main(x: R.Tensor(({dims}), "int32")):\n    return R.sort(R.reshape(x * x, ({dims})))'
    x = np.random.default_rng(0).integers(-99, 99, shape, "int32")
    np.testing.assert_array_equal(weft.compile(weft.parse(text))["main"](x), np.sort(x * x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "uint32", "int64", "uint64"])
def test_two_runs_of_any_sizes_are_merged(dtype: str) -> None:
    descending = dtype in ("float32", "uint64")
    made = weft.parse(
        f'@R.function\ndef main(x: R.Tensor(("n",), "{dtype}")):\n    return R.sort(x, descending={descending})'
    )
    run = weft.compile(made)["main"]

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 1400), st.integers(0, 1400) | st.integers(0, 70), st.integers(0, 25), st.integers(0, 99))
    def check(first: int, last: int, between: int, seed: int) -> None:
        few = values(dtype, (first + between + last,), seed)
        many = np.random.default_rng(seed).permutation(few.size).astype(dtype)
        for x in (few, many):
            head, middle, tail = np.split(x, [first, first + between])
            runs = [part[order(part, 0, descending)] for part in (head, tail)]
            x = np.concatenate([runs[0], middle, runs[1]])
            assert_same_bits(run(x), x[order(x, 0, descending)])

    check()
