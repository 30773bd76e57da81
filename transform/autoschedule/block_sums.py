"""BlockSums: long sums of floats that nothing else arranged run in blocks, each with an accumulator of its own.

    for i, k: y[i] = y[i] + f(i, k)      for i: y[i] = start
                                           for k2: s2 = 0
                                             for k1: s1 = 0
                                               for k0 in range(1024): s1 = s1 + f(i, k)
                                               s2 = s2 + s1
                                             y[i] = y[i] + s2

One accumulator of float32 stands still at 2^24 ones, and is wrong by more than half after 40 million numbers; here no
value is added to more often than `block` times (the outermost more often from block^3 terms on). At `opt=0` these are
all sums; at other levels, and for back ends without vectors, those that no rule knows. Sums of up to four blocks, of
integers and of float64, and loops that a user scheduled stay as they are.

Source: Higham, The accuracy of floating point summation, 1993 (blocked summation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

from weft.dtypes import is_float
from weft.ir import IRModule, replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import Nest, nest_of, statements_of
from weft.transform.autoschedule.rules.loops import BLOCK, INDEX, minus, nested, plus, sequence, times
from weft.transform.autoschedule.rules.strides import loads_in, same_place, uses
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.decisions import Decision, with_decisions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.options import AtLeast
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["BlockSums"]

_SHORT = 4
"""So many blocks are no long sum yet."""


@dataclass(frozen=True)
class BlockSums(Pass):
    """Add up long sums of floats in blocks of `block` terms.

    >>> str(BlockSums(256))
    'block-sums{block=256}'
    """

    exact: ClassVar[str] = "real"
    block: Annotated[int, AtLeast(2)] = BLOCK

    @classmethod
    def sample(cls, choices: Choices) -> tuple[BlockSums, str]:
        """Sums of sizes around a few blocks."""
        return cls(choices.integer(2, 5)), _sample(choices)

    def run(self, module: IRModule) -> IRModule:
        """Every tensor function."""
        return map_functions(module, lambda name, function: self._function(function), PrimFunc)

    def _function(self, function: PrimFunc) -> PrimFunc:
        if is_scheduled(function):
            return function
        made: list[Decision] = []
        stmts = [self._statement(stmt, made) for stmt in statements_of(function.body)]
        if not made:
            return function
        return with_decisions(replace(function, body=sequence(stmts)), made)

    def _statement(self, stmt: Stmt, made: list[Decision]) -> Stmt:
        nest = nest_of(stmt)
        if nest is None or not nest.reduction:
            return stmt
        term = _term(nest)
        if term is None or self._is_short(nest):
            return stmt
        nest = nest_of(with_wide_indices(stmt))
        term = None if nest is None else _term(nest)
        if nest is None or term is None:
            return stmt
        about = nest.store.buffer.name if nest.block is None else nest.block.name
        reason = "one accumulator for so many terms would lose digits"
        made.append(Decision(about, "blocked_sum", {"block": self.block}, reason))
        return self._blocked(nest, term)

    def _is_short(self, nest: Nest) -> bool:
        extents = [nest.extents[var] for var in nest.reduction]
        known = [extent for extent in extents if isinstance(extent, int)]
        return len(known) == len(extents) and math.prod(known) <= _SHORT * self.block

    def _blocked(self, nest: Nest, term: PrimExpr) -> Stmt:
        spatial: dict[PrimVar, PrimExpr] = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in nest.spatial}
        store, init = nest.store, nest.init
        assert init is not None
        indices = tuple(substitute(index, spatial) for index in store.indices)
        loops: list[tuple[PrimVar, Extent]] = []
        places: dict[PrimVar, PrimExpr] = {}
        for var in nest.reduction:
            places[var] = self._cut(var.name.removeprefix("v"), nest.extents[var], loops)
        total = BufferLoad(store.buffer, indices)
        begin = BufferStore(store.buffer, substitute(init.value, spatial), indices, span=init.span)
        body = SeqStmt((begin, _summed(total, loops, substitute(term, {**spatial, **places}))))
        return nested([(spatial[var], nest.extents[var]) for var in nest.spatial], body)  # type: ignore[misc]

    def _cut(self, name: str, extent: Extent, loops: list[tuple[PrimVar, Extent]]) -> PrimExpr:
        """Loops over an axis, of no more steps than a block where they are not the outermost; the place along it."""
        start: Extent = 0
        for power in (2, 1):
            size = self.block**power
            if isinstance(extent, int) and extent <= size:
                continue
            outer = PrimVar(f"{name}_{size}", INDEX)
            loops.append((outer, _ceil(extent, size)))
            start = plus(start, times(outer, size))
            extent = binary("min", as_expr(minus(extent, times(outer, size)), INDEX), const(size, INDEX))
        inner = PrimVar(name, INDEX)
        loops.append((inner, extent))
        return plus(start, inner)


def _ceil(extent: Extent, size: int) -> Extent:
    return (
        -(-extent // size)
        if isinstance(extent, int)
        else binary("floordiv", plus(extent, size - 1), const(size, INDEX))
    )


def _summed(total: BufferLoad, loops: Sequence[tuple[PrimVar, Extent]], term: PrimExpr) -> Stmt:
    """The loops, each but the innermost with an accumulator for what is inside of it, added to `total`."""
    (var, extent), *more = loops
    if not more:
        return For(var, 0, extent, _add(total, term))
    accumulator = Buffer(f"sum_{more[0][0].name}", (1,), total.dtype, "local")
    own = BufferLoad(accumulator, (const(0, INDEX),))
    clear = BufferStore(accumulator, const(0, total.dtype), own.indices)
    return For(var, 0, extent, SeqStmt((AllocBuffer(accumulator), clear, _summed(own, more, term), _add(total, own))))


def _add(total: BufferLoad, value: PrimExpr) -> Stmt:
    return BufferStore(total.buffer, binary("add", total, value), total.indices)


def _term(nest: Nest) -> PrimExpr | None:
    """What a nest sums in a float type that rounds soon; None where it is no such sum."""
    store, init, value = nest.store, nest.init, nest.store.value
    dtype = store.buffer.dtype
    if init is None or not same_place(init, store) or not isinstance(value, Binary) or value.kind != "add":
        return None
    if not is_float(dtype) or dtype == "float64" or value.dtype != dtype:
        return None
    own = [part for part in (value.a, value.b) if isinstance(part, BufferLoad) and same_place(part, store)]
    if len(own) != 1:
        return None
    term = value.b if own[0] is value.a else value.a
    if any(load.buffer is store.buffer for load in (*loads_in(term), *loads_in(init.value))):
        return None
    if any(uses(part, var) for part in (init.value, *store.indices) for var in nest.reduction):
        return None
    return term


def _sample(choices: Choices) -> str:
    rows, columns = choices.pick((1, 3)), choices.pick(('"n"', "61", "26", "125", "0"))
    return f"""@I.ir_module
class Module:
    @T.prim_func(private=True)
    def total(x: T.Buffer(({rows}, {columns}), "float32"), y: T.Buffer(({rows},), "float32")):
        for i, k in T.grid({rows}, {columns.strip('"')}):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    y[vi] = T.float32(0)
                y[vi] = y[vi] + x[vi, vk]

    @R.function
    def main(x: R.Tensor(({rows}, {columns}), "float32")) -> R.Tensor(({rows},), "float32"):
        y = R.call_tir(Module.total, (x,), out_ty=R.Tensor(({rows},), "float32"))
        return y
"""
