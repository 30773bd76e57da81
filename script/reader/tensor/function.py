"""Reading `@T.prim_func`: parameters, result, body.

Names follow Python's blocks: a loop variable is visible in its loop, a name bound in a block until the block ends.
"""

from __future__ import annotations

import ast
from dataclasses import replace as replaced
from typing import Any

from weft import dtypes
from weft.ir.deduction.infer import type_text
from weft.ir.node import replace
from weft.ir.tensor import Buffer, PrimFunc, PrimVar
from weft.ir.types import PrimType, TensorType, TupleType, Type
from weft.script.forms.reading import TENSOR
from weft.script.reader.definition import passed_parameters
from weft.script.reader.expression.level import AROUND
from weft.script.reader.expression.names import dotted_name, dtype_name
from weft.script.reader.expression.types import read_type
from weft.script.reader.recovery import attempt
from weft.script.reader.scope import ModuleScope, Scope
from weft.script.reader.tensor import control, macros, scopes, thread  # noqa: F401  their forms
from weft.script.reader.tensor.buffer import buffer_expression, element_of_buffer
from weft.script.reader.tensor.call import attribute_of_scalar, call_kernel, call_tensor
from weft.script.reader.tensor.declaration import handle_annotation, pointer_dtype
from weft.script.reader.tensor.intrinsic import intrinsic_instead, intrinsic_names, unknown_scalar
from weft.script.reader.tensor.macros import expand_tensor_macro, note_assignments
from weft.script.reader.tensor.scalar import (
    builtin_of_scalars,
    captured_scalar,
    combine_scalar,
    combine_scalars,
    conditional_scalar,
    declared_variable,
    lookup_scalar,
    scalar_of_text,
    symbol_variable,
    use_scalar_symbol,
)
from weft.script.reader.tensor.session import TensorSession
from weft.script.reader.tensor.statements import read_body, statement_list
from weft.script.reader.tvm import tvm_legacy, tvm_next  # noqa: F401  their forms
from weft.script.source.diagnostics import Consequence
from weft.script.source.text import Unit

__all__ = ["read_prim_func", "tensor_session"]


def read_prim_func(
    session: TensorSession,
    tree: ast.FunctionDef,
    *,
    private: bool = False,
    name: str | None = None,
    s_tir: bool = False,
) -> PrimFunc:
    """The function that a definition stands for."""
    session.s_tir = s_tir
    session.private = private
    arguments = passed_parameters(session, tree.args)
    for default in filter(None, arguments.values()):
        raise session.fail("W115", "a tensor-level function has no default arguments", default)
    note_assignments(session, tree.body)
    found = session.unit.noted
    session.defining = True
    for read in (_scalar_parameter, _buffer_parameter):  # shapes may mention a scalar parameter
        for argument in arguments:
            if argument.arg not in session.scope.names:
                attempt(session, argument, lambda argument=argument, read=read: read(session, argument))
    session.params = [session.scope.names[argument.arg] for argument in arguments]
    session.defining = False
    ret_type = _return_type(session, tree)
    session.scope = Scope(session.scope)
    body = read_body(session, tree.body, top=True)
    if session.unit.noted > found:
        raise Consequence("a statement could not be read")
    return PrimFunc(
        tuple(session.params),
        body,
        ret_type,
        private,
        session.attrs,
        name or tree.name,
        span=session.unit.name_span(tree),
        s_tir=s_tir,
    )


def _annotation(session: TensorSession, argument: ast.arg) -> ast.expr:
    if argument.annotation is None:
        raise session.fail(
            "W113", f"parameter '{argument.arg}' has no type", argument, 'write `x: T.Buffer((4,), "float32")`'
        )
    return argument.annotation


def _scalar_parameter(session: TensorSession, argument: ast.arg) -> None:
    annotation = _annotation(session, argument)
    made = handle_annotation(session, annotation, argument)
    if made is None and isinstance(annotation, ast.Attribute):
        dtype = dtype_name(dotted_name(session, annotation) or "")
        made = PrimVar(argument.arg, dtype, span=session.span(argument)) if dtype else None
    if made is not None:
        session.scope.names[argument.arg] = made
        if dtypes.is_integer(made.dtype) and made.dtype != "handle":
            session.variables.setdefault(argument.arg, made)


def _buffer_parameter(session: TensorSession, argument: ast.arg) -> None:
    annotation = _annotation(session, argument)
    made = buffer_expression(session, annotation, argument.arg, place=argument)
    value: Any = None
    if made is None:
        value = session.value(annotation)
        if isinstance(value, Buffer):
            made = _described_buffer(session, value, argument)
        elif isinstance(value, PrimVar):
            made = PrimVar(argument.arg, value.dtype, value.pointee, value.scope, span=session.span(argument))
        elif isinstance(value, PrimType):
            made = PrimVar(argument.arg, value.dtype, span=session.span(argument))
    if made is None:
        raise session.fail(
            "W114",
            f"parameter '{argument.arg}': expected T.Buffer(...), T.handle or a dtype such as T.int32",
            annotation,
            "a function of tensors is decorated with @R.function" if isinstance(value, TensorType) else None,
        )
    session.scope.names[argument.arg] = made
    if isinstance(made, Buffer):
        session.buffer_places[made] = argument


def _described_buffer(session: TensorSession, value: Buffer, argument: ast.arg) -> Buffer:
    """A parameter described by a buffer outside the script: variables in its shape become symbols."""
    sizes = tuple(
        session.level.dim_text(session, extent.name, argument.annotation or ast.Constant(0))
        if isinstance(extent, PrimVar)
        else extent
        for extent in value.shape
    )
    return replace(value, name=argument.arg, shape=sizes, span=session.span(argument))


def _return_type(session: TensorSession, tree: ast.FunctionDef) -> Type | None:
    if tree.returns is None or (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
        return None
    ty = read_type(session, tree.returns)
    if not isinstance(ty, (PrimType, TupleType)):
        raise session.fail("W114", f"a tensor-level function returns a scalar, not a {type_text(ty)}", tree.returns)
    return ty


_LEVEL = replaced(
    AROUND,
    letter="T",
    readers=TENSOR,
    loop_hint="loop over range(n), T.grid(n, m), T.serial(n), T.parallel(n), T.vectorized(n), T.unroll(n)",
    lookup=lookup_scalar,
    unknown=unknown_scalar,
    extra_names=intrinsic_names,
    instead_of=intrinsic_instead,
    captured=captured_scalar,
    symbol_value=symbol_variable,
    use_symbol=use_scalar_symbol,
    declared_outside=declared_variable,
    dim_text=scalar_of_text,
    attribute_of=attribute_of_scalar,
    pointer_dtype=pointer_dtype,
    subscript_of=element_of_buffer,
    combine=combine_scalars,
    combine_unary=combine_scalar,
    conditional=conditional_scalar,
    call_named=call_tensor,
    call_other=call_kernel,
    builtin_of=builtin_of_scalars,
    expand_body=expand_tensor_macro,
    statement_list=statement_list,
)


def tensor_session(unit: Unit, module: ModuleScope) -> TensorSession:
    """A session for a tensor-level function."""
    return TensorSession(unit, module, _LEVEL)
