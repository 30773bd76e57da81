"""Config: a compilation configuration as plain fields, a flat view of the Target that it is.

    Config(target="c -mcpu=cortex-m7", executor="aot", runtime="bare").to_target()
    config -executor=aot -runtime=bare { main: c -mcpu=cortex-m7 }

Nothing but a target stays that target: the common case needs no nesting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from weft.errors import TargetError
from weft.support.records import dataclass
from weft.target.kinds import CONFIG_FIELDS
from weft.target.schema import unknown_field
from weft.target.value import Target

__all__ = ["Config"]

Spec = Target | str | Mapping[str, Any]


@dataclass(frozen=True)
class Config:
    """What to compile for and how, each thing by its name; `to_target` makes one Target of it.

    `host` is the part that drives, where the target does not say. Raises: TargetError W702 for a field that there is
    not; `to_target` W709 for a field that the target states otherwise, and what a Target raises.

    >>> str(Config("npu: llvm", host="c").to_target())
    'host: c; npu: llvm'
    >>> Config.of(Config("c", executor="aot").to_target()).executor
    {'kind': 'aot'}
    """

    target: Spec
    host: Spec | None = None
    executor: str | Mapping[str, Any] | None = None
    runtime: str | Mapping[str, Any] | None = None
    memory: Mapping[str, Any] | None = None
    package: str | Mapping[str, Any] | None = None

    def __new__(cls, *_: Any, **given: Any) -> Config:
        """Fields by their names; TargetError W702 with the nearest one for a name that is none."""
        names = [item.name for item in fields(cls)]
        for name in given:
            if name not in names:
                raise unknown_field("a configuration has no field", name, names)
        return super().__new__(cls)

    @classmethod
    def of(cls, target: Spec) -> Config:
        """The view of a target; `to_target` gives the target again."""
        value = Target(target)
        if value.kind.name != "config":
            return cls(value)
        data = value.to_dict()
        given = {name: data[name] for name in CONFIG_FIELDS if name in data}
        parts = value.parts
        # A configuration of one part called `main` is what a leaf target becomes.
        inner = parts["main"] if list(parts) == ["main"] else _composite(dict(parts))
        return cls(inner if parts else value, **(given if parts else {}))

    def to_target(self) -> Target:
        """The Target that says all of it."""
        target = self._with_host(Target(self.target))
        given = {item.name: getattr(self, item.name) for item in fields(self) if item.name in CONFIG_FIELDS}
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            return target
        data: dict[str, Any] = {"kind": "config", **given}
        if target.kind.name == "config":
            old = target.to_dict()
            wanted = Target(data).to_dict()
            for name in given:
                if name in old and old[name] != wanted[name]:
                    raise _contradiction(name, old[name], wanted[name])
            return Target({**old, **given})
        data["parts"] = dict(target.parts) if target.kind.name == "composite" else {"main": target}
        return Target(data)

    def _with_host(self, target: Target) -> Target:
        if self.host is None:
            return target
        host = Target(self.host)
        if "host" in target.parts:
            if target.parts["host"] != host:
                raise _contradiction("host", str(target.parts["host"]), str(host))
            return target
        if target.is_leaf:
            label = re.sub(r"\W", "_", target.kind.name)
            if host == target:
                return target
            return Target({"kind": "composite", "parts": {"host": host, label: target}})
        return Target({**target.to_dict(), "parts": {"host": host, **dict(target.parts)}})


def _composite(parts: dict[str, Target]) -> Target | Mapping[str, Any]:
    return Target({"kind": "composite", "parts": parts}) if parts else {}


def _contradiction(name: str, old: Any, new: Any) -> TargetError:
    return TargetError(
        f"the target says {name} {old!r}, the argument says {new!r}", code="W709", hint="leave one of them out"
    )
