"""The tree of dominators: ancestors are found, and found in few steps."""

from __future__ import annotations

import random

from weft.codegen.backends.llvm.asm.dominators import Block, DominatorTree, common_dominator


def steps(block: Block, depth: int) -> int:
    """How many blocks lie on the way to the ancestor of a depth."""
    count = 0
    while block.depth > depth:
        block = block.jump if block.jump.depth >= depth else block.parent
        count += 1
    return count


def test_any_ancestor_of_a_deep_block_is_a_few_steps_away() -> None:
    chain = [Block(None)]
    for _ in range(1 << 14):
        chain.append(Block(chain[-1]))
    assert all(chain[-1].above(depth) is chain[depth] for depth in range(0, 1 << 14, 37))
    assert max(steps(chain[-1], depth) for depth in range(1 << 14)) < 60


def test_the_nearest_common_dominator_is_that_of_the_paths() -> None:
    choose = random.Random(1)
    blocks = [Block(None)]
    for _ in range(300):
        blocks.append(Block(choose.choice(blocks[-5:])))

    def path(block: Block) -> list[Block]:
        found = [block]
        while found[-1].depth:
            found.append(found[-1].parent)
        return found

    for _ in range(500):
        a, b = choose.choice(blocks), choose.choice(blocks)
        both = set(map(id, path(b)))
        assert common_dominator(a, b) is next(block for block in path(a) if id(block) in both)


def test_a_block_that_two_ways_lead_to_is_dominated_by_where_they_part() -> None:
    tree = DominatorTree()
    root = tree.current
    for label in ("left", "right"):
        tree.jump(label)
    for label in ("left", "right"):
        tree.enter(label)
        assert tree.current.parent is root
        tree.jump("end")
    tree.enter("end")
    assert tree.current.parent is root
    assert tree.dominating == {root, tree.current}
