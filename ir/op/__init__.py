"""Operators: one declaration each, one file per family.

    get_op("nn.softmax")       the declaration; ScriptError W140 with the nearest names when there is none
    OPS                        every declaration by name
    register_op(name, ...)     declare an operator: a decorator of its type rule (for other packages too)

The families are loaded when this package is first imported, which happens at the first question about an operator.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import Any

from weft.errors import ScriptError, Span
from weft.ir.op.declare import REQUIRED, RUN_TIME, Arguments, Example, OpDef, Param
from weft.ir.op.registry import OPS, add_op, register_op

__all__ = [
    "FAMILIES",
    "OPS",
    "REQUIRED",
    "RUN_TIME",
    "Arguments",
    "Example",
    "OpDef",
    "Param",
    "add_op",
    "get_op",
    "register_op",
]

FAMILIES = (
    "unary",
    "binary",
    "manipulate",
    "index",
    "scatter",
    "create",
    "datatype",
    "base",
    "memory",
    "linear_algebra",
    "statistical",
    "search",
    "sorting",
    "nn",
    "nn_norm",
    "nn_conv",
    "nn_pool",
    "nn_attention",
    "nn_loss",
    "layout",
    "quantize",
    "selection",
    "dynamic",
    "window",
    "distributed",
    "inspection",
    "image",
    "vision",
    "detection",
    "gradient",
    "call",
)


def get_op(name: str, span: Span | None = None) -> OpDef:
    """The declaration of an operator by its name without `R.`.

    >>> get_op("exp").signature
    'exp(x)'
    """
    found = OPS.get(name)
    if found is None:
        close = difflib.get_close_matches(name, OPS, 3) or [
            known for known in OPS if known.rpartition(".")[2] == name.rpartition(".")[2]
        ]
        hint = f"did you mean {' or '.join(f'R.{known}' for known in close)}?" if close else None
        raise ScriptError(f"unknown operator R.{name}", code="W140", span=span, hint=hint)
    return found


for _family in FAMILIES:
    importlib.import_module(f"weft.ir.op.{_family}")
