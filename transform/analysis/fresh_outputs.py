"""Which parameters of kernels get memory that nothing was written to yet, call by call.

    R.call_tir(k, (x,), out_ty)                  what comes after the inputs
    R.call_tir_inplace(k, (x,), [-1], out_ty)    what is -1 among its indices, after the inputs
    t = R.builtin.alloc_tensor(...); k(x, t)     a fresh tensor, in the first call that it occurs in

A fresh tensor that is used in any other way first is read before it is written: UnwrittenError W901.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from weft.errors import Span, UnwrittenError
from weft.ir.attrs import DPS
from weft.ir.graph import Binding, Call, Function, GlobalVar, If, Op, SeqExpr, Tuple, Var, VarBinding
from weft.ir.module import IRModule
from weft.ir.structure.visit import walk
from weft.ir.tensor import PrimFunc
from weft.ir.types import TupleType
from weft.support.records import dataclass

__all__ = ["output_positions"]

Found = tuple[Call, str, tuple[int, ...]]
_KERNEL_CALLS = ("call_tir", "call_tir_with_grad", "call_tir_inplace")
_FRESH = ("builtin.alloc_tensor", "memory.alloc_tensor", "vm.alloc_tensor")
_SEEN_AGAIN = ("memory.view", "memory.ensure_zero_offset")
_RELEASED = ("memory.kill_tensor", "memory.kill_storage", "vm.kill_object")


def output_positions(function: Function, module: IRModule) -> Iterator[Found]:
    """Calls of kernels in a graph function, the kernel, and the positions of parameters that hold nothing yet."""
    for part in walk(function.body):
        if isinstance(part, Call):
            found = _allocated_by(part, module)
            if found is not None:
                yield found
        elif isinstance(part, SeqExpr):
            yield from _Sequence(module).calls(part)


def _allocated_by(call: Call, module: IRModule) -> Found | None:
    """A call that allocates the outputs of its kernel."""
    if not isinstance(call.op, Op) or call.op.name not in _KERNEL_CALLS or not call.ty_args:
        return None
    callee = call.args[0]
    kernel = module.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
    if not isinstance(callee, GlobalVar) or not isinstance(kernel, PrimFunc):
        return None
    first = _count(call.args[1]) if len(call.args) > 1 else 0
    count = len(call.ty_args[0].fields) if isinstance(call.ty_args[0], TupleType) else 1
    if call.op.name == "call_tir_inplace":
        count = sum(index < 0 for index in call.attrs["inplace_indices"])
    return call, callee.name, tuple(range(first, min(first + count, len(kernel.params))))


def _count(inputs: Any) -> int:
    """How many inputs a call has."""
    if isinstance(inputs, Tuple):
        return len(inputs.fields)
    return len(inputs.ty.fields) if isinstance(inputs, Var) and isinstance(inputs.ty, TupleType) else 1


@dataclass
class _Sequence:
    """The fresh tensors of one sequence of bindings, each with the one that it is a view of."""

    module: IRModule
    fresh: dict[Var, Var] = field(default_factory=dict[Var, Var])

    def calls(self, seq: SeqExpr) -> Iterator[Found]:
        """The calls of kernels in the sequence itself that write fresh tensors first."""
        for block in seq.blocks:
            for binding in block.bindings:
                yield from self._binding(binding)
        self._read([seq.body], seq.body.span)

    def _binding(self, binding: Binding) -> Iterator[Found]:
        value = binding.value
        if isinstance(value, Call) and isinstance(value.op, Op):
            name = value.op.name
            if name in _FRESH:
                self.fresh[binding.var] = binding.var
                return
            if name in _SEEN_AGAIN and value.args[0] in self.fresh:
                self.fresh[binding.var] = self.fresh[value.args[0]]  # type: ignore[index]
                return
            if name in _RELEASED:
                return
        elif isinstance(value, Call) and self.fresh:
            written = [arg for arg in value.args if arg in self.fresh]
            kernel = self.module.functions.get(value.op.name) if isinstance(value.op, GlobalVar) else None
            if written and isinstance(value.op, GlobalVar) and isinstance(kernel, PrimFunc):
                yield value, value.op.name, tuple(i for i, arg in enumerate(value.args) if arg in self.fresh)
            if isinstance(kernel, PrimFunc) or value.attrs.get(DPS):
                self._written(written)
        elif isinstance(binding, VarBinding) and isinstance(value, Var) and value in self.fresh:
            self.fresh[binding.var] = self.fresh[value]
            return
        self._read([value.cond, value.then_branch, value.else_branch] if isinstance(value, If) else [value], value.span)

    def _written(self, tensors: Iterable[Any]) -> None:
        sources = {self.fresh[tensor] for tensor in tensors}
        self.fresh = {var: source for var, source in self.fresh.items() if source not in sources}

    def _read(self, parts: Iterable[Any], span: Span | None) -> None:
        if not self.fresh:
            return
        for part in parts:
            for used in walk(part):
                if isinstance(used, Var) and used in self.fresh:
                    message = f"the tensor {used.name!r} is read before it is written"
                    raise UnwrittenError(message, span=span or used.span)
