"""ConcatenateInPlace: what is only concatenated is written where the concatenation has it, and not copied.

    a = R.builtin.alloc_tensor((n, 4));  cls.f(x, a)       c = R.builtin.alloc_tensor((n, 9));  cls.f_part(x, c)
    b = R.builtin.alloc_tensor((n, 5));  cls.g(x, b)       cls.g_part(x, c)
    c = R.builtin.alloc_tensor((n, 9));  cls.concat(a, b, c)

All parts have to be memory of the function that kernels write, that nothing but the concatenation reads, and whose
kernels have a form that writes into a larger buffer (`weft.transform.kernel.buffers.concatenation`); else the copy is
made as before. Sizes along the axis are known numbers, all others may be symbols. A concatenation may be part of
another one. The attribute `in_place` of a kernel says what it writes a part of.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from weft.ir import Binding, Call, Function, GlobalVar, IRModule, PrimFunc, TensorType, Var, replace, walk
from weft.ir.attrs import IN_PLACE
from weft.ir.dim import Dim
from weft.ir.module import fresh_name
from weft.ir.tensor import Buffer
from weft.support.records import dataclass
from weft.transform.analysis.lifetimes import END, Lifetimes
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.kernel.buffers.concatenation import Concatenation, as_part, concatenation
from weft.transform.memory.in_place.update_in_place import without_unused
from weft.transform.memory.share_memory import is_allocation

__all__ = ["ConcatenateInPlace"]


@dataclass(frozen=True)
class ConcatenateInPlace(Pass):
    """Let kernels write their results as parts of the tensor that these are concatenated to."""

    aliases: ClassVar[tuple[str, ...]] = ("concatenate-in-place",)

    def run(self, module: IRModule) -> IRModule:
        """The module without the copies; the same object where all of them stay."""
        kernels = _Kernels(module)
        if not any(kernels.concatenation(name) for name in module.functions):
            return module
        new = map_functions(module, lambda name, function: _written_in_place(function, module, kernels))
        if new is module:
            return module
        used = new.with_functions({**new.functions, **kernels.made})
        return without_unused(used, {**kernels.replaced, **kernels.made})


class _Kernels:
    """The kernels of a module, which of them concatenate, and the forms that write parts, made once for each place."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.made: dict[str, PrimFunc] = {}
        self.replaced: dict[str, None] = {}
        self._concatenations: dict[str, Concatenation | None] = {}
        self._parts: dict[tuple[str, int, int, int, int], str | None] = {}

    def of(self, name: str) -> PrimFunc | None:
        """The kernel of a name."""
        found = self.made.get(name) or self.module.functions.get(name)
        return found if isinstance(found, PrimFunc) else None

    def concatenation(self, name: str) -> Concatenation | None:
        """What the kernel of a name concatenates."""
        if name not in self._concatenations:
            kernel = self.of(name)
            self._concatenations[name] = None if kernel is None else concatenation(kernel)
        return self._concatenations[name]

    def part(self, name: str, position: int, axis: int, start: int, total: int) -> str | None:
        """The name of the kernel that has the buffer at a position in a larger one."""
        key = name, position, axis, start, total
        if key not in self._parts:
            kernel = self.of(name)
            made = None if kernel is None else as_part(kernel, position, axis, start, total)
            new = None
            if kernel is not None and made is not None:
                new = fresh_name(f"{name}_part", {*self.module.functions, *self.made})
                own = kernel.params[position]
                assert isinstance(own, Buffer)
                place = f"from {start} on along axis {axis} of {total}"
                reason = f"`{own.name}` is written {place} where it is concatenated: no copy is made"
                self.made[new] = replace(made, name=new, private=True).with_attr(IN_PLACE, reason)
            self._parts[key] = new
        return self._parts[key]


def _written_in_place(function: Function, module: IRModule, kernels: _Kernels) -> Function:
    called = {node.op.name for node in walk(function) if isinstance(node, Call) and isinstance(node.op, GlobalVar)}
    if not any(kernels.concatenation(name) for name in called):
        return function
    lifetimes = Lifetimes(function, module.functions)
    if not lifetimes.understood:
        return function
    choice = _Choice(lifetimes, kernels)
    for step in range(len(lifetimes.steps)):
        choice.consider(step)
    return _Written(choice).run(function) if choice.gone else function


