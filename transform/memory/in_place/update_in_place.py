"""UpdateInPlace: tensors of which elements are assigned are changed where they are, if nothing needs the old ones.

    def body(i, h):                                    def body(i, h):
        h1 = R.call_tir(cls.index_put, (h, i, v))          h1 = R.call_tir_inplace(cls.put_inplace, (h, i, v), [0])
        return (h1,)                                       return (h1,)
    s = R.loop(body, (x,), ...)                        s = R.loop(body, (x,), overwrites=[0], ...)

A kernel that gives an input with some elements changed becomes one that changes the input (`overwriting`), where the
input is memory of the function's own that nothing reads afterwards (`Ownership`), so that a step takes time by the
elements that change. In the body of a loop carried values are own memory if each iteration hands them on in such
memory; the loop says which ones (`overwrites`), and what is not its own is copied once, before the first iteration.
Values that are read after they changed, that leave in two results, or that are captured, are copied as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from weft.ir import (
    Binding,
    Call,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    TupleType,
    VarBinding,
    walk,
)
from weft.ir.attrs import IN_PLACE
from weft.ir.builder import BlockBuilder
from weft.ir.op import get_op
from weft.ir.op.program.loop import carried_types
from weft.ir.structure.references import referenced_functions
from weft.support.records import dataclass
from weft.transform.analysis.ownership import Ownership, loop_parts
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, is_marked
from weft.transform.kernel.buffers.overwriting import Overwriting, overwriting

__all__ = ["UpdateInPlace", "without_unused"]


@dataclass(frozen=True)
class UpdateInPlace(Pass):
    """Call kernels that change elements of an operand in place, where nothing needs the old ones.

    >>> UpdateInPlace()(IRModule({})).functions
    FrozenMap({})
    """

    @classmethod
    def sample(cls, choices: Choices) -> tuple[UpdateInPlace, str]:
        """Two assignments, of which the first one's value may be read later."""
        last = choices.pick(("b", "a, b", "b, b"))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @T.prim_func(private=True)
    def put(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = x[i]
        if n > 2:
            y[2] = T.float32(1)

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            a = R.call_tir(Module.put, (x,), out_ty=R.Tensor(("n",), "float32"))
            b = R.call_tir(Module.put, (a,), out_ty=R.Tensor(("n",), "float32"))
            R.output(a, b)
        return ({last},)
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Rewrite the calls of all graph functions, and add the kernels."""
        choice = _Choice(module)
        functions = [function for function in module.functions.values() if isinstance(function, Function)]
        if not any(choice.form(node) for function in functions for node in walk(function) if isinstance(node, Call)):
            return module
        for function in functions:
            choice.ownership.function(function)
        builder = BlockBuilder(module)
        new = map_functions(module, lambda name, function: _Rewriter(choice, builder).run(function))
        added = {name: function for name, function in builder.get().items() if name not in module}
        return without_unused(new.with_functions({**new.functions, **added}), choice.callees) if added else new


def without_unused(module: IRModule, replaced: Iterable[str]) -> IRModule:
    """A module without the kernels among those replaced that nothing calls any more."""
    used = {name for function in module.functions.values() for name in referenced_functions(function)}
    kernels = {name: module.functions[name] for name in replaced if name not in used}
    return module.without(
        *(name for name, kernel in kernels.items() if isinstance(kernel, PrimFunc) and kernel.private)
    )


class _Choice:
    """Which calls change an operand in place, and which carried values loops overwrite."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.kernels: dict[tuple[str, int], Overwriting | None] = {}
        self.loops: dict[Function, frozenset[int]] = {}
        self.callees: dict[str, GlobalVar] = {}
        self.ownership = Ownership(module.functions, self.in_place, self.overwrites)

    def overwriting(self, name: str, inputs: int) -> Overwriting | None:
        """The kernel of a name that changes one of its inputs in place."""
        if (name, inputs) not in self.kernels:
            kernel = self.module.functions.get(name)
            found = overwriting(kernel, inputs) if isinstance(kernel, PrimFunc) else None
            self.kernels[name, inputs] = found
        return self.kernels[name, inputs]

    def form(self, call: Call) -> Overwriting | None:
        """The kernel that changes an operand of a call in place."""
        if not isinstance(call.op, Op) or call.op.name != "call_tir" or is_marked(call):
            return None
        callee, given = call.args[0], call.args[1] if len(call.args) > 1 else None
        if not isinstance(callee, GlobalVar) or not isinstance(given, Tuple) or isinstance(call.ty_args[0], TupleType):
            return None
        return self.overwriting(callee.name, len(given.fields))

    def in_place(self, call: Call) -> tuple[int, ...] | None:
        found = self.form(call)
        return None if found is None else (found.source,)

    def overwrites(self, parts: Mapping[str, Any], body: Function) -> frozenset[int]:
        """The carried values that iterations overwrite: those of all tensors that need not be given up."""
        if body not in self.loops:
            types = carried_types(parts["out_ty"], parts["stacked"])
            owned = frozenset(number for number, ty in enumerate(types) if isinstance(ty, TensorType))
            while True:
                found = self.ownership.iteration(body, len(types), owned)
                needed = found.needed()
                shared = found.shared(needed, owned)
                if not shared:
                    break
                owned -= shared
            self.loops[body] = needed
        return self.loops[body]


class _Rewriter(FunctionRewriter):
    """Writes down what was chosen."""

    def __init__(self, choice: _Choice, builder: BlockBuilder) -> None:
        super().__init__()
        self.choice, self.builder = choice, builder

    def rewrite_binding(self, binding: Binding) -> Binding:
        allowed = self.choice.ownership.found.get(binding.var)
        value = binding.value
        if allowed is None or not isinstance(binding, VarBinding) or not isinstance(value, Call):
            return binding
        if loop_parts(value) is not None:
            return self.loop(binding, value)
        found = self.choice.form(value)
        return binding if found is None or found.source not in allowed else self.kernel(binding, value, found)

    def loop(self, binding: VarBinding, call: Call) -> Binding:
        numbers = self.choice.ownership.owned.get(binding.var, frozenset())
        if not numbers:
            return binding
        return replace(binding, value=replace(call, attrs=call.attrs.set("overwrites", tuple(sorted(numbers)))))

    def kernel(self, binding: VarBinding, call: Call, found: Overwriting) -> Binding:
        callee, name = call.args[0], found.kernel.name
        assert isinstance(callee, GlobalVar)
        if callee.name not in self.choice.callees:
            reason = f"nothing reads {_parameter(found)} afterwards: only what changes is written, and no copy is made"
            kernel = replace(found.kernel, private=True).with_attr(IN_PLACE, reason)
            self.choice.callees[callee.name] = self.builder.add_func(kernel, f"{callee.name or name}_inplace")
        target = self.choice.callees[callee.name]
        new = get_op("call_tir_inplace")(target, call.args[1], [found.source], call.ty_args[0], *call.args[2:])
        return replace(binding, value=replace(new, span=call.span))


def _parameter(found: Overwriting) -> str:
    return f"`{found.kernel.params[found.source].name}`"
