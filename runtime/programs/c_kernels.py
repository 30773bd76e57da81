"""Kernels that the C compiler of this machine has made object code of, called with arrays.

    data ::= JSON { format, object: base64, functions: [function], messages: [kind: text] }
    function ::= name, symbol and prototype in C, sizes: [(argument, dimension) | null: 0], bytes of workspace

The C functions take the arguments, then the sizes that the shapes of arrays give, then a workspace; their result is 0
or the number of the message of a failed assertion. Errors: ArtifactError W810 for data of another form, W821 symbols
that are not those of the object, W803 and W805 as `weft.runtime.loading.jit`; what the assertions say.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft.errors import ArtifactError
from weft.runtime.abi.failures import failure
from weft.runtime.artifact import Artifact, Symbol
from weft.runtime.device.artifact_symbols import check_symbols, outside_needs
from weft.runtime.device.cpu import CPU
from weft.runtime.loading import jit
from weft.support.records import record

__all__ = ["C_KERNELS", "c_kernels_data", "check_c_kernels", "load_c_kernels"]

C_KERNELS = "c-kernels"
"""The kind of such artifacts."""


def c_kernels_data(code: bytes, functions: Sequence[Mapping[str, Any]], messages: Sequence[str]) -> bytes:
    """The data of an artifact from object code and what its functions take."""
    content = {
        "format": C_KERNELS,
        "object": base64.b64encode(code).decode(),
        "functions": list(functions),
        "messages": list(messages),
    }
    return json.dumps(content, indent=1).encode()


def load_c_kernels(artifact: Artifact) -> Mapping[str, Callable[..., Any]]:
    """The kernels of an artifact by name."""
    content = _read(artifact)
    symbols = tuple(Symbol(entry.symbol, entry.prototype) for entry in content.entries.values())
    library = jit([Artifact("object", f"{artifact.name}.o", content.code, artifact.target, symbols)])
    return {
        name: _kernel(library[entry.symbol], entry.sizes, entry.workspace, content.messages)
        for name, entry in content.entries.items()
    }


def check_c_kernels(artifact: Artifact) -> None:
    """ArtifactError W821 for kernels that provide or need other names than their artifact says."""
    content = _read(artifact)
    provides = tuple(map(Symbol, content.entries))
    check_symbols(artifact, replace(artifact, provides=provides, needs=outside_needs(content.code)))


@record
class _Entry:
    """The C function of a kernel, where its sizes are found, and the bytes of its workspace."""

    symbol: str
    prototype: str
    sizes: Sequence[tuple[int, int] | None]
    workspace: int


@record
class _Content:
    """What the data of an artifact holds."""

    code: bytes
    entries: Mapping[str, _Entry]
    messages: Sequence[str]


def _read(artifact: Artifact) -> _Content:
    try:
        content = json.loads(artifact.data)
        code = base64.b64decode(content["object"], validate=True)
        entries = {
            str(entry["name"]): _Entry(
                str(entry["symbol"]),
                str(entry["prototype"]),
                [None if x is None else (int(x[0]), int(x[1])) for x in entry["sizes"]],
                int(entry["workspace"]),
            )
            for entry in content["functions"]
        }
        return _Content(code, entries, [str(message) for message in content["messages"]])
    except (ValueError, KeyError, TypeError, IndexError, binascii.Error, RecursionError) as error:
        raise ArtifactError(f"{artifact.name!r} does not hold kernels: {error}", code="W810") from None


def _kernel(
    function: Callable[..., int], sizes: Sequence[tuple[int, int] | None], workspace: int, messages: Sequence[str]
) -> Callable[..., None]:
    def call(*args: Any) -> None:
        given = [np.ascontiguousarray(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        shapes = [0 if place is None else args[place[0]].shape[place[1]] for place in sizes]
        scratch = [CPU.allocate(workspace).data] if workspace else []
        status = function(*given, *shapes, *scratch)
        for old, new in zip(args, given, strict=True):
            if new is not old and isinstance(old, np.ndarray) and old.flags.writeable:
                old[...] = new  # a view with gaps: what was written goes back
        if status:
            kind, _, message = messages[status - 1].partition(": ")
            raise failure({"kind": kind, "message": [message]}, ())

    return call
