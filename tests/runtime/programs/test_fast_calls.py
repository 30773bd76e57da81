"""Calls from Python as machine code, and results in the caller's memory: the same checks and values, sooner."""

from __future__ import annotations

import gc
import pickle
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.at_once import at_once

import weft
from weft.codegen.backends.llvm.host.direct_outputs import direct_results
from weft.codegen.host.read import read_program
from weft.errors import ArgumentError, BoundsError, ShapeError
from weft.runtime import callbacks
from weft.runtime.abi.values import ArgumentPacker
from weft.runtime.programs import fastcall
from weft.runtime.registry import unregister_func

SUMS = weft.parse(
    """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4,), "float32")):
        n = T.int64()
        with R.dataflow():
            h = R.add(x, w)
            g = R.cumsum(h, axis=0)
            s = R.reshape(R.flip(h, axis=0), (n * 4,))
            R.output(g, s)
        return (g, s)
"""
)
TAKE = weft.parse(
    """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), i: R.Tensor(("m",), "int64")) -> R.Tensor(("m",), "float32"):
        with R.dataflow():
            y = R.take(x, i, axis=0)
            R.output(y)
        return y

    @T.prim_func
    def double(a: T.Buffer(("k",), "int32"), b: T.Buffer(("k",), "int32")):
        k = T.int64()
        for j in range(k):
            b[j] = a[j] * 2
"""
)


@pytest.fixture(scope="module")
def sums() -> weft.Executable:
    return weft.compile(SUMS)


@pytest.fixture(scope="module")
def take() -> weft.Executable:
    return weft.compile(TAKE)


def expected(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What SUMS computes."""
    h = x + w
    return np.cumsum(h, axis=0, dtype="float32"), h[::-1].reshape(-1)


def is_fast(function: object) -> bool:
    """Whether calls go to machine code first."""
    return type(function._call).__name__ == "builtin_function_or_method"  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 3, 1000, 40_000])
def test_a_call_gives_the_same_as_numpy_for_small_and_large_arrays(sums: weft.Executable, count: int) -> None:
    """Small results are NumPy's arrays, large ones memory that is used again; the GIL is kept or released."""
    assert is_fast(sums["main"])
    x = np.random.default_rng(count).uniform(-1, 1, (count, 4)).astype("float32")
    w = np.arange(4, dtype="float32")
    for _ in range(3):
        got = sums["main"](x, w)
        for a, b in zip(got, expected(x, w), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)
            assert a.flags.writeable
            assert a.dtype == np.float32


def test_what_machine_code_does_not_take_goes_the_long_way(sums: weft.Executable) -> None:
    """Strided, read-only, empty, named, list-like and big-endian arguments: the same results as ever."""
    x, w = np.arange(24, dtype="float32").reshape(6, 4), np.ones(4, "float32")
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (x[::-1], x.astype("float32", order="F"), frozen, np.lib.stride_tricks.as_strided(x, (6, 4), (0, 4))):
        for a, b in zip(sums["main"](given, w), expected(given, w), strict=True):
            np.testing.assert_allclose(a, b)
    assert sums["main"](w=w, x=x)[0].shape == (6, 4)
    assert sums["main"](np.empty((0, 4), "float32"), w)[1].shape == (0,)

    class Alike(np.ndarray):
        """An array of another class."""

    np.testing.assert_allclose(sums["main"](x.view(Alike), w)[0], expected(x, w)[0])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (((6, 4),), "W850"),
        (((6, 4), (4,), (4,)), "W850"),
        (((6, 5), (4,)), "W852"),
        (((6,), (4,)), "W852"),
        (((6, 4), (5,)), "W852"),
    ],
)
def test_wrong_arguments_are_refused_with_the_same_errors(
    sums: weft.Executable, arguments: tuple[tuple[int, ...], ...], code: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        sums["main"](*(np.zeros(shape, "float32") for shape in arguments))
    assert caught.value.code == code


def test_the_interpreter_says_as_compiled_code_how_to_convert(sums: weft.Executable) -> None:
    w = np.ones(4, "float32")
    for wrong in (np.ones((2, 4)), [[1.0] * 4], None):
        told: list[str | None] = []
        for run in (sums["main"], weft.interpret(SUMS)["main"]):
            with pytest.raises(ArgumentError) as caught:
                run(wrong, w)
            told.append(caught.value.hint)
        assert told[0] is not None
        assert told[0] == told[1]


def test_a_wrong_dtype_or_byte_order_or_kind_is_told(sums: weft.Executable) -> None:
    w = np.ones(4, "float32")
    for wrong in (np.ones((2, 4)), np.ones((2, 4), "int32"), b"12345678", [[1.0] * 4], None, memoryview(b"1234")):
        with pytest.raises(ArgumentError) as caught:
            sums["main"](wrong, w)
        assert caught.value.code == "W851"
    swapped = np.ones((2, 4), ">f4")
    np.testing.assert_allclose(sums["main"](swapped.astype("float32"), w)[0], [[2] * 4, [4] * 4])


def test_failures_of_the_program_are_raised_with_their_place(take: weft.Executable) -> None:
    x = np.arange(5, dtype="float32")
    assert is_fast(take["main"])
    np.testing.assert_array_equal(take["main"](x, np.array([4, -1, 0])), [4, 4, 0])
    with pytest.raises(BoundsError) as caught:
        take["main"](x, np.array([1, 5]))
    assert caught.value.span is not None


def test_kernels_write_in_place_and_see_to_overlap(take: weft.Executable) -> None:
    a, b = np.arange(6, dtype="int32"), np.zeros(6, "int32")
    assert is_fast(take["double"])
    assert take["double"](a, b) is None
    np.testing.assert_array_equal(b, a * 2)
    both = np.arange(9, dtype="int32")
    take["double"](both[:6], both[3:])
    np.testing.assert_array_equal(both, [0, 1, 2, 0, 2, 4, 6, 8, 10])
    frozen = b.copy()
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError) as caught:
        take["double"](a, frozen)
    assert caught.value.code == "W853"


