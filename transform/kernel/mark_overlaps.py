"""MarkOverlaps: a kernel that kernels give memory that may overlap runs in the order of its text.

    def k(x, y): for i in T.vectorized(8): x[i] = y[7 - i]       M.k(a, a), M.k(a[1:], a)

Code and schedules take the buffers of a kernel to be apart: graph functions pass fresh outputs or copies, and arrays of
a caller are copied where they overlap. Kernels pass what their text says. So a kernel that another one calls with two
buffers that may be of one memory, one of them written, has loops in order, no schedule, and the attribute `noalias`
false, for which nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

from weft.ir import GlobalVar, IRModule, PrimFunc, replace, rewrite, walk
from weft.ir.attrs import NOALIAS, SCHEDULED, attribute
from weft.ir.interpret.kernel import written_buffers
from weft.ir.module import BaseFunc
from weft.ir.tensor import Buffer, BufferLoad, For, PrimCall, PrimExpr
from weft.support.records import dataclass
from weft.transform.analysis.accesses import memory_of
from weft.transform.infra.base import Pass
from weft.transform.kernel.lower_blocks import lower_blocks

__all__ = ["MarkOverlaps"]

Memory = Buffer | PrimExpr | None
"""Where an argument points to: a buffer that is no view, a handle; None: nobody knows."""


@dataclass(frozen=True)
class _KernelCall:
    """A call of a kernel: its name, where its arguments point to, and the kernel that calls."""

    callee: str
    memory: tuple[Memory, ...]
    caller: PrimFunc


@dataclass(frozen=True)
class MarkOverlaps(Pass):
    """Run kernels in the order of their text where calls from kernels give them memory that may overlap."""

    def run(self, module: IRModule) -> IRModule:
        """The module, in which only kernels whose buffers are apart are taken to have such."""
        marked: dict[str, BaseFunc] = {
            name: _in_order(function)
            for name in _overlapping(module.functions)
            if isinstance(function := module.functions[name], PrimFunc) and attribute(function.attrs, NOALIAS, True)
        }
        return module.with_functions({**module.functions, **marked}) if marked else module


def _in_order(kernel: PrimFunc) -> PrimFunc:
    def serial(node: object) -> For | None:
        several = isinstance(node, For) and node.kind in ("vectorized", "parallel")
        return replace(node, kind="serial") if several else None  # type: ignore[type-var]

    kernel = replace(kernel, body=rewrite(kernel.body, serial))
    return kernel.with_attr(NOALIAS, False).with_attr(SCHEDULED, True)


def _overlapping(functions: Mapping[str, BaseFunc]) -> set[str]:
    """The kernels that are called with memory that may overlap."""
    kernels = {name for name, function in functions.items() if isinstance(function, PrimFunc)}
    calls = {name: list(_calls(function, kernels)) for name, function in functions.items()}
    found: set[str] = set()
    pending = [name for name, called in calls.items() if called]
    while pending:
        name = pending.pop()
        for call in calls[name]:
            together = name in found or not attribute(call.caller.attrs, NOALIAS, True)
            callee = functions[call.callee]
            assert isinstance(callee, PrimFunc)
            if call.callee not in found and _may_overlap(call, callee, together):
                found.add(call.callee)
                pending.append(call.callee)  # its own parameters may overlap from now on
    return found


def _calls(function: BaseFunc, kernels: Collection[str]) -> Iterator[_KernelCall]:
    """The calls of kernels in a kernel."""
    if isinstance(function, PrimFunc) and any(isinstance(node, GlobalVar) for node in walk(function.body)):
        for node in walk(lower_blocks(function).body):
            if isinstance(node, PrimCall) and isinstance(node.op, GlobalVar) and node.op.name in kernels:
                yield _KernelCall(node.op.name, tuple(map(_memory, node.args)), function)


def _may_overlap(call: _KernelCall, callee: PrimFunc, together: bool) -> bool:
    written = written_buffers(callee)
    buffers = [
        (position, memory)
        for position, (memory, param) in enumerate(zip(call.memory, callee.params, strict=False))
        if isinstance(param, Buffer)
    ]
    return any(
        (callee.params[i] in written or callee.params[j] in written) and not _apart(one, other, call.caller, together)
        for (i, one), (j, other) in combinations(buffers, 2)
    )


def _memory(argument: object) -> Memory:
    if isinstance(argument, PrimCall) and argument.op == "address_of":
        argument = argument.args[0]
    if isinstance(argument, BufferLoad):
        argument = argument.buffer
    return memory_of(argument) if isinstance(argument, Buffer) else None


def _apart(one: Memory, other: Memory, caller: PrimFunc, together: bool) -> bool:
    if not isinstance(one, Buffer) or not isinstance(other, Buffer) or one is other:
        return False
    return not (together and one in caller.params and other in caller.params)
