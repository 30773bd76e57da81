"""StaticPlanBlockMemory: tensors that live within a call get places in one block of memory, planned beforehand.

    y = R.builtin.alloc_tensor(shape, dtype)     storage = R.memory.alloc_storage(bytes)            once, at the start
                                                 y = R.memory.alloc_tensor(storage, offset, shape, dtype)

Offsets and the size of the block are expressions over the symbols of the function, computed once per call. Whatever
the symbols are, tensors that are needed at one time do not overlap; `CheckMemoryPlan` proves that again on the
result. Upper bounds that the function states (attribute `tir_var_upper_bound`) help to prove that one size fits where
another one was. Sizes with symbols that a binding in the middle defines are planned in a block of their own, allocated
where all of them are known. What the function may return stays an allocation of its own.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from weft import dtypes
from weft.ir import (
    AnyType,
    Binding,
    BindingBlock,
    Call,
    Function,
    IRModule,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    TensorType,
    Var,
    VarBinding,
    replace,
)
from weft.ir.dim import Dim, Facts, free_symbols, product
from weft.ir.dim.upper_bounds import upper_bounds
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of_type
from weft.transform.analysis.lifetimes import Lifetimes
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter, derived, merge_blocks
from weft.transform.memory.pack_memory import ALIGNMENT, Packing, Request, pack
from weft.transform.memory.planners import Planner, checked_plan, find_planner
from weft.transform.memory.share_memory import is_allocation

__all__ = ["StaticPlanBlockMemory", "bounds_of", "tensor_bytes"]


@dataclass(frozen=True)
class StaticPlanBlockMemory(FunctionPass):
    """Give the tensors of each function places in one block of memory, which they use one after another.

    `planner` names a memory planner of the user's (`weft.memory_planner`), which takes sizes that are known.
    Raises: VerifyError W439 for an attribute `tir_var_upper_bound` that is no mapping of symbols to sizes; TargetError
    W754 for a planner that is not there, or whose answer is wrong.
    """

    aliases: ClassVar[tuple[str, ...]] = ("plan-memory",)
    planner: str | None = None

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with its allocations planned; itself when there is nothing to plan."""
        facts = bounds_of(function)
        lifetimes = Lifetimes(function, module.functions)
        if not lifetimes.understood:
            return function
        blocks = _blocks(lifetimes)
        for block in blocks:
            block.plan(lifetimes, facts, None if self.planner is None else find_planner(self.planner))
        return _Planned(blocks).run(function) if blocks else function


def bounds_of(function: Function) -> Facts:
    """What the function states about the sizes of its symbols."""
    facts = Facts()
    for name, bound in upper_bounds(function).items():
        facts = facts.assume_bounds(name, 0, bound)
    return facts


def tensor_bytes(ty: TensorType) -> Dim:
    """The bytes of a tensor of known shape and dtype."""
    return product(ty.dims or ()) * dtypes.storage(ty.dtype or "").itemsize


@dataclass
class _Block:
    """One block of memory: the binding that it is allocated after (None: at the start), and the tensors in it."""

    after: Binding | None
    members: list[Binding] = field(default_factory=list)
    packing: Packing | None = None
    var: Var | None = None

    def plan(self, lifetimes: Lifetimes, facts: Facts, planner: Planner | None) -> None:
        """Find the places of the tensors."""
        requests = []
        for binding in self.members:
            assert isinstance(binding.var.ty, TensorType)
            first = min(lifetimes.made[var] for var in lifetimes.members(binding.var))
            size = tensor_bytes(binding.var.ty)
            requests.append(Request(size, first, lifetimes.last(binding.var), ALIGNMENT))
        if planner is None:
            self.packing = pack(requests, facts)
        else:
            offsets, total = checked_plan(planner, requests)
            self.packing = Packing(tuple(offsets), total)
        self.var = Var("storage", AnyType())

    def allocation(self) -> Binding:
        """The binding that allocates the block."""
        assert self.packing is not None
        assert self.var is not None
        span = derived(self.members[0].span, StaticPlanBlockMemory.text_name)
        options = {"virtual_device_index": 0, "storage_scope": "global", "dtype": "uint8"}
        size = ShapeExpr((self.packing.total,), span=span)
        return VarBinding(self.var, get_op("memory.alloc_storage").bind((size,), options, span), span=span)

    def tensor(self, binding: Binding) -> Binding:
        """The binding that stands for an allocation."""
        assert self.packing is not None
        assert self.var is not None
        assert isinstance(binding.value, Call)
        offset = self.packing.offsets[self.members.index(binding)]
        span = binding.value.span
        place = PrimValue(offset, "int64", span=span)
        assert isinstance(binding.var.ty, TensorType)
        args = (self.var, place, binding.value.args[0])
        call = get_op("memory.alloc_tensor").bind(args, {"dtype": binding.var.ty.dtype}, span)
        return replace(binding, value=call)


def _blocks(lifetimes: Lifetimes) -> list[_Block]:
    """The allocations that can be planned, by the place where their sizes are known."""
    function = lifetimes.function
    known: dict[str, Binding | None] = {name: None for param in function.params for name in symbols_of_type(param.ty)}
    order: dict[str, int] = dict.fromkeys(known, -1)
    found: dict[Binding | None, _Block] = {}
    for step, binding in enumerate(lifetimes.steps):
        if is_allocation(binding) and not lifetimes.leaves(binding.var) and _has_size(binding.var):
            assert isinstance(binding.var.ty, TensorType)
            names = free_symbols(tensor_bytes(binding.var.ty))
            if all(name in known and _is_visible(lifetimes, order[name], step) for name in names):
                latest = max((order[name] for name in names), default=-1)
                after = None if latest < 0 else lifetimes.steps[latest]
                found.setdefault(after, _Block(after)).members.append(binding)
        if isinstance(binding, MatchCast) or not is_allocation(binding):
            for name in symbols_of_type(binding.ty if isinstance(binding, MatchCast) else binding.var.ty):
                if name not in known:
                    known[name], order[name] = binding, step
    return list(found.values())


def _has_size(var: Var) -> bool:
    return isinstance(var.ty, TensorType) and var.ty.dims is not None and var.ty.dtype is not None


def _is_visible(lifetimes: Lifetimes, defined: int, step: int) -> bool:
    """Whether what one step defines is there at another: the same sequence, or one around it."""
    if defined < 0:
        return True
    return lifetimes.sequence_of[defined] in lifetimes.enclosing(step)


class _Planned(FunctionRewriter):
    """Puts the blocks and the places in them into the function."""

    def __init__(self, blocks: list[_Block]) -> None:
        super().__init__()
        self.block_of = {binding: block for block in blocks for binding in block.members}
        self.after = {block.after: block for block in blocks}

    def run(self, function: Function) -> Function:
        """The function; the block for the sizes that are known at its start comes first."""
        new = super().run(function)
        block = self.after.get(None)
        return new if block is None else replace(new, body=_first(block.allocation(), new.body))

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        block = self.block_of.get(binding)
        new = binding if block is None else block.tensor(binding)
        later = self.after.get(binding)
        return new if later is None else [new, later.allocation()]


def _first(binding: Binding, seq: SeqExpr) -> SeqExpr:
    return replace(seq, blocks=merge_blocks((BindingBlock((binding,)), *seq.blocks)))
