"""Machine code as Python functions: what the LLVM back end emitted, wrapped without a compiler.

`fast_call` gives a built-in function of CPython whose code is the emitted one, or None where this interpreter is laid
out otherwise than that code expects (another implementation, a debug build, one without a GIL).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weft.dtypes import SCALARS, array_dtype, is_numpy, shares_bits, storage
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Dim, Expression, Tree
from weft.runtime.abi.values import PlainArray, plain_array

__all__ = [
    "FORMATS",
    "TABLE",
    "Linear",
    "ResultTensor",
    "fast_arguments",
    "fast_call",
    "fast_results",
    "result_tensors",
]

_ENTRIES = (
    "slow",
    "failure",
    "wrap",
    "empty",
    "none",
    "array type",
    "constants",
    "parallel",
    "into",
    "out",
    "tuple type",
    "begin",
    "end",
    "callback",
    "poll",
)
TABLE = {name: slot for slot, name in enumerate(_ENTRIES)}
"""The words of the table that emitted code reads; the dtypes of the results follow."""
FORMATS = {name: row.formats for name, row in SCALARS.items() if row.formats}
"""The formats by which the buffer protocol names the dtypes of NumPy arrays, of one or two characters."""
MOST_ARGUMENTS = 64
_FASTCALL, _KEYWORDS = 0x0080, 0x0002


@dataclass(frozen=True, slots=True)
class Linear:
    """A size that is `factor * name + offset`."""

    name: str
    factor: int
    offset: int


@dataclass(frozen=True, slots=True)
class ResultTensor:
    """A tensor of a result: its dtype, its sizes (None: not linear in one symbol), the index of its first word."""

    dtype: str
    dims: tuple[int | Linear | None, ...]
    word: int

    def follows(self, names: Container[str]) -> bool:
        """Whether its sizes follow from those of some names; what does not is for the program to find."""
        return all(isinstance(dim, int) or (dim is not None and dim.name in names) for dim in self.dims)


def fast_arguments(signature: abi.Signature) -> list[PlainArray] | None:
    """The parameters of a function of plain arrays alone, whose results are tensors of known ranks; else None."""
    arrays = [array for param in signature.params if (array := plain_array(param.type)) is not None]
    if len(arrays) < len(signature.params) or len(arrays) > MOST_ARGUMENTS:
        return None
    arrays = [replace(array, dtype=_seen_as(array.dtype)) for array in arrays]
    if signature.result is None:
        return arrays
    tensors = fast_results(signature)
    # Arrays without buffers (of short signed integers) are written in another way.
    if not tensors or len(tensors) < len(_fields(signature.result)) or any(t.dtype not in FORMATS for t in tensors):
        return None
    return arrays


def fast_results(signature: abi.Signature) -> list[ResultTensor]:
    """The tensors of a result, with the dtypes of the arrays that emitted code makes for them."""
    return [replace(tensor, dtype=_seen_as(tensor.dtype)) for tensor in result_tensors(signature.result)]


def _seen_as(dtype: str) -> str:
    """The dtype of NumPy through which memory is handed over: arrays of types that NumPy lacks have no buffers."""
    return dtype if is_numpy(dtype) or not shares_bits(dtype) else storage(dtype).name


def _fields(result: abi.Type) -> tuple[abi.Type, ...]:
    return result.fields if isinstance(result, abi.Tuple) else (result,)


def result_tensors(result: abi.Type | None) -> list[ResultTensor]:
    """The tensors of known dtype and rank of a result, or of a tuple of them."""
    if result is None:
        return []
    found, word = [], 0
    for ty in _fields(result):
        if isinstance(ty, abi.Tensor) and ty.dtype is not None and ty.rank >= 0:
            dims = (None,) * ty.rank if ty.dims is None else tuple(map(_linear, ty.dims))
            found.append(ResultTensor(ty.dtype, dims, word))
        word += ty.words
    return found


def _linear(dim: Dim) -> int | Linear | None:
    if isinstance(dim, int) or dim is None:
        return dim
    parts = list(_linear_parts(dim.tree if isinstance(dim, Expression) else dim))
    names = {name for name, _ in parts if name}
    if len(names) != 1 or any(name is None for name, _ in parts):
        return None
    factor, offset = (sum(number for name, number in parts if bool(name) is named) for named in (True, False))
    return Linear(names.pop(), factor, offset)


def _linear_parts(tree: Tree) -> Iterator[tuple[str | None, int]]:
    """The terms of a sum as (name or "", factor); (None, 0) for what is no multiple of a name."""
    if isinstance(tree, int):
        yield "", tree
    elif isinstance(tree, str):
        yield tree, 1
    elif tree.name == "add":
        for operand in tree.operands:
            yield from _linear_parts(operand)
    elif tree.name == "mul" and len(tree.operands) == 2:
        factor, name = tree.operands
        yield (name, factor) if isinstance(factor, int) and isinstance(name, str) else (None, 0)
    else:
        yield None, 0


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _is_supported() -> bool:
    """Whether objects of this interpreter have their type in their second word."""
    plain = sys.implementation.name == "cpython" and not hasattr(sys, "gettotalrefcount")
    if not plain or "free-threading" in sys.version or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.empty(0)
    return ctypes.c_void_p.from_address(id(probe) + 8).value == id(np.ndarray)


def fast_call(
    signature: abi.Signature,
    code: int,
    table: int,
    words: Mapping[str, int],
    functions: Mapping[str, Callable[..., Any]],
    keep: object,
) -> Callable[..., Any] | None:
    """The built-in function for emitted code, its table at the address `table` filled in.

    `words` are the entries of the table that are plain numbers, `functions` those that are Python's: `slow` takes all
    calls that the code does not, `failure(status, frame)` raises, `wrap(results, handle, *arrays)` makes results of
    their words, `into(results, handle, out, *arrays)` writes them into `out`, `begin()` gives the handle of a call,
    `end(handle)` forgets it. `keep` lives as long. Arrays of types that NumPy lacks go in and come out as views.
    """
    if not _is_supported():
        return None
    views = _Views.of(signature)
    if views is not None:
        functions = {**functions, "slow": views.undone_for(functions["slow"])}
    dtypes = [storage(result.dtype) for result in fast_results(signature)]
    objects: dict[str, object] = {**functions, "empty": np.empty, "none": None, "out": sys.intern("out")}
    objects |= {"array type": np.ndarray, "tuple type": tuple}
    entries = {**{name: id(value) for name, value in objects.items()}, **words}
    place = (ctypes.c_int64 * (len(TABLE) + len(dtypes))).from_address(table)
    for name, slot in TABLE.items():
        place[slot] = entries[name]
    for index, dtype in enumerate(dtypes):
        place[len(TABLE) + index] = id(dtype)
    method = _Method(signature.name.encode(), code, _FASTCALL | _KEYWORDS, None)
    owner = (method, list(objects.values()), dtypes, keep)  # what the function holds: it lives as long as this
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    built_in = make(ctypes.addressof(method), owner, None)
    return built_in if views is None else views.made_for(built_in)


@dataclass(frozen=True)
class _Views:
    """The types of `ml_dtypes` among parameters and results (None: another one), and NumPy's over the same memory."""

    params: tuple[tuple[np.dtype[Any], np.dtype[Any]] | None, ...]
    results: tuple[tuple[np.dtype[Any], np.dtype[Any]] | None, ...]
    is_tuple: bool

    @staticmethod
    def of(signature: abi.Signature) -> _Views | None:
        """The views that calls of a function need, if any."""
        arrays = [plain_array(param.type) for param in signature.params]
        params = tuple(None if array is None else _view_of(array.dtype) for array in arrays)
        results = tuple(_view_of(tensor.dtype) for tensor in result_tensors(signature.result))
        if not any((*params, *results)):
            return None
        return _Views(params, results, isinstance(signature.result, abi.Tuple))

    def made_for(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that hands views to another one, and gives back arrays of the types that were meant."""
        params, results, is_tuple = self.params, self.results, self.is_tuple
        count = len(params)

        def with_views(*args: Any, **options: Any) -> Any:
            made = call(*_viewed(args, params, 0, 1), **options)
            if "out" in options or len(args) != count or made is None:
                return made
            shown = _viewed(made if is_tuple else (made,), results, 1, 0)
            return tuple(shown) if is_tuple else shown[0]

        return with_views

    def undone_for(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that hands another one the arrays that views were made of, for its messages to speak of them."""
        params = self.params

        def without_views(*args: Any, **options: Any) -> Any:
            return call(*_viewed(args, params, 1, 0), **options)

        return without_views


def _viewed(
    values: Sequence[Any], types: Sequence[tuple[np.dtype[Any], np.dtype[Any]] | None], have: int, want: int
) -> list[Any]:
    """The values, where arrays of one type of a pair are views of the other; more or fewer values are as they were."""
    shown = list(values)
    for position, pair in enumerate(types[: len(shown)]):
        value = shown[position]
        if pair is not None and type(value) is np.ndarray and value.dtype is pair[have]:
            shown[position] = value.view(pair[want])
    return shown


def _view_of(dtype: str) -> tuple[np.dtype[Any], np.dtype[Any]] | None:
    seen = _seen_as(dtype)
    return None if seen == dtype else (array_dtype(dtype), np.dtype(seen))
