"""Emulated boards: the processor of each, and where its memories are.

Each is a target by the tag `qemu/<name>` (`weft target tags` lists them), and `weft qemu run` runs C for it.
"""

from __future__ import annotations

from weft.support.records import dataclass
from weft.target.value import Target, tag

__all__ = ["BOARDS", "Board", "board_of"]


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates: its name there, its processor, origin and bytes of flash and of memory."""

    name: str
    cpu: str
    flash: tuple[int, int]
    ram: tuple[int, int]

    @property
    def tag(self) -> str:
        """The tag of its target."""
        return f"qemu/{self.name}"


_K, _M = 1 << 10, 1 << 20
BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board("microbit", "cortex-m0", (0, 256 * _K), (0x20000000, 16 * _K)),
        Board("mps2-an385", "cortex-m3", (0, 4 * _M), (0x20000000, 4 * _M)),
        Board("mps2-an386", "cortex-m4f", (0, 4 * _M), (0x20000000, 4 * _M)),
        Board("mps2-an500", "cortex-m7f", (0, 4 * _M), (0x20000000, 4 * _M)),
        Board("mps2-an505", "cortex-m33f", (0x10000000, 4 * _M), (0x38000000, 2 * _M)),
        Board("mps3-an547", "cortex-m55", (0, 512 * _K), (0x20000000, 512 * _K)),
    )
}
"""By name."""


def _target(board: Board) -> Target:
    """The target of a board, from plain data: text would load its parser, and every process comes by here."""
    return Target({"kind": "c", "mcpu": board.cpu})


for _board in BOARDS.values():
    tag.register(_board.tag, _target(_board))


def board_of(part: Target) -> Board | None:
    """The board whose processor is that of a target.

    >>> board_of(Target("c -mcpu=cortex-m7")).name
    'mps2-an500'
    """
    return next((board for board in BOARDS.values() if _target(board).cpu == part.cpu), None)