def test_results_are_written_into_the_arrays_given(sums: weft.Executable) -> None:
    x, w = np.arange(12, dtype="float32").reshape(3, 4), np.ones(4, "float32")
    out = (np.full((3, 4), -1, "float32"), np.full(12, -1, "float32"))
    got = sums["main"](x, w, out=out)
    assert got[0] is out[0]
    assert got[1] is out[1]
    for a, b in zip(out, expected(x, w), strict=True):
        np.testing.assert_allclose(a, b)
    strided = np.zeros((3, 8), "float32")[:, ::2]
    assert sums["main"](x, w, out=(strided, out[1]))[0] is strided
    np.testing.assert_allclose(strided, expected(x, w)[0])


def test_an_output_may_be_an_argument(sums: weft.Executable) -> None:
    """What is read after it would have been written is read before."""
    x, w = np.arange(12, dtype="float32").reshape(3, 4), np.ones(4, "float32")
    want = expected(x.copy(), w)
    sums["main"](x, w, out=(x, np.empty(12, "float32")))
    np.testing.assert_allclose(x, want[0])


@pytest.mark.parametrize("shape", [(4, 3), (2, 4), (3, 4, 1)])
def test_an_output_of_another_shape_is_refused(sums: weft.Executable, shape: tuple[int, ...]) -> None:
    out = (np.zeros(shape, "float32"), np.zeros(12, "float32"))
    with pytest.raises(ArgumentError) as caught:
        sums["main"](np.zeros((3, 4), "float32"), np.ones(4, "float32"), out=out)
    assert caught.value.code == "W854"


@pytest.mark.parametrize("strides", [(0, 4), (8, 4), (16, 2), (-4, 8)])
def test_an_output_whose_elements_share_memory_is_refused(sums: weft.Executable, strides: tuple[int, ...]) -> None:
    """It would hold the last of what is written to each place."""
    shared = np.lib.stride_tricks.as_strided(np.zeros(64, "float32")[32:], (3, 4), strides)
    for array in (shared, shared.T.T[::-1]):
        with pytest.raises(ArgumentError, match="share memory") as caught:
            sums["main"](np.ones((3, 4), "float32"), np.ones(4, "float32"), out=(array, np.empty(12, "float32")))
        assert caught.value.code == "W854"
    for array in (np.zeros((6, 8), "float32")[::-2, ::2], np.zeros((4, 3), "float32").T):
        sums["main"](np.ones((3, 4), "float32"), np.ones(4, "float32"), out=(array, np.empty(12, "float32")))
        np.testing.assert_allclose(array, expected(np.ones((3, 4), "float32"), np.ones(4, "float32"))[0])


