"""Arrays as text: the forms of `R.const`.

    R.const(1.5, "float32")                          a scalar
    R.const([[1, 2], [3, 4]], "int64")               nested lists; `shape=` when lists cannot say it
    R.const([nan, inf], ...)                         written float("nan"), float("inf")
    R.const(complex(1.0, -2.0), "complex64")         a complex number; `1 - 2j` is one, too
    R.const(0.5, "bfloat16")                         the nearest value, for dtypes that NumPy lacks too
    R.const(32704, "bfloat16", bits=True)            raw bits: where values do not say it (nan with a payload)
    R.const("base64:AACAPw==", "float32", shape=(1,))   many elements: little-endian bytes
    R.const("sha256:...", "float32", shape=(1,))     bytes that the caller gives by their hash (`blobs`)

Every array reads back with the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import Span, WeftError
from weft.ir.graph import Constant
from weft.ir.structure.array_digests import array_digest
from weft.script.source.diagnostics import fail
from weft.support.array_memory import content_bytes
from weft.support.small_floats import decode, encode

__all__ = ["LARGE", "constant_lists", "constant_parts", "constant_value", "float_text", "number_text"]

LARGE = 256  # more elements than this are written as base64
_QUIET_NAN = 0x7FF8000000000000


def float_text(value: float) -> str:
    """A Python float as an expression of the script that reads back with the same bits."""
    if math.isfinite(value):
        return repr(value)
    if math.isinf(value):
        return 'float("inf")' if value > 0 else 'float("-inf")'
    bits = int(np.float64(value).view(np.uint64))
    return 'float("nan")' if bits == _QUIET_NAN else f"I.float_bits({bits:#x})"


def number_text(value: Any) -> str:
    """A Python number as an expression of the script that reads back with the same bits."""
    if isinstance(value, complex):
        return f"complex({float_text(value.real)}, {float_text(value.imag)})"
    return float_text(value) if isinstance(value, float) else repr(value)


def constant_parts(constant: Constant, blobs: dict[str, bytes] | None = None) -> dict[str, Any]:
    """How a constant is written: `data` as text, and which of `shape` and `bits` it needs.

    The bytes of a large one go to `blobs` under "sha256:...", where that is given.
    """
    data = constant.data
    if data.size > LARGE or (dtypes.is_complex(constant.dtype) and _has_odd_nan(data)):
        little = data.astype(data.dtype.newbyteorder("<"), copy=False)
        if blobs is None:
            return {"data": f'"base64:{base64.b64encode(little.tobytes()).decode()}"', "shape": data.shape}
        name = f"sha256:{array_digest(little).hex()}"
        if name not in blobs:
            blobs[name] = little.tobytes()
        return {"data": f'"{name}"', "shape": data.shape}
    values = _short(data) if constant.is_numpy else _small_values(constant)
    if values is None or _has_odd_nan(data):
        bits = data.view(f"uint{data.dtype.itemsize * 8}")
        return {"data": _nested(bits.tolist(), data), "bits": True, **_shape_of(data)}
    return {"data": _nested(values, data), **_shape_of(data)}


def constant_lists(constant: Constant) -> str | None:
    """The elements as nested lists of numbers, or None where these do not say the bytes and the shape."""
    data = constant.data
    if data.size == 0 and np.array(data.tolist()).shape != data.shape:
        return None
    values = _short(data) if constant.is_numpy else _small_values(constant)
    if values is None or _has_odd_nan(data):
        return None
    return _lists(values)


def _lists(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_lists, value))}]"
    return number_text(value)


def _small_values(constant: Constant) -> Any:
    """The values of a dtype that NumPy lacks as Python numbers, or None where they would not give the same bits."""
    data, dtype = constant.data, constant.dtype
    if dtypes.is_integer(dtype):
        fits = all(dtypes.can_hold(dtype, int(item)) for item in data.ravel())
        return data.tolist() if fits else None
    values = decode(data, dtype)
    if encode(values, dtype).tobytes() != data.tobytes():
        return None
    return np.asarray(values, np.float64).tolist()


def _shape_of(data: np.ndarray) -> dict[str, Any]:
    """The shape, where nested lists do not say it (an empty array)."""
    return {"shape": data.shape} if data.size == 0 else {}


def _has_odd_nan(data: np.ndarray) -> bool:
    """Whether a nan has a sign or payload that `float("nan")` lacks."""
    if data.dtype.kind == "c":
        return _has_odd_nan(np.ascontiguousarray(data).reshape(-1).view(f"float{4 * data.itemsize}"))
    if data.dtype.kind != "f" or not np.isnan(data).any():
        return False
    bits = data.view(f"uint{data.dtype.itemsize * 8}")
    quiet = np.array(math.nan, data.dtype).view(bits.dtype)
    return bool((bits[np.isnan(data)] != quiet).any())


def _short(data: np.ndarray) -> Any:
    """Python numbers whose text is short and converts back exactly."""
    if data.dtype.kind == "c" and data.dtype.itemsize == 8:
        parts = np.ascontiguousarray(data).reshape(-1, 1).view("float32")
        whole = [complex(_short_float(a), _short_float(b)) for a, b in parts]
        return np.array(whole, object).reshape(data.shape).tolist() if data.shape else whole[0]
    if data.dtype.kind != "f" or data.dtype.itemsize == 8:
        return data.tolist()
    flat = [_short_float(value) for value in data.reshape(-1)]
    return np.array(flat, object).reshape(data.shape).tolist() if data.shape else flat[0]


def _short_float(value: np.floating[Any]) -> float:
    if not np.isfinite(value):
        return float(value)
    short = float(str(value))
    return short if type(value)(short) == value else float(value)


def _nested(value: Any, data: np.ndarray) -> str:
    if isinstance(value, list):
        return "[]" if data.size == 0 else f"[{', '.join(_nested(item, data) for item in value)}]"
    return number_text(value)


def constant_value(
    data: Any, dtype: str | None, shape: Any, bits: bool, span: Span, blobs: Mapping[str, Any] | None
) -> Constant:
    """The constant that `R.const` arguments stand for; W152 for data that does not fit, W151 for a missing blob."""
    if shape is not None:
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise fail("W152", f"the shape of a constant is a list of sizes, got {shape!r}", span)
        shape = tuple(sizes)
    if isinstance(data, str):
        array = _from_text(data, dtype, span, blobs)
    elif bits:
        array = _from_bits(data, dtype, span)
    else:
        array, dtype = _from_values(data, dtype, span)
    if shape is not None:
        if math.prod(shape) != array.size:
            raise fail("W152", f"{array.size} elements do not fill the shape {shape}", span)
        try:
            array = array.reshape(shape)
        except ValueError as error:  # an empty array of a size that no array has
            raise fail("W152", f"no array has the shape {shape}: {error}", span) from None
    try:
        return Constant(array, dtype or "", span=span)
    except WeftError as error:
        raise error.at(span) from None


def _from_text(text: str, dtype: str | None, span: Span, blobs: Mapping[str, Any] | None) -> np.ndarray:
    if text.strip("+-").lower() in ("nan", "inf", "infinity") and dtype is not None and dtypes.is_float(dtype):
        return _from_values(float(text), dtype, span)[0]
    scheme, _, payload = text.partition(":")
    if dtype is None or scheme not in ("base64", "sha256"):
        raise fail("W152", 'text data is written "base64:..." or "sha256:...", with a dtype', span)
    if scheme == "base64":
        try:
            raw = base64.b64decode(payload, validate=True)
        except (binascii.Error, ValueError):
            raise fail("W152", "damaged base64 data", span) from None
    else:
        raw = _blob(payload, span, blobs)
    storage = dtypes.storage(dtype)
    if len(raw) % storage.itemsize:
        raise fail("W152", f"{len(raw)} bytes are no whole number of {dtype} elements", span)
    return np.frombuffer(raw, storage.newbyteorder("<")).astype(storage, copy=False)


def _blob(digest: str, span: Span, blobs: Mapping[str, Any] | None) -> bytes | memoryview:
    found = None if blobs is None else blobs.get(f"sha256:{digest}", blobs.get(digest))
    if found is None:
        raise fail("W151", f"no blob sha256:{digest[:16]}... was given", span, hint="pass blobs={...} to weft.parse")
    raw = content_bytes(found).data if isinstance(found, np.ndarray) else bytes(found)
    if hashlib.sha256(raw).hexdigest() != digest:
        raise fail("W151", f"the blob sha256:{digest[:16]}... is damaged", span)
    return raw


def _from_bits(data: Any, dtype: str | None, span: Span) -> np.ndarray:
    if dtype is None:
        raise fail("W152", "bits=True needs a dtype", span)
    storage = dtypes.storage(dtype)
    unsigned = np.dtype(f"uint{storage.itemsize * 8}")
    try:
        values = np.array(data, object)
        if values.size and not all(
            isinstance(item, int) and 0 <= item < 2 ** (8 * storage.itemsize) for item in values.ravel()
        ):
            raise ValueError(f"raw bits of {dtype} are integers in [0, 2**{8 * storage.itemsize})")
        return values.astype(unsigned).view(storage)
    except (ValueError, OverflowError, TypeError) as error:
        raise fail("W152", str(error), span) from None


def _from_values(data: Any, dtype: str | None, span: Span) -> tuple[np.ndarray, str]:
    if isinstance(data, np.ndarray):
        if dtype is None or dtypes.check_dtype(data.dtype) == dtype:
            return data, dtype or dtypes.check_dtype(data.dtype)
        raise fail("W152", f"the array is {data.dtype}, not {dtype}", span, hint=f'convert it: array.astype("{dtype}")')
    _check_rectangular(data, span)
    if dtype is None:
        dtype = _natural_dtype(data)
    storage = dtypes.storage(dtype)  # refuses what no array can hold
    values = np.array(data, object)
    _check_values(values, dtype, span)
    if not dtypes.is_numpy(dtype):
        small = values.astype(storage) if dtypes.is_integer(dtype) else encode(values.astype(np.float64), dtype)
        return np.asarray(small, storage), dtype
    with np.errstate(over="ignore"):
        return values.astype(np.dtype(dtype)), dtype


def _check_rectangular(data: Any, span: Span) -> None:
    def shape(value: Any) -> tuple[int, ...]:
        if not isinstance(value, (list, tuple)):
            return ()
        parts = {shape(item) for item in value}
        if len(parts) > 1:
            raise fail("W152", "the rows of the constant have different lengths", span)
        return (len(value), *(parts.pop() if parts else ()))

    shape(data)


def _natural_dtype(data: Any) -> str:
    flat = np.array(data, object).reshape(-1).tolist()
    if any(isinstance(item, complex) for item in flat):
        return "complex64"
    if any(isinstance(item, float) for item in flat):
        return "float32"
    if flat and all(isinstance(item, bool) for item in flat):
        return "bool"
    return "int32" if all(isinstance(item, (int, bool)) and -(2**31) <= item < 2**31 for item in flat) else "int64"


def _check_values(values: np.ndarray, dtype: str, span: Span) -> None:
    for item in values.ravel():
        if not isinstance(item, (int, float, complex)):
            raise fail("W152", f"{item!r} is not a number", span)
        if dtypes.is_complex(dtype) or (dtypes.is_float(dtype) and not isinstance(item, complex)):
            continue
        if isinstance(item, complex):
            raise fail("W152", f"{item!r} is not a value of {dtype}", span)
        if isinstance(item, float) and not item.is_integer():
            raise fail("W152", f"{item!r} is not a value of {dtype}", span)
        if dtypes.is_integer(dtype) and not dtypes.can_hold(dtype, int(item)):
            raise fail("W152", f"{item!r} does not fit in {dtype}", span)
