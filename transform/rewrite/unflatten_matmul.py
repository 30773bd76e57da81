"""UnflattenMatmul: rows of a product keep the axes that they have before and after it.

    R.reshape(R.matmul(R.reshape(x, (b * s, k)), w) + c, (b, s, n))   ->   R.matmul(R.reshape(x, (b, s, k)), w) + c

The first change of shape joins with what x is made of, and what follows the product, at the same elements now, is
computed as its tiles are stored. Between both changes of shape there may be sums and products with a row or a scalar;
none of it is used elsewhere.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Call, Expr, Function, Op, TensorType, Var
from weft.ir.dim import Dim, product, prove_equal
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["UnflattenMatmul"]

_GIVEN = wildcard()
_FORM = is_op("reshape")(_GIVEN, wildcard())
_PRODUCTS, _MAPS = ("matmul", "linear"), ("add", "subtract", "multiply")
_LONGEST = 8


def _lifted(site: Site, expr: Expr, axes: tuple[Dim, ...], depth: int = 0) -> Expr | None:
    """A value whose rows have their own axes; None where no product of flattened rows is behind it."""
    call = site.value(expr)
    if not isinstance(call, Call) or not isinstance(call.op, Op) or not site.is_used_once(expr) or depth > _LONGEST:
        return None
    name, types = call.op.name, [site.tensor(arg) for arg in call.args]
    if name in _PRODUCTS and types[1] is not None and types[1].ndim == 2:
        rows = _unflattened(site, call.args[0], axes)
        return None if rows is None else get_op(name)(rows, *call.args[1:], **call.attrs)
    if name in _MAPS:
        for place, other in ((0, types[1]), (1, types[0])):
            made = None
            if other is not None and other.ndim in (0, 1):
                made = _lifted(site, call.args[place], axes, depth + 1)
            if made is not None:
                return get_op(name)(*(made if n == place else arg for n, arg in enumerate(call.args)))
    return None


def _unflattened(site: Site, rows: Expr, axes: tuple[Dim, ...]) -> Expr | None:
    """What rows were flattened from, with these axes."""
    value, ty = site.value(rows), site.tensor(rows)
    if not isinstance(value, Call) or not _FORM.match(value) or ty is None or ty.dims is None or len(ty.dims) != 2:
        return None
    return get_op("reshape")(value.args[0], (*axes, ty.dims[1]))


def _kept(site: Site) -> Expr | None:
    wanted, flat = site.tensor(site.call), site.tensor(_GIVEN)
    if wanted is None or flat is None or wanted.dims is None or flat.dims is None or len(flat.dims) != 2:
        return None
    axes = wanted.dims[:-1]
    if len(axes) < 2 or prove_equal(wanted.dims[-1], flat.dims[1]) is not True:
        return None
    return _lifted(site, site[_GIVEN], axes) if prove_equal(product(axes), flat.dims[0]) is True else None


def _instance(choices: Choices) -> Function:
    b, s, k, n = (choices.pick((2, 3, 1, 4, 0)) for _ in range(4))
    x = Var("x", TensorType(choices.pick(((b, s, k), (s, b, k), (b * s, k, 1))), "float32"))
    w = Var("w", TensorType((k, n), "float32"))
    bias = Var("bias", TensorType(choices.pick(((n,), (1,), (), (b * s, n))), "float32"))
    reshape = get_op("reshape")
    value: Expr = get_op("matmul")(reshape(x, (b * s, k)), w)
    for _ in range(choices.integer(0, 2)):
        operands = (value, bias) if choices.flip() else (bias, value)
        value = get_op(choices.pick(_MAPS))(*operands)
    return function_of(reshape(value, choices.pick(((b, s, n), (1, b * s, n), (b, s * n)))), [x, w, bias])


register_rules(
    RuleSet(
        "matmul-rows",
        "products whose rows keep their axes",
        [Rule("UnflattenMatmul", _FORM, _kept, _instance, "real", doc="rows keep their axes through a product")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class UnflattenMatmul(RulePass):
    """Move changes of shape from behind a product of flattened rows to before it."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("matmul-rows",)
