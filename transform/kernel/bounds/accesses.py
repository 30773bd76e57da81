"""The checks of expressions: every access that is evaluated, where the conditions around it hold.

`AccessChecks` collects them in the order of evaluation; what a check asserts is a fact for those after it. Lanes of
vectors are checked one by one, or at both ends where they are in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft import dtypes
from weft.errors import Span
from weft.ir import IRModule, walk
from weft.ir.dim import Dim
from weft.ir.kernel.prim import as_expr, binary, buffer_strides, cast
from weft.ir.kernel.views import call_views, span_within
from weft.ir.tensor import (
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
    Extent,
    IntImm,
    Let,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    Shuffle,
    Unary,
)
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.exactness import LARGEST, limits_of
from weft.transform.analysis.indices.facts import Fact, Facts, negated
from weft.transform.kernel.bounds.asserted_elements import said_of
from weft.transform.kernel.bounds.checks import Check, Placement, below_largest
from weft.transform.kernel.bounds.values import bind

__all__ = ["AccessChecks", "lane_of"]


class AccessChecks:
    """Collects the checks of expressions."""

    def __init__(self, known: IndexAnalyzer, placement: Placement, module: IRModule | None) -> None:
        self.known = known
        self.placement = placement
        self.functions = {} if module is None else module.functions
        self.found: list[Check] = []

    def checks_of(self, facts: Facts, visit: Callable[[Facts], Facts]) -> tuple[list[Check], Facts]:
        """What a visit finds, and the facts after it."""
        outer, self.found = self.found, []
        facts = visit(facts)
        found, self.found = self.found, outer
        return found, facts

    def expressions(self, facts: Facts, *parts: Any) -> tuple[list[Check], Facts]:
        """The checks of some expressions, and the facts after them."""

        def visit(facts: Facts) -> Facts:
            for part in parts:
                facts = self.visit(part, (), facts)
            return facts

        return self.checks_of(facts, visit)

    def view(self, buffer: Buffer, place: Any, span: Span | None, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        """A buffer lies in the memory that stands from a place on, where it is known what that is a place of."""
        inside = span_within(buffer, place, lambda extent: self.known.dim(extent, facts))
        if inside is None:
            return facts
        message = f"the buffer {buffer.name!r} lies outside of its memory, {inside.memory.name!r}"
        return self._need(message, inside.needs, guards, span, facts)

    def memory(self, buffer: Buffer, span: Span | None, facts: Facts) -> Facts:
        """A buffer that gets memory has sizes and strides that are not negative."""
        parts = (*buffer.shape, *(buffer.strides or ()))
        names = [var for part in parts if isinstance(part, PrimExpr) for var in walk(part) if isinstance(var, PrimVar)]
        message = f"the arithmetic of a size of {buffer.name!r} does not fit 64 bits"  # what the part itself computes
        facts = self.operands_are_exact(message, names, (), buffer.span or span, facts)  # is held by who takes memory
        layout = [self.known.dim(extent, facts) for extent in parts]
        return self._need(f"the buffer {buffer.name!r} has a negative size", layout, (), buffer.span or span, facts)

    def match(self, match: MatchBufferRegion, facts: Facts) -> Facts:
        """The region that a buffer stands for lies in its source, and has the size of the buffer."""
        source, buffer, known = match.source.buffer, match.buffer, self.known
        for axis, (part, extent) in enumerate(zip(match.source.region, source.shape, strict=True)):
            start, count = known.dim(part.start, facts), known.dim(part.extent, facts)
            limit = known.dim(extent, facts) - start - count
            facts = self._need(
                f"region out of range for {source.name!r} (dimension {axis})", (start, limit), (), match.span, facts
            )
        for size, part in zip(buffer.shape, match.source.region[source.ndim - buffer.ndim :], strict=True):
            if isinstance(size, PrimVar) and size not in known.values:
                facts = bind(known, size, cast(size.dtype, as_expr(part.extent, size.dtype)), facts)
                continue
            room = known.dim(part.extent, facts) - known.dim(size, facts)
            facts = self._need(f"the buffer {buffer.name!r} is larger than its region", (room,), (), match.span, facts)
        steps = buffer_strides(source)[source.ndim - buffer.ndim :]
        for stride, step in zip(buffer.strides or (), steps, strict=False):
            if isinstance(stride, PrimVar) and stride not in known.values:
                facts = bind(known, stride, cast(stride.dtype, as_expr(step, stride.dtype)), facts)
                continue
            more = known.dim(stride, facts) - known.dim(step, facts)
            message = f"the strides of the buffer {buffer.name!r} are not those of its region"
            facts = self._need(message, (more, -more), (), match.span, facts)
        if isinstance(buffer.elem_offset, PrimVar) and buffer.elem_offset not in known.values:
            facts = known.unknown(buffer.elem_offset, facts)
        return facts

    def visit(self, expr: Any, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        """Collect the checks of an expression that is evaluated where the guards hold; the facts after it."""
        if isinstance(expr, BufferLoad):
            facts = self.visit_access(expr.buffer, expr.indices, expr.predicate, expr.span, guards, facts)
            for item in facts.elements:
                facts = self.known.assume(said_of(expr, item), facts, exact=True)
            return facts
        if isinstance(expr, Let):
            facts = self.visit(expr.value, guards, facts)
            self.known.lets[expr.var] = expr.value
            return self.visit(expr.body, guards, facts)
        if isinstance(expr, Binary):
            facts = self.visit(expr.a, guards, facts)
            if expr.kind in ("and", "or") and dtypes.lanes(expr.dtype) == 1:
                self._visit_where(expr.a if expr.kind == "and" else negated(expr.a), expr.b, guards, facts)
                return facts
            return self.visit(expr.b, guards, facts)
        if isinstance(expr, PrimCall):
            return self._visit_call(expr, guards, facts)
        parts: Sequence[Any] = ()
        if isinstance(expr, Unary):
            parts = (expr.a,)
        elif isinstance(expr, (Cast, Broadcast)):
            parts = (expr.value,)
        elif isinstance(expr, Select):
            parts = (expr.condition, expr.true_value, expr.false_value)
        elif isinstance(expr, Ramp):
            parts = (expr.base, expr.stride)
        elif isinstance(expr, Shuffle):
            parts = (*expr.vectors, *expr.indices)
        for part in parts:
            facts = self.visit(part, guards, facts)
        return facts

    def _visit_where(self, condition: PrimExpr, expr: Any, guards: tuple[PrimExpr, ...], facts: Facts) -> None:
        condition = self.known.closed(condition)
        self.visit(expr, (*guards, condition), self.known.assume(condition, facts))

    def _visit_call(self, call: PrimCall, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        if call.op == "if_then_else" and isinstance(call.args[0], PrimExpr) and dtypes.lanes(call.args[0].dtype) == 1:
            facts = self.visit(call.args[0], guards, facts)
            self._visit_where(call.args[0], call.args[1], guards, facts)
            self._visit_where(negated(call.args[0]), call.args[2], guards, facts)
            return facts
        for view, place in call_views(call, self.functions):
            facts = self.view(view, place, call.span, guards, facts)
        for arg in call.args:
            if call.op in ("address_of", "access_ptr", "tvm_access_ptr") and isinstance(arg, BufferLoad):
                facts = self._visit_address(arg, guards, facts)
            else:
                facts = self.visit(arg, guards, facts)
        return facts

    def _visit_address(self, load: BufferLoad, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        """An element whose address is taken; that of the first one may be asked of a buffer without elements, too."""
        if all(isinstance(index, IntImm) and index.value == 0 for index in load.indices):
            return facts
        outer = facts
        for extent in load.buffer.shape:
            size = self.known.dim(extent, facts)
            if not self.known.proves(size - 1, facts):
                guards = (*guards, self.known.symbols.condition(size - 1))
                facts = facts.with_facts(Fact(size - 1))
        inside = self.visit_access(load.buffer, load.indices, None, load.span, guards, facts)
        return inside if facts is outer else outer

    def visit_access(
        self,
        buffer: Buffer,
        indices: Sequence[PrimExpr],
        predicate: PrimExpr | None,
        span: Span | None,
        guards: tuple[PrimExpr, ...],
        facts: Facts,
    ) -> Facts:
        """Collect the checks of a load or a store, and of what its indices read."""
        for index in indices:
            facts = self.visit(index, guards, facts)
        if len(indices) != buffer.ndim:
            return facts  # the verifier's to report
        lanes = max((dtypes.lanes(index.dtype) for index in indices), default=1)
        if isinstance(lanes, dtypes.Scalable):
            return facts  # no machine code is made of it
        if predicate is None:
            straight = all(isinstance(index, (Ramp, Broadcast)) or dtypes.lanes(index.dtype) == 1 for index in indices)
            picked = (0,) if lanes == 1 else (0, lanes - 1) if straight else tuple(range(lanes))
            return self._visit_lanes(buffer, indices, picked, span, guards, facts)
        facts = self.visit(predicate, guards, facts)
        for lane in range(lanes):
            active = self.known.closed(lane_of(predicate, lane))
            inside = self.known.assume(active, facts)
            self._visit_lanes(buffer, indices, (lane,), span, (*guards, active), inside)
        return facts

    def _visit_lanes(
        self,
        buffer: Buffer,
        indices: Sequence[PrimExpr],
        picked: Sequence[int],
        span: Span | None,
        guards: tuple[PrimExpr, ...],
        facts: Facts,
    ) -> Facts:
        message = f"the arithmetic of an index of {buffer.name!r} does not fit 64 bits"
        facts = self.operands_are_exact(message, indices, guards, span, facts)
        for axis, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            limit = self.known.dim(extent, facts)
            places = [self.known.dim(lane_of(index, lane), facts) for lane in picked]
            needs = [need for place in places for need in (place, limit - 1 - place)]
            if not isinstance(index, (Ramp, Broadcast)) and dtypes.lanes(index.dtype) != 1:
                largest = limits_of(dtypes.element(index.dtype))[1]  # lanes are computed in their dtype
                needs += [largest - place for place in places if largest < LARGEST]
            message = f"index out of range for {buffer.name!r} (dimension {axis})"
            place, size = self.known.text(places[0]), self.known.text(limit)
            if len(places) == 1 and size is not None:
                message += f": {place or 'the index'} must lie in [0, {size})"
            facts = self._need(message, needs, guards, span, facts)
        return facts

    def operands_are_exact(
        self, message: str, sizes: Sequence[Extent], guards: tuple[PrimExpr, ...], span: Span | None, facts: Facts
    ) -> Facts:
        """What an index or a size divides, takes the remainder of or compares is the number that it says."""
        needed: dict[tuple[int, ...], tuple[tuple[PrimExpr, ...], dict[Dim, None]]] = {}
        for choices, side in (found for size in sizes for found in self.known.operands(size)):
            inside = facts
            for choice in choices:
                inside = self.known.assume(choice, inside)
            dim = self.known.dim(side, facts)
            if not self.known.is_exact(dim, inside):
                needed.setdefault(tuple(map(id, choices)), (choices, {}))[1][dim] = None
        for choices, dims in needed.values():
            check = Check(message, (), (*guards, *choices), tuple(dims), span)
            self.found.append(check)
            known = map(self.placement.fact, below_largest(check.exact))
            facts = self.placement.learn(check, facts) if choices else facts.with_facts(*known)
        return facts

    def _need(
        self, message: str, needs: Iterable[Dim], guards: tuple[PrimExpr, ...], span: Span | None, facts: Facts
    ) -> Facts:
        left = tuple(need for need in dict.fromkeys(needs) if not self.known.proves(need, facts))
        if not left:
            return facts
        check = Check(message, left, guards, span=span)
        self.found.append(check)
        return facts.with_facts(*(self.placement.fact(need) for need in left))


def lane_of(expr: PrimExpr, lane: int) -> PrimExpr:
    """One lane of a vector."""
    if dtypes.lanes(expr.dtype) == 1:
        return expr
    if isinstance(expr, Broadcast):
        return expr.value
    if isinstance(expr, Ramp):
        return expr.base if lane == 0 else binary("add", expr.base, binary("mul", expr.stride, lane))
    if isinstance(expr, Binary):
        return Binary(expr.kind, lane_of(expr.a, lane), lane_of(expr.b, lane), span=expr.span)
    if isinstance(expr, Unary):
        return Unary(expr.kind, lane_of(expr.a, lane), span=expr.span)
    if isinstance(expr, Cast):
        return Cast(dtypes.element(expr.dtype), lane_of(expr.value, lane), span=expr.span)
    return Shuffle((expr,), (IntImm(lane, "int32"),), span=expr.span)
