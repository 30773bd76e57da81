"""Kernels that change part of an input, as kernels that change the input itself.

    for i in range(n): y[i] = x[i]      y[k] = v                        x[k] = v
    for i in range(n):                                                  for i in range(b - a):
        y[i] = if_then_else(a <= i and i < b, v[i - a], x[i])               x[i + a] = v[i]

What remains takes time by the number of elements that change. The first form is one where y is written after the copy
and x is not read after the first of these stores; the second one where each element of y needs of x at most the element
at its place (`sharing_pairs`). A kernel whose loops all stay as they are is none of these: writing over its input saves
memory only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TypeGuard

from weft.ir import replace, rewrite, structural_equal, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.node import Node
from weft.ir.structure.visit import nodes_of
from weft.ir.tensor import (
    AssertStmt,
    Binary,
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
    Unary,
)
from weft.support.records import dataclass
from weft.transform.analysis.accesses import sharing_pairs
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.own_names import with_own_names, with_own_nodes
from weft.transform.kernel.scheduled import is_scheduled

__all__ = ["Overwriting", "overwriting"]


@dataclass(frozen=True)
class Overwriting:
    """A kernel without one of the outputs of another: its input number `source` is that output."""

    kernel: PrimFunc
    source: int


def overwriting(kernel: PrimFunc, inputs: int) -> Overwriting | None:
    """The kernel that changes one of its first `inputs` parameters in place of its only output, which comes next.

    None where no input allows that, or where no less would be done.
    """
    output = kernel.params[inputs] if inputs < len(kernel.params) else None
    if not isinstance(output, Buffer) or is_scheduled(kernel):
        return None
    alike = [(at, item) for at, item in enumerate(kernel.params[:inputs]) if _are_alike(item, output)]
    if not _keeps_elements(kernel, output, {output, *(given for _, given in alike)}):
        return None
    lowered = lower_blocks(kernel).body
    for source, given in alike:
        body = _without_copy(lowered, given, output)
        if body is None:
            body = _narrowed(_renamed(lowered, given, output), given, kernel)
            body = body if body is not None and (source, inputs) in sharing_pairs(kernel) else None
        if body is not None:
            params = (*kernel.params[:inputs], *kernel.params[inputs + 1 :])
            return Overwriting(with_own_nodes(replace(kernel, params=params, body=body)), source)
    return None


def _keeps_elements(kernel: PrimFunc, output: Buffer, alike: Set[Buffer]) -> bool:
    """Whether some store gives the output an element of a buffer like it as it is: a quick look before any other."""
    stores = (store for store in nodes_of(kernel, BufferStore) if store.buffer is output)
    values = (arm.value for store in stores for arm in _arms(store.value, ()))
    return any(isinstance(value, BufferLoad) and value.buffer in alike for value in values)


def _are_alike(a: object, b: Buffer) -> TypeGuard[Buffer]:
    """Whether two buffers are of one dtype and shape, without places in other memory."""
    if not isinstance(a, Buffer):
        return False
    plain = all(item.strides is None and item.elem_offset is None and item.data is None for item in (a, b))
    if not plain or a.dtype != b.dtype or a.scope != b.scope or len(a.shape) != len(b.shape):
        return False
    return all(structural_equal(as_expr(x), as_expr(y)) for x, y in zip(a.shape, b.shape, strict=True))


def _renamed(body: Stmt, given: Buffer, output: Buffer) -> Stmt:
    return rewrite(body, lambda node: given if node is output else None)


def _statements(body: Stmt) -> Sequence[Stmt]:
    return body.stmts if isinstance(body, SeqStmt) else (body,)


def _uses(node: Node, buffer: Buffer) -> bool:
    return any(part is buffer for part in walk(node))


def _without_copy(body: Stmt, given: Buffer, output: Buffer) -> Stmt | None:
    """A body whose first use of the output is a copy of the input, without it."""
    parts = list(_statements(body))
    first = next((at for at, part in enumerate(parts) if _uses(part, output)), None)
    if first is None or not _is_copy(parts[first], given, output):
        return None
    after = parts[first + 1 :]
    reads = [at for at, part in enumerate(after) if _uses(part, given)]
    stores = [at for at, part in enumerate(after) if _uses(part, output)]
    if reads and reads[-1] > (stores[0] if stores and _stores_once(after[stores[0]], output) else -1):
        return None
    return _renamed(SeqStmt((*parts[:first], *parts[first + 1 :])), given, output)


def _stores_once(stmt: Stmt, output: Buffer) -> bool:
    """Whether a statement is one store into a buffer, done once, after all that it reads."""
    if isinstance(stmt, SeqStmt):
        *before, stmt = stmt.stmts
        if not all(isinstance(part, (Bind, AssertStmt)) and not _uses(part, output) for part in before):
            return False
    return isinstance(stmt, BufferStore) and stmt.buffer is output and not _uses(stmt.value, output)


def _is_copy(stmt: Stmt, given: Buffer, output: Buffer) -> bool:
    loops, store = _nest(stmt)
    if not isinstance(store, BufferStore) or store.buffer is not output or not isinstance(store.value, BufferLoad):
        return False
    return store.value.buffer is given and _same(store.value.indices, store.indices) and bool(loops or not given.shape)


def _same(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(x is y or structural_equal(x, y) for x, y in zip(a, b, strict=True))


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """The loops of a perfect nest, and what stands in them."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind == "serial" and stmt.step in (None, 1) and not stmt.annotations:
        loops.append(stmt)
        stmt = stmt.body
        while isinstance(stmt, SeqStmt) and len(stmt.stmts) == 1:
            stmt = stmt.stmts[0]
    return loops, stmt


