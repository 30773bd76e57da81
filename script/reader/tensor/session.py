"""The state of reading one tensor-level function, and of the head of a block."""

from __future__ import annotations

import ast
from dataclasses import field

from weft.ir.node import EMPTY, FrozenMap
from weft.ir.tensor import Buffer, BufferRegion, Extent, IterVar, MatchBufferRegion, PrimExpr, PrimVar, Stmt
from weft.script.reader.session import Session
from weft.support.records import dataclass

__all__ = ["BlockHeader", "TensorSession"]


@dataclass(eq=False)
class BlockHeader:
    """What the clauses of a block say."""

    name: str
    iter_vars: list[IterVar] = field(default_factory=list)
    predicate: PrimExpr | None = None
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    init: Stmt | None = None
    alloc_buffers: list[Buffer] = field(default_factory=list)
    match_buffers: list[MatchBufferRegion] = field(default_factory=list)
    annotations: FrozenMap = EMPTY


@dataclass(eq=False)
class TensorSession(Session):
    """The state of reading one tensor-level function."""

    # the function
    params: list[Buffer | PrimVar] = field(default_factory=list)
    attrs: FrozenMap = EMPTY
    s_tir: bool = False  # whether the function says that it is of the dialect with blocks
    # what its text says anywhere
    assigned: dict[str, int] = field(default_factory=dict)  # how often each name is assigned
    symbol_dtypes: dict[str, str] = field(default_factory=dict)
    offsets_read: set[str] = field(default_factory=set)  # names of buffers whose `elem_offset` the text reads
    realized: frozenset[str] = frozenset()  # names that a T.realize gives memory
    # what is defined so far
    variables: dict[str, PrimVar] = field(default_factory=dict)  # the symbols of the function
    scalars: frozenset[str] = frozenset()  # local scalars
    buffer_places: dict[Buffer, ast.AST] = field(default_factory=dict)  # where each buffer with a name is defined
    declared: set[Buffer] = field(default_factory=set)  # by `A = T.Buffer(...)`: its memory may follow
    threads: dict[str, str] = field(default_factory=dict)
    # where the current statement stands
    loops: dict[PrimVar, tuple[Extent, Extent]] = field(default_factory=dict)  # enclosing loops: start and extent
    loops_here: tuple[PrimVar, ...] = ()  # the loops between a statement and the block around it
    loop_depth: int = 0
    block: BlockHeader | None = None
    views: list[Stmt] = field(default_factory=list)  # declarations that the current statement needs before it
    pending: list[Stmt] | None = None  # what macros inside the current statement compute before it
