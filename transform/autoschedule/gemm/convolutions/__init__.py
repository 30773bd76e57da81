"""Convolutions: as products that read windows (implicit GEMM), by channels or columns, by planes of depthwise ones."""
