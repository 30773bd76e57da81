"""`weft show`, `weft check` and `weft pass`: modules read from files, printed, verified, rewritten."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import weft
from weft.codegen.plan import make_plan
from weft.command.inputs.files import InputError, as_module, file_name, load_one, load_units
from weft.command.inputs.targets import chosen_target
from weft.command.passes import list_passes
from weft.command.report import as_json, print_json, say
from weft.errors import WeftError
from weft.ir import GlobalVar, IRModule, walk
from weft.ir.module import BaseFunc
from weft.script import FileUnit

__all__ = ["check_command", "pass_command", "show_command"]


def show_command(options: argparse.Namespace) -> int:
    """Print every unit of the files; on a pipe the text is one that `weft check` accepts."""
    units = [(file_name(file), unit) for file in options.files for unit in load_units(file)]
    chosen = [(file, unit, value) for file, unit in units if (value := _chosen(unit, options.function)) is not None]
    if not chosen:
        raise _no_function(options.function, [unit for _, unit in units], options.files)
    how = {"types": options.types, "line_numbers": options.line_numbers}
    if options.json:
        print_json(
            [
                {"file": file, "name": unit.name, "line": unit.line, "text": value.script(**how)}
                for file, unit, value in chosen
            ]
        )
        return 0
    for position, (_, _, value) in enumerate(chosen):
        if position:
            print()
        value.show(**how)
    return 0


def _chosen(unit: FileUnit, function: str | None) -> IRModule | BaseFunc | None:
    """What to print of a unit, or None when the function that is asked for is not there; raises what reading raised."""
    value = unit.value
    if isinstance(value, WeftError):
        raise value
    if function is None or (function == unit.name and not isinstance(value, IRModule)):
        return value
    return _with_callees(value, function) if isinstance(value, IRModule) and function in value else None


def _with_callees(module: IRModule, function: str) -> IRModule:
    """The module with one function and those that it reaches, so that the text stands by itself."""
    reached, pending = {function}, [function]
    while pending:
        for node in walk(module[pending.pop()]):
            if isinstance(node, GlobalVar) and node.name in module and node.name not in reached:
                reached.add(node.name)
                pending.append(node.name)
    return module.with_functions({name: value for name, value in module.items() if name in reached})


def _no_function(function: str, units: Sequence[FileUnit], files: Sequence[str]) -> InputError:
    names = ", ".join(name for unit in units for name in as_module(unit))
    where = ", ".join(map(file_name, files))
    return InputError(f"{where} has no function {function!r}", code="W012", hint=f"it has: {names}")


def check_command(options: argparse.Namespace) -> int:
    """Read and verify every unit of the files, and report all that is wrong with them.

    Relations of sizes that only a declared type states are warnings, which do not fail; with --strict they do.
    """
    found = [(file, *_check_file(file, options.strict, options.json)) for file in options.files]
    if options.json:
        reports = [
            {**as_json(error, file_name(file)), "severity": severity}
            for file, errors, warnings in found
            for severity, group in (("error", errors), ("warning", warnings))
            for error in group
        ]
        print_json(reports)
    return 1 if any(errors for _, errors, _ in found) else 0


def _check_file(file: str, strict: bool, quiet: bool) -> tuple[list[WeftError], list[WeftError]]:
    """The findings of one file and its warnings; unless `quiet` they are printed, with a line about the file."""
    count = 0
    errors: list[WeftError] = []
    warnings: list[WeftError] = []
    try:
        units = load_units(file)
        count = len(units)
        errors += [error for unit in units for error in _check_unit(unit)]
        (errors if strict else warnings).extend(error for unit in units for error in unit.warnings)
    except WeftError as error:
        errors = [error]
    if not quiet:
        for error in errors:
            print(f"{error}\n", file=sys.stderr)
        for warning in warnings:
            print(f"warning: {warning}\n", file=sys.stderr)
        say(f"{file_name(file)}: {_verdict(count, len(errors), len(warnings))}")
    return errors, warnings


def _check_unit(unit: FileUnit) -> list[WeftError]:
    """All that reading found, or else what the verifier finds."""
    if isinstance(unit.value, WeftError):
        return list(unit.errors)
    try:
        return [finding.error() for finding in weft.verify(as_module(unit))]
    except WeftError as error:  # a size beyond what can be computed with, say
        return [error]


def _verdict(units: int, errors: int, warnings: int) -> str:
    if errors:
        return f"{errors} finding{'s' if errors > 1 else ''}"
    noted = f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return f"{units} unit{'s' if units > 1 else ''}, well formed{noted}"


def pass_command(options: argparse.Namespace) -> int:
    """Apply a pipeline to a module and print it; or list the passes."""
    if options.list:
        return list_passes(options.pipeline, options.json)
    if options.pipeline is None:
        raise InputError("no passes are named", code="W027", hint="weft pass --list names them")
    target, _ = chosen_target(options)
    if Path(options.pipeline).is_file() and not Path(options.file).exists():
        hint = f"passes come first: weft pass {options.file} {options.pipeline}"
        raise InputError(f"{options.pipeline} is a file, not passes", code="W027", hint=hint)
    module = as_module(load_one(options.file, options.unit))
    with make_plan(module, target).passes:  # the target of the phases that it names
        pipeline = weft.transform.parse_pipeline(options.pipeline)
        module = pipeline(module)
    if options.json:
        print_json({"passes": str(pipeline), "text": module.script()})
    else:
        module.show()
    return 0
