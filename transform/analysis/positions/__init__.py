"""Tensors whose elements are formulas of their positions: which, and what the formulas are."""
