"""AssignByCost: every call goes to the part of the target where it costs least, copies between parts included.

    cost(call, part) -> what the part takes for the call; math.inf where it cannot do it
    transfer(type, part, part) -> what a value takes from one part to the other; it is copied once for all its readers

Parameters and results of a function are where the function is. Labels that are there already stay. The choice starts
from the best part for everything, and from the best part for each call alone, and moves calls while that makes the sum
smaller: it is never worse than any single part would be.

Source: Jeon et al., Collage: Seamless Integration of Deep Learning Backends with Automatic Placement (2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.errors import PassError
from weft.ir.graph import Binding, Call, ExternFunc, Function, Var, VarBinding
from weft.ir.module import IRModule
from weft.ir.structure.visit import walk
from weft.ir.types import Type
from weft.target import Target
from weft.transform.infra.base import Pass
from weft.transform.target.assign import Assign, callee_of
from weft.transform.target.parts import LABEL, leaf_parts, owners

__all__ = ["AssignByCost", "Cost", "Transfer", "total_cost"]

Cost = Callable[[Call, Target], float]
Transfer = Callable[[Type, Target, Target], float]
_ROUNDS = 50


def _free(ty: Type, source: Target, destination: Target) -> float:
    return 0.0


@dataclass(frozen=True)
class AssignByCost(Pass):
    """Label the calls of graph functions so that costs and copies add up to little.

    Raises: PassError W563 for a call that no part can do.
    """

    target: str
    cost: Cost | None = field(default=None)
    transfer: Transfer | None = field(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Choose for every function, then label the calls."""
        target = Target(self.target)
        parts = dict(leaf_parts(target))
        if self.cost is None or len(parts) == 1:
            return module
        owner = owners(module, parts)
        chosen: dict[Call, str] = {}
        for name, function in module.items():
            if isinstance(function, Function):
                chosen.update(_Choice(module, function, owner[name], parts, self.cost, self.transfer or _free).run())
        return Assign(self.target, lambda call, label, _: chosen.get(call, label))(module)


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
    """The calls of one function, who reads what, and the labels that each call may have."""

    def __init__(
        self, module: IRModule, function: Function, home: str, parts: Mapping[str, Target], cost: Cost,
        transfer: Transfer,
    ) -> None:  # fmt: skip
        self.module, self.home, self.parts, self.cost, self.transfer = module, home, parts, cost, transfer
        bindings = [item for item in _bindings(function) if isinstance(item.value, Call)]
        self.calls: list[Call] = [item.value for item in bindings if isinstance(item.value, Call)]
        number = {item.var: index for index, item in enumerate(bindings)}
        self.reads: list[list[tuple[Var, int]]] = []
        for call in self.calls:
            used = {node for node in walk(call) if isinstance(node, Var)}
            self.reads.append([(var, number.get(var, -1)) for var in sorted(used, key=lambda var: (var.name, id(var)))])
        last = {node for node in walk(function.body.body) if isinstance(node, Var)}
        self.results = [(var, number[var]) for var in last if var in number]
        self.costs = [self.prices(call) for call in self.calls]

    def prices(self, call: Call) -> dict[str, float]:
        """What the call takes on each part that it may be on."""
        fixed = self.fixed(call)
        labels = [fixed] if fixed is not None else list(self.parts)
        prices = {label: self.cost(call, self.parts[label]) for label in labels}
        if all(math.isinf(price) for price in prices.values()):
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

    def total(self, labels: Sequence[str]) -> float:
        """The sum of all calls, and of copies: one for each value and part that needs it elsewhere."""
        copies: dict[tuple[Var, str], float] = {}

        def need(var: Var, number: int, label: str) -> None:
            source = labels[number] if number >= 0 else self.home
            if source != label and (var, label) not in copies:
                copies[var, label] = self.transfer(var.ty, self.parts[source], self.parts[label])

        for label, reads in zip(labels, self.reads, strict=True):
            for var, number in reads:
                need(var, number, label)
        for var, number in self.results:
            need(var, number, self.home)
        calls = (prices.get(label, math.inf) for label, prices in zip(labels, self.costs, strict=True))
        return sum(calls) + sum(copies.values())

    def run(self) -> dict[Call, str]:
        """The label of each call."""
        starts = [[label if label in prices else next(iter(prices)) for prices in self.costs] for label in self.parts]
        starts.append([min(prices, key=lambda label: prices[label]) for prices in self.costs])
        best = min((self.improved(start) for start in starts), key=lambda item: item[0])
        return dict(zip(self.calls, best[1], strict=True))

    def improved(self, labels: list[str]) -> tuple[float, list[str]]:
        """Move one call at a time to where the sum is least, until nothing helps."""
        labels = list(labels)
        price = self.total(labels)
        for _ in range(_ROUNDS):
            before = price
            for index, prices in enumerate(self.costs):
                for label in prices:
                    trial = [*labels[:index], label, *labels[index + 1 :]]
                    if (new := self.total(trial)) < price:
                        labels, price = trial, new
            if price == before:
                break
        return price, labels


def _bindings(function: Function) -> list[Binding]:
    return [node for node in walk(function) if isinstance(node, VarBinding)]
