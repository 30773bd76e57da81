"""The NPU for weft: importing this module adds the kind of target `npu`, with all that it takes to compile for it.

host: llvm; npu: npu -array=8 -sram=4096

partition   8-bit products and convolutions of known sizes become functions of the NPU
lower       each becomes a kernel of commands; the tensors between commands are planned with those of the host
codegen     a kernel becomes a command stream, and the C of a driver that hands it over
load        a stream runs on `weft_npu.hardware`, which stands for the chip (see `weft_npu.loader`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
from weft import ir
from weft.codegen.backends.generators import Translated
from weft.ir.op import get_op
from weft.ir.tensor import Evaluate, PrimCall
from weft.runtime.artifact import Symbol
from weft.target import Int
from weft.transform import PartitionCalls
from weft_npu import assembler, tiles
from weft_npu.loader import cycles as cycles
from weft_npu.tiles import Product


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options, if one tile of a product fits the memory of the machine."""
    array, sram = options.get("array", 8), options.get("sram", 4096)
    if not 1 <= array <= 256 or sram < array * (4 * array + 2):
        raise weft.TargetError(f"an NPU of {array} x {array} cells has no use for {sram} bytes of memory", code="NPU1")
    if options.get("buffers", 2) < 1:
        raise weft.TargetError("an NPU holds at least one tile of an operand", code="NPU1")
    return options


FIELDS = {
    "array": Int(8, "rows and columns of cells"),
    "sram": Int(4096, "bytes of its own memory"),
    "buffers": Int(2, "tiles of an operand there: the others are copied while one is multiplied"),
}
NPU = weft.target_kind("npu", FIELDS, device="npu", doc="a systolic array for 8-bit integers", canonicalise=checked)
PATTERNS = {"npu.conv2d": ("nn.conv2d",), "npu.matmul": ("matmul",)}


def _sizes(value: Any) -> tuple[int, ...]:
    """The sizes of 8-bit integers as far as they are known, none for anything else."""
    ty = getattr(value, "ty", None)
    dims = ty.dims if isinstance(ty, ir.TensorType) and ty.dtype == "int8" else None
    return tuple(dim for dim in dims or () if isinstance(dim, int) and dim > 0)


@dataclass(frozen=True)
class PartitionForNpu(PartitionCalls):
    """Give products of 8-bit matrices and plain convolutions of 8-bit images, with 32-bit results, to the NPU."""

    def accepts(self, name: str, calls: Sequence[ir.Call]) -> bool:
        """Whether the NPU does exactly what the call says."""
        args = get_op(calls[0].op.name).arguments(calls[0])  # type: ignore[union-attr]
        ranks = [len(_sizes(arg)) for arg in calls[0].args]
        if name == "npu.matmul" or args.out_dtype != "int32":
            return args.out_dtype == "int32" and ranks == [2, 2]
        plain = (args.groups, set(args.dilation), args.data_layout, args.kernel_layout, args.out_layout or "NCHW")
        return ranks == [4, 4] and plain == (1, {1}, "NCHW", "OIHW", "NCHW")


@NPU.hook("partition", scope="module")
def partition(target: weft.Target, label: str) -> PartitionForNpu:
    """The pass that gives functions to the NPU."""
    return PartitionForNpu(label, PATTERNS)


def _product(call: ir.Call, result: Any) -> tuple[Product, list[Any]]:
    """A call as products of matrices, and the types of what they write."""
    (x, w), out = map(_sizes, call.args), result.dims
    if len(x) == 2:
        return Product({"x": x, "w": w, "y": out}, ("x", "w", "y"), *x, w[1]), [result]
    args = get_op("nn.conv2d").arguments(call)
    (images, channels, height, width), (count, _, *kernel), pixels = x, w, out[2] * out[3]
    windows = (channels * kernel[0] * kernel[1], pixels)
    shapes = {"x": x, "w": w, "y": out, "windows": windows}
    rest = [channels, height, width, *kernel, *(args.strides * 2)[:2], *(args.padding * 4)[:2], *out[2:]]
    make = f'"npu_windows", {{}}, T.address_of(windows[0, 0]), {", ".join(map(str, rest))}'
    types = [result, ir.TensorType(windows, "int8")]
    return Product(shapes, ("w", "windows", "y"), count, *windows, images, make), types


def _kernel(call: ir.Call, result: Any) -> tuple[Any, list[Any]]:
    """The commands of a call as a kernel, and the types of what it writes."""
    product, types = _product(call, result)
    part: Any = weft.Target.current()
    return tiles.commands(product, part.get("array"), part.get("sram"), part.get("buffers")), types


@NPU.lowering
def lower(module: ir.IRModule, function: ir.Function) -> tuple[ir.IRModule, ir.GlobalVar]:
    """A function for the host that calls the kernel of commands, and has the memory it needs planned."""
    binding: Any = PartitionForNpu("", PATTERNS).taken(function)[1][0]
    kernel, types = _kernel(binding.value, binding.var.ty)
    written, result = ir.Var("written", ir.TupleType(tuple(types))), ir.Var("result", binding.var.ty)
    run = ir.Call(ir.Op("call_tir"), (ir.GlobalVar("npu_kernel"), ir.Tuple(binding.value.args)), ty_args=(written.ty,))
    bindings = ir.VarBinding(written, run), ir.VarBinding(result, ir.TupleGetItem(written, 0))
    body = ir.SeqExpr((ir.BindingBlock(bindings),), result)
    entry = ir.replace(function, name="npu_entry", body=body, attrs=ir.FrozenMap())
    return ir.IRModule({"npu_entry": entry, "npu_kernel": kernel}), ir.GlobalVar("npu_entry")


def _commands(kernel: ir.PrimFunc) -> dict[Evaluate, tuple[str, list[int]]]:
    """The commands of statements: an address is the number of a parameter and an offset in bytes."""
    calls: list[tuple[Any, Any]] = [(node, node.value) for node in ir.walk(kernel) if isinstance(node, Evaluate)]
    calls = [(node, call.args) for node, call in calls if getattr(call, "op", "") == "call_extern"]
    return {node: (args[0].value, [i for arg in args[1:] for i in _fields(kernel, arg)]) for node, args in calls}


def _fields(kernel: ir.PrimFunc, arg: Any) -> list[int]:
    if not isinstance(arg, PrimCall):
        return [arg.value]
    load: Any = arg.args[0]
    index = np.ravel_multi_index([i.value for i in load.indices], load.buffer.shape)
    return [kernel.params.index(load.buffer), int(index) * np.dtype(load.buffer.dtype).itemsize]


@NPU.codegen
def generate(module: ir.IRModule, target: weft.Target) -> Translated:
    """A command stream for each kernel, and its driver in C."""
    made, done = [], {}
    for name, kernel in dict[str, Any](module.items()).items():
        done[name] = _commands(kernel)
        stream = assembler.assemble(done[name].values(), target.get("array"), target.get("sram"))
        driver = assembler.driver(name, stream, len(kernel.params)).encode()
        prototype = assembler.prototype(name, len(kernel.params))
        symbol, needs = (Symbol(name, prototype),), (Symbol("npu_execute"),)
        made.append(weft.Artifact("npu-stream", f"{name}.npu", stream, provides=symbol, loader="npu"))
        made.append(weft.Artifact("c", f"{name}.c", driver, provides=symbol, needs=needs, loader="cc"))
    return Translated(made, done)
