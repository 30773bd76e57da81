"""ShareMemory: outputs of kernels that may take the memory of an input become views of it.

    y = R.builtin.alloc_tensor(...);  cls.reshape(x, y)      y = R.memory.view(x, shape)           nothing is copied
    y = R.builtin.alloc_tensor(...);  cls.relu(x, y)         y = R.memory.view(x, shape);  cls.relu(x, y)

The first holds for kernels that copy all elements in their order, as long as neither x nor y changes while the other is
used. The second is computing in place: x is memory of this function, used here for the last time, and the kernel reads
each element of x no later than when it computes the element of y at its place (`weft.transform.analysis.accesses`
decides). The attribute `shares_memory` of the kernel lists such pairs of (input, output) positions: code generation
must not assume that they are apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from weft.ir import (
    BaseFunc,
    Binding,
    Call,
    Constant,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    PrimValue,
    PrimVar,
    ShapeExpr,
    TensorType,
    Var,
    VarBinding,
    structural_equal,
    structural_hash,
)
from weft.ir.attrs import SHARES_MEMORY
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, free_symbols, product, prove_equal, prove_le
from weft.ir.dim.inspection import substitute
from weft.ir.kernel.prim_dim import kernel_signature, symbol_names
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.analysis.accesses import is_reshape, sharing_pairs
from weft.transform.analysis.lifetimes import Lifetimes
from weft.transform.analysis.purity import checks_sizes
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter, derived

__all__ = ["SHARES_MEMORY", "ShareMemory", "is_allocation"]


@dataclass(frozen=True)
class ShareMemory(Pass):
    """Compute in place where it is legal, and make copies that only change the shape views."""

    aliases: ClassVar[tuple[str, ...]] = ("share",)

    def run(self, module: IRModule) -> IRModule:
        """The module with views in place of allocations."""
        kernels = _Kernels(module)
        new = map_functions(module, lambda name, function: _shared(function, module, kernels))
        return new if new is module else new.with_functions({**new.functions, **kernels.marked(new)})


class _Kernels:
    """What is known of the kernels of a module, found once for each, and the pairs that calls make use of."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.pairs: dict[str, tuple[tuple[int, int], ...]] = {}
        self.reshapes: dict[str, bool] = {}
        self.used: dict[str, set[tuple[int, int]]] = {}

    def _once(self, table: dict, name: str, find: Callable[[PrimFunc], object]) -> object:  # type: ignore[type-arg]
        if name not in table:
            function = self.module[name]
            assert isinstance(function, PrimFunc)
            table[name] = find(function)
        return table[name]

    def is_reshape(self, name: str) -> bool:
        """Whether a kernel copies all elements in order."""
        return bool(self._once(self.reshapes, name, is_reshape))

    def pairs_of(self, name: str) -> tuple[tuple[int, int], ...]:
        """The positions of a kernel that may share memory."""
        return self._once(self.pairs, name, sharing_pairs)  # type: ignore[return-value]

    def marked(self, module: IRModule) -> dict[str, PrimFunc]:
        """The kernels that are called in place, with the attribute that says so; equal ones stay equal."""
        used: dict[int, list[tuple[BaseFunc, set[tuple[int, int]]]]] = {}
        for name, pairs in self.used.items():
            used.setdefault(structural_hash(module[name]), []).append((module[name], pairs))
        found: dict[str, PrimFunc] = {}
        for name, function in module.functions.items() if used else ():
            if not isinstance(function, PrimFunc):
                continue
            alike = [item for item in used.get(structural_hash(function), ()) if structural_equal(item[0], function)]
            pairs = set().union(*(pairs for _, pairs in alike))
            if pairs:
                before = {tuple(pair) for pair in function.attrs.get(SHARES_MEMORY, ())}
                found[name] = function.with_attr(SHARES_MEMORY, tuple(sorted(before | pairs)))
        return found


def _shared(function: Function, module: IRModule, kernels: _Kernels) -> Function:
    lifetimes = Lifetimes(function, module.functions)
    if not lifetimes.understood:
        return function
    chosen = _Choice(lifetimes, kernels)
    chosen.choose()
    return _Views(chosen).run(function) if chosen.views else function


