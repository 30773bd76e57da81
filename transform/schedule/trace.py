"""The trace of a schedule: what was done, as data that prints as Python and can be done again.

    trace       ::= instruction*
    instruction ::= (name, arguments by name, outputs, decision)
    argument    ::= handle | number | text | None | list of arguments | text -> argument

`trace.apply_to(schedule)` does the same to another schedule; `Trace.from_json(trace.to_json())` is the same trace.
Registered primitives, also those of users, are told apart by their names alone.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from weft.errors import ScheduleError
from weft.support.records import dataclass
from weft.transform.infra.registry import nearest
from weft.transform.schedule.handles import BlockRV, ExprRV, Handle, LoopRV

__all__ = ["PRIMITIVES", "Instruction", "Primitive", "Trace", "handles_in"]

_HANDLES: dict[str, type[Handle]] = {"b": BlockRV, "l": LoopRV, "v": ExprRV}


class Replayed(Protocol):
    """What a trace needs of the schedule that it is done to."""

    def choose_next(self, choices: Sequence[Any]) -> None:
        """What the sampling primitives inside of the next one choose."""


@dataclass(frozen=True)
class Primitive:
    """A registered primitive: its name, what does it, and the parameters that it takes after the schedule."""

    name: str
    run: Callable[..., Any]
    parameters: inspect.Signature

    def __call__(self, schedule: Replayed, arguments: Mapping[str, Any]) -> Any:
        """Do it to a schedule with arguments by name."""
        known = {key: arguments[key] for key in self.parameters.parameters if key in arguments}
        bound = inspect.BoundArguments(self.parameters, OrderedDict(known))
        return self.run(schedule, *bound.args, **bound.kwargs)


PRIMITIVES: dict[str, Primitive] = {}
"""All primitives by name: those of this package, and those that users have registered."""


@dataclass(frozen=True)
class Instruction:
    """One step: the primitive, its arguments, the handles that it gave out, and what it decided when it sampled."""

    name: str
    arguments: Mapping[str, Any]
    outputs: tuple[Handle, ...] = ()
    decision: Any = None
    listed: bool = False  # whether the primitive gives a list, even of one handle
    choices: tuple[Any, ...] = ()  # what sampling primitives have chosen that the primitive used


@dataclass
class Trace:
    """The instructions of a schedule in order.

    >>> Trace().script()
    'def apply(sch):\\n    pass\\n'
    """

    instructions: list[Instruction] = field(default_factory=list)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def __str__(self) -> str:
        return self.script()

    def copy(self) -> Trace:
        """The same instructions in a list of their own."""
        return Trace(list(self.instructions))

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """The trace without steps that only look or choose and whose handles nothing uses.

        With `remove_postproc` also without everything from `enter_postproc` on.
        """
        steps = self.instructions
        if remove_postproc:
            end = next((i for i, step in enumerate(steps) if step.name == "enter_postproc"), len(steps))
            steps = steps[:end]
        kept: list[Instruction] = []
        used: set[Handle] = set()
        for step in reversed(steps):
            if _only_looks(step.name) and not used & set(step.outputs):
                continue
            kept.append(step)
            used.update(handles_in([*step.arguments.values(), step.decision]))
        return Trace(kept[::-1])

    def names(self) -> dict[Handle, str]:
        """A name for each handle: a letter for its kind and a number."""
        found: dict[Handle, str] = {}
        counts: dict[str, int] = {}
        for step in self.instructions:
            for handle in step.outputs:
                count = counts.get(handle.letter, 0)
                counts[handle.letter] = count + 1
                found[handle] = f"{handle.letter}{count}"
        return found

    def script(self) -> str:
        """The trace as a Python function of a schedule."""
        lines = self.steps() or ("pass",)
        return "def apply(sch):\n" + "".join(f"    {line}\n" for line in lines)

    def steps(self) -> tuple[str, ...]:
        """The text of each step, as it stands in the script."""
        names = self.names()
        return tuple(_step_text(step, names) for step in self.instructions)

    def apply_to(self, schedule: Replayed, *, decisions: bool = True) -> dict[Handle, Handle]:
        """Do all of it to a schedule; without `decisions` what was sampled is sampled anew.

        Gives the handle of the other schedule for each handle of this trace; ScheduleError W619 for a primitive that
        is not registered, and whatever the primitives raise.
        """
        known: dict[Handle, Handle] = {}
        for step in self.instructions:
            primitive = PRIMITIVES.get(step.name)
            if primitive is None:
                message = f"the trace uses a primitive {step.name!r} that is not registered"
                raise ScheduleError(message, code="W619", hint=nearest(step.name, list(PRIMITIVES)))
            arguments = {key: _mapped(value, known) for key, value in step.arguments.items()}
            if step.decision is not None:
                arguments["decision"] = _mapped(step.decision, known) if decisions else None
            schedule.choose_next(step.choices if decisions else ())
            result = primitive(schedule, arguments)
            given = handles_in(result)
            if len(given) != len(step.outputs):
                raise ScheduleError(
                    f"{step.name} gave {len(given)} handles where the trace has {len(step.outputs)}",
                    code="W619",
                    hint="the trace was made for a function of another form",
                )
            known.update(zip(step.outputs, given, strict=True))
        return known

    def to_json(self) -> list[dict[str, Any]]:
        """The trace as lists, numbers and text."""
        names = self.names()

        def plain(value: Any) -> Any:
            if isinstance(value, Handle):
                return {"handle": names[value]}
            if isinstance(value, Mapping):  # apart from handles, which are dictionaries here
                return {"entries": {key: plain(item) for key, item in value.items()}}
            return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

        return [
            {
                "name": step.name,
                "arguments": {key: plain(value) for key, value in step.arguments.items()},
                "outputs": [names[handle] for handle in step.outputs],
                "decision": plain(step.decision),
                "listed": step.listed,
                "choices": [plain(choice) for choice in step.choices],
            }
            for step in self.instructions
        ]

    @classmethod
    def from_json(cls, data: list[dict[str, Any]]) -> Trace:
        """The trace that `to_json` wrote; ScheduleError W619 for anything else."""
        handles: dict[str, Handle] = {}

        def value_of(value: Any) -> Any:
            if isinstance(value, dict) and "entries" in value:
                return {key: value_of(item) for key, item in value["entries"].items()}
            if isinstance(value, dict):
                return handles[value["handle"]]
            return [value_of(item) for item in value] if isinstance(value, list) else value

        steps: list[Instruction] = []
        try:
            for item in data:
                arguments = {key: value_of(value) for key, value in item["arguments"].items()}
                for name in item["outputs"]:
                    handles[name] = _HANDLES[name[0]](name)
                outputs = tuple(handles[name] for name in item["outputs"])
                steps.append(
                    Instruction(
                        item["name"],
                        arguments,
                        outputs,
                        value_of(item["decision"]),
                        item["listed"],
                        tuple(value_of(item["choices"])),
                    )
                )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ScheduleError(
                "this is not a trace", code="W619", notes=[repr(error)], hint="what trace.to_json() gives"
            ) from None
        return cls(steps)


def _only_looks(name: str) -> bool:
    """Whether a primitive of this package changes nothing; what those of users do is not known."""
    own = name in PRIMITIVES and PRIMITIVES[name].run.__module__.startswith(f"{__package__}.")
    return own and name.startswith(("get_", "sample_"))


def handles_in(result: Any) -> tuple[Handle, ...]:
    """The handles among what a primitive gave."""
    if isinstance(result, Handle):
        return (result,)
    if isinstance(result, (list, tuple)):
        return tuple(handle for item in result for handle in handles_in(item))
    return ()


def _mapped(value: Any, known: Mapping[Handle, Handle]) -> Any:
    if isinstance(value, Handle):
        return known.get(value, value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, known) for item in value)
    return value


def _value_text(value: Any, names: Mapping[Handle, str]) -> str:
    if isinstance(value, Handle):
        return names.get(value, "...")
    if isinstance(value, list):
        return f"[{', '.join(_value_text(item, names) for item in value)}]"
    if isinstance(value, tuple):
        inner = ", ".join(_value_text(item, names) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _is_default(parameter: inspect.Parameter, value: Any) -> bool:
    return type(value) is type(parameter.default) and parameter.default == value


def _step_text(step: Instruction, names: Mapping[Handle, str]) -> str:
    parts: list[str] = []
    signature = PRIMITIVES[step.name].parameters if step.name in PRIMITIVES else None
    for key, value in step.arguments.items():
        parameter = signature.parameters.get(key) if signature is not None else None
        if parameter is not None and _is_default(parameter, value):
            continue
        if parameter is not None and parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.extend(_value_text(item, names) for item in value)
        else:
            parts.append(f"{key}={_value_text(value, names)}")
    if step.decision is not None:
        parts.append(f"decision={_value_text(step.decision, names)}")
    left = ", ".join(names[handle] for handle in step.outputs)
    if step.listed and len(step.outputs) == 1:
        left += ","
    call = f"sch.{step.name}({', '.join(parts)})"
    first = f"sch.choose_next({list(step.choices)!r})\n    " if step.choices else ""
    return first + (f"{left} = {call}" if left else call)
