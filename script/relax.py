"""The namespace `R`: graph functions, types, leaves and every declared operator (`R.nn.softmax`).

Inside a decorated function these names are read, not called. Outside, types build types, leaves build nodes, and
operators build calls: `R.add(x, y)` is the Call node. Operators are looked up when first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any as _Any  # R.Any is a type of the script

import numpy as np

from weft.dtypes import check_dtype
from weft.errors import ScriptError, ShapeError
from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType, parse_placement
from weft.ir.dim import Dim, DimExpr, parse_dim
from weft.ir.graph import Call, Constant, DataTypeImm, Expr, ExternFunc, Op, PrimValue, ShapeExpr, StringImm
from weft.ir.graph import Tuple as _TupleExpr
from weft.ir.node import FrozenMap
from weft.ir.op import OPS, get_op
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.script.decorators import function, graph_macro, rewriter
from weft.script.forms.constants import constant_value
from weft.script.forms.syntax import ALIASES
from weft.script.reader.scope import describe
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.namespace_guard import no_such_name, only_in_scripts, placed


def _dims(dims: _Any) -> tuple[Dim, ...] | None:
    if dims is None:
        return None
    if isinstance(dims, (str, Type, Expr)) or not isinstance(dims, Iterable):
        hint = f"write `({dims},)`" if isinstance(dims, (int, DimExpr)) else "the shape comes first, then the dtype"
        raise ScriptError(f"expected a shape, got {describe(dims)}", code="W114", hint=hint)
    return tuple(map(_dim, dims))


def _dim(dim: _Any) -> Dim:
    """A size given as a number, an expression, or text; the text of a faulty one is shown in the message."""
    if isinstance(dim, np.integer):
        return int(dim)
    if not isinstance(dim, str):
        return dim
    try:
        return parse_dim(dim)
    except ShapeError as error:
        raise ShapeError(f"{dim!r} is not a size: {error.message}", code=error.code, hint=error.hint) from None


def _is_dtype(value: _Any) -> bool:
    try:
        check_dtype(value)
    except Exception:
        return False
    return True


def _type(value: _Any) -> Type:
    """A type given as a type, a type's bare name (`R.Tensor`), or a dtype."""
    if isinstance(value, Type):
        return value
    if value is None:
        return TupleType(())
    for bare in (Tensor, Shape, _callable, AnyType, StringType):
        if value is bare:
            return bare()  # type: ignore[no-any-return]
    if isinstance(value, (tuple, list)):
        return TupleType(tuple(map(_type, value)))
    dtype = getattr(value, "__weft_dtype__", value)
    return PrimType(check_dtype(dtype))


@placed("R.Tensor")
def Tensor(shape: _Any = None, dtype: _Any = None, vdevice: _Any = None, *, ndim: int = -1) -> TensorType:
    """A tensor type; dimensions are ints, symbols, or strings such as "n" and "2 * n".

    >>> Tensor(("n", 4), "float32").ndim
    2
    """
    if dtype is None and shape is not None and not isinstance(shape, (tuple, list, Expr)) and _is_dtype(shape):
        shape, dtype = None, shape
    made = shape if shape is None or isinstance(shape, Expr) else _dims(shape)
    return TensorType(made, check_dtype(dtype) if dtype is not None else None, ndim, vdevice)  # type: ignore[arg-type]


@placed("R.DTensor")
def DTensor(
    shape: _Any = None, dtype: _Any = None, device_mesh: _Any = None, placement: str | None = None, *, ndim: int = -1
) -> DTensorType:
    """The type of a tensor that is spread over a mesh; a mesh that is named is known only inside of its module.

    >>> DTensor((4, 4), "float32", device_mesh((2,), [0, 1]), "S[0]").placement
    (0,)
    """
    tensor = Tensor(shape, dtype, ndim=ndim)
    if not isinstance(device_mesh, DeviceMesh):
        return DTensorType(tensor)
    return DTensorType(tensor, device_mesh, None if placement is None else parse_placement(placement))


def device_mesh(shape: Sequence[int], device_ids: Iterable[int]) -> DeviceMesh:
    """A grid of devices by number; `I.Range(0, 4)` are numbers that follow one another."""
    return DeviceMesh(tuple(shape), tuple(device_ids))


@placed("R.Shape")
def Shape(dims: Iterable[_Any] | None = None, *, ndim: int = -1) -> ShapeType:
    """A shape type."""
    return ShapeType(_dims(dims), ndim)


@placed("R.Tuple")
def Tuple(*fields: _Any) -> TupleType:
    """A tuple type."""
    if len(fields) == 1 and isinstance(fields[0], (tuple, list)):
        fields = tuple(fields[0])
    return TupleType(tuple(map(_type, fields)))


@placed("R.Prim")
def Prim(dtype: _Any = None, value: _Any = None) -> PrimType:
    """The type of one scalar; with a value of the one that it is: a number, or a size by name.

    >>> Prim(value="n")
    PrimType(dtype='int64', value=n)
    """
    if value is None:
        return PrimType(check_dtype(dtype))
    if isinstance(value, (bool, float)):
        return PrimType(check_dtype(dtype or ("bool" if isinstance(value, bool) else "float32")), value)
    return PrimType(check_dtype(dtype or "int64"), _dims((value,))[0])  # type: ignore[index]


