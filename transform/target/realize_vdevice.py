"""RealizeVDevice: hints about devices become types and copies, and reach what is computed with them.

    y = R.add(x, x)                                 y: R.Tensor(..., vdevice) = R.add(x, x)
    z = R.hint_on_device(y, vdevice)        ->      (uses of z are uses of y)

A value whose device is known and another one is copied there (`R.to_vdevice`). A device spreads over a call of an
operator: from an operand to the result, and from the result back to operands of which nothing is known, parameters
too. Where operands are on several devices nothing spreads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from weft.ir import (
    Binding,
    Call,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    TupleType,
    Type,
    Var,
    VarBinding,
    VDevice,
    replace,
    structural_equal,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, bindings_of, operands

__all__ = ["RealizeVDevice"]

Device = VDevice | str
_HINT, _COPY = "hint_on_device", "to_vdevice"


@dataclass(frozen=True)
class RealizeVDevice(FunctionPass):
    """Write hints about devices as types and copies."""

    text_name: ClassVar[str] = "realize-vdevice"
    keeps_types: ClassVar[bool] = False

    @classmethod
    def sample(cls, choices: Choices) -> tuple[RealizeVDevice, str]:
        """A hint in the middle of a chain, and one for a second device."""
        second = choices.pick(("R.exp(b)", 'R.hint_on_device(b, "vdevice:1")'))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    I.module_global_infos({{"vdevice": [I.vdevice("llvm", 0, "global"), I.vdevice("llvm", 1, "global")]}})

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.hint_on_device(a, "vdevice:0")
            c = {second}
            out = R.negative(c)
            R.output(out)
        return out
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with devices in its types."""
        hints = [value for value in map(_hinted, bindings_of(function.body)) if value is not None]
        if not hints:
            return function
        devices = _Devices(function, module)
        devices.spread()
        new = _Realizer(devices, TypeContext(module.functions)).run(function)
        computed = infer_type(new.body, TypeContext(module.functions))
        return replace(new, ret_type=computed)


def _hinted(binding: Binding) -> tuple[Var, Expr, Device] | None:
    """The variable, the value and the device of a hint."""
    value = binding.value
    if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name != _HINT:
        return None
    device = value.attrs["dst_vdevice"]
    return binding.var, value.args[0], device


class _Devices:
    """The devices of the variables of a function, as far as they are known."""

    def __init__(self, function: Function, module: IRModule) -> None:
        self.function, self.module = function, module
        self.known: dict[Expr, Device] = {}
        for var in (*function.params, *(binding.var for binding in bindings_of(function.body))):
            if isinstance(var.ty, TensorType) and var.ty.vdevice is not None:
                self.known[var] = var.ty.vdevice  # type: ignore[assignment]

    def same(self, a: object, b: object) -> bool:
        """Whether two devices are one, each written out or named by its place in the module."""
        one, other = self.resolved(a), self.resolved(b)
        if isinstance(one, VDevice) and isinstance(other, VDevice):
            return structural_equal(one, other)
        return one == other

    def resolved(self, device: object) -> object:
        """The device that a text such as "vdevice:1" names, where the module lists it."""
        listed = self.module.global_infos.get("vdevice", ())
        kind, _, place = device.partition(":") if isinstance(device, str) else ("", "", "")
        return listed[int(place)] if kind == "vdevice" and place.isdecimal() and int(place) < len(listed) else device

    def spread(self) -> None:
        """Go through the bindings, backwards and forwards, until nothing more is known."""
        bindings = list(bindings_of(self.function.body))
        for binding in bindings:
            hint = _hinted(binding)
            if hint is not None:
                self.known.setdefault(hint[1], hint[2])  # it is made where the first hint wants it
                self.known[hint[0]] = hint[2]
        count = -1
        while count != len(self.known):
            count = len(self.known)
            for binding in (*reversed(bindings), *bindings):
                self.over(binding)

    def over(self, binding: Binding) -> None:
        """Spread over one call of an operator that computes where its operands are."""
        group = list(_group(binding))
        found = [self.known[var] for var in group if var in self.known]
        if found and all(self.same(device, found[0]) for device in found):
            for var in group:
                self.known.setdefault(var, found[0])


def _group(binding: Binding) -> Iterator[Var]:
    """The tensors of a call that lie on one device."""
    value = binding.value
    if not isinstance(binding, VarBinding) or not isinstance(value, (Call, Var)):
        return
    if isinstance(value, Call):
        definition = OPS.get(value.op.name) if isinstance(value.op, Op) else None
        if definition is None or not definition.is_computed:
            return
    for var in (binding.var, *operands(value)):
        if isinstance(var, Var) and isinstance(var.ty, TensorType):
            yield var


class _Realizer(FunctionRewriter):
    def __init__(self, devices: _Devices, context: TypeContext) -> None:
        super().__init__()
        self.devices, self.context = devices, context

    def rewrite_parameter(self, param: Var) -> Var:
        device = self.devices.known.get(param)
        if device is None or not isinstance(param.ty, TensorType) or param.ty.vdevice is not None:
            return param
        new = self.replaced[param] = replace(param, ty=replace(param.ty, vdevice=device))
        return new

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        if not isinstance(binding, VarBinding):
            return binding
        hint = _hinted(binding)
        if hint is not None:
            _, value, device = hint
            own = infer_type(value, self.context)
            if isinstance(own, TensorType) and own.vdevice is not None and self.devices.same(own.vdevice, device):
                return self.typed(replace(binding, value=value))
            return self.typed(replace(binding, value=get_op(_COPY)(value, device)))
        return self.typed(binding)

    def typed(self, binding: VarBinding) -> VarBinding:
        """The binding with the type that its value has now."""
        ty = infer_type(binding.value, self.context)
        new = _placed(binding.var.ty, ty)
        if new is binding.var.ty:
            return binding
        var = self.replaced[binding.var] = replace(binding.var, ty=new)
        return replace(binding, var=var)


def _placed(ty: Type, like: Type) -> Type:
    """A type on the device of another."""
    if isinstance(ty, TensorType) and isinstance(like, TensorType):
        return ty if ty.vdevice == like.vdevice else replace(ty, vdevice=like.vdevice)
    if isinstance(ty, TupleType) and isinstance(like, TupleType):
        return replace(ty, fields=tuple(_placed(a, b) for a, b in zip(ty.fields, like.fields, strict=True)))
    return ty
