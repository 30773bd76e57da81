"""Tensor-level functions to LLVM functions.

    kernel ::= int32 weft.kernel.<name>(frame, buffer pointers and scalars in order, symbols as int64, [result pointer])

The function has no blocks and no vectorized loops any more (`weft.transform.kernel.lower_blocks`,
`lower_vector_loops`). The
result is 0, or 1 after a failure that is recorded in the frame, or 2 when a callback raised. Memory of a kernel lives
on the stack when it is small and of known size, else on the heap, and is freed on every way out.

The tables of statements and calls are put together here: a form is one function, and a row where it is defined.
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program, kernel_symbol
from weft.codegen.backends.llvm.kernel.calls import KERNEL_CALLS
from weft.codegen.backends.llvm.kernel.emitter import Forms, KernelEmitter
from weft.codegen.backends.llvm.kernel.loops import LOOPS
from weft.codegen.backends.llvm.kernel.statements import PLAIN_STATEMENTS
from weft.codegen.backends.llvm.sorting.calls import SORT_CALLS
from weft.codegen.backends.llvm.values.intrinsics import INTRINSIC_CALLS
from weft.ir.tensor import PrimFunc

__all__ = ["emit_kernel"]

_FORMS = Forms({**PLAIN_STATEMENTS, **LOOPS}, {**INTRINSIC_CALLS, **KERNEL_CALLS, **SORT_CALLS})


def emit_kernel(
    module: ModuleWriter, program: Program, name: str, function: PrimFunc, *, noalias: bool, symbol: str = ""
) -> None:
    """Emit one tensor-level function into a module, under the symbol of its name or another one."""
    KernelEmitter(module, program, name, function, noalias, symbol or kernel_symbol(name), _FORMS).emit()
