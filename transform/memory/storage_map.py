"""What the text of a function says about its memory: storages, and the tensors that lie in them.

    storage = R.memory.alloc_storage(bytes);  x = R.memory.alloc_tensor(storage, offset, shape, dtype)

A tensor is live from its first use to the last one of it or of anything that may share its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.errors import Span
from weft.ir import Call, Function, IRModule, Op, PrimValue, ShapeExpr, TensorType, Var
from weft.ir.dim import Dim, evaluate
from weft.transform.analysis.lifetimes import Lifetimes
from weft.transform.memory.pack_memory import Request, live_bytes
from weft.transform.memory.plan_memory import tensor_bytes

__all__ = ["Place", "Storage", "storages_of"]


@dataclass(frozen=True, eq=False)
class Place:
    """A tensor in a storage: its first byte and the one after its last, and the steps between which it is live."""

    var: Var
    start: Dim
    end: Dim
    first: int
    last: int
    span: Span | None


@dataclass(eq=False)
class Storage:
    """A storage, its size in bytes and the tensors in it, in the order of the text."""

    var: Var
    size: Dim
    places: list[Place] = field(default_factory=list)

    def bytes_at(self, values: Mapping[str, int]) -> int:
        """Its size for values of the symbols."""
        return evaluate(self.size, values)

    def live_bytes_at(self, values: Mapping[str, int]) -> int:
        """The most bytes that are needed at one step: no plan of these tensors does with less."""
        return live_bytes([Request(place.end - place.start, place.first, place.last) for place in self.places], values)


def storages_of(function: Function, module: IRModule) -> list[Storage]:
    """The storages of a function."""
    lifetimes = Lifetimes(function, module.functions)
    found: dict[Var, Storage] = {}
    for binding in lifetimes.steps:
        call = binding.value
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            continue
        if call.op.name == "memory.alloc_storage" and isinstance(call.args[0], ShapeExpr):
            found[binding.var] = Storage(binding.var, call.args[0].dims[0])
        elif call.op.name == "memory.alloc_tensor":
            storage, offset = call.args[0], call.args[1]
            place = _place(binding.var, offset, lifetimes)
            if isinstance(storage, Var) and storage in found and place is not None:
                found[storage].places.append(place)
    return list(found.values())


def _place(var: Var, offset: object, lifetimes: Lifetimes) -> Place | None:
    if not isinstance(offset, PrimValue) or not isinstance(var.ty, TensorType) or var.ty.dims is None:
        return None
    start = offset.value
    assert not isinstance(start, (float, bool))
    last = lifetimes.last(var)
    return Place(var, start, start + tensor_bytes(var.ty), min(last, lifetimes.first(var)), last, var.span)
