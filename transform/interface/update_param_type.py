"""UpdateParamType: parameters get the types that a function of the user's gives, and what follows from them.

    UpdateParamType(lambda var: R.Tensor((4, 4), "float16") if var.name == "w" else None)

The function sees every parameter of every graph function and gives a type, or None for the one that it has. Types of
what is computed are deduced again; errors of deduction say where the program does not go with the new types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from weft.errors import PassError, described
from weft.ir import Function, IRModule, TensorType, Type, Var, replace
from weft.support.records import dataclass
from weft.transform.analysis.value_numbering import same_type
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.reinfer import retype_module
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["UpdateParamType"]


@dataclass(frozen=True)
class UpdateParamType(Pass):
    """Give parameters the types that a function of variables returns, None for those that stay.

    Raises PassError W506 where the function gives something else.
    """

    keeps_meaning: ClassVar[bool] = False  # functions take other values
    keeps_types: ClassVar[bool] = False
    ty_func: Callable[[Var], Type | None]

    @classmethod
    def sample(cls, choices: Choices) -> tuple[UpdateParamType, str]:
        """A matrix that becomes one of half precision."""
        size = choices.pick((4, 2, 3))

        def narrower(var: Var) -> Type | None:
            return TensorType((size, size), "float16") if var.name == "w" else None

        return (
            cls(narrower),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", {size}), "float32"), w: R.Tensor(({size}, {size}), "float32")):
        with R.dataflow():
            wide = R.astype(w, "float32")
            out = R.matmul(x, wide)
            R.output(out)
        return out
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Change the parameters, then deduce types again."""
        new = map_functions(module, lambda name, function: _Typed(self, name).run(function))
        return new if new is module else retype_module(new)


class _Typed(FunctionRewriter):
    def __init__(self, item: UpdateParamType, name: str) -> None:
        super().__init__()
        self.item, self.name = item, name
        self.inside = False

    def run(self, function: Function) -> Function:
        """The function; local ones keep their parameters."""
        outer, self.inside = self.inside, True
        try:
            if outer:
                return replace(function, body=self.sequence(function.body))
            return super().run(function)
        finally:
            self.inside = outer

    def rewrite_parameter(self, param: Var) -> Var:
        ty = self.item.ty_func(param)
        if ty is None:
            return param
        if not isinstance(ty, Type):
            message = f"ty_func gives a type or None, for {param.name!r} of {self.name!r} it gave {described(ty)}"
            raise PassError(message, code="W506", hint='R.Tensor((4, 4), "float16")')
        if same_type(ty, param.ty):
            return param
        new = self.replaced[param] = replace(param, ty=ty)
        return new
