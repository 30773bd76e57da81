"""Contractions: sums of products of two operands, matched, decided and built as register tiles.

`match` says what a loop nest is, `tiling` and `blocking` which tiles and blocks suit its sizes, `tiles` builds one
register tile and the loops that cover a range with tiles, `packing` copies operands, `direct`, `packed` and `channels`
build whole nests.
"""
