"""InstrumentProfile: loops say when they begin and end, so that a run tells what each loop nest took.

    for i in range(8):          T.start_profile_intrinsic(1, "f: i")
        for j in range(8):      for i in range(8):
            ...            ->       for j in range(8):
                                        ...
                                T.end_profile_intrinsic(1)

`profile(*arguments)` of a compiled or interpreted function runs it and gives a row for each loop: how often it ran, and
its seconds. C programs define `weft_profile_start(number, name)` and `weft_profile_end(number)`, which their header
declares. `max_depth` is how many loops deep loops are marked (0: all of them), `min_height` how many loops one has
inside and with itself at least. Loops are left out inside of parallel, vectorized and unrolled ones and of those of
threads, and where a jump leaves the function. What is said is an effect: mark loops when they are as they shall run,
`weft.compile(module, pipeline="fuse,schedule,instrument-profile")`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from weft.ir import IRModule, replace, walk
from weft.ir.graph import StringImm
from weft.ir.kernel.prim import const
from weft.ir.module import fresh_name
from weft.ir.structure.visit import inner_statements, map_statements
from weft.ir.tensor import Block, Evaluate, For, PrimCall, PrimFunc, Return, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.options import AtLeast

__all__ = ["InstrumentProfile"]

_START, _END = "start_profile_intrinsic", "end_profile_intrinsic"
_LEAVES = ("thread_return", "ret")


@dataclass(frozen=True)
class InstrumentProfile(Pass):
    """Let loops of kernels say when they begin and end."""

    max_depth: Annotated[int, AtLeast(0)] = 1
    min_height: Annotated[int, AtLeast(1)] = 1

    def run(self, module: IRModule) -> IRModule:
        """The module with its loops marked, numbered from 1 on; kernels that say so already stay as they are."""
        marker = _Marker(self)

        def marked(name: str, function: PrimFunc) -> PrimFunc:
            return function if any(map(_is_mark, walk(function))) else marker.function(name, function)

        return map_functions(module, marked, PrimFunc)


@dataclass
class _Marker:
    """Marks the loops of one kernel after another; `around` are the names of the loops around, `used` all of them."""

    options: InstrumentProfile
    number: int = 0
    around: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def function(self, name: str, function: PrimFunc) -> PrimFunc:
        """A kernel with its loops marked; the same object when it has none that are asked for."""
        self.around = [f"{name}: "]
        return replace(function, body=self.statement(function.body))

    def statement(self, stmt: Stmt) -> Stmt:
        """A statement with the loops in it marked."""
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, Block):  # not its init
            return replace(stmt, body=self.statement(stmt.body))
        return map_statements(stmt, self.statement)

    def _loop(self, loop: For) -> Stmt:
        deep = self.options.max_depth
        if (deep and len(self.around) > deep) or _height(loop) < self.options.min_height or _leaves(loop):
            return loop
        if loop.kind in ("vectorized", "unrolled", "thread_binding"):
            return loop
        self.number += 1
        outer, number = self.around[-1], const(self.number, "int32")
        name = fresh_name(outer + ("/" if self.around[1:] else "") + loop.loop_var.name, self.used)
        self.used.add(name)
        if loop.kind == "serial":
            self.around.append(name)
            loop = replace(loop, body=self.statement(loop.body))
            self.around.pop()
        begin = PrimCall(_START, (number, StringImm(name)), "void")
        return SeqStmt((Evaluate(begin), loop, Evaluate(PrimCall(_END, (number,), "void"))))


def _is_mark(node: object) -> bool:
    return isinstance(node, PrimCall) and node.op in (_START, _END)


def _height(stmt: Stmt) -> int:
    """How many loops are around one another in a statement, itself counted."""
    return isinstance(stmt, For) + max(map(_height, inner_statements(stmt)), default=0)


def _leaves(loop: For) -> bool:
    """Whether a jump out of the function may leave a loop before its end is said."""
    return any(isinstance(node, Return) or (isinstance(node, PrimCall) and node.op in _LEAVES) for node in walk(loop))
