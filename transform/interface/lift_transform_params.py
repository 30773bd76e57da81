"""LiftTransformParams: what is computed of weights alone moves into a function of its own, which runs once.

    def main(x, w):  num_input = 1      ->      def main(x, lv):             def main_transform_params(params):
        lv = R.permute_dims(w)                      y = R.matmul(x, lv)          lv = R.permute_dims(params[0])
        y = R.matmul(x, lv)                                                      return (lv,)

`main` takes the fields of what `main_transform_params` gives in the place of its weights. Only pure values in dataflow
blocks, or in plain ones outside branches, move. What uses `R.builtin.stop_lift_params(x)` stays, and gets `x` itself.
"""

from __future__ import annotations

import operator
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    FrozenMap,
    Function,
    IRModule,
    Op,
    SeqExpr,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    VarBinding,
    replace,
    rewrite,
)
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.analysis.purity import is_pure
from weft.transform.infra.base import Pass
from weft.transform.infra.rewriting import merge_blocks, operands
from weft.transform.interface.model_parameters import NUM_INPUT, split_parameters

__all__ = ["LiftTransformParams"]


@dataclass(frozen=True)
class LiftTransformParams(Pass):
    """Split functions with `num_input` into what their weights alone decide, and the rest.

    Raises: PassError W546 for a wrong `num_input`.
    """

    keeps_meaning: ClassVar[bool] = False  # the function takes other weights

    def run(self, module: IRModule) -> IRModule:
        """Split every function that says how many inputs it has."""
        for name, function in module.items():
            parts = split_parameters(function) if isinstance(function, Function) else None
            if parts is not None and parts[1] and isinstance(function, Function):
                main, transform = _Split(function, *parts, module).run(name)
                module = module.with_function(name, main).with_function(f"{name}_transform_params", transform)
        return module


class _Split:
    def __init__(self, function: Function, inputs: tuple[Var, ...], weights: tuple[Var, ...], module: IRModule) -> None:
        self.function, self.inputs, self.weights, self.module = function, inputs, weights, module
        self.lifted: list[VarBinding] = []
        self.known: set[Var] = set(weights)

    def run(self, name: str) -> tuple[Function, Function]:
        """The function without what is lifted, and the one that computes it."""
        result = self.function.body.body
        kept = [self.rest(block) for block in self.function.body.blocks]
        leaving = [leaf for block in kept for binding in block.bindings for leaf in operands(binding.value)]
        leaving += list(operands(result))
        needed = [var for var in dict.fromkeys(leaving) if isinstance(var, Var) and var in self.known]
        outer = {var: Var(var.name, var.ty, span=var.span) for var in needed}
        body = replace(self.function.body, blocks=merge_blocks(kept))
        params = (*self.inputs, *(outer[var] for var in needed))
        main = replace(self.function, params=params, body=_renamed(body, outer))
        return main, self.transform(f"{name}_transform_params", needed)

    def rest(self, block: BindingBlock) -> BindingBlock:
        """A block without what the weights decide, which is noted."""
        kept: list[Binding] = []
        for binding in block.bindings:
            if self.moves(binding):
                assert isinstance(binding, VarBinding)
                self.lifted.append(binding)
                self.known.add(binding.var)
            else:
                kept.append(_passed_on(binding))
        same = len(kept) == len(block.bindings) and all(map(operator.is_, kept, block.bindings))
        return block if same else replace(block, bindings=tuple(kept))

    def moves(self, binding: Binding) -> bool:
        """Whether a binding uses weights and nothing else that the function is given."""
        if (
            not isinstance(binding, VarBinding)
            or not is_pure(binding.value, self.module)
            or _passed_on(binding) is not binding
        ):
            return False
        used = [leaf for leaf in operands(binding.value) if isinstance(leaf, Var)]
        own = set[str]().union(*(symbols_of(weight.ty) for weight in self.weights)) if self.weights else set[str]()
        return bool(used) and all(var in self.known for var in used) and symbols_of(binding) <= own

    def transform(self, name: str, needed: list[Var]) -> Function:
        """The function from the weights to what takes their place."""
        params = Var("params", TupleType(tuple(weight.ty for weight in self.weights)))
        inner = {var: DataflowVar(var.name, var.ty) for var in (*self.weights, *(item.var for item in self.lifted))}
        taken = [VarBinding(inner[weight], TupleGetItem(params, place)) for place, weight in enumerate(self.weights)]
        moved = [replace(item, var=inner[item.var], value=_renamed(item.value, inner)) for item in self.lifted]
        result = Var("gv", TupleType(tuple(var.ty for var in needed)))
        last = VarBinding(result, Tuple(tuple(inner[var] for var in needed)))
        block = DataflowBlock((*taken, *moved, last))
        attrs = FrozenMap({NUM_INPUT: 0})
        return Function((params,), SeqExpr((block,), result), result.ty, attrs=attrs, name=name)


def _passed_on(binding: Binding) -> Binding:
    """A binding of what is not to be lifted, as one of the value itself; any other as it is."""
    call = binding.value if isinstance(binding, VarBinding) else None
    if isinstance(call, Call) and isinstance(call.op, Op) and call.op.name == "builtin.stop_lift_params":
        return replace(binding, value=call.args[0])
    return binding


def _renamed(node: object, names: object) -> object:
    return rewrite(node, lambda part: names.get(part) if isinstance(part, Var) else None)  # type: ignore[union-attr,type-var]
