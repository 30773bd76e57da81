"""BundleModelParams: the weights of a function become one parameter, a tuple.

def main(x, w, b):  num_input = 1        ->        def main(x, model_params: R.Tuple(...)):
    y = R.matmul(x, w)                                 w = model_params[0]
                                                       b = model_params[1]
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import BindingBlock, Function, IRModule, TupleGetItem, TupleType, Var, VarBinding, replace
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import merge_blocks
from weft.transform.interface.model_parameters import split_parameters

__all__ = ["BundleModelParams"]


@dataclass(frozen=True)
class BundleModelParams(FunctionPass):
    """Bundle the parameters after the first `num_input` of functions that have this attribute into a tuple.

    Raises: PassError W546 for a wrong `num_input`.
    """

    keeps_meaning: ClassVar[bool] = False  # callers pass a tuple
    param_tuple_name: str = "model_params"

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with one parameter for its weights."""
        parts = split_parameters(function)
        if parts is None:
            return function
        inputs, weights = parts
        bundle = Var(self.param_tuple_name, TupleType(tuple(weight.ty for weight in weights)))
        taken = tuple(VarBinding(weight, TupleGetItem(bundle, place)) for place, weight in enumerate(weights))
        blocks = merge_blocks((BindingBlock(taken), *function.body.blocks))
        return replace(function, params=(*inputs, bundle), body=replace(function.body, blocks=blocks))
