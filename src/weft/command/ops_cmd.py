"""`weft ops`: the operators by family, one of them, a page of Markdown about several, stubs for editors.

Installed plug-ins are loaded first, so that theirs are there too.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import weft
from weft.command.inputs.files import InputError, write_file
from weft.command.inputs.targets import UsageError
from weft.command.listing import describe_operator, facts_of, families
from weft.command.operators.pages import operators_of, operators_page, title
from weft.command.operators.stubs import stub_package
from weft.command.report import print_json, say
from weft.ir.op import get_op

__all__ = ["ops_command"]

_WIDTH = 80


def ops_command(options: argparse.Namespace) -> int:
    """List the operators by family, describe one, print a page, or write stubs."""
    weft.load_plugins()
    name = None if options.name is None else options.name.removeprefix("R.")
    if options.stubs is not None:
        _write_stubs(Path(options.stubs))
    elif options.page:
        _print_page(name, options.json)
    elif name is None:
        _print_families(options.json)
    else:
        facts = describe_operator(get_op(name))
        print_json(facts) if options.json else print(_described(facts))
    return 0


def _print_families(as_json: bool) -> None:
    rows = {family: [definition.name for definition in members] for family, members in families().items()}
    if as_json:
        print_json(rows)
        return
    for family, names in rows.items():
        print(f"{family}:")
        print(textwrap.fill(" ".join(names), _WIDTH, initial_indent="    ", subsequent_indent="    "))


def _print_page(name: str | None, as_json: bool) -> None:
    """The page of a package, else of a family, else of an operator; as JSON what is said of each operator on it."""
    if name is None:
        raise UsageError("--page needs a NAME", hint="a package that declares operators, a family, or an operator")
    declared, family = operators_of(name), families().get(name)
    definitions = declared or family or [get_op(name)]
    if as_json:
        print_json(list(map(describe_operator, definitions)))
    else:
        heading = f"Operators of {name}" if declared else title(name) if family else f"`R.{name}`"
        print(operators_page(heading, definitions), end="")


def _write_stubs(folder: Path) -> None:
    for name, text in stub_package().items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}", file=str(path)) from None
        write_file(str(path), partial(_write, text))
    say(f"wrote {folder / 'weft-stubs'}: install it beside weft, or make {folder} the type checker's path of stubs")


def _write(text: str, path: Path) -> int:
    return path.write_text(text, encoding="utf-8")


def _described(facts: Mapping[str, Any]) -> str:
    """An operator's description as text."""
    parts = [facts["signature"], textwrap.indent(facts["doc"], "    ")]
    if facts["examples"]:
        parts.append("Examples:\n" + textwrap.indent("\n".join(facts["examples"]), "    "))
    parts.append("\n".join(f"{name:<8} {text}" for name, text in facts_of(facts)))
    if facts["result"]:
        parts.append("With numbers:\n" + textwrap.indent(facts["result"], "    "))
    parts.append(f"family {facts['family']}, {'no effects' if facts['pure'] else 'may have effects'}")
    return "\n\n".join(parts)
