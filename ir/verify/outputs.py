"""Whether a kernel sets an output: what can be said before it runs.

An output holds nothing when the kernel starts. It is certainly not set when no store names it, when every store to it
needs its old value, or when all stores stay short of one of its ends.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from weft.ir.dim import prove_lt
from weft.ir.kernel.regions import Access, Bounds, accesses
from weft.ir.node import Node
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import walk
from weft.ir.tensor import Block, Buffer, BufferLoad, BufferStore, DeclBuffer, PrimFunc

__all__ = ["stored_buffers", "unset_output", "updates_itself"]

_known: WeakKeyDictionary[PrimFunc, dict[Buffer, str | None]] = WeakKeyDictionary()


def unset_output(kernel: PrimFunc, output: Buffer) -> str | None:
    """What is wrong with an output of a kernel, or None when nothing provably is."""
    known = _known.setdefault(kernel, {})
    if output not in known:
        known[output] = _problem(kernel, output)
    return known[output]


_stored: WeakKeyDictionary[PrimFunc, frozenset[Buffer]] = WeakKeyDictionary()


def stored_buffers(kernel: PrimFunc) -> frozenset[Buffer]:
    """The buffers that stores of a kernel name."""
    found = _stored.get(kernel)
    if found is None:
        found = _stored[kernel] = frozenset(node.buffer for node in walk(kernel.body) if isinstance(node, BufferStore))
    return found


_accessed: WeakKeyDictionary[PrimFunc, dict[Buffer, list[Access] | None]] = WeakKeyDictionary()


def _accesses_of(kernel: PrimFunc, output: Buffer) -> list[Access] | None:
    """The accesses to a buffer, None where others view it; the kernel is read once for all of its outputs."""
    known = _accessed.get(kernel)
    if known is None:
        found: dict[Buffer, list[Access]] = {}
        for access in accesses(kernel.body, Bounds()):
            found.setdefault(access.buffer, []).append(access)
        viewed = [buffer for node in walk(kernel.body) for buffer in _viewed(node)]
        known = _accessed[kernel] = {**found, **dict.fromkeys(viewed)}
    return known.get(output, [])


def _problem(kernel: PrimFunc, output: Buffer) -> str | None:
    found = _accesses_of(kernel, output)
    if found is None:
        return None
    if any(access.kind == "opaque" for access in found):
        return None
    writes = [access for access in found if access.kind == "write"]
    if not writes:
        return f"does not write its output {output.name!r}"
    if all(updates_itself(access.node) for access in writes):
        return f"reads its output {output.name!r} before it sets it: an init is missing"
    for position, extent in enumerate(output.shape):
        size = writes[0].bounds.of(extent)
        if size is not None and _short(writes, position, size.low - 1):
            return f"does not write its output {output.name!r} up to both ends of dimension {position}"
    return None


def _viewed(node: Node) -> list[Buffer]:
    """The buffers that a node makes another view of, through which they may be written."""
    if isinstance(node, Block):
        return [match.source.buffer for match in node.match_buffers]
    if isinstance(node, DeclBuffer) and node.buffer.data is not None:
        return [item.buffer for item in walk(node.buffer.data) if isinstance(item, BufferLoad)]
    return []


def _short(writes: list[Access], position: int, last: object) -> bool:
    """Whether no write reaches the first, or the last, index of a dimension."""
    intervals = [access.intervals[position] if position < len(access.intervals) else None for access in writes]
    if any(interval is None for interval in intervals):
        return False
    above = all(interval is not None and prove_lt(0, interval.low) for interval in intervals)
    below = all(interval is not None and prove_lt(interval.high, last) for interval in intervals)  # type: ignore[arg-type]
    return above or below


def updates_itself(node: Node) -> bool:
    """Whether a store needs the old value of the element it sets."""
    return isinstance(node, BufferStore) and any(
        isinstance(part, BufferLoad) and part.buffer is node.buffer and structural_equal(part.indices, node.indices)
        for part in walk(node.value)
    )
