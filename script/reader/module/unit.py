"""Reading whole units: a module, or one function.

`parse(text)` reads text with the fixed prelude and evaluates nothing. `read_unit` reads one definition of a larger
text; the decorators use it with the user's live names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from weft.errors import Span, WeftError
from weft.ir.attrs import CARRIED
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.ir.types import FuncType
from weft.script.forms.syntax import ALL_FORMS, REWRITER, SIDES
from weft.script.reader.definition import Definition, definition_options
from weft.script.reader.expression.level import session_around
from weft.script.reader.graph.function import read_function, read_signature, refuse_defaults, signature_of
from weft.script.reader.graph.level import graph_session
from weft.script.reader.module.body import check_functions, read_tensor_function
from weft.script.reader.module.members import read_module
from weft.script.reader.module.metadata import declare_metadata
from weft.script.reader.module.prelude import declare, declare_macro, import_names, is_harmless
from weft.script.reader.scope import ModuleScope
from weft.script.source.blobs import Blobs, as_blobs
from weft.script.source.diagnostics import Limits, fail
from weft.script.source.text import Unit, make_source, parse_python, read_deeply

__all__ = ["parse", "read_unit"]

_FUTURE_VERSIONS = "weft-script"


def parse(
    text: str, *, filename: str = "<text>", blobs: Blobs | None = None, limits: Limits | None = None
) -> IRModule | Function | PrimFunc:
    """The module or function that a text defines; nothing of the text is evaluated, imported or opened.

    Errors: ScriptError W101 (syntax), W103 (limits), W104 (no unit, or several), W11x-W15x (see `diagnostics`), and the
    errors of type deduction, each with the place in the text.

    >>> parse('''
    ... @R.function
    ... def main(x: R.Tensor(("n", 4), "float32")):
    ...     return x
    ... ''').params[0].name
    'x'
    """
    if not isinstance(text, str):
        raise fail("W101", f"a script is a string, got {type(text).__name__}")
    source, limits = make_source(filename, text), limits or Limits()
    tree = parse_python(source, limits)

    def read() -> IRModule | Function | PrimFunc:
        unit = Unit(source, limits, blobs=as_blobs(blobs))
        _check_version(unit)
        definitions = list(_top_level(unit, tree))
        if len(definitions) != 1:
            raise _not_one(unit, definitions)
        return read_unit(unit, definitions[0])

    return read_deeply(tree, read)


def _check_version(unit: Unit) -> None:
    for line in unit.source.text.split("\n", 5)[:5]:
        words = line.lstrip("# ").split()
        if line.startswith("#") and len(words) == 2 and words[0] == _FUTURE_VERSIONS:
            if words[1] != "1":
                raise fail("W104", f"the text is weft-script {words[1][:20]}; this weft reads version 1")


def _not_one(unit: Unit, definitions: list[Definition]) -> WeftError:
    if not definitions:
        return fail(
            "W104",
            "the text defines nothing to read",
            Span(unit.source, 0, 0),
            hint="it needs an @I.ir_module class, an @R.function or a @T.prim_func",
        )
    names = ", ".join(definition.name for definition in definitions)
    return fail(
        "W104",
        f"the text defines several units: {names}",
        unit.name_span(definitions[1]),
        hint="put them in one @I.ir_module class",
    )


def _top_level(unit: Unit, tree: ast.Module) -> Iterator[Definition]:
    """The definitions of a text; imports become aliases, declarations of symbols are noted."""
    session = session_around(unit, ModuleScope())
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            import_names(unit, statement)
        elif isinstance(statement, ast.FunctionDef) and declare_macro(session, statement):
            continue
        elif isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            yield statement
        elif is_harmless(statement) or declare_metadata(unit, statement):
            continue
        elif not declare(session, statement):
            raise session.fail(
                "W104", "only imports, symbols, constants and decorated definitions can stand here", statement
            )


def read_unit(unit: Unit, tree: Definition) -> IRModule | Function | PrimFunc:
    """The module or function that a definition stands for."""
    session = session_around(unit, ModuleScope())
    kind, options = definition_options(session, tree)
    if isinstance(tree, ast.ClassDef):
        if kind == "R.rewriter":
            return _rewriter(unit, tree)
        if kind != "I.ir_module":
            raise fail("W104", f"@{kind} on a class", unit.name_span(tree), hint="a class takes @I.ir_module")
        module = read_module(unit, tree, check=bool(options["check_well_formed"]))
        target = options["target"]
        return module if target is None else module.with_attr(CARRIED, target)
    if kind in ("I.ir_module", "R.rewriter"):
        raise fail("W104", f"@{kind} on a function", unit.name_span(tree), hint="use @R.function or @T.prim_func")
    module = ModuleScope()
    if kind == "T.prim_func":
        kernel = read_tensor_function(unit, module, tree, options, options["name"])
        if options["check_well_formed"]:
            check_functions(unit, {kernel.name: kernel}, [kernel.name])
        return kernel
    graph = graph_session(unit, module, _Lone(tree.name))
    read_signature(graph, tree)
    refuse_defaults(graph)
    if isinstance(graph.context.functions, _Lone) and graph.ret_type is not None:
        graph.pure = options["pure"]
        graph.context.functions[tree.name] = signature_of(graph)
    made = read_function(graph, tree, pure=options["pure"], private=options["private"], name=options["name"])
    if options["check_well_formed"]:
        check_functions(unit, {made.name: made}, [made.name])
    return made


def _rewriter(unit: Unit, tree: ast.ClassDef) -> IRModule:
    """A rule of rewriting: a module of two graph functions, marked as one."""
    module = read_module(unit, tree, check=True)
    for name in SIDES:
        if not isinstance(module.functions.get(name), Function):
            hint = "@R.rewriter takes a class of two graph functions, `pattern` and `replacement`"
            raise fail("W104", f"the rule has no graph function '{name}'", unit.name_span(tree), hint=hint)
    return module.with_attr(REWRITER, True)


class _Lone(dict[str, Any]):
    """The functions that a function outside any module sees: itself, and anything as an opaque function."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name)
        if found is None:
            return FuncType(None, ALL_FORMS["R.Any"].build(), False)  # type: ignore[misc]
        return found
