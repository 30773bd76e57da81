"""Loops of kernels as spaces of iterations: dependence, what an iteration touches, which loops are one to one."""
