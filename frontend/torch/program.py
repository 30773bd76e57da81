# pyright: reportMissingImports=false
"""An exported program as an import sees it: what it holds, what it changes, and its operators taken apart as far as the
table has no rows for them.

    inputs     of the program, in order; then the buffers that it changes (its state); then weights, where these are
               parameters
    results    of the program, in order; then the new values of inputs that it changes; then the new state
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import MissingExtraError, ModelError
from weft.frontend.extras import require
from weft.frontend.torch.sizes import Sizes
from weft.frontend.torch.table import TABLE
from weft.support.dlpack import offered_array
from weft.support.records import dataclass

__all__ = ["Program", "array_of", "read_file", "read_program"]

_SMALL = 64  # elements of a weight that stays a constant


def array_of(tensor: Any) -> np.ndarray:
    """The array of a tensor, of the same memory where it lies dense; bfloat16 as that of `ml_dtypes`."""
    array = offered_array(tensor.detach().contiguous())
    assert array is not None  # tensors offer one, or fail
    return array


def read_file(path: Path) -> Any:
    """The exported program that `torch.export.save` wrote; ModelError W973 for another file."""
    log = logging.getLogger("torch.export")
    level = log.level
    try:
        loader = require("torch.export", "torch")
        log.setLevel(logging.CRITICAL)  # it writes the traceback of what it then tries in another way
        return loader.load(path)
    except MissingExtraError:
        raise
    except Exception as error:  # of many kinds
        why = (str(error).splitlines() or [type(error).__name__])[0]
        hint = "torch.export.save(program, path) writes one"
        raise ModelError(f"{path} is no exported program: {why}", code="W973", hint=hint) from None
    finally:
        log.setLevel(level)


@dataclass(frozen=True)
class Program:
    """See the module; `kinds` says of each placeholder what it is, `results` orders the outputs."""

    exported: Any
    held: Mapping[str, Any]
    state: Mapping[str, str]
    skipped: frozenset[str]

    def placeholder(self, node: Any, parameters: bool = False) -> Any:
        """What an import makes of a placeholder: None for a parameter, an array, the name of one that comes later."""
        if node.name in self.skipped:
            return False
        if node.name not in self.held or node.name in self.state:
            return self.state.get(node.name)
        return node.name if parameters and node.name in self.weights else array_of(self.held[node.name])

    @property
    def weights(self) -> list[str]:
        """The placeholders of what the program holds and does not change, large enough to be parameters."""
        return [node for node, tensor in self.held.items() if node not in self.state and tensor.numel() > _SMALL]

    @property
    def initial_state(self) -> dict[str, np.ndarray]:
        """The values that the buffers have before the first call, by their names in the model."""
        return {name: array_of(self.held[node]).copy() for node, name in self.state.items()}

    @property
    def shape_environment(self) -> Any:
        """What PyTorch knows of the symbols; None for a program that was read from a file."""
        for node in self.exported.graph.nodes:
            found = getattr(getattr(node.meta.get("val"), "fake_mode", None), "shape_env", None)
            if found is not None:
                return found
        return None

    def name_sizes(self, sizes: Sizes) -> None:
        """Call symbols as the user does, and others by the inputs whose sizes they are."""
        if (environment := self.shape_environment) is not None:
            sizes.name(environment.source_to_var, environment.source_name_to_debug_name)
        given = {node.name: node.meta.get("val") for node in self.exported.graph.nodes if node.op == "placeholder"}
        sizes.name_axes({name: getattr(value, "shape", ()) for name, value in given.items()})

    def ordered_results(self, node: Any) -> list[Any]:
        """The outputs of the graph in the order of the results; tokens of effects are none."""
        first: list[Any] = []
        inputs: list[Any] = []
        state: dict[str, Any] = {}
        for spec, item in zip(self.exported.graph_signature.output_specs, node.args[0], strict=True):
            kind = spec.kind.name
            if kind == "BUFFER_MUTATION":
                state[spec.target] = item
            elif kind == "USER_INPUT_MUTATION":
                inputs.append(item)
            elif kind != "TOKEN":
                first.append(item)
        return [*first, *inputs, *(state[name] for name in self.state.values())]


def read_program(program: Any) -> Program:
    """What an exported program is made of; ModelError W977 for another value."""
    torch = require("torch", "torch")
    if not isinstance(program, torch.export.ExportedProgram):
        raise ModelError(
            f"an exported program is wanted, got {type(program).__name__}",
            code="W977",
            hint="torch.export.export(net, args)",
        )
    signature = program.graph_signature
    values = {**program.state_dict, **program.constants}
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    held = {node: values[name] for node, name in names.items()}
    changed = set(signature.buffers_to_mutate.values())
    state = {node: name for node, name in names.items() if name in changed}
    tokens = frozenset(spec.arg.name for spec in signature.input_specs if spec.kind.name in ("TOKEN", "CUSTOM_OBJ"))
    return Program(program, held, state, tokens)


def taken_apart(program: Any, operators: Iterable[Any] | None = None) -> Any:
    """The program with operators that have no row in terms of others; or some operators, where PyTorch defines them."""
    torch = require("torch", "torch")
    if operators is not None:
        found = require("torch._decomp", "torch").get_decompositions(list(operators))
        try:
            return program.run_decompositions(found) if found else program
        except Exception:  # some definitions cannot be traced
            return program
    table = torch.export.default_decompositions()
    for operator in [key for key in table if getattr(key, "_opname", "") in TABLE]:
        table.pop(operator)
    try:
        return program.run_decompositions(table)
    except Exception as error:  # of many kinds
        what = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise ModelError(f"PyTorch cannot take the program apart (run_decompositions): {what}", code="W977") from error
