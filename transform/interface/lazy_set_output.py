"""LazySetOutput: results are handed over as soon as they are there, to a function that the caller gives.

    def main(x):                                  def main(x, fset_output):
        y = R.exp(x)                                  y = R.exp(x)
        z = R.negative(y)              ->             fset_output(R.prim_value(0), y)
        return (y, z)                                 z = R.negative(y)
                                                      fset_output(R.prim_value(1), z)
                                                      return R.tuple()

The function takes the number of the result and the value. It stands behind the inputs where `num_input` says how many
there are (and counts as one), else behind all parameters. What is no variable is bound to one at the end. Functions
that others in the module use stay as they are.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import (
    AnyType,
    Binding,
    BindingBlock,
    Call,
    Expr,
    Function,
    FuncType,
    IRModule,
    PrimType,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleType,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import NUM_INPUT
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.structure.references import referenced_functions
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import merge_blocks, void_binding
from weft.transform.interface.lazy_values import plain, stored_when_made
from weft.transform.interface.model_parameters import split_parameters
from weft.transform.pattern.matching import bindings_of_function

__all__ = ["LazySetOutput", "results_of"]


@dataclass(frozen=True)
class LazySetOutput(FunctionPass):
    """Hand over each result when it is there.

    Raises: PassError W546 for a wrong `num_input`.
    """

    keeps_meaning: ClassVar[bool] = False  # results are handed to a function
    keeps_types: ClassVar[bool] = False

    @classmethod
    def sample(cls, choices: Choices) -> tuple[LazySetOutput, str]:
        """Two results, one of which the other needs."""
        size = choices.pick((3, 2, 4))
        result = choices.pick(("(y, z)", "(z, x)", "z"))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", {size}), "float32")):
        with R.dataflow():
            y = R.exp(x)
            z = R.negative(y)
            R.output(y, z)
        return {result}
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with one parameter that takes the results."""
        if any(name in referenced_functions(other) for other in module.functions.values()):
            return function
        if isinstance(function.ret_type, TupleType) and not function.ret_type.fields:
            return function
        parts = split_parameters(function)
        put = Var("fset_output", FuncType((PrimType("int64"), AnyType()), TupleType(()), pure=False))
        function = plain(function)
        results, function = results_of(function, TypeContext(module.functions))
        places: dict[Var, list[int]] = {}
        for place, var in enumerate(results):
            places.setdefault(var, []).append(place)

        def store(place: int, var: Var) -> list[Binding]:
            return [void_binding(Call(put, (PrimValue(place), var)))]

        new = stored_when_made(function, places, store)
        inputs, weights = parts or (function.params, ())
        body = SeqExpr(new.body.blocks, Tuple(()), span=new.body.span)
        new = replace(new, params=(*inputs, put, *weights), body=body, ret_type=TupleType(()), pure=False)
        return new if parts is None else new.with_attr(NUM_INPUT, len(inputs) + 1)


def results_of(function: Function, context: TypeContext) -> tuple[list[Var], Function]:
    """The results as variables, and the function in which they are."""
    result = function.body.body
    value = bindings_of_function(function).get(result) if isinstance(result, Var) else result
    fields = value.fields if isinstance(value, Tuple) else (result,)
    new: list[Binding] = []

    def variable(field: Expr) -> Var:
        if isinstance(field, Var):
            return field
        var = Var("output", infer_type(field, context))
        new.append(VarBinding(var, field))
        return var

    found = [variable(field) for field in fields]
    if not new:
        return found, function
    blocks = merge_blocks((*function.body.blocks, BindingBlock(tuple(new))))
    return found, replace(function, body=replace(function.body, blocks=blocks))
