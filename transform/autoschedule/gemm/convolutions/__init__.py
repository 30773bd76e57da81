"""Convolutions: as products that read windows (implicit GEMM), by channels, by whole planes of depthwise ones."""
