"""The last steps with LLVM: optimise and emit, for this machine and for others."""
