"""UseAssumeToReduceBranches: conditions that assumptions make needless are dropped.

    T.evaluate(T.assume(i < 14 or a[i] == 0))       a padded layout says what stands in its padding
    ...
    b[i] = T.if_then_else(i < 14, a[i] * 2, 0)      b[i] = a[i] * 2

A choice is dropped where the value that is taken says the same in the other case: where the condition does not hold,
what is assumed of memory stands in its place, and what is left simplifies to the other value. What assumptions say of
variables decides conditions too. An assumption about memory counts for buffers that the kernel does not write, within
the loops that it stands in. The assumptions stay: `RemoveAssume` drops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from weft.ir import IRModule, Node, rewrite, structural_equal, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    Binary,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import Facts, negated
from weft.transform.analysis.written import opaque_buffers
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.facts_rewriter import FactsRewriter
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.scalars.stmt_simplify import decided

__all__ = ["UseAssumeToReduceBranches"]


@dataclass(frozen=True)
class UseAssumeToReduceBranches(FunctionPass):
    """Drop conditions that are needless where the assumptions of the kernel hold."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with fewer conditions; the same object when it assumes nothing."""
        if not any(isinstance(part, PrimCall) and part.op == "assume" for part in walk(function.body)):
            return function
        new = _Reducer(function, _promises(function)).rewritten()
        return function if new is function else simplify(new)


@dataclass(frozen=True)
class _Promise:
    """That `load` has a value for the loops in which it stands, unless `unless` holds."""

    load: BufferLoad
    value: IntImm | FloatImm
    unless: PrimExpr
    loops: tuple[For, ...]


def _promises(function: PrimFunc) -> list[_Promise]:
    """What the assumptions of a function say of the elements of buffers that it does not write."""
    stored = {part.buffer for part in walk(function.body) if isinstance(part, BufferStore)}
    given = {param for param in function.params if isinstance(param, Buffer)}
    fixed = given - stored - opaque_buffers(function.body, given)
    return [item for item in _assumed(lower_blocks(function).body, ()) if item.load.buffer in fixed]


def _assumed(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[_Promise]:
    if isinstance(stmt, For):
        yield from _assumed(stmt.body, (*loops, stmt))
    for part in getattr(stmt, "stmts", ()):
        yield from _assumed(part, loops)
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, PrimCall) and stmt.value.op == "assume":
        yield from _read(stmt.value.args[0], loops)


def _read(condition: object, loops: tuple[For, ...]) -> Iterator[_Promise]:
    sides: tuple[object, PrimExpr] = (condition, IntImm(0, "bool"))
    if isinstance(condition, Binary) and condition.kind == "or":
        plain = isinstance(condition.b, Binary) and condition.b.kind == "eq"
        sides = (condition.b, condition.a) if plain else (condition.a, condition.b)
    equation, unless = sides
    if not isinstance(equation, Binary) or equation.kind != "eq":
        return
    for load, value in ((equation.a, equation.b), (equation.b, equation.a)):
        if isinstance(load, BufferLoad) and isinstance(value, (IntImm, FloatImm)) and _is_plain(load, loops):
            yield _Promise(load, value, unless, loops)


def _is_plain(load: BufferLoad, loops: Sequence[For]) -> bool:
    """Whether each index is a loop of its own, and the loops step by one."""
    variables = [loop.loop_var for loop in loops]
    used = [index for index in load.indices if isinstance(index, PrimVar)]
    steps = all(loop.step in (None, 1) for loop in loops)
    return steps and len(used) == len(load.indices) == len(set(used)) and set(used) == set(variables)


class _Reducer(FactsRewriter):
    def __init__(self, function: PrimFunc, promises: list[_Promise]) -> None:
        super().__init__(function)
        self.promises = promises

    def value(self, value: PrimExpr, facts: Facts) -> PrimExpr:
        """Choices that both sides agree on, and conditions that are decided."""
        answer = decided(self, value, facts)
        if answer is not None:
            return IntImm(int(answer), "bool")
        if isinstance(value, PrimCall) and value.op == "if_then_else":
            condition, first, second = (arg for arg in value.args if isinstance(arg, PrimExpr))
            if self._agree(condition, first, second, facts):
                return first
            if self._agree(negated(condition), second, first, facts):
                return second
        return value

    def done(self, stmt: Stmt, facts: Facts) -> Stmt:
        """Branches that store the same."""
        if not isinstance(stmt, IfThenElse) or not isinstance(stmt.else_body, BufferStore):
            return stmt
        first, second = stmt.then_body, stmt.else_body
        if not isinstance(first, BufferStore) or not _same_place(first, second):
            return stmt
        return first if self._agree(stmt.condition, first.value, second.value, facts) else stmt

    def _agree(self, condition: PrimExpr, taken: PrimExpr, other: PrimExpr, facts: Facts) -> bool:
        """Whether a value that is taken where a condition holds is the other one where it does not."""
        outside = self.known.assume(negated(condition), facts)
        changed = False

        def known(node: Node) -> Node | None:
            nonlocal changed
            if isinstance(node, Buffer):
                return node
            value = self._promised(node, outside) if isinstance(node, BufferLoad) else None
            changed = changed or value is not None
            return value

        new = rewrite(taken, pre=known)
        loads = any(isinstance(part, BufferLoad) for part in walk(new))
        return changed and not loads and structural_equal(simplify(new), simplify(other))

    def _promised(self, load: BufferLoad, facts: Facts) -> PrimExpr | None:
        """What is known to stand at a place."""
        for promise in self.promises:
            if promise.load.buffer is not load.buffer or len(load.indices) != len(promise.load.indices):
                continue
            places = dict(zip(promise.load.indices, load.indices, strict=True))
            loops = {loop.loop_var: cast(loop.loop_var.dtype, places[loop.loop_var]) for loop in promise.loops}
            needs = [negated(substitute(promise.unless, loops)), *_within(promise.loops, loops)]
            if all(self.known.holds(need, facts) for need in needs):
                return promise.value
        return None


def _within(loops: Sequence[For], values: dict[PrimVar, PrimExpr]) -> Iterator[PrimExpr]:
    """That values lie in the ranges of loops."""
    for loop in loops:
        value, dtype = values[loop.loop_var], loop.loop_var.dtype
        start = substitute(as_expr(loop.start, dtype), values)
        yield binary("le", start, value)
        yield binary("lt", value, binary("add", start, substitute(as_expr(loop.extent, dtype), values)))


def _same_place(first: BufferStore, second: BufferStore) -> bool:
    same = first.buffer is second.buffer and first.predicate is second.predicate is None
    return same and structural_equal(first.indices, second.indices)