def test_results_that_are_arguments_are_copies() -> None:
    exe = weft.compile(
        weft.parse(
            """
@R.function
def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
    return (y, x)
"""
        )
    )
    x, y = np.zeros(3, "float32"), np.ones(3, "float32")
    a, b = exe["main"](x, y)
    a[0], b[0] = 7, 8
    assert (x[0], y[0]) == (0, 1)


def test_references_are_given_back(sums: weft.Executable, take: weft.Executable) -> None:
    """Calls that succeed, that fail and that go the long way leave every count as it was, and no memory behind."""
    x, w = np.ones((3, 4), "float32"), np.ones(4, "float32")
    index, values = np.array([9]), np.ones(3, "float32")
    wrong = np.ones((3, 5), "float32")
    function, other = sums["main"], take["main"]
    shared = (x, w, wrong, index, values, np.empty, np.dtype("float32"), np.ndarray, function)

    def calls() -> None:
        function(x, w)
        function(x, w=w)
        for bad in (lambda: function(wrong, w), lambda: other(values, index), lambda: function(x)):
            with pytest.raises((ArgumentError, BoundsError)):
                bad()

    for _ in range(20):
        calls()
    gc.collect()
    before = [sys.getrefcount(item) for item in shared]
    for _ in range(100):
        calls()
    gc.collect()
    assert [sys.getrefcount(item) for item in shared] == before
    tracemalloc.start()
    function(x, w)
    start, _ = tracemalloc.get_traced_memory()
    for _ in range(5000):
        function(x, w)
    end, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert end - start < 5000  # not one byte for each call


def test_a_result_outlives_its_executable_and_a_function_its_module() -> None:
    exe = weft.compile(SUMS)
    function = exe["main"]
    x, w = np.ones((40_000, 4), "float32"), np.ones(4, "float32")
    kept = function(x, w)
    del exe
    gc.collect()
    np.testing.assert_allclose(function(x, w)[1], kept[1])
    del function
    gc.collect()
    np.testing.assert_allclose(kept[1], 2)


def test_several_threads_call_one_function(sums: weft.Executable) -> None:
    """Each call has memory of its own, whatever sizes the others have."""
    w = np.ones(4, "float32")

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for _ in range(60):
            x = generator.random((int(generator.integers(1, 6000)), 4)).astype("float32")
            for a, b in zip(sums["main"](x, w), expected(x, w), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-3)

    at_once(work)


def test_saved_executables_keep_their_fast_calls(sums: weft.Executable, tmp_path: Path) -> None:
    sums.save(tmp_path / "sums.weft")
    loaded = weft.load(tmp_path / "sums.weft")
    assert is_fast(loaded["main"])
    x, w = np.ones((3, 4), "float32"), np.ones(4, "float32")
    np.testing.assert_allclose(loaded["main"](x, w)[0], expected(x, w)[0])
    with pytest.raises((ArgumentError, ShapeError)):
        loaded["main"](x, np.ones(3, "float32"))


def test_a_small_call_costs_less_than_a_microsecond(sums: weft.Executable) -> None:
    """The least of many, beside NumPy's own addition: at most four times that (a slow machine is slow for both)."""
    from timeit import repeat

    x, w = np.ones((3, 4), "float32"), np.ones(4, "float32")
    signature = "x: R.Tensor((3, 4), 'float32'), w: R.Tensor((4,), 'float32')"
    function = weft.compile(weft.parse(f"@R.function\ndef main({signature}):\n    return R.add(x, w)\n"))["main"]
    own, rival = [], []
    for _ in range(8):
        own += repeat(lambda: function(x, w), number=2000, repeat=1)
        rival += repeat(lambda: np.add(x, w), number=2000, repeat=1)
    assert min(own) <= max(4 * min(rival), 2000e-6)


def test_memory_that_waits_can_be_given_back(sums: weft.Executable) -> None:
    x, w = np.ones((40_000, 4), "float32"), np.ones(4, "float32")
    sums["main"](x, w)
    sums.release_memory()
    np.testing.assert_allclose(sums["main"](x, w)[1], 2)


@pytest.fixture
def only_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that machine code does not take fail."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the slow path")

    monkeypatch.setattr("weft.runtime.executable._Caller.__call__", refuse)


