"""Graph functions in explicit-memory form to LLVM functions: one machine-code entry, nothing of Python between kernels.

    entry ::= int32 weft.entry.<name>(frame, argument words, result words)

Symbols are 64-bit integers, bound from the sizes of arguments and by match_cast. Every claim that is not evident (the
sizes that a kernel's signature relates, a match_cast, declared types of results) is compared when the program runs;
the message names the binding, the argument, the symbol and the values.

Memory: an allocation is a reference-counted block, held by a slot of the function and released after its last use or on
the way out (`weft.codegen.llvm.heap`); results carry a reference of their own. Arguments are borrowed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from weft.codegen.llvm.expressions import ExpressionEmitter
from weft.codegen.llvm.graph_values import (
    DYNAMIC_WORDS,
    Callable_,
    Dynamic,
    DynamicShape,
    Handle,
    Items,
    Scalar,
    Shape,
    Tensor,
    Text,
    Value,
    copy_words,
    dtype_code,
    is_dynamic,
    load,
    owners,
    place,
    read,
    store,
    width,
    write,
)
from weft.codegen.llvm.kernel import (
    call_back,
    from_word,
    kernel_params,
    result_dtype,
    shared_positions,
    to_word,
    written_buffers,
)
from weft.codegen.llvm.liveness import last_uses
from weft.codegen.llvm.outputs import direct_results, result_words
from weft.codegen.llvm.program import Program, frame_word, graph_symbol
from weft.codegen.llvm.spelling import element_bytes, memory_type, value_type
from weft.codegen.llvm.text import FunctionWriter, ModuleWriter, Size
from weft.codegen.llvm.wrapper import ENTRY_PARAMS
from weft.codegen.signature import type_data
from weft.errors import ShapeError, Span, TargetError
from weft.ir import dtype as dtypes
from weft.ir.dim import Dim, DimExpr, free_symbols, operation
from weft.ir.dim import substitute as substitute_dim
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
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.op import get_op
from weft.ir.prim_dim import buffer_symbols, kernel_signature, prim_to_dim, symbol_names
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.types import AnyType, ShapeType, StringType, TensorType, TupleType, Type
from weft.ir.upper_bounds import upper_bounds
from weft.runtime.frame import CONSTANTS, DYNAMIC_RANK, HEADER, OUTPUTS, PLACE, STACK, STACK_LIMIT
from weft.runtime.signature import expected_text, shape_text
from weft.runtime.values import scalar_word

__all__ = ["emit_function"]


def emit_function(module: ModuleWriter, program: Program, name: str, function: Function) -> set[int]:
    """Emit one graph function into a module; gives the positions of the parameters that it writes in place."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 100_000))  # branches nest as deep as the user's program
    try:
        emitter = GraphEmitter(module, program, name, function)
        emitter.emit()
        return emitter.written
    finally:
        sys.setrecursionlimit(limit)


