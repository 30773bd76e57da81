"""Calling compiled functions: what arguments are taken, what is refused and how, threads, results."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from tests.runtime.at_once import at_once

import weft
from weft.errors import ArgumentError

SOURCE = """
from weft.script import ir as I, relax as R, tir as T

@R.function
def main(
    x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32"), b: R.Tensor(("m",), "float32")
) -> R.Tensor(("n", "m"), "float32"):
    h = R.matmul(x, w)
    y = R.add(h, b)
    return y
"""
KERNEL = """
from weft.script import tir as T

@T.prim_func
def double(x: T.Buffer(("n", 3), "float32"), y: T.Buffer(("n", 3), "float32")):
    for i, j in T.grid(n, 3):
        y[i, j] = x[i, j] * T.float32(2)
"""


@pytest.fixture(scope="module")
def exe() -> weft.Executable:
    return weft.compile(weft.parse(SOURCE))


@pytest.fixture(scope="module")
def double() -> Any:
    return weft.compile(weft.parse(KERNEL))["main"]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def refusal(call: Any, *args: Any, **named: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as info:
        call(*args, **named)
    return info.value


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("m", [0, 1, 3])
def test_one_executable_serves_all_sizes(exe: weft.Executable, n: int, m: int) -> None:
    x, w, b = floats(n, 4), floats(4, m), floats(m)
    np.testing.assert_allclose(exe["main"](x, w, b), x @ w + b, rtol=1e-4, atol=1e-5)


def test_a_size_that_disagrees_names_parameter_symbol_and_source(exe: weft.Executable) -> None:
    error = refusal(exe["main"], floats(2, 4), floats(4, 3), floats(5))
    assert error.code == "W852"
    assert error.message == (
        "argument 3 `b` of main: expected float32[(m,)], got float32[(5,)]; m=3 from argument 2 `w`"
    )
    assert error.span is not None
    assert error.span.line == 6


def test_a_wrong_fixed_size_is_refused(exe: weft.Executable) -> None:
    error = refusal(exe["main"], floats(2, 5), floats(4, 3), floats(3))
    assert error.message == (
        "argument 1 `x` of main: expected float32[(n, 4)], got float32[(2, 5)]; n=2 from argument 1 `x`"
    )


def test_nothing_is_cast(exe: weft.Executable) -> None:
    error = refusal(exe["main"], floats(2, 4).astype("float64"), floats(4, 3), floats(3))
    assert error.code == "W851"
    assert error.message == "argument 1 `x` of main: expected float32[(n, 4)], got float64[(2, 4)]"
    assert error.hint == "convert it first: x.astype('float32')"


def test_a_wrong_rank_is_refused(exe: weft.Executable) -> None:
    error = refusal(exe["main"], floats(4), floats(4, 3), floats(3))
    assert error.message == "argument 1 `x` of main: expected float32[(n, 4)], got float32[(4,)]"


@pytest.mark.parametrize("value", [[1.0], 2.5, 1])
def test_what_makes_an_array_of_a_number_is_told(exe: weft.Executable, value: object) -> None:
    assert refusal(exe["main"], value, floats(4, 3), floats(3)).hint == "pass np.asarray(x, 'float32')"


def test_what_is_no_array_is_refused(exe: weft.Executable) -> None:
    for value in ([1.0], 2.5, None, "x", object()):
        error = refusal(exe["main"], value, floats(4, 3), floats(3))
        assert error.code == "W851"
        assert error.message.startswith("argument 1 `x` of main: expected float32[(n, 4)], got ")


def test_the_number_and_names_of_arguments_are_checked(exe: weft.Executable) -> None:
    main = exe["main"]
    assert refusal(main).message == "main takes 3 arguments (x, w, b), got 0: x, w, b missing"
    assert refusal(main, floats(2, 4)).message == "main takes 3 arguments (x, w, b), got 1: w, b missing"
    assert refusal(main, *[floats(1)] * 4).message == "main takes 3 arguments (x, w, b), got 4"
    error = refusal(main, floats(2, 4), floats(4, 3), bb=floats(3))
    assert error.message == "main has no parameter 'bb'"
    assert error.hint == "did you mean 'b'?"
    assert "two values for 'x'" in refusal(main, floats(2, 4), floats(4, 3), x=floats(3)).message


def test_arguments_may_be_named(exe: weft.Executable) -> None:
    x, w, b = floats(2, 4), floats(4, 3), floats(3)
    np.testing.assert_array_equal(exe["main"](x, b=b, w=w), exe["main"](x, w, b))


class Dlpack:
    """An array of another library: it only offers DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Arraylike:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


