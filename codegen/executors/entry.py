"""The executors `graph` and `aot`: straight-line programs (`weft.codegen.host.entry`), data and machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft import dtypes
from weft.codegen.backends.base import Plan, back_end_of
from weft.codegen.host.entry import Entry, Place, Scalar, Step, only_entry
from weft.codegen.host.entry_kernel import entry_module
from weft.codegen.host.signature import abi_dim, abi_type, span_json
from weft.ir.dim import DimExpr
from weft.ir.module import IRModule
from weft.runtime.abi.json_form import dim_to_json, parameter_to_json, type_to_json
from weft.runtime.abi.types import Buffer, Parameter, Signature
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Program
from weft.runtime.programs.entry import FORMATS, VERSION

__all__ = ["aot", "graph"]


def graph(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    """Kernels as machine code, and the nodes that call them."""
    entry = only_entry(module)
    program = back_end_of(plan.parts[plan.driver]).machine_code(module, plan, owner, kernels_only=True)
    if entry is not None:
        program.driver = {**_head(entry, "graph", program), "nodes": _nodes(entry)}
    return program


def aot(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    """One machine-code function that calls the kernels."""
    entry, back_end = only_entry(module), back_end_of(plan.parts[plan.driver])
    if entry is None:
        return back_end.machine_code(module, plan, owner)
    made = entry_module(module, entry)
    owner = {**owner, entry.name: plan.driver}
    program = back_end.machine_code(made, plan, owner)
    program.driver = _head(entry, "aot", program)
    outputs = len(entry.inputs) + len(entry.constants)
    program.functions = [_reading(item, outputs) if item.name == entry.name else item for item in program.functions]
    program.artifacts = ArtifactSet(back_end.linkable(module, entry, plan))
    return program


def _reading(signature: Signature, outputs: int) -> Signature:
    """The signature of an entry that writes what stands from `outputs` on; kernels that it calls read the rest."""
    params = [
        replace(param, type=replace(param.type, written=index >= outputs)) if isinstance(param.type, Buffer) else param
        for index, param in enumerate(signature.params)
    ]
    return replace(signature, params=tuple(params))


def _head(entry: Entry, executor: str, program: Program) -> dict[str, Any]:
    first = len(program.constants)
    program.constants.extend((item.data, item.dtype) for item in entry.constants)
    params = [
        parameter_to_json(Parameter(param.name or f"arg{index}", abi_type(param.ty), span_json(param.span)))
        for index, param in enumerate(entry.function.params)
    ]
    return {
        "format": FORMATS[executor],
        "version": VERSION,
        "executor": executor,
        "name": entry.name,
        "params": params,
        "result": type_to_json(abi_type(entry.function.ret_type)),
        "bounds": dict(entry.bounds),
        "constants": list(range(first, first + len(entry.constants))),
        "outputs": [{"dtype": item.dtype, "dims": _dims(item)} for item in entry.outputs],
        "arena": entry.arena_bytes(),
    }


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
            "kind": item.kind,
            "index": item.index,
            "dtype": item.dtype,
            "dims": _dims(item),
            "offset": dim_to_json(abi_dim(item.offset)),
        }
    if isinstance(item.value, DimExpr):
        return {"value": dim_to_json(abi_dim(item.value)), "dtype": item.dtype}
    if dtypes.is_float(item.dtype):
        return {"value": ["x", float(item.value).hex()], "dtype": item.dtype}
    return {"value": bool(item.value) if dtypes.is_bool(item.dtype) else int(item.value), "dtype": item.dtype}
