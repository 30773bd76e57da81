"""Reading `if` in graph functions: both branches end by binding one name."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.ir.deduction.infer import VOID, type_text
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.graph import Expr, If, SeqExpr, Tuple, Var, VarBinding
from weft.ir.structure.structural import structural_equal
from weft.ir.types import AnyType, PrimType, TensorType, TupleType, Type
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.names import dotted_name, global_name
from weft.script.reader.graph.assign import read_claim
from weft.script.reader.graph.bindings import as_expr, as_leaf, bind_value, emit_binding, make_var, type_of
from weft.script.reader.graph.dataflow import _outputs_of, _targets
from weft.script.reader.graph.session import Blocks, GraphSession
from weft.script.reader.graph.statements import read_statement
from weft.script.reader.scope import Hidden, Scope
from weft.script.source.text import MISSING

__all__ = ["check_condition"]


@GRAPH.tree(ast.If)
def _if(session: GraphSession, tree: ast.If) -> None:
    test = session.value(tree.test)
    if session.known(test, tree.test):
        for statement in tree.body if test else tree.orelse:
            read_statement(session, statement)
        return
    if session.dataflow_names is not None:
        raise session.fail(
            "W119", "a dataflow block has no control flow", tree, "move the if outside of it, or use R.where"
        )
    otherwise = tree.orelse or _kept(session, tree)
    condition = as_leaf(session, test, tree.test)
    check_condition(session, condition, tree.test)
    shadowed: dict[str, Hidden] = {}
    then_name, then_type, then_branch = _branch(session, tree.body, tree, shadowed)
    else_name, else_type, else_branch = _branch(session, otherwise, tree, shadowed)
    session.scope.names.update(shadowed)
    if then_name != else_name:
        raise session.fail(
            "W119",
            f"the branches must end by binding one name, not '{then_name}' and '{else_name}'",
            otherwise[-1],
        )
    value = If(condition, then_branch, else_branch, span=session.span(tree))
    both = then_type is not None and else_type is not None and structural_equal(then_type, else_type)
    target = ast.copy_location(ast.Name(then_name, ast.Store()), tree)
    if both:
        var = make_var(session, then_name, then_type, tree)  # type: ignore[arg-type]
        emit_binding(session, VarBinding(var, value, span=session.span(tree)))
    else:
        var = bind_value(session, target, value, None, tree)
    session.scope.names[then_name] = var
    session.hidden.pop(then_name, None)


def _kept(session: GraphSession, tree: ast.If) -> list[ast.stmt]:
    """The branch of an `if` without `else`: the name that the other branch binds keeps its value."""
    last = tree.body[-1]
    targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
    name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
    if name is None or session.scope.get(name) is MISSING:
        hint = f"write `else:` with another value of `{name}`, or bind `{name}` before" if name else None
        raise session.fail("W115", "an `if` needs an `else`: both branches give the value", tree, hint)
    load, store = ast.Name(name, ast.Load()), ast.Name(name, ast.Store())
    kept = ast.Assign([ast.copy_location(store, last)], ast.copy_location(load, last))
    return [ast.copy_location(kept, last)]


def check_condition(session: GraphSession, condition: Expr, tree: ast.AST) -> None:
    """W123 for a condition that is no bool scalar."""
    ty = type_of(session, condition, tree)
    right = (
        isinstance(ty, AnyType)
        or (isinstance(ty, PrimType) and ty.dtype == "bool")
        or (isinstance(ty, TensorType) and ty.dtype in ("bool", None) and ty.ndim in (0, -1))
    )
    if not right:
        hint = None
        if isinstance(ty, TensorType) and ty.dtype in ("bool", None):
            hint = "R.where(condition, a, b) chooses for each element"
        elif not isinstance(ty, TupleType):
            hint = "compare it, as in `x > 0`"
        raise session.fail("W123", f"a condition is a bool scalar, got {type_text(ty)}", tree, hint)


def _branch(
    session: GraphSession, trees: Sequence[ast.stmt], tree: ast.If, shadowed: dict[str, Hidden]
) -> tuple[str, Type | None, SeqExpr]:
    """(name bound last, its declared type, the branch); outer names that it binds anew are noted."""
    saved_scope, session.scope = session.scope, Scope(session.scope)
    saved_blocks, session.blocks = session.blocks, Blocks()
    try:
        with session.context.scope():
            for statement in trees[:-1]:
                read_statement(session, statement)
            name, declared, result = _last_of_branch(session, trees[-1])
        session.blocks.flush()
        for inner, value in session.scope.names.items():
            if inner == name:
                continue
            why = "only the last binding of a branch is visible after the if"
            session.hidden.setdefault(inner, why)
            if saved_scope.get(inner) is not MISSING and saved_scope.get(inner) is not value:
                shadowed[inner] = Hidden(f"a branch gives it another value, and {why}")
        return name, declared, SeqExpr(tuple(session.blocks.done), result)
    finally:
        session.scope, session.blocks = saved_scope, saved_blocks


def _last_of_branch(session: GraphSession, tree: ast.stmt) -> tuple[str, Type | None, Expr]:
    if isinstance(tree, ast.AnnAssign) and isinstance(tree.target, ast.Name) and tree.value is not None:
        if _is_leaf_tree(session, tree.value):
            result = as_leaf(session, session.value(tree.value), tree.value)
            declared = read_claim(session, tree.annotation, result, tree.value)
            if is_base_of(declared, type_of(session, result, tree), session.context.facts) is not True:
                result = bind_value(session, tree.target, result, declared, tree)
            return tree.target.id, declared, result
        read_statement(session, tree)
        result = _bound(session, tree.target.id, tree)
        return tree.target.id, result.ty if isinstance(result, Var) else None, result
    if isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name):
        name = tree.targets[0].id
        if _is_leaf_tree(session, tree.value):
            return name, None, as_leaf(session, session.value(tree.value), tree.value)
        read_statement(session, tree)
        return name, None, _bound(session, name, tree)
    read_statement(session, tree)
    if isinstance(tree, ast.Expr):
        return "_", VOID, Tuple((), span=session.span(tree))
    names = [name for name in _targets(tree) if session.scope.names.get(name) is not None]
    if isinstance(tree, ast.With):
        names = [name for name in _outputs_of(session, tree)]
    if not names:
        raise session.fail("W119", "a branch must end by binding the result", tree)
    return names[-1], None, _bound(session, names[-1], tree)


def _bound(session: GraphSession, name: str, tree: ast.AST) -> Expr:
    value = session.scope.get(name)
    return value if isinstance(value, Expr) else as_expr(session, value, tree)


def _is_leaf_tree(session: GraphSession, tree: ast.expr) -> bool:
    """Whether the expression is a leaf as it stands, so that it needs no binding of its own."""
    if isinstance(tree, (ast.Name, ast.Constant)):
        return True
    if isinstance(tree, (ast.Tuple, ast.List)):
        return all(_is_leaf_tree(session, item) for item in tree.elts)
    if isinstance(tree, ast.Call):
        return dotted_name(session, tree.func) in (
            "R.const",
            "R.shape",
            "R.prim_value",
            "R.str",
            "R.dtype",
            "R.ExternFunc",
            "R.tuple",
        )
    return isinstance(tree, ast.Attribute) and global_name(session, tree) is not None