@pytest.mark.usefixtures("only_fast")
def test_arrays_given_for_results_are_taken_by_machine_code(sums: weft.Executable) -> None:
    for rows in (1, 3, 40_000):
        x, w = np.arange(rows * 4, dtype="float32").reshape(rows, 4), np.ones(4, "float32")
        out = (np.full((rows, 4), -1, "float32"), np.full(rows * 4, -1, "float32"))
        before = [sys.getrefcount(item) for item in (x, w, *out, out)]
        got = sums["main"](x, w, out=out)
        assert [a is b for a, b in zip(got, out, strict=True)] == [True, True]
        np.testing.assert_allclose(out[0], expected(x, w)[0])
        np.testing.assert_allclose(out[1], expected(x, w)[1])
        del got
        assert [sys.getrefcount(item) for item in (x, w, *out, out)] == before


@pytest.mark.usefixtures("only_fast")
def test_arrays_whose_dtype_is_a_copy_are_taken_by_machine_code(sums: weft.Executable) -> None:
    """Arrays that were pickled have dtypes of their own; two integers of 64 bits are one type."""
    x, w = pickle.loads(pickle.dumps((np.ones((3, 4), "float32"), np.ones(4, "float32"))))
    assert x.dtype is not np.dtype("float32")
    np.testing.assert_allclose(sums["main"](x, w)[0], expected(x, w)[0])
    plus = weft.compile(weft.parse("@R.function\ndef main(x: R.Tensor((2,), 'int64')):\n    return x + x\n"))["main"]
    for code in ("l", "q"):
        np.testing.assert_array_equal(plus(np.array([1, 2], code)), [2, 4])


def test_arrays_of_another_dtype_and_those_that_warn_are_for_the_slow_path(only_fast: None) -> None:
    plus = weft.compile(weft.parse("@R.function\ndef main(x: R.Tensor((1, 1), 'int64')):\n    return x + x\n"))["main"]
    one = np.ones((1, 1), "int64")
    assert plus(one) == 2
    repeated = np.broadcast_arrays(one, np.ones(1, "int64"))[1]  # warns when it is written
    for other in (one.astype(">i8"), one.astype("uint64"), one.astype(float), one.view("m8"), repeated, [[1]], None):
        with pytest.raises(AssertionError, match="slow path"):
            plus(other)


def read_only(array: np.ndarray) -> np.ndarray:
    """A copy that nobody writes, as parts of mapped files are."""
    made = array.copy()
    made.flags.writeable = False
    return made


@pytest.mark.usefixtures("only_fast")
def test_arrays_that_are_read_only_are_taken_by_machine_code_where_nothing_writes_them(
    sums: weft.Executable, take: weft.Executable, calling: weft.Executable
) -> None:
    x, w = np.arange(12, dtype="float32").reshape(3, 4), np.ones(4, "float32")
    for args in ((read_only(x), w), (x, read_only(w)), (read_only(x), read_only(w))):
        got = sums["main"](*args)
        np.testing.assert_allclose(got[0], expected(x, w)[0])
        assert got[0].flags.writeable
    a, b = np.arange(5, dtype="int32"), np.zeros(5, "int32")
    take["double"](read_only(a), b)
    np.testing.assert_array_equal(b, 2 * a)
    with pytest.raises(AssertionError, match="slow path"):  # where W853 is told
        take["double"](a, read_only(b))
    with pytest.raises(AssertionError, match="slow path"):  # functions of Python are told what they may not write
        calling["main"](read_only(x))


def test_an_interpreter_with_other_arrays_takes_every_call_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NumPy's arrays lie in memory otherwise than is known, nothing reads them there."""
    monkeypatch.setattr("weft.runtime.programs.fastcall._maker_of_arrays", lambda: 0)
    exe = weft.compile(SUMS)
    assert not is_fast(exe["main"])
    x, w = np.ones((3, 4), "float32"), np.ones(4, "float32")
    np.testing.assert_allclose(exe["main"](x, w)[0], expected(x, w)[0])
    assert fastcall._is_laid_out_as_known()
    monkeypatch.setitem(fastcall.OBJECT, "dtype", fastcall.OBJECT["data"])
    assert not fastcall._is_laid_out_as_known()


