"""Programs that run: bytecode, straight-line programs, kernels in C, calls as machine code."""
