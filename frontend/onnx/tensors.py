"""Tensors of ONNX as arrays: the table of element types, and where the bytes of a tensor are.

    location ::= in the message | external: a file below the folder of the model, offset, length

An external file is mapped, not read. Its path is resolved with links followed, and must stay below the folder.
Errors: ModelError W974 for a tensor whose bytes do not fit its sizes, W975 for an external file that is not there, or
not below the folder.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from weft.dtypes import array_dtype, bits
from weft.errors import ModelError
from weft.frontend.extras import require

__all__ = ["dense_array", "dtype_name", "element_type", "is_element_type", "tensor_array"]

_NAMES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}
"""TensorProto.DataType -> dtype; strings (8) and complex numbers (14, 15) have none."""
_OTHERS = {8: "string", 14: "complex64", 15: "complex128"}
_MOST_ELEMENTS = 1 << 40


def dtype_name(element: int) -> str | None:
    """The dtype of a TensorProto.DataType, None where there is none of ours."""
    return _NAMES.get(element)


def is_element_type(element: int) -> bool:
    """Whether a number is a TensorProto.DataType that tensors may have."""
    return element in _NAMES or element in _OTHERS


def element_type(dtype: str) -> int:
    """The TensorProto.DataType of a dtype."""
    return next(number for number, name in _NAMES.items() if name == dtype)


def tensor_array(tensor: Any, folder: Path | None, name: str = "", data: memoryview | None = None) -> np.ndarray:
    """The array of a TensorProto, without a copy where its bytes lie as they are needed; `data` are those it lacks."""
    name = name or tensor.name
    shape = tuple(tensor.dims)
    if any(size < 0 for size in shape) or math.prod(shape) > _MOST_ELEMENTS:
        raise ModelError(f"the tensor {name!r} has the sizes {shape}", code="W974")
    dtype = _NAMES.get(tensor.data_type)
    if not is_element_type(tensor.data_type):
        raise ModelError(f"the tensor {name!r} has the unknown element type {tensor.data_type}", code="W974")
    if dtype is None or tensor.segment.ByteSize():
        return _converted(tensor if data is None else _completed(tensor, data), folder, name)
    count = math.prod(shape)
    expected = (count * bits(dtype) + 7) // 8 if dtype != "bool" else count
    raw: Any = data
    if raw is None and tensor.data_location == 1:
        raw = _external(tensor, folder, name, expected)
    elif raw is None and tensor.HasField("raw_data"):
        raw = tensor.raw_data
    elif raw is None:
        return _converted(tensor, folder, name)
    if len(raw) != expected:
        raise ModelError(
            f"the tensor {name!r} of {dtype}{list(shape)} takes {expected} bytes and has {len(raw)}", code="W974"
        )
    if bits(dtype) < 8 and dtype != "bool":
        return _unpacked(np.frombuffer(raw, "uint8"), bits(dtype), count).view(array_dtype(dtype)).reshape(shape)
    return np.frombuffer(raw, array_dtype(dtype)).reshape(shape)


def _completed(tensor: Any, data: memoryview) -> Any:
    """A copy of a tensor with the bytes that it lacks."""
    made = type(tensor)()
    made.CopyFrom(tensor)
    made.raw_data, made.data_location = bytes(data), 0
    return made


def _unpacked(data: np.ndarray, width: int, count: int) -> np.ndarray:
    """Elements of fewer than eight bits, the lowest bits first, one byte each."""
    shifts = np.arange(0, 8, width, dtype="uint8")
    mask = np.uint8((1 << width) - 1)
    return ((data[:, None] >> shifts) & mask).reshape(-1)[:count]


def _converted(tensor: Any, folder: Path | None, name: str) -> np.ndarray:
    """What lies in lists of numbers or strings, converted by the package of the format."""
    helper = require("onnx.numpy_helper", "onnx")
    if tensor.data_location == 1:
        raise ModelError(f"the tensor {name!r} of type {tensor.data_type} lies outside of the model", code="W975")
    given = next((len(field) for _, field in tensor.ListFields() if _.name.endswith("_data")), 0)
    if math.prod(tensor.dims) > max(2 * given, 16):  # sizes that the numbers do not fill
        raise ModelError(f"the tensor {name!r} of sizes {tuple(tensor.dims)} has {given} elements", code="W974")
    try:
        return helper.to_array(tensor)
    except Exception as error:
        raise ModelError(f"the tensor {name!r} cannot be read: {error}", code="W974") from None


def _external(tensor: Any, folder: Path | None, name: str, expected: int) -> Any:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    place = entries.get("location", "")
    if folder is None:
        raise ModelError(
            f"the tensor {name!r} lies in the file {place!r}, and the folder of the model is not known",
            code="W975",
            hint='load the model by its path, or give folder="..."',
        )
    root = folder.resolve()
    path = (root / place.replace("\0", "?")).resolve()
    if not place or not path.is_relative_to(root) or not path.is_file():
        outside = "" if place and path.is_relative_to(root) else ", which is not below the folder of the model"
        raise ModelError(
            f"the tensor {name!r} lies in the file {place!r}{outside or ', which is not there'}", code="W975"
        )
    try:
        offset = int(entries.get("offset", "0") or 0)
        length = int(entries.get("length", "") or expected)
    except ValueError:
        raise ModelError(f"the tensor {name!r} has a place that is no number: {entries}", code="W975") from None
    size = path.stat().st_size
    if offset < 0 or length != expected or offset + length > size:
        raise ModelError(
            f"the tensor {name!r} takes {expected} bytes; its place is {length} bytes from {offset} on in {place!r}, a "
            f"file of {size}",
            code="W974",
        )
    if not length:
        return b""
    return np.memmap(path, "uint8", "r", offset, (length,))


def dense_array(sparse: Any, folder: Path | None) -> np.ndarray:
    """The array of a SparseTensorProto."""
    name = sparse.values.name
    shape = tuple(sparse.dims)
    if any(size < 0 for size in shape) or math.prod(shape) > 1 << 28:
        raise ModelError(f"the sparse tensor {name!r} has the sizes {shape}", code="W974")
    values = tensor_array(sparse.values, folder, name)
    indices = tensor_array(sparse.indices, folder, name)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape, mode="clip")
    if indices.ndim == 2 and ((indices < 0) | (indices >= np.array(shape))).any():
        raise ModelError(f"the sparse tensor {name!r} has an index outside of {shape}", code="W974")
    if flat.size and (flat.min() < 0 or flat.max() >= math.prod(shape)):
        raise ModelError(f"the sparse tensor {name!r} has an index outside of {shape}", code="W974")
    made = np.zeros(math.prod(shape), values.dtype)
    made[flat] = values
    return made.reshape(shape)
