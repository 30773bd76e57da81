"""Texts for reading: parts underlined with carets, lines numbered.

marked_nodes(root, targets)     each target as the chain of nodes from it up to the root
decorated_text(text, ...)       marks as carets below the lines, numbers before them

path ::= "root" ("." field | "[" index or key "]")*      as `first_mismatch` writes it
"""

from __future__ import annotations

import re
from typing import Any

from weft.errors import ScriptError
from weft.ir.node import FrozenMap, Node
from weft.ir.structure.visit import children
from weft.ir.tensor import Buffer, PrimVar
from weft.script.source.diagnostics import did_you_mean

__all__ = ["CLOSE", "OPEN", "Chain", "decorated_text", "marked_nodes"]

Chain = list[Any]  # a node, then what holds it, up to the root
_WIDEST = 120  # carets below one part of a line: where it starts is what is looked for
OPEN, CLOSE = "\ue000", "\ue001"  # no text of a script holds them: strings are written with escapes
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def marked_nodes(root: Any, targets: Any) -> list[Chain]:
    """Nodes and paths as chains of nodes; W114 for what is not inside the root."""
    items = targets if isinstance(targets, (list, tuple, set, frozenset)) else [targets]
    return [_chain_of_path(root, item) if isinstance(item, str) else _chain_of_node(root, item) for item in items]


def _chain_of_path(root: Any, path: str) -> Chain:
    text = path.split(": ")[0].strip()
    text = text.removeprefix("root")
    current, chain, position = root, [root], 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise ScriptError(f"{path!r} is no path", code="W114", hint='a path is written "root.body.blocks[0]"')
        position = step.end()
        current = _stepped(current, step, path)
        chain.insert(0, current)
    if isinstance(chain[0], (PrimVar, Buffer)) and len(chain) > 1:
        chain.pop(0)  # it stands in many places: what holds it stands in one
    return chain


def _stepped(current: Any, step: re.Match[str], path: str) -> Any:
    name, index, *keys = step.groups()
    key = next((key for key in keys if key is not None), None)
    try:
        if name is not None and isinstance(current, Node) and not name.startswith("_"):
            return getattr(current, name)
        if index is not None and isinstance(current, tuple):
            return current[int(index)]
        if key is not None and isinstance(current, FrozenMap):
            return current[key]
    except (AttributeError, IndexError, KeyError):
        pass
    known = current.__dataclass_fields__ if isinstance(current, Node) else ()  # type: ignore[attr-defined]
    raise ScriptError(f"{path!r} leads nowhere at {step.group()!r}", code="W114", hint=did_you_mean(name or "", known))


def _chain_of_node(root: Any, target: Any) -> Chain:
    """The first place of a node below the root."""
    holders: dict[int, Any] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node is target:
            chain = [node]
            while id(chain[-1]) in holders:
                chain.append(holders[id(chain[-1])])
            return chain
        for child in children(node):
            if id(child) not in holders and child is not root:
                holders[id(child)] = node
                stack.append(child)
    raise ScriptError(f"the {type(target).__name__} to underline is not in the text", code="W114")


def decorated_text(text: str, numbers: bool) -> str:
    """The text with carets below what is marked, and with numbers before its lines."""
    lines = text.rstrip("\n").split("\n")
    width = len(str(len(lines))) if numbers else 0
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        clean, carets = _carets(line)
        gutter = f"{number:>{width}} | " if numbers else ""
        result.append((gutter + clean).rstrip())
        if carets:
            result.append((" " * width + " | " if numbers else "") + carets)
    return "\n".join(result) + "\n"


def _carets(line: str) -> tuple[str, str]:
    clean: list[str] = []
    carets: list[str] = []
    depth = 0
    for char in line:
        if char in (OPEN, CLOSE):
            depth += 1 if char == OPEN else -1
            continue
        clean.append(char)
        carets.append("^" if depth else " ")
    below = re.sub(r"\^+", lambda run: run.group()[:_WIDEST].ljust(len(run.group())), "".join(carets))
    return "".join(clean), below.rstrip()
