"""Contractions: sums of products of two operands, recognised, planned and built as register tiles.

`recognition` says what a loop nest is, `planning` which tiles and blocks suit its sizes, `tiles` builds one register
tile and the loops that cover a range with tiles, `direct` and `packed` build whole nests.
"""
