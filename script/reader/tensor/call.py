"""Reading calls of names of T, of functions of the module, and of methods of buffers."""

from __future__ import annotations

import ast
from typing import Any

from weft import dtypes
from weft.ir.graph import GlobalVar, StringImm
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import cast, const
from weft.ir.node import FrozenMap
from weft.ir.tensor import Buffer, BufferLoad, PrimCall, PrimExpr, PrimFunc, PrimVar, Ramp
from weft.ir.types import PrimType
from weft.script.forms.defaults import is_device_name
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import BUFFERS, CALLED_KINDS, CLAUSES, LOOPS, SCALARS, SCOPES
from weft.script.reader.expression.attributes import attribute_value
from weft.script.reader.expression.call import call_form, refuse_call
from weft.script.reader.expression.names import dtype_name, global_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.expression.values import attribute_of_object
from weft.script.reader.scope import describe
from weft.script.reader.tensor.declaration import symbol_declaration
from weft.script.reader.tensor.intrinsic import (
    as_call_argument,
    intrinsic_call,
    opaque_call,
    operator_call,
    plain_values,
    read_predicate,
    scalar_form,
    stated_dtype,
    typed_constant,
)
from weft.script.reader.tensor.scalar import address_of_data, as_prim, as_side
from weft.script.reader.tensor.session import TensorSession
from weft.script.source.text import MISSING

__all__ = ["attribute_of_scalar", "call_kernel", "call_tensor"]

_MASKS: dict[Any, str] = {1: "r", 2: "w", 3: "rw"}


def _call_scalar(session: TensorSession, name: str, tree: ast.Call) -> Any:
    """A call of a name of T."""
    read = TENSOR.value.get(name)
    if read is not None:
        return read(session, tree)
    if name in CALLED_KINDS:
        return operator_call(session, CALLED_KINDS[name], name, tree)
    if name in SCALARS:
        return scalar_form(session, name, tree)
    dtype = dtype_name(name)
    if dtype is not None:
        return typed_constant(session, dtype, tree)
    if name.startswith("T."):
        short = name[2:]
        if short in INTRINSICS:
            return intrinsic_call(session, short, tree)
        if name in BUFFERS or name in LOOPS or name in SCOPES or name in CLAUSES:
            raise session.fail("W114", f"`{name}` cannot stand inside an expression", tree)
        if is_device_name(short):
            return opaque_call(session, short, tree)
    return call_form(session, name, tree)


def call_tensor(session: TensorSession, name: str, tree: ast.Call) -> Any:
    """A call of a name of T; in what describes a buffer, a declaration is a symbol without a name."""
    if session.defining or name in ("T.var", "T.dyn"):
        dtype = symbol_declaration(session, tree)
        if dtype is not None and session.defining:
            return _unnamed_symbol(session, dtype, tree)
        if dtype is not None:
            raise session.fail("W114", "a symbol is declared by an assignment", tree, "`n = T.int64()`")
    return _call_scalar(session, name, tree)


def _unnamed_symbol(session: TensorSession, dtype: str, tree: ast.AST) -> PrimVar:
    taken = (session.variables, session.assigned, session.symbols)
    place = 0
    while any(f"s{place}" in names for names in taken) or session.scope.get(f"s{place}") is not MISSING:
        place += 1
    session.symbol_dtypes[f"s{place}"] = dtype
    return session.level.symbol_value(session, f"s{place}", tree)


def call_kernel(session: TensorSession, tree: ast.Call) -> Any:
    """A call of a function of the module, or a method of a buffer."""
    name = global_name(session, tree.func)
    if name is not None:
        callee = GlobalVar(name, session.span(tree.func))
        stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
        values = plain_values(session, tree, ("dtype",))
        dtype = session.constant(stated[0]) if stated else session.module.return_dtype(name)
        return PrimCall(
            callee, tuple(as_call_argument(session, value, tree) for value in values), dtype, span=session.span(tree)
        )
    if isinstance(tree.func, ast.Attribute):
        base = session.value(tree.func.value)
        return _method(session, base, tree.func.attr, tree)
    if isinstance(tree.func, ast.Name):
        found = session.level.lookup(session, tree.func.id, tree.func)
        if isinstance(found, PrimFunc):
            callee = GlobalVar(session.module.adopt(found, session.span(tree.func)), session.span(tree.func))
            dtype = found.ret_type.dtype if isinstance(found.ret_type, PrimType) else "void"
            args = tuple(as_call_argument(session, value, tree) for value in plain_values(session, tree))
            return PrimCall(callee, args, dtype, span=session.span(tree))
    return refuse_call(session, tree)