class GraphEmitter:
    """Emits one graph function."""

    def __init__(self, module: ModuleWriter, program: Program, name: str, function: Function) -> None:
        self.module = module
        self.program = program
        self.name = name
        self.function = function
        self.w = FunctionWriter(module, graph_symbol(name), "i32", ENTRY_PARAMS, "nounwind")
        self.scalars = ExpressionEmitter(self.w, program, "")
        self.variables: dict[Var, Value] = {}
        self.symbols: dict[str, Size] = {}
        self.sources: dict[str, str] = {}
        self.sizes: dict[DimExpr, Size] = {}
        self.written: set[int] = set()  # the parameters that kernels write in place
        self.slots = 0  # how many references the function may hold
        self.held: dict[Var, list[int]] = {}
        self.direct = direct_results(function)
        self.status = self.w.alloca("i32", align=4)
        self.exit = self.w.label("exit")

    def emit(self) -> None:
        """Emit the whole function."""
        self._parameters()
        value = self.sequence(self.function.body)
        value = self.fitted(value, self.function.ret_type, f"the result of {self.name}", self.function.body.body.span)
        for owner in owners(self.w, value):
            self.w.do(f"call void @weft.retain(i64 {owner})")
        store(self.w, value, self.function.ret_type, "%results")
        self.leave("0")
        self._leave_block()
        self.w.finish()

    def _parameters(self) -> None:
        index = 0
        given: list[tuple[Value, Type, str]] = []
        for position, param in enumerate(self.function.params, 1):
            value, index = load(self.w, param.ty, "%arguments", index)
            if isinstance(value, Tensor):
                value.param = position - 1
            self.variables[param] = value
            given.append((value, param.ty, f"argument {position} `{param.name}`"))
        self.check(given, None)  # what is wrong is the call, whose place the caller notes
        for name, bound in upper_bounds(self.function).items():
            value = self.symbols.get(name)
            if value is not None:
                parts = [f"{name} is ", 0, f" in {self.name}, which states that it is at most {bound}"]
                fine = self.w.emit(f"icmp sle i64 {value}, {bound}")
                self.unless(fine, "ShapeError", parts, [value], self.function.span, "W229")

    def leave(self, status: str) -> None:
        """Go to the way out with a status."""
        self.w.do(f"store i32 {status}, ptr {self.status}")
        self.w.jump(self.exit)

    def _leave_block(self) -> None:
        """Release what the slots hold and return."""
        w = self.w
        w.open(self.exit)
        if self.slots:
            self.module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1 immarg"))
            w.at_entry(f"%slots = alloca [{self.slots} x i64], align 8")
            w.at_entry(f"call void @llvm.memset.p0.i64(ptr %slots, i8 0, i64 {self.slots * 8}, i1 false)")
            w.do(f"call void @weft.release_all(ptr %slots, i64 {self.slots})")
        w.ret(f"i32 {w.emit(f'load i32, ptr {self.status}')}")

    # References

    def hold(self, owner: str, var: Var | None = None) -> None:
        """Keep a reference in a new slot until the variable's last use, or to the end."""
        if var is not None:
            self.held.setdefault(var, []).append(self.slots)
        write(self.w, "%slots", self.slots, owner)
        self.slots += 1

    def drop(self, var: Var) -> None:
        """Release what a variable holds."""
        for slot in self.held.pop(var, ()):
            pointer = place(self.w, "%slots", slot)
            self.w.do(f"call void @weft.release(ptr {self.w.emit(f'load ptr, ptr {pointer}')})")
            self.w.do(f"store i64 0, ptr {pointer}")

    # Failing

    def fail(
        self, kind: str, parts: Sequence[str | int], values: Sequence[Size], span: Span | None, code: str | None = None
    ) -> None:
        """Record a failure and leave."""
        self.program.fail(self.w, kind, parts, values, code=code, span=span)
        self.leave("1")

    def unless(
        self,
        condition: str,
        kind: str,
        parts: Sequence[str | int],
        values: Sequence[Size],
        span: Span | None,
        code: str | None = None,
    ) -> None:
        """Fail unless a condition holds."""
        bad, good = self.w.label("bad"), self.w.label("good")
        self.w.branch(condition, good, bad)
        self.w.open(bad)
        self.fail(kind, parts, values, span, code)
        self.w.open(good)

    def pass_on(self, status: str, span: Span | None = None, *, placed: bool = False) -> None:
        """Leave with a status that is not 0; the failure is also placed at the innermost call it happened in."""
        bad, good = self.w.label("failed"), self.w.label("good")
        self.w.branch(self.w.emit(f"icmp eq i32 {status}, 0"), good, bad)
        self.w.open(bad)
        if placed and span is not None:
            word = frame_word(self.w, PLACE)
            before = self.w.emit(f"load i64, ptr {word}")
            inner = self.w.emit(f"icmp ne i64 {before}, 0")
            here = self.program.place(span) + 1
            self.w.do(f"store i64 {self.w.emit(f'select i1 {inner}, i64 {before}, i64 {here}')}, ptr {word}")
        self.leave(status)
        self.w.open(good)

    # Sizes

    def size(self, dim: Dim, span: Span | None = None) -> Size:
        """The value of a dimension; TargetError when a symbol has none here."""
        if not isinstance(dim, DimExpr):
            return int(dim)
        found = self.sizes.get(dim)
        if found is None:
            found = self.sizes[dim] = self._size(dim, self.symbols, span)
        return found

    def _size(self, dim: Dim, symbols: Mapping[str, Size], span: Span | None = None) -> Size:
        kind, operands = operation(dim)
        if kind == "constant":
            return operands[0]
        if kind == "symbol":
            if operands[0] not in symbols:
                raise TargetError(f"llvm: the symbol {operands[0]} has no value in {self.name}", code="W744", span=span)
            return symbols[operands[0]]
        if kind == "pow":
            base = self._size(operands[0], symbols, span)
            return self._fold([base] * operands[1], self.w.mul)
        values = [self._size(operand, symbols, span) for operand in operands]
        if kind in ("add", "mul"):
            return self._fold(values, self.w.add if kind == "add" else self.w.mul)
        if kind in ("min", "max"):
            return self._fold(values, lambda a, b: self.scalars.arith.binary(kind, "int64", str(a), str(b)))
        if not isinstance(values[1], int):
            nonzero = self.w.emit(f"icmp ne i64 {values[1]}, 0")
            self.unless(nonzero, "ShapeError", [f"division by zero in {dim}: {operands[1]} is 0"], [], span, "W280")
        return self.scalars.arith.binary({"mod": "floormod"}.get(kind, kind), "int64", str(values[0]), str(values[1]))

    @staticmethod
    def _fold(values: Sequence[Size], combine: Callable[[Size, Size], Size]) -> Size:
        result = values[0]
        for value in values[1:]:
            result = combine(result, value)
        return result

    def bind_symbol(self, name: str, size: Size, source: str) -> None:
        """Give a symbol its value."""
        self.symbols[name] = size
        self.sources[name] = source

    # Checks of values against types

    def check(self, given: Sequence[tuple[Value, Type, str]], span: Span | None) -> None:
        """Bind the symbols that have no value yet, then compare all sizes; each triple is (value, type, what it is)."""
        pairs = [
            (dims, sizes, what, value, ty)
            for value, top, what in given
            for dims, sizes, value, ty in self._sized(value, top)
        ]
        for dims, sizes, what, _, _ in pairs:
            for dim, size in zip(dims, sizes, strict=True):
                if isinstance(dim, DimExpr):
                    kind, operands = operation(dim)
                    if kind == "symbol" and operands[0] not in self.symbols:
                        self.bind_symbol(operands[0], size, what)
        while any(self._solved(dims, sizes, what, span) for dims, sizes, what, _, _ in pairs):
            pass
        for dims, sizes, what, _, ty in pairs:
            self._compare(dims, sizes, what, ty, span)

    def _sized(self, value: Value, ty: Type | None) -> list[tuple[Sequence[Dim], Sequence[Size], Value, Type]]:
        if isinstance(ty, TensorType) and ty.dims is not None and isinstance(value, Tensor):
            return [(ty.dims, value.sizes, value, ty)]
        if isinstance(ty, TensorType) and isinstance(ty.shape, Var) and isinstance(value, Tensor):
            wanted = self.variables.get(ty.shape)
            if isinstance(wanted, Shape) and len(wanted.sizes) == len(value.sizes):
                self._compare_sizes(wanted.sizes, value.sizes, ty)
            return []
        if isinstance(ty, ShapeType) and ty.dims is not None and isinstance(value, Shape):
            return [(ty.dims, value.sizes, value, ty)]
        if isinstance(ty, TupleType) and isinstance(value, Items):
            return [
                part for item, field in zip(value.fields, ty.fields, strict=True) for part in self._sized(item, field)
            ]
        return []

    def _compare_sizes(self, wanted: Sequence[Size], sizes: Sequence[Size], ty: Type) -> None:
        for axis, (a, b) in enumerate(zip(wanted, sizes, strict=True)):
            if a != b:
                same = self.w.emit(f"icmp eq i64 {a}, {b}")
                self.unless(same, "ShapeError", [f"axis {axis}: expected ", 0, ", got ", 1], [a, b], ty.span, "W222")

    def _solved(self, dims: Sequence[Dim], sizes: Sequence[Size], what: str, span: Span | None) -> bool:
        """Solve a linear dimension for its one symbol without a value."""
        for dim, size in zip(dims, sizes, strict=True):
            missing = (
                [name for name in free_symbols(dim) if name not in self.symbols] if isinstance(dim, DimExpr) else []
            )
            if len(missing) != 1:
                continue
            zero = substitute_dim(dim, {missing[0]: 0})
            slope = substitute_dim(dim, {missing[0]: 1}) - zero
            if isinstance(slope, int) and slope > 0:
                rest = self.w.sub(size, self._size(zero, self.symbols, span))
                value = rest if slope == 1 else self.scalars.arith.binary("floordiv", "int64", str(rest), str(slope))
                self.bind_symbol(missing[0], value, what)
                return True
        return False

    def _compare(self, dims: Sequence[Dim], sizes: Sequence[Size], what: str, ty: Type, span: Span | None) -> None:
        for dim, size in zip(dims, sizes, strict=True):
            if isinstance(dim, DimExpr) and any(name not in self.symbols for name in free_symbols(dim)):
                continue  # nothing to compare with: the symbol is only ever named here
            wanted = self.size(dim, span)
            if wanted == size:
                continue
            parts, values = _mismatch(what, ty, dims, sizes, self.symbols, self.sources)
            same = self.w.emit(f"icmp eq i64 {wanted}, {size}")
            self.unless(same, "ShapeError", parts, values, span, "W222")

    def fitted(self, value: Value, ty: Type | None, what: str, span: Span | None) -> Value:
        """The value in the form of a type, its sizes checked."""
        if ty is None:
            return value
        value = self.shaped(value, ty, what, span)
        self.check([(value, ty, what)], span)
        return value

    def shaped(self, value: Value, ty: Type, what: str, span: Span | None) -> Value:
        """The value in the form of a type (rank and dtype), which is checked where only the program knows it."""
        if isinstance(ty, TensorType):
            if isinstance(value, Handle):
                value = self._unboxed(value, ty, what, span)
            if isinstance(value, Dynamic) and not is_dynamic(ty):
                return self._static(value, ty, what, span)
            if isinstance(value, Dynamic):
                self._check_dynamic(value, ty, what, span)
            elif isinstance(value, Tensor) and (
                (ty.ndim >= 0 and ty.ndim != len(value.sizes)) or (ty.dtype or value.dtype) != value.dtype
            ):
                self.fail(
                    "ShapeError",
                    [f"{what}: expected {_type_text(ty)}, got {value.dtype} of rank {len(value.sizes)}"],
                    [],
                    span,
                    "W222",
                )
                self.w.open(self.w.label("unreachable"))
                zeros: list[Size] = [0] * max(ty.ndim, 0)
                return Tensor("0", "0", zeros if ty.ndim >= 0 else value.sizes, ty.dtype or value.dtype)
        elif isinstance(ty, ShapeType) and isinstance(value, DynamicShape) and ty.ndim >= 0:
            count = read(self.w, value.words, 0)
            same = self.w.emit(f"icmp eq i64 {count}, {ty.ndim}")
            self.unless(
                same,
                "ShapeError",
                [f"{what}: expected {_type_text(ty)}, got a shape of ", 0, " sizes"],
                [count],
                span,
                "W222",
            )
            return Shape([read(self.w, value.words, 1 + axis) for axis in range(ty.ndim)])
        elif isinstance(ty, TupleType) and isinstance(value, Items) and len(ty.fields) == len(value.fields):
            return Items(
                [self.shaped(item, field, what, span) for item, field in zip(value.fields, ty.fields, strict=True)]
            )
        elif isinstance(value, Text):
            return self.call_out("weft.cast", [value], ty, span)
        elif isinstance(value, Handle) and not isinstance(ty, (AnyType, StringType)):
            return self._unboxed(value, ty, what, span)
        elif isinstance(ty, AnyType) and not isinstance(value, (Handle, Callable_)):
            return self._boxed(value, span)
        return value

    def _static(self, value: Dynamic, ty: TensorType, what: str, span: Span | None) -> Tensor:
        self._check_dynamic(value, ty, what, span)
        w = self.w
        sizes: list[Size] = [read(w, value.words, 4 + axis) for axis in range(ty.ndim)]
        return Tensor(read(w, value.words, 0), read(w, value.words, 1), sizes, ty.dtype or "")

    def _check_dynamic(self, value: Dynamic, ty: TensorType, what: str, span: Span | None) -> None:
        w = self.w
        if ty.ndim >= 0:
            rank = read(w, value.words, 2)
            same = w.emit(f"icmp eq i64 {rank}, {ty.ndim}")
            self.unless(
                same,
                "ShapeError",
                [f"{what}: expected {_type_text(ty)}, got a tensor of rank ", 0],
                [rank],
                span,
                "W222",
            )
        if ty.dtype is not None:
            same = w.emit(f"icmp eq i64 {read(w, value.words, 3)}, {dtype_code(ty.dtype)}")
            self.unless(
                same,
                "ShapeError",
                [f"{what}: expected {_type_text(ty)}, got a tensor of another dtype"],
                [],
                span,
                "W222",
            )

    def _unboxed(self, value: Handle, ty: Type, what: str, span: Span | None) -> Value:
        """An object of the runtime as a value of a type; the runtime checks that it is one."""
        return self.call_out("weft.cast", [value], ty, span, what=what)

    def _boxed(self, value: Value, span: Span | None) -> Value:
        """A value as an object of the runtime."""
        return self.call_out("weft.cast", [value], AnyType(), span)

    # Bindings

    def sequence(self, seq: SeqExpr) -> Value:
        """Emit bindings in order; gives the value of the body."""
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        ends = last_uses(bindings, seq.body, self.program.functions)
        for index, binding in enumerate(bindings):
            self.binding(binding)
            for var in ends.get(index, ()):
                self.drop(var)
        return self.value(seq.body)

    def binding(self, binding: Binding) -> None:
        """Emit one binding."""
        var, span = binding.var, binding.value.span or binding.span
        if isinstance(binding, MatchCast):
            span = binding.span or span
            self.variables[var] = self.fitted(self.value(binding.value), binding.ty, f"match_cast of {var.name}", span)
            return
        expr = binding.value
        if isinstance(expr, If):
            self.variables[var] = self.branches(expr, var)
        elif isinstance(expr, Call):
            self.variables[var] = self.call(expr, var, span)
        else:
            self.variables[var] = self.value(expr)

    def value(self, expr: Expr) -> Value:
        """The value of a leaf, tuple or tuple field."""
        if isinstance(expr, Var):
            found = self.variables.get(expr)
            if found is None:
                raise TargetError(f"llvm: the variable {expr.name!r} has no value here", code="W744", span=expr.span)
            return found
        method = _VALUES.get(type(expr))
        if method is not None:
            return method(self, expr)
        if isinstance(expr, PrimExpr):
            dim = prim_to_dim(expr)
            if dim is not None:
                return Scalar("int64", str(self.size(dim, expr.span)))
        if isinstance(expr, Function):
            hint = "run LambdaLift first: weft.transform.LambdaLift()(module)"
            raise TargetError("llvm: a local function has no compiled form", code="W743", span=expr.span, hint=hint)
        raise TargetError(
            f"llvm: a {type(expr).__name__} cannot be compiled in a graph function", code="W743", span=expr.span
        )

    def _constant(self, expr: Constant) -> Value:
        index = self.program.constant(expr.data, expr.dtype)
        table = self.w.emit(f"load ptr, ptr {frame_word(self.w, CONSTANTS)}")
        return Tensor(read(self.w, table, index), "0", list(expr.data.shape), expr.dtype, constant=True)

    def _shape(self, expr: ShapeExpr) -> Value:
        return Shape([self.nonnegative(dim, expr.span) for dim in expr.dims])

    def nonnegative(self, dim: Dim, span: Span | None) -> Size:
        """A size; ShapeError W221 when the program finds a negative one."""
        known = dim in self.sizes if isinstance(dim, DimExpr) else True
        size = self.size(dim, span)
        if isinstance(size, int) and size < 0:
            raise ShapeError(f"a shape has the negative size {size}", code="W221", span=span)
        if not known and _may_be_negative(dim):
            fine = self.w.emit(f"icmp sge i64 {size}, 0")
            self.unless(fine, "ShapeError", [f"a shape has the negative size {dim} = ", 0], [size], span, "W221")
        return size

    def _prim(self, expr: PrimValue) -> Value:
        if isinstance(expr.value, DimExpr):
            word = str(self.size(expr.value, expr.span))
            if dtypes.is_float(expr.dtype):
                return Scalar(
                    expr.dtype, to_word(self.scalars, expr.dtype, self.scalars.arith.cast("int64", expr.dtype, word))
                )
            return Scalar(expr.dtype, word)
        return Scalar(expr.dtype, str(scalar_word(expr.value, expr.dtype)))

    def _tuple(self, expr: Tuple) -> Value:
        return Items([self.value(item) for item in expr.fields])

    def _item(self, expr: TupleGetItem) -> Value:
        value = self.value(expr.value)
        if not isinstance(value, Items):
            raise TargetError("llvm: the fields of this tuple are not known", code="W743", span=expr.span)
        return value.fields[expr.index]

    def _text(self, expr: StringImm | DataTypeImm) -> Value:
        return Text(expr.value)

    def _function(self, expr: GlobalVar) -> Value:
        return Callable_(expr.name)

    # Branches

    def branches(self, expr: If, var: Var) -> Value:
        """Emit a conditional; the values of the branches meet in a block of words."""
        w = self.w
        condition = self.truth(expr.cond)
        ty = var.ty
        count = 0 if _is_void(ty) else width(ty)
        block = w.alloca("i64", max(1, count))
        then, other, done = w.label("then"), w.label("else"), w.label("endif")
        w.branch(condition, then, other)
        for label, branch in ((then, expr.then_branch), (other, expr.else_branch)):
            w.open(label)
            self._branch(branch, ty, block if count else "")
            if not w.terminated:
                w.jump(done)
        w.open(done)
        return load(w, ty, block)[0] if count else Items()

    def _branch(self, branch: SeqExpr, ty: Type, block: str) -> None:
        """What is bound or computed in a branch is not there after it."""
        outer = dict(self.symbols), dict(self.sources), dict(self.sizes), dict(self.held)
        value = self.sequence(branch)
        if block:
            store(self.w, self.shaped(value, ty, "the value of a branch", branch.body.span), ty, block)
        self.symbols, self.sources, self.sizes, self.held = outer

    def truth(self, expr: Expr) -> str:
        """A condition: a scalar or a tensor of rank 0."""
        value = self.value(expr)
        if isinstance(value, Scalar):
            return self.w.emit(f"icmp ne i64 {value.word}, 0")
        if isinstance(value, Dynamic):
            value = self._static(value, TensorType((), "bool"), "a condition", expr.span)
        if not isinstance(value, Tensor) or any(size != 1 for size in value.sizes):
            raise TargetError("llvm: a condition is a scalar or a tensor of rank 0", code="W743", span=expr.span)
        pointer = self.w.emit(f"inttoptr i64 {value.data} to ptr")
        loaded = self.scalars._from_memory(value.dtype, self.scalars._read(value.dtype, pointer))
        return self.scalars.arith.cast(value.dtype, "bool", loaded)

    # Memory

    def allocate(
        self, sizes: Sequence[Size], dtype: str, span: Span | None, var: Var | None, maker: str = "weft.allocate"
    ) -> Tensor:
        """A fresh tensor."""
        bytes_ = self.bytes_of(sizes, dtype)
        if var in self.direct:
            return self._allocate_result(sizes, dtype, bytes_, span, var, *self.direct[var])
        block = self.w.emit(f"call i64 @{maker}(i64 {bytes_})")
        name = var.name if var is not None else "_"
        found = self.w.emit(f"icmp ne i64 {block}, 0")
        self.unless(found, "MemoryError", [f"no memory for {name}: ", 0, " bytes"], [bytes_], span)
        self.hold(block, var)
        return Tensor(self.w.emit(f"add i64 {block}, {HEADER}"), block, list(sizes), dtype)

    def _allocate_result(
        self, sizes: Sequence[Size], dtype: str, bytes_: Size, span: Span | None, var: Var, word: int, ty: TensorType
    ) -> Tensor:
        """A tensor that becomes a result: where the caller wants it, when that is large enough."""
        w = self.w
        data, owner = w.alloca("i64"), w.alloca("i64")
        asked, wanted, fresh, done = (w.label(name) for name in ("asked", "wanted", "fresh", "done"))
        w.branch(w.emit(f"icmp ne i64 {w.emit(f'load i64, ptr {frame_word(w, OUTPUTS)}')}, 0"), asked, fresh)
        w.open(asked)
        place_ = read(w, "%results", word)
        room: Size = element_bytes(ty.dtype or dtype)
        for axis in range(ty.ndim):
            room = w.emit(f"mul i64 {room}, {read(w, '%results', word + 2 + axis)}")
        given = w.emit(f"icmp ne i64 {place_}, 0")
        fits = w.emit(f"and i1 {given}, {w.emit(f'icmp eq i64 {room}, {bytes_}')}")
        w.branch(fits, wanted, fresh)
        w.open(wanted)
        w.do(f"store i64 {place_}, ptr {data}")
        w.do(f"store i64 0, ptr {owner}")
        w.jump(done)
        w.open(fresh)
        block = w.emit(f"call i64 @weft.allocate(i64 {bytes_})")
        found = w.emit(f"icmp ne i64 {block}, 0")
        self.unless(found, "MemoryError", [f"no memory for {var.name}: ", 0, " bytes"], [bytes_], span)
        w.do(f"store i64 {w.emit(f'add i64 {block}, {HEADER}')}, ptr {data}")
        w.do(f"store i64 {block}, ptr {owner}")
        w.open(done)
        held = w.emit(f"load i64, ptr {owner}")
        self.hold(held, var)
        return Tensor(w.emit(f"load i64, ptr {data}"), held, list(sizes), dtype)

    def bytes_of(self, sizes: Sequence[Size], dtype: str) -> Size:
        """The bytes of a tensor; a number beyond all memory where 64 bits do not hold it."""
        found: Size = element_bytes(dtype)
        for size in sizes:
            known = isinstance(found, int) and isinstance(size, int)
            found = (
                self.w.mul(found, size) if known else self.w.emit(f"call i64 @weft.product(i64 {found}, i64 {size})")
            )
        return found

    def copied(self, value: Tensor, span: Span | None) -> Tensor:
        """A copy that may be written."""
        fresh = self.allocate(value.sizes, value.dtype, span, None)
        size: Size = element_bytes(value.dtype)
        for extent in value.sizes:
            size = self.w.mul(size, extent)
        self.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1 immarg"))
        target, source = (self.w.emit(f"inttoptr i64 {part} to ptr") for part in (fresh.data, value.data))
        self.w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
        return fresh

    # Calls

    def call(self, call: Call, var: Var, span: Span | None) -> Value:
        """Emit a call; gives its result."""
        callee = call.op
        if isinstance(callee, Var):
            function = self.value(callee)
            if not isinstance(function, Callable_):
                raise TargetError(
                    f"llvm: the function that {callee.name!r} holds is not known when compiling",
                    code="W743",
                    span=span,
                    hint="run LambdaLift first, or use weft.interpret",
                )
            return self.call_module(function.name, [*function.fixed, *map(self.value, call.args)], call, var, span)
        if isinstance(callee, GlobalVar):
            return self.call_module(callee.name, [self.value(arg) for arg in call.args], call, var, span)
        if isinstance(callee, ExternFunc):
            return self.call_packed(callee.name, list(call.args), call, span)
        if isinstance(callee, Op):
            return self.call_operator(callee.name, call, var, span)
        raise TargetError(f"llvm: cannot call a {type(callee).__name__}", code="W743", span=span)

    def call_module(self, name: str, args: list[Value], call: Call, var: Var, span: Span | None) -> Value:
        """A call of a function of the module."""
        function = self.program.functions.get(name)
        if isinstance(function, PrimFunc):
            return self.call_kernel(name, function, args, call, span)
        if isinstance(function, Function):
            return self.call_graph(name, function, args, var, span)
        if isinstance(function, ExternFunc):
            return self.call_packed(function.name, list(call.args), call, span)
        raise TargetError(f"llvm: the module has no function {name!r}", code="W743", span=span)

    def call_graph(self, name: str, function: Function, args: list[Value], var: Var, span: Span | None) -> Value:
        """A call of another graph function (or of this one): words in, words out; the results' references are ours."""
        w = self.w
        if len(args) != len(function.params):
            raise TargetError(
                f"llvm: {name} takes {len(function.params)} arguments, got {len(args)}", code="W743", span=span
            )
        values = [
            self.shaped(arg, param.ty, f"argument {i} `{param.name}` of {name}", span)
            for i, (arg, param) in enumerate(zip(args, function.params, strict=True), 1)
        ]
        self.check_stack(name, span)
        given = w.alloca("i64", max(1, sum(width(param.ty) for param in function.params)))
        index = 0
        for value, param in zip(values, function.params, strict=True):
            index = store(w, value, param.ty, given, index)
        results = w.alloca("i64", max(1, width(function.ret_type)))
        for word, _ in result_words(function.ret_type):
            write(w, results, word, 0)  # what we want is not what our caller wants
        spelled = self.module.declare(graph_symbol(name), "i32", ("ptr", "ptr", "ptr"))
        self.pass_on(w.emit(f"call i32 {spelled}(ptr %frame, ptr {given}, ptr {results})"), span, placed=True)
        result, _ = load(w, function.ret_type, results)
        for owner in owners(w, result):
            self.hold(owner, var)
        return self.fitted(result, var.ty, var.name or "a value", span) if not _is_void(var.ty) else result

    def check_stack(self, name: str, span: Span | None) -> None:
        """RecursionError where calls of graph functions are nested so deep that the stack would run out."""
        w = self.w
        here = w.emit(f"ptrtoint ptr {self.status} to i64")
        word = frame_word(w, STACK)
        first = w.emit(f"load i64, ptr {word}")
        base = w.emit(f"select i1 {w.emit(f'icmp eq i64 {first}, 0')}, i64 {here}, i64 {first}")
        w.do(f"store i64 {base}, ptr {word}")
        used = self.scalars.arith.call(
            "llvm.abs.i64", "int64", ("i64", w.emit(f"sub i64 {base}, {here}")), ("i1", "false")
        )
        fine = w.emit(f"icmp slt i64 {used}, {STACK_LIMIT}")
        self.unless(fine, "RecursionError", [f"calls of {name} are nested too deep"], [], span)

    def call_kernel(self, name: str, kernel: PrimFunc, args: list[Value], call: Call, span: Span | None) -> Value:
        """A call of a tensor-level function on tensors and scalars."""
        if len(args) != len(kernel.params):
            raise TargetError(
                f"llvm: {name} takes {len(kernel.params)} arguments, got {len(args)}", code="W743", span=span
            )
        written = self.program.written(name, kernel, written_buffers)
        sharing = shared_positions(kernel)
        match = _KernelMatch(self, name, kernel, span)
        operands = ["ptr %frame"]
        for position, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
            if isinstance(param, Buffer):
                tensor = match.tensor(position, param, arg)
                others = written - sharing.get(position, set())
                if position not in written and any(
                    isinstance(o, Tensor) and o.data == tensor.data for o in _at(args, others)
                ):
                    tensor = self.copied(tensor, span)  # what is read stays as it was before the call
                if position in written and tensor.constant:
                    tensor = self.copied(tensor, span)
                    _rebind(self, call, position, tensor)
                elif position in written and tensor.param >= 0:
                    self.written.add(tensor.param)
                operands.append(f"ptr {self.w.emit(f'inttoptr i64 {tensor.data} to ptr')}")
            else:
                word = match.scalar(position, param.dtype, arg)
                operands.append(f"{value_type(param.dtype)} {from_word(self.scalars, param.dtype, word)}")
        operands += [f"i64 {size}" for size in match.finish()]
        dtype = result_dtype(kernel)
        slot = self.w.alloca(memory_type(dtype)) if dtype else ""
        if dtype:
            operands.append(f"ptr {slot}")
        spelled = self.module.declare(
            self.program.kernel_symbol(name), "i32", ("ptr", *(t for t, _ in kernel_params(kernel)))
        )
        self.pass_on(self.w.emit(f"call i32 {spelled}({', '.join(operands)})"), span, placed=True)
        if dtype:
            value = self.scalars._from_memory(dtype, self.scalars._read(dtype, slot))
            return Scalar(dtype, to_word(self.scalars, dtype, value))
        return Items()

    # Calls out of the program

    def call_packed(self, name: str, args: list[Expr], call: Call, span: Span | None) -> Value:
        """A registered Python function; its result has the stated type."""
        ty: Type = call.ty_args[0] if call.ty_args else AnyType()
        if call.attrs.get("dps"):
            ty = TupleType(())
        return self.call_out(name, [self.value(arg) for arg in args], ty, span)

    def call_out(self, name: str, args: Sequence[Value], ty: Type, span: Span | None, **text: Any) -> Value:
        """Call the runtime with values; gives the value of a type that comes back."""
        words: list[Size] = []
        kinds = [self._argument(arg, words) for arg in args]
        result = [] if _is_void(ty) else type_data(ty)
        site = self.program.site(kind="call", name=name, args=kinds, result=result, span=span, **text)
        status, block = call_back(self.w, site, words, 0 if not result else width(ty))
        self.pass_on(status)
        if not result:
            return Items()
        value, _ = load(self.w, ty, block)
        self.check([(value, ty, text.get("what") or f"the result of {name!r}")], span)
        return value

    def _argument(self, value: Value, words: list[Size]) -> list[Any]:
        """Append a value's words; gives its type as data."""
        if isinstance(value, Tensor):
            words += [value.data, value.owner, *value.sizes]
            kind = ["tensor", value.dtype, None, len(value.sizes)]
            return [*kind, "constant"] if value.constant else kind
        if isinstance(value, Dynamic):
            words += [read(self.w, value.words, index) for index in range(DYNAMIC_WORDS)]
            return ["tensor", None, None, -1]
        if isinstance(value, Shape):
            words += value.sizes
            return ["shape", None, len(value.sizes)]
        if isinstance(value, DynamicShape):
            words += [read(self.w, value.words, index) for index in range(1 + DYNAMIC_RANK)]
            return ["shape", None, -1]
        if isinstance(value, Scalar):
            words.append(value.word)
            return ["prim", value.dtype, None]
        if isinstance(value, Items):
            return ["tuple", *(self._argument(item, words) for item in value.fields)]
        if isinstance(value, Text):
            return ["string", value.text]
        if isinstance(value, Handle):
            words.append(value.word)
            return ["object"]
        raise TargetError("llvm: a function cannot be passed out of compiled code", code="W743")

    # Operators that are not kernels

    def call_operator(self, name: str, call: Call, var: Var, span: Span | None) -> Value:
        """An operator of the executor; TargetError W745 for one that has no kernel."""
        rule = _OPERATORS.get(name)
        if rule is None:
            raise TargetError(
                f"llvm: R.{name} has no kernel in {self.name}", code="W745", span=span,
                hint="run weft.transform.LegalizeOps() before; where a shape is unknown, name it with R.match_cast",
            )  # fmt: skip
        return rule(self, call, var, span)

    def _alloc_tensor(self, call: Call, var: Var, span: Span | None) -> Value:
        shape = self.value(call.args[0])
        dtype = _dtype_of(call, var)
        if not isinstance(shape, Shape):
            raise TargetError("llvm: memory of unknown rank cannot be allocated", code="W743", span=span)
        return self.allocate(shape.sizes, dtype, span, var)

    def _alloc_storage(self, call: Call, var: Var, span: Span | None) -> Value:
        size = self.value(call.args[0])
        if isinstance(size, Scalar):
            size = Shape([size.word])
        if not isinstance(size, Shape):
            raise TargetError("llvm: storage of unknown size cannot be allocated", code="W743", span=span)
        return self.allocate(size.sizes, "uint8", span, var, "weft.block")

    def _tensor_in_storage(self, call: Call, var: Var, span: Span | None) -> Value:
        storage = self.value(call.args[0])
        shape = next((v for v in map(self.value, call.args[1:]) if isinstance(v, Shape)), None)
        offset = next(
            (v for v in map(self.value, call.args[1:]) if isinstance(v, Scalar)),
            Scalar("int64", str(call.attrs.get("offset", 0))),
        )
        if not isinstance(storage, Tensor) or shape is None:
            raise TargetError(
                "llvm: a tensor in storage needs a storage, an offset and a shape", code="W743", span=span
            )
        dtype = _dtype_of(call, var)
        self._fits(offset.word, shape.sizes, dtype, storage, span)
        return Tensor(str(self.w.add(storage.data, _number(offset.word))), storage.owner, shape.sizes, dtype)

    def _fits(self, offset: str, sizes: Sequence[Size], dtype: str, storage: Tensor, span: Span | None) -> None:
        """BoundsError W903 when a tensor at an offset in bytes does not lie within another one."""
        end = self.bytes_of(sizes, dtype)
        room: Size = element_bytes(storage.dtype)
        for size in storage.sizes:
            room = self.w.mul(room, size)
        last = self.w.add(end, _number(offset))
        if isinstance(last, int) and isinstance(room, int) and 0 <= int(offset) and last <= room:
            return
        fits = self.w.emit(f"icmp sle i64 {last}, {room}")
        positive = self.w.emit(f"icmp sge i64 {offset}, 0")
        parts = ["a tensor that ends at byte ", 0, " does not fit in a storage of ", 1]
        self.unless(self.w.emit(f"and i1 {fits}, {positive}"), "BoundsError", parts, [last, room], span, "W903")

    def _view(self, call: Call, var: Var, span: Span | None) -> Value:
        parts = get_op(call.op.name).values(call) if isinstance(call.op, Op) else {}
        data = self.value(call.args[0])
        if not isinstance(data, Tensor):
            raise TargetError("llvm: a view of a tensor of unknown rank", code="W743", span=span)
        shape = self.value(parts["shape"]) if parts.get("shape") is not None else Shape(data.sizes)
        given = parts.get("relative_byte_offset")
        offset = self.value(given) if isinstance(given, Expr) else Scalar("int64", str(given or 0))
        if not isinstance(shape, Shape) or not isinstance(offset, Scalar):
            raise TargetError("llvm: a view needs a shape of known rank and a scalar offset", code="W743", span=span)
        dtype = parts.get("dtype")
        dtype = dtype.value if isinstance(dtype, DataTypeImm) else dtype or data.dtype
        self._fits(offset.word, shape.sizes, dtype, data, span)
        start = str(self.w.add(data.data, _number(offset.word)))
        return Tensor(start, data.owner, shape.sizes, dtype, data.constant, data.param)

    def _kill(self, call: Call, var: Var, span: Span | None) -> Value:
        for arg in call.args:
            if isinstance(arg, Var):
                self.drop(arg)
        return Items()

    def _same(self, call: Call, var: Var, span: Span | None) -> Value:
        return self.value(call.args[0])

    def _null(self, call: Call, var: Var, span: Span | None) -> Value:
        return self.call_out("weft.null", [], AnyType(), span)

    def _shape_of(self, call: Call, var: Var, span: Span | None) -> Value:
        value = self.value(call.args[0])
        if isinstance(value, Tensor):
            return Shape(list(value.sizes))
        if not isinstance(value, Dynamic):
            raise TargetError("llvm: R.shape_of takes a tensor", code="W743", span=span)
        block = self.w.alloca("i64", 1 + DYNAMIC_RANK)
        write(self.w, block, 0, read(self.w, value.words, 2))
        copy_words(self.w, block, 1, place(self.w, value.words, 4), DYNAMIC_RANK)
        return DynamicShape(block)

    def _tensor_to_shape(self, call: Call, var: Var, span: Span | None) -> Value:
        value = self.value(call.args[0])
        ty = var.ty if isinstance(var.ty, ShapeType) else ShapeType()
        if not isinstance(value, Tensor) or len(value.sizes) != 1 or not isinstance(value.sizes[0], int):
            return self.call_out("weft.tensor_to_shape", [value], ty, span)
        pointer = self.w.emit(f"inttoptr i64 {value.data} to ptr")
        sizes: list[Size] = []
        for axis in range(value.sizes[0]):
            element = self.w.emit(f"getelementptr {memory_type(value.dtype)}, ptr {pointer}, i64 {axis}")
            size = self.scalars.arith.cast(value.dtype, "int64", self.scalars._read(value.dtype, element))
            fine = self.w.emit(f"icmp sge i64 {size}, 0")
            self.unless(fine, "ShapeError", ["a shape has the negative size ", 0], [size], span, "W221")
            sizes.append(size)
        return self.fitted(Shape(sizes), ty, var.name or "a shape", span)

    def _shape_to_tensor(self, call: Call, var: Var, span: Span | None) -> Value:
        value = self.value(call.args[0])
        if not isinstance(value, Shape):
            return self.call_out("weft.shape_to_tensor", [value], TensorType(None, "int64", 1), span)
        result = self.allocate([len(value.sizes)], "int64", span, var)
        pointer = self.w.emit(f"inttoptr i64 {result.data} to ptr")
        for axis, size in enumerate(value.sizes):
            write(self.w, pointer, axis, size)
        return result

    def _print(self, call: Call, var: Var, span: Span | None) -> Value:
        parts = _parts(call)
        values = [self.value(item) for item in _expressions(parts.get("values"))]
        return self.call_out("weft.print_format", values, TupleType(()), span, format=_plain_text(parts.get("format")))

    def _assert(self, call: Call, var: Var, span: Span | None) -> Value:
        parts = _parts(call)
        condition = self.truth_of_all(self.value(parts["condition"]), parts["condition"])
        bad, good = self.w.label("assert"), self.w.label("good")
        self.w.branch(condition, good, bad)
        self.w.open(bad)
        values = [self.value(item) for item in _expressions(parts.get("format_args"))]
        self.call_out("weft.assert", values, TupleType(()), span, format=_plain_text(parts.get("format")))
        self.w.open(good)
        return Items()

    def truth_of_all(self, value: Value, expr: Expr) -> str:
        """Whether a scalar, or every element of a tensor of one, is true."""
        return self.truth(expr) if not isinstance(value, Text) else "true"

    def _make_closure(self, call: Call, var: Var, span: Span | None) -> Value:
        function = self.value(call.args[0])
        fixed = self._many(call.args[1]) if len(call.args) > 1 else []
        if not isinstance(function, Callable_):
            raise TargetError("llvm: a closure of a function that is not known when compiling", code="W743", span=span)
        return Callable_(function.name, [*function.fixed, *fixed])

    def _invoke_closure(self, call: Call, var: Var, span: Span | None) -> Value:
        function = self.value(call.args[0])
        if not isinstance(function, Callable_):
            hint = "use weft.interpret for functions that are chosen while the program runs"
            raise TargetError("llvm: the closure called is not known when compiling", code="W743", span=span, hint=hint)
        return self.call_module(function.name, [*function.fixed, *self._many(call.args[1])], call, var, span)

    def _many(self, expr: Expr) -> list[Value]:
        value = self.value(expr)
        return list(value.fields) if isinstance(value, Items) else [value]

    def _packed_operator(self, call: Call, var: Var, span: Span | None) -> Value:
        callee, *args = call.args
        if not isinstance(callee, (ExternFunc, StringImm)):
            raise TargetError("llvm: the external function must be named", code="W743", span=span)
        name = callee.name if isinstance(callee, ExternFunc) else callee.value
        if len(args) == 1 and isinstance(args[0], Tuple):
            args = list(args[0].fields)
        return self.call_packed(name, args, call, span)

    def _python_call(self, call: Call, var: Var, span: Span | None) -> Value:
        values = self._many(call.args[0]) if call.args else []
        return self.call_out(str(call.attrs["func_name"]), values, call.ty_args[0], span)


