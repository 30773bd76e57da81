"""The kernels of a C program: one function for each kernel, part of the target and sizes that it is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.codegen.backends.c.expressions import unsupported
from weft.codegen.backends.c.kernel import Helpers, KernelWriter
from weft.codegen.backends.c.names import c_name
from weft.codegen.backends.c.program import Memory, Program, static_shape
from weft.codegen.backends.c.statements import write_kernel
from weft.errors import Span, TargetError
from weft.ir.graph import GlobalVar
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.kernel.simplify import simplify
from weft.ir.structure.visit import substitute, walk
from weft.ir.tensor import Buffer, IntImm, PrimCall, PrimFunc, PrimVar
from weft.transform.kernel.lower_blocks import lower_blocks

__all__ = ["Kernels"]


class Kernels:
    """Writes the kernels that a program calls, each once."""

    def __init__(self, program: Program, kernels: Mapping[str, PrimFunc]) -> None:
        self.program, self.kernels = program, kernels
        self.open: set[tuple[Any, ...]] = set()

    def called(
        self, name: str, label: str, buffers: Sequence[Buffer], memories: Sequence[Memory], span: Span | None
    ) -> KernelWriter:
        """The kernel for a part, with the sizes of the memory that it is called with."""
        kernel = self.kernels[name]
        sizes = {item: _symbol(buffers, item, memories, span) for item in buffer_symbols(kernel)}
        return self.writer(name, label, span, sizes)

    def writer(
        self, name: str, label: str, span: Span | None, sizes: Mapping[PrimVar, int] | None = None
    ) -> KernelWriter:
        """The kernel for a part, with the sizes of a call in place of its symbols."""
        key = (name, label, tuple((sizes or {}).values()))
        found = self.program.kernels.get(key)
        if found is not None:
            return found
        function = self.kernels.get(name)
        if function is None:
            raise unsupported("a call of something else than a kernel", span)
        part = self.program.parts.get(label)
        if part is not None and part.kind.code_generator is not None and part.kind.name != "c":
            raise TargetError(
                f"c: kernel {name!r} belongs to part {label!r}, whose kind {part.kind.name!r} makes its own code",
                code="W747",
                span=function.span,
                hint="run the code generators of the target first",
            )
        if key in self.open:
            raise unsupported("the recursion of kernels", span)
        if sizes:
            function = substitute(function, {var: IntImm(size, var.dtype) for var, size in sizes.items()})
        lowered = simplify(lower_blocks(function))
        callees: dict[str, KernelWriter] = {}
        self.open.add(key)
        for item in walk(lowered):
            if isinstance(item, PrimCall) and isinstance(item.op, GlobalVar):
                callees[item.op.name] = self.writer(item.op.name, label, item.span)
        self.open.remove(key)
        helpers = self.program.helpers.setdefault(label, Helpers(messages=self.program.messages))
        made = write_kernel(self.kernel_name(name, label), lowered, helpers, callees)
        self.program.kernels[key] = made
        return made

    def kernel_name(self, name: str, label: str) -> str:
        """A name in C that no other kernel has."""
        base = f"{self.program.model}_{c_name(name)}"
        taken = {f"{self.program.model}_{suffix}" for suffix in ("run", "message", "steps", "tell", "TELL")}
        taken |= {writer.name for writer in self.program.kernels.values()}
        if label and any(other == name and owner != label for other, owner, _ in self.program.kernels):
            base = f"{base}__{c_name(label)}"
        count, candidate = 0, base
        while candidate in taken:
            count += 1
            candidate = f"{base}_{count}"
        return candidate


def _symbol(buffers: Sequence[Buffer], symbol: PrimVar, memories: Sequence[Memory], span: Span | None) -> int:
    for buffer, memory in zip(buffers, memories, strict=True):
        if symbol in buffer.shape:
            return static_shape(memory.ty)[buffer.shape.index(symbol)]
        if symbol is buffer.elem_offset:
            return 0  # a whole array
    raise unsupported("a kernel whose sizes do not follow from its arguments", span)
