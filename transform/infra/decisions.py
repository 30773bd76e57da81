"""Decision: what the compiler chose, as one readable record in the text of the function that it is about.

    T.func_attr({"decisions": [{"about": "matmul", "kind": "gemm", "mc": 168, "reason": "...", "applied": "1f0c"}]})

    decision ::= about (a block, a loop, a group), kind (who decided), values by name, reason
    applied  ::= the hash of the rest, once loops were made of it: who edits such a record later is told so
    pin      ::= a record (of any of the values) on a kernel whose loops are still as they were written

A pin is obeyed or refused (PassError W528). A record that was edited after it was applied is refused (W529). Every
choice is recorded in this form and nowhere else; `explain` (of an executable, and `weft explain`) reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from weft.errors import PassError, described
from weft.ir import BaseFunc, FrozenMap, IRModule, replace
from weft.ir.attrs import DECISIONS
from weft.runtime.explanation import line
from weft.support.records import dataclass

__all__ = [
    "DECISIONS",
    "Decision",
    "decisions_of",
    "numbers",
    "refused",
    "with_decisions",
    "without_decisions",
]

_OWN = ("about", "kind", "reason", "applied")
F = TypeVar("F", bound=BaseFunc)


@dataclass(frozen=True)
class Decision:
    """One choice: what it is about, the kind of choice, the values chosen, why.

    >>> Decision("matmul", "gemm", {"mc": 168}, "B is large").line()
    'matmul: gemm: mc=168 (B is large)'
    """

    about: str
    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    applied: str = ""

    def to_attribute(self) -> FrozenMap:
        """The record as plain data for the text of a function."""
        data = {"about": self.about, "kind": self.kind, **self.values}
        if self.reason:
            data["reason"] = self.reason
        return FrozenMap({**data, "applied": self.applied} if self.applied else data)

    @staticmethod
    def of_attribute(data: object) -> Decision:
        """The decision that a record states; PassError W528 for what is no record."""
        if not isinstance(data, Mapping):
            raise refused(f"a decision is a mapping, got {described(data)}")
        words = {name: data.get(name, "") for name in _OWN}
        for name, word in words.items():
            if not isinstance(word, str) or (name in ("about", "kind") and not word):
                raise refused(f"a decision has a text as {name!r}, got {word!r}")
        return Decision(values={name: value for name, value in data.items() if name not in _OWN}, **words)

    def with_values(self, **values: Any) -> Decision:
        """The decision with other values."""
        return Decision(self.about, self.kind, {**self.values, **values}, self.reason, self.applied)

    def done(self) -> Decision:
        """The decision as it was applied."""
        return Decision(self.about, self.kind, self.values, self.reason, self._hash())

    @property
    def is_intact(self) -> bool:
        """Whether it was applied as it is."""
        return self.applied == self._hash()

    def _hash(self) -> str:
        text = repr((self.about, self.kind, sorted(self.values.items()), self.reason))
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]

    def line(self) -> str:
        """The decision in one line."""
        return line(self.to_attribute())


def refused(message: str, hint: str | None = None, span: Any = None) -> PassError:
    """What a decision that cannot be obeyed ends in: W528."""
    return PassError(message, code="W528", hint=hint, span=span)


def decisions_of(function: BaseFunc) -> Iterator[Decision]:
    """The decisions that a function records."""
    found = getattr(function, "attrs", {}).get(DECISIONS, ())
    if not isinstance(found, (tuple, list)):
        raise refused(f"decisions are a list of records, got {described(found)}")
    return map(Decision.of_attribute, found)


def numbers(module: IRModule) -> dict[str, list[list[Any]]]:
    """What was decided about each function, without the names of its variables: the kinds, and what is a number.

    >>> numbers(IRModule({}))
    {}
    """
    found = {
        name: [
            [item.kind, {key: value for key, value in item.values.items() if isinstance(value, (int, float))}]
            for item in decisions_of(function)
        ]
        for name, function in module.items()
    }
    return {name: items for name, items in found.items() if items}


def with_decisions(function: F, made: Iterable[Decision]) -> F:
    """The function with these decisions recorded, after the ones that it has about other things."""
    new = [item.done() for item in made]
    if not new:
        return function
    keys = {(item.about, item.kind) for item in new}
    kept = [item for item in decisions_of(function) if (item.about, item.kind) not in keys]
    records = tuple(item.to_attribute() for item in (*kept, *new))
    return replace(function, attrs=function.attrs.set(DECISIONS, records))  # type: ignore[attr-defined]


def without_decisions(function: F) -> F:
    """The function without its records, the same object each time: what its code follows from."""
    attrs = getattr(function, "attrs", {})
    if DECISIONS not in attrs:
        return function
    found = _without_decisions.get(function)
    if found is None:
        found = _without_decisions[function] = replace(function, attrs=attrs.without(DECISIONS))  # type: ignore[call-arg]
    return found


_without_decisions: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
