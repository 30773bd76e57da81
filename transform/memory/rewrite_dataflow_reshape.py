"""RewriteDataflowReshape: kernels that copy all elements in their order become `R.reshape`, which needs no copy.

    y = R.call_tir(cls.reshape, (x,), out_ty=R.Tensor((6,), "float32"))      ->      y = R.reshape(x, (6,))

Kernels are known by their loops (`is_reshape`), whatever their name. In dataflow blocks, where nothing changes x.
"""

from __future__ import annotations

from weft.ir import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    VarBinding,
    replace,
)
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.analysis.accesses import is_reshape
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["RewriteDataflowReshape"]


@dataclass(frozen=True)
class RewriteDataflowReshape(FunctionPass):
    """Write calls of kernels that only change the shape as reshapes."""

    @classmethod
    def sample(cls, choices: Choices) -> tuple[RewriteDataflowReshape, str]:
        """A kernel that copies in order, and one that does not."""
        rows, columns = choices.pick((2, 3, 4)), choices.pick((3, 2, 5))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(x: T.Buffer(({rows}, {columns}), "float32"), y: T.Buffer(({rows * columns},), "float32")):
        for i in range({rows * columns}):
            with T.sblock("copy"):
                v = T.axis.spatial({rows * columns}, i)
                y[v] = x[v // {columns}, v % {columns}]

    @T.prim_func(private=True)
    def twice(x: T.Buffer(({rows * columns},), "float32"), y: T.Buffer(({rows * columns},), "float32")):
        for i in range({rows * columns}):
            with T.sblock("twice"):
                v = T.axis.spatial({rows * columns}, i)
                y[v] = x[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor(({rows}, {columns}), "float32")):
        with R.dataflow():
            a = R.call_tir(Module.copy, (x,), out_ty=R.Tensor(({rows * columns},), "float32"))
            b = R.call_tir(Module.twice, (a,), out_ty=R.Tensor(({rows * columns},), "float32"))
            R.output(b)
        return b
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with reshapes."""
        return _Reshapes(module).run(function)


class _Reshapes(FunctionRewriter):
    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self.module = module
        self.known: dict[str, bool] = {}

    def rewrite_binding(self, binding: Binding) -> Binding:
        if not self.in_dataflow or not isinstance(binding, VarBinding):
            return binding
        new = self.reshaped(binding.value)
        return binding if new is None else replace(binding, value=new)

    def reshaped(self, value: Expr) -> Expr | None:
        """The reshape that a call is; None where it is another one."""
        if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name != "call_tir":
            return None
        callee, out = value.args[0], value.ty_args[0]
        if len(value.args) != 2 or not isinstance(callee, GlobalVar) or not isinstance(out, TensorType):
            return None
        given = value.args[1]
        inputs = given.fields if isinstance(given, Tuple) else (given,)
        if out.dims is None or len(inputs) != 1 or not self.is_reshape(callee.name):
            return None
        return replace(get_op("reshape")(inputs[0], out.dims), span=value.span)

    def is_reshape(self, name: str) -> bool:
        """Whether a function of the module copies its elements in order."""
        if name not in self.known:
            function = self.module.functions.get(name)
            self.known[name] = isinstance(function, PrimFunc) and is_reshape(function)
        return self.known[name]
