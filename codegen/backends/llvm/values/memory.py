"""Elements of buffers: addresses, loads and stores of scalars and vectors, under masks or not.

contiguous lanes    one access, a masked one under a mask; memory on the stack is read whole, so that LLVM keeps it
                    in registers
every 2nd to 4th    whole vectors, from which the lanes are picked
one for all lanes   one element, of any other memory where no lane is on
any other lanes     a gather under a mask, else lane by lane

LLVM (up to 22.1 at least) stores too much where integers that a conversion narrows are stored by AVX-512 under a mask
that it knows to have one lane: the wide integer. Such stores have another type, or a mask that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import (
    binary,
    call,
    cast,
    extractelement,
    getelementptr,
    icmp,
    insertelement,
    load,
    phi,
    select,
    shufflevector,
    store,
)
from weft.codegen.backends.llvm.asm.types import element_bytes, memory_type, value_type
from weft.codegen.backends.llvm.values.lanes import broadcast, ramp
from weft.codegen.backends.llvm.values.views import BufferView, Linear, Scattered

__all__ = ["MemoryEmitter"]


class MemoryEmitter:
    """Emits accesses of memory into one function."""

    def __init__(self, w: FunctionWriter, gathers: bool = True, features: frozenset[str] = frozenset()) -> None:
        self.w, self.gathers = w, gathers
        self.narrows_in_stores = "avx512f" in features
        """Whether LLVM makes one masked store of a conversion to a narrower integer and its store."""
        self.masks: dict[str, str] = {}
        """Of values that were read under one: the mask."""
        self._spare: str | None = None
        """Stack memory that may be read for nothing."""

    def address(self, view: BufferView, offset: Size, plus: int = 0) -> str:
        """The address of an element, so many more further on."""
        if isinstance(offset, int):
            offset, plus = offset + plus, 0
        pointer, ty = view.pointer, memory_type(view.dtype)
        for step in (offset, plus):
            if step != 0:
                pointer = self.w.emit(getelementptr(ty, pointer, step))
        return pointer

    def load(self, view: BufferView, where: Linear | Scattered, mask: str | None = None) -> str:
        """Read elements; lanes whose mask is false are not read and give zero."""
        lanes = where.lanes
        dtype = dtypes.with_lanes(view.dtype, lanes) if lanes > 1 else view.dtype
        if isinstance(where, Linear) and mask is None:
            if lanes == 1 or where.stride == 0:
                pointer = self.address(view, where.base, where.plus)
                value = self.from_memory(view.dtype, self.read(view.dtype, pointer))
                return value if lanes == 1 else broadcast(self.w, value, view.dtype, lanes)
            if where.stride == 1:
                return self.from_memory(dtype, self.read(dtype, self.address(view, where.base, where.plus)))
        if isinstance(where, Linear) and where.stride == 1 and lanes > 1 and mask is not None:
            pointer = self.address(view, where.base, where.plus)
            return (self._picked_load if view.holds(where) else self._masked_load)(pointer, dtype, mask)
        if isinstance(where, Linear) and where.stride == 0 and lanes > 1 and mask is not None:
            return self._shared_load(view, where, dtype, mask)
        plain = memory_type(dtype) == value_type(dtype)
        if isinstance(where, Linear) and isinstance(where.stride, int) and 1 < where.stride <= min(4, lanes) and plain:
            return self._strided_load(view, where, where.stride, dtype, mask)
        return self._lanes_load(view, where, lanes, dtype, mask)

    def _strided_load(self, view: BufferView, where: Linear, stride: int, dtype: str, mask: str | None) -> str:
        """Every `stride`-th element, picked from whole vectors.

        Nothing is read beyond the last element: without a mask the last vector ends there, with one only the elements
        of lanes that are on are read at all.
        """
        w, lanes, ty = self.w, dtypes.lanes(dtype), value_type(dtype)
        starts = [part * lanes for part in range(stride)]
        if mask is None:
            starts[-1] = (lanes - 1) * (stride - 1)
        result = "poison"
        for part, start in enumerate(starts):
            pointer = self.address(view, where.base, where.plus + start)
            if mask is None:
                value = self.read(dtype, pointer)
            else:
                wanted = [start + x for x in range(lanes)]
                lane = [x // stride if x % stride == 0 and x // stride < lanes else lanes for x in wanted]
                bits = f"<{lanes} x i1>"
                part_mask = w.emit(shufflevector(bits, mask, "zeroinitializer", lane))
                value = self._masked_load(pointer, dtype, part_mask)
            here = range(part * lanes, (part + 1) * lanes)  # elements that come from this vector
            order = [lanes + x * stride - start if x * stride in here else x for x in range(lanes)]
            result = w.emit(shufflevector(ty, result, value, order))
        return result

    def read(self, dtype: str, pointer: str) -> str:
        """A value as it is in memory."""
        return self.w.emit(load(memory_type(dtype), pointer, element_bytes(dtype)))

    def from_memory(self, dtype: str, value: str) -> str:
        """A value that was read."""
        memory, ty = memory_type(dtype), value_type(dtype)
        if memory == ty:
            return value
        if dtypes.is_bool(dtype):
            return self.w.emit(icmp("ne", memory, value, _splat("0", memory)))
        return self.w.emit(cast("trunc", memory, value, ty))

    def in_memory(self, dtype: str, value: str) -> str:
        """A value in the type that it has in memory."""
        memory, ty = memory_type(dtype), value_type(dtype)
        if memory == ty:
            return value
        return self.w.emit(cast("sext" if dtypes.is_signed(dtype) else "zext", ty, value, memory))

    def _picked_load(self, pointer: str, dtype: str, mask: str) -> str:
        """A whole load and a choice: memory on the stack that is only read and written so stays in registers."""
        value, ty = self.from_memory(dtype, self.read(dtype, pointer)), value_type(dtype)
        bits = f"<{dtypes.lanes(dtype)} x i1>"
        picked = self.w.emit(select(bits, mask, ty, value, "zeroinitializer"))
        self.masks[picked] = mask
        return picked

    def _masked_load(self, pointer: str, dtype: str, mask: str) -> str:
        memory, lanes = memory_type(dtype), dtypes.lanes(dtype)
        name = f"llvm.masked.load.{_mangled(memory)}.p0"
        self.w.module.declare(name, memory, ("ptr", "i32 immarg", f"<{lanes} x i1>", memory))
        where = [("ptr", pointer), ("i32", element_bytes(dtype)), (f"<{lanes} x i1>", mask)]
        read = self.w.emit(call(memory, f"@{name}", [*where, (memory, "zeroinitializer")]))
        value = self.from_memory(dtype, read)
        self.masks[value] = mask
        return value

    def _shared_load(self, view: BufferView, where: Linear, dtype: str, mask: str) -> str:
        """One element in the lanes that are on: it is not read where none is."""
        w, lanes, ty = self.w, dtypes.lanes(dtype), value_type(dtype)
        if self._spare is None:
            self._spare = w.alloca("i8", 16, align=16)
        bits = w.emit(cast("bitcast", f"<{lanes} x i1>", mask, f"i{lanes}"))
        some = w.emit(icmp("ne", f"i{lanes}", bits, "0"))
        pointer = w.emit(select("i1", some, "ptr", self.address(view, where.base, where.plus), self._spare))
        value = self.from_memory(view.dtype, self.read(view.dtype, pointer))
        every = broadcast(w, value, view.dtype, lanes)
        picked = w.emit(select(f"<{lanes} x i1>", mask, ty, every, "zeroinitializer"))
        self.masks[picked] = mask
        return picked

    def _lanes_load(self, view: BufferView, where: Linear | Scattered, lanes: int, dtype: str, mask: str | None) -> str:
        w, ty, scalar = self.w, value_type(dtype), value_type(view.dtype)
        result = "zeroinitializer" if mask else "poison"
        if lanes == 1:
            assert isinstance(where, Linear)
            assert mask is not None
            return self._guarded(mask, scalar, lambda: self.load(view, where))
        if mask is not None and memory_type(dtype) == ty and self.gathers:
            return self._gather(view, where, lanes, dtype, mask)
        for lane in range(lanes):
            pointer = self.lane_address(view, where, lane)

            def one(pointer: str = pointer) -> str:
                return self.from_memory(view.dtype, self.read(view.dtype, pointer))

            if mask is None:
                value = one()
            else:
                value = self._guarded(w.emit(extractelement(f"<{lanes} x i1>", mask, lane)), scalar, one)
            result = w.emit(insertelement(ty, result, scalar, value, lane))
        return result

    def _gather(self, view: BufferView, where: Linear | Scattered, lanes: int, dtype: str, mask: str) -> str:
        """The elements of the lanes that are on, zeros in the others: one instruction, where the processor has it."""
        w, ty, pointers = self.w, value_type(dtype), f"<{lanes} x ptr>"
        if isinstance(where, Linear):
            offsets = ramp(w, w.add(where.base, where.plus), where.stride, lanes)
        else:
            offsets = where.offsets
        places = w.emit(getelementptr(memory_type(view.dtype), view.pointer, offsets, f"<{lanes} x i64>"))
        name = f"llvm.masked.gather.{_mangled(ty)}.v{lanes}p0"
        w.module.declare(name, ty, (pointers, "i32 immarg", f"<{lanes} x i1>", ty))
        chosen = [(pointers, places), ("i32", element_bytes(view.dtype)), (f"<{lanes} x i1>", mask)]
        return w.emit(call(ty, f"@{name}", [*chosen, (ty, "zeroinitializer")]))

    def _guarded(self, condition: str, ty: str, body: Callable[[], str]) -> str:
        w = self.w
        start, then, done = w.block_label, w.label("lane"), w.label("lane.done")
        w.branch(condition, then, done)
        w.open(then)
        value, end = body(), w.block_label
        w.open(done)
        return w.emit(phi(ty, ("zeroinitializer", start), (value, end)))

    def lane_address(self, view: BufferView, where: Linear | Scattered, lane: int) -> str:
        """The address of one lane."""
        if isinstance(where, Scattered):
            offset = self.w.emit(extractelement(f"<{where.lanes} x i64>", where.offsets, lane))
            return self.address(view, offset)
        if isinstance(where.stride, int):
            return self.address(view, where.base, where.plus + where.stride * lane)
        return self.address(view, self.w.add(where.base, self.w.mul(where.stride, lane)), where.plus)

    def store(
        self, view: BufferView, where: Linear | Scattered, dtype: str, value: str, mask: str | None = None
    ) -> None:
        """Write a value of `dtype`; lanes whose mask is false are not written."""
        lanes = dtypes.lanes(dtype) if not dtypes.lanes(view.dtype) > 1 else 1
        if lanes == 1:
            assert isinstance(where, Linear)
            self._guard(mask, lambda: self.write(view.dtype, self.address(view, where.base, where.plus), value))
        elif isinstance(where, Linear) and where.stride == 1 and mask is None:
            self.write(dtype, self.address(view, where.base, where.plus), value)
        elif isinstance(where, Linear) and where.stride == 1 and mask is not None:
            pointer = self.address(view, where.base, where.plus)
            (self._picked_store if view.holds(where) else self._masked_store)(dtype, pointer, value, mask)
        else:
            for lane in range(lanes):
                part = self.w.emit(extractelement(value_type(dtype), value, lane))
                pointer = self.lane_address(view, where, lane)
                bit = None if mask is None else self.w.emit(extractelement(f"<{lanes} x i1>", mask, lane))
                self._guard(bit, lambda part=part, pointer=pointer: self.write(view.dtype, pointer, part))

    def write(self, dtype: str, pointer: str, value: str) -> None:
        """Write a value."""
        self.w.do(store(memory_type(dtype), self.in_memory(dtype, value), pointer, element_bytes(dtype)))

    def _picked_store(self, dtype: str, pointer: str, value: str, mask: str) -> None:
        """What was there in the lanes that are off, as for `_picked_load`."""
        memory, new = memory_type(dtype), self.in_memory(dtype, value)
        old = self.read(dtype, pointer)
        bits = f"<{dtypes.lanes(dtype)} x i1>"
        picked = self.w.emit(select(bits, mask, memory, new, old))
        self.w.do(store(memory, picked, pointer, element_bytes(dtype)))

    def _masked_store(self, dtype: str, pointer: str, value: str, mask: str) -> None:
        memory, lanes = memory_type(dtype), dtypes.lanes(dtype)
        stored = self.in_memory(dtype, value)
        if self.narrows_in_stores:
            memory, stored, mask = self._apart_from_narrowing(memory, stored, mask)
        name = f"llvm.masked.store.{_mangled(memory)}.p0"
        self.w.module.declare(name, "void", (memory, "ptr", "i32 immarg", f"<{lanes} x i1>"))
        where = [("ptr", pointer), ("i32", element_bytes(dtype)), (f"<{lanes} x i1>", mask)]
        self.w.do(call("void", f"@{name}", [(memory, stored), *where]))

    def _apart_from_narrowing(self, memory: str, value: str, mask: str) -> tuple[str, str, str]:
        """The type, value and mask of a masked store that LLVM does not put together with a conversion."""
        count, scalar = _parts(memory)
        if scalar in _OF_SAME_SIZE:
            same = f"<{count} x {_OF_SAME_SIZE[scalar]}>"
            return same, self.w.emit(cast("bitcast", memory, value, same)), mask
        if scalar != "i8":
            return memory, value, mask
        number = self.w.emit(call("i32", 'asm "", "=r,0"', [("i32", 1)]))  # LLVM does not look at what asm gives
        true = broadcast(self.w, self.w.emit(cast("trunc", "i32", number, "i1")), "bool", count)
        return memory, value, self.w.emit(binary("and", f"<{count} x i1>", mask, true))

    def _guard(self, condition: str | None, body: Callable[[], None]) -> None:
        if condition is None:
            body()
            return
        then, done = self.w.label("then"), self.w.label("done")
        self.w.branch(condition, then, done)
        self.w.open(then)
        body()
        self.w.open(done)


def _splat(text: str, memory: str) -> str:
    """A constant of a memory type, in every lane."""
    return text if not memory.startswith("<") else "zeroinitializer"


_OF_SAME_SIZE = {"i16": "half", "i32": "float"}
"""What integers of a masked store are stored as: no conversion to a narrower integer gives these."""


def _parts(memory: str) -> tuple[int, str]:
    """How many lanes a vector type has, and of what.

    >>> _parts("<16 x i8>")
    (16, 'i8')
    """
    count, scalar = memory[1:-1].split(" x ")
    return int(count), scalar


def _mangled(memory: str) -> str:
    """The type suffix of an intrinsic over a memory vector type."""
    count, scalar = _parts(memory)
    names = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
    return f"v{count}{names.get(scalar, scalar)}"
