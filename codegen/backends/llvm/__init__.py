"""The LLVM back end: kernels and graph functions to object code.

    asm/        LLVM assembly: modules, functions, blocks, names, types; what the functions of one executable share
    math/       arithmetic with every case defined, intrinsics, vector code of exp, tanh and their kind
    kernel/     tensor-level functions, their expressions and parallel loops; their entries from Python
    host/       graph functions, from host programs (`weft.codegen.host.program`)
    machine/    optimisation, object code, other machines

The call frame that compiled code and the runtime share is described in `weft.runtime.abi.frame`.
"""

from __future__ import annotations
