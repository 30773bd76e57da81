"""Reading spellings of the field's first releases, in today's terms.

    with T.block([16, T.reduce_axis(0, 16)], "C") as [vi, vk]:    block variables at the head, bound by `T.bind(vi, i)`,
                                                                  or to the loops around, or to loops of their own
    T.load("float32", p, i)    T.store(p, i, value)               elements of the memory behind a pointer
    B = T.buffer_decl((16,))   T.realize(B[0:16], "shared")       memory for a declared buffer
    with T.let(x, 4):                                             a value for a declared variable
    A = T.match_buffer(a, (4,), elem_offset=T.var("int32"))       a symbol without a name
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import dtypes
from weft.ir.node import replace
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Extent,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.script.forms.defaults import axis_dtype
from weft.script.reader.base import ModuleScope, Scope, describe
from weft.script.reader.tensor.binding import BindingReader
from weft.script.reader.tensor.block import BlockHeader
from weft.script.reader.tensor.scalar import extent_of
from weft.script.source.text import MISSING, Unit

__all__ = ["EarlyReader"]

_AXIS_CALLS = {
    "T.reduce_axis": "reduce", "T.scan_axis": "scan", "T.opaque_axis": "opaque", "T.range": "spatial",
    "T.Range": "spatial",
}  # fmt: skip
_UNKNOWN_LENGTH = 2**31 - 1  # of the memory behind a pointer that nobody describes


class EarlyReader(BindingReader):
    """Reads what early releases spell in a way of their own."""

    loops_here: tuple[PrimVar, ...] = ()  # the loops between a statement and the block around it

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.views: list[Stmt] = []  # declarations that the current statement needs before it

    # -----------------------------------------------------------------------------------------------------------------
    # Block variables at the head of a block
    # -----------------------------------------------------------------------------------------------------------------

    def early_axes(self, call: ast.Call, target: ast.expr | None) -> tuple[list[ast.expr], ast.Call]:
        """The axes that stand before the name of a block, and the call without them."""
        named = {keyword.arg: keyword for keyword in call.keywords}
        first = call.args[0] if call.args else None
        listed = isinstance(first, (ast.List, ast.Tuple, ast.Call))
        if "axes" in named:
            first, rest = named["axes"].value, call.args
        elif first is not None and (listed or target is not None) and not _is_text(first):
            rest = call.args[1:]
        else:
            first, rest = None, call.args
        if first is None and not {"name_hint", "exec_scope"} & named.keys():
            return [], call
        keywords = [
            ast.copy_location(ast.keyword("name", word.value), word) if word.arg == "name_hint" else word
            for word in call.keywords
            if word.arg not in ("axes", "exec_scope")
        ]
        axes = list(first.elts) if isinstance(first, (ast.List, ast.Tuple)) else [first] * (first is not None)
        return axes, ast.copy_location(ast.Call(call.func, rest[:1], keywords), call)  # type: ignore[return-value]

    def early_variables(
        self, header: BlockHeader, axes: Sequence[ast.expr], target: ast.expr | None, tree: ast.AST
    ) -> None:
        """The block variables `as [vi, vj]` of the axes."""
        names = list(target.elts) if isinstance(target, (ast.List, ast.Tuple)) else [target] * (target is not None)
        if names and not axes:
            raise self.fail("W115", "block variables are bound by T.axis inside the block", target or tree)
        if len(names) != len(axes):
            message = f"the block has {len(axes)} axes for {len(names)} variables"
            raise self.fail("W113", message, tree, "with T.block([n, m]) as [vi, vj]:")
        for name, axis in zip(names, axes, strict=True):
            if not isinstance(name, ast.Name):
                raise self.fail("W115", "a block variable is a name", name or tree)
            kind, start, extent = self._early_axis(axis)
            self._add_axis(header, name, kind, start, extent, None, axis_dtype(extent, None), axis)

    def _early_axis(self, tree: ast.expr) -> tuple[str, Extent, Extent]:
        kind = _AXIS_CALLS.get(self.dotted(tree.func) or "") if isinstance(tree, ast.Call) else None
        if kind is None or not isinstance(tree, ast.Call):
            return ("spatial", *self._axis_domain(tree, 0))
        if not 1 <= len(tree.args) <= 2 or tree.keywords:
            called = ast.unparse(tree.func)
            raise self.fail("W113", f"`{called}` takes the first value and the one after the last", tree)
        bounds = [self.read_extent(argument) for argument in tree.args]
        low, high = bounds if len(bounds) == 2 else (0, bounds[0])
        return kind, low, self._difference(low, high, tree)

    def _match_region(self, target: ast.Name, tree: ast.Call) -> None:
        """`B = T.match_buffer_region(A[0:16])`: a buffer of the shape of the region."""
        self._match_buffer(target, tree)

    def _bind_axis(self, tree: ast.Call) -> None:
        """`T.bind(vi, value)`: what a variable at the head of the block is bound to."""
        header = self._header(tree, "T.bind")
        values = self._values(tree)
        places = [place for place, item in enumerate(header.iter_vars) if values and item.var is values[0]]
        if len(values) != 2 or not places:
            raise self.fail("W114", "T.bind takes a variable of the block and its value", tree)
        item = header.iter_vars[places[0]]
        if item.value is not None:
            raise self.fail("W118", f"the block variable '{item.var.name}' is bound already", tree)
        value = self.as_prim(values[1], tree, item.var.dtype)
        header.iter_vars[places[0]] = replace(item, value=value)

    def early_bindings(self, header: BlockHeader, tree: ast.AST) -> list[IterVar]:
        """Bind variables that no T.bind names to the loops around, in order; without any, to new ones (returned)."""
        items = header.iter_vars
        if not items or any(item.value is not None for item in items):
            return []
        loops = self.loops_here
        if loops and len(loops) != len(items):
            raise self.fail(
                "W113", f"the block has {len(items)} variables under {len(loops)} loops", tree,
                "bind each: `T.bind(vi, i)`",
            )  # fmt: skip
        made = loops or tuple(
            PrimVar(f"i{place}", item.var.dtype, span=item.span) for place, item in enumerate(items)
        )
        header.iter_vars = [replace(item, value=loop) for item, loop in zip(items, made, strict=True)]
        return [] if loops else header.iter_vars

    # -----------------------------------------------------------------------------------------------------------------
    # Memory behind pointers
    # -----------------------------------------------------------------------------------------------------------------

    def _memory(self, value: Any, element: str, tree: ast.AST) -> Buffer:
        """The memory behind a pointer as a buffer of one dimension."""
        buffer = value if isinstance(value, Buffer) else _buffer_at(value)
        flat = buffer is not None and buffer.ndim == 1 and not (buffer.strides or buffer.elem_offset)
        if buffer is not None and flat and buffer.dtype == element:
            return buffer
        pointer = isinstance(value, PrimExpr) and value.dtype == "handle"
        if buffer is None and not pointer:
            raise self.fail("W114", f"expected a pointer, got {describe(value)}", tree)
        source = buffer if buffer is not None else value
        key = f"{id(source)} {element}"  # no name of a script
        known = self.scope.get(key)
        if isinstance(known, Buffer):
            return known
        length: Extent = _UNKNOWN_LENGTH if buffer is None else self._flat_length(buffer, element, tree)
        data = self._data_of(buffer, tree) if buffer is not None else self.as_prim(value, tree)
        scope = buffer.scope if buffer is not None else value.scope if isinstance(value, PrimVar) else "global"
        name = getattr(source, "name", "") or "memory"
        made = Buffer(name, (length,), element, scope, data=data, span=self.span(tree))
        self.scope.names[key] = made
        self.views.append(DeclBuffer(made, span=self.span(tree)))
        return made

    def _flat_length(self, buffer: Buffer, element: str, tree: ast.AST) -> Extent:
        sizes = [size for size in buffer.shape if isinstance(size, int)]
        length: Any = math.prod(sizes)
        for size in buffer.shape:
            if not isinstance(size, int):
                length = self.binary("mul", length, size, tree)
        old, new = (dtypes.bits(name) * dtypes.lanes(name) for name in (buffer.dtype, element))
        if old != new:
            length = self.binary("floordiv", self.binary("mul", length, old, tree), new, tree)
        return extent_of(length)

    def _load_call(self, tree: ast.Call) -> PrimExpr:
        """`T.load(dtype, pointer, index, predicate)`."""
        values = self._arguments(tree, ("dtype", "var", "index", "predicate"), 3)
        element = dtypes.element(self._dtype_of(values[0], tree))
        buffer = self._memory(values[1], element, tree)
        index, mask = self._index(values[2], tree), self._mask(values[3:], tree)
        return BufferLoad(buffer, (index,), mask, span=self.span(tree))

    def _store_call(self, tree: ast.Call) -> Stmt:
        """`T.store(pointer, index, value, predicate)`."""
        values = self._arguments(tree, ("var", "index", "value", "predicate"), 3)
        plain = isinstance(values[2], (bool, int, float))
        known = values[0] if isinstance(values[0], Buffer) else _buffer_at(values[0])
        element = known.dtype if known is not None and plain else self.as_prim(values[2], tree).dtype
        buffer = self._memory(values[0], dtypes.element(element), tree)
        made = self._store_into(buffer, (self._index(values[1], tree),), values[2], tree)
        mask = self._mask(values[3:], tree)
        assert isinstance(made, BufferStore)
        return made if mask is None else replace(made, predicate=mask)

    def _arguments(self, tree: ast.Call, names: tuple[str, ...], least: int) -> list[Any]:
        values = dict(zip(names, self._values(tree, names), strict=False))
        values.update({word.arg: self.value(word.value) for word in tree.keywords if word.arg in names})
        missing = [name for name in names[:least] if name not in values]
        if missing or len(tree.args) > len(names):
            called = ast.unparse(tree.func)
            raise self.fail("W113", f"`{called}` takes {', '.join(names[:least])}, and a predicate if any", tree)
        return [values[name] for name in names if name in values]

    def _mask(self, values: list[Any], tree: ast.AST) -> PrimExpr | None:
        """A predicate of a load or store, None where it is always true."""
        if not values or values[0] is None:
            return None
        mask = self._as_bool(self.as_prim(values[0], tree), tree)
        return None if _is_true(mask) else mask

    # -----------------------------------------------------------------------------------------------------------------
    # Memory for declared buffers
    # -----------------------------------------------------------------------------------------------------------------

    def realized_names(self, body: Sequence[ast.stmt]) -> frozenset[str]:
        """The names in `T.realize(NAME[...], scope)` anywhere in a function."""
        found: set[str] = set()
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and self.dotted(node.func) == "T.realize" and node.args:
                    region = node.args[0]
                    if isinstance(region, ast.Subscript) and isinstance(region.value, ast.Name):
                        found.add(region.value.id)
        return frozenset(found)

    def _realize(self, tree: ast.Call) -> Stmt:
        """`T.realize(B[0:16], scope, condition)`: memory for a buffer that was only declared."""
        values = self._arguments(tree, ("region", "scope", "condition"), 1)
        region = values[0]
        if not isinstance(region, BufferRegion) or region.buffer.name not in self.realized:
            raise self.fail("W114", "T.realize takes a region of a declared buffer", tree)
        if region.buffer not in self.declared:
            raise self.fail("W118", f"the buffer '{region.buffer.name}' has memory already", tree)
        scope = values[1] if len(values) > 1 else ""
        if not isinstance(scope, str):
            raise self.fail("W114", f"a scope is a string, got {describe(scope)}", tree)
        if self._mask(values[2:], tree) is not None:
            raise self.fail("W115", "an allocation under a condition", tree, "write the allocation inside an `if`")
        self.declared.discard(region.buffer)
        buffer = replace(region.buffer, scope=scope or region.buffer.scope)
        self.scope.names[buffer.name] = buffer
        return AllocBuffer(buffer, span=self.span(tree))

    def _with_realize(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            return [self._realize(call), *self.statements(tree.body)]  # type: ignore[attr-defined]
        finally:
            self.scope = saved

    # -----------------------------------------------------------------------------------------------------------------
    # Variables
    # -----------------------------------------------------------------------------------------------------------------

    def early_let(self, call: ast.Call, target: ast.expr | None) -> tuple[ast.Name, PrimExpr] | None:
        """The variable and the value of `with T.let(x, value)`, or None for another spelling."""
        if target is not None or len(call.args) != 2 or call.keywords or not isinstance(call.args[0], ast.Name):
            return None
        name = call.args[0]
        known = self.lookup(name.id, name)
        if not isinstance(known, PrimVar):
            return None
        value = self.prim(call.args[1], None if known.dtype == "handle" else known.dtype)
        if value.dtype != known.dtype:
            raise self.fail("W123", f"'{name.id}' is declared {known.dtype}, the value is {value.dtype}", call.args[1])
        return name, value

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """A call of a name of T; in what describes a buffer, a declaration is a symbol without a name."""
        if self.defining or name in ("T.var", "T.dyn"):
            dtype = self.symbol_declaration(tree)
            if dtype is not None and self.defining:
                return self._unnamed_symbol(dtype, tree)
            if dtype is not None:
                raise self.fail("W114", "a symbol is declared by an assignment", tree, "`n = T.int64()`")
        return super().call_named(name, tree)

    def _unnamed_symbol(self, dtype: str, tree: ast.AST) -> PrimVar:
        taken = (self.variables, self.assigned, self.symbols)
        place = 0
        while any(f"s{place}" in names for names in taken) or self.scope.get(f"s{place}") is not MISSING:
            place += 1
        self.symbol_dtypes[f"s{place}"] = dtype
        return self.symbol_value(f"s{place}", tree)

    _TENSOR_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {
        **BindingReader._TENSOR_FORMS,
        "T.load": _load_call,
    }
    _NAMED: ClassVar[dict[str, Callable[[Any, ast.Name, ast.Call], Any]]] = {
        **BindingReader._NAMED,
        "T.match_buffer_region": _match_region,
    }
    _CLAUSE_METHODS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {
        **BindingReader._CLAUSE_METHODS,
        "T.bind": _bind_axis,
        "T.store": _store_call,
        "T.realize": _realize,
    }


def _is_text(tree: ast.expr) -> bool:
    return isinstance(tree, ast.JoinedStr) or (isinstance(tree, ast.Constant) and isinstance(tree.value, str))


def _buffer_at(value: Any) -> Buffer | None:
    """The buffer whose first element a pointer points to."""
    if not isinstance(value, PrimCall) or value.op != "address_of":
        return None
    element = value.args[0]
    if isinstance(element, BufferLoad) and all(isinstance(i, IntImm) and not i.value for i in element.indices):
        return element.buffer
    return None


def _is_true(mask: PrimExpr) -> bool:
    inner = getattr(mask, "value", None)
    inner = inner.value if isinstance(inner, IntImm) else inner
    return inner == 1
