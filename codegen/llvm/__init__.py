"""The LLVM code generator: kernels and graph functions to object code of the host.

    text.py         LLVM assembly as text: modules, functions, blocks, SSA names
    spelling.py     dtypes and constants in LLVM's spelling
    arithmetic.py   scalar and vector arithmetic with every case defined
    intrinsics.py   the table of intrinsics
    kernel.py       tensor-level functions
    graph.py        graph functions: one machine-code entry each
    frame.py        the call frame that compiled code and the runtime share
    machine.py      optimisation and object code
"""

from __future__ import annotations
