"""Kernels that the C compiler of this machine has made object code of, called with arrays.

    data ::= JSON { format, object: base64, functions: [function], messages: [kind: text] }
    function ::= name, symbol and prototype in C, sizes: [(argument, dimension) | null: 0], bytes of workspace

The C functions take the arguments, then the sizes that the shapes of arrays give, then a workspace; their result is 0
or the number of the message of a failed assertion. Errors: ArtifactError W810 for data of another form, W803 and W805
as `weft.runtime.loading.jit`; what the assertions say.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ArtifactError
from weft.runtime.abi.failures import failure
from weft.runtime.artifact import Artifact, Symbol
from weft.runtime.device.cpu import CPU
from weft.runtime.loading import jit

__all__ = ["C_KERNELS", "c_kernels_data", "load_c_kernels"]

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
    try:
        content = json.loads(artifact.data)
        code = base64.b64decode(content["object"], validate=True)
        entries = {
            entry["name"]: (
                str(entry["symbol"]),
                str(entry["prototype"]),
                [None if x is None else (int(x[0]), int(x[1])) for x in entry["sizes"]],
                int(entry["workspace"]),
            )
            for entry in content["functions"]
        }
        messages = [str(message) for message in content["messages"]]
    except (ValueError, KeyError, TypeError, IndexError, binascii.Error, RecursionError) as error:
        raise ArtifactError(f"{artifact.name!r} does not hold kernels: {error}", code="W810") from None
    symbols = tuple(Symbol(symbol, prototype) for symbol, prototype, _, _ in entries.values())
    library = jit([Artifact("object", f"{artifact.name}.o", code, artifact.target, symbols)])
    return {
        name: _kernel(library[symbol], sizes, workspace, messages)
        for name, (symbol, _, sizes, workspace) in entries.items()
    }


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
