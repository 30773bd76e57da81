"""Walking and rewriting, driven by field roles and without recursion on depth.

    children(node)          direct child nodes in visit order
    children_of(nodes)      those of several
    walk(node)              every node, parents first
    nodes_of(node, cls)     those of a class
    statements(stmt)        every statement, parents first, without the expressions in them
    inner_statements(stmt)  those directly inside
    map_statements(stmt, f) the statement with those directly inside changed
    rewrite(node, ...)      post-order rebuilding; unchanged parts stay the same objects
    rewrite_statements      the same of statements alone, without a look into expressions; recurses on their depth
    substitute(node, map)   replace variables and buffers
    substitute_symbols      replace named symbols in every dimension of a graph-level node
    refuse_repetition(root) ResourceError W952 for few nodes that hold each other so often that nothing walks them all

Occurrences of a Buffer or Var are leaves for `walk`; their own fields (shape, type) are visited where they are bound.
`rewrite` memoises by identity, so a binder and its occurrences are replaced by one new object.
"""

# A variable of a function that is not typed yet has no type.
# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

import functools
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from weft.errors import ResourceError
from weft.ir.dim import Dim, DimExpr
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import Var
from weft.ir.node import FrozenMap, Node, fields_of, parts_of, replace
from weft.ir.tensor import Buffer, BufferStore, For, PrimExpr, PrimFunc, SeqStmt, Stmt
from weft.ir.types import Type
from weft.support.forks import cached_property

__all__ = [
    "MANY_NODES",
    "children",
    "children_of",
    "inner_statements",
    "map_statements",
    "nodes_of",
    "post_order",
    "refuse_repetition",
    "rewrite",
    "rewrite_statements",
    "statements",
    "substitute",
    "substitute_symbols",
    "walk",
]

N = TypeVar("N", bound=Node)


_DATA, _NODE, _OCCURRENCE, _TYPE, _TUPLE, _MAP = range(1, 7)
_KINDS: dict[type, int] = {tuple: _TUPLE, FrozenMap: _MAP}
# (field, whether it binds), last field first: what is put on a stack in this order comes off it in visit order.
_STACKED: dict[type, tuple[tuple[str, bool], ...]] = {}


def _kind_of(cls: type) -> int:
    """How a value of a class is walked; asked for once per class."""
    if issubclass(cls, Node):
        kind = _TYPE if issubclass(cls, Type) else _OCCURRENCE if issubclass(cls, (Buffer, Var)) else _NODE
    else:
        kind = _TUPLE if issubclass(cls, tuple) else _MAP if issubclass(cls, FrozenMap) else _DATA
    _KINDS[cls] = kind
    return kind


def _stacked(cls: type) -> tuple[tuple[str, bool], ...]:
    found = _STACKED.get(cls)
    if found is None:
        found = _STACKED[cls] = tuple((info.name, info.role == "binder") for info in reversed(parts_of(cls)))
    return found


_ORDERED: dict[type, tuple[str, ...]] = {}
"""The names of the same fields in visit order."""


def _ordered(cls: type) -> tuple[str, ...]:
    found = _ORDERED[cls] = tuple(name for name, _ in reversed(_stacked(cls)))
    return found


def _collect(value: Any, kind: int, types: bool, found: list[Node]) -> None:
    """Append the nodes in a value, in order."""
    if kind == _TYPE and not types:
        return
    if kind < _TUPLE:
        found.append(value)
        return
    for item in value if kind == _TUPLE else value.values():
        inner = _KINDS.get(item.__class__) or _kind_of(item.__class__)
        if inner == _NODE or inner == _OCCURRENCE:
            found.append(item)
        elif inner != _DATA:
            _collect(item, inner, types, found)


def _collect_fields(node: Node, types: bool, found: list[Node]) -> None:
    """Append the nodes in the fields of a node, in order."""
    names = _ORDERED.get(node.__class__)
    for name in _ordered(node.__class__) if names is None else names:
        value = getattr(node, name)
        kind = _KINDS.get(value.__class__) or _kind_of(value.__class__)
        if kind == _NODE or kind == _OCCURRENCE:
            found.append(value)
        elif kind != _DATA:
            _collect(value, kind, types, found)


def _children(node: Node, types: bool) -> list[Node]:
    if isinstance(node, Var):
        return [node.ty] if types and node.ty is not None else []
    found: list[Node] = []
    _collect_fields(node, types, found)
    return found


