"""Scans: running sums, products, minima and maxima, as vectors along the rows or down the columns.

`match` says what a loop nest is, `rows` computes prefixes within vectors, `columns` takes many rows side by side, and
`rule` decides between them.
"""
