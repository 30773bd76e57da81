"""Tensor-level expressions as LLVM values: index arithmetic, memory, vectors, intrinsics."""
