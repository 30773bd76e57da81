"""Loop and Scan: unrolled where few steps are known, else loops of ours, whose bodies are the graphs of the nodes.

    Loop(M, cond, s...)      a loop over range(M), while the condition holds, or both, that carries s
    Scan(s..., x...)         a loop over the slices of x that carries s
    further results          one row for each iteration: stacked by the loop where their number is a size, else carried
                             as a tensor that grows

The index of a loop over a range is a size in the body. A carried tensor keeps the type that it has before the loop;
where the body gives it other sizes, only its rank is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.operators.control import graph_results, stacked_rows
from weft.frontend.onnx.table import row
from weft.frontend.onnx.values import Value, known_value, run_value
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import Dim, DimExpr
from weft.ir.graph import BindingBlock, Constant, Expr, Function, PrimValue, SeqExpr, Tuple, TupleGetItem, Var
from weft.ir.types import PrimType, TensorType, TupleType, Type
from weft.script import relax as R
from weft.support.records import dataclass

_FEW, _MOST_STEPS = 8, 64


def _size(dim: Dim) -> Value:
    """A size as the value of a scalar."""
    made = np.empty((), object)
    made[()] = dim
    return known_value(made)


# Loops of ours --------------------------------------------------------------------------------------------------------


@dataclass
class Body:
    """The body of a loop as a function, imported until what it carries keeps its type.

    `step(index, carried values)` gives (whether the loop goes on or None, the carried values, the rows).
    """

    n: OnnxNode
    initial: Sequence[Expr]
    step: Callable[[Value, Sequence[Value]], tuple[Value | None, Sequence[Value], Sequence[Value]]]
    bounded: bool
    types: list[Type] = field(default_factory=list)
    rows: list[TensorType] = field(default_factory=list)
    ends: bool = False  # whether the body says when the loop ends

    def function(self) -> Function:
        """The function of the loop, with the carried types that hold for all iterations."""
        self.types = [self.n.type(value) for value in self.initial]
        for _ in range(3):
            made, found = self._imported()
            loose = [ty if _same(ty, new) else _rank_only(ty, new) for ty, new in zip(self.types, found, strict=True)]
            if all(a is b for a, b in zip(loose, self.types, strict=True)):
                return made
            self.types = loose
        raise Unsupported("a loop whose values change their types")

    def _imported(self) -> tuple[Function, list[Type]]:
        out = self.n.importer.out
        before = len(out.symbols)
        symbol = out.fresh("i")
        index = out.parameter("index", PrimType("int64", symbol) if self.bounded else TensorType((), "int64"))
        params = [out.parameter("carried", ty) for ty in self.types]
        with out.builder.collect() as bindings:
            place = _size(symbol) if self.bounded else run_value(index)
            given = [run_value(out.named_result(param, param.name)) for param in params]
            goes_on, carried, rows = self.step(place, given)
            results = [self._bound(value) for value in carried]
            made_rows = [self._bound(value) for value in rows]
            test = [] if goes_on is None else [self._scalar(goes_on)]
        self.ends = bool(test)
        inner = set(out.symbols[before:])
        self.rows = [_row_type(self.n, value, inner) for value in made_rows]
        found = [_outside(self.n.type(value), inner) for value in results]
        types = TupleType((*(self.n.type(value) for value in test), *self.types, *self.rows))
        block = (BindingBlock(tuple(bindings)),) if bindings else ()
        body = SeqExpr(block, Tuple((*test, *results, *made_rows)))
        return Function((index, *params), body, types, name="loop_body"), found

    def _bound(self, value: Value) -> Expr:
        if value.items is not None:
            raise Unsupported("a loop that carries a sequence")
        expr = self.n.importer.expr(value)
        return expr if isinstance(expr, Var) else self.n.emit(expr, "value")

    def _scalar(self, value: Value) -> Expr:
        expr = self.n.importer.expr(value)
        return self.n.emit(R.reshape(expr, ()) if self.n.rank(expr) else expr, "goes_on")


def _outside(ty: Type, inner: set[str]) -> Type:
    """A type as it is known outside of the body: without sizes that only the body has."""
    if isinstance(ty, TensorType) and ty.dims is not None and type_symbols(ty) & inner:
        return TensorType(None, ty.dtype, ty.ndim)
    return ty


def _same(a: Type, b: Type) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype != b.dtype or a.ndim != b.ndim:
        return False
    return a.dims is None or a.dims == b.dims


def _rank_only(a: Type, b: Type) -> Type:
    if isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype == b.dtype and a.ndim == b.ndim >= 0:
        return TensorType(None, a.dtype, a.ndim)
    raise Unsupported("a loop that carries values of several dtypes or ranks under one name")


def _row_type(n: OnnxNode, value: Expr, inner: set[str]) -> TensorType:
    ty = n.tensor(value)
    if ty.dims is None or type_symbols(ty) & inner:
        raise Unsupported("rows whose sizes only the run can tell")
    return ty


def _results(n: OnnxNode, loop: Expr, count: int, first: int = 0) -> list[Value]:
    """The results of a loop, with names for sizes that only the run can tell."""
    var = n.emit(loop, "loop")
    names = [*n.proto.output, *("loop",) * count]
    return [
        run_value(n.named_result(n.emit(TupleGetItem(var, index), names[index - first]), names[index - first]))
        for index in range(first, count)
    ]


def _over_range(n: OnnxNode, body: Function, made: Body, steps: Dim) -> list[Value]:
    """A loop over a range of sizes, whose rows it stacks."""
    stacked = [TensorType((steps, *(ty.dims or ())), ty.dtype) for ty in made.rows]
    bounds = tuple(PrimValue(bound) for bound in (0, steps, 1))
    loop = R.loop(body, tuple(made.initial), [*made.types, *stacked], range=bounds, stacked=len(stacked))
    return _results(n, loop, len(made.types) + len(stacked))


def _until(n: OnnxNode, made: Body, goes_on: Expr, limit: Expr | None) -> list[Value]:
    """A loop that ends when its body says so, or after so many iterations; its rows are tensors that grow."""
    names = len(made.types)

    def step(index: Value, values: Sequence[Value]) -> Any:
        (_, count, *rest) = values
        test, carried, rows = made.step(count, rest[:names])
        number = n.emit(R.add(n.importer.expr(count), Constant(np.asarray(1, "int64"))), "count")
        grown = [
            run_value(n.emit(R.concat([n.importer.expr(old), R.expand_dims(n.importer.expr(new), [0])], 0), "rows"))
            for old, new in zip(rest[names:], rows, strict=True)
        ]
        going = test if test is not None else known_value(np.asarray(True))
        return None, [_flat_truth(n, going), run_value(number), *carried, *grown], []

    begin = Constant(np.asarray(0, "int64"))
    empty = [n.emit(R.zeros((0, *(ty.dims or ())), ty.dtype), "rows") for ty in made.rows]
    loose = [n.emit(goes_on, "goes_on"), n.emit(begin, "count"), *made.initial, *empty]
    whole = Body(n, loose, step, bounded=False)
    function = whole.function()
    plain = Function(function.params[1:], function.body, function.ret_type, name="loop_body")
    test = _condition(n, whole.types, limit)
    loop = R.loop(plain, tuple(whole.initial), whole.types, condition=test)
    return _results(n, loop, len(whole.types), 2)


def _flat_truth(n: OnnxNode, value: Value) -> Value:
    expr = n.importer.expr(value)
    return run_value(n.emit(R.reshape(expr, ()) if n.rank(expr) else expr, "goes_on"))


def _condition(n: OnnxNode, types: Sequence[Type], limit: Expr | None) -> Function:
    """Whether the loop goes on: its first carried value, and the second below the limit."""
    params = tuple(n.importer.out.parameter("carried", ty) for ty in types)
    going: Expr = params[0]
    if limit is not None:
        going = R.logical_and(going, R.less(params[1], limit))
    with n.importer.out.builder.collect() as bindings:
        result = going if isinstance(going, Var) else n.emit(going, "goes_on")
    block = (BindingBlock(tuple(bindings)),) if bindings else ()
    return Function(params, SeqExpr(block, result), TensorType((), "bool"), name="loop_condition")


# The operators --------------------------------------------------------------------------------------------------------


def loop(n: OnnxNode) -> Any:
    """Steps of a graph: unrolled where they are known and few, else a loop."""
    limit = n.known(0) if n.has(0) else None
    going = n.inputs[1] if n.has(1) else known_value(np.asarray(True))
    known = limit is not None and limit.dtype != object
    if known and int(limit.reshape(-1)[0]) <= _FEW and going.known is not None:  # type: ignore[union-attr]
        try:
            return _unrolled(n, int(limit.reshape(-1)[0]))  # type: ignore[union-attr]
        except Unsupported:
            pass
    try:
        return _as_loop(n, going)
    except Unsupported:
        if not known:
            raise
        return _unrolled(n, int(limit.reshape(-1)[0]))  # type: ignore[union-attr]


def _as_loop(n: OnnxNode, going: Value) -> list[Value]:
    graph, carried = n.attr("body"), n.inputs[2:]
    initial = [_initial(n, value) for value in carried]

    def step(index: Value, values: Sequence[Value]) -> Any:
        results = graph_results(n, graph, [index, known_value(np.asarray(True)), *values])
        goes_on = results[0]
        always = goes_on.known is not None and bool(goes_on.known.reshape(-1)[0])
        return None if always else goes_on, results[1 : 1 + len(values)], results[1 + len(values) :]

    made = Body(n, initial, step, bounded=n.has(0))
    function = made.function()
    if n.has(0) and not made.ends:
        return _over_range(n, function, made, _count(n, going))
    limit = n.emit(R.reshape(R.astype(n.need(0), "int64"), ()), "limit") if n.has(0) else None
    begin = n.importer.expr(going)
    return _until(n, made, R.reshape(begin, ()) if n.rank(begin) else begin, limit)


def _count(n: OnnxNode, going: Value) -> Dim:
    """The number of iterations as a size: none where the condition does not hold at first."""
    known = n.known(0)
    if going.known is not None and not bool(going.known.reshape(-1)[0]):
        return 0
    if known is not None and going.known is not None:
        item = known.reshape(-1)[0]
        return item if isinstance(item, DimExpr) else max(int(item), 0)
    vector = R.maximum(R.reshape(R.astype(n.need(0), "int64"), (1,)), Constant(np.asarray(0, "int64")))
    if going.known is None:
        vector = R.multiply(vector, R.reshape(R.astype(n.importer.expr(going), "int64"), (1,)))
    return n.sizes_of(n.emit(vector, "steps"), n.input_name(0) or "steps")[0]


def _initial(n: OnnxNode, value: Value) -> Expr:
    if value.items is not None:
        raise Unsupported("a loop that carries a sequence")
    expr = n.importer.expr(value)
    n.tensor(expr)
    return expr if isinstance(expr, Var) else n.emit(expr, "initial")


def _unrolled(n: OnnxNode, limit: int) -> list[Any]:
    """The steps one after another, where it is known how many there are."""
    graph = n.attr("body")
    goes_on = n.inputs[1] if n.has(1) else known_value(np.asarray(True))
    carried = list(n.inputs[2:])
    stacked: list[list[Expr]] = [[] for _ in range(len(graph.output) - 1 - len(carried))]
    for step in range(limit):
        if goes_on.known is None:
            raise Unsupported("whether a loop goes on is known only at run time")
        if not bool(goes_on.known.reshape(-1)[0]):
            break
        if step >= _MOST_STEPS or n.importer.grown:
            raise Unsupported(f"more than {_MOST_STEPS} steps, or loops in loops")
        results = graph_results(n, graph, [known_value(np.asarray(step)), goes_on, *carried])
        goes_on, carried = results[0], results[1 : 1 + len(carried)]
        for rows, value in zip(stacked, results[1 + len(carried) :], strict=True):
            rows.append(n.importer.expr(value))
    if any(not rows for rows in stacked):
        raise Unsupported("no step, whose results have a shape")
    return [*carried, *(stacked_rows(rows, 0) for rows in stacked)][: len(n.proto.output)]


@dataclass(frozen=True)
class _Slices:
    """What the attributes of a scan say of its inputs and results."""

    inputs: Sequence[Expr]
    axes: Sequence[int]
    back: Sequence[int]
    out_axes: Sequence[int]
    out_back: Sequence[int]


def scan(n: OnnxNode) -> Any:
    """A graph over the slices of its inputs: unrolled where they are few, else a loop."""
    count = int(n.attr("num_scan_inputs"))
    states = list(n.inputs[: len(n.inputs) - count])
    inputs = [n.need(index) for index in range(len(states), len(n.inputs))]
    results = len(n.attr("body").output) - len(states)
    slices = _Slices(
        inputs,
        [axis % n.rank(x) for axis, x in zip(n.attr("scan_input_axes") or [0] * count, inputs, strict=True)],
        n.attr("scan_input_directions") or [0] * count,
        n.attr("scan_output_axes") or [0] * results,
        n.attr("scan_output_directions") or [0] * results,
    )
    return _scanned(n, states, slices)


def _scanned(n: OnnxNode, states: Sequence[Value], slices: _Slices) -> list[Any]:
    steps = n.shape(slices.inputs[0])[slices.axes[0]]
    if isinstance(steps, int) and 0 < steps <= _FEW and not n.importer.grown:
        return _unrolled_scan(n, states, slices, steps)

    def step(index: Value, values: Sequence[Value]) -> Any:
        place = _dim(index)
        parts = [
            run_value(n.emit(R.take(x, R.full((), PrimValue(steps - 1 - place if turned else place), "int64"), axis)))
            for x, axis, turned in zip(slices.inputs, slices.axes, slices.back, strict=True)
        ]
        results = graph_results(n, n.attr("body"), [*values, *parts])
        return None, results[: len(values)], results[len(values) :]

    made = Body(n, [_initial(n, value) for value in states], step, bounded=True)
    found = _over_range(n, made.function(), made, steps)
    ends = [
        _turned(n, n.importer.expr(value), axis, turned)
        for value, axis, turned in zip(found[len(states) :], slices.out_axes, slices.out_back, strict=True)
    ]
    return [*found[: len(states)], *ends]


def _dim(value: Value) -> Dim:
    assert value.known is not None
    return value.known.reshape(-1)[0]


def _turned(n: OnnxNode, rows: Expr, axis: int, backwards: int) -> Expr:
    """Rows with their axis in another place, or backwards."""
    rows = R.flip(rows, 0) if backwards else rows
    rank = n.rank(rows)
    axis %= rank
    return rows if axis == 0 else R.permute_dims(rows, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


def _unrolled_scan(n: OnnxNode, states: Sequence[Value], slices: _Slices, steps: int) -> list[Any]:
    states, stacked = list(states), [[] for _ in slices.out_axes]
    for step in range(steps):
        parts = [
            run_value(n.emit(R.take(x, R.const(steps - 1 - step if turned else step, "int64"), axis), "slice"))
            for x, axis, turned in zip(slices.inputs, slices.axes, slices.back, strict=True)
        ]
        results = graph_results(n, n.attr("body"), [*states, *parts])
        states = results[: len(states)]
        for rows, value in zip(stacked, results[len(states) :], strict=True):
            rows.append(n.importer.expr(value))
    made = []
    for rows, axis, turned in zip(stacked, slices.out_axes, slices.out_back, strict=True):
        made.append(stacked_rows(rows[::-1] if turned else rows, axis % (n.rank(rows[0]) + 1)))
    return [*states, *made]


def scan_of_batches(n: OnnxNode) -> Any:
    """Before version 9: a scan along the second axis for each index of the first."""
    if n.has(0):
        raise Unsupported("a scan over as many slices as an input says")
    count = int(n.attr("num_scan_inputs"))
    states = [n.need(index) for index in range(1, len(n.inputs) - count)]
    inputs = [n.need(index) for index in range(len(n.inputs) - count, len(n.inputs))]
    (batch,) = n.dims(inputs[0], [0])
    directions = n.attr("directions") or [0] * count
    results = len(n.attr("body").output) - len(states)
    columns: list[list[Expr]] = [[] for _ in n.proto.output]
    for place in range(batch):
        here = R.const(place, "int64")
        parts = [n.emit(R.take(x, here, 0), "batch") for x in inputs]
        slices = _Slices(parts, [0] * count, directions, [0] * results, [0] * results)
        made = _scanned(n, [run_value(n.emit(R.take(x, here, 0), "state")) for x in states], slices)
        for column, value in zip(columns, made, strict=True):
            column.append(n.importer.expr(value) if isinstance(value, Value) else value)
    return [stacked_rows(column, 0) for column in columns]


row("Loop", loop, values=True)
row("Scan", scan_of_batches, values=True)
row("Scan", scan, values=True, since=9)
