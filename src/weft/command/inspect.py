"""`weft show`, `weft check` and `weft pass`: modules read from files, printed, verified, rewritten."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import weft
from weft.command.files import InputError, Loaded, file_name, load_one, load_units, no_units, read_text
from weft.command.report import finding, print_json
from weft.errors import WeftError
from weft.ir import GlobalVar, IRModule, walk
from weft.ir.module import BaseFunc
from weft.script.units import DecoratedUnit, find_units

__all__ = ["check_command", "pass_command", "show_command"]


def show_command(options: argparse.Namespace) -> int:
    """Print every unit of the files; on a pipe the text is one that `weft check` accepts."""
    units = [unit for file in options.files for unit in load_units(file)]
    chosen = [(unit, value) for unit in units if (value := _chosen(unit, options.function)) is not None]
    if not chosen:
        raise _no_function(units, options.files, options.function)
    how = {"types": options.types, "line_numbers": options.line_numbers}
    if options.json:
        keys = ("file", "name", "line", "text")
        print_json([dict(zip(keys, (*_place(unit), value.script(**how)), strict=True)) for unit, value in chosen])
        return 0
    for position, (_, value) in enumerate(chosen):
        if position:
            print()
        value.show(**how)
    return 0


def _place(unit: Loaded) -> tuple[str, str, int]:
    return file_name(unit.file), unit.name, unit.line


def _chosen(unit: Loaded, function: str | None) -> IRModule | BaseFunc | None:
    """What to print of a unit when only one function is asked for; None when it is not there."""
    if function is None or (unit.name == function and not isinstance(unit.value, IRModule)):
        return unit.value
    if isinstance(unit.value, IRModule) and function in unit.value:
        return _with_callees(unit.value, function)
    return None


def _with_callees(module: IRModule, function: str) -> IRModule:
    """The module with one function and those that it reaches, so that the text stands by itself."""
    reached, pending = {function}, [function]
    while pending:
        for node in walk(module[pending.pop()]):
            if isinstance(node, GlobalVar) and node.name in module and node.name not in reached:
                reached.add(node.name)
                pending.append(node.name)
    return module.with_functions({name: value for name, value in module.items() if name in reached})


def _no_function(units: Sequence[Loaded], files: Sequence[str], function: str) -> InputError:
    names = [name for unit in units for name in (unit.value if isinstance(unit.value, IRModule) else [unit.name])]
    where = ", ".join(map(file_name, files))
    return InputError(f"{where} has no function {function!r}", code="W012", hint=f"it has: {', '.join(names)}")


def check_command(options: argparse.Namespace) -> int:
    """Read and verify every unit of the files, and report all that is wrong with them."""
    findings = [(file, error) for file in options.files for error in _check_file(file, quiet=options.json)]
    if options.json:
        print_json([finding(error, file_name(file)) for file, error in findings])
    return 1 if findings else 0


def _check_file(file: str, quiet: bool) -> list[WeftError]:
    """The findings of one file; unless `quiet` they are printed, with a line about the file."""
    count = 0
    errors: list[WeftError] = []
    try:
        units = find_units(read_text(file), file_name(file))
        count = len(units)
        errors += [error for unit in units for error in _check_unit(file, unit)] if units else [no_units(file)]
    except WeftError as error:
        errors = [error]
    if not quiet:
        for error in errors:
            print(f"{error}\n", file=sys.stderr)
        print(f"{file_name(file)}: {_verdict(count, len(errors))}", flush=True)
    return errors


def _check_unit(file: str, unit: DecoratedUnit) -> list[WeftError]:
    """What reading finds, or else what the verifier finds."""
    try:
        return list(weft.verify(Loaded.read(file, unit).as_module()))
    except WeftError as error:
        return [error]


def _verdict(units: int, errors: int) -> str:
    if errors:
        return f"{errors} finding{'s' if errors > 1 else ''}"
    return f"{units} unit{'s' if units > 1 else ''}, well formed"


def pass_command(options: argparse.Namespace) -> int:
    """Apply a pipeline to a module and print it."""
    pipeline = weft.transform.parse_pipeline(options.pipeline)
    module = pipeline(load_one(options.file, options.unit).as_module())
    if options.json:
        print_json({"passes": str(pipeline), "text": module.script()})
    else:
        module.show()
    return 0
