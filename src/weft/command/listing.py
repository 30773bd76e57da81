"""The operators that are declared, by family, and what there is to say about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import weft
from weft.command.operators.facts import Sample, becomes, cost, dtypes_taken, result_of, samples, shapes
from weft.ir.deduction.infer import type_text
from weft.ir.op import OPS, Example, OpDef
from weft.ir.types import Type

__all__ = ["describe_operator", "example_text", "facts_of", "families"]


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
