"""Reading `@R.function`: signatures, bodies, what a function returns.

Every variable gets its type here: the deduced one, or the annotation, which is checked as a claim. Names known while
reading (sizes, numbers, tuples of them, captured values) bind no variable.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.ir.deduction.infer import TypeContext, check_claim, func_type, signature_type, type_text
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.dim import determined, free_symbols, symbol
from weft.ir.graph import Expr, Function, If, SeqExpr, Tuple, Var, VarBinding
from weft.ir.node import replace
from weft.ir.types import FuncType, PrimType, TupleType, Type
from weft.ir.verify import valueless_symbols
from weft.script.forms.reading import GRAPH
from weft.script.reader.definition import definition_options, macro_of, passed_parameters
from weft.script.reader.expression.types import read_type
from weft.script.reader.graph.bindings import (
    as_leaf,
    bind_value,
    dims_within,
    emit_binding,
    fresh_target,
    make_var,
    note_assumed,
    note_weak,
    type_of,
)
from weft.script.reader.graph.branches import agreed
from weft.script.reader.graph.conditions import check_condition, read_condition
from weft.script.reader.graph.dataflow import return_behind
from weft.script.reader.graph.element_targets import changes_arrays, with_elements
from weft.script.reader.graph.expressions.call import default_value
from weft.script.reader.graph.loops.body import returns
from weft.script.reader.graph.loops.returns import loop_and_rest
from weft.script.reader.graph.session import Blocks, GraphSession, inner_session
from weft.script.reader.graph.sharing import Sharing, note_function
from weft.script.reader.graph.sizes import sizes_used
from weft.script.reader.graph.statements import in_order, read_statement
from weft.script.reader.macros import Macro
from weft.script.reader.recovery import attempt
from weft.script.reader.scope import Scope
from weft.script.source.diagnostics import Consequence, did_you_mean, fail

__all__ = [
    "check_defaults",
    "expand_graph_macro",
    "read_function",
    "read_signature",
    "refuse_defaults",
    "returned",
    "sequence",
    "signature_of",
]

_TYPED = 'write `x: R.Tensor((2, 3), "float32")`'


def read_signature(session: GraphSession, tree: ast.FunctionDef) -> None:
    """Read parameters and result type."""
    params: list[Var] = []
    session.defaults = passed_parameters(session, tree.args)
    session.defining = True
    session.outer_symbols = frozenset(session.symbols - session.unit.symbols.keys())
    session.sizes_used = sizes_used(session, tree)
    session.negative_dims = False
    session.scopes_function_types = False  # texts of version 1 name the symbols of these function types in the body
    for argument in session.defaults:
        var = attempt(session, argument, lambda argument=argument: _parameter(session, argument))
        if var is not None:
            session.scope.names[argument.arg] = var
            params.append(var)
    session.params = tuple(params)
    _refuse_undefined(session, params)
    session.scopes_function_types = True
    known = set(session.symbols)
    if tree.returns is not None:
        session.ret_type = read_type(session, tree.returns)
        session.ret_tree = tree.returns
    session.result_symbols = session.symbols - known - session.unit.symbols.keys()
    session.symbols -= session.result_symbols
    session.defining = False
    session.negative_dims = True


def _refuse_undefined(session: GraphSession, params: Sequence[Var]) -> None:
    """W117 for a symbol of parameters that their dimensions do not determine: nothing would give it a value."""
    if len(params) < len(session.defaults):  # one has an error of its own
        return
    defined = determined([dim for param in params for dim in dims_within(param.ty)])
    for param, argument in zip(params, session.defaults, strict=True):
        for name in (name for dim in dims_within(param.ty) for name in free_symbols(dim)):
            if name not in defined and name not in session.outer_symbols:
                message = f"no parameter gives the symbol '{name}' a value"
                hint = f"a dimension that is `{name}` alone does, as does a parameter `{name}: T.int64`"
                raise session.fail("W117", message, argument.annotation or argument, hint)


def _parameter(session: GraphSession, argument: ast.arg) -> Var:
    if argument.annotation is None:
        hint = "functions of a module have no `self`" if argument.arg == "self" else _TYPED
        raise session.fail("W113", f"parameter '{argument.arg}' has no type", argument, hint)
    ty = read_type(session, argument.annotation)
    if isinstance(ty, PrimType) and argument.arg in session.sizes_used:
        ty = _named_size(session, ty, argument)
    return Var(argument.arg, ty, span=session.span(argument))


def _named_size(session: GraphSession, ty: PrimType, argument: ast.arg) -> PrimType:
    """A scalar that is used as a size has a symbol of its name as its value, where that names no other one."""
    name = argument.arg
    if ty.dtype != "int64" or ty.value is not None or name in session.outer_symbols:
        return ty
    session.level.use_symbol(session, name, argument)
    return replace(ty, value=session.fold(lambda: symbol(name), argument))


def check_defaults(session: GraphSession) -> None:
    """Read what callers may leave out, as a call would: wrong ones are errors whether or not a call needs them."""
    for argument, default in session.defaults.items():
        if default is None:
            continue
        param = session.scope.get(argument.arg)
        probe = GraphSession(
            session.unit, session.module, session.level, context=TypeContext(session.context.functions)
        )
        found = type_of(probe, default_value(probe, probe.value(default), param.ty, default), default)
        what = f"default of '{argument.arg}'"
        check_claim(param.ty, found, probe.context, what, session.span(default), at_run_time=True)


def refuse_defaults(session: GraphSession) -> None:
    """W115: only calls inside a module may leave arguments out; elsewhere a default would be lost."""
    for argument, default in session.defaults.items():
        if default is not None:
            message = f"no call can leave out '{argument.arg}': defaults are for the functions of a module"
            hint = "leave out the default, or the type to make it a constant of the body"
            raise session.fail("W115", message, default, hint)


def signature_of(session: GraphSession) -> FuncType:
    """The signature as a type."""
    if len(session.params) != len(session.defaults):
        raise Consequence("a parameter could not be read")
    assert session.ret_type is not None
    return signature_type(session.params, session.ret_type, session.pure)


def read_function(
    session: GraphSession, tree: ast.FunctionDef, *, pure: bool, private: bool, name: str | None = None
) -> Function:
    """The function, its signature having been read."""
    session.pure, session.private = pure, private
    session.scope = Scope(session.scope)
    found = session.unit.noted
    with session.context.scope():
        body = sequence(session, _plain(session, tree.body), tree)
        ret_type = _result_type(session, body, tree)
    if session.unit.noted > found or len(session.params) < len(session.defaults):
        raise Consequence("a statement could not be read")
    made = Function(
        session.params,
        body,
        ret_type,
        session.pure,
        private,
        session.attrs,
        name or tree.name,
        span=session.unit.name_span(tree),
    )
    _check_open_symbols(session, made)
    return made


def _plain(session: GraphSession, trees: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Statements that assign no elements; where the text has some that do, it is noted what is one array in Python."""
    if session.memory is None and (session.module.changes_arrays or changes_arrays(trees)):
        session.memory = Sharing()
    return with_elements(trees)


