"""`weft ops` and `weft phases`: the operators that the compiler knows, and the steps that it takes."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping
from typing import Any

import weft
from weft.command.report import print_json
from weft.command.targets import chosen_target
from weft.errors import WeftError
from weft.ir.deduction.infer import TypeContext, type_text
from weft.ir.graph import Var
from weft.ir.op import OPS, Example, OpDef, get_op
from weft.ir.types import Type
from weft.transform.infra.phases import phase, phases

__all__ = ["describe_operator", "example_text", "families", "ops_command", "phases_command"]

_WIDTH = 80


def ops_command(options: argparse.Namespace) -> int:
    """List the operators by family, or describe one."""
    if options.name is None:
        rows = {family: [definition.name for definition in members] for family, members in families().items()}
        if options.json:
            print_json(rows)
        else:
            for family, names in rows.items():
                print(f"{family}:")
                print(textwrap.fill(" ".join(names), _WIDTH, initial_indent="    ", subsequent_indent="    "))
        return 0
    facts = describe_operator(get_op(options.name.removeprefix("R.")))
    if options.json:
        print_json(facts)
    else:
        print(_page(facts))
    return 0


def families() -> dict[str, list[OpDef]]:
    """The declared operators by family, both in alphabetical order."""
    found: dict[str, list[OpDef]] = {}
    for definition in sorted(OPS.values(), key=lambda item: (item.family, item.name)):
        found.setdefault(definition.family, []).append(definition)
    return found


def describe_operator(definition: OpDef) -> dict[str, Any]:
    """What there is to say about an operator: name, signature, family, purity, documentation, examples."""
    return {
        "name": definition.name,
        "signature": f"R.{definition.signature}",
        "family": definition.family,
        "pure": definition.pure,
        "doc": definition.doc,
        "examples": [example_text(definition, example) for example in definition.examples],
    }


def example_text(definition: OpDef, example: Example) -> str:
    """An example as a call on types, and the type that comes out: `R.exp(R.Tensor((2,), "float32")) -> ...`."""
    parts = [_value_text(value) for value in example.args]
    parts += [f"{key}={_value_text(value)}" for key, value in example.kwargs.items()]
    call = f"R.{definition.name}({', '.join(parts)})"
    result = _result_type(definition, example)
    return call if result is None else f"{call} -> {type_text(result)}"


def _result_type(definition: OpDef, example: Example) -> Type | None:
    """The type of an example; None for what has a meaning only inside a module."""
    try:
        args = [_stand_in(value) for value in example.args]
        kwargs = {key: _stand_in(value) for key, value in example.kwargs.items()}
        return definition.infer(definition.bind(args, kwargs), TypeContext())
    except WeftError:
        return None


def _stand_in(value: Any) -> Any:
    """A variable for every type among the arguments of an example."""
    if isinstance(value, Type):
        return Var("x", value)
    if isinstance(value, tuple | list):
        return type(value)(_stand_in(item) for item in value)
    return value


def _value_text(value: Any) -> str:
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, tuple | list):
        inner = ", ".join(map(_value_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value) if isinstance(value, weft.ir.Node) or hasattr(value, "terms") else repr(value)


def _page(facts: Mapping[str, Any]) -> str:
    """An operator's description as text."""
    parts = [facts["signature"], textwrap.indent(facts["doc"], "    ")]
    if facts["examples"]:
        parts.append("Examples:\n" + textwrap.indent("\n".join(facts["examples"]), "    "))
    parts.append(f"family {facts['family']}, {'no effects' if facts['pure'] else 'may have effects'}")
    return "\n\n".join(parts)


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
