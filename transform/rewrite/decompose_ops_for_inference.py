"""DecomposeOpsForInference: operators whose statistics do not move become arithmetic that other rules see through.

R.nn.batch_norm(x, gamma, beta, mean, variance, axis=1, training=False)[0]
    ->   x * scale + shift      scale = gamma * rsqrt(variance + epsilon), shift = beta - mean * scale
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Call, Constant, Expr, Function, Op, TensorType, TupleGetItem, Var
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import small_array
from weft.transform.pattern.constructors import is_op, is_tuple_get_item, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Make, Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["CONSTANT_NORMS", "DecomposeOpsForInference"]

_NORM = is_op("nn.batch_norm")(*(wildcard() for _ in range(5))).has_attr({"training": False})
_FORM = is_tuple_get_item(_NORM, 0)


def _arithmetic(constant: bool) -> Make:
    """The rule for statistics that are known at compile time, or for any."""

    def make(site: Site) -> Expr | None:
        call = site.value(_NORM)
        assert isinstance(call, Call)
        assert isinstance(call.op, Op)
        x, *statistics = call.args
        ty = site.tensor(x)
        if ty is None or ty.dtype not in ("float32", "float64") or ty.dims is None:
            return None
        if constant and not all(map(site.is_constant, statistics)):
            return None
        return _scaled(call, ty)

    return make


def _scaled(call: Call, ty: TensorType) -> Expr:
    values = OPS["nn.batch_norm"].values(call)
    x, gamma, beta, mean, variance = call.args
    add, multiply, subtract = get_op("add"), get_op("multiply"), get_op("subtract")
    scale: Expr = get_op("rsqrt")(add(variance, values["epsilon"]))
    if values["scale"]:
        scale = multiply(gamma, scale)
    shift: Expr = multiply(mean, scale)
    shift = subtract(beta, shift) if values["center"] else get_op("negative")(shift)
    assert ty.dims is not None
    axis, rank = values["axis"] % len(ty.dims), len(ty.dims)
    shape = tuple(ty.dims[axis] if place == axis else 1 for place in range(rank))
    if rank > 1:
        reshape = get_op("reshape")
        scale, shift = reshape(scale, shape), reshape(shift, shape)
    return add(multiply(x, scale), shift)


def _constant_instance(choices: Choices) -> Function:
    size = choices.pick((2, 3, 1))
    x = Var("x", TensorType((2, size, 3), "float32"))
    values = [Constant(small_array(choices, "float32", (size,), 0.5, 2.0), "float32") for _ in range(4)]
    flags = {"center": choices.flip(), "scale": choices.flip()}
    return function_of(TupleGetItem(get_op("nn.batch_norm")(x, *values, axis=1, training=False, **flags), 0), [x])


def _instance(choices: Choices) -> Function:
    dims = tuple(choices.pick((2, 3, 1, 4)) for _ in range(choices.integer(1, 4)))
    axis = choices.integer(0, len(dims) - 1)
    x = Var("x", TensorType(dims, choices.pick(("float32", "float64"))))
    rest = [Var(name, TensorType((dims[axis],), x.ty.dtype)) for name in ("gamma", "beta", "mean", "deviation")]  # type: ignore[union-attr]
    variance = get_op("multiply")(rest[3], rest[3])
    call = get_op("nn.batch_norm")(
        x, *rest[:3], variance, axis=axis, training=False, epsilon=0.5, center=choices.flip(), scale=choices.flip()
    )
    return function_of(TupleGetItem(call, 0), [x, *rest])


CONSTANT_NORMS = register_rules(
    RuleSet(
        "inference-norms",
        "normalisation by constant statistics, as a factor and an offset",
        [Rule("ConstantBatchNorm", _FORM, _arithmetic(True), _constant_instance, "real", doc="constant statistics")],
        trusted=True,
    )
)
register_rules(
    RuleSet(
        "inference",
        "operators of inference as arithmetic",
        [Rule("BatchNormAsArithmetic", _FORM, _arithmetic(False), _instance, "real", doc="the statistics do not move")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class DecomposeOpsForInference(RulePass):
    """Write batch normalisation with statistics that do not move as a factor and an offset."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("inference",)
