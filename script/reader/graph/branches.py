"""Reading `if` in graph functions: both branches end by binding one name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.ir.deduction.infer import VOID
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.graph import Expr, If, PrimValue, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from weft.ir.structure.structural import structural_equal
from weft.ir.types import PrimType, TensorType, TupleType, Type, is_scalar_type
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.names import dotted_name, global_name
from weft.script.reader.expression.operators import both_operands, refuse_conditional
from weft.script.reader.graph.assign import read_claim
from weft.script.reader.graph.bindings import (
    WHOLE,
    as_expr,
    as_leaf,
    bind_value,
    emit_binding,
    fresh_target,
    in_dtype,
    is_weak,
    make_var,
    note_weak,
    scalar_tensor,
    type_of,
)
from weft.script.reader.graph.conditions import check_condition, read_condition, truth_of
from weft.script.reader.graph.dataflow import _outputs_of, _targets
from weft.script.reader.graph.expressions.dictionaries import flat, form_of, in_form
from weft.script.reader.graph.expressions.numbers import joined_dtype
from weft.script.reader.graph.joined import at, joined_if
from weft.script.reader.graph.session import Blocks, GraphSession
from weft.script.reader.graph.statements import in_order, read_statement
from weft.script.reader.scope import Hidden, Scope
from weft.script.source.text import MISSING

__all__ = ["agreed", "conditional_value", "either_value"]


@GRAPH.tree(ast.If)
def _if(session: GraphSession, tree: ast.If) -> None:
    test = read_condition(session, tree.test)
    if session.known(test, tree.test):
        for _, statement in in_order(session, tree.body if test else tree.orelse):
            read_statement(session, statement)
        return
    if session.dataflow_names is not None:
        raise session.fail(
            "W119", "a dataflow block has no control flow", tree, "move the if outside of it, or use R.where"
        )
    condition = as_leaf(session, test, tree.test)
    parts = joined_if(tree, session.has_value, session.wanted)
    if parts is not None:
        tree = parts[0]  # type: ignore[assignment]
    _conditional(session, tree, condition)
    for statement in parts[1:] if parts is not None else ():
        read_statement(session, statement)


def _conditional(session: GraphSession, tree: ast.If, condition: Expr) -> None:
    """An `if` whose branches end by binding one name."""
    otherwise = tree.orelse or _kept(session, tree)
    check_condition(session, condition, tree.test)
    shadowed: dict[str, Hidden] = {}
    then_name, then_type, then_branch, form = _branch(session, tree.body, tree, shadowed)
    else_name, else_type, else_branch, _ = _branch(session, otherwise, tree, shadowed, form)
    session.scope.names.update(shadowed)
    if then_name != else_name:
        one = {then_name, else_name} - {"_"}
        if len(one) == 1:
            name = one.pop()
            hint = f"bind `{name}` before (before the loop, where this is its `else`), or in both branches"
            message = f"one branch binds a name, and the other one does not: `{name}`"
            raise session.fail("W119", message, otherwise[-1], hint)
        raise session.fail(
            "W119",
            f"the branches must end by binding one name, not '{then_name}' and '{else_name}'",
            otherwise[-1],
        )
    then_branch, else_branch, weak = agreed(session, then_branch, else_branch, tree)
    value = If(condition, then_branch, else_branch, span=session.span(tree))
    both = then_type is not None and else_type is not None and structural_equal(then_type, else_type)
    target = ast.copy_location(ast.Name(then_name, ast.Store()), tree)
    if both:
        var = make_var(session, then_name, then_type, tree)  # type: ignore[arg-type]
        emit_binding(session, VarBinding(var, value, span=session.span(tree)))
    else:
        var = bind_value(session, target, value, None, tree)
    note_weak(session, var, weak)
    session.scope.names[then_name] = in_form(session, form, var, tree)
    session.hidden.pop(then_name, None)


def agreed(
    session: GraphSession, then: SeqExpr, other: SeqExpr, tree: ast.AST
) -> tuple[SeqExpr, SeqExpr, frozenset[int]]:
    """Two branches in which a number of Python has the dtype of what the other branch gives in its place; and the
    fields that are numbers of Python in both.
    """
    weak: set[int] = set()
    if isinstance(then.body, Tuple) != isinstance(other.body, Tuple):
        then, other = (_in_fields(session, branch, tree) for branch in (then, other))
    if isinstance(then.body, Tuple) and isinstance(other.body, Tuple):
        places = range(min(len(then.body.fields), len(other.body.fields)))
    else:
        places = range(WHOLE, 0)
    for place in places:
        pair = _field(then, place), _field(other, place)
        are_weak = [is_weak(session, value) for value in pair]
        types = [type_of(session, value, tree) for value in pair]
        if all(are_weak):
            weak.add(place)
        dtype = _common_dtype(types, are_weak)
        if dtype is not None:
            then = _converted(session, then, place, dtype, tree)
            other = _converted(session, other, place, dtype, tree)
    return then, other, frozenset(weak)


def _is_truth_beside_tensor(types: Sequence[Type]) -> bool:
    """Whether one branch gives a scalar truth value and the other one a tensor."""
    scalars = [isinstance(ty, PrimType) and ty.dtype == "bool" for ty in types]
    return any(scalars) and not all(scalars)


def _in_fields(session: GraphSession, branch: SeqExpr, tree: ast.AST) -> SeqExpr:
    """A branch that gives a tuple variable as one that gives its fields."""
    ty = type_of(session, branch.body, tree)
    if isinstance(branch.body, Tuple) or not isinstance(ty, TupleType):
        return branch
    blocks, session.blocks = session.blocks, Blocks()
    fields = [TupleGetItem(branch.body, place, span=branch.body.span) for place in range(len(ty.fields))]
    leaves = tuple(as_leaf(session, field, tree) for field in fields)
    session.blocks.flush()
    added, session.blocks = tuple(session.blocks.done), blocks
    return SeqExpr((*branch.blocks, *added), Tuple(leaves, span=branch.body.span), span=branch.span)


def _field(branch: SeqExpr, place: int) -> Expr:
    return branch.body if place == WHOLE else branch.body.fields[place]  # type: ignore[attr-defined]


def _common_dtype(types: Sequence[Type], are_weak: Sequence[bool]) -> str | None:
    """The dtype of a tensor of rank 0 that both values become; None where they stay as they are.

    Values of two dtypes of which none is a number of Python stay: a text that was printed reads back as it was.
    """
    if not all(map(is_scalar_type, types)):
        return None
    if any(ty.dtype is None for ty in types):  # type: ignore[attr-defined]  # of branches inside that stay as they are
        return None
    dtypes = [str(ty.dtype) for ty in types]  # type: ignore[attr-defined]
    if not any(are_weak) and not (dtypes[0] == dtypes[1] and _is_truth_beside_tensor(types)):
        return None
    return joined_dtype(list(zip(dtypes, are_weak, strict=True)))


def _converted(session: GraphSession, branch: SeqExpr, place: int, dtype: str, tree: ast.AST) -> SeqExpr:
    """A branch with one of its values as a tensor of a dtype."""
    before = type_of(session, _field(branch, place), tree)
    if isinstance(before, TensorType) and before.dtype == dtype:
        return branch
    blocks, session.blocks = session.blocks, Blocks()
    value = in_dtype(session, _field(branch, place), dtype, tree)
    session.blocks.flush()
    added, session.blocks = tuple(session.blocks.done), blocks
    if place == WHOLE:
        return SeqExpr((*branch.blocks, *added), value, span=branch.span)
    assert isinstance(branch.body, Tuple)
    fields = list(branch.body.fields)
    fields[place] = value
    return SeqExpr((*branch.blocks, *added), Tuple(tuple(fields), span=branch.body.span), span=branch.span)


# Conditions inside of expressions


def conditional_value(session: GraphSession, condition: Any, tree: ast.IfExp) -> Expr:
    """`a if c else b` with a condition that only a run decides."""
    if session.dataflow_names is not None:
        return refuse_conditional(session, condition, tree)
    return _chosen(session, condition, tree.body, tree.orelse, tree)


def either_value(session: GraphSession, kind: str, left: Any, right: ast.expr, tree: ast.AST) -> Any:
    """`a and b`, `a or b` with a first operand that only a run decides: b is computed only where a does not decide.

    Where computing b cannot fail, and of tensors with axes, it is an operator like any other.
    """
    may_fail = any(isinstance(node, (ast.Subscript, ast.Call)) for node in ast.walk(right))
    ty = type_of(session, left, tree) if isinstance(left, Expr) else None
    if not may_fail or not is_scalar_type(ty) or session.dataflow_names is not None:
        return both_operands(session, kind, left, right, tree)
    decided = at(right, ast.Constant(kind == "or"))
    then, other = (decided, right) if kind == "or" else (right, decided)
    return _chosen(session, left, then, other, tree)


def _chosen(session: GraphSession, condition: Any, then: ast.expr, other: ast.expr, tree: ast.AST) -> Var:
    test = as_leaf(session, truth_of(session, condition, tree), tree)
    check_condition(session, test, tree.test if isinstance(tree, ast.IfExp) else tree)
    first, second, weak = agreed(session, _value_branch(session, then), _value_branch(session, other), tree)
    made = If(test, first, second, span=session.span(tree))
    result = bind_value(session, fresh_target(session, tree, "chosen"), made, None, tree)
    note_weak(session, result, weak)
    return result


def _value_branch(session: GraphSession, tree: ast.expr) -> SeqExpr:
    """The computation of a value in a branch of its own."""
    blocks, scope = session.blocks, session.scope
    session.blocks, session.scope = Blocks(), Scope(scope)
    try:
        with session.context.scope():
            value = as_leaf(session, session.value(tree), tree)
            if isinstance(value, PrimValue) and value.dtype == "bool":
                value = scalar_tensor(session, value, tree)
        session.blocks.flush()
        return SeqExpr(tuple(session.blocks.done), value)
    finally:
        session.blocks, session.scope = blocks, scope


def _kept(session: GraphSession, tree: ast.If) -> list[ast.stmt]:
    """The branch of an `if` without `else`: the name that the other branch binds keeps its value."""
    last = tree.body[-1]
    targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
    name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
    if name is None or not session.has_value(name):
        hint = f"write `else:` with another value of `{name}`, or bind `{name}` before" if name else None
        called = last.value.func if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "append":
            hint = "a list gets a value in each iteration, or in none; R.where chooses between two values"
        raise session.fail("W115", "an `if` needs an `else`: both branches give the value", tree, hint)
    load, store = ast.Name(name, ast.Load()), ast.Name(name, ast.Store())
    kept = ast.Assign([ast.copy_location(store, last)], ast.copy_location(load, last))
    return [ast.copy_location(kept, last)]


def _branch(
    session: GraphSession, trees: Sequence[ast.stmt], tree: ast.If, shadowed: dict[str, Hidden], form: Any = None
) -> tuple[str, Type | None, SeqExpr, Any]:
    """(name bound last, its declared type, the branch, where its value has dictionaries); outer names that it binds
    anew are noted. `form` is where the value of the other branch has them.
    """
    saved_scope, session.scope = session.scope, Scope(session.scope)
    saved_blocks, session.blocks = session.blocks, Blocks()
    try:
        with session.context.scope():
            for position, statement in in_order(session, trees):
                if position < len(trees) - 1:
                    read_statement(session, statement)
            name, declared, value = _last_of_branch(session, trees[-1])
            form = form_of(value) if form is None else form
            result = as_leaf(session, flat(session, form, value, name, trees[-1]), trees[-1])
        session.blocks.flush()
        for inner, value in session.scope.names.items():
            if inner == name:
                continue
            why = "only the last binding of a branch is visible after the if"
            session.hidden.setdefault(inner, why)
            if saved_scope.get(inner) is not MISSING and saved_scope.get(inner) is not value:
                shadowed[inner] = Hidden(f"a branch gives it another value, and {why}")
        return name, declared, SeqExpr(tuple(session.blocks.done), result), form
    finally:
        session.scope, session.blocks = saved_scope, saved_blocks


def _last_of_branch(session: GraphSession, tree: ast.stmt) -> tuple[str, Type | None, Any]:
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
            value = session.value(tree.value)
            return name, None, value if form_of(value) is not None else as_leaf(session, value, tree.value)
        read_statement(session, tree)
        return name, None, _bound(session, name, tree)
    read_statement(session, tree)
    if isinstance(tree, (ast.Expr, ast.Pass)):
        return "_", VOID, Tuple((), span=session.span(tree))
    names = [name for name in _targets(tree) if session.scope.names.get(name) is not None]
    if isinstance(tree, ast.With):
        names = [name for name in _outputs_of(session, tree)]
    if not names:
        raise session.fail("W119", "a branch must end by binding the result", tree)
    return names[-1], None, _bound(session, names[-1], tree)


def _bound(session: GraphSession, name: str, tree: ast.AST) -> Any:
    """The value of a name: of the graph, or with dictionaries."""
    value = session.scope.get(name)
    return value if isinstance(value, Expr) or form_of(value) is not None else as_expr(session, value, tree)


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
