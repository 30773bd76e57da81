"""Positions of minima and maxima: argmax and argmin, as vectors along the rows or down the columns.

`match` says what a loop nest is, `rows` looks through a row in groups of vectors, `columns` takes many rows side by
side, and `rule` decides between them.
"""
