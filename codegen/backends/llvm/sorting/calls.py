"""T.sort_values, T.sort_positions, T.sort_keys, T.select_key, those of pairs: calls of libraries of the program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import Operand, binary, call, icmp, load, store
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.program import frame_word
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.values.expressions import CallForm
from weft.errors import TargetError
from weft.ir.kernel.views import place_of
from weft.ir.tensor import IntImm, PrimCall, PrimExpr
from weft.runtime.abi.frame import PARALLEL

__all__ = ["SORT_CALLS"]

_KEYS = ("uint32", "uint64")
_SORT, _VALUES = "weft.sort", "weft.sort.values"
_WIDTHS = (16, 32, 64)
_SHARED = 1 << 16
"""The fewest keys that are worth sharing."""


def _called(function: str, *, has_positions: bool = False) -> CallForm:
    """The call of a function on keys, which have positions beside them or have not."""

    def emit(emitter: KernelEmitter, expr: PrimCall) -> str:
        return _emitted(emitter, expr, function, has_positions)

    return emit


def _emitted(emitter: KernelEmitter, expr: PrimCall, function: str, has_positions: bool) -> str:
    count = 4 if has_positions else 2
    pointers, sizes = expr.args[:count], [arg for arg in expr.args[count:] if isinstance(arg, PrimExpr)]
    places = [place_of(pointer) for pointer in pointers]
    kinds = [place[0].dtype if place is not None else "" for place in places]
    width = emitter.program.sorts
    fits = kinds in ([[kind, "uint32"] * 2 for kind in _KEYS] if has_positions else [[kind] * 2 for kind in _KEYS])
    if not fits or not width:
        hint = "keys are uint32 or uint64" + (", positions are uint32" if has_positions else "")
        hint = hint if width else f'ask before: T.has_intrinsic("{expr.op}", "uint64")'
        raise TargetError(f"llvm: the target has no T.{expr.op} of such keys", code="W742", span=expr.span, hint=hint)
    bits = dtypes.bits(kinds[0])
    keys = KeyVector(bits, width // bits, has_positions)
    emitter.program.sorted_keys.add(keys)
    counts = [emitter.size(size) for size in sizes]
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(pointer)) for pointer in pointers]
    operands += [("i64", str(count)) for count in counts]
    if function == _SORT and _may_share(emitter, counts[0]):
        _emit_shared(emitter, function, keys, operands, counts[0])
    else:
        _emit(emitter, f"{function}.{keys.name}", operands)
    return "0"


def _sorted_values(emitter: KernelEmitter, expr: PrimCall) -> str:
    """The call that sorts elements from one memory to another."""
    target, source, size, descending = expr.args
    places = [place_of(pointer) for pointer in (target, source)]
    kinds = {place[0].dtype if place is not None else "" for place in places}
    width, dtype = emitter.program.sorts, min(kinds)
    if len(kinds) != 1 or dtypes.bits(dtype) not in _WIDTHS or not width or not isinstance(descending, IntImm):
        hint = "elements of both are of one dtype of 16, 32 or 64 bits, and the order is known"
        hint = hint if width else f'ask before: T.has_intrinsic("{expr.op}", "float32")'
        raise TargetError(
            f"llvm: the target has no T.{expr.op} of such elements", code="W742", span=expr.span, hint=hint
        )
    keys = KeyVector(dtypes.bits(dtype), width // dtypes.bits(dtype), of_values=True)
    emitter.program.sorted_keys.add(keys)
    count = emitter.size(size)  # type: ignore[arg-type]
    pointers = target, source
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(each)) for each in pointers]  # type: ignore[arg-type]
    codes = *_codes(dtype, bool(descending.value)), _infinity(dtype)
    operands += [("i64", str(count)), *((keys.element, code) for code in codes)]
    if _may_share(emitter, count):
        _emit_shared(emitter, _VALUES, keys, operands, count)
    else:
        _emit(emitter, f"{_VALUES}.{keys.name}", operands)
    return "0"


def _sorted_positions(emitter: KernelEmitter, expr: PrimCall) -> str:
    """The call that puts the positions of elements in order where that takes no sort."""
    target, source, size, descending = expr.args
    places = [place_of(pointer) for pointer in (target, source)]
    dtypes_of = [place[0].dtype if place is not None else "" for place in places]
    width, dtype = emitter.program.sorts, dtypes_of[1]
    fits = dtypes_of[0] == "int32" and dtype and dtypes.bits(dtype) in _WIDTHS
    if not fits or not width or not isinstance(descending, IntImm):
        hint = "positions are int32, elements of 16, 32 or 64 bits, and the order is known"
        hint = hint if width else f'ask before: T.has_intrinsic("{expr.op}", "float32")'
        raise TargetError(
            f"llvm: the target has no T.{expr.op} of such elements", code="W742", span=expr.span, hint=hint
        )
    bits = dtypes.bits(dtype)
    keys = KeyVector(bits, width // bits, of_order=True, of_floats=dtypes.is_float(dtype))
    emitter.program.sorted_keys.add(keys)
    everything = (1 << bits) - 1
    sizes = (everything >> 1, _infinity(dtype)) if dtypes.is_float(dtype) else (everything, everything)
    pointers = target, source
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(each)) for each in pointers]  # type: ignore[arg-type]
    operands.append(("i64", str(emitter.size(size))))  # type: ignore[arg-type]
    operands += [(keys.element, code) for code in (*_codes(dtype, bool(descending.value)), *sizes)]
    _emit(emitter, f"weft.sort.positions.{keys.name}", operands)
    return "0"


def _kept_keys(emitter: KernelEmitter, expr: PrimCall) -> str:
    """The call that keeps the keys of elements that lie in a range, and counts those before it."""
    target, counts, source, size, low, high, descending = expr.args
    places = [place_of(pointer) for pointer in (target, counts, source)]
    kinds = [place[0].dtype if place is not None else "" for place in places]
    width, dtype = emitter.program.sorts, kinds[2]
    fits = dtype and dtypes.bits(dtype) in _WIDTHS and kinds[:2] == [f"uint{max(dtypes.bits(dtype), 32)}", "uint64"]
    if not fits or not width or not isinstance(descending, IntImm):
        hint = "elements are of 16, 32 or 64 bits, keys have 32 or 64, counts are uint64, and the order is known"
        hint = hint if width else f'ask before: T.has_intrinsic("{expr.op}", "float32")'
        raise TargetError(
            f"llvm: the target has no T.{expr.op} of such elements", code="W742", span=expr.span, hint=hint
        )
    bits, is_float = dtypes.bits(dtype), dtypes.is_float(dtype)
    keys = KeyVector(dtypes.bits(kinds[0]), width // dtypes.bits(kinds[0]))
    emitter.program.sorted_keys.add(keys)
    code = (1 << bits) - 1 if descending.value else 0
    code ^= 0 if is_float or not dtypes.is_signed(dtype) else 1 << (bits - 1)
    pointers = (target, counts, source)
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(each)) for each in pointers]  # type: ignore[arg-type]
    operands.append(("i64", str(emitter.size(size))))  # type: ignore[arg-type]
    operands += [(f"i{bits}", emitter.value(bound)) for bound in (low, high)]  # type: ignore[arg-type]
    operands.append((f"i{bits}", code))
    _emit(emitter, f"weft.sort.keep{bits}{'f' if is_float else ''}.{keys.name}", operands)
    return "0"


def _kept_positions(emitter: KernelEmitter, expr: PrimCall) -> str:
    """The call that keeps the positions of elements that are not zero."""
    target, counts, source, size, room = expr.args
    places = [place_of(pointer) for pointer in (target, counts, source)]
    kinds = [place[0].dtype if place is not None else "" for place in places]
    width, dtype = emitter.program.sorts, kinds[2]
    if (
        kinds[:2] != ["int64", "int64"]
        or not dtype
        or (dtype != "bool" and dtypes.bits(dtype) not in (8, *_WIDTHS))
        or not width
    ):
        hint = "elements are of 8, 16, 32 or 64 bits, positions and counts are int64"
        hint = hint if width else f'ask before: T.has_intrinsic("{expr.op}", "bool")'
        raise TargetError(
            f"llvm: the target has no T.{expr.op} of such elements", code="W742", span=expr.span, hint=hint
        )
    bits = 8 * dtypes.item_bytes(dtype)
    positions = KeyVector(64, width // 64, are_positions=True)
    emitter.program.sorted_keys.add(positions)
    magnitude = (1 << (bits - dtypes.is_float(dtype))) - 1
    pointers = (target, counts, source)
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(each)) for each in pointers]  # type: ignore[arg-type]
    operands += [("i64", str(emitter.size(each))) for each in (size, room)]  # type: ignore[arg-type]
    operands.append((f"i{bits}", magnitude))
    _emit(emitter, f"weft.sort.found{bits}.{positions.name}", operands)
    return "0"


def _codes(dtype: str, descending: bool) -> tuple[int, int]:
    """What negative elements and others are combined with, so that they are unsigned numbers in order.

    >>> _codes("int32", False), _codes("float32", True)
    ((2147483648, 2147483648), (0, 2147483647))
    """
    everything = (1 << dtypes.bits(dtype)) - 1
    top = everything ^ everything >> 1
    codes = (everything, top) if dtypes.is_float(dtype) else (top, top) if dtypes.is_signed(dtype) else (0, 0)
    return (codes[0] ^ everything, codes[1] ^ everything) if descending else codes


def _infinity(dtype: str) -> int:
    """The bits of infinity, 0 where there is none.

    >>> hex(_infinity("float32")), _infinity("int32")
    ('0x7f800000', 0)
    """
    if not dtypes.is_float(dtype):
        return 0
    return int(np.array(np.inf, dtype).view(f"u{dtypes.bits(dtype) // 8}"))


def _emit(emitter: KernelEmitter, name: str, operands: list[tuple[str, Operand]]) -> None:
    spelled = emitter.module.declare(name, "void", tuple(ty for ty, _ in operands))
    emitter.w.do(call("void", spelled, operands))


def _may_share(emitter: KernelEmitter, count: Size) -> bool:
    """Whether several threads may sort so many keys."""
    program = emitter.program
    return not program.serial and program.threads != 1 and not (isinstance(count, int) and count < _SHARED)


def _emit_shared(
    emitter: KernelEmitter, function: str, keys: KeyVector, operands: list[tuple[str, Operand]], count: Size
) -> None:
    """Sort by several threads where there are some, and keys enough."""
    w, program = emitter.w, emitter.program
    program.parallel = True
    runner = w.emit(load("ptr", frame_word(w, PARALLEL)))
    there = w.emit(icmp("ne", "ptr", runner, "null"))
    pays = w.emit(binary("and", "i1", there, w.emit(icmp("sge", "i64", str(count), _SHARED))))
    several, alone, done = w.label("several"), w.label("alone"), w.label("sorted")
    status = w.alloca("i32", align=4)
    w.do(store("i32", 0, status))
    w.branch(pays, several, alone)
    w.open(several)
    operands_of_threads = [*operands, ("ptr", runner), ("ptr", "%frame"), ("i64", program.threads)]
    types = tuple(ty for ty, _ in operands_of_threads)
    spelled = emitter.module.declare(f"{function}.shared.{keys.name}", "i32", types)
    w.do(store("i32", w.emit(call("i32", spelled, operands_of_threads)), status))
    w.jump(done)
    w.open(alone)
    _emit(emitter, f"{function}.{keys.name}", operands)
    w.jump(done)
    w.open(done)
    emitter.leave_if(w.emit(load("i32", status)))


def _has(_emitter: KernelEmitter, _expr: PrimCall) -> str:
    """Nobody answered before: then the form that runs everywhere is meant."""
    return "false"


SORT_CALLS: Mapping[str, CallForm] = {
    "has_intrinsic": _has,
    "keep_keys": _kept_keys,
    "keep_positions": _kept_positions,
    "select_key": _called("weft.select"),
    "select_pair": _called("weft.select", has_positions=True),
    "sort_keys": _called(_SORT),
    "sort_pairs": _called(_SORT, has_positions=True),
    "sort_positions": _sorted_positions,
    "sort_values": _sorted_values,
}
"""By name of the intrinsic."""