@dataclass
class _Choice:
    """Which outputs become views of which inputs. `views` maps the output to (input, whether the call goes away)."""

    lifetimes: Lifetimes
    kernels: _Kernels
    views: dict[Var, tuple[Var, bool]] = field(default_factory=dict)
    calls: dict[Binding, list[Var]] = field(default_factory=dict)

    def choose(self) -> None:
        """Go through the kernel calls in order."""
        for step, binding in enumerate(self.lifetimes.steps):
            call = binding.value
            if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
                continue
            kernel = self.kernels.module.functions.get(call.op.name)
            if isinstance(kernel, PrimFunc) and len(kernel.params) == len(call.args):
                self._call(step, binding, call, call.op.name)

    def _call(self, step: int, binding: Binding, call: Call, name: str) -> None:
        outputs = {
            position: arg for position, arg in enumerate(call.args) if isinstance(arg, Var) and self._is_new(arg, step)
        }
        if not outputs:
            return
        if 1 in outputs and isinstance(call.args[0], Var) and self.kernels.is_reshape(name):
            kernel = self.kernels.module[name]
            checks = checks_sizes(call, self.kernels.module) or not _sizes_fit(kernel, call)
            if not checks and self._may_view(step, call.args[0], outputs[1]):
                self._take(binding, call.args[0], outputs[1], copy=False)
                return
        others = (arg for i, arg in enumerate(call.args) if i not in outputs and isinstance(arg, Var))
        spent = [arg for arg in others if self._is_spent(step, arg, call)]
        if not any(_have_equal_sizes(given, output) for given in spent for output in outputs.values()):
            return  # what the kernel lets share is not asked for in vain: it takes longer
        for i, o in self.kernels.pairs_of(name):
            given = call.args[i]
            if o in outputs and isinstance(given, Var) and self._may_overwrite(step, given, outputs[o], call):
                self._take(binding, given, outputs.pop(o), copy=True)
                self.kernels.used.setdefault(name, set()).add((i, o))

    def _take(self, binding: Binding, given: Var, output: Var, *, copy: bool) -> None:
        self.views[output] = given, not copy
        self.calls.setdefault(binding, []).append(output)
        self.lifetimes.join(given, output)

    def _is_new(self, var: Var, step: int) -> bool:
        """Whether a variable is memory allocated beside the call, which uses it for the first time."""
        made = self.lifetimes.made.get(var)
        if made is None or not is_allocation(self.lifetimes.steps[made]):
            return False
        if self.lifetimes.sequence_of[made] is not self.lifetimes.sequence_of[step]:
            return False
        return self.lifetimes.first(var) == step

    def _may_view(self, step: int, given: Var, output: Var) -> bool:
        lifetimes = self.lifetimes
        if not self._has_room(given, output):  # the call is to find it, not the view in its place
            return False
        if max(lifetimes.last_write(given), lifetimes.last_write(output)) > step:
            return False
        return not lifetimes.leaves(output) or (lifetimes.is_own(given) and not lifetimes.leaves(given))

    def _has_room(self, given: Var, output: Var) -> bool:
        """Whether an input is proved to have as many elements as an output that is allocated, or more."""
        dims, allocation = dims_of(given.ty), self.lifetimes.steps[self.lifetimes.made[output]].value
        assert isinstance(allocation, Call)
        shape = allocation.args[0]
        assert isinstance(shape, ShapeExpr)  # `is_allocation` was asked before
        return dims is not None and prove_le(product(shape.dims), product(dims)) is True

    def _may_overwrite(self, step: int, given: Var, output: Var, call: Call) -> bool:
        if not self._is_spent(step, given, call):
            return False
        return _have_equal_sizes(given, output)  # else the call is to find it, not the view before it

    def _is_spent(self, step: int, given: Var, call: Call) -> bool:
        """Whether a call is the last to read the memory of an input, which is the function's own."""
        lifetimes = self.lifetimes
        if given not in lifetimes.made or not lifetimes.is_own(given) or lifetimes.last(given) != step:
            return False
        root = lifetimes.groups.root(given)
        same = [arg for arg in call.args if isinstance(arg, Var) and lifetimes.groups.root(arg) is root]
        return len(same) == 1 and isinstance(given.ty, TensorType) and given.ty.dims is not None


def _sizes_fit(kernel: BaseFunc, call: Call) -> bool:
    """Whether the sizes that a call passes are proved to be those of its tensors: the kernel is to find others."""
    assert isinstance(kernel, PrimFunc)
    if len(call.args) == 2:  # a signature is proved where types are deduced
        return True
    names, sizes = symbol_names(kernel), dict[str, Dim]()
    for param, arg in zip(kernel.params, call.args, strict=True):
        if isinstance(param, PrimVar):
            if not isinstance(arg, PrimValue) or not isinstance(arg.value, Dim):
                return False
            sizes[names[param]] = arg.value
    for wanted, arg in zip(kernel_signature(kernel), call.args, strict=True):
        if not isinstance(wanted, TensorType):
            continue
        if not isinstance(arg, (Var, Constant)):
            return False
        stated, given = dims_of(wanted), dims_of(arg.ty)
        if stated is None or given is None or {name for dim in stated for name in free_symbols(dim)} - sizes.keys():
            return False
        if any(prove_equal(substitute(a, sizes), b) is not True for a, b in zip(stated, given, strict=True)):
            return False
    return True


def _have_equal_sizes(given: Var, output: Var) -> bool:
    """Whether an input is proved to have as many elements as an output."""
    a, b = dims_of(given.ty), dims_of(output.ty)
    return a is not None and b is not None and prove_equal(product(a), product(b)) is True


def is_allocation(binding: Binding) -> bool:
    """Whether a binding allocates a tensor of stated sizes in plain memory."""
    call = binding.value
    if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name != "builtin.alloc_tensor":
        return False
    plain = call.attrs.get("storage_scope", "global") == "global" and not call.attrs.get("runtime_device_index", 0)
    return plain and isinstance(call.args[0], ShapeExpr) and isinstance(binding.var.ty, TensorType)


class _Views(FunctionRewriter):
    """Puts the views in place of the allocations, before the calls; copies go away."""

    def __init__(self, choice: _Choice) -> None:
        super().__init__()
        self.choice = choice

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        views = self.choice.views
        if binding.var in views and is_allocation(binding):
            return []
        outputs = self.choice.calls.get(binding)
        if outputs is None:
            return binding
        new = [self._view(output, views[output][0], binding) for output in outputs]
        gone = len(outputs) == 1 and views[outputs[0]][1]
        return new if gone else [*new, binding]

    def _view(self, output: Var, given: Var, binding: Binding) -> Binding:
        """The output as a view of the input, in the shape of its allocation: the declared type may say less."""
        span = derived(binding.span, ShareMemory.text_name)
        lifetimes = self.choice.lifetimes
        allocation = lifetimes.steps[lifetimes.made[output]].value
        assert isinstance(allocation, Call)
        assert isinstance(output.ty, TensorType)
        own = given.ty.dtype if isinstance(given.ty, TensorType) else None
        dtype = None if output.ty.dtype == own else output.ty.dtype
        call = get_op("memory.view").bind((given, allocation.args[0], dtype), {}, span)
        return VarBinding(output, call, span=span)
