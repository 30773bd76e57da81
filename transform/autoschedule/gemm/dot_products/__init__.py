"""Contractions by instructions that add up products of neighbours: which one is taken, how operands lie for it."""
