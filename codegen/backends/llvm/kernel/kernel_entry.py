"""Entries for tensor-level functions that Python calls: from words to pointers, scalars and symbols."""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import Operand, call, cast, getelementptr, load, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program
from weft.codegen.backends.llvm.asm.types import memory_type, value_type
from weft.codegen.backends.llvm.kernel.emitter import kernel_params
from weft.codegen.backends.llvm.values.memory import MemoryEmitter
from weft.codegen.backends.llvm.values.words import from_word, to_word
from weft.codegen.host.kernels import result_dtype
from weft.codegen.host.signature import graph_symbol
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.tensor import Buffer, PrimFunc, PrimVar

__all__ = ["emit_wrapper"]

ENTRY_PARAMS = [("ptr", "frame"), ("ptr", "arguments"), ("ptr", "results")]


def load_word(w: FunctionWriter, base: str, index: int) -> str:
    """Read a word of a block of words."""
    place = w.emit(getelementptr("i64", base, index)) if index else base
    return w.emit(load("i64", place))


def emit_wrapper(module: ModuleWriter, program: Program, name: str, function: PrimFunc) -> None:
    """Emit the entry of a tensor-level function."""
    w = FunctionWriter(module, graph_symbol(name), "i32", ENTRY_PARAMS, "nounwind")
    operands: list[tuple[str, Operand]] = [("ptr", "%frame")]
    solved: dict[PrimVar, Size] = {}
    index = 0
    for param in function.params:
        if isinstance(param, Buffer):
            pointer = w.emit(cast("inttoptr", "i64", load_word(w, "%arguments", index), "ptr"))
            operands.append(("ptr", pointer))
            index += 2
            index = _solve_buffer(w, param, index, solved)
        else:
            word = load_word(w, "%arguments", index)
            operands.append((value_type(param.dtype), from_word(w, param.dtype, word)))
            index += 1
    operands += [("i64", solved[symbol]) for symbol in buffer_symbols(function)]
    dtype = result_dtype(function)
    slot = w.alloca(memory_type(dtype)) if dtype else ""
    if dtype:
        operands.append(("ptr", slot))
    spelled = module.declare(program.kernel_symbol(name), "i32", ("ptr", *(t for t, _ in kernel_params(function))))
    status = w.emit(call("i32", spelled, operands))
    if dtype:
        memory = MemoryEmitter(w)
        value = memory.from_memory(dtype, memory.read(dtype, slot))
        w.do(store("i64", to_word(w, dtype, value), "%results"))
    w.ret("i32", status)
    w.finish()


def _solve_buffer(w: FunctionWriter, param: Buffer, index: int, solved: dict[PrimVar, Size]) -> int:
    """Give the symbols of a buffer's shape, strides and offset their values; gives the index of the next word."""
    sizes = [load_word(w, "%arguments", index + axis) for axis in range(param.ndim)]
    index += param.ndim
    for wanted, given in zip(param.shape, sizes, strict=True):
        if isinstance(wanted, PrimVar):
            solved.setdefault(wanted, given)
    if param.strides is not None:
        for axis, wanted in enumerate(param.strides):
            if isinstance(wanted, PrimVar):
                solved.setdefault(wanted, load_word(w, "%arguments", index + axis))
        index += param.ndim
    if isinstance(param.elem_offset, PrimVar):
        solved.setdefault(param.elem_offset, 0)
    return index
