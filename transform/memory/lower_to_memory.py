"""LowerToMemory: graph functions with explicit memory, the form that executors and code generation read.

    y = R.call_tir(k, (x,), out_ty)      y = R.builtin.alloc_tensor(shape, dtype, 0, "global");  k(x, y)
    (several outputs)                    one allocation each, then y = (y_0, y_1, ...)
    R.call_tir(..., tir_vars=(n,))       k(x, y, R.prim_value(n))
    R.call_tir_inplace(k, (x,), [0])     k(x);  y = x                  (-1 among the indices: an allocation;
                                         a parameter, constant or value that is used again is copied first)
    R.loop(body, (x,), overwrites=[0])   x is copied before the loop, where something else has it or needs it
    R.call_dps_packed("f", (x,), out)    y = alloc;  R.call_packed("f", x, y) with dps=True

No dataflow blocks are left. Calls that return a value of their own (packed functions, closures) stay. A pure function
stays declared pure: its effects are on memory of its own. Operators that have no kernel (run `LegalizeOps` first) and
unknown ones stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from weft.errors import PassError, Span
from weft.ir import (
    Binding,
    Call,
    Expr,
    FrozenMap,
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
from weft.ir.attrs import DPS
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type, type_text
from weft.ir.kernel.extents import check_extents
from weft.ir.op import get_op
from weft.ir.op.common import kernel_call
from weft.support.records import dataclass
from weft.transform.analysis.ownership import loop_parts, overwritable
from weft.transform.graph.to_non_dataflow import PlainBlocks
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import derived, void_binding

__all__ = ["LowerToMemory"]

_DPS = FrozenMap({DPS: True})


@dataclass(frozen=True)
class LowerToMemory(Pass):
    """Make allocations explicit: kernels and library calls write into tensors that the function allocates.

    Raises: PassError W530 when the shape or dtype of an output is not known.
    """

    aliases: ClassVar[tuple[str, ...]] = ("memory", "call-tir-rewrite")

    @classmethod
    def sample(cls, choices: Choices) -> tuple[LowerToMemory, str]:
        """A call of a kernel, and one that may write over what it reads."""
        size = choices.pick((4, 1, 7))
        second = choices.pick(
            (
                f'R.call_tir(Module.scale, (y,), out_ty=R.Tensor(({size},), "float32"))',
                f'R.call_tir_inplace(Module.double, (y,), [0], out_ty=R.Tensor(({size},), "float32"))',
            )
        )
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(x: T.Buffer(({size},), "float32"), y: T.Buffer(({size},), "float32")):
        for i in range({size}):
            y[i] = x[i] * T.float32(3)

    @T.prim_func(private=True)
    def double(x: T.Buffer(({size},), "float32")):
        for i in range({size}):
            x[i] = x[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor(({size},), "float32")):
        with R.dataflow():
            y = R.call_tir(Module.scale, (x,), out_ty=R.Tensor(({size},), "float32"))
            z = {second}
            R.output(z)
        return z
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Bring every graph function into explicit-memory form; kernels that copy are added where they are needed."""
        builder = BlockBuilder(module)
        found = overwritable(module.functions)
        new = map_functions(module, lambda name, function: _Lowering(self.text_name, builder, found).run(function))
        added = {name: function for name, function in builder.get().items() if name not in module}
        return new.with_functions({**new.functions, **added}) if added else new


