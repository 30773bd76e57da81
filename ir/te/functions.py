"""Tensor-level functions from tensors: the loop nests of the stages that the arguments need.

    function ::= create_prim_func([tensor | scalar, ...])

Every computed tensor becomes one loop nest around one Block, in the order of first use; tensors that are not among the
arguments become local buffers. The symbols of the dimensions become int64 PrimVars, one per name and function; those
that no parameter's shape binds are appended as scalar parameters. Equal formulas give equal functions.
"""

# What callers give is checked as they run, too.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from weft.errors import VerifyError, described
from weft.ir.dim import DimExpr
from weft.ir.kernel import prim
from weft.ir.structure.visit import substitute, walk
from weft.ir.te.reductions import ReduceAxis
from weft.ir.te.scalars import any, const, equal
from weft.ir.te.sizes import INDEX, SYMBOLS, Size, as_extent, as_shape, size
from weft.ir.te.tensors import FormulaBuffer, Stage, Tensor, index_names
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
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
    PrimFunc,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass, record

__all__ = ["Argument", "Check", "Traced", "check", "create_prim_func", "trace"]

Argument: TypeAlias = Tensor | PrimVar | DimExpr


@dataclass(frozen=True, eq=False, slots=True)
class Check:
    """A condition that a function asserts before it computes, for every index of a shape (once, for none)."""

    condition: PrimExpr
    message: str
    kind: str = "ShapeError"
    shape: tuple[Size, ...] = ()
    variables: tuple[PrimVar, ...] = ()


def check(shape: Iterable[Size], condition: Callable[..., PrimExpr], message: str, kind: str = "ShapeError") -> Check:
    """A condition over indices that must hold for all of them.

    >>> from weft.ir.te import placeholder
    >>> A = placeholder((4,), "int64", name="A")
    >>> valid = check((4,), lambda i: A[i] >= 0, "an index is negative", "BoundsError")
    >>> create_prim_func([A], checks=[valid]).params[0].name
    'A'
    """
    dims = as_shape(shape)
    variables = tuple(PrimVar(text, INDEX) for text in index_names(condition, len(dims)))
    return Check(condition(*variables), message, kind, dims, variables)


@record
class Traced:
    """A created function and the symbols that became scalar parameters at its end, in order."""

    function: PrimFunc
    scalars: tuple[str, ...]


def create_prim_func(args: Sequence[Argument] | Tensor, name: str = "main", checks: Sequence[Check] = ()) -> PrimFunc:
    """The function with the given parameters, in that order, that computes those of them that are computed.

    `checks` are what the function asserts first.
    Errors: W481 when a formula uses a placeholder that is not among the arguments.

    >>> from weft.ir.te import compute, placeholder
    >>> A = placeholder((4,), name="A")
    >>> B = compute((4,), lambda i: A[i] * 2.0, name="B")
    >>> [parameter.name for parameter in create_prim_func([A, B]).params]
    ['A', 'B']
    """
    return trace(args, name, checks).function


def trace(args: Sequence[Argument] | Tensor, name: str = "main", checks: Sequence[Check] = ()) -> Traced:
    """`create_prim_func` that also tells which symbols the caller must pass after the outputs."""
    return _Builder([args] if isinstance(args, Tensor) else list(args)).build(name, checks)


