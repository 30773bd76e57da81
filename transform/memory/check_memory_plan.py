"""CheckMemoryPlan: proof that tensors placed in one storage do not disturb each other.

It reads what stands in the text (`weft.transform.memory.storage_map`) and knows nothing of how it was planned. Two
tensors
of one storage that are live at one step must be proved to be apart, and every tensor to end inside of its storage;
what cannot be proved is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.errors import VerifyError
from weft.ir import Function, IRModule
from weft.ir.dim import Dim, Facts, counterexample_le, prove_equal, prove_le
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.memory.plan_memory import bounds_of
from weft.transform.memory.storage_map import Storage, storages_of, tensors_in_storages

__all__ = ["CheckMemoryPlan", "plan_errors"]


@dataclass(frozen=True)
class CheckMemoryPlan(FunctionPass):
    """Refuse a module in which a tensor may be changed through another one that lies where it does.

    Raises: VerifyError W437 for two live tensors that are not proved to be apart, W438 for a tensor that is not proved
    to lie within its storage; both name the tensors and, when there is one, sizes at which it goes wrong.
    """

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The same function, when its plan is proved to be right."""
        for error in plan_errors(function, module):
            raise error
        return function


def plan_errors(function: Function, module: IRModule) -> Iterator[VerifyError]:
    """What is wrong with the places of tensors in a function."""
    tensors = tensors_in_storages(function)
    if not tensors:
        return
    facts, storages = bounds_of(function), storages_of(function, module)
    placed = {place.var for storage in storages for place in storage.places}
    for var in tensors:
        if var not in placed:
            yield VerifyError(f"of {var.name!r} nobody can tell where it lies in a storage", code="W438", span=var.span)
    for storage in storages:
        yield from _outside(storage, facts)
        yield from _clashes(storage, facts)


def _outside(storage: Storage, facts: Facts) -> Iterator[VerifyError]:
    for place in storage.places:
        inside = prove_le(place.end, storage.size, facts) is True and prove_le(0, place.start, facts) is True
        if not inside or prove_equal(place.start % place.item_bytes, 0) is not True:
            yield VerifyError(
                f"{place.var.name!r} lies in bytes {place.start} to {place.end} of a storage of {storage.size}",
                code="W438",
                span=place.span,
                notes=_example(place.end, storage.size, facts),
            )


def _clashes(storage: Storage, facts: Facts) -> Iterator[VerifyError]:
    for index, a in enumerate(storage.places):
        for b in storage.places[:index]:
            together = a.first <= b.last and b.first <= a.last
            if not together or prove_le(a.end, b.start, facts) is True or prove_le(b.end, a.start, facts) is True:
                continue
            yield VerifyError(
                f"{b.var.name!r} (bytes {b.start} to {b.end}) and {a.var.name!r} (bytes {a.start} to {a.end}) are not "
                f"proved to be apart, and both are in use at step {max(a.first, b.first)}",
                code="W437",
                span=a.span,
                notes=_example(b.end, a.start, facts),
            )


def _example(a: Dim, b: Dim, facts: Facts) -> list[str]:
    found = counterexample_le(a, b, facts)
    return [] if not found else [f"for example {', '.join(f'{name}={value}' for name, value in sorted(found.items()))}"]
