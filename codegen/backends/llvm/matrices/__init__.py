"""Matrices in registers (Intel AMX): what is said of them in kernels, and the code that uses them."""
