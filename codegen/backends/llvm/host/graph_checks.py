"""What every part of the emitter of graph functions stands on: failing, references, sizes, values against types.

Symbols are 64-bit integers, bound from the sizes of arguments and by match_cast. Every claim that is not evident is
compared when the program runs; the message names the binding, the argument, the symbol and the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.codegen.backends.llvm.asm.asm import FunctionWriter, ModuleWriter, Size
from weft.codegen.backends.llvm.asm.program import Program, frame_word, graph_symbol
from weft.codegen.backends.llvm.host.direct_outputs import direct_results
from weft.codegen.backends.llvm.host.graph_values import (
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
    dtype_code,
    is_dynamic,
    place,
    read,
    write,
)
from weft.codegen.backends.llvm.kernel.expressions import ExpressionEmitter
from weft.codegen.backends.llvm.kernel.kernel_entry import ENTRY_PARAMS
from weft.codegen.host.signature import type_data
from weft.errors import Span, TargetError
from weft.ir.dim import Dim, DimExpr, free_symbols, operation
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import (
    Function,
    Var,
)
from weft.ir.types import AnyType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.runtime.abi.frame import PLACE
from weft.runtime.abi.signature import expected_text, shape_text

__all__ = ["CheckingEmitter", "is_void", "mismatch", "number", "type_name"]


class CheckingEmitter:
    """The state of one graph function, and the checks of its values."""

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

    def leave(self, status: str) -> None:
        """Go to the way out with a status."""
        self.w.do(f"store i32 {status}, ptr {self.status}")
        self.w.jump(self.exit)

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
        if isinstance(ty, PrimType) and ty.dims is not None and isinstance(value, Scalar):
            return [(ty.dims, [self._as_size(value, ty)], value, ty)]
        if isinstance(ty, TupleType) and isinstance(value, Items):
            return [
                part for item, field in zip(value.fields, ty.fields, strict=True) for part in self._sized(item, field)
            ]
        return []

    def _as_size(self, value: Scalar, ty: PrimType) -> Size:
        """The word of a scalar that is a size: symbols are not negative."""
        fine = self.w.emit(f"icmp sge i64 {value.word}, 0")
        self.unless(fine, "ShapeError", [f"expected {type_name(ty)}, got ", 0], [value.word], ty.span, "W222")
        return value.word

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
            parts, values = mismatch(what, ty, dims, sizes, self.symbols, self.sources)
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
                    [f"{what}: expected {type_name(ty)}, got {value.dtype} of rank {len(value.sizes)}"],
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
                [f"{what}: expected {type_name(ty)}, got a shape of ", 0, " sizes"],
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
                [f"{what}: expected {type_name(ty)}, got a tensor of rank ", 0],
                [rank],
                span,
                "W222",
            )
        if ty.dtype is not None:
            same = w.emit(f"icmp eq i64 {read(w, value.words, 3)}, {dtype_code(ty.dtype)}")
            self.unless(
                same,
                "ShapeError",
                [f"{what}: expected {type_name(ty)}, got a tensor of another dtype"],
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

    def call_out(self, name: str, args: Sequence[Value], ty: Type, span: Span | None, **text: Any) -> Value:
        """Call the runtime with values (`GraphEmitter` does it)."""
        raise NotImplementedError


def mismatch(
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


def number(word: str) -> Size:
    """A word as a size, folded when it is a constant."""
    return int(word) if word.lstrip("-").isdigit() else word


def type_name(ty: Type) -> str:
    """A type as messages show it."""
    return expected_text(type_data(ty))


def is_void(ty: Type | None) -> bool:
    """Whether values of a type hold nothing."""
    return isinstance(ty, TupleType) and not ty.fields