class _KernelMatch:
    """One call of a kernel: its symbols from the sizes given, and the checks that are left."""

    def __init__(self, emitter: GraphEmitter, name: str, kernel: PrimFunc, span: Span | None) -> None:
        self.emitter, self.name, self.kernel, self.span = emitter, name, kernel, span
        self.names, self.types = emitter.program.kernel_types(
            name, kernel, lambda k: (symbol_names(k), kernel_signature(k))
        )
        self.values: dict[str, Size] = {}
        self.sources: dict[str, str] = {}
        self.claims: list[tuple[int, Sequence[Dim], Sequence[Size]]] = []

    def _place(self, position: int) -> str:
        return f"argument {position + 1} `{self.kernel.params[position].name}`"

    def tensor(self, position: int, param: Buffer, arg: Value) -> Tensor:
        """A buffer's argument, its sizes noted."""
        emitter = self.emitter
        what = f"{self._place(position)} of {self.name}"
        ty = self.types[position]
        assert isinstance(ty, TensorType)
        if not isinstance(arg, Tensor):
            arg = emitter.shaped(arg, TensorType(None, param.dtype, param.ndim), what, self.span)
        if not isinstance(arg, Tensor) or arg.dtype != param.dtype or len(arg.sizes) != param.ndim:
            got = f"{arg.dtype} of rank {len(arg.sizes)}" if isinstance(arg, Tensor) else type(arg).__name__.lower()
            raise ShapeError(f"{what}: expected {_type_text(ty)}, got {got}", code="W202", span=self.span)
        dims = ty.dims or ()
        self.claims.append((position, dims, arg.sizes))
        for dim, size in zip(dims, arg.sizes, strict=True):
            kind, operands = operation(dim)
            if kind == "symbol" and operands[0] not in self.values:
                self.values[operands[0]] = size
                self.sources[operands[0]] = self._place(position)
        return arg

    def scalar(self, position: int, dtype: str, arg: Value) -> str:
        """A scalar's argument as a word of the parameter's dtype."""
        emitter = self.emitter
        if isinstance(arg, Shape) and len(arg.sizes) == 1:
            arg = Scalar("int64", str(arg.sizes[0]))
        if isinstance(arg, Tensor) and not arg.sizes:
            pointer = emitter.w.emit(f"inttoptr i64 {arg.data} to ptr")
            loaded = emitter.scalars._from_memory(arg.dtype, emitter.scalars._read(arg.dtype, pointer))
            arg = Scalar(arg.dtype, to_word(emitter.scalars, arg.dtype, loaded))
        if not isinstance(arg, Scalar):
            raise ShapeError(f"{self._place(position)} of {self.name}: expected a scalar", code="W202", span=self.span)
        word = arg.word
        if arg.dtype != dtype:
            value = emitter.scalars.arith.cast(arg.dtype, dtype, from_word(emitter.scalars, arg.dtype, word))
            word = to_word(emitter.scalars, dtype, value)
        name = self.names.get(self.kernel.params[position])
        if name is not None and dtypes.is_integer(dtype):
            self.values.setdefault(name, _number(word))
            self.sources.setdefault(name, self._place(position))
        return word

    def finish(self) -> list[Size]:
        """Compare the sizes, and give those of the kernel's symbols in order."""
        for position, dims, sizes in self.claims:
            for dim, size in zip(dims, sizes, strict=True):
                if isinstance(dim, DimExpr) and any(name not in self.values for name in free_symbols(dim)):
                    continue
                self._compare(position, dims, sizes, self.emitter._size(dim, self.values, self.span), size)
        layout: dict[Any, Size] = {}
        for (_, _, sizes), param in zip(
            self.claims, [p for p in self.kernel.params if isinstance(p, Buffer)], strict=True
        ):
            step: Size = 1
            for stride, size in zip(reversed(param.strides or ()), reversed(list(sizes)), strict=False):
                layout.setdefault(stride, step)
                step = self.emitter.w.mul(step, size)
            layout.setdefault(param.elem_offset, 0)
        return [self.values.get(self.names[s], layout.get(s, 0)) for s in buffer_symbols(self.kernel)]

    def _compare(self, position: int, dims: Sequence[Dim], sizes: Sequence[Size], wanted: Size, size: Size) -> None:
        if wanted == size:
            return
        what = f"{self._place(position)} of {self.name}"
        parts, values = _mismatch(what, self.types[position], dims, sizes, self.values, self.sources)
        if isinstance(wanted, int) and isinstance(size, int) and all(isinstance(value, int) for value in values):
            message = "".join(part if isinstance(part, str) else str(values[part]) for part in parts)
            raise ShapeError(message, code="W222", span=self.span)
        same = self.emitter.w.emit(f"icmp eq i64 {wanted}, {size}")
        self.emitter.unless(same, "ShapeError", parts, values, self.span, "W222")


