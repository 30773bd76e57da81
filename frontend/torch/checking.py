"""An exported program held against PyTorch on random inputs; the first node that differs is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.codegen import compile as compile_module
from weft.errors import ModelError
from weft.frontend.comparison import CheckResult, difference, input_shape, require_symbols, same
from weft.frontend.extras import require
from weft.frontend.torch.importer import Importer
from weft.frontend.torch.program import Program, array_of, read_program, taken_apart

__all__ = ["check"]


def check(
    program: Any,
    inputs: Sequence[Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    rtol: float = 1e-3,
    atol: float = 1e-5,
) -> CheckResult:
    """Compare a program with PyTorch on given or random inputs.

    `sizes` are those of its symbols, by default 3. Raises what `from_exported` raises; ModelError W978 for a symbol
    that its inputs do not have, and an input that no tensor can be made for.
    """
    read = read_program(taken_apart(read_program(program).exported))
    importer = Importer()
    read.name_sizes(importer.sizes)
    nodes: list[Any] = []

    def outputs(last: Any) -> list[Any]:
        nodes.extend(node for node in read.exported.graph.nodes if _is_tensor(importer, node))
        return [*read.ordered_results(last), *nodes]

    graph = read.exported
    module, _ = importer.run(graph.graph_module, graph.graph, read.placeholder, outputs)
    given = list(inputs) if inputs is not None else _random(importer, read, dict(sizes or {}), seed)
    state = list(read.initial_state.values())
    found = compile_module(module)["main"](*map(array_of, given), *state)
    found = list(found) if isinstance(found, tuple) else [found]
    wanted = _values(read, given)
    pairs = [(a, array_of(wanted[node]), node) for a, node in zip(found[len(found) - len(nodes) :], nodes, strict=True)]
    results = [(a, b) for a, b, node in pairs if any(user.op == "output" for user in node.users)]
    worst = max((difference(a, b) for a, b in results), default=0.0)
    if all(same(a, b, rtol, atol) for a, b in results):
        return CheckResult(True, "PyTorch", worst)
    first = next(node for a, b, node in pairs if not same(a, b, rtol, atol))
    return CheckResult(False, "PyTorch", worst, first.format_node() or first.name)


def _is_tensor(importer: Importer, node: Any) -> bool:
    """Whether a node was imported as a tensor."""
    value = node.meta.get("val")
    return node.op == "call_function" and isinstance(value, importer.torch.Tensor) and node in importer.values


def _random(importer: Importer, read: Program, sizes: dict[str, int], seed: int) -> list[Any]:
    """Random tensors for the inputs of a program."""
    torch, made = importer.torch, []
    generator = torch.Generator().manual_seed(seed)
    placeholders = [node for node in read.exported.graph.nodes if node.op == "placeholder"]
    inputs = [node for node in placeholders if node.name not in read.held and node.name not in read.skipped]
    shapes = [getattr(node.meta["val"], "shape", ()) for node in inputs]
    require_symbols(sizes, (importer.sizes.dim(size) for shape in shapes for size in shape))
    for node in inputs:
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            raise ModelError(f"no random value can be made for the input {node.name!r}", code="W978", hint="give it")
        dims = [importer.sizes.dim(size) for size in value.shape]
        shape = input_shape(node.name, dims, sizes)
        if value.is_complex():
            made.append(torch.randn(shape, generator=generator, dtype=value.dtype))
        elif value.dtype.is_floating_point:
            made.append(torch.randn(shape, generator=generator).to(value.dtype))
        else:
            made.append(torch.randint(0, 2, shape, generator=generator).to(value.dtype))
    return made


def _values(read: Program, inputs: Sequence[Any]) -> dict[Any, Any]:
    """What PyTorch computes at each node."""
    torch = require("torch", "torch")
    values: dict[Any, Any] = {}

    class Kept(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            values[n] = super().run_node(n)
            return values[n]

    given, arguments = iter(inputs), []
    for node in read.exported.graph.nodes:
        if node.op == "placeholder":
            held = read.held.get(node.name)
            skipped = torch.tensor([]) if node.name in read.skipped else None
            arguments.append(skipped if skipped is not None else held if held is not None else next(given).clone())
    with torch.no_grad():
        Kept(read.exported.graph_module).run(*arguments)
    return values
