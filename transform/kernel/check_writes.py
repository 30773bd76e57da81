"""CheckWrites: reads of scratch and of outputs that are not proved to see a written element are checked to.

    c = T.alloc_buffer((n,))            c = T.alloc_buffer((n,)); c_written = T.alloc_buffer((n,), "bool")
    if s > 0: c[0] = x[0]               for i in range(n): c_written[i] = False
    y[0] = c[0]                         if s > 0: c[0] = x[0]; c_written[0] = True
                                        assert c_written[0], "an element of 'c' is read before it is written"
                                        y[0] = c[0]

What `weft.transform.analysis.written` proves stays as it is: nearly every kernel. Scratch that is seen through views
cannot be followed element by element and begins as zeros; what an external function is given counts as written. The
outputs of a kernel are those that `R.call_tir` and its kin allocate for it, and fresh tensors of the text that it is
given first (`analysis.fresh_outputs`): such calls call a copy of the kernel with checks, in the end also that all of an
output is written. Called from outside, a kernel may read what its caller put there. So nobody sees what memory held
before.

The pass comes before operators are legalised: their kernels write first, which the interpreter shows in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft import dtypes
from weft.ir import Call, Function, GlobalVar, IRModule, PrimFunc, replace, walk
from weft.ir.dim import fresh_name
from weft.ir.kernel.prim import const
from weft.ir.structure.visit import rewrite
from weft.ir.tensor import (
    PREFETCH,
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Block,
    Break,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.analysis.fresh_outputs import output_positions
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import conjunction, disjunction, negated
from weft.transform.analysis.written import Unproved, guarded_loads, is_plainly_written, unproved_reads
from weft.transform.infra.base import Pass
from weft.transform.kernel.bounds.accesses import lane_of
from weft.transform.kernel.check_bounds import check_bounds
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.schedule.copies import fresh_function

__all__ = ["CheckWrites", "check_writes"]


@dataclass(frozen=True)
class CheckWrites(Pass):
    """Assert what is not proved: that every element of scratch and outputs is written before it is read."""

    def run(self, module: IRModule) -> IRModule:
        """The module with checks; the same object when it needs none."""
        new = dict(module.functions)
        for name, function in module.functions.items():
            if isinstance(function, PrimFunc):
                new[name] = check_writes(function, module=module)
        copies = _Copies(module, new)
        for name, function in module.functions.items():
            if isinstance(function, Function):
                new[name] = copies.called(function)
        same = len(new) == len(module.functions) and all(new[name] is old for name, old in module.functions.items())
        return module if same else module.with_functions(new)


class _Copies:
    """Copies of kernels with checks of what they do with their outputs, made where calls need them."""

    def __init__(self, module: IRModule, functions: dict[str, Any]) -> None:
        self.module = module
        self.functions = functions
        self.names: dict[tuple[str, tuple[int, ...]], str] = {}

    def called(self, function: Function) -> Function:
        """A graph function that calls the copies."""
        calls = {id(call): name for call, name in self._named(function)}
        return rewrite(function, lambda node: _redirected(node, calls)) if calls else function

    def _named(self, function: Function) -> Iterable[tuple[Call, str]]:
        for call, callee, outputs in output_positions(function, self.module):
            name = self._name(callee, outputs)
            if name != callee:
                yield call, name

    def _name(self, callee: str, outputs: tuple[int, ...]) -> str:
        """The kernel that a call with such outputs calls."""
        known = self.names.get((callee, outputs))
        if known is not None:
            return known
        kernel = self.module.functions[callee]
        assert isinstance(kernel, PrimFunc)
        params = [param for position in outputs if isinstance(param := kernel.params[position], Buffer)]
        name = callee
        if params and _concerns(kernel, params, self.module):
            name = fresh_name(f"{callee}_checked", set(self.functions))
            checked = fresh_function(check_writes(kernel, params, self.module))
            self.functions[name] = replace(checked, name=name, private=True)
        self.names[callee, outputs] = name
        return name


def _redirected(node: Any, calls: dict[int, str]) -> Call | None:
    """A call of a kernel as one of its copy."""
    name = calls.get(id(node))
    if name is None:
        return None
    if isinstance(node.op, GlobalVar):
        return replace(node, op=replace(node.op, name=name))
    return replace(node, args=(replace(node.args[0], name=name), *node.args[1:]))


def check_writes(function: PrimFunc, outputs: Iterable[Buffer] = (), module: IRModule | None = None) -> PrimFunc:
    """A kernel that reads nothing of its scratch, and of these parameters, that it did not write.

    The same object when that is proved; otherwise a kernel of loops without blocks.

    >>> x, c, i = Buffer("x", (8,)), Buffer("c", (8,)), PrimVar("i", "int64")
    >>> early = SeqStmt((AllocBuffer(c), For(i, 0, 8, BufferStore(x, BufferLoad(c, (i,)), (i,)))))
    >>> checked = check_writes(PrimFunc((x,), early))
    >>> [part.message for part in walk(checked.body) if isinstance(part, AssertStmt)]
    ["an element of 'c' is read before it is written"]
    """
    outputs = tuple(outputs)
    lowered, unproved = _looked_at(function, outputs, module)
    scratch = {part.buffer for part in walk(lowered.body) if isinstance(part, AllocBuffer)}
    viewed = {buffer for buffer in unproved.opaque & {*scratch, *outputs} if _is_viewed(lowered.body, buffer)}
    marked = _Marked(unproved.read | unproved.partial, viewed)
    body = marked.statement(lowered.body) if marked.marks or viewed & scratch else function.body
    first = [part for buffer in outputs for part in marked.begun(buffer)]
    last = [marked.whole(buffer) for buffer in outputs if buffer in unproved.partial]
    if body is function.body and not first:
        return function
    return replace(function if body is function.body else lowered, body=SeqStmt((*first, body, *last)))


def _concerns(kernel: PrimFunc, outputs: Sequence[Buffer], module: IRModule) -> bool:
    """Whether something is to be checked that only holds of outputs."""
    lowered, unproved = _looked_at(kernel, outputs, module)
    viewed = {buffer for buffer in unproved.opaque & set(outputs) if _is_viewed(lowered.body, buffer)}
    return bool((unproved.read | unproved.partial) & set(outputs) or viewed)


def _looked_at(function: PrimFunc, outputs: Iterable[Buffer], module: IRModule | None) -> tuple[PrimFunc, Unproved]:
    """A kernel without blocks, and what is not proved of it."""
    if not _may_read_early(function, set(outputs)) and all(is_plainly_written(function.body, b) for b in outputs):
        return function, Unproved()
    lowered = lower_blocks(function)
    unproved = unproved_reads(lowered, set(outputs))
    if unproved.read or unproved.partial:  # indices that are checked to be in range are known to be
        lowered = check_bounds(lowered, module)
        unproved = unproved_reads(lowered, set(outputs))
    return lowered, unproved


def _may_read_early(function: PrimFunc, outputs: set[Buffer]) -> bool:
    """A quick look: whether a kernel has scratch, or reads an output outside of a reduction with an init."""
    parts = list(walk(function.body))
    if any(isinstance(part, AllocBuffer) or (isinstance(part, Block) and part.alloc_buffers) for part in parts):
        return True
    return any(isinstance(part, BufferLoad) and part.buffer in outputs for part in parts)


def _is_viewed(body: Stmt, buffer: Buffer) -> bool:
    views = (part.buffer.data for part in walk(body) if isinstance(part, DeclBuffer) and part.buffer.data is not None)
    return any(isinstance(load, BufferLoad) and load.buffer is buffer for data in views for load in walk(data))


class _Marked:
    """Statements with a mark for each element of some buffers, and zeros in others from the start."""

    def __init__(self, read: Iterable[Buffer], zeroed: Iterable[Buffer]) -> None:
        self.marks = {buffer: Buffer(f"{buffer.name}_written", buffer.shape, "bool") for buffer in read}
        self.zeroed = set(zeroed)
        self.known = IndexAnalyzer()  # for what variables of expressions stand for

    def begun(self, buffer: Buffer) -> list[Stmt]:
        """What stands where a buffer begins to hold nothing: its marks, none of them set, or zeros."""
        if buffer in self.marks:
            return [AllocBuffer(self.marks[buffer]), _filled(self.marks[buffer])]
        return [_filled(buffer)] if buffer in self.zeroed else []

    def whole(self, buffer: Buffer) -> Stmt:
        """The assertion that every element of an output was written."""
        marks = self.marks[buffer]
        message = f"an element of the output {buffer.name!r} is not written"
        variables = [PrimVar(f"{marks.name}_i{axis}", "int64") for axis in range(marks.ndim)]
        return _nest(marks, variables, AssertStmt(BufferLoad(marks, tuple(variables)), message, "UnwrittenError"))

    def statement(self, stmt: Stmt) -> Stmt:
        """A statement with marks set, and asserted where they are read."""
        parts = self._parts(stmt)
        return parts[0] if len(parts) == 1 else SeqStmt(tuple(parts))

    def _parts(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, SeqStmt):
            return [replace(stmt, stmts=tuple(new for part in stmt.stmts for new in self._parts(part)))]
        if isinstance(stmt, AllocBuffer):
            return [stmt, *self.begun(stmt.buffer)]
        if isinstance(stmt, While):
            return [self._while(stmt)]
        checks = self._checks(stmt)
        if isinstance(stmt, (For, AttrStmt)):
            return [*checks, replace(stmt, body=self.statement(stmt.body))]
        if isinstance(stmt, IfThenElse):
            other = None if stmt.else_body is None else self.statement(stmt.else_body)
            return [*checks, replace(stmt, then_body=self.statement(stmt.then_body), else_body=other)]
        if isinstance(stmt, BufferStore) and stmt.buffer in self.marks:
            lanes = max((dtypes.lanes(index.dtype) for index in stmt.indices), default=1)
            value = const(value=True, dtype="bool" if lanes == 1 else f"boolx{lanes}")
            mark = BufferStore(self.marks[stmt.buffer], value, stmt.indices, stmt.predicate, span=stmt.span)
            return [*checks, stmt, mark]
        return [*checks, stmt]

    def _while(self, stmt: While) -> Stmt:
        """The condition is looked at in every iteration, and with it what it reads."""
        checks = self._of(stmt.condition)
        body = self.statement(stmt.body)
        if not checks:
            return replace(stmt, body=body)
        # Leaving in the middle of the body is leaving the loop: what is read comes first.
        from_here = IfThenElse(negated(stmt.condition), Break(span=stmt.span), span=stmt.span)
        return replace(stmt, condition=IntImm(1, "bool"), body=SeqStmt((*checks, from_here, body)))

    def _checks(self, stmt: Stmt) -> list[Stmt]:
        """The assertions for what a statement itself reads."""
        found: list[Stmt] = []
        if isinstance(stmt, AttrStmt) and stmt.key == PREFETCH:  # which may name a place that is not there
            return found
        for name in ("start", "extent", "step", "condition", "value", "predicate"):
            found += self._of(getattr(stmt, name, None))
        for index in getattr(stmt, "indices", ()):
            found += self._of(index)
        return found

    def _of(self, expr: Any) -> list[Stmt]:
        if not isinstance(expr, PrimExpr):
            return []
        for part in walk(expr):
            if isinstance(part, Let):
                self.known.lets[part.var] = part.value
        loads = [(load, guards) for load, guards in guarded_loads(expr) if load.buffer in self.marks]
        return [self._assertion(load, guards) for load, guards in loads]

    def _assertion(self, load: BufferLoad, guards: Sequence[PrimExpr]) -> AssertStmt:
        lanes = max((dtypes.lanes(index.dtype) for index in load.indices), default=1)
        marks = self.marks[load.buffer]
        parts: list[PrimExpr] = []
        for lane in range(lanes if isinstance(lanes, int) else 1):
            indices = tuple(self.known.closed(lane_of(index, lane)) for index in load.indices)
            closed = [self.known.closed(lane_of(guard, lane)) for guard in guards]
            parts.append(disjunction((*(negated(guard) for guard in closed), BufferLoad(marks, indices))))
        message = f"an element of {load.buffer.name!r} is read before it is written"
        return AssertStmt(conjunction(parts), message, "UnwrittenError", span=load.span)


def _filled(buffer: Buffer) -> Stmt:
    """A buffer of zeros."""
    variables = [PrimVar(f"{buffer.name}_i{axis}", "int64") for axis in range(buffer.ndim)]
    zero = const(value=False, dtype="bool") if dtypes.is_bool(buffer.dtype) else const(0, buffer.dtype)
    return _nest(buffer, variables, BufferStore(buffer, zero, tuple(variables)))


def _nest(buffer: Buffer, variables: Sequence[PrimVar], stmt: Stmt) -> Stmt:
    """A statement for each element of a buffer."""
    for variable, extent in zip(reversed(variables), reversed(buffer.shape), strict=True):
        stmt = For(variable, 0, extent, stmt)
    return stmt
