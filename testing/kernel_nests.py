"""Loop nests that write every element of a buffer, one function for each form (`weft.testing.kernels` chooses)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from weft import dtypes
from weft.ir.dim import Dim
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    For,
    IfThenElse,
    MatchBufferRegion,
    PrimExpr,
    Ramp,
    Range,
    SeqStmt,
    Stmt,
    While,
)
from weft.testing.kernel_state import KernelState, Source, is_at_least_one, sequence
from weft.testing.scalars import Scalars

__all__ = ["blocks", "counted", "fused", "plain", "reduction", "rows", "running", "split", "strided", "vectors"]


def plain(kernel: KernelState, output: Source) -> Stmt:
    """A loop for each axis."""
    return kernel.nest(output.dims, lambda position: kernel.store(output, position))


def blocks(kernel: KernelState, output: Source) -> Stmt:
    """A loop for each axis around a block."""

    def body(position: list[PrimExpr]) -> Stmt:
        axes = [
            kernel.axis("v" + "ijkl"[i % 4], kernel.extent(dim), at)
            for i, (dim, at) in enumerate(zip(output.dims, position, strict=True))
        ]
        return kernel.block("compute", output, axes, kernel.store(output, [axis.var for axis in axes]))

    return kernel.nest(output.dims, body)


def split(kernel: KernelState, output: Source) -> Stmt:
    """The last loop in two, with a predicate for the rest."""
    factor = kernel.choices.pick((2, 3, 4))
    last = kernel.extent(output.dims[-1])
    whole = last % factor == 0 if isinstance(last, int) else False
    outer = (last + factor - 1) // factor if isinstance(last, int) else binary("floordiv", last + (factor - 1), factor)
    dims = output.dims[:-1]
    io, ii = kernel.variable("io"), kernel.variable("ii")
    at = binary("add", binary("mul", io, kernel.index(factor)), ii)

    def body(position: list[PrimExpr]) -> Stmt:
        guard = None if whole else binary("lt", at, kernel.index(last))
        if kernel.choices.flip():
            inner = kernel.store(output, [*position, at])
            inner = inner if guard is None else IfThenElse(guard, inner)
        else:
            axes = [kernel.axis("v", kernel.extent(dim), p) for dim, p in zip(dims, position, strict=True)]
            axes.append(kernel.axis("vs", last, at))
            inner = kernel.block(
                "split", output, axes, kernel.store(output, [axis.var for axis in axes]), predicate=guard
            )
        return For(io, 0, outer, For(ii, 0, factor, inner), kind=kernel.choices.pick(("serial", "parallel")))

    return kernel.nest(dims, body)


def fused(kernel: KernelState, output: Source) -> Stmt:
    """One loop over all axes."""
    sizes = [dim for dim in output.dims if isinstance(dim, int)]
    fused = kernel.variable("fused")
    position: list[PrimExpr] = []
    for axis, size in enumerate(sizes):
        inner = prod(sizes[axis + 1 :])
        outer = fused if inner == 1 else binary("floordiv", fused, kernel.index(inner))
        position.append(outer if axis == 0 else binary("floormod", outer, kernel.index(size)))
    axes = [kernel.axis("v", size, at) for size, at in zip(sizes, position, strict=True)]
    body = kernel.block("fused", output, axes, kernel.store(output, [axis.var for axis in axes]))
    return kernel.loop(fused, prod(sizes), body)


def reduction(kernel: KernelState, output: Source) -> Stmt:
    """A block with a reduction axis: over the last axis of a source that has one more, else over a few values."""
    longer = [s for s in kernel.sources if s.dims[:-1] == output.dims and s.dims]
    source = kernel.choices.pick(longer) if longer and kernel.choices.flip(70) else None
    count: Dim = source.dims[-1] if source else kernel.choices.pick((2, 3, 1))
    dtype = output.buffer.dtype
    operation = "or" if dtypes.is_bool(dtype) else kernel.choices.pick(("add", "max", "min"))
    space = (*output.dims, count)

    def body(position: list[PrimExpr]) -> Stmt:
        kinds = ["spatial"] * len(output.dims) + ["reduce"]
        axes = [
            kernel.axis("v" + "ijkl"[i % 4], kernel.extent(dim), at, kind)
            for i, (dim, at, kind) in enumerate(zip(space, position, kinds, strict=True))
        ]
        inside = [axis.var for axis in axes]
        spot = tuple(inside[:-1])
        if source:
            element: PrimExpr = BufferLoad(source.buffer, tuple(inside))
            element = element if element.dtype == dtype else kernel.value(dtype, spot, output.dims, 1)
        else:
            element = kernel.value(dtype, inside, space, 2)
        init = BufferStore(output.buffer, const(0, dtype), spot)
        update = BufferStore(output.buffer, binary(operation, BufferLoad(output.buffer, spot), element), spot)
        return kernel.block("reduce", output, axes, update, init=init)

    # A block whose reduction has no iterations never runs its init, so a size that may be zero gets its own.
    statement = kernel.nest(space, body)
    if is_at_least_one(count):
        return statement
    return sequence(
        [
            kernel.nest(output.dims, lambda position: BufferStore(output.buffer, const(0, dtype), tuple(position))),
            statement,
        ]
    )


def vectors(kernel: KernelState, output: Source) -> Stmt:
    """Vector code over a static size."""
    size = output.dims[0]
    assert isinstance(size, int)
    lanes = kernel.choices.pick((4, 2))
    io = kernel.variable("io")
    ramp = Ramp(binary("mul", io, kernel.index(lanes)), kernel.index(1), lanes)
    atoms = []
    for source in kernel.sources:
        if source.dims == output.dims and source.buffer.dtype == output.buffer.dtype:
            atoms.append(lambda source=source: BufferLoad(source.buffer, (ramp,)))
    dtype = output.buffer.dtype
    value = vector_value(kernel, dtype, lanes, atoms, 2)
    return kernel.loop(io, size // lanes, BufferStore(output.buffer, value, (ramp,)))


def vector_value(
    kernel: KernelState, dtype: str, lanes: int, atoms: Sequence[Callable[[], PrimExpr]], depth: int
) -> PrimExpr:
    """A random expression of vectors."""
    kind = kernel.choices.integer(0, 4)
    if depth <= 0 or kind == 0:
        if atoms and kernel.choices.flip(70):
            return kernel.choices.pick(atoms)()
        return Broadcast(Scalars(kernel.choices, []).number(dtype), lanes)
    left, right = (vector_value(kernel, dtype, lanes, atoms, depth - 1) for _ in range(2))
    if dtypes.is_bool(dtype):
        return binary(kernel.choices.pick(("and", "or")), left, right)
    if kind == 1:
        return Cast(f"{dtype}x{lanes}", vector_value(kernel, "int32", lanes, (), depth - 1))
    return binary(kernel.choices.pick(("add", "sub", "mul", "max", "min")), left, right)


def counted(kernel: KernelState, output: Source) -> Stmt:
    """The first axis by a `while` with a counter in memory."""
    counter = Buffer("counter", (1,), kernel.index_dtype, "local")
    spot = (kernel.index(0),)
    count = kernel.index(kernel.extent(output.dims[0]))
    step = BufferStore(counter, binary("add", BufferLoad(counter, spot), kernel.index(1)), spot)
    now = kernel.variable("now")
    inner = kernel.nest(output.dims[1:], lambda position: kernel.store(output, [now, *position]))
    body = sequence([Bind(now, BufferLoad(counter, spot)), inner, step])
    start = BufferStore(counter, kernel.index(0), spot)
    return sequence([AllocBuffer(counter), start, While(binary("lt", BufferLoad(counter, spot), count), body)])


def running(kernel: KernelState, output: Source) -> Stmt:
    """Along the last axis each element from the one before; with `continue`, or a second pass with `break`."""
    last = output.dims[-1]
    dtype = output.buffer.dtype
    along = kernel.variable("s")

    def body(position: list[PrimExpr]) -> Stmt:
        here = (*position, along)
        before = BufferLoad(output.buffer, (*position, binary("sub", along, kernel.index(1))))
        first = BufferStore(output.buffer, kernel.value(dtype, here, output.dims, 1), here)
        operation = "or" if dtypes.is_bool(dtype) else kernel.choices.pick(("max", "min"))
        scalars = Scalars(kernel.choices, kernel.atoms(here, output.dims))
        following = BufferStore(output.buffer, binary(operation, before, scalars.leaf(dtype)), here)
        if kernel.choices.flip(30):
            skip = IfThenElse(binary("gt", along, kernel.index(0)), SeqStmt((following, Continue())))
            return kernel.loop_serial(along, last, SeqStmt((skip, first)))
        return kernel.loop_serial(along, last, IfThenElse(binary("eq", along, kernel.index(0)), first, following))

    statement = kernel.nest(output.dims[:-1], body)
    if not kernel.choices.flip(20):
        return statement
    again = kernel.variable("t")
    stop = IfThenElse(binary("ge", again, kernel.index(2)), Break())
    touch = kernel.nest(output.dims[1:], lambda position: kernel.store(output, [again, *position]))
    return sequence([statement, kernel.loop_serial(again, output.dims[0], sequence([stop, touch]))])


def strided(kernel: KernelState, output: Source) -> Stmt:
    """The first axis in steps, or from a start other than zero."""
    first = kernel.extent(output.dims[0])
    at = kernel.variable("i")

    def inner(position: PrimExpr) -> Stmt:
        return kernel.nest(output.dims[1:], lambda rest: kernel.store(output, [position, *rest]))

    if kernel.choices.flip():
        shift = kernel.choices.pick((1, 3, -2))
        return For(
            at,
            shift,
            first,
            inner(binary("sub", at, kernel.index(shift)) if shift > 0 else binary("add", at, kernel.index(-shift))),
        )
    following = binary("add", at, kernel.index(1))
    rest = IfThenElse(binary("lt", following, kernel.index(first)), inner(following))
    return For(at, 0, first, sequence([inner(at), rest]), step=2)


def rows(kernel: KernelState, output: Source) -> Stmt:
    """A block per row that sees its row as a buffer of its own."""
    dims = output.dims
    row = kernel.axis("vr", kernel.extent(dims[0]), (variable := kernel.variable("r")))
    region = BufferRegion(output.buffer, (Range(row.var, 1), *(Range(0, kernel.extent(dim)) for dim in dims[1:])))
    view = Buffer("row", (1, *output.buffer.shape[1:]), output.buffer.dtype)
    body = kernel.nest(
        dims[1:],
        lambda rest: BufferStore(view, kernel.value(view.dtype, [row.var, *rest], dims), (kernel.index(0), *rest)),
    )
    block = Block("rows", body, (row,), match_buffers=(MatchBufferRegion(view, region),))
    return kernel.loop_serial(variable, dims[0], block)
