"""Large arrays of a model stay in its file: what is parsed is the rest.

    ModelProto  ::= ... graph (field 7) ...
    GraphProto  ::= ... initializer (field 5) ...
    TensorProto ::= ... raw_data (field 9), data_location (field 14) ...

Protocol buffers copy bytes, several times; a mapped file is not copied at all. Each initial value of 64 KiB or more
loses its `raw_data` in the message, which then says that it lies elsewhere, and is a part of the given bytes. Where the
bytes do not follow the format nothing is taken out: parsing them says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["without_arrays"]

_GRAPH, _INITIALIZER, _RAW_DATA, _LOCATION = 7, 5, 9, 14
_LARGE = 1 << 16
_ELSEWHERE = bytes([_LOCATION << 3, 1])
_BYTES = 2  # the wire type of messages, strings and bytes
_FIXED = {1: 8, 5: 4}


class _Malformed(Exception):
    """Bytes that do not follow the format."""


def without_arrays(data: memoryview) -> tuple[bytes, dict[int, memoryview]]:
    """The message without the bytes of its large initial values, and these by the number of the initial value."""
    found: dict[int, memoryview] = {}
    try:
        made = _rewritten(data, _GRAPH, lambda graph: _graph(graph, found))
    except _Malformed:
        return bytes(data), {}
    return made, found


def _graph(data: memoryview, found: dict[int, memoryview]) -> bytes:
    number = -1

    def tensor(part: memoryview) -> bytes | memoryview:
        nonlocal number
        number += 1
        if len(part) < _LARGE:
            return part
        kept = [part[start:end] for field, wire, start, end, _ in _fields(part) if (field, wire) != (_RAW_DATA, _BYTES)]
        raw = [part[body:end] for field, wire, _, end, body in _fields(part) if (field, wire) == (_RAW_DATA, _BYTES)]
        if len(raw) != 1 or len(raw[0]) < _LARGE:
            return part
        found[number] = raw[0]
        return b"".join([*kept, _ELSEWHERE])

    return _rewritten(data, _INITIALIZER, tensor)


def _rewritten(data: memoryview, wanted: int, change: Callable[[memoryview], bytes | memoryview]) -> bytes:
    """A message whose fields of one number are changed."""
    pieces: list[bytes | memoryview] = []
    for field, wire, start, end, body in _fields(data):
        part = data[body:end]
        new = change(part) if (field, wire) == (wanted, _BYTES) else part
        if new is part:
            pieces.append(data[start:end])
        else:
            pieces.extend((_varint_bytes(wanted << 3 | _BYTES), _varint_bytes(len(new)), new))
    return b"".join(pieces)


def _fields(data: memoryview) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, where the field starts, ends, and its contents start) for each field of a message."""
    place, size = 0, len(data)
    while place < size:
        start = place
        key, place = _varint(data, place)
        wire, body = key & 7, place
        if wire == _BYTES:
            length, body = _varint(data, place)
            place = body + length
        elif wire == 0:
            _, place = _varint(data, place)
        elif wire in _FIXED:
            place += _FIXED[wire]
        else:
            raise _Malformed
        if place > size:
            raise _Malformed
        yield key >> 3, wire, start, place, body


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise _Malformed


def _varint_bytes(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)
