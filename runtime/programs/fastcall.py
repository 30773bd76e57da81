"""Machine code as Python functions: what the LLVM back end emitted, wrapped without a compiler.

`fast_call` gives a built-in function of CPython whose code is the emitted one, or None where this interpreter is laid
out otherwise than that code expects (another implementation, a debug build, one without a GIL).

The code is one for all functions (`weft.codegen.backends.llvm.host.fastcall`). What a function takes and gives is data
that it reads, words of 64 bits:

    table ::= entries (TABLE), array of each argument, array of each result, dim of each size of these
    array ::= keys of the dtypes that it may have, the flags that it must have, rank, address of its dims, whether it is
              written, whether its sizes follow from those of the arguments, dtype, first word among the results, bytes
              of an element                                                                                    (ARRAY)
    dim   ::= symbol, factor, offset       a size is the value of the symbol times the factor, and the offset
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft.dtypes import array_dtype, is_numpy, shares_bits, storage
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Dim, Expression, Tree
from weft.runtime.abi.values import PlainArray, plain_array
from weft.support.records import dataclass, record

__all__ = [
    "ARRAY",
    "CODE",
    "DIM",
    "TABLE",
    "Linear",
    "ResultTensor",
    "fast_arguments",
    "fast_call",
    "fast_results",
    "result_tensors",
]

CODE = "weft.python.call"
"""The symbol of the emitted code."""
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
    "entry",
    "constant bytes",
    "calls out",
    "arguments",
    "results",
    "is tuple",
    "some written",
    "takes out",
    "symbols",
    "argument words",
    "result words",
    "array of arguments",
    "array of results",
)
TABLE = {name: slot for slot, name in enumerate(_ENTRIES)}
"""The words of the table that emitted code reads; the arrays and their dims follow."""
_FIELDS = ("key", "other key", "flags", "rank", "dims", "written", "follows", "dtype", "word", "item bytes")
ARRAY = {name: slot for slot, name in enumerate(_FIELDS)}
"""The words of an array."""
DIM = {"symbol": 0, "factor": 1, "offset": 2}
"""The words of a size."""
OBJECT = {"type": 8, "data": 16, "rank": 24, "shape": 32, "dtype": 56, "flags": 64}
"""The bytes at which the parts of an array of NumPy stand, as its binary interface fixes them."""
DTYPE_WORD, DTYPE_BITS = 24, -1 ^ 0xFF << 24
"""Where a dtype says kind, character, byte order and number (its key), and which bits of that word say it."""
READ_FLAGS = 0x0001 | 0x0100
"""Dense, aligned."""
WRITTEN_FLAGS = READ_FLAGS | 0x0400
"""Writable, too."""
REFUSED_FLAG = -1 << 31
"""An array that warns when it is written."""
MOST_ARGUMENTS = 64
MOST_PAIRS = 512
"""`out=` of so many arrays that more pairs would have to be compared is left to Python, which sorts them."""
_FASTCALL, _KEYWORDS = 0x0080, 0x0002


@record
class Linear:
    """A size that is `factor * name + offset`."""

    name: str
    factor: int
    offset: int


@record
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
    # Arrays of short signed integers are written in another way.
    if not tensors or len(tensors) < len(_fields(signature.result)) or not all(is_numpy(t.dtype) for t in tensors):
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


@functools.cache
def _maker_of_arrays() -> int:
    """The address of NumPy's function that makes an array, PyArray_Empty; 0 where objects are laid out otherwise."""
    plain = sys.implementation.name == "cpython" and not hasattr(sys, "gettotalrefcount")
    if not plain or "free-threading" in sys.version or ctypes.sizeof(ctypes.c_void_p) != 8:
        return 0
    try:
        table = _pointer_of(np._core._multiarray_umath._ARRAY_API)  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):  # another NumPy
        return 0
    return ctypes.c_int64.from_address(table + 8 * _EMPTY).value if _is_laid_out_as_known() else 0


_EMPTY = 184
"""The number of PyArray_Empty in the table of functions that NumPy has for C."""


def _pointer_of(capsule: object) -> int:
    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.restype, find.argtypes = ctypes.c_int64, [ctypes.py_object, ctypes.c_char_p]
    return find(capsule, None)


def _is_laid_out_as_known() -> bool:
    """Whether an array and its dtype are in memory what OBJECT and DTYPE_WORD say."""
    probe = np.zeros((2, 3), "float32")
    found = {name: ctypes.c_int64.from_address(id(probe) + place).value for name, place in OBJECT.items()}
    if found["type"] != id(np.ndarray) or found["dtype"] != id(probe.dtype) or found["data"] != probe.ctypes.data:
        return False
    shape = (ctypes.c_int64 * 2).from_address(found["shape"])
    known = _key_of(probe.dtype).to_bytes(8, sys.byteorder, signed=True)
    said = f"{probe.dtype.kind}{probe.dtype.char}{probe.dtype.byteorder}\0".encode()
    return (
        tuple(shape) == probe.shape
        and found["rank"] & 0xFFFFFFFF == probe.ndim
        and (found["flags"] ^ probe.flags.num) & 0xFFFFFFFF == 0
        and known == said + probe.dtype.num.to_bytes(4, sys.byteorder)
    )


def _key_of(dtype: np.dtype[Any]) -> int:
    """What says of a dtype which one it is, also of copies of it."""
    return ctypes.c_int64.from_address(id(dtype) + DTYPE_WORD).value & DTYPE_BITS


