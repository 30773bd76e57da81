"""Operators that are written in other operators: one Python function over expressions each, and a NumPy reference.

`declaring` has the helper; the rest is by what the operators are about.
"""
