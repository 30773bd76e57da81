"""Blocks of kernels, step by step towards loops."""
