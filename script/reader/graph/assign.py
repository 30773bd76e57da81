"""Reading assignments in graph functions: bindings, claims, unpacking, `R.match_cast`, declared symbols.

    x = value    x: type = value    x += value    a, (b, *c) = value    n = T.int64()    y = R.match_cast(x, type)

An annotation is a claim that is checked; a name known while reading (a size, a number, a tuple of them) binds no
variable.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from weft.ir.deduction.infer import type_text
from weft.ir.deduction.subtyping import is_base_of, type_symbols
from weft.ir.dim import DimExpr, determined, free_symbols
from weft.ir.graph import Expr, ExternFunc, GlobalVar, MatchCast, Var
from weft.ir.tensor import PrimFunc
from weft.ir.types import PrimType, Type
from weft.script.forms.reading import COMMON, GRAPH
from weft.script.forms.syntax import VALUES
from weft.script.reader.expression.arguments import KnownValue, bind_arguments
from weft.script.reader.expression.names import dotted_name, dtype_name, names_module
from weft.script.reader.expression.types import read_type
from weft.script.reader.expression.unrolling import unpack_targets
from weft.script.reader.graph.bindings import (
    as_expr,
    as_leaf,
    bind_value,
    dims_within,
    emit_binding,
    fresh_target,
    make_var,
    scalar_tensor,
    type_of,
)
from weft.script.reader.graph.expressions.dictionaries import form_of
from weft.script.reader.graph.expressions.elements import parts_of
from weft.script.reader.graph.expressions.forms import scalar_value
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import is_changed_in_place, note_branches, note_same_memory, refuse_updated
from weft.script.reader.scope import Hidden, is_dim
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean

__all__ = ["is_static", "read_claim"]

_ELEMENTS = (
    "R.where and R.scatter_elements make a tensor with other elements, and a T.prim_func writes them; in a loop"
    " `rows.append(y)` on `rows = []` collects a row of each iteration, and `R.stack(rows)` is the tensor"
)


@GRAPH.tree(ast.Assign)
def _assign(session: GraphSession, tree: ast.Assign) -> None:
    if len(tree.targets) != 1:
        value = session.value(tree.value)
        if isinstance(value, Expr):
            value = as_leaf(session, value, tree.value)  # it happens once, whatever names it gets
        for target in tree.targets:
            _assign_to(session, target, KnownValue(value, tree.value), None, tree)
        return
    _assign_to(session, tree.targets[0], tree.value, None, tree)


@GRAPH.tree(ast.AnnAssign)
def _annotated(session: GraphSession, tree: ast.AnnAssign) -> None:
    if tree.value is None:
        written = f"{ast.unparse(tree.target)[:30]}: {ast.unparse(tree.annotation)[:30]}"
        raise session.fail("W115", f"`{written}` declares a name without a value", tree, "write `name: type = value`")
    _assign_to(session, tree.target, tree.value, tree.annotation, tree)


@GRAPH.tree(ast.AugAssign)
def _augmented(session: GraphSession, tree: ast.AugAssign) -> None:
    if not isinstance(tree.target, ast.Name):
        raise session.fail("W115", "tensors are values: elements cannot be assigned", tree.target, _ELEMENTS)
    load = ast.copy_location(ast.Name(tree.target.id, ast.Load()), tree.target)
    value = ast.copy_location(ast.BinOp(load, tree.op, tree.value), tree)
    base = session.value(load) if session.memory is not None else None
    if not is_changed_in_place(base):
        _assign_to(session, tree.target, value, None, tree)
        return
    refuse_updated(session, base, tree, value)
    _assign_to(session, tree.target, value, None, tree)
    made = session.scope.get(tree.target.id)
    if isinstance(made, Var):
        note_same_memory(session, made, base)


@COMMON.tree(ast.NamedExpr)
def _named(session: Session, tree: ast.NamedExpr) -> Any:
    """`(name := value)`: the value, which has a name from then on."""
    if not isinstance(session, GraphSession):
        raise session.unsupported(tree)
    _assign_to(session, tree.target, tree.value, None, tree)
    return session.value(ast.copy_location(ast.Name(tree.target.id, ast.Load()), tree))


@GRAPH.tree(ast.Delete)
def _delete(session: GraphSession, tree: ast.Delete) -> None:
    """`del name`: it has no value from then on."""
    for target in tree.targets:
        if not isinstance(target, ast.Name):
            raise session.unsupported(tree, "a name can be deleted, and a part of a value cannot")
        session.value(target)
        session.scope.names[target.id] = Hidden("it was deleted")


def _assign_to(
    session: GraphSession, target: ast.expr, tree: ast.expr, annotation: ast.expr | None, statement: ast.AST
) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        _unpack(session, target, tree, statement)
        return
    if not isinstance(target, ast.Name):
        hint = _ELEMENTS if isinstance(target, ast.Subscript) else None
        raise session.fail("W115", "only names can be bound: tensors are values", target, hint)
    if isinstance(tree, ast.Call) and _special(session, target, tree, annotation, statement):
        return
    if annotation is None and names_module(session, tree):
        session.scope.names[target.id] = session.module
        return
    value = session.value(tree)
    session.known(value, tree)  # pays for going through it
    if target.id in session.carried and _is_scalar(value):
        value = scalar_tensor(session, value, tree)
    if annotation is None and (is_static(value) or form_of(value) is not None):
        session.scope.names[target.id] = value
        return
    declared = read_claim(session, annotation, value, tree) if annotation is not None else None
    if isinstance(declared, PrimType) and (session.known(value, tree) or is_dim(value)):
        value = scalar_value(session, value, declared.dtype, tree)
    session.scope.names[target.id] = bind_value(session, target, as_expr(session, value, tree), declared, statement)


def _is_scalar(value: Any) -> bool:
    """Whether a value is a number or a size, or an expression that may be one."""
    return isinstance(value, (bool, int, float, DimExpr, Expr)) and not isinstance(value, (ExternFunc, GlobalVar))


def _declares(session: GraphSession, tree: ast.expr) -> bool:
    """Whether an expression declares a symbol: `T.int64()`."""
    if not isinstance(tree, ast.Call) or any(word.arg != "is_size_var" for word in tree.keywords):
        return False
    name = dotted_name(session, tree.func)
    return name in ("T.var", "T.dyn") or (name is not None and not tree.args and bool(dtype_name(name)))


def _special(
    session: GraphSession, target: ast.Name, tree: ast.Call, annotation: ast.expr | None, statement: ast.AST
) -> bool:
    """Assignments that are more than a value: match_cast and declarations of symbols."""
    name = dotted_name(session, tree.func)
    if name == "R.match_cast":
        _match_cast(session, target, tree, annotation, statement)
        return True
    if _declares(session, tree):
        if target.id not in session.symbols:
            session.open_symbols.setdefault(target.id, target)
        session.symbols.add(target.id)
        session.scope.names.pop(target.id, None)
        return True
    return False


def is_static(value: Any) -> bool:
    """Whether a value is known while reading, so that a name for it binds no variable."""
    if isinstance(value, (tuple, list)):
        return all(map(is_static, value))
    return not isinstance(value, Expr) or isinstance(value, (ExternFunc, GlobalVar, PrimFunc))


def read_claim(session: GraphSession, annotation: ast.expr, value: Any, tree: ast.expr) -> Type:
    """The declared type of a binding; symbols that deduction has just made may be named here."""
    before, session.defining = session.defining, isinstance(value, Expr)
    known = set(session.symbols)
    try:
        declared = read_type(session, annotation)
    finally:
        session.defining = before
    new = session.symbols - known
    if new:
        _name_new_symbols(session, new, declared, value, annotation, tree)
    return declared


def _name_new_symbols(
    session: GraphSession, new: set[str], declared: Type, value: Expr, annotation: ast.expr, tree: ast.expr
) -> None:
    made = type_symbols(type_of(session, value, tree)) - session.symbols
    if len(made) < len(new):
        session.symbols -= new
        name = sorted(new)[0]
        hint = did_you_mean(name, session.symbols) or "symbols come from the signature or from R.match_cast"
        raise session.fail("W117", f"undefined symbol '{name}'", annotation, hint)


def _unpack(session: GraphSession, target: ast.Tuple | ast.List, tree: ast.expr, statement: ast.AST) -> None:
    if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(target.elts):
        if all(isinstance(item, ast.Name) for item in target.elts) and any(
            _declares(session, item) for item in tree.elts
        ):
            for item, part in zip(target.elts, tree.elts, strict=True):
                _assign_to(session, item, part, None, statement)
            return
    _unpack_value(session, target, session.value(tree), tree, statement)


def _unpack_value(
    session: GraphSession, target: ast.Tuple | ast.List, value: Any, tree: ast.expr, statement: ast.AST
) -> None:
    for item, part in unpack_targets(session, target, parts_of(session, value, tree), target):
        if isinstance(item, (ast.Tuple, ast.List)):
            _unpack_value(session, item, part, tree, statement)
        elif not isinstance(item, ast.Name):
            raise session.fail("W115", "only names can be unpacked into", item)
        elif (is_static(part) and item.id not in session.carried) or form_of(part) is not None:
            session.scope.names[item.id] = part
        else:
            session.scope.names[item.id] = bind_value(session, item, as_expr(session, part, tree), None, statement)
    note_branches(session, value, [item.id for item in target.elts if isinstance(item, ast.Name)])


def _match_cast(
    session: GraphSession, target: ast.Name, tree: ast.Call, annotation: ast.expr | None, statement: ast.AST
) -> None:
    values = bind_arguments(session, VALUES["R.match_cast"], tree)
    known = session.symbols - session.open_symbols.keys() | session.outer_symbols
    before, session.defining = session.defining, True
    try:
        ty = read_type(session, values["ty"])
    finally:
        session.defining = before
    _refuse_undefined(session, ty, known, values["ty"])
    declared = ty
    if annotation is not None:
        declared = read_type(session, annotation)
    var = make_var(session, target.id, declared, target)
    found = type_of(session, values["value"], tree)
    if is_base_of(ty, found) is False:
        raise session.fail("W432", f"a {type_text(found)} is never a {type_text(ty)}", tree)
    emit_binding(session, MatchCast(var, values["value"], ty, span=session.span(statement)))
    for name in type_symbols(ty):
        session.open_symbols.pop(name, None)
    session.context.learn(ty, type_of(session, values["value"], tree))
    session.scope.names[target.id] = var


def _refuse_undefined(session: GraphSession, ty: Type, known: Collection[str], tree: ast.expr) -> None:
    """W117 for a symbol of a match_cast that is new and that its dimensions do not determine."""
    dims = [*dims_within(ty)]
    defined = determined(dims, known)
    for name in (name for dim in dims for name in free_symbols(dim)):
        if name not in known and name not in defined:
            hint = f"a dimension that is `{name}` alone does"
            raise session.fail("W117", f"nothing gives the symbol '{name}' a value", tree, hint)


@GRAPH.value("R.match_cast")
def _misplaced_cast(session: GraphSession, tree: ast.Call) -> Any:
    target = fresh_target(session, tree)
    _match_cast(session, target, tree, None, tree)  # type: ignore[arg-type]
    return session.scope.names.pop(target.id)
