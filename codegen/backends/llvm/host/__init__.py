"""Graph functions to LLVM functions: values, memory, checks, calls from Python."""
