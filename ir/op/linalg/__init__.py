"""Linear algebra: factors, solutions, spectra and norms of matrices, the last two axes of tensors."""
