"""What index expressions mean: symbols, facts, conditions and proofs, of which `index_analyzer` is made."""
