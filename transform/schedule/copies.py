"""Copies of statements with variables, buffers and block names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weft.ir import Node, replace, rewrite, substitute, walk
from weft.ir.dim import fresh_name
from weft.ir.node import fields_of
from weft.ir.tensor import Block, Buffer, BufferStore, PrimFunc, PrimVar, Stmt

__all__ = ["fresh_buffer", "fresh_copy", "fresh_function", "fresh_variable"]


def fresh_variable(variable: PrimVar, name: str | None = None) -> PrimVar:
    """A new variable of the same dtype."""
    return PrimVar(variable.name if name is None else name, variable.dtype)


def fresh_copy(stmt: Stmt, taken: set[str]) -> Stmt:
    """The statement with new binders; names of blocks get numbers so that they are not among `taken` (which grows)."""
    bound = [item for part in walk(stmt) for item in _binders(part)]
    if not bound and isinstance(stmt, BufferStore):
        return stmt  # one that has nothing of its own
    made: dict[Node, Node] = {item: fresh_variable(item) for item in bound if isinstance(item, PrimVar)}
    for item in bound:
        if isinstance(item, Buffer):
            made[item] = fresh_buffer(item, made)

    def post(node: Node) -> Node | None:
        if isinstance(node, Block):
            name = fresh_name(node.name, taken)
            taken.add(name)
            return replace(node, name=name)
        return None

    return rewrite(stmt, post, pre=lambda node: made.get(node), types=True)


def fresh_function(function: PrimFunc) -> PrimFunc:
    """The function with parameters, symbols, variables and buffers of its own."""
    sizes = [x for param in function.params if isinstance(param, Buffer) for x in walk(param)]
    bound = [*sizes, *function.params, *(item for part in walk(function.body) for item in _binders(part))]
    made: dict[Node, Node] = {
        item: PrimVar(item.name, item.dtype, item.pointee, item.scope) for item in bound if isinstance(item, PrimVar)
    }
    for item in bound:
        if isinstance(item, Buffer):
            made[item] = fresh_buffer(item, made)
    params: Any = tuple(made[param] for param in function.params)
    return replace(function, params=params, body=rewrite(function.body, pre=lambda node: made.get(node), types=True))


def _binders(part: Node) -> Iterator[object]:
    for info in fields_of(type(part)):
        if info.role == "binder":
            value = getattr(part, info.name)
            yield from value if isinstance(value, tuple) else (value,)


def fresh_buffer(buffer: Buffer, mapping: Mapping[Node, Node], **changes: Any) -> Buffer:
    """Another buffer with the same fields, variables in its layout replaced, and some fields changed."""
    values = {info.name: getattr(buffer, info.name) for info in fields_of(Buffer)}
    new = substitute(Buffer(**{**values, **changes}), mapping)
    return new
