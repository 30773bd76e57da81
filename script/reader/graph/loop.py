"""Reading loops of graph functions: `while` and `for i in range(...)` over sizes and run-time scalars.

    while condition: statement ...                    s, ... = R.loop(body, (s, ...), condition=condition)
    for i in range(start, stop, step): statement ...  s, ... = R.loop(body, (s, ...), range=(start, stop, step))

The names that the body binds anew and that have a value before the loop are carried from one iteration to the next;
each keeps its type. Every other name of the body, the index too, ends with the loop. A list that is empty before
the loop, and that each iteration appends one tensor to, is after it a tensor with a row for each (`R.stack` of it is
itself). Where the index is proved not to
be negative it is a symbol, which shapes and slices may use; elsewhere it is an int64 scalar. A `for` over what is known
while reading is unrolled (`StaticReader.static_for`).

Errors: ScriptError W115 `else`, a target that is no name; W119 a loop in a dataflow block; ShapeError and DTypeError of
`check_claim` where a name has another type after an iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.deduction.infer import check_claim, func_type, type_text
from weft.ir.dim import Dim, DimExpr, prove_le, symbol
from weft.ir.graph import (
    Call,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.node import replace
from weft.ir.op import get_op
from weft.ir.op.program.loop import iterations
from weft.ir.types import PrimType, TensorType, TupleType, Type
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.unrolling import static_for
from weft.script.reader.graph.bindings import (
    as_leaf,
    bind_value,
    emit_binding,
    fresh_target,
    make_var,
    scalar_tensor,
    type_of,
)
from weft.script.reader.graph.branches import check_condition
from weft.script.reader.graph.function import sequence
from weft.script.reader.graph.loop_body import bound_names, straight
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import Scope, is_dim
from weft.script.source.text import MISSING

__all__: list[str] = []


@GRAPH.tree(ast.For)
def _for(session: GraphSession, tree: ast.For) -> None:
    """A loop over a range known while reading is unrolled; any other range is a loop of the graph."""
    bounds = _range_of(session, tree)
    if bounds is not None:
        _range_loop(session, tree, bounds)
        return
    static_for(session, tree, session.level.iterable(session, session.value(tree.iter), tree.iter))


@dataclass(frozen=True)
class _Carried:
    """A name that an iteration hands to the next: its value before the loop, and its type throughout."""

    name: str
    initial: Expr
    ty: Type


def _range_of(session: GraphSession, tree: ast.For) -> tuple[Any, Any, Any] | None:
    """Start, stop and step of a loop over a range that only a run decides; None for any other loop."""
    call = tree.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
        return None
    if session.scope.get("range") is not MISSING or call.keywords or not 1 <= len(call.args) <= 3:
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if all(_is_written_out(argument) for argument in call.args):
        return None
    values = [session.value(argument) for argument in call.args]
    if not any(isinstance(value, (Expr, DimExpr)) for value in values):
        return None
    start, stop, step = (0, values[0], 1) if len(values) == 1 else (*values, 1) if len(values) == 2 else values
    return start, stop, step


def _is_written_out(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Constant) or (isinstance(tree, ast.UnaryOp) and isinstance(tree.operand, ast.Constant))


def _range_loop(session: GraphSession, tree: ast.For, bounds: tuple[Any, Any, Any]) -> None:
    """A loop over a range of sizes or run-time scalars."""
    if not isinstance(tree.target, ast.Name):
        raise session.fail("W115", "the index of a loop over a range is one name", tree.target)
    _read(session, tree, tree.target, bounds, None)


@GRAPH.tree(ast.While)
def _while(session: GraphSession, tree: ast.While) -> None:
    """A loop that ends when its condition is false; a condition known while reading must be true (`break` ends it)."""
    test = tree.test
    if isinstance(test, ast.Constant) and not test.value:
        return  # while False
    _read(session, tree, None, None, test)


def _read(
    session: GraphSession,
    tree: ast.For | ast.While,
    index: ast.Name | None,
    bounds: tuple[Any, Any, Any] | None,
    test: ast.expr | None,
) -> None:
    if session.dataflow_names is not None:
        raise session.fail("W119", "a dataflow block has no control flow", tree, "move the loop outside of it")
    if tree.orelse:
        raise session.fail("W115", "an `else` of a loop is not part of a graph function", tree.orelse[0])
    found = straight(tree, lambda name: session.scope.get(name) is not MISSING)
    lists = _appended(session, found.body)
    if found.flag is not None:
        session.scope.names[found.flag] = True
    loop = _LoopReader(session, tree, index, found.body, lists)
    range_ = tuple(as_leaf(session, _as_bound(session, bound, tree), tree) for bound in bounds) if bounds else None
    function = loop.body(found.body, _symbol_of(session, index, bounds))
    asked = _asked(test, found.flag, tree)
    if not asked and range_ is None:
        raise session.fail("W115", "`while True` without a `break` never ends", tree)
    condition = loop.condition(asked)
    loop.emit(function, range_, condition)
    session.scope.names.pop(found.flag or "", None)


def _appended(session: GraphSession, body: list[ast.stmt]) -> dict[str, str]:
    """Empty lists that every iteration appends a value to, with a name for that value, which the body binds instead."""
    found: dict[str, str] = {}
    for position, tree in enumerate(body):
        call = tree.value if isinstance(tree, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
            continue
        base = call.func.value
        if not isinstance(base, ast.Name) or call.func.attr != "append" or base.id in found:
            continue
        if session.scope.get(base.id) == []:
            found[base.id] = f"row_of_{base.id}"
            target = ast.copy_location(ast.Name(found[base.id], ast.Store()), tree)
            body[position] = ast.copy_location(ast.Assign([target], call.args[0]), tree)
    return found


def _asked(test: ast.expr | None, flag: str | None, tree: ast.stmt) -> list[ast.stmt]:
    """The statements of the condition: the flag first, and what the text says where that holds; none for neither."""
    if isinstance(test, ast.Constant) and test.value:
        test = None  # while True
    if flag is None and test is not None:
        return [ast.copy_location(ast.Return(test), test)]
    if flag is None:
        return []
    stop: ast.stmt = ast.copy_location(ast.Return(ast.copy_location(ast.Name(flag, ast.Load()), tree)), tree)
    if test is None:
        return [stop]
    go_on = ast.copy_location(ast.Return(test), test)
    return [ast.copy_location(ast.If(ast.copy_location(ast.Name(flag, ast.Load()), tree), [go_on], []), tree), stop]


def _as_bound(session: GraphSession, bound: Any, tree: ast.AST) -> Any:
    return PrimValue(bound, "int64", span=session.span(tree)) if is_dim(bound) else bound


def _symbol_of(session: GraphSession, index: ast.Name | None, bounds: tuple[Any, Any, Any] | None) -> str | None:
    """A new symbol for an index that is proved not to be negative."""
    if index is None or bounds is None:
        return None
    start, stop, step = bounds
    if not isinstance(step, int):
        return None
    least = start if step > 0 else stop + 1 if is_dim(stop) else None
    if not is_dim(least) or prove_le(0, _dim(least)) is not True:
        return None
    name, count = index.id, 0
    while name in session.symbols:
        count += 1
        name = f"{index.id}_{count}"
    session.symbols.add(name)
    return name


def _dim(value: Any) -> Dim:
    return value


class _LoopReader:
    """One loop while it is read."""

    def __init__(
        self,
        session: GraphSession,
        tree: ast.For | ast.While,
        index: ast.Name | None,
        body: Sequence[ast.stmt],
        lists: Mapping[str, str],
    ) -> None:
        self.lists = lists
        self.rows: tuple[Type, ...] = ()
        self.session, self.tree, self.index = session, tree, index
        names = dict.fromkeys(bound_names(body))
        names.pop(index.id if index is not None else "", None)
        self.local = [name for name in names if not self._is_carried(name)]
        self.carried = [self._carry(name) for name in names if self._is_carried(name)]

    def _is_carried(self, name: str) -> bool:
        value = self.session.scope.get(name)
        return value is not MISSING and (
            isinstance(value, (bool, int, float, DimExpr, np.ndarray, tuple))
            or (isinstance(value, Expr) and not isinstance(value, (GlobalVar, Function)))
        )

    def _carry(self, name: str) -> _Carried:
        """A number becomes a tensor of rank 0: what the body computes from it is one."""
        initial = scalar_tensor(self.session, self.session.scope.get(name), self.tree)
        return _Carried(name, initial, type_of(self.session, initial, self.tree))

    @property
    def types(self) -> TupleType:
        """What the loop carries."""
        return TupleType(tuple(item.ty for item in self.carried))

    # The two functions

    def body(self, statements: Sequence[ast.stmt], index_symbol: str | None) -> Function:
        """The body as a function of the index and the carried values."""
        names: list[ast.expr] = [
            ast.copy_location(ast.Name(name, ast.Load()), self.tree)
            for name in (*(item.name for item in self.carried), *self.lists.values())
        ]
        given = ast.copy_location(ast.Tuple(names, ast.Load()), self.tree)
        last = ast.copy_location(ast.Return(given), self.tree)
        inner, params = self._inner()
        if self.index is not None:
            params.insert(0, self._index(inner, self.index, index_symbol))
        made = self._function(inner, params, [*statements, last], "loop_body")
        found = type_of(inner, made.body.body, self.tree)
        fields = found.fields if isinstance(found, TupleType) else ()
        for item, ty in zip(self.carried, fields, strict=False):
            self._check_invariant(inner, item, ty)
        self.rows = fields[len(self.carried) :]
        return replace(made, ret_type=TupleType((*self.types.fields, *self.rows)))

    def condition(self, statements: Sequence[ast.stmt]) -> Function | None:
        """The condition as a function of the carried values."""
        if not statements:
            return None
        inner, params = self._inner()
        made = self._function(inner, params, statements, "loop_condition")
        check_condition(inner, made.body.body, statements[0])
        return made

    def _inner(self) -> tuple[GraphSession, list[Var]]:
        """A reader of what runs in each iteration, and the variables that stand for the carried values in it."""
        session = self.session
        inner = GraphSession(
            session.unit, session.module, session.level, Scope(session.scope), session.symbols,
            context=session.context, hidden=session.hidden,
        )  # fmt: skip
        inner.carried = {*session.carried, *(item.name for item in self.carried)}
        params = []
        for item in self.carried:
            var = Var(item.name, item.ty, span=session.span(self.tree))
            inner.scope.names[item.name] = var
            params.append(var)
        return inner, params

    def _index(self, inner: GraphSession, index: ast.Name, name: str | None) -> Var:
        ty = PrimType("int64", symbol(name)) if name is not None else PrimType("int64")
        var = Var(index.id, ty, span=inner.span(index))
        inner.scope.names[index.id] = symbol(name) if name is not None else var
        return var

    def _function(self, inner: GraphSession, params: Sequence[Var], trees: Sequence[ast.stmt], name: str) -> Function:
        inner.pure = self.session.pure
        inner.params = tuple(params)
        with inner.context.scope():
            body: SeqExpr = sequence(inner, trees, self.tree)
            ty = self.types if name == "loop_body" else type_of(inner, body.body, self.tree)
        return Function(inner.params, body, ty, inner.pure, name=name, span=inner.span(self.tree))

    def _check_invariant(self, inner: GraphSession, item: _Carried, found: Type) -> None:
        """A name has one type in all iterations: proved, refuted here, or checked when the loop runs."""
        place = self.session.span(self.tree)
        try:
            check_claim(item.ty, found, inner.context, f"`{item.name}` after an iteration", place, at_run_time=True)
        except (ShapeError, DTypeError) as error:
            before = f"`{item.name}` is {type_text(item.ty)} before the loop and {type_text(found)} after an iteration"
            hint = "a value keeps its type in all iterations"
            if isinstance(error, ShapeError):
                hint += "; where a size grows, begin with a tensor of the final size and write into it"
            elif isinstance(error, DTypeError) and error.hint is not None:
                hint += f": {error.hint}"
            raise type(error)(before, code=error.code, span=place, hint=hint) from None

    # The loop

    def emit(self, body: Function, range_: Sequence[Expr] | None, condition: Function | None) -> None:
        """Bind the functions, the loop, and the names that it carries."""
        session, tree = self.session, self.tree
        functions = {"body": self._bind(body)}
        if condition is not None:
            functions["condition"] = self._bind(condition)
        arguments: dict[str, Any] = {**functions, "initial": Tuple(tuple(item.initial for item in self.carried))}
        stacked = self._stacked(range_, condition)
        if range_ is not None:
            arguments["range"] = Tuple(tuple(range_))
        name = "loop" if session.pure else "loop_with_effects"
        arguments |= {"out_ty": TupleType((*self.types.fields, *stacked)), "stacked": len(stacked)}
        call: Call = get_op(name).bind([], arguments, session.span(tree))
        result = bind_value(session, fresh_target(session, tree, "loop"), call, None, tree)
        for number, item in enumerate(self.carried):
            target = ast.copy_location(ast.Name(item.name, ast.Store()), tree)
            field = TupleGetItem(result, number, span=session.span(tree))
            session.scope.names[item.name] = bind_value(session, target, field, None, tree)
            session.hidden.pop(item.name, None)
        for number, name in enumerate(self.lists, len(self.carried)):
            target = ast.copy_location(ast.Name(name, ast.Store()), tree)
            made = bind_value(session, target, TupleGetItem(result, number, span=session.span(tree)), None, tree)
            session.scope.names[name] = made
            session.stacked.add(made)
        for name in (*self.local, *([self.index.id] if self.index is not None else [])):
            why = "it is bound in a loop, which may have no iteration: bind it before the loop"
            session.hidden.setdefault(name, why)

    def _stacked(self, range_: Sequence[Expr] | None, condition: Function | None) -> list[TensorType]:
        """The types of the lists as tensors with a row for each iteration."""
        session, tree = self.session, self.tree
        count = iterations(Tuple(tuple(range_)) if range_ is not None else None)
        if self.rows and (count is None or condition is not None):
            name = next(iter(self.lists))
            message = f"the list '{name}' gets a value in each iteration, of a number that only a run decides"
            hint = "a range of sizes, without `break`, says how many rows it has"
            raise session.fail("W115", message, tree, hint)
        made = []
        for name, ty in zip(self.lists, self.rows, strict=True):
            if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
                message = f"the list '{name}' becomes a tensor, of values of known shape: got {type_text(ty)}"
                raise session.fail("W114", message, tree)
            made.append(TensorType((count, *ty.dims), ty.dtype))  # type: ignore[arg-type]
        return made

    def _bind(self, function: Function) -> Var:
        session = self.session
        target = fresh_target(session, self.tree, function.name)
        var = make_var(session, target.id, func_type(function), self.tree)
        assert not isinstance(var, DataflowVar)
        emit_binding(session, VarBinding(var, function, span=session.span(self.tree)))
        return var
