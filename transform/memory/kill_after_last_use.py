"""KillAfterLastUse: the text says from where on memory is not needed any more.

    y = R.builtin.alloc_tensor(...)              y = R.builtin.alloc_tensor(...)
    cls.exp(x, y)                                cls.exp(x, y)
    cls.add(y, y, z)                ->           cls.add(y, y, z)
                                                 R.memory.kill_tensor(y)

For what the function allocates, in explicit-memory form (`LowerToMemory`): tensors and storages, behind the last use of
anything that may share their memory. What leaves the function stays, and so does what a branch uses that does not
allocate it: nothing is killed inside of one. A function that is killed in already stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir import Binding, BindingBlock, Call, DataflowBlock, Function, IRModule, Op, Var, replace
from weft.ir.op import get_op
from weft.ir.structure.visit import walk
from weft.support.records import dataclass
from weft.transform.analysis.lifetimes import END, Lifetimes
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import void_binding

__all__ = ["KillAfterLastUse"]

_KILLS = {
    "builtin.alloc_tensor": "memory.kill_tensor",
    "memory.alloc_tensor": "memory.kill_tensor",
    "vm.alloc_tensor": "memory.kill_tensor",
    "memory.alloc_storage": "memory.kill_storage",
    "vm.alloc_storage": "memory.kill_storage",
}
_PLACED = ("memory.alloc_tensor", "vm.alloc_tensor")
_KILLED = frozenset((*_KILLS.values(), "vm.kill_object"))


@dataclass(frozen=True)
class KillAfterLastUse(FunctionPass):
    """Kill tensors and storages of a function behind their last use."""

    @classmethod
    def sample(cls, choices: Choices) -> tuple[KillAfterLastUse, str]:
        """A kernel that is called several times, with memory for each result."""
        size, calls = choices.pick((4, 3)), choices.integer(2, 4)
        lines: list[str] = []
        for place in range(calls):
            source = f"t{place - 1}" if place else "x"
            lines.append(
                f't{place} = R.builtin.alloc_tensor(R.shape([{size}]), dtype="float32", '
                'runtime_device_index=0, storage_scope="global")'
            )
            lines.append(f"Module.twice({source}, t{place})")
        body = "\n        ".join(lines)
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(x: T.Buffer(({size},), "float32"), y: T.Buffer(({size},), "float32")):
        for i in range({size}):
            with T.sblock("twice"):
                v = T.axis.spatial({size}, i)
                y[v] = x[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor(({size},), "float32")):
        {body}
        return t{calls - 1}
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with its memory killed."""
        operators = {node.name for node in walk(function) if isinstance(node, Op)}
        if operators & _KILLED or not operators & set(_KILLS):
            return function
        lifetimes = Lifetimes(function, module.functions)
        if not lifetimes.understood:
            return function
        killed = _last_uses(function, lifetimes)
        blocks = tuple(_killing(block, killed) for block in function.body.blocks)
        if all(a is b for a, b in zip(blocks, function.body.blocks, strict=True)):
            return function
        return replace(function, body=replace(function.body, blocks=blocks))


def _last_uses(function: Function, lifetimes: Lifetimes) -> Mapping[Binding, list[tuple[Var, str]]]:
    """The variables whose memory ends with a binding of the body itself, and by which operator; tensors first."""
    own = [binding for block in function.body.blocks for binding in block.bindings]
    ends = {id(binding): binding for binding in own}
    last_uses = _ends(own, lifetimes)
    found: dict[Binding, list[tuple[Var, str]]] = {}
    for binding in own:
        value = binding.value
        kill = _KILLS.get(value.op.name) if isinstance(value, Call) and isinstance(value.op, Op) else None
        if kill is None:
            continue
        last = last_uses[binding.var]
        if last == END:
            continue
        end = _enclosing(lifetimes, last, ends)
        if end is not None:
            found.setdefault(end, []).append((binding.var, kill))
    return {end: sorted(items, key=lambda item: item[1] != "memory.kill_tensor") for end, items in found.items()}


def _ends(own: list[Binding], lifetimes: Lifetimes) -> dict[Var, int]:
    """The last step of each variable; a storage is there as long as the tensors in it."""
    found: dict[Var, int] = {}
    for binding in own:
        value = binding.value
        found[binding.var] = last = lifetimes.last(binding.var)
        if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in _PLACED:
            storage = value.args[0]
            if isinstance(storage, Var) and storage in found:
                found[storage] = max(found[storage], last)
    return found


def _enclosing(lifetimes: Lifetimes, step: int, own: Mapping[int, Binding]) -> Binding | None:
    """The binding of the body that a step is part of: itself, or the conditional around it, which comes before it."""
    for place in range(min(step, len(lifetimes.steps) - 1), -1, -1):
        if id(lifetimes.steps[place]) in own:
            return lifetimes.steps[place]
    return None


def _killing(block: BindingBlock, killed: Mapping[Binding, list[tuple[Var, str]]]) -> BindingBlock:
    if isinstance(block, DataflowBlock) or not any(binding in killed for binding in block.bindings):
        return block
    bindings: list[Binding] = []
    for binding in block.bindings:
        bindings.append(binding)
        bindings += [void_binding(get_op(kill)(var)) for var, kill in killed.get(binding, ())]
    return replace(block, bindings=tuple(bindings))
