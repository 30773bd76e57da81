"""Passes over the values and conditions of kernels."""