class _Lowering(PlainBlocks):
    """Plain blocks in which calls that return fresh tensors are split into allocations and calls."""

    def __init__(self, origin: str, builder: BlockBuilder, overwritable: Mapping[Var, frozenset[int]]) -> None:
        super().__init__()
        self.origin = origin
        self.builder = builder
        self.overwritable = overwritable
        self.allowed: frozenset[int] = frozenset()  # the operands of the call at hand that it may write over

    def copied(self, value: Expr, span: Span | None, new: list[Binding]) -> Var:
        """A copy of a tensor in memory of its own."""
        context = TypeContext()
        ty = infer_type(value, context)
        call = get_op("astype").bind((value, ty.dtype if isinstance(ty, TensorType) else None), {}, span)
        kernel = get_op("astype").lower(call, context, "copy")
        var = self.fresh(f"{getattr(value, 'name', 'value')}_copy", ty, span)
        if kernel is None:
            self.allocate(var, ty, span, new)  # refuses with the reason
            raise PassError(f"a value of type {type_text(ty)} cannot be copied", code="W530", span=span)
        callee = self.builder.add_func(replace(kernel, private=True), "copy")
        new.extend(self.kernel_call(VarBinding(var, kernel_call(call, kernel, callee, context), span=span)))
        return var

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        plain = super().rewrite_binding(binding)
        if not isinstance(plain, VarBinding) or not isinstance(plain.value, Call) or not isinstance(plain.value.op, Op):
            return plain
        lower = _RULES.get(plain.value.op.name)
        if lower is None:
            return plain
        self.allowed = self.overwritable.get(binding.var, frozenset())
        return lower(self, plain)

    def kernel_call(self, binding: VarBinding) -> list[Binding]:
        """call_tir and call_tir_with_grad: inputs, outputs, scalars."""
        call, span = _call_of(binding), derived(binding.span, self.origin)
        new: list[Binding] = []
        inputs = self.inputs(call, span, new)
        outputs = self.outputs(binding.var, call.ty_args[0], span, new)
        new.append(void_binding(Call(call.args[0], (*inputs, *outputs, *_scalars(call, span)), span=span), span))
        return _with_result(binding, call.ty_args[0], outputs, new, span)

    def inplace_kernel_call(self, binding: VarBinding) -> list[Binding]:
        """call_tir_inplace: some outputs are inputs, which the kernel overwrites."""
        call, span = _call_of(binding), derived(binding.span, self.origin)
        new: list[Binding] = []
        inputs = self.inputs(call, span, new)
        types = _output_types(call.ty_args[0])
        indices = call.attrs["inplace_indices"]
        for index in {index for index in indices if index >= 0}:
            if index not in self.allowed:  # a parameter, a constant, or a value that is used again
                inputs[index] = self.copied(inputs[index], span, new)
        outputs: list[Expr] = [
            self.allocate(Var(f"{binding.var.name}_{i}", ty), ty, span, new) if index < 0 else inputs[index]
            for i, (index, ty) in enumerate(zip(indices, types, strict=True))
        ]
        fresh = [output for output, index in zip(outputs, indices, strict=True) if index < 0]
        new.append(void_binding(Call(call.args[0], (*inputs, *fresh, *_scalars(call, span)), span=span), span))
        result = outputs[0] if not isinstance(call.ty_args[0], TupleType) else Tuple(tuple(outputs), span=span)
        new.append(replace(binding, value=result, span=span))
        return new

    def loop(self, binding: VarBinding) -> list[Binding]:
        """A loop whose iterations overwrite carried values: they get memory of the loop's own."""
        call, span = _call_of(binding), derived(binding.span, self.origin)
        parts = loop_parts(call)
        assert parts is not None
        numbers = [number for number in parts["overwrites"] if number not in self.allowed]
        if not numbers:
            return [binding]
        new: list[Binding] = []
        initial = self.fields(parts["initial"], span, new)
        for number in numbers:
            initial[number] = self.copied(initial[number], span, new)
        args = tuple(Tuple(tuple(initial)) if arg is parts["initial"] else arg for arg in call.args)
        return [*new, replace(binding, value=replace(call, args=args))]

    def library_call(self, binding: VarBinding) -> list[Binding]:
        """call_dps_packed: the external function writes into the outputs, which come last."""
        call, span = _call_of(binding), derived(binding.span, self.origin)
        new: list[Binding] = []
        inputs = self.inputs(call, span, new)
        outputs = self.outputs(binding.var, call.ty_args[0], span, new)
        new.append(void_binding(Call(call.args[0], (*inputs, *outputs), attrs=_DPS, span=span), span))
        return _with_result(binding, call.ty_args[0], outputs, new, span)

    def inputs(self, call: Call, span: Span | None, new: list[Binding]) -> list[Expr]:
        """The single arguments; the fields of a tuple variable are taken out first."""
        return self.fields(call.args[1] if len(call.args) > 1 else Tuple(()), span, new)

    def fields(self, given: Expr, span: Span | None, new: list[Binding]) -> list[Expr]:
        """The fields of a tuple; those of a variable are taken out first."""
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
                f"no memory can be allocated for {var.name!r}: its type is {type_text(ty)}",
                code="W530",
                span=span,
                hint="state the shape and dtype in out_ty",
            )
        check_extents(ty.dims or (), ty.dtype, var.name, span)
        shape = ty.shape if isinstance(ty.shape, Var) else ShapeExpr(ty.shape, span=span)
        scope = ty.vdevice.scope if isinstance(ty.vdevice, VDevice) else "global"
        options = {"dtype": ty.dtype, "runtime_device_index": 0, "storage_scope": scope}
        new.append(VarBinding(var, get_op("builtin.alloc_tensor").bind((shape,), options, span), span=span))
        return var


def _call_of(binding: VarBinding) -> Call:
    assert isinstance(binding.value, Call)
    return binding.value


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


_RULES: dict[str, Callable[[_Lowering, VarBinding], list[Binding]]] = {
    "call_tir": _Lowering.kernel_call,
    "call_tir_with_grad": _Lowering.kernel_call,
    "call_tir_inplace": _Lowering.inplace_kernel_call,
    "call_dps_packed": _Lowering.library_call,
    "loop": _Lowering.loop,
    "loop_with_effects": _Lowering.loop,
}
