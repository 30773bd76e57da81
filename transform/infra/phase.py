"""What a phase is: passes that follow from a target, under one name, with the options of its passes.

    Phase       the passes that are built in, those that follow from the facts of a target, and those of its hooks
    RunPhase    a phase as a pass: what `fuse{max_ops=8}` in the text of a pipeline reads as

The phases themselves, in order, are in `weft.transform.infra.phases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from weft.errors import PassError, Span
from weft.ir.attrs import CARRIED
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap
from weft.support.providers import provider
from weft.support.records import dataclass
from weft.target import Target
from weft.target.kinds import KINDS
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.fusion.combine_parallel_matmul import CombineParallelMatmul
from weft.transform.graph.legalize import LegalizeOps
from weft.transform.graph.normalize import Normalize
from weft.transform.infra import options as text_of_options
from weft.transform.infra.base import Pass
from weft.transform.infra.pipeline import Pipeline
from weft.transform.infra.registry import nearest
from weft.transform.memory.lower_to_memory import LowerToMemory
from weft.transform.target.hooks import RunLoweringHooks, has_lowering_hooks, on_host_parts
from weft.transform.target.origins import MarkOrigins
from weft.transform.target.parts import OnParts
from weft.transform.target.phase_hooks import pass_names, with_hooks

__all__ = ["CARRIED", "Phase", "RunPhase"]

TARGET = "target"
"""The option of a phase that says for which target it runs."""


@dataclass(frozen=True)
class Phase:
    """A named step on the way from a module to an executable, and its built-in passes.

    `for_target` gives passes that follow from the facts of a target; without a target they do not run. The hooks that
    the kinds of the target have for the phase add theirs after them, or where they say. What is not `mandatory` may be
    left out. A phase of the `whole` is about artifacts, which are the module's: no pass of it sees one part only.
    """

    name: str
    passes: tuple[Pass, ...] = ()
    for_target: Callable[[Target, Knobs], tuple[Pass, ...]] | None = None
    mandatory: bool = True
    whole: bool = False

    def passes_for(
        self, target: Target | str | None, knobs: Knobs | None = None, more: tuple[Pass, ...] = ()
    ) -> tuple[Pass, ...]:
        """The passes for a target, with the knobs of its schedules; `more` join those that are built in."""
        if target is None:
            return (*self.passes, *more)
        target = Target(target)
        built = (*self._built(target, knobs or Knobs()), *more)
        return with_hooks(target, self.name, built, self._names, whole=self.whole)

    def _built(self, target: Target, knobs: Knobs) -> tuple[Pass, ...]:
        """The passes for a target without those of hooks."""
        more = () if self.for_target is None else self.for_target(target, knobs)
        return (*_with_lowering_hooks(self.passes, target), *more)

    def provided(self, target: Target | str | None) -> tuple[Pass, ...]:
        """What layers above give a phase of the whole, for a pipeline that names it."""
        return provider("code_passes")(self.name, target) if self.whole else ()

    def _names(self) -> set[str]:
        """The names of the passes that the phase has for some target."""
        one = _richest()
        samples = (one, Target(f"first: {one}; second: {one}"))
        built = [item for sample in samples for item in (*self._built(sample, Knobs()), *self.provided(sample))]
        return {name for item in built for name in pass_names(item)}

    def check_option(
        self, option: str, value: Any, span: Span | None = None, target: Target | str | None = None
    ) -> None:
        """Refuse with PassError W502 an option that none of the passes has, that several have, or of another type.

        Where no target is stated or current, the passes are those for a target that has loops scheduled.
        """
        if option == TARGET:
            Target(value)
            return
        owners = self._owners(target or Target.current() or _richest())
        found = owners.get(option, [])
        if not found:
            own = ", ".join(owners)
            hint = nearest(option, [*owners, TARGET]) or (f"its passes have: {own}" if own else "its passes have none")
            raise PassError(f"phase {self.name} has no option {option!r}", code="W502", span=span, hint=hint)
        if len(found) > 1:
            names = ", ".join(cls.text_name for cls in found)
            hint = f'write the passes themselves, or PassContext(config={{"{found[0].text_name}.{option}": ...}})'
            message = f"several passes of phase {self.name} have the option {option!r}: {names}"
            raise PassError(message, code="W502", span=span, hint=hint)
        found[0].check_option(option, value, span)

    def with_options(self, values: Mapping[str, Any]) -> RunPhase:
        """The phase as a pass, with options of its passes, and `target`."""
        rest = {name: value for name, value in values.items() if name != TARGET}
        return RunPhase(self, values.get(TARGET), FrozenMap(rest))

    def _owners(self, target: Target | str) -> dict[str, list[type[Pass]]]:
        """Options -> the classes of passes that have them."""
        owners: dict[str, list[type[Pass]]] = {}
        for cls in dict.fromkeys(type(item) for item in _flat(self.passes_for(target, more=self.provided(target)))):
            for option in cls.option_types():
                owners.setdefault(option, []).append(cls)
        return owners


@dataclass(frozen=True)
class RunPhase(Pass, abstract=True):
    """Run a phase for its `target`, else that of `with target:`, else the one that the module carries.

    Without any it runs what is built in for every target.
    Raises: PassError W502 for an option that no pass of the phase has for that target.
    """

    checks_itself: ClassVar[bool] = True
    phase: Phase
    target: Any = None
    options: Mapping[str, Any] = field(default=FrozenMap())

    @property
    def name(self) -> str:
        """The name of the phase."""
        return self.phase.name

    def run(self, module: IRModule) -> IRModule:
        """Run the passes of the phase, and those of its hooks."""
        target = self.target or Target.current() or module.attrs.get(CARRIED)
        for option, value in self.options.items():
            self.phase.check_option(option, value, target=target)
        passes = self.phase.passes_for(target, more=self.phase.provided(target))
        return Pipeline([_with_options(item, self.options) for item in passes]).run(module)

    def __str__(self) -> str:
        given = {**({} if self.target is None else {TARGET: str(Target(self.target))}), **self.options}
        shown = ", ".join(f"{key}={text_of_options.to_text(value)}" for key, value in given.items())
        return f"{self.name}{{{shown}}}" if shown else self.name


def _richest() -> Target:
    """A target for which every phase has its passes."""
    return Target(next(name for name, kind in KINDS.items() if kind.explicit_vectors))


def _with_lowering_hooks(passes: tuple[Pass, ...], target: Target) -> tuple[Pass, ...]:
    """The passes, where the parts of the target that lower their own functions keep whole operators until they do."""
    if not has_lowering_hooks(target):
        return passes
    new: list[Pass] = []
    for item in passes:
        if isinstance(item, Normalize):
            new.extend((MarkOrigins(), item))
        elif isinstance(item, (CombineParallelMatmul, LegalizeOps)):
            new.extend(on_host_parts(target, item))
        elif isinstance(item, LowerToMemory):
            new.extend((RunLoweringHooks(target.to_str()), item))
        else:
            new.append(item)
    return tuple(new)


def _flat(passes: Iterable[Pass]) -> Iterator[Pass]:
    """The passes themselves, out of pipelines and of what runs them on parts of a target."""
    for item in passes:
        if isinstance(item, Pipeline):
            yield from _flat(item.passes)
        elif isinstance(item, OnParts):
            yield from _flat([item.item])
        else:
            yield item


def _with_options(item: Pass, values: Mapping[str, Any]) -> Pass:
    """A pass with those of the options that it has, inside of pipelines and of parts too."""
    if isinstance(item, Pipeline):
        return Pipeline([_with_options(inner, values) for inner in item.passes], name=item.title)
    if isinstance(item, OnParts):
        return replace(item, item=_with_options(item.item, values))
    known = type(item).option_types()
    mine = {name: value for name, value in values.items() if name in known}
    return replace(item, **mine) if mine else item
