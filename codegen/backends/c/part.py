"""Parts of kind C beside a part that runs in this process: their kernels, compiled by the C compiler of this machine.

The kernels become one artifact of kind `c-kernels` (`weft.runtime.programs.c_kernels`), for all sizes of their buffers.
Errors: TargetError W736 a graph function, W741 what C99 cannot say; ArtifactError W819 without a compiler.
"""

from __future__ import annotations

from weft.codegen.backends.c.expressions import unsupported
from weft.codegen.backends.c.kernel import Helpers, KernelWriter
from weft.codegen.backends.c.statements import write_kernel
from weft.codegen.backends.generators import Generator
from weft.errors import TargetError
from weft.ir.graph import GlobalVar
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.kernel.simplify import simplify
from weft.ir.module import IRModule
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, PrimCall, PrimFunc, PrimVar
from weft.runtime.artifact import Artifact, Symbol
from weft.runtime.device.artifact_symbols import outside_needs
from weft.runtime.loading import compile_c
from weft.runtime.programs.c_kernels import C_KERNELS, c_kernels_data
from weft.target import Target
from weft.target.builtin import C
from weft.transform.kernel.lower_blocks import lower_blocks

__all__ = ["compiles_here", "kernels_of_part"]

_INCLUDES = ("#include <math.h>", "#include <stdint.h>", "#include <string.h>", "")


def compiles_here(part: Target) -> bool:
    """Whether a part is C for any processor, this machine's among them."""
    return part.kind is C and not set(part.options) - {"std"}


def kernels_of_part(label: str) -> Generator:
    """The code generator of a part that is C for this machine."""

    def generate(module: IRModule, part: Target) -> Artifact:
        writers: dict[str, KernelWriter] = {}
        helpers = Helpers()
        for name, function in module.items():
            if not isinstance(function, PrimFunc):
                raise TargetError(
                    f"graph function {name!r} belongs to part {label!r} ({part}): beside another part, C has kernels"
                    " only",
                    code="W736",
                    span=function.span,
                    hint="give single operators the label",
                )
            _written(name, module, helpers, writers)
        lines = [
            *_INCLUDES,
            *helpers.externs.values(),
            *helpers.definitions.values(),
            "",
            *(f"{writer.head()};" for writer in writers.values()),
            "",
            *(f"{writer.text()}\n" for writer in writers.values()),
        ]
        standard = str(part.get("std"))
        code = compile_c("\n".join(lines), f"{label}.c", standard)
        functions = [_described(name, writer) for name, writer in writers.items()]
        data = c_kernels_data(code, functions, helpers.messages)
        return Artifact(
            C_KERNELS,
            f"{label}.kernels",
            data,
            part.to_json(),
            tuple(map(Symbol, writers)),
            outside_needs(code),
            codegen="c",
            provenance={"flags": [f"-std={standard}"]},
        )

    return generate


def _written(name: str, module: IRModule, helpers: Helpers, writers: dict[str, KernelWriter]) -> KernelWriter:
    """The C function of a kernel, after those that it calls."""
    if name in writers:
        return writers[name]
    function = module[name]
    assert isinstance(function, PrimFunc)
    lowered = simplify(lower_blocks(function))
    called = [item for item in walk(lowered) if isinstance(item, PrimCall) and isinstance(item.op, GlobalVar)]
    callees = {item.op.name: _written(item.op.name, module, helpers, writers) for item in called}  # type: ignore[union-attr]
    plain = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in name)
    writers[name] = write_kernel(f"weft_{len(writers)}_{plain}", lowered, helpers, callees)
    return writers[name]


def _described(name: str, writer: KernelWriter) -> dict[str, object]:
    function = writer.function
    return {
        "name": name,
        "symbol": writer.name,
        "prototype": writer.head(),
        "workspace": writer.workspace_bytes,
        "sizes": [_place(function, symbol) for symbol in buffer_symbols(function)],
    }


def _place(function: PrimFunc, symbol: PrimVar) -> tuple[int, int] | None:
    """The argument and the dimension that give a size; None for an offset, which is 0 for whole arrays."""
    for index, param in enumerate(function.params):
        if isinstance(param, Buffer):
            if symbol in param.shape:
                return index, param.shape.index(symbol)
            if symbol is param.elem_offset:
                return None
    raise unsupported("a kernel whose sizes do not follow from its arguments", function.span)
