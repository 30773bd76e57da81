"""Loops of graph functions: what Python says about them, as values that iterations hand on."""
