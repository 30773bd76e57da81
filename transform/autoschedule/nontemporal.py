"""Non-temporal stores of large results: the mark that code generation reads.

    for i in T.serial(n // 64, annotations={"weft.streams": 67108864}):      the steps of a loop over vectors
        for u in T.unroll(4): y[T.Ramp(i * 64 + u * 16, 1, 16)] = ...

A store to a line that is in no cache first loads it; a non-temporal one does not, and leaves the caches to others.
It loses where the result fits in them, so it is for results of at least so many bytes, which is seen at run time where
sizes are symbols. Marked are the innermost loops of kernels whose vectors go to one result that the kernel never reads.
"""

from __future__ import annotations

from weft import dtypes
from weft.ir import replace, walk
from weft.ir.attrs import STREAMS
from weft.ir.node import FrozenMap
from weft.ir.structure.visit import rewrite
from weft.ir.tensor import (
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    PrimFunc,
    Stmt,
    While,
)

__all__ = ["STREAMS", "with_nontemporal_stores"]


_OTHERS = (IfThenElse, While, Evaluate)


def with_nontemporal_stores(function: PrimFunc, body: Stmt, min_bytes: int) -> Stmt:
    """The body of a function with the mark on loops whose result may have `min_bytes` bytes."""
    results = {param for param in function.params if isinstance(param, Buffer) and _may_have(param, min_bytes)}
    if not results:
        return body
    results -= {part.buffer for part in walk(body) if isinstance(part, BufferLoad)}
    if not results or any(isinstance(part, DeclBuffer) for part in walk(body)):  # views may read what is not stored yet
        return body

    def mark(node: object) -> For | None:
        if not isinstance(node, For) or node.kind != "serial" or not _is_step(node, results):
            return None
        return replace(node, annotations=FrozenMap({**node.annotations, STREAMS: min_bytes}))

    return rewrite(body, mark)


def _may_have(buffer: Buffer, min_bytes: int) -> bool:
    """Whether a buffer of whole rows has so many bytes, as far as its sizes are known."""
    size = -(-dtypes.bits(buffer.dtype) // 8)
    for extent in buffer.shape:
        if not isinstance(extent, int):
            return buffer.strides is None
        size *= extent
    return buffer.strides is None and size >= min_bytes


def _is_step(loop: For, results: set[Buffer]) -> bool:
    """Whether a loop without loops and conditions inside stores vectors to one of the results only."""
    vectors = False
    stored = set()
    for part in walk(loop.body):
        if isinstance(part, _OTHERS) or (isinstance(part, For) and part.kind not in ("unrolled", "vectorized")):
            return False
        if isinstance(part, BufferStore) and part.buffer.scope != "local":
            stored.add(part.buffer)
            if part.predicate is not None:
                return False
        vectors = vectors or (isinstance(part, For) and part.kind == "vectorized")
        vectors = vectors or (isinstance(part, BufferStore) and dtypes.lanes(part.value.dtype) > 1)
    return vectors and len(stored) == 1 and stored <= results
