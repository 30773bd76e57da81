"""Reading what the newest release of TVM spells in a way of its own, in the terms of all of them.

    T.device_entry()                        T.attr({"tirx.device_entry": True})
    bx, by = T.cta_id([4, 2])               a value for each: calls named cta_id, thread_id, ... with their extents
    T.hint("message", key=value)            an attribute around the rest of the block, or `with T.hint(...):`
    with T.If(c): with T.Then(): ...        if c: ...
    with T.While(c):                        while c:
    x = T.alloc_scalar("float32", "local")  a local scalar
    T.buffer_store(A, value, [i])           A[i] = value
    T.BufferLoad(A, [i])                    A[i]

Calls of scope ids are kept as they are; no code generator knows them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.ir.attrs import DEVICE_ENTRY
from weft.ir.kernel.prim import const
from weft.ir.node import FrozenMap, replace
from weft.ir.tensor import AttrStmt, Buffer, BufferLoad, BufferStore, IfThenElse, PrimCall, PrimExpr, Stmt, While
from weft.script.forms.defaults import HINT, SCOPE_IDS
from weft.script.forms.reading import TENSOR
from weft.script.reader.expression.attributes import attribute_value, read_literal
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.scope import describe
from weft.script.reader.tensor.declaration import alloc_in_scope
from weft.script.reader.tensor.intrinsic import plain_values
from weft.script.reader.tensor.scalar import as_bool, as_index, as_prim
from weft.script.reader.tensor.session import TensorSession
from weft.script.reader.tensor.statements import nested_one
from weft.script.reader.tensor.store import store_into
from weft.script.reader.tvm.tvm_legacy import as_mask, named_arguments

__all__ = []


@TENSOR.statement("T.device_entry")
def _device_entry(session: TensorSession, tree: ast.Call) -> Callable[[Stmt], Stmt]:
    if tree.args or tree.keywords:
        raise session.fail("W113", "T.device_entry takes no arguments", tree)
    entry = const(True, "bool")
    return lambda body: AttrStmt(None, DEVICE_ENTRY, entry, body, span=session.span(tree))


@TENSOR.value(*(f"T.{name}" for name in SCOPE_IDS))
def _scope_id(session: TensorSession, tree: ast.Call) -> Any:
    """`T.cta_id([4, 2])`: a call for each extent, told apart by its axis; without extents one call."""
    name = (dotted_name(session, tree.func) or "")[2:]
    allowed = SCOPE_IDS[name]
    given = dict(zip(allowed, plain_values(session, tree, allowed), strict=False))
    given.update({word.arg: session.value(word.value) for word in tree.keywords if word.arg in allowed})
    if len(tree.args) > len(allowed):
        raise session.fail("W113", f"T.{name} takes at most {len(allowed)} arguments", tree)
    extents = given.pop("extents", None)
    if extents is not None and not isinstance(extents, (tuple, list)):
        raise session.fail("W114", f"T.{name} takes a list of extents, got {describe(extents)}", tree)
    dtype = session.fold(lambda: dtypes.check_dtype(given.pop("dtype", "int32")), tree)
    if dtype not in ("int32", "uint32"):
        raise session.fail("W123", f"T.{name} is an int32 or uint32, not {dtype}", tree)
    told = {key: attribute_value(session, value, tree) for key, value in given.items() if value is not None}  # type: ignore[arg-type]
    args = tuple(as_prim(session, extent, tree) for extent in extents or ())
    made = [
        PrimCall(name, args, dtype, FrozenMap({**told, "axis": axis} if len(args) > 1 else told), session.span(tree))
        for axis in range(max(1, len(args)))
    ]
    return made[0] if len(made) == 1 else tuple(made)


@TENSOR.statement("T.hint")
def _hint(session: TensorSession, tree: ast.Call) -> Callable[[Stmt], Stmt]:
    message = session.value(tree.args[0]) if tree.args else ""
    if len(tree.args) > 1 or not isinstance(message, str):
        raise session.fail("W113", "T.hint takes a message and named attributes", tree)
    told: dict[str, Any] = {}
    for word in tree.keywords:
        if word.arg is None:
            raise session.fail("W115", "** is not part of the script", word.value)
        told[word.arg] = read_literal(session, word.value)
    attrs = FrozenMap(told)
    return lambda body: AttrStmt(message, HINT, attrs, body, span=session.span(tree))


@TENSOR.scope("T.hint")
def _with_hint(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    return _hint(session, call)(nested_one(session, tree.body))


@TENSOR.scope("T.While")
def _with_while(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    condition = as_bool(session, as_prim(session, _only(session, call), call), call, truthy=True)
    return While(condition, nested_one(session, tree.body), span=session.span(call))


@TENSOR.scope("T.If")
def _with_if(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
    condition = as_bool(session, as_prim(session, _only(session, call), call), call, truthy=True)
    parts: dict[str, Stmt] = {}
    for statement in tree.body:
        inner = statement.items[0].context_expr if isinstance(statement, ast.With) else None
        name = dotted_name(session, inner.func) if isinstance(inner, ast.Call) else None
        expected = "T.Else" if "T.Then" in parts else "T.Then"
        if name != expected or not isinstance(statement, ast.With) or "T.Else" in parts:
            raise session.fail("W115", "T.If holds `with T.Then():` and at most one `with T.Else():`", statement)
        parts[expected] = nested_one(session, statement.body)
    if not parts:
        raise session.fail("W115", "T.If holds `with T.Then():` and at most one `with T.Else():`", tree)
    return IfThenElse(condition, parts["T.Then"], parts.get("T.Else"), span=session.span(call))


def _only(session: TensorSession, tree: ast.Call) -> Any:
    values = plain_values(session, tree)
    if len(values) != 1:
        raise session.fail("W113", f"`{ast.unparse(tree.func)}` takes a condition", tree)
    return values[0]


@TENSOR.statement("T.buffer_store")
def _buffer_store(session: TensorSession, tree: ast.Call) -> Stmt:
    values = named_arguments(session, tree, ("buffer", "value", "indices", "predicate"), 3)
    made = store_into(session, *_element(session, values[0], values[2], tree), values[1], tree)
    mask = as_mask(session, values[3:], tree)
    return replace(made, predicate=mask) if mask is not None and isinstance(made, BufferStore) else made


@TENSOR.value("T.BufferLoad")
def _buffer_load(session: TensorSession, tree: ast.Call) -> PrimExpr:
    values = named_arguments(session, tree, ("buffer", "indices", "predicate"), 2)
    buffer, indices = _element(session, values[0], values[1], tree)
    return BufferLoad(buffer, indices, as_mask(session, values[2:], tree), span=session.span(tree))


def _element(session: TensorSession, buffer: Any, indices: Any, tree: ast.Call) -> tuple[Buffer, tuple[PrimExpr, ...]]:
    parts = indices if isinstance(indices, (tuple, list)) else (indices,)
    if not isinstance(buffer, Buffer):
        raise session.fail("W114", f"expected a buffer, got {describe(buffer)}", tree)
    if len(parts) != buffer.ndim:
        raise session.fail("W121", f"'{buffer.name}' has {buffer.ndim} dimensions, got {len(parts)} indices", tree)
    return buffer, tuple(as_index(session, part, tree) for part in parts)


@TENSOR.assigned("T.alloc_scalar")
def _alloc_scalar(session: TensorSession, target: ast.Name, tree: ast.Call) -> Stmt:
    return alloc_in_scope(session, "T.alloc_scalar", None)(target, tree)
