"""Reading `with` statements of tensor-level functions: blocks, scopes of names, attributes, allocations."""

from __future__ import annotations

import ast
from typing import Any

from weft.ir.tensor import Block, For, PrimVar, SeqStmt, Stmt
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import LOOPS, SCOPES
from weft.script.forms.unsupported import why_unsupported
from weft.script.reader.expression.arguments import KnownValue, bind_arguments
from weft.script.reader.expression.names import dotted_name, is_a_name
from weft.script.reader.scope import Scope
from weft.script.reader.tensor.binding import assign_name, bind_to_name
from weft.script.reader.tensor.block import block_header
from weft.script.reader.tensor.control import read_assert
from weft.script.reader.tensor.declaration import declared_type
from weft.script.reader.tensor.session import BlockHeader, TensorSession
from weft.script.reader.tensor.statements import nested_one, read_body, read_nested, read_statements
from weft.script.reader.tensor.thread import launch_thread, read_attribute
from weft.script.reader.tvm.tvm_legacy import legacy_axes, legacy_bindings, legacy_let, legacy_variables
from weft.script.source.diagnostics import did_you_mean, fail

__all__ = []


@TENSOR.tree(ast.With)
def _with(session: TensorSession, tree: ast.With) -> Any:
    if len(tree.items) != 1:
        outer = ast.copy_location(
            ast.With(tree.items[:1], [ast.copy_location(ast.With(tree.items[1:], tree.body), tree)]), tree
        )
        return _with(session, outer)
    item = tree.items[0]
    call = item.context_expr
    name = dotted_name(session, call.func) if isinstance(call, ast.Call) else None
    read = TENSOR.scope.get(name or "")
    if read is None or not isinstance(call, ast.Call):
        if name is not None and why_unsupported(name) is not None:
            raise session.level.unknown(session, name, call)
        hint = did_you_mean(name or "", TENSOR.scope)
        if name is not None and name.startswith("T.") and not is_a_name(session, name):
            raise session.fail("W111", f"`{name}` does not exist", call, hint)
        raise session.fail("W115", f"`with {ast.unparse(call)[:40]}` is not part of the script", call, hint)
    return read(session, tree, call, item.optional_vars)


@TENSOR.scope("T.block")
def _with_block(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    axes, call = legacy_axes(session, call, target)
    values = bind_arguments(session, SCOPES["T.block"], call)
    header = BlockHeader(values["name"])
    saved_scope, session.scope = session.scope, Scope(session.scope)
    saved_block, session.block = session.block, header
    loops, session.loops_here = session.loops_here, ()
    legacy_variables(session, header, axes, target, call)
    try:
        body = read_body(session, tree.body)
    finally:
        session.scope, session.block, session.loops_here = saved_scope, saved_block, loops
    own = legacy_bindings(session, header, call) if axes else []
    _check_bound(session, header, values["no_realize"], call)
    made: Stmt = Block(
        header.name,
        body,
        tuple(header.iter_vars),
        header.predicate,
        header.reads,
        header.writes,
        header.init,
        tuple(header.alloc_buffers),
        tuple(header.match_buffers),
        header.annotations,
        span=session.span(call),
        bare=values["no_realize"] and not header.iter_vars,
    )
    for item in reversed(own):
        assert isinstance(item.value, PrimVar)
        made = For(item.value, item.start, item.extent, made, span=session.span(tree))
    return made


def _check_bound(session: TensorSession, header: BlockHeader, bare: bool, call: ast.Call) -> None:
    """W113 for a variable that is bound to nothing, or that is bound where nothing is."""
    for item in header.iter_vars:
        place = item.span or session.span(call)
        if item.value is None and not bare:
            message = f"the block variable '{item.var.name}' is bound to nothing"
            raise fail("W113", message, place, "or say no_realize=True")
        if item.value is not None and bare:
            message = f"the block variable '{item.var.name}' is bound to a value, and the block to nothing"
            raise fail("W113", message, place, "leave out no_realize=True")
    if bare and header.predicate is not None:
        raise fail("W113", "a block that is bound to nothing has no predicate", session.span(call))


@TENSOR.scope("T.init")
def _with_init(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> None:
    header = block_header(session, call, "T.init")
    bind_arguments(session, SCOPES["T.init"], call)
    if header.init is not None:
        raise session.fail("W118", "a block has one T.init", call)
    saved, session.scope = session.scope, Scope(session.scope)
    block, session.block = session.block, None
    try:
        header.init = read_body(session, tree.body)
    finally:
        session.scope, session.block = saved, block


@TENSOR.scope("T.seq")
def _with_seq(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    bind_arguments(session, SCOPES["T.seq"], call)
    saved, session.scope = session.scope, Scope(session.scope)
    block, session.block = session.block, None
    try:
        return SeqStmt(tuple(read_statements(session, tree.body)), span=session.span(call))
    finally:
        session.scope, session.block = saved, block


@TENSOR.scope("T.attr")
def _with_attr(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    return read_attribute(session, call)(nested_one(session, tree.body))


@TENSOR.scope("T.LetStmt")
def _with_let(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
    legacy = legacy_let(session, call, target)
    if legacy is not None:
        target, value = legacy
        call = ast.copy_location(ast.Call(call.func, [KnownValue(value, call)], []), call)
    values = bind_arguments(session, SCOPES["T.LetStmt"], call)
    if isinstance(values["var"], ast.Name):
        target = values["var"]
    if not isinstance(target, ast.Name):
        raise session.fail("W113", "T.LetStmt needs a name", call, "with T.LetStmt(value) as v:")
    saved, session.scope = session.scope, Scope(session.scope)
    try:
        declared, _ = declared_type(session, values["type_annotation"])
        if declared is not None and declared.dtype != values["value"].dtype:
            stated = f"'{target.id}' is declared {declared.dtype}, the value is {values['value'].dtype}"
            raise session.fail("W123", stated, values["type_annotation"])
        return [bind_to_name(session, target, values["value"], declared, call), *read_statements(session, tree.body)]
    finally:
        session.scope = saved


@TENSOR.scope("T.allocate", "T.allocate_const", "T.decl_buffer", "T.alloc_buffer")
def _with_allocation(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
    """`with T.allocate(...) as A:`, `with T.decl_buffer(...) as A:`: the name lives as long as the block."""
    if not isinstance(target, ast.Name):
        raise session.fail("W113", "the allocation needs a name", call, "with T.allocate(...) as A:")
    saved, session.scope = session.scope, Scope(session.scope)
    try:
        made = assign_name(session, target, call, None, tree)
        first = made if isinstance(made, list) else [made]
        return [*(item for item in first if item is not None), *read_statements(session, tree.body)]
    finally:
        session.scope = saved


@TENSOR.scope("T.Assert")
def _with_assert(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
    """`with T.Assert(condition, message):`: the assertion, then the statements."""
    if len(call.args) != 2 or call.keywords:
        raise session.fail("W113", "T.Assert takes a condition and a message", call)
    first = read_assert(session, ast.copy_location(ast.Assert(call.args[0], call.args[1]), call))
    return [*([first] if first is not None else []), *read_nested(session, tree.body)]


@TENSOR.scope("T.launch_thread")
def _with_launch(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    values = bind_arguments(session, LOOPS["T.launch_thread"], call)
    saved, session.scope = session.scope, Scope(session.scope)
    try:
        name = target.id if isinstance(target, ast.Name) else None
        wrap = launch_thread(session, name, values, call, target or call)
        return wrap(nested_one(session, tree.body))
    finally:
        session.scope = saved