def _method(session: TensorSession, base: Any, name: str, tree: ast.Call) -> Any:
    if isinstance(base, Buffer):
        if name == "vload":
            return _vload(session, base, tree)
        if name == "access_ptr":
            return _access_ptr(session, base, tree)
    if isinstance(base, PrimExpr) and name == "astype":
        values = plain_values(session, tree)
        if len(values) == 1:
            return session.fold(lambda: cast(dtypes.check_dtype(values[0]), base), tree)
    raise session.fail("W115", f"{describe(base)} has no method '{name}' in a script", tree.func)


def _access_ptr(session: TensorSession, buffer: Buffer, tree: ast.Call) -> PrimExpr:
    """`A.access_ptr(access_mask, ptr_type, content_lanes, offset, extent)`: the offset counts elements.

    The rest only tells other compilers what is done with the pointer.
    """
    names = ("access_mask", "ptr_type", "content_lanes", "offset", "extent")
    values = dict(zip(names, plain_values(session, tree, names), strict=False))
    values.update({word.arg: session.value(word.value) for word in tree.keywords if word.arg in names})
    mask = values.pop("access_mask", None)
    mask = _MASKS.get(mask, mask)
    if len(tree.args) > len(names) or not isinstance(mask, str) or not mask or set(mask) - {"r", "w"}:
        raise session.fail("W113", "access_ptr takes a mask of `r` and `w` first", tree, 'A.access_ptr("rw")')
    offset = values.pop("offset", 0)
    plain = {"ptr_type": "handle", "content_lanes": 1, "extent": None}
    told = {key: value for key, value in values.items() if value != plain[key]}
    attrs = FrozenMap({key: attribute_value(session, value, tree) for key, value in told.items()})  # type: ignore[arg-type]
    args = (address_of_data(session, buffer, tree), StringImm(mask, span=session.span(tree)))
    pointer = PrimCall("access_ptr", args, "handle", attrs, span=session.span(tree))
    if isinstance(offset, int) and offset == 0:
        return pointer
    size = dtypes.bits(buffer.dtype) * dtypes.lanes(buffer.dtype)
    if size % 8:
        raise session.fail("W115", f"an offset into {buffer.dtype} may be inside a byte", tree)
    moved = apply_binary(session, "mul", as_side(session, offset, tree), size // 8, tree)
    args = (pointer, as_prim(session, moved, tree))
    return PrimCall("handle_add_byte_offset", args, "handle", span=session.span(tree))


def _vload(session: TensorSession, buffer: Buffer, tree: ast.Call) -> PrimExpr:
    values = plain_values(session, tree, ("dtype", "predicate"))
    indices = values[0] if values and isinstance(values[0], (tuple, list)) else values[:1]
    stated = [session.constant(keyword.value) for keyword in tree.keywords if keyword.arg == "dtype"] or values[1:2]
    lanes = dtypes.lanes(stated_dtype(session, stated[0], tree)) if stated else 1
    made = [as_prim(session, index, tree) for index in indices]
    if lanes > 1:
        made[-1] = Ramp(made[-1], const(1, made[-1].dtype), lanes)
    return BufferLoad(buffer, tuple(made), read_predicate(session, tree), span=session.span(tree))


def attribute_of_scalar(session: TensorSession, base: Any, tree: ast.Attribute) -> Any:
    """`A.data`, `A.shape`, `A.dtype`, `x.dtype` and the like."""
    if isinstance(base, Buffer):
        if tree.attr == "data":
            pointer = base.data is not None and not isinstance(base.data, PrimCall)
            return base.data if pointer else address_of_data(session, base, tree)
        if tree.attr == "source" and base.name in session.scalars:
            return base  # where a local scalar stands for what it holds
        if tree.attr == "elem_offset" and base.elem_offset is None:
            return 0  # a buffer that says nothing starts at its pointer
        if tree.attr in ("shape", "dtype", "ndim", "strides", "elem_offset", "scope", "name"):
            return getattr(base, tree.attr)
    if isinstance(base, PrimExpr) and tree.attr == "dtype":
        return base.dtype
    return attribute_of_object(session, base, tree)