def test_arrays_that_do_not_fit_are_for_the_slow_path(
    sums: weft.Executable, only_fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = np.arange(12, dtype="float32").reshape(3, 4), np.ones(4, "float32")
    fine = (np.zeros((3, 4), "float32"), np.zeros(12, "float32"))
    frozen = fine[1].copy()
    frozen.flags.writeable = False
    whole = np.zeros(24, "float32")

    class Alike(np.ndarray):
        pass

    def is_refused(*args: np.ndarray, **named: object) -> bool:
        try:
            sums["main"](*args, **named)
        except AssertionError as error:
            return "the slow path" in str(error)
        return False

    for out in (
        list(fine),
        (fine[0],),
        (*fine, fine[0]),
        (fine[0], frozen),
        (fine[0], np.zeros(12)),
        fine[0],
        3,
        (fine[0], np.zeros(13, "float32")),
        (fine[0], np.zeros(24, "float32")[::2]),
        (fine[0], fine[0].reshape(12)),
        (x, fine[1]),
        (whole[:12].reshape(3, 4), whole[11:23]),
        (fine[0], fine[1].view(Alike)),
        (fine[0], None),
        (np.zeros((4, 3), "float32"), fine[1]),
        (fine[0], np.zeros(49, "uint8")[1:].view("float32")),
    ):
        before = sys.getrefcount(fine[0])
        assert is_refused(x, w, out=out)
        after = sys.getrefcount(fine[0])
        assert after == before
    for named in ({"w": w}, {"out": fine, "x": x}, {"other": 1}):
        assert is_refused(x, *([] if "w" in named else [w]), **named)
    monkeypatch.undo()
    with pytest.raises(ArgumentError) as caught:
        sums["main"](x, w, other=1)
    assert caught.value.code == "W850"


CALLING = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n", 4), "float32")):
        y = R.add(x, x)
        z = R.call_packed("test.fast.half", y, sinfo_args=[R.Tensor(("n", 4), "float32")])
        r = R.add(z, x)
        return r
"""


@pytest.fixture
def calling() -> Iterator[weft.Executable]:
    """A program that calls a Python function, which halves or fails or calls again."""

    def half(value: np.ndarray) -> np.ndarray:
        if value[0, 0] < 0:
            raise KeyError("less than nothing")
        if value[0, 0] > 100:
            return again[0]["main"](value / 100)
        return value / 2

    weft.register_func("test.fast.half", half)
    again = [weft.compile(weft.parse(CALLING))]
    yield again[0]
    unregister_func("test.fast.half")


@pytest.mark.usefixtures("only_fast")
def test_programs_that_call_python_functions_are_taken_by_machine_code(calling: weft.Executable) -> None:
    main = calling["main"]
    running = len(callbacks._calls)
    assert is_fast(main)
    x = np.arange(1, 9, dtype="float32").reshape(2, 4)
    np.testing.assert_array_equal(main(x), 2 * x)
    out = np.zeros((2, 4), "float32")
    assert main(x, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    inner = x * 2 * 100 / 100
    np.testing.assert_allclose(main(x * 100), 2 * inner + x * 100)  # the Python function calls the program again
    for _ in range(3):
        with pytest.raises(KeyError, match="less than nothing") as caught:
            main(-x)
        assert any("test.fast.half" in note for note in caught.value.__notes__)
    assert len(callbacks._calls) == running


def test_results_of_python_functions_are_copied_out(only_fast: None) -> None:
    held = np.arange(8, dtype="float32").reshape(2, 4)
    weft.register_func("test.fast.half", lambda value: held)
    text = CALLING.replace("return r", "return z").replace("        r = R.add(z, x)\n", "")
    try:
        main = weft.compile(weft.parse(text))["main"]
        got = main(np.ones((2, 4), "float32"))
        np.testing.assert_array_equal(got, held)
        assert not np.shares_memory(got, held)
        out = np.zeros((2, 4), "float32")
        assert main(np.ones((2, 4), "float32"), out=out) is out
        np.testing.assert_array_equal(out, held)
        assert not callbacks._calls
    finally:
        unregister_func("test.fast.half")


def test_fields_of_a_tuple_of_results_are_written_where_the_caller_wants_them() -> None:
    found = weft.parse(
        """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32")):
        with R.dataflow():
            parts = R.split(x, 3, axis=1)
            first = parts[2]
            second = parts[0]
            R.output(first, second)
        return (first, second)
"""
    )
    assert isinstance(found, weft.IRModule)
    lowered = weft.lower(found, target="llvm")
    assert len(direct_results(read_program(lowered).functions["main"])) == 2
    x = np.random.default_rng(0).standard_normal((5, 6), "float32")
    given = np.zeros((5, 2), "float32"), np.zeros((5, 2), "float32")
    run = weft.compile(found)["main"]
    for first, second in (run(x), run(x, out=given)):
        np.testing.assert_array_equal(first, x[:, 4:])
        np.testing.assert_array_equal(second, x[:, :2])
    np.testing.assert_array_equal(given[0], x[:, 4:])


def test_a_tuple_under_a_name_is_written_where_the_caller_wants_it() -> None:
    found = weft.parse(
        """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32")):
        parts = R.split(x, 2, axis=1)
        same = parts
        return same
"""
    )
    assert isinstance(found, weft.IRModule)
    lowered = weft.lower(found, target="llvm")
    assert len(direct_results(read_program(lowered).functions["main"])) == 2
    x = np.random.default_rng(0).standard_normal((5, 6), "float32")
    given = np.zeros((5, 3), "float32"), np.zeros((5, 3), "float32")
    first, second = weft.compile(found)["main"](x, out=given)
    assert first is given[0]
    assert second is given[1]
    np.testing.assert_array_equal(np.concatenate(given, 1), x)


FOUND = weft.parse(
    """@R.function
def main(x: R.Tensor(("n", "m"), "float32")):
    y = R.nonzero(x)
    z = R.unique(x)
    return y, x, z
"""
)


def test_results_whose_sizes_the_program_finds_are_made_by_it() -> None:
    main = weft.compile(FOUND)["main"]
    assert is_fast(main)
    for count in (0, 1, 3, 5000):
        x = (np.random.default_rng(count).random((count, 4)) > 0.5).astype("float32")
        wanted = np.stack(np.nonzero(x)), x, np.unique(x)
        out = tuple(np.zeros_like(array) for array in wanted)
        for found in (main(x), main(x, out=out), out):
            for own, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(own, other)
        with pytest.raises(ArgumentError, match="out"):
            main(x, out=(np.zeros((2, wanted[0].shape[1] + 1), "int64"), *out[1:]))


def test_small_results_whose_sizes_the_program_finds_are_arrays_of_their_own() -> None:
    main = weft.compile(FOUND)["main"]
    assert all(found.flags.owndata for found in main(np.ones((10, 4), "float32")))
    large = main(np.ones((1000, 4), "float32"))
    assert not large[0].flags.owndata  # a block of the executable
    assert large[2].flags.owndata
    np.testing.assert_array_equal(large[0], np.indices((1000, 4)).reshape(2, -1))


def test_memory_of_results_that_the_program_made_is_given_back() -> None:
    main = weft.compile(FOUND)["main"]
    x, small = np.ones((100, 100), "float32"), np.ones((3, 4), "float32")
    tracemalloc.start()
    main(x)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        main(x)
        main(small)
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] - before < 20_000
    tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "uint4"])
def test_types_that_numpy_lacks_are_taken_by_emitted_code(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = np.dtype(weft.dtypes.array_dtype(dtype))
    text = f"""from weft.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 3), "{dtype}"), y: R.Tensor(("n", 3), "{dtype}"), z: R.Tensor(("n",), "uint16")):
        a = R.maximum(x, y)
        return (a, R.add(z, z), R.astype(x, "float32"))
