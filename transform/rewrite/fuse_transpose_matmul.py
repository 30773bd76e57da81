"""FuseTransposeMatmul: a product reads a transposed matrix where it lies, instead of a copy.

    R.matmul(x, R.permute_dims(w))   ->   R.linear(x, w)                        as torch writes a linear layer
    R.matmul(R.permute_dims(x), y)   ->   R.einsum((x, y), "ki,kj->ij")         in float32 and float64

Only where nothing else uses the transposed matrix, and it is not known at compile time (then it is folded).
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, Tuple, Var
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.cancel_transposes import axes_of_permutation
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["FuseTransposeMatmul"]

_LEFT, _RIGHT = wildcard(), wildcard()
_FORM = is_op("matmul")(_LEFT, _RIGHT)
_MOVED = is_op("permute_dims")(wildcard())


def _source(site: Site, operand: Expr) -> Expr | None:
    """The matrix that an operand is the transpose of, None where it is another thing."""
    value = site.value(operand)
    if not isinstance(value, Call) or not _MOVED.match(value) or not site.is_used_once(operand):
        return None
    ty = site.tensor(value.args[0])
    if ty is None or ty.ndim != 2 or axes_of_permutation(value, 2) != (1, 0) or site.is_constant(value.args[0]):
        return None
    return value.args[0]


def _read_in_place(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    left, right = site.tensor(_LEFT), site.tensor(_RIGHT)
    if left is None or right is None or left.ndim < 1 or right.ndim != 2:
        return None
    rounded = bool(site.call.attrs) or left.dtype not in ("float32", "float64")  # einsum sums in the operands' dtype
    one = _source(site, site[_LEFT]) if left.ndim == 2 and not rounded else None
    other = _source(site, site[_RIGHT])
    if one is not None:
        terms = f"ki,{'jk' if other is not None else 'kj'}->ij"
        return get_op("einsum")(Tuple((one, other or site[_RIGHT])), terms)
    return None if other is None else get_op("linear")(site[_LEFT], other, **site.call.attrs)


def _instance(choices: Choices) -> Function:
    i, j, k = (choices.pick((2, 3, 1, 0, 5)) for _ in range(3))
    transposed = choices.integer(0, 2)
    rank = 0 if transposed != 1 else choices.integer(0, 2)
    dtype, wide = choices.pick((("float32", None), ("float16", None), ("bfloat16", "float32"), ("int8", "int32")))
    x = Var("x", TensorType((*(2,) * rank, *((k, i) if transposed != 1 else (i, k))), dtype))
    w = Var("w", TensorType((j, k) if transposed != 0 else (k, j), dtype))
    permute = get_op("permute_dims")
    left: Expr = permute(x) if transposed != 1 else x
    right: Expr = permute(w, axes=(1, 0)) if transposed != 0 else w
    return function_of(get_op("matmul")(left, right, out_dtype=wide), [x, w])


register_rules(
    RuleSet(
        "matmul-transposes",
        "products of transposed matrices that are read where they lie",
        [Rule("FuseTransposeMatmul", _FORM, _read_in_place, _instance, "real", doc="no copy is made of the transpose")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class FuseTransposeMatmul(RulePass):
    """Read transposed operands of products where they lie."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("matmul-transposes",)
