"""Sizes of buffers that a kernel makes in the place of a tensor, or does without: loops and indices count on them.

    lv = T.alloc_buffer((n * n * n * n,))             assert n * n * n * n fits 64 bits
    for i in range(n * n * n * n): lv[i] = ...   =>   for i in range(n * n * n * n):
    for i in range(n * n * n * n): s += lv[i]             s += ...

While the tensor was there it could not be allocated where its size does not fit 64 bits, or where one of its sizes is
negative, and so nothing was computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir import replace
from weft.ir.dim import product
from weft.ir.tensor import Buffer, PrimFunc, SeqStmt
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.kernel.bounds.checks import Check, Placement
from weft.transform.kernel.bounds.values import parameter_facts

__all__ = ["with_exact_sizes"]


def with_exact_sizes(function: PrimFunc, buffers: Iterable[Buffer], negative: Iterable[Buffer] = ()) -> PrimFunc:
    """The function after assertions that the sizes of buffers fit 64 bits, where its parameters do not say so.

    Those of buffers that may be `negative` are asserted not to be.

    >>> from weft.ir.tensor import PrimVar
    >>> n = PrimVar("n", "int64")
    >>> with_exact_sizes(PrimFunc((n,), SeqStmt()), [Buffer("x", (n, n))]).body.stmts[0].message
    "the size of 'x' does not fit 64 bits"
    """
    shapes = {param.shape for param in function.params if isinstance(param, Buffer)}
    unknown = [item for item in buffers if item.shape not in shapes and not all(isinstance(n, int) for n in item.shape)]
    doubted = [item for item in negative if item.shape not in shapes]
    if not unknown and not doubted:
        return function
    known = IndexAnalyzer()
    facts = parameter_facts(function, known)
    checks = [
        Check(
            f"the buffer {item.name!r} has a negative size",
            tuple(known.dim(extent, facts) for extent in item.shape),
            span=item.span,
        )
        for item in doubted
    ]
    checks += [
        Check(
            f"the size of {item.name!r} does not fit 64 bits",
            (),
            exact=(product([known.dim(extent, facts) for extent in item.shape]),),
            span=item.span,
        )
        for item in unknown
    ]
    asserts, _ = Placement(known).asserts(checks, facts)
    return replace(function, body=SeqStmt((*asserts, function.body))) if asserts else function
