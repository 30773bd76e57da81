"""Stores past the caches, for large results (`weft.transform.autoschedule.nontemporal` marks the loops).

    for i:  v0, v1, v2, v3 = ...                      the vectors of one step
            large, addresses aligned?  yes: stores past the caches     no: plain stores

The choice is made once for all vectors of a step, so that small results pay one branch for them. Such stores are not in
order with others: a fence before the function returns makes them visible first.
"""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, cast, icmp, store
from weft.codegen.backends.llvm.asm.types import bytes_of, element_bytes, memory_type
from weft.codegen.backends.llvm.values.memory import MemoryEmitter
from weft.codegen.backends.llvm.values.views import BufferView, Linear, Scattered
from weft.ir.tensor import Buffer

__all__ = ["Streams"]

_LINE, _LEAST = 64, 16  # bytes: of a cache line, and of the narrowest vector that has such a store
_RARE = ', !prof !{!"branch_weights", i32 1, i32 2000}'


class Streams:
    """The vectors of one step, held back until all of them are there."""

    def __init__(self, w: FunctionWriter, result: Buffer, shape: list[Size], least: int) -> None:
        self.w = w
        self.result = result
        size: Size = element_bytes(result.dtype)
        for extent in shape:
            size = w.mul(size, extent)
        if isinstance(size, int):
            self.large = "true" if size >= least else "false"
        else:
            self.large = w.emit(icmp("uge", "i64", size, least))
        self.held: list[tuple[str, str, str]] = []

    def hold(self, memory: MemoryEmitter, view: BufferView, where: Linear | Scattered, dtype: str, value: str) -> bool:
        """Take a store of a whole vector; False for one that has no other form."""
        ty = memory_type(dtype)
        size = bytes_of(ty)
        if self.large == "false" or size is None or size % _LEAST or dtypes.lanes(view.dtype) > 1:
            return False
        if not isinstance(where, Linear) or where.stride != 1:
            return False
        self.held.append((ty, memory.in_memory(dtype, value), memory.address(view, where.base, where.plus)))
        return True

    def store(self) -> bool:
        """Make the stores that are held; whether there were any."""
        w, held = self.w, self.held
        self.held = []
        if not held or w.terminated:
            return False
        align = min(_LINE, *(bytes_of(ty) or _LEAST for ty, _, _ in held))
        align &= -align
        look, past, usual, done = (w.label(name) for name in ("large", "past", "usual", "stored"))
        w.branch(self.large, look, usual, _RARE)
        w.open(look)
        bits = ""
        for _, _, pointer in held:
            word = w.emit(cast("ptrtoint", "ptr", pointer, "i64"))
            bits = word if not bits else w.emit(binary("or", "i64", bits, word))
        low = w.emit(binary("and", "i64", bits, align - 1))
        w.branch(w.emit(icmp("eq", "i64", low, "0")), past, usual)
        w.open(past)
        hint = w.module.add_metadata("!{i32 1}")
        for ty, value, pointer in held:
            w.do(store(ty, value, pointer, align, metadata=f"!nontemporal {hint}"))
        w.jump(done)
        w.open(usual)
        for ty, value, pointer in held:
            w.do(store(ty, value, pointer, element_bytes(self.result.dtype)))
        w.open(done)
        return True
