"""AssignByCost: every call goes to the part of the target where it costs least, copies between parts included.

    cost(call, part) -> what the part takes for the call; math.inf where it cannot do it
    transfer(type, part, part) -> what a value takes from one part to the other; it is copied once for all its readers

Where they are not given, they are what the compiler knows (`weft.transform.target.part_costs`): a call goes to another
part than that of its function only if that part does the same work, and what it takes is known and less. It is part of
the phase `assign`, for functions that no policy was asked about (`ASSIGNED`); what it moves it records as decisions.

Parameters and results of a function are where the function is. Labels that are there already stay, and the calls of a
function that has one stay with it. The choice starts
from the part of the function for everything, from each other part, and from the best part for each call alone, and
moves calls while that makes the sum smaller: it is never worse than any single part would be, and equal costs move
nothing.

Source: Jeon et al., Collage: Seamless Integration of Deep Learning Backends with Automatic Placement (2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from weft.errors import PassError
from weft.ir.attrs import LABEL
from weft.ir.deduction.infer import TypeContext
from weft.ir.graph import Binding, Call, ExternFunc, Function, Var, VarBinding
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import Node, replace
from weft.ir.structure.visit import rewrite, walk
from weft.ir.types import Type
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.infra.base import Pass
from weft.transform.infra.decisions import Decision, with_decisions
from weft.transform.target.assign import ASSIGNED, Assign, callee_of
from weft.transform.target.labels import leaf_parts, owners
from weft.transform.target.part_costs import call_cycles, copy_cycles, same_work

__all__ = ["AssignByCost", "Cost", "Transfer", "total_cost"]

Cost = Callable[[Call, Target], float]
Transfer = Callable[[Type, Target, Target], float]
_ROUNDS = 50


_LEAST_GAIN = 1e-6
"""The share of the sum that a move has to save: less is rounding."""


def _free(ty: Type, source: Target, destination: Target) -> float:
    return 0.0


@dataclass(frozen=True)
class AssignByCost(Pass):
    """Label the calls of graph functions so that costs and copies add up to little.

    Raises: PassError W563 for a call that no part can do.
    """

    level: ClassVar[int] = 1
    target: str
    cost: Cost | None = field(default=None)
    transfer: Transfer | None = field(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Choose for every function, then label the calls."""
        target = Target(self.target)
        parts = dict(leaf_parts(target))
        if len(parts) == 1:
            return module
        owner = owners(module, parts)
        chosen: dict[Call, str] = {}
        told: dict[str, list[Decision]] = {}
        for name, function in module.items():
            if isinstance(function, Function) and self._chooses(function):
                choice = self._choice(module, function, owner[name], parts)
                if choice is None:
                    continue
                labels = choice.run()
                chosen.update(labels)
                told[name] = choice.decisions(labels)
        if not chosen:
            return module
        if self.cost is not None:
            module = Assign(self.target, lambda call, label, _: chosen.get(call, label))(module)
        else:
            moved = {name: _labelled(f, chosen, owner[name]) if name in told else f for name, f in module.items()}
            module = module.with_functions(moved)
        functions = {name: with_decisions(f, told.get(name, [])) for name, f in module.items()}
        return module.with_functions(functions) if any(told.values()) else module

    def _chooses(self, function: Function) -> bool:
        """Whether the calls of a function may be moved: it has no label, and no policy chose."""
        return LABEL not in function.attrs and (self.cost is not None or ASSIGNED not in function.attrs)

    def _choice(self, module: IRModule, function: Function, home: str, parts: Mapping[str, Target]) -> _Choice | None:
        """The choice for one function; None where no other part does what the function's does, as far as is known."""
        transfer = self.transfer or (_free if self.cost is not None else copy_cycles)
        if self.cost is not None:
            return _Choice(module, function, home, parts, self.cost, transfer)
        if not any(same_work(parts[home], part) for label, part in parts.items() if label != home):
            return None
        context = TypeContext(module.functions)

        def known(call: Call, part: Target) -> float:
            if part is not parts[home] and not same_work(parts[home], part):
                return math.inf
            own = call_cycles(call, parts[home], context)
            there = own if part is parts[home] else call_cycles(call, part, context)
            if own is None and part.kind.cost_of_call is None:  # nothing to compare with
                there = None
            return (0.0 if part is parts[home] else math.inf) if there is None else there

        return _Choice(module, function, home, parts, known, transfer, known=True)


def _labelled(function: BaseFunc, chosen: Mapping[Call, str], home: str) -> BaseFunc:
    """The function with the labels that differ from its own part."""

    def follow(node: Node) -> Node | None:
        if isinstance(node, Call) and chosen.get(node, home) != home and LABEL not in node.attrs:
            return replace(node, attrs=node.attrs.set(LABEL, chosen[node]))
        return None

    return rewrite(function, follow)


def total_cost(
    module: IRModule, target: Target | str, cost: Cost, transfer: Transfer = _free, *, everything: str | None = None
) -> float:
    """What a module costs with the labels that it has, or with one label for all that has none (`everything`).

    >>> total_cost(IRModule({}), "a: c; b: c", lambda call, part: 1.0)
    0
    """
    parts = dict(leaf_parts(Target(target)))
    owner = owners(module, parts)
    found = 0.0
    for name, function in module.items():
        if isinstance(function, Function):
            choice = _Choice(module, function, owner[name], parts, cost, transfer)
            found += choice.total([everything if everything in labels else labels[0] for labels in choice.stated()])
    return found or 0


