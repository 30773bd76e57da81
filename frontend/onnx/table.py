"""The table of operators: one row for each, a function from a node to an expression of ours.

    row("Relu", lambda n, x: R.nn.relu(x))               the parameters after the node are its inputs, as expressions
    row("Softmax", softmax_of_rows, since=1)             versions are rows of one operator: the greatest that is not
    row("Softmax", softmax, since=13)                    above the model's holds
    row("Gelu", gelu, domain="com.microsoft")

A function returns an expression, a tuple of them (one for each output; None for one that is not wanted), or arrays that
are known. Inputs that are left out, and those that are not there, are None; a parameter with a star takes all that are
left. `weft.frontend.emitter.Unsupported` says why a node has no native form: it becomes a Python function then. An
operator without a row is what ONNX defines it as (`DEFINED`), or `REASONS` says why it runs in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.support.records import record

__all__ = ["DEFINED", "REASONS", "TABLE", "Row", "find_row", "row"]


@record
class Row:
    """One operator from one version on.

    `inputs` is how many inputs the function takes as expressions, None for all; `values` says that inputs need not be
    tensors of known rank.
    """

    operator: str
    function: Callable[..., Any]
    since: int
    domain: str
    inputs: int | None
    values: bool


TABLE: dict[tuple[str, str], list[Row]] = {}
"""(domain, operator) -> rows, the newest first."""

DEFINED = frozenset(
    "Attention CausalConvWithState LinearAttention NegativeLogLikelihoodLoss RotaryEmbedding SoftmaxCrossEntropyLoss"
    " SwiGLU".split()
)
"""Operators of the default domain without a row, which ONNX defines in terms of others."""

_REASONS = {
    "its values are strings, which pass through and are not computed with": (
        "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"
    ),
    "it reads files of pictures (JPEG, PNG, ...)": "ImageDecoder",
    "random numbers come from the state of a generator, which a call advances": (
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
    ),
}
REASONS = {name: why for why, names in _REASONS.items() for name in names.split()}
"""An operator of the default domain that has no row -> why it has none."""


def row(operator: str, function: Callable[..., Any], *, since: int = 1, domain: str = "", values: bool = False) -> None:
    """Add a row; a later one for the same operator and version replaces it."""
    code = function.__code__
    inputs = None if code.co_flags & 0x04 else code.co_argcount - 1
    rows = TABLE.setdefault((domain, operator), [])
    rows[:] = [known for known in rows if known.since != since]
    rows.append(Row(operator, function, since, domain, inputs, values))
    rows.sort(key=lambda item: -item.since)


def find_row(domain: str, operator: str, version: int) -> Row | None:
    """The row of an operator in a version of its domain, None when there is none."""
    return next((item for item in TABLE.get((domain, operator), ()) if item.since <= version), None)
