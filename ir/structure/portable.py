"""Copies, pickles and short texts of nodes, however deep these nest: no step of any of them recurses.

    copy.copy(node)         a new node with the same parts
    copy.deepcopy(node)     new nodes throughout; what occurs twice stays one object
    pickle.dumps(node)      the parts in the order in which they can be made, each part before what holds it
    repr(node)              Class(field=value, ...), cut after 400 characters

Pickling meets nodes in several places of one pickle (a dictionary of functions, a list of variables): each node stands
there as its `_Shell`, of which there is one for a node while a pickle knows it, so that one node stays one object.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Container, Iterator
from dataclasses import fields
from typing import Any, cast

from weft.support.guards import is_listing, is_mapping

__all__ = ["deep_copy", "reduced", "shallow_copy", "short_text"]

_MOST = 400
_LEAVES = frozenset({str, int, float, bool, type(None)})


def shallow_copy(node: Any) -> Any:
    """A new node with the same parts."""
    return _made(node.__class__, tuple(getattr(node, name) for name in _names(node.__class__)))


def deep_copy(node: Any, memo: dict[int, Any]) -> Any:
    """New nodes throughout; what occurs twice stays one object."""
    for item in _parts_first(node, memo):
        held = (getattr(item, name) for name in _names(item.__class__))
        values = tuple(value if value.__class__ in _LEAVES else copy.deepcopy(value, memo) for value in held)
        memo[id(item)] = _made(item.__class__, values)
    return memo[id(node)]


def reduced(node: Any) -> tuple[Any, ...]:
    """What a pickle keeps of a node."""
    return _last, ([_shell(item) for item in _parts_first(node, ())],)


def short_text(node: Any) -> str:
    """`Class(field=value, ...)`, cut after 400 characters."""
    text = ""
    for piece in _pieces(node):
        text += piece
        if len(text) > _MOST:
            break
    return f"{node.__class__.__name__}({text[:_MOST]}{'...' if len(text) > _MOST else ''})"


def _is_node(value: Any) -> bool:
    """Whether a value is a node; told by its class, since nodes are defined with these functions."""
    return getattr(value.__class__, "is_node", False)


_NAMES: dict[type, tuple[str, ...]] = {}
_SHOWN: dict[type, tuple[str, ...]] = {}


def _names(cls: type) -> tuple[str, ...]:
    """All fields, those that are computed from others too."""
    found = _NAMES.get(cls)
    if found is None:
        found = _NAMES[cls] = tuple(item.name for item in fields(cls))
    return found


def _shown(cls: type) -> tuple[str, ...]:
    found = _SHOWN.get(cls)
    if found is None:
        names = {item.name for item in fields(cls) if item.init and item.metadata.get("role") != "ignored"}
        order = [name for name in getattr(cls, "visit_order", ()) if name in names]
        found = _SHOWN[cls] = (*order, *(name for name in _names(cls) if name in names and name not in order))
    return found


def _empty(cls: Any) -> Any:
    return object.__new__(cls)


def _made(cls: type, values: tuple[Any, ...]) -> Any:
    """A node of a class with the given fields, in their order."""
    new = _empty(cls)
    for name, value in zip(_names(cls), values, strict=True):
        object.__setattr__(new, name, value)
    return new


def _parts_first(root: Any, done: Container[int]) -> Iterator[Any]:
    """The nodes below and including the root that are not done, each after those that it holds."""
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        current, ready = stack.pop()
        if ready:
            yield current
        elif id(current) not in seen and id(current) not in done:
            seen.add(id(current))
            stack.append((current, True))
            for name in reversed(_names(current.__class__)):
                value = getattr(current, name)
                if _is_node(value):
                    stack.append((value, False))
                elif value.__class__ not in _LEAVES:
                    stack.extend((part, False) for part in reversed(list(_nodes_in(value))))


def _nodes_in(value: Any) -> Iterator[Any]:
    """The nodes that a field holds, by itself or in containers."""
    stack = [value]
    while stack:
        current = stack.pop()
        if _is_node(current):
            yield current
        elif is_listing(current):
            stack.extend(reversed(current))
        elif is_mapping(current):
            stack.extend(current.values())


class _Shell:
    """A node on its way into a pickle, which makes the node itself when it is read."""

    __slots__ = ("__weakref__", "node")

    def __init__(self, node: Any) -> None:
        self.node = node

    def __reduce__(self) -> tuple[Any, ...]:
        cls = self.node.__class__
        return _made, (cls, tuple(_shelled(getattr(self.node, name)) for name in _names(cls)))


_SHELLS: weakref.WeakValueDictionary[int, _Shell] = weakref.WeakValueDictionary()  # a shell keeps its node, so its id


def _shell(node: Any) -> _Shell:
    found = _SHELLS.get(id(node))
    if found is None:
        found = _SHELLS[id(node)] = _Shell(node)
    return found


def _shelled(value: Any) -> Any:
    """A field with shells in place of nodes; itself where it holds none."""
    if value.__class__ in _LEAVES:
        return value
    if _is_node(value):
        return _shell(value)
    if next(_nodes_in(value), None) is None:
        return value
    if is_listing(value):
        return value.__class__(map(_shelled, value))
    return value.__class__({key: _shelled(item) for key, item in value.items()})


def _last(nodes: list[Any]) -> Any:
    return nodes[-1]


def _pieces(root: Any) -> Iterator[str]:
    """The text of the fields of a node, piece by piece."""
    stack: list[tuple[str, Any]] = list(reversed(_fields_of(root)))
    while stack:
        before, value = stack.pop()
        yield before
        if _is_node(value):
            stack.append((")", _NOTHING))
            stack.extend(reversed(_fields_of(value)))
            yield f"{value.__class__.__name__}("
        elif is_listing(value) and value.__class__ in (tuple, list):
            opening, closing = "()" if isinstance(value, tuple) else "[]"
            stack.append(("," * (len(value) == 1 and opening == "(") + closing, _NOTHING))
            stack.extend((", " if i else "", value[i]) for i in reversed(range(len(value))))
            yield opening
        elif is_mapping(value) and value.__class__ is not dict and next(_nodes_in(value), None) is not None:
            stack.append(("})", _NOTHING))
            items = list(value.items())
            stack.extend((f"{', ' if i else ''}{items[i][0]!r}: ", items[i][1]) for i in reversed(range(len(items))))
            yield f"{value.__class__.__name__}({{"
        elif value.__class__ is int:
            yield number_text(cast("int", value))
        elif value is not _NOTHING:
            yield repr(value)


_DECIMAL_BITS = 10_000
"""Python refuses to write longer numbers in decimal (`sys.set_int_max_str_digits`)."""


def number_text(value: int) -> str:
    """A number as Python reads it: in hexadecimal where it is too long for decimal digits.

    >>> number_text(12), len(number_text(1 << 40_000))
    ('12', 10003)
    """
    return repr(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


_NOTHING = object()


def _fields_of(node: Any) -> list[tuple[str, Any]]:
    names = _shown(node.__class__)
    return [(f"{', ' if i else ''}{name}=", getattr(node, name)) for i, name in enumerate(names)]
