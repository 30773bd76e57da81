"""In which precision an operator may compute: the policy that a declaration states, read by `ToMixedPrecision`.

    always("x1", "x2")          products: their operands are cast to half precision, sums run in the wide type
    follow("x1", "x2")          elementwise: half where the operands are there in half, else as they come
    follow("x", Reads.WHOLE)    moves elements, or reads each several times: what it reads is stored in half
    follow("x", Reads.PART)     reads some elements of a larger tensor: what it gives is cast, not what it reads
    written_out()               the operators that it is written out as have policies of their own
    never("why")                float32 stays float32

Names are those of the operands that change; others (indices, masks, lengths) stay as they are. A declaration that says
nothing has the reason of its family, below; one from outside without either is `never`.
"""

from __future__ import annotations

from enum import StrEnum

from weft.support.records import record

__all__ = [
    "DECIDES",
    "FAMILIES",
    "RANGE",
    "UNDECLARED",
    "Policy",
    "Precision",
    "Reads",
    "always",
    "follow",
    "never",
    "written_out",
]


class Policy(StrEnum):
    """Whether an operator computes in half precision."""

    ALWAYS = "always"
    FOLLOW = "follow"
    NEVER = "never"


class Reads(StrEnum):
    """What an operator that follows reads of its operands."""

    ELEMENTS = "each element once, in its place"
    WHOLE = "elements in another order, or several times"
    PART = "some elements of a larger tensor"


@record
class Precision:
    """The policy of an operator, the operands that it is about, and why where it is `never`.

    >>> always("x1", "x2").policy, never("it counts").reason
    (<Policy.ALWAYS: 'always'>, 'it counts')
    """

    policy: Policy
    operands: tuple[str, ...] = ()
    reads: Reads = Reads.ELEMENTS
    reason: str = ""
    by_parts: bool = False
    """Whether the operators that it is written out as decide."""

    def __post_init__(self) -> None:
        if (self.policy == Policy.NEVER) == bool(self.operands or self.by_parts):
            raise ValueError(f"policy {self.policy} with operands {self.operands}")
        if (self.policy == Policy.NEVER) != bool(self.reason):
            raise ValueError("a policy says why exactly where it is never")


def always(*operands: str) -> Precision:
    """The policy of products: half operands, sums in a wide type."""
    return Precision(Policy.ALWAYS, operands)


def follow(*operands: str, reads: Reads = Reads.ELEMENTS) -> Precision:
    """The policy of what computes well in either precision."""
    return Precision(Policy.FOLLOW, operands, reads)


def written_out() -> Precision:
    """The policy of an operator whose parts have policies of their own."""
    return Precision(Policy.FOLLOW, by_parts=True)


def never(reason: str) -> Precision:
    """The policy of what needs float32, and why."""
    return Precision(Policy.NEVER, reason=reason)


RANGE = never("its values leave the range of float16, or it makes the errors of its operand larger")
DECIDES = never("it decides by values, which rounding makes equal")
UNDECLARED = never("its declaration says nothing of precision")
_SUMS = never("it sums or compares many elements")
_CALLEE = never("the function that it calls states the types of its operands")
_MEMORY = never("it says where values lie, not what they are")
_MADE = never("it reads no values of tensors")
_LOSS = never("losses add small numbers to large ones")
_SOLVES = never("factors and solutions lose their digits in half precision")
_PLACES = never("its operands name places, which rounding moves")
_SPREAD = never("every device states the types of its own part")

FAMILIES: dict[str, Precision] = {
    "binary": RANGE,
    "call": _CALLEE,
    "create": _MADE,
    "dynamic": DECIDES,
    "elementwise_datatype": never("the program says which type it wants"),
    "elementwise_quantize": never("scales are kept exactly"),
    "elementwise_requantize": never("it computes on integers"),
    "fft": _SUMS,
    "grad": never("gradients are kept in the type of what they update"),
    "indexing_scatter": _SUMS,
    "indexing_search": DECIDES,
    "indexing_selection": _SUMS,
    "indexing_sorting": DECIDES,
    "inspection": _MEMORY,
    "linear_algebra": _SOLVES,
    "manipulate": DECIDES,
    "nn_activations": RANGE,
    "nn_attention": _CALLEE,
    "nn_ctc": _LOSS,
    "nn_loss": _LOSS,
    "nn_norm": never("sums of many elements and exponentials lose their digits in half precision"),
    "nn_pool": _SUMS,
    "nn_pool_indices": DECIDES,
    "nn_window": _SUMS,
    "program_call": _CALLEE,
    "program_distributed": _SPREAD,
    "program_loop": never("the types that a loop carries are stated"),
    "program_memory": _MEMORY,
    "program_shape_ops": _MEMORY,
    "quantized": never("its weights have fewer bits already"),
    "reductions_statistical": _SUMS,
    "signal": _SUMS,
    "statistical": _SUMS,
    "search": DECIDES,
    "unary": RANGE,
    "vision_detection": _PLACES,
    "vision_image": _PLACES,
    "vision_regions": _PLACES,
    "window": _MADE,
}
"""The policies of families whose declarations state none."""
