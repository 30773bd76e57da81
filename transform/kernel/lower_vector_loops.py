"""LowerVectorLoops: vectorized loops become statements on vectors.

    for i in T.vectorized(8): c[i] = a[i] + 1.0      c[T.Ramp(0, 1, 8)] = a[T.Ramp(0, 1, 8)] + T.Broadcast(1.0, 8)

Extents over LANES are cut into a serial loop of vectors and a remainder; extents that are not constant, and bodies
that vectors cannot say (loops whose extent varies by lane, allocations, calls with effects, early exits), run as
serial loops. A condition that varies by lane becomes a predicate of the stores and loads below it, so nothing is read
or written for a lane that is switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary

from weft import dtypes
from weft.ir import IRModule, replace
from weft.ir.graph import Expr
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.structure.visit import map_statements
from weft.ir.tensor import (
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Broadcast,
    BufferLoad,
    BufferStore,
    Cast,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Select,
    SeqStmt,
    Stmt,
    Unary,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["LowerVectorLoops", "lower_vector_loops"]

LANES = 64
CHUNK = 16


@dataclass(frozen=True)
class LowerVectorLoops(FunctionPass):
    """Replace vectorized loops by vector statements (blocks are lowered first: `LowerBlocks`)."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without vectorized loops."""
        return lower_vector_loops(function)


def lower_vector_loops(function: PrimFunc) -> PrimFunc:
    """A tensor-level function without vectorized loops; the same object when it has none."""
    return replace(function, body=_lower(function.body))


def _lower(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, (For, SeqStmt)):
        return map_statements(stmt, _lower)
    found = _LOWERED.get(stmt)
    if found is None:
        new = map_statements(stmt, _lower)
        new = _vector_loop(new) if isinstance(new, For) and new.kind == "vectorized" else new
        found = _LOWERED[stmt] = () if new is stmt else (new,)
    return found[0] if found else stmt


_LOWERED: WeakKeyDictionary[Stmt, tuple[()] | tuple[Stmt]] = WeakKeyDictionary()
"""What statements become, nothing for themselves: the schedule asks, then the back end, of which proofs are kept."""


class _Unsuited(Exception):
    """Vectors cannot say this statement."""


def _vector_loop(loop: For) -> Stmt:
    serial = replace(loop, kind="serial")
    if not isinstance(loop.extent, int) or loop.step not in (None, 1):
        return serial
    try:
        if loop.extent <= 1:
            return serial
        if loop.extent <= LANES:
            return _vectorised(loop, as_expr(loop.start, loop.loop_var.dtype), loop.extent)
        return _in_chunks(loop, loop.extent)
    except _Unsuited:
        return serial


def _in_chunks(loop: For, extent: int) -> Stmt:
    """A serial loop over vectors of CHUNK lanes, then the lanes that remain."""
    dtype = loop.loop_var.dtype
    whole, rest = divmod(extent, CHUNK)
    outer = PrimVar(f"{loop.loop_var.name}_vector", dtype)
    start = as_expr(loop.start, dtype)
    base = binary("add", start, binary("mul", outer, CHUNK))
    parts: list[Stmt] = [For(outer, 0, whole, _vectorised(loop, base, CHUNK), span=loop.span)]
    if rest > 1:
        parts.append(_vectorised(loop, binary("add", start, whole * CHUNK), rest))
    elif rest:
        parts.append(replace(loop, start=binary("add", start, whole * CHUNK), extent=1, kind="serial"))
    return SeqStmt(tuple(parts), span=loop.span) if len(parts) > 1 else parts[0]


def _vectorised(loop: For, base: PrimExpr, lanes: int) -> Stmt:
    ramp = Ramp(base, as_expr(1, base.dtype), lanes, span=loop.span)
    return _Vectoriser(lanes, {loop.loop_var: ramp}).statement(loop.body, None)


