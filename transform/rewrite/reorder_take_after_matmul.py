"""ReorderTakeAfterMatmul: columns are taken of the product, not of the weights.

    R.matmul(x, R.take(w, i, axis=1))   ->   R.take(R.matmul(x, w), i, axis=1)

The weights are then those that the program is given, which other passes can fold and pack; for x of few rows the take
moves less.
"""

from __future__ import annotations

from typing import ClassVar

from weft.support.records import dataclass
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, RuleText, register_rules

__all__ = ["ReorderTakeAfterMatmul"]

_TEXT = """
@R.rewriter
class ReorderTakeAfterMatmul:
    I.module_attrs({"doc": "columns of the product are products with columns"})

    @R.function
    def pattern(x: R.Tensor((BATCH"m", "k"), "float32"), w: R.Tensor(("k", "n"), "float32"),
                i: R.Tensor(("t",), "int64")):
        return R.matmul(x, R.take(w, i, axis=1))

    @R.function
    def replacement(x: R.Tensor((BATCH"m", "k"), "float32"), w: R.Tensor(("k", "n"), "float32"),
                    i: R.Tensor(("t",), "int64")):
        return R.take(R.matmul(x, w), i, axis=LAST)
"""


def _text(batch: str, dtype: str) -> str:
    return _TEXT.replace("BATCH", batch).replace("LAST", "2" if batch else "1").replace("int64", dtype)


register_rules(
    RuleSet(
        "take-after-matmul",
        "products before takes of columns",
        [RuleText(("matmul", "take"), _text(batch, dtype)) for batch in ("", '"p", ') for dtype in ("int64", "int32")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class ReorderTakeAfterMatmul(RulePass):
    """Take columns of a product instead of columns of its weights."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("take-after-matmul",)
