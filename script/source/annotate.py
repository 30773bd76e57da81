"""Texts for reading: parts underlined with carets, lines numbered.

    marked_nodes(root, targets)     each target as the chain of nodes from it up to the root
    Marking                         a mixin of printers that marks the texts of nodes
    decorated_text(text, ...)       marks as carets below the lines, numbers before them

    path ::= "root" ("." field | "[" index or key "]")*      as `first_mismatch` writes it
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from weft.errors import ScriptError
from weft.ir.graph import Var
from weft.ir.node import FrozenMap, Node
from weft.ir.structure.visit import children
from weft.ir.tensor import Buffer, PrimVar
from weft.script.source.diagnostics import did_you_mean

__all__ = ["Chain", "Marking", "decorated_text", "marked_nodes"]

Chain = list[Any]  # a node, then what holds it, up to the root
_WIDEST = 120  # carets below one part of a line: where it starts is what is looked for
_OPEN, _CLOSE = "\ue000", "\ue001"  # no text of a script holds them: strings are written with escapes
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
    raise ScriptError(
        f"{path!r} leads nowhere at {step.group()!r}", code="W114", hint=did_you_mean(name or "", known)
    )  # fmt: skip


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


class Marking:
    """Marks the texts of chosen nodes; of what a text does not show, the nearest node around it that it shows."""

    chains: Sequence[Chain] = ()
    marked: frozenset[int] = frozenset()

    def reset_marks(self, chains: Sequence[Chain]) -> None:
        """Look for the nodes of all chains first."""
        self.chains = chains
        self.marked = frozenset(id(node) for chain in chains for node in chain)
        self.shown: set[int] = set()
        self.holders: list[int] = []
        self.only_in: dict[int, set[int]] = {}

    def choose_marks(self) -> None:
        """After a first printing: of each chain keep the innermost node that was shown."""
        chosen: set[int] = set()
        for chain in self.chains:
            position = next((index for index, node in enumerate(chain) if id(node) in self.shown), None)
            if position is None:
                continue
            node = chain[position]
            chosen.add(id(node))
            holder = next((item for item in chain[position + 1 :] if isinstance(item, Node)), None)
            if isinstance(node, Var) and holder is not None:
                self.only_in.setdefault(id(node), set()).add(id(holder))
        self.marked = frozenset(chosen)

    def _is_marked(self, node: Any) -> bool:
        if id(node) not in self.marked:
            return False
        self.shown.add(id(node))
        places = self.only_in.get(id(node))
        return places is None or not self.holders or self.holders[-1] in places

    def _around(self, node: Any, text: str) -> str:
        return f"{_OPEN}{text}{_CLOSE}" if self._is_marked(node) else text

    def _held(self, node: Any, show: Any, *args: Any) -> Any:
        self.holders.append(id(node))
        try:
            return show(*args)
        finally:
            self.holders.pop()

    def value(self, value: Any) -> str:
        """A graph-level value."""
        return self._around(value, self._held(value, super().value, value))  # type: ignore[misc]

    def leaf(self, value: Any) -> str:
        """A graph-level leaf."""
        return self._around(value, super().leaf(value))  # type: ignore[misc]

    def show_type(self, ty: Any) -> str:
        """A type."""
        return self._around(ty, super().show_type(ty))  # type: ignore[misc]

    def prim_pieces(self, expr: Any) -> tuple[list[Any], int]:
        """A tensor-level expression."""
        pieces, precedence = super().prim_pieces(expr)  # type: ignore[misc]
        return ([_OPEN, *pieces, _CLOSE] if self._is_marked(expr) else pieces), precedence

    def region(self, region: Any) -> list[Any]:
        """A box of a buffer."""
        pieces = super().region(region)  # type: ignore[misc]
        return [_OPEN, *pieces, _CLOSE] if self._is_marked(region) else pieces

    def statement(self, stmt: Any) -> None:
        """A tensor-level statement: its first line is marked."""
        self._marked_lines(stmt, super().statement, stmt)  # type: ignore[misc]

    def binding(self, binding: Any, *args: Any) -> None:
        """A binding."""
        self._marked_lines(binding, super().binding, binding, *args)  # type: ignore[misc]

    def function(self, written: str, name: str, function: Any) -> None:
        """A function: its head is marked."""
        self._marked_lines(function, super().function, written, name, function)  # type: ignore[misc]

    def _marked_lines(self, node: Any, show: Any, *args: Any) -> None:
        lines: list[str] = self.lines  # type: ignore[attr-defined]
        start = len(lines)
        self._held(node, show, *args)
        if len(lines) > start and self._is_marked(node):
            head = next((at for at in range(start, len(lines)) if lines[at].lstrip().startswith("def ")), start)
            body = lines[head].lstrip(" ")
            lines[head] = f"{lines[head][: len(lines[head]) - len(body)]}{_OPEN}{body}{_CLOSE}"


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
        if char in (_OPEN, _CLOSE):
            depth += 1 if char == _OPEN else -1
            continue
        clean.append(char)
        carets.append("^" if depth else " ")
    below = re.sub(r"\^+", lambda run: run.group()[:_WIDEST].ljust(len(run.group())), "".join(carets))
    return "".join(clean), below.rstrip()

