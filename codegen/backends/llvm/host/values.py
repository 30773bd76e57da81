"""Values of graph functions while they are emitted, and their words in memory (`weft.runtime.abi.frame`).

    value ::= Tensor     data and owner (i64), sizes, dtype: everything about its form known to the emitter
            | Dynamic    a tensor whose rank or dtype is known only when the program runs: a block of words
            | Shape | DynamicShape | Scalar | Items (a tuple) | Text | Handle (an object of the runtime) | Callable

`store` writes a value in the layout of a type, `load` reads one; between functions, at the ends of branches and at
calls out of the program values pass in that form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import call, getelementptr, load, store
from weft.errors import TargetError
from weft.ir.types import AnyType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.runtime.abi.frame import DYNAMIC_RANK
from weft.runtime.abi.values import DTYPE_CODES
from weft.support.records import dataclass

__all__ = [
    "DYNAMIC_WORDS",
    "Callable_",
    "Dynamic",
    "DynamicShape",
    "Handle",
    "Items",
    "Scalar",
    "Shape",
    "Tensor",
    "Text",
    "Value",
    "load_value",
    "store",
    "width",
]

DYNAMIC_WORDS = 4 + DYNAMIC_RANK


@dataclass
class Tensor:
    """A tensor of known rank and dtype; `param` is the position of the parameter that it is, -1 for others."""

    data: str
    owner: str
    sizes: list[Size]
    dtype: str
    constant: bool = False
    param: int = -1


@dataclass
class Dynamic:
    """A tensor whose rank or dtype the program finds out: the address of its words."""

    words: str


@dataclass
class Shape:
    """A tuple of sizes of known length."""

    sizes: list[Size]


@dataclass
class DynamicShape:
    """A tuple of sizes: the address of its words (count, sizes)."""

    words: str


@dataclass
class Scalar:
    """A number: its 64-bit word."""

    dtype: str
    word: str


@dataclass
class Items:
    """A tuple."""

    fields: list[Any] = field(default_factory=list)


@dataclass
class Text:
    """A string that the program states."""

    text: str


@dataclass
class Handle:
    """The number of an object that the runtime holds."""

    word: str


@dataclass
class Callable_:
    """A function of the module, with its first arguments fixed."""

    name: str
    fixed: list[Any] = field(default_factory=list)


Value = Tensor | Dynamic | Shape | DynamicShape | Scalar | Items | Text | Handle | Callable_


def is_dynamic(ty: TensorType) -> bool:
    """Whether a tensor of the type needs its rank or dtype in memory."""
    return ty.ndim < 0 or ty.dtype is None


def width(ty: Type) -> int:
    """The words of a value of a type."""
    if isinstance(ty, TensorType):
        return DYNAMIC_WORDS if is_dynamic(ty) else 2 + ty.ndim
    if isinstance(ty, ShapeType):
        return 1 + DYNAMIC_RANK if ty.ndim < 0 else ty.ndim
    if isinstance(ty, TupleType):
        return sum(width(item) for item in ty.fields)
    if isinstance(ty, (PrimType, StringType, AnyType)):
        return 1
    raise TargetError(
        f"llvm: a value of type {type(ty).__name__} cannot pass between functions",
        code="W743",
        span=ty.span,
        hint="run LambdaLift and InlinePrivateFunctions first, or use weft.interpret",
    )


def place(w: FunctionWriter, block: str, index: int) -> str:
    """The address of a word of a block."""
    return w.emit(getelementptr("i64", block, index)) if index else block


def read(w: FunctionWriter, block: str, index: int) -> str:
    """A word of a block."""
    return w.emit(load("i64", place(w, block, index)))


def write(w: FunctionWriter, block: str, index: int, word: Size) -> None:
    """Set a word of a block."""
    w.do(store("i64", word, place(w, block, index)))


def load_value(w: FunctionWriter, ty: Type, block: str, index: int = 0) -> tuple[Value, int]:
    """The value of a type at a word of a block, and the index after it; the block stays while the value lives."""
    if isinstance(ty, TensorType):
        if is_dynamic(ty):
            return Dynamic(place(w, block, index)), index + DYNAMIC_WORDS
        sizes: list[Size] = [read(w, block, index + 2 + axis) for axis in range(ty.ndim)]
        return Tensor(read(w, block, index), read(w, block, index + 1), sizes, ty.dtype or ""), index + 2 + ty.ndim
    if isinstance(ty, ShapeType):
        if ty.ndim < 0:
            return DynamicShape(place(w, block, index)), index + 1 + DYNAMIC_RANK
        return Shape([read(w, block, index + axis) for axis in range(ty.ndim)]), index + ty.ndim
    if isinstance(ty, PrimType):
        return Scalar(ty.dtype, read(w, block, index)), index + 1
    if isinstance(ty, TupleType):
        fields = []
        for item in ty.fields:
            value, index = load_value(w, item, block, index)
            fields.append(value)
        return Items(fields), index
    width(ty)
    return Handle(read(w, block, index)), index + 1


def owners(w: FunctionWriter, value: Value) -> list[str]:
    """The owner words of the tensors in a value that may hold memory."""
    if isinstance(value, Tensor):
        return [] if value.owner == "0" else [value.owner]
    if isinstance(value, Dynamic):
        return [read(w, value.words, 1)]
    return [owner for item in value.fields for owner in owners(w, item)] if isinstance(value, Items) else []


def dtype_code(dtype: str) -> int:
    """The number of a dtype in the words of a dynamic tensor."""
    return DTYPE_CODES[dtypes.element(dtype)]


def copy_words(w: FunctionWriter, target: str, index: int, source: str, count: int) -> None:
    """Copy words from the start of one block into another."""
    w.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1 immarg"))
    w.do(
        call(
            "void",
            "@llvm.memcpy.p0.p0.i64",
            [("ptr", place(w, target, index)), ("ptr", source), ("i64", count * 8), ("i1", "false")],
        )
    )


def store_value(w: FunctionWriter, value: Value, ty: Type, block: str, index: int = 0) -> int:
    """Write a value in the layout of a type; gives the index after it. The value already has the type's form."""
    if isinstance(ty, TensorType) and is_dynamic(ty):
        _store_dynamic(w, value, block, index)
        return index + DYNAMIC_WORDS
    if isinstance(ty, TensorType) and isinstance(value, Tensor):
        return _store_all(w, block, index, [value.data, value.owner, *value.sizes])
    if isinstance(ty, ShapeType) and ty.ndim < 0:
        if isinstance(value, Shape):
            _store_all(w, block, index, [len(value.sizes), *value.sizes])
        elif isinstance(value, DynamicShape):
            copy_words(w, block, index, value.words, 1 + DYNAMIC_RANK)
        return index + 1 + DYNAMIC_RANK
    if isinstance(ty, ShapeType) and isinstance(value, Shape):
        return _store_all(w, block, index, value.sizes)
    if isinstance(ty, PrimType) and isinstance(value, Scalar):
        return _store_all(w, block, index, [value.word])
    if isinstance(ty, TupleType) and isinstance(value, Items):
        for item, part in zip(value.fields, ty.fields, strict=True):
            index = store_value(w, item, part, block, index)
        return index
    if isinstance(value, Handle):
        return _store_all(w, block, index, [value.word])
    raise TargetError(
        f"llvm: a {type(value).__name__} where a value of type {type(ty).__name__} is needed", code="W743", span=ty.span
    )


def _store_all(w: FunctionWriter, block: str, index: int, words: Sequence[Size]) -> int:
    for offset, word in enumerate(words):
        write(w, block, index + offset, word)
    return index + len(words)


def _store_dynamic(w: FunctionWriter, value: Value, block: str, index: int) -> None:
    if isinstance(value, Dynamic):
        copy_words(w, block, index, value.words, DYNAMIC_WORDS)
    elif isinstance(value, Tensor):
        _store_all(w, block, index, [value.data, value.owner, len(value.sizes), dtype_code(value.dtype), *value.sizes])
    else:
        raise TargetError(f"llvm: a {type(value).__name__} where a tensor is needed", code="W743")
