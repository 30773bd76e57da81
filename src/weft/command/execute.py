"""`weft run` and `weft compile`: functions called on arrays, executables saved."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import weft
from weft.codegen.generate import CODE
from weft.command.inputs import arrays
from weft.command.inputs.entry_points import Callee, find_callee, run_setup
from weft.command.inputs.files import InputError, as_module, is_archive, load_one, write_file
from weft.command.inputs.targets import chosen_target
from weft.command.report import print_json, say
from weft.ir import IRModule
from weft.runtime import archive
from weft.runtime.abi.scalars import storage
from weft.runtime.program_artifacts import program_of_file

__all__ = ["compile_command", "export_command", "row_text", "run_command"]


def run_command(options: argparse.Namespace) -> int:
    """Call a function on arrays, and say what came out."""
    if options.setup is not None:
        run_setup(options.setup)
    inputs = arrays.read_inputs(options.input)
    options.target, options.opt = chosen_target(options)
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
        say(f"chosen at random: {', '.join(f'{symbol} = {size}' for symbol, size in chosen.items())}")
    for row in rows:
        say(row_text(row))
    say(f"{name} took {seconds * 1e3:.3f} ms")


def row_text(row: dict[str, Any]) -> str:
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
    """Compile one unit, and save what comes out, or print its code."""
    start = time.perf_counter()
    made, name, target = _made(options)
    seconds = time.perf_counter() - start
    if options.emit:
        return _emit(options, made)
    if _package(target) != "archive":
        if options.output is None:
            hint = "-o with a folder for a tree, with a name that ends in .so for a shared object"
            raise InputError(f"the package {_package(target)!r} needs a place", code="W018", hint=hint)
        return _exported(made, options)
    output = options.output or f"{_stem(options, name)}.weft"
    write_file(output, lambda path: made.save(path))
    names = list(made.functions) if isinstance(made, weft.Executable) else list(made)
    if options.json:
        print_json({"output": output, "functions": names, "seconds": seconds, "bytes": Path(output).stat().st_size})
    else:
        say(f"{output}: {', '.join(names)}, compiled in {seconds:.2f} s")
    return 0


def _made(options: argparse.Namespace) -> tuple[Any, str, weft.Target | None]:
    """What one unit, or the models that are named, compile to; the name of it; the target."""
    if options.setup is not None:  # before the target is read, which may name what it registers
        run_setup(options.setup)
    target, level = chosen_target(options)
    if options.model:
        found = {name: load_one(file or options.file, None if file else name) for name, file in options.model}
        models = {name: as_module(unit) for name, unit in found.items()}
        if options.symbol:
            bind = weft.transform.BindSymbolicVars(dict(options.symbol))
            models = {name: bind(module) for name, module in models.items()}
        made = weft.compile(models, target, opt=level, **_asked(options))
        return made, "-".join(models), target
    unit = load_one(options.file, options.unit)
    return _compiled(options, as_module(unit), target, level), unit.name, target


def _package(target: weft.Target | None) -> str:
    """The format that a configuration wants to be written."""
    package = target.options.get("package") if target is not None and target.kind.name == "config" else None
    return str((package or {}).get("format", "archive"))


def _exported(made: Any, options: argparse.Namespace) -> int:
    """Write the files of what was compiled, and say which they are."""
    path = made.export(options.output)
    files = sorted(str(item) for item in path.rglob("*") if item.is_file()) if path.is_dir() else [str(path)]
    if options.json:
        print_json({"output": str(path), "files": files})
    else:
        say("\n".join(files))
    return 0


def _stem(options: argparse.Namespace, name: str) -> str:
    return name if options.file == "-" else Path(options.file).stem


def _emit(options: argparse.Namespace, made: weft.Executable | weft.ArtifactSet) -> int:
    source = made.source(options.emit)
    if options.output is not None:
        write_file(options.output, lambda path: path.write_text(source, encoding="utf-8"))
    else:
        print_json({"kind": options.emit, "text": source}) if options.json else print(source)
    return 0


def _compiled(options: argparse.Namespace, module: IRModule, target: weft.Target | None, level: int) -> Any:
    """What the options ask for: the phases from where they resume, with the text of those that are to be kept."""
    if options.symbol:
        module = weft.transform.BindSymbolicVars(dict(options.symbol))(module)
    params = read_params(options.params) if options.params else None
    names = weft.transform.phases()
    begin = names.index(known_phase(options.resume_from)) + 1 if options.resume_from else 0
    folder = Path(options.dump_dir or ".")
    for phase in sorted({known_phase(item) for item in options.dump_after or ()}, key=names.index):
        end = names.index(phase)
        if end >= begin:
            asked = {"externs": options.allow_extern, "trust": options.trust}
            lowered = weft.lower(module, target, opt=level, params=params, start=names[begin], stop=phase, **asked)
            if phase in CODE:  # the text of the program; what is compiled goes on from before
                write_file(str(folder / f"{_stem(options, 'module')}.{phase}.txt"), _writer(lowered.script()))
                continue
            module, begin, params = lowered, end + 1, None
        write_file(str(folder / f"{_stem(options, 'module')}.{phase}.txt"), _writer(module.script()))
    start = names[begin] if begin < len(names) else None
    if begin >= len(names):  # everything ran: only code is to be made
        start = names[-1]
    return weft.compile(module, target, opt=level, params=params, start=start, **_asked(options))


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """What the options say beside module, target and level."""
    return {"externs": options.allow_extern, "trust": options.trust, "workers": options.workers}


def _writer(text: str) -> Any:
    return lambda path: path.write_text(text, encoding="utf-8")


def known_phase(name: str) -> str:
    """The name of a phase; PassError W507 with the nearest one otherwise."""
    weft.transform.phase(name)
    return name


def read_params(path: str) -> dict[str, Any]:
    """The arrays of an .npz file, to be bound to the parameters of `main`."""
    inputs = arrays.read_inputs([path])
    if inputs.positional:
        raise InputError(f"{path} names no parameters: an .npz file is wanted", file=path, code="W020")
    return inputs.named


def _archived(file: str) -> weft.ArtifactSet:
    try:
        return weft.ArtifactSet.load(file)
    except weft.ArtifactError as error:
        if error.code != "W810":
            raise
        found = archive.read(file, program_of_file, storage).artifacts
        if any(item.loader == "cc" for item in found.values()):
            return weft.ArtifactSet(item for item in found.values() if item.loader == "cc")
        hint = "export the model itself, or save what --executor aot makes"
        message = f"{file} holds an executable of this machine, which has no files"
        raise InputError(message, file=file, code="W014", hint=hint) from None


def export_command(options: argparse.Namespace) -> int:
    """Write the files of an archive, or those that a module becomes for a target: a folder, or a shared object."""
    return _exported(_archived(options.file) if is_archive(options.file) else _made(options)[0], options)
