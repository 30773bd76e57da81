"""Gathers: rows at indices from memory, and the assertions about those indices."""