class _Builder:
    """One function under construction: the maps from formula variables and buffers to its own."""

    def __init__(self, args: list[Argument]) -> None:
        self.args = args
        self.mapping: dict[Any, Any] = {}
        self.symbols: dict[str, PrimVar] = {}
        self.buffer_names: dict[str, int] = {}
        self.block_names: dict[str, int] = {}

    def build(self, name: str, checks: Sequence[Check]) -> Traced:
        params = [self._parameter(arg) for arg in self.args]
        stages = self._stages()
        own = {id(arg) for arg in self.args}
        body: list[Stmt] = [self._assertion(check) for check in checks]
        for stage in stages:
            body.extend(AllocBuffer(self._buffer(tensor)) for tensor in stage.outputs if id(tensor) not in own)
            body.extend(self._nests(stage))
        bound = {id(dim) for param in params if isinstance(param, Buffer) for dim in param.shape}
        bound |= {id(param) for param in params}
        scalars = [text for text, variable in self.symbols.items() if id(variable) not in bound]
        params.extend(self.symbols[text] for text in scalars)
        statement = body[0] if len(body) == 1 else SeqStmt(tuple(body))
        return Traced(PrimFunc(tuple(params), statement, name=name), tuple(scalars))

    def _parameter(self, arg: Argument) -> Buffer | PrimVar:
        if isinstance(arg, Tensor):
            return self._buffer(arg)
        if isinstance(arg, DimExpr):
            variable = size(arg)
            if not isinstance(variable, PrimVar):
                hint = "only a bare symbol can be a scalar parameter"
                raise VerifyError(f"{arg} is not a symbol", code="W482", hint=hint)
            return self._own(variable)
        if not isinstance(arg, PrimVar):
            hint = "the arguments are placeholders, computed tensors and symbols"
            raise VerifyError(f"{described(arg)} is no argument of a tensor expression", code="W482", hint=hint)
        return arg

    def _own(self, value: Any) -> Any:
        """The value over this function's own variables and buffers."""
        if isinstance(value, int):
            return value
        for part in walk(value):
            if isinstance(part, PrimVar) and part not in self.mapping and SYMBOLS.get(part.name) is part:
                self.mapping[part] = self.symbols[part.name] = PrimVar(part.name, INDEX)
        return substitute(value, self.mapping)

    def _buffer(self, tensor: Tensor) -> Buffer:
        found = self.mapping.get(tensor.buffer)
        if found is None:
            shape = tuple(self._own(extent) for extent in tensor.buffer.shape)
            found = Buffer(_unique(tensor.name, self.buffer_names), shape, tensor.dtype)
            self.mapping[tensor.buffer] = found
        return found

    def _stages(self) -> list[Stage]:
        """The stages that the arguments need, each after those whose tensors it reads."""
        order: list[Stage] = []
        state: dict[int, bool] = {}
        given = {id(arg) for arg in self.args}
        stack: list[tuple[Stage, bool]] = []
        for arg in reversed(self.args):
            if isinstance(arg, Tensor) and arg.stage is not None:
                stack.append((arg.stage, False))
        while stack:
            stage, expanded = stack.pop()
            if expanded:
                order.append(stage)
                continue
            if id(stage) in state:
                continue
            state[id(stage)] = True
            stack.append((stage, True))
            for tensor in reversed(_reads(stage)):
                if tensor.stage is None:
                    if id(tensor) not in given:
                        raise VerifyError(
                            f"{tensor.name!r} is read but is not among the arguments",
                            code="W481",
                            hint="pass every placeholder to create_prim_func",
                        )
                elif id(tensor.stage) not in state:
                    stack.append((tensor.stage, False))
        return order

    def _assertion(self, check: Check) -> Stmt:
        """A check as an assert, in loops where it has indices."""
        extents = [self._own(as_extent(size)) for size in check.shape]
        loops = [PrimVar(variable.name, INDEX) for variable in check.variables]
        values = [PrimVar(f"v{variable.name}", INDEX) for variable in check.variables]
        self.mapping.update(zip(check.variables, values, strict=True))
        statement: Stmt = AssertStmt(self._own(check.condition), check.message, check.kind)
        if not loops:
            return statement
        iters = (
            IterVar(*parts)
            for parts in zip(values, [0] * len(loops), extents, ["spatial"] * len(loops), loops, strict=True)
        )
        statement = Block(_unique("check", self.block_names), statement, tuple(iters))
        for loop, extent in reversed(list(zip(loops, extents, strict=True))):
            statement = For(loop, 0, extent, statement)
        return statement

    def _nests(self, stage: Stage) -> Iterator[Stmt]:
        """The loop nest of a stage, after one for the case that a reduction has nothing to join.

        A block's init runs before its first iteration, so never where there is none.
        """
        if stage.statement is not None:
            yield self._whole(stage, stage.statement)
            return
        starts, extents = self._domain(stage)
        count = stage.outputs[0].ndim
        unsure = [extent for extent in extents[count:] if not isinstance(extent, int) or extent == 0]
        if stage.reduction is not None and stage.reduction.may_be_empty and unsure:
            stores = lambda: (None, self._identity(stage))  # noqa: E731
            fill = self._nest(f"{stage.name}_empty", stage, starts[:count], extents[:count], stores)
            if 0 in unsure:
                yield fill
                return
            yield IfThenElse(any(*(equal(extent, const(0, INDEX)) for extent in unsure)), fill)
        yield self._nest(stage.name, stage, starts, extents, lambda: self._statements(stage))

    def _whole(self, stage: Stage, statement: Stmt) -> Stmt:
        """The statement of a stage in a block that declares to read and write whole tensors."""
        reads, writes = (tuple(self._region(tensor) for tensor in tensors) for tensors in (stage.inputs, stage.outputs))
        name = _unique(stage.name, self.block_names)
        return Block(name, self._own(statement), (), reads=reads, writes=writes)

    def _region(self, tensor: Tensor) -> BufferRegion:
        buffer = self._buffer(tensor)
        return BufferRegion(buffer, tuple(Range(0, extent) for extent in buffer.shape))

    def _nest(
        self,
        name: str,
        stage: Stage,
        starts: Sequence[Extent],
        extents: Sequence[Extent],
        statements: Callable[[], tuple[Stmt | None, Stmt]],
    ) -> Stmt:
        """Loops around a block over the first variables of a stage, as many as there are extents."""
        iters: list[IterVar] = []
        loops: list[tuple[PrimVar, Extent, Extent]] = []
        for variable, kind, start, extent in zip(stage.variables, stage.kinds, starts, extents, strict=False):
            loop = PrimVar(variable.name, INDEX)
            own = PrimVar(f"v{variable.name}", INDEX)
            self.mapping[variable] = own
            iters.append(IterVar(own, start, extent, kind, loop))
            loops.append((loop, start, extent))
        init, body = statements()
        statement: Stmt = Block(_unique(name, self.block_names), body, tuple(iters), init=init)
        for loop, start, extent in reversed(loops):
            statement = For(loop, start, extent, statement)
        return statement

    def _domain(self, stage: Stage) -> tuple[list[Extent], list[Extent]]:
        shape = stage.outputs[0].buffer.shape
        starts: list[Extent] = [0] * len(shape)
        extents: list[Extent] = [self._own(extent) for extent in shape]
        for variable in stage.variables[len(shape) :]:
            assert isinstance(variable, ReduceAxis)
            starts.append(self._own(variable.start))
            extents.append(self._own(variable.extent))
        return starts, extents

    def _statements(self, stage: Stage) -> tuple[Stmt | None, Stmt]:
        """The block's init and body."""
        indices, buffers = self._targets(stage)
        if stage.reduction is None:
            return None, self._stores(buffers, stage.values, indices)
        loads = tuple(BufferLoad(buffer, indices) for buffer in buffers)
        combined = stage.reduction.combine(loads, stage.values)
        init = self._identity(stage)
        if len(buffers) == 1:
            return init, self._stores(buffers, combined, indices)
        # All new values are taken before the first is stored: each may read every old one.
        kept = tuple(PrimVar(f"v_{tensor.name}", tensor.dtype) for tensor in stage.outputs)
        binds = tuple(
            Bind(variable, self._own(prim.cast(variable.dtype, value)))
            for variable, value in zip(kept, combined, strict=True)
        )
        stores = self._stores(buffers, kept, indices)
        return init, SeqStmt((*binds, *stores.stmts)) if isinstance(stores, SeqStmt) else stores

    def _targets(self, stage: Stage) -> tuple[tuple[PrimExpr, ...], list[Buffer]]:
        """The indices and buffers that a stage stores to."""
        for tensor in stage.outputs:
            self._buffer(tensor)
        return stage.variables[: stage.outputs[0].ndim], [tensor.buffer for tensor in stage.outputs]

    def _identity(self, stage: Stage) -> Stmt:
        """The stores of a reduction's neutral values."""
        assert stage.reduction is not None
        indices, buffers = self._targets(stage)
        return self._stores(buffers, stage.reduction.identity, indices)

    def _stores(self, buffers: Sequence[Buffer], values: Sequence[PrimExpr], indices: Sequence[PrimExpr]) -> Stmt:
        stores = tuple(
            self._own(BufferStore(buffer, prim.cast(buffer.dtype, value), tuple(indices)))
            for buffer, value in zip(buffers, values, strict=True)
        )
        return stores[0] if len(stores) == 1 else SeqStmt(stores)


def _reads(stage: Stage) -> list[Tensor]:
    """The tensors that a stage loads from, in order of first occurrence."""
    found: dict[int, Tensor] = {id(tensor.buffer): tensor for tensor in stage.inputs}
    for value in stage.values:
        for part in walk(value):
            if isinstance(part, BufferLoad) and isinstance(part.buffer, FormulaBuffer):
                found.setdefault(id(part.buffer), part.buffer.tensor)
    return list(found.values())


def _unique(base: str, used: dict[str, int]) -> str:
    """A name that is not used: the base, with the next number; the numbers that are given already are remembered."""
    name, count = base, used.get(base, 0)
    while name in used:
        count += 1
        name = f"{base}_{count}"
    used[base] = count
    used.setdefault(name, 0)
    return name
