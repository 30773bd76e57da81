"""Hooks of target kinds that give passes, and where in their phase the passes run.

    hook       (target) -> Pass        or, to be told the label of its part, (target, label) -> Pass

    neither            at the end of the phase, in the order of the parts, then of registration
    before, after      right before or after the passes of that name; before or after the hooks of that name
    instead            in place of the passes of that name; with scope "function", for the functions of its part

A pass that the phase has for other targets only is no place: `before` and `after` it ask for nothing, and a hook in its
place does not run. Errors: PassError W560 for a hook that gives no pass, W561 for an order that contradicts itself,
W564 for a name that the phase does not have and for two hooks in place of one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from weft.errors import PassError, described
from weft.support.records import dataclass
from weft.target import Hook, Target
from weft.target.kinds import KINDS, check_phase
from weft.transform.infra.base import Pass
from weft.transform.infra.pipeline import Pipeline
from weft.transform.infra.registry import named_passes, nearest
from weft.transform.target.labels import leaf_parts
from weft.transform.target.parts import OnParts

__all__ = ["pass_names", "with_hooks"]


@dataclass(frozen=True)
class _Found:
    """A hook together with the part it runs for; the whole of a composite target has no label."""

    hook: Hook
    label: str | None
    target: Target


def with_hooks(
    target: Target,
    phase: str,
    built: Sequence[Pass],
    known: Callable[[], Collection[str]] = tuple,
    *,
    whole: bool = False,
) -> tuple[Pass, ...]:
    """The passes of a phase with those of the hooks of a target; `built` are those without.

    `known` are the names of passes that the phase has for some target. Where `whole` is true, every pass sees the
    whole module.
    """
    found = _hooks(target, phase)
    if not found:
        return tuple(built)
    placing = _Placing(phase, built, found, tuple(label for label, _ in leaf_parts(target)), whole)
    named = {name for item in found for name in (*item.hook.before, *item.hook.after, item.hook.instead) if name}
    if named:
        placing.refuse_unknown(known)
    return placing.run()


def _hooks(target: Target, phase: str) -> list[_Found]:
    """The hooks of a phase, in the order of parts, then of registration."""
    whole = [] if target.is_leaf else [(None, target)]
    found: list[_Found] = []
    for label, part in (*whole, *leaf_parts(target)):
        for name in part.kind.hooks:
            check_phase(name)
        found += [_Found(hook, label, part) for hook in part.kind.hooks.get(phase, ())]
    return found


def pass_names(item: Pass) -> Iterator[str]:
    """The names that a pass goes by: its own, and those of the passes that it is made of."""
    if isinstance(item, OnParts):
        yield from pass_names(item.item)
    elif isinstance(item, Pipeline):
        for inner in item.passes:
            yield from pass_names(inner)
    else:
        yield item.name


class _Placing:
    """The passes of a phase and its hooks as one list, the hooks after the passes, and what each waits for."""

    def __init__(
        self, phase: str, built: Sequence[Pass], found: list[_Found], labels: tuple[str, ...], whole: bool
    ) -> None:
        self.phase, self.labels, self.whole = phase, labels, whole
        self.built: list[Pass | None] = list(built)
        self.names = [set(pass_names(item)) for item in built]
        self.found = found
        self.waits: list[set[int]] = [{index - 1} if index else set() for index in range(len(built))]
        self.waits += [set() for _ in found]
        self.early: set[int] = set()
        self.absent: set[int] = set()
        self.taken: dict[tuple[int, str], str] = {}

    def run(self) -> tuple[Pass, ...]:
        """The passes in their order."""
        for place, item in enumerate(self.found):
            self.state(len(self.built) + place, item)
        self.end()
        passes: list[Pass] = []
        for index in self.order():
            if index < len(self.built):
                item = self.built[index]
            else:
                item = None if index in self.absent else self.made(self.found[index - len(self.built)])
            if item is not None:
                passes.append(item)
        return tuple(passes)

    # Names.

    def refuse_unknown(self, known: Callable[[], Collection[str]]) -> None:
        """W564 for a name that is neither a pass of the phase nor a hook of it."""
        passes = {*known(), *(name for names in self.names for name in names)}
        hooks = {hook.name for kind in KINDS.values() for hook in kind.hooks.get(self.phase, ())}
        for item in self.found:
            hook = item.hook
            for name in (*hook.before, *hook.after, *([hook.instead] if hook.instead else [])):
                mine = passes if name == hook.instead else passes | hooks
                if _text_name(name) not in mine:
                    near, has = nearest(_text_name(name), mine), f"it has: {', '.join(sorted(mine)) or 'none'}"
                    raise PassError(
                        f"hook {hook.name!r} of target {item.target} names {name!r}, "
                        f"which is no pass of phase {self.phase!r}",
                        code="W564",
                        hint=f"{near} {has}" if near else has,
                    )

    def places(self, name: str) -> list[int]:
        """Where the passes of a name stand."""
        return [index for index, names in enumerate(self.names) if _text_name(name) in names]

    def hooks(self, name: str) -> list[int]:
        """The hooks of a name."""
        start = len(self.built)
        return [start + place for place, item in enumerate(self.found) if item.hook.name == name]

    # What waits for what.

    def state(self, mine: int, item: _Found) -> None:
        """What a hook says of its place."""
        hook = item.hook
        before = [index for name in hook.before for index in self.places(name)]
        after = [index for name in hook.after for index in self.places(name)]
        if hook.instead is not None:
            before += self.replaced(mine, item, hook.instead)
        for index in (*before, *(index for name in hook.before for index in self.hooks(name))):
            self.waits[index].add(mine)
        self.waits[mine].update(after, (index for name in hook.after for index in self.hooks(name)))
        if not before and not after:
            return
        self.early.add(mine)
        if not after and min(before):  # no sooner than it has to be
            self.waits[mine].add(min(before) - 1)
        if not before and max(after) + 1 < len(self.built):
            self.waits[max(after) + 1].add(mine)

    def replaced(self, mine: int, item: _Found, name: str) -> list[int]:
        """Take the passes of a name out, for the functions of the hook's part."""
        label = (item.label or "") if self.restricted(item) else ""
        places = [index for index in self.places(name) if self.runs_for(index, label)]
        if not places:
            self.absent.add(mine)
        for index in places:
            for other in ("", label) if label else ("", *self.labels):
                if (first := self.taken.get((index, other))) is not None:
                    both = f"{first!r} and {item.hook.name!r}"
                    message = f"hooks {both} of phase {self.phase!r} both stand in place of {name!r}"
                    raise PassError(message, code="W564", hint="one of them has to give way")
            self.taken[index, label] = item.hook.name
            self.built[index] = self.without(self.built[index], label)
        return places

    def runs_for(self, index: int, label: str) -> bool:
        """Whether a pass runs for a part; for any where no label is given."""
        item = self.built[index]
        return not label or not isinstance(item, OnParts) or label in item.parts

    def without(self, item: Pass | None, label: str) -> Pass | None:
        """A pass on the functions of the other parts."""
        if item is None or not label:
            return None
        parts = tuple(other for other in (item.parts if isinstance(item, OnParts) else self.labels) if other != label)
        if not parts:
            return None
        return replace(item, parts=parts) if isinstance(item, OnParts) else OnParts(parts, self.labels, item)

    def end(self) -> None:
        """Hooks that nothing keeps among the passes of the phase come after them."""
        pending = list(self.early)
        while pending:  # what an early hook waits for is early, and no sooner than it
            mine = pending.pop()
            sooner = {index for index in self.waits[mine] if index < len(self.built)}
            for other in self.waits[mine] - sooner - self.early:
                self.waits[other] |= sooner
                self.early.add(other)
                pending.append(other)
        for place in range(len(self.found)):
            mine = len(self.built) + place
            if mine not in self.early and self.built:
                self.waits[mine].add(len(self.built) - 1)

    def order(self) -> list[int]:
        """Everything in an order in which nothing waits, changed as little as that asks for; PassError W561."""
        order: list[int] = []
        left = list(range(len(self.waits)))
        while left:
            ready = next((index for index in left if self.waits[index] <= set(order)), None)
            if ready is None:
                names = [self.found[index - len(self.built)].hook.name for index in left if index >= len(self.built)]
                cycle = ", ".join(dict.fromkeys(names))
                raise PassError(f"the order of hooks in phase {self.phase!r} is a cycle: {cycle}", code="W561")
            order.append(ready)
            left.remove(ready)
        return order

    # What a hook gives.

    def restricted(self, item: _Found) -> bool:
        """Whether the pass of a hook sees the functions of its part only."""
        return not self.whole and item.label is not None and item.hook.scope == "function" and len(self.labels) > 1

    def made(self, item: _Found) -> Pass:
        """The pass of a hook; PassError W560 when it is none."""
        hook = item.hook
        made = hook.make(*((item.target, item.label or "") if hook.labelled else (item.target,)))
        if not isinstance(made, Pass):
            raise PassError(
                f"hook {hook.name!r} of target {item.target} for phase {self.phase!r} must return a Pass, "
                f"it returned {described(made)}",
                code="W560",
                hint="return an instance, not the class" if isinstance(made, type) else None,
            )
        return OnParts((item.label or "",), self.labels, made) if self.restricted(item) else made


def _text_name(name: str) -> str:
    """The name of a pass for its alias."""
    found = named_passes().get(name)
    return name if found is None else str(found.text_name)
