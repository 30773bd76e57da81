"""Types after a change of signatures: deduced again, forwards, through the functions that the change reaches.

A variable gets the type that its value has now, unless its own type says more (a claim). A declared result that no
longer fits what the body computes is replaced by what it computes, and callers follow.
"""

from __future__ import annotations

from weft.ir import Binding, Function, IRModule, VarBinding, replace
from weft.ir.deduction.infer import TypeContext, infer_type, is_base_of
from weft.transform.analysis.value_numbering import same_type
from weft.transform.infra.base import map_functions
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["retype_module"]


def retype_module(module: IRModule) -> IRModule:
    """The module with the types of variables and results deduced again; errors of deduction carry their place."""
    for _ in range(len(module)):  # a changed result reaches callers one call further in each round
        context = TypeContext(module.functions)
        new = map_functions(module, lambda _, function, context=context: _retype(function, context))
        if new is module:
            break
        module = new
    return module


def _retype(function: Function, context: TypeContext) -> Function:
    new = _Retyper(context).run(function)
    if new is function:
        return function
    computed = infer_type(new.body, context)
    fits = is_base_of(new.ret_type, computed)
    if fits is True or is_base_of(function.ret_type, infer_type(function.body, context)) is not True:
        return new
    return replace(new, ret_type=computed)


class _Retyper(FunctionRewriter):
    def __init__(self, context: TypeContext) -> None:
        super().__init__()
        self.context = context

    def rewrite_binding(self, binding: Binding) -> Binding:
        if not isinstance(binding, VarBinding):
            return binding
        old, new = binding.var.ty, infer_type(binding.value, self.context)
        if same_type(old, new) or is_base_of(new, old) is True:
            return binding
        var = self.replaced[binding.var] = replace(binding.var, ty=new)
        return replace(binding, var=var)
