"""FoldBatchnormToConv2D: batch normalisation by constant statistics goes into the weights of the convolution before it.

    R.nn.relu(R.nn.batch_norm(R.nn.conv2d(x, w), ..., training=False)[0])   ->   R.nn.relu(R.nn.conv2d(x, w') + b')

It is the rules of `inference-norms`, which write the norm as a factor and an offset, and of `scale-shift`.
"""

from __future__ import annotations

from typing import ClassVar

from weft.support.records import dataclass
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.decompose_ops_for_inference import CONSTANT_NORMS
from weft.transform.rewrite.fold_scale_shift import FoldScaleShift

__all__ = ["FoldBatchnormToConv2D"]


@dataclass(frozen=True)
class FoldBatchnormToConv2D(RulePass):
    """Put batch normalisation by constant statistics into the convolutions before it."""

    text_name: ClassVar[str] = "fold-batchnorm-to-conv2d"
    sets_of_class: ClassVar[tuple[str, ...]] = (CONSTANT_NORMS.name, *FoldScaleShift.sets_of_class)