def fast_call(
    signature: abi.Signature,
    code: int,
    words: Mapping[str, int],
    functions: Mapping[str, Callable[..., Any]],
    keep: object,
) -> Callable[..., Any] | None:
    """The built-in function of a signature, with the emitted code at the address `code`.

    `words` are the entries of the table that are plain numbers, `functions` those that are Python's: `slow` takes all
    calls that the code does not, `failure(status, frame)` raises, `wrap(results, handle, *arrays)` makes results of
    their words, `into(results, handle, out, *arrays)` writes them into `out`, `begin()` gives the handle of a call,
    `end(handle)` forgets it. `keep` lives as long. Arrays of types that NumPy lacks go in and come out as views.
    """
    arrays = fast_arguments(signature) if _maker_of_arrays() else None
    if arrays is None:
        return None
    views = _Views.of(signature)
    if views is not None:
        functions = {**functions, "slow": views.undone_for(functions["slow"])}
    objects: dict[str, object] = {**functions, "none": None, "out": sys.intern("out")}
    objects |= {"array type": np.ndarray, "tuple type": tuple}
    results = fast_results(signature)
    entries = {**{name: id(value) for name, value in objects.items()}, **words}
    entries |= {"empty": _maker_of_arrays(), "is tuple": isinstance(signature.result, abi.Tuple)}
    entries |= _counts(arrays, results)
    table = _table(entries, arrays, results)
    method = _Method(signature.name.encode(), code, _FASTCALL | _KEYWORDS, None)
    dtypes = [storage(result.dtype) for result in results]
    # What the function holds, which lives as long as this: the code looks for the table in the first place.
    owner = (ctypes.addressof(table), table, method, list(objects.values()), dtypes, keep)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    built_in = make(ctypes.addressof(method), owner, None)
    return built_in if views is None else views.made_for(built_in)


def _counts(arrays: Sequence[PlainArray], results: Sequence[ResultTensor]) -> dict[str, int]:
    """How many there are of what, and whether some are written and `out=` is taken."""
    symbols = _symbols(arrays)
    pairs = len(results) * (len(results) + len(arrays))
    return {
        "arguments": len(arrays),
        "results": len(results),
        "some written": any(array.written for array in arrays),
        "takes out": pairs <= MOST_PAIRS and all(result.follows(symbols) for result in results),
        "symbols": max(1, len(symbols)),
        "argument words": max(1, sum(2 + len(array.dims) for array in arrays)),
        "result words": max([1, *(result.word + 2 + len(result.dims) for result in results)]),
    }


def _symbols(arrays: Sequence[PlainArray]) -> dict[str, int]:
    """The symbols that sizes of arguments give values, numbered."""
    names = dict.fromkeys(dim for array in arrays for dim in array.dims if isinstance(dim, str))
    return {name: number for number, name in enumerate(names)}


def _table(
    entries: Mapping[str, int], arrays: Sequence[PlainArray], results: Sequence[ResultTensor]
) -> ctypes.Array[ctypes.c_int64]:
    """The words of a table, whose parts know where the others are."""
    symbols = _symbols(arrays)
    both = [*arrays, *results]
    dims = [word for array in both for dim in array.dims for word in _dim_words(dim, symbols)]
    start, size = len(TABLE), len(ARRAY)
    words = (ctypes.c_int64 * (start + size * len(both) + len(dims)))()
    base = ctypes.addressof(words)
    places = {"array of arguments": base + 8 * start, "array of results": base + 8 * (start + size * len(arrays))}
    words[:start] = [int({**entries, **places}[name]) for name in TABLE]
    place = base + 8 * (start + size * len(both))
    for index, array in enumerate(both):
        fields = _fields_of(array, symbols, bool(entries["calls out"])) | {"dims": place}
        words[start + size * index : start + size * (index + 1)] = [int(fields[name]) for name in ARRAY]
        place += 8 * len(DIM) * len(array.dims)
    words[start + size * len(both) :] = dims
    return words


_CODES = "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]
"""The characters of dtypes."""


@functools.cache
def _keys_of(dtype: np.dtype[Any]) -> list[int]:
    """The keys of a dtype: two where integers of one size have two numbers, as long and long long."""
    return list(dict.fromkeys(_key_of(alike) for code in _CODES if (alike := np.dtype(code)) == dtype))


def _fields_of(array: PlainArray | ResultTensor, symbols: Container[str], calls_out: bool) -> dict[str, int]:
    """What the words of an array say, but for the place of its dims.

    Functions that the program calls are told which memory is read-only, by Python, which takes such calls.
    """
    dtype = storage(array.dtype)
    keys = _keys_of(dtype)
    fields = {"key": keys[0], "other key": keys[-1], "rank": len(array.dims)}
    fields |= {"dtype": id(dtype), "item bytes": dtype.itemsize, "flags": WRITTEN_FLAGS}
    if isinstance(array, ResultTensor):
        return {**fields, "written": True, "follows": array.follows(symbols), "word": array.word}
    if not array.written and not calls_out:
        fields["flags"] = READ_FLAGS
    return {**fields, "written": array.written, "follows": True, "word": 0}


def _dim_words(dim: int | str | Linear | None, symbols: Mapping[str, int]) -> tuple[int, int, int]:
    """A size as (symbol, factor, offset); sizes that the program finds are never asked for."""
    if isinstance(dim, Linear):
        return symbols.get(dim.name, 0), dim.factor, dim.offset
    return (0, 0, dim or 0) if not isinstance(dim, str) else (symbols[dim], 1, 0)


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
