"""LowerToMemory: graph functions with explicit memory, the form that executors and code generation read.

    y = R.call_tir(k, (x,), out_ty)      y = R.builtin.alloc_tensor(shape, dtype, 0, "global");  k(x, y)
    (several outputs)                    one allocation each, then y = (y_0, y_1, ...)
    R.call_tir(..., tir_vars=(n,))       k(x, y, R.prim_value(n))
    R.call_tir_inplace(k, (x,), [0])     k(x);  y = x                  (-1 among the indices: an allocation)
    R.call_dps_packed("f", (x,), out)    y = alloc;  R.call_packed("f", x, y) with dps=True

No dataflow blocks are left. Calls that return a value of their own (packed functions, closures) stay. A pure function
stays declared pure: its effects are on memory of its own. Operators that have no kernel (run `LegalizeOps` first) and
unknown ones stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.errors import PassError, Span
from weft.ir import (
    Binding,
    Call,
    Expr,
    FrozenMap,
    Function,
    IRModule,
    Op,
    PrimValue,
    ShapeExpr,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    VDevice,
    replace,
)
from weft.ir.infer import type_text
from weft.ir.op import get_op
from weft.transform.base import FunctionPass
from weft.transform.rewriting import derived, void_binding
from weft.transform.to_non_dataflow import PlainBlocks

__all__ = ["LowerToMemory"]

_DPS = FrozenMap({"dps": True})


@dataclass(frozen=True)
class LowerToMemory(FunctionPass):
    """Make allocations explicit: kernels and library calls write into tensors that the function allocates.

    Raises: PassError W530 when the shape or dtype of an output is not known.
    """

    aliases: ClassVar[tuple[str, ...]] = ("memory",)

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function in explicit-memory form."""
        return _Lowering(self.text_name).run(function)


class _Lowering(PlainBlocks):
    """Plain blocks in which calls that return fresh tensors are split into allocations and calls."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin = origin

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        plain = super().rewrite_binding(binding)
        if not isinstance(plain, VarBinding) or not isinstance(plain.value, Call) or not isinstance(plain.value.op, Op):
            return plain
        lower = _RULES.get(plain.value.op.name)
        return plain if lower is None else lower(self, plain, plain.value)

    def kernel_call(self, binding: VarBinding, call: Call) -> list[Binding]:
        """call_tir and call_tir_with_grad: inputs, outputs, scalars."""
        span = derived(binding.span, self.origin)
        new: list[Binding] = []
        inputs = self.inputs(call, span, new)
        outputs = self.outputs(binding.var, call.ty_args[0], span, new)
        new.append(void_binding(Call(call.args[0], (*inputs, *outputs, *_scalars(call, span)), span=span), span))
        return _with_result(binding, call.ty_args[0], outputs, new, span)

    def inplace_kernel_call(self, binding: VarBinding, call: Call) -> list[Binding]:
        """call_tir_inplace: some outputs are inputs, which the kernel overwrites."""
        span = derived(binding.span, self.origin)
        new: list[Binding] = []
        inputs = self.inputs(call, span, new)
        types = _output_types(call.ty_args[0])
        indices = call.attrs["inplace_indices"]
        outputs: list[Expr] = [
            self.allocate(Var(f"{binding.var.name}_{i}", ty), ty, span, new) if index < 0 else inputs[index]
            for i, (index, ty) in enumerate(zip(indices, types, strict=True))
        ]
        fresh = [output for output, index in zip(outputs, indices, strict=True) if index < 0]
        new.append(void_binding(Call(call.args[0], (*inputs, *fresh, *_scalars(call, span)), span=span), span))
        result = outputs[0] if not isinstance(call.ty_args[0], TupleType) else Tuple(tuple(outputs), span=span)
        new.append(replace(binding, value=result, span=span))
        return new

    def library_call(self, binding: VarBinding, call: Call) -> list[Binding]:
        """call_dps_packed: the external function writes into the outputs, which come last."""
        span = derived(binding.span, self.origin)
        new: list[Binding] = []
        inputs = self.inputs(call, span, new)
        outputs = self.outputs(binding.var, call.ty_args[0], span, new)
        new.append(void_binding(Call(call.args[0], (*inputs, *outputs), attrs=_DPS, span=span), span))
        return _with_result(binding, call.ty_args[0], outputs, new, span)

    def inputs(self, call: Call, span: Span | None, new: list[Binding]) -> list[Expr]:
        """The single arguments; the fields of a tuple variable are taken out first."""
        given = call.args[1] if len(call.args) > 1 else Tuple(())
        if isinstance(given, Tuple):
            return list(given.fields)
        if not isinstance(given, Var) or not isinstance(given.ty, TupleType):
            return [given]
        items: list[Expr] = []
        for index, ty in enumerate(given.ty.fields):
            item = Var(f"{given.name}_{index}", ty, span=span)
            new.append(VarBinding(item, TupleGetItem(given, index, span=span), span=span))
            items.append(item)
        return items

    def outputs(self, var: Var, ty: Type, span: Span | None, new: list[Binding]) -> list[Expr]:
        """The allocated outputs; a single one is the bound variable itself."""
        if not isinstance(ty, TupleType):
            return [self.allocate(var, ty, span, new)]
        return [
            self.allocate(Var(f"{var.name}_{i}", field, span=span), field, span, new)
            for i, field in enumerate(ty.fields)
        ]

    def allocate(self, var: Var, ty: Type, span: Span | None, new: list[Binding]) -> Var:
        """Bind the variable to fresh memory of the type."""
        if not isinstance(ty, TensorType) or ty.shape is None or ty.dtype is None:
            raise PassError(
                f"no memory can be allocated for {var.name!r}: its type is {type_text(ty)}", code="W530", span=span,
                hint="state the shape and dtype in out_ty",
            )  # fmt: skip
        shape = ty.shape if isinstance(ty.shape, Var) else ShapeExpr(ty.shape, span=span)
        scope = ty.vdevice.scope if isinstance(ty.vdevice, VDevice) else "global"
        options = {"dtype": ty.dtype, "runtime_device_index": 0, "storage_scope": scope}
        new.append(VarBinding(var, get_op("builtin.alloc_tensor").bind((shape,), options, span), span=span))
        return var


def _scalars(call: Call, span: Span | None) -> list[Expr]:
    """The symbolic scalars that a call hands to the kernel after its outputs."""
    if len(call.args) < 3:
        return []
    given = call.args[2]
    if isinstance(given, ShapeExpr):
        return [PrimValue(dim, "int64", span=span) for dim in given.dims]
    return list(given.fields) if isinstance(given, Tuple) else [given]


def _output_types(ty: Type) -> tuple[Type, ...]:
    return ty.fields if isinstance(ty, TupleType) else (ty,)


def _with_result(
    binding: VarBinding, ty: Type, outputs: list[Expr], new: list[Binding], span: Span | None
) -> list[Binding]:
    """The bindings, and the tuple of the outputs where there are several."""
    if isinstance(ty, TupleType):
        new.append(replace(binding, value=Tuple(tuple(outputs), span=span), span=span))
    return new


_RULES: dict[str, Callable[[_Lowering, VarBinding, Call], Binding | list[Binding]]] = {
    "call_tir": _Lowering.kernel_call,
    "call_tir_with_grad": _Lowering.kernel_call,
    "call_tir_inplace": _Lowering.inplace_kernel_call,
    "call_dps_packed": _Lowering.library_call,
}
