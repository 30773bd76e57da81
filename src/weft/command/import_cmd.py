"""`weft import`: a model of another framework as script text, with its large arrays in a folder beside it.

    model.py              the text: `weft run model.py`, `weft.parse(text, blobs="model.weights")`
    model.weights/        arrays by their hash; commands find the folder by the name of the file

`--report` prints what became of each node, `--check` compares with the reference and names the first node that differs.
What takes longer than a second shows a bar on the terminal.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from weft.command.inputs.files import InputError, weights_folder, write_file
from weft.command.progress import Progress
from weft.command.report import print_json
from weft.frontend import import_report
from weft.frontend.importers import importer_of
from weft.frontend.report import ImportReport

__all__ = ["import_command"]


def import_command(options: argparse.Namespace) -> int:
    """Import a model; write it, report on it, check it: as asked for, by default the report."""
    path = Path(options.file)
    if path.suffix == ".safetensors":
        raise InputError(f"{path} holds arrays and no model", hint="weft.frontend.safetensors.load reads it")
    if options.output and path.exists() and Path(options.output).exists() and path.samefile(options.output):
        raise InputError(f"{options.output} is the model itself, which the text would replace", hint="-o model.py")
    importer, result = importer_of(path), None
    with Progress(f"importing {path.name}") as progress:
        module = importer.read(path, progress)
    if options.output:
        folder = weights_folder(options.output)
        with Progress(f"writing {options.output}"):
            write_file(options.output, lambda to: to.write_text(module.script(blobs=str(folder)), encoding="utf-8"))
    if options.check:
        with Progress(f"compiling and comparing {path.name}"):
            result = importer.compare(path, sizes=dict(options.symbol), seed=options.seed)
    if options.json:
        print_json(_data(import_report(module), result))
    else:
        if options.report or not (options.output or options.check):
            print(import_report(module))
        if result is not None:
            print(result)
    return 0 if result is None or result.equal else 1


def _data(report: ImportReport, result: Any) -> dict[str, object]:
    nodes = [
        {
            "name": node.name,
            "operator": node.operator,
            "how": node.how,
            "operators": list(node.operators),
            "why": node.why,
            "cost": node.cost,
        }
        for node in report.nodes
    ]
    checked = None if result is None else {"equal": result.equal, "first": result.first, "message": str(result)}
    return {"nodes": nodes, "native_share": report.native_share, "check": checked}
