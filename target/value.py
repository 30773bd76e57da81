"""Target: what to compile for, as one immutable value with four equal forms (object, string, dict, JSON).

    leaf       ::= kind options
    composite  ::= label: target; ...            functions and call sites carry a label
    config     ::= config options { parts }      executor, runtime, memory, package stand here and in no leaf

The grammar of the string is `target.lark`. Options hold what was given (by the user or by a tag); defaults and what
follows from the processor are derived on request, and `explain()` says which is which.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, cast

from weft.errors import Source, Span, TargetError
from weft.ir.node import FrozenMap
from weft.support.providers import provider
from weft.target import derived
from weft.target.derived import Features
from weft.target.kinds import CONFIG_FIELDS, KINDS, Field, TargetKind, find_kind
from weft.target.machine_model import MachineModel, machine_model
from weft.target.processors import CPU, CPUFacts
from weft.target.schema import check_pools, config_default, config_field, typed
from weft.target.syntax import parse_target, write_options
from weft.target.triple import Triple

__all__ = ["Features", "Tags", "Target", "tag"]

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_current: ContextVar[tuple[Target, ...]] = ContextVar("weft_target", default=())


_UNITS = ("has_dsp", "has_fpu", "has_mve", "pointer_bits", "endian")


class Target:
    """What to compile for.

    Errors: W701 unknown kind or tag, W702 unknown option (with the nearest name), W703 wrong value, W704 a
    configuration field on a leaf, W707 wrong label, W708 syntax, W72x processors.

    >>> target = Target("low_power_cpu: c -mcpu=cortex-m0; inference_cpu: c -mcpu=cortex-m7f")
    >>> target.part("inference_cpu").cpu == "cortex-m7"
    True
    >>> Target(str(target)) == Target(target.to_dict()) == Target(target.to_json()) == target
    True
    """

    __slots__ = ("__weakref__", "_json", "_machine", "kind", "options", "origins", "parts", "tag")
    kind: TargetKind
    options: FrozenMap
    parts: FrozenMap
    tag: str | None
    origins: FrozenMap
    _json: str
    _machine: MachineModel

    def __new__(cls, spec: Target | str | Mapping[str, Any]) -> Target:
        """The target itself where one is given: nothing changes it."""
        return spec if isinstance(spec, Target) else object.__new__(cls)

    def __init__(self, spec: Target | str | Mapping[str, Any]) -> None:
        if spec is self:
            return
        if isinstance(spec, str) and re.match(r'\s*\{\s*"', spec):
            fields = _from_data(_read_json(spec))
        elif isinstance(spec, str):
            fields = _from_text(spec)
        else:
            fields = _from_data(_mapping(spec))
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Target is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Target is immutable: cannot delete {name!r}")

    def __deepcopy__(self, memo: object = None) -> Target:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.kind.name, self.options, self.parts, self.tag, self.origins)

    def __eq__(self, other: object) -> bool:
        # As text: the order of parts and of memory pools is part of the value.
        return isinstance(other, Target) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"Target({self.to_str()!r})"

    def __str__(self) -> str:
        return self.to_str()

    # Forms.

    def to_dict(self) -> dict[str, Any]:
        """The target as plain data: kind, tag, options, parts."""
        data: dict[str, Any] = {"kind": self.kind.name}
        if self.tag is not None:
            data["tag"] = self.tag
        data.update({name: _thaw(self.options[name]) for name in sorted(self.options)})
        if self.parts:
            data["parts"] = {label: part.to_dict() for label, part in self.parts.items()}
        return data

    def to_json(self) -> str:
        """The target as one line of JSON; the order of parts is kept."""
        try:
            return self._json
        except AttributeError:
            object.__setattr__(self, "_json", json.dumps(self.to_dict(), ensure_ascii=False))
            return self._json

    def to_str(self) -> str:
        """The target in the string form."""
        parts = "; ".join(f"{label}: {_nested(part)}" for label, part in self.parts.items())
        options = dict(self.options) if self.tag is None else {"tag": self.tag, **self.options}
        if self.kind.name == "composite" and not options:
            return parts
        text = " ".join([self.kind.name, *write_options({name: _thaw(value) for name, value in options.items()})])
        return f"{text} {{ {parts} }}" if parts else text

    # Parts.

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the parts, in order."""
        return tuple(self.parts)

    def part(self, label: str) -> Target:
        """The part of a label; TargetError W707 that lists the labels."""
        if label in self.parts:
            return self.parts[label]
        raise TargetError(
            f"the target has no part {label!r}", code="W707", hint=f"labels: {', '.join(self.parts) or 'none'}"
        )

    def __getitem__(self, label: str) -> Target:
        return self.part(label)

    def walk(self) -> Iterator[Target]:
        """This target and every part below it."""
        yield self
        for part in self.parts.values():
            yield from part.walk()

    @property
    def is_leaf(self) -> bool:
        """Whether the target names one kind of machine (no parts)."""
        return self.kind.name not in ("composite", "config")

    # Derived facts.

    def get(self, name: str) -> Any:
        """An option, or its default; TargetError W702 when the kind has no such option."""
        if name in self.options:
            return self.options[name]
        return _field(self.kind, name).default

    @property
    def cpu(self) -> CPU | None:
        """The processor, when it is named (None for `host` and kinds without one)."""
        return derived.cpu_of(self.get("mcpu") if "mcpu" in self.kind.fields else None, self.options)

    @property
    def triple(self) -> Triple | None:
        """The triple given, or the one that follows from the processor; None for `host` without one."""
        return derived.triple_of(self.cpu, self.options)

    @property
    def features(self) -> Features:
        """What the processor has; for `host`, what every machine of its architecture has."""
        return derived.features_of(*_facts(self), self.triple, self.machine)

    @property
    def machine(self) -> MachineModel:
        """What schedules go by: the processor's row of the table, with what the options of the target say instead.

        For `host` it is what every machine of its architecture has; `weft.compile` schedules for the processor that it
        finds, which `explain` shows.

        >>> Target("llvm -mcpu=x86-64-v3 -l2-cache=256K").machine.l2_bytes
        262144
        """
        try:
            return self._machine
        except AttributeError:
            made = machine_model(_facts(self)[0], self.options, self.options.get("mattr", ()))
            object.__setattr__(self, "_machine", made)
            return made

    def gcc_flags(self) -> list[str]:
        """The options that make GCC compile for this processor; TargetError W725 for one it is not told by -mcpu.

        >>> Target("c -mcpu=cortex-m4f").gcc_flags()
        ['-mthumb', '-mcpu=cortex-m4', '-mfloat-abi=softfp', '-mfpu=fpv4-sp-d16']
        """
        return derived.gcc_flags_of(self.cpu, self.options)

    def explain(self) -> str:
        """One line per field: its value and whether it was given, came from a tag, is a default, or is derived."""
        lines = [f"kind = {self.kind.name}"]
        if self.tag is not None:
            lines.append(f"tag = {self.tag}")
        for name in sorted({*_fields(self), *self.options}):
            value = self.options.get(name, _default(self, name))
            origin = self.origins.get(name, "given") if name in self.options else "default"
            lines.append(f"{name} = {_show(value)} ({origin})")
        if self.is_leaf and "mcpu" in self.kind.fields:
            lines.append(
                f"triple = {self.triple or 'of the host'} ({'given' if 'mtriple' in self.options else 'derived'})"
            )
            features = self.features
            lines.extend(f"{name} = {getattr(features, name)} (derived)" for name in _UNITS)
            lines.extend(provider("scheduled_machine")(self).explain(self.options))
        for label, part in self.parts.items():
            lines.append(f"part {label}:")
            lines.extend("  " + line for line in part.explain().splitlines())
        return "\n".join(lines)

    def complete(self) -> Target:
        """The target with every default and what follows from the processor stated; `explain` says which is which.

        Completing it again changes nothing, and it means the same.

        >>> Target("c -mcpu=cortex-m0").complete().options["mtriple"]
        'thumbv6m-none-none-eabi'
        """
        data = self.to_dict()
        origins = dict(self.origins)
        for name in _fields(self):
            inside = data.get(name)
            value = _default(self, name)
            if self.kind.name == "config" and isinstance(inside, dict) and name != "memory":
                data[name] = {**(value or {}), **inside}
            elif name not in data and value not in (None, (), "auto"):
                data[name] = _thaw(value)
                origins[name] = "default"
        if self.cpu is not None:
            for name, value in (("mtriple", str(self.triple)), ("mfpu", _unit(self))):
                if value and name not in data:
                    data[name] = value
                    origins[name] = "derived"
        if self.parts:
            data["parts"] = {label: part.complete() for label, part in self.parts.items()}
        made = Target(data)
        object.__setattr__(made, "origins", FrozenMap({name: origins.get(name, "derived") for name in made.options}))
        return made

    # The current target.

    def __enter__(self) -> Target:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _current.set(_current.get()[:-1])

    @staticmethod
    def current() -> Target | None:
        """The target of the innermost `with target:`, if any."""
        stack = _current.get()
        return stack[-1] if stack else None


