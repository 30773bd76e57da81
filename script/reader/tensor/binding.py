"""Reading the simple statements of tensor-level functions: what a name stands for, calls as statements, jumps.

A name that is assigned once is an immutable binding; one that is assigned again is a local scalar in memory.
"""

from __future__ import annotations

import ast
from typing import Any

from weft import dtypes
from weft.ir.graph import Expr
from weft.ir.kernel.prim import cast
from weft.ir.node import FrozenMap, replace
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Break,
    Buffer,
    BufferRegion,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Return,
    Stmt,
)
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import ALL_FORMS, CLAUSES
from weft.script.reader.expression.arguments import KnownValue, bind_arguments
from weft.script.reader.expression.attributes import check_private, joined_attributes
from weft.script.reader.expression.names import dotted_name, names_module
from weft.script.reader.expression.unrolling import unpack_targets
from weft.script.reader.macros import Macro
from weft.script.reader.scope import ModuleScope, describe
from weft.script.reader.tensor.block import remap_axes, remap_starred
from weft.script.reader.tensor.buffer import buffer_expression
from weft.script.reader.tensor.declaration import (
    POINTERS,
    declare_view,
    declared_type,
    handle_annotation,
    symbol_declaration,
)
from weft.script.reader.tensor.intrinsic import plain_values
from weft.script.reader.tensor.macros import expand_statement
from weft.script.reader.tensor.scalar import as_prim, index_const
from weft.script.reader.tensor.session import TensorSession
from weft.script.reader.tensor.store import is_one_element, new_local_scalar, store_element, store_into, vector_store
from weft.script.source.text import MISSING

__all__ = ["assign_name", "bind_to_name"]

_JUMPS = frozenset({"T.ret", "T.break_loop", "T.continue_loop"})  # which `T.evaluate` may hold


@TENSOR.tree(ast.Pass)
def _pass(session: TensorSession, tree: ast.stmt) -> None:
    return None


