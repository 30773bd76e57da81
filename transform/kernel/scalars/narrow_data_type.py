"""NarrowDataType: index arithmetic in fewer bits, where it is proved to hold the same numbers.

    for i in range(T.int64(64)):                    for i in range(64):
        y[i * T.int64(8) + j] = x[i]                    y[i * 8 + j] = x[i]         in int32

Loop variables and block variables whose ranges fit change their dtype; sums, products and quotients of them
do where every part and the result fit. Sizes that only the call knows stay as they are: what they could be is not known
to fit. Values that are stored, passed on or compared with others keep their dtype.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import IRModule, replace, substitute
from weft.ir.tensor import (
    COMPARISONS,
    Binary,
    Block,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    For,
    IntImm,
    IterVar,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import Facts
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.facts_rewriter import FactsRewriter

__all__ = ["NarrowDataType"]

_KINDS = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max")


@dataclass(frozen=True)
class NarrowDataType(FunctionPass):
    """Compute indices of kernels in `target_bits` bits where their ranges fit."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    target_bits: Literal[8, 16, 32] = 32

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with narrower indices; the same object when there is nothing to narrow."""
        return _Narrower(function, f"int{self.target_bits}").rewritten()


class _Narrower(FactsRewriter):
    def __init__(self, function: PrimFunc, dtype: str) -> None:
        super().__init__(function)
        self.dtype = dtype

    # Variables --------------------------------------------------------------------------------------------------------

    def statement(self, stmt: Stmt, facts: Facts) -> Stmt:
        """A statement whose variables have their new dtype before its parts are looked at."""
        if isinstance(stmt, For) and stmt.kind != "thread_binding":
            stmt = self._loop(stmt, facts)
        elif isinstance(stmt, Block):
            stmt = self._iterations(stmt, facts)
        return super().statement(stmt, facts)

    def _loop(self, loop: For, facts: Facts) -> For:
        var = loop.loop_var
        if not self._is_wide(var.dtype):
            return loop
        if not all(self._is_narrow(part, facts) for part in (loop.start, loop.extent, loop.step)):
            return loop
        start = self.known.dim(loop.start, facts)
        if not self._fits(start + self.known.dim(loop.extent, facts), facts):
            return loop
        new = replace(var, dtype=self.dtype)
        return replace(loop, loop_var=new, body=substitute(loop.body, {var: Cast(var.dtype, new)}))

    def _iterations(self, block: Block, facts: Facts) -> Block:
        changed: dict[PrimVar, PrimExpr] = {}
        items: list[IterVar] = []
        for item in block.iter_vars:
            value = None if item.value is None else self.expression(item.value, facts)
            narrow = None if value is None else self._narrow(value)
            plain = isinstance(item.start, int) and isinstance(item.extent, int)
            if narrow is None or not plain or not self._is_wide(item.var.dtype):
                items.append(item)
                continue
            var = replace(item.var, dtype=self.dtype)
            changed[item.var] = Cast(item.var.dtype, var)
            items.append(replace(item, var=var, value=narrow))
        return substitute(replace(block, iter_vars=tuple(items)), changed) if changed else block

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, value: PrimExpr, facts: Facts) -> PrimExpr:
        """Conversions to the wide dtype move out of arithmetic, as far as its results fit."""
        if isinstance(value, Binary) and self._is_wide(value.a.dtype):
            a, b = self._narrow(value.a), self._narrow(value.b)
            if a is None or b is None or (isinstance(a, IntImm) and isinstance(b, IntImm)):
                return value
            if value.kind in COMPARISONS:
                return replace(value, a=a, b=b)
            if value.kind in _KINDS and self._fits(self.known.dim(value, facts), facts):
                return Cast(value.dtype, replace(value, a=a, b=b))
        if isinstance(value, Cast) and isinstance(value.value, Cast) and self._is_wide(value.value.dtype):
            inner = value.value.value
            if inner.dtype == self.dtype:
                return inner if value.dtype == inner.dtype else replace(value, value=inner)
        if isinstance(value, BufferLoad):
            return replace(value, indices=self._indices(value.indices))
        return value

    def done(self, stmt: Stmt, facts: Facts) -> Stmt:
        """Indices and bounds of loops need no conversion."""
        if isinstance(stmt, BufferStore):
            return replace(stmt, indices=self._indices(stmt.indices))
        if isinstance(stmt, For) and stmt.loop_var.dtype == self.dtype:
            return replace(stmt, start=self._bare(stmt.start), extent=self._bare(stmt.extent))
        return stmt

    def _indices(self, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        new = tuple(map(self._index, indices))
        return indices if all(a is b for a, b in zip(new, indices, strict=True)) else new

    def _index(self, value: PrimExpr) -> PrimExpr:
        if isinstance(value, IntImm) and self._is_wide(value.dtype) and dtypes.can_hold(self.dtype, value.value):
            return replace(value, dtype=self.dtype)
        bare = self._bare(value)
        return bare if isinstance(bare, PrimExpr) else value

    def _bare(self, value: Extent) -> Extent:
        wide = isinstance(value, Cast) and self._is_wide(value.dtype) and value.value.dtype == self.dtype
        return value.value if wide else value  # type: ignore[union-attr]

    def _is_narrow(self, extent: Extent | None, facts: Facts) -> bool:
        if not isinstance(extent, PrimExpr):
            return extent is None or dtypes.can_hold(self.dtype, extent)
        return self._narrow(self.expression(extent, facts)) is not None

    def _narrow(self, value: PrimExpr) -> PrimExpr | None:
        """The same number in the narrow dtype, where an expression says it without another conversion."""
        if isinstance(value, IntImm):
            return replace(value, dtype=self.dtype) if dtypes.can_hold(self.dtype, value.value) else None
        return value.value if isinstance(value, Cast) and value.value.dtype == self.dtype else None

    def _is_wide(self, dtype: str) -> bool:
        signed = dtypes.is_integer(dtype) and dtypes.is_signed(dtype) and dtypes.lanes(dtype) == 1
        return signed and not dtypes.is_bool(dtype) and dtypes.bits(dtype) > dtypes.bits(self.dtype)

    def _fits(self, dim: object, facts: Facts) -> bool:
        try:
            return self.known.is_exact(dim, facts, self.dtype)  # type: ignore[arg-type]
        except ShapeError:  # over the limits of dimensions
            return False
