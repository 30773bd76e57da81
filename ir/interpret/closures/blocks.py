"""Blocks as closures.

A block binds its variables, tests its predicate, allocates, runs `init` when all its reduce variables are at their
start, then its body.
"""

from __future__ import annotations

from typing import Any

from weft.errors import BoundsError
from weft.ir.interpret.closures.allocations import allocate, match_region
from weft.ir.interpret.closures.compiled import Compiled, Frame, KernelCompiler
from weft.ir.interpret.scalars import wrapper
from weft.ir.tensor import Block, IterVar

__all__ = ["compile_block"]


def compile_block(compiler: KernelCompiler, node: Block) -> Compiled:
    """The closure of a block."""
    bindings = [_iteration(compiler, node, variable) for variable in node.iter_vars]
    predicate = None if node.predicate is None else compiler.expression(node.predicate)
    allocations = [allocate(compiler, buffer) for buffer in node.alloc_buffers]
    matches = [match_region(compiler, match) for match in node.match_buffers]
    values = [(slot, value) for slot, value, _, _ in bindings]
    domains = [(slot, start, extent) for slot, _, start, extent in bindings]
    reduces = [
        (slot, start)
        for (slot, _, start, _), v in zip(bindings, node.iter_vars, strict=True)
        if v.kind in ("reduce", "scan")
    ]
    init = None if node.init is None else compiler.statement(node.init)
    body = compiler.statement(node.body)

    def run(frame: Frame) -> Any:
        for slot, value in values:
            frame[slot] = value(frame)
        if predicate is not None and not predicate(frame):
            return None
        for slot, start, extent in domains:
            first = start(frame)
            if not first <= frame[slot] < first + extent(frame):
                raise _outside(compiler, frame, node, slot, first, extent(frame))
        for make in allocations:
            make(frame)
        for match in matches:
            match(frame)
        if init is not None and all(frame[slot] == start(frame) for slot, start in reduces):
            init(frame)
        return body(frame)

    return run


def _iteration(compiler: KernelCompiler, node: Block, variable: IterVar) -> tuple[int, Compiled, Compiled, Compiled]:
    if variable.value is None:
        raise BoundsError(
            f"variable {variable.var.name!r} of block {node.name!r} has no binding, so it cannot run",
            code="W908",
            span=node.span,
        )
    value = compiler.index(variable.value)
    if variable.value.dtype != variable.var.dtype:
        value = _converted(compiler, value, variable.var.dtype)
    return compiler.slot(variable.var), value, compiler.extent(variable.start), compiler.extent(variable.extent)


def _converted(compiler: KernelCompiler, value: Compiled, dtype: str) -> Compiled:
    """An integer value wrapped to a dtype."""
    wrap = wrapper(dtype)
    return lambda frame: wrap(value(frame))


def _outside(compiler: KernelCompiler, frame: Frame, node: Block, slot: int, first: int, extent: int) -> BoundsError:
    name = next(v.var.name for v in node.iter_vars if compiler.slot(v.var) == slot)
    return BoundsError(
        f"variable {name!r} of block {node.name!r} is {frame[slot]}, outside [{first}, {first + extent})",
        code="W909",
        span=node.span,
        notes=compiler.values_in(frame),
        hint="guard the block with T.where(...)",
    )