@pytest.mark.parametrize(
    "form",
    [
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.astype(">f4").astype("<f4"),
        lambda x: _read_only(x),
        lambda x: Dlpack(x),
        lambda x: Arraylike(x),
        lambda x: x.view(np.matrix),
        lambda x: _unaligned(x),
    ],
)
def test_arrays_of_every_layout_and_origin_are_taken(exe: weft.Executable, form: Any) -> None:
    x, w, b = floats(3, 4), floats(4, 2), floats(2)
    np.testing.assert_allclose(exe["main"](form(x), w, b), x @ w + b, rtol=1e-4, atol=1e-5)


def _read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def _unaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def test_a_broadcast_input_is_taken(exe: weft.Executable) -> None:
    x, w = np.broadcast_to(np.float32(2), (3, 4)), floats(4, 2)
    np.testing.assert_allclose(exe["main"](x, w, np.zeros(2, "float32")), x @ w, rtol=1e-4, atol=1e-5)


def test_another_byte_order_is_another_dtype(exe: weft.Executable) -> None:
    assert refusal(exe["main"], floats(2, 4).astype(">f4"), floats(4, 3), floats(3)).code == "W851"


class Unshown:
    """A value whose `repr` fails."""

    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize("value", [10**5000, [10**5000], Unshown(), [Unshown()], "x" * 10**6], ids=range(5))
def test_a_value_that_has_no_short_text_is_refused_like_any_other(exe: weft.Executable, value: Any) -> None:
    for run in (exe["main"], weft.interpret(weft.parse(SOURCE))["main"]):
        error = refusal(run, value, floats(4, 3), floats(3))
        assert (error.code, len(str(error)) < 600) == ("W851", True)


def test_the_message_of_an_assertion_is_of_one_screen() -> None:
    text = f"""
@T.prim_func
def k(x: T.Buffer((1,), "float32"), n: T.int64):
    assert n > 3, "{"a long story " * 5000}"
    x[0] = 1.0
"""
    for run in (weft.compile(weft.parse(text)), weft.interpret(weft.parse(text))):
        with pytest.raises(AssertionError) as found:
            run["k"](np.zeros(1, "float32"), 0)
        assert len(str(found.value)) < 2100


def test_outputs_can_be_written_into_the_callers_arrays(exe: weft.Executable) -> None:
    args = floats(2, 4), floats(4, 3), floats(3)
    out = np.zeros((2, 3), "float32")
    assert exe["main"](*args, out=out) is out
    np.testing.assert_array_equal(out, exe["main"](*args))
    assert refusal(exe["main"], *args, out=np.zeros((2, 4), "float32")).message == (
        "out of main: expected float32[(2, 3)], got float32[(2, 4)]"
    )
    out.flags.writeable = False
    assert refusal(exe["main"], *args, out=out).code == "W853"


def test_a_kernel_writes_its_output_in_place_in_any_layout(double: Any) -> None:
    x = floats(4, 3)
    for make in (np.zeros_like, lambda a: np.zeros((3, 4), "float32").T, lambda a: np.zeros((8, 3), "float32")[::2]):
        y = make(x)
        assert double(x, y) is None
        np.testing.assert_array_equal(y, x * 2)


def test_a_read_only_output_is_refused(double: Any) -> None:
    error = refusal(double, floats(2, 3), _read_only(floats(2, 3)))
    assert error.message == "argument 2 `y` of double is read-only, and the function writes it"


def test_a_kernel_may_read_and_write_one_array(double: Any) -> None:
    x = floats(50, 3)
    want = x * 2
    double(x, x)
    np.testing.assert_array_equal(x, want)


def test_results_stay_alive_and_do_not_share_memory(exe: weft.Executable) -> None:
    args = floats(2, 4), floats(4, 3), floats(3)
    first = exe["main"](*args)
    copy = first.copy()
    others = [exe["main"](args[0] * k, *args[1:]) for k in range(20)]
    np.testing.assert_array_equal(first, copy)
    assert not any(np.shares_memory(first, other) for other in others)
    view = exe["main"](*args)[1:]
    np.testing.assert_array_equal(view, copy[1:])


def test_a_full_reduction_gives_an_array_of_no_dimensions() -> None:
    function = weft.parse("""
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor((), "float32"):
    y = R.sum(x)
    return y
""")
    result = weft.compile(function)["main"](np.ones(3, "float32"))
    assert isinstance(result, np.ndarray)
    assert (result.shape, float(result)) == ((), 3.0)


