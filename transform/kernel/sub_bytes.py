"""Kernels whose parameters of less than a byte an element are packed: several elements in each byte, the first lowest.

    x: T.Buffer((4, 8), "int4")     x[i, j]      T.Cast("int4", nibble)            nibble, as int8, of
    becomes                                      (x_bytes[(i * 8 + j) // 2] >> 4 * ((i * 8 + j) % 2)) & 15
    x_bytes: T.Buffer((16,), "uint8")

Vectors of neighbours whose first one begins a byte come from whole bytes, and so do vectors of every second of them:

    x[8 * i : 8 * i + 8]            the bytes, widened to 16 bits each, b | b << 4, and 0x0F0F, seen as bytes
    x[8 * i : 8 * i + 8 : 2]        the bytes & 15;  from 8 * i + 1 on, the bytes >> 4

A store of one element changes its bits in its byte: bytes that are stored so are zero before, and loops in which there
are such stores are not parallel. A store of a vector that begins a byte and ends one writes whole bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft import dtypes
from weft.ir.dim import Dim, prove_equal
from weft.ir.kernel.prim import as_expr, binary, buffer_strides, cast, const
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.kernel.simplify import simplify
from weft.ir.node import Node, replace
from weft.ir.structure.visit import post_order, rewrite, statements, walk
from weft.ir.tensor import (
    AttrStmt,
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

__all__ = ["packable_params", "packed_bytes", "with_packed_params"]

INDEX = "int64"


def packed_bytes(count: Dim, dtype: str) -> Dim:
    """The bytes that so many elements of a dtype take.

    >>> packed_bytes(7, "int4")
    4
    """
    per = dtypes.per_byte(dtype)
    return (count + (per - 1)) // per


def packable_params(function: PrimFunc) -> frozenset[int]:
    """The positions of dense parameters with several elements a byte that are loaded and stored, and nothing else."""
    found = {
        param: position
        for position, param in enumerate(function.params)
        if isinstance(param, Buffer)
        and dtypes.per_byte(param.dtype) > 1
        and param.strides is None
        and param.elem_offset is None
        and dtypes.lanes(param.dtype) == 1
    }
    if not found:
        return frozenset()
    for node in walk(lower_blocks(function).body):
        for other in _mentions(node):
            found.pop(other, None)
    return frozenset(found.values())


def _mentions(node: Node) -> list[Buffer]:
    """The buffers that a node uses in another way than to load and store elements."""
    if isinstance(node, (BufferLoad, BufferStore)):
        return []
    call = node.data if isinstance(node, Buffer) else node
    if isinstance(call, PrimCall):
        loads = [arg.buffer for arg in call.args if isinstance(arg, BufferLoad)] if call.op in _ADDRESSES else []
        return loads + [arg for arg in call.args if isinstance(arg, Buffer)]
    return [part for name in ("data", "buffer", "source") if isinstance(part := getattr(node, name, None), Buffer)]


_ADDRESSES = ("address_of", "access_ptr", "tvm_access_ptr")


def with_packed_params(function: PrimFunc, positions: frozenset[int]) -> PrimFunc:
    """The kernel that takes the bytes of some of its parameters; those that it stores to are outputs, of which every
    element is stored."""
    lowered = lower_vector_loops(lower_blocks(function))
    packed: dict[Buffer, Buffer] = {}
    for position in positions:
        param = lowered.params[position]
        assert isinstance(param, Buffer)
        packed[param] = Buffer(f"{param.name}_bytes", (_bytes_extent(param),), "uint8", span=param.span)
    params = tuple(packed.get(param, param) if isinstance(param, Buffer) else param for param in lowered.params)
    return replace(lowered, params=params, body=_Packed(packed).body(lowered.body))


def _bytes_extent(buffer: Buffer) -> Extent:
    per = dtypes.per_byte(buffer.dtype)
    total: Extent = 1
    for extent in buffer.shape:
        total = total * extent if isinstance(total, int) and isinstance(extent, int) else _wide(total) * _wide(extent)
    return (total + per - 1) // per if isinstance(total, int) else (total + (per - 1)) // per


def _wide(extent: Extent) -> PrimExpr:
    return cast(INDEX, as_expr(extent, INDEX))


class _Packed:
    """Rewrites the accesses of packed buffers."""

    def __init__(self, packed: Mapping[Buffer, Buffer]) -> None:
        self.packed = packed

    def body(self, body: Stmt) -> Stmt:
        """The body of a kernel over the bytes; what is stored in parts is zero before."""
        parts = [node for node in statements(body) if isinstance(node, BufferStore) and self._is_partial(node)]
        cleared = [_cleared(self.packed[buffer]) for buffer in dict.fromkeys(store.buffer for store in parts)]
        new = self._over_bytes(body, {id(store) for store in parts})
        return SeqStmt((*cleared, new)) if cleared else new

    def _over_bytes(self, body: Stmt, partial: set[int]) -> Stmt:
        serial = {
            id(loop)
            for loop in statements(body)
            if isinstance(loop, For) and loop.kind == "parallel" and any(id(x) in partial for x in statements(loop))
        }

        def before(node: Node) -> Node | None:
            if isinstance(node, AttrStmt) and isinstance(node.value, BufferLoad) and node.value.buffer in self.packed:
                return replace(node, value=self._byte_of(node.value), body=rewrite(node.body, self._after, pre=before))
            if isinstance(node, For) and id(node) in serial:
                return rewrite(replace(node, kind="serial"), self._after, pre=before)
            if isinstance(node, Cast) and isinstance(node.value, BufferLoad) and self._is_number(node.value.buffer):
                load = replace(node.value, indices=tuple(rewrite(x, self._after) for x in node.value.indices))
                return cast(node.dtype, self._number(load))
            return None

        return rewrite(body, self._after, pre=before)

    def _after(self, node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer in self.packed:
            return _as_element(self._number(node), node.buffer.dtype)
        if isinstance(node, BufferStore) and node.buffer in self.packed:
            return self._store(node)
        return None

    # Loads

    def _byte_of(self, load: BufferLoad) -> BufferLoad:
        """The byte that an element is in."""
        index = rewrite(_flat(load.buffer, load.indices), self._after)
        return BufferLoad(self.packed[load.buffer], (_quotient(index, dtypes.per_byte(load.buffer.dtype)),))

    def _is_number(self, buffer: Buffer) -> bool:
        return buffer in self.packed and dtypes.is_integer(buffer.dtype)

    def _number(self, load: BufferLoad) -> PrimExpr:
        """An element, or a vector of them, as a number of 8 bits."""
        return _signed(self._bits(load), load.buffer.dtype)

    def _bits(self, load: BufferLoad) -> PrimExpr:
        """The bits of elements in numbers of 8 bits, of which the others are zero."""
        dtype, place = load.buffer.dtype, load.buffer
        per, mask, bytes_ = dtypes.per_byte(dtype), (1 << dtypes.bits(dtype)) - 1, self.packed[load.buffer]
        index = _flat(place, load.indices)
        whole = _whole(index, per) if load.predicate is None else None
        if whole is None:
            byte = BufferLoad(bytes_, (binary("floordiv", index, per),), load.predicate)
            amount = cast(byte.dtype, binary("floormod", index, per)) * dtypes.bits(dtype)
            return binary("bitwise_and", binary("shift_right", byte, amount), mask)
        assert isinstance(index, Ramp)
        if whole.step == per:
            byte = BufferLoad(bytes_, (_ramp(index.base, per, index.lanes),))
            return _part(byte, whole.rest * dtypes.bits(dtype), mask)
        count = index.lanes // per
        wide = dtypes.with_lanes(f"uint{8 * per}", count)
        spread = value = cast(wide, BufferLoad(bytes_, (_ramp(index.base, per, count),)))
        for count in range(1, per):
            spread = spread | (value << (count * (8 - dtypes.bits(dtype))))
        every = sum(mask << (8 * count) for count in range(per))
        return PrimCall("reinterpret", (spread & every,), dtype=dtypes.with_lanes("uint8", index.lanes))

    # Stores

    def _is_partial(self, store: BufferStore) -> bool:
        """Whether a store changes part of a byte."""
        if store.buffer not in self.packed:
            return False
        per, index = dtypes.per_byte(store.buffer.dtype), _flat(store.buffer, store.indices)
        whole = _whole(index, per) if store.predicate is None else None
        return whole is None or whole.step != 1

    def _store(self, store: BufferStore) -> Stmt:
        dtype, bytes_ = store.buffer.dtype, self.packed[store.buffer]
        per, mask = dtypes.per_byte(dtype), (1 << dtypes.bits(dtype)) - 1
        index, bits = _flat(store.buffer, store.indices), _to_bits(store.value, dtype)
        if not self._is_partial(store):
            assert isinstance(index, Ramp)
            lanes = index.lanes // per
            wide = PrimCall("reinterpret", (bits,), dtype=dtypes.with_lanes(f"uint{8 * per}", lanes))
            joined: PrimExpr = wide
            for count in range(1, per):
                joined = joined | (wide >> (count * (8 - dtypes.bits(dtype))))
            whole = cast(dtypes.with_lanes("uint8", lanes), joined)
            return BufferStore(bytes_, whole, (_ramp(index.base, per, lanes),), span=store.span)
        lanes, stores = dtypes.lanes(store.value.dtype), []
        for lane in range(lanes):
            made = _set(bytes_, _lane(index, lane), _lane(bits, lane), per, mask, store)
            if store.predicate is not None:
                made = IfThenElse(_lane(store.predicate, lane), made)
            stores.append(made)
        return stores[0] if lanes == 1 else SeqStmt(tuple(stores))


@dataclass(frozen=True)
class _Whole:
    """Elements that whole bytes hold: neighbours (`step` 1), or one of each byte, `rest` elements after its first."""

    step: int
    rest: int = 0


def _whole(index: PrimExpr, per: int) -> _Whole | None:
    """How a vector of elements lies in whole bytes; None where it does not, or that is not proved."""
    step = prim_to_dim(index.stride) if isinstance(index, Ramp) else None
    if not isinstance(index, Ramp) or step not in (1, per):
        return None
    names = {var: f"v{i}" for i, var in enumerate(x for x in post_order(index.base) if isinstance(x, PrimVar))}
    first = prim_to_dim(index.base, names)
    if first is None:
        return None
    rest = next((rest for rest in range(per) if prove_equal(first % per, rest) is True), None)
    if rest is None or (step == 1 and (rest or index.lanes % per)):
        return None
    return _Whole(1 if step == 1 else per, rest)


def _lane(value: PrimExpr, lane: int) -> PrimExpr:
    """One element of a vector."""
    if dtypes.lanes(value.dtype) == 1:
        return value
    if isinstance(value, Ramp):
        return value.base + value.stride * lane
    return value.value if isinstance(value, Broadcast) else Shuffle((value,), (const(lane, "int32"),))


def _ramp(first: PrimExpr, per: int, lanes: int) -> PrimExpr:
    """The numbers of bytes in a row, from that of an element on."""
    start = _quotient(first, per)
    return start if lanes == 1 else Ramp(start, const(1, INDEX), lanes)


def _quotient(value: PrimExpr, per: int) -> PrimExpr:
    """value // per, term by term where that leaves nothing to divide."""
    exact = _divided(value, per)
    return binary("floordiv", value, per) if exact is None else exact[0]


