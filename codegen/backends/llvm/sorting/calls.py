"""T.sort_keys and T.select_key: calls of the functions that `library` writes, which the program is told to have."""

from __future__ import annotations

from collections.abc import Mapping

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import Operand, call
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.sorting.library import emit_sorts
from weft.codegen.backends.llvm.sorting.network import KeyVector
from weft.codegen.backends.llvm.values.expressions import CallForm
from weft.errors import TargetError
from weft.ir.kernel.views import place_of
from weft.ir.tensor import PrimCall, PrimExpr

__all__ = ["SORT_CALLS", "define_sorts"]


def _sort(emitter: KernelEmitter, expr: PrimCall) -> str:
    return _called(emitter, expr, "weft.sort")


def _select(emitter: KernelEmitter, expr: PrimCall) -> str:
    return _called(emitter, expr, "weft.select")


def _called(emitter: KernelEmitter, expr: PrimCall, function: str) -> str:
    pointers, sizes = expr.args[:2], [arg for arg in expr.args[2:] if isinstance(arg, PrimExpr)]
    places = [place_of(pointer) for pointer in pointers]
    kinds = {place[0].dtype for place in places if place is not None}
    width = emitter.program.sorts
    if None in places or len(kinds) != 1 or not kinds <= {"uint32", "uint64"} or not width:
        hint = 'ask before: T.has_intrinsic("sort_keys", "uint32")' if not width else "keys are uint32 or uint64"
        raise TargetError(f"llvm: the target has no T.{expr.op} of such keys", code="W742", span=expr.span, hint=hint)
    bits = dtypes.bits(kinds.pop())
    keys = KeyVector(bits, width // bits)
    emitter.program.sorted_keys.add((keys.bits, keys.lanes))
    operands: list[tuple[str, Operand]] = [("ptr", emitter.value(pointer)) for pointer in pointers]
    operands += [("i64", str(emitter.size(size))) for size in sizes]
    spelled = emitter.module.declare(f"{function}.{keys.name}", "void", tuple(ty for ty, _ in operands))
    emitter.w.do(call("void", spelled, operands))
    return "0"


def _has(_emitter: KernelEmitter, _expr: PrimCall) -> str:
    """Nobody answered before: then the form that runs everywhere is meant."""
    return "false"


def define_sorts(module: ModuleWriter, bits: int, lanes: int) -> None:
    """Define what sorts such keys in a module."""
    emit_sorts(module, KeyVector(bits, lanes))


SORT_CALLS: Mapping[str, CallForm] = {"has_intrinsic": _has, "select_key": _select, "sort_keys": _sort}
"""By name of the intrinsic."""
