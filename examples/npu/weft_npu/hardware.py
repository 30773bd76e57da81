"""The NPU as a program: what its hardware does to the last bit, and in how many cycles.

    int32_t npu_execute(const uint8_t *stream, uint64_t bytes, void *const *regions, uint64_t *cycles)

is the interface, in C, of whatever executes a command stream: this model (`c_abi()` gives its address), a simulation of
the hardware's description, or the driver of a chip. `NPU_LIBRARY` names a shared object to use in place of the model.

The machine: 8-bit integers in, 32-bit sums out. Two units run a stream at once, each of them its own commands in order:
a direct memory access unit that moves `BUS` bytes each cycle between the host and `sram` bytes of the machine's own,
and an output-stationary systolic array of N x N cells that multiplies tiles which stand there. A command waits until
the bytes that it needs are there, and until nobody needs those that it overwrites. A stream is

    stream  ::= "NPU1" array:u32 sram:u32 command*             little-endian, every field 32 bits
    command ::= WINDOWS  source destination  channels height width  kernel_h kernel_w  stride_h stride_w
                         top left  out_h out_w                            the windows of an image as a matrix
              | MULTIPLY a b c  rows inner columns  add                   c (+)= a @ b
              | LOAD     source a  rows columns stride                    a tile of 8-bit integers, rows side by side
              | STORE    c destination  rows columns stride               a tile of 32-bit sums
    place   ::= region:u32 offset:u32                            source, destination: bytes from an argument's start
    tile    ::= offset:u32                                       a, b, c: bytes from the start of the machine's memory
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["BUS", "LOAD", "MAGIC", "MULTIPLY", "STORE", "WINDOWS", "c_abi", "execute"]

MAGIC, BUS = b"NPU1", 16
WINDOWS, MULTIPLY, LOAD, STORE = 1, 2, 3, 4
_LENGTHS = {WINDOWS: 15, MULTIPLY: 7, LOAD: 6, STORE: 6}  # fields after the operation
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


class _NoRoom(Exception):
    """A tile beyond the memory of the machine."""


class _Machine:
    """The memory of the machine, and when its units and each of its bytes are free."""

    def __init__(self, place: Callable[[int, int], int], size: int, sram: int) -> None:
        self.place, self.size = place, size
        self.memory = np.zeros(sram, "uint8")
        self.written, self.read = np.zeros(sram, "int64"), np.zeros(sram, "int64")
        self.copied = self.multiplied = 0

    @property
    def cycles(self) -> int:
        """When both units have done what they were told."""
        return max(self.copied, self.multiplied)

    def tile(self, offset: int, dtype: str, rows: int, columns: int) -> tuple[slice, np.ndarray]:
        """The bytes of a tile, and the tile."""
        where = slice(offset, offset + rows * columns * np.dtype(dtype).itemsize)
        if where.stop > self.memory.size:
            raise _NoRoom
        return where, self.memory[where].view(dtype).reshape(rows, columns)

    def host(self, region: int, offset: int, dtype: str, rows: int, columns: int, stride: int) -> np.ndarray:
        """A matrix in the memory of the host."""
        flat = _array(self.place(region, offset), dtype, (rows - 1) * stride + columns)
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (stride * flat.itemsize, flat.itemsize))

    def windows(self, *fields: int) -> None:
        """The windows of an image, from the host to the host."""
        self.copied += _windows(self.place, fields)

    def load(self, region: int, offset: int, to: int, rows: int, columns: int, stride: int) -> None:
        """A tile from the host, when nobody needs what is overwritten."""
        where, tile = self.tile(to, "int8", rows, columns)
        tile[...] = self.host(region, offset, "int8", rows, columns, stride)
        free = max(self.copied, self.read[where].max(), self.written[where].max())
        self.copied = self.written[where] = int(free) + -(-tile.nbytes // BUS)

    def store(self, at: int, region: int, offset: int, rows: int, columns: int, stride: int) -> None:
        """A tile of sums to the host, when it is there."""
        where, tile = self.tile(at, "int32", rows, columns)
        self.host(region, offset, "int32", rows, columns, stride)[...] = tile
        self.copied = self.read[where] = int(max(self.copied, self.written[where].max())) + -(-tile.nbytes // BUS)

    def multiply(self, a: int, b: int, c: int, rows: int, inner: int, columns: int, add: int) -> None:
        """A product of tiles, when they are there and the sums before them are stored."""
        (left, x), (right, y) = self.tile(a, "int8", rows, inner), self.tile(b, "int8", inner, columns)
        sums, result = self.tile(c, "int32", rows, columns)
        result[...] = (result if add else 0) + x.astype(np.int32) @ y.astype(np.int32)
        needed = (self.written[left], self.written[right], self.written[sums], self.read[sums])
        steps = -(-rows // self.size) * -(-columns // self.size) * (inner + 2 * self.size - 2)  # fill, stream, drain
        done = int(max(self.multiplied, *(item.max() for item in needed))) + steps
        self.multiplied = self.written[sums] = self.read[left] = self.read[right] = done


def _run(stream: bytes, regions: ctypes.Array[ctypes.c_void_p] | Sequence[int]) -> tuple[int, int]:
    """(result, cycles) of a stream over regions that are given by their addresses."""
    if len(stream) % 4 or stream[:4] != MAGIC or len(stream) < 12:
        return BAD_STREAM, 0
    words = struct.unpack(f"<{len(stream) // 4 - 1}I", stream[4:])
    machine = _Machine(lambda region, offset: int(regions[region] or 0) + offset, words[0], words[1])
    commands = {WINDOWS: machine.windows, MULTIPLY: machine.multiply, LOAD: machine.load, STORE: machine.store}
    position = 2
    while position < len(words):
        operation = words[position]
        fields = words[position + 1 : position + 1 + _LENGTHS.get(operation, len(words))]
        if len(fields) != _LENGTHS.get(operation):
            return BAD_STREAM, machine.cycles
        position += 1 + len(fields)
        try:
            commands[operation](*fields)
        except _NoRoom:
            return NO_ROOM, machine.cycles
    return OK, machine.cycles


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