def _at(values: Sequence[Value], positions: Collection[int]) -> list[Value]:
    return [values[position] for position in positions]


def _rebind(emitter: GraphEmitter, call: Call, position: int, tensor: Tensor) -> None:
    """The variable whose constant was copied before a kernel wrote it now means the copy."""
    arg = call.args[position] if position < len(call.args) else None
    if isinstance(arg, Var):
        emitter.variables[arg] = tensor


def _mismatch(
    what: str,
    ty: Type,
    dims: Sequence[Dim],
    sizes: Sequence[Size],
    symbols: Mapping[str, Size],
    sources: Mapping[str, str],
) -> tuple[list[str | int], list[Size]]:
    """The message of a size that differs, with places for the numbers."""
    values: list[Size] = list(sizes)
    prefix = f"{ty.dtype}[" if isinstance(ty, TensorType) else "shape "
    close = "]" if isinstance(ty, TensorType) else ""
    parts: list[str | int] = [f"{what}: expected {prefix}{shape_text(dims)}{close}, got {prefix}("]
    for index in range(len(sizes)):
        parts += [index, ", " if index + 1 < len(sizes) else ""]
    parts.append(f"{',' if len(sizes) == 1 else ''}){close}")
    names = dict.fromkeys(
        name for dim in dims if isinstance(dim, DimExpr) for name in free_symbols(dim) if name in symbols
    )
    for number, name in enumerate(names):
        parts += [f"{'; ' if number == 0 else ', '}{name}=", len(values), f" from {sources.get(name, 'the caller')}"]
        values.append(symbols[name])
    return parts, values


