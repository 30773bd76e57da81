"""Loop nests whose iteration variables and indices are of the dtype of dimensions: what the rules of loops stand on.

    for i in range(64): y[i] = T.if_then_else(i >= 5, x[i + 2], 0.0)                    i: int32
        becomes
    for i in range(T.int64(64)): y[i] = T.if_then_else(T.Cast("int32", i) >= 5, x[i + 2], 0.0)

Rules put expressions of dimensions, of one nest or of another, in place of iteration variables; those must be of one
dtype. An index means the exact number (see `weft.ir.interpret.closures.indices`), so it is computed in 64 bits;
a value is computed as it was, and in 64 bits only where that is proved to be the same.
"""

from __future__ import annotations

from typing import Any, TypeVar

from weft import dtypes
from weft.ir import Node, replace, rewrite
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import binary, cast
from weft.ir.kernel.regions import Bounds
from weft.ir.structure.visit import map_statements, nodes_of
from weft.ir.tensor import (
    Binary,
    Block,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Extent,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    PrimExpr,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.transform.autoschedule.rules.loops import INDEX

__all__ = ["with_wide_indices"]

B = TypeVar("B", For, IterVar)
N = TypeVar("N", bound=Node | None)

_RING = frozenset({"add", "sub", "mul"})
"""What gives the exact number where that fits, whatever happens on the way."""
_ARITHMETIC = frozenset({"add", "sub", "mul", "min", "max", "floordiv", "floormod"})


def with_wide_indices(stmt: Stmt) -> Stmt:
    """The statement with the nests of a sequence, or under a condition, over variables of the dtype of dimensions."""
    if isinstance(stmt, (SeqStmt, IfThenElse)):
        return map_statements(stmt, with_wide_indices)
    return stmt if _is_wide(stmt) else _wide_nest(stmt)


def _is_wide(stmt: Stmt) -> bool:
    """Whether there is nothing to do: no nest around one store, or one whose variables and indices are wide."""
    _, inner = perfect_nest(stmt)
    if isinstance(inner, Block):
        plain = isinstance(inner.body, BufferStore) and not inner.match_buffers and not inner.alloc_buffers
        if not plain or any(item.value is None for item in inner.iter_vars):
            return True
    elif not isinstance(inner, BufferStore):
        return True
    variables = [part.loop_var for part in nodes_of(stmt, For)] + [part.var for part in nodes_of(stmt, IterVar)]
    indices = (index for part in nodes_of(stmt, BufferLoad, BufferStore) for index in part.indices)
    dtypes_used = {part.dtype for part in (*variables, *indices)}
    return dtypes_used <= {INDEX} or any(dtypes.lanes(dtype) > 1 for dtype in dtypes_used)


def _wide_nest(stmt: Stmt) -> Stmt:
    wide = _Wide()
    loops: list[For] = []
    inner = stmt
    while isinstance(inner, For):
        loops.append(wide.binder(inner, "loop_var"))
        inner = inner.body
    if isinstance(inner, Block):
        items = [wide.binder(item, "var") for item in inner.iter_vars]
        parts = {name: wide.code(getattr(inner, name)) for name in ("predicate", "init", "body")}
        regions = {name: wide.regions(getattr(inner, name)) for name in ("reads", "writes")}
        inner = replace(inner, iter_vars=tuple(items), **parts, **regions)
    else:
        inner = wide.code(inner)
    for loop in reversed(loops):
        inner = replace(loop, body=inner)
    return inner


class _Wide:
    """What stands for variables, and what is known of their values."""

    def __init__(self) -> None:
        self.variables: dict[PrimVar, PrimVar] = {}
        self.bounds = Bounds()
        self.done: dict[PrimExpr, PrimExpr] = {}

    def binder(self, node: B, name: str) -> B:
        """A loop or iteration variable over a wide variable; what follows uses that."""
        changed: dict[str, Any] = {
            part: self.extent(getattr(node, part)) for part in ("start", "extent", "step") if hasattr(node, part)
        }
        if isinstance(node, IterVar) and node.value is not None:
            changed["value"] = self.index(node.value)
        variable = getattr(node, name)
        self.bounds = self.bounds.with_range(variable, node.start, node.extent)
        if variable.dtype != INDEX:
            changed[name] = self.variables[variable] = replace(variable, dtype=INDEX)
        return replace(node, **changed)

    def extent(self, value: Extent | None) -> Extent | None:
        """A start, an extent or a step."""
        return self.index(value) if isinstance(value, PrimExpr) else value

    def regions(self, regions: tuple[BufferRegion, ...] | None) -> tuple[BufferRegion, ...] | None:
        """Declared regions."""
        return None if regions is None else tuple(map(self.code, regions))

    def code(self, node: N) -> N:
        """Code with the new variables; each value is what it was."""
        return node if node is None else rewrite(node, pre=self._replaced)

    def _replaced(self, node: Node) -> Node | None:
        if isinstance(node, PrimVar):
            return cast(node.dtype, self.variables[node]) if node in self.variables else None
        if isinstance(node, Cast) and node.dtype == INDEX and dtypes.is_integer(node.value.dtype):
            return self.index(node.value) if self._same(node.value) else None
        if isinstance(node, BufferLoad):
            return replace(node, indices=tuple(map(self.index, node.indices)), predicate=self.code(node.predicate))
        if isinstance(node, BufferStore):
            new = replace(node, value=self.code(node.value), predicate=self.code(node.predicate))
            return replace(new, indices=tuple(map(self.index, node.indices)))
        if isinstance(node, Range):
            return replace(node, start=self.extent(node.start), extent=self.extent(node.extent))
        return None

    def index(self, expr: PrimExpr) -> PrimExpr:
        """An integer as a value of the dtype of dimensions."""
        if expr not in self.done:
            self.done[expr] = self._index(expr)
        return self.done[expr]

    def _index(self, expr: PrimExpr) -> PrimExpr:
        if expr.dtype == INDEX:
            return self.code(expr)
        if isinstance(expr, IntImm):
            return cast(INDEX, expr)
        if isinstance(expr, PrimVar) and expr in self.variables:
            return self.variables[expr]
        if isinstance(expr, Binary) and expr.kind in _ARITHMETIC and dtypes.is_signed(expr.dtype):
            return binary(expr.kind, self.index(expr.a), self.index(expr.b), expr.span)
        return Cast(INDEX, self.code(expr), span=expr.span)

    def _same(self, expr: PrimExpr) -> bool:
        """Whether a value is the exact number: sums and products where that fits, other arithmetic where all fits."""
        if not isinstance(expr, Binary) or expr.kind not in _ARITHMETIC or expr.dtype == INDEX:
            return True
        return self._fits(expr) and all(self._same_part(part, expr.kind) for part in (expr.a, expr.b))

    def _same_part(self, part: PrimExpr, kind: str) -> bool:
        ring = kind in _RING and isinstance(part, Binary) and part.kind in _RING and part.dtype != INDEX
        if ring and isinstance(part, Binary):
            return all(self._same_part(inner, part.kind) for inner in (part.a, part.b))
        return self._same(part)

    def _fits(self, expr: PrimExpr) -> bool:
        """Whether the exact value is always one of the dtype that it is computed in."""
        found = self.bounds.of(expr)
        ends = () if found is None else (found.low, found.high)
        return bool(ends) and all(isinstance(end, int) and dtypes.can_hold(expr.dtype, end) for end in ends)
