"""Reading what holds for the rest of a block: attributes of a scope, axes of threads.

    scope ::= T.attr(node, key, value) | T.attr({key: value, ...})
            | t = T.env_thread(tag) | T.launch_thread(t | tag, extent)

Each gives a function from the statements that follow to the statement around them.
"""

from __future__ import annotations

import ast
from typing import Any

from weft import dtypes
from weft.ir.attrs import THREAD_EXTENT, VIRTUAL_THREAD
from weft.ir.node import FrozenMap, Node
from weft.ir.tensor import AttrStmt, For, PrimVar, Stmt
from weft.script.forms.defaults import loop_dtype
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import LOOPS, SCOPES
from weft.script.reader.device import THREAD_AXES, is_thread_axis
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.attributes import attribute_value, read_literal
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.tensor.declaration import symbol_declaration
from weft.script.reader.tensor.intrinsic import plain_values
from weft.script.reader.tensor.scalar import as_extent
from weft.script.reader.tensor.session import TensorSession

__all__ = ["attr_operand", "launch_thread", "read_attribute", "thread_axis"]


def thread_axis(session: TensorSession, tag: Any, tree: ast.AST) -> str:
    """The name of an axis of threads; W114 for any other text."""
    if not is_thread_axis(tag):
        raise session.fail("W114", f"there is no axis of threads {tag!r}", tree, f"such as {THREAD_AXES}")
    return tag


@TENSOR.statement("T.attr")
def read_attribute(session: TensorSession, tree: ast.Call) -> Any:
    """`T.attr(node, key, value)` and `T.attr({key: value})`."""
    if len(tree.args) == 1 and not tree.keywords:
        return _attr_pairs(session, tree)
    values = bind_arguments(session, SCOPES["T.attr"], tree)
    axis = values["node"]
    if isinstance(axis, ast.Call) and dotted_name(session, axis.func) == "T.iter_var":
        return _thread_of(session, axis, values["key"], session.value(values["value"]), tree)
    node, value = attr_operand(session, values["node"]), attr_operand(session, values["value"])
    if type(node) is int and node == 0:  # how older texts say that it is of no node in particular
        node = None
    return lambda body: AttrStmt(node, values["key"], value, body, span=session.span(tree))


def _thread_of(session: TensorSession, axis: ast.Call, key: str, extent: Any, tree: ast.Call) -> Any:
    """`T.attr(T.iter_var(v, (0, n), "ThreadIndex", tag), "thread_extent", n)`: a thread axis around the rest.

    Any other attribute is of what the tag names, of no node in particular where there is none.
    """
    named = {word.arg: word.value for word in axis.keywords}
    places = [*axis.args, *(named[name] for name in ("iter_type", "thread_tag") if name in named)]
    var, tag = (_axis_variable(session, places[0]), session.value(places[3])) if len(places) == 4 else (None, None)
    bound = key in (THREAD_EXTENT, VIRTUAL_THREAD)
    if not isinstance(var, PrimVar) or not isinstance(tag, str) or (bound and not tag):
        raise session.fail("W113", "T.iter_var takes a variable, its range, its kind and its thread", axis)
    if not bound:
        value = extent if isinstance(extent, Node) else attribute_value(session, extent, tree)
        return lambda body: AttrStmt(tag or None, key, value, body, span=session.span(tree))
    thread_axis(session, tag, tree)
    size = as_extent(session, extent, tree)
    session.loops[var] = (0, size)
    return lambda body: For(var, 0, size, body, "thread_binding", tag, span=session.span(tree))


def _axis_variable(session: TensorSession, tree: ast.expr) -> Any:
    """The variable of an iteration axis; a declaration in its place is one that nothing names."""
    dtype = symbol_declaration(session, tree)
    return PrimVar("v", dtype, span=session.span(tree)) if dtype is not None else session.value(tree)


def _attr_pairs(session: TensorSession, tree: ast.Call) -> Any:
    """`T.attr({"key": value, ...})`: attributes of no node in particular, the first outermost."""
    pairs = read_literal(session, tree.args[0])
    if not isinstance(pairs, FrozenMap):
        raise session.fail("W114", "T.attr takes a node, a key and a value, or a dictionary", tree)

    def wrap(body: Stmt) -> Stmt:
        for key, value in reversed(list(pairs.items())):
            body = AttrStmt(None, key, value, body, span=session.span(tree))
        return body

    return wrap


def attr_operand(session: TensorSession, tree: ast.expr) -> Any:
    """The node or value of an attribute statement."""
    value = session.value(tree)
    return value if isinstance(value, Node) else attribute_value(session, value, tree)


@TENSOR.assigned("T.env_thread")
def _env_thread(session: TensorSession, target: ast.Name, tree: ast.Call) -> None:
    values = plain_values(session, tree, ("dtype",))
    stated = [session.constant(keyword.value) for keyword in tree.keywords if keyword.arg == "dtype"] or values[1:]
    if not 1 <= len(values) <= 2 or not isinstance(values[0], str):
        raise session.fail("W113", "T.env_thread takes the name of a thread axis", tree)
    tag = thread_axis(session, values[0], tree)
    dtype = session.fold(lambda: dtypes.check_dtype(stated[0]), tree) if stated else "int32"
    var = PrimVar(target.id, dtype, span=session.span(target))
    session.threads[target.id] = tag
    session.scope.names[target.id] = var


@TENSOR.assigned("T.launch_thread")
def _launch_named(session: TensorSession, target: ast.Name, tree: ast.Call) -> Any:
    values = bind_arguments(session, LOOPS["T.launch_thread"], tree)
    return launch_thread(session, target.id, values, tree, target)


@TENSOR.statement("T.launch_thread")
def _launch_statement(session: TensorSession, tree: ast.Call) -> Any:
    values = bind_arguments(session, LOOPS["T.launch_thread"], tree)
    return launch_thread(session, None, values, tree, tree)


def launch_thread(
    session: TensorSession, name: str | None, values: dict[str, Any], tree: ast.Call, place: ast.AST
) -> Any:
    """A thread axis as a loop around the rest of the block."""
    thread = values["thread"]
    for argument in tree.args[1:2]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            raise session.fail("W114", f"an extent is an integer, got {argument.value!r}", argument)
    if isinstance(thread, ast.Name) and thread.id in session.threads:
        tag, var = session.threads[thread.id], session.scope.get(thread.id)
        if var in session.loops:  # launched before: the axis of another loop, under the same name
            var = PrimVar(thread.id, var.dtype, span=session.span(place))
            session.scope.names[thread.id] = var
    elif isinstance(thread, ast.Name) and isinstance(session.scope.get(thread.id), PrimVar):
        # declared as a symbol before; printers of passes name it after its axis
        var, tag = session.scope.get(thread.id), thread.id.replace("_", ".", 1)
    else:
        tag = thread_axis(session, session.constant(thread), thread)
        var = PrimVar(name or str(tag).replace(".", "_"), loop_dtype(0, values["extent"]), span=session.span(place))
        if name:
            session.scope.names[name] = var
    session.loops[var] = (0, values["extent"])
    return lambda body: For(
        var,
        0,
        values["extent"],
        body,
        "thread_binding",
        str(tag),
        span=session.span(tree),
        launched=True,
    )
