"""Reading blocks of bindings: `with R.dataflow():`, `with R.bindings():`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from weft.ir.graph import BindingBlock, DataflowBlock
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.graph.assign import is_static
from weft.script.reader.graph.bindings import fresh_target
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.statements import read_statement
from weft.script.reader.macros import Macro
from weft.script.reader.scope import Scope
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import MISSING

__all__ = ["return_behind"]


@GRAPH.tree(ast.With)
def _with(session: GraphSession, tree: ast.With) -> None:
    call = tree.items[0].context_expr
    name = dotted_name(session, call.func) if isinstance(call, ast.Call) else dotted_name(session, call)
    if name not in ("R.dataflow", "R.bindings") or len(tree.items) != 1:
        raise session.fail(
            "W115", f"`with {ast.unparse(call)[:40]}` is not part of a graph function", call, "with R.dataflow():"
        )
    if tree.items[0].optional_vars is not None:
        raise session.fail("W115", "a dataflow block has no name", tree.items[0].optional_vars)
    if session.dataflow_names is not None:
        raise session.fail("W119", "a dataflow block inside a dataflow block", call)
    if name == "R.bindings":
        _plain_block(session, tree)
    else:
        _dataflow(session, tree)


def _plain_block(session: GraphSession, tree: ast.With) -> None:
    """A block of bindings kept apart from its neighbours."""
    session.blocks.flush()
    for statement in tree.body:
        read_statement(session, statement)
    session.blocks.done.append(BindingBlock(tuple(session.blocks.bindings), span=session.span(tree)))
    session.blocks.bindings = []


def _is_dataflow(session: GraphSession, tree: ast.With) -> bool:
    call = tree.items[0].context_expr
    return isinstance(call, ast.Call) and dotted_name(session, call.func) == "R.dataflow"


def _dataflow(session: GraphSession, tree: ast.With) -> None:
    session.blocks.flush()
    for statement in tree.body:
        if isinstance(statement, ast.With) and _is_dataflow(session, statement):
            raise session.fail("W119", "a dataflow block inside a dataflow block", statement.items[0].context_expr)
    outputs = _output_names(session, tree)
    last = {name: -1 for name in outputs}
    for position, statement in enumerate(tree.body):
        for name in _targets(statement):
            if name in last:
                last[name] = position
    for name, position in last.items():
        if position < 0:
            where = session.scope.get(name)
            why = "it is bound outside the block" if where is not MISSING else "nothing in the block binds it"
            hint = did_you_mean(name, {target for statement in tree.body for target in _targets(statement)})
            raise session.fail("W119", f"'{name}' is no output of this block: {why}", outputs[name], hint)
    outer = session.scope
    session.scope = Scope(outer)
    session.dataflow_names = last
    try:
        for position, statement in enumerate(tree.body):
            session.position = position
            if not _is_output(session, statement):
                if isinstance(statement, ast.Return):
                    raise session.fail("W120", "a return inside a dataflow block", statement)
                read_statement(session, statement)
    finally:
        session.dataflow_names = None
        session.position = -1
        inner, session.scope = session.scope, outer
    for name in outputs:
        outer.names[name] = inner.names[name]
    _forget_statics(session, inner, outer, outputs)
    session.blocks.done.append(DataflowBlock(tuple(session.blocks.bindings), span=session.span(tree)))
    session.blocks.bindings = []


def return_behind(session: GraphSession, tree: ast.stmt) -> tuple[ast.With, ast.Return] | None:
    """A dataflow block that ends in a return, as the block, which then outputs what is returned, and the return."""
    last = tree.body[-1] if isinstance(tree, ast.With) and _is_dataflow(session, tree) else None
    if not isinstance(tree, ast.With) or not isinstance(last, ast.Return) or last.value is None:
        return None
    steps, value = tree.body[:-1], last.value
    if not (steps and _is_output(session, steps[-1])):
        if not isinstance(value, ast.Name):
            target = fresh_target(session, last, "result")
            steps.append(ast.copy_location(ast.Assign([target], value), last))
            value = ast.copy_location(ast.Name(target.id, ast.Load()), value)
        output = ast.Call(ast.Attribute(ast.Name("R", ast.Load()), "output", ast.Load()), [value], [])
        steps.append(ast.fix_missing_locations(ast.copy_location(ast.Expr(output), last)))
    return ast.copy_location(ast.With(tree.items, steps), tree), ast.copy_location(ast.Return(value), last)


def _forget_statics(session: GraphSession, inner: Scope, outer: Scope, outputs: Mapping[str, Any]) -> None:
    """Names known while reading stay visible; variables of the block leave a trace for the error message."""
    for name, value in inner.names.items():
        if name not in outputs:
            if _holds_local(session, value):
                session.hidden[name] = "it is local to a dataflow block: add it to R.output"
            else:
                outer.names.setdefault(name, value)


def _holds_local(session: GraphSession, value: Any) -> bool:
    """Whether a value names variables of the block, by itself or in what it holds or computes later."""
    if isinstance(value, Macro):
        return value.scope is not None
    if isinstance(value, (tuple, list, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return any(_holds_local(session, part) for part in parts)
    return not is_static(value)


def _output_names(session: GraphSession, tree: ast.With) -> dict[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for position, statement in enumerate(tree.body):
        if not _is_output(session, statement):
            continue
        if position != len(tree.body) - 1:
            after = tree.body[position + 1]
            raise session.fail("W119", "nothing can follow `R.output` in its block", after, "write `R.output` last")
        for argument in _output_call(statement).args:
            if not isinstance(argument, ast.Name):
                raise session.fail("W114", "R.output takes names", argument)
            found[argument.id] = argument
    return found


def _is_output(session: GraphSession, tree: ast.stmt) -> bool:
    return (
        isinstance(tree, ast.Expr)
        and isinstance(tree.value, ast.Call)
        and dotted_name(session, tree.value.func) == "R.output"
    )


def _output_call(tree: ast.stmt) -> ast.Call:
    """The call of an R.output statement."""
    assert isinstance(tree, ast.Expr)
    assert isinstance(tree.value, ast.Call)
    return tree.value


def _outputs_of(session: GraphSession, tree: ast.With) -> list[str]:
    last = tree.body[-1]
    if _is_output(session, last):
        return [argument.id for argument in last.value.args if isinstance(argument, ast.Name)]  # type: ignore[attr-defined]
    return []


def _targets(tree: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(tree, ast.FunctionDef):
        return [tree.name]
    if isinstance(tree, ast.For):
        return [name for statement in tree.body for name in _targets(statement)]
    if isinstance(tree, ast.If):
        return [name for statement in (*tree.body, *tree.orelse) for name in _targets(statement)]
    targets = (
        tree.targets
        if isinstance(tree, ast.Assign)
        else [tree.target]
        if isinstance(tree, (ast.AnnAssign, ast.AugAssign))
        else []
    )
    names: list[str] = []
    for target in targets:
        for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(item, ast.Name):
                names.append(item.id)
    return names
