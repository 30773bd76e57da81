"""Quantization: models with weights in few bits."""
