"""Sequences of bindings: blocks, dataflow blocks, what a value is bound to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.errors import WeftError
from weft.ir.deduction.infer import infer_type
from weft.ir.graph import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Expr,
    MatchCast,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.types import AnyType, FuncType
from weft.testing.graphs.state import FunctionState, Rejected
from weft.testing.graphs.types import is_definite, is_void, weaker
from weft.transform.infra.generators.values import constant


def sequence(f: FunctionState, budget: int, result: Callable[[], Expr], blocks_allowed: bool = True) -> SeqExpr:
    """Blocks with a budget of bindings, and a result."""
    blocks: list[BindingBlock] = []
    while budget > 0:
        size = f.choices.integer(1, budget)
        budget -= size
        dataflow = blocks_allowed and f.choices.flip(65)
        if dataflow:
            block: BindingBlock = dataflow_block(f, size)
        else:
            block = BindingBlock(tuple(bindings(f, size)))
        if not dataflow and blocks and type(blocks[-1]) is BindingBlock:
            blocks[-1] = BindingBlock((*blocks[-1].bindings, *block.bindings))
        elif block.bindings:
            blocks.append(block)
    return SeqExpr(tuple(blocks), result())


def dataflow_block(f: FunctionState, size: int) -> DataflowBlock:
    """A dataflow block."""
    f.dataflow = True
    made = list(bindings(f, size))
    f.dataflow = False
    f.visible = [var for var in f.visible if not isinstance(var, DataflowVar)]
    return DataflowBlock(tuple(made))


def bindings(f: FunctionState, size: int) -> Iterator[Binding]:
    """So many bindings, with what they need before them."""
    for position in range(size):
        made = binding(f, last=position == size - 1)
        yield from f.before
        f.before.clear()
        yield made


def binding(f: FunctionState, last: bool = True) -> Binding:
    """One binding: some attempts, then a constant."""
    for _ in range(6):
        try:
            made, exact = f.choices.weighted(f.makers(f))()
            return bound(f, made, exact, last)
        except (Rejected, WeftError):
            f.before.clear()
            continue
    return bound(f, constant(f.choices, runnable=f.runnable), True, last)


def bound(f: FunctionState, made: Expr | Callable[[Var], Binding], exact: bool, last: bool) -> Binding:
    """Bind a value to a new variable."""
    choices = f.choices
    if isinstance(made, MatchCast):
        var, ty = made.var, made.ty
        binding: Binding = made
    else:
        context = f.context()
        ty = infer_type(made, context)  # type: ignore[arg-type]
        if f.runnable and context.checks:
            raise Rejected
        if f.runnable and not is_definite(ty):
            raise Rejected
        kind = DataflowVar if f.dataflow and not (last or choices.flip(30)) else Var
        annotated = weaker(f, ty) if choices.flip(4) and not isinstance(ty, AnyType) else ty
        if f.runnable and isinstance(annotated, AnyType):
            annotated = ty
        var = kind("_" if is_void(ty) else choices.name(), annotated)
        binding = VarBinding(var, made)  # type: ignore[arg-type]
    if not is_void(ty):
        f.visible.append(var)
    if exact:
        f.exact.add(var)
    return binding


def result(f: FunctionState) -> Expr:
    """What the function returns: variables, a tuple of them, seldom a constant."""
    choices = f.choices
    candidates = [var for var in f.visible if not isinstance(var.ty, (FuncType, AnyType)) or not f.runnable]
    candidates = [var for var in candidates if var.name != "_" or not is_void(var.ty)]
    if choices.flip(3) or not candidates:
        return constant(choices, runnable=f.runnable)
    if choices.flip(20):
        return Tuple(tuple(choices.several(0 if choices.flip(10) else 1, 3, lambda: f.recent(candidates))))
    return f.recent(candidates)
