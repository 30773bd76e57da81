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
from weft.script.reader.base import describe
from weft.script.reader.tensor.scalar import extent_of, index_const
from weft.script.reader.tensor.thread import ThreadReader

__all__ = ["StoreReader"]


class StoreReader(ThreadReader):
    """Reads stores."""

    def _store(self, target: ast.Subscript, tree: ast.expr, statement: ast.stmt) -> Stmt:
        base = self.value(target.value)
        if not isinstance(base, Buffer):
            raise self.fail("W114", f"{describe(base)} is not a buffer", target.value)
        indices = self._store_indices(base, target)
        return self._store_into(base, indices, self.value(tree), statement, tree)

    def _store_indices(self, buffer: Buffer, target: ast.Subscript) -> tuple[PrimExpr, ...]:
        indices = self.indices(buffer, target)
        if any(isinstance(index, Range) for index in indices):
            region = tuple(index if isinstance(index, Range) else Range(extent_of(index), 1) for index in indices)
            return self._vector_indices(BufferRegion(buffer, region), target)
        return tuple(indices)  # type: ignore[arg-type]

    def _store_into(
        self, buffer: Buffer, indices: tuple[PrimExpr, ...], value: Any, statement: ast.AST, tree: ast.AST | None = None
    ) -> Stmt:
        place = tree or statement
        lanes = dtypes.lanes(indices[-1].dtype) if indices else 1
        wanted = dtypes.with_lanes(buffer.dtype, dtypes.lanes(buffer.dtype) * lanes)
        made = self.as_prim(value, place, wanted)
        if made.dtype != wanted:
            made = self._converted(made, wanted, buffer, place)
        return BufferStore(buffer, made, indices, span=self.span(statement))

    def _converted(self, value: PrimExpr, wanted: str, buffer: Buffer, tree: ast.AST) -> PrimExpr:
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
            return self.fold(lambda: cast(wanted, value), tree)
        raise self.fail(
            "W123",
            f"'{buffer.name}' holds {wanted}, the value is {value.dtype}",
            tree,
            f'write `T.Cast("{wanted}", ...)`',
        )

    def _new_scalar(self, target: ast.Name, value: PrimExpr, statement: ast.stmt) -> list[Stmt]:
        buffer = Buffer(target.id, (1,), value.dtype, "local", span=self.span(target))
        self.scalars = self.scalars | {target.id}
        self.scope.names[target.id] = buffer
        store = BufferStore(buffer, value, (index_const(0),), span=self.span(statement))
        return [AllocBuffer(buffer, span=self.span(statement)), store]

    def _is_one_element(self, buffer: Buffer) -> bool:
        """Whether a buffer is a parameter of one element, which the newest printers write like a local scalar."""
        return buffer.shape == (1,) and any(buffer is param for param in self.params)

    def _vstore(self, tree: ast.Call) -> Stmt:
        assert isinstance(tree.func, ast.Attribute)
        buffer = self.value(tree.func.value)
        values = self._values(tree, ("predicate",))
        if not isinstance(buffer, Buffer) or len(values) != 2:
            raise self.fail("W113", "vstore takes indices and a value", tree)
        indices = [
            self.as_prim(index, tree) for index in (values[0] if isinstance(values[0], (tuple, list)) else [values[0]])
        ]
        value = self.as_prim(values[1], tree)
        lanes = dtypes.lanes(value.dtype)
        if lanes > 1 and dtypes.lanes(indices[-1].dtype) == 1:
            indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), lanes)
        return BufferStore(buffer, value, tuple(indices), self._predicate(tree), span=self.span(tree))

    def _masked_store(self, tree: ast.Call) -> Stmt:
        """`T.masked_store(A, value, *indices, mask)`: a store with a predicate; a call where A is a pointer."""
        target = self.value(tree.args[0]) if len(tree.args) > 3 and not tree.keywords else None
        if isinstance(target, Buffer):
            indices, mask = self.masked_indices(target, tree.args[2:], tree)
            if indices:
                value = self.prim(tree.args[1])
                return BufferStore(target, value, indices, mask, span=self.span(tree))
        return Evaluate(self.prim(tree), span=self.span(tree))

    def _augmented(self, tree: ast.AugAssign) -> Any:
        kind = _kind_of(tree.op)
        right = self.value(tree.value)
        if isinstance(tree.target, ast.Name):
            known = self.lookup(tree.target.id, tree.target)
            if isinstance(known, Buffer) and known.name in self.scalars:
                left: Any = self.as_prim(known, tree.target)
                return self._store_into(known, (index_const(0),), self.binary(kind, left, right, tree), tree)
            if self.known(known, tree) and self.known(right, tree):
                self.scope.names[tree.target.id] = self.binary(kind, known, right, tree)
                return None
            raise self.fail("W115", f"'{tree.target.id}' is not a local scalar", tree.target)
        if not isinstance(tree.target, ast.Subscript):
            raise self.fail("W115", "only buffer elements and local scalars can be updated", tree)
        base = self.value(tree.target.value)
        if not isinstance(base, Buffer):
            raise self.fail("W114", f"{describe(base)} is not a buffer", tree.target)
        indices = self._store_indices(base, tree.target)
        left = BufferLoad(base, indices, span=self.span(tree.target))
        return self._store_into(base, indices, self.binary(kind, left, right, tree), tree)


def _kind_of(op: ast.operator) -> str:
    from weft.script.forms.syntax import BINARY_BY_TREE

    return BINARY_BY_TREE[type(op)]
