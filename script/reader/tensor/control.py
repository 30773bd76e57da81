"""Reading loops, conditions, assertions and jumps of tensor-level functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import WeftError
from weft.ir.kernel.prim import const
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.tensor import (
    AssertStmt,
    Break,
    Continue,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimExpr,
    PrimVar,
    Return,
    Stmt,
    While,
)
from weft.script.forms.defaults import loop_dtype
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import LOOPS
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.names import dotted_name, is_a_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.expression.unrolling import static_for
from weft.script.reader.scope import Scope, describe
from weft.script.reader.tensor.block import extent_between
from weft.script.reader.tensor.scalar import as_bool, as_prim, extent_of, read_scalar
from weft.script.reader.tensor.session import TensorSession
from weft.script.reader.tensor.statements import _as_one, read_body, read_nested
from weft.script.reader.tensor.thread import thread_axis
from weft.script.source.diagnostics import did_you_mean

__all__ = ["read_assert"]

_LOOP_TEXTS = ("thread", "dtype")
_LOOP_KINDS = {
    "T.serial": "serial",
    "range": "serial",
    "T.parallel": "parallel",
    "T.vectorized": "vectorized",
    "T.unroll": "unrolled",
    "T.thread_binding": "thread_binding",
}


def _static_loop(session: TensorSession, tree: ast.For) -> list[Stmt]:
    """A loop over what is known while reading: its rounds one after another."""
    depth, session.loop_depth = session.loop_depth, 0  # a `break` below is none of a loop around this one
    try:
        return static_for(session, tree, session.level.iterable(session, session.value(tree.iter), tree.iter))
    finally:
        session.loop_depth = depth


@TENSOR.tree(ast.For)
def _for(session: TensorSession, tree: ast.For) -> Any:
    call = tree.iter
    name = None
    if isinstance(call, ast.Call):
        name = dotted_name(session, call.func)
        if name is None and isinstance(call.func, ast.Name) and call.func.id == "range":
            name = "range"
    if name is None:
        return _static_loop(session, tree)
    if name not in LOOPS or not isinstance(call, ast.Call):
        raise _no_loop(session, name, tree.iter)
    if tree.orelse:
        raise session.fail("W115", "`else` of a loop is not part of the script", tree)
    if name == "T.grid":
        return _grid(session, tree, call)
    if not isinstance(tree.target, ast.Name):
        raise session.fail("W113", f"{name} gives one variable", tree.target)
    return _loop(session, tree, call, name)


def _no_loop(session: TensorSession, name: str, tree: ast.expr) -> WeftError:
    """The error for a call that makes no loop: of a name that is not there, or of one that is something else."""
    hint = did_you_mean(name, LOOPS) or session.level.loop_hint
    if name.startswith("T.") and not is_a_name(session, name):
        return session.fail("W111", f"`{name}` does not exist", tree, hint)
    return session.fail("W115", f"`{name}` cannot be looped over", tree, hint)


def _loop(session: TensorSession, tree: ast.For, call: ast.Call, name: str) -> Stmt:
    assert isinstance(tree.target, ast.Name)
    if name == "T.thread_binding":
        call = _with_named_thread(call)
    values = bind_arguments(session, LOOPS[name], call)
    start, stop, step = values["start"], values["stop"], values.get("step")
    extent = values.get("extent")
    if extent is None:
        if stop is None:
            start, stop = 0, start
        extent = extent_between(session, start, stop, call)
    for argument in (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg not in _LOOP_TEXTS)):
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            raise session.fail("W114", f"a loop bound is an integer, got {argument.value!r}", argument)
    if name == "T.thread_binding" and not values["thread"]:
        raise session.fail("W113", "T.thread_binding lacks its argument 'thread'", call, 'thread="threadIdx.x"')
    if name == "T.thread_binding":
        thread_axis(session, values["thread"], call)
    if isinstance(step, IntImm):
        step = step.value
    if isinstance(step, int) and step == 0:
        raise session.fail("W124", "the step of a loop is not 0", call)
    if not isinstance(values.get("annotations") or EMPTY, FrozenMap):
        raise session.fail("W114", "the annotations of a loop are a dictionary", call)
    dtype = values.get("dtype") or loop_dtype(start, extent)
    if isinstance(step, int) and step < 0:
        return _downward(session, tree, name, values, step)
    var = PrimVar(tree.target.id, dtype, span=session.span(tree.target))
    body = _loop_body(session, [(tree.target.id, var, start, extent)], tree.body)
    kind, thread, annotations = _LOOP_KINDS[name], values.get("thread"), values.get("annotations") or EMPTY
    return For(var, start, extent, body, kind, thread, step, annotations, span=session.span(tree))


def _downward(session: TensorSession, tree: ast.For, name: str, values: Mapping[str, Any], step: int) -> Stmt:
    """`for i in range(8, 0, -2)`: a loop that counts the rounds, whose index is an expression of the count."""
    assert isinstance(tree.target, ast.Name)
    start, stop = (0, values["start"]) if values["stop"] is None else (values["start"], values["stop"])

    def apply(kind: str, left: Any, right: Any) -> Any:
        return apply_binary(session, kind, left, right, tree)

    length = start if isinstance(stop, int) and stop == 0 else apply("sub", start, stop)
    rounds = extent_of(length if step == -1 else apply("floordiv", apply("sub", length, step + 1), -step))
    rounds = max(rounds, 0) if isinstance(rounds, int) else rounds
    count = PrimVar(tree.target.id, values.get("dtype") or loop_dtype(start, rounds), span=session.span(tree.target))
    index = apply("sub", start, count if step == -1 else apply("mul", count, -step))
    body = _loop_body(session, [("", count, 0, rounds)], tree.body, {tree.target.id: index})
    kind, thread, annotations = _LOOP_KINDS[name], values.get("thread"), values.get("annotations") or EMPTY
    return For(count, 0, rounds, body, kind, thread, None, annotations, span=session.span(tree))


def _grid(session: TensorSession, tree: ast.For, call: ast.Call) -> Stmt:
    extents = bind_arguments(session, LOOPS["T.grid"], call)["extents"]
    targets = tree.target.elts if isinstance(tree.target, (ast.Tuple, ast.List)) else [tree.target]
    groups = _grid_groups(session, targets, len(extents), tree)
    names: list[tuple[str, PrimVar, Extent, Extent]] = []
    tuples: dict[str, tuple[PrimVar, ...]] = {}
    for target, count in groups:
        name = target.value if isinstance(target, ast.Starred) else target
        if not isinstance(name, ast.Name):
            raise session.fail("W115", "a loop variable is a name", target)
        made: list[PrimVar] = []
        for position in range(count if count >= 0 else 1):
            extent = extents[len(names)]
            written = f"{name.id}{position}" if count >= 0 else name.id
            if count < 0 and any(known == written for known, *_ in names):
                raise session.fail("W118", f"two loop variables are named '{written}'", name)
            made.append(PrimVar(written, loop_dtype(0, extent), span=session.span(name)))
            names.append(("" if count >= 0 else written, made[-1], 0, extent))
        if count >= 0:
            tuples[name.id] = tuple(made)
    body = _loop_body(session, names, tree.body, tuples)
    for _, var, start, extent in reversed(names):
        body = For(var, start, extent, body, span=session.span(tree))
    return body


def _grid_groups(
    session: TensorSession, targets: Sequence[ast.expr], count: int, tree: ast.For
) -> list[tuple[ast.expr, int]]:
    """Targets with how many loops each stands for; -1 for one loop as itself, not as a tuple."""
    if len(targets) == 1 and count != 1 and isinstance(tree.target, ast.Name):
        return [(targets[0], count)]  # `for i in T.grid(*shape)`: i is the tuple of all
    stars = [target for target in targets if isinstance(target, ast.Starred)]
    least = len(targets) - len(stars)
    if len(stars) > 1 or count < least or (not stars and count != least) or not count:
        raise session.fail("W113", f"T.grid has {count} extents for {len(targets)} variables", tree.target)
    return [(target, count - least if isinstance(target, ast.Starred) else -1) for target in targets]


def _loop_body(
    session: TensorSession,
    names: list[tuple[str, PrimVar, Extent, Extent]],
    trees: Sequence[ast.stmt],
    values: Mapping[str, Any] | None = None,
) -> Stmt:
    saved, session.scope = session.scope, Scope(session.scope)
    block, session.block = session.block, None
    loops, session.loops_here = session.loops_here, (*session.loops_here, *(var for _, var, *_ in names))
    session.scope.names.update(values or {})
    for name, var, start, extent in names:
        session.loops[var] = (start, extent)
        if not name:
            continue  # one of a tuple, or a count of rounds
        session.scope.names[name] = var
    session.loop_depth += 1
    try:
        return read_body(session, trees)
    finally:
        session.loop_depth -= 1
        session.scope, session.block, session.loops_here = saved, block, loops


@TENSOR.tree(ast.While)
def _while(session: TensorSession, tree: ast.While) -> Stmt:
    if tree.orelse:
        raise session.fail("W115", "`else` of a loop is not part of the script", tree)
    condition = as_bool(session, read_scalar(session, tree.test), tree.test, truthy=True)
    return While(condition, _loop_body(session, [], tree.body), span=session.span(tree))


@TENSOR.tree(ast.If)
def _if(session: TensorSession, tree: ast.If) -> Any:
    chain: list[ast.If] = []
    current: ast.If | None = tree
    while current is not None:  # an elif chain is deep on the right; no recursion there
        chain.append(current)
        rest = current.orelse
        current = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
    last = chain[-1]
    parts: list[tuple[Any, list[Stmt]]] = []
    for item in chain:
        test = session.value(item.test)
        if session.known(test, item.test):
            if test:
                return _conditional_of(session, parts, read_nested(session, item.body))
            continue
        condition = as_bool(session, as_prim(session, test, item.test), item.test, truthy=True)
        parts.append((condition, read_nested(session, item.body)))
    return _conditional_of(session, parts, read_nested(session, last.orelse) if last.orelse else None)


def _conditional_of(session: TensorSession, parts: list[tuple[Any, list[Stmt]]], last: list[Stmt] | None) -> Any:
    if not parts:
        return last or None
    result: Stmt | None = None if last is None else _as_one(last)
    for test, stmts in reversed(parts):
        result = IfThenElse(test, _as_one(stmts), result, span=test.span)
    return result


@TENSOR.tree(ast.Assert)
def read_assert(session: TensorSession, tree: ast.Assert) -> Stmt | None:
    """`assert condition, message`."""
    test = session.value(tree.test)
    message = session.value(tree.msg) if tree.msg is not None else ""
    kind, parts = "AssertionError", ()
    if isinstance(message, (tuple, list)):
        if len(message) != 2 or not isinstance(message[0], str):
            raise session.fail("W114", "expected a message or (kind, message)", tree)
        kind, message = message
        parts = tuple(map(str, message)) if isinstance(message, (list, tuple)) else (message,)
        message = "".join(parts) if all(isinstance(part, str) for part in parts) else message
    if not isinstance(message, str):
        raise session.fail("W114", f"the message of an assertion is a string, got {describe(message)}", tree)
    condition = as_bool(session, as_prim(session, test, tree.test), tree.test)
    if not isinstance(condition, PrimExpr):
        condition = const(bool(condition), "bool")
    return AssertStmt(condition, message, kind, parts, span=session.span(tree))


@TENSOR.tree(ast.Return)
def _return(session: TensorSession, tree: ast.Return) -> Stmt:
    if tree.value is None or (isinstance(tree.value, ast.Constant) and tree.value.value is None):
        return Return(span=session.span(tree))
    return Return(read_scalar(session, tree.value), span=session.span(tree))


@TENSOR.tree(ast.Break)
def _break(session: TensorSession, tree: ast.Break) -> Stmt:
    if not session.loop_depth:
        raise session.fail("W115", "`break` outside a loop", tree)
    return Break(span=session.span(tree))


@TENSOR.tree(ast.Continue)
def _continue(session: TensorSession, tree: ast.Continue) -> Stmt:
    if not session.loop_depth:
        raise session.fail("W115", "`continue` outside a loop", tree)
    return Continue(span=session.span(tree))


def _with_named_thread(call: ast.Call) -> ast.Call:
    """`T.thread_binding(8, "threadIdx.x")` with the axis by keyword, where its place holds it otherwise."""
    last = call.args[-1] if call.args else None
    if not (isinstance(last, ast.Constant) and isinstance(last.value, str)):
        return call
    keyword = ast.copy_location(ast.keyword("thread", last), last)
    return ast.copy_location(ast.Call(call.func, call.args[:-1], [keyword, *call.keywords]), call)
