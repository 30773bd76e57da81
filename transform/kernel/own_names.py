"""Copies of statements whose variables and buffers are their own, so that both may stand in one function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.ir import replace, substitute, walk
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.node import Node, fields_of
from weft.ir.structure.visit import statements
from weft.ir.tensor import AllocBuffer, Bind, Block, Buffer, DeclBuffer, For, Let, PrimFunc, PrimVar, Stmt

__all__ = ["with_own_names", "with_own_nodes"]


def with_own_names(stmt: Stmt, function: PrimFunc) -> Stmt:
    """A copy of a statement of a function in which all that the statement binds is its own.

    >>> from weft.ir.tensor import BufferStore, FloatImm
    >>> i, x = PrimVar("i"), Buffer("x", (4,))
    >>> loop = For(i, 0, 4, BufferStore(x, FloatImm(0.0), (i,)))
    >>> copy = with_own_names(loop, PrimFunc((x,), loop))
    >>> copy.loop_var is i, copy.body.buffer is x
    (False, True)
    """
    bound = dict.fromkeys(_variables(stmt))
    sizes = [size for size in _sizes(stmt) if size not in bound]
    if sizes:  # seldom: the function may be long, and copied from many times
        given = {*(param for param in function.params if isinstance(param, PrimVar)), *buffer_symbols(function)}
        elsewhere = {*given, *_variables(function.body)}
        bound |= dict.fromkeys(size for size in sizes if size not in elsewhere)
    stmt = substitute(stmt, {variable: _copied(variable) for variable in bound})
    for index in range(len(list(_buffers(stmt)))):  # views come after what they view
        buffer = list(_buffers(stmt))[index]
        stmt = substitute(stmt, {buffer: _copied(buffer)})
    return stmt


def with_own_nodes(function: PrimFunc) -> PrimFunc:
    """A copy of a function that has no variable and no buffer in common with it, so that both may stand in one module.

    >>> from weft.ir.tensor import SeqStmt
    >>> x = Buffer("x", (PrimVar("n"),))
    >>> copy = with_own_nodes(PrimFunc((x,), SeqStmt()))
    >>> copy.params[0].name, copy.params[0] is x, copy.params[0].shape[0] is x.shape[0]
    ('x', False, False)
    """
    given = [param for param in function.params if isinstance(param, PrimVar)]
    variables = {*given, *buffer_symbols(function), *_variables(function.body)}
    mapping: dict[Node, Node] = {variable: _copied(variable) for variable in variables}
    params: list[Any] = []
    for param in function.params:
        moved = substitute(param, mapping) if isinstance(param, Buffer) else mapping[param]
        params.append(_copied(moved) if moved is param else moved)
    body = substitute(function.body, {**mapping, **dict(zip(function.params, params, strict=True))})
    for index in range(len(list(_buffers(body)))):
        buffer = list(_buffers(body))[index]
        body = substitute(body, {buffer: _copied(buffer)})
    return replace(function, params=tuple(params), body=body)


def _variables(stmt: Stmt) -> Iterator[PrimVar]:
    """What loops, bindings and blocks bind."""
    for part in walk(stmt):
        if isinstance(part, For):
            yield part.loop_var
        elif isinstance(part, (Bind, Let)):
            yield part.var
        elif isinstance(part, Block):
            yield from (item.var for item in part.iter_vars)


def _sizes(stmt: Stmt) -> Iterator[PrimVar]:
    """The variables that stand for a size, stride or offset of a matched buffer, and may get their value there."""
    for block in statements(stmt):
        for match in block.match_buffers if isinstance(block, Block) else ():
            extents = (*match.buffer.shape, *(match.buffer.strides or ()), match.buffer.elem_offset)
            yield from (extent for extent in extents if isinstance(extent, PrimVar))


def _buffers(stmt: Stmt) -> Iterator[Buffer]:
    for part in statements(stmt):
        if isinstance(part, (AllocBuffer, DeclBuffer)):
            yield part.buffer
        elif isinstance(part, Block):
            yield from part.alloc_buffers
            yield from (match.buffer for match in part.match_buffers)


def _copied(node: Node) -> Node:
    return type(node)(**{info.name: getattr(node, info.name) for info in fields_of(type(node))})
