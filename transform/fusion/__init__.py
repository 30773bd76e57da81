"""Passes that put operators and kernels together."""
