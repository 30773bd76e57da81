"""`torch.compile(net, backend="weft", dynamic=True)`: each graph is compiled once for all sizes.

Arrays go in and out without copies. Where gradients are wanted the graph runs in PyTorch as it is, until there are
gradients here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.codegen import compile as compile_module
from weft.frontend.extras import require
from weft.frontend.torch.importer import Importer
from weft.support.dlpack import offered_array, to_dlpack

__all__ = ["compile_graph"]


def compile_graph(graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    """The function that runs a graph of `torch.compile`: what its entry point `torch_dynamo_backends` names."""
    torch = require("torch", "torch")
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(value.requires_grad for value in tensors):
        return graph.forward
    if any(value.device.type != "cpu" for value in tensors):
        return graph.forward
    autograd = require("torch._dynamo.backends.common", "torch").aot_autograd
    decompositions = require("torch._decomp", "torch").core_aten_decompositions()
    return autograd(fw_compiler=_compiled, decompositions=decompositions)(graph, inputs)


def _compiled(graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    """A compiled graph of ATen operators; PyTorch's own where it has a value that has no form here."""
    torch = require("torch", "torch")
    results: list[Any] = []

    def outputs(node: Any) -> list[Any]:
        results.extend(node.args[0])
        return [item for item in results if isinstance(item, torch.fx.Node)]

    with require("torch.utils._python_dispatch", "torch")._disable_current_modes():  # constants are tensors of no mode
        module, _ = Importer().run(graph, graph.graph, lambda node: None, outputs)
        main = compile_module(module)["main"]
    present = [isinstance(item, torch.fx.Node) for item in results]

    def run(*values: Any) -> list[Any]:
        found = main(*(_array(torch, value) for value in values))
        made = iter(found if sum(present) > 1 else (found,))
        return [
            _tensor(torch, next(made)) if is_value else item for is_value, item in zip(present, results, strict=True)
        ]

    return require("torch._functorch.aot_autograd", "torch").make_boxed_func(run)


def _array(torch: Any, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return offered_array(value.detach())  # over the same memory


def _tensor(torch: Any, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return int(value) if isinstance(value, np.integer) else value
    return torch.from_dlpack(to_dlpack(value if value.flags.writeable else value.copy()))
