"""CheckMemoryPlan: proof that tensors placed in one storage do not disturb each other.

It reads what stands in the text, `R.memory.alloc_tensor(storage, offset, shape, dtype)`, and knows nothing of how it
was planned. A tensor is live from its first use to the last one of it or of anything that may share its memory. Two
tensors of one storage that are live at one step must be proved to be apart, and every tensor to end inside of its
storage; what cannot be proved is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.errors import Span, VerifyError
from weft.ir import Call, Function, IRModule, Op, PrimValue, ShapeExpr, TensorType, Var
from weft.ir.dim import Dim, Facts, counterexample_le, prove_le
from weft.transform.base import FunctionPass
from weft.transform.lifetimes import Lifetimes
from weft.transform.plan_memory import bounds_of, tensor_bytes

__all__ = ["CheckMemoryPlan", "overlaps"]


@dataclass(frozen=True)
class CheckMemoryPlan(FunctionPass):
    """Refuse a module in which a tensor may be changed through another one that lies where it does.

    Raises: VerifyError W437 for two live tensors that are not proved to be apart, W438 for a tensor that is not proved
    to lie within its storage; both name the tensors and, when there is one, sizes at which it goes wrong.
    """

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The same function, when its plan is proved to be right."""
        for error in overlaps(function, module):
            raise error
        return function


@dataclass(frozen=True, eq=False)
class _Place:
    """A tensor in a storage: its bytes, and the steps between which it is live."""

    var: Var
    storage: Var
    start: Dim
    end: Dim
    first: int
    last: int
    span: Span | None


def overlaps(function: Function, module: IRModule) -> Iterator[VerifyError]:
    """What is wrong with the places of tensors in a function."""
    lifetimes = Lifetimes(function, module.functions)
    facts = bounds_of(function)
    places: dict[Var, list[_Place]] = {}
    sizes: dict[Var, Dim] = {}
    for binding in lifetimes.steps:
        call = binding.value
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            continue
        if call.op.name == "memory.alloc_storage" and isinstance(call.args[0], ShapeExpr):
            sizes[binding.var] = call.args[0].dims[0]
        elif call.op.name == "memory.alloc_tensor" and isinstance(call.args[0], Var):
            place = _place(binding.var, call, lifetimes)
            if place is not None:
                places.setdefault(place.storage, []).append(place)
    for storage, found in places.items():
        yield from _outside(found, sizes.get(storage), facts)
        yield from _clashes(found, facts)


def _place(var: Var, call: Call, lifetimes: Lifetimes) -> _Place | None:
    storage, offset = call.args[0], call.args[1]
    if not isinstance(storage, Var) or not isinstance(offset, PrimValue) or not isinstance(var.ty, TensorType):
        return None
    start = offset.value
    assert not isinstance(start, (float, bool))
    steps = [use.step for use in lifetimes.uses_of(var)] or [lifetimes.made[var]]
    return _Place(var, storage, start, start + tensor_bytes(var.ty), min(steps), max(steps), var.span)


def _outside(found: list[_Place], size: Dim | None, facts: Facts) -> Iterator[VerifyError]:
    for place in found:
        ends = size is not None and prove_le(place.end, size, facts) is True
        if not ends or prove_le(0, place.start, facts) is not True:
            notes = [] if size is None else _example(place.end, size, facts)
            room = "unknown size" if size is None else f"{size} bytes"
            yield VerifyError(
                f"{place.var.name!r} ends at byte {place.end} of a storage of {room}", code="W438", span=place.span,
                notes=notes,
            )  # fmt: skip


def _clashes(found: list[_Place], facts: Facts) -> Iterator[VerifyError]:
    for index, a in enumerate(found):
        for b in found[:index]:
            together = a.first <= b.last and b.first <= a.last
            if not together or prove_le(a.end, b.start, facts) is True or prove_le(b.end, a.start, facts) is True:
                continue
            yield VerifyError(
                f"{b.var.name!r} (bytes {b.start} to {b.end}) and {a.var.name!r} (bytes {a.start} to {a.end}) are not "
                f"proved to be apart, and both are in use at step {max(a.first, b.first)}",
                code="W437", span=a.span, notes=_example(b.end, a.start, facts),
            )  # fmt: skip


def _example(a: Dim, b: Dim, facts: Facts) -> list[str]:
    found = counterexample_le(a, b, facts)
    return [] if not found else [f"for example {', '.join(f'{name}={value}' for name, value in sorted(found.items()))}"]
