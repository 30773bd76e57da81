"""FuseOpsByPattern: what patterns find in dataflow blocks becomes functions of their own.

    x, w = wildcard(), wildcard()
    FuseOpsByPattern([("npu.dense_relu", is_op("nn.relu")(is_op("matmul")(x, w)))], label="npu")

    y = R.matmul(x, w)                     z = cls.npu_dense_relu(x, w)
    z = R.nn.relu(y)          becomes      (a private function with the attributes Composite and target)

Earlier patterns come before later ones, later bindings before earlier ones, and no binding belongs to two functions. A
match counts only when nothing outside of it uses the values in between, so that nothing is computed twice. What is in a
function of its own already stays there. `check` may refuse a match; it sees a `PatternCheckContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from weft.errors import PassError, described
from weft.ir import (
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import LABEL
from weft.ir.structure.variables import users
from weft.support.records import dataclass
from weft.transform.infra.base import Pass
from weft.transform.infra.rewriting import map_dataflow
from weft.transform.pattern import DFPattern, bindings_of_function
from weft.transform.pattern.matching import Match, bindings_of_block
from weft.transform.target.partition_calls import COMPOSITE, outlined_function

__all__ = ["FuseOpsByPattern", "FusionPattern", "PatternCheckContext"]


@dataclass(frozen=True)
class PatternCheckContext:
    """What a `check` is shown of a match.

    `matched_expr` is the last value, `annotated_expr` what the named parts stand for, `matched_bindings` the bindings
    that would become the function, `var_usages` who uses each variable of the function around them, and
    `value_to_bound_var` gives the variable of a value.
    """

    matched_expr: Expr
    annotated_expr: Mapping[str, Expr]
    matched_bindings: Mapping[Var, Expr]
    var_usages: Mapping[Var, tuple[Var, ...]]
    value_to_bound_var: Mapping[Expr, Var]


@dataclass(frozen=True)
class FusionPattern:
    """A pattern with its name, names for its parts, and a condition of the user's.

    Raises PassError W550 for parts of the wrong kind.
    """

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] = field(default_factory=dict)
    check: Callable[[PatternCheckContext], bool] | None = None

    def __post_init__(self) -> None:
        parts = {"pattern": self.pattern, **dict(self.annotation_patterns or {})}
        wrong = next((item for item in parts.items() if not isinstance(item[1], DFPattern)), None)
        if not isinstance(self.name, str) or not self.name:
            raise PassError(f"a fusion pattern has a name, got {described(self.name)}", code="W550")
        if wrong is not None:
            raise PassError(f"{self.name}: {wrong[0]} is a pattern, got {described(wrong[1])}", code="W550")
        if self.check is not None and not callable(self.check):
            raise PassError(f"{self.name}: check is a function, got {described(self.check)}", code="W550")


@dataclass(frozen=True)
class FuseOpsByPattern(Pass):
    """Outline what patterns find: (name, pattern), (name, pattern, annotations, check) or `FusionPattern`s, in order.

    `label` gives the functions to that part of the target; constants are inside of the functions unless
    `bind_constants` is false; `entry_functions` are the functions that are looked at, all of them without it. Raises
    PassError W550 for what is no pattern.
    """

    patterns: tuple[Any, ...]
    bind_constants: bool = True
    label: str | None = None
    entry_functions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.patterns, (str, DFPattern)) or not isinstance(self.patterns, Sequence):
            hint = '[("name", pattern)]'
            raise PassError(f"patterns are a list, got {described(self.patterns)}", code="W550", hint=hint)
        object.__setattr__(self, "patterns", tuple(map(_fusion_pattern, self.patterns)))
        object.__setattr__(self, "entry_functions", tuple(self.entry_functions))

    def run(self, module: IRModule) -> IRModule:
        """Outline the matches of each pattern in turn."""
        names = {name: module[name] for name in self.entry_functions} or module
        new = module
        for name, function in names.items():
            if isinstance(function, Function) and LABEL not in function.attrs and COMPOSITE not in function.attrs:
                new = _Outliner(self, new, name, function).run()
        return new


def _fusion_pattern(item: Any) -> FusionPattern:
    if isinstance(item, FusionPattern):
        return item
    if isinstance(item, tuple) and 2 <= len(item) <= 4:
        annotations, check = (*item[2:], None, None)[:2]
        return FusionPattern(item[0], item[1], annotations or {}, check)
    raise PassError(f"a fusion pattern is (name, pattern, annotations, check), got {described(item)}", code="W550")


class _Outliner:
    """The work on one function."""

    def __init__(self, item: FuseOpsByPattern, module: IRModule, name: str, function: Function) -> None:
        self.item, self.module, self.name, self.function = item, module, name, function
        self.users = users(function)

    def run(self) -> IRModule:
        new = map_dataflow(self.function, self.block)
        return self.module if new is self.function else self.module.with_function(self.name, new)

    def block(self, block: DataflowBlock) -> DataflowBlock:
        groups = {group[-1].var: (name, group) for name, group in self.groups(block)}
        if not groups:
            return block
        inner = {binding.var for _, group in groups.values() for binding in group}
        bindings = []
        for binding in block.bindings:
            if binding.var in groups:
                bindings.append(self.outlined(*groups[binding.var]))
            elif binding.var not in inner:
                bindings.append(binding)
        return replace(block, bindings=tuple(bindings))

    def groups(self, block: DataflowBlock) -> Iterator[tuple[str, list[VarBinding]]]:
        """The bindings of each match, none of which is in two."""
        bound = {item.var: item for item in block.bindings if isinstance(item, VarBinding)}
        values = bindings_of_block(block)
        taken: set[Var] = set()
        for pattern in self.item.patterns:
            for binding in reversed(bound.values()):
                if binding.var in taken:
                    continue
                match = Match(values, self.module.functions)
                found = match.first(pattern.pattern, binding.value)
                if found is None:
                    continue
                group = self.group(found, binding, bound)
                if group and taken.isdisjoint(item.var for item in group) and self.accepted(pattern, found, group):
                    taken.update(item.var for item in group)
                    yield pattern.name, group

    def group(
        self, found: Mapping[DFPattern, Expr], last: VarBinding, bound: Mapping[Var, VarBinding]
    ) -> list[VarBinding]:
        """The bindings between what a pattern takes and what it gives; none where something else uses one of them."""
        values = {id(value) for value in found.values()}
        inner = {var for var, binding in bound.items() if id(binding.value) in values}
        for var in inner - {last.var}:
            if not isinstance(var, DataflowVar) or not set(self.users.get(var, ())) <= inner:
                return []
        return [binding for var, binding in bound.items() if var in inner]

    def accepted(self, pattern: FusionPattern, found: Mapping[DFPattern, Expr], group: Sequence[VarBinding]) -> bool:
        if pattern.check is None:
            return True
        named = {name: found[part] for name, part in pattern.annotation_patterns.items() if part in found}
        context = PatternCheckContext(
            matched_expr=group[-1].value,
            annotated_expr=named,
            matched_bindings={binding.var: binding.value for binding in group},
            var_usages=self.users,
            value_to_bound_var={value: var for var, value in bindings_of_function(self.function).items()},
        )
        return bool(pattern.check(context))

    def outlined(self, name: str, group: Sequence[VarBinding]) -> VarBinding:
        """The call of a new function in place of the last binding of a match."""
        attrs = {COMPOSITE: name} if self.item.label is None else {LABEL: self.item.label, COMPOSITE: name}
        function, args = outlined_function(group, attrs, constants=self.item.bind_constants)
        fresh = self.module.fresh_name("".join(char if char.isalnum() else "_" for char in name))
        self.module = self.module.with_function(fresh, replace(function, name=fresh))
        return replace(group[-1], value=Call(GlobalVar(fresh), args, span=group[-1].value.span))