def _check_open_symbols(session: GraphSession, function: Function) -> None:
    """W117: a symbol that is declared and used has a value: from a parameter, a match_cast or a result."""
    declared: dict[str, ast.AST | None] = {**dict.fromkeys(session.unit.symbols), **session.open_symbols}
    for finding in valueless_symbols(function, session.context.functions) if declared else ():
        for name, place in declared.items():
            if finding.message.startswith(f"the symbol {name} "):
                message = f"the symbol '{name}' is declared and never gets a value"
                span = session.span(place) if place is not None else finding.span or function.span
                raise fail("W117", message, span, "bind it by a parameter or by R.match_cast")


def _result_type(session: GraphSession, body: SeqExpr, tree: ast.FunctionDef) -> Type:
    if session.ret_type is None:
        return type_of(session, body, tree)
    unbound = session.result_symbols - session.symbols
    if unbound and session.ret_tree is not None:
        name = min(unbound)
        hint = did_you_mean(name, session.symbols) or "bind it by a parameter or by R.match_cast"
        raise session.fail("W117", f"no parameter binds the symbol '{name}' of the result", session.ret_tree, hint)
    place = session.return_span or session.span(tree)
    found, what = type_of(session, body.body, tree), f"result of {tree.name}"
    if not check_claim(session.ret_type, found, session.context, what, place, at_run_time=True):
        note_assumed(session, session.ret_type, found, what, session.span(session.ret_tree or tree), place)
    return session.ret_type


def sequence(session: GraphSession, trees: Sequence[ast.stmt], tree: ast.AST) -> SeqExpr:
    """A function body: statements and a final return."""
    saved, session.blocks = (session.blocks, session.raw_return), Blocks()
    session.raw_return = False
    try:
        result = _body(session, trees, tree)
        session.blocks.flush()
        return SeqExpr(tuple(session.blocks.done), result)
    finally:
        session.blocks, session.raw_return = saved


def _body(session: GraphSession, trees: Sequence[ast.stmt], tree: ast.AST) -> Expr:
    for position, statement in in_order(session, trees):
        last = position == len(trees) - 1
        split = return_behind(session, statement) if last else None
        if split is not None:
            read_statement(session, split[0])
            statement = split[1]
        if isinstance(statement, ast.Return):
            if not last:
                raise session.fail("W120", "statements after the return", trees[position + 1])
            return returned(session, statement)
        if isinstance(statement, ast.If) and returns(statement):
            return _if_with_returns(session, statement, trees[position + 1 :])
        if isinstance(statement, (ast.For, ast.While)) and returns(statement):
            follow = loop_and_rest(session, statement, trees[position + 1 :])
            return _body(session, follow, tree)
        read_statement(session, statement)
    if isinstance(session.ret_type, TupleType) and not session.ret_type.fields:
        return Tuple((), span=session.span(tree))
    hint = "end it with `return value`"
    if isinstance(tree, ast.FunctionDef):
        raise fail("W120", "the function returns nothing", session.unit.name_span(tree), hint=hint)
    raise session.fail("W120", "the function returns nothing", trees[-1] if trees else tree, hint)


