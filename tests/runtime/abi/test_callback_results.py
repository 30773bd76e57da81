"""What registered functions return and raise is the same in every way to run a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.dtypes import array_dtype, element, is_float, tensor_dtype
from weft.errors import ArgumentError, ShapeError
from weft.ir import IRModule
from weft.runtime.registry import register_func
from weft.support.numbers import number

X = np.arange(2, dtype="float32")
WAYS = ("interpreter", "native", "vm")
RETURNED = """@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")):
    s = R.call_packed("tests.result", x, ty_args={type})
    return s
"""
IN_KERNEL = """@T.prim_func
def main(y: T.Buffer((1,), "{dtype}")):
    y[0] = T.call_packed("tests.result", dtype="{dtype}")
"""


def runs(text: str, ways: tuple[str, ...] = WAYS) -> dict[str, Any]:
    """The function of a program in each way to run it."""
    made = weft.parse(text)
    module = made if isinstance(made, IRModule) else IRModule({"main": made})  # pyright: ignore[reportArgumentType]
    return {
        way: (weft.interpret(module) if way == "interpreter" else weft.compile(module, executor=way))["main"]
        for way in ways
    }


def returns(value: Any) -> None:
    """Let the registered function return a value."""
    register_func("tests.result", lambda *given: value)


def refused(run: Any) -> None:
    with pytest.raises(ShapeError, match=r"the result of 'tests\.result'") as caught:
        run(X)
    assert caught.value.code == "W223"


NUMBERS: tuple[Any, ...] = (
    *(None, True, 3, -3, 70, 2.5, 0.1, 2**70, 10**400, 1e300, float("nan"), 2**60 + 2**36 + 1, 1 + 2j, "a"),
    *(np.float32(0.1), np.float64(0.1), np.int8(3), np.bool_(1), np.array(3), np.array([3])),
)


@pytest.mark.parametrize(
    "dtype", ["bool", "int64", "int8", "int4", "uint64", "float64", "float32", "float16", "bfloat16", "float8_e4m3fn"]
)
def test_numbers_are_the_nearest_of_their_dtype_or_are_refused(dtype: str) -> None:
    found = runs(RETURNED.format(type=f'R.Prim("{dtype}")'))
    for value in NUMBERS:
        returns(value)
        wanted = number(value, dtype)
        for run in found.values():
            if wanted is None:
                refused(run)
            else:
                np.testing.assert_equal(float(run(X)), float(wanted))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "float8_e4m3fn"])
def test_a_kernel_takes_nothing_as_zero(dtype: str) -> None:
    for run in runs(IN_KERNEL.format(dtype=dtype), ("interpreter", "native")).values():
        for value in (None, 0.1 if is_float(element(dtype)) else True):
            returns(value)
            y = np.zeros(1, array_dtype(dtype))
            run(y)
            assert y[0] == np.array(value or 0).astype(array_dtype(dtype))


ARRAYS: tuple[Any, ...] = (
    *(np.array([None, 1]), np.array(["2020"], "M8[D]"), np.array(["a"]), np.zeros(2, "V3"), np.zeros(2, [("a", "i4")])),
    *(np.array([1, 2], ">f4"), np.array([1, 2], ">i8"), np.array([1, 2], "c8"), np.array([True])),
    *(np.array([1, 2]).astype(array_dtype("bfloat16")), np.zeros((0, 3), "int8")),
)


@pytest.mark.parametrize("form", ["R.Tensor", "R.Tuple(R.Tensor, R.Object)"])
def test_tensors_of_any_dtype_have_one_that_tensors_have(form: str) -> None:
    for way, run in runs(RETURNED.format(type=form)).items():
        for array in ARRAYS:
            returns(array if form == "R.Tensor" else (array, 1))
            if tensor_dtype(array) is None:
                refused(run)
                continue
            result = run(X) if form == "R.Tensor" else run(X)[0]
            assert result.dtype == array.dtype.newbyteorder("="), way
            np.testing.assert_array_equal(result, array)


def test_arguments_of_any_dtype_have_one_that_tensors_have() -> None:
    for run in runs("@R.function\ndef main(x: R.Tensor):\n    return x\n").values():
        with pytest.raises(ArgumentError) as caught:
            run(np.array([None]))
        assert caught.value.code == "W851"
        assert run(np.array([1, 2], ">f4")).dtype == "float32"


FUNCTION = "R.Callable((R.Tensor,), R.Tensor)"


def test_a_result_that_is_a_function_is_one() -> None:
    for run in runs(RETURNED.format(type=FUNCTION), ("interpreter", "vm")).values():
        returns(3)
        refused(run)
        returns(len)
        assert run(X) is len


def test_an_argument_that_is_a_function_is_one() -> None:
    for run in runs(f"@R.function\ndef main(f: {FUNCTION}):\n    return f\n", ("interpreter", "vm")).values():
        with pytest.raises(ArgumentError) as caught:
            run(3)
        assert caught.value.code == "W851"
        assert callable(run(len))


class InterruptingNotes(Exception):
    """One whose notes raise what is no `Exception`."""

    @property
    def __notes__(self) -> list[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise KeyboardInterrupt


RAISING = (
    RETURNED.format(type="R.Object"),
    '@T.prim_func\ndef main(x: T.Buffer((2,), "float32")):\n'
    '    T.evaluate(T.call_packed("tests.result", x.data, dtype="void"))\n',
)


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, InterruptingNotes])
@pytest.mark.parametrize("text", RAISING)
def test_what_a_function_raises_comes_out_as_it_is(text: str, kind: type[BaseException]) -> None:
    def fail(*given: Any) -> None:
        raise kind("mine")

    register_func("tests.result", fail)
    for run in runs(text).values():
        with pytest.raises(kind) as caught:
            run(X)
        assert type(caught.value) is kind
        assert caught.value.args == ("mine",)
