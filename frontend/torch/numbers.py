"""Numbers that a program computes of its sizes: whole ones are dimensions, others scalars of the run.

a + b, a // b, max(a, b), ...     of dimensions: a dimension
a / b, sqrt(a), x.item()          a scalar of float64 or int64
n = x.item(); zeros(n)            a dimension, where PyTorch knows that n is never negative
a < b                             decided while importing where it can be, else a scalar of bool
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from weft.dtypes import is_float
from weft.frontend.emitter import Unsupported
from weft.ir.dim import DimExpr, maximum, minimum, prove_equal, prove_le, prove_lt
from weft.ir.graph import Expr, PrimValue
from weft.script import relax as R

__all__ = ["number_of"]

_DIMS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "sym_max": maximum,
    "sym_min": minimum,
    "sym_sum": sum,
    "int_": lambda a: a,
    "sym_int": lambda a: a,
}
_SCALARS: dict[str, Callable[..., Expr]] = {
    "add": R.add,
    "sub": R.subtract,
    "mul": R.multiply,
    "truediv": R.divide,
    "neg": R.negative,
    "pow": R.power,
    "floordiv": R.floor_divide,
    "mod": R.floor_mod,
    "sym_max": R.maximum,
    "sym_min": R.minimum,
    "_sym_sqrt": R.sqrt,
    "sym_float": lambda x: x,
    "floor": R.floor,
    "ceil": R.ceil,
    "trunc": R.trunc,
    "sym_int": R.trunc,
    "round": R.round,
}
_ORDER: dict[str, Callable[[Any, Any], bool | None]] = {
    "eq": prove_equal,
    "ne": lambda a, b: _not(prove_equal(a, b)),
    "lt": prove_lt,
    "le": prove_le,
    "gt": lambda a, b: prove_lt(b, a),
    "ge": lambda a, b: prove_le(b, a),
}
COMPARED: dict[str, Callable[..., Expr]] = {
    "eq": R.equal,
    "ne": R.not_equal,
    "lt": R.less,
    "le": R.less_equal,
    "gt": R.greater,
    "ge": R.greater_equal,
}
_LOGIC: dict[str, Callable[..., Expr]] = {
    "sym_not": R.logical_not,
    "not_": R.logical_not,
    "and_": R.logical_and,
    "or_": R.logical_or,
}


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def number_of(importer: Any, call: Any) -> Any:
    """What a call stands for whose result is a number of the program."""
    torch = importer.torch
    if isinstance(call.value, torch.SymBool):
        return _truth(importer, call)
    if isinstance(call.value, torch.SymFloat):
        return importer.out.emit(_scalar_of(importer, call), call.name)
    return _size(importer, call)


def _size(importer: Any, call: Any) -> Any:
    """A whole number: what the types say, what is computed of dimensions, else of scalars of the run."""
    if call.operator == "sym_size":
        whole, axis = importer.argument(list(call.args))
        dims = getattr(importer.out.type(whole), "dims", None)
        if dims is not None:
            importer.sizes.learn(call.value, dims[axis])
            return dims[axis]
    args = importer.argument(list(call.args))
    flat = args[0] if len(args) == 1 and isinstance(args[0], list) else args
    function = _DIMS.get(call.operator)
    if function is not None and all(isinstance(item, (int, DimExpr)) for item in flat):
        dim = function(*args)
        importer.sizes.learn(call.value, dim)
        return dim
    expr = getattr(getattr(call.value, "node", None), "expr", None)
    if expr is None or not (expr.is_Symbol or any(isinstance(item, Expr) for item in flat)):
        try:
            return importer.sizes.dim(call.value)
        except Unsupported:
            pass
    scalar = _scalar_of(importer, call)
    if importer.sizes.is_never_negative(call.value):
        return importer.types.scalar_as_size(scalar, call.value, call.name)
    importer.sizes.forget(call.value)
    return importer.out.emit(R.astype(scalar, "int64"), call.name)


def _scalar_of(importer: Any, call: Any) -> Expr:
    """A call on numbers as an expression of scalars."""
    if call.operator in ("item", "_local_scalar_dense"):
        x = importer.argument(call.args[0])
        dtype = getattr(importer.out.type(x), "dtype", None) or "float32"
        wide = "float64" if is_float(dtype) else "bool" if dtype == "bool" else "int64"
        x = R.reshape(x, ())
        return x if dtype == wide else R.astype(x, wide)
    function = _SCALARS.get(call.operator)
    if function is None:
        raise Unsupported(f"the number {call.operator}")
    args = importer.argument(list(call.args))
    whole = call.operator in _DIMS and all(_is_whole(importer, item) for item in args)
    return function(*(scalar(importer, item, "int64" if whole else "float64") for item in args))


def _is_whole(importer: Any, value: Any) -> bool:
    """Whether a number of the program is an integer, of any sign."""
    if isinstance(value, Expr):
        return getattr(importer.out.type(value), "dtype", None) == "int64"
    return isinstance(value, (int, DimExpr))


def scalar(importer: Any, value: Any, dtype: str) -> Expr:
    """A number of the program as a scalar."""
    if isinstance(value, Expr):
        return R.astype(value, dtype)
    if isinstance(value, DimExpr):
        return R.astype(R.full((), PrimValue(value), "int64"), dtype)
    return R.const(value, dtype)


def _truth(importer: Any, call: Any) -> Any:
    """Whether something holds."""
    args = importer.argument(list(call.args))
    if call.operator in _ORDER and all(isinstance(item, (int, DimExpr)) for item in args):
        answer = _ORDER[call.operator](*args)
        if answer is not None:
            return answer
    if call.operator in COMPARED:
        dtype = "int64" if all(_is_whole(importer, item) for item in args) else "float64"
        return importer.out.emit(COMPARED[call.operator](*(scalar(importer, v, dtype) for v in args)), call.name)
    if call.operator in _LOGIC:
        return importer.out.emit(_LOGIC[call.operator](*(scalar(importer, v, "bool") for v in args)), call.name)
    if call.operator in ("item", "_local_scalar_dense"):
        return importer.out.emit(R.reshape(args[0], ()), call.name)
    raise Unsupported(f"the truth of {call.operator}")
