"""`weft explain`: what is decided about a module: fusion, schedules, threads, placement, checks left for the call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from typing import Any

import weft
from weft.command.inputs.files import InputError, as_module, file_name, load_one
from weft.command.inputs.targets import chosen_target
from weft.command.report import print_json
from weft.runtime.explanation import report
from weft.transform.autoschedule.explain import explain

__all__ = ["explain_command"]


def explain_command(options: argparse.Namespace) -> int:
    """Lower a module for its target, and print the decisions by function.

    Relations of sizes that only a declared type states are warnings before them, with both places (W213).
    """
    unit = load_one(options.file, options.unit)
    module = as_module(unit)
    for warning in unit.warnings:
        print(f"warning: {warning}\n", file=sys.stderr)
    target, level = chosen_target(options)
    lowered = weft.lower(module, target, opt=level, stop="plan")
    records = explain(lowered)
    if options.function is not None:
        names = {*(record["function"] for record in records), *module, *lowered}
        records = _of_function(records, options, names)
    print_json(records) if options.json else print(report(records))
    return 0


def _of_function(
    records: list[dict[str, Any]], options: argparse.Namespace, names: Collection[str]
) -> list[dict[str, Any]]:
    """The decisions about one function or kernel; W012 for a name that is none."""
    if options.function not in names:
        decided = ", ".join(dict.fromkeys(str(record["function"]) for record in records))
        message = f"{file_name(options.file)} has no function or kernel {options.function!r}"
        hint = f"decisions are about: {decided}" if decided else "nothing is decided about this module"
        raise InputError(message, file=options.file, code="W012", hint=hint)
    return [record for record in records if record["function"] == options.function]
