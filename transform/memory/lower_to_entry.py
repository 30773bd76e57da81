"""LowerToEntry: a graph function in explicit-memory form becomes one tensor-level function.

    @T.prim_func
    def main(x, ..., constant0, ..., output0, ...):
        arena = T.alloc_buffer((bytes,), "uint8")                     all memory that lives within a call
        t = T.decl_buffer(shape, dtype, data=T.address_of(arena[offset]))
        T.evaluate(cls.kernel(T.address_of(x[0]), T.address_of(t[0])))

Constants are parameters; the attribute `constants` of the module holds them. Functions must be straight-line, of sizes
that are known or bounded (attribute `tir_var_upper_bound`). `read_entry` gives the same as data: the steps, and where
each tensor lives; the executors `graph` and `aot` are written from it.

Errors: TargetError W741 a construct that cannot stand in such a function, W745 a size neither known nor bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from weft import dtypes
from weft.errors import Span, TargetError
from weft.ir.dim import Dim, DimExpr, free_symbols, operation, product, prove_equal, substitute
from weft.ir.graph import (
    Binding,
    Call,
    Constant,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap
from weft.ir.op import get_op
from weft.ir.prim import binary
from weft.ir.prim_dim import dim_to_prim
from weft.ir.structural import structural_equal
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
from weft.ir.types import TensorType
from weft.ir.upper_bounds import upper_bounds
from weft.transform.graph.bind_symbolic_vars import how_to_bind
from weft.transform.infra.base import Pass

_EVERYTHING = 'executor="native" and executor="vm" can'

__all__ = ["ARENA", "Entry", "LowerToEntry", "Place", "Scalar", "Step", "entry_function", "read_entry"]

ARENA = "arena"
ALIGNMENT = 64


@dataclass(frozen=True)
class Place:
    """Where a tensor lives: the number of an input, constant or output, or an offset in bytes into the arena."""

    kind: str
    index: int
    shape: tuple[Dim, ...]
    dtype: str
    offset: Dim = 0


@dataclass(frozen=True)
class Scalar:
    """A number that a step takes."""

    value: Dim | float | bool
    dtype: str


@dataclass(frozen=True)
class Step:
    """A call of a kernel of the module, or of an external function, which writes into its last arguments."""

    kind: str
    name: str
    arguments: tuple[Place | Scalar, ...]
    span: Span | None = None


@dataclass
class Entry:
    """A straight-line program: tensors, steps in order, copies into outputs at the end, bytes of the arena."""

    name: str
    function: Function
    inputs: list[Place] = field(default_factory=list)
    outputs: list[Place] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    copies: list[tuple[Place, Place]] = field(default_factory=list)
    arena: Dim = 0
    bounds: Mapping[str, int] = field(default_factory=dict)

    @property
    def symbols(self) -> list[str]:
        """The symbols of the inputs, in order."""
        return list(dict.fromkeys(name for place in self.inputs for dim in place.shape for name in _symbols(dim)))

    def arena_bytes(self) -> int:
        """The bytes of arena that suffice for every size; TargetError W745 when a size is not bounded."""
        return self.bytes_at_most(self.arena)

    def bytes_at_most(self, dim: Dim) -> int:
        """The greatest value of a number of bytes."""
        missing = [name for name in _symbols(dim) if name not in self.bounds]
        if missing or not _grows(dim):
            what = f"the size {missing[0]} is" if missing else f"the bytes {dim} are"
            name = (missing or _symbols(dim))[0]
            raise TargetError(
                f"{what} neither known nor bounded in {self.name}",
                code="W745",
                span=self.function.span,
                hint=f"bind it: {how_to_bind(name)}; or state a bound:"
                f' R.func_attr({{"tir_var_upper_bound": {{"{name}": 64}}}}); {_EVERYTHING}',
            )
        most = substitute(dim, self.bounds) if isinstance(dim, DimExpr) else dim
        assert isinstance(most, int)
        return most


def _symbols(dim: Dim) -> tuple[str, ...]:
    return tuple(free_symbols(dim)) if isinstance(dim, DimExpr) else ()


def _grows(dim: Dim) -> bool:
    """Whether a dimension never decreases when a symbol increases."""
    kind, operands = operation(dim)
    if kind in ("constant", "symbol"):
        return kind == "symbol" or operands[0] >= 0
    if kind == "floordiv":
        return isinstance(operands[1], int) and operands[1] > 0 and _grows(operands[0])
    if kind == "add":
        return all(isinstance(item, int) or _grows(item) for item in operands)
    if kind == "pow":
        return _grows(operands[0])
    return kind in ("mul", "max", "min") and all(map(_grows, operands))


def read_entry(module: IRModule, name: str = "main") -> Entry:
    """The program of a graph function; errors as above."""
    function = module[name]
    if not isinstance(function, Function):
        raise TargetError(f"{name!r} is no graph function", code="W741", span=function.span)
    return _Reader(module, name, function).read()


class _Reader:
    def __init__(self, module: IRModule, name: str, function: Function) -> None:
        self.module, self.function = module, function
        self.entry = Entry(name, function, bounds=upper_bounds(function))
        self.values: dict[Var, Any] = {}
        self.constants: dict[int, int] = {}
        self.results: dict[Var, int] = {}

    def read(self) -> Entry:
        entry, function = self.entry, self.function
        for index, param in enumerate(function.params):
            shape, dtype = self.tensor(param.ty, param)
            place = Place("input", index, shape, dtype)
            entry.inputs.append(place)
            self.values[param] = place
        bindings = [binding for block in function.body.blocks for binding in block.bindings]
        self.find_results(bindings)
        for binding in bindings:
            self.bind(binding)
        for index, value in enumerate(self.flat(function.body.body)):
            place = self.place(value, function.body.body.span)
            wanted = Place("output", index, place.shape, place.dtype)
            entry.outputs.append(wanted)
            if place != wanted:
                entry.copies.append((place, wanted))
        return entry

    def find_results(self, bindings: Sequence[Binding]) -> None:
        """Tensors of their own that are returned live in the caller's memory from the start."""
        known = {binding.var: binding.value for binding in bindings}
        index = 0

        def visit(value: Expr) -> None:
            nonlocal index
            while isinstance(value, Var) and isinstance(known.get(value), (Var, Tuple)):
                value = known[value]
            if isinstance(value, Tuple):
                for item in value.fields:
                    visit(item)
                return
            made = known.get(value) if isinstance(value, Var) else None
            if isinstance(made, Call) and getattr(made.op, "name", "") == "builtin.alloc_tensor":
                assert isinstance(value, Var)
                self.results.setdefault(value, index)
            index += 1

        visit(self.function.body.body)

    def refuse(self, what: str, span: Span | None, hint: str | None = None) -> TargetError:
        return TargetError(
            f"{what} cannot stand in a straight-line program", code="W741", span=span, hint=hint or _EVERYTHING
        )

    def tensor(self, ty: Any, var: Var) -> tuple[tuple[Dim, ...], str]:
        if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
            raise self.refuse(f"{var.name!r}, which is no tensor of known rank and dtype,", var.span)
        return tuple(ty.dims), ty.dtype

    # Bindings

    def bind(self, binding: Binding) -> None:
        value, span = binding.value, binding.value.span or binding.span
        if isinstance(binding, MatchCast):
            self.values[binding.var] = self.cast(binding, span)
        elif isinstance(value, If):
            raise self.refuse("control flow", span)
        elif isinstance(value, Call):
            self.call(binding.var, value, span)
        else:
            self.values[binding.var] = value

    def cast(self, binding: MatchCast, span: Span | None) -> Expr | Place:
        place = self.place(binding.value, span)
        ty = binding.ty
        if isinstance(ty, TensorType) and ty.dims is not None and len(ty.dims) == len(place.shape):
            if all(prove_equal(a, b) is True for a, b in zip(ty.dims, place.shape, strict=True)):
                return place
        raise self.refuse("a match_cast that only the values decide", span)

    def call(self, var: Var, call: Call, span: Span | None) -> None:
        if isinstance(call.op, Op):
            rule = _RULES.get(call.op.name)
            if rule is None:
                raise self.refuse(f"R.{call.op.name}", span)
            self.values[var] = rule(self, var, call, span)
        elif isinstance(call.op, GlobalVar):
            callee = self.module.functions.get(call.op.name)
            if isinstance(callee, PrimFunc):
                arguments = tuple(self.argument(arg, span) for arg in call.args)
                self.entry.steps.append(Step("kernel", call.op.name, arguments, span))
            elif isinstance(callee, ExternFunc):
                self.external(callee.name, call, span)
            else:
                hint = f"{_EVERYTHING}; private functions that are not recursive become part of their callers"
                raise self.refuse(f"a call of the graph function {call.op.name!r}", span, hint)
            self.values[var] = Tuple(())
        elif isinstance(call.op, ExternFunc):
            self.external(call.op.name, call, span)
            self.values[var] = Tuple(())
        else:
            raise self.refuse("a call of a function value", span)

    def external(self, name: str, call: Call, span: Span | None) -> None:
        if not call.attrs.get("dps"):
            raise self.refuse(f"a call of {name!r}, which gives a value of its own,", span)
        self.entry.steps.append(Step("extern", name, tuple(self.argument(arg, span) for arg in call.args), span))

    def alloc_tensor(self, var: Var, call: Call, span: Span | None) -> Place:
        shape, dtype = self.tensor(var.ty, var)
        if var in self.results:
            return Place("output", self.results[var], shape, dtype)
        return Place("arena", 0, shape, dtype, self.reserve(product(shape) * _width(dtype)))

    def reserve(self, size: Dim) -> Dim:
        """Room at the end of the arena; gives its offset."""
        offset = self.entry.arena
        self.entry.arena = offset + (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
        return offset

    def alloc_storage(self, var: Var, call: Call, span: Span | None) -> Place:
        sizes = self.shape(call.args[0], span)
        dtype = call.attrs.get("dtype")
        width = _width(str(getattr(dtype, "value", dtype) or "uint8"))
        return Place("arena", 0, (product(sizes) * width,), "uint8", self.reserve(product(sizes) * width))

    def tensor_in_storage(self, var: Var, call: Call, span: Span | None) -> Place:
        assert isinstance(call.op, Op)
        parts = get_op(call.op.name).values(call)
        storage = self.place(parts["storage"], span)
        return self.inside(storage, parts.get("offset"), self.shape(parts["shape"], span), _dtype(call, var), span)

    def view(self, var: Var, call: Call, span: Span | None) -> Place:
        assert isinstance(call.op, Op)
        parts = get_op(call.op.name).values(call)
        data = self.place(call.args[0], span)
        shape = data.shape if parts.get("shape") is None else self.shape(parts["shape"], span)
        dtype = parts.get("dtype")
        dtype = dtype.value if isinstance(dtype, DataTypeImm) else dtype or data.dtype
        return self.inside(data, parts.get("relative_byte_offset"), shape, str(dtype), span)

    def inside(self, data: Place, offset: Any, shape: tuple[Dim, ...], dtype: str, span: Span | None) -> Place:
        at = offset.value if isinstance(offset, PrimValue) else offset or 0
        if not isinstance(at, (int, DimExpr)):
            raise self.refuse("an offset that only the values decide", span)
        return Place(data.kind, data.index, shape, dtype, data.offset + at)

    def same(self, var: Var, call: Call, span: Span | None) -> Any:
        return call.args[0]

    def nothing(self, var: Var, call: Call, span: Span | None) -> Any:
        return Tuple(())

    # Values

    def resolve(self, value: Any) -> Any:
        while True:
            if isinstance(value, Var) and value in self.values:
                value = self.values[value]
            elif isinstance(value, TupleGetItem):
                inner = self.resolve(value.value)
                if not isinstance(inner, Tuple):
                    raise self.refuse("a tuple that is not made in the function", value.span)
                value = inner.fields[value.index]
            else:
                return value

    def flat(self, value: Any) -> list[Any]:
        value = self.resolve(value)
        return [part for item in value.fields for part in self.flat(item)] if isinstance(value, Tuple) else [value]

    def place(self, value: Any, span: Span | None) -> Place:
        value = self.resolve(value)
        if isinstance(value, Constant):
            index = self.constants.get(id(value.data))
            if index is None:
                index = self.constants[id(value.data)] = len(self.entry.constants)
                self.entry.constants.append(value)
            return Place("constant", index, tuple(value.data.shape), value.dtype)
        if isinstance(value, Place):
            return value
        raise self.refuse(f"a {type(value).__name__} as a tensor", span)

    def shape(self, value: Any, span: Span | None) -> tuple[Dim, ...]:
        value = self.resolve(value)
        if not isinstance(value, ShapeExpr):
            raise self.refuse("a shape that only the values decide", span)
        return tuple(value.dims)

    def argument(self, arg: Any, span: Span | None) -> Place | Scalar:
        value = self.resolve(arg)
        if isinstance(value, PrimValue):
            return Scalar(value.value, value.dtype)
        if isinstance(value, ShapeExpr) and len(value.dims) == 1:
            return Scalar(value.dims[0], "int64")
        return self.place(value, span)


def _width(dtype: str) -> int:
    return max(1, dtypes.bits(dtype) // 8)


def _dtype(call: Call, var: Var) -> str:
    dtype = call.attrs.get("dtype")
    if dtype is None and isinstance(var.ty, TensorType):
        dtype = var.ty.dtype
    return str(getattr(dtype, "value", dtype) or "float32")


_RULES: Mapping[str, Callable[[_Reader, Var, Call, Span | None], Any]] = {
    "builtin.alloc_tensor": _Reader.alloc_tensor,
    "memory.alloc_storage": _Reader.alloc_storage,
    "vm.alloc_storage": _Reader.alloc_storage,
    "memory.alloc_tensor": _Reader.tensor_in_storage,
    "vm.alloc_tensor": _Reader.tensor_in_storage,
    "memory.view": _Reader.view,
    "memory.ensure_zero_offset": _Reader.same,
    "to_vdevice": _Reader.same,
    "hint_on_device": _Reader.same,
    "builtin.stop_lift_params": _Reader.same,
    "memory.kill_storage": _Reader.nothing,
    "memory.kill_tensor": _Reader.nothing,
    "vm.kill_object": _Reader.nothing,
}


# The tensor-level function.


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
        return PrimFunc(params, body, name=entry.name, attrs=FrozenMap({"entry": True, "noalias": False}))

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
        start = _expression(dim_to_prim(offset // _width(buffer.dtype), self.env))
        return BufferLoad(buffer, (*(IntImm(0, "int64") for _ in buffer.shape[1:]), start))

    def step(self, step: Step) -> None:
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


@dataclass(frozen=True)
class LowerToEntry(Pass):
    """Replace the graph functions by one tensor-level function; its constants stand in the attribute `constants`.

    `function` is the graph function to lower. Raises: PassError W510 when there is none; TargetError W741 and W745.
    """

    text_name: ClassVar[str] = "lower-to-entry"
    keeps_meaning: ClassVar[bool] = False
    function: str = "main"

    def run(self, module: IRModule) -> IRModule:
        """Lower the function; kernels stay, other graph functions go."""
        if not isinstance(module[self.function], Function):
            return module  # a tensor-level function already
        entry = read_entry(module, self.function)
        made = {
            name: entry_function(entry) if name == self.function else function
            for name, function in module.items()
            if name == self.function or not isinstance(function, Function)
        }
        new = module.with_functions(made)
        return new.with_attr("constants", tuple(entry.constants)) if entry.constants else new
