"""What names stand for while a script is read: names of the scope, symbols, captured values, names of I, R and T."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from weft.dtypes import USUAL_DTYPES, check_dtype
from weft.errors import WeftError
from weft.ir.dim import DimExpr, free_symbols, symbol
from weft.ir.node import Node
from weft.ir.tensor import PrimVar
from weft.script.forms.defaults import DEVICE_KINDS
from weft.script.forms.syntax import ALIASES, NAMES
from weft.script.forms.unsupported import why_unsupported
from weft.script.reader.macros import Macro
from weft.script.reader.scope import Hidden, is_plain, plain_capture
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import MISSING, NAMESPACE_MODULES
from weft.target import Target

__all__ = [
    "adapt",
    "captured_path",
    "captured_value",
    "declared_symbol",
    "dotted_name",
    "dtype_name",
    "global_name",
    "lookup_name",
    "names_module",
    "no_names",
    "slice_of",
    "symbol_dim",
    "undefined_name",
    "unknown_name",
]

# Names of the package itself, by the path behind it.
_OF_THE_PACKAGE = {
    "script.ir_module": "I.ir_module",
    "script.tir": "T.prim_func",
    "target.Target": "T.target",
    **{name: f"R.{name}" for name in ("device", *DEVICE_KINDS.values())},
}
_BUILTIN_HINTS = {
    "float": 'dtypes are strings, as "float32"',
    "int": 'dtypes are strings, as "int64"',
    "bool": 'the dtype is written "bool"',
    "str": "a string is written I.StringType()",
    "print": "a script is read, not run: R.print in a function with pure=False prints when it runs",
    "super": "a script has no classes; functions of the module are called as `cls.f`",
    "self": "functions of the module are called as `cls.f`, and have no `self`",
    **dict.fromkeys(
        ("torch", "F", "nn", "np", "numpy", "jnp", "jax", "math"),
        "a script sees tensors of weft only: R has the operators",
    ),
}
_SHORT_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def lookup_name(session: Session, name: str, tree: ast.AST) -> Any:
    """The meaning of a name; W110 when it has none."""
    found = session.scope.get(name)
    if isinstance(found, Hidden):
        raise session.fail("W119", f"'{name}' is not visible here", tree, found.why)
    if found is not MISSING:
        return found
    if name in session.symbols and not (session.foreign and session.unit.capture(name) is not MISSING):
        return session.level.symbol_value(session, name, tree)
    if name in session.unit.symbols:
        return session.level.symbol_value(session, name, tree)
    found = session.unit.capture(name)
    if found is not MISSING:
        return session.level.captured(session, found, name, tree)
    if name == "cls" or name == session.module.name:
        raise session.fail("W114", f"`{name}` is the module: name one of its functions, `{name}.f`", tree)
    if session.unit.namespace(name):
        raise session.fail("W114", f"`{name}` is a namespace, not a value", tree)
    raise session.level.undefined(session, name, tree)


def undefined_name(session: Session, name: str, tree: ast.AST) -> WeftError:
    """The error for an unknown name."""
    if name == "metadata":
        hint = "print the text with its metadata section: script(show_meta=True)"
        return session.fail("W110", "the text names constants of a metadata section that it does not have", tree, hint)
    hint = _BUILTIN_HINTS.get(name) or did_you_mean(name, {*session.scope.visible(), *session.symbols})
    if hint is None and name in session.module.function_names:
        hint = f"functions of the module are called as `{session.module.name or 'cls'}.{name}`"
    return session.fail("W110", f"undefined name '{name}'", tree, hint)


def symbol_dim(session: Session, name: str, tree: ast.AST) -> Any:
    """What a symbol name stands for at this level."""
    session.symbols.add(name)
    return symbol(name)


def captured_value(session: Session, value: Any, name: str, tree: ast.AST) -> Any:
    """A Python value from outside; W150 when the script cannot hold it."""
    made = adapt(session, value, name, tree)
    if isinstance(made, list):
        session.unit.charge(1 + len(made) // 8, tree)
        return list(made)  # a script that adds to it does not change the program's list
    if isinstance(made, (Node, np.dtype, DimExpr, Macro, Target, tuple)) or is_plain(made):
        return made
    raise session.fail(
        "W150",
        f"'{name}' is a Python {type(value).__name__}, which a script cannot use",
        tree,
        "numbers, strings, dtypes, arrays, tuples, types and functions of weft can be captured; "
        "`I.meta_var(...)` holds any object",
    )


def adapt(session: Session, value: Any, name: str, tree: ast.AST) -> Any:
    """A Python value from outside as what it means in a script, or as it is."""
    value = plain_capture(value)
    if hasattr(value, "__weft_dtype__"):
        return value.__weft_dtype__
    if isinstance(value, TypeVar):
        return session.level.symbol_value(session, value.__name__, tree)
    if isinstance(value, PrimVar) and value.dtype != "handle":
        return session.level.declared_outside(session, name, value, tree)
    if isinstance(value, DimExpr):
        session.symbols.update(free_symbols(value))
        return value
    if isinstance(value, type) and issubclass(value, np.generic):
        return check_dtype(value)
    return value


def declared_symbol(session: Session, name: str, variable: PrimVar, tree: ast.AST) -> Any:
    """A symbol that Python code outside the script declared by `n = T.int64()`."""
    return session.level.symbol_value(session, name, tree)


def dotted_name(session: Session, tree: ast.expr) -> str | None:
    """`R.nn.relu` for such a tree when its root is a namespace, in the spelling of the table."""
    parts: list[str] = []
    while isinstance(tree, ast.Attribute):
        parts.append(tree.attr)
        tree = tree.value
    if not isinstance(tree, ast.Name) or not parts:
        return None
    root = tree.id
    if session.scope.get(root) is not MISSING:
        return None
    space = session.unit.namespace(root)
    if space is None:
        space = _namespace_path(session, root, parts) or _written_path(session, root, parts)
        if space is None:
            return None
    parts.append(space)
    name = ".".join(reversed(parts))
    return ALIASES.get(name, name)


def _written_path(session: Session, root: str, parts: list[str]) -> str | None:
    """The namespace of a path written out from its package (`tvm.script.ir_module`); consumes the path."""
    if root not in ("tvm", "weft") or session.unit.capture(root) is not MISSING:
        return None
    meaning = _OF_THE_PACKAGE.get(".".join(reversed(parts)))
    if meaning is not None:
        space, _, name = meaning.partition(".")
        parts[:] = [name]
        return space
    path = root
    for taken, part in enumerate(reversed(parts), 1):
        path = f"{path}.{part}"
        if path in NAMESPACE_MODULES and taken < len(parts):
            del parts[-taken:]
            return NAMESPACE_MODULES[path]
    return None


def _namespace_path(session: Session, root: str, parts: list[str]) -> str | None:
    """The namespace at the end of a captured module path (`script.relax.add`); consumes the path."""
    value = session.unit.capture(root)
    while isinstance(value, ModuleType) and parts:
        value = getattr(value, parts.pop(), None)
        if isinstance(value, ModuleType) and value.__name__ in {
            "weft.script.ir",
            "weft.script.relax",
            "weft.script.tir",
        }:
            return {"ir": "I", "relax": "R", "tir": "T"}[value.__name__.rpartition(".")[2]]
    return None


def names_module(session: Session, tree: ast.expr) -> bool:
    """Whether an expression is the name of the module around the function (and of nothing nearer)."""
    if not isinstance(tree, ast.Name) or tree.id not in ("cls", session.module.name):
        return False
    return session.scope.get(tree.id) is MISSING and tree.id not in session.symbols


def global_name(session: Session, tree: ast.expr) -> str | None:
    """`f` for `cls.f`, `Module.f`, `cls["f"]`; W110 when the module is known and has no such function."""
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        root, name = tree.value.id, tree.attr
    elif (
        isinstance(tree, ast.Subscript)
        and isinstance(tree.value, ast.Name)
        and isinstance(tree.slice, ast.Constant)
        and isinstance(tree.slice.value, str)
    ):
        root, name = tree.value.id, tree.slice.value
    else:
        return None
    bound = session.scope.get(root)
    if bound is not session.module and (bound is not MISSING or root not in ("cls", session.module.name)):
        return None
    if session.module.name is not None and name not in session.module.function_names:
        known = ", ".join(sorted(session.module.function_names)) or "none"
        hint = did_you_mean(name, session.module.function_names, f"{root}.") or f"it has: {known}"
        raise session.fail("W110", f"the module has no function '{name}'", tree, hint)
    return name


def captured_path(session: Session, tree: ast.expr) -> Any:
    """What `config.sizes["hidden"]` is when its root is a Python object of the user's program, or MISSING."""
    if session.unit.captured is None:
        return MISSING
    if isinstance(tree, ast.Name):
        return MISSING if session.scope.get(tree.id) is not MISSING else session.unit.capture(tree.id)
    if isinstance(tree, ast.Attribute) and not tree.attr.startswith("_"):
        base = captured_path(session, tree.value)
        return MISSING if base is MISSING or isinstance(base, Node) else getattr(base, tree.attr, MISSING)
    return item_of_path(session, tree, captured_path)


