"""A machine that can only add bytes, as somebody would write it who has docs/extending.md and no more.

Programs of it are the sizes of the two arrays, and a model of the hardware does them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft
from weft import ir
from weft.codegen.backends.generators import Translated
from weft.runtime.artifact import Symbol
from weft.runtime.loading import register_loader, unregister_loader
from weft.target import remove_target_kind
from weft.transform import LegalizeOps, PartitionCalls

PATTERNS = {"adder.add": ("add",)}


class Adds(PartitionCalls):
    """Sums of bytes of one known shape."""

    def accepts(self, name: str, calls: Sequence[ir.Call]) -> bool | str:
        """Whether the machine does it."""
        types: list[Any] = [getattr(arg, "ty", None) for arg in calls[0].args]
        if any(ty.dtype != "int8" for ty in types):
            return f"it adds int8, not {types[0].dtype}"
        dims = types[0].dims
        if dims is None or dims != types[1].dims or not all(isinstance(dim, int) for dim in dims):
            return "it adds arrays of one known shape"
        return True


def lower(module: ir.IRModule, function: ir.Function) -> tuple[ir.IRModule, ir.GlobalVar]:
    """The kernel that weft has for the sum, in a function that calls it."""
    Adds("", PATTERNS).taken(function)
    entry = ir.replace(function, name="entry", attrs=ir.FrozenMap())
    return LegalizeOps()(ir.IRModule({"entry": entry})), ir.GlobalVar("entry")


def generate(module: ir.IRModule, target: weft.Target) -> Translated:
    """The number of bytes of each sum; a kernel that is none has statements that nothing translates."""
    made, done = [], {}
    for name, kernel in module.items():
        stores = [node for node in ir.walk(kernel) if isinstance(node, ir.BufferStore)]
        sums = [node for node in stores if getattr(node.value, "kind", "") == "add"]
        done[name] = [node for node in sums if node.buffer.dtype == "int8"]
        program = str(math.prod(done[name][0].buffer.shape) if done[name] else 0).encode()
        made.append(weft.Artifact("adder", f"{name}.add", program, provides=(Symbol(name),), loader="adder"))
    return Translated(made, done)


def load(artifact: weft.Artifact) -> dict[str, Any]:
    """The model of the hardware."""
    count = int(artifact.data)

    def run(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        sums = x.reshape(-1)[:count].astype("int16") + y.reshape(-1)[:count].astype("int16")
        z.reshape(-1)[:count] = sums.astype("int8")

    return {artifact.provides[0].name: run}


def install() -> weft.target.TargetKind:
    """Register the kind and its loader."""
    kind = weft.target_kind("adder", {}, device="adder", doc="adds bytes")
    kind.hook("partition", scope="module")(lambda target, label: Adds(label, PATTERNS))
    kind.lowering(lower)
    kind.codegen(generate)
    register_loader("adder", load)
    return kind


def remove() -> None:
    """Forget both."""
    unregister_loader("adder")
    remove_target_kind("adder")
