"""ExpandMatmulOfSum: a product with a sum of weights becomes a sum of products.

    R.matmul(x, R.add(w, R.matmul(a, b)))   ->   R.add(R.matmul(x, w), R.matmul(x, R.matmul(a, b)))

It costs more by itself; with AdjustMatmulOrder after it a low-rank update of a weight (LoRA) is never multiplied out.
"""

from __future__ import annotations

from typing import ClassVar

from weft.support.records import dataclass
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, RuleText, register_rules

__all__ = ["ExpandMatmulOfSum"]

_TEXT = """
@R.rewriter
class ExpandMatmulOfSum:
    I.module_attrs({"doc": "products of sums are sums of products"})

    @R.function
    def pattern(x: R.Tensor((ROWS"k",), "float32"), a: R.Tensor(("k", "n"), "float32"),
                b: R.Tensor(("k", "n"), "float32")):
        return R.matmul(x, R.add(a, b))

    @R.function
    def replacement(x: R.Tensor((ROWS"k",), "float32"), a: R.Tensor(("k", "n"), "float32"),
                    b: R.Tensor(("k", "n"), "float32")):
        return R.add(R.matmul(x, a), R.matmul(x, b))
"""

register_rules(
    RuleSet(
        "matmul-of-sum",
        "products of sums as sums of products",
        [RuleText(("matmul", "add"), _TEXT.replace("ROWS", rows)) for rows in ('"m", ', '"p", "m", ', "")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class ExpandMatmulOfSum(RulePass):
    """Write products with sums of weights as sums of products."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("matmul-of-sum",)
