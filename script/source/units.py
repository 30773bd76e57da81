"""The decorated units of a Python file, read one by one. Nothing of the file is run.

    file ::= statement*
    unit ::= class decorated with `I.ir_module` or `R.rewriter` | function decorated with `R.function` or `T.prim_func`

A unit stands at the top level of the file, or inside a function, class or compound statement there. It sees the imports
of the script's namespaces, and the constants (`N = 4`) and symbols (`n = T.int64()`) that the top level assigns before
it. All other statements are skipped. One unit that cannot be read does not stop the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from weft.errors import WeftError
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.script.reader.definition import Definition
from weft.script.reader.expression.level import session_around
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.module.metadata import declare_metadata
from weft.script.reader.module.prelude import declare, declare_macro, import_names
from weft.script.reader.module.unit import read_unit
from weft.script.reader.scope import ModuleScope
from weft.script.reader.session import Session
from weft.script.source.blobs import Blobs, as_blobs
from weft.script.source.diagnostics import Limits
from weft.script.source.text import Unit, make_source, parse_python, read_deeply
from weft.support.records import record

__all__ = ["FileUnit", "read_units"]


@record
class FileUnit:
    """A unit of a file: its name, the line where it starts, and what it defines or the error that reading it raised.

    `errors` are all that reading found; `warnings` are the relations of sizes
    that an annotation or a declared result alone states (W213).
    """

    name: str
    line: int
    value: IRModule | Function | PrimFunc | WeftError
    warnings: tuple[WeftError, ...] = ()
    errors: tuple[WeftError, ...] = ()


def read_units(
    text: str, *, filename: str = "<text>", limits: Limits | None = None, blobs: Blobs | None = None
) -> list[FileUnit]:
    """Every decorated unit of a Python file, in order; `blobs` has the bytes that it names by their hash.

    Raises: ScriptError W101 where the file is not Python, W103 when it is over the limits.

    >>> text = "import os\\n@R.function\\ndef main(x: R.Tensor((2,), 'float32')):\\n    return x\\n"
    >>> [(unit.name, unit.line) for unit in read_units(text)]
    [('main', 2)]
    """
    source, limits = make_source(filename, text), limits or Limits()
    tree = parse_python(source, limits)

    def read() -> list[FileUnit]:
        unit = Unit(source, limits, partial=True, blobs=as_blobs(blobs))
        return [_read(unit, definition) for definition in _definitions(unit, tree)]

    return read_deeply(tree, read)


def _read(unit: Unit, tree: Definition) -> FileUnit:
    line = tree.decorator_list[0].lineno
    unit.assumed.clear()
    unit.findings = []
    try:
        return FileUnit(tree.name, line, read_unit(unit, tree), tuple(unit.assumed))
    except WeftError as error:
        errors = unit.findings if unit.note(error) else [*unit.findings, error]
        return FileUnit(tree.name, line, errors[0], errors=tuple(errors))
    finally:
        unit.findings = None


def _definitions(unit: Unit, tree: ast.Module) -> Iterator[Definition]:
    """The units of a file; what the top level imports and assigns is noted on the way."""
    session = session_around(unit, ModuleScope())
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            import_names(unit, statement, strict=False)
        elif not _is_metadata(unit, statement) and not declare(session, statement, strict=False):
            yield from _units_in(session, statement)


def _is_metadata(unit: Unit, statement: ast.stmt) -> bool:
    """Whether a statement holds constants of the units; where it is damaged, the units that name them say so."""
    try:
        return declare_metadata(unit, statement)
    except WeftError:
        return True


def _units_in(session: Session, statement: ast.AST) -> Iterator[Definition]:
    """The statement if it is a unit, else the units inside it."""
    if isinstance(statement, ast.FunctionDef) and declare_macro(session, statement):
        return
    if isinstance(statement, ast.ClassDef | ast.FunctionDef) and _is_unit(session, statement):
        yield statement
        return
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(statement, part, [])
        for child in inner if isinstance(inner, list) else []:
            if isinstance(child, ast.ImportFrom):
                import_names(session.unit, child, strict=False)
            yield from _units_in(session, child)


def _is_unit(session: Session, tree: Definition) -> bool:
    """Whether a decorator is of the script's namespaces; a misspelt one is an error when the unit is read."""
    called = [item.func if isinstance(item, ast.Call) else item for item in tree.decorator_list]
    return any(dotted_name(session, item) is not None for item in called)
