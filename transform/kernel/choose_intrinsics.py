"""ChooseIntrinsics: kernels that ask whether the target has an intrinsic get the answer.

    if T.has_intrinsic("sort_keys", "uint32"): a        a where it has, b where it has not
    else: b

A kernel may so have a form for machines that can do more than others, beside one that runs everywhere. What the answer
was is recorded on the kernel. Intrinsics of which a machine has to be asked are those of `_NEEDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import ClassVar, TypeGuard

from weft.dtypes import bits
from weft.ir import IRModule, Node, PrimFunc, rewrite
from weft.ir.graph import StringImm
from weft.ir.kernel.prim import const
from weft.ir.structure.visit import walk
from weft.ir.tensor import Binary, IfThenElse, IntImm, PrimCall, SeqStmt
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.scheduling_pass import machine_of
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.decisions import Decision, with_decisions

__all__ = ["ChooseIntrinsics"]

_QUERY = "has_intrinsic"


def _sorts(machine: MachineModel, dtype: str) -> bool:
    return machine.sort_bits > 0 and dtype in ("uint32", "uint64")


def _sorts_values(machine: MachineModel, dtype: str) -> bool:
    return bits(dtype) in machine.sorted_widths


def _sorts_positions(machine: MachineModel, dtype: str) -> bool:
    return machine.sort_bits > 0 and bits(dtype) in (16, 32, 64)


def _keeps_positions(machine: MachineModel, dtype: str) -> bool:
    return machine.sort_bits > 0 and (dtype == "bool" or bits(dtype) in (8, 16, 32, 64))


_NEEDS: Mapping[str, Callable[[MachineModel, str], bool]] = {
    **dict.fromkeys(("select_key", "select_pair", "sort_keys", "sort_pairs"), _sorts),
    **dict.fromkeys(("keep_keys", "sort_positions"), _sorts_positions),
    "keep_positions": _keeps_positions,
    "sort_values": _sorts_values,
}


@dataclass(frozen=True)
class ChooseIntrinsics(FunctionPass):
    """Answer `T.has_intrinsic` for a machine, and leave out the branches that are not taken.

    `known` are those that the code generator has. Raises: PassError W502 for a machine that has no such field.
    """

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    machine: MachineModel = field(default=MachineModel())
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "machine", machine_of(self.machine))

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The kernel without such questions."""
        asked = {_asked(part): part for part in walk(function.body) if _is_query(part)}
        decided = [self._decision(name, query) for query in asked.values()]
        return with_decisions(rewrite(function, self._answered), decided) if asked else function

    def has(self, query: PrimCall) -> bool:
        """The answer to a question."""
        intrinsic, dtype = _asked(query)
        return intrinsic in self.known and intrinsic in _NEEDS and _NEEDS[intrinsic](self.machine, dtype)

    def _decision(self, name: str, query: PrimCall) -> Decision:
        intrinsic, dtype = _asked(query)
        reason = f"the machine has it for {dtype}" if self.has(query) else f"the machine lacks it for {dtype}"
        return Decision(name, "intrinsic", {intrinsic: self.has(query)}, reason)

    def _answered(self, node: Node) -> Node | None:
        if _is_query(node):
            return const(self.has(node), "bool")
        if isinstance(node, Binary) and node.kind == "and" and isinstance(node.a, IntImm):
            return node.b if node.a.value else node.a
        if isinstance(node, IfThenElse) and isinstance(node.condition, IntImm):
            taken = node.then_body if node.condition.value else node.else_body
            return SeqStmt((), span=node.span) if taken is None else taken
        return None


def _is_query(node: object) -> TypeGuard[PrimCall]:
    return isinstance(node, PrimCall) and node.op == _QUERY


def _asked(query: PrimCall) -> tuple[str, str]:
    """The intrinsic and the dtype that a question is about."""
    names = [arg.value if isinstance(arg, StringImm) else "" for arg in query.args]
    return names[0], names[-1]
