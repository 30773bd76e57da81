"""The table of declared operators, and the decorator that adds to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from weft.ir.graph import Expr
from weft.ir.op.declare import Arguments, Builtin, Example, Lower, OpDef, Param, Reference, Rule
from weft.ir.op.layout_rules.reasons import REASONS
from weft.ir.op.precision import FAMILIES, UNDECLARED, Precision

__all__ = ["OPS", "OpFacts", "Reference", "add_op", "family_of", "register_op"]

OPS: dict[str, OpDef] = {}


def add_op(definition: OpDef) -> OpDef:
    """Add a declaration to the table; a second one of the same name is refused."""
    if definition.name in OPS:
        raise ValueError(f"operator {definition.name} is declared twice")
    if not definition.layout and definition.family in REASONS:
        definition = replace(definition, layout=REASONS[definition.family])
    if definition.precision is UNDECLARED and definition.family in FAMILIES:
        definition = replace(definition, precision=FAMILIES[definition.family])
    OPS[definition.name] = definition
    return definition


class OpFacts(TypedDict, total=False):
    """The fields of OpDef that a declaration states."""

    doc: str
    lowering: Lower | None
    decompose: Callable[[Arguments, Any], Expr] | None
    numpy: Reference | None
    pure: bool
    examples: tuple[Example, ...]
    builtin: Builtin | str
    family: str
    selects: str
    layout: Callable[..., Any] | str
    precision: Precision


def register_op(name: str, params: Sequence[Param], **facts: Unpack[OpFacts]) -> Callable[[Rule], OpDef]:
    """Declare an operator: decorates its type rule, whose docstring is the documentation; `facts` are the fields of
    OpDef.

    >>> from weft.ir.op import Example, Param, register_op, OPS
    >>> from weft.ir.types import TensorType
    >>> @register_op("demo.same", [Param("x")], builtin="an example", pure=True)
    ... def same(args, context):
    ...     "The value itself."
    ...     return context.type_of(args.x)
    >>> OPS.pop("demo.same").signature
    'demo.same(x)'
    """

    def declare(rule: Rule) -> OpDef:
        facts.setdefault("doc", inspect.getdoc(rule) or "")
        facts.setdefault("family", family_of(rule.__module__))
        return add_op(OpDef(name, tuple(params), rule, **facts))

    return declare


def family_of(module: str) -> str:
    """The family of a declaration: the path of a file of ours below this folder, the last part of another name."""
    inside = module.removeprefix(f"{__package__}.")
    return inside.replace(".", "_") if inside != module else module.rpartition(".")[2]
