"""The node contract: frozen, slotted dataclasses with identity `==`, whose fields declare a role once.

    node  ::= class N(Node) decorated with @node
    role  ::= child    compared, hashed, walked (the default)
            | binder   child that introduces the object it holds (a variable, a buffer)
            | ignored  never part of equality, hash or text (spans, name hints)
            | derived  computed from the other fields when the node is made; no field as far as walkers are concerned

A field may hold a Node, a tuple (nested tuples too) of Nodes, a FrozenMap, a dimension, or plain data. Everything that
walks, rewrites, compares or hashes nodes reads `fields_of`. A binder that is visited only after other fields of the
same node (the variable of a binding, after its value) says so in the class attribute `visit_order`.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar, cast, dataclass_transform

from weft.errors import RecursionDepthError
from weft.ir.structure.portable import deep_copy, reduced, shallow_copy, short_text
from weft.support.guards import is_listing, is_number, is_tuple
from weft.support.providers import provider
from weft.support.records import frozen

if TYPE_CHECKING:
    from weft.errors import Span

__all__ = ["FieldInfo", "FrozenMap", "Node", "binder", "derived", "fields_of", "ignored", "node", "parts_of", "replace"]

N = TypeVar("N", bound="Node")


class FieldInfo(NamedTuple):
    """A field of a node class: its name and role."""

    name: str
    role: str


class Node:
    """The base of every IR node; compared by identity."""

    __slots__ = ("__weakref__",)
    visit_order: ClassVar[tuple[str, ...]] = ()
    is_node: ClassVar[bool] = True
    if TYPE_CHECKING:
        span: Span | None

    def script(self, **options: Any) -> str:
        """The node as script text; see `weft.script.script_of` for the options."""
        return provider("script")(self, **options)

    def show(self, **options: Any) -> None:
        """Print the script, coloured on a terminal."""
        provider("show")(self, **options)

    def _repr_html_(self) -> str:
        return provider("html")(self)

    def __copy__(self) -> Any:
        return shallow_copy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return deep_copy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return short_text(self)


def binder(**options: Any) -> Any:
    """A field that introduces the variable, buffer or tuple of them that it holds."""
    return field(metadata={"role": "binder"}, **options)


def ignored(*, default: Any) -> Any:
    """A field that is not part of the structure."""
    return field(default=default, metadata={"role": "ignored"})


def derived(*, init: Literal[False] = False) -> Any:
    """A field that `__post_init__` computes from the others (so that asking for it never recurses)."""
    return field(init=init)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field, binder, ignored, derived))
def node(cls: type[N]) -> type[N]:
    """Make a class a node: a frozen, slotted dataclass with identity comparison."""
    return frozen(cls)


_FIELDS: dict[type, tuple[FieldInfo, ...]] = {}
_PARTS: dict[type, tuple[FieldInfo, ...]] = {}
_PLAIN = frozenset(
    {
        "str",
        "int",
        "bool",
        "float",
        "str | None",
        "tuple[int, ...]",
        "tuple[str, ...]",
        "np.ndarray",
        str,
        int,
        bool,
        float,
    }
)
"""Annotations of fields that hold data alone."""


def fields_of(cls: type) -> tuple[FieldInfo, ...]:
    """The fields of a node class in the order in which they are visited."""
    found = _FIELDS.get(cls)
    if found is None:
        infos = {f.name: FieldInfo(f.name, f.metadata.get("role", "child")) for f in fields(cls) if f.init}
        order: tuple[str, ...] = getattr(cls, "visit_order", ()) or tuple(infos)
        rest = tuple(name for name in infos if name not in order)
        found = _FIELDS[cls] = tuple(infos[name] for name in (*order, *rest))
    return found


def parts_of(cls: type) -> tuple[FieldInfo, ...]:
    """The fields of a node class that may hold nodes or dimensions and are part of the structure."""
    found = _PARTS.get(cls)
    if found is None:
        plain = {f.name for f in fields(cls) if f.type in _PLAIN}
        infos = (info for info in fields_of(cls) if info.role != "ignored" and info.name not in plain)
        found = _PARTS[cls] = tuple(infos)
    return found


def replace(old: N, **changes: Any) -> N:
    """A copy of a node with some fields changed; the same object when every new value is the old one.

    Shape: works for any node class; raises TypeError for an unknown field.
    """
    if all(getattr(old, name) is value for name, value in changes.items()):
        return old
    values = {info.name: getattr(old, info.name) for info in fields_of(type(old))}
    values.update(changes)
    return type(old)(**values)


_SCALARS = frozenset({str, int, bool, float, type(None)})


class FrozenMap(Mapping[str, Any]):
    """An immutable mapping with string keys that keeps insertion order; equality ignores order.

    >>> FrozenMap({"a": 1}).set("b", 2)
    FrozenMap({'a': 1, 'b': 2})
    """

    __slots__ = ("_items", "extent")

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), outside: int = 0) -> None:
        """A map inside of so many levels; ResourceError W951 for data of more than 64 with them, or too many lists."""
        given = dict(items)
        self._items: dict[str, Any] = {}
        extent = _Extent(1, 1)
        for key, value in given.items():
            if value.__class__ in _SCALARS:
                self._items[key] = value
                continue
            self._items[key], part = _frozen(value, outside + 1)
            extent = extent.around(part)
        self.extent = extent
        _refuse_depth(outside + extent.levels)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    # What Mapping would do by way of the methods above takes several calls for each entry.

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default where there is none."""
        return self._items.get(key, default)

    def keys(self) -> KeysView[str]:
        """The keys in order."""
        return self._items.keys()

    def values(self) -> ValuesView[Any]:
        """The values in order."""
        return self._items.values()

    def items(self) -> ItemsView[str, Any]:
        """The entries in order."""
        return self._items.items()

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"

    def __hash__(self) -> int:
        return hash(frozenset((key, repr(value)) for key, value in self._items.items()))

    def set(self, key: str, value: Any) -> FrozenMap:
        """A copy with one entry added or replaced."""
        return FrozenMap({**self._items, key: value})

    def without(self, *keys: str) -> FrozenMap:
        """A copy without the given keys."""
        return FrozenMap({key: value for key, value in self._items.items() if key not in keys})

    def map_values(self, function: Callable[[Any], Any]) -> FrozenMap:
        """The map with every value replaced by `function(value)`; itself when nothing changes."""
        new = {key: function(value) for key, value in self._items.items()}
        return self if all(new[key] is self._items[key] for key in new) else FrozenMap(new)