def returned(session: GraphSession, tree: ast.Return) -> Expr:
    """The leaf that a return gives."""
    if tree.value is not None and session.raw_return:
        return session.value(tree.value)
    session.return_span = session.span(tree.value or tree)
    if tree.value is None:
        return Tuple((), span=session.span(tree))
    result = as_leaf(session, session.value(tree.value), tree.value)
    if session.ret_type is not None and session.branches:
        _check_branch_result(session, result, session.ret_type, tree.value)
    return result


def _check_branch_result(session: GraphSession, result: Expr, declared: Type, tree: ast.expr) -> None:
    """What one branch returns is never what the function declares: said where it is returned."""
    found = type_of(session, result, tree)
    if is_base_of(declared, found, session.context.facts) is False:
        check_claim(declared, found, session.context, "result of a branch", session.span(tree), at_run_time=True)
        raise session.fail("W432", f"a {type_text(found)} is never a {type_text(declared)}", tree)


def _if_with_returns(session: GraphSession, tree: ast.If, rest: Sequence[ast.stmt]) -> Expr:
    """An if whose branches return: the result of the function is its value."""
    test = read_condition(session, tree.test)
    orelse = [*tree.orelse, *rest] if not _ends_in_return(tree.orelse) else tree.orelse
    body = tree.body if _ends_in_return(tree.body) else [*tree.body, *rest]
    if session.known(test, tree.test):
        return _body(session, body if test else orelse, tree)
    condition = as_leaf(session, test, tree.test)
    if session.dataflow_names is not None:
        raise session.fail("W119", "a dataflow block has no control flow", tree)
    session.branches += 1
    then, other = _scoped(session, body, tree), _scoped(session, orelse, tree)
    session.branches -= 1
    then, other, weak = agreed(session, then, other, tree)
    made = If(condition, then, other, span=session.span(tree))
    check_condition(session, condition, tree)
    result = bind_value(session, fresh_target(session, tree, "result"), made, None, tree)
    note_weak(session, result, weak)
    return result


def _scoped(session: GraphSession, trees: Sequence[ast.stmt], tree: ast.AST) -> SeqExpr:
    saved, session.scope = session.scope, Scope(session.scope)
    try:
        with session.context.scope():
            return sequence(session, trees, tree)
    finally:
        session.scope = saved


def expand_graph_macro(session: GraphSession, macro: Macro, tree: ast.Call) -> Any:
    """The result of a macro; its bindings go into the current block."""
    if isinstance(macro.body, ast.expr):
        return session.value(macro.body)
    saved = session.place, session.ret_type, session.foreign, session.raw_return
    session.raw_return = True
    session.place = session.place or tree  # what a macro binds is no output of the block around its call
    session.ret_type, session.foreign = None, macro.hygienic and macro.scope is None
    try:
        return _body(session, _plain(session, macro.body), macro.body[0])
    finally:
        session.place, session.ret_type, session.foreign, session.raw_return = saved


@GRAPH.tree(ast.FunctionDef)
def _nested_function(session: GraphSession, tree: ast.FunctionDef) -> None:
    macro = macro_of(session, tree)
    if macro is not None:
        session.scope.names[tree.name] = macro
        return
    if not tree.decorator_list and not any(argument.annotation for argument in tree.args.args):
        session.scope.names[tree.name] = Macro(tree.name, tree.args, tree.body, session.unit, "R", True, session.scope)
        return
    kind, options = definition_options(session, tree)
    if kind != "R.function":
        raise session.fail("W115", "a tensor-level function inside a graph function", tree, "define it in the module")
    inner = inner_session(session)
    read_signature(inner, tree)
    refuse_defaults(inner)
    inner.pure = options["pure"]
    declared = signature_of(inner) if inner.ret_type is not None else None
    if declared is not None:  # a local function may call itself
        var = make_var(session, tree.name, declared, tree)
        inner.scope.parent = Scope(session.scope)
        inner.scope.parent.names[tree.name] = var
    inner.scope.own = True
    value = read_function(inner, tree, pure=options["pure"], private=options["private"])
    if declared is None:
        var = make_var(session, tree.name, func_type(value), tree)
    emit_binding(session, VarBinding(var, value, span=session.span(tree)))  # type: ignore[possibly-undefined]
    session.scope.names[tree.name] = var  # type: ignore[possibly-undefined]
    noted = note_function(inner, value.params, value.body.body, value.ret_type)  # type: ignore[union-attr, arg-type]
    if noted is not None and session.memory is not None:
        session.memory.functions[var] = noted  # type: ignore[possibly-undefined]


def _ends_in_return(trees: Sequence[ast.stmt]) -> bool:
    """Whether statements return, whatever runs."""
    last = trees[-1] if trees else None
    if isinstance(last, ast.If):
        return _ends_in_return(last.body) and _ends_in_return(last.orelse)
    return isinstance(last, ast.Return)
