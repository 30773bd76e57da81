# pyright: reportMissingImports=false
"""Whether an exported program can be imported as it stands.

PyTorch takes a program apart, and its writes in place out of it, by tracing it again, which takes seconds. A program
whose operators all have rows needs that only for writes that something else can see. A node that writes a tensor is
the same as one that gives a new one when the tensor

    is a node's result of its own (no input, no view), and
    is read by no later node, nor is what a view of it shows
"""

from __future__ import annotations

import operator
from typing import Any

from weft.frontend.extras import require
from weft.frontend.torch.importer import CHECKS, call_of
from weft.frontend.torch.table import TABLE

__all__ = ["is_ready"]

_COMPOSITES = frozenset(("batch_norm", "conv1d", "conv2d", "conv3d", "group_norm", "layer_norm", "linear", "matmul"))
"""Operators defined by others whose results are tensors of their own, always; that of others can be an argument."""
_TRAINED = ("batch_norm", "instance_norm")  # these write their statistics, and their definitions do not say so


def is_ready(graph: Any) -> bool:
    """Whether all nodes of a graph have rows, and none writes what another node can see."""
    order = {node: at for at, node in enumerate(graph.nodes)}
    return all(_is_ready(node, order) for node in graph.nodes if node.op != "output")


def _is_ready(node: Any, order: dict[Any, int]) -> bool:
    if node.op != "call_function":
        return node.op == "placeholder"
    call = call_of(node)
    if not hasattr(node.target, "_schema"):
        return node.target is operator.getitem or not isinstance(call.value, require("torch", "torch").Tensor)
    if call.operator in _TRAINED and (call.operator == "instance_norm" or call.args[5]):
        return False
    known = call.operator in TABLE or call.operator == "sym_size" or call.operator.startswith(CHECKS)
    return known and all(_is_unseen(written, node, order) for written in _written(node))


def _written(node: Any) -> list[Any]:
    """The arguments that a node writes."""
    arguments = node.target._schema.arguments
    named = [*zip((item.name for item in arguments), node.args, strict=False), *node.kwargs.items()]
    places = {item.name for item in arguments if item.alias_info is not None and item.alias_info.is_write}
    return [value for name, value in named if name in places]


def _is_unseen(tensor: Any, writer: Any, order: dict[Any, int]) -> bool:
    """Whether nothing but the writer's own result shows what it writes."""
    if getattr(tensor, "op", "") != "call_function" or not _is_own(tensor):
        return False
    others = [user for user in tensor.users if user is not writer]
    return all(order[user] < order[writer] and user.op == "call_function" and _is_own(user) for user in others)


def _is_own(node: Any) -> bool:
    """Whether the results of a node share no memory with its arguments, but with those that it writes."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    if any(item.alias_info is not None and not item.alias_info.is_write for item in schema.returns):
        return False
    composite = require("torch", "torch")._C._dispatch_has_kernel_for_dispatch_key(
        node.target.name(), "CompositeImplicitAutograd"
    )
    return not composite or node.target._opname in _COMPOSITES
