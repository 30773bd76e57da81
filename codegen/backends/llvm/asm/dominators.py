"""The tree of dominators of a function that is written block by block.

A block is entered after all forward jumps to it were written; later ones come from blocks that it dominates (loops). So
its dominator is the nearest common one of the blocks that jumped to it, and the tree never changes afterwards.

Source: Cooper, Harvey and Kennedy, A simple, fast dominance algorithm, 2001 (the nearest common dominator).
"""

from __future__ import annotations

__all__ = ["Block", "DominatorTree", "common_dominator"]


class Block:
    """A block in the tree of dominators; the root is its own parent.

    `jump` is an ancestor further up, chosen so that any ancestor is a logarithmic number of steps away (Myers, "An
    applicative random-access stack", 1983): blocks nest as deep as a function has checks.
    """

    __slots__ = ("depth", "jump", "parent")

    def __init__(self, parent: Block | None) -> None:
        self.parent: Block = self if parent is None else parent
        self.depth = 0 if parent is None else parent.depth + 1
        near = self.parent
        balanced = parent is not None and near.depth - near.jump.depth == near.jump.depth - near.jump.jump.depth
        self.jump: Block = near.jump.jump if balanced else near

    def above(self, depth: int) -> Block:
        """The ancestor of a depth."""
        found = self
        while found.depth > depth:
            found = found.jump if found.jump.depth >= depth else found.parent
        return found


class DominatorTree:
    """The blocks written so far, of which one is the current one."""

    def __init__(self) -> None:
        self.root = self.current = Block(None)
        self.dominating = {self.root}
        """The current block and those that dominate it."""
        self._into: dict[str, Block] = {}

    def jump(self, label: str) -> None:
        """Note a way from the current block to a label."""
        found = self._into.get(label)
        self._into[label] = self.current if found is None else common_dominator(found, self.current)

    def is_reached(self, label: str) -> bool:
        """Whether a jump to the label was written."""
        return label in self._into

    def enter(self, label: str) -> None:
        """Make the block at a label the current one."""
        new = Block(self._into.get(label, self.root))
        meeting = common_dominator(self.current, new.parent)
        self.dominating.difference_update(_path(self.current, meeting))
        self.dominating.update(_path(new, meeting))
        self.current = new


def common_dominator(a: Block, b: Block) -> Block:
    """The nearest block that dominates both."""
    a, b = a.above(b.depth), b.above(a.depth)
    while a is not b:
        a, b = (a.parent, b.parent) if a.jump is b.jump else (a.jump, b.jump)
    return a


def _path(block: Block, ancestor: Block) -> list[Block]:
    """The blocks from one up to an ancestor, which is left out."""
    found: list[Block] = []
    while block is not ancestor:
        found.append(block)
        block = block.parent
    return found
