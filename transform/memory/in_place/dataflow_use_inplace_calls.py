"""DataflowUseInplaceCalls: operators write over an operand that nothing needs any more.

    a = R.exp(x)                       a = R.exp(x)
    b = R.add(a, y)          ->        b = R.call_tir_inplace(cls.add_inplace, (a, y), inplace_indices=[0], ...)

In dataflow blocks, for operators whose kernel reads each element of the operand no later than when it computes the
element at its place (`sharing_pairs`). The operand is a value of the block that an operator computed, with memory of
its own, and the call is its last use; parameters, constants, and what may be another view of either, are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    Var,
    VarBinding,
    replace,
    rewrite,
)
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import OPS, get_op
from weft.ir.op.common import kernel_call
from weft.support.records import dataclass
from weft.transform.analysis.accesses import sharing_pairs
from weft.transform.analysis.lifetimes import variables
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, is_marked

__all__ = ["DataflowUseInplaceCalls"]

_FRESH = frozenset(("unary", "binary", "elementwise_unary", "nn_conv", "nn_pool", "nn_norm"))
"""Families of operators whose results lie in memory of their own."""
_ELEMENTWISE = frozenset(("unary", "binary", "elementwise_unary", "nn_activations"))


@dataclass(frozen=True)
class DataflowUseInplaceCalls(Pass):
    """Call kernels that write over an operand, where it is a value of the block that is not used again."""

    @classmethod
    def sample(cls, choices: Choices) -> tuple[DataflowUseInplaceCalls, str]:
        """A chain, one value of which is used again."""
        first, second = choices.pick(("R.exp(x)", "R.add(x, y)")), choices.pick(("R.add(a, y)", "R.negative(a)"))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = {first}
            b = {second}
            c = R.nn.relu(b)
            d = R.multiply(c, b)
            R.output(d)
        return d
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Rewrite the dataflow blocks of every graph function, and add the kernels."""
        builder = BlockBuilder(module)
        new = map_functions(module, lambda name, function: _InPlace(builder, module).run(function))
        added = {name: function for name, function in builder.get().items() if name not in module}
        return new.with_functions({**new.functions, **added}) if added else new


class _InPlace(FunctionRewriter):
    changes_blocks = True

    def __init__(self, builder: BlockBuilder, module: IRModule) -> None:
        super().__init__()
        self.builder = builder
        self.context = TypeContext(module.functions)

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        if not isinstance(block, DataflowBlock):
            return super().rewrite_block(block, bindings)
        dying = _last_uses(bindings)
        new = [self.in_place(binding, dying.get(binding.var, ())) for binding in bindings]
        same = all(a is b for a, b in zip(new, bindings, strict=True))
        return super().rewrite_block(block, bindings if same else tuple(new))

    def in_place(self, binding: Binding, dying: Sequence[Var]) -> Binding:
        """The binding with its call in place of an operand that dies there."""
        call = binding.value
        if not dying or not isinstance(binding, VarBinding) or not isinstance(call, Call) or is_marked(call):
            return binding
        definition = OPS.get(call.op.name) if isinstance(call.op, Op) else None
        if definition is None or definition.family not in _ELEMENTWISE:
            return binding
        name = f"{definition.name.rpartition('.')[2]}_inplace"
        kernel = definition.lower(call, self.context, name)
        if kernel is None:
            return binding
        as_usual = kernel_call(call, kernel, GlobalVar(name), self.context)
        given = as_usual.args[1]
        assert isinstance(given, Tuple)
        output = len(given.fields)
        for source, target in sharing_pairs(kernel):
            if target == output and source < output and given.fields[source] in dying:
                return replace(binding, value=self.overwriting(as_usual, kernel, source, output))
        return binding

    def overwriting(self, as_usual: Call, kernel: PrimFunc, source: int, output: int) -> Call:
        """The call of the kernel whose output is one of its inputs."""
        old, own = kernel.params[output], kernel.params[source]
        body = rewrite(kernel.body, lambda node: own if node is old else None)
        params = (*kernel.params[:output], *kernel.params[output + 1 :])
        callee = self.builder.add_func(replace(kernel, params=params, body=body, private=True), kernel.name)
        sizes = as_usual.args[2:]
        new = get_op("call_tir_inplace")(callee, as_usual.args[1], [source], as_usual.ty_args[0], *sizes)
        return replace(new, span=as_usual.span)


def _last_uses(bindings: Sequence[Binding]) -> dict[Var, list[Var]]:
    """The values that each binding uses last: of memory of their own, which only calls that share nothing read."""
    own = {binding.var for binding in bindings if isinstance(binding.var, DataflowVar) and _is_fresh(binding)}
    last: dict[Var, Var] = {}
    for binding in bindings:
        for var in set(variables(binding.value)):
            if not _is_fresh(binding) and not _is_call_of(binding, _ELEMENTWISE):
                own.discard(var)
            last[var] = binding.var
    found: dict[Var, list[Var]] = {}
    for var, user in last.items():
        if var in own:
            found.setdefault(user, []).append(var)
    once = {binding.var: list(variables(binding.value)) for binding in bindings}
    return {user: [var for var in dying if once[user].count(var) == 1] for user, dying in found.items()}


def _is_fresh(binding: Binding) -> bool:
    """Whether a value is a tensor in memory that nothing else has."""
    if not isinstance(binding.var.ty, TensorType):
        return False
    value = binding.value
    named = isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in ("call_tir", "matmul", "linear")
    return named or _is_call_of(binding, _FRESH) or (_is_call_of(binding, {"nn_activations"}) and _has_rule(value))


def _has_rule(value: object) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and callable(OPS[value.op.name].layout)


def _is_call_of(binding: Binding, families: frozenset[str] | set[str]) -> bool:
    value = binding.value
    if not isinstance(binding, VarBinding) or not isinstance(value, Call) or not isinstance(value.op, Op):
        return False
    return value.op.name in OPS and OPS[value.op.name].family in families
