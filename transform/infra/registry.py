"""Passes by their names in text: `weft pass`, `parse_pipeline`, and the settings of a `PassContext` look here.

A pass class registers itself when it is defined (`weft.transform.infra.base`). Names are kebab-case; a class may have
short aliases (`dce` for `dead-code-elimination`). Built-in names cannot be taken over by other classes. Phases go by
their names too in the text of a pipeline (`weft.transform.infra.phases` registers them).
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

from weft.errors import PassError, Span

__all__ = [
    "PassType",
    "PhaseType",
    "find_item",
    "find_pass",
    "is_built_in",
    "kebab_case",
    "name_phases",
    "named_passes",
    "named_phases",
    "nearest",
    "pass_names",
    "register",
]


class PassType(Protocol):
    """What the files below `base` know of a pass, which is defined there."""

    text_name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]
    checks_itself: ClassVar[bool]
    keeps_meaning: ClassVar[bool]

    @property
    def name(self) -> str:
        """The name in text."""
        ...

    def __call__(self, module: Any) -> Any:
        """The module with the pass run on it."""
        ...


class PhaseType(Protocol):
    """What the text of a pipeline needs to know of a phase, which is defined above."""

    @property
    def mandatory(self) -> bool:
        """Whether a module has to go through it on its way to an executable."""
        ...

    def check_option(self, option: str, value: Any, span: Span | None = None) -> None:
        """Refuse an option that none of its passes has, or several."""
        ...

    def with_options(self, values: Mapping[str, Any]) -> Any:
        """The pass that runs the phase with options."""
        ...


_passes: dict[str, type[Any]] = {}
_phases: dict[str, PhaseType] = {}


def named_passes() -> dict[str, type[Any]]:
    """Name or alias -> pass class; weft's own are loaded with the first question."""
    importlib.import_module("weft.transform.public")
    return _passes


def named_phases() -> dict[str, PhaseType]:
    """Name -> phase, in the order of the phases."""
    importlib.import_module("weft.transform.public")
    return _phases


def name_phases(phases: Mapping[str, PhaseType]) -> None:
    """Make phases known by their names."""
    _phases.update(phases)


def kebab_case(name: str) -> str:
    """A class or function name as the name of a pass in text.

    >>> kebab_case("LegalizeOps"), kebab_case("my_pass")
    ('legalize-ops', 'my-pass')
    """
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return parts.replace("_", "-").strip("-").lower()


def register(cls: type[Any], names: Iterable[str]) -> None:
    """Make a pass class known by its name and aliases; PassError W503 when a built-in pass has one of them."""
    known = _passes if cls.__module__.startswith("weft.") else named_passes()
    for name in names:
        old = known.get(name)
        if old is not None and is_built_in(old) and not _same_definition(old, cls):
            raise PassError(f"the name {name!r} belongs to the built-in pass {old.__name__}", code="W503")
        known[name] = cls


def is_built_in(cls: type[Any]) -> bool:
    """Whether a pass is one of weft's: its module defines it. An example that is run in a module's name is not."""
    return cls.__module__.startswith("weft.") and hasattr(sys.modules.get(cls.__module__), cls.__name__)


def _same_definition(old: type, new: type) -> bool:
    return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)


def pass_names() -> list[str]:
    """The names of all registered passes, without aliases, sorted."""
    return sorted({cls.text_name for cls in named_passes().values()})


def find_pass(name: str, span: Span | None = None) -> type[Any]:
    """The pass class with this name, alias or class name; PassError W501 with the nearest names when there is none."""
    known = named_passes()
    found = known.get(name) or known.get(kebab_case(name))
    if found is None:
        raise PassError(f"there is no pass {name!r}", code="W501", span=span, hint=nearest(name, known))
    return found


def find_item(name: str, span: Span | None = None) -> type[Any] | PhaseType:
    """The phase with this name, else the pass; PassError W501 with the nearest names when there is neither."""
    phases = named_phases()
    if name in phases:
        return phases[name]
    try:
        return find_pass(name, span)
    except PassError as error:
        hint = nearest(name, (*phases, *named_passes()))
        raise PassError(f"there is no pass or phase {name!r}", code="W501", span=span, hint=hint) from error.__cause__


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The hint "did you mean ...?" for a misspelt name, or None when nothing is near."""
    found = difflib.get_close_matches(name, list(dict.fromkeys(candidates)), n=2, cutoff=0.5)
    return f"did you mean {' or '.join(f'`{item}`' for item in found)}?" if found else None
