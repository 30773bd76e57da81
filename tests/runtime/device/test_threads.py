"""Parallel loops: the same results as in order, whatever the number of threads; failures as ever; one pool for all."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.at_once import at_once

import weft
from weft.errors import ArgumentError
from weft.runtime.abi.frame import FRAME_WORDS
from weft.runtime.device import threads

ROWS = weft.parse(
    """
@T.prim_func
def rows(x: T.Buffer(("n", 64), "float32"), y: T.Buffer(("n", 64), "float32"), s: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in T.parallel(n):
        t = T.alloc_buffer((64,), "float32")
        s[i] = T.float32(0)
        for j in range(64):
            t[j] = T.exp(x[i, j])
            s[i] = s[i] + t[j]
        for j in range(64):
            y[i, j] = t[j] / s[i]
"""
)
CHECKED = weft.parse(
    """
@T.prim_func
def checked(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in T.parallel(n):
        if i % 2 == 0:
            assert x[i] < T.float32(100), "even and too large"
        else:
            assert x[i] < T.float32(100), "odd and too large"
        y[i] = T.exp(x[i])
"""
)


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = threads._wanted
    yield
    weft.set_num_threads(before or threads._default())
    threads._wanted = before


def expected(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ROWS computes."""
    e = np.exp(x.astype("float64"))
    return e / e.sum(1, keepdims=True), e.sum(1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 700, 5001])
def test_results_do_not_depend_on_the_number_of_threads(count: int) -> None:
    """Bit by bit, for counts that threads do and do not divide."""
    exe = weft.compile(ROWS)
    x = np.random.default_rng(count).uniform(-2, 2, (count, 64)).astype("float32")
    found = []
    for number in (1, 2, 3, 7):
        weft.set_num_threads(number)
        y, s = np.full_like(x, -1), np.full(count, -1, "float32")
        exe["rows"](x, y, s)
        found.append((y, s))
        np.testing.assert_allclose(y, expected(x)[0], rtol=1e-4)
        np.testing.assert_allclose(s, expected(x)[1], rtol=1e-4)
    for y, s in found[1:]:
        assert y.tobytes() == found[0][0].tobytes()
        assert s.tobytes() == found[0][1].tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_a_long_loop_starts_threads_and_a_short_one_none() -> None:
    """Parallel only when it pays: the program estimates the work from the sizes of the call."""
    exe = weft.compile(ROWS)
    weft.set_num_threads(6)

    def run(count: int) -> set[str]:
        x = np.zeros((count, 64), "float32")
        exe["rows"](x, np.empty_like(x), np.empty(count, "float32"))
        return set(os.listdir("/proc/self/task"))

    before = set(os.listdir("/proc/self/task"))  # those that compiled may end at any time
    assert not run(4) - before
    assert len(run(4000)) >= 6


def test_the_failure_of_the_earliest_iteration_is_told() -> None:
    exe = weft.compile(CHECKED)
    weft.set_num_threads(4)
    x = np.zeros(400_000, "float32")
    y = np.empty_like(x)
    exe["checked"](x, y)
    np.testing.assert_array_equal(y, 1)
    for first, word in ((7, "odd"), (150_000, "even"), (399_999, "odd")):
        x[:] = 0
        x[first::1000] = 200
        with pytest.raises(AssertionError, match=f"{word} and too large"):
            exe["checked"](x, y)
    x[:] = 0
    exe["checked"](x, y)
    np.testing.assert_array_equal(y, 1)


@pytest.mark.parametrize(
    "body",
    [
        "total[0] = total[0] + x[i]",
        "total[i // 2] = total[i // 2] + x[i]",
        "total[T.cast(x[i], 'int32') % 8] = x[i]",
    ],
    ids=["one sum", "two iterations on one element", "an element that the data choose"],
)
def test_iterations_that_may_meet_run_in_order(body: str) -> None:
    """A loop marked parallel never gives another result than in order."""
    text = f"""
@T.prim_func
def meet(x: T.Buffer((300000,), "float32"), total: T.Buffer((150000,), "float32")):
    for i in T.parallel(300000):
        {body}
"""
    x = (np.arange(300_000) % 1000).astype("float32")
    function = weft.parse(text)
    weft.set_num_threads(4)
    found = []
    for _ in range(3):
        total = np.zeros(150_000, "float32")
        weft.compile(function)["meet"](x, total)
        found.append(total)
    weft.set_num_threads(1)
    want = np.zeros(150_000, "float32")
    weft.compile(function)["meet"](x, want)
    for total in found:
        np.testing.assert_array_equal(total, want)


def test_parallel_loops_inside_of_parallel_loops_run_in_order() -> None:
    text = """
@T.prim_func
def both(x: T.Buffer((600, 600), "float32"), y: T.Buffer((600, 600), "float32")):
    for i in T.parallel(600):
        for j in T.parallel(600):
            y[i, j] = T.exp(x[i, j])
"""
    weft.set_num_threads(3)
    x = np.random.default_rng(0).uniform(-1, 1, (600, 600)).astype("float32")
    y = np.empty_like(x)
    weft.compile(weft.parse(text))["both"](x, y)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_where_an_outer_loop_is_short_the_one_inside_of_it_is_shared() -> None:
    """One picture of a batch of any size, whose rows are enough for all threads."""
    text = """
@T.prim_func
def both(x: T.Buffer(("n", 64, 600), "float32"), y: T.Buffer(("n", 64, 600), "float32")):
    n = T.int64()
    for b in T.parallel(n):
        t = T.alloc_buffer((64, 600), "float32")
        for i in T.parallel(64):
            for j in range(600):
                t[i, j] = T.exp(x[b, i, j])
        for i in T.parallel(64):
            for j in range(600):
                y[b, i, j] = t[63 - i, j]
"""
    main = weft.compile(weft.parse(text))["both"]
    for count, threads_wanted in ((0, 2), (1, 11), (15, 2), (16, 2), (40, 3)):
        weft.set_num_threads(threads_wanted)
        x = np.random.default_rng(count).uniform(-1, 1, (count, 64, 600)).astype("float32")
        y = np.empty_like(x)
        before = set(os.listdir("/proc/self/task"))
        main(x, y)
        np.testing.assert_allclose(y, np.exp(x[:, ::-1]), rtol=1e-5)
        if count == 1:
            assert set(os.listdir("/proc/self/task")) - before


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_short_loops_inside_one_another_are_shared_as_one() -> None:
    """Twice thirteen iterations are enough for fourteen threads; where inner ones begin, the outer loop says."""
    text = """
@T.prim_func
def both(x: T.Buffer((2, 15, 9000), "float32"), y: T.Buffer((2, 15, 9000), "float32")):
    for b in T.parallel(T.int32(1), T.int32(3)):
        for i in T.parallel(b, b + 13):
            t = T.alloc_buffer((16,), "float32")
            for j in range(9000):
                t[j % 16] = T.exp(x[b - 1, i, j])
                y[b - 1, i, j] = t[j % 16]
"""
    main = weft.compile(weft.parse(text))["both"]
    x = np.random.default_rng(0).uniform(-1, 1, (2, 15, 9000)).astype("float32")
    for count in (1, 2, 14):
        weft.set_num_threads(count)
        y = np.zeros_like(x)
        main(x, y)
        np.testing.assert_allclose(y[0, 1:14], np.exp(x[0, 1:14]), rtol=1e-5)
        np.testing.assert_allclose(y[1, 2:15], np.exp(x[1, 2:15]), rtol=1e-5)
        assert not y[0, 0].any()
        assert not y[1, :2].any()
    assert len(os.listdir("/proc/self/task")) >= 14


def parts_of(count: int, thread_count: int, together: int) -> list[tuple[int, int, int]]:
    """(first, last, slot) of the parts of a loop as they begin; a thread's first one waits until so many have begun."""
    weft.set_num_threads(thread_count)
    begun, found, waiting = threading.Barrier(together), [], set(range(together))

    def chunk(_: int, first: int, last: int, slot: int) -> None:
        found.append((first, last, slot))
        if slot in waiting:
            waiting.remove(slot)
            begun.wait(60)

    types = (ctypes.c_void_p, *[ctypes.c_int64] * 3)
    context = (ctypes.c_int64 * 8)(ctypes.addressof(frame := (ctypes.c_int64 * FRAME_WORDS)()))
    assert not any(frame)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3)(threads.runner())
    called = ctypes.CFUNCTYPE(None, *types)(chunk)
    run(ctypes.cast(called, ctypes.c_void_p), ctypes.addressof(context), 5, 5 + count, 0)
    return found


