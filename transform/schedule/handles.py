"""Handles: what a schedule gives out for the blocks, loops and numbers of the functions that it changes.

    handle ::= BlockRV | LoopRV | ExprRV

A handle holds nothing: the schedule knows what it stands for, so that a handle stays valid while the functions are
rebuilt around it, in copies of the schedule too.
"""

from __future__ import annotations

__all__ = ["BlockRV", "ExprRV", "Handle", "LoopRV"]


class Handle:
    """The base of handles; compared by identity."""

    __slots__ = ("__weakref__", "label")
    letter = "v"

    def __init__(self, label: str = "") -> None:
        self.label = label

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label})"


class BlockRV(Handle):
    """Stands for a block."""

    __slots__ = ()
    letter = "b"


class LoopRV(Handle):
    """Stands for a loop."""

    __slots__ = ()
    letter = "l"


class ExprRV(Handle):
    """Stands for a whole number that a sampling primitive has chosen."""

    __slots__ = ()
    letter = "v"
