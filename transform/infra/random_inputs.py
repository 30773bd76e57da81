"""Small random inputs for the functions of a module, and the comparison of two modules on them.

Used by WEFT_CHECK=3 and by tests. Inputs are drawn from the types of the parameters: each symbol gets one small value,
floats come from [-2, 2], signed integers from [-4, 4], unsigned from [0, 4]. Functions whose parameters are not
tensors, shapes, scalars or tuples of these, or that are impure, are not compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.dtypes import is_bool, is_float, is_integer, is_numpy
from weft.ir import Function, IRModule, PrimType, ShapeType, TensorType, TupleType, Type
from weft.ir.dim import evaluate, free_symbols
from weft.ir.interpret import interpret
from weft.transform.analysis.free_symbols import bare_symbols

__all__ = ["comparable_functions", "first_difference", "random_arguments", "results_differ"]

TRIALS = 3


class _NoSample(Exception):
    """A parameter type that no values are drawn for."""


def comparable_functions(old: IRModule, new: IRModule) -> Iterator[str]:
    """The public pure graph functions that both modules have with equally many parameters."""
    for name, function in new.functions.items():
        before = old.functions.get(name)
        if not isinstance(function, Function) or not isinstance(before, Function):
            continue
        if before.pure and not before.private and len(before.params) == len(function.params):
            yield name


def first_difference(old: IRModule, new: IRModule, name: str, trials: int = TRIALS) -> str | None:
    """What differs when both modules' function runs on the same random inputs, or None.

    Inputs on which the first module fails are passed over: there is nothing to compare with.
    """
    function = old[name]
    assert isinstance(function, Function)
    for trial in range(trials):
        generator = np.random.default_rng([trial, zlib.crc32(name.encode())])
        try:
            arguments = random_arguments(function, generator)
        except _NoSample:
            return None
        try:
            expected = _run(old, name, arguments)
        except Exception:  # whatever it was, it was so before
            continue
        try:
            actual = _run(new, name, arguments)
        except Exception as error:
            return f"on inputs {_shapes(arguments)} it fails now: {error}"
        if results_differ(expected, actual):
            return f"on inputs {_shapes(arguments)} it gave {_short(expected)}, now {_short(actual)}"
    return None


def _run(module: IRModule, name: str, arguments: list[Any]) -> Any:
    copies = [np.array(value) if isinstance(value, np.ndarray) else value for value in arguments]
    with np.errstate(all="ignore"):
        return interpret(module)[name](*copies)


def random_arguments(function: Function, generator: np.random.Generator) -> list[Any]:
    """One random value for each parameter; a symbol has the same value everywhere."""
    symbols: dict[str, int] = {}
    for name in sorted({name for param in function.params for name in bare_symbols(param.ty)}):
        symbols[name] = int(generator.integers(1, 5))
    return [_sample(param.ty, symbols, generator) for param in function.params]


def _sample(ty: Type, symbols: Mapping[str, int], generator: np.random.Generator) -> Any:
    if isinstance(ty, TupleType):
        return tuple(_sample(field, symbols, generator) for field in ty.fields)
    if isinstance(ty, PrimType):
        return _values((), ty.dtype, generator)[()]
    dims = ty.dims if isinstance(ty, (TensorType, ShapeType)) else None
    if dims is None or not all(set(free_symbols(dim)) <= set(symbols) for dim in dims):
        raise _NoSample
    sizes = tuple(evaluate(dim, symbols) for dim in dims)
    if isinstance(ty, ShapeType):
        return sizes
    if not isinstance(ty, TensorType) or ty.dtype is None or any(size < 0 for size in sizes):
        raise _NoSample
    return _values(sizes, ty.dtype, generator)


def _values(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> np.ndarray:
    if not is_numpy(dtype):
        raise _NoSample
    if is_bool(dtype):
        return generator.integers(0, 2, shape).astype(bool)
    if is_float(dtype):
        return generator.uniform(-2, 2, shape).astype(dtype)
    if is_integer(dtype):
        return generator.integers(0 if dtype.startswith("uint") else -4, 5, shape).astype(dtype)
    raise _NoSample


def results_differ(a: Any, b: Any) -> bool:
    """Whether two results differ by more than the rounding of a reordered computation."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) != len(b) or any(map(results_differ, a, b))
    if callable(a) and callable(b):
        return False  # functions are not compared by what they would do
    left, right = np.asarray(a), np.asarray(b)
    if left.shape != right.shape or left.dtype != right.dtype:
        return True
    if left.dtype.kind != "f":
        return not np.array_equal(left, right)
    tolerance = 1e-2 if left.dtype.itemsize == 2 else 1e-4
    return not np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)


def _shapes(arguments: list[Any]) -> str:
    return "(" + ", ".join(str(getattr(value, "shape", value)) for value in arguments) + ")"


def _short(value: Any) -> str:
    text = np.array2string(np.asarray(value), threshold=8) if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) < 200 else text[:197] + "..."
