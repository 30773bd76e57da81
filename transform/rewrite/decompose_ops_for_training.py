"""DecomposeOpsForTraining: normalisation by the statistics of its data becomes arithmetic, which gradients go through.

    t = R.nn.batch_norm(x, gamma, beta, m, v, axis=1, training=True)
        ->   mean = R.mean(x, [0, 2, 3]);  var = R.variance(x, [0, 2, 3])
             out = (x - mean) * rsqrt(var + epsilon) * gamma + beta
             t = (out, m * (1 - momentum) + mean * momentum, v * (1 - momentum) + var * momentum)

    R.nn.layer_norm(x, gamma, beta, axes)
        ->   (x - mean) * rsqrt(variance + epsilon) * gamma + beta            over the axes

Of known sizes, in float32 and float64; sums of narrower types round otherwise than those of the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weft.ir import Binding, Call, Constant, Expr, Function, IRModule, Op, TensorType, Tuple, VarBinding, replace
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.op import OPS, get_op
from weft.ir.op.declare import constant_like
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, derived, is_marked

__all__ = ["DecomposeOpsForTraining"]


@dataclass(frozen=True)
class DecomposeOpsForTraining(FunctionPass):
    """Write normalisation by statistics of the data as arithmetic; `func_name` names one function."""

    exact: ClassVar[str] = "real"
    func_name: str | None = None

    @classmethod
    def sample(cls, choices: Choices) -> tuple[DecomposeOpsForTraining, str]:
        """Batch and layer normalisation, with and without scale and offset."""
        axis = choices.pick((1, -1, 0))
        flags = choices.pick(("", ", center=False", ", scale=False"))
        size = {1: 3, -1: 2, 0: 4}[axis]
        vector = f'R.Tensor(({size},), "float32")'
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 3, 2), "float32"), g: {vector}, b: {vector}, m: {vector}, v: {vector},
             w: R.Tensor((3, 2), "float32")):
        with R.dataflow():
            t = R.nn.batch_norm(x, g, b, m, v, axis={axis}, momentum=0.2{flags})
            y = R.nn.layer_norm(t[0], w, w, axes=[-2, -1]{flags})
            out = (y, t[1], t[2])
            R.output(out)
        return out
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with arithmetic."""
        if self.func_name not in (None, name):
            return function
        return _Decomposer(TypeContext(module.functions)).run(function)


class _Decomposer(FunctionRewriter):
    def __init__(self, context: TypeContext) -> None:
        super().__init__()
        self.context = context
        self.made: list[Binding] = []

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or not isinstance(value.op, Op):
            return binding
        rule = {"nn.batch_norm": self.batch_norm, "nn.layer_norm": self.layer_norm}.get(value.op.name)
        if rule is None or is_marked(value):
            return binding
        ty = infer_type(value.args[0], self.context)
        if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype not in ("float32", "float64"):
            return binding
        self.made = []
        new = rule(value, ty)
        return binding if new is None else [*self.made, replace(binding, value=new)]

    def emit(self, name: str, *args: Any, **attrs: Any) -> Expr:
        """A variable for a call of an operator."""
        call = get_op(name)(*args, **attrs)
        var = self.fresh("lv", infer_type(call, self.context), derived(call.span, "decompose"))
        self.made.append(VarBinding(var, call, span=var.span))
        return var

    def batch_norm(self, call: Call, ty: TensorType) -> Expr | None:
        """The triple of a batch normalisation in training."""
        values = OPS["nn.batch_norm"].values(call)
        if not values["training"]:
            return None
        dims = dims_of(ty) or ()
        axis = values["axis"] % len(dims)
        others = [other for other in range(len(dims)) if other != axis]
        x, gamma, beta, old_mean, old_variance = call.args
        mean, variance = (self.emit(name, x, axis=others) for name in ("mean", "variance"))
        spread = [dims[axis] if place == axis else 1 for place in range(len(dims))]
        flat = (mean, variance, gamma, beta)
        along, squared, scale, offset = (self.emit("reshape", value, tuple(spread)) for value in flat)
        out = self.normal(x, along, squared, scale, offset, values, ty)
        momentum = values["momentum"]
        moved = [self.mixed(old, new, momentum, ty) for old, new in ((old_mean, mean), (old_variance, variance))]
        return Tuple((self.bound(out), *map(self.bound, moved)))

    def layer_norm(self, call: Call, ty: TensorType) -> Expr | None:
        """A layer normalisation; its scale and offset have the sizes of the axes in their order."""
        values = OPS["nn.layer_norm"].values(call)
        dims = dims_of(ty) or ()
        axes = [axis % len(dims) for axis in values["axes"]]
        if axes != sorted(axes):
            return None
        x, gamma, beta = call.args
        spread = tuple(dims[place] if place in axes else 1 for place in range(len(dims)))
        mean, variance = (self.emit(name, x, axis=axes, keepdims=True) for name in ("mean", "variance"))
        scale, offset = (self.emit("reshape", value, spread) for value in (gamma, beta))
        return self.normal(x, mean, variance, scale, offset, values, ty)

    def normal(
        self, x: Expr, mean: Expr, variance: Expr, gamma: Expr, beta: Expr, values: dict[str, Any], ty: TensorType
    ) -> Expr:
        """(x - mean) * rsqrt(variance + epsilon), scaled and moved where the flags say so: the last call unbound."""
        deviation = self.emit("subtract", x, mean)
        spread = self.emit("rsqrt", self.emit("add", variance, _number(values["epsilon"], ty)))
        steps = [("multiply", spread)]
        steps += [("multiply", gamma)] if values["scale"] else []
        steps += [("add", beta)] if values["center"] else []
        value = deviation
        for name, other in steps[:-1]:
            value = self.emit(name, value, other)
        return get_op(steps[-1][0])(value, steps[-1][1])

    def mixed(self, old: Expr, new: Expr, momentum: float, ty: TensorType) -> Expr:
        """The running value, moved towards the new one."""
        kept = self.emit("multiply", old, _number(1 - momentum, ty))
        return get_op("add")(kept, self.emit("multiply", new, _number(momentum, ty)))

    def bound(self, value: Expr) -> Expr:
        """A variable for a call."""
        var = self.fresh("lv", infer_type(value, self.context))
        self.made.append(VarBinding(var, value))
        return var


def _number(value: float, ty: TensorType) -> Constant:
    assert ty.dtype is not None
    return constant_like(value, ty.dtype)
