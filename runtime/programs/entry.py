"""Straight-line programs: the executors `graph` (a list of nodes) and `aot` (one machine-code function).

    program ::= {format, version, executor, name, params, result, constants: [number], bounds: {symbol: size},
                 outputs: [{dtype, dims}], arena: bytes, nodes: [node]}            nodes: graph alone
    node    ::= {op: "kernel" | "extern", name, arguments: [argument], span}
    argument::= {kind: "input" | "constant" | "output" | "arena", index, dtype, dims, offset: dim} | {value, dtype}
    copy    ::= {op: "copy", arguments: [source, target]}
    check   ::= {op: "check", name: message, arguments: [size, size]}         ShapeError W222 unless they are equal

All memory that lives within a call is one arena, of a size that is known before; calls that are over leave theirs for
the next ones, one for each thread that runs at the same time.

Errors: ArtifactError W841 for a program of another form, ArgumentError W852 for a size above its bound.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.dtypes import presented
from weft.errors import ArgumentError, ArtifactError, BoundsError, ShapeError, WeftError
from weft.runtime.abi.failures import span_of
from weft.runtime.abi.signature import arranged
from weft.runtime.abi.symbols import Symbols
from weft.runtime.abi.values import copy_into, storage
from weft.runtime.callbacks import isolated
from weft.runtime.programs.vm import adopted, fresh_memory, kernel_scalar
from weft.runtime.registry import lookup

__all__ = ["FORMATS", "VERSION", "AotFunction", "EntryFunction", "GraphFunction", "entry_function"]

FORMATS, VERSION = {"graph": "weft-graph", "aot": "weft-aot"}, 1
_KINDS = ("input", "constant", "output", "arena")


class EntryFunction:
    """A straight-line program, called like a compiled function."""

    def __init__(self, program: Mapping[str, Any], constants: Sequence[np.ndarray]) -> None:
        self.program = program
        self.signature = {"name": program["name"], "kind": "graph", "params": program["params"], "private": False}
        self.name: str = program["name"]
        self.constants = [constants[number] for number in program["constants"]]
        self._arenas: list[np.ndarray] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        names = ", ".join(param["name"] for param in self.program["params"])
        return f"<{self.program['executor']} function {self.name}({names})>"

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run on arrays."""
        given = arranged(self.signature, args, named)
        inputs, copies = adopted(self.name, self.program["params"], given)
        symbols = Symbols()
        for position, (param, value) in enumerate(zip(self.program["params"], inputs, strict=True), 1):
            symbols.match(value, param["type"], f"argument {position} `{param['name']}`")
        for symbol, bound in self.program["bounds"].items():
            if symbols.values.get(symbol, 0) > bound:
                message = f"{self.name}: {symbol} is {symbols.values[symbol]}, and was stated to be at most {bound}"
                raise ArgumentError(message, code="W852")
        outputs = [
            fresh_memory(symbols.shape(item["dims"]), storage(item["dtype"])) for item in self.program["outputs"]
        ]
        arena = self._arena()
        try:
            self.run(inputs, outputs, arena, symbols)
        finally:
            with self._lock:
                self._arenas.append(arena)
        for array, copy in copies:
            array[...] = copy
        shown = map(presented, outputs, (item["dtype"] for item in self.program["outputs"]))
        value = _nested(self.program["result"], shown)
        return value if out is None else copy_into(out, value, "out", self.name)

    def _arena(self) -> np.ndarray:
        with self._lock:
            if self._arenas:
                return self._arenas.pop()
        return fresh_memory((max(1, self.program["arena"]),), np.dtype(np.uint8))

    def run(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], arena: np.ndarray, symbols: Symbols
    ) -> None:
        """Compute the outputs."""
        raise NotImplementedError


def _nested(ty: Sequence[Any], outputs: Iterator[np.ndarray]) -> Any:
    return tuple(_nested(item, outputs) for item in ty[1:]) if ty[0] == "tuple" else next(outputs)


class AotFunction(EntryFunction):
    """One machine-code function from inputs, constants, outputs and arena."""

    def __init__(self, program: Mapping[str, Any], constants: Sequence[np.ndarray], entry: Callable[..., Any]) -> None:
        super().__init__(program, constants)
        self.entry = entry

    def run(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], arena: np.ndarray, symbols: Symbols
    ) -> None:
        """One call."""
        self.entry(*inputs, *self.constants, *outputs, arena)


