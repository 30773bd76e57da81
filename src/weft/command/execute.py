"""`weft run` and `weft compile`: functions called on arrays, executables saved."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import weft
from weft.command import arrays
from weft.command.callee import Callee, find_callee, run_setup
from weft.command.files import as_module, load_one, write_file
from weft.command.report import print_json

__all__ = ["compile_command", "run_command"]


def run_command(options: argparse.Namespace) -> int:
    """Call a function on arrays, and say what came out."""
    if options.setup is not None:
        run_setup(options.setup)
    inputs = arrays.read_inputs(options.input)
    callee = find_callee(options)
    seed = options.seed if options.random else None
    values, chosen = arrays.arguments(callee.parameters, inputs, dict(options.symbol), seed)
    start = time.perf_counter()
    result = callee.call(*values)
    seconds = time.perf_counter() - start
    results = _results(callee, values, result)
    if options.output:
        arrays.save_results(options.output, results)
    _report_run(callee.name, chosen, results, seconds, options.json)
    return 0


def _results(callee: Callee, values: list[Any], result: Any) -> list[tuple[str, Any]]:
    """What a call gave: the buffers that it wrote, and what it returned."""
    pairs = zip(callee.parameters, values, strict=True)
    written = [(parameter.name, value) for parameter, value in pairs if parameter.written]
    return written if written and result is None else [*written, *arrays.flatten(result, "out")]


def _report_run(
    name: str, chosen: dict[str, int], results: list[tuple[str, Any]], seconds: float, as_json: bool
) -> None:
    rows = [{"name": label, **arrays.summarise(value)} for label, value in results]
    if as_json:
        print_json({"function": name, "symbols": chosen, "seconds": seconds, "results": rows})
        return
    if chosen:
        print(f"chosen at random: {', '.join(f'{symbol} = {size}' for symbol, size in chosen.items())}")
    for row in rows:
        print(_row_text(row))
    print(f"{name} took {seconds * 1e3:.3f} ms")


def _row_text(row: dict[str, Any]) -> str:
    """One result in a line or two: `out  float32 (2, 3)  min 0  max 1  mean 0.5`."""
    if "value" in row:
        return f"{row['name']}  {row['value']}"
    shape = tuple(row["shape"])
    figures = [f"{key} {_short(row[key])}" for key in ("min", "max", "mean") if key in row]
    first = "  ".join([row["name"], f"{row['dtype']} {shape}", *figures])
    values = " ".join(map(_short, row.get("values", [])))
    return f"{first}\n    {values}" if values else first


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def compile_command(options: argparse.Namespace) -> int:
    """Compile one unit, and save the executable or print its code."""
    unit = load_one(options.file, options.unit)
    start = time.perf_counter()
    executable = weft.compile(as_module(unit), options.target, opt=options.opt)
    seconds = time.perf_counter() - start
    if options.emit and options.output is None:
        source = executable.source(options.emit)
        print_json({"kind": options.emit, "text": source}) if options.json else print(source)
        return 0
    output = options.output or f"{unit.name if options.file == '-' else Path(options.file).stem}.weft"
    if options.emit:
        write_file(output, lambda path: path.write_text(executable.source(options.emit), encoding="utf-8"))
    else:
        write_file(output, lambda path: executable.save(path))
    names = list(executable.functions)
    if options.json:
        print_json({"output": output, "functions": names, "seconds": seconds, "bytes": Path(output).stat().st_size})
    else:
        print(f"{output}: {', '.join(names)}, compiled in {seconds:.2f} s")
    return 0
