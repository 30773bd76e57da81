"""`weft import`: a model of another framework as script text, with its large arrays in a folder beside it.

    model.py              the text: `weft run model.py`, `weft.parse(text, blobs="model.weights")`
    model.weights/        arrays by their hash; commands find the folder by the name of the file

`--report` prints what became of each node, `--check` compares with the reference and names the first node that differs.
What takes longer than a second shows a bar on the terminal.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.command.files import InputError, weights_folder, write_file
from weft.command.progress import Progress
from weft.command.report import print_json
from weft.errors import ModelError
from weft.frontend import import_report
<<<<<<< HEAD
from weft.frontend import onnx as frontend
from weft.frontend.comparison import CheckResult
from weft.frontend.extras import require
from weft.frontend.onnx.checking import check
=======
from weft.frontend.importers import importer_of
>>>>>>> 2c8e976 (Intrinsics, executors and importers are one registration each)
from weft.frontend.report import ImportReport
from weft.ir.module import IRModule

__all__ = ["import_command"]


def import_command(options: argparse.Namespace) -> int:
    """Import a model; write it, report on it, check it: as asked for, by default the report."""
    path = Path(options.file)
    if path.suffix == ".pt2":
        return _finished(options, path, *_program(options, path))
    if path.suffix == ".safetensors":
        raise InputError(f"{path} holds arrays and no model", hint="weft.frontend.safetensors.load reads it")
<<<<<<< HEAD
    with Progress(f"importing {path.name}") as progress:
        module = frontend.load(path, progress=progress)
    def compared() -> CheckResult:
        return check(path, sizes=dict(options.symbol), seed=options.seed)

    return _finished(options, path, module, compared)


def _program(options: argparse.Namespace, path: Path) -> tuple[IRModule, Callable[[], CheckResult]]:
    """The module of a program that `torch.export.save` wrote, and its comparison with PyTorch."""
    from weft.frontend import torch as frontend  # which needs torch

    load = require("torch.export", "torch").load
    with Progress(f"importing {path.name}"):
        try:
            program = load(path)
        except Exception as error:  # of many kinds
            raise ModelError(f"{path} is no exported program: {str(error).splitlines()[0]}", code="W973") from None
        module = frontend.from_exported(program)
    return module, lambda: frontend.check(program, sizes=dict(options.symbol), seed=options.seed)


def _finished(
    options: argparse.Namespace, path: Path, module: IRModule, compared: Callable[[], CheckResult]
) -> int:
    """Write, check and report, as asked for."""
    report, result = import_report(module), None
=======
    importer = importer_of(path)
    module = importer.load(path)
    result = None
>>>>>>> 2c8e976 (Intrinsics, executors and importers are one registration each)
    if options.output:
        folder = weights_folder(options.output)
        with Progress(f"writing {options.output}"):
            write_file(options.output, lambda to: to.write_text(module.script(blobs=str(folder)), encoding="utf-8"))
    if options.check:
<<<<<<< HEAD
        with Progress(f"compiling and comparing {path.name}"):
            result = compared()
=======
        result = importer.compare(path, sizes=dict(options.symbol), seed=options.seed)
>>>>>>> 2c8e976 (Intrinsics, executors and importers are one registration each)
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
        {"name": node.name, "operator": node.operator, "how": node.how, "operators": list(node.operators),
         "why": node.why, "cost": node.cost} for node in report.nodes
    ]  # fmt: skip
    checked = None if result is None else {"equal": result.equal, "first": result.first, "message": str(result)}
    return {"nodes": nodes, "native_share": report.native_share, "check": checked}
