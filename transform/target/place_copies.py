"""PlaceCopies: tensors cross from one memory to another by copies that stand in the program.

    y = R.exp(x, target="npu")        becomes        x_npu = R.call_tir(cls.copy_to_npu, (x,), ...)
                                                     y_npu = R.exp(x_npu, target="npu")
                                                     y = R.call_tir(cls.copy_from_npu, (y_npu,), ...)

A kind of target whose code works in a memory of its own says so (`TargetKind.memory`); kinds that say nothing share the
memory of the host. A value stays in the memory of the function that computes it; what a call in another memory gives is
used there again without another copy. Constants are wherever they are needed.

Errors: TargetError W751 for a tensor whose shape or dtype is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import Span, TargetError
from weft.ir.attrs import COPIES, LABEL, OP_PATTERN
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext
from weft.ir.graph import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    Op,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap, replace
from weft.ir.op import get_op
from weft.ir.op.common import kernel_call
from weft.ir.types import TensorType, TupleType, Type
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter, derived, map_operands
from weft.transform.target.assign import callee_of
from weft.transform.target.labels import driving_label, leaf_parts, owners

__all__ = ["PlaceCopies"]


@dataclass(frozen=True)
class PlaceCopies(Pass):
    """Insert copies where a call works in another memory than the function it stands in."""

    target: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Copy what calls in other memories take and give; a module of one memory stays the same."""
        parts = dict(leaf_parts(Target(self.target)))
        memories = {label: part.kind.memory for label, part in parts.items()}
        if len(set(memories.values())) == 1:
            return module
        owner = owners(module, parts)
        driver = driving_label(parts)
        builder = BlockBuilder(module)

        def place(name: str, function: Function) -> Function:
            copier = _Copier(self.text_name, module, builder, owner, memories, driver)
            copier.home, copier.label = memories[owner[name]], owner[name]
            return copier.run(function)

        new = map_functions(module, place)
        added = {name: function for name, function in builder.get().items() if name not in module}
        return new.with_functions({**new.functions, **added}) if added else new


class _Copier(FunctionRewriter):
    home = ""
    label = ""

    def __init__(
        self,
        origin: str,
        module: IRModule,
        builder: BlockBuilder,
        owner: dict[str, str],
        memories: dict[str, str],
        driver: str,
    ) -> None:
        super().__init__()
        self.origin, self.module, self.builder = origin, module, builder
        self.owner, self.memories, self.driver = owner, memories, driver
        self.there: dict[tuple[Var, str], Var] = {}

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        call = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(call, Call) or isinstance(call.op, ExternFunc):
            return binding
        callee = callee_of(call)
        label = call.attrs.get(LABEL) or self.owner.get(callee or "", self.label)
        memory = self.memories[label]
        if memory == self.home:
            return binding
        span = derived(binding.span or call.span, self.origin)
        new: list[Binding] = []

        def moved(leaf: Expr) -> Expr:
            if not isinstance(leaf, Var) or isinstance(leaf, (GlobalVar, Constant)) or not _is_data(leaf.ty):
                return leaf
            if (leaf, memory) not in self.there:
                self.there[leaf, memory] = self.copy(leaf, f"{leaf.name}_{memory}", f"copy_to_{memory}", span, new)
            return self.there[leaf, memory]

        value = map_operands(call, moved)
        if not _is_data(binding.var.ty):
            return [*new, replace(binding, value=value)]
        result = self.fresh(f"{binding.var.name}_{memory}", binding.var.ty, span)
        new.append(VarBinding(result, value, span=binding.span))
        if isinstance(binding.var.ty, TensorType):
            self.there[binding.var, memory] = result
        new.append(replace(binding, value=self.back(result, f"copy_from_{memory}", span, new)))
        return new

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body or branch: copies that it makes are not there after it."""
        outer = dict(self.there)
        new = super().sequence(seq)
        self.there = outer
        return new

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """The block; its dataflow variables are not there after it."""
        self.there = {key: var for key, var in self.there.items() if not isinstance(var, DataflowVar)}
        return super().rewrite_block(block, bindings)

    def back(self, value: Var, name: str, span: Span | None, new: list[Binding]) -> Expr:
        """What a call gave, copied home; tuples field by field."""
        if not isinstance(value.ty, TupleType):
            return self.copied(value, name, span)
        fields: list[Expr] = []
        for index, ty in enumerate(value.ty.fields):
            item = self.fresh(f"{value.name}_{index}", ty, span)
            new.append(VarBinding(item, TupleGetItem(value, index, span=span), span=span))
            home = self.fresh(f"{value.name}_{index}_home", ty, span)
            new.append(VarBinding(home, self.back(item, name, span, new), span=span))
            fields.append(home)
        return Tuple(tuple(fields), span=span)

    def copy(self, value: Var, name: str, kernel: str, span: Span | None, new: list[Binding]) -> Var:
        var = self.fresh(name, value.ty, span)
        new.append(VarBinding(var, self.copied(value, kernel, span), span=span))
        return var

    def copied(self, value: Var, name: str, span: Span | None) -> Call:
        """The call of a kernel that copies a tensor; it belongs to what drives."""
        context = TypeContext(self.module.functions)
        call = get_op("astype").bind((value, getattr(value.ty, "dtype", None)), {}, span)
        kernel = get_op("astype").lower(call, context, name)
        if kernel is None:
            raise TargetError(
                f"{value.name!r} crosses to another memory, and its shape or dtype is not known",
                code="W751",
                span=value.span or span,
                hint="name them with R.match_cast",
            )
        facts = {LABEL: self.driver, OP_PATTERN: "opaque", COPIES: name}
        kernel = replace(kernel, attrs=FrozenMap({**kernel.attrs, **facts}), private=True)
        callee = self.builder.add_func(kernel, name)
        made: Any = kernel_call(call, kernel, callee, context)
        assert isinstance(made.op, Op)
        return replace(made, span=span)


def _is_data(ty: Type | None) -> bool:
    """Whether a type is that of tensors."""
    if isinstance(ty, TupleType):
        return bool(ty.fields) and all(map(_is_data, ty.fields))
    return isinstance(ty, TensorType)
