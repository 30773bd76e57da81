"""T.sort_keys, T.select_key and those of pairs: calls of what `library` writes, which the program is told to have."""

from __future__ import annotations

from collections.abc import Mapping

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import Operand, call
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.values.expressions import CallForm
from weft.errors import TargetError
from weft.ir.kernel.views import place_of
from weft.ir.tensor import PrimCall, PrimExpr

__all__ = ["SORT_CALLS"]

_KEYS = ("uint32", "uint64")


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
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(pointer)) for pointer in pointers]
    operands += [("i64", str(emitter.size(size))) for size in sizes]
    spelled = emitter.module.declare(f"{function}.{keys.name}", "void", tuple(ty for ty, _ in operands))
    emitter.w.do(call("void", spelled, operands))
    return "0"


def _has(_emitter: KernelEmitter, _expr: PrimCall) -> str:
    """Nobody answered before: then the form that runs everywhere is meant."""
    return "false"


SORT_CALLS: Mapping[str, CallForm] = {
    "has_intrinsic": _has,
    "select_key": _called("weft.select"),
    "select_pair": _called("weft.select", has_positions=True),
    "sort_keys": _called("weft.sort"),
    "sort_pairs": _called("weft.sort", has_positions=True),
}
"""By name of the intrinsic."""
