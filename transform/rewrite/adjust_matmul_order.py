"""AdjustMatmulOrder: products of several matrices in the order that costs least, with symbolic sizes.

    R.matmul(x, R.matmul(a, b))   ->   R.matmul(R.matmul(x, a), b)          for x of few rows, and a of few columns

Vectors may stand at both ends. All orders of a chain are priced by dynamic programming over intervals; one is
preferred where it is proved to cost no more for any sizes. Products that are used elsewhere too, and those that are
known at compile time, cost nothing more.
The transpose of a product is taken apart where its parts are smaller, so that the chain goes on through it.

Source: Cormen et al., Introduction to Algorithms, matrix-chain multiplication.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, Var
from weft.ir.dim import Dim, product, prove_le
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.cost import cheaper
from weft.transform.rewrite.rule_set import RuleSet, RuleText, register_rules

__all__ = ["AdjustMatmulOrder"]

_FORM = is_op("matmul")(wildcard(), wildcard())
_LONGEST = 8


@dataclass(frozen=True)
class _Factor:
    """A product of an interval of a chain: how it is written, its sizes, what it costs."""

    value: Expr
    rows: Dim
    columns: Dim
    cost: Dim
    constant: bool


def _chain(expr: Expr, site: Site, is_root: bool = False) -> list[Expr]:
    """The factors of a product, nested products that only it uses taken apart."""
    value = expr if is_root else site.value(expr)
    if isinstance(value, Call) and _FORM.match(value) and not value.attrs and (is_root or site.is_used_once(expr)):
        left, right = (site.tensor(arg) for arg in value.args)
        if left is not None and right is not None and left.ndim >= 1 and right.ndim in (1, 2):
            return [*_chain(value.args[0], site), *_chain(value.args[1], site)]
    return [expr]


def _reordered(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    if site.call.attrs:
        return None
    factors = _chain(site.call, site, is_root=True)
    if not 3 <= len(factors) <= _LONGEST:
        return None
    leaves: list[_Factor] = []
    for place, factor in enumerate(factors):
        ty = site.tensor(factor)
        if ty is None or ty.dims is None or not _may_stand(ty, place, len(factors)):
            return None
        is_column = place > 0 and len(ty.dims) == 1
        rows, columns = (ty.dims[0], 1) if is_column else (product(ty.dims[:-1]), ty.dims[-1])
        leaves.append(_Factor(factor, rows, columns, 0, site.is_constant(factor)))
    best, written = _cheapest(leaves), _as_written(site.call, site, iter(leaves))
    return best.value if cheaper(best.cost, written.cost) else None


def _may_stand(ty: TensorType, place: int, count: int) -> bool:
    """Whether a factor may be at a place of a chain: matrices in the middle, a row before them, a column behind."""
    if place == 0:
        return ty.ndim >= 1
    return ty.ndim == 2 or (ty.ndim == 1 and place == count - 1)


def _joined(left: _Factor, right: _Factor) -> _Factor:
    result, operands = left.rows * right.columns, left.rows * left.columns + right.rows * right.columns
    # FoldConstant leaves a product that is larger than its operands to the run
    constant = left.constant and right.constant and prove_le(result, operands) is True
    terms = 2 * left.rows * left.columns * right.columns
    traffic = operands + result
    own = 0 if constant else terms + traffic
    value = get_op("matmul")(left.value, right.value)
    return _Factor(value, left.rows, right.columns, left.cost + right.cost + own, constant)


def _as_written(expr: Expr, site: Site, leaves: object, is_root: bool = True) -> _Factor:
    value = expr if is_root else site.value(expr)
    if len(_chain(expr, site, is_root)) == 1:
        return next(leaves)  # type: ignore[call-overload]
    assert isinstance(value, Call)
    return _joined(*(_as_written(arg, site, leaves, is_root=False) for arg in value.args))  # type: ignore[misc]


def _cheapest(leaves: Sequence[_Factor]) -> _Factor:
    """The best order of a chain, for sizes whatever they are where that can be proved."""
    best: dict[tuple[int, int], _Factor] = {(place, place + 1): leaf for place, leaf in enumerate(leaves)}
    for length in range(2, len(leaves) + 1):
        for start in range(len(leaves) - length + 1):
            end = start + length
            options = [_joined(best[start, cut], best[cut, end]) for cut in range(start + 1, end)]
            chosen = options[0]
            for option in options[1:]:
                chosen = option if cheaper(option.cost, chosen.cost) else chosen
            best[start, end] = chosen
    return best[0, len(leaves)]


def _instance(choices: Choices) -> Function:
    sizes = [choices.pick((2, 9, 1, 5, 0)) for _ in range(choices.integer(4, 5))]
    shapes = list(pairwise(sizes))
    row, column = choices.flip(25), choices.flip(25)
    dims = [shapes[0][1:] if row else shapes[0], *shapes[1:-1], shapes[-1][:1] if column else shapes[-1]]
    params = [Var(f"x{i}", TensorType(shape, "float32")) for i, shape in enumerate(dims)]
    values: list[Expr] = list(params)
    while len(values) > 1:
        place = choices.integer(0, len(values) - 2)
        values[place : place + 2] = [get_op("matmul")(values[place], values[place + 1])]
    return function_of(values[0], params)


_TRANSPOSED_PRODUCT = """
@R.rewriter
class TransposeOfProduct:
    I.module_attrs({"cheaper": True, "doc": "the factors are smaller than their product"})

    @R.function
    def pattern(a: R.Tensor(("m", "k"), "float32"), b: R.Tensor(("k", "n"), "float32")):
        return R.permute_dims(R.matmul(a, b), axes=[1, 0])

    @R.function
    def replacement(a: R.Tensor(("m", "k"), "float32"), b: R.Tensor(("k", "n"), "float32")):
        return R.matmul(R.permute_dims(b, axes=[1, 0]), R.permute_dims(a, axes=[1, 0]))
"""

register_rules(
    RuleSet(
        "matmul-order",
        "the order of products of several matrices",
        [
            Rule(
                "AdjustMatmulOrder",
                _FORM,
                _reordered,
                _instance,
                "real",
                cheaper=True,
                doc="the order that costs least",
            ),
            RuleText(("permute_dims", "matmul"), _TRANSPOSED_PRODUCT),
            RuleText(
                ("permute_dims", "matmul"),
                _TRANSPOSED_PRODUCT.replace("class Transpose", "class Reversal").replace(
                    "R.matmul(a, b), axes=[1, 0]", "R.matmul(a, b)"
                ),
            ),
        ],
        trusted=True,
    )
)


@dataclass(frozen=True)
class AdjustMatmulOrder(RulePass):
    """Multiply several matrices in the order that is proved to cost least."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("matmul-order",)
