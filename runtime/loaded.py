"""Code that was loaded into this process, by the names of its symbols (`weft.runtime.loading` makes it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.errors import printable

__all__ = ["LoadedModule"]


class LoadedModule(Mapping[str, Callable[..., Any]]):
    """Loaded code: functions by the names of their symbols.

    Arrays are given by the address of their first element, everything else as the C prototype says.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]], keep: Any = None) -> None:
        self._functions = dict(functions)
        self._keep = keep  # what the functions live in

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return printable(f"LoadedModule({', '.join(self._functions)})")