def children(node: Node, *, types: bool = True) -> Iterator[Node]:
    """The direct child nodes in visit order (ignored fields left out, except the type of a variable)."""
    return iter(_children(node, types))


def children_of(nodes: Iterable[Node]) -> list[Node]:
    """The direct child nodes of several, without types, in order."""
    found: list[Node] = []
    for node in nodes:
        _collect_fields(node, False, found)
    return found


def walk(root: Node, *, types: bool = False) -> Iterator[Node]:
    """Every node below and including `root`, parents before children, in visit order.

    With `types` the types of bound variables and of expressions are walked too. What is inside of a kernel, a sequence
    or a loop is kept as long as that lives: passes ask again and again, of what did not change.
    """
    if root.__class__ in _LARGE and not types:
        inside = _inside_of(root)
        if inside is not None:
            return inside.all_nodes(root)
    return _walk(root, types)


def nodes_of(root: Node, *classes: type[N]) -> Sequence[N]:
    """The nodes of some classes below and including `root`, as `walk` gives them.

    >>> from weft.ir.tensor import Evaluate, IntImm, SeqStmt
    >>> [node.value for node in nodes_of(SeqStmt((Evaluate(IntImm(7, "int64")),)), IntImm)]
    [7]
    """
    inside = _inside_of(root) if root.__class__ in _LARGE else None
    if inside is None:
        return [node for node in _walk(root, types=False) if isinstance(node, classes)]
    found = inside.of(classes)
    return [root, *found] if isinstance(root, classes) else found


class _Inside:
    """What is inside of a node, in the order of a walk."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes

    def all_nodes(self, root: Node) -> Iterator[Node]:
        """The node itself, then what is inside: it does not hold the node, which would live as long as itself."""
        return chain((root,), self.nodes)

    def of(self, classes: tuple[type, ...]) -> Sequence[Any]:
        """Those of some classes."""
        wanted = [cls for cls in self._by_class if issubclass(cls, classes)]
        if len(wanted) > 1:
            return [node for node in self.nodes if node.__class__ in wanted]
        return self._by_class[wanted[0]] if wanted else ()

    @cached_property
    def _by_class(self) -> Mapping[type, Sequence[Any]]:
        """The nodes of each class."""
        found: defaultdict[type, list[Node]] = defaultdict(list)
        for node in self.nodes:
            found[node.__class__].append(node)
        return found


_LARGE = frozenset({PrimFunc, SeqStmt, For})
"""Classes of nodes that have many others inside."""
_INSIDE: WeakKeyDictionary[Node, _Inside] = WeakKeyDictionary()


def _inside_of(root: Node) -> _Inside | None:
    """What is inside of a node; None where that is more than is worth keeping."""
    inside = _INSIDE.get(root)
    if inside is None:
        walked = _walk(root, types=False, known=functools.partial(_known_in, root.__class__))
        nodes = tuple(islice(walked, 1, MANY_NODES))
        if len(nodes) == MANY_NODES - 1:
            return None
        inside = _INSIDE[root] = _Inside(nodes)
    return inside


def _known_in(parent: type, node: Node) -> _Inside | None:
    """What is known to be inside of a node somewhere in another one: of the nests of a kernel it is found out."""
    if parent is PrimFunc or (parent is SeqStmt and node.__class__ is For):
        return _inside_of(node)
    return _INSIDE.get(node)


def _walk(root: Node, types: bool, known: Callable[[Node], _Inside | None] | None = None) -> Iterator[Node]:
    """What `walk` gives; what is `known` to be inside of a large node need not be walked."""
    stack: list[Any] = [root]  # what is only mentioned, not bound, is a leaf: it stands in a tuple of its own
    stacked, kinds = _STACKED.get, _KINDS.get
    steps = MANY_NODES
    while stack:
        for _ in range(steps):
            if not stack:
                return
            current = stack.pop()
            cls = current.__class__
            if cls is tuple:
                yield current[0]
                continue
            yield current
            if known is not None and cls in _LARGE and current is not root:
                inside = known(current)
                if inside is not None:
                    yield from inside.nodes
                    continue
            if isinstance(current, Var):
                if types and current.ty is not None:
                    stack.append(current.ty)
                continue
            parts = stacked(cls)
            for name, bound in _stacked(cls) if parts is None else parts:
                value = getattr(current, name)
                kind = kinds(value.__class__) or _kind_of(value.__class__)
                if kind == _NODE:
                    stack.append(value)
                elif kind == _OCCURRENCE:
                    stack.append(value if bound else (value,))
                elif kind != _DATA:
                    found: list[Node] = []
                    _collect(value, kind, types, found)
                    for item in reversed(found):
                        mentioned = not bound and _KINDS[item.__class__] == _OCCURRENCE
                        stack.append((item,) if mentioned else item)
        refuse_repetition(root)
        steps = sys.maxsize


def statements(root: Stmt) -> Iterator[Stmt]:
    """Every statement below and including `root`, as `walk` gives them, without a look into expressions."""
    stack = [root]
    while stack:
        current = stack.pop()
        yield current
        cls = current.__class__
        if cls is BufferStore:  # most: no statement is inside of one
            continue
        for name, _ in _STACKED.get(cls) or _stacked(cls):
            value = getattr(current, name)
            if value.__class__ is tuple:
                stack += [item for item in reversed(value) if isinstance(item, Stmt)]
            elif isinstance(value, Stmt):
                stack.append(value)


def inner_statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside another one (the init of a block first)."""
    if stmt.__class__ is BufferStore:
        return ()
    found: list[Stmt] = []
    for name, _ in reversed(_stacked(stmt.__class__)):
        value = getattr(stmt, name)
        if isinstance(value, Stmt):
            found.append(value)
        elif value.__class__ is tuple:
            found += [item for item in value if isinstance(item, Stmt)]
    return tuple(found)