class _Vectoriser:
    """Rewrites a loop body so that the loop variable is a vector."""

    def __init__(self, lanes: int, values: dict[PrimVar, PrimExpr]) -> None:
        self.lanes = lanes
        self.values = values
        self.mask: PrimExpr | None = None

    # Statements

    def statement(self, stmt: Stmt, mask: PrimExpr | None) -> Stmt:
        """The statement on vectors, with stores and loads guarded by `mask`."""
        if isinstance(stmt, SeqStmt):
            return replace(stmt, stmts=tuple(self.statement(part, mask) for part in stmt.stmts))
        if isinstance(stmt, BufferStore):
            return self._store(stmt, mask)
        if isinstance(stmt, IfThenElse):
            return self._if(stmt, mask)
        if isinstance(stmt, For) and stmt.kind in ("serial", "unrolled", "parallel"):
            return self._for(stmt, mask)
        if isinstance(stmt, Bind):
            return self._bind(stmt, mask)
        if isinstance(stmt, AttrStmt):
            return replace(stmt, body=self.statement(stmt.body, mask))
        if isinstance(stmt, AssertStmt):
            condition = self.under(mask, stmt.condition)
            if _is_vector(condition) or mask is not None:
                raise _Unsuited
            return replace(stmt, condition=condition)
        raise _Unsuited

    def _store(self, stmt: BufferStore, mask: PrimExpr | None) -> Stmt:
        if stmt.predicate is not None or dtypes.lanes(stmt.buffer.dtype) > 1:
            raise _Unsuited
        indices = self.indices(stmt.indices, mask)
        value = self.under(mask, stmt.value)
        if not any(_is_vector(index) for index in indices):
            # Every lane writes one place: the last lane's value stays, which a serial loop says best.
            raise _Unsuited
        return replace(stmt, value=self.wide(value), indices=indices, predicate=mask)

    def _if(self, stmt: IfThenElse, mask: PrimExpr | None) -> Stmt:
        condition = self.under(mask, stmt.condition)
        if not _is_vector(condition):
            if mask is not None:
                condition = self.wide(condition)
            else:
                other = None if stmt.else_body is None else self.statement(stmt.else_body, mask)
                return replace(
                    stmt, condition=condition, then_body=self.statement(stmt.then_body, mask), else_body=other
                )
        name = PrimVar("mask", dtypes.with_lanes("bool", self.lanes), span=stmt.span)
        inside = name if mask is None else binary("and", mask, name)
        parts: list[Stmt] = [Bind(name, condition, span=stmt.span), self.statement(stmt.then_body, inside)]
        if stmt.else_body is not None:
            off = Unary("not", name)
            parts.append(self.statement(stmt.else_body, off if mask is None else binary("and", mask, off)))
        return SeqStmt(tuple(parts), span=stmt.span)

    def _for(self, stmt: For, mask: PrimExpr | None) -> Stmt:
        sizes = {"start": stmt.start, "extent": stmt.extent, "step": stmt.step}
        new = {key: self.under(mask, size) if isinstance(size, PrimExpr) else size for key, size in sizes.items()}
        if any(isinstance(size, PrimExpr) and _is_vector(size) for size in new.values()):
            raise _Unsuited
        return replace(stmt, body=self.statement(stmt.body, mask), **new)

    def _bind(self, stmt: Bind, mask: PrimExpr | None) -> Stmt:
        value = self.under(mask, stmt.value)
        if not _is_vector(value):
            return replace(stmt, value=value)
        if isinstance(value, (Ramp, Broadcast)):  # its form decides how memory is accessed
            self.values[stmt.var] = value
            return SeqStmt(())
        var = replace(stmt.var, dtype=dtypes.with_lanes(stmt.var.dtype, self.lanes))
        self.values[stmt.var] = var
        return replace(stmt, var=var, value=value)

    # Expressions

    def under(self, mask: PrimExpr | None, expr: Expr) -> PrimExpr:
        """The expression on vectors; loads in it are guarded by the mask."""
        outer, self.mask = self.mask, mask
        try:
            return self.expression(expr)
        finally:
            self.mask = outer

    def indices(self, indices: tuple[PrimExpr, ...], mask: PrimExpr | None) -> tuple[PrimExpr, ...]:
        """Indices on vectors; the last one has the lanes when any has."""
        new = [self.under(mask, index) for index in indices]
        if any(_is_vector(index) for index in new):
            new[-1] = self.wide(new[-1])
        return tuple(new)

    def wide(self, expr: PrimExpr) -> PrimExpr:
        """The expression with the lanes of the loop."""
        return expr if _is_vector(expr) else Broadcast(expr, self.lanes)

    def expression(self, expr: Expr) -> PrimExpr:
        """One expression on vectors."""
        if isinstance(expr, PrimVar):
            return self.values.get(expr, expr)
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, PrimExpr) and not _is_vector(expr) and type(expr).__name__ in ("IntImm", "FloatImm"):
            return expr
        raise _Unsuited