def freeze(value: Any) -> Any:
    """Attribute data in immutable form: lists become tuples, dicts FrozenMaps, numbers of NumPy those of Python."""
    return _frozen(value, 0)[0]


_MOST_LEVELS = 64
"""The levels of lists and dicts in attributes: what reads them recurses."""
_MOST_LISTS = 1 << 16
"""The lists and dicts in attributes: those that are held twice at each of many levels have readings without end."""


class _Extent(NamedTuple):
    """How far data reaches: the levels of lists and dicts in it, and how many there are, each time that one is held."""

    levels: int = 0
    lists: int = 0

    def around(self, part: _Extent) -> _Extent:
        """That of a list with one more part; W951 where that is too much to be read."""
        lists = self.lists + part.lists
        if lists > _MOST_LISTS:
            message = f"data of attributes has more than {_MOST_LISTS} lists and dicts"
            raise RecursionDepthError(message, code="W951", hint="lists that are held in several places count in each")
        return _Extent(max(self.levels, 1 + part.levels), lists)


_SCALAR = _Extent()


def _refuse_depth(levels: int) -> None:
    if levels > _MOST_LEVELS:
        raise RecursionDepthError(
            f"data of attributes nests deeper than {_MOST_LEVELS} levels", code="W951", hint="write it flatter"
        )


def _frozen(value: Any, outside: int) -> tuple[Any, _Extent]:
    """The immutable form of a value that stands so many levels deep, and how far it reaches."""
    if is_listing(value):
        return _frozen_list(value, outside)
    if isinstance(value, dict):
        _refuse_depth(outside + 1)
        value = FrozenMap(cast("dict[str, Any]", value), outside)
    if isinstance(value, FrozenMap):
        _refuse_depth(outside + value.extent.levels)
        return value, value.extent
    return value.item() if is_number(value) else value, _SCALAR


def _frozen_list(value: Sequence[Any], outside: int) -> tuple[Any, _Extent]:
    _refuse_depth(outside + 1)
    extent = _Extent(1, 1)
    if _SCALARS.issuperset(map(type, value)):
        return value if is_tuple(value) else tuple(value), extent
    parts: list[Any] = []
    for item in value:
        new, part = _frozen(item, outside + 1)
        extent = extent.around(part)
        parts.append(new)
    same = is_tuple(value) and all(new is old for new, old in zip(parts, value, strict=True))
    return value if same else tuple(parts), extent


EMPTY = FrozenMap()
