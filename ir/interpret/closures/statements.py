"""Tensor-level statements to Python closures.

    compiled ::= frame -> None | signal        signal ::= BREAK | CONTINUE | ("return", value)

One row a kind of statement: loops, blocks, accesses and buffers have modules of their own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.errors import (
    ASSERTION_CODES,
    ArgumentError,
    BoundsError,
    DTypeError,
    PassError,
    ShapeError,
    UnwrittenError,
    VerifyError,
    WeftError,
    one_screen,
)
from weft.ir.attrs import THREAD_EXTENT, VIRTUAL_THREAD
from weft.ir.interpret.closures.accesses import store
from weft.ir.interpret.closures.allocations import allocate
from weft.ir.interpret.closures.blocks import compile_block
from weft.ir.interpret.closures.compiled import (
    BREAK,
    CONTINUE,
    CallKernel,
    Compiled,
    Frame,
    KernelCompiler,
    Lookup,
    Returned,
)
from weft.ir.interpret.closures.expressions import FunctionCompiler
from weft.ir.interpret.closures.indices import doubt_of, exact_condition
from weft.ir.interpret.closures.loops import for_loop, while_loop
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Block,
    Break,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IterVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["StatementCompiler"]

_ERRORS: dict[str, type[Exception]] = {
    "AssertionError": AssertionError,
    "ValueError": ValueError,
    "TypeError": TypeError,
    "RuntimeError": RuntimeError,
    "IndexError": IndexError,
    "ShapeError": ShapeError,
    "BoundsError": BoundsError,
    "ArgumentError": ArgumentError,
    "DTypeError": DTypeError,
    "PassError": PassError,
    "VerifyError": VerifyError,
    "UnwrittenError": UnwrittenError,
}


class StatementCompiler(FunctionCompiler):
    """The statements of one function as closures; `unit` is the granularity of marks (see `memory`), 0 for elements."""

    def __init__(self, call_kernel: CallKernel, lookup: Lookup, unit: int) -> None:
        super().__init__(call_kernel, lookup)
        self.unit = unit

    def unit_of(self, dtype: str) -> int:
        """Bytes per mark for memory of a dtype."""
        return self.unit or dtypes.item_bytes(dtype)

    def statement(self, node: Stmt) -> Compiled:
        """The closure of a statement."""
        compile_node = _STATEMENTS.get(type(node))
        if compile_node is None:
            raise ArgumentError(f"cannot interpret the statement {type(node).__name__}", code="W860", span=node.span)
        return compile_node(self, node)


def _sequence(compiler: KernelCompiler, node: SeqStmt) -> Compiled:
    steps = [compiler.statement(step) for step in node.stmts]

    def run(frame: Frame) -> Any:
        for step in steps:
            signal = step(frame)
            if signal is not None:
                return signal
        return None

    return run


def _nothing(frame: Frame) -> None:
    return None


def _if(compiler: KernelCompiler, node: IfThenElse) -> Compiled:
    condition, then = compiler.expression(node.condition), compiler.statement(node.then_body)
    otherwise = _nothing if node.else_body is None else compiler.statement(node.else_body)
    return lambda frame: then(frame) if condition(frame) else otherwise(frame)


def _break(compiler: KernelCompiler, node: Break) -> Compiled:
    return lambda frame: BREAK


def _continue(compiler: KernelCompiler, node: Continue) -> Compiled:
    return lambda frame: CONTINUE


def _return(compiler: KernelCompiler, node: Return) -> Compiled:
    value = _nothing if node.value is None else compiler.expression(node.value)
    return lambda frame: Returned(value(frame))


def _bind(compiler: KernelCompiler, node: Bind) -> Compiled:
    value, slot = compiler.expression(node.value), compiler.slot(node.var)
    doubt = doubt_of(compiler, node.var, node.value)

    def bind(frame: Frame) -> None:
        frame[slot] = value(frame)

    def bind_in_doubt(frame: Frame) -> None:
        assert doubt is not None
        doubt(frame)
        frame[slot] = value(frame)

    return bind if doubt is None else bind_in_doubt


def _alloc_statement(compiler: KernelCompiler, node: AllocBuffer | DeclBuffer) -> Compiled:
    return allocate(compiler, node.buffer)


def _assert(compiler: KernelCompiler, node: AssertStmt) -> Compiled:
    exact = node.kind == "BoundsError"
    condition = exact_condition(compiler, node.condition) if exact else compiler.expression(node.condition)

    def check(frame: Frame) -> None:
        if not condition(frame):
            kind = _ERRORS.get(node.kind, RuntimeError)
            if issubclass(kind, WeftError):
                code = ASSERTION_CODES.get(node.kind)
                raise kind(node.message, code=code, span=node.span, notes=compiler.values_in(frame))
            raise kind(one_screen(node.message))

    return check


def _attribute(compiler: KernelCompiler, node: AttrStmt) -> Compiled:
    body = compiler.statement(node.body)
    if node.key in (THREAD_EXTENT, VIRTUAL_THREAD) and isinstance(node.node, IterVar):
        return _threads(compiler, node, node.node, body)
    return body


def _threads(compiler: KernelCompiler, node: AttrStmt, variable: IterVar, body: Compiled) -> Compiled:
    """A launch runs its threads one after another."""
    slot = compiler.slot(variable.var)
    extent = compiler.extent(node.value)  # type: ignore[arg-type]

    def launch(frame: Frame) -> Any:
        for value in range(extent(frame)):
            frame[slot] = value
            signal = body(frame)
            if signal is not None:
                return signal
        return None

    return launch


def _evaluate(compiler: KernelCompiler, node: Evaluate) -> Compiled:
    value = compiler.expression(node.value)

    def evaluate(frame: Frame) -> None:
        value(frame)

    return evaluate


_STATEMENTS: dict[type, Callable[[KernelCompiler, Any], Compiled]] = {
    SeqStmt: _sequence,
    BufferStore: store,
    For: for_loop,
    While: while_loop,
    IfThenElse: _if,
    Break: _break,
    Continue: _continue,
    Return: _return,
    Bind: _bind,
    AllocBuffer: _alloc_statement,
    DeclBuffer: _alloc_statement,
    Block: compile_block,
    AssertStmt: _assert,
    AttrStmt: _attribute,
    Evaluate: _evaluate,
}
