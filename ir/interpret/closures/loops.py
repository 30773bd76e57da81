"""Loops as closures: loops of every kind run serially in order.

Where a loop of a reduction's nest is empty, the init of its block runs all the same: a reduction over nothing has a
result too.
"""

from __future__ import annotations

from typing import Any

from weft.errors import BoundsError
from weft.ir.interpret.closures.blocks import compile_block
from weft.ir.interpret.closures.compiled import BREAK, CONTINUE, Compiled, Frame, KernelCompiler
from weft.ir.kernel.nests import perfect_nest
from weft.ir.node import replace
from weft.ir.structure.visit import walk
from weft.ir.tensor import Block, For, PrimVar, Stmt, While

__all__ = ["for_loop", "while_loop"]


def for_loop(compiler: KernelCompiler, node: For) -> Compiled:
    """The closure of a loop over a range."""
    start, extent = compiler.extent(node.start), compiler.extent(node.extent)
    step = compiler.extent(1 if node.step is None else node.step)
    slot, body = compiler.slot(node.loop_var), compiler.statement(node.body)
    nothing = _init_without_steps(compiler, node)

    def loop(frame: Frame) -> Any:
        increment = step(frame)
        if increment <= 0:
            raise BoundsError(f"the step of a loop is {increment}", code="W907", span=node.span)
        first, count = _range(node, start, extent, frame)
        if count <= 0 and nothing is not None:
            nothing(frame)
        for value in range(first, first + count, increment):
            frame[slot] = value
            signal = body(frame)
            if signal is not None and signal is not CONTINUE:
                if signal is BREAK:
                    break
                return signal
        frame[slot] = None
        return None

    return loop


def _range(node: For, start: Compiled, extent: Compiled, frame: Frame) -> tuple[int, int]:
    """The start and the extent; BoundsError W900 where they, or the end, leave 64 bits."""
    message = f"the range of the loop of {node.loop_var.name!r} does not fit 64 bits"
    try:
        first, count = start(frame), extent(frame)
    except BoundsError as error:
        if error.code != "W905" or error.hint is not None:  # in less than 64 bits
            raise
        raise BoundsError(message, code="W900", span=node.span) from None
    if not -(1 << 63) <= first + count < 1 << 63:
        raise BoundsError(message, code="W900", span=node.span)
    return first, count


def _init_without_steps(compiler: KernelCompiler, node: For) -> Compiled | None:
    """For a loop of a reduction's nest: the init alone, because a reduction over nothing has a result too."""
    _, inner = perfect_nest(node)
    if not isinstance(inner, Block) or inner.init is None or node.loop_var not in _reduction_loops(inner):
        return None
    own = {axis.var for axis in inner.iter_vars if axis.kind in ("reduce", "scan")}
    if any(isinstance(part, PrimVar) and part in own for part in walk(inner.init)):
        return None  # an init for each step, of which there is none
    return _init_nest(compiler, node, _reduction_loops(inner))


def _init_nest(compiler: KernelCompiler, node: Stmt, reduction: set[PrimVar]) -> Compiled:
    if isinstance(node, Block):
        return _init_block(compiler, node)
    assert isinstance(node, For)
    start, extent = compiler.extent(node.start), compiler.extent(node.extent)
    step = compiler.extent(1 if node.step is None else node.step)
    slot, once = compiler.slot(node.loop_var), node.loop_var in reduction
    inner = _init_nest(compiler, node.body, reduction)

    def loop(frame: Frame) -> None:
        first = start(frame)
        for value in (first,) if once else range(first, first + extent(frame), step(frame)):
            frame[slot] = value
            inner(frame)
        frame[slot] = None

    return loop


def _init_block(compiler: KernelCompiler, node: Block) -> Compiled:
    assert node.init is not None
    own = [v for v in node.iter_vars if v.kind not in ("reduce", "scan")]
    return compile_block(compiler, replace(node, iter_vars=tuple(own), init=None, body=node.init, match_buffers=()))


def while_loop(compiler: KernelCompiler, node: While) -> Compiled:
    """The closure of a loop under a condition."""
    condition, body = compiler.expression(node.condition), compiler.statement(node.body)

    def loop(frame: Frame) -> Any:
        while condition(frame):
            signal = body(frame)
            if signal is not None and signal is not CONTINUE:
                if signal is BREAK:
                    break
                return signal
        return None

    return loop


def _reduction_loops(block: Block) -> set[PrimVar]:
    """The variables that only the bindings of a block's reduction variables use."""
    steps, others = (
        {
            n
            for v in block.iter_vars
            if (v.kind in ("reduce", "scan")) == steps and v.value is not None
            for n in walk(v.value)
        }
        for steps in (True, False)
    )
    return {variable for variable in steps - others if isinstance(variable, PrimVar)}
