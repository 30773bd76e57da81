"""Straight-line programs as tensor-level functions, which call kernels by the addresses of their arguments.

@T.prim_func
def main(x, ..., constant0, ..., output0, ...):
    arena = T.alloc_buffer((bytes,), "uint8")                     all memory that lives within a call
    t = T.decl_buffer(shape, dtype, data=T.address_of(arena[offset]))
    T.evaluate(cls.kernel(T.address_of(x[0]), T.address_of(t[0])))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.codegen.host.entry import Entry, Place, Scalar, Step, element_width, read_entry
from weft.ir.attrs import ENTRY, NOALIAS
from weft.ir.dim import Dim, DimExpr
from weft.ir.graph import Constant, Expr, Function, GlobalVar, StringImm
from weft.ir.kernel.prim import binary
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)

__all__ = ["ARENA", "entry_function", "entry_module", "lower_to_entry"]

ARENA = "arena"


def lower_to_entry(module: IRModule, name: str) -> tuple[IRModule, tuple[Constant, ...]]:
    """The module with a graph function as a tensor-level one and without the others, and its constants."""
    entry = read_entry(module, name)
    made = {
        other: entry_function(entry) if other == name else function
        for other, function in module.items()
        if other == name or not isinstance(function, Function)
    }
    return module.with_functions(made), tuple(entry.constants)


def entry_function(entry: Entry, *, arena: bool = False, c_calls: bool = False) -> PrimFunc:
    """The program as a tensor-level function; with `arena`, its arena is the last parameter, not an allocation.

    With `c_calls`, external functions are C functions that give 0 unless they fail; else they are registered ones.
    """
    return _Writer(entry).write(arena, c_calls)


class _Writer:
    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.env = {name: PrimVar(name, "int64") for name in entry.symbols}
        params = entry.function.params
        self.inputs = [self.buffer(params[i].name or f"input{i}", place) for i, place in enumerate(entry.inputs)]
        self.constants = [
            Buffer(f"constant{i}", tuple(item.data.shape), item.dtype) for i, item in enumerate(entry.constants)
        ]
        self.outputs = [self.buffer(f"output{i}", place) for i, place in enumerate(entry.outputs)]
        self.arena = Buffer(ARENA, (max(1, entry.arena_bytes()),), "uint8")
        self.views: dict[Place, Buffer] = {}
        self.body: list[Stmt] = []

    def buffer(self, name: str, place: Place, data: PrimExpr | None = None) -> Buffer:
        return Buffer(name, tuple(dim_to_prim(dim, self.env) for dim in place.shape), place.dtype, data=data)

    def write(self, arena: bool, c_calls: bool) -> PrimFunc:
        entry = self.entry
        self.c_calls = c_calls
        for step in entry.steps:
            self.step(step)
        for source, target in entry.copies:
            self.copy(self.tensor(source), self.tensor(target))
        params = (*self.inputs, *self.constants, *self.outputs, *((self.arena,) if arena else ()))
        used = any(place.kind == "arena" for place in self.views)
        first: list[Stmt] = [AllocBuffer(self.arena)] if used and not arena else []
        body = SeqStmt((*first, *self.body)) if first or self.body else Evaluate(IntImm(0))
        return PrimFunc(params, body, name=entry.name, attrs=FrozenMap({ENTRY: True, NOALIAS: False}))

    def tensor(self, place: Place) -> Buffer:
        """The buffer of a place; views are declared where they are first used."""
        plain = {"input": self.inputs, "constant": self.constants, "output": self.outputs}.get(place.kind)
        if plain is not None and place.offset == 0:
            whole = plain[place.index]
            wanted = tuple(dim_to_prim(dim, self.env) for dim in place.shape)
            if whole.dtype == place.dtype and len(wanted) == len(whole.shape) and _same_shape(wanted, whole.shape):
                return whole
        if place not in self.views:
            base = self.arena if plain is None else plain[place.index]
            data = PrimCall("address_of", (self.element(base, place.offset),), "handle")
            self.views[place] = self.buffer(f"t{len(self.views)}", place, data)
            self.body.append(DeclBuffer(self.views[place]))
        return self.views[place]

    def element(self, buffer: Buffer, offset: Dim) -> BufferLoad:
        """The element that starts so many bytes after the first."""
        if not buffer.shape:
            return BufferLoad(buffer, ())
        start = _expression(dim_to_prim(offset // element_width(buffer.dtype), self.env))
        return BufferLoad(buffer, (*(IntImm(0, "int64") for _ in buffer.shape[1:]), start))

    def step(self, step: Step) -> None:
        if step.kind == "check":
            wanted, given = (self.scalar(item) for item in step.arguments if isinstance(item, Scalar))
            self.body.append(AssertStmt(binary("eq", wanted, given), step.name, "ShapeError", span=step.span))
            return
        arguments: list[Expr] = []
        for item in step.arguments:
            if isinstance(item, Scalar):
                arguments.append(self.scalar(item))
            else:
                arguments.append(PrimCall("address_of", (self.element(self.tensor(item), 0),), "handle"))
        if step.kind == "kernel":
            call = PrimCall(GlobalVar(step.name), tuple(arguments), "int32", span=step.span)
        else:
            how = "call_extern" if self.c_calls else "call_packed"
            call = PrimCall(how, (StringImm(step.name), *arguments), "int32", span=step.span)
        self.body.append(self.checked(call, step) if self.c_calls and step.kind == "extern" else Evaluate(call))

    def checked(self, call: PrimCall, step: Step) -> Stmt:
        """A call of a C function, which gives 0 when all went well."""
        fine = binary("eq", call, IntImm(0, "int32"))
        return AssertStmt(fine, f"{step.name} failed", "RuntimeError", span=step.span)

    def scalar(self, item: Scalar) -> PrimExpr:
        if isinstance(item.value, DimExpr):
            return _expression(dim_to_prim(item.value, self.env))
        if dtypes.is_float(item.dtype):
            return FloatImm(float(item.value), item.dtype)
        return IntImm(int(item.value), item.dtype)

    def copy(self, source: Buffer, target: Buffer) -> None:
        variables = [PrimVar(f"i{axis}", "int64") for axis in range(len(source.shape))]
        stmt: Stmt = BufferStore(target, BufferLoad(source, tuple(variables)), tuple(variables))
        for variable, extent in reversed(list(zip(variables, source.shape, strict=True))):
            stmt = For(variable, 0, extent, stmt)
        self.body.append(stmt)


def _expression(extent: Any) -> PrimExpr:
    return IntImm(extent, "int64") if isinstance(extent, int) else extent


def _same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(
        x is y or x == y or (not isinstance(x, int) and not isinstance(y, int) and structural_equal(x, y))
        for x, y in zip(a, b, strict=True)
    )


def entry_module(module: IRModule, entry: Entry, *, c_calls: bool = False) -> IRModule:
    """The kernels of a module with the entry as a tensor-level function, its arena a parameter."""
    functions = {
        name: entry_function(entry, arena=True, c_calls=c_calls) if name == entry.name else function
        for name, function in module.items()
        if name == entry.name or not isinstance(function, Function)
    }
    return module.with_functions(functions)
