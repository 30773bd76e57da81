"""Operators: one declaration each, one file per family.

    get_op("nn.softmax")       the declaration; ScriptError W140 with the nearest names when there is none
    OPS                        every declaration by name
    register_op(name, ...)     declare an operator: a decorator of its type rule (for other packages too)

The families are loaded when this package is first imported, which happens at the first question about an operator.
"""

from __future__ import annotations

import difflib
import importlib

from weft.errors import ScriptError, Span
from weft.ir.op.declare import REQUIRED, RUN_TIME, Arguments, Builtin, Example, OpDef, Param
from weft.ir.op.registry import OPS, add_op, register_op

__all__ = [
    "FAMILIES",
    "OPS",
    "REQUIRED",
    "RUN_TIME",
    "Arguments",
    "Builtin",
    "Example",
    "OpDef",
    "Param",
    "add_op",
    "get_op",
    "likely_operators",
    "register_op",
]

FAMILIES = (
    "elementwise.unary",
    "elementwise.binary",
    "manipulate",
    "indexing.index",
    "indexing.scatter",
    "create",
    "elementwise.datatype",
    "elementwise.complex_numbers",
    "program.shape_ops",
    "program.memory",
    "linalg.products",
    "quantized",
    "reductions.statistical",
    "indexing.search",
    "indexing.sorting",
    "indexing.ranks",
    "indexing.row_order",
    "nn.activations",
    "nn.norm",
    "nn.conv",
    "nn.pool",
    "nn.pool_indices",
    "nn.deformable",
    "nn.ctc",
    "nn.attention",
    "nn.loss",
    "layout",
    "elementwise.quantize",
    "elementwise.requantize",
    "indexing.selection",
    "dynamic",
    "window",
    "program.distributed",
    "program.inspection",
    "vision.image",
    "vision.regions",
    "vision.detection",
    "grad",
    "program.call",
    "program.loop",
    "elementwise.special",
    "elementwise.gamma",
    "composite.membership",
    "composite.reductions",
    "composite.arrangement",
    "composite.activations",
    "composite.windows",
    "composite.random",
    "composite.fourier",
    "composite.transforms",
    "composite.frames",
    "composite.tapers",
    "composite.selection",
    "composite.scattering",
    "indexing.rearranged",
    "nn.recurrent",
    "linalg.factors",
    "linalg.spectra",
)


_ELSEWHERE = {
    "T": "permute_dims",
    "mT": "permute_dims",
    "transpose": "permute_dims",
    "permute": "permute_dims",
    "swapaxes": "permute_dims",
    "view": "reshape",
    "ravel": "flatten",
    "unsqueeze": "expand_dims",
    "cat": "concat",
    "concatenate": "concat",
    "dot": "matmul",
    "mm": "matmul",
    "bmm": "matmul",
    "to": "astype",
    "cast": "astype",
    "type": "astype",
    "float": "astype",
    "int": "astype",
    "half": "astype",
    "clamp": "clip",
    "amax": "max",
    "amin": "min",
    "masked_fill": "where",
    "select": "where",
    "index_select": "take",
    "narrow": "strided_slice",
    "slice": "strided_slice",
    "chunk": "split",
    "expand": "broadcast_to",
    "pow": "power",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negative",
    "gather": "gather_elements",
    "scatter": "scatter_elements",
    "scatter_": "scatter_elements",
    "var": "variance",
    "pad": "nn.pad",
    "swish": "nn.silu",
    "reciprocal": "divide",
    "fill": "full",
}
"""Operators by names that they have in NumPy, PyTorch and other libraries."""

_COMPOSED = {
    "addmm": "write R.add(R.matmul(a, b), c)",
}
"""What several operators make together, by names that it has there."""


def likely_operators(name: str) -> list[str]:
    """The operators that a wrong name (without `R.`) may mean, the likeliest first; at most three.

    >>> likely_operators("view"), likely_operators("softmx")[0]
    (['reshape'], 'nn.softmax')
    """
    last = name.rpartition(".")[2]
    exact = [known for known in (name, _ELSEWHERE.get(last, "")) if known in OPS]
    if exact:
        return exact[:1]
    same = [known for known in OPS if known.rpartition(".")[2] == last]
    near = difflib.get_close_matches(name, OPS, 3, 0.65)
    return list(dict.fromkeys([*same, *near]))[:3]


def get_op(name: str, span: Span | None = None) -> OpDef:
    """The declaration of an operator by its name without `R.`.

    >>> get_op("exp").signature
    'exp(x)'
    """
    found = OPS.get(name)
    if found is None:
        close = likely_operators(name)
        near = f"did you mean {' or '.join(f'R.{known}' for known in close)}?" if close else None
        hint = _COMPOSED.get(name, near)
        raise ScriptError(f"unknown operator R.{name}", code="W140", span=span, hint=hint)
    return found


for _family in FAMILIES:
    importlib.import_module(f"weft.ir.op.{_family}")