def _number(word: str) -> Size:
    """A word as a size, folded when it is a constant."""
    return int(word) if word.lstrip("-").isdigit() else word


def _type_text(ty: Type) -> str:
    return expected_text(type_data(ty))


def _is_void(ty: Type | None) -> bool:
    return isinstance(ty, TupleType) and not ty.fields


def _may_be_negative(dim: Dim) -> bool:
    """Whether a dimension is not evidently at least 0."""
    kind, operands = operation(dim)
    if kind == "constant":
        return operands[0] < 0
    if kind == "symbol":
        return False
    if kind == "pow":
        return _may_be_negative(operands[0])
    return any(_may_be_negative(operand) for operand in operands)


def _dtype_of(call: Call, var: Var) -> str:
    dtype = call.attrs.get("dtype")
    if dtype is None and isinstance(var.ty, TensorType):
        dtype = var.ty.dtype
    return str(getattr(dtype, "value", dtype) or "float32")


def _parts(call: Call) -> dict[str, Any]:
    """The arguments of an operator's call by parameter name."""
    return get_op(call.op.name).values(call) if isinstance(call.op, Op) else {}


def _expressions(part: Any) -> tuple[Expr, ...]:
    if part is None:
        return ()
    return part if isinstance(part, tuple) else tuple(part.fields) if isinstance(part, Tuple) else (part,)


