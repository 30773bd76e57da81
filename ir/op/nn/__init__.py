"""Operators of neural networks, one file per family."""
