"""Target kinds: the registry that core code and plug-ins fill the same way.

    kind ::= TargetKind(name, fields, device, hooks, lowering, code generator)

A kind declares its fields (typed, with defaults and documentation) and may supply hooks by phase, a lowering hook and a
code generator; core code asks the kind, never "which target is this?".
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from weft.errors import PassError, TargetError
from weft.ir.kernel.externs import Extern, made_extern
from weft.support.records import dataclass, record

__all__ = [
    "KINDS",
    "Bool",
    "Field",
    "Hook",
    "Int",
    "List",
    "Size",
    "Str",
    "TargetKind",
    "check_phase",
    "find_kind",
    "know_phases",
    "remove_target_kind",
    "target_kind",
]

DRIVING_LABEL = "host"
"""The label of the part that drives the others; without one of that label, the first part does."""
CONFIG_FIELDS = ("executor", "runtime", "memory", "package")


@record
class Field:
    """A typed option of a kind; `type` is int, size, str, bool or list (of strings); `bounds` are those of a number."""

    type: str
    default: Any = None
    doc: str = ""
    choices: Sequence[Any] = ()
    bounds: tuple[int, int] | None = None


def Int(default: int | None = None, doc: str = "", bounds: tuple[int, int] | None = None) -> Field:
    """An integer option."""
    return Field("int", default, doc, bounds=bounds)


def Size(default: int | None = None, doc: str = "", bounds: tuple[int, int] | None = None) -> Field:
    """A number of bytes; 16K, 1M and 2G are read."""
    return Field("size", default, doc, bounds=bounds)


def Str(default: str | None = None, doc: str = "", choices: Sequence[str] = ()) -> Field:
    """A string option."""
    return Field("str", default, doc, choices)


def Bool(default: bool | None = False, doc: str = "") -> Field:
    """A flag."""
    return Field("bool", default, doc)


def List(default: tuple[str, ...] = (), doc: str = "") -> Field:
    """A list of strings, written a,b,c."""
    return Field("list", default, doc)


@record
class Hook:
    """A function of a target that returns the Pass to run in a phase.

    `before` and `after` are names of passes or hooks of the same phase, `instead` that of a pass whose place it takes.
    With scope "function" the pass sees the functions that belong to the target, with "module" all of them. A `labelled`
    one is told the label of its part as well.
    """

    name: str
    make: Callable[..., Any]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    scope: str = "function"
    labelled: bool = False
    instead: str | None = None


_phase_names: list[str] = []


def know_phases(names: Iterable[str]) -> None:
    """State the names of the phases; hooks registered from now on are checked against them."""
    _phase_names[:] = names


def check_phase(name: str) -> None:
    """Raise PassError W507 for a phase that does not exist (as far as the phases are known)."""
    if _phase_names and name not in _phase_names:
        close = difflib.get_close_matches(name, _phase_names, 1)
        raise PassError(
            f"there is no phase {name!r}",
            code="W507",
            hint=f"did you mean `{close[0]}`?" if close else ", ".join(_phase_names),
        )


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
    hooks: dict[str, list[Hook]] = field(default_factory=dict[str, list[Hook]])
    lowering_hook: Callable[..., Any] | None = None
    code_generator: Callable[..., Any] | None = None
    plans_memory: bool = False
    """Whether its code generator plans the memory of tensors itself (into pools that the target names, for one)."""
    memory: str = ""
    """The memory of its own that its code works in; empty where it shares that of the host."""
    explicit_vectors: bool = False
    """Whether its code generator takes kernels that are written with vectors."""
    intrinsics: frozenset[str] = frozenset()
    """What its code generator has of the intrinsics that few machines have (T.has_intrinsic)."""
    alike: Callable[[Any, Any], bool] | None = None
    """Whether two parts of the kind can do the same work in one program, so that calls go where they take less."""
    cost_of_call: Callable[[Any, Any], float | None] | None = None
    """What a call takes on a part of the kind, in cycles of one core of the host; None for what it does not do."""
    externs: dict[str, Extern] = field(default_factory=dict[str, Extern])
    """The C functions that programs may call whose target has a part of this kind."""

    def extern(self, name: str, result: str, *params: str) -> Extern:
        """Let programs for a target with a part of this kind call a C function with these dtypes and no others.

        As `weft.declare_extern`. Raises: TargetError W763 for what is no C name.
        """
        made = self.externs[name] = made_extern(name, result, params)
        return made

    def hook(
        self,
        phase: str,
        *,
        name: str | None = None,
        before: str | Iterable[str] = (),
        after: str | Iterable[str] = (),
        instead: str | None = None,
        scope: str = "function",
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function of the target, `(target)` or `(target, label)`, that returns the Pass to run in a phase.

        It runs at the end of the phase; right before or after the passes of the phase that `before` and `after` name;
        or in place of the pass that `instead` names (for the functions of its part, with scope "function"). Hooks run
        in the order of the target's parts, then of registration; `before` and `after` may name hooks, too. A name that
        the phase does not have is refused when the passes of the phase are asked for (PassError W564).
        Raises: PassError W507 for an unknown phase; TargetError W706 for a wrong scope or arity.
        """
        check_phase(phase)
        if scope not in ("function", "module"):
            raise TargetError(
                f"a hook of kind {self.name!r} has scope {scope!r}", code="W706", hint='"function" or "module"'
            )

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            labelled = _takes(function, 2)
            if not labelled:
                _check_arity(self, f"hook of phase {phase!r}", function, 1)
            label = name or getattr(function, "__name__", type(function).__name__)
            made = Hook(label, function, _names(before), _names(after), scope, labelled, instead)
            self.hooks.setdefault(phase, []).append(made)
            return function

        return register

    def remove_hook(self, function: Callable[..., Any]) -> None:
        """Forget a registered hook, as a plug-in does that is unloaded."""
        for phase in list(self.hooks):
            kept = [item for item in self.hooks[phase] if item.make is not function]
            self.hooks[phase] = kept
            if not kept:
                del self.hooks[phase]

    def lowering(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the lowering hook `(module, function) -> (module, global variable)`; TargetError W706 otherwise."""
        _check_arity(self, "lowering hook", function, 2)
        self.lowering_hook = function
        return function

    def cost(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what calls take on the kind, `(call, target) -> cycles`, None for what it does not do.

        Calls without labels go to a part of the kind where that is less than on the part that they stand in, copies
        between memories included; its lowering hook has to take what it says a price for. TargetError W706 otherwise.
        """
        _check_arity(self, "cost", function, 2)
        self.cost_of_call = function
        return function

    def codegen(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the code generator `(module, target) -> artifacts`; TargetError W706 otherwise."""
        _check_arity(self, "code generator", function, 2)
        self.code_generator = function
        return function


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:  # other arguments, or no function
        return False
    return True


def _check_arity(kind: TargetKind, what: str, function: Callable[..., Any], count: int) -> None:
    if not _takes(function, count):
        wanted = f"{count} argument{'s' * (count > 1)}"
        got = inspect.signature(function) if callable(function) else f"no function but {function!r}"
        raise TargetError(f"the {what} of target kind {kind.name!r} must take {wanted}, got {got}", code="W706")


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
    >>> remove_target_kind("example-npu")
    """
    if name in KINDS:
        raise TargetError(f"target kind {name!r} is already registered", code="W705")
    for reserved in (*CONFIG_FIELDS, "parts", "kind", "tag"):
        if fields and reserved in fields:
            raise TargetError(f"field {reserved!r} of kind {name!r} is reserved", code="W705")
    KINDS[name] = kind = TargetKind(name, dict(fields or {}), device, doc, canonicalise)
    return kind


def remove_target_kind(name: str) -> None:
    """Forget a kind with its hooks, as a plug-in does that is unloaded; TargetError W701 when there is none."""
    del KINDS[find_kind(name).name]


PLANNED = {
    "cuda": "graphics processors are described (nvptx triples, thread bindings in schedules), not compiled for",
    "nvptx": "graphics processors are described (triples and processors of kind llvm), not compiled for",
    "ptx": "the assembly of NVIDIA's graphics processors can be an artifact (kind `ptx`), and nothing here emits it",
}
"""Kinds that are known by name, and what there is of them."""


def find_kind(name: str) -> TargetKind:
    """The kind of a name; TargetError W701 with the nearest names otherwise."""
    if name in KINDS:
        return KINDS[name]
    if name in PLANNED:
        raise TargetError(
            f"weft has no code generator of kind {name!r} yet: {PLANNED[name]}",
            code="W701",
            hint=f"kinds that there are: {', '.join(sorted(KINDS))}; a plug-in may add others (weft.target_kind)",
        )
    close = difflib.get_close_matches(name, KINDS, 1)
    raise TargetError(
        f"unknown target kind {name!r}",
        code="W701",
        hint=f"did you mean {close[0]!r}?" if close else f"kinds: {', '.join(sorted(KINDS))}",
    )