class GraphFunction(EntryFunction):
    """Nodes, one after the other."""

    def __init__(
        self,
        program: Mapping[str, Any],
        constants: Sequence[np.ndarray],
        kernels: Mapping[str, Callable[..., Any]],
        linked: Mapping[str, Callable[..., Any]],
    ) -> None:
        super().__init__(program, constants)
        self.kernels, self.linked = kernels, linked

    def run(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], arena: np.ndarray, symbols: Symbols
    ) -> None:
        """Every node in order."""
        memories = {"input": inputs, "constant": self.constants, "output": outputs, "arena": [arena]}
        for node in self.program["nodes"]:
            values = [_argument(argument, memories, symbols) for argument in node["arguments"]]
            try:
                if node["op"] == "copy":
                    values[1][...] = values[0]
                elif node["op"] == "check":
                    if values[0] != values[1]:
                        raise ShapeError(f"{node['name']}, but {values[0]} is not {values[1]}", code="W222")
                elif node["op"] == "kernel":
                    function = self.kernels[node["name"]]
                    params = function.signature["params"]  # type: ignore[attr-defined]
                    pairs = zip(params, values, strict=True)
                    function(*(kernel_scalar(v, p["type"][1]) if p["type"][0] == "prim" else v for p, v in pairs))
                else:
                    (self.linked.get(node["name"]) or isolated(lookup(node["name"])))(*values)
            except WeftError as error:
                raise error.at(span_of(node.get("span"))) from None


def _argument(argument: Mapping[str, Any], memories: Mapping[str, Sequence[np.ndarray]], symbols: Symbols) -> Any:
    if "kind" not in argument:
        value = argument["value"]
        return (
            float.fromhex(value[1])
            if isinstance(value, list) and value[0] == "x"
            else (value if isinstance(value, bool) else symbols.size(value))
        )
    memory = memories[argument["kind"]][argument["index"]]
    shape, kind = symbols.shape(argument["dims"]), storage(argument["dtype"])
    offset = symbols.size(argument["offset"])
    if offset == 0 and memory.shape == shape and memory.dtype == kind:
        return memory
    count = kind.itemsize
    for size in shape:
        count *= size
    if offset < 0 or offset + count > memory.nbytes:
        raise BoundsError(f"a tensor that ends at byte {offset + count} does not fit in {memory.nbytes}", code="W903")
    return memory.reshape(-1).view(np.uint8)[offset : offset + count].view(kind).reshape(shape)


def entry_function(
    program: Mapping[str, Any],
    constants: Sequence[np.ndarray],
    kernels: Mapping[str, Callable[..., Any]],
    linked: Mapping[str, Callable[..., Any]],
) -> EntryFunction:
    """The function of a program, checked; ArtifactError W841 when it refers to what is not there."""
    _check(program, kernels, len(constants))
    if program["executor"] == "aot":
        return AotFunction(program, constants, kernels[program["name"]])
    return GraphFunction(program, constants, kernels, linked)


def _check(program: Mapping[str, Any], kernels: Mapping[str, Any], constants: int) -> None:
    try:
        known = FORMATS.get(program["executor"]) == program["format"] and program["version"] == VERSION
        counts = {
            "input": len(program["params"]), "constant": len(program["constants"]), "output": len(program["outputs"]),
            "arena": 1,
        }  # fmt: skip
        wrong = [number for number in program["constants"] if not 0 <= number < constants]
        if program["executor"] == "aot" and program["name"] not in kernels:
            wrong.append(program["name"])
        for node in program.get("nodes", ()):
            if node["op"] not in ("kernel", "extern", "copy", "check") or (
                node["op"] == "kernel" and node["name"] not in kernels
            ):
                wrong.append(node.get("name", node["op"]))
            for item in node["arguments"]:
                if "kind" in item and not 0 <= item["index"] < counts[item["kind"]]:
                    wrong.append(f"{item['kind']} {item['index']}")
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"malformed program: {type(error).__name__} {error}", code="W841") from None
    if not known or wrong:
        what = f"the program refers to {wrong[0]!r}, which is not there" if wrong else "not a program of this version"
        raise ArtifactError(what, code="W841")
