"""Random kernels that run: every output element is written, every index is in range, for all symbol values from 0 up.

    kernel(choices, inputs, outputs)     a PrimFunc for given parameter types (what a `call_tir` needs)
    free_kernel(choices)                 a PrimFunc for types of its own choice

Each output is filled by one stage, sometimes through a scratch buffer: a loop nest of some form (plain, with blocks,
split with a predicate, fused, vector code, a counted `while`, a running value, a reduction) around a random expression
of what the stage may read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import Dim, symbol
from weft.ir.node import FrozenMap
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    PrimFunc,
    SeqStmt,
    Stmt,
)
from weft.ir.types import PrimType, TensorType
from weft.testing import kernel_nests as nests
from weft.testing.kernel_state import KernelState, KernelType, Source, is_at_least_one, sequence
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import DTYPES, attribute_map

__all__ = ["free_kernel", "kernel"]


def free_kernel(choices: Choices, name: str = "kernel") -> PrimFunc:
    """A kernel with parameter types of its own choice."""
    names = choices.pick((("n",), (), ("n", "m")))
    rank = choices.pick((1, 2, 0, 3))
    shape = tuple(_free_dim(choices, names) for _ in range(rank))
    inputs = choices.several(0, 3, lambda: _input_type(choices, shape, names))
    outputs = [TensorType(shape, choices.pick(DTYPES))]
    if choices.flip(20):
        outputs.append(
            TensorType(tuple(_free_dim(choices, names) for _ in range(choices.integer(0, 2))), choices.pick(DTYPES))
        )
    bare = {str(dim) for ty in (*inputs, *outputs) if isinstance(ty, TensorType) for dim in ty.dims or ()}
    missing = set().union(*(type_symbols(ty) for ty in (*inputs, *outputs))) - bare
    inputs.extend(TensorType((symbol(name),), "float32") for name in sorted(missing))
    return kernel(choices, inputs, outputs, name)


def _free_dim(choices: Choices, names: tuple[str, ...]) -> Dim:
    if names and choices.flip(45):
        base = symbol(choices.pick(names))
        return choices.pick((base, base, base, base + 1, base * 2, base // 2 + 1)) if choices.flip(30) else base
    return choices.pick((4, 3, 1, 2, 5, 8, 16)) if not choices.flip(3) else 0


def _input_type(choices: Choices, shape: tuple[Dim, ...], names: tuple[str, ...]) -> KernelType:
    if choices.flip(10):
        return PrimType(choices.pick(("float32", "int32", "int64", "bool")))
    kind = choices.integer(0, 5)
    if kind == 1 and shape:
        shape = tuple(1 if choices.flip() else dim for dim in shape)
    elif kind == 2 and shape:
        shape = shape[1:]
    elif kind == 3:
        shape = (*shape, _free_dim(choices, names))
    elif kind == 4:
        shape = tuple(_free_dim(choices, names) for _ in range(choices.integer(0, 2)))
    return TensorType(shape, choices.pick(DTYPES))


def kernel(
    choices: Choices,
    inputs: Sequence[KernelType],
    outputs: Sequence[KernelType],
    name: str = "kernel",
    private: bool = False,
    exact: bool = True,
    extra: int = 0,
) -> PrimFunc:
    """A kernel whose parameters have the given types, with symbols of its own; outputs come after inputs.

    `exact` says that rounding cannot have changed the inputs much (see `scalars`); `extra` int64 scalars follow the
    outputs.
    """
    return _build(KernelState(choices, inputs, outputs, exact, extra), name, private)


def _build(kernel: KernelState, name: str, private: bool) -> PrimFunc:
    """The kernel."""
    statements: list[Stmt] = []
    for output in kernel.outputs:
        statements.extend(_fill(kernel, output))
        kernel.sources.append(output)
    if not statements:
        statements.append(SeqStmt())
    body = sequence(statements)
    allocations = [s.buffer for s in statements if isinstance(s, AllocBuffer)]
    if allocations and kernel.choices.flip():
        rest = sequence([s for s in statements if not isinstance(s, AllocBuffer)])
        body = Block("root", rest, alloc_buffers=tuple(allocations))
    attrs = (
        FrozenMap({"tir.noalias": True})
        if kernel.choices.flip(30)
        else attribute_map(kernel.choices)
        if kernel.choices.flip(10)
        else FrozenMap()
    )
    return PrimFunc(tuple(kernel.params), body, private=private, attrs=attrs, name=name)


def _fill(kernel: KernelState, output: Source) -> list[Stmt]:
    """Statements that write every element of a buffer; it may be read afterwards."""
    if kernel.choices.flip(20):
        scratch = kernel.buffer(output.dims, kernel.choices.pick(DTYPES), kernel.choices.pick(("global", "local")))
        before = _stage(kernel, scratch)
        kernel.sources.append(scratch)
        try:
            return [AllocBuffer(scratch.buffer), before, _stage(kernel, output)]
        finally:
            kernel.sources.remove(scratch)
    return [_stage(kernel, output)]


def _stage(kernel: KernelState, output: Source) -> Stmt:
    options: list[tuple[int, Callable[[KernelState, Source], Stmt]]] = [
        (4, nests.plain),
        (4, nests.blocks),
        (3, nests.reduction),
    ]
    if output.dims:
        options.append((2, nests.split))
        options.append((1, nests.counted))
        options.append((1, nests.running))
        options.append((1, nests.strided))
    if len(output.dims) >= 2:
        options.append((1, nests.rows))
        if all(is_at_least_one(dim) for dim in output.dims):
            options.append((1, nests.fused))
    if len(output.dims) == 1 and isinstance(output.dims[0], int) and output.dims[0] % 4 == 0 and output.dims[0]:
        options.append((3, nests.vectors))
    return kernel.choices.weighted(options)(kernel, output)
