"""If, Loop and Scan, sequences and optional values, as far as they are known while a model is imported.

A branch is chosen now where its condition is known, else both become branches of ours. Loops and scans over a known
number of steps are unrolled; sequences are tuples whose length is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import Node
from weft.frontend.onnx.table import row
from weft.frontend.onnx.values import ABSENT, Value, known_value, run_value
from weft.ir.graph import BindingBlock, Expr, If, SeqExpr, Tuple, TupleGetItem, Var
from weft.ir.types import TensorType
from weft.script import relax as R

_MOST_STEPS = 64


def _body(n: Node, graph: Any, inputs: Sequence[Value]) -> list[Value]:
    """The results of a graph on values, its nodes in place."""
    names: dict[str, Value] = {}
    for name, array in n.importer.model.initializers(graph):
        names[name] = known_value(array) if array.dtype != object else ABSENT
    names.update(zip((item.name for item in graph.input), inputs, strict=True))
    with n.importer.names.scope(names, inner=True):
        n.importer.nodes(graph.node)
        return [n.importer.names.value(item.name) for item in graph.output]


def choose(n: Node) -> Any:
    """One of two graphs."""
    then_graph, else_graph = n.attr("then_branch"), n.attr("else_branch")
    known = n.known(0)
    if known is not None:
        return _body(n, then_graph if bool(known.reshape(-1)[0]) else else_graph, [])
    cond = R.reshape(n.need(0), ()) if n.rank(n.need(0)) else n.need(0)
    cond = n.emit(cond, "cond")
    then, other = _branch(n, then_graph), _branch(n, else_graph)
    result = n.importer.out.builder.emit(If(cond, then, other), n.proto.output[0])
    count = len(n.proto.output)
    return [TupleGetItem(result, index) for index in range(count)] if count > 1 else result


def _branch(n: Node, graph: Any) -> SeqExpr:
    builder = n.importer.out.builder
    with builder.collect() as bindings:
        results = [n.importer.expr(value) for value in _body(n, graph, [])]
        for result in results:
            ty = n.type(result)
            if not isinstance(ty, TensorType) or ty.dims is None:
                raise Unsupported("a branch gives a value whose sizes are known only at run time")
        made: Expr = results[0] if len(results) == 1 else Tuple(tuple(results))
        if not isinstance(made, (Var, Tuple)):
            made = builder.emit(made, "branch")
    return SeqExpr((BindingBlock(tuple(bindings)),) if bindings else (), made)


def loop(n: Node) -> Any:
    """Steps of a graph, where their number is known."""
    graph = n.attr("body")
    limit = n.known(0) if n.has(0) else None
    if n.has(0) and (limit is None or limit.dtype == object):
        raise Unsupported("the number of steps is known only at run time")
    steps = int(limit.reshape(-1)[0]) if limit is not None else _MOST_STEPS + 1
    goes_on = n.inputs[1] if n.has(1) else known_value(np.asarray(True))
    carried = list(n.inputs[2:])
    stacked: list[list[Expr]] = [[] for _ in range(len(graph.output) - 1 - len(carried))]
    for step in range(steps):
        if goes_on.known is None:
            raise Unsupported("whether a loop goes on is known only at run time")
        if not bool(goes_on.known.reshape(-1)[0]):
            break
        if step >= _MOST_STEPS:
            raise Unsupported(f"more than {_MOST_STEPS} steps")
        results = _body(n, graph, [known_value(np.asarray(step)), goes_on, *carried])
        goes_on, carried = results[0], results[1 : 1 + len(carried)]
        for rows, value in zip(stacked, results[1 + len(carried) :], strict=True):
            rows.append(n.importer.expr(value))
    if any(not rows for rows in stacked):
        raise Unsupported("no step, whose results have a shape")
    return [*carried, *(_stacked(n, rows, 0) for rows in stacked)][: len(n.proto.output)]


def _stacked(n: Node, rows: list[Expr], axis: int) -> Expr:
    return R.concat([R.expand_dims(value, [axis]) for value in rows], axis) if len(rows) > 1 else R.expand_dims(
        rows[0], [axis])  # fmt: skip


def scan(n: Node) -> Any:
    """A graph over the slices of its inputs, where their number is known."""
    graph, count = n.attr("body"), int(n.attr("num_scan_inputs"))
    if n.version < 9:
        raise Unsupported("scans over batches")
    states = list(n.inputs[: len(n.inputs) - count])
    inputs = [n.need(index) for index in range(len(states), len(n.inputs))]
    axes = [axis % n.rank(x) for axis, x in zip(n.attr("scan_input_axes") or [0] * count, inputs, strict=True)]
    back = n.attr("scan_input_directions") or [0] * count
    results_count = len(graph.output) - len(states)
    out_axes = n.attr("scan_output_axes") or [0] * results_count
    out_back = n.attr("scan_output_directions") or [0] * results_count
    steps = n.dims(inputs[0], [axes[0]])[0]
    if not 0 < steps <= _MOST_STEPS:
        raise Unsupported(f"{steps} steps")
    stacked: list[list[Expr]] = [[] for _ in range(results_count)]
    for step in range(steps):
        slices = [
            run_value(n.emit(_slice(x, axis, steps - 1 - step if turned else step), "slice"))
            for x, axis, turned in zip(inputs, axes, back, strict=True)
        ]
        results = _body(n, graph, [*states, *slices])
        states = results[: len(states)]
        for rows, value in zip(stacked, results[len(states) :], strict=True):
            rows.append(n.importer.expr(value))
    made = []
    for rows, axis, turned in zip(stacked, out_axes, out_back, strict=True):
        rank = n.rank(rows[0]) + 1
        made.append(_stacked(n, rows[::-1] if turned else rows, axis % rank))
    return [*states, *made]


def _slice(x: Expr, axis: int, index: int) -> Expr:
    return R.squeeze(R.strided_slice(x, [axis], [index], [index + 1]), [axis])


row("If", choose, values=True)
row("Loop", loop, values=True)
row("Scan", scan, values=True)

# Sequences and optional values ----------------------------------------------------------------------------------------


def _items(n: Node, index: int) -> tuple[Value, ...]:
    items = n.inputs[index].items
    if items is None:
        raise Unsupported("the length of a sequence is known only at run time")
    return items


def _position(n: Node, index: int, count: int, default: int) -> int:
    if not n.has(index):
        return default
    place = int(n.constant(index).reshape(-1)[0])
    if not -count <= place <= count:
        raise Unsupported(f"the position {place} in a sequence of {count}")
    return place + count if place < 0 else place


def insert(n: Node) -> Value:
    """A sequence with one more value."""
    items = list(_items(n, 0))
    items.insert(_position(n, 2, len(items), len(items)), n.inputs[1])
    return Value(items=tuple(items))


def erase(n: Node) -> Value:
    """A sequence without one of its values."""
    items = list(_items(n, 0))
    del items[_position(n, 1, len(items), len(items) - 1)]
    return Value(items=tuple(items))


def split_to_sequence(n: Node) -> Value:
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
    return Value(items=tuple(
        run_value(n.emit(part if keeps else R.squeeze(part, [axis]), "part")) for part in slices
    ))  # fmt: skip


def concat_from_sequence(n: Node) -> Expr:
    """The values of a sequence one after another, or along a new axis."""
    items = [n.importer.expr(item) for item in _items(n, 0)]
    if not items:
        raise Unsupported("an empty sequence")
    axis = int(n.attr("axis"))
    if n.attr("new_axis", 0):
        return _stacked(n, items, axis % (n.rank(items[0]) + 1))
    return R.concat(items, axis % n.rank(items[0]))


def sequence_map(n: Node) -> Any:
    """A graph on each value of a sequence."""
    graph, count = n.attr("body"), len(_items(n, 0))
    if count > _MOST_STEPS:
        raise Unsupported(f"a sequence of {count}")
    results = [
        _body(n, graph, [
            value.items[step] if value.items is not None else value for value in n.inputs
        ]) for step in range(count)
    ]  # fmt: skip
    return [Value(items=tuple(step[index] for step in results)) for index in range(len(n.proto.output))]


def _has_element(n: Node) -> Any:
    if not n.inputs or n.inputs[0] is ABSENT:
        return np.asarray(False)
    if n.inputs[0].known is None and n.inputs[0].items is None and not isinstance(n.type(n.need(0)), TensorType):
        raise Unsupported("whether a value is there is known only at run time")
    return np.asarray(True)


def _element_of(n: Node) -> Value:
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