def item_of_path(session: Session, tree: ast.expr, path: Callable[[Session, ast.expr], Any]) -> Any:
    """What `sizes["hidden"]` is where `sizes`, found by a reader of paths, is a collection of Python; or MISSING."""
    base = path(session, tree.value) if isinstance(tree, ast.Subscript) else MISSING
    if not isinstance(tree, ast.Subscript) or not isinstance(base, (tuple, list, dict)):
        return MISSING
    key = slice_of(session, tree.slice)
    return session.fold(lambda: base[key], tree)


def dtype_name(name: str) -> str | None:
    """`float32` for `T.float32`."""
    if name.startswith("T.") and name.count(".") == 1:
        short = _SHORT_DTYPES.get(name[2:], name[2:])
        try:
            return check_dtype(short)
        except WeftError:
            return None
    return None


def unknown_name(session: Session, name: str, tree: ast.AST) -> WeftError:
    """The error for a name that I, R or T does not have."""
    why = why_unsupported(name)
    if why is not None:
        return session.fail("W115", f"`{name}` is not read: {why}", tree)
    root = name.partition(".")[0]
    known = [full for full in NAMES if full.startswith(root + ".")]
    known += [f"T.{dtype}" for dtype in USUAL_DTYPES] if root == "T" else []
    known += session.level.extra_names(session, root)
    inside = [full for full in known if full.startswith(name + ".")]
    if inside:
        return session.fail("W114", f"`{name}` is a namespace, not a value", tree, _contents(inside))
    if name in known:
        return session.fail("W111", f"`{name}` has no value here", tree, "it belongs inside a decorated function")
    hint = did_you_mean(name, known)
    return session.fail("W111", f"`{name}` does not exist", tree, hint)


def _contents(names: list[str]) -> str:
    """The first names of a namespace, and how many it has."""
    shown = ", ".join(f"`{name}`" for name in sorted(names)[:3])
    return f"it has {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def is_a_name(session: Session, name: str) -> bool:
    """Whether I, R or T has a name."""
    root = name.partition(".")[0]
    return name in NAMES or dtype_name(name) is not None or name in session.level.extra_names(session, root)


def no_names(session: Session, root: str) -> list[str]:
    """More names of a namespace for suggestions."""
    return []


def slice_of(session: Session, tree: ast.expr) -> Any:
    """A plain index or slice."""
    if isinstance(tree, ast.Slice):
        parts = [session.constant(part) if part is not None else None for part in (tree.lower, tree.upper, tree.step)]
        return slice(*parts)
    return session.constant(tree)