def map_statements(stmt: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with each of those directly inside it changed; the same object where none is."""
    changed: dict[str, Any] = {}
    for name, _ in reversed(_stacked(stmt.__class__)):
        value = getattr(stmt, name)
        if isinstance(value, Stmt):
            new: Any = change(value)
            if new is not value:
                changed[name] = new
        elif value.__class__ is tuple and value and isinstance(value[0], Stmt):
            new = tuple(map(change, value))
            if any(map(operator.is_not, new, value)):
                changed[name] = new
    return replace(stmt, **changed) if changed else stmt


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
            stack.extend((child, False) for child in reversed(_children(current, types)))


MANY_NODES = 1 << 17
"""The nodes of a program that may hold each other as often as they like."""
_REPEATED = 16
"""How often each node of a larger one may stand in it on average."""


def refuse_repetition(root: Any) -> None:
    """ResourceError W952 for nodes that hold each other so often that their text has many times as many.

    `m = m + m` forty times makes 40 nodes, and a text of 2**40.

    >>> from weft.ir.types import TupleType
    >>> refuse_repetition(TupleType(()))
    """
    if not isinstance(root, Node):
        return
    sizes: dict[int, int] = {}
    for current in post_order(root):
        leaf = isinstance(current, (Buffer, Var))
        sizes[id(current)] = 1 if leaf else 1 + sum(sizes[id(child)] for child in _children(current, False))
    written = sizes[id(root)]
    if written > max(MANY_NODES, _REPEATED * len(sizes)):
        count = f"{written:,}" if written < 10**12 else "more than 10**12"
        raise ResourceError(
            f"{len(sizes)} nodes use each other so often that there are {count} when each use is counted",
            code="W952",
            span=getattr(root, "span", None),
            hint="bind what is used several times to a variable",
        )


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
    changes = _Changes({} if memo is None else memo, dim)
    done = changes.done
    keep: list[Node] = []  # originals stay alive, so that their ids stay theirs
    types = types or dim is not None
    stack: list[Any] = [root]  # a node whose children come before it stands in a tuple
    while stack:
        current = stack.pop()
        expanded = current.__class__ is tuple
        if expanded:
            current = current[0]
        key = id(current)
        if key in done:
            continue
        if not expanded:
            replacement = pre(current) if pre is not None else None
            if replacement is not None:
                done[key] = replacement
                keep.append(current)
                continue
            below = [child for child in _children(current, types) if id(child) not in done]
            if below:
                stack.append((current,))
                stack.extend(reversed(below))
                continue
        new = changes.rebuilt(current)
        if post is not None:
            replacement = post(new)
            new = new if replacement is None else replacement
        done[key] = new
        keep.append(current)
    return done[id(root)]


def rewrite_statements(root: Stmt, post: Callable[[Stmt], Stmt | None]) -> Stmt:
    """The statement rebuilt from the inside: `post(stmt)` sees each whose inner ones are done, and may replace it.

    Unchanged parts stay the same objects. Where only statements change this takes a tenth of the time of `rewrite`,
    since most of a kernel is expressions.
    """
    return _StatementChanges(post).of(root)


class _StatementChanges:
    """What statements have become, each once."""

    __slots__ = ("done", "post")

    def __init__(self, post: Callable[[Stmt], Stmt | None]) -> None:
        self.post = post
        self.done: dict[Stmt, Stmt] = {}

    def of(self, stmt: Stmt) -> Stmt:
        """What has become of a statement."""
        found = self.done.get(stmt)
        if found is None:
            new = stmt if stmt.__class__ is BufferStore else map_statements(stmt, self.of)
            replacement = self.post(new)
            found = self.done[stmt] = new if replacement is None else replacement
        return found


class _Changes:
    """What nodes below have become, by their ids, and what that makes of a node.

    A class, since functions that call each other would live on, with all that they saw, until they are collected.
    """

    __slots__ = ("dim", "done")

    def __init__(self, done: dict[int, Any], dim: Callable[[DimExpr], Dim] | None) -> None:
        self.done = done
        self.dim = dim

    def value(self, value: Any) -> Any:
        """What has become of the value of a field."""
        kind = _KINDS.get(value.__class__) or _kind_of(value.__class__)
        if kind == _TUPLE:
            new = tuple([self.value(item) for item in value])
            return new if any(map(operator.is_not, new, value)) else value
        if kind == _MAP:
            return value.map_values(self.value)
        if kind != _DATA:
            return self.done.get(id(value), value)
        if self.dim is not None and isinstance(value, DimExpr):
            return self.dim(value)
        return value

    def rebuilt(self, current: Node) -> Node:
        """A node whose children are done; the same object where nothing changes."""
        cls = current.__class__
        changed: dict[str, Any] = {}
        for name, _ in _stacked(cls):
            old = getattr(current, name)
            new = self.value(old)
            if new is not old:
                changed[name] = new
        if isinstance(current, Var) and current.ty is not None:
            ty = self.value(current.ty)
            if ty is not current.ty:
                changed["ty"] = ty
        if not changed:
            return current
        return cls(**{name: changed[name] if name in changed else getattr(current, name) for name, _ in fields_of(cls)})


def substitute(root: N, mapping: Mapping[Any, Any]) -> N:
    """Replace variables (Var, PrimVar) and buffers by the given expressions, types and buffer shapes included."""
    if not mapping:
        return root
    if isinstance(root, (Stmt, PrimExpr)):
        try:
            return _Substitution(mapping).node(root)
        except RecursionError:  # a deep tree: without recursion, which takes twice as long
            pass
    return rewrite(root, pre=lambda current: mapping.get(current), types=True)


class _Substitution:
    """Replaces nodes of statements and scalar expressions, whose types say nothing of variables."""

    __slots__ = ("done", "mapping")

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        self.mapping = mapping
        self.done: dict[int, Any] = {}

    def node(self, current: Any) -> Any:
        """A node with everything below it done; the same object where nothing changes."""
        found = self.mapping.get(current)
        if found is not None:
            return found
        key = id(current)
        found = self.done.get(key)
        if found is not None:
            return found
        cls = current.__class__
        changed: dict[str, Any] | None = None
        parts = _STACKED.get(cls)
        for name, _ in _stacked(cls) if parts is None else parts:
            old = getattr(current, name)
            new = self._value(old)
            if new is not old:
                if changed is None:
                    changed = {}
                changed[name] = new
        if changed is not None:
            values = {name: getattr(current, name) for name, _ in fields_of(cls)}
            values.update(changed)
            found = cls(**values)
        else:
            found = current
        self.done[key] = found
        return found

    def _value(self, value: Any) -> Any:
        kind = _KINDS.get(value.__class__) or _kind_of(value.__class__)
        if kind in (_NODE, _OCCURRENCE):
            return value if isinstance(value, Var) and value not in self.mapping else self.node(value)
        if kind == _TUPLE:
            found = self.done.get(id(value))  # several nodes may hold one tuple, as shuffles do
            if found is None:
                found = tuple([self._value(item) for item in value])
                found = self.done[id(value)] = found if any(map(operator.is_not, found, value)) else value
            return found
        return value.map_values(self._value) if kind == _MAP else value


def substitute_symbols(root: N, mapping: Mapping[str, Dim]) -> N:
    """Replace named symbols in every dimension below `root` (graph level)."""
    if not mapping:
        return root
    return rewrite(root, dim=lambda value: substitute_dim(value, mapping), types=True)
