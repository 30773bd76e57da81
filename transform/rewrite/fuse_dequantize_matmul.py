"""FuseDequantizeMatmul: a product with a quantized matrix converts its elements as it reads them.

    R.matmul(x, R.dequantize(w, scale, zero, axis=0, group_size=32))
        -> R.matmul_dequantized(x, w, scale, zero, group_size=32)
    R.matmul(x, R.permute_dims(R.dequantize(w, scale, zero, axis=1, group_size=32)))      as torch writes a linear layer
        -> the same of R.permute_dims(w) and R.permute_dims(scale), where these are constants
    R.matmul(R.dequantize(x, s, 0, group_size=32), R.dequantize(...))
        -> the same with x1_scale=s: products of integers

Scales stand for groups along the contracted axis, or for the columns.
"""

from __future__ import annotations

from typing import ClassVar

from weft.dtypes import is_float, is_integer
from weft.ir import Call, Constant, Expr, Function, PrimValue, TensorType, Var
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.cancel_transposes import axes_of_permutation
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["FuseDequantizeMatmul"]

_LEFT, _RIGHT = wildcard(), wildcard()
_FORM = is_op("matmul")(_LEFT, _RIGHT)
_PERMUTE, _DEQUANTIZE = is_op("permute_dims")(wildcard()), is_op("dequantize")(wildcard(), wildcard(), wildcard())


@dataclass(frozen=True)
class _Quantized:
    """What a dequantized operand is made of, and the size of its groups along the contracted axis (0: one group)."""

    data: Expr
    scale: Expr
    zero: Expr
    group_size: int


def _fused(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    left, right = site.tensor(_LEFT), site.tensor(_RIGHT)
    if site.call.attrs or left is None or right is None or left.dtype != right.dtype:
        return None
    if left.ndim < 1 or right.ndim != 2:
        return None
    b = _weights(site, site[_RIGHT])
    if b is None:
        return None
    a = _activations(site, site[_LEFT], b.group_size) if left.dtype == "float32" else None
    product = get_op("matmul_dequantized")
    if a is None:
        return product(site[_LEFT], b.data, b.scale, b.zero, group_size=b.group_size)
    return product(a.data, b.data, b.scale, b.zero, a.scale, group_size=b.group_size, out_dtype=left.dtype)


def _weights(site: Site, operand: Expr) -> _Quantized | None:
    """A matrix (k, n) that is dequantized, or the transpose of one (n, k) whose parts are constants."""
    value, moved = site.value(operand), False
    if isinstance(value, Call) and _PERMUTE.match(value):
        if axes_of_permutation(value, 2) != (1, 0):
            return None
        value, moved = site.value(value.args[0]), True
    if not isinstance(value, Call) or not _DEQUANTIZE.match(value):
        return None
    data, scale, zero = (site.tensor(arg) for arg in value.args)
    if data is None or scale is None or not is_integer(data.dtype or "") or data.ndim != 2:
        return None
    if moved and not all(site.is_constant(arg) for arg in value.args):
        return None
    if zero is None and not isinstance(value.args[2], PrimValue):
        return None
    return _by_groups(value, data, (scale, zero), contracted=1 if moved else 0, moved=moved)


def _by_groups(
    call: Call, data: TensorType, parts: tuple[TensorType, TensorType | None], contracted: int, moved: bool
) -> _Quantized | None:
    """The parts of a dequantized matrix as those of a matrix (k, n), with scales (groups, n)."""
    permute, reshape = get_op("permute_dims"), get_op("reshape")
    axis, group = call.attrs.get("axis", -1) % 2, call.attrs.get("group_size", 0)
    columns = (data.dims or ())[1 - contracted]
    if group and axis != contracted:
        return None
    if not group and any(ty is not None and ty.ndim and (axis == contracted or ty.dims != (columns,)) for ty in parts):
        return None
    made = [permute(call.args[0]) if moved else call.args[0]]
    for arg, ty in zip(call.args[1:], parts, strict=True):
        if ty is None or not ty.ndim:
            made.append(arg)
        elif group:
            made.append(permute(arg) if moved else arg)
        else:
            made.append(reshape(arg, (1, columns)))
    scale = parts[0]
    if not scale.ndim or not _is_whole(call.args[2], parts[1]):
        return None
    return _Quantized(made[0], made[1], made[2], group)


def _is_whole(zero: Expr, ty: TensorType | None) -> bool:
    """Whether a zero point is an integer."""
    return isinstance(zero, PrimValue) or (ty is not None and is_integer(ty.dtype or ""))


def _activations(site: Site, operand: Expr, group_size: int) -> _Quantized | None:
    """Activations that are integers with scales of the same groups along their last axis, without a zero point."""
    value = site.value(operand)
    if not isinstance(value, Call) or not _DEQUANTIZE.match(value):
        return None
    data, scale = site.tensor(value.args[0]), site.tensor(value.args[1])
    if data is None or scale is None or not is_integer(data.dtype or "") or not is_float(scale.dtype or ""):
        return None
    last = data.ndim - 1
    groups = value.attrs.get("group_size", 0) == group_size and value.attrs.get("axis", -1) % data.ndim == last
    if not group_size or not groups or scale.ndim != data.ndim or not _is_zero(value.args[2]):
        return None
    return _Quantized(value.args[0], value.args[1], value.args[2], group_size)


def _is_zero(value: Expr) -> bool:
    if isinstance(value, PrimValue):
        return value.value == 0
    return isinstance(value, Constant) and not value.data.any()


def _instance(choices: Choices) -> Function:
    n, m, group = choices.pick((2, 3, 1)), choices.pick((1, 3, 4)), choices.pick((2, 4, 0))
    k = 4 * choices.pick((1, 2))
    moved, both = choices.integer(0, 1), choices.integer(0, 1)
    shape = (m, k) if moved else (k, m)
    scales = tuple(s // group if group and s == k else s for s in shape) if group else (m,)
    if group and m == k:
        scales = (m, k // group) if moved else (k // group, m)
    w, s = Var("w", TensorType(shape, "int8")), Var("s", TensorType(scales, "float32"))
    axis = (1 if moved else 0) if group else (0 if moved else 1)
    dequantize = get_op("dequantize")
    right: Expr = dequantize(w, s, 3, axis=axis, group_size=group)
    if both and group:
        x, t = Var("x", TensorType((n, k), "int8")), Var("t", TensorType((n, k // group), "float32"))
        left: Expr = dequantize(x, t, 0, group_size=group)
        given = [x, t, w, s]
    else:
        left = x = Var("x", TensorType((n, k), "float32"))
        given = [x, w, s]
    if moved:
        right = get_op("permute_dims")(right, axes=(1, 0))
    return function_of(get_op("matmul")(left, right), given)


register_rules(
    RuleSet(
        "matmul-dequantized",
        "products with quantized matrices that are converted in their tiles",
        [Rule("FuseDequantizeMatmul", _FORM, _fused, _instance, "real", doc="no matrix of floats is made")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class FuseDequantizeMatmul(RulePass):
    """Convert quantized matrices in the products that read them."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("matmul-dequantized",)