@TENSOR.tree(ast.Expr)
def _expression(session: TensorSession, tree: ast.Expr) -> Any:
    call = tree.value
    if isinstance(call, ast.Constant) and isinstance(call.value, str):
        return None  # a docstring
    if isinstance(call, ast.Call):
        name = dotted_name(session, call.func)
        read = TENSOR.statement.get(name or "")
        if read is not None:
            return read(session, call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "vstore":
            return vector_store(session, call)
        expanded = expand_statement(session, call)
        if expanded is not None:
            return expanded
    value = session.value(call)
    if value is None and isinstance(call, ast.Call):
        return None  # what happened while reading, such as adding to a list
    if not isinstance(value, Expr) or isinstance(value, PrimVar):
        raise session.fail("W115", f"a statement of {describe(value)} does nothing", tree)
    return Evaluate(value, span=session.span(tree))


@TENSOR.statement("T.evaluate")
def _evaluate(session: TensorSession, tree: ast.Call) -> Any:
    inner = tree.args[0] if len(tree.args) == 1 else None
    name = dotted_name(session, inner.func) if isinstance(inner, ast.Call) else None
    statement = TENSOR.statement.get(name) if name in _JUMPS else None
    if statement is not None and isinstance(inner, ast.Call):
        return statement(session, inner)
    if isinstance(inner, ast.Call) and dotted_name(session, inner.func) == "T.StringImm":
        return Evaluate(session.value(inner), span=session.span(tree))
    return Evaluate(bind_arguments(session, CLAUSES["T.evaluate"], tree)["value"], span=session.span(tree))


@TENSOR.statement("T.func_attr")
def _func_attr(session: TensorSession, tree: ast.Call) -> None:
    values = bind_arguments(session, ALL_FORMS["T.func_attr"], tree)
    if not isinstance(values["attrs"], FrozenMap):
        raise session.fail("W114", "T.func_attr takes a dictionary", tree)
    check_private(session, values["attrs"], tree)
    session.attrs = joined_attributes(session, session.attrs, values["attrs"], "function", tree)


@TENSOR.statement("T.static_assert")
def _static_assert(session: TensorSession, tree: ast.Call) -> None:
    values = plain_values(session, tree)
    if not values or not session.known(values[0], tree):
        raise session.fail("W114", "T.static_assert takes a condition known while reading", tree)
    if not values[0]:
        raise session.fail("W124", str(values[1]) if len(values) > 1 else "the static assertion is false", tree)


@TENSOR.statement("T.break_loop")
def _break_loop(session: TensorSession, tree: ast.Call) -> Stmt:
    return Break(span=session.span(tree))


@TENSOR.statement("T.continue_loop")
def _continue_loop(session: TensorSession, tree: ast.Call) -> Stmt:
    return Continue(span=session.span(tree))


@TENSOR.statement("T.ret")
def _ret(session: TensorSession, tree: ast.Call) -> Stmt:
    values = plain_values(session, tree)
    return Return(as_prim(session, values[0], tree) if values else None, span=session.span(tree))


@TENSOR.tree(ast.Assign)
def _assign(session: TensorSession, tree: ast.Assign) -> Any:
    if len(tree.targets) != 1:
        return _assign_all(session, tree)
    target = tree.targets[0]
    if isinstance(target, ast.Subscript):
        return store_element(session, target, tree.value, tree)
    if isinstance(target, (ast.Tuple, ast.List)):
        return _assign_many(session, target, tree.value, tree)
    if isinstance(target, ast.Name):
        return assign_name(session, target, tree.value, None, tree)
    raise session.fail("W115", "only names and buffer elements can be assigned", target)


def _assign_all(session: TensorSession, tree: ast.Assign) -> list[Stmt]:
    """`a = b[i] = e`: the value is computed once."""
    value = session.value(tree.value)
    made: list[Any] = []
    if isinstance(value, PrimExpr) and not isinstance(value, (IntImm, FloatImm, PrimVar)):
        var = PrimVar("value", value.dtype, span=session.span(tree.value))
        made.append(Bind(var, value, span=session.span(tree)))
        value = var
    for target in tree.targets:
        one = ast.copy_location(ast.Assign([target], KnownValue(value, tree.value)), tree)
        part = _assign(session, one)
        made.extend(part if isinstance(part, list) else [part])
    return [part for part in made if part is not None]


def _assign_many(session: TensorSession, target: ast.Tuple | ast.List, tree: ast.expr, statement: ast.stmt) -> Any:
    names = [item for item in target.elts if isinstance(item, ast.Name)]
    name = dotted_name(session, tree.func) if isinstance(tree, ast.Call) else None
    if len(names) != len(target.elts):
        if name == "T.axis.remap" and isinstance(tree, ast.Call):
            remap_starred(session, target, tree)
            return None
        return _assign_parts(session, target, session.value(tree), tree, statement)
    if name == "T.axis.remap" and isinstance(tree, ast.Call):
        remap_axes(session, names, tree)
        return None
    if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(names):
        parts = [assign_name(session, item, part, None, statement) for item, part in zip(names, tree.elts, strict=True)]
        return [part for made in parts for part in (made if isinstance(made, list) else [made]) if part is not None]
    return _assign_parts(session, target, session.value(tree), tree, statement)


def _assign_parts(
    session: TensorSession, target: ast.Tuple | ast.List, values: Any, tree: ast.expr, statement: ast.stmt
) -> list[Any]:
    """`a, (b, *c) = values`."""
    if not isinstance(values, (tuple, list, range)):
        raise session.fail("W115", f"cannot unpack {describe(values)} into {len(target.elts)} names", statement)
    made: list[Any] = []
    for item, value in unpack_targets(session, target, values, target):
        one = ast.copy_location(ast.Assign([item], KnownValue(value, tree)), statement)
        part = _assign(session, one)
        made.extend(part if isinstance(part, list) else [part])
    return [part for part in made if part is not None]


def assign_name(
    session: TensorSession, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt
) -> Any:
    """`name = value`: what its form makes of it, or a value."""
    name = dotted_name(session, tree.func) if isinstance(tree, ast.Call) else None
    read = TENSOR.assigned.get(name or "")
    if read is not None and isinstance(tree, ast.Call):
        return read(session, target, tree)
    dtype = symbol_declaration(session, tree)
    if dtype is not None:
        session.scope.names[target.id] = session.level.symbol_value(session, target.id, target)
        return None
    pointer = handle_annotation(session, tree, target) if name in POINTERS else None
    if pointer is not None:
        session.scope.names[target.id] = pointer
        return None
    if annotation is None and names_module(session, tree):
        session.scope.names[target.id] = session.module
        return None
    buffer = buffer_expression(session, tree, target.id, target)
    if buffer is not None:
        session.scope.names[target.id] = buffer
        if buffer.data is None:
            session.declared.add(buffer)
            if target.id in session.realized:
                return None
        return DeclBuffer(buffer, span=session.span(statement))
    return _assign_value(session, target, tree, annotation, statement)


def _assign_value(
    session: TensorSession, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt
) -> Any:
    """`x = e`: a store into a local scalar, a new one, an immutable binding, or a plain value."""
    known = session.scope.get(target.id)
    if isinstance(known, Buffer) and (known.name in session.scalars or is_one_element(session, known)):
        return store_into(session, known, (index_const(0),), session.value(tree), statement)
    view = declare_view(session, target, tree, statement)
    if view is not None:
        return view
    value = session.value(tree)
    if isinstance(known, Buffer) and any(known is param for param in session.params):
        hint = f"`{target.id}[...] = ...` writes elements: give {known.ndim} indices"
        raise session.fail("W115", f"`{target.id}` is a parameter: another value of that name is lost", target, hint)
    dtype, is_let = declared_type(session, annotation)
    _refuse_taken(session, known, target)
    repeated = session.assigned.get(target.id, 0) > 1 and not is_let
    if annotation is None and _is_static(session, value, repeated, target):
        session.scope.names[target.id] = value
        return None
    made = as_prim(session, value, tree, dtype.dtype if dtype is not None and dtype.dtype != "handle" else None)
    if dtype is not None and isinstance(made, PrimCall) and made.dtype == "void":
        made = replace(made, dtype=dtype.dtype)
    if dtype is not None and annotation is not None:
        _check_declared(session, target, made, dtype.dtype, is_let, annotation)
    if dtype is not None and dtype.dtype not in ("handle", made.dtype):
        made = session.fold(lambda: cast(dtype.dtype, made), tree)
    if repeated:
        return new_local_scalar(session, target, made, statement)
    return bind_to_name(session, target, made, dtype, statement)


@TENSOR.tree(ast.AnnAssign)
def _annotated(session: TensorSession, tree: ast.AnnAssign) -> Any:
    if not isinstance(tree.target, ast.Name):
        raise session.fail("W115", "only names take annotations", tree)
    if tree.value is None:
        dtype, _ = declared_type(session, tree.annotation)
        assert dtype is not None
        buffer = Buffer(tree.target.id, (1,), dtype.dtype, "local", span=session.span(tree.target))
        session.scalars = session.scalars | {tree.target.id}
        session.scope.names[tree.target.id] = buffer
        return AllocBuffer(buffer, span=session.span(tree))
    return assign_name(session, tree.target, tree.value, tree.annotation, tree)


def bind_to_name(
    session: TensorSession, target: ast.Name, value: PrimExpr, declared: PrimVar | None, statement: ast.AST
) -> Stmt:
    """A new immutable name; a pointer is what its declaration says it points to."""
    pointee, scope = (declared.pointee, declared.scope) if declared is not None else (None, "global")
    var = PrimVar(target.id, value.dtype, pointee, scope, span=session.span(target))
    session.scope.names[target.id] = var
    return Bind(var, value, span=session.span(statement))


@TENSOR.assigned("T.bind")
def _bind_call(session: TensorSession, target: ast.Name, tree: ast.Call) -> Stmt:
    values = bind_arguments(session, CLAUSES["T.bind"], tree)
    var = _declared_by_name(session, values["var"]) if values["var"] is not None else None
    if var is None:
        var = PrimVar(target.id, values["value"].dtype, span=session.span(target))
    session.scope.names[target.id] = var
    return Bind(var, values["value"], span=session.span(tree))


def _declared_by_name(session: TensorSession, tree: ast.expr) -> PrimVar | None:
    """The variable that `var=` names, which was declared before; None for `var=None`."""
    found = session.value(tree)
    if found is None:
        return None
    if not isinstance(found, PrimVar) or found in session.params or found in session.loops:
        hint = "declare it before: `v = T.float32()`"
        raise session.fail("W114", f"expected a declared variable, got {describe(found)}", tree, hint)
    return found


def bind_variable(session: TensorSession, tree: ast.Call) -> Bind:
    """`T.bind(value, var=v)`: a declared variable has the value from here on."""
    values = bind_arguments(session, CLAUSES["T.bind"], tree)
    var = _declared_by_name(session, values["var"]) if values["var"] is not None else None
    if var is None:
        raise session.fail("W114", "T.bind gives a value a name", tree, "write `v = T.bind(value)`")
    if var.dtype != values["value"].dtype:
        raise session.fail("W123", f"'{var.name}' is {var.dtype}, the value is {values['value'].dtype}", tree)
    return Bind(var, values["value"], span=session.span(tree))


def _is_static(session: TensorSession, value: Any, repeated: bool, target: ast.Name) -> bool:
    """Whether a name only stands for a value while reading; W115 where it would change as the kernel runs."""
    if isinstance(value, (PrimExpr, BufferRegion)):
        return False
    if not repeated or isinstance(value, (Macro, ModuleScope)):
        return True
    if isinstance(value, (bool, int, float, Buffer)):
        return False
    known = session.scope.names.get(target.id, MISSING)
    if known is not MISSING and not isinstance(known, (PrimExpr, Buffer)):
        return True  # bound anew in the block that bound it
    if session.scope.get(target.id) is MISSING:
        return True
    raise session.fail(
        "W115",
        f"'{target.id}' is bound by an outer block: {describe(value)} cannot be stored as the kernel runs",
        target,
        "use another name",
    )


def _refuse_taken(session: TensorSession, known: Any, target: ast.Name) -> None:
    """W118: a parameter, or a variable of a loop or block, is not assigned."""
    if not isinstance(known, PrimVar):
        return
    of_block = session.block is not None and any(item.var is known for item in session.block.iter_vars)
    what = "parameter" if known in session.params else "loop variable" if known in session.loops else ""
    if what or of_block:
        what = what or "block variable"
        raise session.fail("W118", f"'{target.id}' is a {what}: it is not assigned", target, "use another name")


def _check_declared(
    session: TensorSession, target: ast.Name, value: PrimExpr, dtype: str, is_let: bool, annotation: ast.expr
) -> None:
    """W123: a name that stands for a value has its dtype; a declared integer is no float."""
    lossy = dtypes.is_integer(dtype) and dtypes.is_float(value.dtype)
    if lossy or (is_let and dtype not in ("handle", value.dtype)):
        message = f"'{target.id}' is declared {dtype}, the value is {value.dtype}"
        raise session.fail("W123", message, annotation, f'T.Cast("{dtype}", ...)')