@pytest.mark.parametrize("count", [2, 7, 8, 13, 1000])
@pytest.mark.parametrize("thread_count", [2, 3, 5])
def test_every_iteration_is_in_one_part(count: int, thread_count: int) -> None:
    """Parts follow each other without a gap and are of one size or one more, which are spread evenly."""
    found = sorted(parts_of(count, thread_count, 1))
    assert [first for first, _, _ in found] == [5, *(last for _, last, _ in found[:-1])]
    assert found[-1][1] == 5 + count
    sizes = [last - first for first, last, _ in found]
    assert max(sizes) - min(sizes) <= 1
    half = len(sizes) // 2
    assert abs(sum(sizes[:half]) - sum(sizes[-half:])) <= 1
    assert all(0 <= slot < min(count, thread_count) for _, _, slot in found)


def test_each_thread_begins_with_its_own_share() -> None:
    """The calling thread with the first half, the other one with the second, in every loop."""

    def begins() -> bool:
        first = {slot: first for first, _, slot in reversed(parts_of(16, 2, 2))}
        return first == {0: 5, 1: 13}

    child = os.fork()  # which has no other threads yet
    if child == 0:
        try:
            os._exit(0 if all(begins() for _ in range(20)) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_python_threads_share_the_pool() -> None:
    """Whoever comes while a loop runs does its own alone."""
    exe = weft.compile(ROWS)
    weft.set_num_threads(3)

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).uniform(-1, 1, (2000, 64)).astype("float32")
        for _ in range(10):
            y, s = np.empty_like(x), np.empty(2000, "float32")
            exe["rows"](x, y, s)
            np.testing.assert_allclose(y, expected(x)[0], rtol=1e-4)

    at_once(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    exe = weft.compile(ROWS)
    weft.set_num_threads(3)
    x = np.zeros((3000, 64), "float32")
    exe["rows"](x, np.empty_like(x), np.empty(3000, "float32"))
    child = os.fork()
    if child == 0:
        try:
            y = np.empty_like(x)
            exe["rows"](x, y, np.empty(3000, "float32"))
            os._exit(0 if (y == np.float32(1 / 64)).all() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "two"])
