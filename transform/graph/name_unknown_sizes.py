"""NameUnknownSizes: operators on tensors and shapes of unknown sizes get names for them, so that kernels can be made.

    y = R.exp(x)                      x: R.Tensor(ndim=2, dtype="float32")
        becomes
    x_1 = R.match_cast(x, R.Tensor((x_size0, x_size1), "float32"))
    y = R.exp(x_1)                    y: R.Tensor((x_size0, x_size1), "float32")

A number of dimensions that is not known either is asked for when the program runs; one branch for each that the
operator takes (0 to MOST_DIMENSIONS) states it, and more is the error of a failed match_cast. Such a function loses its
dataflow blocks, which hold no branches. Types only become more precise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from weft.errors import Span, WeftError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    Expr,
    Function,
    If,
    IRModule,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeType,
    TensorType,
    Type,
    Var,
    VarBinding,
    replace,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of, is_base_of
from weft.ir.dim import Dim, fresh_name, symbol, symbol_name
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.graph.to_non_dataflow import PlainBlocks
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter, derived, operands

__all__ = ["MOST_DIMENSIONS", "NameUnknownSizes"]

MOST_DIMENSIONS = 5
_MOST_OPEN_RANKS = 2  # operands of unknown rank in one call: there is a branch for each combination


@dataclass(frozen=True)
class NameUnknownSizes(FunctionPass):
    """Name the sizes that operators need and types do not say; see the module.

    >>> from weft.ir.op import get_op
    >>> from weft.ir.builder import BlockBuilder
    >>> x, builder = Var("x", TensorType(None, "float32", 1)), BlockBuilder()
    >>> with builder.function("main", [x]):
    ...     builder.emit_func_output(builder.emit(get_op("exp")(x)))
    >>> named = NameUnknownSizes()(builder.get())["main"]
    >>> [str(binding.var.ty.shape[0]) for binding in named.body.blocks[0].bindings]
    ['x_size0', 'x_size0']
    """

    aliases: ClassVar[tuple[str, ...]] = ()

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with casts before the operators that need them."""
        calls = [binding.value for binding in _all_bindings(function) if isinstance(binding, VarBinding)]
        if not any(_open_operands(call) for call in calls):
            return function
        if any(_rank(operand.ty) < 0 for call in calls for operand in _open_operands(call)):
            function = PlainBlocks().run(function)
        return _Namer(TypeContext(module.functions), symbols_of(function), self.text_name).run(function)


def _all_bindings(function: Function) -> Iterable[Binding]:
    stack: list[Expr] = [function.body]
    while stack:
        sequence = stack.pop()
        assert isinstance(sequence, SeqExpr)
        for block in sequence.blocks:
            for binding in block.bindings:
                yield binding
                if isinstance(binding.value, If):
                    stack.extend((binding.value.then_branch, binding.value.else_branch))
                elif isinstance(binding.value, Function):
                    stack.append(binding.value.body)


def _rank(ty: Type | None) -> int:
    return ty.ndim if isinstance(ty, (TensorType, ShapeType)) else -1


def _open_operands(call: Expr) -> list[Var]:
    """The operands whose sizes a kernel of the call would need and no type names."""
    if not isinstance(call, Call) or not isinstance(call.op, Op):
        return []
    definition = OPS.get(call.op.name)
    if definition is None or (definition.lower is None and definition.decompose is None):
        return []
    found = dict.fromkeys(
        operand
        for operand in operands(call)
        if isinstance(operand, Var) and isinstance(operand.ty, (TensorType, ShapeType)) and dims_of(operand.ty) is None
    )
    if definition.family == "inspection":  # these ask for sizes themselves
        return [operand for operand in found if _rank(operand.ty) < 0]
    return list(found)


