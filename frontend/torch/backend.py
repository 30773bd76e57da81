"""`torch.compile(net, backend="weft", dynamic=True)`: each graph is compiled once for all sizes.

Arrays go in and out without copies. Where gradients are wanted the graph runs in PyTorch as it is, until there are
gradients here.
"""

from __future__ import annotations

from collections import Counter
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
    results = list(graph.graph.output_node().args[0])
    makers = _makers(torch, graph.graph, results)
    made = list(dict.fromkeys(node for node in makers.values() if node.op != "placeholder"))
    nodes = [item for item in results if isinstance(item, torch.fx.Node)]
    computed = list(dict.fromkeys([*made, *(item for item in nodes if item not in makers)]))
    views, main = _views(torch, graph, made, list(makers)), None
    known_sizes = _sizes_of_tensors(torch, graph.graph)
    given = [at for at, node in enumerate(graph.graph.find_nodes(op="placeholder")) if node not in known_sizes]
    if computed:
        with require("torch.utils._python_dispatch", "torch")._disable_current_modes():  # constants are of no mode
            left_out: dict[Any, bool] = dict.fromkeys(known_sizes, False)
            module, _ = Importer().run(graph, graph.graph, left_out.get, lambda node: computed)
            main = compile_module(module)["main"]

    def run(*values: Any) -> list[Any]:
        known: dict[Any, Any] = {}
        if main is not None:
            found = main(*(_array(torch, values[at]) for at in given))
            several = found if len(computed) > 1 else (found,)
            known = {node: _result(torch, node, value) for node, value in zip(computed, several, strict=True)}
        if makers:
            known.update(zip(makers, views(*(known[node] for node in made), *values), strict=True))
        return [known[item] if isinstance(item, torch.fx.Node) else item for item in results]

    return require("torch._functorch.aot_autograd", "torch").make_boxed_func(run)


def _sizes_of_tensors(torch: Any, graph: Any) -> list[Any]:
    """The inputs that are sizes of tensors among the inputs: tensors say what these are, and calls are quicker."""
    inputs = [(node, node.meta.get("val")) for node in graph.find_nodes(op="placeholder")]
    tensors = [value for _, value in inputs if isinstance(value, torch.Tensor)]
    known = {size.node.expr for tensor in tensors for size in tensor.shape if isinstance(size, torch.SymInt)}
    return [
        node
        for node, value in inputs
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol and value.node.expr in known
    ]


def _makers(torch: Any, graph: Any, results: Sequence[Any]) -> dict[Any, Any]:
    """The results that are views, and the node whose memory each shows: an input, or what several results show.

    PyTorch makes these views: where they are views of an input to the caller too, it takes their strides and their
    place in memory from them.
    """

    def memory(node: Any) -> Any:
        value: Any = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None

    first: dict[Any, Any] = {}
    for node in graph.nodes:
        first.setdefault(memory(node), node)
    counts = Counter(memory(item) for item in dict.fromkeys(results) if isinstance(item, torch.fx.Node))
    found: dict[Any, Any] = {}
    for item, own in ((item, memory(item)) for item in results if isinstance(item, torch.fx.Node)):
        maker = first[own]
        if own is None or (maker.op != "placeholder" and (maker is item or counts[own] < 2 or not _is_dense(maker))):
            continue
        found[item] = maker
    return found


def _is_dense(node: Any) -> bool:
    """Whether a tensor lies as ours do, in what is known of its sizes."""
    value, step = node.meta["val"], 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        if str(stride) != str(step):
            return False
        step = step * size
    return True


def _views(torch: Any, graph: Any, made: Sequence[Any], wanted: Sequence[Any]) -> Any:
    """The part of a graph that makes some of its nodes of others and of the inputs."""
    part = torch.fx.Graph()
    copies = {node: part.placeholder(f"made_{at}") for at, node in enumerate(made)}
    part.graph_copy(graph.graph, copies)
    part.output([copies[node] for node in wanted])
    part.eliminate_dead_code()
    return torch.fx.GraphModule(graph, part)


def _array(torch: Any, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return offered_array(value.detach())  # over the same memory


def _result(torch: Any, node: Any, value: Any) -> Any:
    """A result as PyTorch has it: a tensor over the same memory, or a number."""
    for kind, number in ((torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool)):
        if isinstance(node.meta.get("val"), kind):
            return number(value)
    if not isinstance(value, np.ndarray):
        return value
    value = value if value.flags.writeable else value.copy()
    return torch.from_numpy(value) if value.dtype.isbuiltin == 1 else torch.from_dlpack(to_dlpack(value))
