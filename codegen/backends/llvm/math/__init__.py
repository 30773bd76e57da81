"""Arithmetic and mathematical functions as LLVM instructions."""
