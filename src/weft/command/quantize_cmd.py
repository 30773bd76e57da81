"""`weft quantize`: a float model of a file as integers, from arrays that show which values occur.

    calibration.npz     one item of data: an array for each parameter of `main`, by name; with one axis more than their
                        parameters, all arrays are cut along the first one into as many items
    model.py            the text that is written; large arrays lie in model.weights beside it

Errors: W010 a file that cannot be read, W020 arrays that do not fit together, and those of `weft.quantize`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

import numpy as np

import weft
from weft.command.execute import read_params
from weft.command.inputs.arrays import read_inputs
from weft.command.inputs.entry_points import run_setup
from weft.command.inputs.files import InputError, as_module, load_one, weights_folder, write_file
from weft.command.report import print_json, say
from weft.ir import Function, IRModule, TensorType

__all__ = ["quantize_command"]


def quantize_command(options: argparse.Namespace) -> int:
    """Quantize one unit; write it, report on it: as asked for, by default the report."""
    if options.setup is not None:
        run_setup(options.setup)
    module = as_module(load_one(options.file, options.unit))
    params = read_params(options.params) if options.params else {}
    made = weft.quantize(
        module,
        list(_items(module, options.data, set(params))),
        options.scheme,
        max_drop=options.max_drop,
        params=params,
        include=options.include or ("*",),
        exclude=options.exclude,
        force=options.force,
        costs="measured" if options.measure else "estimated",
        target=options.target,
        form="qdq" if options.qdq else "integer",
    )
    report = made.quantization_report()
    if options.plot:
        write_file(options.plot, lambda to: report.plot(str(to)))
    if options.output:
        folder = weights_folder(options.output)
        write_file(options.output, lambda to: to.write_text(made.script(blobs=str(folder)), encoding="utf-8"))
    if options.json:
        print_json({"output": options.output, **json.loads(report.to_json())})
    elif options.report or not options.output:
        say(str(report))
    return 0


def _items(module: IRModule, files: Sequence[str], bound: set[str]) -> Iterator[dict[str, np.ndarray]]:
    """The items of data that files hold."""
    for file in files:
        inputs = read_inputs([file])
        free = [name for name in _ranks(module) if name not in bound and name not in inputs.named]
        arrays = {**inputs.named, **dict(zip(free, inputs.positional, strict=False))}
        yield from _cut(file, arrays, _ranks(module))


def _ranks(module: IRModule) -> dict[str, int]:
    """The number of axes of each tensor parameter of `main`."""
    function = module.functions.get("main")
    params = function.params if isinstance(function, Function) else ()
    return {param.name: param.ty.ndim for param in params if isinstance(param.ty, TensorType)}


def _cut(file: str, arrays: dict[str, np.ndarray], ranks: dict[str, int]) -> Iterator[dict[str, np.ndarray]]:
    """The arrays as one item, or cut along an axis that all of them have in front of those of their parameters."""
    if not arrays or not all(array.ndim == ranks.get(name, -2) + 1 for name, array in arrays.items()):
        yield arrays
        return
    counts = {len(array) for array in arrays.values()}
    if len(counts) != 1:
        sizes = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise InputError(f"the arrays of {file} hold different numbers of items: {sizes}", file=file, code="W020")
    for place in range(counts.pop()):
        yield {name: array[place] for name, array in arrays.items()}
