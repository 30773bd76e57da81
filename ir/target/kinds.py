"""Target kinds: the registry that core code and plug-ins fill the same way.

    kind ::= TargetKind(name, fields, device, hooks, lowering, code generator)

A kind declares its fields (typed, with defaults and documentation) and may supply hooks by phase, a lowering hook and a
code generator; core code asks the kind, never "which target is this?".
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import TargetError

__all__ = ["KINDS", "Bool", "Field", "Int", "List", "Str", "TargetKind", "find_kind", "target_kind"]

CONFIG_FIELDS = ("executor", "runtime", "memory", "package")


@dataclass(frozen=True, slots=True)
class Field:
    """A typed option of a kind; `type` is int, str, bool or list (of strings)."""

    type: str
    default: Any = None
    doc: str = ""
    choices: tuple[str, ...] = ()


def Int(default: int | None = None, doc: str = "") -> Field:
    """An integer option."""
    return Field("int", default, doc)


def Str(default: str | None = None, doc: str = "", choices: tuple[str, ...] = ()) -> Field:
    """A string option."""
    return Field("str", default, doc, choices)


def Bool(default: bool = False, doc: str = "") -> Field:
    """A flag."""
    return Field("bool", default, doc)


def List(default: tuple[str, ...] = (), doc: str = "") -> Field:
    """A list of strings, written a,b,c."""
    return Field("list", default, doc)


@dataclass(eq=False)
class TargetKind:
    """A kind of target: its fields and what it supplies to the pipeline.

    `canonicalise(options)` gets the options given and returns them completed or changed; it may refuse with
    TargetError.
    """

    name: str
    fields: Mapping[str, Field]
    device: str = "cpu"
    doc: str = ""
    canonicalise: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    hooks: dict[str, list[Callable[..., Any]]] = field(default_factory=dict)
    lowering_hook: Callable[..., Any] | None = None
    code_generator: Callable[..., Any] | None = None

    def hook(self, phase: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function of the target that returns the Pass to run at the end of a phase."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.hooks.setdefault(phase, []).append(function)
            return function

        return register

    def lowering(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the lowering hook `(module, function) -> (module, global variable)`; TargetError W706 otherwise."""
        _check_arity(self, "lowering hook", function, 2)
        self.lowering_hook = function
        return function

    def codegen(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the code generator `(module, target) -> artifacts`; TargetError W706 otherwise."""
        _check_arity(self, "code generator", function, 2)
        self.code_generator = function
        return function


def _check_arity(kind: TargetKind, what: str, function: Callable[..., Any], count: int) -> None:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        raise TargetError(
            f"the {what} of target kind {kind.name!r} must take {count} arguments, got {inspect.signature(function)}",
            code="W706",
        ) from None


KINDS: dict[str, TargetKind] = {}


def target_kind(
    name: str,
    fields: Mapping[str, Field] | None = None,
    *,
    device: str = "cpu",
    doc: str = "",
    canonicalise: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> TargetKind:
    """Register a kind of target; TargetError W705 when the name is taken or a field belongs to configurations.

    >>> npu = target_kind("example-npu", fields={"macs": Int(128)})
    >>> npu.fields["macs"].default
    128
    >>> del KINDS["example-npu"]
    """
    if name in KINDS:
        raise TargetError(f"target kind {name!r} is already registered", code="W705")
    for reserved in (*CONFIG_FIELDS, "parts", "kind", "tag"):
        if fields and reserved in fields:
            raise TargetError(f"field {reserved!r} of kind {name!r} is reserved", code="W705")
    KINDS[name] = kind = TargetKind(name, dict(fields or {}), device, doc, canonicalise)
    return kind


def find_kind(name: str) -> TargetKind:
    """The kind of a name; TargetError W701 with the nearest names otherwise."""
    if name in KINDS:
        return KINDS[name]
    close = difflib.get_close_matches(name, KINDS, 1)
    raise TargetError(
        f"unknown target kind {name!r}",
        code="W701",
        hint=f"did you mean {close[0]!r}?" if close else f"kinds: {', '.join(sorted(KINDS))}",
    )
