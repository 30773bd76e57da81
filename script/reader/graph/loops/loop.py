"""Reading loops of graph functions: `while`, and `for` over what only a run decides.

    while condition: statement ...                    s, ... = R.loop(body, (s, ...), condition=condition)
    for i in range(start, stop, step): statement ...  s, ... = R.loop(body, (s, ...), range=(start, stop, step))
    for row in x: statement ...                       for i in range(len(x)): row = x[i]; statement ...

The names that the body binds anew and that have a value before the loop are carried from one iteration to the next;
each keeps its type. A number of Python is carried in the dtype that an iteration gives it. Every other name of the
body ends with the loop, and so does the index, unless it had a value before. A list that is empty before the loop, and
that each iteration appends one tensor to, is after it a tensor with a row for each (`R.stack` of it is itself). Where
the index is proved not to be negative it is a symbol, which shapes and slices may use; elsewhere it is an int64 scalar.
A `for` over what is known while reading is unrolled (`StaticReader.static_for`), except over ranges of many rounds, and
those that only a run may leave early.

`return` in a loop: see `returns`.

Errors: ScriptError W115 a target that is no name, a value that cannot be carried; W119 a loop in a dataflow block;
ShapeError and DTypeError of `check_claim` where a name has another type after an iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from weft.ir.dim import Dim, prove_le
from weft.ir.graph import Expr, Function, PrimValue
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.unrolling import NOT_KNOWN, static_for
from weft.script.reader.graph.bindings import (
    as_leaf,
)
from weft.script.reader.graph.joined import Following, assigned, at, bound_names, fresh_name, live_in, name_at
from weft.script.reader.graph.loops.body import (
    LoopTree,
    bound_when_left,
    continues,
    leaves,
    paths_to_break,
    returns,
    straight,
    with_body,
    without_else,
)
from weft.script.reader.graph.loops.carried import LoopReader
from weft.script.reader.graph.loops.source import Bounds, Source, changed_names, sized, source_of, table_source
from weft.script.reader.graph.loops.trial import tried, undone
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import changed_arrays, refuse_gone_through
from weft.script.reader.graph.statements import in_order, read_statement
from weft.script.reader.scope import is_dim

__all__ = ["read_loop", "unroll"]

UNROLLED = 64
"""Rounds of a range that is written out from which on it is read as a loop: straight-line programs unroll as many."""


@GRAPH.tree(ast.For)
def _for(session: GraphSession, tree: ast.For) -> None:
    source = source_of(session, tree.iter, changed_names(tree.body))
    if not isinstance(source, Source):
        _known_values(session, tree, source)
    elif source.known and not returns(tree):
        _known_range(session, tree, source)
    else:
        read_loop(session, tree, source)


@GRAPH.tree(ast.While)
def _while(session: GraphSession, tree: ast.While) -> None:
    """A loop that ends when its condition is false.

    Where that is known while reading and an iteration gives a value another type (`while len(x) > 1: x = f(x)` of a
    known size), the loop is unrolled.
    """
    if isinstance(tree.test, ast.Constant) and not tree.test.value:
        for statement in tree.orelse:
            read_statement(session, statement)
        return
    named = any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree.test))
    loop = _asked_inside(tree) if named else tree
    simple = (
        not named and not isinstance(tree.test, ast.Constant) and not (leaves(tree) or continues(tree) or returns(tree))
    )
    if simple and _is_known_condition(session, tree):
        error = tried(session, lambda: read_loop(session, loop, None), keeps=True)
        if error is not None and error.code == "W210":
            error = tried(session, lambda: _unroll_while(session, tree), keeps=True)
        if error is None:
            return
    read_loop(session, loop, None)


def _is_known_condition(session: GraphSession, tree: ast.While) -> bool:
    """Whether reading decides a condition, before the first iteration."""
    with undone(session):
        return session.known(session.value(tree.test), tree.test)


def _unroll_while(session: GraphSession, tree: ast.While) -> None:
    """Read a loop whose condition is known while reading, round by round."""
    outer = session.wanted
    session.wanted = Following([*tree.body, *tree.orelse, at(tree, ast.Expr(tree.test))], outer, -1)
    try:
        for _ in range(UNROLLED):
            test = session.value(tree.test)
            if not session.known(test, tree.test):
                raise session.fail("W115", "a run decides whether there is another round", tree.test)
            if not test:
                break
            for _, statement in in_order(session, tree.body):
                read_statement(session, statement)
        else:
            raise session.fail("W115", f"a loop of more than {UNROLLED} rounds of values of other types", tree)
    finally:
        session.wanted = outer
    for statement in tree.orelse:
        read_statement(session, statement)


def _asked_inside(tree: ast.While) -> ast.While:
    """`while test: A` as `while True: if test: A else: break`: what the test binds are names of an iteration."""
    last = [*tree.orelse, at(tree, ast.Break())]
    return at(tree, ast.While(_TRUE, [at(tree, ast.If(tree.test, tree.body, last))], []))


_RETURN = "a `return` in a loop over what is known while reading"


def unroll(session: GraphSession, tree: ast.For, over: ast.expr) -> None:
    """Read a loop over what is known while reading, round by round."""
    if returns(tree):
        raise session.fail("W115", _RETURN, tree, "loop over a range, or over the rows of a tensor")
    values, outer = session.level.iterable(session, session.value(over), tree.iter), session.wanted
    session.wanted = Following([*tree.body, *tree.orelse], outer, -1)  # a round reads what the last one has bound
    try:
        static_for(session, tree, values)
    finally:
        session.wanted = outer


def _known_values(session: GraphSession, tree: ast.For, over: ast.expr) -> None:
    """Values that are known while reading are gone through one by one, numbers by a loop where a run ends it early."""
    error = None
    if leaves(tree) or continues(tree) or returns(tree):
        error = tried(session, lambda: unroll(session, tree, over))
    table = table_source(session, over) if error is not None and error.message in (NOT_KNOWN, _RETURN) else None
    if table is not None:
        read_loop(session, tree, table)
    else:
        unroll(session, tree, over)


def _known_range(session: GraphSession, tree: ast.For, source: Source) -> None:
    """A range that is written out is unrolled, unless that is much text, or an iteration may end it when it runs."""

    def unrolled() -> None:
        unroll(session, tree, source.tree)

    def looped() -> None:
        read_loop(session, tree, source)

    if len(range(*source.bounds)) > UNROLLED:
        (unrolled if tried(session, looped) else looped)()
        return
    error = tried(session, unrolled) if leaves(tree) or continues(tree) else None
    if error is not None and (error.message == NOT_KNOWN or tried(session, looped) is None):
        looped()
    else:
        unrolled()


# One loop


def read_loop(session: GraphSession, tree: LoopTree, source: Source | None) -> None:
    """Read a loop of the graph; the source is that of a `for`."""
    if session.dataflow_names is not None:
        raise session.fail("W119", "a dataflow block has no control flow", tree, "move the loop outside of it")
    left = bound_when_left(tree)
    if left:
        _bind_first(session, tree, source, sorted(left))
    if tree.orelse:
        first, loop, after = without_else(tree, session.has_value)
        read_statement(session, first)
        read_loop(session, loop, source)  # type: ignore[arg-type]
        read_statement(session, after)
        return
    if _surely_runs(session, tree, source):
        _bind_first(session, tree, source, bound_names([tree]))
    before = changed_arrays(session)
    loop, function, range_, condition = _prepared(session, tree, source)
    if source is not None and isinstance(tree, ast.For):
        refuse_gone_through(session, source.arrays, before, tree.iter)
    loop.emit(function, range_, condition)


def _prepared(
    session: GraphSession, tree: LoopTree, source: Source | None
) -> tuple[LoopReader, Function, tuple[Expr, ...] | None, Function | None]:
    """What one loop carries, its body, its range and its condition."""
    index, statements = _target(session, tree, source) if isinstance(tree, ast.For) and source else (None, tree.body)
    found = straight(at(tree, ast.While(_TRUE, statements, [])), session.has_value)
    lists = _appended(session, found.body)
    if lists and isinstance(tree, ast.For) and source is not None and source.count is None and found.flag is None:
        return _prepared(session, tree, sized(session, source, tree))
    if found.flag is not None:
        session.scope.names[found.flag] = True
    bounds = source.bounds if source is not None else None
    range_ = tuple(as_leaf(session, _as_bound(session, bound, tree), tree) for bound in bounds) if bounds else None
    asked = _asked(tree, found.flag)
    if asked is None and range_ is None:
        raise session.fail("W115", "`while True` without a `break` never ends", tree)
    loop = LoopReader(session, tree, index, found.body, lists)
    function = loop.body(found.body, _symbol_of(session, index, bounds))
    condition = loop.condition(asked)
    session.scope.names.pop(found.flag or "", None)
    return loop, function, range_, condition


def _surely_runs(session: GraphSession, tree: LoopTree, source: Source | None) -> bool:
    """Whether a loop has an iteration whatever the sizes are."""
    if source is None:
        return isinstance(tree, ast.While) and isinstance(tree.test, ast.Constant) and bool(tree.test.value)
    count = source.count
    return count is not None and prove_le(1, count, session.context.facts) is True


def _bind_first(session: GraphSession, tree: LoopTree, source: Source | None, bound: Iterable[str]) -> None:
    """Give a first value to the names that are read after a loop which surely binds them."""
    names = [name for name in dict.fromkeys(bound) if not session.has_value(name)]
    wanted = [name for name in names if live_in(session.wanted, name)]
    iterations = [tree.body, *paths_to_break(tree.body)] if wanted else []
    values: dict[str, str] = {}
    for body in iterations:
        if set(wanted) <= values.keys():
            break
        with undone(session):
            values = _prepared(session, with_body(tree, body), source)[0].first_values | values
    for name in wanted:
        if name in values:
            read_statement(session, assigned(name, ast.parse(values[name], mode="eval").body, tree))


_TRUE = ast.Constant(True)


def _target(session: GraphSession, tree: ast.For, source: Source) -> tuple[ast.Name, list[ast.stmt]]:
    """The name of the index, and the body, which begins by binding what else the target names."""
    if source.item is None:
        if not isinstance(tree.target, ast.Name):
            raise session.fail("W115", "the index of a loop over a range is one name", tree.target)
        return tree.target, tree.body
    taken = set(bound_names([tree]))
    name = fresh_name("index", lambda name: name in taken or session.has_value(name))
    index = name_at(name, ast.Load(), tree.target)
    item, target = source.item(index), tree.target
    pairs = [(target, item)]
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(item, ast.Tuple) and len(target.elts) == len(item.elts):
        pairs = list(zip(target.elts, item.elts, strict=True))
    own = next((part for part, value in pairs if value is index and isinstance(part, ast.Name)), None)
    if isinstance(own, ast.Name):  # `for i, x in enumerate(xs)`: i is the index itself
        index.id, name = own.id, own.id  # type: ignore[attr-defined]
    made = [at(tree, ast.Assign([part], value)) for part, value in pairs if part is not own]
    return at(tree.target, ast.Name(name, ast.Store())), [*made, *tree.body]


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
        if session.scope.names.get(base.id) == []:
            found[base.id] = f"row_of_{base.id}"
            body[position] = assigned(found[base.id], call.args[0], tree)
    return found


def _asked(tree: LoopTree, flag: str | None) -> ast.expr | None:
    """The condition: the flag first, and what the text says where that holds; None for neither."""
    test = tree.test if isinstance(tree, ast.While) else None
    if isinstance(test, ast.Constant) and test.value:
        test = None  # while True
    if flag is None:
        return test
    goes_on = name_at(flag, ast.Load(), tree)
    return goes_on if test is None else at(test, ast.BoolOp(ast.And(), [goes_on, test]))


def _as_bound(session: GraphSession, bound: Any, tree: ast.AST) -> Any:
    return PrimValue(bound, "int64", span=session.span(tree)) if is_dim(bound) else bound


def _symbol_of(session: GraphSession, index: ast.Name | None, bounds: Bounds | None) -> str | None:
    """A new symbol for an index that is proved not to be negative."""
    if index is None or bounds is None:
        return None
    start, stop, step = bounds
    if not isinstance(step, int):
        return None
    least = start if step > 0 else stop + 1 if is_dim(stop) else None
    if not is_dim(least) or prove_le(0, _dim(least)) is not True:
        return None
    name = fresh_name(index.id, lambda name: name in session.symbols)
    session.symbols.add(name)
    return name


def _dim(value: Any) -> Dim:
    return value
