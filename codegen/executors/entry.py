"""The executors `graph` and `aot`: straight-line programs (`weft.codegen.host.entry`), data and machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft import dtypes
from weft.codegen.backends.base import Job
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.backends.llvm.machine.cross import cross_machine, emit_object
from weft.codegen.backends.llvm.machine.machine import Machine, compile_module
from weft.codegen.executors import native
from weft.codegen.executors.objects import entry_module, object_artifacts, object_source
from weft.codegen.host.entry import Entry, Place, Scalar, Step, read_entry
from weft.codegen.host.signature import abi_dim, abi_type, span_json
from weft.codegen.host.single_kernel import with_entry
from weft.codegen.plan import Plan
from weft.errors import TargetError
from weft.ir.dim import DimExpr
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.runtime.abi.json_form import dim_to_json, parameter_to_json, type_to_json
from weft.runtime.abi.types import Buffer, Parameter, Signature
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.executable import Program
from weft.runtime.programs.entry import FORMATS, VERSION

__all__ = ["aot", "graph", "object_code", "only_entry"]


def graph(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    """Kernels as machine code, and the nodes that call them."""
    entry = only_entry(module)
    options = {"kernels_only": True, "c_functions": plan.c_functions}
    program = native.generate(module, plan.machines, owner, plan.driver, **options)
    if entry is not None:
        program.driver = {**_head(entry, "graph", program), "nodes": _nodes(entry)}
    return program


def aot(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    """One machine-code function that calls the kernels."""
    entry = only_entry(module)
    if entry is None:
        return native.generate(module, plan.machines, owner, plan.driver, c_functions=plan.c_functions)
    made = entry_module(module, entry)
    owner = {**owner, entry.name: plan.driver}
    program = native.generate(made, plan.machines, owner, plan.driver, c_functions=plan.c_functions)
    program.driver = _head(entry, "aot", program)
    outputs = len(entry.inputs) + len(entry.constants)
    program.functions = [_reading(item, outputs) if item.name == entry.name else item for item in program.functions]
    program.artifacts = ArtifactSet(_c_object(module, entry, plan))
    return program


def object_code(job: Job) -> ArtifactSet:
    """Object code for another machine, with its header."""
    made, _ = job.remaining(lambda label: label == job.plan.driver)
    part = job.plan.parts[job.plan.driver]
    program = only_entry(made)
    if program is None:
        made, _ = with_entry(made)
        program = only_entry(made)
    assert program is not None
    hosted = part.triple is not None and part.triple.os == "linux"
    machine = cross_machine(part, job.plan.opt)
    source = object_source(
        made, program, job.plan.model, opt=job.plan.opt, fast_math=bool(part.get("fast_math")), hosted=hosted,
        c_functions=job.plan.c_functions, features=machine.names,
    )  # fmt: skip
    code = emit_object(machine, source.text)
    found = object_artifacts(source, code, job.plan.model, part.to_json())
    return made.attrs.get(ARTIFACTS, ArtifactSet()).union(found)


def _reading(signature: Signature, outputs: int) -> Signature:
    """The signature of an entry that writes what stands from `outputs` on; kernels that it calls read the rest."""
    params = [
        replace(param, type=replace(param.type, written=index >= outputs)) if isinstance(param.type, Buffer) else param
        for index, param in enumerate(signature.params)
    ]
    return replace(signature, params=tuple(params))


def _c_object(module: IRModule, entry: Entry, plan: Plan) -> list[Artifact]:
    """The same program for C to link: object code and a header."""
    machine = plan.machines[plan.driver]
    model = plan.model
    options = {"opt": plan.opt, "fast_math": machine.fast_math, "c_functions": plan.c_functions}
    source = object_source(module, entry, model, hosted=True, features=machine.names, **options)
    code, _ = compile_module(Machine(machine.cpu, machine.features, plan.opt), source.text)
    return object_artifacts(source, code, model, plan.parts[plan.driver].to_json())


def only_entry(module: IRModule) -> Entry | None:
    """The program of the one public graph function, None when there is none; TargetError W739 for several."""
    public = {name: item for name, item in module.items() if isinstance(item, Function) and not item.private}
    if len(public) > 1:
        raise TargetError(
            f"one entry can be compiled ahead, the module has {', '.join(public)}",
            code="W739",
            span=[*public.values()][1].span,
            hint="make the others private (@R.function(private=True)), or compile them one by one",
        )
    return read_entry(module, *public) if public else None


def _head(entry: Entry, executor: str, program: Program) -> dict[str, Any]:
    first = len(program.constants)
    program.constants.extend((item.data, item.dtype) for item in entry.constants)
    params = [
        parameter_to_json(Parameter(param.name or f"arg{index}", abi_type(param.ty), span_json(param.span)))
        for index, param in enumerate(entry.function.params)
    ]
    return {
        "format": FORMATS[executor], "version": VERSION, "executor": executor, "name": entry.name, "params": params,
        "result": type_to_json(abi_type(entry.function.ret_type)), "bounds": dict(entry.bounds),
        "constants": list(range(first, first + len(entry.constants))),
        "outputs": [{"dtype": item.dtype, "dims": _dims(item)} for item in entry.outputs],
        "arena": entry.arena_bytes(),
    }  # fmt: skip


def _dims(place: Place) -> list[Any]:
    return [dim_to_json(abi_dim(dim)) for dim in place.shape]


def _nodes(entry: Entry) -> list[dict[str, Any]]:
    nodes = [_node(step) for step in entry.steps]
    nodes += [{"op": "copy", "arguments": [_argument(source), _argument(target)]} for source, target in entry.copies]
    return nodes


def _node(step: Step) -> dict[str, Any]:
    return {
        "op": step.kind,
        "name": step.name,
        "arguments": [_argument(item) for item in step.arguments],
        "span": span_json(step.span),
    }


def _argument(item: Place | Scalar) -> dict[str, Any]:
    if isinstance(item, Place):
        return {
            "kind": item.kind, "index": item.index, "dtype": item.dtype, "dims": _dims(item),
            "offset": dim_to_json(abi_dim(item.offset)),
        }  # fmt: skip
    if isinstance(item.value, DimExpr):
        return {"value": dim_to_json(abi_dim(item.value)), "dtype": item.dtype}
    if dtypes.is_float(item.dtype):
        return {"value": ["x", float(item.value).hex()], "dtype": item.dtype}
    return {"value": bool(item.value) if dtypes.is_bool(item.dtype) else int(item.value), "dtype": item.dtype}
