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
from weft.ir.structure.visit import children
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
                self._layout(param, "W453")

    def _layout(self, buffer: Buffer, code: str = "W450") -> None:
        """The sizes, strides and offset of a buffer that becomes visible."""
        for extent in (*buffer.shape, *(buffer.strides or ())):
            if isinstance(extent, int) and extent < 0:
                self.report.add("W462", f"buffer {buffer.name!r} has the size {extent}", buffer.span)
        for extent in (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset, buffer.data):
            if isinstance(extent, PrimExpr):
                self.expression(extent, code)

    # Statements

    def statement(self, node: Stmt) -> None:
        """Check a statement and what is in it."""
        check = _STATEMENTS.get(type(node))
        if check is not None:
            check(self, node)

    def check_sequence(self, node: SeqStmt) -> None:
        def steps() -> None:
            for step in node.stmts:
                self.statement(step)

        self.names.scoped(steps)

    def check_store(self, node: BufferStore) -> None:
        self.names.buffer(node.buffer, node.span)
        for part in (node.value, *node.indices):
            if not isinstance(part, PrimExpr):
                message = f"a store into {node.buffer.name!r} takes expressions, got {described(part)}"
                self.report.add("W457", message, node.span, hint="weft.ir.kernel.prim.const makes one of a number")
                return
        for index in node.indices:
            self.expression(index)
        self.expression(node.value)
        if node.predicate is not None:
            self.expression(node.predicate)
        accesses.check_store(node, self.report)

    def check_for(self, node: For) -> None:
        for part in (node.start, node.extent, node.step):
            if isinstance(part, PrimExpr):
                self.expression(part)
                expressions.check_integer(part, "a loop bound", self.report, node.span)
        if node.kind not in _LOOPS:
            self.report.add("W466", f"unknown loop kind {node.kind!r}", node.span, hint=f"one of {', '.join(_LOOPS)}")
        if node.kind == "thread_binding" and not node.thread:
            self.report.add("W466", "a thread-bound loop does not name its thread", node.span)
        if isinstance(node.step, int) and node.step <= 0:
            self.report.add("W466", f"the step of a loop is {node.step}", node.span)
        if isinstance(node.extent, int) and node.extent < 0:
            self.report.add("W462", f"loop {node.loop_var.name!r} has the extent {node.extent}", node.span)

        if node.annotations:
            self.report.add_attributes(node.annotations, Carrier.LOOP, f"loop {node.loop_var.name!r}", node.span)

        def body() -> None:
            self.names.define(node.loop_var, node.span)
            self.varying.add(node.loop_var)
            self.statement(node.body)

        self.loops += 1
        self.names.scoped(body)
        self.loops -= 1

    def check_while(self, node: While) -> None:
        self.expression(node.condition)
        expressions.check_condition(node.condition, self.report, node.span)
        self.loops += 1
        self.names.scoped(lambda: self.statement(node.body))
        self.loops -= 1

    def check_if(self, node: IfThenElse) -> None:
        self.expression(node.condition)
        expressions.check_condition(node.condition, self.report, node.span)
        for branch in (node.then_body, node.else_body):
            if branch is not None:
                self.names.scoped(lambda branch=branch: self.statement(branch))

    def check_bind(self, node: Bind) -> None:
        self.expression(node.value)
        expressions.check_same(node.var.dtype, node.value, f"variable {node.var.name!r}", self.report, node.span)
        self.names.define(node.var, node.span)

    def check_allocate(self, node: AllocBuffer | DeclBuffer) -> None:
        self._layout(node.buffer)
        self.names.define(node.buffer, node.span)

    def check_assert(self, node: AssertStmt) -> None:
        self.expression(node.condition)
        expressions.check_condition(node.condition, self.report, node.span)

    def check_attribute(self, node: AttrStmt) -> None:
        def inside() -> None:
            if isinstance(node.node, IterVar) and node.node.var not in self.names.visible:
                self.names.define(node.node.var, node.span)
            self.statement(node.body)

        if isinstance(node.value, PrimExpr):
            self.expression(node.value)
        self.names.scoped(inside)

    def check_evaluate(self, node: Evaluate) -> None:
        self.expression(node.value)

    def check_jump(self, node: Break | Continue) -> None:
        if not self.loops:
            self.report.add("W464", f"{type(node).__name__.lower()} outside a loop", node.span)

    def check_return(self, node: Return) -> None:
        declared = self.function.ret_type
        wanted = declared.dtype if isinstance(declared, PrimType) else None
        if node.value is not None:
            self.expression(node.value)
            if wanted is not None:
                expressions.check_same(wanted, node.value, "the result", self.report, node.span, code="W465")
        elif wanted is not None:
            self.report.add("W465", f"the function returns {wanted}, and this return has no value", node.span)

    def check_block(self, node: Block) -> None:
        self.report.path, outer = f"block {node.name}", self.report.path
        self.names.scoped(lambda: self._inside_block(node))
        blocks.check_block(node, self.varying, self.report)
        self.report.path = outer

    def _inside_block(self, node: Block) -> None:
        for variable in node.iter_vars:
            for part in (variable.start, variable.extent, variable.value):
                if isinstance(part, PrimExpr):
                    self.expression(part)
                    expressions.check_integer(part, f"the binding of {variable.var.name!r}", self.report, node.span)
        for variable in node.iter_vars:
            self.names.define(variable.var, node.span)
            self.varying.add(variable.var)
        if node.predicate is not None:
            self.expression(node.predicate)
            expressions.check_condition(node.predicate, self.report, node.span)
        for buffer in node.alloc_buffers:
            self._layout(buffer)
            self.names.define(buffer, node.span)
        for match in node.match_buffers:
            self._region(match.source.buffer, match.source.region, node.span)
            for extent in (*match.buffer.shape, *(match.buffer.strides or ()), match.buffer.elem_offset):
                if isinstance(extent, PrimVar) and extent not in self.names.visible:
                    self.names.define(extent)
            self._layout(match.buffer)
            self.names.define(match.buffer, node.span)
        for region in (*(node.reads or ()), *(node.writes or ())):
            self._region(region.buffer, region.region, region.span or node.span)
        # A loop around the block is not one that its break could leave from within init.
        if node.init is not None:
            self.names.scoped(lambda: self.statement(node.init))  # type: ignore[arg-type]
        self.statement(node.body)

    def _region(self, buffer: Buffer, region: tuple[Any, ...], span: Span | None) -> None:
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
        while stack:
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


_STATEMENTS: dict[type, Callable[[_Walk, Any], None]] = {
    SeqStmt: _Walk.check_sequence,
    BufferStore: _Walk.check_store,
    For: _Walk.check_for,
    While: _Walk.check_while,
    IfThenElse: _Walk.check_if,
    Bind: _Walk.check_bind,
    AllocBuffer: _Walk.check_allocate,
    DeclBuffer: _Walk.check_allocate,
    AssertStmt: _Walk.check_assert,
    AttrStmt: _Walk.check_attribute,
    Evaluate: _Walk.check_evaluate,
    Break: _Walk.check_jump,
    Continue: _Walk.check_jump,
    Return: _Walk.check_return,
    Block: _Walk.check_block,
}
