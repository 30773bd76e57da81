"""The rules of the scheduler: an open, ordered registry.

    rule ::= name, order, applies(site, machine, knobs), decide(site, machine, knobs), apply(site, decision, ...)

For every loop nest of a kernel the rules are asked in order; the first that decides has it. Deciding and applying are
separate: a decision is data (`weft.transform.infra.decisions`), recorded on the kernel, and what a user pinned of it is
put in its place before it is applied. Rules up to `GEMM_ORDER` (chains and contractions among them) are those of the
pass `TileContractions`, the others those of `VectorizeNests`; `weft.transform.autoschedule.driver` drives them all.

A rule of one's own is an object with these five, given to `register_rule` (in a package: when its module under the
entry point group `weft.plugins` is imported). `replace_decide` puts another decision in the place of a rule's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, TypeVar

from weft.errors import PassError
from weft.ir import walk
from weft.ir.kernel.nests import perfect_nest
from weft.ir.structure.visit import statements
from weft.ir.tensor import AllocBuffer, Block, Buffer, BufferLoad, BufferStore, Extent, For, PrimCall, Stmt
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest, nest_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.decisions import Decision, decisions_of, refused
from weft.transform.infra.registry import nearest

__all__ = [
    "GEMM_ORDER",
    "Ledger",
    "Rule",
    "Site",
    "Taken",
    "checked",
    "is_builtin",
    "only_sets",
    "register_rule",
    "remove_rule",
    "replace_decide",
    "rules",
]

T = TypeVar("T")
GEMM_ORDER = 100
"""The rule of contractions; rules up to it see kernels with constants that are not packed yet."""


@dataclass(frozen=True, eq=False)
class Site:
    """A loop nest that rules look at: its statement, and the buffers that are constants in every call.

    It is the one at `position` of `stmts`, which are those of the kernel where it `is_outermost`, or those in the loops
    around a chain (`in_chain`); `shared` are the extents of the loops that it shares with others. `nest` is what the
    loops are where they surround one store, else None; `name` that of the block, by which decisions are about it.
    """

    stmt: For
    constants: frozenset[Buffer] = frozenset()
    stmts: tuple[Stmt, ...] = ()
    position: int = 0
    is_outermost: bool = False
    in_chain: bool = False
    shared: tuple[Extent, ...] = ()
    _known: dict[Any, Any] = field(default_factory=dict)

    def once(self, read: Callable[..., T], *given: Any) -> T:
        """What a function reads in the loops: asked for by deciding and by applying, and computed once."""
        if read not in self._known:
            self._known[read] = read(*given)
        return self._known[read]

    @property
    def following(self) -> list[Stmt]:
        """The statements after the nest, allocations left out."""
        return [stmt for stmt in self.stmts[self.position + 1 :] if not isinstance(stmt, AllocBuffer)]

    def is_local(self, buffer: Buffer) -> bool:
        """Whether a buffer is allocated before the nest, and nothing else before it does more than set the buffer."""
        before = self.stmts[: self.position]
        made = any(isinstance(stmt, AllocBuffer) and stmt.buffer is buffer for stmt in before)
        return made and all(only_sets(x, {buffer}) for x in before if any(part is buffer for part in walk(x)))

    @cached_property
    def nest(self) -> Nest | None:
        """The loops as a nest around one store; None where they are something else."""
        return nest_of(self.stmt)

    @cached_property
    def name(self) -> str:
        """The name of the block, else of what is stored."""
        _, inner = perfect_nest(self.stmt)
        if isinstance(inner, Block):
            return inner.name
        return next((part.buffer.name for part in statements(inner) if isinstance(part, BufferStore)), "") or "loops"


def only_sets(stmt: Stmt, buffers: Set[Buffer]) -> bool:
    """Whether a statement does nothing but allocate or set some buffers."""
    if isinstance(stmt, AllocBuffer):
        return stmt.buffer in buffers
    stores = [part for part in walk(stmt) if isinstance(part, BufferStore)]
    reads = any(isinstance(part, (BufferLoad, PrimCall)) for part in walk(stmt))
    return bool(stores) and all(part.buffer in buffers for part in stores) and not reads


@dataclass(frozen=True)
class Taken:
    """What a rule takes along with a nest: statements that follow, and buffers that are no longer there.

    `earlier` are statements before the nest that what was made of it does as well.
    """

    nests: int = 0
    buffers: frozenset[Buffer] = frozenset()
    earlier: frozenset[Stmt] = frozenset()


class Rule:
    """One way of arranging a loop nest; subclasses have a `name`, an `order`, `decide` and `apply`.

    `pins` are the values of a decision that a user may choose; the others follow from them. What a rule makes that
    works `again` goes to the rules after it.
    """

    name: str = ""
    order: int = 1000
    pins: frozenset[str] = frozenset()
    again: bool = False

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """Whether the rule is worth asking: a quick look."""
        return True

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """What is to be done; None where the nest is not of the rule's kind. Nothing is changed."""
        raise NotImplementedError

    def completed(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Decision:
        """The decision with what follows from values that were pinned; W528 (`refused`) where it cannot be followed."""
        return decision

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The statement that does it; PassError W528 (`refused`) for a decision that cannot be followed."""
        raise NotImplementedError

    def takes(self, site: Site, decision: Decision) -> Taken:
        """What becomes part of the statement besides the nest."""
        return Taken()


Decide = Callable[[Site, MachineModel, Knobs, Decision], Decision]
"""(nest, machine, knobs, the rule's own decision) -> the decision to follow."""
_rules: dict[str, Rule] = {}
_replaced: dict[str, Decide] = {}


def register_rule(rule: Rule) -> Rule:
    """Add a rule; PassError W503 when its name is taken or it has none."""
    if not rule.name or rule.name in _rules:
        raise PassError(f"a rule needs a name of its own, {rule.name!r} is taken or empty", code="W503")
    _rules[rule.name] = rule
    ordered = sorted(_rules.values(), key=lambda item: item.order)
    _rules.clear()
    _rules.update((item.name, item) for item in ordered)
    return rule


def remove_rule(name: str) -> None:
    """Forget a rule that was registered from outside."""
    if name in _rules and not type(_rules[name]).__module__.startswith("weft."):
        del _rules[name]


@contextmanager
def replace_decide(name: str, decide: Decide) -> Iterator[None]:
    """Within the block, `decide(nest, machine, knobs, decision)` says what a rule does; PassError W526 for no rule."""
    if name not in _rules:
        hint = nearest(name, list(_rules)) or ", ".join(_rules)
        raise PassError(f"there is no rule {name!r}", code="W526", hint=hint)
    before = _replaced.get(name)
    _replaced[name] = decide
    try:
        yield
    finally:
        if before is None:
            del _replaced[name]
        else:
            _replaced[name] = before


def rules(first: int | None = None, last: int | None = None) -> list[Rule]:
    """The rules in order, those of an order above `first` and up to `last`."""
    return [
        rule
        for rule in _rules.values()
        if (first is None or rule.order > first) and (last is None or rule.order <= last)
    ]


def is_builtin() -> bool:
    """Whether schedules follow from weft's own rules and decisions alone."""
    return not _replaced and all(type(rule).__module__.startswith("weft.") for rule in _rules.values())


class Ledger:
    """The decisions about one kernel: those that were pinned, and those that were made."""

    def __init__(self, function: Any, machine: MachineModel, knobs: Knobs) -> None:
        self.machine, self.knobs = machine, knobs
        known = {(item.about, item.kind): item for item in decisions_of(function)}
        self.pins = {key: item for key, item in known.items() if not item.is_intact}
        self.applied = known.keys() - self.pins.keys()  # loops were made of these by a pass before
        self.made: dict[tuple[str, str], Decision] = {}
        self.proposed: dict[tuple[str, str], Decision] = {}

    def settle(self, rule: Rule, site: Site, decision: Decision) -> Decision:
        """The decision to follow: that of the rule, of what replaces its own, with what the user pinned."""
        number, about = 1, decision.about
        while (decision.about, decision.kind) in (self.made.keys() | self.applied):  # another nest of the same name
            number += 1
            decision = replace(decision, about=f"{about}.{number}")
        replaced = _replaced.get(rule.name)
        if replaced is not None:
            new = replaced(site, self.machine, self.knobs, decision)
            if not isinstance(new, Decision):
                raise refused(f"what decides for {rule.name} gives a Decision, got {new!r}")
            decision = _pinned(rule, decision, new.values)
        self.proposed[decision.about, decision.kind] = decision
        pin = self.pins.get((decision.about, decision.kind))
        return decision if pin is None else _pinned(rule, decision, pin.values)

    def record(self, decision: Decision) -> None:
        """Keep a decision as it was applied; W528 where a pinned value that follows from others is another one."""
        key = decision.about, decision.kind
        self.made[key] = decision
        for name, value in self.pins[key].values.items() if key in self.pins else ():
            if value not in (decision.values.get(name), self.proposed[key].values.get(name)):
                raise refused(
                    f"{decision.kind} of {decision.about!r}: {name}={value!r} follows from the other values",
                    hint=f"it is {decision.values.get(name)!r}",
                )

    def chosen(self, rules: Sequence[Rule], site: Site) -> tuple[Rule, Decision] | None:
        """The first rule that decides about a nest, and its decision."""
        for rule in rules:
            if rule.applies(site, self.machine, self.knobs):
                decision = rule.decide(site, self.machine, self.knobs)
                if decision is not None:
                    return rule, self.settle(rule, site, decision)
        return None

    def check_pins(self, kinds: frozenset[str], span: Any = None) -> None:
        """PassError for a pin of these kinds that no loops were made of: W528, or W529 where they were made before."""
        for key, pin in self.pins.items():
            if key in self.made or pin.kind not in kinds:
                continue
            if pin.applied:
                hint = "edit it before the phase `schedule`, or take `applied` and the loops back"
                message = f"the decision about {pin.about!r} was edited after its loops were made"
                raise PassError(message, code="W529", span=span, hint=hint)
            raise refused(f"no loops called {pin.about!r} can be scheduled as {pin.kind}", span=span)


def _pinned(rule: Rule, decision: Decision, values: Mapping[str, Any]) -> Decision:
    """The decision with values that somebody chose, which must be among those that can be chosen."""
    changed = {}
    for name, value in values.items():
        if name in decision.values and decision.values[name] == value:
            continue
        if name in rule.pins and name in decision.values:
            changed[name] = value
        elif name not in decision.values:
            known = ", ".join(sorted(rule.pins & set(decision.values))) or "none"
            raise refused(f"{decision.kind} of {decision.about!r} has no {name!r}", hint=f"to choose: {known}")
    if not changed:
        return decision
    return Decision(decision.about, decision.kind, {**decision.values, **changed}, "pinned: " + ", ".join(changed))


def checked(decision: Decision, name: str, low: int, high: int, why: str, *, power: bool = False) -> int:
    """A number of a decision between bounds (and a power of two); W528 with the reason where it is not."""
    value = decision.values[name]
    fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    if not fits or (power and value & (value - 1)):
        kind = " and a power of two" if power else ""
        raise refused(
            f"{decision.kind} of {decision.about!r}: {name}={value!r} cannot be, it is {low} to {high}{kind}", hint=why
        )
    return value
