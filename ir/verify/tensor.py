"""Checks of tensor-level functions: one walk that keeps what is visible, and hands every node to the checks of its
kind.

scope ::= variables and buffers visible here; what a statement of a sequence introduces stays visible in its rest
"""

# What stands in a field may be anything until it is verified.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import Span, described
from weft.ir.attrs import Carrier
from weft.ir.graph import GlobalVar
from weft.ir.node import Node
from weft.ir.structure.recursion import deeply
from weft.ir.structure.visit import MANY_NODES, children, refuse_repetition
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Block,
    Break,
    Buffer,
    BufferLoad,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.ir.types import PrimType
from weft.ir.verify import accesses, blocks, calls, expressions, views
from weft.ir.verify.findings import Finding, Report
from weft.ir.verify.values import Deduction

__all__ = ["check_tensor"]

_LOOPS = ("serial", "parallel", "vectorized", "unrolled", "thread_binding")


def check_tensor(function: PrimFunc, deduction: Deduction, report: Report) -> None:
    """W450-W477 for a tensor-level function."""

    def walked() -> list[Finding]:
        own = Report(report.function)
        _Walk(function, deduction, own).run()
        return own.findings

    report.findings += deeply(function, walked)  # statements nest as deep as the program does
    accesses.check_ranges(function, report)
    views.check_views(function, deduction.context.functions, report)  # type: ignore[arg-type]
    blocks.check_locals(function, report)