@placed("R.Callable")
def _callable(
    params: Sequence[_Any] | None = None,
    ret: _Any = None,
    pure: bool | None = None,
    *,
    purity: bool | None = None,
    derive: str | None = None,
    derive_func: str | None = None,
) -> FuncType:
    """A function type; without params, that of an opaque function."""
    pure = purity if pure is None else pure
    pure = params is not None if pure is None else pure
    result = AnyType() if ret is None else _type(ret)
    return FuncType(None if params is None else tuple(map(_type, params)), result, pure, derive or derive_func)


Str = String = StringType


@placed("R.const")
def const(data: _Any, dtype: str | None = None, *, shape: _Any = None, bits: bool = False) -> Constant:
    """A constant from a number, nested lists or an array."""
    return constant_value(data, dtype, shape, bits, None, None)  # type: ignore[arg-type]


@placed("R.shape")
def shape(dims: Iterable[_Any]) -> ShapeExpr:
    """A shape as a value."""
    return ShapeExpr(_dims(dims) or ())


@placed("R.prim_value")
def prim_value(value: _Any, dtype: str = "") -> PrimValue:
    """A scalar as a value."""
    return PrimValue(parse_dim(value) if isinstance(value, str) else value, dtype)


def _string(value: _Any) -> StringImm:
    """A string as a value."""
    return StringImm(value)


@placed("R.dtype")
def dtype(value: _Any) -> DataTypeImm:
    """A dtype as a value."""
    return DataTypeImm(check_dtype(value))


def _tuple(*fields: Expr) -> _TupleExpr:
    """A tuple as a value."""
    return _TupleExpr(fields)


def call_packed(
    func: _Any, *args: Expr, ty_args: _Any = (), sinfo_args: _Any = (), attrs: Mapping[str, _Any] | None = None
) -> Call:
    """A call of a registered function that returns its result."""
    callee = func if isinstance(func, Expr) else ExternFunc(func)
    types = ty_args or sinfo_args
    types = types if isinstance(types, (tuple, list)) else (types,)
    return Call(callee, args, FrozenMap(dict(attrs or {})), tuple(map(_type, types)))


def call_op(name: str, *args: Expr, attrs: Mapping[str, _Any] | None = None, ty_args: _Any = ()) -> Call:
    """A call of an operator by name, its parts given as they are."""
    return Call(Op(name), args, FrozenMap(dict(attrs or {})), tuple(ty_args))


match_cast = only_in_scripts("R.match_cast")
dataflow = only_in_scripts("R.dataflow")
output = only_in_scripts("R.output")
func_attr = only_in_scripts("R.func_attr")
is_impure = only_in_scripts("R.is_impure")


def emit_te(
    func: _Any,
    *args: _Any,
    primfunc_name_hint: str | None = None,
    primfunc_attrs: Mapping[str, _Any] | None = None,
    **options: _Any,
) -> _Any:
    """A call of the kernel that a Python function over te tensors computes; read inside decorated functions."""
    only_in_scripts("R.emit_te")()


class _Namespace:
    """A group of operators such as R.nn."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> _Any:
        return _operator(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        start = f"{self._prefix}."
        return sorted({known[len(start) :].partition(".")[0] for known in OPS if known.startswith(start)})

    def __repr__(self) -> str:
        return f"<operators R.{self._prefix}>"


def _operator(name: str) -> _Any:
    if name in _SPREAD:
        return _SPREAD[name]
    name = ALIASES.get(f"R.{name}", f"R.{name}")[2:]
    if name in OPS:
        return OPS[name]
    if any(known.startswith(f"{name}.") for known in OPS):
        return _Namespace(name)
    try:
        get_op(name)
    except ScriptError as error:
        other = next((form for form in (f"I.{name}", f"T.{name}") if form in _DECORATORS), None)
        same = any(one.lower() == name.lower() for one in __dir__())  # `R.tensor` is nearer to `R.Tensor`
        hint = (None if same else error.hint) or (
            f"did you mean `{other}`?" if other else did_you_mean(name, __dir__(), "R.")
        )
        raise no_such_name("R", name, (), hint) from None


_DECORATORS = ("I.ir_module", "I.pyfunc", "T.prim_func")
_SPREAD = {"dist.DTensor": DTensor, "dist.device_mesh": device_mesh, "DeviceMesh": device_mesh}
_NAMED = {
    "Any": AnyType,
    "Object": AnyType,
    "tuple": _tuple,
    "str": _string,
    "Callable": _callable,
    "ExternFunc": ExternFunc,
    "function": function,
    "macro": graph_macro,
    "rewriter": rewriter,
}


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _NAMED:
        return _NAMED[name]
    return _operator(name)


def __dir__() -> list[str]:
    return sorted({*(known.partition(".")[0] for known in OPS), *_NAMED, *_PUBLIC})


_PUBLIC = (
    "Callable",
    "DTensor",
    "ExternFunc",
    "Prim",
    "Shape",
    "Str",
    "String",
    "Tensor",
    "Tuple",
    "call_op",
    "call_packed",
    "const",
    "dataflow",
    "device_mesh",
    "dtype",
    "emit_te",
    "func_attr",
    "function",
    "macro",
    "match_cast",
    "output",
    "prim_value",
    "rewriter",
    "shape",
    "str",
)
