"""Walking and rewriting, driven by field roles and without recursion on depth.

    children(node)          direct child nodes in visit order
    walk(node)              every node, parents first
    rewrite(node, ...)      post-order rebuilding; unchanged parts stay the same objects
    substitute(node, map)   replace variables and buffers
    substitute_symbols      replace named symbols in every dimension of a graph-level node

Occurrences of a Buffer or Var are leaves for `walk`; their own fields (shape, type) are visited where they are bound.
`rewrite` memoises by identity, so a binder and its occurrences are replaced by one new object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from weft.ir.dim import Dim, DimExpr
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import Var
from weft.ir.node import FrozenMap, Node, fields_of
from weft.ir.tensor import Buffer
from weft.ir.types import Type

__all__ = ["children", "post_order", "rewrite", "substitute", "substitute_symbols", "walk"]

N = TypeVar("N", bound=Node)


def _nodes_in(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)
    elif isinstance(value, FrozenMap):
        for item in value.values():
            yield from _nodes_in(item)


def children(node: Node, *, types: bool = True) -> Iterator[Node]:
    """The direct child nodes in visit order (ignored fields left out, except the type of a variable)."""
    if isinstance(node, Var):
        if types and node.ty is not None:
            yield node.ty
        return
    for info in fields_of(type(node)):
        if info.role != "ignored":
            for child in _nodes_in(getattr(node, info.name)):
                if types or not isinstance(child, Type):
                    yield child


def _children_with_role(node: Node, types: bool) -> Iterator[tuple[Node, bool]]:
    if isinstance(node, Var):
        if types and node.ty is not None:
            yield node.ty, False
        return
    for info in fields_of(type(node)):
        if info.role != "ignored":
            for child in _nodes_in(getattr(node, info.name)):
                if types or not isinstance(child, Type):
                    yield child, info.role == "binder"


def walk(root: Node, *, types: bool = False) -> Iterator[Node]:
    """Every node below and including `root`, parents before children, in visit order.

    With `types` the types of bound variables and of expressions are walked too.
    """
    stack: list[tuple[Node, bool]] = [(root, True)]
    while stack:
        current, bound = stack.pop()
        yield current
        if bound or not isinstance(current, (Buffer, Var)):
            stack.extend(reversed(list(_children_with_role(current, types))))


def post_order(root: Node, *, types: bool = False) -> Iterator[Node]:
    """Every distinct node below and including `root`, children first."""
    done: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in done:
            continue
        if expanded:
            done.add(id(current))
            yield current
        else:
            stack.append((current, True))
            stack.extend((child, False) for child in reversed(list(children(current, types=types))))


Replace = Callable[[Node], "Node | None"]


def rewrite(
    root: N,
    post: Replace | None = None,
    *,
    pre: Replace | None = None,
    dim: Callable[[DimExpr], Dim] | None = None,
    types: bool = False,
    memo: dict[int, Any] | None = None,
) -> N:
    """Rebuild a tree bottom-up.

    `pre(node)` sees an original node before its children and may replace it whole (None: go on). `post(node)` sees a
    node whose children are done and may replace it (None: keep). `dim` maps every symbolic dimension. With `types`,
    types are rewritten too. Parts in which nothing changes stay the same objects, so `rewrite(...) is root` means no
    change.
    """
    done: dict[int, Any] = {} if memo is None else memo
    keep: list[Node] = []  # originals stay alive, so that their ids stay theirs
    types = types or dim is not None

    def mapped(value: Any) -> Any:
        if isinstance(value, Node):
            return done.get(id(value), value)
        if isinstance(value, tuple):
            new = tuple(mapped(item) for item in value)
            return value if all(a is b for a, b in zip(new, value, strict=True)) else new
        if isinstance(value, FrozenMap):
            return value.map_values(mapped)
        if dim is not None and isinstance(value, DimExpr):
            return dim(value)
        return value

    def rebuild(current: Node) -> Node:
        values = {name: getattr(current, name) for name, _ in fields_of(type(current))}
        changed = False
        for info in fields_of(type(current)):
            if info.role == "ignored" and not (info.name == "ty" and isinstance(current, Var)):
                continue
            old = values[info.name]
            new = mapped(old)
            if new is not old:
                values[info.name] = new
                changed = True
        return type(current)(**values) if changed else current

    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        current, expanded = stack.pop()
        key = id(current)
        if key in done:
            continue
        if not expanded:
            replacement = pre(current) if pre is not None else None
            if replacement is not None:
                done[key] = replacement
                keep.append(current)
                continue
            stack.append((current, True))
            stack.extend((c, False) for c in reversed(list(children(current, types=types))) if id(c) not in done)
            continue
        new = rebuild(current)
        if post is not None:
            replacement = post(new)
            new = new if replacement is None else replacement
        done[key] = new
        keep.append(current)
    return done[id(root)]


def substitute(root: N, mapping: Mapping[Any, Any]) -> N:
    """Replace variables (Var, PrimVar) and buffers by the given expressions, types and buffer shapes included."""
    if not mapping:
        return root
    return rewrite(root, pre=lambda current: mapping.get(current), types=True)


def substitute_symbols(root: N, mapping: Mapping[str, Dim]) -> N:
    """Replace named symbols in every dimension below `root` (graph level)."""
    if not mapping:
        return root
    return rewrite(root, dim=lambda value: substitute_dim(value, mapping), types=True)
