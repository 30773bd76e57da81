"""LazyTransformParams: functions that prepare weights load each when it is needed, and store each when it is there.

    def main_transform_params(params):            def main_transform_params():
        w = params[0]                                 w_any = R.call_packed("get_item", R.prim_value(0), ...)
        t = R.permute_dims(w)            ->           w = R.match_cast(w_any, R.Tensor(...))
        return (t,)                                   t = R.permute_dims(w)
                                                      R.call_packed("set_item", R.prim_value(0), t, ...)
                                                      return R.tuple()

For functions whose name ends with `transform_params` (`LiftTransformParams` makes them), whose weights are one tuple or
one parameter each behind the first `num_input`. Without `fset_item` the results are given as before. The extra
parameters come first in each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.ir import (
    AnyType,
    Binding,
    BindingBlock,
    Function,
    IRModule,
    MatchCast,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    VarBinding,
    replace,
    rewrite,
)
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import bindings_of, merge_blocks, void_binding
from weft.transform.interface.lazy_set_output import results_of
from weft.transform.interface.lazy_values import loaded_before_use, plain, stored_when_made
from weft.transform.interface.model_parameters import split_parameters

__all__ = ["LazyTransformParams"]


@dataclass(frozen=True)
class LazyTransformParams(FunctionPass):
    """Load and store weights one by one in functions that prepare them.

    Raises: PassError W546 for a wrong `num_input`.
    """

    keeps_meaning: ClassVar[bool] = False  # weights come from a function
    keeps_types: ClassVar[bool] = False
    fget_item: str = "get_item"
    fset_item: str | None = "set_item"
    extra_get_item_params: tuple[int, ...] = ()
    extra_set_item_params: tuple[int, ...] = ()

    @classmethod
    def sample(cls, choices: Choices) -> tuple[LazyTransformParams, str]:
        """Weights in one tuple, one of which stays."""
        size = choices.pick((3, 2, 4))
        store = choices.pick(("set_item", None))
        return (
            cls(fset_item=store),
            f"""@I.ir_module
class Module:
    @R.function
    def main_transform_params(params: R.Tuple(R.Tensor(({size}, 4), "float32"), R.Tensor((4,), "float32"))):
        with R.dataflow():
            w = params[0]
            b = params[1]
            t = R.permute_dims(w)
            out = (t, b)
            R.output(out)
        return out
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with loads and stores."""
        if not name.endswith("transform_params") or not function.params:
            return function
        inputs, weights = split_parameters(function) or ((), function.params)
        if not weights:
            return function
        function = plain(function)
        loads, function = _weights(function, weights)
        function = loaded_before_use(replace(function, params=inputs), loads, self._load)
        if self.fset_item is None:
            return replace(function, pure=False)
        return replace(self._stored(function, TypeContext(module.functions)), pure=False)

    def _load(self, place: int, weight: Var) -> list[Binding]:
        given = Var(f"{weight.name}_any", AnyType())
        extra = map(PrimValue, self.extra_get_item_params)
        call = get_op("call_packed")(self.fget_item, *extra, PrimValue(place), ty_args=AnyType())
        return [VarBinding(given, call), MatchCast(weight, given, weight.ty)]

    def _stored(self, function: Function, context: TypeContext) -> Function:
        results, function = results_of(function, context)
        places: dict[Var, list[int]] = {}
        for place, var in enumerate(results):
            places.setdefault(var, []).append(place)

        def store(place: int, var: Var) -> list[Binding]:
            extra = map(PrimValue, self.extra_set_item_params)
            call = get_op("call_packed")(self.fset_item, *extra, PrimValue(place), var, ty_args=TupleType(()))
            return [void_binding(call)]

        new = stored_when_made(function, places, store)
        return replace(new, body=SeqExpr(new.body.blocks, Tuple(()), span=new.body.span), ret_type=TupleType(()))


def _weights(function: Function, weights: Sequence[Var]) -> tuple[list[Var], Function]:
    """The weights as variables, fields of one tuple taken apart, and the function that uses them."""
    bundle = weights[0]
    if len(weights) != 1 or not isinstance(bundle.ty, TupleType):
        return list(weights), function
    taken: dict[int, Var] = {}
    for binding in bindings_of(function.body):
        if isinstance(binding.value, TupleGetItem) and binding.value.value is bundle:
            taken.setdefault(binding.value.index, binding.var)
    fields = [taken.get(place) or Var(f"param_{place}", ty) for place, ty in enumerate(bundle.ty.fields)]
    first = set(taken.values())
    kept = [binding for binding in bindings_of(function.body) if binding.var not in first]
    body = replace(function.body, blocks=merge_blocks([BindingBlock(tuple(kept))]))

    def field(node: object) -> Var | None:
        return fields[node.index] if isinstance(node, TupleGetItem) and node.value is bundle else None

    body = rewrite(body, pre=field)
    whole = Var(bundle.name, bundle.ty)
    used = rewrite(body, lambda node: whole if node is bundle else None)
    if used is not body:  # the tuple is used as a whole, too
        together = BindingBlock((VarBinding(whole, Tuple(tuple(fields))),))
        used = replace(used, blocks=merge_blocks((together, *used.blocks)))
    return fields, replace(function, body=used)