class _Choice:
    """The calls of one function, who reads what, and the labels that each call may have.

    `known` says that costs are those that the compiler knows, not those of a user.
    """

    def __init__(
        self,
        module: IRModule,
        function: Function,
        home: str,
        parts: Mapping[str, Target],
        cost: Cost,
        transfer: Transfer,
        *,
        known: bool = False,
    ) -> None:
        self.known = known
        self.module, self.home, self.parts, self.cost, self.transfer = module, home, parts, cost, transfer
        bindings = [item for item in _bindings(function) if isinstance(item.value, Call)]
        self.names = [item.var.name for item in bindings]
        self.calls: list[Call] = [item.value for item in bindings if isinstance(item.value, Call)]
        number = {item.var: index for index, item in enumerate(bindings)}
        self.source: dict[Var, int] = {}
        self.readers: dict[Var, list[int]] = {}
        self.touched: list[list[Var]] = [[item.var] for item in bindings]
        for index, call in enumerate(self.calls):
            used = {node for node in walk(call) if isinstance(node, Var)}
            for var in sorted(used, key=lambda var: (var.name, id(var))):
                self.readers.setdefault(var, []).append(index)
                self.source[var] = number.get(var, -1)
                self.touched[index].append(var)
        last = {node for node in walk(function.body.body) if isinstance(node, Var)}
        self.results = {var for var in last if var in number}
        self.source.update({var: number[var] for var in self.results})
        self.moves: dict[tuple[Var, str, str], float] = {}
        self.costs = [self.prices(call) for call in self.calls]

    def prices(self, call: Call) -> dict[str, float]:
        """What the call takes on each part that it may be on."""
        fixed = self.fixed(call)
        labels = [fixed] if fixed is not None else list(self.parts)
        prices = {label: self.cost(call, self.parts[label]) for label in labels}
        if all(math.isinf(price) for price in prices.values()):
            if fixed is not None and self.known:  # a label wins over what is known of its part
                return {fixed: 0.0}
            where = f"part {fixed!r}" if fixed is not None else "any part"
            raise PassError(f"a call cannot be done by {where} of the target", code="W563", span=call.span)
        return prices

    def fixed(self, call: Call) -> str | None:
        """The label that the call has whatever it costs."""
        if LABEL in call.attrs:
            return call.attrs[LABEL]
        if isinstance(call.op, ExternFunc):
            return self.home
        callee = self.module.functions.get(callee_of(call) or "")
        return getattr(callee, "attrs", {}).get(LABEL)

    def stated(self) -> list[list[str]]:
        """For each call the labels that it may have, the one that it has first."""
        return [[self.fixed(call) or self.home, *prices] for call, prices in zip(self.calls, self.costs, strict=True)]

    def copies(self, var: Var, labels: Sequence[str]) -> float:
        """What the copies of a value take: one for each part that needs it elsewhere."""
        number = self.source.get(var, -1)
        source = labels[number] if number >= 0 else self.home
        needed = dict.fromkeys(labels[index] for index in self.readers.get(var, ()))
        if var in self.results:
            needed[self.home] = None
        return sum(self.moved(var, source, label) for label in needed if label != source)

    def moved(self, var: Var, source: str, label: str) -> float:
        key = (var, source, label)
        if key not in self.moves:
            self.moves[key] = self.transfer(var.ty, self.parts[source], self.parts[label])
        return self.moves[key]

    def total(self, labels: Sequence[str]) -> float:
        """The sum of all calls, and of copies."""
        calls = (prices.get(label, math.inf) for label, prices in zip(labels, self.costs, strict=True))
        return sum(calls) + sum(self.copies(var, labels) for var in self.source)

    def run(self) -> dict[Call, str]:
        """The label of each call."""
        order = sorted(self.parts, key=lambda label: label != self.home)
        starts = [[label if label in prices else next(iter(prices)) for prices in self.costs] for label in order]
        starts.append([min(order, key=lambda label: prices.get(label, math.inf)) for prices in self.costs])
        best = starts[0]
        least = math.inf
        for start in starts:
            price, labels = self.improved(start)
            if price < least - _LEAST_GAIN * abs(price):
                least, best = price, labels
        return dict(zip(self.calls, best, strict=True))

    def improved(self, labels: list[str]) -> tuple[float, list[str]]:
        """Move one call at a time to where the sum is least, until nothing helps."""
        labels = list(labels)
        for _ in range(_ROUNDS):
            moved = False
            for index, prices in enumerate(self.costs):
                own, kept = self.share(index, labels), labels[index]
                for label in prices:
                    labels[index] = label
                    new = self.share(index, labels)
                    if new < own - _LEAST_GAIN * abs(new):
                        own, kept, moved = new, label, True
                labels[index] = kept
            if not moved:
                break
        return self.total(labels), labels

    def share(self, index: int, labels: Sequence[str]) -> float:
        """What of the sum the label of one call decides."""
        price = self.costs[index].get(labels[index], math.inf)
        return price + sum(self.copies(var, labels) for var in self.touched[index])

    def decisions(self, labels: Mapping[Call, str]) -> list[Decision]:
        """What was moved to another part, with what it takes here and there."""
        found = []
        for name, call, prices in zip(self.names, self.calls, self.costs, strict=True):
            label = labels[call]
            if label != self.home and self.fixed(call) is None:
                here = f"{prices[self.home]:.0f}" if math.isfinite(prices.get(self.home, math.inf)) else "none"
                reason = f"{prices[label]:.0f} cycles there, {here} on {self.home!r}"
                found.append(Decision(name, "assign", {"part": label}, reason))
        return found


def _bindings(function: Function) -> list[Binding]:
    return [node for node in walk(function) if isinstance(node, VarBinding)]
