"""Scalars as 64-bit words, as frames and callbacks hold them."""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import cast, icmp
from weft.codegen.backends.llvm.asm.types import value_type

__all__ = ["from_word", "to_word"]


def to_word(w: FunctionWriter, dtype: str, value: str) -> str:
    """A scalar's bits as a 64-bit word (integers extended by their sign)."""
    ty = value_type(dtype)
    if ty == "ptr":
        return w.emit(cast("ptrtoint", "ptr", value, "i64"))
    if ty in ("half", "float", "double"):
        bits = f"i{dtypes.bits(dtype)}"
        value = w.emit(cast("bitcast", ty, value, bits))
        return value if bits == "i64" else w.emit(cast("zext", bits, value, "i64"))
    if ty == "i64":
        return value
    return w.emit(cast("sext" if dtypes.is_signed(dtype) else "zext", ty, value, "i64"))


def from_word(w: FunctionWriter, dtype: str, word: str) -> str:
    """The scalar whose bits a word holds."""
    ty = value_type(dtype)
    if ty == "ptr":
        return w.emit(cast("inttoptr", "i64", word, "ptr"))
    if ty in ("half", "float", "double"):
        bits = f"i{dtypes.bits(dtype)}"
        value = word if bits == "i64" else w.emit(cast("trunc", "i64", word, bits))
        return w.emit(cast("bitcast", bits, value, ty))
    if dtypes.is_bool(dtype):
        return w.emit(icmp("ne", "i64", word, "0"))
    return word if ty == "i64" else w.emit(cast("trunc", "i64", word, ty))
