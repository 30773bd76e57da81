"""Values of graph functions against types: symbols get their values, the rest is compared when the program runs.

Symbols are 64-bit integers, bound from the sizes of arguments and by match_cast. Every claim that is not evident is
compared when the program runs; the message names the binding, the argument, the symbol and the values. Objects of the
runtime become values, and the other way round, in calls out of the program.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, icmp, select
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.host.sizes import SizeEmitter
from weft.codegen.backends.llvm.host.values import (
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
    dtype_code,
    is_dynamic,
    load_value,
    read,
    width,
)
from weft.codegen.backends.llvm.kernel.emitter import call_back
from weft.codegen.host.signature import abi_type
from weft.errors import Span, TargetError
from weft.ir.dim import Dim, DimExpr, free_symbols, linear_parts, operation
from weft.ir.graph import Var
from weft.ir.types import AnyType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import shape_text
from weft.runtime.abi.frame import DYNAMIC_RANK

__all__ = ["CheckingEmitter", "is_void", "mismatch", "number", "type_name"]


class CheckingEmitter(SizeEmitter):
    """The checks of the values of one graph function, and calls out of it."""

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
        while any(self._solved(dims, sizes, what, ty, span) for dims, sizes, what, _, ty in pairs):
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
        fine = self.w.emit(icmp("sge", "i64", value.word, "0"))
        self.unless(fine, "ShapeError", [f"expected {type_name(ty)}, got ", 0], [value.word], ty.span, "W222")
        return value.word

    def _compare_sizes(self, wanted: Sequence[Size], sizes: Sequence[Size], ty: Type) -> None:
        for axis, (a, b) in enumerate(zip(wanted, sizes, strict=True)):
            if a != b:
                same = self.w.emit(icmp("eq", "i64", a, b))
                self.unless(same, "ShapeError", [f"axis {axis}: expected ", 0, ", got ", 1], [a, b], ty.span, "W222")

    def _solved(self, dims: Sequence[Dim], sizes: Sequence[Size], what: str, ty: Type, span: Span | None) -> bool:
        """Solve a linear dimension for its one symbol without a value, which is a size: it is not negative."""
        for dim, size in zip(dims, sizes, strict=True):
            missing = (
                [name for name in free_symbols(dim) if name not in self.symbols] if isinstance(dim, DimExpr) else []
            )
            parts = linear_parts(dim, missing[0]) if len(missing) == 1 else None
            if parts is not None:
                value, fine = self._solution(*parts, size, span)
                texts, values = mismatch(what, ty, dims, sizes, self.symbols, self.sources)
                for condition in fine:
                    self.unless(condition, "ShapeError", texts, values, span, "W222")
                self.bind_symbol(missing[0], value, what)
                return True
        return False

    def _solution(self, factor: Dim, rest: Dim, size: Size, span: Span | None) -> tuple[Size, list[str]]:
        """What a symbol is where factor * symbol + rest is a size, rounded; and what must hold for it to be one."""
        exact, fine = Exact(self.w), list[str]()
        value = exact.sub(size, self.exactly(rest, self.symbols, exact, span))
        divisor = self.exactly(factor, self.symbols, exact, span)
        self.fits_64_bits(factor, exact, span)
        if not isinstance(divisor, int):
            fine.append(self.w.emit(icmp("ne", "i64", divisor, "0")))
            # A symbol that nothing determines stops the program before its value is looked at.
            divisor = self.w.emit(select("i1", fine[0], "i64", divisor, "1"))
        if divisor != 1:
            value = self.arith.binary("floordiv", "int64", str(value), str(divisor))
        if not (isinstance(factor, int) and factor > 0 and isinstance(rest, int) and rest <= 0):
            fine.append(self.w.emit(icmp("sge", "i64", value, "0")))
        return value, fine

    def _compare(self, dims: Sequence[Dim], sizes: Sequence[Size], what: str, ty: Type, span: Span | None) -> None:
        together: list[str] = []

        def check() -> None:
            if together:
                parts, values = mismatch(what, ty, dims, sizes, self.symbols, self.sources)
                fine = functools.reduce(lambda a, b: self.w.emit(binary("and", "i1", a, b)), together)
                self.unless(fine, "ShapeError", parts, values, span, "W222")
                together.clear()

        for dim, size in zip(dims, sizes, strict=True):
            if isinstance(dim, DimExpr) and any(name not in self.symbols for name in free_symbols(dim)):
                continue  # nothing to compare with: the symbol is only ever named here
            computed = operation(dim)[0] not in ("constant", "symbol")
            if computed:
                check()  # before what may fail while it is computed
            wanted, same = self.compared(dim, size, self.symbols, span)
            if same is not True:
                together.append(same or "false")
            if computed and isinstance(dim, DimExpr):
                check()
                self.sizes.setdefault(dim, wanted)
        check()

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
            same = self.w.emit(icmp("eq", "i64", count, ty.ndim))
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
            return self.call_action("weft.cast", [value], ty, span)
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
            same = w.emit(icmp("eq", "i64", rank, ty.ndim))
            self.unless(
                same,
                "ShapeError",
                [f"{what}: expected {type_name(ty)}, got a tensor of rank ", 0],
                [rank],
                span,
                "W222",
            )
        if ty.dtype is not None:
            same = w.emit(icmp("eq", "i64", read(w, value.words, 3), dtype_code(ty.dtype)))
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
        return self.call_action("weft.cast", [value], ty, span, what=what)

    def _boxed(self, value: Value, span: Span | None) -> Value:
        """A value as an object of the runtime."""
        return self.call_action("weft.cast", [value], AnyType(), span)

    # Calls out of the program

    def call_out(self, name: str, args: Sequence[Value], ty: Type, span: Span | None, **text: Any) -> Value:
        """Call the runtime with values; gives the value of a type that comes back."""
        words: list[Size] = []
        kinds = [_argument(self.w, arg, words) for arg in args]
        result = None if is_void(ty) else abi_type(ty)
        site = self.program.site(kind="call", name=name, args=kinds, result=result, span=span, **text)
        status, block = call_back(self.w, site, words, 0 if result is None else width(ty))
        self.pass_on(status)
        if result is None:
            return Items()
        value, _ = load_value(self.w, ty, block)
        self.check([(value, ty, text.get("what") or f"the result of {name!r}")], span)
        return value

    def call_action(self, name: str, args: Sequence[Value], ty: Type, span: Span | None, **text: Any) -> Value:
        """Call an action of the runtime's own (`weft.runtime.callbacks.ACTIONS`)."""
        return self.call_out(name, args, ty, span, action=True, **text)


