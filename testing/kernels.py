"""Random kernels that run: every output element is written, every index is in range, for all symbol values from 0 up.

    kernel(choices, inputs, outputs)     a PrimFunc for given parameter types (what a `call_tir` needs)
    free_kernel(choices)                 a PrimFunc for types of its own choice

Each output is filled by one stage, sometimes through a scratch buffer: a loop nest of some form (plain, with blocks,
split with a predicate, fused, vector code, a counted `while`, a running value, a reduction) around a random expression
of what the stage may read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from weft import dtypes
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import Dim, DimExpr, fresh_name, is_symbolic, symbol
from weft.ir.kernel.prim import as_expr, binary, cast, const
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.node import FrozenMap
from weft.ir.structure.visit import walk
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
    Extent,
    For,
    IfThenElse,
    IterVar,
    MatchBufferRegion,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    SeqStmt,
    Stmt,
    While,
)
from weft.ir.types import PrimType, TensorType
from weft.testing.scalars import Atom, Scalars
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import DTYPES, attribute_map

__all__ = ["free_kernel", "kernel"]

KernelType = TensorType | PrimType


def _is_at_least_one(dim: Dim) -> bool:
    return isinstance(dim, int) and dim >= 1


@dataclass
class _Source:
    """What a stage may read: a buffer with its dimensions."""

    buffer: Buffer
    dims: tuple[Dim, ...]
    exact: bool = False


def sequence(statements: Sequence[Stmt]) -> Stmt:
    """Statements in order, in the one form that they have."""
    flat = [inner for outer in statements for inner in (outer.stmts if isinstance(outer, SeqStmt) else (outer,))]
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))


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
    return _Kernel(choices, inputs, outputs, exact, extra).build(name, private)


class _Kernel:
    """One kernel in the making."""

    def __init__(
        self, choices: Choices, inputs: Sequence[KernelType], outputs: Sequence[KernelType], exact: bool, extra: int
    ) -> None:
        self.choices = choices
        self.inputs_are_exact = exact
        self.env: dict[str, PrimVar] = {}
        self.sources: list[_Source] = []
        self.scalars: list[PrimVar] = []
        self.outputs: list[_Source] = []
        self.params: list[Buffer | PrimVar] = []
        self.own: dict[Dim, Dim] = {}
        self._own_dimensions([ty for ty in (*inputs, *outputs) if isinstance(ty, TensorType)])
        self.index_dtype = "int64" if self.env or choices.flip() else "int32"
        for ty in inputs:
            if isinstance(ty, PrimType):
                scalar = PrimVar(choices.name(), ty.dtype)
                self.scalars.append(scalar)
                self.params.append(scalar)
            else:
                source = self._parameter(ty)
                source.exact = exact
                self.sources.append(source)
        for ty in outputs:
            assert isinstance(ty, TensorType)
            self.outputs.append(self._parameter(ty))
        for _ in range(extra):
            scalar = PrimVar(choices.name(), "int64")
            self.scalars.append(scalar)
            self.params.append(scalar)

    # Parameters ------------------------------------------------------------------------------------------------------

    def _own_dimensions(self, types: Sequence[TensorType]) -> None:
        """Give every symbol a variable; a compound dimension over symbols that no shape binds becomes a symbol."""
        dims = [dim for ty in types for dim in ty.dims or ()]
        bare = {str(dim) for dim in dims if isinstance(dim, DimExpr) and str(dim).isidentifier()}
        general = self.choices.flip(15)
        for dim in dims:
            if dim in self.own:
                continue
            names = type_symbols(TensorType((dim,)))
            if is_symbolic(dim) and names <= bare:
                self.own[dim] = dim
                for name in sorted(names):
                    self.env.setdefault(name, PrimVar(self.choices.pick((name, name, "n")), "int64"))
            elif is_symbolic(dim):
                self.own[dim] = self._symbol()
            else:
                self.own[dim] = self._symbol() if general and self.choices.flip() else dim

    def _symbol(self) -> Dim:
        name = fresh_name("d", set(self.env))
        self.env[name] = PrimVar(name, "int64")
        return symbol(name)

    def _parameter(self, ty: TensorType) -> _Source:
        dims = tuple(self.own[dim] for dim in ty.dims or ())
        source = self._buffer(dims, ty.dtype or "float32")
        self.params.append(source.buffer)
        return source

    def _buffer(self, dims: tuple[Dim, ...], dtype: str, scope: str = "global") -> _Source:
        return _Source(Buffer(self.choices.name(), tuple(self.extent(dim) for dim in dims), dtype, scope), dims)

    def extent(self, dim: Dim) -> Extent:
        """The extent that a dimension is here."""
        return dim_to_prim(dim, self.env)

    def build(self, name: str, private: bool) -> PrimFunc:
        """The kernel."""
        statements: list[Stmt] = []
        for output in self.outputs:
            statements.extend(self._fill(output))
            self.sources.append(output)
        if not statements:
            statements.append(SeqStmt())
        body = sequence(statements)
        allocations = [s.buffer for s in statements if isinstance(s, AllocBuffer)]
        if allocations and self.choices.flip():
            rest = sequence([s for s in statements if not isinstance(s, AllocBuffer)])
            body = Block("root", rest, alloc_buffers=tuple(allocations))
        attrs = (
            FrozenMap({"tir.noalias": True})
            if self.choices.flip(30)
            else attribute_map(self.choices)
            if self.choices.flip(10)
            else FrozenMap()
        )
        return PrimFunc(tuple(self.params), body, private=private, attrs=attrs, name=name)

    def _fill(self, output: _Source) -> list[Stmt]:
        """Statements that write every element of a buffer; it may be read afterwards."""
        if self.choices.flip(20):
            scratch = self._buffer(output.dims, self.choices.pick(DTYPES), self.choices.pick(("global", "local")))
            before = self._stage(scratch)
            self.sources.append(scratch)
            try:
                return [AllocBuffer(scratch.buffer), before, self._stage(output)]
            finally:
                self.sources.remove(scratch)
        return [self._stage(output)]

    # Reading ---------------------------------------------------------------------------------------------------------

    def index(self, value: int | PrimExpr) -> PrimExpr:
        """An index."""
        return cast(self.index_dtype, as_expr(value, self.index_dtype))

    def _load(self, source: _Source, position: Sequence[PrimExpr], dims: Sequence[Dim]) -> BufferLoad | None:
        """The element of a source for a position in the space `dims`, as in broadcasting; None where none is sure."""
        indices: list[PrimExpr] = []
        shift = len(dims) - len(source.dims)
        for axis, dim in enumerate(source.dims):
            at = axis + shift
            if at >= 0 and dim == dims[at]:
                indices.append(position[at])
            elif _is_at_least_one(dim):
                assert isinstance(dim, int)
                whole = position[at] if at >= 0 else self.index(0)
                indices.append(self.index(0) if dim == 1 or at < 0 else binary("floormod", whole, self.index(dim)))
            else:
                return None
        return BufferLoad(source.buffer, tuple(indices))

    def _atoms(self, position: Sequence[PrimExpr], dims: Sequence[Dim]) -> list[Atom]:
        atoms: list[Atom] = []
        for source in self.sources:
            load = self._load(source, position, dims)
            if load is not None:
                exact = source.exact or not dtypes.is_float(source.buffer.dtype)
                atoms.append(Atom(source.buffer.dtype, lambda load=load: BufferLoad(load.buffer, load.indices), exact))
        atoms.extend(Atom(scalar.dtype, lambda scalar=scalar: scalar) for scalar in self.scalars)
        atoms.extend(Atom(at.dtype, lambda at=at: at) for at in position if self.choices.flip(30))
        atoms.extend(
            Atom("int64", lambda variable=variable: variable) for variable in self.env.values() if self.choices.flip(30)
        )
        return atoms

    def value(self, dtype: str, position: Sequence[PrimExpr], dims: Sequence[Dim], depth: int = 3) -> PrimExpr:
        """A random expression at a position."""
        return Scalars(self.choices, self._atoms(position, dims)).value(dtype, self.choices.integer(0, depth))

    def store(self, output: _Source, position: Sequence[PrimExpr]) -> Stmt:
        """A statement that writes one element."""
        dtype = output.buffer.dtype
        indices = tuple(position)
        kind = self.choices.integer(0, 9)
        if kind == 9:
            first = BufferStore(output.buffer, self.value(dtype, position, output.dims), indices)
            second = BufferStore(output.buffer, self.value(dtype, position, output.dims), indices)
            scalars = Scalars(self.choices, self._atoms(position, output.dims))
            return IfThenElse(scalars.value("bool", 2), first, second)
        joined = "or" if dtypes.is_bool(dtype) else "add"
        if kind == 8:
            variable = PrimVar(self.choices.name(), dtype)
            bind = Bind(variable, self.value(dtype, position, output.dims))
            value = binary(joined, variable, self.value(dtype, position, output.dims, 1))
            return SeqStmt((bind, BufferStore(output.buffer, value, indices)))
        if kind == 7:
            first = BufferStore(output.buffer, self.value(dtype, position, output.dims, 1), indices)
            scalars = Scalars(self.choices, self._atoms(position, output.dims))
            sum_ = binary(joined, BufferLoad(output.buffer, indices), scalars.leaf(dtype))
            condition = scalars.value("bool", 1)
            return SeqStmt((first, IfThenElse(condition, BufferStore(output.buffer, sum_, indices))))
        return BufferStore(output.buffer, self.value(dtype, position, output.dims), indices)

    # Stages ----------------------------------------------------------------------------------------------------------

    def _stage(self, output: _Source) -> Stmt:
        options: list[tuple[int, Callable[[_Source], Stmt]]] = [
            (4, self._plain),
            (4, self._blocks),
            (3, self._reduction),
        ]
        if output.dims:
            options.append((2, self._split))
            options.append((1, self._counted))
            options.append((1, self._running))
            options.append((1, self._strided))
        if len(output.dims) >= 2:
            options.append((1, self._rows))
            if all(_is_at_least_one(dim) for dim in output.dims):
                options.append((1, self._fused))
        if len(output.dims) == 1 and isinstance(output.dims[0], int) and output.dims[0] % 4 == 0 and output.dims[0]:
            options.append((3, self._vectors))
        return self.choices.weighted(options)(output)

    def variable(self, base: str) -> PrimVar:
        """A loop variable."""
        return PrimVar(self.choices.name() if self.choices.flip(10) else base, self.index_dtype)

    def loop(self, variable: PrimVar, extent: Extent, body: Stmt, innermost: bool = False) -> For:
        """A loop of some kind."""
        kinds = (
            ["serial", "serial", "parallel", "unrolled"]
            if isinstance(extent, int)
            else ["serial", "serial", "parallel"]
        )
        if innermost and isinstance(extent, int) and extent in (2, 4, 8, 16) and isinstance(body, BufferStore):
            kinds.extend(["vectorized"] * 2)
        annotations = FrozenMap({"pragma": self.choices.text()}) if self.choices.flip(5) else FrozenMap()
        return For(variable, 0, extent, body, kind=self.choices.pick(kinds), annotations=annotations)

    def nest(self, dims: Sequence[Dim], body: Callable[[list[PrimExpr]], Stmt]) -> Stmt:
        """Loops over the whole of a space."""
        variables = [self.variable("ijkl"[axis % 4]) for axis in range(len(dims))]
        statement = body(list(variables))
        for axis in reversed(range(len(dims))):
            innermost = axis == len(dims) - 1 and not any(isinstance(node, Block) for node in walk(statement))
            statement = self.loop(variables[axis], self.extent(dims[axis]), statement, innermost)
        return statement

    def _plain(self, output: _Source) -> Stmt:
        return self.nest(output.dims, lambda position: self.store(output, position))

    def block(self, name: str, output: _Source, iters: list[IterVar], body: Stmt, **parts: object) -> Block:
        """A block with derived or written-out accesses."""
        result = Block(name, body, iter_vars=tuple(iters), **parts)  # type: ignore[arg-type]
        if not self.choices.flip(40):
            return result
        loads = [node.buffer for node in walk(result) if isinstance(node, BufferLoad)]
        read = [b for b in dict.fromkeys(loads) if b is not output.buffer or not self.choices.flip(30)]
        reads = tuple(
            self._whole(buffer) for buffer in dict.fromkeys(loads) if buffer in read or parts.get("init") is None
        )
        if parts.get("init") is not None:
            reads = tuple(region for region in reads if region.buffer is not output.buffer)
        return Block(
            name,
            body,
            tuple(iters),
            reads=reads,
            writes=(self._whole(output.buffer),),
            **parts,  # type: ignore[arg-type]
        )

    def _whole(self, buffer: Buffer) -> BufferRegion:
        return BufferRegion(buffer, tuple(Range(0, extent) for extent in buffer.shape))

    def _axis(self, name: str, extent: Extent, value: PrimExpr, kind: str = "spatial") -> IterVar:
        return IterVar(self.variable(name), 0, extent, kind, value)

    def _blocks(self, output: _Source) -> Stmt:
        def body(position: list[PrimExpr]) -> Stmt:
            axes = [
                self._axis("v" + "ijkl"[i % 4], self.extent(dim), at)
                for i, (dim, at) in enumerate(zip(output.dims, position, strict=True))
            ]
            return self.block("compute", output, axes, self.store(output, [axis.var for axis in axes]))

        return self.nest(output.dims, body)

    def _split(self, output: _Source) -> Stmt:
        """The last loop in two, with a predicate for the rest."""
        factor = self.choices.pick((2, 3, 4))
        last = self.extent(output.dims[-1])
        whole = last % factor == 0 if isinstance(last, int) else False
        outer = (
            (last + factor - 1) // factor if isinstance(last, int) else binary("floordiv", last + (factor - 1), factor)
        )
        dims = output.dims[:-1]
        io, ii = self.variable("io"), self.variable("ii")
        at = binary("add", binary("mul", io, self.index(factor)), ii)

        def body(position: list[PrimExpr]) -> Stmt:
            guard = None if whole else binary("lt", at, self.index(last))
            if self.choices.flip():
                inner = self.store(output, [*position, at])
                inner = inner if guard is None else IfThenElse(guard, inner)
            else:
                axes = [self._axis("v", self.extent(dim), p) for dim, p in zip(dims, position, strict=True)]
                axes.append(self._axis("vs", last, at))
                inner = self.block(
                    "split", output, axes, self.store(output, [axis.var for axis in axes]), predicate=guard
                )
            return For(io, 0, outer, For(ii, 0, factor, inner), kind=self.choices.pick(("serial", "parallel")))

        return self.nest(dims, body)

    def _fused(self, output: _Source) -> Stmt:
        """One loop over all axes."""
        sizes = [dim for dim in output.dims if isinstance(dim, int)]
        fused = self.variable("fused")
        position: list[PrimExpr] = []
        for axis, size in enumerate(sizes):
            inner = prod(sizes[axis + 1 :])
            outer = fused if inner == 1 else binary("floordiv", fused, self.index(inner))
            position.append(outer if axis == 0 else binary("floormod", outer, self.index(size)))
        axes = [self._axis("v", size, at) for size, at in zip(sizes, position, strict=True)]
        body = self.block("fused", output, axes, self.store(output, [axis.var for axis in axes]))
        return self.loop(fused, prod(sizes), body)

    def _reduction(self, output: _Source) -> Stmt:
        """A block with a reduction axis: over the last axis of a source that has one more, else over a few values."""
        longer = [s for s in self.sources if s.dims[:-1] == output.dims and s.dims]
        source = self.choices.pick(longer) if longer and self.choices.flip(70) else None
        count: Dim = source.dims[-1] if source else self.choices.pick((2, 3, 1))
        dtype = output.buffer.dtype
        operation = "or" if dtypes.is_bool(dtype) else self.choices.pick(("add", "max", "min"))
        space = (*output.dims, count)

        def body(position: list[PrimExpr]) -> Stmt:
            kinds = ["spatial"] * len(output.dims) + ["reduce"]
            axes = [
                self._axis("v" + "ijkl"[i % 4], self.extent(dim), at, kind)
                for i, (dim, at, kind) in enumerate(zip(space, position, kinds, strict=True))
            ]
            inside = [axis.var for axis in axes]
            spot = tuple(inside[:-1])
            if source:
                element: PrimExpr = BufferLoad(source.buffer, tuple(inside))
                element = element if element.dtype == dtype else self.value(dtype, spot, output.dims, 1)
            else:
                element = self.value(dtype, inside, space, 2)
            init = BufferStore(output.buffer, const(0, dtype), spot)
            update = BufferStore(output.buffer, binary(operation, BufferLoad(output.buffer, spot), element), spot)
            return self.block("reduce", output, axes, update, init=init)

        # A block whose reduction has no iterations never runs its init, so a size that may be zero gets its own.
        statement = self.nest(space, body)
        if _is_at_least_one(count):
            return statement
        return sequence(
            [
                self.nest(output.dims, lambda position: BufferStore(output.buffer, const(0, dtype), tuple(position))),
                statement,
            ]
        )

    def _vectors(self, output: _Source) -> Stmt:
        """Vector code over a static size."""
        size = output.dims[0]
        assert isinstance(size, int)
        lanes = self.choices.pick((4, 2))
        io = self.variable("io")
        ramp = Ramp(binary("mul", io, self.index(lanes)), self.index(1), lanes)
        atoms = []
        for source in self.sources:
            if source.dims == output.dims and source.buffer.dtype == output.buffer.dtype:
                atoms.append(lambda source=source: BufferLoad(source.buffer, (ramp,)))
        dtype = output.buffer.dtype
        value = self._vector_value(dtype, lanes, atoms, 2)
        return self.loop(io, size // lanes, BufferStore(output.buffer, value, (ramp,)))

    def _vector_value(self, dtype: str, lanes: int, atoms: Sequence[Callable[[], PrimExpr]], depth: int) -> PrimExpr:
        kind = self.choices.integer(0, 4)
        if depth <= 0 or kind == 0:
            if atoms and self.choices.flip(70):
                return self.choices.pick(atoms)()
            return Broadcast(Scalars(self.choices, []).number(dtype), lanes)
        left, right = (self._vector_value(dtype, lanes, atoms, depth - 1) for _ in range(2))
        if dtypes.is_bool(dtype):
            return binary(self.choices.pick(("and", "or")), left, right)
        if kind == 1:
            return Cast(f"{dtype}x{lanes}", self._vector_value("int32", lanes, (), depth - 1))
        return binary(self.choices.pick(("add", "sub", "mul", "max", "min")), left, right)

    def _counted(self, output: _Source) -> Stmt:
        """The first axis by a `while` with a counter in memory."""
        counter = Buffer("counter", (1,), self.index_dtype, "local")
        spot = (self.index(0),)
        count = self.index(self.extent(output.dims[0]))
        step = BufferStore(counter, binary("add", BufferLoad(counter, spot), self.index(1)), spot)
        now = self.variable("now")
        inner = self.nest(output.dims[1:], lambda position: self.store(output, [now, *position]))
        body = sequence([Bind(now, BufferLoad(counter, spot)), inner, step])
        start = BufferStore(counter, self.index(0), spot)
        return sequence([AllocBuffer(counter), start, While(binary("lt", BufferLoad(counter, spot), count), body)])

    def _running(self, output: _Source) -> Stmt:
        """Along the last axis each element from the one before; with `continue`, or a second pass with `break`."""
        last = output.dims[-1]
        dtype = output.buffer.dtype
        along = self.variable("s")

        def body(position: list[PrimExpr]) -> Stmt:
            here = (*position, along)
            before = BufferLoad(output.buffer, (*position, binary("sub", along, self.index(1))))
            first = BufferStore(output.buffer, self.value(dtype, here, output.dims, 1), here)
            operation = "or" if dtypes.is_bool(dtype) else self.choices.pick(("max", "min"))
            scalars = Scalars(self.choices, self._atoms(here, output.dims))
            following = BufferStore(output.buffer, binary(operation, before, scalars.leaf(dtype)), here)
            if self.choices.flip(30):
                skip = IfThenElse(binary("gt", along, self.index(0)), SeqStmt((following, Continue())))
                return self.loop_serial(along, last, SeqStmt((skip, first)))
            return self.loop_serial(along, last, IfThenElse(binary("eq", along, self.index(0)), first, following))

        statement = self.nest(output.dims[:-1], body)
        if not self.choices.flip(20):
            return statement
        again = self.variable("t")
        stop = IfThenElse(binary("ge", again, self.index(2)), Break())
        touch = self.nest(output.dims[1:], lambda position: self.store(output, [again, *position]))
        return sequence([statement, self.loop_serial(again, output.dims[0], sequence([stop, touch]))])

    def loop_serial(self, variable: PrimVar, dim: Dim, body: Stmt) -> For:
        """A serial loop."""
        return For(variable, 0, self.extent(dim), body)

    def _strided(self, output: _Source) -> Stmt:
        """The first axis in steps, or from a start other than zero."""
        first = self.extent(output.dims[0])
        at = self.variable("i")

        def inner(position: PrimExpr) -> Stmt:
            return self.nest(output.dims[1:], lambda rest: self.store(output, [position, *rest]))

        if self.choices.flip():
            shift = self.choices.pick((1, 3, -2))
            return For(
                at,
                shift,
                first,
                inner(binary("sub", at, self.index(shift)) if shift > 0 else binary("add", at, self.index(-shift))),
            )
        following = binary("add", at, self.index(1))
        rest = IfThenElse(binary("lt", following, self.index(first)), inner(following))
        return For(at, 0, first, sequence([inner(at), rest]), step=2)

    def _rows(self, output: _Source) -> Stmt:
        """A block per row that sees its row as a buffer of its own."""
        dims = output.dims
        row = self._axis("vr", self.extent(dims[0]), (variable := self.variable("r")))
        region = BufferRegion(output.buffer, (Range(row.var, 1), *(Range(0, self.extent(dim)) for dim in dims[1:])))
        view = Buffer("row", (1, *output.buffer.shape[1:]), output.buffer.dtype)
        body = self.nest(
            dims[1:],
            lambda rest: BufferStore(view, self.value(view.dtype, [row.var, *rest], dims), (self.index(0), *rest)),
        )
        block = Block("rows", body, (row,), match_buffers=(MatchBufferRegion(view, region),))
        return self.loop_serial(variable, dims[0], block)
