"""The namespace `T`: tensor-level functions, buffers, scalar expressions and intrinsics.

Inside a decorated function these names are read, not called. Outside, `T.Buffer` builds a buffer, `T.int64(3)` a
constant, `T.int64()` a symbol, `T.exp(x)` an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.errors import DTypeError
from weft.ir.graph import Expr, StringImm
from weft.ir.kernel.index_map import MappedLayout, index_map_text
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr, binary, const, intrinsic, lane_count, pair, unary
from weft.ir.kernel.prim import cast as _cast
from weft.ir.tensor import Broadcast, BufferLoad, FloatImm, IntImm, PrimCall, PrimExpr, PrimVar
from weft.ir.tensor import Buffer as _Buffer
from weft.ir.tensor import Let as _Let
from weft.ir.tensor import Ramp as _Ramp
from weft.ir.tensor import Select as _Select
from weft.ir.tensor import Shuffle as _Shuffle
from weft.script.decorators import inline, macro, prim_func
from weft.script.forms.defaults import DTYPE_FIRST, RESULT_DTYPES, is_device_name
from weft.script.forms.syntax import ALIASES, ALL_FORMS, BINARY_CALLS, CALLED_KINDS, NAMES, UNARY, UNARY_CALLS
from weft.script.reader.expression.names import dtype_name
from weft.script.source.namespace_guard import no_such_name, only_in_scripts, placed

__all__ = ["Buffer", "Cast", "Select", "handle", "inline", "macro", "prim_func"]


class _DType:
    """`T.float32`: a dtype that makes constants, casts and symbols when called."""

    def __init__(self, name: str) -> None:
        self.__weft_dtype__ = name

    def __call__(self, value: Any = None) -> PrimExpr:
        """A constant, a cast of an expression, or (without a value) a new symbol."""
        name = self.__weft_dtype__
        if value is None:
            return PrimVar("", name)
        if isinstance(value, str):
            return FloatImm(float(value), name)
        return _cast(name, value) if isinstance(value, PrimExpr) else const(value, name)

    @property
    def name(self) -> str:
        """The dtype as a string (what NumPy and `check_dtype` understand)."""
        return self.__weft_dtype__

    def __str__(self) -> str:
        return self.__weft_dtype__

    def __repr__(self) -> str:
        return f"T.{self.__weft_dtype__}"


class _BufferForm:
    """`T.Buffer((4,), "float32")` and `T.Buffer[(4,), "float32"]`."""

    @placed("T.Buffer")
    def __call__(self, shape: Any, dtype: Any = "float32", **fields: Any) -> _Buffer:
        """A buffer; sizes are ints, expressions, or names of symbols."""
        known: dict[str, PrimVar] = {}
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        fields = {key: value for key, value in fields.items() if key not in ("buffer_type", "layout")}
        return _Buffer("", tuple(_extent(size, known) for size in shape), _dtype(dtype), **fields)

    def __getitem__(self, parts: Any) -> _Buffer:
        return self(*parts) if isinstance(parts, tuple) and parts and isinstance(parts[0], tuple) else self(parts)


def _extent(size: Any, known: dict[str, PrimVar]) -> Any:
    if not isinstance(size, str):
        return size
    # Outside scripts a buffer is only a description; its symbols get meaning when a script reads it.
    return known.setdefault(size, PrimVar(size, "int64"))


def _dtype(value: Any) -> str:
    return dtypes.check_dtype(getattr(value, "__weft_dtype__", value))


Buffer = _BufferForm()


def handle(dtype: Any = None, scope: str = "global") -> PrimVar:
    """A pointer parameter."""
    return PrimVar("", "handle", None if dtype is None else _dtype(dtype), scope)


def Cast(dtype: Any, value: Any) -> PrimExpr:
    """A value converted to a dtype."""
    return _cast(_dtype(dtype), as_expr(value))


def Select(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """One of two values, both evaluated."""
    return _Select(as_expr(condition), *pair(true_value, false_value, "a choice"))


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """One of two values, only that one evaluated."""
    chosen, other = pair(true_value, false_value, "a choice")
    return PrimCall("if_then_else", (as_expr(condition), chosen, other), chosen.dtype)


def _lanes(lanes: int | PrimExpr) -> int:
    """A number of lanes: a constant, or a multiple of `T.vscale()`."""
    count = lane_count(lanes)
    if count is None:
        hint = "a constant, or a multiple of T.vscale()"
        raise DTypeError("this is not a number of lanes", code="W301", span=getattr(lanes, "span", None), hint=hint)
    return count


def Ramp(base: Any, stride: Any, lanes: int | PrimExpr) -> PrimExpr:
    """The vector base, base + stride, ..."""
    start = as_expr(base)
    return _Ramp(start, as_expr(stride, None if isinstance(stride, PrimExpr) else start.dtype), _lanes(lanes))


def broadcast(value: Any, lanes: int | PrimExpr) -> PrimExpr:
    """A scalar in every lane."""
    return Broadcast(as_expr(value), _lanes(lanes))


def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> PrimExpr:
    """Lanes picked from vectors."""
    return _Shuffle(tuple(map(as_expr, vectors)), tuple(map(as_expr, indices)))


def Let(body: Any, where: dict[PrimVar, Any]) -> PrimExpr:
    """body with variables standing for values."""
    result = as_expr(body)
    for var, value in reversed(where.items()):
        result = _Let(var, as_expr(value), result)
    return result


def infinity(dtype: Any) -> PrimExpr:
    """Positive infinity."""
    return FloatImm(float("inf"), _dtype(dtype))


def min_value(dtype: Any) -> PrimExpr:
    """The least finite value."""
    return const(dtypes.min_value(_dtype(dtype)), _dtype(dtype))


def max_value(dtype: Any) -> PrimExpr:
    """The greatest finite value."""
    return const(dtypes.max_value(_dtype(dtype)), _dtype(dtype))


def ceildiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded up."""
    return binary("floordiv", binary("sub", binary("add", a, b), 1), b)


