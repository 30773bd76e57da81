"""Operators that choose, place, order or look for elements."""
