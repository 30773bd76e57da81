"""Reading a model: a path, bytes or a ModelProto; every claim of it is checked before anything is made of it.

    W973    what is not a model, a node that is not well formed, names that nothing defines or two nodes define,
            nodes that are out of order or in a cycle, operators of a version that nobody defines
    W974    tensors whose bytes do not fit
    W975    external data that is not there or not below the folder

A node is told by its number, operator and name, and the file. Nothing of the model is run.
"""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import ModelError, Source, Span
from weft.frontend.extras import require
from weft.frontend.onnx.table import find_row
from weft.frontend.onnx.tensors import dense_array, is_element_type, tensor_array
from weft.frontend.onnx.wire import without_arrays
from weft.support.records import dataclass

__all__ = ["Model", "free_names", "node_fault", "read_model"]

_DEEPEST = 16  # graphs within graphs
_MOST_NODES = 1_000_000


@dataclass(frozen=True)
class Model:
    """A model that was checked: its graph, versions of operators by domain, functions, and where it came from."""

    proto: Any
    name: str
    folder: Path | None
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    arrays: Mapping[int, memoryview] = field(default_factory=dict)  # the bytes of initial values that the message lacks

    @property
    def graph(self) -> Any:
        """The main graph."""
        return self.proto.graph

    @property
    def node_limit(self) -> int:
        """How many nodes functions and loops may be taken apart into."""
        return 50_000 + 20 * (len(self.graph.node) + sum(len(body.node) for body in self.functions.values()))

    def initializers(self, graph: Any) -> Iterator[tuple[str, np.ndarray]]:
        """The arrays of a graph by name."""
        apart = self.arrays if graph is self.graph else {}
        for number, tensor in enumerate(graph.initializer):
            yield tensor.name, tensor_array(tensor, self.folder, data=apart.get(number))
        for sparse in graph.sparse_initializer:
            yield sparse.values.name, dense_array(sparse, self.folder)


def read_model(model: Any, folder: str | Path | None = None, *, whole: bool = False) -> Model:
    """A model from a path, its bytes, a file or a ModelProto; ModelError W973 for what is none.

    Large arrays are those of the mapped file, or of the bytes; with `whole` the message has them too.
    """
    onnx = require("onnx", "onnx")
    name, place = "<model>", Path(folder) if folder is not None else None
    arrays: dict[int, memoryview] = {}
    if isinstance(model, (str, Path)):
        name, place = str(model), place or Path(model).parent
        model = _mapped(Path(model))
    elif isinstance(model, io.IOBase):
        model = model.read()
    if isinstance(model, (bytes, bytearray, memoryview)):
        data, arrays = (bytes(model), {}) if whole else without_arrays(memoryview(model).cast("B"))
        model = _parsed(onnx, data, name)
    if not isinstance(model, onnx.ModelProto):
        raise ModelError(f"a model is a path, bytes or a ModelProto, got {type(model).__name__}", code="W973")
    opsets = {_domain(item.domain): item.version for item in model.opset_import} or _implied(model)
    functions = {(_domain(item.domain), item.name): item for item in model.functions}
    read = Model(model, name, place, opsets, functions, arrays)
    _Check(onnx, read).run()
    return read


def _implied(model: Any) -> dict[str, int]:
    """The versions of operators of a model that states none: before the format had them there was one."""
    return {"": 1} if model.ir_version < 3 else {}


