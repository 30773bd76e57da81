"""Operators that speak of the program: calls, memory, shapes as values, effects, workers."""