def test_functions_are_found_by_name_and_a_single_one_as_main(exe: weft.Executable) -> None:
    kernel = weft.compile(weft.parse(KERNEL))
    assert kernel["main"] is kernel["double"]
    assert list(kernel.functions) == ["double"]
    error = refusal(exe.__getitem__, "mian")
    assert error.message == "the executable has no function 'mian'"
    assert error.hint == "did you mean 'main'?"


def test_two_threads_call_one_executable_at_once(exe: weft.Executable) -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.standard_normal((int(rng.integers(0, 40)), 4)).astype("float32")
            w, b = floats(4, 6), floats(6)
            np.testing.assert_allclose(exe["main"](x, w, b), x @ w + b, rtol=1e-3, atol=1e-4)

    at_once(work)


def test_other_python_threads_run_while_compiled_code_does() -> None:
    """The GIL is released: a counter advances during one long call."""
    spin = weft.compile(
        weft.parse("""
from weft.script import tir as T

@T.prim_func
def spin(n: T.int64, out: T.Buffer((1,), "int64")):
    out[0] = T.int64(1)
    for i in range(n):
        out[0] = T.floormod(out[0] * T.int64(48271), T.int64(2147483647))
""")
    )["main"]
    out = np.zeros(1, "int64")
    done = threading.Event()

    def call() -> None:
        spin(40_000_000, out)
        done.set()

    thread = threading.Thread(target=call)
    thread.start()
    counted = 0
    while not done.is_set():
        counted += 1
    thread.join()
    assert counted > 1000


def test_a_callback_may_call_compiled_code_again(exe: weft.Executable) -> None:
    weft.register_func("test.again", lambda x, out: np.copyto(out, exe["main"](x, np.eye(4, dtype="float32"), x[0])))
    function = weft.parse("""
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    y = R.call_dps_packed("test.again", (x,), out_ty=R.Tensor((n, 4), "float32"))
    return y
""")
    x = floats(3, 4)
    np.testing.assert_allclose(weft.compile(function)["main"](x), x + x[0], rtol=1e-6)


def test_a_read_only_argument_stays_read_only_in_a_library() -> None:
    def spoil(x: np.ndarray, out: np.ndarray) -> None:
        x[...] = 0

    weft.register_func("test.spoil", spoil)
    function = weft.parse("""
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    y = R.call_dps_packed("test.spoil", (x,), out_ty=R.Tensor((n,), "float32"))
    return y
""")
    with pytest.raises(ValueError, match="read-only"):
        weft.compile(function)["main"](_read_only(floats(3)))


def test_scalars_are_checked_against_their_dtype() -> None:
    function = weft.parse("""
from weft.script import tir as T

@T.prim_func
def put(k: T.int8, f: T.float32, b: T.bool, out: T.Buffer((3,), "float32")):
    out[0] = T.Cast("float32", k)
    out[1] = f
    out[2] = T.Cast("float32", b)
""")
    put, out = weft.compile(function)["main"], np.zeros(3, "float32")
    put(-3, 0.5, True, out)
    np.testing.assert_array_equal(out, [-3, 0.5, 1])
    put(np.int64(4), np.float32(2), np.bool_(False), out)
    np.testing.assert_array_equal(out, [4, 2, 0])
    for wrong in ((200, 0.5, True), (1.5, 0.5, True), (True, 0.5, True), (1, "a", True), (1, 0.5, 1)):
        assert refusal(put, *wrong, out).code == "W851"


def test_a_result_outlives_its_executable() -> None:
    """The memory of a result is given back by code that must still be there."""
    import gc

    results = [weft.compile(weft.parse(SOURCE))["main"](floats(2, 4), floats(4, 3), floats(3)) for _ in range(3)]
    gc.collect()
    wanted = floats(2, 4) @ floats(4, 3) + floats(3)
    for _ in range(3):
        np.testing.assert_allclose(results.pop(), wanted, rtol=1e-4)
    gc.collect()


@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_an_array_that_no_memory_holds_a_copy_of_is_refused_by_name(executor: str) -> None:
    text = '@T.prim_func\ndef f(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):\n    y[0] = x[0]\n'
    made = weft.parse(text)
    run = weft.interpret(made) if executor == "interpreter" else weft.compile(made)["f"]
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, "float32"), (1 << 45,), (0,))
    with pytest.raises(weft.OutOfMemoryError, match=f"{1 << 47} bytes"):
        run(huge, huge)
