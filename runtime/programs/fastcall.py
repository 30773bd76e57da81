"""Machine code as Python functions: what the LLVM back end emitted, wrapped without a compiler.

`fast_call` gives a built-in function of CPython whose code is the emitted one, or None where this interpreter is laid
out otherwise than that code expects (another implementation, a debug build, one without a GIL).
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.runtime.abi.values import storage, words_of

__all__ = ["FORMATS", "TABLE", "fast_call", "result_tensors", "takes_fast_calls"]

_ENTRIES = (
    "slow", "failure", "wrap", "empty", "none", "array type", "constants", "parallel", "into", "out", "tuple type",
    "begin", "end", "callback", "poll",
)  # fmt: skip
TABLE = {name: slot for slot, name in enumerate(_ENTRIES)}
"""The words of the table that emitted code reads; the dtypes of the results follow."""
FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "lq", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "LQ", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
"""The format characters by which the buffer protocol names the dtypes of NumPy arrays."""
MOST_ARGUMENTS = 64
_FASTCALL, _KEYWORDS = 0x0080, 0x0002


def takes_fast_calls(signature: Mapping[str, Any]) -> bool:
    """Whether a function has only tensors of plain sizes as parameters, and tensors of sizes that follow as results."""
    types = [param["type"] for param in signature["params"]]
    if len(types) > MOST_ARGUMENTS or not all(map(_is_plain, types)):
        return False
    bound = {dim for ty in types for dim in ty[2] if isinstance(dim, str)}
    result = signature["result"]
    if not result:
        return True
    flat = result[1:] if result[0] == "tuple" else [result]
    # Arrays of types that NumPy lacks have no buffers, by which the results would be written.
    if not flat or not all(ty[0] == "tensor" and ty[1] in FORMATS and ty[2] is not None for ty in flat):
        return False
    dims = [dim for _, dims, _ in result_tensors(result) for dim in dims]
    return all(isinstance(dim, int) or (dim if isinstance(dim, str) else dim and dim[0]) in bound for dim in dims)


def _is_plain(ty: Sequence[Any]) -> bool:
    if ty[0] not in ("tensor", "buffer") or (ty[3] is not None if ty[0] == "buffer" else len(ty) > 4):
        return False
    return ty[1] is not None and ty[2] is not None and all(isinstance(dim, (int, str)) for dim in ty[2])


def result_tensors(result: Sequence[Any]) -> list[tuple[str, list[Any], int]]:
    """(dtype, sizes, index of the first word) of each tensor of a result that holds nothing else.

    A size is an int, a name, or (name, factor, offset); () for one that is not linear in one symbol.
    """
    if not result:
        return []
    found, word = [], 0
    for ty in result[1:] if result[0] == "tuple" else [result]:
        if ty[0] == "tensor" and ty[1] is not None and ty[2] is not None:
            found.append((ty[1], [_linear(dim) for dim in ty[2]], word))
        word += words_of(ty)
    return found


def _linear(dim: Any) -> Any:
    if isinstance(dim, (int, str)):
        return dim
    parts = list(_linear_parts(dim[1]))
    names = {name for name, _ in parts if name}
    if len(names) != 1 or any(name is None for name, _ in parts):
        return ()
    return names.pop(), sum(factor for name, factor in parts if name), sum(value for name, value in parts if not name)


def _linear_parts(tree: Any) -> Iterator[tuple[str | None, int]]:
    """The terms of a sum as (name or "", factor); (None, 0) for what is no multiple of a name."""
    if isinstance(tree, int):
        yield "", tree
    elif isinstance(tree, str):
        yield tree, 1
    elif tree[0] == "add":
        for part in tree[1:]:
            yield from _linear_parts(part)
    elif tree[0] == "mul" and len(tree) == 3 and isinstance(tree[1], int) and isinstance(tree[2], str):
        yield tree[2], tree[1]
    else:
        yield None, 0


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


def _is_supported() -> bool:
    """Whether objects of this interpreter have their type in their second word."""
    plain = sys.implementation.name == "cpython" and not hasattr(sys, "gettotalrefcount")
    if not plain or sysconfig.get_config_var("Py_GIL_DISABLED") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.empty(0)
    return ctypes.c_void_p.from_address(id(probe) + 8).value == id(np.ndarray)


def fast_call(
    signature: Mapping[str, Any], code: int, table: int, words: Mapping[str, int],
    functions: Mapping[str, Callable[..., Any]], keep: object,
) -> Callable[..., Any] | None:  # fmt: skip
    """The built-in function for emitted code, its table at the address `table` filled in.

    `words` are the entries of the table that are plain numbers, `functions` those that are Python's: `slow` takes all
    calls that the code does not, `failure(status, frame)` raises, `wrap(results, handle, *arrays)` makes results of
    their words, `into(results, handle, out, *arrays)` writes them into `out`, `begin()` gives the handle of a call,
    `end(handle)` forgets it. `keep` lives as long.
    """
    if not _is_supported():
        return None
    dtypes = [storage(dtype) for dtype, _, _ in result_tensors(signature["result"])]
    objects: dict[str, object] = {**functions, "empty": np.empty, "none": None, "out": sys.intern("out")}
    objects |= {"array type": np.ndarray, "tuple type": tuple}
    entries = {**{name: id(value) for name, value in objects.items()}, **words}
    place = (ctypes.c_int64 * (len(TABLE) + len(dtypes))).from_address(table)
    for name, slot in TABLE.items():
        place[slot] = entries[name]
    for index, dtype in enumerate(dtypes):
        place[len(TABLE) + index] = id(dtype)
    method = _Method(signature["name"].encode(), code, _FASTCALL | _KEYWORDS, None)
    owner = (method, list(objects.values()), dtypes, keep)  # what the function holds: it lives as long as this
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(method), owner, None)
