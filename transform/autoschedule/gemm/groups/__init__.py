"""Contractions whose operands are integers with a scale for each group along the sum."""
