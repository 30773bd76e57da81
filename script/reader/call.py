"""Reading calls: arguments bound to the holes of a form as Python would bind them, and attribute data."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from weft.ir.dim import DimExpr, ceildiv, maximum, minimum
from weft.ir.node import FrozenMap, Node, freeze
from weft.ir.types import VDevice
from weft.script.forms.syntax import (
    REQUIRED,
    TYPES,
    Form,
)
from weft.script.reader.device import why_no_device
from weft.script.reader.expression import ExpressionReader
from weft.script.reader.folding import rounded
from weft.script.reader.scope import describe, is_dim
from weft.script.source.budget import OPERATION
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import MISSING
from weft.target import Target

__all__ = ["BUILTINS", "OLD_KEYWORDS", "CallReader", "KnownValue", "signature_text"]

OLD_KEYWORDS = {"out_sinfo": "out_ty", "sinfo_args": "ty_args", "py_func_name": "func_name"}

BUILTINS: dict[str, Callable[..., Any]] = {
    "float": float, "int": int, "bool": bool, "len": len, "abs": abs, "min": min, "max": max,
    "ceildiv": lambda a, b: -(-a // b), "round": rounded,
}  # fmt: skip


class KnownValue(ast.expr):
    """A value that is known already, in the place of a syntax tree."""

    _fields = ()

    def __init__(self, item: Any, place: ast.AST) -> None:
        super().__init__()
        self.item = item
        ast.copy_location(self, place)


class CallReader(ExpressionReader):
    """Reads calls of forms and of the few Python functions that scripts know."""

    def _call(self, tree: ast.Call) -> Any:
        name = self.dotted(tree.func)
        if name is not None:
            return self.call_named(name, tree)
        found = self.call_static(tree)
        if found is not MISSING:
            return found
        if isinstance(tree.func, ast.Name) and self.scope.get(tree.func.id) is MISSING:
            found = self.call_builtin(tree.func.id, tree)
            if found is not MISSING:
                return found
        return self.call_other(tree)

    def call_static(self, tree: ast.Call) -> Any:
        """A call of what is known while reading (see `read_static`), or MISSING."""
        return MISSING

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """A call of a name of I, R or T."""
        self.unit.charge(OPERATION, tree)
        if name in TYPES:
            return self.type_call(name, tree)
        method = self._FORMS.get(name)
        if method is not None:
            return method(self, tree)
        raise self.unknown(name, tree.func)

    def call_other(self, tree: ast.Call) -> Any:
        """A call of anything else."""
        if isinstance(tree.func, ast.Name):
            self.lookup(tree.func.id, tree.func)
        raise self.fail("W115", f"`{ast.unparse(tree.func)[:60]}` cannot be called in a script", tree.func)

    def call_builtin(self, name: str, tree: ast.Call) -> Any:
        """A call of one of the few Python functions that scripts know, or MISSING."""
        if name not in BUILTINS:
            return MISSING
        if tree.keywords:
            raise self.fail("W113", f"{name} takes no keyword arguments here", tree)
        values = [self.value(argument) for argument in tree.args]
        if name in ("min", "max", "ceildiv") and values and all(is_dim(value) for value in values):
            function: Any = {"min": minimum, "max": maximum, "ceildiv": ceildiv}[name]
            return self.fold(lambda: function(*values), tree)
        if all(self.known(value, tree) for value in values) and name != "ceildiv":
            for value in values:
                if isinstance(value, range) and name in ("min", "max"):
                    self.check_rounds(value, self.unit.limits.unrolled, tree)
            return self.fold_known(BUILTINS[name], tuple(values), tree)
        return self.builtin_of(name, values, tree)

    def builtin_of(self, name: str, values: list[Any], tree: ast.Call) -> Any:
        """A Python function applied to IR values."""
        raise self.fail("W115", f"`{name}` cannot be applied to {describe(values[0]) if values else 'nothing'}", tree)

    def bind(self, form: Form, tree: ast.Call) -> dict[str, Any]:
        """The values of a call's arguments by hole name, each read by its kind; W113 when they do not fit the form."""
        values: dict[str, Any] = {}
        positional = form.positional
        star = next((hole for hole in form.holes if hole.star), None)
        rest: list[Any] = []
        arguments = self._spread(tree)
        for index, argument in enumerate(arguments):
            if index < len(positional):
                hole = positional[index]
                values[hole.name] = hole.kind.read(self, argument)
            elif star is not None:
                rest.append(star.kind.read(self, argument))
            else:
                most = len(positional)
                raise self.fail(
                    "W113",
                    f"{form.name} takes at most {most} argument{'s' * (most != 1)}, got {len(arguments)}",
                    argument,
                )
        by_name = {hole.name: hole for hole in form.holes if not hole.star}
        for keyword in tree.keywords:
            if keyword.arg is None:
                raise self.fail("W115", "** is not part of the script", keyword.value)
            name = (form.old_names or {}).get(keyword.arg, OLD_KEYWORDS.get(keyword.arg, keyword.arg))
            hole = by_name.get(name)
            if hole is None:
                hint = did_you_mean(name, by_name) or f"it takes: {', '.join(by_name) or 'no keyword arguments'}"
                raise self.fail("W113", f"{form.name} has no argument '{keyword.arg}'", keyword, hint)
            if name in values:
                raise self.fail("W113", f"{form.name} got '{name}' twice", keyword)
            values[name] = hole.kind.read(self, keyword.value)
        for hole in form.holes:
            if hole.star:
                values[hole.name] = tuple(rest)
            elif hole.name not in values:
                if hole.default is REQUIRED:
                    raise self.fail(
                        "W113",
                        f"{form.name} lacks its argument '{hole.name}'",
                        tree,
                        f"it is written {signature_text(form)}",
                    )
                values[hole.name] = hole.default
        return values

    def _spread(self, tree: ast.Call) -> list[ast.expr]:
        """The positional argument trees, with `*(a, b)` written out."""
        result: list[ast.expr] = []
        for argument in tree.args:
            if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List)):
                result.extend(argument.value.elts)
            elif isinstance(argument, ast.Starred):
                parts = self.spread(self.value(argument.value), argument)
                result.extend(KnownValue(item, argument) for item in parts)  # type: ignore[misc]
            else:
                result.append(argument)
        return result

    def _known(self, tree: Any) -> Any:
        return tree.item

    def constant(self, tree: ast.expr) -> Any:
        """A plain Python value; W114 for anything else."""
        value = self.value(tree)
        if isinstance(value, np.dtype):
            return value
        if not self.known(value, tree):
            raise self.fail("W114", f"expected a constant, got {describe(value)}", tree)
        return value

    def read_anything(self, tree: ast.expr) -> ast.expr:
        """The tree itself: the form's own method reads it."""
        return tree

    def read_literal(self, tree: ast.expr) -> Any:
        """Attribute data."""
        return self.attribute_value(self.value(tree), tree)

    def attribute_value(self, value: Any, tree: ast.expr) -> Any:
        """Attribute data in frozen form; W114 for what cannot be one."""
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise self.fail("W114", "the keys of attributes are strings", tree)
            return FrozenMap({key: self.attribute_value(item, tree) for key, item in value.items()})
        if isinstance(value, (list, tuple)):
            return tuple(self.attribute_value(item, tree) for item in value)
        if value is None or isinstance(value, (bool, int, float, str, FrozenMap, DimExpr, Node)):
            return freeze(value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Target) or hasattr(value, "content_hash"):
            return value
        raise self.fail("W114", f"{describe(value)} cannot be attribute data", tree)

    def read_vdevice(self, tree: ast.expr) -> VDevice | str:
        """A virtual device: its name in the module's infos, or written out."""
        value = self.value(tree)
        if isinstance(value, str):
            self.check_device(value, tree)
        if isinstance(value, (VDevice, str)):
            return value
        raise self.fail("W114", f"expected a virtual device, got {describe(value)}", tree)

    def check_device(self, text: str, tree: ast.AST) -> None:
        """W111 for the name of a virtual device that the module does not have."""
        why = why_no_device(text, self.module.infos) if self.module.name is not None else None
        if why is not None:
            raise self.fail("W111", f"the module has no virtual device {text!r}", tree, why)

    _FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}


def signature_text(form: Form) -> str:
    """How a form is written."""
    parts: list[str] = []
    for hole in form.holes:
        if hole.star:
            parts.append(f"*{hole.name}")
        elif hole.default is REQUIRED:
            parts.append(hole.name)
        else:
            parts.append(f"{hole.name}={hole.default!r}")
    return f"{form.name}({', '.join(parts)})"
