"""Reading calls in graph functions: of operators, of functions of the module, of local functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

from weft.ir.dim import DimExpr
from weft.ir.graph import Call, Expr, ExternFunc, Function, GlobalVar, PrimValue, TupleGetItem, Var
from weft.ir.node import EMPTY
from weft.ir.op import OPS, likely_operators
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import FuncType, TensorType, TupleType, Type
from weft.script.forms.constants import constant_value
from weft.script.forms.holes import KINDS
from weft.script.forms.reading import COMMON, GRAPH
from weft.script.forms.syntax import ALL_FORMS, VALUES
from weft.script.forms.unsupported import why_unsupported
from weft.script.reader.expression.arguments import OLD_KEYWORDS, argument_trees
from weft.script.reader.expression.attributes import read_literal
from weft.script.reader.expression.call import call_form, refuse_call
from weft.script.reader.expression.names import dtype_name, global_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.expression.python_functions import call_python_function
from weft.script.reader.expression.types import read_types
from weft.script.reader.graph.bindings import (
    as_expr,
    as_leaf,
    bind_value,
    fresh_target,
    in_dtype,
    is_weak,
    number_dtype,
    scalar_tensor,
    type_of,
)
from weft.script.reader.graph.expressions.forms import scalar_value
from weft.script.reader.graph.expressions.operators import (
    as_operator,
    call_operator,
    check_devices,
    operator_of,
    placed,
)
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import note_copy, refuse_changed, refuse_shared_list
from weft.script.reader.scope import Scope, describe
from weft.script.source.diagnostics import did_you_mean

__all__ = ["call_function", "call_graph", "default_value", "read_arguments", "typed_number"]

_WHOLE_DIVISION = {"T.Div": "floordiv", "T.truncdiv": "floordiv", "T.truncmod": "floormod"}


def call_graph(session: GraphSession, name: str, tree: ast.Call) -> Any:
    """A call of a name of R: a form of the table, or a declared operator."""
    read = GRAPH.value.get(name)
    if read is not None:
        return read(session, tree)
    if name.startswith("R.") and name not in VALUES and name not in ALL_FORMS and name not in COMMON.value:
        if name[2:] in OPS:
            args, kwargs = read_arguments(session, tree)
            if name.startswith("R.dist."):
                placed(session, OPS[name[2:]], args, kwargs, tree)
            check_devices(session, OPS[name[2:]], args, kwargs, tree)
            return call_operator(session, name[2:], args, kwargs, tree)
        if why_unsupported(name) is not None:
            raise session.level.unknown(session, name, tree.func)
        operator_of(session, name[2:], tree.func)
    if name.startswith("T."):
        dtype = dtype_name(name)
        if dtype is not None and len(tree.args) == 1:
            return typed_number(session, dtype, tree)
        if name == "T.Cast" and len(tree.args) == 2 and not tree.keywords:
            return typed_number(session, KINDS["dtype"].read(session, tree.args[0]), tree)
        if name in ("T.shift_left", "T.shift_right") and len(tree.args) == 2:
            return _shifted(session, name, tree)
        if name in ("T.IntImm", "T.FloatImm") and len(tree.args) == 2 and not tree.keywords:
            return typed_number(session, KINDS["dtype"].read(session, tree.args[0]), tree)
        if name in ("T.min", "T.max", "T.floordiv", "T.floormod", "T.ceildiv", "T.Div", "T.truncdiv", "T.truncmod"):
            short = _WHOLE_DIVISION.get(name, name[2:])  # sizes are not negative: both divisions agree
            values = [session.value(argument) for argument in tree.args]
            if short in ("min", "max", "ceildiv"):
                inner = ast.copy_location(ast.Name(short, ast.Load()), tree.func)
                return call_python_function(session, short, ast.copy_location(ast.Call(inner, tree.args, []), tree))
            if len(values) == 2:
                return apply_binary(session, short, values[0], values[1], tree)
        close = likely_operators(name.removeprefix("T."))
        hint = f"did you mean `R.{close[0]}`?" if close else None
        if name == "T.Buffer":
            hint = 'a graph function takes R.Tensor((4,), "float32"); a kernel is decorated with @T.prim_func'
        raise session.fail("W115", f"`{name}` is tensor-level: it belongs in a T.prim_func", tree.func, hint)
    return call_form(session, name, tree)


def _shifted(session: GraphSession, name: str, tree: ast.Call) -> Any:
    """A size shifted by a constant: a product or a quotient by a power of two."""
    value, by = (session.value(argument) for argument in tree.args)
    by = by.value if isinstance(by, PrimValue) else by
    if not isinstance(by, int) or isinstance(by, bool) or not 0 <= by < 63:
        raise session.fail("W114", "a size is shifted by a constant from 0 to 62", tree.args[1])
    return apply_binary(session, "mul" if name == "T.shift_left" else "floordiv", value, 1 << by, tree)


def read_arguments(session: GraphSession, tree: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    """The values of a call's arguments, in Python's order."""
    args = [session.value(argument) for argument in argument_trees(session, tree)]
    kwargs: dict[str, Any] = {}
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise session.fail("W115", "** is not part of the script", keyword.value)
        word = OLD_KEYWORDS.get(keyword.arg, keyword.arg)
        if word in kwargs:
            raise session.fail("W113", f"`{word}` is given twice, here as `{keyword.arg}`", keyword)
        kwargs[word] = _argument(session, keyword.value)
    return args, kwargs


def _argument(session: GraphSession, tree: ast.expr) -> Any:
    """The value of a keyword argument; `out_ty=[...]` holds types."""
    return session.value(tree)


def typed_number(session: GraphSession, dtype: str, tree: ast.Call) -> Any:
    """`T.int64(3)`, `T.IntImm("int64", 3)`: a number of a dtype; a dimension stays one."""
    value = session.value(tree.args[-1])
    if isinstance(value, DimExpr):
        return value if dtype == "int64" else PrimValue(value, dtype, span=session.span(tree))
    if isinstance(value, str) and dtype.startswith(("float", "bfloat")):
        value = session.fold(lambda: float(value), tree)
    if not isinstance(value, (bool, int, float)):
        raise session.fail("W114", f"expected a number, got {describe(value)}", tree)
    if dtype == "int64" and isinstance(value, int):
        return value
    return scalar_value(session, value, dtype, tree)


def call_function(session: GraphSession, tree: ast.Call) -> Any:
    """A call of a function of the module or of a local function."""
    name = global_name(session, tree.func)
    if name is not None:
        return _call_of(session, GlobalVar(name, session.span(tree.func)), tree)
    if isinstance(tree.func, ast.Attribute):
        base = session.value(tree.func.value)
        if isinstance(base, Expr) and tree.func.attr == "astype":
            args, kwargs = read_arguments(session, tree)
            return call_operator(session, "astype", [base, *args], kwargs, tree)
        if tree.func.attr == "copy" and not tree.args and not tree.keywords:
            return _copied(session, base, tree)
        if tree.func.attr == "append" and _appended(session, base, tree):
            return None
        hint = _instead(session, base, tree.func)
        raise session.fail(
            "W115", f"`.{tree.func.attr}` of {describe(base)} is not part of the script", tree.func, hint
        )
    if isinstance(tree.func, ast.Name):
        found = session.level.lookup(session, tree.func.id, tree.func)
        if isinstance(found, (Var, ExternFunc, GlobalVar)):
            return _call_of(session, found, tree)
        if isinstance(found, (Function, PrimFunc)):
            return _call_of(session, as_expr(session, found, tree.func), tree)
    if isinstance(tree.func, (ast.Call, ast.Subscript)):
        found = session.value(tree.func)
        if isinstance(found, Expr) and not isinstance(found, PrimExpr):
            return _call_of(session, as_leaf(session, found, tree.func), tree)
    return refuse_call(session, tree)


_OF_LISTS = {
    "clear": "{0} = []",
    "extend": "{0} = [*{0}, *values]",
    "insert": "{0} = [*{0}[:i], value, *{0}[i:]]",
    "pop": "last, {0} = {0}[-1], {0}[:-1]",
    "reverse": "{0} = {0}[::-1]",
}
"""What to write for the methods that change a list."""


def _instead(session: GraphSession, base: Any, method: ast.Attribute) -> str | None:
    """A hint: what a method of a list, or of a tensor of another library, is here."""
    parts = isinstance(base, list)
    if isinstance(base, Expr):
        parts = isinstance(type_of(session, as_leaf(session, base, method.value), method), TupleType)
    if parts:
        written = _OF_LISTS.get(method.attr)
        return f"write `{written.format(ast.unparse(method.value)[:30])}`" if written else None
    return as_operator(session, method) if isinstance(base, Expr) else None


def _copied(session: GraphSession, base: Any, tree: ast.Call) -> Any:
    """`x.copy()`: the value, which is an array of its own in Python."""
    if isinstance(base, (list, dict)):
        session.unit.charge(len(base), tree)
        return base.copy()
    leaf = as_leaf(session, base, tree)
    if session.memory is None:
        return leaf
    made = bind_value(session, fresh_target(session, tree), leaf, None, tree)
    note_copy(session, made)
    return made


def _appended(session: GraphSession, base: Any, tree: ast.Call) -> bool:
    """`ys.append(v)` on a list of values, a tuple of the graph: the name has one more of them, in its own block."""
    assert isinstance(tree.func, ast.Attribute)
    name, ty = tree.func.value, base.ty if isinstance(base, Var) else None
    own = isinstance(name, ast.Name) and name.id in session.scope.names
    if not own or not isinstance(ty, TupleType) or len(tree.args) != 1 or tree.keywords:
        return False
    refuse_shared_list(session, base, tree)
    fields = [as_leaf(session, TupleGetItem(base, place), tree) for place in range(len(ty.fields))]
    made = as_expr(session, (*fields, session.value(tree.args[0])), tree)
    session.scope.names[name.id] = bind_value(session, name, made, None, tree)  # type: ignore[union-attr, arg-type]
    return True


def _call_of(session: GraphSession, callee: Expr, tree: ast.Call) -> Call:
    attrs, ty_args = EMPTY, ()
    for keyword in tree.keywords:
        if keyword.arg == "attrs":
            attrs = read_literal(session, keyword.value)
        elif keyword.arg in ("ty_args", "sinfo_args"):
            ty_args = read_types(session, keyword.value)
    names = ("attrs", "ty_args", "sinfo_args")
    keywords = [keyword for keyword in tree.keywords if keyword.arg not in names]
    wanted = _parameter_types(session, callee)
    args = [
        _argument_of_type(session, session.value(argument), ty, argument)
        for argument, ty in zip(argument_trees(session, tree), wanted, strict=False)
    ]
    known = session.module.parameters_of(callee.name) if isinstance(callee, GlobalVar) else None
    if known is not None:
        _name_arguments(session, callee, args, keywords, known, tree)
    elif keywords:
        raise session.fail("W113", "a function is called with positional arguments", keywords[0])
    made = Call(callee, tuple(args), attrs, ty_args, span=session.span(tree))
    refuse_changed(session, made, tree)
    return made


def _name_arguments(
    session: GraphSession,
    callee: Expr,
    args: list[Expr],
    keywords: list[ast.keyword],
    known: Mapping[str, ast.expr | None],
    tree: ast.Call,
) -> None:
    """Add keyword arguments and defaults to the arguments of a call of a graph function of the module."""
    given = {keyword.arg: keyword for keyword in keywords}
    for name, keyword in given.items():
        if name is None:
            raise session.fail("W115", "** is not part of the script", keyword.value)
        if name not in known:
            raise session.fail("W113", f"there is no parameter '{name}'", keyword, did_you_mean(name, known))
        if name in list(known)[: len(args)]:
            raise session.fail("W113", f"'{name}' is given twice", keyword)
    for position, (name, default) in enumerate(known.items()):
        if position < len(args):
            continue
        if name in given:
            args.append(as_leaf(session, session.value(given[name].value), given[name].value))
        elif default is not None:
            scope, session.scope = session.scope, Scope()
            try:
                args.append(_default(session, session.value(default), callee, position, tree))
            finally:
                session.scope = scope
        elif given:
            raise session.fail("W113", f"the call lacks its argument '{name}'", tree)
        else:
            return  # too few: said with the types of all


def _default(session: GraphSession, value: Any, callee: Expr, position: int, tree: ast.Call) -> Expr:
    """The default of a parameter, as the argument of a call."""
    return default_value(session, value, next(islice(_parameter_types(session, callee), position, None)), tree)


def _parameter_types(session: GraphSession, callee: Expr) -> Iterator[Type | None]:
    """The types of the parameters of a function of the module or a local one, then None: of those not known."""
    found: Any = session.context.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
    found = callee.ty if isinstance(callee, Var) else found
    params = found.params if isinstance(found, (Function, FuncType)) and found.params is not None else ()
    return chain((param.ty if isinstance(param, Var) else param for param in params), repeat(None))


def _argument_of_type(session: GraphSession, value: Any, wanted: Type | None, tree: ast.expr) -> Expr:
    """An argument of a function: a number becomes a tensor of rank 0 where the parameter is one."""
    if not isinstance(wanted, TensorType) or wanted.ndim or wanted.dtype is None:
        return as_leaf(session, value, tree)
    if isinstance(value, (bool, int, float)):
        return default_value(session, value, wanted, tree)
    made = scalar_tensor(session, value, tree)
    converts = is_weak(session, made) and number_dtype(session, made, tree) != wanted.dtype
    return in_dtype(session, made, wanted.dtype, tree) if converts else made


def default_value(session: GraphSession, value: Any, wanted: Type | None, tree: ast.AST) -> Expr:
    """The default of a parameter of a type: a number becomes a scalar tensor where that is its type."""
    if isinstance(wanted, TensorType) and wanted.ndim == 0 and isinstance(value, (bool, int, float)):
        return constant_value(value, wanted.dtype, None, False, session.span(tree), session.unit.blobs)
    return as_leaf(session, value, tree)
