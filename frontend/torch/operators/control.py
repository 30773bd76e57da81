"""Control flow of PyTorch's programs: branches and loops, whose graphs become those of ours.

cond(p, f, g, xs)              one of two branches
while_loop(c, f, xs, ys)       a loop that carries xs
scan(f, xs, ys, zs)            a loop over the rows of ys that carries xs; its further results have a row each
map_impl(f, ys, zs)            the same without what it carries
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.dim import DimExpr
from weft.ir.graph import Expr, Function, If, PrimValue, SeqExpr, Tuple, TupleGetItem, Var
from weft.ir.types import PrimType, TensorType, Type
from weft.script import relax as R


def _exprs(n: FxNode, values: Sequence[Any], types: Sequence[Type]) -> list[Expr]:
    """Values as expressions; numbers as scalars of the types that are wanted."""
    made: list[Expr] = []
    for value, ty in zip(values, types, strict=True):
        dtype = getattr(ty, "dtype", None) or "int64"
        expr = value if isinstance(value, Expr) else n.cast(value, dtype)
        made.append(expr if isinstance(expr, Var) else n.emit(expr, "value"))
    return made


def _fields(n: FxNode, whole: Expr, count: int) -> list[Expr]:
    var = n.emit(whole)
    return [TupleGetItem(var, index) for index in range(count)]


def _result_types(n: FxNode) -> list[Type]:
    """The types that PyTorch gives the results, each a tensor of known rank."""
    values = n.call.value if isinstance(n.call.value, (list, tuple)) else [n.call.value]
    return [n.importer.types.type_of(value) if hasattr(value, "shape") else TensorType((), "int64") for value in values]


def choose(n: FxNode, predicate: Any, then: Any, other: Any, operands: Any = ()) -> Any:
    """One of two graphs; of a predicate that is known while importing only that one."""
    if isinstance(predicate, bool):
        return n.importer.inlined(then if predicate else other, operands)
    types = _result_types(n)
    cond = n.emit(R.reshape(n.cast(predicate, "bool"), ()), "cond")
    first, second = (
        n.importer.collected(lambda graph=graph: _exprs(n, n.importer.inlined(graph, operands), types))[0]
        for graph in (then, other)
    )
    return _fields(n, If(cond, first, second), len(types))


def _function(n: FxNode, params: Sequence[Var], step: Any, name: str) -> Function:
    body, ty = n.importer.collected(step)
    return Function(tuple(params), body, ty, name=name)


def _named(n: FxNode, function: Function) -> Expr:
    """A function under its own name."""
    return n.importer.out.builder.emit(function, function.name)


def _variable(n: FxNode, name: str, ty: Type) -> Var:
    return n.importer.out.parameter(name, ty)


def _loose(n: FxNode, value: Any, before: Expr) -> Type:
    """The type that a loop carries: what PyTorch says of the value after it, which covers all iterations."""
    ty = n.importer.types.type_of(value) if hasattr(value, "shape") else TensorType((), "int64")
    return ty if isinstance(ty, TensorType) and ty.dims is not None else n.tensor(before)


def repeat(n: FxNode, condition: Any, body: Any, carried: Any, further: Any = ()) -> Any:
    """A graph on values as long as another one holds for them."""
    values = n.call.value if isinstance(n.call.value, (list, tuple)) else [n.call.value]
    scalars = [TensorType((), "int64") if not isinstance(value, Expr) else n.tensor(value) for value in carried]
    initial = _exprs(n, carried, scalars)
    types = [_loose(n, value, before) for value, before in zip(values, initial, strict=True)]
    functions = []
    for graph, name in ((body, "loop_body"), (condition, "loop_condition")):
        params = [_variable(n, "carried", ty) for ty in types]
        wanted = types if graph is body else [TensorType((), "bool")]

        def step(graph: Any = graph, params: Any = params, wanted: Any = wanted) -> list[Expr]:
            given = [_number(n, param, value) for param, value in zip(params, carried, strict=True)]
            return _exprs(n, n.importer.inlined(graph, [*given, *further]), wanted)

        functions.append(_function(n, params, step, name))
    test = functions[1]
    (field,) = test.body.body.fields if isinstance(test.body.body, Tuple) else (test.body.body,)
    asked = Function(test.params, SeqExpr(test.body.blocks, field), TensorType((), "bool"), name="loop_condition")
    loop = R.loop(_named(n, functions[0]), tuple(initial), types, condition=_named(n, asked))
    return _fields(n, loop, len(types))


def _number(n: FxNode, param: Var, value: Any) -> Any:
    """A carried number, which graphs take as a size."""
    if isinstance(value, (int, DimExpr)) and not isinstance(value, bool):
        (dim,) = n.importer.out.sizes_of(n.emit(R.reshape(param, (1,))), param.name)
        return dim
    return param


def _over_rows(n: FxNode, graph: Any, initial: list[Expr], rows: list[Expr], further: Any) -> list[Expr]:
    """A graph on carried values and a row of each tensor, for all rows in turn."""
    carried = [n.tensor(value) for value in initial]
    types = _result_types(n)
    stacked = types[len(carried) :]
    steps = n.shape(rows[0])[0]
    index = _variable(n, "step", PrimType("int64"))
    params = [_variable(n, "carried", ty) for ty in carried]

    def step() -> list[Expr]:
        parts = [n.emit(R.take(row, index, 0), "row") for row in rows]
        made = n.importer.inlined(graph, [*params, *parts, *further])
        ends = [*carried, *(TensorType((ty.dims or ())[1:], ty.dtype) for ty in stacked)]  # type: ignore[attr-defined]
        return _exprs(n, made, ends)

    if any(not isinstance(ty, TensorType) or ty.dims is None for ty in stacked):
        raise Unsupported("rows whose sizes only the run can tell")
    named = [TensorType((steps, *ty.dims[1:]), ty.dtype) for ty in stacked]  # type: ignore[attr-defined]
    body = _function(n, [index, *params], step, "loop_body")
    bounds = tuple(PrimValue(bound) for bound in (0, steps, 1))
    loop = R.loop(_named(n, body), tuple(initial), [*carried, *named], range=bounds, stacked=len(named))
    return _fields(n, loop, len(types))


def scan(n: FxNode, graph: Any, initial: Any, rows: Any, further: Any = (), *rest: Any, **options: Any) -> Any:
    """A graph over rows that carries values; its further results have a row for each."""
    if options.get("reverse") or (options.get("dim") or 0) != 0 or rest:
        raise Unsupported("a scan backwards, or along another axis")
    return _over_rows(n, graph, list(initial), list(rows), further)


def mapped(n: FxNode, graph: Any, rows: Any, further: Any = ()) -> Any:
    """A graph on each row."""
    return _over_rows(n, graph, [], list(rows), further)


def plain(n: FxNode, *args: Any) -> Any:
    """A graph with a mode of PyTorch's (gradients, mixed precision), in place."""
    place = next(index for index, item in enumerate(args) if item in n.importer.graphs)
    return n.importer.inlined(args[place], args[place + 1 :])


row("cond", choose)
row("while_loop", repeat)
row("scan", scan)
row("map_impl", mapped)
row("wrap_with_set_grad_enabled wrap_with_autocast", plain)
row("invoke_subgraph", lambda n, graph, name, *operands: n.importer.inlined(graph, operands))
