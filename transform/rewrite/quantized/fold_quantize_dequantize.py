"""FoldQuantizeDequantize: a graph in QDQ form becomes one of integer kernels.

    a = R.dequantize(R.quantize(x, s, z), s, z)           q = R.quantize(x, s, z)
    y = R.nn.relu(R.matmul(a, R.dequantize(w, t)) + b)    t = R.matmul(q, w, out_dtype="int32") + bias
    c = R.dequantize(R.quantize(y, u, v), u, v)           c = R.requantize(t, multiplier, v, shift=40)
    R.matmul(c, ...)                                      R.matmul(c, ...)

Products of dequantized operands become products of integers (`products`), quantized sums are requantized by a
fixed-point product (`requantize`), and operators that select elements do so before integers become floats and after
floats became integers (`moves`). What no rule knows stays in floats between `dequantize` and `quantize`. The integers
have the same bits on every target; beside the floats of the QDQ form they may differ by one step where a value lies at
a half between two.
"""

from __future__ import annotations

from typing import ClassVar

from weft.support.records import dataclass
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.quantized.moves import MOVES
from weft.transform.rewrite.quantized.products import PRODUCTS
from weft.transform.rewrite.quantized.requantize import REQUANTIZATIONS
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["FoldQuantizeDequantize"]

register_rules(
    RuleSet(
        "quantize-dequantize",
        "graphs in QDQ form as integer kernels with fixed-point requantization",
        [*MOVES, *PRODUCTS, *REQUANTIZATIONS],
        trusted=True,
    )
)


@dataclass(frozen=True)
class FoldQuantizeDequantize(RulePass):
    """Compute what lies between `dequantize` and `quantize` on integers."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("quantize-dequantize",)
