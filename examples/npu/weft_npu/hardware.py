"""The NPU as a program: what its hardware does to the last bit, and in how many cycles.

    int32_t npu_execute(const uint8_t *stream, uint64_t bytes, void *const *regions, uint64_t *cycles)

is the interface, in C, of whatever executes a command stream: this model (`c_abi()` gives its address), a simulation of
the hardware's description, or the driver of a chip. `NPU_LIBRARY` names a shared object to use in place of the model.

The machine: 8-bit integers in, 32-bit sums out. An output-stationary systolic array of N x N cells multiplies tiles
that stand in `sram` bytes of its own; a direct memory access unit moves `BUS` bytes each cycle. A stream is

    stream  ::= "NPU1" array:u32 sram:u32 command*             little-endian, every field 32 bits
    command ::= WINDOWS  source destination  channels height width  kernel_h kernel_w  stride_h stride_w
                         top left  out_h out_w                            the windows of an image as a matrix
              | MULTIPLY a b c  rows inner columns  lda ldb ldc  add       c (+)= a @ b
    place   ::= region:u32 offset:u32                            bytes from the start of an argument
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["BUS", "MAGIC", "MULTIPLY", "WINDOWS", "c_abi", "execute"]

MAGIC, BUS = b"NPU1", 16
WINDOWS, MULTIPLY = 1, 2
_LENGTHS = {WINDOWS: 15, MULTIPLY: 13}  # fields after the operation
OK, BAD_STREAM, NO_ROOM = 0, -1, -2


def _array(address: int, dtype: str, count: int) -> np.ndarray:
    """Memory of the host as a flat array; nothing is copied."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), dtype)


def _windows(place: Callable[[int, int], int], fields: Sequence[int]) -> int:
    """Row k of the destination has, for each output pixel, the input pixel that weight k meets; 0 outside."""
    (
        source,
        at,
        destination,
        to,
        channels,
        height,
        width,
        kernel_h,
        kernel_w,
        stride_h,
        stride_w,
        top,
        left,
        out_h,
        out_w,
    ) = fields
    image = _array(place(source, at), "int8", channels * height * width).reshape(channels, height, width)
    result = _array(place(destination, to), "int8", channels * kernel_h * kernel_w * out_h * out_w)
    result = result.reshape(channels, kernel_h, kernel_w, out_h, out_w)
    rows = np.arange(out_h) * stride_h - top
    columns = np.arange(out_w) * stride_w - left
    for i in range(kernel_h):
        for j in range(kernel_w):
            y, x = (rows + i)[:, None], (columns + j)[None, :]
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            result[:, i, j] = np.where(inside, image[:, y.clip(0, height - 1), x.clip(0, width - 1)], 0)
    return -(-(image.size + result.size) // BUS)


def _multiply(place: Callable[[int, int], int], fields: Sequence[int], size: int, sram: int) -> int | None:
    """The cycles of one product of tiles, or None when they do not fit the memory of the machine."""
    a, a_at, b, b_at, c, c_at, rows, inner, columns, lda, ldb, ldc, add = fields
    if rows * inner + inner * columns + 4 * rows * columns > sram:
        return None

    def matrix(region: int, offset: int, dtype: str, height: int, width: int, stride: int) -> np.ndarray:
        flat = _array(place(region, offset), dtype, (height - 1) * stride + width)
        return np.lib.stride_tricks.as_strided(flat, (height, width), (stride * flat.itemsize, flat.itemsize))

    left = matrix(a, a_at, "int8", rows, inner, lda).astype(np.int32)
    right = matrix(b, b_at, "int8", inner, columns, ldb).astype(np.int32)
    result = matrix(c, c_at, "int32", rows, columns, ldc)
    result[...] = (result if add else 0) + left @ right
    moved = rows * inner + inner * columns + 4 * rows * columns * (2 if add else 1)
    steps = -(-rows // size) * -(-columns // size) * (inner + 2 * size - 2)  # fill, stream, drain
    return steps + -(-moved // BUS)


def _run(stream: bytes, regions: ctypes.Array[ctypes.c_void_p] | Sequence[int]) -> tuple[int, int]:
    """(result, cycles) of a stream over regions that are given by their addresses."""
    if len(stream) % 4 or stream[:4] != MAGIC or len(stream) < 12:
        return BAD_STREAM, 0
    words = struct.unpack(f"<{len(stream) // 4 - 1}I", stream[4:])
    size, sram, position, cycles = words[0], words[1], 2, 0
    while position < len(words):
        operation = words[position]
        fields = words[position + 1 : position + 1 + _LENGTHS.get(operation, len(words))]
        if len(fields) != _LENGTHS.get(operation):
            return BAD_STREAM, cycles
        position += 1 + len(fields)

        def place(region: int, offset: int) -> int:
            return int(regions[region] or 0) + offset

        spent = _windows(place, fields) if operation == WINDOWS else _multiply(place, fields, size, sram)
        if spent is None:
            return NO_ROOM, cycles
        cycles += spent
    return OK, cycles


_Execute = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint64)
)


@_Execute
def _model(stream, size, regions, cycles):
    result, spent = _run(ctypes.string_at(stream, size), regions)
    if cycles:
        cycles[0] += spent
    return result


def c_abi() -> Callable[..., int]:
    """`npu_execute`: the model, or what `NPU_LIBRARY` names."""
    path = os.environ.get("NPU_LIBRARY")
    return _Execute(("npu_execute", ctypes.CDLL(path))) if path else _model


def execute(stream: bytes, arrays: Sequence[np.ndarray]) -> int:
    """Run a stream on arrays through the interface in C; gives the cycles. RuntimeError for a stream it refuses."""
    regions = (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
    cycles = ctypes.c_uint64(0)
    result = c_abi()(stream, len(stream), regions, ctypes.byref(cycles))
    if result != OK:
        raise RuntimeError(f"the NPU refuses the stream: {result}")
    return cycles.value
