"""Whole programs by content, on disk: a module that was compiled once is loaded, no pass runs again.

    entry ::= length of the head, head, object code, constants        in `weft.codegen.cache`, beside single kernels
    head  ::= JSON: signatures, sites, shapes and dtypes of the constants, lengths
    text  ::= the source of each object, the lowered module or nothing  (`weft.codegen.cache.lowered`)

Each piece of code and each constant stands at a place in the file that suits its use where the file is mapped.

A key is the hash of everything that the program follows from: the module to its last name and place in the source,
the target, the processor, the options, the versions of LLVM and of weft, the state of weft's own files. What follows
from more than that is never kept: modules that call out to symbols or Python functions, operators and kinds of targets
that others declared, passes that are chosen, disabled, watched or checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np

import weft.ir
from weft.codegen.cache.weights import weight_digests
from weft.ir.attrs import CARRIED
from weft.ir.graph import Constant, ExternFunc, Op
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.op import OPS
from weft.ir.structure.fingerprint import fingerprint
from weft.ir.tensor import PrimCall
from weft.runtime.abi.json_form import signature_from_json, signature_to_json, site_from_json, site_to_json
from weft.runtime.abi.scalars import storage
from weft.runtime.device.code_cache import HEAD, LIMIT, object_cache, unpacked
from weft.runtime.device.guards import is_guarded
from weft.runtime.device.host import host, llvm_version
from weft.runtime.executable import Program
from weft.support.array_memory import ALIGNMENT, content_bytes
from weft.support.forks import cached_property
from weft.target import Target, TargetKind
from weft.target.builtin import LLVM
from weft.transform.infra.context import check_level, is_plain

__all__ = ["find", "keep", "key_of", "lowered_of"]

_log = logging.getLogger("weft.cache")

_LARGEST = LIMIT // 8
_FORMAT = "program 9"


def key_of(
    module: IRModule,
    target: object = None,
    executor: str | None = None,
    opt: object = 2,
    params: Mapping[str, Any] | None = None,
    *,
    trust: bool = False,
) -> str | None:
    """The key of what `weft.compile` makes of these arguments; None where that follows from more than can be seen.

    It is the hash of what is asked for, as it was asked, so that a program is found before anything is planned. Whether
    that makes sense is asked when it is compiled: what is refused is not kept.
    """
    if executor not in (None, "native", "vm") or not is_plain() or check_level():
        return None
    if object_cache().folder is None or not _has_own_rules():
        return None
    wanted = _target(module, target)
    closed = _Closed()
    given = None if wanted is None else _given(params, closed)
    content = None if given is None else fingerprint((module, *given), closed, digests=weight_digests)
    if wanted is None or content is None:
        return None
    machine = host()
    asked = (wanted, str(executor), repr(opt), str(trust), str(is_guarded()))
    facts = (_FORMAT, content, *asked, machine.triple, machine.cpu, machine.flags, llvm_version(), _STATE)
    return hashlib.sha256("\0".join((*facts, sys.implementation.cache_tag or "")).encode()).hexdigest()


def _target(module: IRModule, target: object) -> str | None:
    """The target that is asked for, as text; None for another one than machine code by weft's own rules."""
    stated = module.attrs.get(CARRIED) if target is None else target
    if isinstance(stated, (str, Mapping)):
        stated = Target(stated)
    wanted = stated or Target.current() or LLVM
    if not isinstance(wanted, (Target, TargetKind)):
        return None
    kind = wanted if isinstance(wanted, TargetKind) else wanted.kind
    if kind is not LLVM or kind.hooks or kind.lowering_hook or kind.code_generator:
        return None
    if isinstance(wanted, TargetKind):
        return ""
    # What a planner of memory answers is not known from its name.
    return wanted.to_str() if wanted.is_leaf and not wanted.options.get("planner") else None


