"""Memory pools: which request for memory goes to which pool of limited size, that its users may write.

    plan(requests) -> (offsets, total)        no two requests that live at one time overlap

A planner is any function of that form, asked for one pool at a time, whose answers are checked
(`weft.transform.memory.planners`); `greedy` is the planner of the whole compiler for sizes that are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import TargetError
from weft.support.records import dataclass, record
from weft.target import Target
from weft.transform.memory.pack_memory import Request, pack
from weft.transform.memory.planners import Planner, checked_plan

__all__ = ["ALIGNMENT", "DEFAULT_POOLS", "Placement", "Planner", "Pool", "greedy", "place", "pools_of"]

ALIGNMENT = 16
"""Bytes: where tensors begin in the memory of a C program."""


def greedy(requests: Sequence[Request], alignment: int = ALIGNMENT) -> tuple[list[int], int]:
    """The offsets of `weft.transform.memory.pack_memory.pack` for sizes that are known, and the bytes of the whole.

    >>> greedy([Request(32, 0, 1), Request(16, 1, 2), Request(32, 2, 3)])
    ([0, 32, 0], 48)
    """
    found = pack(requests, alignment=alignment)
    return [int(offset) for offset in found.offsets], int(found.total)  # type: ignore[arg-type]


@record
class Pool:
    """Memory that the caller gives: at most `size` bytes (None: as many as are needed).

    `writers` are the labels of the parts of the target that may write it (None: all), `constant` one that holds
    constants only.
    """

    name: str
    size: int | None = None
    writers: frozenset[str] | None = None
    constant: bool = False

    def serves(self, users: frozenset[str]) -> bool:
        """Whether all of some parts may write it."""
        return not self.constant and (self.writers is None or users <= self.writers)


DEFAULT_POOLS = (Pool("workspace"),)


def pools_of(target: Target | None) -> tuple[Pool, ...]:
    """The memory pools of a configuration in order; one without a limit for every other target.

    >>> pools_of(Target("config -memory.sram.bytes=16K { main: c }"))[0].size
    16384
    """
    memory = target.options.get("memory") if target is not None and target.kind.name == "config" else None
    if not memory:
        return DEFAULT_POOLS
    pools = []
    for name, facts in memory.items():
        constant = bool(facts.get("ro")) and "rw" not in facts
        writers = None if "rw" not in facts else frozenset(facts["rw"])
        pools.append(Pool(name, facts.get("bytes"), writers, constant))
    if all(pool.constant for pool in pools):
        pools.append(*DEFAULT_POOLS)
    return tuple(pools)


@dataclass(frozen=True)
class Placement:
    """The pool and the offset of each request, and the bytes that each pool needs."""

    places: tuple[tuple[str, int], ...]
    sizes: dict[str, int]


def place(
    requests: Sequence[Request], users: Sequence[frozenset[str]], pools: Sequence[Pool], planner: Planner = greedy
) -> Placement:
    """Give every request to the first pool that its users may write and that has room for it.

    Raises: TargetError W746 for what fits nowhere, with the numbers; W754 for a wrong answer of the planner.

    >>> place([Request(32, 0, 1), Request(16, 1, 2)], [frozenset("a"), frozenset("b")], DEFAULT_POOLS).sizes
    {'workspace': 48}
    """
    places: dict[int, tuple[str, int]] = {}
    sizes = {pool.name: 0 for pool in pools if not pool.constant}
    for pool in pools:
        waiting = [i for i in range(len(requests)) if i not in places and pool.serves(users[i])]
        chosen, offsets, total = _fitting(requests, waiting, pool, planner)
        places.update({index: (pool.name, offset) for index, offset in zip(chosen, offsets, strict=True)})
        if not pool.constant:
            sizes[pool.name] = -(-total // ALIGNMENT) * ALIGNMENT
    left = [index for index in range(len(requests)) if index not in places]
    if left:
        raise _overflow(requests, users, left, pools, planner)
    return Placement(tuple(places[index] for index in range(len(requests))), sizes)


def _fitting(
    requests: Sequence[Request], waiting: list[int], pool: Pool, planner: Planner
) -> tuple[list[int], list[int], int]:
    """Which requests a pool takes, and where: all of them if it can, else the largest ones first."""
    offsets, total = checked_plan(planner, [requests[index] for index in waiting])
    if pool.size is None or total <= pool.size:
        return waiting, offsets, total
    chosen: list[int] = []
    offsets, total = [], 0
    for index in sorted(waiting, key=lambda i: (-requests[i].size, i)):
        new, needed = checked_plan(planner, [requests[i] for i in [*chosen, index]])
        if needed <= pool.size:
            chosen, offsets, total = [*chosen, index], new, needed
    return chosen, offsets, total


def _overflow(
    requests: Sequence[Request],
    users: Sequence[frozenset[str]],
    left: list[int],
    pools: Sequence[Pool],
    planner: Planner,
) -> TargetError:
    worst = max(left, key=lambda index: requests[index].size)
    labels = ", ".join(sorted(label for label in users[worst] if label))
    able = [pool for pool in pools if pool.serves(users[worst])]
    who = f" that {labels} may write" if labels else ""
    if not able:
        return TargetError(f"no memory pool{who} is there for a tensor of {requests[worst].size} bytes", code="W746")
    whole = [index for index in range(len(requests)) if users[index] == users[worst]]
    _, needed = checked_plan(planner, [requests[index] for index in whole])
    have = ", ".join(f"{pool.name!r} has {pool.size} bytes" for pool in able)
    return TargetError(
        f"memory overflow: the tensors{who} need {needed} bytes at one time, {have}",
        code="W746",
        notes=[f"no room is left for {len(left)} of {len(requests)}, the largest of {requests[worst].size} bytes"],
        hint="give a pool more bytes, or compile for fewer at a time",
    )
