"""A hash of everything that a module says: structure, names, places in the source, bytes of constants.

Unlike `structural_hash`, which equal functions share, it tells any two modules apart that could compile to different
code or to code with different messages. Equal fingerprints mean equal modules; equal modules mostly have equal
fingerprints (the order of attributes and which nodes are shared objects count). It is the same in every process.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from weft.errors import Source, Span
from weft.ir.dim import DimExpr
from weft.ir.node import FrozenMap, Node, fields_of
from weft.ir.structure.array_digests import array_digests
from weft.support.guards import is_array

__all__ = ["fingerprint"]


def fingerprint(
    root: Node | tuple[Any, ...],
    accept: Callable[[Node], bool] | None = None,
    *,
    places: bool = True,
    digests: Callable[[Sequence[Any]], list[bytes]] = array_digests,
) -> str | None:
    """The hash as text; None where `accept` refuses a node, or an attribute holds something that has no hash.

    Without `places` what says nothing of the structure is left out: where nodes stand in the source. `digests` hashes
    the contents of arrays.

    >>> from weft.ir.types import TensorType
    >>> fingerprint(TensorType((2, 3), "float32")) == fingerprint(TensorType((2, 3), "float32"))
    True
    >>> fingerprint(TensorType((2, 3), "float32")) == fingerprint(TensorType((3, 2), "float32"))
    False
    """
    return _Fingerprint(accept, places).run(root, digests)


class _Fingerprint:
    """One hash: nodes, sources and dimensions are numbered in the order of their first visit."""

    def __init__(self, accept: Callable[[Node], bool] | None, places: bool) -> None:
        self.accept = accept
        self.places = places
        self.numbers: dict[int, int] = {}
        self.parts: list[str] = []
        self.arrays: dict[int, Any] = {}
        """Arrays by the place of their digest among the parts."""

    def run(self, root: Node | tuple[Any, ...], digests: Callable[[Sequence[Any]], list[bytes]]) -> str | None:
        stack: list[Any] = [root]
        parts, numbers, accept = self.parts, self.numbers, self.accept
        fields = _FIELDS[self.places]
        while stack:
            x = stack.pop()
            cls = x.__class__
            if cls is str:
                parts.append(f"s{len(x)}:{x}")
            elif x is None or cls is int or cls is bool:
                parts.append(str(x))
            elif cls in fields:
                number = numbers.get(id(x))
                if number is not None:
                    parts.append(f"@{number}")  # it was visited before
                    continue
                numbers[id(x)] = len(numbers)
                if accept is not None and not accept(x):
                    return None
                parts.append(cls.__qualname__)
                stack += fields[cls](x)
            elif cls is tuple or cls is list:
                parts.append(f"t{len(x)}")
                stack.extend(reversed(x))
            elif isinstance(x, Node):
                fields[cls] = _fields_of(cls, self.places)
                stack.append(x)
            elif cls is Span:
                parts.append(f"at {x.start} {x.end}")
                stack.extend((x.origin, x.source))
            elif cls is FrozenMap or cls is dict:
                parts.append(f"m{len(x)}")
                for key in reversed(list(x)):
                    stack.extend((x[key], key))
            elif not self._plain(x):
                return None
        for place, digest in zip(self.arrays, digests(list(self.arrays.values())), strict=True):
            parts[place] += digest.hex()
        return hashlib.blake2b("\x1e".join(parts).encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()

    def _plain(self, x: Any) -> bool:
        """Add data without parts; False for what has no text of its own."""
        if isinstance(x, DimExpr):
            if not self._seen(x):
                self.parts.append(f"dim {x!r}")
        elif isinstance(x, Source):
            if not self._seen(x):
                self.parts.append(f"source {len(x.name)} {len(x.text)} {x.first_line}:{x.name}{x.text}")
        elif isinstance(x, float):
            self.parts.append(struct.pack("<d", x).hex())  # of a nan too: its sign and payload
        elif isinstance(x, bytes):
            self.parts.append(f"b{x.hex()}")
        elif is_array(x) and not x.dtype.hasobject:
            self.arrays[len(self.parts)] = x
            self.parts.append(f"array {x.dtype.str} {x.dtype.name} {x.shape} ")
        else:
            return False
        return True

    def _seen(self, x: Any) -> bool:
        """Whether an object was visited before; it is mentioned then."""
        number = self.numbers.get(id(x))
        if number is None:
            self.numbers[id(x)] = len(self.numbers)
            return False
        self.parts.append(f"@{number}")
        return True


_FIELDS: dict[bool, dict[type, Callable[[Any], tuple[Any, ...]]]] = {False: {}, True: {}}
"""What gives the fields of a node of some class, last first: without those that say nothing of structure, or with."""


def _fields_of(cls: type[Node], places: bool) -> Callable[[Any], tuple[Any, ...]]:
    names = [info.name for info in reversed(fields_of(cls)) if places or info.role != "ignored"]
    if len(names) > 1:
        return attrgetter(*names)

    def few(node: Any) -> tuple[Any, ...]:
        return tuple([getattr(node, name) for name in names])

    return few
