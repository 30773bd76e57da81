"""Tensor-level functions to LLVM functions."""