def _is_vector(expr: PrimExpr) -> bool:
    """Whether the expression has lanes."""
    return dtypes.lanes(expr.dtype) > 1


def _unary(vectoriser: _Vectoriser, expr: Unary) -> PrimExpr:
    return _same(expr, expr.a, vectoriser.expression(expr.a), lambda a: Unary(expr.kind, a, span=expr.span))


def _cast(vectoriser: _Vectoriser, expr: Cast) -> PrimExpr:
    value = vectoriser.expression(expr.value)
    if (
        isinstance(value, Ramp)
        and dtypes.is_integer(expr.dtype)
        and dtypes.bits(expr.dtype) >= dtypes.bits(value.dtype)
    ):
        scalar = expr.dtype
        return Ramp(Cast(scalar, value.base), Cast(scalar, value.stride), value.lanes, span=expr.span)
    return _same(
        expr,
        expr.value,
        value,
        lambda v: Cast(dtypes.with_lanes(expr.dtype, dtypes.lanes(v.dtype)), v, span=expr.span),
    )


def _binary(vectoriser: _Vectoriser, expr: Binary) -> PrimExpr:
    a, b = vectoriser.expression(expr.a), vectoriser.expression(expr.b)
    if a is expr.a and b is expr.b:
        return expr
    if not _is_vector(a) and not _is_vector(b):
        return Binary(expr.kind, a, b, span=expr.span)
    ramp = _ramp(vectoriser, expr.kind, a, b)
    return ramp if ramp is not None else Binary(expr.kind, vectoriser.wide(a), vectoriser.wide(b), span=expr.span)


