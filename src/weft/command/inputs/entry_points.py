"""The function that `weft run` calls: found in a script or in a saved executable, with its parameters.

Errors: W012 a function that is not there, or none that is meant by itself; W014 an option that does not apply; W015 a
setup file that fails; ArtifactError W830 an executable that nobody trusts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import weft
from weft.codegen.compiled import declared_type, is_compiled, load_module
from weft.codegen.host.kernels import written_positions
from weft.command.inputs.files import InputError, as_module, file_name, is_archive, load_one, read_text
from weft.errors import WeftError
from weft.ir import Function, IRModule, PrimFunc
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.types import Type
from weft.runtime.abi import types as abi
from weft.support.records import dataclass
from weft.transform.infra.registry import nearest

__all__ = ["Callee", "Parameter", "find_callee", "run_setup"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the called function; `written` when the call changes the array in place."""

    name: str
    ty: Type
    written: bool = False


@dataclass(frozen=True, slots=True)
class Callee:
    """A function ready to call."""

    name: str
    parameters: tuple[Parameter, ...]
    call: Callable[..., Any]


def find_callee(options: argparse.Namespace) -> Callee:
    """What the options name: a function of a saved executable, or one of a script, compiled or interpreted."""
    if is_archive(options.file):
        return _of_executable(options)
    module = as_module(load_one(options.file, options.unit))
    if is_compiled(module):
        return _callee(options, load_module(module, trust=options.trust))
    callables = {name: f for name, f in module.items() if isinstance(f, Function | PrimFunc)}
    graphs = [name for name, function in callables.items() if isinstance(function, Function)]
    name = _choose(options, callables, graphs)
    return Callee(name, _parameters(callables[name]), _callable(module, name, options))


def run_setup(path: str) -> None:
    """Run a Python file for what it registers, as a program in its own folder would run.

    Raises: InputError W010 when it cannot be read, W015 with what it raised.
    """
    text = read_text(path)
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        exec(compile(text, path, "exec"), {"__name__": "weft_setup", "__file__": path})
    except WeftError:
        raise
    except (Exception, SystemExit) as error:
        message = f"{path} stopped with {type(error).__name__}: {error}"
        raise InputError(message, file=path, code="W015") from error
    finally:
        sys.path.pop(0)


def _choose(options: argparse.Namespace, names: Iterable[str], graphs: Iterable[str]) -> str:
    """The name asked for, else `main`, else the only graph function, else the only function."""
    names, graphs = list(names), list(graphs)
    wanted = options.function or "main"
    groups = [[wanted] if wanted in names else [], *([] if options.function else [graphs, names])]
    for group in groups:
        if len(group) == 1:
            return group[0]
    message = f"{file_name(options.file)} has no function {wanted!r}"
    near = nearest(wanted, names) if options.function else None
    hint = near or (f"choose one with --function: {', '.join(names)}" if names else None)
    raise InputError(message, file=options.file, code="W012", hint=hint)


def _callable(module: IRModule, name: str, options: argparse.Namespace) -> Callable[..., Any]:
    if options.interpret:
        return weft.interpret(module)[name]
    made = weft.compile(module, options.target, opt=options.opt, externs=options.allow_extern, trust=options.trust)
    return made[name]


def _parameters(function: Function | PrimFunc) -> tuple[Parameter, ...]:
    if isinstance(function, Function):
        return tuple(Parameter(var.name, var.ty) for var in function.params)
    written = written_positions(function)
    pairs = zip(function.params, kernel_signature(function), strict=True)
    return tuple(Parameter(item.name, ty, position in written) for position, (item, ty) in enumerate(pairs))


def _of_executable(options: argparse.Namespace) -> Callee:
    given = {"--interpret": options.interpret, "--unit": options.unit, "--target": options.target}
    for option, value in given.items():
        if value:
            message = f"{option} does not apply to {options.file}, which is compiled already"
            raise InputError(message, file=options.file, code="W014")
    if not options.trust:
        message = f"{options.file} holds machine code, which is not run unless it is trusted"
        raise weft.ArtifactError(message, code="W830", hint="if you trust the file: weft run --trust")
    return _callee(options, weft.load(options.file))


def _callee(options: argparse.Namespace, executable: weft.Executable) -> Callee:
    graphs = [name for name, function in executable.functions.items() if function.signature.kind == "graph"]
    function = executable[_choose(options, executable.functions, graphs)]
    parameters = (
        Parameter(item.name, declared_type(item.type), isinstance(item.type, abi.Buffer) and item.type.written)
        for item in function.signature.params
    )
    return Callee(function.name, tuple(parameters), function)
