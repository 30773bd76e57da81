"""Pages of operators in Markdown, made of their declarations: docs/operators/ and `weft ops --page`.

family_page(family, definitions)  a page of docs/operators/
package_page(package)             the page of a package from outside: all operators that it declares
operators_of(package)             those operators, by name
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.command.listing import describe_operator, facts_of
from weft.ir.op import OPS, OpDef

__all__ = ["cell", "heading_anchor", "operators_of", "operators_page", "title"]

_LEGEND = (
    "In the examples a type stands for a value of that type, and the type after the arrow is the one that weft\n"
    "deduces. `shapes` are those of the operands and of the result in symbols; `dtypes` is what the dtype of the\n"
    "first operand, and of those like it, gives; `becomes` is what a call is lowered to, before fusion; `cost` is\n"
    "the bytes that it reads and writes, at the first of the shapes, and the operations of sums of products."
)


def cell(message: str) -> str:
    """A message as one cell of a Markdown table."""
    return " ".join(message.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def title(family: str) -> str:
    """What a page of a family is called."""
    return family.replace("_", " ").capitalize()


def heading_anchor(name: str) -> str:
    """The anchor that the heading of an operator has on a page."""
    return name.replace(".", "")


def operators_page(heading: str, definitions: Iterable[OpDef], more: str = "") -> str:
    """A page of operators: what is declared, and what follows from the declarations; `more` ends its introduction.

    >>> from weft.ir.op import get_op
    >>> print(operators_page("Mine", [get_op("exp")]).splitlines()[0])
    # Mine
    """
    return "\n\n".join([f"# {heading}", f"{_LEGEND}{more}", *map(_entry, definitions)]) + "\n"


def operators_of(package: str) -> list[OpDef]:
    """The operators that the modules of a package declare, by name: those with a function of one of its modules."""
    return [definition for _, definition in sorted(OPS.items()) if _is_declared_in(definition, package)]


def _is_declared_in(definition: OpDef, package: str) -> bool:
    parts = (definition.rule, definition.lowering, definition.decompose, definition.numpy)
    modules = (getattr(part, "__module__", None) or "" for part in parts)
    return any(module == package or module.startswith(f"{package}.") for module in modules)


def _entry(definition: OpDef) -> str:
    """One operator below its heading."""
    facts = describe_operator(definition)
    effects = "" if facts["pure"] else "\n\nMay have effects."
    rows = [f"| {name} | {cell(text)} |" for name, text in facts_of(facts)]
    parts = [f"## {facts['name']}\n\n`{facts['signature']}`\n\n{facts['doc']}{effects}"]
    parts.append("\n".join(["| | |", "|---|---|", *rows]))
    lines = [*facts["examples"], *([facts["result"]] if facts["result"] else [])]
    if lines:
        parts.append("```\n" + "\n".join(lines) + "\n```")
    return "\n\n".join(parts)
