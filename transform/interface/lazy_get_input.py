"""LazyGetInput: weights are asked for when they are needed, by a function that the caller gives.

    def main(x, w):  num_input = 1      ->      def main(x, fget_param):
        y = R.exp(x)                                y = R.exp(x)
        return R.matmul(y, w)                       w_any = fget_param(R.prim_value(0), R.str("w"))
                                                    w = R.match_cast(w_any, R.Tensor(...))
                                                    return R.matmul(y, w)

The function takes the number of the weight and its name, and counts as an input. A weight that nothing uses is not
asked for.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import (
    AnyType,
    Binding,
    Call,
    Function,
    FuncType,
    IRModule,
    MatchCast,
    PrimType,
    PrimValue,
    StringImm,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import NUM_INPUT
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.interface.lazy_values import loaded_before_use, plain
from weft.transform.interface.model_parameters import split_parameters

__all__ = ["LazyGetInput"]


@dataclass(frozen=True)
class LazyGetInput(FunctionPass):
    """Ask for the parameters after the first `num_input` when they are needed.

    Raises: PassError W546 for a wrong `num_input`.
    """

    keeps_meaning: ClassVar[bool] = False  # callers pass a function
    keeps_types: ClassVar[bool] = False

    @classmethod
    def sample(cls, choices: Choices) -> tuple[LazyGetInput, str]:
        """A layer whose bias is needed later than its matrix."""
        size = choices.pick((3, 2, 4))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", {size}), "float32"), w: R.Tensor(({size}, 4), "float32"),
             b: R.Tensor((4,), "float32")):
        R.func_attr({{"num_input": 1}})
        with R.dataflow():
            y = R.exp(x)
            z = R.matmul(y, w)
            out = R.add(z, b)
            R.output(out)
        return out
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with one parameter that gives the weights."""
        parts = split_parameters(function)
        if parts is None or not parts[1]:
            return function
        inputs, weights = parts
        get = Var("fget_param", FuncType((PrimType("int64"), AnyType()), AnyType()))

        def load(place: int, weight: Var) -> list[Binding]:
            given = Var(f"{weight.name}_any", AnyType())
            call = Call(get, (PrimValue(place), StringImm(weight.name)))
            return [VarBinding(given, call), MatchCast(weight, given, weight.ty)]

        new = loaded_before_use(replace(plain(function), params=(*inputs, get)), weights, load)
        return new.with_attr(NUM_INPUT, len(inputs) + 1)
