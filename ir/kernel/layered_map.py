"""An immutable mapping that grows without copying all of it: scopes in scopes share what is outside.

    made = old.with_item(key, value)    another mapping; the old one stays

The items stand in layers, the newest last, each more than as long as the next: there are logarithmically many, and an
item is copied logarithmically often (the logarithmic method of Bentley and Saxe, "Decomposable searching problems",
1980). Few items are one layer, which is a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

__all__ = ["LayeredMap"]

K = TypeVar("K")
V = TypeVar("V")

_FEW = 32
"""The items of the last layer, which each addition copies."""
_ABSENT: Any = object()


class LayeredMap(Mapping[K, V]):
    """An immutable mapping.

    >>> few = LayeredMap({"a": 1})
    >>> more = few.with_item("b", 2).with_item("a", 3)
    >>> dict(few), dict(more)
    ({'a': 1}, {'a': 3, 'b': 2})
    """

    __slots__ = ("_layers",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._layers: tuple[dict[K, V], ...] = (dict(items or {}),)

    def with_item(self, key: K, value: V) -> LayeredMap[K, V]:
        """A mapping with one item added or replaced."""
        made = object.__new__(self.__class__)
        last = {**self._layers[-1], key: value}
        if len(last) <= _FEW:
            made._layers = (*self._layers[:-1], last)
            return made
        below = list(self._layers[:-1])
        while below and len(below[-1]) <= len(last):
            last = {**below.pop(), **last}
        made._layers = (*below, last, {})
        return made

    def __getitem__(self, key: K) -> V:
        found = self.get(key, _ABSENT)
        if found is _ABSENT:
            raise KeyError(key)
        return found

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, or the default."""
        for layer in reversed(self._layers):
            found = layer.get(key, _ABSENT)
            if found is not _ABSENT:
                return found
        return default

    def __contains__(self, key: object) -> bool:
        for layer in self._layers:  # no generator: this is asked for every variable of every index
            if key in layer:
                return True
        return False

    def __iter__(self) -> Iterator[K]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def _whole(self) -> dict[K, V]:
        whole: dict[K, V] = {}
        for layer in self._layers:
            whole.update(layer)
        return whole