def test_a_number_of_threads_below_one_is_refused(count: object) -> None:
    with pytest.raises(ArgumentError) as caught:
        weft.set_num_threads(count)  # type: ignore[arg-type]
    assert caught.value.code == "W857"


def test_the_number_of_threads_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_wanted", None)
    monkeypatch.setenv("WEFT_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert weft.get_num_threads() == 3
    monkeypatch.delenv("WEFT_NUM_THREADS")
    assert weft.get_num_threads() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert 1 <= weft.get_num_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5"])
def test_a_number_of_threads_in_the_environment_that_is_none_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_wanted", None)
    monkeypatch.setenv("WEFT_NUM_THREADS", text)
    with pytest.raises(ArgumentError, match="the number of threads is at least 1") as caught:
        weft.get_num_threads()
    assert caught.value.code == "W857"
    monkeypatch.setenv("WEFT_NUM_THREADS", "")
    assert weft.get_num_threads() >= 1


def test_a_saved_executable_runs_its_loops_in_parallel(tmp_path: Path) -> None:
    weft.compile(ROWS).save(tmp_path / "rows.weft")
    loaded = weft.load(tmp_path / "rows.weft")
    weft.set_num_threads(2)
    x = np.random.default_rng(1).uniform(-1, 1, (3000, 64)).astype("float32")
    y = np.empty_like(x)
    loaded["rows"](x, y, np.empty(3000, "float32"))
    np.testing.assert_allclose(y, expected(x)[0], rtol=1e-4)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_a_target_limits_the_threads_of_its_loops() -> None:
    """`-threads=1` means no other thread, whatever the process allows."""
    exe = weft.compile(ROWS, "llvm -threads=1")
    weft.set_num_threads(12)
    before = set(os.listdir("/proc/self/task"))
    x = np.zeros((4000, 64), "float32")
    y = np.empty_like(x)
    exe["rows"](x, y, np.empty(4000, "float32"))
    assert not set(os.listdir("/proc/self/task")) - before
    np.testing.assert_allclose(y, 1 / 64)