class _Namer(FunctionRewriter):
    def __init__(self, context: TypeContext, symbols: set[str], origin: str) -> None:
        super().__init__()
        self.context = context
        self.symbols = symbols
        self.origin = origin

    # What is replaced inside a branch or a dataflow block is not visible after it.

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body or branch; the casts inside are forgotten after it."""
        before = dict(self.replaced)
        new = super().sequence(seq)
        self.replaced = before
        return new

    def _block(self, block: BindingBlock) -> BindingBlock:
        before = dict(self.replaced)
        new = super()._block(block)
        if isinstance(block, DataflowBlock):
            self.replaced = {**before, **{old: var for old, var in self.replaced.items() if type(var) is Var}}
        return new

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        """The binding after the casts that it needs."""
        if isinstance(binding, MatchCast):
            return binding
        opened = _open_operands(binding.value)
        if opened:
            ranked = [operand for operand in opened if _rank(operand.ty) < 0]
            if (ranked and self.in_dataflow) or len(ranked) > _MOST_OPEN_RANKS:
                return binding
            return self._dispatched(binding, ranked[0]) if ranked else self._named(binding, opened)
        return self._retyped(binding) if self.replaced else binding

    def _retyped(self, binding: VarBinding) -> VarBinding:
        """The binding with the type that its value has now, where that says more."""
        if not isinstance(binding.value, Call) or dims_of(binding.var.ty) is not None:
            return binding
        ty = infer_type(binding.value, self.context)
        if dims_of(ty) is None:
            return binding
        var = self.replaced[binding.var] = replace(binding.var, ty=ty)
        return replace(binding, var=var)

    def _named(self, binding: VarBinding, opened: Sequence[Var]) -> list[Binding]:
        casts = [self._cast(operand, _rank(operand.ty), binding) for operand in opened]
        return [*casts, self._retyped(replace(binding, value=self.map_value(binding.value)))]

    def _name(self, operand: Var, what: str) -> str:
        """A name of its own for a symbol, after an operand where the name of that is one."""
        base = symbol_name(f"{operand.name}_{what}", f"x_{what}")
        self.symbols.add(name := fresh_name(base, self.symbols))
        return name

    def _cast(self, operand: Var, rank: int, binding: VarBinding) -> MatchCast:
        """Names for the sizes of an operand, which stands for the cast value from here on."""
        names = []
        for axis in range(rank):
            names.append(self._name(operand, f"size{axis}"))
        dims = tuple(map(symbol, names))
        ty = replace(operand.ty, dims=dims) if isinstance(operand.ty, ShapeType) else _of_dims(operand.ty, dims)
        var = self.fresh(operand.name, ty, operand.span)
        self.replaced[operand] = var
        return MatchCast(var, operand, ty, span=derived(binding.span or binding.value.span, self.origin))

    # A rank that is known at run time only

    def _dispatched(self, binding: VarBinding, operand: Var) -> list[Binding]:
        """A branch for every rank of the operand with which the call has a type."""
        found = [self._branch(binding, operand, rank) for rank in range(MOST_DIMENSIONS + 1)]
        branches = [(rank, branch) for rank, branch in enumerate(found) if branch is not None]
        if not branches:
            return [binding]
        span = derived(binding.span or binding.value.span, self.origin)
        asked, rank_of = self._ask_rank(operand, span)
        _, chosen = branches.pop()
        for rank, branch in reversed(branches):
            equal = get_op("equal")(rank_of, Constant(np.array(rank, "int64")))
            test = VarBinding(Var("is_rank", TensorType((), "bool")), equal, span=span)
            choice = If(test.var, _sequence(branch), _sequence(chosen), span=span)
            chosen = [test, VarBinding(Var(binding.var.name, binding.var.ty), choice, span=span)]
        return [*asked, *chosen[:-1], replace(chosen[-1], var=binding.var)]

    def _branch(self, binding: VarBinding, operand: Var, rank: int) -> list[Binding] | None:
        """The call for one rank of the operand, the last binding being its result; None where it has no type."""
        before = dict(self.replaced)
        try:
            cast = self._cast(operand, rank, binding)
            value = self.map_value(binding.value)
            if is_base_of(binding.var.ty, infer_type(value, self.context)) is False:
                return None
            new = self.rewrite_binding(VarBinding(Var(binding.var.name, binding.var.ty), value, span=binding.span))
            return [cast, *([new] if isinstance(new, (VarBinding, MatchCast)) else new)]
        except WeftError:  # not a rank that the operator takes
            return None
        finally:
            self.replaced = before

    def _ask_rank(self, operand: Var, span: Span | None) -> tuple[list[Binding], Var]:
        """Bindings that give the number of dimensions as a scalar tensor: the length of the shape, by a name."""
        name = self._name(operand, "rank")
        shape = Var(f"{operand.name}_shape", ShapeType())
        sizes = Var(f"{operand.name}_sizes", TensorType(None, "int64", 1))
        counted = Var(f"{operand.name}_sizes", TensorType((symbol(name),), "int64"))
        rank = Var(name, TensorType((), "int64"))
        of_tensor = isinstance(operand.ty, TensorType)
        first = [VarBinding(shape, get_op("shape_of")(operand), span=span)] if of_tensor else []
        return [
            *first,
            VarBinding(sizes, get_op("shape_to_tensor")(shape if of_tensor else operand), span=span),
            MatchCast(counted, sizes, counted.ty, span=span),
            VarBinding(rank, get_op("full")((), PrimValue(symbol(name), "int64"), "int64"), span=span),
        ], rank


def _sequence(bindings: Sequence[Binding]) -> SeqExpr:
    return SeqExpr((BindingBlock(tuple(bindings)),), bindings[-1].var)


def _of_dims(ty: Type, dims: tuple[Dim, ...]) -> TensorType:
    assert isinstance(ty, TensorType)
    return TensorType(dims, ty.dtype, vdevice=ty.vdevice)