def index_map(mapping: Any, *, inverse_index_map: Any = None, index_dtype: str = "int64") -> MappedLayout:
    """Where elements go under another layout, as attribute data: a function of the indices, or its text."""
    inverse = "" if inverse_index_map is None else index_map_text(inverse_index_map)
    return MappedLayout(index_map_text(mapping), inverse)


def meta_var(value: Any) -> Any:
    """The value itself."""
    return value


def _argument(value: Any) -> Expr:
    if isinstance(value, _Buffer):  # a buffer is passed on by its first element, as in texts
        first = BufferLoad(value, tuple(IntImm(0, "int32") for _ in value.shape))
        return PrimCall("address_of", (first,), "handle")
    return StringImm(value) if isinstance(value, str) else as_expr(value)


def _call(name: str) -> Any:
    entry = INTRINSICS.get(name)

    def call(*args: Any, dtype: Any = None) -> PrimExpr:
        if entry is not None and entry.rule != "given":
            return intrinsic(name, *args)
        if dtype is None and name in DTYPE_FIRST:
            dtype, args = args[0], args[1:]
        return PrimCall(
            name, tuple(map(_argument, args)), _dtype(dtype) if dtype is not None else RESULT_DTYPES.get(name, "void")
        )

    call.__name__ = name
    call.__weft_name__ = f"T.{name}"  # type: ignore[attr-defined]
    return call


def _operator(kind: str) -> Any:
    def one(a: Any) -> PrimExpr:
        return unary(kind, a)

    def two(a: Any, b: Any) -> PrimExpr:
        return binary(kind, a, b)

    made: Any = one if kind in UNARY else two
    made.__weft_name__ = {**BINARY_CALLS, **UNARY_CALLS}[kind]
    return made


class _Axis:
    """T.axis: block variables, read inside blocks."""

    def __getattr__(self, name: str) -> Any:
        full = ALIASES.get(f"T.axis.{name}", f"T.axis.{name}")
        if full in ALL_FORMS:
            return only_in_scripts(full)
        raise no_such_name("T.axis", name, dir(self))

    def __dir__(self) -> list[str]:
        return [full.removeprefix("T.axis.") for full in ALL_FORMS if full.startswith("T.axis.")]


axis = _Axis()
_MORE = {"cast": Cast, "ramp": Ramp, "Broadcast": broadcast, "ptr": handle, "Ptr": handle}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _MORE:
        return _MORE[name]
    full = ALIASES.get(f"T.{name}", f"T.{name}")
    if full in CALLED_KINDS:
        return _operator(CALLED_KINDS[full])
    for known in (name, full[2:]):
        if known in INTRINSICS or is_device_name(known):
            return _call(known)
    dtype = dtype_name(full)
    if dtype is not None:
        return _DType(dtype)
    if full in ALL_FORMS:
        return only_in_scripts(full)
    raise no_such_name("T", name, __dir__())


def __dir__() -> list[str]:
    read = {full[2:].partition(".")[0] for full in NAMES if full.startswith("T.")}
    return sorted({*read, *__all__, *_MORE, *INTRINSICS, *dtypes.USUAL_DTYPES})
