"""Passes by their names in text: `weft pass`, `parse_pipeline`, and the settings of a `PassContext` look here.

A pass class registers itself when it is defined (`weft.transform.infra.base`). Names are kebab-case; a class may have
short aliases (`legalize` for `legalize-ops`). Built-in names cannot be taken over by other classes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from weft.errors import PassError, Span

__all__ = ["PASSES", "PassType", "find_pass", "kebab_case", "nearest", "pass_names", "register"]


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


PASSES: dict[str, type[Any]] = {}
"""Name or alias -> pass class."""


def kebab_case(name: str) -> str:
    """A class or function name as the name of a pass in text.

    >>> kebab_case("LegalizeOps"), kebab_case("my_pass")
    ('legalize-ops', 'my-pass')
    """
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return parts.replace("_", "-").strip("-").lower()


def register(cls: type[Any], names: Iterable[str]) -> None:
    """Make a pass class known by its name and aliases; PassError W503 when a built-in pass has one of them."""
    for name in names:
        old = PASSES.get(name)
        if old is not None and old.__module__.startswith("weft.") and not _same_definition(old, cls):
            raise PassError(f"the name {name!r} belongs to the built-in pass {old.__name__}", code="W503")
        PASSES[name] = cls


def _same_definition(old: type, new: type) -> bool:
    return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)


def pass_names() -> list[str]:
    """The names of all registered passes, without aliases, sorted."""
    return sorted({cls.text_name for cls in PASSES.values()})


def find_pass(name: str, span: Span | None = None) -> type[Any]:
    """The pass class with this name, alias or class name; PassError W501 with the nearest names when there is none."""
    found = PASSES.get(name) or PASSES.get(kebab_case(name))
    if found is None:
        raise PassError(f"there is no pass {name!r}", code="W501", span=span, hint=nearest(name, PASSES))
    return found


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The hint "did you mean ...?" for a misspelt name, or None when nothing is near."""
    found = difflib.get_close_matches(name, list(candidates), n=2, cutoff=0.5)
    return f"did you mean {' or '.join(f'`{item}`' for item in found)}?" if found else None
