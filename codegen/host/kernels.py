"""What the callers of a kernel need to know about it: what it writes, what may share memory, what it returns."""

from __future__ import annotations

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any

from weft.ir.attrs import NOALIAS, attribute
from weft.ir.graph import GlobalVar
from weft.ir.kernel.intrinsics import WRITES_FIRST
from weft.ir.kernel.views import ADDRESSES
from weft.ir.node import Node
from weft.ir.structure.visit import nodes_of, walk
from weft.ir.tensor import Block, Buffer, BufferLoad, BufferStore, DeclBuffer, PrimCall, PrimFunc
from weft.ir.types import PrimType
from weft.transform.memory.share_memory import SHARES_MEMORY

__all__ = ["is_noalias", "result_dtype", "shared_positions", "written_positions"]

_READ_ONLY_CALLS = frozenset(
    {
        *ADDRESSES,
        "call_pure_extern",
        "end_profile_intrinsic",
        "if_then_else",
        "print_buffer",
        "start_profile_intrinsic",
    }
)


def written_positions(function: PrimFunc, functions: Mapping[str, Any] = MappingProxyType({})) -> set[int]:
    """The positions of the buffer parameters that the function may write (directly, through a view or a call).

    `functions` are those that it may call: what is not among them writes all that it is given, and so does one that
    calls itself.
    """
    return _written(function, functions, {})


def _written(function: PrimFunc, functions: Mapping[str, Any], known: dict[str, Container[int]]) -> set[int]:
    """What the function may write; `known` is that of functions that were looked at, and of those that are."""
    written: set[Buffer] = set()
    sources: dict[Buffer, set[Buffer]] = {}
    for current in nodes_of(function, BufferStore, DeclBuffer, Block, PrimCall):
        if isinstance(current, BufferStore):
            written.add(current.buffer)
        elif isinstance(current, DeclBuffer) and current.buffer.data is not None:
            sources[current.buffer] = {x.buffer for x in walk(current.buffer.data) if isinstance(x, BufferLoad)}
        elif isinstance(current, Block):
            for match in current.match_buffers:
                sources[match.buffer] = {match.source.buffer}
        elif isinstance(current, PrimCall) and not (isinstance(current.op, str) and current.op in _READ_ONLY_CALLS):
            given = _written_by(current, functions, known)
            for position, arg in enumerate(current.args):
                if position not in given:
                    continue
                if isinstance(arg, Buffer):
                    written.add(arg)
                else:
                    written |= _pointed_at(arg)
    changed = True
    while changed:
        before = len(written)
        for view, origins in sources.items():
            if view in written:
                written |= origins
        changed = len(written) != before
    return {i for i, param in enumerate(function.params) if isinstance(param, Buffer) and param in written}


def _written_by(call: PrimCall, functions: Mapping[str, Any], known: dict[str, Container[int]]) -> Container[int]:
    """The arguments of a call that it may write."""
    if call.op in WRITES_FIRST:
        return (0,)
    name = call.op.name if isinstance(call.op, GlobalVar) else ""
    callee = functions.get(name)
    if not isinstance(callee, PrimFunc):
        return range(len(call.args))
    if name not in known:
        known[name] = range(len(call.args))  # where it calls itself
        known[name] = _written(callee, functions, known)
    return known[name]


def _pointed_at(arg: Node) -> set[Buffer]:
    """The buffers of whose elements an argument holds the address, however it was chosen."""
    taken = (part.args[0] for part in walk(arg) if isinstance(part, PrimCall) and part.op in ADDRESSES and part.args)
    return {element.buffer for element in taken if isinstance(element, BufferLoad)}


def shared_positions(function: PrimFunc) -> dict[int, set[int]]:
    """For each buffer parameter that may be given the memory of others (`weft.transform.memory.share_memory`),
    which."""
    found: dict[int, set[int]] = {}
    for given, output in function.attrs.get(SHARES_MEMORY, ()):
        found.setdefault(int(given), set()).add(int(output))
        found.setdefault(int(output), set()).add(int(given))
    return found


def result_dtype(function: PrimFunc) -> str:
    """The dtype of the scalar that a function returns; empty when it returns none."""
    return (
        function.ret_type.dtype if isinstance(function.ret_type, PrimType) and function.ret_type.dtype != "void" else ""
    )


def is_noalias(function: PrimFunc) -> bool:
    """Whether the code may assume that a buffer it writes overlaps no other one (callers see to it unless told not to).

    Graph functions pass fresh outputs, or copies; the runtime copies arrays that overlap.
    """
    return bool(attribute(function.attrs, NOALIAS, True))