"""
    main = weft.compile(weft.parse(text))["main"]
    x, y = (np.arange(6).reshape(2, 3) % size for size in (4, 5))
    z = np.arange(2, dtype="uint16")
    slow: list[int] = []
    real = ArgumentPacker.pack
    monkeypatch.setattr(ArgumentPacker, "pack", lambda *args: (slow.append(1), real(*args)))
    found = main(x.astype(kind), y.astype(kind), z)
    assert not slow
    assert [item.dtype for item in found] == [kind, np.dtype("uint16"), np.dtype("float32")]
    np.testing.assert_array_equal(found[0].astype(int), np.maximum(x, y))
    np.testing.assert_array_equal(found[1], 2 * z)
    out = np.empty((2, 3), kind), np.empty(2, "uint16"), np.empty((2, 3), "float32")
    main(x.astype(kind), y.astype(kind), z, out=out)
    np.testing.assert_array_equal(out[0].astype(int), np.maximum(x, y))
    for wrong, message in (
        ((x.astype(kind), y.astype(kind)[:1], z), f"got {dtype}[(1, 3)]"),
        ((x.astype(kind), y.astype("float32"), z), dtype),
        ((x.astype(kind), y.astype(kind)), "z missing"),
    ):
        with pytest.raises(weft.WeftError) as caught:
            main(*wrong)
        assert message in str(caught.value)