def _mapped(path: Path) -> memoryview:
    """The bytes of a file, mapped."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    except (OSError, ValueError) as error:  # a ValueError for what cannot be mapped
        raise ModelError(f"{path}: {getattr(error, 'strerror', None) or error}", code="W973") from None


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _parsed(onnx: Any, data: bytes, name: str) -> Any:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # of the class that the installed protobuf has
        raise ModelError(f"{name} is no ONNX model: {error}", code="W973") from None
    if not proto.HasField("graph"):
        raise ModelError(f"{name} is no ONNX model: it has no graph", code="W973")
    return proto


def free_names(graph: Any) -> list[str]:
    """The names of outer graphs that a graph uses, in order."""
    known = {item.name for item in (*graph.input, *graph.initializer)}
    known.update(item.values.name for item in graph.sparse_initializer)
    found: dict[str, None] = {}
    for node in graph.node:
        wanted = [name for name in node.input if name]
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                wanted.extend(free_names(inner))
        found.update((name, None) for name in wanted if name not in known)
        known.update(node.output)
    found.update((item.name, None) for item in graph.output if item.name not in known)
    return list(found)


_HELD: Mapping[tuple[str, str], Callable[[Any, int], bool]] = {
    ("Split", "num_outputs"): lambda node, value: value == len(node.output),
    ("GatherND", "batch_dims"): lambda node, value: value >= 0,
}
"""Attributes whose values are held before the package deduces types: it reads outside of its memory for others."""


class _Check:
    """The claims of one model, held against each other."""

    def __init__(self, onnx: Any, model: Model) -> None:
        self.onnx, self.model = onnx, model
        self.schemas = onnx.defs
        self.count = 0

    def run(self) -> None:
        proto = self.model.proto
        for domain, version in self.model.opsets.items():
            newest = self.schemas.onnx_opset_version() if domain == "" else None
            if version < 1 or (newest is not None and version > newest):
                raise ModelError(
                    f"{self.model.name} uses version {version} of the operators of {domain or 'ai.onnx'!r}; the "
                    f"installed onnx knows 1 to {newest}",
                    code="W973",
                    hint="pip install -U onnx",
                )
        self.calls()
        self.graph(proto.graph, set(), self.model.opsets, 0)
        for function in proto.functions:
            opsets = {**self.model.opsets, **{_domain(item.domain): item.version for item in function.opset_import}}
            self.body(function, set(function.input), [*function.output], opsets, f"function {function.name}", 1)

    def calls(self) -> None:
        """Functions that call themselves, in one step or several."""
        edges = {
            key: {(_domain(node.domain), node.op_type) for node in body.node} & set(self.model.functions)
            for key, body in self.model.functions.items()
        }
        left, order = dict(edges), []
        while ready := [key for key, wanted in left.items() if not wanted & set(left)]:
            order.extend(ready)
            for key in ready:
                del left[key]
        if left:
            names = ", ".join(sorted(name for _, name in left))
            raise ModelError(f"{self.model.name}: functions call themselves: {names}", code="W973")
        self.growth(order)

    def growth(self, order: Sequence[tuple[str, str]]) -> None:
        """Functions of functions, taken apart; `order` has those first that others call."""
        sizes: dict[tuple[str, str], int] = {}

        def size(nodes: Any) -> int:
            return sum(sizes.get((_domain(node.domain), node.op_type), 1) for node in nodes)

        for key in order:
            sizes[key] = size(self.model.functions[key].node)
        limit, whole = self.model.node_limit, max([size(self.model.graph.node), *sizes.values()])
        if whole > limit:
            message = f"{self.model.name}: taken apart, its functions have {whole} nodes; at most {limit} are imported"
            raise ModelError(message, code="W973")

    def graph(self, graph: Any, outer: set[str], opsets: Mapping[str, int], depth: int) -> None:
        if depth > _DEEPEST:
            raise ModelError(f"{self.model.name}: graphs are nested deeper than {_DEEPEST}", code="W973")
        known = set(outer)
        inputs = [item.name for item in graph.input]
        self.texts(*inputs, graph.name, *(item.name for item in (*graph.output, *graph.initializer)))
        if len(set(inputs)) != len(inputs):
            raise ModelError(f"{self.model.name}: two inputs of {graph.name!r} have one name", code="W973")
        if not depth:
            self.types(graph.input)
        known.update(inputs)
        known.update(item.name for item in graph.initializer)
        known.update(item.values.name for item in graph.sparse_initializer)
        self.body(graph, known, [item.name for item in graph.output], opsets, graph.name or "the graph", depth)

    def types(self, inputs: Any) -> None:
        """The inputs of the main graph state their types; those of inner graphs need not."""
        for item in inputs:
            if item.type.WhichOneof("value") is None:
                raise ModelError(f"{self.model.name}: the input {item.name!r} has no type", code="W973")
            element = item.type.tensor_type.elem_type
            if item.type.HasField("tensor_type") and not is_element_type(element):
                message = f"{self.model.name}: the input {item.name!r} has the unknown element type {element}"
                raise ModelError(message, code="W973", hint="those known are of onnx.TensorProto.DataType")

    def body(
        self, body: Any, known: set[str], outputs: Sequence[str], opsets: Mapping[str, int], where: str, depth: int
    ) -> None:
        made = {name for node in body.node for name in node.output if name}
        own: set[str] = set()
        self.count += len(body.node)
        if self.count > _MOST_NODES:
            raise ModelError(f"{self.model.name} has more than {_MOST_NODES} nodes", code="W973")
        for index, node in enumerate(body.node):
            self.texts(*node.input, *node.output, node.name, node.op_type, node.domain)
            self.texts(*(attribute.name for attribute in node.attribute))
            for name in node.input:
                if name and name not in known:
                    later = "which a later node makes: a cycle, or nodes out of order"
                    what = later if name in made else "which nothing defines"
                    raise self.fault(body, index, f"it uses {name!r}, {what}")
            self.node(body, index, opsets, known, depth)
            for name in node.output:
                if name and name in own:
                    raise self.fault(body, index, f"{name!r} is the output of two nodes")
                own.add(name)
                known.add(name)
        for name in outputs:
            if name not in known:
                raise ModelError(f"{self.model.name}: the output {name!r} of {where} is made by no node", code="W973")

    def node(self, body: Any, index: int, opsets: Mapping[str, int], known: set[str], depth: int) -> None:
        node = body.node[index]
        domain = _domain(node.domain)
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                self.graph(inner, known, opsets, depth + 1)
        if (domain, node.op_type) in self.model.functions:
            return
        if domain not in opsets:
            there = ", ".join(name or "ai.onnx" for name in opsets) or "none"
            message = f"the model imports no version of the operators of {domain or 'ai.onnx'!r}"
            raise self.fault(body, index, message, f"the domains of its opset_import: {there}")
        if domain != "" or not node.op_type:
            if not node.op_type:
                raise self.fault(body, index, "it has no operator")
            return
        self.schema(body, index, opsets[domain])

    def schema(self, body: Any, index: int, version: int) -> None:
        """The node held against the definition of its operator."""
        node = body.node[index]
        try:
            schema = self.schemas.get_schema(node.op_type, version, "")
        except Exception:
            if find_row("", node.op_type, version) is not None:
                return  # onnxruntime writes operators of its own into this domain
            raise self.fault(body, index, f"ONNX has no operator of this name in version {version}") from None
        given = len(node.input)
        if not schema.min_input <= given <= schema.max_input:
            wanted = f"{schema.min_input} to {schema.max_input}" if schema.min_input != schema.max_input else given
            wanted = schema.min_input if schema.min_input == schema.max_input else wanted
            raise self.fault(body, index, f"it takes {wanted} inputs, and has {given}")
        for formal, name in zip(schema.inputs, node.input, strict=False):
            if not name and formal.option == self.schemas.OpSchema.FormalParameterOption.Single:
                raise self.fault(body, index, f"it lacks the input {formal.name!r}, which is not optional")
        for name, required in ((key, item.required) for key, item in schema.attributes.items()):
            if required and all(attribute.name != name for attribute in node.attribute):
                raise self.fault(body, index, f"it lacks the attribute {name!r}")
        for attribute in node.attribute:
            wanted = schema.attributes.get(attribute.name)
            if wanted is None:
                known = ", ".join(schema.attributes) or "none"
                raise self.fault(body, index, f"it has no attribute {attribute.name!r}", f"its attributes: {known}")
            if attribute.type and not attribute.ref_attr_name and int(attribute.type) != int(wanted.type.value):
                raise self.fault(body, index, f"the attribute {attribute.name!r} is of another type than it must be")
            check = _HELD.get((node.op_type, attribute.name))
            if check is not None and not check(node, attribute.i):
                raise self.fault(body, index, f"the attribute {attribute.name!r} cannot be {attribute.i} here")

    def texts(self, *names: Any) -> None:
        """Refuse names that are no text: what is not UTF-8 comes as bytes."""
        for name in names:
            if not isinstance(name, str):
                raise ModelError(f"{self.model.name}: the name {name!r} is no text", code="W973")

    def fault(self, body: Any, index: int, message: str, hint: str | None = None) -> ModelError:
        return node_fault(self.model, index, body.node[index], message, hint)


def node_fault(model: Model, index: int, node: Any, message: str, hint: str | None = None) -> ModelError:
    """The error W973 of a node, told by its number, operator and name."""
    label = f" {node.name!r}" if node.name else ""
    text = node_line(node)
    span = Span(Source(model.name, text, index + 1), 0, len(text))
    return ModelError(f"node {index} {node.op_type}{label}: {message}", code="W973", span=span, hint=hint)


def node_line(node: Any) -> str:
    """A node as one line: `y = Relu(x)`."""

    def listed(names: Any) -> str:
        return ", ".join(name.replace("\n", " ") or "_" for name in names)

    return f"{listed(node.output)} = {node.op_type}({listed(node.input)})"