# Choices ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arm:
    """A value, and the conditions under which an element has it."""

    conditions: tuple[PrimExpr, ...]
    value: PrimExpr


def _narrowed(body: Stmt, own: Buffer, kernel: PrimFunc) -> Stmt | None:
    """A body in which loops that leave elements as they are run over the others; None where there is no such loop."""
    new = [_changes(part, own, kernel) for part in _statements(body)]
    if all(part is None for part in new):
        return None
    return SeqStmt(tuple(old if part is None else part for old, part in zip(_statements(body), new, strict=True)))


def _changes(stmt: Stmt, own: Buffer, kernel: PrimFunc) -> Stmt | None:
    """A nest that gives elements of a buffer their old values under conditions, as nests over those that change."""
    loops, store = _nest(stmt)
    if not isinstance(store, BufferStore) or store.buffer is not own:
        return None
    arms = list(_arms(store.value, ()))
    changed = [arm for arm in arms if not _is_old(arm.value, store)]
    if len(changed) == len(arms):
        return None
    later = (condition for arm in changed[1:] for condition in arm.conditions)
    if any(_uses(condition, own) for condition in later):  # the nests before have changed what they ask for
        return None
    nests = [_over_part(loops, replace(store, value=arm.value), arm.conditions) for arm in changed]
    if any(nest is None for nest in nests):
        return None
    return SeqStmt(tuple(with_own_names(nest, kernel) for nest in nests if nest is not None))


def _arms(value: PrimExpr, conditions: tuple[PrimExpr, ...]) -> Iterator[_Arm]:
    parts: Sequence[PrimExpr] | None = None
    if isinstance(value, Select):
        parts = (value.condition, value.true_value, value.false_value)
    elif isinstance(value, PrimCall) and value.op == "if_then_else":
        parts = value.args  # type: ignore[assignment]
    if parts is None:
        yield _Arm(conditions, value)
        return
    condition, first, second = parts
    yield from _arms(first, (*conditions, *_conjuncts(condition)))
    yield from _arms(second, (*conditions, Unary("not", condition)))


def _conjuncts(condition: PrimExpr) -> Iterator[PrimExpr]:
    if isinstance(condition, Binary) and condition.kind == "and":
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    else:
        yield condition


def _is_old(value: PrimExpr, store: BufferStore) -> bool:
    return isinstance(value, BufferLoad) and value.buffer is store.buffer and _same(value.indices, store.indices)


def _over_part(loops: Sequence[For], store: BufferStore, conditions: Sequence[PrimExpr]) -> Stmt | None:
    """The nest over the iterations that conditions leave; None where they bound no loop."""
    variables = {loop.loop_var for loop in loops}
    low: dict[PrimVar, list[PrimExpr]] = {}
    high: dict[PrimVar, list[PrimExpr]] = {}
    rest: list[PrimExpr] = []
    for condition in conditions:
        bound = _bound(condition, variables)
        if bound is None:
            rest.append(condition)
        else:
            variable, end, is_low = bound
            (low if is_low else high).setdefault(variable, []).append(end)
    if not low and not high:
        return None
    body: Stmt = store
    for condition in reversed(rest):
        body = IfThenElse(condition, body)
    for loop in reversed(loops):
        body = _over_range(loop, body, low.get(loop.loop_var, ()), high.get(loop.loop_var, ()))
    return body


def _over_range(loop: For, body: Stmt, low: Sequence[PrimExpr], high: Sequence[PrimExpr]) -> Stmt:
    """A loop between bounds, which counts from 0."""
    variable = loop.loop_var
    if not low and not high:
        return replace(loop, body=body)
    start, stop = as_expr(loop.start, variable.dtype), as_expr(loop.start, variable.dtype) + loop.extent
    for bound in low:
        start = bound if _is_zero(start) and _is_never_negative(bound) else binary("max", start, bound)
    for bound in high:
        stop = binary("min", stop, bound)
    if _is_zero(start):
        return replace(loop, start=0, extent=binary("max", stop, const(0, variable.dtype)), body=body)
    counter = PrimVar(variable.name, variable.dtype)
    moved = substitute(body, {variable: counter + start})
    extent = binary("max", stop - start, const(0, variable.dtype))
    return replace(loop, loop_var=counter, start=0, extent=extent, body=moved)


def _is_zero(value: PrimExpr) -> bool:
    return isinstance(value, IntImm) and value.value == 0


def _is_never_negative(value: PrimExpr) -> bool:
    return isinstance(value, IntImm) and value.value >= 0


def _bound(condition: PrimExpr, variables: set[PrimVar]) -> tuple[PrimVar, PrimExpr, bool] | None:
    """(variable, bound, whether it is the lower one) of `v >= bound`, `v - bound >= 0` and `v < bound`."""
    if not isinstance(condition, Binary):
        return None
    if condition.kind == "ge" and isinstance(condition.a, PrimVar):
        found = condition.a, condition.b, True
    elif condition.kind == "lt" and isinstance(condition.a, PrimVar):
        found = condition.a, condition.b, False
    elif condition.kind == "ge" and _is_zero(condition.b) and isinstance(condition.a, Binary):
        away = condition.a
        if away.kind != "sub" or not isinstance(away.a, PrimVar):
            return None
        found = away.a, away.b, True
    else:
        return None
    variable, bound, is_low = found
    outside = not any(node in variables for node in walk(bound) if isinstance(node, PrimVar))
    outside = outside and not any(isinstance(node, BufferLoad) for node in walk(bound))
    return (variable, bound, is_low) if variable in variables and outside else None
