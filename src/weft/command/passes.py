"""`weft pass --list` and `weft phases`: the passes that are registered, what each does, and where it runs."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
from dataclasses import MISSING
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.command.inputs.targets import chosen_target
from weft.command.report import print_json
from weft.transform.infra.options import to_text, type_text
from weft.transform.infra.phases import phase, phases
from weft.transform.infra.registry import find_pass, is_built_in, named_passes

__all__ = ["described_passes", "list_passes", "phases_command"]


def list_passes(name: str | None, as_json: bool) -> int:
    """Print the passes with a line each, or the description of one."""
    if name is not None:
        facts = _facts(find_pass(name), _places())
        print_json(facts) if as_json else print(page_of(facts))
        return 0
    found = described_passes()
    if as_json:
        print_json(found)
        return 0
    width = max(len(facts["name"]) for facts in found)
    for facts in found:
        print(f"{facts['name']:<{width}}  {facts['summary']}")
    return 0


def described_passes(own: bool = False) -> list[dict[str, Any]]:
    """What there is to say about every pass, by name; with `own` those of weft alone."""
    places = _places()  # and loads what is loaded when it first runs
    classes = sorted(set(named_passes().values()), key=lambda cls: cls.text_name)
    return [_facts(cls, places) for cls in classes if not own or is_built_in(cls)]


def _places() -> dict[str, list[str]]:
    """The phases in which passes run for a machine with vectors, by name of the pass."""
    found: dict[str, list[str]] = {}
    for name in phases():
        for item in phase(name, "llvm").passes:
            found.setdefault(item.name, []).append(name)
    return found


def _facts(cls: type[Any], places: dict[str, list[str]]) -> dict[str, Any]:
    module = sys.modules.get(cls.__module__)  # a module that was loaded by its file need not be there
    doc = inspect.cleandoc(cls.__doc__ or "")
    hints = cls.option_types()
    return {
        "name": cls.text_name,
        "class": cls.__name__,
        "aliases": list(cls.aliases),
        "summary": doc.split("\n\n")[0].replace("\n", " "),
        "doc": doc.split(">>>")[0].rstrip(),
        "about": inspect.cleandoc(module.__doc__ or "") if module and module.__name__.startswith("weft.") else "",
        "options": [
            {"name": item.name, "type": type_text(hints[item.name]), "default": _default(item)}
            for item in (dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ())
        ],
        "phases": places.get(cls.text_name, []),
        "level": cls.level,
        "keeps_meaning": cls.keeps_meaning,
        "exact": cls.exact,
        "keeps_names": cls.keeps_names,
        "keeps_types": cls.keeps_types,
        "source": _source(module),
    }


def _default(item: dataclasses.Field[Any]) -> str | None:
    """The default of an option as text; None where it has to be given."""
    if item.default_factory is not MISSING:
        return to_text(item.default_factory())
    return None if item.default is MISSING else to_text(item.default)


def _source(module: ModuleType | None) -> str:
    """The file of a pass, from the folder that holds the package."""
    if module is None:
        return ""
    if not module.__name__.startswith("weft."):
        return str(getattr(module, "__file__", "") or "")
    return str(Path(*module.__name__.split(".")[1:]).with_suffix(".py").as_posix())


def page_of(facts: dict[str, Any]) -> str:
    """The description of a pass as text."""
    options = ", ".join(f"{item['name']}={item['default'] or item['type']}" for item in facts["options"])
    lines = [f"{facts['name']}{'{' + options + '}' if options else ''}    ({facts['class']}, {facts['source']})"]
    if facts["aliases"]:
        lines.append(f"also {', '.join(facts['aliases'])}")
    runs = f"runs in {', '.join(facts['phases'])}" if facts["phases"] else "runs where it is asked for"
    keeps = "keeps what programs compute" if facts["keeps_meaning"] else "changes signatures or results on purpose"
    lines.append(f"{runs}, from opt={facts['level']} on; {keeps}")
    return "\n".join([*lines, "", facts["doc"], "", facts["about"]]).rstrip()


def phases_command(options: argparse.Namespace) -> int:
    """List the phases in order with the passes of each, those of a target where one is named."""
    target, _ = chosen_target(options)
    rows = [{"phase": name, "passes": [str(item) for item in phase(name, target).passes]} for name in phases()]
    if options.json:
        print_json(rows)
        return 0
    for row in rows:
        print(f"{row['phase']:<10} {', '.join(row['passes']) or '-'}")
    return 0
