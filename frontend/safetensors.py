"""Arrays by name in the safetensors format, mapped from the file.

    file   ::= length (8 bytes, little endian) header data
    header ::= {name: {"dtype": text, "shape": sizes, "data_offsets": [begin, end]}, "__metadata__": {text: text}}
    index  ::= {"weight_map": {name: file}}            model.safetensors.index.json: arrays in several files beside it

The format is a JSON header, so that this reader needs no package: every array is a read-only view of the mapped file,
and what a header may claim is checked before it is believed. The arrays cover the data in order, without gaps and
overlaps, as the format demands; so one byte is never two values.

Errors: ModelError W979 for a file that is not there, not whole or not in the format.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.dtypes import array_dtype
from weft.errors import ModelError
from weft.support.array_memory import content_bytes

__all__ = ["load", "metadata", "save"]

_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}
_LONGEST_HEADER = 100_000_000
_METADATA = "__metadata__"


def load(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a file by name: read-only views of the mapped file, which stays mapped as long as one is kept.

    A path that ends in .json is an index of several files, which stand beside it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder, "w.safetensors"), {"w": np.arange(6, dtype="float32").reshape(2, 3)})
    ...     load(Path(folder, "w.safetensors"))["w"][1].tolist()
    [3.0, 4.0, 5.0]
    """
    if Path(path).suffix == ".json":
        return _indexed(Path(path))
    data, header, start = _opened(Path(path))
    spans: list[tuple[int, int, str]] = []
    arrays: dict[str, np.ndarray] = {}
    for name, entry in header.items():
        if name != _METADATA:
            dtype, shape, begin, end = _entry(path, name, entry, len(data) - start)
            spans.append((begin, end, name))
            arrays[name] = _view(data, dtype, shape, start + begin)
    _check_cover(path, sorted(spans), len(data) - start)
    return arrays


def _indexed(path: Path) -> dict[str, np.ndarray]:
    """The arrays of several files, as an index says where each is."""
    try:
        index = json.loads(path.read_bytes(), object_pairs_hook=_unique)
    except OSError as error:
        raise _fault(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _fault(path, f"the index is no JSON: {error}") from None
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise _fault(path, "the index has no weight_map from names to files")
    for name in places.values():
        if not name.endswith(".safetensors") or Path(name).name != name:
            raise _fault(path, f"{name!r} is no safetensors file beside the index")
    files = {name: load(path.parent / name) for name in dict.fromkeys(places.values())}
    for name, file in places.items():
        if name not in files[file]:
            raise _fault(path, f"{file} has no array {name!r}")
    return {name: files[file][name] for name, file in places.items()}


def metadata(path: str | Path) -> dict[str, str]:
    """What a file says of itself: texts by name."""
    _, header, _ = _opened(Path(path))
    found = header.get(_METADATA, {})
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise _fault(path, "its metadata are no texts")
    return found


def save(path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays by name; those of `ml_dtypes` too."""
    codes = {name: code for code, name in _NAMES.items()}
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    offset = 0
    for name, array in arrays.items():
        if name == _METADATA or array.dtype.name not in codes:
            raise ModelError(f"{path}: the format has no array {name!r} of {array.dtype}", code="W979")
        header[name] = {
            "dtype": codes[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(content_bytes(array).data)


def _fault(path: str | Path, message: str) -> ModelError:
    return ModelError(f"{path}: {message}", code="W979")


def _opened(path: Path) -> tuple[mmap.mmap, dict[str, Any], int]:
    """The mapped file, its header, and where the data begin."""
    try:
        with open(path, "rb") as file:
            size = path.stat().st_size
            if size < 8:
                raise _fault(path, f"no safetensors file: it has {size} bytes")
            length = int.from_bytes(file.read(8), "little")
            if length > min(size - 8, _LONGEST_HEADER):
                raise _fault(path, f"its header of {length} bytes does not fit into {size}")
            text = file.read(length)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise _fault(path, str(getattr(error, "strerror", None) or error)) from None
    try:
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _fault(path, f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise _fault(path, "its header is no mapping")
    return data, header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands there twice")
    return made


def _entry(path: str | Path, name: str, entry: Any, size: int) -> tuple[str, tuple[int, ...], int, int]:
    """(dtype, shape, begin, end) of an array, every one of which is sound."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _fault(path, f"{name!r} has no dtype, shape and place")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _NAMES:
        raise _fault(path, f"{name!r} is of {str(entry['dtype'])[:40]!r}, which is none of {', '.join(_NAMES)}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2 or len(shape) > 64:
        raise _fault(path, f"{name!r} has a shape or a place that is not made of counts")
    dtype, (begin, end) = _NAMES[entry["dtype"]], offsets
    wanted = math.prod(shape) * array_dtype(dtype).itemsize
    if math.prod(max(size, 1) for size in shape) * array_dtype(dtype).itemsize >= 2**63:
        raise _fault(path, f"{name!r} has the sizes {shape}, which are too many")  # also where one of them is 0
    if begin > end or end > size or end - begin != wanted:
        raise _fault(path, f"{name!r} takes {wanted} bytes, and has those from {begin} to {end} of {size}")
    return dtype, tuple(shape), begin, end


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in values)


def _view(data: mmap.mmap, dtype: str, shape: tuple[int, ...], offset: int) -> np.ndarray:
    kind, count = array_dtype(dtype), math.prod(shape)
    if not count:
        return np.empty(shape, kind)
    if offset % kind.itemsize:  # views must be aligned to be passed on
        return np.frombuffer(data, "uint8", count * kind.itemsize, offset).copy().view(kind).reshape(shape)
    return np.frombuffer(data, kind, count, offset).reshape(shape)


def _check_cover(path: str | Path, spans: list[tuple[int, int, str]], size: int) -> None:
    at = 0
    for begin, end, name in spans:
        if begin != at:
            raise _fault(path, f"{name!r} begins at {begin}, where {at} follows what comes before")
        at = end
    if at != size:
        raise _fault(path, f"{size - at} bytes behind the arrays belong to none")
