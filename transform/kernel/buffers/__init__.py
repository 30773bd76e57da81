"""Passes over the buffers of kernels."""
