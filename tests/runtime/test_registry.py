"""Functions registered by name."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
import pytest

import weft
from weft.errors import ArgumentError, WeftError
from weft.runtime import lookup, register_func, registered_funcs, unregister_func


def test_a_decorator_a_call_and_a_bare_decorator_register() -> None:
    @weft.register_func("test.a")
    def a() -> int:
        return 1

    register_func("test.b", a)

    @register_func
    def test_c() -> int:
        return 3

    assert lookup("test.a") is lookup("test.b") is a
    assert lookup("test_c")() == 3
    assert {"test.a", "test.b", "test_c"} <= set(registered_funcs())


def test_a_later_registration_replaces_an_earlier_one_unless_told_otherwise() -> None:
    register_func("test.d", len)
    register_func("test.d", max)
    assert lookup("test.d") is max
    with pytest.raises(WeftError, match="registered already") as info:
        register_func("test.d", min, override=False)
    assert info.value.hint == "pass override=True to replace it"


def test_an_unknown_name_is_an_error_with_the_nearest_one() -> None:
    register_func("test.softmax", len)
    with pytest.raises(ArgumentError) as info:
        lookup("test.sofmax")
    assert (info.value.code, info.value.hint) == ("W861", "did you mean 'test.softmax'?")
    unregister_func("test.softmax")


def test_what_is_no_function_or_name_is_refused() -> None:
    with pytest.raises(WeftError):
        register_func("test.e", 3)  # type: ignore[call-overload]
    with pytest.raises(WeftError):
        register_func("", len)
    with pytest.raises(WeftError):
        register_func(functools.partial(max, 1))  # which has no name


def test_a_function_of_ctypes_is_called_with_the_types_that_it_states() -> None:
    library = ctypes.CDLL(None)
    with pytest.raises(ArgumentError, match=r"test\.llabs.*types are not stated") as info:
        register_func("test.llabs", library.llabs)
    assert info.value.code == "W863"
    library.llabs.argtypes, library.llabs.restype = [ctypes.c_longlong], ctypes.c_longlong
    register_func("test.llabs", library.llabs)
    text = """
@R.function(pure=False)
def main(x: R.Prim("int64")):
    return R.call_packed("test.llabs", x, ty_args=R.Object)
"""
    assert weft.compile(weft.parse(text))["main"](-(2**40)) == 2**40
    array = weft.parse(text.replace('R.Prim("int64")', 'R.Tensor((2,), "int64")'))
    for run in (weft.interpret(array), weft.compile(array)["main"]):
        with pytest.raises(ArgumentError, match=r"the C function 'test\.llabs' takes \(c_long") as info:
            run(np.ones(2, "int64"))
        assert info.value.code == "W851"
    unregister_func("test.llabs")
