"""Loops of kernels that are the same code under other names: compiled once, and called by one name.

    define i32 @weft.loop.conv.1(...) { body }
    define i32 @weft.loop.conv_1.1(...) { body }      left out: who calls it calls @weft.loop.conv.1

Layers of a model differ in one of their loops, and are alike in the others. Only loops are shared: nothing but the
kernels that they are parts of refers to them, and those are written after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from weft.codegen.backends.llvm.asm.module import ModuleWriter

__all__ = ["LOOP", "EqualModules"]

LOOP = "weft.loop."
"""What the names of loops begin with."""
_NAMES = re.compile(r'@(?:weft\.loop\.[\w.]+|"weft\.loop\.[^"]*")')


class EqualModules:
    """The modules that were written, and which loops stand for others."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, str], list[str]] = {}
        self._stands_for: dict[str, str] = {}

    def text_of(self, module: ModuleWriter, kind: object) -> str | None:
        """The text of a module, with calls of loops that are there; None where an equal one of the kind is."""
        definitions = _renamed(module.definitions(), self._stands_for)
        if all(name.startswith(LOOP) for name in module.defined):
            spelled = [module.spelled(name) for name in module.defined]
            nameless = _renamed(definitions, {name: f"@{number}" for number, name in enumerate(spelled)})
            same = self._known.setdefault((kind, nameless), spelled)
            if same is not spelled:
                self._stands_for.update(zip(spelled, same, strict=True))
                return None
        declarations = dict.fromkeys(_renamed(line, self._stands_for) for line in module.declarations())
        return "".join([*declarations, definitions])


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A text with other names of loops."""
    return _NAMES.sub(lambda found: names.get(found[0], found[0]), text) if names else text
