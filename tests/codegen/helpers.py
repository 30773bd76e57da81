"""What the tests of compiled code share: scripts to modules, and compiled code held against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft
from weft import dtypes
from weft.ir.dim import DimExpr, evaluate
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.tensor import Buffer, PrimFunc
from weft.ir.types import TensorType

HEADER = "from weft.script import ir as I, relax as R, tir as T\n\n"
MODULE = HEADER + "@I.ir_module\nclass M:\n"
TOLERANCE = {"float16": 3e-2, "bfloat16": 3e-2, "float32": 2e-4, "float64": 1e-7}


def module(body: str) -> Any:
    """A module of functions written at one indentation, or a single function."""
    text = HEADER + body if body.lstrip("\n").startswith("@") else MODULE + body
    return weft.parse(text)


def outcome(function: Any, *args: Any) -> Any:
    """What a call gives: its value, or the class of what it raises."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except Exception as error:
        return type(error)


def decoded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Values of a bfloat16 array; others as they are."""
    return (array.astype("uint32") << 16).view("float32") if dtype == "bfloat16" else array


def assert_same(got: Any, want: Any, dtype: str = "") -> None:
    """Equal values: arrays of one dtype and shape with close elements, tuples of them, the same class of error."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
    elif isinstance(want, np.ndarray):
        assert isinstance(got, np.ndarray), got
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        dtype = dtype or str(want.dtype)
        tolerance = TOLERANCE.get(dtype, 0)
        a, b = (decoded(array, dtype) for array in (got, want))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(a.astype("float64") if tolerance else a, b, rtol=tolerance, atol=tolerance / 10)
    else:
        assert got == want or (got != got and want != want), (got, want)


def check(source: Any, *argument_lists: Sequence[Any], opt: int = 2) -> None:
    """Compile once, and compare every call with the interpreter."""
    whole = module(source) if isinstance(source, str) else source
    compiled = weft.compile(whole, opt=opt)["main"]
    reference = weft.interpret(whole)
    reference = reference if callable(reference) and not hasattr(reference, "keys") else reference["main"]
    for args in argument_lists:
        assert_same(outcome(compiled, *args), outcome(reference, *args))


def random_array(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Small random values of a dtype in its storage."""
    kind = dtypes.storage(dtype)
    if dtypes.is_bool(dtype):
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "bfloat16":
        return (rng.uniform(-3, 3, shape).astype("float32").view("uint32") >> 16).astype(kind)
    if dtypes.is_float(dtype):
        return rng.uniform(-3, 3, shape).astype(kind)
    low, high = max(int(dtypes.min_value(dtype)), -5), min(int(dtypes.max_value(dtype)), 5)
    return rng.integers(low, high, shape, endpoint=True).astype(kind)


def random_scalar(dtype: str, rng: np.random.Generator) -> Any:
    """A small random scalar."""
    if dtypes.is_bool(dtype):
        return bool(rng.integers(0, 2))
    return float(np.float16(rng.uniform(-2, 2))) if dtypes.is_float(dtype) else int(rng.integers(0, 4))


def symbols_of(function: PrimFunc) -> list[str]:
    """The names in the shapes of a kernel's parameters."""
    dims = [dim for ty in kernel_signature(function) if isinstance(ty, TensorType) for dim in ty.dims or ()]
    return sorted({name for dim in dims if isinstance(dim, DimExpr) for name in dim.names})


def arguments(function: PrimFunc, sizes: dict[str, int], rng: np.random.Generator) -> list[Any]:
    """Random arguments of a kernel."""
    values: list[Any] = []
    for param, ty in zip(function.params, kernel_signature(function), strict=True):
        if isinstance(param, Buffer) and isinstance(ty, TensorType):
            shape = tuple(evaluate(dim, sizes) for dim in ty.dims or ())
            values.append(random_array(param.dtype, shape, rng))
        else:
            values.append(random_scalar(param.dtype, rng))
    return values


def check_kernel(function: PrimFunc, compiled: Any, sizes: dict[str, int], seed: int) -> None:
    """Run a kernel compiled and interpreted on the same random arguments, and compare every buffer."""
    given = arguments(function, sizes, np.random.default_rng(seed))
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
    want = outcome(weft.interpret(function), *given)
    got = outcome(compiled, *copies)
    assert (got if isinstance(got, type) else None) == (want if isinstance(want, type) else None), (got, want)
    if isinstance(want, type):
        return
    for param, a, b in zip(function.params, copies, given, strict=True):
        if isinstance(param, Buffer):
            assert_same(a, b, param.dtype)
