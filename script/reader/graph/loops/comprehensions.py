"""Comprehensions over what only a run decides: a loop that appends, of which the list is one tensor.

[f(v) for v in x]              rows = []; for v in x: rows.append(f(v))
sum(f(v) for v in x)           the sum of its rows; so any, all, min, max
sum(v for v in x if v > 0)     sum(v if v > 0 else 0 for v in x); so any, all
sum(f(i) for i in range(k))    total = 0; for i in range(k): total = total + f(i), where only a run knows k; so any, all
"""

from __future__ import annotations

import ast
from typing import Any

from weft.ir.graph import Expr
from weft.ir.types import TensorType
from weft.script.reader.expression.arguments import KnownValue
from weft.script.reader.expression.unrolling import static_comprehension
from weft.script.reader.graph.bindings import as_leaf, type_of
from weft.script.reader.graph.expressions.operators import reduced
from weft.script.reader.graph.joined import assigned, at, fresh_name, name_at
from weft.script.reader.graph.loops.loop import read_loop
from weft.script.reader.graph.loops.source import Source, source_of
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import Hidden, Scope
from weft.script.source.text import MISSING

__all__ = ["comprehension_value", "reduction_value"]

_Comprehension = ast.ListComp | ast.GeneratorExp


def comprehension_value(session: GraphSession, tree: _Comprehension) -> Any:
    """The list, or the tensor of what a run decides."""
    first, *rest = tree.generators
    found = source_of(session, first.iter)
    if not isinstance(found, Source) or found.known:
        return static_comprehension(session, _over(tree, found.tree if isinstance(found, Source) else found))
    if rest or first.ifs:
        what = "the second loop" if rest else "the condition"
        message = f"how many values the list has, {what} of the comprehension decides in a run"
        hint = "`sum`, `any` and `all` take it; R.where keeps the size, R.masked_select gives what a mask chooses"
        raise session.fail("W115", message, rest[0].iter if rest else first.ifs[0], hint)
    return _rows(session, tree, found)


def _over(tree: _Comprehension, source: ast.expr) -> _Comprehension:
    """A comprehension over a source that has been read."""
    first, *rest = tree.generators
    generator = ast.comprehension(first.target, source, first.ifs, first.is_async)
    return at(tree, type(tree)(tree.elt, [generator, *rest]))


def _rows(session: GraphSession, tree: _Comprehension, source: Source) -> Any:
    """The values of a loop as rows of a tensor; its names are its own."""
    name = fresh_name("rows", session.has_value)
    append = at(tree, ast.Attribute(name_at(name, ast.Load(), tree), "append", ast.Load()))
    body = at(tree, ast.Expr(at(tree, ast.Call(append, [tree.elt], []))))
    return _looped(session, tree, source, name, [], body)


def _accumulated(session: GraphSession, kind: str, tree: _Comprehension, source: Source) -> Any:
    """The values of a loop put together one by one."""
    name = fresh_name("total", session.has_value)
    before = name_at(name, ast.Load(), tree)
    both = ast.And() if kind == "all" else ast.Or()
    value = ast.BinOp(before, ast.Add(), tree.elt) if kind == "sum" else ast.BoolOp(both, [before, tree.elt])
    body: ast.stmt = assigned(name, at(tree, value), tree)
    for generator in reversed(tree.generators):
        for test in reversed(generator.ifs):
            body = at(tree, ast.If(test, [body], []))
        if generator is not tree.generators[0]:
            body = at(tree, ast.For(generator.target, generator.iter, [body], []))
    return _looped(session, tree, source, name, {"sum": 0, "any": False, "all": True}[kind], body)


def _looped(
    session: GraphSession, tree: _Comprehension, source: Source, name: str, initial: Any, body: ast.stmt
) -> Any:
    """The value that a loop gives a name; the names of the comprehension are its own."""
    saved, session.scope = session.scope, Scope(session.scope, own=True)
    try:
        for node in (node for generator in tree.generators for node in ast.walk(generator.target)):
            if isinstance(node, ast.Name):
                session.scope.names[node.id] = Hidden("it is a name of a comprehension")
        session.scope.names[name] = initial
        read_loop(session, at(tree, ast.For(tree.generators[0].target, source.tree, [body], [])), source)
        return session.scope.names[name]
    finally:
        session.scope = saved


def reduction_value(session: GraphSession, name: str, tree: ast.Call) -> Any:
    """`sum`, `any`, `all`, `min` and `max` of what a run decides; MISSING for everything else."""
    argument = tree.args[0]
    if isinstance(argument, (ast.Tuple, ast.List, KnownValue)):
        return MISSING
    if isinstance(argument, (ast.ListComp, ast.GeneratorExp)):
        found = source_of(session, argument.generators[0].iter)
        argument = _over(argument, found.tree if isinstance(found, Source) else found)
        if isinstance(found, Source) and not found.known:
            if found.count is None and name in ("sum", "any", "all"):
                return _accumulated(session, name, argument, found)
            argument = _without_condition(name, argument)
    value = session.value(argument)
    ty = type_of(session, as_leaf(session, value, argument), argument) if isinstance(value, Expr) else None
    if isinstance(ty, TensorType) and (ty.ndim == 1 or (ty.ndim > 1 and name == "sum")):
        return reduced(session, name, value, tree)
    return session.value(at(tree, ast.Call(tree.func, [KnownValue(value, argument)], [])))


def _without_condition(name: str, tree: _Comprehension) -> _Comprehension:
    """A comprehension in which what a condition leaves out is a value that changes nothing."""
    generators = tree.generators
    if name not in ("sum", "any", "all") or len(generators) > 1 or not generators[0].ifs:
        return tree
    first = generators[0]
    test = first.ifs[0] if len(first.ifs) == 1 else at(tree, ast.BoolOp(ast.And(), first.ifs))
    nothing = at(tree.elt, ast.Constant({"sum": 0, "any": False, "all": True}[name]))
    chosen = at(tree.elt, ast.IfExp(test, tree.elt, nothing))
    return at(tree, type(tree)(chosen, [ast.comprehension(first.target, first.iter, [], first.is_async)]))
