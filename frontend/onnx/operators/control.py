"""If, sequences and optional values, as far as they are known while a model is imported.

A branch is chosen now where its condition is known, else both become branches of ours. Sequences are tuples whose
length is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.frontend.onnx.values import ABSENT, Value, known_value, run_value
from weft.ir.graph import BindingBlock, Expr, If, SeqExpr, Tuple, TupleGetItem, Var
from weft.ir.types import TensorType
from weft.script import relax as R

_MOST_STEPS = 64


def graph_results(n: OnnxNode, graph: Any, inputs: Sequence[Value]) -> list[Value]:
    """The results of a graph on values, its nodes in place."""
    names: dict[str, Value] = {}
    for name, array in n.importer.model.initializers(graph):
        names[name] = known_value(array) if array.dtype != object else ABSENT
    names.update(zip((item.name for item in graph.input), inputs, strict=True))
    with n.importer.names.scope(names, inner=True):
        n.importer.nodes(graph.node)
        return [n.importer.names.value(item.name) for item in graph.output]


def choose(n: OnnxNode) -> Any:
    """One of two graphs."""
    then_graph, else_graph = n.attr("then_branch"), n.attr("else_branch")
    known = n.known(0)
    if known is not None:
        return graph_results(n, then_graph if bool(known.reshape(-1)[0]) else else_graph, [])
    cond = R.reshape(n.need(0), ()) if n.rank(n.need(0)) else n.need(0)
    cond = n.emit(cond, "cond")
    then, other = _branch(n, then_graph), _branch(n, else_graph)
    result = n.importer.out.builder.emit(If(cond, then, other), n.proto.output[0])
    count = len(n.proto.output)
    parts = [TupleGetItem(result, index) for index in range(count)] if count > 1 else [result]
    return [n.named_result(n.emit(part, name), name) for part, name in zip(parts, n.proto.output, strict=True)]


def _branch(n: OnnxNode, graph: Any) -> SeqExpr:
    builder = n.importer.out.builder
    with builder.collect() as bindings:
        results = [n.importer.expr(value) for value in graph_results(n, graph, [])]
        if any(not isinstance(n.type(result), TensorType) for result in results):
            raise Unsupported("a branch gives a value that is no tensor")
        made: Expr = results[0] if len(results) == 1 else Tuple(tuple(results))
        if not isinstance(made, (Var, Tuple)):
            made = builder.emit(made, "branch")
    return SeqExpr((BindingBlock(tuple(bindings)),) if bindings else (), made)


def stacked_rows(rows: list[Expr], axis: int) -> Expr:
    """Values along a new axis."""
    return (
        R.concat([R.expand_dims(value, [axis]) for value in rows], axis)
        if len(rows) > 1
        else R.expand_dims(rows[0], [axis])
    )


row("If", choose, values=True)

# Sequences and optional values ----------------------------------------------------------------------------------------


def _items(n: OnnxNode, index: int) -> tuple[Value, ...]:
    items = n.inputs[index].items
    if items is None:
        raise Unsupported("the length of a sequence is known only at run time")
    return items


def _position(n: OnnxNode, index: int, count: int, default: int) -> int:
    if not n.has(index):
        return default
    place = int(n.constant(index).reshape(-1)[0])
    if not -count <= place <= count:
        raise Unsupported(f"the position {place} in a sequence of {count}")
    return place + count if place < 0 else place


def insert(n: OnnxNode) -> Value:
    """A sequence with one more value."""
    items = list(_items(n, 0))
    items.insert(_position(n, 2, len(items), len(items)), n.inputs[1])
    return Value(items=tuple(items))


def erase(n: OnnxNode) -> Value:
    """A sequence without one of its values."""
    items = list(_items(n, 0))
    del items[_position(n, 1, len(items), len(items) - 1)]
    return Value(items=tuple(items))


def split_to_sequence(n: OnnxNode) -> Value:
    """The parts of an axis as a sequence."""
    x = n.need(0)
    axis, keeps = n.axis(x, "axis", 0), bool(n.attr("keepdims", 1))
    (size,) = n.dims(x, [axis])
    if n.has(1):
        given, keeps = n.constant(1), True
        step = int(given.reshape(-1)[0])
        parts = [int(v) for v in given] if given.ndim else [min(step, size - at) for at in range(0, size, step)]
    else:
        parts = [1] * size
    ends = np.cumsum(parts)
    slices = [R.strided_slice(x, [axis], [int(e - p)], [int(e)]) for p, e in zip(parts, ends, strict=True)]
    return Value(items=tuple(run_value(n.emit(part if keeps else R.squeeze(part, [axis]), "part")) for part in slices))


def concat_from_sequence(n: OnnxNode) -> Expr:
    """The values of a sequence one after another, or along a new axis."""
    items = [n.importer.expr(item) for item in _items(n, 0)]
    if not items:
        raise Unsupported("an empty sequence")
    axis = int(n.attr("axis"))
    if n.attr("new_axis", 0):
        return stacked_rows(items, axis % (n.rank(items[0]) + 1))
    return R.concat(items, axis % n.rank(items[0]))


def sequence_map(n: OnnxNode) -> Any:
    """A graph on each value of a sequence."""
    graph, count = n.attr("body"), len(_items(n, 0))
    if count > _MOST_STEPS:
        raise Unsupported(f"a sequence of {count}")
    results = [
        graph_results(n, graph, [value.items[step] if value.items is not None else value for value in n.inputs])
        for step in range(count)
    ]
    return [Value(items=tuple(step[index] for step in results)) for index in range(len(n.proto.output))]


def _has_element(n: OnnxNode) -> Any:
    if not n.inputs or n.inputs[0] is ABSENT:
        return np.asarray(False)
    if n.inputs[0].known is None and n.inputs[0].items is None and not isinstance(n.type(n.need(0)), TensorType):
        raise Unsupported("whether a value is there is known only at run time")
    return np.asarray(True)


def _element_of(n: OnnxNode) -> Value:
    value = n.inputs[0]
    if value.known is None and value.items is None and not isinstance(n.type(n.need(0)), TensorType):
        raise Unsupported("whether a value is there is known only at run time")
    return value


row("SequenceEmpty", lambda n: Value(items=()), values=True)
row("SequenceConstruct", lambda n: Value(items=tuple(n.inputs)), values=True)
row("SequenceAt", lambda n: _items(n, 0)[_position(n, 1, len(_items(n, 0)), 0)], values=True)
row("SequenceInsert", insert, values=True)
row("SequenceErase", erase, values=True)
row("SequenceLength", lambda n: np.asarray(len(_items(n, 0))), values=True)
row("SequenceMap", sequence_map, values=True)
row("SplitToSequence", split_to_sequence, values=True)
row("ConcatFromSequence", concat_from_sequence, values=True)
row("OptionalHasElement", _has_element, values=True)
row("OptionalGetElement", _element_of, values=True)
row("Optional", lambda n: n.inputs[0] if n.inputs else ABSENT, values=True)
