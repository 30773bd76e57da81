"""Whole programs by content, on disk: a module that was compiled once is loaded, no pass runs again.

    entry ::= length of the head, head, object code, constants        in `weft.codegen.cache`, beside single kernels
    head  ::= JSON: signatures, sites, shapes and dtypes of the constants, lengths

Each piece of code and each constant stands at a place in the file that suits its use where the file is mapped.

A key is the hash of everything that the program follows from: the module to its last name and place in the source,
the target, the processor, the options, the versions of LLVM and of weft, the state of weft's own files. What follows
from more than that is never kept: modules that call out to symbols or Python functions, operators and kinds of targets
that others declared, passes that are chosen, disabled, watched or checked.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import weft.ir
from weft.codegen.backends.llvm.machine.machine import Machine, llvm_version
from weft.codegen.plan import Plan
from weft.ir.graph import Constant, ExternFunc, Op
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.op import OPS
from weft.ir.structure.fingerprint import fingerprint
from weft.ir.tensor import PrimCall
from weft.runtime.abi.json_form import signature_from_json, signature_to_json, site_from_json, site_to_json
from weft.runtime.abi.scalars import storage
from weft.runtime.device.code_cache import HEAD, LIMIT, object_cache
from weft.runtime.device.guards import is_guarded
from weft.runtime.executable import Program
from weft.support.array_memory import ALIGNMENT, content_bytes
from weft.transform.infra.context import check_level, is_plain

__all__ = ["find", "keep", "key_of"]

_log = logging.getLogger("weft.cache")

_LARGEST = LIMIT // 8
_FORMAT = "program 5"


def key_of(module: IRModule, plan: Plan) -> str | None:
    """The key of what a module compiles to; None where that follows from more than can be seen."""
    if plan.executor not in ("native", "vm") or not plan.runs_here or not plan.target.is_leaf:
        return None
    if plan.target.options.get("planner"):  # what it answers is not known from its name
        return None
    kind = plan.target.kind
    if kind.hooks or kind.lowering_hook or kind.code_generator or not is_plain() or check_level():
        return None
    if object_cache().folder is None or not _has_own_rules():
        return None
    content = fingerprint(module, _Closed())
    if content is None:
        return None
    machines = sorted((label, repr(machine)) for label, machine in plan.machines.items())
    machine = Machine()
    facts = (
        _FORMAT,
        content,
        plan.target.to_str(),
        plan.passes.to_str(),
        repr(machines),
        plan.driver,
        plan.executor,
        str(plan.opt),
        str(plan.knobs),
        machine.triple,
        machine.cpu,
        machine.features,
        llvm_version(),
        _STATE,
        sys.implementation.cache_tag or "",
        str(is_guarded()),
    )
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _has_own_rules() -> bool:
    """Whether schedules follow from weft's own rules alone: others are registered where the registry is loaded."""
    registry = sys.modules.get("weft.transform.autoschedule.registry")
    return registry is None or registry.is_builtin()


class _Closed:
    """Whether all of a node's meaning is in the module and in weft, and is of a size that is kept."""

    def __init__(self) -> None:
        self.size = 0

    def __call__(self, node: Node) -> bool:
        """Whether a node, the next one of a module, leaves it so."""
        if isinstance(node, Constant):
            self.size += node.data.nbytes
        return self.size <= _LARGEST and _is_closed(node)


def _is_closed(node: Node) -> bool:
    if isinstance(node, Op):
        found = OPS.get(node.name)
        return found is not None and found.rule.__module__.startswith("weft.")
    if isinstance(node, PrimCall):
        return not (isinstance(node.op, str) and "call_" in node.op)  # which symbols there are depends on the process
    return not isinstance(node, ExternFunc)


def _state_of_weft() -> str:
    """Names, sizes and times of weft's own files: who changes a pass gets what the new one makes."""
    root = Path(weft.ir.__file__ or "").parent.parent
    facts = [f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in _sources(os.fspath(root))]
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    yield entry.path, entry.stat()
                elif entry.is_dir() and not entry.name.startswith(("__", ".")):
                    yield from _sources(entry.path)
    except OSError:  # weft is not in files; its version is in the key
        return


_STATE = _state_of_weft()  # now, when those files are read


def find(key: str) -> Program | None:
    """The program that was kept under a key."""
    found = object_cache().get(key)
    if found is None:
        return None
    try:
        return _program(*found)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:  # another weft's, say
        _log.warning("the program that is kept as %s cannot be read: %r", key, error)
        return None


def _program(data: memoryview, text: str) -> Program:
    size = int.from_bytes(data[:8], "little")
    head = json.loads(bytes(data[8 : 8 + size]))
    at, pieces = 8 + size, list[memoryview]()
    for length in head["lengths"]:
        pieces.append(data[at : at + length])
        at += length + _gap(length)
    objects = [bytes(piece) for piece in pieces[: head["objects"]]]
    described = zip(pieces[head["objects"] :], head["constants"], strict=True)
    constants = [(np.frombuffer(piece, storage(dtype)).reshape(shape), dtype) for piece, (dtype, shape) in described]
    return Program(
        functions=[signature_from_json(function) for function in head["functions"]],
        sites=[site_from_json(site) for site in head["sites"]],
        constants=constants,
        objects=objects,
        target=tuple(head["target"]),
        sources=text.split("\0") if text else [],
        python=head["python"],
        threads=head["threads"],
        driver=head["driver"],
        decisions=head["decisions"],
        kind=head["kind"],
        provenance=head["provenance"],
    )


def keep(key: str, program: Program) -> None:
    """Keep a program, unless it is of a size that would push everything else out."""
    if len(program.artifacts) or sum(array.nbytes for array, _ in program.constants) > _LARGEST:
        return
    arrays = [content_bytes(array).data for array, _ in program.constants]
    pieces: list[bytes | memoryview] = [*program.objects, *arrays]
    head: dict[str, Any] = {
        "functions": [signature_to_json(function) for function in program.functions],
        "sites": [site_to_json(site) for site in program.sites],
        **program.facts(),
        "target": program.target,
        "objects": len(program.objects),
        "constants": [(dtype, array.shape) for array, dtype in program.constants],
        "lengths": [len(piece) for piece in pieces],
    }
    text = json.dumps(head).encode()
    text += b" " * _gap(HEAD + 8 + len(text))
    code: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    for piece in pieces:
        code += [piece, bytes(_gap(len(piece)))]
    object_cache().put(key, code, "\0".join(program.sources))


def _gap(length: int) -> int:
    """The bytes that are missing to a whole number of lines of the processor's cache."""
    return -length % ALIGNMENT
