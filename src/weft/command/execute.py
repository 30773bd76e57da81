"""`weft run` and `weft compile`: functions called on arrays, executables saved."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import weft
from weft.command import arrays
from weft.command.files import InputError, Loaded, file_name, load_one, write_file
from weft.command.report import print_json
from weft.ir import Buffer, BufferStore, Function, PrimFunc, walk
from weft.ir.module import BaseFunc
from weft.ir.prim_dim import kernel_signature

__all__ = ["compile_command", "run_command"]


def run_command(options: argparse.Namespace) -> int:
    """Call a function on arrays, and say what came out."""
    unit = load_one(options.file, options.unit)
    name, function = _choose(unit, options.function)
    parameters = _parameters(function)
    inputs = arrays.read_inputs(options.input)
    seed = options.seed if options.random else None
    values, chosen = arrays.arguments(parameters, inputs, dict(options.symbol), seed)
    call = _callable(unit, name, options)
    start = time.perf_counter()
    result = call(*values)
    seconds = time.perf_counter() - start
    results = _results(function, parameters, values, result)
    if options.output:
        arrays.save_results(options.output, results)
    _report_run(name, chosen, results, seconds, options.json)
    return 0


def _choose(unit: Loaded, wanted: str | None) -> tuple[str, Function | PrimFunc]:
    """The function to call: the one asked for, else `main`, else the only graph function, else the only function."""
    module = unit.as_module()
    names = [name for name, function in module.items() if isinstance(function, Function | PrimFunc)]
    graphs = [name for name in names if isinstance(module[name], Function)]
    name = wanted
    if name is None:
        groups = (["main"] if "main" in names else [], graphs, names)
        name = next((group[0] for group in groups if len(group) == 1), None)
    if name is None or name not in names:
        message = f"has no function {wanted!r}" if wanted else "has several functions, and none is called main"
        hint = f"choose one with --function: {', '.join(names)}" if names else None
        raise InputError(f"{unit.name} in {file_name(unit.file)} {message}", file=unit.file, code="W012", hint=hint)
    return name, _as_callable(module[name])


def _as_callable(function: BaseFunc) -> Function | PrimFunc:
    assert isinstance(function, Function | PrimFunc)  # the names were chosen so
    return function


def _parameters(function: Function | PrimFunc) -> list[arrays.Parameter]:
    if isinstance(function, Function):
        return [arrays.Parameter(var.name, var.ty) for var in function.params]
    types = kernel_signature(function)
    return [arrays.Parameter(item.name, ty) for item, ty in zip(function.params, types, strict=True)]


def _callable(unit: Loaded, name: str, options: argparse.Namespace) -> Callable[..., Any]:
    module = unit.as_module()
    if options.interpret:
        return weft.interpret(module)[name]
    return weft.compile(module, options.target, opt=options.opt)[name]


def _results(
    function: Function | PrimFunc, parameters: list[arrays.Parameter], values: list[Any], result: Any
) -> list[tuple[str, Any]]:
    """What a call gave: the value of a graph function, the buffers that a tensor function writes."""
    if isinstance(function, Function):
        return arrays.flatten(result, "out")
    written = {id(node.buffer) for node in walk(function) if isinstance(node, BufferStore)}
    buffers = [
        (parameter.name, value)
        for item, parameter, value in zip(function.params, parameters, values, strict=True)
        if isinstance(item, Buffer) and id(item) in written
    ]
    return buffers if result is None else [*buffers, *arrays.flatten(result, "out")]


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
    executable = weft.compile(unit.value, options.target, opt=options.opt)
    seconds = time.perf_counter() - start
    if options.emit and options.output is None:
        print(executable.source(options.emit))
        return 0
    output = options.output or f"{unit.name if options.file == '-' else Path(options.file).stem}.weft"
    if options.emit:
        write_file(output, lambda path: path.write_text(executable.source(options.emit), encoding="utf-8"))
    else:
        write_file(output, lambda path: executable.save(str(path)))
    names = list(executable.functions)
    if options.json:
        print_json({"output": output, "functions": names, "seconds": seconds, "bytes": Path(output).stat().st_size})
    else:
        print(f"{output}: {', '.join(names)}, compiled in {seconds:.2f} s")
    return 0
