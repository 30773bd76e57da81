"""Reading what the newest release of the field spells in a way of its own, in the terms of all of them.

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
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import dtypes
from weft.ir.kernel.prim import const
from weft.ir.node import FrozenMap, replace
from weft.ir.tensor import AttrStmt, Buffer, BufferLoad, BufferStore, IfThenElse, PrimCall, PrimExpr, Stmt, While
from weft.script.forms.defaults import HINT, SCOPE_IDS
from weft.script.reader.base import describe
from weft.script.reader.tvm.tvm_legacy import EarlyReader

__all__ = ["RecentReader"]


class RecentReader(EarlyReader):
    """Reads the spellings of the newest release."""

    def nested_one(self, trees: Sequence[ast.stmt]) -> Stmt:
        """The statements of an inner block as one (see `read_tensor`)."""
        raise NotImplementedError

    # -----------------------------------------------------------------------------------------------------------------
    # Devices
    # -----------------------------------------------------------------------------------------------------------------

    def _device_entry(self, tree: ast.Call) -> Callable[[Stmt], Stmt]:
        if tree.args or tree.keywords:
            raise self.fail("W113", "T.device_entry takes no arguments", tree)
        entry = const(True, "bool")
        return lambda body: AttrStmt(None, "tirx.device_entry", entry, body, span=self.span(tree))

    def _scope_id(self, tree: ast.Call) -> Any:
        """`T.cta_id([4, 2])`: a call for each extent, told apart by its axis; without extents one call."""
        name = (self.dotted(tree.func) or "")[2:]
        allowed = SCOPE_IDS[name]
        given = dict(zip(allowed, self._values(tree, allowed), strict=False))
        given.update({word.arg: self.value(word.value) for word in tree.keywords if word.arg in allowed})
        if len(tree.args) > len(allowed):
            raise self.fail("W113", f"T.{name} takes at most {len(allowed)} arguments", tree)
        extents = given.pop("extents", None)
        if extents is not None and not isinstance(extents, (tuple, list)):
            raise self.fail("W114", f"T.{name} takes a list of extents, got {describe(extents)}", tree)
        dtype = self.fold(lambda: dtypes.check_dtype(given.pop("dtype", "int32")), tree)
        if dtype not in ("int32", "uint32"):
            raise self.fail("W123", f"T.{name} is an int32 or uint32, not {dtype}", tree)
        told = {key: self.attribute_value(value, tree) for key, value in given.items() if value is not None}  # type: ignore[arg-type]
        args = tuple(self.as_prim(extent, tree) for extent in extents or ())
        made = [
            PrimCall(name, args, dtype, FrozenMap({**told, "axis": axis} if len(args) > 1 else told), self.span(tree))
            for axis in range(max(1, len(args)))
        ]
        return made[0] if len(made) == 1 else tuple(made)

    # -----------------------------------------------------------------------------------------------------------------
    # Statements and scopes
    # -----------------------------------------------------------------------------------------------------------------

    def _hint(self, tree: ast.Call) -> Callable[[Stmt], Stmt]:
        message = self.value(tree.args[0]) if tree.args else ""
        if len(tree.args) > 1 or not isinstance(message, str):
            raise self.fail("W113", "T.hint takes a message and named attributes", tree)
        told: dict[str, Any] = {}
        for word in tree.keywords:
            if word.arg is None:
                raise self.fail("W115", "** is not part of the script", word.value)
            told[word.arg] = self.read_literal(word.value)
        attrs = FrozenMap(told)
        return lambda body: AttrStmt(message, HINT, attrs, body, span=self.span(tree))

    def _with_hint(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        return self._hint(call)(self.nested_one(tree.body))

    def _with_while(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        condition = self._as_bool(self.as_prim(self._only(call), call), call, truthy=True)
        return While(condition, self.nested_one(tree.body), span=self.span(call))

    def _with_if(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        condition = self._as_bool(self.as_prim(self._only(call), call), call, truthy=True)
        parts: dict[str, Stmt] = {}
        for statement in tree.body:
            inner = statement.items[0].context_expr if isinstance(statement, ast.With) else None
            name = self.dotted(inner.func) if isinstance(inner, ast.Call) else None
            expected = "T.Else" if "T.Then" in parts else "T.Then"
            if name != expected or not isinstance(statement, ast.With) or "T.Else" in parts:
                raise self.fail("W115", "T.If holds `with T.Then():` and at most one `with T.Else():`", statement)
            parts[expected] = self.nested_one(statement.body)
        if not parts:
            raise self.fail("W115", "T.If holds `with T.Then():` and at most one `with T.Else():`", tree)
        return IfThenElse(condition, parts["T.Then"], parts.get("T.Else"), span=self.span(call))

    def _only(self, tree: ast.Call) -> Any:
        values = self._values(tree)
        if len(values) != 1:
            raise self.fail("W113", f"`{ast.unparse(tree.func)}` takes a condition", tree)
        return values[0]

    # -----------------------------------------------------------------------------------------------------------------
    # Buffers
    # -----------------------------------------------------------------------------------------------------------------

    def _buffer_store(self, tree: ast.Call) -> Stmt:
        values = self._arguments(tree, ("buffer", "value", "indices", "predicate"), 3)
        made = self._store_into(*self._element(values[0], values[2], tree), values[1], tree)
        mask = self._mask(values[3:], tree)
        return replace(made, predicate=mask) if mask is not None and isinstance(made, BufferStore) else made

    def _buffer_load(self, tree: ast.Call) -> PrimExpr:
        values = self._arguments(tree, ("buffer", "indices", "predicate"), 2)
        buffer, indices = self._element(values[0], values[1], tree)
        return BufferLoad(buffer, indices, self._mask(values[2:], tree), span=self.span(tree))

    def _element(self, buffer: Any, indices: Any, tree: ast.Call) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        parts = indices if isinstance(indices, (tuple, list)) else (indices,)
        if not isinstance(buffer, Buffer):
            raise self.fail("W114", f"expected a buffer, got {describe(buffer)}", tree)
        if len(parts) != buffer.ndim:
            raise self.fail("W121", f"'{buffer.name}' has {buffer.ndim} dimensions, got {len(parts)} indices", tree)
        return buffer, tuple(self._index(part, tree) for part in parts)

    def _alloc_scalar(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.alloc_scalar", None)(target, tree)

    _TENSOR_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {
        **EarlyReader._TENSOR_FORMS,
        **dict.fromkeys(map("T.{}".format, SCOPE_IDS), _scope_id),
        "T.BufferLoad": _buffer_load,
    }
    _NAMED: ClassVar[dict[str, Callable[[Any, ast.Name, ast.Call], Any]]] = {
        **EarlyReader._NAMED,
        "T.alloc_scalar": _alloc_scalar,
    }
    _CLAUSE_METHODS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {
        **EarlyReader._CLAUSE_METHODS,
        "T.device_entry": _device_entry,
        "T.hint": _hint,
        "T.buffer_store": _buffer_store,
    }
