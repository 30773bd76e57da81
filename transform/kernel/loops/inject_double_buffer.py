"""InjectDoubleBuffer: what a loop works on next is fetched while it works on what is there.

    for i in range(n):                                         load x[0] into tile[0]
        tile = T.alloc_buffer(...)                             for i in range(n - 1):
        with T.block("load"):                            ->        load x[i + 1] into tile[(i + 1) % 2]
            T.block_attr({"double_buffer_scope": 0})               compute from tile[i % 2]
            load x[i] into tile                                compute from tile[(n - 1) % 2]
        compute from tile

The parts of a loop's body in which blocks have the attribute run one iteration ahead of the others. That is a software
pipeline of two stages; see `software_pipeline` for what is proved and what is refused. The loop is the innermost one
around such a block that has other parts too.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, replace, rewrite
from weft.ir.attrs import DOUBLE_BUFFER
from weft.ir.node import Node
from weft.ir.structure.visit import statements
from weft.ir.tensor import Block, For, PrimFunc, Stmt
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.loops.inject_software_pipeline import with_loops
from weft.transform.kernel.loops.software_pipeline import body_of, parts_of, pipelined

__all__ = ["InjectDoubleBuffer"]


@dataclass(frozen=True)
class InjectDoubleBuffer(FunctionPass):
    """Let blocks with the attribute `double_buffer_scope` fill their buffers an iteration ahead."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with such loops as pipelines; the same object when there are none. PassError W590, W591."""
        return with_loops(function, _has_loads, _double_buffered)


def _is_load(block: Node) -> bool:
    return isinstance(block, Block) and DOUBLE_BUFFER in block.annotations


def _loads(part: Stmt) -> bool:
    """Whether a block in a part of a body is to run ahead."""
    return any(map(_is_load, statements(part)))


def _has_loads(loop: For) -> bool:
    parts = body_of(loop)[1]
    return len(parts) > 1 and any(map(_loads, parts))


def _double_buffered(function: PrimFunc, loop: For) -> PrimFunc:
    stages = [0 if _loads(part) else 1 for part in parts_of(loop)[1]]

    def post(node: Node) -> Node | None:
        if not isinstance(node, Block) or not _is_load(node):
            return None
        return replace(node, annotations=node.annotations.without(DOUBLE_BUFFER))

    plain = rewrite(loop, post)
    assert isinstance(plain, For)
    function = rewrite(function, pre=lambda node: plain if node is loop else None)
    return pipelined(function, plain, stages, range(len(stages)))