def _facts(target: Target) -> tuple[CPUFacts | None, str]:
    """The row of the processor and its floating-point unit; for `host`, what all of its architecture have."""
    return derived.facts_of(target.cpu, target.triple)


def _fields(target: Target) -> tuple[str, ...]:
    return CONFIG_FIELDS if target.kind.name == "config" else tuple(target.kind.fields)


def _default(target: Target, name: str) -> Any:
    if target.kind.name == "config":
        return config_default(name) or None
    return target.kind.fields[name].default if name in target.kind.fields else None


def _unit(target: Target) -> str | None:
    """The floating-point unit in effect, where it can be chosen."""
    cpu = target.cpu
    return (cpu.fpu or "none") if cpu is not None and cpu.facts.fpu_optional else None


def _nested(part: Target) -> str:
    return f"{{ {part} }}" if part.kind.name == "composite" else str(part)


def _show(value: Any) -> str:
    value = _thaw(value)
    return "unset" if value is None else value if isinstance(value, str) else json.dumps(value)


def _thaw(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_thaw(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, FrozenMap):
        inside = cast("Mapping[str, Any]", value)  # whose order means something: that of memory pools
        return {key: _thaw(item) for key, item in inside.items()}
    return value


def _mapping(spec: Any) -> Mapping[str, Any]:
    if not isinstance(spec, Mapping):
        raise TargetError(f"a target is a string, mapping or Target, got {type(spec).__name__}", code="W708")
    return cast("Mapping[str, Any]", spec)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TargetError(f"not JSON: {error}", code="W708") from None


# From text and data to checked fields.


def _from_text(text: str) -> dict[str, Any]:
    return _from_data(parse_target(text), Source("<target>", text))


def _from_data(given: Any, source: Source | None = None) -> dict[str, Any]:
    """Check plain data (kind or tag, options, parts) and complete it to the fields of a Target."""
    data: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(data.get("kind", data.get("tag")), str):
        raise TargetError("a target needs a kind", code="W708", hint='for example {"kind": "c", "mcpu": "cortex-m4"}')
    name, label = data.pop("kind", None), data.pop("tag", None)
    parts_data = data.pop("parts", {})
    if name is None or (name not in KINDS and (name in tag or "/" in name)):  # the name of a tag has a vendor
        return _from_tag(name or label, data)
    kind = find_kind(name)
    if not isinstance(parts_data, Mapping) or (parts_data and kind.name not in ("composite", "config")):
        raise TargetError(f"kind {kind.name!r} has no parts", code="W704")
    if kind.name == "composite" and not parts_data:
        raise TargetError("a composite target needs parts", code="W708")
    parts: dict[str, Target] = {}
    for part_label, part in cast("Mapping[str, Any]", parts_data).items():
        if not _LABEL.fullmatch(part_label):
            raise TargetError(f"{part_label!r} is not a label", code="W707", hint="labels are identifiers")
        parts[part_label] = part if isinstance(part, Target) else Target(part)
    options = _options(kind, data, source)
    if "memory" in options:
        labels = {label: None for part in parts.values() for label in _labels_below(part)}
        try:
            check_pools(options["memory"], [*parts, *labels])
        except TargetError as error:
            raise error.at(_place(source, "memory")) from None
    stated = {key.replace("-", "_") for key in data}
    return {
        "kind": kind,
        "options": FrozenMap(options),
        "parts": FrozenMap(parts),
        "tag": label,
        "origins": FrozenMap({name: "given" if name in stated else "derived" for name in options}),
    }


def _labels_below(target: Target) -> Iterator[str]:
    for label, part in target.parts.items():
        yield label
        yield from _labels_below(part)


def _frozen(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return FrozenMap({key: _frozen(item) for key, item in cast("Mapping[str, Any]", value).items()})


def _from_tag(name: str, overrides: dict[str, Any]) -> dict[str, Any]:
    base = tag[name]
    data = base.to_dict()
    data["tag"] = name
    given: list[str] = []
    for key, value in overrides.items():
        inside = data
        *path, last = _dotted(key, value, data)
        for step in path[:-1]:
            inside = inside["parts"][step] if step in inside.get("parts", {}) else inside.setdefault(step, {})
        if path[-1] == "mcpu":  # what followed from the tag's processor does not hold for another
            inside.pop("mfpu", None)
            inside.pop("mtriple", None)
        inside[path[-1]] = last
        given.append(path[0])
    fields = _from_data(data)
    origins = {key: "given" if key in given else "tag" for key in fields["options"]}
    return {**fields, "origins": FrozenMap(origins)}


def _dotted(key: str, value: Any, data: Mapping[str, Any]) -> list[Any]:
    """An override as a path and a value: nested data that came from a dotted key is unrolled again."""
    path: list[Any] = [key]
    while isinstance(value, Mapping) and (key in data.get("parts", {}) or len(path) > 1):
        inside = list(cast("Mapping[str, Any]", value).items())
        if len(inside) != 1:
            break
        step, value = inside[0]
        path.append(step)
    if len(path) == 1 and key in data.get("parts", {}):
        raise TargetError(f"override of part {key!r} needs an option, as in -{key}.mcpu=...", code="W703")
    return [*path, value]


def _field(kind: TargetKind, name: str) -> Field:
    if name in kind.fields:
        return kind.fields[name]
    if name in CONFIG_FIELDS:
        raise TargetError(
            f"{name!r} belongs to a compilation configuration, not to the leaf kind {kind.name!r}",
            code="W704",
            hint=f"wrap it: config -{name}=... {{ main: {kind.name} }}",
        )
    close = difflib.get_close_matches(name, kind.fields, 1)
    raise TargetError(
        f"kind {kind.name!r} has no option {name!r}",
        code="W702",
        hint=f"did you mean {close[0]!r}?" if close else f"options: {', '.join(kind.fields) or 'none'}",
    )


def _options(kind: TargetKind, data: Mapping[str, Any], source: Source | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        try:
            if kind.name == "config":
                if stated := config_field(name, value):  # nothing said is nothing stated
                    options[name] = _frozen(stated)
            else:
                options[name] = typed(repr(kind.name), name, _field(kind, name), value)
        except TargetError as error:
            raise error.at(_place(source, key)) from None
    if kind.canonicalise is not None:
        try:
            options = kind.canonicalise(options)
        except TargetError as error:
            named = next((key for key in data if error.message.find(str(data[key])) >= 0), None)
            raise error.at(_place(source, named)) from None
    return options


def _place(source: Source | None, key: str | None) -> Span | None:
    if source is None or key is None:
        return None
    found = re.search(rf"-{re.escape(key)}(?:=(?:\"(?:\\.|[^\"\\])*\"|[^\s;{{}}]*))?", source.text)
    return Span(source, found.start(), found.end()) if found else None


class Tags:
    """Named targets; a target built from a tag records the tag and the expanded fields.

    >>> tag.register("example/board", "c -mcpu=cortex-m4")
    >>> Target("example/board -mcpu=cortex-m7").cpu == "cortex-m7"
    True
    >>> tag.unregister("example/board")
    """

    def __init__(self) -> None:
        self._targets: dict[str, Target] = {}

    def register(self, name: str, target: Target | str | Mapping[str, Any]) -> None:
        """Give a target a name; TargetError W705 when the name is a kind or already another target."""
        value = Target(target)
        if name in KINDS or self._targets.get(name, value) != value:
            raise TargetError(f"tag {name!r} is already taken", code="W705")
        self._targets[name] = value

    def unregister(self, name: str) -> None:
        """Forget a tag."""
        self._targets.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """Every tag, in order of registration."""
        return tuple(self._targets)

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def __getitem__(self, name: str) -> Target:
        if name in self._targets:
            return self._targets[name]
        known = [*KINDS, *self._targets]
        close = difflib.get_close_matches(name, known, 1)
        raise TargetError(
            f"unknown target kind or tag {name!r}",
            code="W701",
            hint=f"did you mean {close[0]!r}?" if close else f"kinds: {', '.join(sorted(KINDS))}",
        )


tag = Tags()


def _restored(kind: str, options: FrozenMap, parts: FrozenMap, tag: str | None, origins: FrozenMap) -> Target:
    """A target that was pickled, its kind by name."""
    made = object.__new__(Target)
    fields = {"kind": find_kind(kind), "options": options, "parts": parts, "tag": tag, "origins": origins}
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