def _ramp(vectoriser: _Vectoriser, kind: str, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """Linear arithmetic on a Ramp stays a Ramp."""
    if isinstance(b, Broadcast):
        b = b.value
    if isinstance(a, Broadcast):
        a = a.value
    if isinstance(a, Ramp) and isinstance(b, Ramp) and kind in ("add", "sub"):
        return replace(a, base=_fold(kind, a.base, b.base), stride=_fold(kind, a.stride, b.stride))
    if isinstance(a, Ramp) and not _is_vector(b):
        if kind in ("add", "sub"):
            return replace(a, base=_fold(kind, a.base, b))
        if kind == "mul":
            return replace(a, base=_fold("mul", a.base, b), stride=_fold("mul", a.stride, b))
    if isinstance(b, Ramp) and not _is_vector(a) and kind in ("add", "mul"):
        return _ramp(vectoriser, kind, b, a)
    return None


def _select(vectoriser: _Vectoriser, expr: Select) -> PrimExpr:
    condition, a, b = (vectoriser.expression(part) for part in (expr.condition, expr.true_value, expr.false_value))
    if not any(_is_vector(part) for part in (condition, a, b)):
        return Select(condition, a, b, span=expr.span)
    return Select(vectoriser.wide(condition), vectoriser.wide(a), vectoriser.wide(b), span=expr.span)


def _load(vectoriser: _Vectoriser, expr: BufferLoad) -> PrimExpr:
    if expr.predicate is not None or dtypes.lanes(expr.buffer.dtype) > 1:
        raise _Unsuited
    if not expr.indices:  # the one element is there whatever the lane is
        return expr
    indices = vectoriser.indices(expr.indices, vectoriser.mask)
    if not any(_is_vector(index) for index in indices):
        if vectoriser.mask is not None:
            # The place is one for all lanes, but whether it may be read depends on the lane.
            indices = (*indices[:-1], vectoriser.wide(indices[-1]))
            return BufferLoad(expr.buffer, indices, vectoriser.mask, span=expr.span)
        return replace(expr, indices=indices)
    return BufferLoad(expr.buffer, indices, vectoriser.mask, span=expr.span)


def _let(vectoriser: _Vectoriser, expr: Let) -> PrimExpr:
    value = vectoriser.expression(expr.value)
    var = expr.var if not _is_vector(value) else replace(expr.var, dtype=value.dtype)
    vectoriser.values[expr.var] = var
    return Let(var, value, vectoriser.expression(expr.body), span=expr.span)


def _call(vectoriser: _Vectoriser, expr: PrimCall) -> PrimExpr:
    if expr.op == "if_then_else":
        return _lazy(vectoriser, expr)
    entry = INTRINSICS.get(expr.op) if isinstance(expr.op, str) else None
    if (
        entry is None
        or not entry.pure
        or entry.rule == "given"
        or any(not isinstance(arg, PrimExpr) for arg in expr.args)
    ):
        raise _Unsuited
    args = [vectoriser.expression(arg) for arg in expr.args]
    if not any(_is_vector(arg) for arg in args):
        return replace(expr, args=tuple(args))
    wide = tuple(vectoriser.wide(arg) for arg in args)
    return PrimCall(expr.op, wide, dtypes.with_lanes(expr.dtype, vectoriser.lanes), expr.attrs, span=expr.span)


def _lazy(vectoriser: _Vectoriser, expr: PrimCall) -> PrimExpr:
    condition = vectoriser.expression(expr.args[0])
    if not _is_vector(condition):
        args = (condition, *(vectoriser.expression(arg) for arg in expr.args[1:]))
        if not any(_is_vector(arg) for arg in args):
            return replace(expr, args=args)
        wide = (condition, *(vectoriser.wide(arg) for arg in args[1:]))
        return PrimCall(expr.op, wide, dtypes.with_lanes(expr.dtype, vectoriser.lanes), expr.attrs, span=expr.span)
    name = PrimVar("chosen", condition.dtype, span=expr.span)
    off = Unary("not", name)
    both = (
        (name, off)
        if vectoriser.mask is None
        else (binary("and", vectoriser.mask, name), binary("and", vectoriser.mask, off))
    )
    a, b = (vectoriser.under(mask, arg) for mask, arg in zip(both, expr.args[1:], strict=True))
    return Let(name, condition, Select(name, vectoriser.wide(a), vectoriser.wide(b), span=expr.span), span=expr.span)


def _broadcast(vectoriser: _Vectoriser, expr: PrimExpr) -> PrimExpr:
    raise _Unsuited  # vectors inside a vectorized loop


def _same(expr: PrimExpr, old: PrimExpr, new: PrimExpr, build: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    return expr if new is old else build(new)


def _fold(kind: str, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a kind b for add, sub, mul, with constants folded, so that strides are seen."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        value = {"add": a.value + b.value, "sub": a.value - b.value, "mul": a.value * b.value}[kind]
        if dtypes.can_hold(a.dtype, value):
            return IntImm(value, a.dtype)
    if isinstance(b, IntImm) and b.value == (1 if kind == "mul" else 0):
        return a
    if isinstance(a, IntImm) and ((kind == "mul" and a.value == 1) or (kind == "add" and a.value == 0)):
        return b
    return binary(kind, a, b)


_RULES: dict[type, Callable[..., PrimExpr]] = {
    Unary: _unary,
    Cast: _cast,
    Binary: _binary,
    Select: _select,
    BufferLoad: _load,
    Let: _let,
    PrimCall: _call,
    Ramp: _broadcast,
    Broadcast: _broadcast,
}
