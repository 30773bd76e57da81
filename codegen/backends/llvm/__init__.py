"""The LLVM code generator: kernels and graph functions to object code of the host.

    text.py             LLVM assembly as text: modules, functions, blocks, SSA names
    spelling.py         dtypes and constants in LLVM's spelling
    arithmetic.py       scalar and vector arithmetic with every case defined
    intrinsics.py       the table of intrinsics
    polynomials.py      exp and tanh in vector code
    expressions.py      tensor-level expressions, addresses, loads and stores
    kernel.py           tensor-level functions
    wrapper.py          their entries from Python
    graph_values.py     values of graph functions and their words in memory
    liveness.py         where a variable's memory is used for the last time
    graph.py            graph functions: one machine-code entry each
    program.py          what the functions of one executable share
    machine.py          optimisation and object code

The call frame that compiled code and the runtime share is described in `weft.runtime.abi.frame`.
"""

from __future__ import annotations
