"""`weft ops` and `weft phases`: the operators that the compiler knows, and the steps that it takes."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import weft
from weft.command.inputs.targets import chosen_target
from weft.command.operator_facts import Sample, becomes, cost, dtypes_taken, result_of, samples, shapes
from weft.command.report import print_json
from weft.ir.deduction.infer import type_text
from weft.ir.op import OPS, Example, OpDef, get_op
from weft.ir.types import Type
from weft.transform.infra.phases import phase, phases

__all__ = ["describe_operator", "example_text", "facts_of", "families", "ops_command", "phases_command"]

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


_PACKAGES = ("elementwise_", "indexing_", "program_", "reductions_")
"""Folders of declarations that are no families to readers; those of `nn_` and `vision_` are part of the names."""


def families() -> dict[str, list[OpDef]]:
    """The declared operators by family, both in alphabetical order."""
    found: dict[str, list[OpDef]] = {}
    for definition in sorted(OPS.values(), key=lambda item: (_family(item), item.name)):
        found.setdefault(_family(definition), []).append(definition)
    return found


def _family(definition: OpDef) -> str:
    package = next((name for name in _PACKAGES if definition.family.startswith(name)), "")
    return definition.family.removeprefix(package)


def describe_operator(definition: OpDef) -> dict[str, Any]:
    """What there is to say about an operator: its declaration, and what follows from it (`operator_facts`)."""
    found = samples(definition)
    numbers = (result_of(sample) for sample in found)
    return {
        "name": definition.name,
        "signature": f"R.{definition.signature}",
        "family": _family(definition),
        "pure": definition.pure,
        "doc": definition.doc,
        "shapes": list(dict.fromkeys(text for sample in found if sample.symbols and (text := shapes(sample))))[:3],
        "dtypes": dtypes_taken(definition),
        "becomes": becomes(definition),
        "cost": cost(found[0]) if found else None,
        "examples": [example_text(definition, example) for example in definition.examples],
        "result": next((text for text in numbers if text is not None), None),
    }


def example_text(definition: OpDef, example: Example) -> str:
    """An example as a call on types, and the type that comes out: `R.exp(R.Tensor((2,), "float32")) -> ...`."""
    parts = [_value_text(value) for value in example.args]
    parts += [f"{key}={_value_text(value)}" for key, value in example.kwargs.items()]
    call = f"R.{definition.name}({', '.join(parts)})"
    sample = Sample.of(definition, example)
    return call if sample is None else f"{call} -> {type_text(sample.type)}"


def _value_text(value: Any) -> str:
    if isinstance(value, Type):
        return type_text(value)
    if isinstance(value, tuple | list):
        inner = ", ".join(map(_value_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value) if isinstance(value, weft.ir.Node) or hasattr(value, "terms") else repr(value)


def facts_of(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What follows from a declaration, as rows: (name, text)."""
    for text in facts["shapes"]:
        yield "shapes", text
    for name in ("dtypes", "becomes", "cost"):
        if facts[name]:
            yield name, facts[name]


def _page(facts: Mapping[str, Any]) -> str:
    """An operator's description as text."""
    parts = [facts["signature"], textwrap.indent(facts["doc"], "    ")]
    if facts["examples"]:
        parts.append("Examples:\n" + textwrap.indent("\n".join(facts["examples"]), "    "))
    parts.append("\n".join(f"{name:<8} {text}" for name, text in facts_of(facts)))
    if facts["result"]:
        parts.append("With numbers:\n" + textwrap.indent(facts["result"], "    "))
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
