"""A model as a module: its main graph is the function `main`, node by node, in order.

For each node, the first of these that works:

    known       the contents of all inputs are known and small: computed now (sizes stay symbols)
    the table   its row gives an expression
    a function  of the model, or the definition of the operator in terms of others: its nodes, one by one
    python      the reference implementation, called at run time

What a step has emitted before it gives up is taken back. Variables have the names of the model's values, and the place
of every call is its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ModelError, Source, Span, WeftError
from weft.frontend.emitter import Emitter, Unsupported, identifier
from weft.frontend.extras import require
from weft.frontend.onnx.definitions import definition_of
from weft.frontend.onnx.known import evaluate_known
from weft.frontend.onnx.model import Model, node_line
from weft.frontend.onnx.node import OnnxNode, attribute_value
from weft.frontend.onnx.reference.node import FUNCTION, node_data, node_inputs
from weft.frontend.onnx.shapes import declared_types
from weft.frontend.onnx.signature import Signature
from weft.frontend.onnx.table import REASONS, find_row
from weft.frontend.onnx.values import ABSENT, Scopes, Value, known_value, made_expr, run_value
from weft.frontend.report import How, ImportedNode, ImportReport
from weft.ir.graph import Constant, Expr, StringImm, Tuple, TupleGetItem, Var
from weft.ir.module import IRModule
from weft.ir.types import AnyType, TensorType, TupleType
from weft.script import relax as R

__all__ = ["Importer"]


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


class Importer:
    """One import: the scopes of names, and what became of the nodes so far."""

    def __init__(self, model: Model, *, parameters: bool = False, fixed: Mapping[str, Any] | None = None) -> None:
        self.model, self.parameters, self.fixed = model, parameters, dict(fixed or {})
        self.onnx = require("onnx", "onnx")
        self.out = Emitter()
        self.opsets: Mapping[str, int] = model.opsets
        self.arrays = dict(model.initializers(model.graph))
        self.declared = declared_types(self.onnx, model)
        self.names = Scopes(model.name)
        self.rows: list[ImportedNode] = []
        self.texts: dict[str, str] = {}  # initial values that are strings, as nodes that make them
        self.bound: Mapping[str, Any] = {}  # attributes of the function call whose body is being imported
        self.lines, self.limit = 0, model.node_limit

    def run(self, progress: Callable[[int, int], None] | None = None) -> tuple[IRModule, ImportReport]:
        """The module and what became of each node; `progress` is told how far it is."""
        graph, builder, signature = self.model.graph, self.out.builder, Signature(self.out)
        arrays = self.arrays
        params: list[Var] = []
        for item in graph.input:
            if item.name in self.fixed:
                arrays[item.name] = np.asarray(self.fixed[item.name])
            elif item.name not in arrays:
                params.append(self.out.parameter(item.name, signature.input_type(item)))
                self.names.current[item.name] = Value(params[-1])
        for name, array in arrays.items():
            params.extend(self._initial(name, array))
        with builder.function("main", params):
            self.out.reserve(params)
            for name, data in self.texts.items():
                self.names.current[name] = run_value(
                    self.out.emit(R.call_py(FUNCTION, (StringImm(data),), out_ty=AnyType()), name)
                )
            for done, node in enumerate(graph.node, 1):
                self.node(node)
                if progress is not None:
                    progress(done, len(graph.node))
            results = [self._result(item.name) for item in graph.output]
            builder.emit_func_output(results[0] if len(results) == 1 else Tuple(tuple(results)))
        return builder.get(), ImportReport(tuple(self.rows))

    def _initial(self, name: str, array: np.ndarray) -> list[Var]:
        """An array as a constant, or as a parameter where the caller wants them so (small integers stay constants)."""
        if array.dtype == object:
            self._initial_texts(name, array)
            return []
        if not self.parameters or (array.size <= 64 and array.dtype.kind in "iub"):
            self.names.current[name] = Value(Constant(array), known=array, dtype=array.dtype.name)
            return []
        var = self.out.parameter(name, TensorType(array.shape, array.dtype.name))
        self.names.current[name] = Value(var)
        return [var]

    def _initial_texts(self, name: str, array: np.ndarray) -> None:
        """An array of strings: a constant of the format, which Python makes at run time."""
        proto = self.onnx.helper.make_node("Constant", [], [name], value=self.onnx.numpy_helper.from_array(array, name))
        data = node_data(proto, self.opsets, (), (), (None,), (-1,), (False,))
        self.texts[name] = data

    def _result(self, name: str) -> Expr:
        value = self.names.value(name)
        try:
            expr = R.null_value() if value is ABSENT and name in self.declared.optional else self.expr(value)
        except Unsupported as error:
            raise ModelError(f"{self.model.name}: the output {name!r}: {error}", code="W973") from None
        return expr if isinstance(expr, (Var, Tuple)) else self.out.builder.emit(expr, identifier(name))

    # Names

    def expr(self, value: Value) -> Expr:
        """A value as an expression."""
        if value.expr is not None:
            return value.expr
        if value.items is not None:
            return Tuple(tuple(self.expr(item) for item in value.items))
        if value.known is None:
            raise Unsupported("an input is not given")
        made = made_expr(value)
        return made if isinstance(made, Constant) else self.out.emit(made, "sizes")

    def version(self, domain: str) -> int:
        """The version of the operators of a domain."""
        return self.opsets.get(_domain(domain), 1)

    def attribute(self, proto: Any) -> Any:
        """The value of an attribute; inside a function that of the call it refers to."""
        if proto.ref_attr_name:
            found = self.bound.get(proto.ref_attr_name)
            return None if found is None else self.attribute(found)
        return attribute_value(proto, self.model.folder)

    def resolved_node(self, proto: Any) -> Any:
        """A copy of a node whose attributes refer to no other ones."""
        new = self.onnx.NodeProto()
        new.CopyFrom(proto)
        del new.attribute[:]
        for item in proto.attribute:
            found = self.bound.get(item.ref_attr_name) if item.ref_attr_name else item
            if found is not None:
                new.attribute.append(found)
                new.attribute[-1].name = item.name
        return new

    # Nodes

    def nodes(self, nodes: Sequence[Any]) -> None:
        """Import nodes in order."""
        for node in nodes:
            self.node(node)

    def node(self, proto: Any) -> None:
        """Import one node: bind what its outputs stand for, and note what it became."""
        out, outer, text = self.out, self.out.span, node_line(proto)
        before = out.used, out.cost
        self._count()
        out.span = outer or Span(Source(self.model.name, text, self.lines), 0, len(text))
        out.used, out.cost = [], 0.0
        try:
            how, why = self._imported(proto, [self.names.value(name) for name in proto.input])
        except Unsupported as error:
            raise ModelError(f"{self.model.name}: {error}", code="W973", span=out.span) from None
        if outer is None:
            self.rows.append(_row(self, proto, how, why))
            out.used, out.cost = before
        else:
            out.used, out.cost = before[0] + out.used, before[1] + out.cost
        out.span = outer

    @property
    def grown(self) -> bool:
        """Whether loops have been taken apart into so many nodes that others had better stay loops."""
        return self.lines > self.limit // 4

    def _count(self) -> None:
        """One more node, of those that loops are taken apart into."""
        self.lines += 1
        if self.lines > self.limit:
            message = f"{self.model.name}: its loops are taken apart into more than {self.limit} nodes"
            raise ModelError(message, code="W973")

    def _imported(self, proto: Any, inputs: Sequence[Value]) -> tuple[How, str]:
        """How a node was imported, and why not natively."""
        domain = _domain(proto.domain)
        if (domain, proto.op_type) in self.model.functions:
            self._call_function(self.model.functions[domain, proto.op_type], proto, inputs)
            python = "call_py" in self.out.used
            return ("python", "a node of the function has no native form") if python else ("native", "")
        node = OnnxNode(self, proto, inputs, _schema(self, proto, domain))
        found = evaluate_known(node)
        if found is not None:
            self._bind(proto, found)
            return "known", ""
        why = self._attempt(lambda: self._by_table(node, domain))
        if why is None:
            return "native", ""
        definition = _definition(node)
        also = self._attempt(lambda: self._by_definition(node, definition)) if definition is not None else ""
        if also is None:
            return "native", ""
        self._by_reference(node)
        return "python", f"{why}; {also}" if also else why

    def _attempt(self, step: Any) -> str | None:
        names = dict(self.names.current)
        why = self.out.attempt(step)
        if why is not None:
            self.names.current = names
        return why

    def _by_table(self, node: OnnxNode, domain: str) -> None:
        """The row of the operator."""
        row = find_row(domain, node.operator, self.version(domain))
        if row is None:
            why = REASONS.get(node.operator) if not domain else None
            raise Unsupported(why or "there is no row for the operator")
        count = len(node.inputs) if row.inputs is None else row.inputs
        args = [node[index] for index in range(count)]
        for index, arg in enumerate(args if not row.values else ()):
            ty = self.out.type(arg) if arg is not None else None
            if ty is not None and not (isinstance(ty, TensorType) and ty.dtype is not None and ty.dims is not None):
                raise Unsupported(f"the rank or the type of input {index} is known only at run time")
        self._bind(node.proto, row.function(node, *args))

    def _by_definition(self, node: OnnxNode, definition: Any) -> None:
        """The definition of the operator in terms of others."""
        self._call_function(definition, node.proto, node.inputs)
        if "call_py" in self.out.used:
            raise Unsupported("its definition needs what has no native form")

    def _call_function(self, function: Any, proto: Any, inputs: Sequence[Value]) -> None:
        """The nodes of a function in place of a call of it."""
        given = {item.name: item for item in (*function.attribute_proto, *self.resolved_node(proto).attribute)}
        names = {name: inputs[index] if index < len(inputs) else ABSENT for index, name in enumerate(function.input)}
        opsets = {_domain(item.domain): item.version for item in function.opset_import}
        before = self.bound, self.opsets
        self.bound, self.opsets = given, {**self.opsets, **opsets}
        try:
            with self.names.scope(names, inner=False):
                self.nodes(function.node)
                results = [self.names.current.get(name, ABSENT) for name in function.output]  # some are optional
        finally:
            self.bound, self.opsets = before
        self._bind(proto, results)

    def _by_reference(self, node: OnnxNode) -> None:
        """A call of the reference implementation."""
        proto = self.resolved_node(node.proto)
        args = [self.expr(self.names.value(name)) for name in node_inputs(node.proto)]
        outputs = [name for name in proto.output if name]
        outermost = self.names.outermost
        types = [self.declared.types.get(name, AnyType()) if outermost else AnyType() for name in outputs]
        optional = [outermost and name in self.declared.optional for name in outputs]
        dtypes = [ty.dtype if isinstance(ty, TensorType) else None for ty in types]
        given = [ty.dtype if isinstance(ty := self.out.type(arg), TensorType) else None for arg in args]
        ranks = [ty.ndim if isinstance(ty, TensorType) else -1 for ty in types]
        data = node_data(proto, self.opsets, self.model.proto.functions, given, dtypes, ranks, optional)
        result = types[0] if len(types) == 1 else TupleType(tuple(types))
        var = self.out.emit(R.call_py(FUNCTION, (StringImm(data), *args), out_ty=result), (*outputs, "v")[0])
        fields = [var] if len(types) == 1 else [TupleGetItem(var, index) for index in range(len(types))]
        for name, part in zip(outputs, fields, strict=True):
            self.names.current[name] = run_value(self.out.named_result(part, name))

    # Results

    def _bind(self, proto: Any, results: Any) -> None:
        """Give the outputs of a node what they stand for."""
        if isinstance(results, Expr) and len(proto.output) > 1:
            results = _fields(self.out, results, proto)
        elif not isinstance(results, (tuple, list)):
            results = (results,)
        for name, result in zip(proto.output, results, strict=False):
            if name:
                self.names.current[name] = _bound_value(self.out, name, result)


def _row(importer: Importer, proto: Any, how: How, why: str) -> ImportedNode:
    used = importer.out.used
    if how == "native" and len(used) > 1:
        how = "composed"
    label = proto.name or next((name for name in proto.output if name), proto.op_type)
    name = f"{proto.domain}.{proto.op_type}" if _domain(proto.domain) else proto.op_type
    return ImportedNode(label, name, how, tuple(dict.fromkeys(used)), why, importer.out.cost * (10 if why else 1))


def _schema(importer: Importer, proto: Any, domain: str) -> Any:
    try:
        return importer.onnx.defs.get_schema(proto.op_type, importer.version(domain), domain)
    except Exception:
        return None


def _definition(node: OnnxNode) -> Any:
    try:
        return definition_of(node)
    except (Unsupported, WeftError):
        return None


def _fields(out: Emitter, expr: Expr, proto: Any) -> list[Expr]:
    var = out.emit(expr, proto.output[0] or proto.op_type)
    return [TupleGetItem(var, index) for index in range(len(var.ty.fields))] if isinstance(var.ty, TupleType) else [var]


def _bound_value(out: Emitter, name: str, result: Any) -> Value:
    if isinstance(result, Value):
        return result
    if isinstance(result, (np.ndarray, np.generic)):
        return known_value(np.asarray(result))
    if result is None:
        raise Unsupported(f"the output {name!r} has no native form")
    return run_value(result if isinstance(result, Constant) else out.emit(result, name))