@dataclass
class _Choice:
    """Which concatenations need no copy. `calls` has the calls that change by step, `gone` the bindings that go away,
    `first` the allocations that stand in the place of others, by step."""

    lifetimes: Lifetimes
    kernels: _Kernels
    calls: dict[int, Call] = field(default_factory=dict[int, Call])
    gone: set[int] = field(default_factory=set[int])
    first: dict[int, Binding] = field(default_factory=dict[int, Binding])
    users: dict[Var, list[int]] = field(default_factory=dict[Var, list[int]])

    def consider(self, step: int) -> None:
        """Leave out the call at a step if it concatenates what may be written in place."""
        call = self.call(step)
        found = None if call is None else self.kernels.concatenation(_name(call))
        if call is None or found is None or len(call.args) <= found.output:
            return
        output = call.args[found.output]
        if not isinstance(output, Var) or not self.is_new(output, step):
            return
        parts = {var: part for part in found.parts if isinstance(var := call.args[part.position], Var)}
        if len(parts) < len(found.parts) or not all(self.is_part(var, output, step, found.axis) for var in parts):
            return
        new: dict[int, Call] = {}
        for var, part in parts.items():
            for writer in self.steps(var)[:-1]:
                changed = self.writer(writer, var, output, (found.axis, part.start, found.total))
                if changed is None or writer in new:
                    return
                new[writer] = changed
        self.take(step, output, list(parts), new)

    def take(self, step: int, output: Var, parts: list[Var], new: dict[int, Call]) -> None:
        """Let the calls write into the output, which is allocated where the first part was."""
        made, allocation = [self.lifetimes.made[part] for part in parts], self.lifetimes.made[output]
        moved = {binding.var: at for at, binding in self.first.items()}
        places = [moved.get(part, at) for part, at in zip(parts, made, strict=True)]
        for writer, call in new.items():
            old = self.call(writer)
            assert old is not None
            self.kernels.replaced[_name(old)] = None
            self.calls[writer] = call
        self.kernels.replaced[_name(self.lifetimes.steps[step].value)] = None
        self.gone |= {step, allocation, *made}
        for at in places:  # parts may be concatenations themselves
            self.first.pop(at, None)
        self.first[min(places)] = self.lifetimes.steps[allocation]
        later = [at for at in self.steps(output) if at != step]
        self.users[output] = sorted({*new, *later})

    def call(self, step: int) -> Call | None:
        """The call of a kernel at a step, as it is by now."""
        value = self.calls.get(step, self.lifetimes.steps[step].value)
        if step in self.gone or not isinstance(value, Call) or not isinstance(value.op, GlobalVar):
            return None
        kernel = self.kernels.of(value.op.name)
        return value if kernel is not None and len(kernel.params) == len(value.args) else None

    def steps(self, var: Var) -> list[int]:
        """The steps that use a variable."""
        if var not in self.users:
            self.users[var] = sorted({use.step for use in self.lifetimes.uses.get(var, ())})
        return self.users[var]

    def is_new(self, var: Var, step: int) -> bool:
        """Whether a variable is memory allocated beside the call, which uses it for the first time."""
        made = self.lifetimes.made.get(var)
        if made is None or not is_allocation(self.lifetimes.steps[made]) or self.lifetimes.first(var) != step:
            return False
        return self.lifetimes.sequence_of[made] is self.lifetimes.sequence_of[step]

    def is_part(self, var: Var, output: Var, step: int, axis: int) -> bool:
        """Whether a variable is memory that kernels write beside the call, which is the last one to use it."""
        lifetimes, steps = self.lifetimes, self.steps(var)
        made = lifetimes.made.get(var)
        if made is None or not is_allocation(lifetimes.steps[made]) or len(lifetimes.members(var)) != 1:
            return False
        if len(steps) < 2 or steps[-1] != step or lifetimes.last(var) == END:
            return False
        beside = all(lifetimes.sequence_of[at] is lifetimes.sequence_of[step] for at in (made, *steps))
        own, whole = _dims(var), _dims(output)
        return beside and (*own[:axis], *own[axis + 1 :]) == (*whole[:axis], *whole[axis + 1 :])

    def writer(self, step: int, var: Var, output: Var, place: tuple[int, int, int]) -> Call | None:
        """The call at a step with an output in place of a part; None where its kernel has no such form."""
        call = self.call(step)
        if call is None or sum(arg is var for arg in call.args) != 1:
            return None
        position = next(at for at, arg in enumerate(call.args) if arg is var)
        name = self.kernels.part(_name(call), position, *place)
        if name is None:
            return None
        args = tuple(output if arg is var else arg for arg in call.args)
        return replace(call, op=GlobalVar(name, span=call.op.span), args=args)


def _name(call: object) -> str:
    assert isinstance(call, Call)
    assert isinstance(call.op, GlobalVar)
    return call.op.name


def _dims(var: Var) -> tuple[Dim, ...]:
    return var.ty.dims or () if isinstance(var.ty, TensorType) else ()


class _Written(FunctionRewriter):
    """Writes down what was chosen."""

    def __init__(self, choice: _Choice) -> None:
        super().__init__()
        self.choice = choice
        self.step = {binding: step for step, binding in enumerate(choice.lifetimes.steps)}

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        step = self.step[binding]
        if step in self.choice.first:
            return [self.choice.first[step]]
        if step in self.choice.gone:
            return []
        call = self.choice.calls.get(step)
        return binding if call is None else replace(binding, value=call)