def _argument(w: FunctionWriter, value: Value, words: list[Size]) -> abi.Type:
    """Append a value's words; gives its type."""
    if isinstance(value, Tensor):
        words += [value.data, value.owner, *value.sizes]
        return abi.Tensor(value.dtype, None, len(value.sizes), "constant" if value.constant else "")
    if isinstance(value, Dynamic):
        words += [read(w, value.words, index) for index in range(DYNAMIC_WORDS)]
        return abi.Tensor(None, None, -1)
    if isinstance(value, Shape):
        words += value.sizes
        return abi.Shape(None, len(value.sizes))
    if isinstance(value, DynamicShape):
        words += [read(w, value.words, index) for index in range(1 + DYNAMIC_RANK)]
        return abi.Shape(None, -1)
    if isinstance(value, Scalar):
        words.append(value.word)
        return abi.Scalar(value.dtype)
    if isinstance(value, Items):
        return abi.Tuple(tuple(_argument(w, item, words) for item in value.fields))
    if isinstance(value, Text):
        return abi.Text(value.text)
    if isinstance(value, Handle):
        words.append(value.word)
        return abi.Object()
    raise TargetError("llvm: a function cannot be passed out of compiled code", code="W743")


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
    names = dict.fromkeys(name for dim in dims if isinstance(dim, DimExpr) for name in free_symbols(dim))
    for number, name in enumerate(names):
        parts.append("; " if number == 0 else ", ")
        if name not in symbols:
            parts.append(f"{name} has no value")
            continue
        parts += [f"{name}=", len(values), f" from {sources.get(name, 'the caller')}"]
        values.append(symbols[name])
    return parts, values


def number(word: str) -> Size:
    """A word as a size, folded when it is a constant."""
    return int(word) if word.lstrip("-").isdigit() else word


def type_name(ty: Type) -> str:
    """A type as messages show it."""
    return str(abi_type(ty))


def is_void(ty: Type | None) -> bool:
    """Whether values of a type hold nothing."""
    return isinstance(ty, TupleType) and not ty.fields
