"""MergeCompositeFunctions: composite functions of one code generator that follow each other become one function of it.

    a = cls.npu_conv(x, w)      Composite "npu.conv"            b = cls.main_npu(x, w)
    b = cls.npu_relu(a)         Composite "npu.relu"    ->      (Codegen "npu", global_symbol "main_npu", with both
                                                                inside as local functions)

What stands before the first dot of the name of a pattern is the code generator. Calls join where each takes a result of
the other, and where no path leads out of the group and into it again. A composite that stands alone gets a function of
its own, too. Functions that are used otherwise stay in the module.
"""

from __future__ import annotations

import copy
from dataclasses import field
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    FrozenMap,
    Function,
    GlobalVar,
    IRModule,
    SeqExpr,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import CODEGEN, COMPOSITE
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.structure.references import referenced_functions
from weft.support.records import dataclass
from weft.transform.analysis.lifetimes import variables
from weft.transform.infra.base import Pass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import map_dataflow, operands

__all__ = ["MergeCompositeFunctions"]


@dataclass(frozen=True)
class MergeCompositeFunctions(Pass):
    """Group calls of composite functions into one function for each code generator and connected part."""

    keeps_names: ClassVar[bool] = True

    @classmethod
    def sample(cls, choices: Choices) -> tuple[MergeCompositeFunctions, str]:
        """Three composites, of which the one in the middle may be of another code generator."""
        middle = choices.pick(("npu.exp", "gpu.exp"))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function(private=True)
    def npu_add(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        R.func_attr({{"Composite": "npu.add"}})
        with R.dataflow():
            out = R.add(x, y)
            R.output(out)
        return out

    @R.function(private=True)
    def exp(x: R.Tensor((4,), "float32")):
        R.func_attr({{"Composite": "{middle}"}})
        with R.dataflow():
            out = R.exp(x)
            R.output(out)
        return out

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = Module.npu_add(x, y)
            b = Module.exp(a)
            out = Module.npu_add(b, a)
            R.output(out)
        return out
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Merge in every graph function that is no composite itself."""
        before = module
        for name, function in before.items():
            if isinstance(function, Function) and COMPOSITE not in function.attrs and CODEGEN not in function.attrs:
                module = _Merger(name, function, module).run()
        if module is before:
            return module
        used = {other for function in module.functions.values() for other in referenced_functions(function)}
        gone = [name for name in _composites(before) if name not in used and module[name].private]  # type: ignore[union-attr]
        return module.without(*gone)


def _composites(module: IRModule) -> dict[str, str]:
    """The composite functions and their code generators."""
    found: dict[str, str] = {}
    for name, function in module.items():
        if isinstance(function, Function) and isinstance(function.attrs.get(COMPOSITE), str):
            found[name] = str(function.attrs[COMPOSITE]).partition(".")[0]
    return found


@dataclass
class _Group:
    """Calls that become one function."""

    kind: str
    members: list[VarBinding] = field(default_factory=list[VarBinding])


class _Merger:
    def __init__(self, name: str, function: Function, module: IRModule) -> None:
        self.name, self.function, self.module = name, function, module
        self.kinds = _composites(module)

    def run(self) -> IRModule:
        """The module with the calls of the function merged."""
        new = map_dataflow(self.function, self.block)
        return self.module if new is self.function else self.module.with_function(self.name, new)

    def block(self, block: DataflowBlock) -> BindingBlock:
        groups = self.groups(block)
        if not groups:
            return block
        units: list[_Group | Binding] = []
        seen: set[int] = set()
        for binding in block.bindings:
            group = groups.get(binding.var)
            if group is None:
                units.append(binding)
            elif id(group) not in seen:
                seen.add(id(group))
                units.append(group)
        bindings: list[Binding] = []
        for unit in _ordered(units):
            if isinstance(unit, _Group):
                bindings += self.merged(unit, block)
            else:
                bindings.append(unit)
        return replace(block, bindings=tuple(bindings))

    def groups(self, block: DataflowBlock) -> dict[Var, _Group]:
        """The group of each call of a composite."""
        found: dict[Var, _Group] = {}
        needs: dict[Var, list[Var]] = {}
        for binding in block.bindings:
            needs[binding.var] = [var for var in variables(binding.value) if var in needs]
            kind = self.kind(binding)
            if kind is None or not isinstance(binding, VarBinding):
                continue
            used = needs[binding.var]
            near = {id(found[var]): found[var] for var in used if var in found and found[var].kind == kind}
            group = next((item for item in near.values() if not _is_around(item, used, found, needs)), None)
            group = group or _Group(kind)
            group.members.append(binding)
            found[binding.var] = group
        return found

    def kind(self, binding: Binding) -> str | None:
        """The code generator of the composite that a binding calls."""
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or not isinstance(value.op, GlobalVar):
            return None
        return self.kinds.get(value.op.name)

    def merged(self, group: _Group, block: DataflowBlock) -> list[Binding]:
        """The call of a new function that holds the group."""
        own = {binding.var for binding in group.members}
        outer = {var for other in block.bindings if other.var not in own for var in variables(other.value)}
        results = [binding.var for binding in group.members if binding.var in outer or not _is_inner(binding.var)]
        inputs = dict.fromkeys(
            leaf
            for binding in group.members
            for leaf in operands(binding.value)
            if isinstance(leaf, Var) and leaf not in own
        )
        name = self.module.fresh_name(f"{self.name}_{group.kind}")
        function = self.outlined(group, list(inputs), results, name)
        self.module = self.module.with_function(name, function)
        call = Call(GlobalVar(name), tuple(inputs))
        if len(results) == 1:
            return [VarBinding(results[0], call)]
        whole = DataflowVar("merged", function.ret_type)
        taken = [VarBinding(var, TupleGetItem(whole, place)) for place, var in enumerate(results)]
        return [VarBinding(whole, call), *taken]

    def outlined(self, group: _Group, inputs: list[Var], results: list[Var], name: str) -> Function:
        """The function of a group: its composites as local functions, and their calls."""
        params = {var: Var(var.name, var.ty) for var in inputs}
        values: dict[Var, Var] = dict(params)
        local: dict[str, Var] = {}
        bindings: list[Binding] = []
        for binding in group.members:
            assert isinstance(binding.value, Call)
            assert isinstance(binding.value.op, GlobalVar)
            callee = binding.value.op.name
            if callee not in local:
                function = self.module[callee]
                assert isinstance(function, Function)
                local[callee] = DataflowVar(callee, infer_type(function, TypeContext(self.module.functions)))
                bindings.append(VarBinding(local[callee], copy.deepcopy(replace(function, private=False, name=""))))
            args = tuple(values.get(arg, arg) if isinstance(arg, Var) else arg for arg in binding.value.args)
            kept = len(results) == 1 and binding.var is results[0]
            var = (Var if kept else DataflowVar)(binding.var.name, binding.var.ty)
            values[binding.var] = var
            bindings.append(VarBinding(var, Call(local[callee], args)))
        result = values[results[0]]
        if len(results) > 1:
            fields = tuple(values[var] for var in results)
            result = Var("out", TupleType(tuple(var.ty for var in fields)))
            bindings.append(VarBinding(result, Tuple(fields)))
        attrs = FrozenMap({CODEGEN: group.kind, "global_symbol": name})
        body = SeqExpr((DataflowBlock(tuple(bindings)),), result)
        return Function(tuple(params.values()), body, result.ty, attrs=attrs, name=name)


def _is_around(group: _Group, used: list[Var], found: dict[Var, _Group], needs: dict[Var, list[Var]]) -> bool:
    """Whether a value outside of a group was computed from the group, and is needed where the used ones are."""
    stack = [var for var in used if found.get(var) is not group]
    seen: set[Var] = set()
    while stack:
        var = stack.pop()
        if var in seen:
            continue
        seen.add(var)
        own = found.get(var)
        if own is group:
            return True
        members = [binding.var for binding in own.members] if own is not None else [var]
        for member in members:
            seen.add(member)
            stack += needs[member]
    return False


def _is_inner(var: Var) -> bool:
    return isinstance(var, DataflowVar)


def _ordered(units: list[_Group | Binding]) -> list[_Group | Binding]:
    """The units with each behind what it needs, otherwise in their order."""
    made: dict[Var, int] = {}
    for place, unit in enumerate(units):
        for binding in unit.members if isinstance(unit, _Group) else (unit,):
            made[binding.var] = place
    done: dict[int, None] = {}
    stack = [(place, False) for place in reversed(range(len(units)))]
    while stack:
        place, met = stack.pop()
        if place in done:
            continue
        if met:
            done[place] = None
            continue
        unit = units[place]
        stack.append((place, True))
        for binding in unit.members if isinstance(unit, _Group) else (unit,):
            needs = {made[var] for var in variables(binding.value) if var in made}
            stack += [(need, False) for need in sorted(needs, reverse=True) if need != place and need not in done]
    return [units[place] for place in done]
