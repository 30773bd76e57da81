"""ComputePrimValue: sizes that calls compute are computed by kernels of their own, which the text shows.

    y = cls.shift(x, R.prim_value(n * 2 + 1))      ->      m = cls.compute_symbolic_expr(R.prim_value(n))
                                                           y = cls.shift(x, m)

Only arguments of calls that are expressions of sizes: a number or a symbol alone stays. Equal expressions share a
kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import Span
from weft.ir import (
    Binding,
    Call,
    Expr,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    PrimType,
    PrimValue,
    VarBinding,
    replace,
)
from weft.ir.builder import BlockBuilder
from weft.ir.dim import DimExpr, free_symbols, operation, symbol
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.tensor import PrimVar, Return
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, derived

__all__ = ["ComputePrimValue"]


@dataclass(frozen=True)
class ComputePrimValue(Pass):
    """Compute expressions of sizes that are arguments of calls by kernels."""

    @classmethod
    def sample(cls, choices: Choices) -> tuple[ComputePrimValue, str]:
        """A function that is called with expressions of sizes."""
        value = choices.pick(("n * 2 + 1", "n // 2", "n * m", "m + 3"))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function(private=True)
    def shift(x: R.Tensor(("n", "m"), "float32"), k: R.Prim("int64")):
        return R.add(x, R.astype(R.full((), k, "int64"), "float32"))

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        y = Module.shift(x, R.prim_value({value}))
        return y
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Compute in every graph function, and add the kernels."""
        builder = BlockBuilder(module)
        kernels: dict[tuple[str, tuple[str, ...]], GlobalVar] = {}
        new = map_functions(module, lambda name, function: _Computer(builder, kernels).run(function))
        added = {name: function for name, function in builder.get().items() if name not in module}
        return new.with_functions({**new.functions, **added}) if added else new


class _Computer(FunctionRewriter):
    def __init__(self, builder: BlockBuilder, kernels: dict[tuple[str, tuple[str, ...]], GlobalVar]) -> None:
        super().__init__()
        self.builder, self.kernels = builder, kernels

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if not isinstance(value, Call) or isinstance(value.op, Op):
            return binding  # operators read sizes where they stand
        before: list[Binding] = []
        args = tuple(self.computed(arg, before, binding.span) for arg in value.args)
        return [*before, replace(binding, value=replace(value, args=args))] if before else binding

    def computed(self, arg: Expr, before: list[Binding], span: Span | None) -> Expr:
        """A variable for an expression of sizes; other arguments as they are."""
        if not isinstance(arg, PrimValue) or not isinstance(arg.value, DimExpr):
            return arg
        dim = arg.value
        if operation(dim)[0] == "symbol":
            return arg
        names = tuple(sorted(free_symbols(dim)))
        callee = self.kernels.get((str(dim), names))
        if callee is None:
            variables = {name: PrimVar(name, "int64") for name in names}
            value = dim_to_prim(dim, variables)
            assert not isinstance(value, int), "it has a symbol"
            body = Return(value)
            kernel = PrimFunc(tuple(variables.values()), body, ret_type=PrimType("int64"), private=True)
            callee = self.kernels[str(dim), names] = self.builder.add_func(kernel, "compute_symbolic_expr")
        call = Call(callee, tuple(PrimValue(symbol(name)) for name in names))
        var = self.fresh("size", PrimType(arg.dtype), derived(span, "compute prim value"))
        before.append(VarBinding(var, call, span=var.span))
        return var
