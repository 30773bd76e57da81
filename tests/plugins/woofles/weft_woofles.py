"""A plug-in that adds one of everything: operator, pass, kind of target, hook, lowering, code generator, loader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
from weft import ir
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import OPS, Example, Param, register_op
from weft.ir.op.common import f32, typed
from weft.ir.op.declare import Arguments
from weft.runtime.artifact import Symbol
from weft.runtime.loading import register_loader
from weft.target import Int
from weft.transform import FunctionPass, PartitionCalls

runs: list[str] = []
"""The programs that ran."""


def _decompose(args: Arguments, builder: Any) -> ir.Expr:
    doubled = builder.emit(OPS["add"].bind([args.x, args.x]))
    return OPS["add"].bind([doubled, args.x])


@register_op(
    "woof.bark",
    [Param("x")],
    pure=True,
    decompose=_decompose,
    numpy=lambda x: 3 * x,
    examples=(Example((f32("n", 4),)), Example((typed("int32", 3),))),
)
def bark(args: Arguments, context: TypeContext) -> ir.Type:
    """Three times x."""
    return context.type_of(args.x)


@dataclass(frozen=True)
class Hush(FunctionPass):
    """Calls of `woof.bark` on the result of another become sums: dogs bark once."""

    def run_function(self, name: str, function: ir.Function, module: ir.IRModule) -> ir.Function:
        """Rewrite the second call of a pair."""
        barks = {
            binding.var
            for block in function.body.blocks
            for binding in block.bindings
            if getattr(getattr(binding.value, "op", None), "name", "") == "woof.bark"
        }

        def follow(node: Any) -> Any:
            if isinstance(node, ir.Call) and getattr(node.op, "name", "") == "woof.bark" and node.args[0] in barks:
                return ir.replace(node, op=ir.Op("add"), args=(node.args[0], node.args[0]))
            return None

        return ir.rewrite(function, follow)


WOOFLES = weft.target_kind("woofles", {"volume": Int(3, "how loud")}, device="dog", doc="a dog")


@WOOFLES.hook("partition", scope="module")
def partition(target: weft.Target, label: str) -> PartitionCalls:
    """What is barked goes to the dog."""
    return PartitionCalls(label, {"woof": ("woof.bark",)})


@WOOFLES.lowering
def lower(module: ir.IRModule, function: ir.Function) -> tuple[ir.IRModule, ir.GlobalVar]:
    """One kernel over rows of four."""
    kernel = weft.parse(
        "@T.prim_func(private=True)\n"
        'def woof(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):\n'
        "    for i, j in T.grid(n, 4):\n        y[i, j] = x[i, j] * T.float32(3)\n"
    )
    assert isinstance(kernel, ir.PrimFunc)
    return ir.IRModule({"woof": kernel}), ir.GlobalVar("woof")


@WOOFLES.codegen
def generate(module: ir.IRModule, target: weft.Target) -> list[weft.Artifact]:
    """A program of one word for each kernel."""
    program = json.dumps({"volume": target.get("volume")}).encode()
    return [weft.Artifact("woof", f"{name}.woof", program, provides=(Symbol(name),), loader="dog") for name in module]


def load(artifact: weft.Artifact) -> dict[str, Callable[..., None]]:
    """The dog runs it."""
    volume = json.loads(artifact.data)["volume"]

    def run(x: np.ndarray, y: np.ndarray) -> None:
        runs.append(artifact.name)
        y[...] = np.float32(volume) * x

    return {artifact.provides[0].name: run}


register_loader("woof", load)
