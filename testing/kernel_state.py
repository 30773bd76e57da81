"""A random kernel while it is made: its parameters, what a stage may read, and loops and blocks of random kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft import dtypes
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import Dim, DimExpr, fresh_name, is_symbolic, symbol
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.node import FrozenMap
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    IterVar,
    PrimExpr,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.ir.types import PrimType, TensorType
from weft.support.records import dataclass
from weft.testing.scalars import Atom, Scalars
from weft.transform.infra.generators.choices import Choices

__all__ = ["KernelState", "KernelType", "Source", "is_at_least_one", "sequence"]

KernelType = TensorType | PrimType


def is_at_least_one(dim: Dim) -> bool:
    """Whether a dimension is a number that is no 0."""
    return isinstance(dim, int) and dim >= 1


@dataclass
class Source:
    """What a stage may read: a buffer with its dimensions."""

    buffer: Buffer
    dims: tuple[Dim, ...]
    exact: bool = False


def sequence(statements: Sequence[Stmt]) -> Stmt:
    """Statements in order, in the one form that they have."""
    flat = [inner for outer in statements for inner in (outer.stmts if isinstance(outer, SeqStmt) else (outer,))]
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))


class KernelState:
    """One kernel in the making: what it may read, and the statements that every nest is made of."""

    def __init__(
        self, choices: Choices, inputs: Sequence[KernelType], outputs: Sequence[KernelType], exact: bool, extra: int
    ) -> None:
        self.choices = choices
        self.inputs_are_exact = exact
        self.env: dict[str, PrimVar] = {}
        self.sources: list[Source] = []
        self.scalars: list[PrimVar] = []
        self.outputs: list[Source] = []
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

    def _parameter(self, ty: TensorType) -> Source:
        dims = tuple(self.own[dim] for dim in ty.dims or ())
        source = self.buffer(dims, ty.dtype or "float32")
        self.params.append(source.buffer)
        return source

    def buffer(self, dims: tuple[Dim, ...], dtype: str, scope: str = "global") -> Source:
        """A new buffer of some dimensions."""
        return Source(Buffer(self.choices.name(), tuple(self.extent(dim) for dim in dims), dtype, scope), dims)

    def extent(self, dim: Dim) -> Extent:
        """The extent that a dimension is here."""
        return dim_to_prim(dim, self.env)

    def index(self, value: int | PrimExpr) -> PrimExpr:
        """An index."""
        return cast(self.index_dtype, as_expr(value, self.index_dtype))

    def _load(self, source: Source, position: Sequence[PrimExpr], dims: Sequence[Dim]) -> BufferLoad | None:
        """The element of a source for a position in the space `dims`, as in broadcasting; None where none is sure."""
        indices: list[PrimExpr] = []
        shift = len(dims) - len(source.dims)
        for axis, dim in enumerate(source.dims):
            at = axis + shift
            if at >= 0 and dim == dims[at]:
                indices.append(position[at])
            elif is_at_least_one(dim):
                assert isinstance(dim, int)
                whole = position[at] if at >= 0 else self.index(0)
                indices.append(self.index(0) if dim == 1 or at < 0 else binary("floormod", whole, self.index(dim)))
            else:
                return None
        return BufferLoad(source.buffer, tuple(indices))

    def atoms(self, position: Sequence[PrimExpr], dims: Sequence[Dim]) -> list[Atom]:
        """What an expression at a position may read."""
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
        return Scalars(self.choices, self.atoms(position, dims)).value(dtype, self.choices.integer(0, depth))

    def store(self, output: Source, position: Sequence[PrimExpr]) -> Stmt:
        """A statement that writes one element."""
        dtype = output.buffer.dtype
        indices = tuple(position)
        kind = self.choices.integer(0, 9)
        if kind == 9:
            first = BufferStore(output.buffer, self.value(dtype, position, output.dims), indices)
            second = BufferStore(output.buffer, self.value(dtype, position, output.dims), indices)
            scalars = Scalars(self.choices, self.atoms(position, output.dims))
            return IfThenElse(scalars.value("bool", 2), first, second)
        joined = "or" if dtypes.is_bool(dtype) else "add"
        if kind == 8:
            variable = PrimVar(self.choices.name(), dtype)
            bind = Bind(variable, self.value(dtype, position, output.dims))
            value = binary(joined, variable, self.value(dtype, position, output.dims, 1))
            return SeqStmt((bind, BufferStore(output.buffer, value, indices)))
        if kind == 7:
            first = BufferStore(output.buffer, self.value(dtype, position, output.dims, 1), indices)
            scalars = Scalars(self.choices, self.atoms(position, output.dims))
            sum_ = binary(joined, BufferLoad(output.buffer, indices), scalars.leaf(dtype))
            condition = scalars.value("bool", 1)
            return SeqStmt((first, IfThenElse(condition, BufferStore(output.buffer, sum_, indices))))
        return BufferStore(output.buffer, self.value(dtype, position, output.dims), indices)

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

    def block(self, name: str, output: Source, iters: list[IterVar], body: Stmt, **parts: object) -> Block:
        """A block with derived or written-out accesses."""
        result = Block(name, body, iter_vars=tuple(iters), **parts)  # type: ignore[arg-type]
        if not self.choices.flip(40):
            return result
        loads = [node.buffer for node in walk(result) if isinstance(node, BufferLoad)]
        read = [b for b in dict.fromkeys(loads) if b is not output.buffer or not self.choices.flip(30)]
        reads = tuple(
            self.whole(buffer) for buffer in dict.fromkeys(loads) if buffer in read or parts.get("init") is None
        )
        if parts.get("init") is not None:
            reads = tuple(region for region in reads if region.buffer is not output.buffer)
        return Block(
            name,
            body,
            tuple(iters),
            reads=reads,
            writes=(self.whole(output.buffer),),
            **parts,  # type: ignore[arg-type]
        )

    def whole(self, buffer: Buffer) -> BufferRegion:
        """All of a buffer."""
        return BufferRegion(buffer, tuple(Range(0, extent) for extent in buffer.shape))

    def axis(self, name: str, extent: Extent, value: PrimExpr, kind: str = "spatial") -> IterVar:
        """An axis of a block, bound to a value."""
        return IterVar(self.variable(name), 0, extent, kind, value)

    def loop_serial(self, variable: PrimVar, dim: Dim, body: Stmt) -> For:
        """A serial loop."""
        return For(variable, 0, self.extent(dim), body)
