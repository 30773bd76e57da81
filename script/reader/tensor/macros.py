"""Expanding macros of tensor-level functions: as values, and as statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.structure.visit import walk
from weft.ir.tensor import AllocBuffer, AssertStmt, Block, BufferStore, Evaluate, PrimCall, PrimExpr, Return, Stmt
from weft.script.forms.reading import TENSOR
from weft.script.reader.definition import macro_of
from weft.script.reader.expression.expansion import expand_macro
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.static import static_path
from weft.script.reader.expression.unrolling import static_condition
from weft.script.reader.macros import Macro
from weft.script.reader.tensor.declaration import symbol_declaration
from weft.script.reader.tensor.session import TensorSession
from weft.script.reader.tensor.statements import read_statements
from weft.script.source.text import MISSING

__all__ = ["expand_statement", "expand_tensor_macro", "note_assignments", "realized_names"]


def expand_tensor_macro(session: TensorSession, macro: Macro, tree: ast.Call) -> Any:
    """The value of a macro; what it computes before it stands before the statement around the call."""
    if isinstance(macro.body, ast.expr):
        return session.value(macro.body)
    stmts, value = _macro_statements(session, macro)
    if value is MISSING:
        raise session.fail("W120", f"the macro '{macro.name}' gives no value", macro.body[-1], "end it with `return`")
    if stmts:
        if session.pending is None:
            raise session.fail(
                "W115",
                f"the macro '{macro.name}' has statements, which cannot stand here",
                macro.body[0],
                "assign its value to a name first",
            )
        if not _only_writes_its_own(stmts):
            raise session.fail(
                "W115",
                f"the macro '{macro.name}' writes memory: it cannot stand inside an expression",
                macro.body[0],
                "call it as a statement of its own",
            )
        session.pending.extend(stmts)
    return value


def expand_statement(session: TensorSession, tree: ast.Call) -> list[Stmt] | None:
    """The statements of a macro that is called as one, or None for another call."""
    macro = static_path(session, tree.func)
    if not isinstance(macro, Macro) or isinstance(macro.body, ast.expr):
        return None
    return expand_macro(session, macro, tree, _statement_of_macro)


def _statement_of_macro(session: TensorSession, macro: Macro, tree: ast.Call) -> list[Stmt]:
    stmts, value = _macro_statements(session, macro)
    if isinstance(value, PrimExpr) and not isinstance(macro.body, ast.expr):
        raise session.fail("W115", f"the value of the macro '{macro.name}' is not used", macro.body[-1])
    return stmts


def _macro_statements(session: TensorSession, macro: Macro) -> tuple[list[Stmt], Any]:
    """(statements, value or MISSING) of a macro whose parameters are bound."""
    saved = session.assigned, session.foreign
    session.assigned = {} if macro.hygienic else dict(session.assigned)
    session.foreign = macro.hygienic and macro.scope is None
    assert not isinstance(macro.body, ast.expr)
    note_assignments(session, macro.body)
    stmts: list[Stmt] = []
    try:
        value = _until_return(session, list(macro.body), stmts)
        return stmts, value
    finally:
        session.assigned, session.foreign = saved


def _until_return(session: TensorSession, trees: list[ast.stmt], stmts: list[Stmt]) -> Any:
    for position, tree in enumerate(trees):
        if isinstance(tree, ast.Return):
            stmts.extend(read_statements(session, trees[:position]))
            return MISSING if tree.value is None else session.value(tree.value)
        if isinstance(tree, ast.If) and _holds_return(tree):
            stmts.extend(read_statements(session, trees[:position]))
            chosen = tree.body if static_condition(session, tree.test) else tree.orelse
            return _until_return(session, [*chosen, *trees[position + 1 :]], stmts)
    stmts.extend(read_statements(session, trees))
    return MISSING


@TENSOR.tree(ast.FunctionDef)
def _nested_macro(session: TensorSession, tree: ast.FunctionDef) -> None:
    macro = macro_of(session, tree)
    if macro is None:
        raise session.fail(
            "W115", "a function inside a tensor-level function", tree, "decorate it with @T.inline or @T.macro"
        )
    session.scope.names[tree.name] = macro


def note_assignments(session: TensorSession, body: Sequence[ast.stmt]) -> None:
    """How often each name is assigned, the dtypes that `n = T.int32()` gives to symbols, the offsets in use."""
    session.realized |= realized_names(session, body)
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                _prescan_assignment(session, node)
            elif isinstance(node, ast.Attribute) and node.attr == "elem_offset":
                if isinstance(node.value, ast.Name):
                    session.offsets_read.add(node.value.id)


def _prescan_assignment(session: TensorSession, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(item, ast.Name):
                session.assigned[item.id] = session.assigned.get(item.id, 0) + 1
    if isinstance(node, ast.Assign) and len(targets) == 1:
        names, values = [targets[0]], [node.value]
        if isinstance(targets[0], (ast.Tuple, ast.List)) and isinstance(node.value, (ast.Tuple, ast.List)):
            names, values = targets[0].elts, node.value.elts
        for item, value in zip(names, values, strict=False):
            dtype = symbol_declaration(session, value) if isinstance(item, ast.Name) else None
            if dtype is not None and isinstance(item, ast.Name):
                session.symbol_dtypes[item.id] = dtype


def realized_names(session: TensorSession, body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names in `T.realize(NAME[...], scope)` anywhere in a function."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and dotted_name(session, node.func) == "T.realize" and node.args:
                region = node.args[0]
                if isinstance(region, ast.Subscript) and isinstance(region.value, ast.Name):
                    found.add(region.value.id)
    return frozenset(found)


def _holds_return(tree: ast.If) -> bool:
    return any(
        isinstance(item, ast.Return) or (isinstance(item, ast.If) and _holds_return(item))
        for item in (*tree.body, *tree.orelse)
    )


def _only_writes_its_own(stmts: list[Stmt]) -> bool:
    """Whether statements change nothing but memory that they allocate, so that they may run a little earlier."""
    own: set[Any] = set()
    for stmt in stmts:
        for node in walk(stmt):
            if isinstance(node, AllocBuffer):
                own.add(node.buffer)
            elif isinstance(node, Block):
                own.update(node.alloc_buffers)
            elif isinstance(node, BufferStore) and node.buffer not in own:
                return False
            elif isinstance(node, (Evaluate, AssertStmt, Return, PrimCall)) and not _is_pure_call(node):
                return False
    return True


def _is_pure_call(node: Any) -> bool:
    if not isinstance(node, PrimCall) or not isinstance(node.op, str):
        return False
    entry = INTRINSICS.get(node.op)
    return entry is not None and entry.pure
