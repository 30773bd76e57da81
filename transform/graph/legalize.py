"""LegalizeOps: each operator call becomes a `call_tir` of the kernel that its declaration gives.

    y = R.exp(x)      y = R.call_tir(cls.exp, (x,), out_ty=...)       and a private kernel `exp` in the module

Kernels are named by operator (`exp`, `exp1`, ...); structurally equal ones are one. An operator that is declared by
other operators (`decompose`) is written out in them first; those of them whose operands are constants are folded, where
`FoldConstant` runs: a recurrent layer's transposed weights. What has no lowering, or whose shapes are not known, stays.
Lowering is remembered by operator, argument types and attributes, so that a long model costs one look-up per call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from weft.errors import PassError, WeftError
from weft.ir import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    Tuple,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import LABEL
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.device_mesh import is_spread
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import OPS, OpDef, get_op
from weft.ir.op.common import kernel_call
from weft.support.records import dataclass
from weft.transform.analysis.value_numbering import data_key, expr_key, type_key
from weft.transform.graph.fold_constant import ConstantFolder, folder_in_context
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.infra.writing_out import as_declared, written_out

__all__ = ["LegalizeOps"]

Customize = Callable[[BlockBuilder, Call], Expr]


@dataclass(frozen=True)
class LegalizeOps(Pass):
    """Replace operator calls by calls of kernels.

    `customize_legalize` maps operator names to functions `(builder, call) -> Expr` that are asked first. They build the
    replacement from operators (`builder.emit`) or formulas (`builder.call_te`); the call itself means "as usual".

    Raises: ScriptError W140 for an unknown operator name in `customize_legalize`; PassError W531 when such a function
    gives something else than an expression.
    """

    aliases: ClassVar[tuple[str, ...]] = ("legalize",)
    customize_legalize: Mapping[str, Customize] = field(default_factory=dict)

    def run(self, module: IRModule) -> IRModule:
        """Legalize every graph function and add the kernels."""
        for name in self.customize_legalize:
            get_op(name)
        kernels = _Kernels(module)

        def legalized(name: str, function: Function) -> Function:
            folder = folder_in_context(module)
            return _Legalizer(kernels, self.customize_legalize, self.text_name, folder).run(function)

        new = map_functions(module, legalized)
        added = {name: kernel for name, kernel in kernels.builder.get().items() if name not in module}
        return new.with_functions({**new.functions, **added}) if added else new


class _Kernels:
    """The kernels made in one run: the builder shares those of equal structure, `known` those of equal calls."""

    def __init__(self, module: IRModule) -> None:
        self.builder = BlockBuilder(module)
        self.context = TypeContext(module.functions)
        self.known: dict[Hashable, tuple[GlobalVar, PrimFunc] | None] = {}

    def find(self, definition: OpDef, call: Call) -> tuple[GlobalVar, PrimFunc] | None:
        """The kernel for a call, made when needed: its reference, and this call's own version; None when there is none.

        The own version may differ from the shared one in the names of symbols, which the call has to pass.
        """
        key = _call_key(call)
        if key is not None and key in self.known:
            return self.known[key]
        name = definition.name.rpartition(".")[2]
        kernel = definition.lower(call, self.context, name)
        label = call.attrs.get(LABEL)  # the kernel of a labelled call belongs to that part
        if kernel is not None and label is not None:
            kernel = kernel.with_attr(LABEL, label)
        found = None if kernel is None else (self.builder.add_func(replace(kernel, private=True), name), kernel)
        if key is not None:
            self.known[key] = found
        return found


def _call_key(call: Call) -> Hashable:
    """What a kernel may depend on: operator, argument types, values of arguments that are not variables, attributes."""
    parts = tuple(map(_argument_key, call.args))
    if None in parts:
        return None
    return (expr_key(call.op), parts, data_key(call.attrs), tuple(map(type_key, call.ty_args)))


def _argument_key(arg: Expr) -> Hashable:
    if isinstance(arg, Var) or (isinstance(arg, Constant) and arg.data.ndim > 0):
        return ("type", type_key(arg.ty))
    if isinstance(arg, Tuple):
        parts = tuple(map(_argument_key, arg.fields))
        return None if None in parts else ("tuple", *parts)
    return expr_key(arg)


class _Legalizer(FunctionRewriter):
    def __init__(
        self, kernels: _Kernels, customize: Mapping[str, Customize], origin: str, folder: ConstantFolder | None
    ) -> None:
        super().__init__()
        self.folder = folder
        self.kernels = kernels
        self.customize = customize
        self.origin = origin

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        done: list[Binding] = []
        # What an operator is written out as is legalized in turn, but never customized again.
        pending = [(binding, bool(self.customize))]
        while pending:
            current, custom = pending.pop()
            if self.folder is not None and not isinstance(current.value, Call):
                self.folder.learn(current)
            try:
                new = self.step(current, custom)
            except WeftError as error:
                raise error.at(current.value.span or current.span) from None
            if new is None:
                done.append(current)
            else:
                pending.extend((self.entered(item), False) for item in reversed(new))
        return done[0] if len(done) == 1 else done

    def entered(self, binding: Binding) -> Binding:
        """A new binding, legalized inside where it is a local function: the body of a loop."""
        return self.mapped_binding(binding) if isinstance(binding.value, Function) else binding

    def step(self, binding: Binding, custom: bool) -> Sequence[Binding] | None:
        """What the binding is written as, or None when it is final."""
        call = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, Op):
            return None
        rule = self.customize.get(call.op.name) if custom else None
        if rule is not None:
            value = self.customized(rule, binding, call)
            if value is not None:
                return value
        if is_spread(binding.var.ty) or any(is_spread(getattr(arg, "ty", None)) for arg in call.args):
            return None  # a kernel works on the tensors of one device
        definition = OPS.get(call.op.name)
        if definition is None:
            return None
        found = self.kernels.find(definition, call)
        if found is not None:
            callee, kernel = found
            value = labelled(kernel_call(call, kernel, callee, self.kernels.context), call)
            return self.rebound(binding, lambda builder: value)
        decompose = definition.decompose
        written = decompose and self.rewritten(
            binding, call, lambda builder: decompose(definition.arguments(call), builder)
        )
        if written:
            if self.folder is not None and self.folder.has_constants(call):
                written = self.folder.folded(written)
            new = as_declared(written, self.kernels.context)
            return new if LABEL not in call.attrs else [replace(item, value=labelled(item.value, call)) for item in new]
        return None

    def customized(self, rule: Customize, binding: VarBinding, call: Call) -> Sequence[Binding] | None:
        """What a user's rule makes of the call; None when it leaves the call alone."""

        def build(builder: BlockBuilder) -> Expr:
            result = rule(builder, call)
            if not isinstance(result, Expr):
                kind = type(result).__name__
                raise PassError(f"the rule for R.{call.op.name} gave a {kind}, not an expression", code="W531")  # type: ignore[attr-defined]
            return result

        return self.rewritten(binding, call, build)

    def rewritten(self, binding: VarBinding, call: Call, build: Callable[[BlockBuilder], Expr]) -> list[Binding] | None:
        """The binding with what is built in the place of a call; None when that is the call itself."""
        result: list[Expr] = []

        def once(builder: BlockBuilder) -> Expr:
            result.append(build(builder))
            return result[0]

        new = self.rebound(binding, once)
        return None if result[0] is call else new

    def rebound(self, binding: VarBinding, build: Callable[[BlockBuilder], Expr]) -> list[Binding]:
        """The binding with the value that `build` gives, after the bindings that it emits."""
        return written_out(binding, build, self.kernels.builder, self.in_dataflow, self.origin)


def labelled(value: Any, call: Call) -> Any:
    """What a call is replaced by, with the label of the call."""
    if LABEL not in call.attrs or not isinstance(value, Call) or LABEL in value.attrs:
        return value
    return replace(value, attrs=value.attrs.set(LABEL, call.attrs[LABEL]))