def _divided(value: PrimExpr, per: int) -> tuple[PrimExpr, int] | None:
    """What a sum of multiples of a number and of constants is divided by it, and the remainder; None for others."""
    if isinstance(value, IntImm):
        return const(value.value // per, value.dtype), value.value % per
    if not isinstance(value, Binary):
        return None
    if value.kind == "mul" and isinstance(value.b, IntImm) and value.b.value % per == 0:
        return simplify(value.a * (value.b.value // per)), 0
    if value.kind != "add" or (first := _divided(value.a, per)) is None or (second := _divided(value.b, per)) is None:
        return None
    rest = first[1] + second[1]
    return simplify(first[0] + second[0] + rest // per), rest % per


def _cleared(bytes_: Buffer) -> Stmt:
    place = PrimVar("place", INDEX)
    return For(place, 0, bytes_.shape[0], BufferStore(bytes_, const(0, "uint8"), (place,)))


def _set(bytes_: Buffer, index: PrimExpr, value: PrimExpr, per: int, mask: int, store: BufferStore) -> Stmt:
    place = (binary("floordiv", index, per),)
    amount = cast("uint8", binary("floormod", index, per)) * (8 // per)
    kept = BufferLoad(bytes_, place) & (const(255, "uint8") ^ (const(mask, "uint8") << amount))
    return BufferStore(bytes_, kept | (value << amount), place, span=store.span)


def _part(byte: PrimExpr, shift: int, mask: int) -> PrimExpr:
    shifted = byte >> shift if shift else byte
    return shifted if (255 >> shift) == mask else shifted & mask


def _signed(bits: PrimExpr, dtype: str) -> PrimExpr:
    """The number that bits are, of 8 bits."""
    if not dtypes.is_signed(dtype):
        return bits
    sign, lanes = 1 << (dtypes.bits(dtype) - 1), dtypes.lanes(bits.dtype)
    return cast(dtypes.with_lanes("int8", lanes), bits ^ sign) - sign


def _as_element(number: PrimExpr, dtype: str) -> PrimExpr:
    lanes = dtypes.lanes(number.dtype)
    if dtypes.is_float(dtype):
        bits = cast(dtypes.with_lanes(f"uint{dtypes.bits(dtype)}", lanes), number)
        return PrimCall("reinterpret", (bits,), dtype=dtypes.with_lanes(dtype, lanes))
    return cast(dtypes.with_lanes(dtype, lanes), number)


def _to_bits(value: PrimExpr, dtype: str) -> PrimExpr:
    """Elements as numbers of 8 bits, of which the upper ones are zero."""
    lanes, width = dtypes.lanes(value.dtype), dtypes.bits(dtype)
    short = dtypes.with_lanes(f"uint{width}", lanes)
    own = PrimCall("reinterpret", (value,), dtype=short) if dtypes.is_float(dtype) else cast(short, value)
    return cast(dtypes.with_lanes("uint8", lanes), own)


def _flat(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    """The number of an element, or those of a vector of elements."""
    total: PrimExpr = const(0, INDEX)
    for index, stride in zip(indices, buffer_strides(buffer), strict=True):
        step = _wide(stride)
        if isinstance(index, Ramp):
            base = total + cast(INDEX, index.base) * step
            return simplify(Ramp(base, cast(INDEX, index.stride) * step, index.lanes))
        total = total + cast(dtypes.with_lanes(INDEX, dtypes.lanes(index.dtype)), index) * step
    return simplify(total)