def _given(params: Mapping[str, Any] | None, closed: _Closed) -> tuple[Any, ...] | None:
    """The arrays that parameters are bound to, with their names; None for what has to be read first."""
    if params is None:
        return ()
    if not isinstance(params, Mapping) or not all(type(array) is np.ndarray for array in params.values()):
        return None
    return (tuple(params), tuple(params.values())) if closed.takes(params.values()) else None


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
        return (not isinstance(node, Constant) or self.takes([node.data])) and _is_closed(node)

    def takes(self, arrays: Iterable[np.ndarray]) -> bool:
        """Whether there is room for more arrays."""
        self.size += sum(array.nbytes for array in arrays)
        return self.size <= _LARGEST


def _is_closed(node: Node) -> bool:
    if isinstance(node, Op):
        found = OPS.get(node.name)
        return found is not None and found.rule.__module__.startswith("weft.")
    if isinstance(node, PrimCall):
        return not (isinstance(node.op, str) and "call_" in node.op)  # which symbols there are depends on the process
    return not isinstance(node, ExternFunc)


_SOURCES = (".py", ".ll", ".lark")
"""The ends of names of files that programs follow from."""


def _state_of_weft() -> str:
    """Names, sizes and times of weft's own files: who changes a pass gets what the new one makes."""
    facts: list[tuple[str, int, int]] = []
    root = os.path.dirname(os.path.dirname(weft.ir.__file__ or ""))
    with contextlib.suppress(OSError):  # weft is not in files; its version is in the key
        _add_sources(root, facts, frozenset({"command", "frontend", "testing"}))  # which make the modules, and test
    return hashlib.sha256(repr(sorted(facts)).encode()).hexdigest()


def _add_sources(folder: str, facts: list[tuple[str, int, int]], apart: frozenset[str] = frozenset()) -> None:
    """Add the files of a folder and of those below it, without those that stand apart in it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(_SOURCES):
                status = entry.stat()
                facts.append((entry.path, status.st_size, status.st_mtime_ns))
            elif name not in apart and not name.startswith(("__", ".")) and entry.is_dir():
                _add_sources(entry.path, facts)


_STATE = _state_of_weft()  # now, when those files are read


def find(key: str) -> Program | None:
    """The program that was kept under a key."""
    found = object_cache().packed(key)
    if found is None:
        return None
    try:
        return _program(*found)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:  # another weft's, say
        _log.warning("the program that is kept as %s cannot be read: %r", key, error)
        return None


class _Texts(Sequence[str]):
    """The sources of a program, which are unpacked when somebody asks for them; none where they are damaged.

    `has_lowered` says whether the lowered module stands behind them.
    """

    def __init__(self, packed: memoryview, has_lowered: bool) -> None:
        self._packed, self.has_lowered = packed, has_lowered

    @cached_property
    def _all(self) -> list[str]:
        try:
            text = unpacked(self._packed)
        except (zlib.error, UnicodeDecodeError) as error:
            _log.warning("the sources of a program that is kept cannot be read: %r", error)
            text = ""
        return text.split("\0")

    def lowered(self) -> str:
        """The text of the lowered module."""
        return self._all[-1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._all[:-1][index]

    def __len__(self) -> int:
        return len(self._all) - 1


def lowered_of(program: Program) -> Callable[[], str] | None:
    """What reads the text of the lowered module of a program that `find` gave, where it was kept."""
    texts = program.sources
    return texts.lowered if isinstance(texts, _Texts) and texts.has_lowered else None


def _program(data: memoryview, text: memoryview) -> Program:
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
        sources=_Texts(text, head["lowered"]),
        python=head["python"],
        threads=head["threads"],
        driver=head["driver"],
        decisions=head["decisions"],
        kind=head["kind"],
        provenance=head["provenance"],
    )


def keep(key: str, program: Program, lowered: str = "") -> None:
    """Keep a program and the text of its lowered module, unless it is of a size that would push everything else out."""
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
        "lowered": bool(lowered),
    }
    text = json.dumps(head).encode()
    text += b" " * _gap(HEAD + 8 + len(text))
    code: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    for piece in pieces:
        code += [piece, bytes(_gap(len(piece)))]
    object_cache().put(key, code, "\0".join([*program.sources, lowered]))


def _gap(length: int) -> int:
    """The bytes that are missing to a whole number of lines of the processor's cache."""
    return -length % ALIGNMENT