def _plain_text(part: Any) -> str:
    return part.value if isinstance(part, StringImm) else str(part or "")


_VALUES: dict[type, Callable[[GraphEmitter, Any], Value]] = {
    Constant: GraphEmitter._constant,
    ShapeExpr: GraphEmitter._shape,
    PrimValue: GraphEmitter._prim,
    Tuple: GraphEmitter._tuple,
    TupleGetItem: GraphEmitter._item,
    StringImm: GraphEmitter._text,
    DataTypeImm: GraphEmitter._text,
    GlobalVar: GraphEmitter._function,
    SeqExpr: GraphEmitter.sequence,
}
_OPERATORS: dict[str, Callable[[GraphEmitter, Call, Var, Span | None], Value]] = {
    "builtin.alloc_tensor": GraphEmitter._alloc_tensor,
    "memory.alloc_storage": GraphEmitter._alloc_storage,
    "vm.alloc_storage": GraphEmitter._alloc_storage,
    "memory.alloc_tensor": GraphEmitter._tensor_in_storage,
    "vm.alloc_tensor": GraphEmitter._tensor_in_storage,
    "memory.view": GraphEmitter._view,
    "memory.kill_storage": GraphEmitter._kill,
    "memory.kill_tensor": GraphEmitter._kill,
    "vm.kill_object": GraphEmitter._kill,
    "to_vdevice": GraphEmitter._same,
    "hint_on_device": GraphEmitter._same,
    "builtin.stop_lift_params": GraphEmitter._same,
    "memory.ensure_zero_offset": GraphEmitter._same,
    "null_value": GraphEmitter._null,
    "shape_of": GraphEmitter._shape_of,
    "tensor_to_shape": GraphEmitter._tensor_to_shape,
    "shape_to_tensor": GraphEmitter._shape_to_tensor,
    "print": GraphEmitter._print,
    "assert_op": GraphEmitter._assert,
    "make_closure": GraphEmitter._make_closure,
    "invoke_closure": GraphEmitter._invoke_closure,
    "invoke_pure_closure": GraphEmitter._invoke_closure,
    "call_packed": GraphEmitter._packed_operator,
    "call_pure_packed": GraphEmitter._packed_operator,
    "call_inplace_packed": GraphEmitter._packed_operator,
    "call_builtin_with_ctx": GraphEmitter._packed_operator,
    "call_py_func": GraphEmitter._python_call,
}
