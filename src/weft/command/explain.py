"""`weft explain`: what is decided about a module: fusion, schedules, threads, placement, checks left for the call."""

from __future__ import annotations

import argparse
import sys

import weft
from weft.command.inputs.files import as_module, load_one
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
    records = explain(weft.lower(module, target, opt=level, stop="plan"))
    if options.function is not None:
        records = [record for record in records if record["function"] == options.function]
    print_json(records) if options.json else print(report(records))
    return 0
