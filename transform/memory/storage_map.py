"""What the text of a function says about its memory: storages, and the tensors that lie in them.

    storage = R.memory.alloc_storage(bytes);  x = R.memory.alloc_tensor(storage, offset, shape, dtype)

A tensor is live from its first use to the last one of it or of anything that may share its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from weft.dtypes import storage
from weft.errors import Span
from weft.ir import Call, Function, IRModule, Op, PrimValue, ShapeExpr, TensorType, Var, VarBinding, walk
from weft.ir.dim import Dim, evaluate, product
from weft.support.records import dataclass
from weft.transform.analysis.lifetimes import Lifetimes
from weft.transform.memory.pack_memory import Request, live_bytes
from weft.transform.memory.plan_memory import tensor_bytes

__all__ = ["Place", "Storage", "storages_of", "tensors_in_storages"]

_STORAGES = ("memory.alloc_storage", "vm.alloc_storage")
_TENSORS = ("memory.alloc_tensor", "vm.alloc_tensor")


@dataclass(frozen=True, eq=False)
class Place:
    """A tensor in a storage: its first byte and the one after its last, and the steps between which it is live."""

    var: Var
    start: Dim
    end: Dim
    first: int
    last: int
    span: Span | None

    @property
    def item_bytes(self) -> int:
        """The bytes of one element."""
        assert isinstance(self.var.ty, TensorType)
        return storage(self.var.ty.dtype or "uint8").itemsize


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
        if call.op.name in _STORAGES and isinstance(call.args[0], ShapeExpr):
            found[binding.var] = Storage(binding.var, product(call.args[0].dims) * _item_bytes(call))
        elif call.op.name in _TENSORS:
            block, offset = call.args[0], call.args[1]
            place = _place(binding.var, offset, lifetimes)
            if isinstance(block, Var) and block in found and place is not None:
                found[block].places.append(place)
    return list(found.values())


def tensors_in_storages(function: Function) -> list[Var]:
    """The variables that a function, with all that is inside of it, places in storages.

    >>> from weft.ir import SeqExpr
    >>> from weft.ir.graph import Tuple
    >>> from weft.ir.types import TupleType
    >>> tensors_in_storages(Function((), SeqExpr((), Tuple(())), TupleType(())))
    []
    """
    bindings = (part for part in walk(function.body) if isinstance(part, VarBinding) and isinstance(part.value, Call))
    return [binding.var for binding in bindings if getattr(binding.value.op, "name", "") in _TENSORS]  # type: ignore[attr-defined]


def _item_bytes(call: Call) -> int:
    dtype = call.attrs.get("dtype")
    return storage(str(getattr(dtype, "value", dtype) or "uint8")).itemsize


def _place(var: Var, offset: object, lifetimes: Lifetimes) -> Place | None:
    if not isinstance(offset, PrimValue) or not isinstance(var.ty, TensorType) or var.ty.dims is None:
        return None
    start = offset.value
    assert not isinstance(start, (float, bool))
    last = lifetimes.last(var)
    return Place(var, start, start + tensor_bytes(var.ty), min(last, lifetimes.first(var)), last, var.span)
