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

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.dtypes import presented
from weft.errors import ArgumentError, ArtifactError, BoundsError, ShapeError, WeftError, note_call, printable
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Dim
from weft.runtime.abi.failures import span_of
from weft.runtime.abi.json_form import dim_from_json, parameter_from_json, type_from_json
from weft.runtime.abi.scalars import storage
from weft.runtime.abi.signature import arranged
from weft.runtime.abi.symbols import Symbols
from weft.runtime.abi.values import copy_into
from weft.runtime.callbacks import outside
from weft.runtime.programs.vm import adopted, fresh_memory, kernel_scalar
from weft.support.array_memory import content_bytes
from weft.support.isolation import Typed
from weft.support.profile import Profiled
from weft.support.records import record

__all__ = ["FORMATS", "VERSION", "AotFunction", "EntryFunction", "GraphFunction", "entry_function", "entry_functions"]

FORMATS, VERSION = {"graph": "weft-graph", "aot": "weft-aot"}, 1
_KINDS = ("input", "constant", "output", "arena")


class EntryFunction(Profiled):
    """A straight-line program, called like a compiled function."""

    def __init__(self, program: Mapping[str, Any], constants: Sequence[np.ndarray]) -> None:
        self.program = program
        params = tuple(map(parameter_from_json, program["params"]))
        self.signature = abi.Signature(program["name"], "graph", "", params, type_from_json(program["result"]))
        self.name: str = program["name"]
        self.outputs = [(_dims(item["dims"]), str(item["dtype"])) for item in program["outputs"]]
        self.constants = [constants[number] for number in program["constants"]]
        self._arenas: list[np.ndarray] = []

    def __repr__(self) -> str:
        names = ", ".join(param.name for param in self.signature.params)
        return printable(f"<{self.program['executor']} function {self.name}({names})>")

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run on arrays."""
        given = arranged(self.signature, args, named)
        inputs, copies = adopted(self.name, self.signature.params, given)
        symbols = Symbols()
        for position, (param, value) in enumerate(zip(self.signature.params, inputs, strict=True), 1):
            symbols.match(value, param.type, f"argument {position} `{param.name}`")
        for symbol, bound in self.program["bounds"].items():
            if symbols.values.get(symbol, 0) > bound:
                message = f"{self.name}: {symbol} is {symbols.values[symbol]}, and was stated to be at most {bound}"
                raise ArgumentError(message, code="W852")
        outputs = [fresh_memory(symbols.shape(dims), storage(dtype)) for dims, dtype in self.outputs]
        arena = self._arena()
        try:
            self.run(inputs, outputs, arena, symbols)
        finally:
            self._arenas.append(arena)
        for array, copy in copies:
            array[...] = copy
        shown = map(presented, outputs, (dtype for _, dtype in self.outputs))
        value = _nested(self.signature.result, shown)
        return value if out is None else copy_into(out, value, "out", self.name)

    def _arena(self) -> np.ndarray:
        try:
            return self._arenas.pop()
        except IndexError:  # all are in use
            pass
        return fresh_memory((max(1, self.program["arena"]),), np.dtype(np.uint8))

    def run(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], arena: np.ndarray, symbols: Symbols
    ) -> None:
        """Compute the outputs."""
        raise NotImplementedError


def _nested(ty: abi.Type | None, outputs: Iterator[np.ndarray]) -> Any:
    return tuple(_nested(field, outputs) for field in ty.fields) if isinstance(ty, abi.Tuple) else next(outputs)


def _dims(data: Sequence[Any]) -> tuple[Dim, ...]:
    return tuple(map(dim_from_json, data))


@record
class Place:
    """A tensor that a node reads or writes: where it is, from which byte on, its sizes."""

    kind: str
    index: int
    dtype: str
    dims: tuple[Dim, ...]
    offset: Dim


@record
class Size:
    """A number that is computed from the symbols of the call."""

    dim: Dim


@record
class Node:
    """One node: a kernel, a function outside, a copy or a check."""

    op: str
    name: str
    arguments: tuple[Place | Size | float | bool, ...]
    span: list[Any] | None


def _read_node(data: Mapping[str, Any]) -> Node:
    arguments = tuple(map(_read_argument, data["arguments"]))
    return Node(data["op"], data.get("name", ""), arguments, data.get("span"))


def _read_argument(data: Mapping[str, Any]) -> Place | Size | float | bool:
    if "kind" in data:
        return Place(data["kind"], data["index"], data["dtype"], _dims(data["dims"]), dim_from_json(data["offset"]))
    value = data["value"]
    if isinstance(value, list) and value[0] == "x":
        return float.fromhex(value[1])
    return value if isinstance(value, bool) else Size(dim_from_json(value))


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
        self.nodes = tuple(map(_read_node, program["nodes"]))

    def run(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], arena: np.ndarray, symbols: Symbols
    ) -> None:
        """Every node in order."""
        memories = {"input": inputs, "constant": self.constants, "output": outputs, "arena": [arena]}
        for node in self.nodes:
            values = [_argument(argument, memories, symbols) for argument in node.arguments]
            try:
                if node.op == "copy":
                    values[1][...] = values[0]
                elif node.op == "check":
                    if values[0] != values[1]:
                        raise ShapeError(f"{node.name}, but {values[0]} is not {values[1]}", code="W222")
                elif node.op == "kernel":
                    function = self.kernels[node.name]
                    params = function.signature.params  # type: ignore[attr-defined]
                    pairs = zip(params, values, strict=True)
                    function(*(_scalar(value, param.type) for param, value in pairs))
                else:
                    outside(self.linked, node.name)(*map(_typed, node.arguments, values))
            except WeftError as error:
                raise error.at(span_of(node.span)) from None
            except Exception as error:
                if node.op not in ("copy", "check", "kernel"):  # it is the user's function's
                    note_call(error, node.name, span_of(node.span))
                raise


def _typed(argument: Place | Size | float | bool, value: Any) -> Any:
    return Typed(value, argument.dtype) if isinstance(argument, Place) else value


def _scalar(value: Any, ty: abi.Type) -> Any:
    return kernel_scalar(value, ty.dtype) if isinstance(ty, abi.Scalar) else value


def _argument(
    argument: Place | Size | float | bool, memories: Mapping[str, Sequence[np.ndarray]], symbols: Symbols
) -> Any:
    if isinstance(argument, Size):
        return symbols.size(argument.dim)
    if not isinstance(argument, Place):
        return argument
    memory = memories[argument.kind][argument.index]
    shape, kind = symbols.shape(argument.dims), storage(argument.dtype)
    offset = symbols.size(argument.offset)
    if offset == 0 and memory.shape == shape and memory.dtype == kind:
        return memory
    count = kind.itemsize
    for size in shape:
        count *= size
    if offset < 0 or offset + count > memory.nbytes:
        raise BoundsError(f"a tensor that ends at byte {offset + count} does not fit in {memory.nbytes}", code="W903")
    return content_bytes(memory)[offset : offset + count].view(kind).reshape(shape)


def entry_function(
    program: Mapping[str, Any],
    constants: Sequence[np.ndarray],
    kernels: Mapping[str, Callable[..., Any]],
    linked: Mapping[str, Callable[..., Any]],
) -> EntryFunction:
    """The function of a program, checked; ArtifactError W841 when it refers to what is not there."""
    _check(program, kernels, len(constants))
    try:
        if program["executor"] == "aot":
            return AotFunction(program, constants, kernels[program["name"]])
        return GraphFunction(program, constants, kernels, linked)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"malformed program: {type(error).__name__} {error}", code="W841") from None


def entry_functions(program: Mapping[str, Any], *parts: Any) -> dict[str, EntryFunction]:
    """The function of a program, by its name; errors as `entry_function`."""
    return {str(program["name"]): entry_function(program, *parts)}


def _check(program: Mapping[str, Any], kernels: Mapping[str, Any], constants: int) -> None:
    try:
        known = FORMATS.get(program["executor"]) == program["format"] and program["version"] == VERSION
        counts = {
            "input": len(program["params"]),
            "constant": len(program["constants"]),
            "output": len(program["outputs"]),
            "arena": 1,
        }
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
