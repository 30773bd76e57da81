"""Calls out of compiled code into registered Python functions.

Compiled code calls `callback(frame, site, arguments, results)` (`callback_address`), which takes the GIL. The site
says which function, what the words of its arguments are, and what comes back:

    site ::= {kind: "call", name, args: type*, result: type | None, action?, in_kernel?}

(types: `weft.runtime.abi.types`; a site of a kernel has `in_kernel`).

A site with `action` means one of weft's own (`ACTIONS`), which no text can name. A registered function gets arrays of
its own (`weft.support.isolation`).

An exception is kept with the call and raised again by the caller; compiled code frees its memory on the way out.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.dtypes import tensor_dtype
from weft.errors import RecursionDepthError, ShapeError, WeftError, note_call, one_screen
from weft.runtime.abi import types as abi
from weft.runtime.abi.failures import span_of
from weft.runtime.abi.frame import DYNAMIC_RANK, HANDLE
from weft.runtime.abi.scalars import DTYPE_CODES, scalar_word, storage, word_scalar
from weft.runtime.abi.symbols import converted
from weft.runtime.abi.values import address, dense, tensor_parts, view_memory
from weft.runtime.device.interrupts import caller
from weft.runtime.device.stack import lowest_place
from weft.runtime.registry import lookup
from weft.support import profile
from weft.support.isolation import Typed, hand_over, isolated, map_items, plain, shown, tuple_items

__all__ = ["ACTIONS", "CallState", "action", "begin", "callback_address", "end", "outside", "tensor_sizes"]

Words = Sequence[int]
_WORD = ctypes.c_int64


class CallState:
    """One running call: the sites of its program, a callback's error, what compiled code refers to by number."""

    def __init__(
        self,
        sites: Sequence[dict[str, Any]],
        objects: list[Any],
        read_only: Sequence[tuple[int, int]] = (),
        linked: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.sites = sites
        self.linked = linked or {}
        self.objects = objects
        self.read_only = read_only
        self.keep: list[Any] = []
        self.error: BaseException | None = None


_calls: dict[int, CallState] = {}
_numbers = itertools.count(1)


def begin(state: CallState) -> int:
    """Register a running call; gives its handle."""
    handle = next(_numbers)
    _calls[handle] = state
    return handle


def end(handle: int) -> CallState | None:
    """Forget a call that is over; gives its state."""
    return _calls.pop(handle, None)


def _dispatch(frame: int, site: int, arguments: int, results: int) -> int:
    try:
        state = _state(frame)
        if arguments < lowest_place():  # they lie on the stack of the code that calls
            raise RecursionDepthError("calls of registered functions are nested too deep", code="W951")
        _call(state, state.sites[site], arguments, results)
    except BaseException as error:
        _state(frame).error = error
        return 2
    return 0


def _state(frame: int) -> CallState:
    return _calls[_WORD.from_address(frame + HANDLE * ctypes.sizeof(_WORD)).value]


def _call(state: CallState, site: dict[str, Any], arguments: int, results: int) -> None:
    sizes = [arg.words for arg in site["args"]]
    words = (ctypes.c_int64 * (sum(sizes) or 1)).from_address(arguments)[:]
    values, start = [], 0
    for arg, size in zip(site["args"], sizes, strict=True):
        values.append(_value(state, arg, words[start : start + size]))
        start += size
    try:
        if site.get("action"):
            function = action(site)
        else:
            function = outside(state.linked, site["name"])
    except WeftError as error:
        raise error.at(span_of(site.get("span"))) from None
    try:
        result = function(*values)
        packed = _result(state, site, result) if site["result"] else []
    except WeftError as error:
        raise error.at(span_of(site.get("span"))) from None
    except Exception as error:  # of the user's function: it stays what it is
        note_call(error, site["name"], span_of(site.get("span")))
        raise
    if packed:
        (ctypes.c_int64 * len(packed)).from_address(results)[:] = packed


def outside(linked: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    """The function that a program calls by name, for values whose arrays are `Typed`: linked code, else a registered
    function; ArgumentError W861 when there is none.
    """
    return functools.partial(hand_over, linked.get(name) or isolated(lookup(name)))


def _value(state: CallState, arg: abi.Type, words: Words) -> Any:
    read = _VALUES.get(type(arg))
    return state.objects[words[0]] if read is None else read(state, arg, words)


def _buffer_value(state: CallState, arg: abi.StridedBuffer, words: Words) -> Typed:
    array = _strided(words[0], tuple(words[2 : 2 + arg.rank]), words[2 + arg.rank :], arg.dtype)
    return Typed(array, arg.dtype)


def _tensor_value(state: CallState, arg: abi.Tensor, words: Words) -> Typed:
    data, _, shape, dtype = tensor_parts(arg, words)
    array = view_memory(data, shape, dtype)
    places = state.read_only
    if arg.use == "constant" or (places and any(start <= data < start + count for start, count in places)):
        array.flags.writeable = False
    return Typed(array, dtype)


def _tuple_value(state: CallState, arg: abi.Tuple, words: Words) -> tuple[Any, ...]:
    values, start = [], 0
    for field in arg.fields:
        size = field.words
        values.append(_value(state, field, words[start : start + size]))
        start += size
    return tuple(values)


_VALUES: Mapping[type, Callable[[CallState, Any, Words], Any]] = {
    abi.StridedBuffer: _buffer_value,
    abi.Tensor: _tensor_value,
    abi.Tuple: _tuple_value,
    abi.Text: lambda state, arg, words: arg.text,
    abi.Shape: lambda state, arg, words: tuple(words[1 : 1 + words[0]] if arg.rank < 0 else words[: arg.rank]),
    abi.Scalar: lambda state, arg, words: word_scalar(words[0], arg.dtype),
}


def _strided(data: int, shape: tuple[int, ...], strides: Words, dtype: str) -> np.ndarray:
    """A writable array over a buffer, whose strides are in elements."""
    kind = storage(dtype)
    if 0 in shape:
        return np.empty(shape, kind)
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    flat = view_memory(data, (span,), dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, [stride * kind.itemsize for stride in strides])


def _result(state: CallState, site: dict[str, Any], value: Any) -> list[int]:
    """The words of what a function returned; ShapeError W223 when it does not have the type that the site states."""
    ty: abi.Type = site["result"]
    if site.get("in_kernel"):  # a call there may stand alone, and any truth is an integer
        value = 0 if value is None else int(value) if isinstance(value, bool) and "int" in str(ty) else value
    return _words(state, ty, converted(value, ty, f"the result of {site['name']!r}"))


def _words(state: CallState, ty: abi.Type, value: Any) -> list[int]:
    """The words of a value that has a type."""
    if isinstance(ty, abi.Tensor):
        return _tensor_words(state, ty, value)
    if isinstance(ty, abi.Tuple):
        return [word for item, field in zip(value, ty.fields, strict=True) for word in _words(state, field, item)]
    if isinstance(ty, abi.Shape):
        sizes = list(value)
        return sizes if ty.rank >= 0 else [len(sizes), *sizes, *[0] * (DYNAMIC_RANK - len(sizes))]
    if isinstance(ty, abi.Scalar):
        return [scalar_word(value, ty.dtype)]
    state.objects.append(_kept(value))
    return [len(state.objects) - 1]


def _kept(value: Any) -> Any:
    """A value that outlives the program's memory: arrays that only view memory are copied."""
    if isinstance(value, np.ndarray):
        return value if value.flags.owndata else np.array(value)
    return map_items(value, tuple_items, _kept) if isinstance(value, tuple) else value


def _tensor_words(state: CallState, ty: abi.Tensor, value: np.ndarray) -> list[int]:
    array = dense(value)
    state.keep.append(array)
    if ty.is_static:
        return [address(array), 0, *array.shape]
    code = DTYPE_CODES[ty.dtype or tensor_dtype(array) or ""]
    return [address(array), 0, array.ndim, code, *array.shape, *[0] * (DYNAMIC_RANK - array.ndim)]


def _show(site: dict[str, Any]) -> Callable[..., None]:
    labels = site.get("labels", [])

    def show(*values: Any) -> None:
        for index, value in enumerate(values):
            label = labels[index] if index < len(labels) else ""
            print(f"{label}: {value}" if label else value)

    return show


def _formatted(template: str, values: Sequence[Any]) -> str:
    """The template with each `{}` replaced in order; values left over follow."""
    if not template:
        return " ".join(map(str, values))
    pieces = template.split("{}")
    text = pieces[0]
    for index, piece in enumerate(pieces[1:]):
        text += (str(values[index]) if index < len(values) else "{}") + piece
    return " ".join([text, *map(str, values[len(pieces) - 1 :])])


def _show_format(site: dict[str, Any]) -> Callable[..., None]:
    return lambda *values: print(_formatted(site.get("format", ""), values))


def _assert(site: dict[str, Any]) -> Callable[..., None]:
    def stop(*values: Any) -> None:
        raise AssertionError(one_screen(_formatted(site.get("format", ""), values)) or "R.assert_op failed")

    return stop


def action(site: dict[str, Any]) -> Callable[..., Any]:
    """One of weft's own actions, for values whose arrays are `Typed`."""
    function, form = ACTIONS[site["name"]](site), shown if site["name"] in _SHOWING else plain
    return lambda *values: function(*map(form, values))


def _as_it_is(site: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda value: value


def tensor_sizes(array: np.ndarray) -> tuple[int, ...]:
    """The elements of an array as sizes; ShapeError W221 for a negative one."""
    for size in array:
        if size < 0:
            raise ShapeError(f"a shape has the negative size {size}", code="W221")
    return tuple(int(size) for size in array)


ACTIONS: dict[str, Callable[[dict[str, Any]], Callable[..., Any]]] = {
    "weft.print": _show,
    "weft.print_format": _show_format,
    "weft.assert": _assert,
    "weft.cast": _as_it_is,
    "weft.start_profile": lambda site: lambda number: profile.start(int(number), site["labels"][0]),
    "weft.end_profile": lambda site: lambda number: profile.end(int(number)),
    "weft.null": lambda site: lambda: None,
    "weft.tensor_to_shape": lambda site: tensor_sizes,
    "weft.shape_to_tensor": lambda site: lambda value: np.array(value, np.int64),
}
_SHOWING = ("weft.print", "weft.print_format", "weft.assert", "weft.cast")
"""Actions that show values, or keep them without their type."""
_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_entry = _TYPE(_dispatch)


def callback_address() -> int:
    """The address of what compiled code calls."""
    return caller(_dispatch) or ctypes.cast(_entry, ctypes.c_void_p).value or 0