class _Names:
    """What is visible, and what was: variables and buffers in scopes."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.visible: set[Node] = set()
        self.defined: set[Node] = set()
        self.opened: list[list[Node]] = [[]]

    def define(self, node: PrimVar | Buffer, span: Span | None = None) -> None:
        """Make a variable or buffer visible until the scope ends (W452)."""
        if node in self.defined:
            kind = "variable" if isinstance(node, PrimVar) else "buffer"
            self.report.add("W452", f"{kind} {node.name!r} is defined twice", node.span or span, key=node)
        self.defined.add(node)
        if node not in self.visible:
            self.visible.add(node)
            self.opened[-1].append(node)

    def scoped(self, run: Callable[[], None]) -> None:
        """Run with a scope of its own."""
        self.opened.append([])
        run()
        self.visible.difference_update(self.opened.pop())

    def buffer(self, buffer: Buffer, span: Span | None) -> None:
        """W451 where a buffer is not visible."""
        if buffer not in self.visible:
            known = "is not visible here" if buffer in self.defined else "is not defined"
            self.report.add("W451", f"buffer {buffer.name!r} {known}", span, key=buffer)

    def variable(self, variable: PrimVar, code: str) -> None:
        """W450, or W453 in layouts of parameters, where a variable is not visible."""
        if variable in self.visible:
            return
        if code == "W453":
            hint = "give the symbol a dimension of its own"
            self.report.add(
                "W453",
                f"the sizes of the parameters do not determine {variable.name!r}",
                variable.span,
                hint=hint,
                key=variable,
            )
            return
        known = "is not visible here" if variable in self.defined else "is not defined"
        self.report.add("W450", f"variable {variable.name!r} {known}", variable.span, key=variable)


class _Walk:
    def __init__(self, function: PrimFunc, deduction: Deduction, report: Report) -> None:
        self.function = function
        self.functions = deduction.context.functions
        self.closed = deduction.closed
        self.report = report
        self.names = _Names(report)
        self.varying: set[PrimVar] = set()
        self.loops = 0

    def run(self) -> None:
        self.report.add_attributes(self.function.attrs, Carrier.KERNEL, self.report.function, self.function.span)
        self._parameters()
        self.statement(self.function.body)

    def _parameters(self) -> None:
        layouts: list[Extent] = []
        for param in self.function.params:
            self.names.define(param)
            if isinstance(param, Buffer):
                layouts.extend(
                    (*param.shape, *(param.strides or ()), *(() if param.elem_offset is None else (param.elem_offset,)))
                )
        for extent in layouts:
            if isinstance(extent, PrimVar) and extent not in self.names.visible:
                self.names.define(extent)
        for param in self.function.params:
            if isinstance(param, Buffer):
                if isinstance(param.elem_offset, int) and param.elem_offset < 0:
                    message = f"buffer {param.name!r} begins {-param.elem_offset} elements in front of its memory"
                    self.report.add("W462", message, param.span)
                self.layout(param, "W453")

    def layout(self, buffer: Buffer, code: str = "W450") -> None:
        """The sizes, strides and offset of a buffer that becomes visible."""
        for extent in (*buffer.shape, *(buffer.strides or ())):
            if isinstance(extent, int) and extent < 0:
                self.report.add("W462", f"buffer {buffer.name!r} has the size {extent}", buffer.span)
        align = buffer.align  # 0 and the field's -1: that of its elements
        if align not in (0, -1) and (align & (align - 1) or not 0 < align < 1 << 31):
            message = f"buffer {buffer.name!r} has the alignment {buffer.align}, which is no power of two below 2**31"
            self.report.add("W462", message, buffer.span)
        for extent in (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset, buffer.data):
            if isinstance(extent, PrimExpr):
                self.expression(extent, code)

    # Statements

    def statement(self, node: Stmt) -> None:
        """Check a statement and what is in it."""
        check = _STATEMENTS.get(type(node))
        if check is not None:
            check(self, node)

    def region(self, buffer: Buffer, region: tuple[Any, ...], span: Span | None) -> None:
        self.names.buffer(buffer, span)
        if len(region) != buffer.ndim:
            self.report.add(
                "W455", f"a region of {buffer.name!r} has {len(region)} ranges for {buffer.ndim} dimensions", span
            )
        for part in region:
            for extent in (part.start, part.extent):
                if isinstance(extent, PrimExpr):
                    self.expression(extent)

    # Expressions

    def expression(self, root: Node, code: str = "W450") -> None:
        """Check an expression and all in it, without recursion on depth."""
        stack: list[Node | Callable[[], None]] = [root]
        steps = 0
        while stack:
            steps += 1
            if steps == MANY_NODES:
                refuse_repetition(root)
            current = stack.pop()
            if not isinstance(current, Node):
                current()
            elif isinstance(current, PrimVar):
                self.names.variable(current, code)
            elif isinstance(current, Buffer):
                self.names.buffer(current, root.span)
            elif isinstance(current, Let):
                stack.extend((self._leave_let(current.var), current.body, self._enter_let(current), current.value))
            else:
                if isinstance(current, BufferLoad):
                    accesses.check_load(current, self.report)
                elif isinstance(current, PrimCall):
                    self._call(current)
                expressions.check_expression(current, self.report)
                stack.extend(reversed(list(children(current, types=False))))

    def _enter_let(self, node: Let) -> Callable[[], None]:
        return lambda: self.names.define(node.var, node.span)

    def _leave_let(self, variable: PrimVar) -> Callable[[], None]:
        def leave() -> None:
            # The same Let may occur again where an expression is shared.
            self.names.visible.discard(variable)
            self.names.defined.discard(variable)

        return leave

    def _call(self, node: PrimCall) -> None:
        if isinstance(node.op, GlobalVar):
            callee = self.functions.get(node.op.name)
            if callee is None and self.closed:
                self.report.add("W408", f"the module has no function {node.op.name!r}", node.span)
            elif isinstance(callee, PrimFunc):
                calls.check_kernel_call(node, callee, node.op.name, self.report)


def _check_sequence(walk: _Walk, node: SeqStmt) -> None:
    def steps() -> None:
        for step in node.stmts:
            walk.statement(step)

    walk.names.scoped(steps)


def _check_store(walk: _Walk, node: BufferStore) -> None:
    walk.names.buffer(node.buffer, node.span)
    for part in (node.value, *node.indices):
        if not isinstance(part, PrimExpr):
            message = f"a store into {node.buffer.name!r} takes expressions, got {described(part)}"
            walk.report.add("W457", message, node.span, hint="weft.ir.kernel.prim.const makes one of a number")
            return
    for index in node.indices:
        walk.expression(index)
    walk.expression(node.value)
    if node.predicate is not None:
        walk.expression(node.predicate)
    accesses.check_store(node, walk.report)


def _check_for(walk: _Walk, node: For) -> None:
    for part in (node.start, node.extent, node.step):
        if isinstance(part, PrimExpr):
            walk.expression(part)
            expressions.check_integer(part, "a loop bound", walk.report, node.span)
    if node.kind not in _LOOPS:
        walk.report.add("W466", f"unknown loop kind {node.kind!r}", node.span, hint=f"one of {', '.join(_LOOPS)}")
    if node.kind == "thread_binding" and not node.thread:
        walk.report.add("W466", "a thread-bound loop does not name its thread", node.span)
    if isinstance(node.step, int) and node.step <= 0:
        walk.report.add("W466", f"the step of a loop is {node.step}", node.span)
    if isinstance(node.extent, int) and node.extent < 0:
        walk.report.add("W462", f"loop {node.loop_var.name!r} has the extent {node.extent}", node.span)

    if node.annotations:
        walk.report.add_attributes(node.annotations, Carrier.LOOP, f"loop {node.loop_var.name!r}", node.span)

    def body() -> None:
        walk.names.define(node.loop_var, node.span)
        walk.varying.add(node.loop_var)
        walk.statement(node.body)

    walk.loops += 1
    walk.names.scoped(body)
    walk.loops -= 1


def _check_while(walk: _Walk, node: While) -> None:
    walk.expression(node.condition)
    expressions.check_condition(node.condition, walk.report, node.span)
    walk.loops += 1
    walk.names.scoped(lambda: walk.statement(node.body))
    walk.loops -= 1


def _check_if(walk: _Walk, node: IfThenElse) -> None:
    walk.expression(node.condition)
    expressions.check_condition(node.condition, walk.report, node.span)
    for branch in (node.then_body, node.else_body):
        if branch is not None:
            walk.names.scoped(lambda branch=branch: walk.statement(branch))


def _check_bind(walk: _Walk, node: Bind) -> None:
    walk.expression(node.value)
    expressions.check_same(node.var.dtype, node.value, f"variable {node.var.name!r}", walk.report, node.span)
    walk.names.define(node.var, node.span)


def _check_allocate(walk: _Walk, node: AllocBuffer | DeclBuffer) -> None:
    walk.layout(node.buffer)
    walk.names.define(node.buffer, node.span)


def _check_assert(walk: _Walk, node: AssertStmt) -> None:
    walk.expression(node.condition)
    expressions.check_condition(node.condition, walk.report, node.span)


def _check_attribute(walk: _Walk, node: AttrStmt) -> None:
    def inside() -> None:
        if isinstance(node.node, IterVar) and node.node.var not in walk.names.visible:
            walk.names.define(node.node.var, node.span)
        walk.statement(node.body)

    if isinstance(node.value, PrimExpr):
        walk.expression(node.value)
    walk.names.scoped(inside)


def _check_evaluate(walk: _Walk, node: Evaluate) -> None:
    walk.expression(node.value)


def _check_jump(walk: _Walk, node: Break | Continue) -> None:
    if not walk.loops:
        walk.report.add("W464", f"{type(node).__name__.lower()} outside a loop", node.span)


def _check_return(walk: _Walk, node: Return) -> None:
    declared = walk.function.ret_type
    wanted = declared.dtype if isinstance(declared, PrimType) else None
    if node.value is not None:
        walk.expression(node.value)
        if wanted is not None:
            expressions.check_same(wanted, node.value, "the result", walk.report, node.span, code="W465")
    elif wanted is not None:
        walk.report.add("W465", f"the function returns {wanted}, and this return has no value", node.span)


def _check_block(walk: _Walk, node: Block) -> None:
    walk.report.path, outer = f"block {node.name}", walk.report.path
    walk.names.scoped(lambda: _inside_block(walk, node))
    blocks.check_block(node, walk.varying, walk.report)
    walk.report.path = outer


def _inside_block(walk: _Walk, node: Block) -> None:
    if node.annotations:
        walk.report.add_attributes(node.annotations, Carrier.BLOCK, f"block {node.name!r}", node.span)
    for variable in node.iter_vars:
        for part in (variable.start, variable.extent, variable.value):
            if isinstance(part, PrimExpr):
                walk.expression(part)
                expressions.check_integer(part, f"the binding of {variable.var.name!r}", walk.report, node.span)
    for variable in node.iter_vars:
        walk.names.define(variable.var, node.span)
        walk.varying.add(variable.var)
    if node.predicate is not None:
        walk.expression(node.predicate)
        expressions.check_condition(node.predicate, walk.report, node.span)
    for buffer in node.alloc_buffers:
        walk.layout(buffer)
        walk.names.define(buffer, node.span)
    for match in node.match_buffers:
        walk.region(match.source.buffer, match.source.region, node.span)
        for extent in (*match.buffer.shape, *(match.buffer.strides or ()), match.buffer.elem_offset):
            if isinstance(extent, PrimVar) and extent not in walk.names.visible:
                walk.names.define(extent)
        walk.layout(match.buffer)
        walk.names.define(match.buffer, node.span)
    for region in (*(node.reads or ()), *(node.writes or ())):
        walk.region(region.buffer, region.region, region.span or node.span)
    # A loop around the block is not one that its break could leave from within init.
    if node.init is not None:
        walk.names.scoped(lambda: walk.statement(node.init))  # type: ignore[arg-type]
    walk.statement(node.body)


_STATEMENTS: dict[type, Callable[[_Walk, Any], None]] = {
    SeqStmt: _check_sequence,
    BufferStore: _check_store,
    For: _check_for,
    While: _check_while,
    IfThenElse: _check_if,
    Bind: _check_bind,
    AllocBuffer: _check_allocate,
    DeclBuffer: _check_allocate,
    AssertStmt: _check_assert,
    AttrStmt: _check_attribute,
    Evaluate: _check_evaluate,
    Break: _check_jump,
    Continue: _check_jump,
    Return: _check_return,
    Block: _check_block,
}
