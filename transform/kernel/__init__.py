"""Passes over tensor-level functions: bounds, blocks, vectors, constants."""
