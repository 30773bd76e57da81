"""AllocateWorkspace: functions of code generators that need scratch memory get it from their callers.

    cls.main_npu(x)       WorkspaceSize 1024      ->      workspace = R.zeros((1024,), "uint8")
                                                          cls.main_npu(x, workspace)

A caller allocates once, as many bytes as the greatest of the sizes that its calls need. Functions that such a function
calls or holds do not see the memory: it is for the code generator, which reads the last parameter.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.errors import PassError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Function,
    GlobalVar,
    IRModule,
    TensorType,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import WORKSPACE_SIZE
from weft.ir.op import get_op
from weft.ir.structure.visit import walk
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, merge_blocks

__all__ = ["AllocateWorkspace"]


@dataclass(frozen=True)
class AllocateWorkspace(Pass):
    """Give functions with the attribute `WorkspaceSize` memory as a last parameter, allocated by their callers.

    Raises: PassError W506 for a size that is no number from 0 on.
    """

    keeps_types: ClassVar[bool] = False

    @classmethod
    def sample(cls, choices: Choices) -> tuple[AllocateWorkspace, str]:
        """Two functions with different needs."""
        small, large = choices.pick(((16, 64), (64, 16), (0, 8)))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function(private=True)
    def first(x: R.Tensor((4,), "float32")):
        R.func_attr({{"Codegen": "npu", "WorkspaceSize": {small}}})
        return R.exp(x)

    @R.function(private=True)
    def second(x: R.Tensor((4,), "float32")):
        R.func_attr({{"Codegen": "npu", "WorkspaceSize": {large}}})
        return R.negative(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = Module.first(x)
            out = Module.second(y)
            R.output(out)
        return out
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Add the parameter, and the allocations."""
        sizes = {
            name: _size(name, function.attrs[WORKSPACE_SIZE])
            for name, function in module.items()
            if isinstance(function, Function) and WORKSPACE_SIZE in function.attrs
        }
        sizes = {name: size for name, size in sizes.items() if size and not _has_workspace(module[name])}
        if not sizes:
            return module

        def change(name: str, function: Function) -> Function:
            if name in sizes:
                taken = Var("workspace", TensorType((sizes[name],), "uint8"))
                function = replace(function, params=(*function.params, taken))
            return _Calls(sizes).run_top(function)

        return map_functions(module, change)


def _size(name: str, size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise PassError(f"{WORKSPACE_SIZE} of {name!r} is a number of bytes, got {size!r}", code="W506")
    return size


def _has_workspace(function: Any) -> bool:
    return bool(function.params) and function.params[-1].name == "workspace"


class _Calls(FunctionRewriter):
    """Hands the workspace over; to a function that has one of its own, the calls in it get another."""

    def __init__(self, sizes: dict[str, int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.memory: Var | None = None

    def run_top(self, function: Function) -> Function:
        """The function, which allocates what its calls need."""
        needed = [
            self.sizes[value.op.name]
            for value in walk(function.body)
            if isinstance(value, Call) and isinstance(value.op, GlobalVar) and value.op.name in self.sizes
        ]
        if not needed:
            return function
        self.memory = Var("workspace", TensorType((max(needed),), "uint8"))
        new = self.run(function)
        call = get_op("zeros")((max(needed),), "uint8")
        blocks = merge_blocks((BindingBlock((VarBinding(self.memory, call),)), *new.body.blocks))
        return replace(new, body=replace(new.body, blocks=blocks))

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        value = binding.value
        if self.memory is None or not isinstance(binding, VarBinding) or not isinstance(value, Call):
            return binding
        if not isinstance(value.op, GlobalVar) or value.op.name not in self.sizes:
            return binding
        size = self.sizes[value.op.name]
        own = self.memory
        whole = own.ty.dims == (size,)  # type: ignore[union-attr]
        if whole:
            return replace(binding, value=replace(value, args=(*value.args, own)))
        part = self.fresh("workspace", TensorType((size,), "uint8"), binding.span)
        seen = VarBinding(part, get_op("memory.view")(own, (size,)), span=binding.span)
        return [seen, replace(binding, value=replace(value, args=(*value.args, part)))]
