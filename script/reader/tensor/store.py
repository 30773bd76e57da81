"""Reading stores: into elements and vectors of buffers, into local scalars.

    store ::= A[i, ...] = value | A[i, ...] += value | x = value | x += value
            | A.vstore(indices, value) | T.masked_store(A, value, i, ..., mask)

The value takes the dtype of the buffer where nothing is lost by it; W123 where a float would become an integer.
"""

from __future__ import annotations

import ast
from typing import Any

from weft import dtypes
from weft.ir.kernel.prim import cast, const
from weft.ir.node import replace
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Evaluate,
    PrimCall,
    PrimExpr,
    Ramp,
    Range,
    Stmt,
)
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import BINARY_BY_TREE
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.scope import describe
from weft.script.reader.tensor.buffer import read_indices
from weft.script.reader.tensor.intrinsic import masked_indices, plain_values, read_predicate
from weft.script.reader.tensor.scalar import as_prim, extent_of, index_const, read_scalar, vector_indices
from weft.script.reader.tensor.session import TensorSession

__all__ = ["is_one_element", "new_local_scalar", "store_element", "store_into", "vector_store"]


def store_element(session: TensorSession, target: ast.Subscript, tree: ast.expr, statement: ast.stmt) -> Stmt:
    """`A[i, ...] = value`."""
    base = session.value(target.value)
    if not isinstance(base, Buffer):
        raise session.fail("W114", f"{describe(base)} is not a buffer", target.value)
    indices = _store_indices(session, base, target)
    return store_into(session, base, indices, session.value(tree), statement, tree)


def _store_indices(session: TensorSession, buffer: Buffer, target: ast.Subscript) -> tuple[PrimExpr, ...]:
    indices = read_indices(session, buffer, target)
    if any(isinstance(index, Range) for index in indices):
        region = tuple(index if isinstance(index, Range) else Range(extent_of(index), 1) for index in indices)
        return vector_indices(session, BufferRegion(buffer, region), target)
    return tuple(indices)  # type: ignore[arg-type]


def store_into(
    session: TensorSession,
    buffer: Buffer,
    indices: tuple[PrimExpr, ...],
    value: Any,
    statement: ast.AST,
    tree: ast.AST | None = None,
) -> Stmt:
    """A store of a value, in the dtype of the buffer."""
    place = tree or statement
    lanes = dtypes.lanes(indices[-1].dtype) if indices else 1
    wanted = dtypes.with_lanes(buffer.dtype, dtypes.lanes(buffer.dtype) * lanes)
    made = as_prim(session, value, place, wanted)
    if made.dtype != wanted:
        made = _converted(session, made, wanted, buffer, place)
    return BufferStore(buffer, made, indices, span=session.span(statement))


def _converted(session: TensorSession, value: PrimExpr, wanted: str, buffer: Buffer, tree: ast.AST) -> PrimExpr:
    """A value in the dtype of the buffer it is stored into: a store converts between integers and between floats.

    W123 where a float would become an integer, or the lanes differ.
    """
    if isinstance(value, PrimCall) and value.dtype == "void":
        return replace(value, dtype=wanted)  # a call of a device that does not say what it gives
    same = dtypes.lanes(value.dtype) in (1, dtypes.lanes(wanted))
    scalar, target = dtypes.element(value.dtype), dtypes.element(wanted)
    widens = dtypes.promote(value.dtype, wanted) == wanted
    kind = all(map(dtypes.is_float, (scalar, target))) or all(map(dtypes.is_integer, (scalar, target)))
    if same and (widens or kind):
        return session.fold(lambda: cast(wanted, value), tree)
    raise session.fail(
        "W123",
        f"'{buffer.name}' holds {wanted}, the value is {value.dtype}",
        tree,
        f'write `T.Cast("{wanted}", ...)`',
    )


def new_local_scalar(session: TensorSession, target: ast.Name, value: PrimExpr, statement: ast.stmt) -> list[Stmt]:
    """A name that is assigned more than once: memory of one element."""
    buffer = Buffer(target.id, (1,), value.dtype, "local", span=session.span(target))
    session.scalars = session.scalars | {target.id}
    session.scope.names[target.id] = buffer
    store = BufferStore(buffer, value, (index_const(0),), span=session.span(statement))
    return [AllocBuffer(buffer, span=session.span(statement)), store]


def is_one_element(session: TensorSession, buffer: Buffer) -> bool:
    """Whether a buffer is a parameter of one element, which the newest printers write like a local scalar."""
    return buffer.shape == (1,) and any(buffer is param for param in session.params)


def vector_store(session: TensorSession, tree: ast.Call) -> Stmt:
    """`A.vstore(indices, value)`."""
    assert isinstance(tree.func, ast.Attribute)
    buffer = session.value(tree.func.value)
    values = plain_values(session, tree, ("predicate",))
    if not isinstance(buffer, Buffer) or len(values) != 2:
        raise session.fail("W113", "vstore takes indices and a value", tree)
    indices = [
        as_prim(session, index, tree) for index in (values[0] if isinstance(values[0], (tuple, list)) else [values[0]])
    ]
    value = as_prim(session, values[1], tree)
    lanes = dtypes.lanes(value.dtype)
    if lanes > 1 and dtypes.lanes(indices[-1].dtype) == 1:
        indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), lanes)
    return BufferStore(buffer, value, tuple(indices), read_predicate(session, tree), span=session.span(tree))


@TENSOR.statement("T.masked_store")
def _masked_store(session: TensorSession, tree: ast.Call) -> Stmt:
    """`T.masked_store(A, value, *indices, mask)`: a store with a predicate; a call where A is a pointer."""
    target = session.value(tree.args[0]) if len(tree.args) > 3 and not tree.keywords else None
    if isinstance(target, Buffer):
        indices, mask = masked_indices(session, target, tree.args[2:], tree)
        if indices:
            value = read_scalar(session, tree.args[1])
            return BufferStore(target, value, indices, mask, span=session.span(tree))
    return Evaluate(read_scalar(session, tree), span=session.span(tree))


@TENSOR.tree(ast.AugAssign)
def _augmented(session: TensorSession, tree: ast.AugAssign) -> Any:
    kind = _kind_of(tree.op)
    right = session.value(tree.value)
    if isinstance(tree.target, ast.Name):
        known = session.level.lookup(session, tree.target.id, tree.target)
        if isinstance(known, Buffer) and known.name in session.scalars:
            left: Any = as_prim(session, known, tree.target)
            return store_into(session, known, (index_const(0),), apply_binary(session, kind, left, right, tree), tree)
        if session.known(known, tree) and session.known(right, tree):
            session.scope.names[tree.target.id] = apply_binary(session, kind, known, right, tree)
            return None
        raise session.fail("W115", f"'{tree.target.id}' is not a local scalar", tree.target)
    if not isinstance(tree.target, ast.Subscript):
        raise session.fail("W115", "only buffer elements and local scalars can be updated", tree)
    base = session.value(tree.target.value)
    if not isinstance(base, Buffer):
        raise session.fail("W114", f"{describe(base)} is not a buffer", tree.target)
    indices = _store_indices(session, base, tree.target)
    left = BufferLoad(base, indices, span=session.span(tree.target))
    return store_into(session, base, indices, apply_binary(session, kind, left, right, tree), tree)


def _kind_of(op: ast.operator) -> str:

    return BINARY_BY_TREE[type(op)]
