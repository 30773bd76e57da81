"""Passes over the loops of kernels."""
