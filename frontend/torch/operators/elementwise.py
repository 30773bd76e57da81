"""Arithmetic, comparisons, logic, activations, casts, and tensors of one value."""

from __future__ import annotations

import math
from typing import Any

from weft.dtypes import is_bool, is_complex, is_float, max_value
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.numbers import COMPARED, scalar
from weft.frontend.torch.table import row
from weft.frontend.torch.types import dtype_name
from weft.ir.graph import Expr
from weft.script import relax as R


def _wide(n: FxNode, *values: Any) -> str:
    """The dtype in which operands meet: what PyTorch's promotion makes of them."""
    torch = n.importer.torch
    metas = [item.meta["val"] if hasattr(item, "meta") else item for item in n.call.args[: len(values)]]
    sizes = {torch.SymFloat: 1.0, torch.SymInt: 1}
    plain: list[Any] = [sizes.get(type(meta), meta) for meta in metas]
    if len(plain) == 1:
        return dtype_name(plain[0].dtype)
    found = plain[0]
    for other in plain[1:]:
        found = torch.empty((), dtype=torch.result_type(found, other))
        if any(isinstance(v, torch.Tensor) and v.ndim for v in (plain[0], other)):
            found = torch.empty((1,), dtype=found.dtype)
    return dtype_name(found.dtype)


def unary(operator: Any) -> Any:
    """An operator of ours on floats; integers become what PyTorch makes of them."""
    return lambda n, x: operator(n.cast(x, n.dtype_out))


def binary(operator: Any) -> Any:
    """An operator of two values in the dtype of the result."""
    return lambda n, a, b: operator(n.cast(a, n.dtype_out), n.cast(b, n.dtype_out))


def compare(operator: Any) -> Any:
    """A comparison in the dtype in which both meet."""

    def made(n: FxNode, a: Any, b: Any) -> Expr:
        dtype = _wide(n, a, b)
        return operator(n.cast(a, dtype), n.cast(b, dtype))

    return made


def scaled(operator: Any) -> Any:
    """a + alpha * b, or with minus."""

    def made(n: FxNode, a: Any, b: Any, alpha: Any = 1) -> Expr:
        dtype = n.dtype_out
        second = n.cast(b, dtype)
        if alpha != 1:
            second = R.multiply(second, n.cast(alpha, dtype))
        if is_bool(dtype):
            return R.logical_or(n.cast(a, dtype), second)
        return operator(n.cast(a, dtype), second)

    return made


def divide(n: FxNode, a: Any, b: Any, rounding_mode: str | None = None) -> Expr:
    """Quotients, rounded to the whole where that is asked for."""
    dtype = n.dtype_out
    a, b = n.cast(a, dtype), n.cast(b, dtype)
    if is_float(dtype) and rounding_mode == "floor":
        return R.floor_divide(a, b)  # not the floor of the quotient, which may have been rounded up
    if is_float(dtype) or is_complex(dtype):
        quotient = R.divide(a, b)
        rounding = {None: lambda v: v, "trunc": R.trunc}
        return rounding[rounding_mode](quotient)
    return R.floor_divide(R.subtract(a, R.mod(a, b)), b) if rounding_mode == "trunc" else R.floor_divide(a, b)


def multiply(n: FxNode, a: Any, b: Any) -> Expr:
    """Products; of booleans the conjunction."""
    a, b = n.cast(a, n.dtype_out), n.cast(b, n.dtype_out)
    return R.logical_and(a, b) if is_bool(n.dtype_out) else R.multiply(a, b)


def clamp(n: FxNode, x: Expr, low: Any = None, high: Any = None) -> Expr:
    """Values within bounds, each of which may be left out."""
    result = n.cast(x, n.dtype_out)
    if low is not None:
        result = R.maximum(result, n.cast(low, n.dtype_out))
    return result if high is None else R.minimum(result, n.cast(high, n.dtype_out))


def sign(n: FxNode, x: Expr) -> Expr:
    """-1, 0 or 1; PyTorch gives 0 for nan."""
    made = R.sign(x)
    return R.where(R.isnan(x), R.zeros_like(x), made) if is_float(n.dtype(x)) else made


def gelu(n: FxNode, x: Expr, approximate: str = "none") -> Expr:
    """x times the normal distribution function, or its approximation."""
    return R.nn.gelu_tanh(x) if approximate == "tanh" else R.nn.gelu(x)


def elu(n: FxNode, x: Expr, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Expr:
    """scale * x above zero, scale * alpha * (e^(x * input_scale) - 1) below."""
    below = R.multiply(R.expm1(R.multiply(x, float(input_scale))), float(alpha))
    return R.multiply(R.where(R.greater(x, 0.0), x, below), float(scale))


def leaky_relu(n: FxNode, x: Expr, slope: float = 0.01) -> Expr:
    """x above zero, slope * x below."""
    return R.where(R.greater(x, 0.0), x, R.multiply(x, float(slope)))


def power(n: FxNode, a: Any, b: Any) -> Expr:
    """Powers; the usual exponents by products and roots."""
    dtype = n.dtype_out
    if isinstance(a, Expr) and isinstance(b, (int, float)) and is_float(dtype):
        x = n.cast(a, dtype)
        known = {2: R.square, 0.5: R.sqrt, 1: lambda v: v, -0.5: R.rsqrt}
        if b in known:
            return known[b](x)
        if b == 3:
            return R.multiply(R.square(x), x)
    return R.power(n.cast(a, dtype), n.cast(b, dtype))


def full(n: FxNode, size: Any, value: Any, **options: Any) -> Expr:
    """A tensor of one value."""
    return R.full(tuple(n.dims_out), n.cast(value, n.dtype_out), n.dtype_out)


def full_like(n: FxNode, x: Any, value: Any, **options: Any) -> Expr:
    """A tensor of one value, as large as another."""
    return full(n, None, value)


def arange(n: FxNode, *bounds: Any, **options: Any) -> Expr:
    """Numbers from a start to an end, which is left out."""
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    dtype = n.dtype_out
    if any(isinstance(v, float) for v in (start, end, step)):
        return _range_of_floats(n, start, step)
    if not isinstance(step, int) or step == 0:
        raise Unsupported("a range with a symbolic step")
    numbers = R.arange(start, end, step, "int64")
    return numbers if dtype == "int64" else R.astype(numbers, dtype)


def iota(n: FxNode, count: Any, *, start: Any = 0, step: Any = 1, **options: Any) -> Expr:
    """So many numbers from a start on, at equal distances."""
    numbers = R.arange(0, count, 1, "int64")
    numbers = numbers if isinstance(step, int) and step == 1 else R.multiply(numbers, scalar(n.importer, step, "int64"))
    numbers = numbers if isinstance(start, int) and start == 0 else R.add(numbers, scalar(n.importer, start, "int64"))
    return n.cast(numbers, n.dtype_out)


def _range_of_floats(n: FxNode, start: Any, step: Any) -> Expr:
    """start + step * i, for as many as the result has."""
    wide = R.astype(R.arange(0, n.dims_out[0], 1, "int64"), "float64")
    made = R.add(R.multiply(wide, n.cast(step, "float64")), n.cast(start, "float64"))
    return made if n.dtype_out == "float64" else R.astype(made, n.dtype_out)


def linspace(n: FxNode, start: Any, end: Any, count: int, **options: Any) -> Expr:
    """So many numbers from one to another, both included."""
    dtype, wide = n.dtype_out, "float64"
    steps = n.ints(count)[0]
    first, last = n.cast(start, wide), n.cast(end, wide)
    share = R.const([i / max(steps - 1, 1) for i in range(steps)], wide) if steps else R.zeros((0,), wide)
    made = R.add(R.multiply(R.subtract(last, first), share), first)
    return R.astype(R.trunc(made) if not is_float(dtype) else made, dtype)


def cast(n: FxNode, x: Expr, *rest: Any, **options: Any) -> Expr:
    """The values in the dtype of the result; PyTorch drops imaginary parts."""
    if is_complex(n.dtype(x)) and not (is_complex(n.dtype_out) or is_bool(n.dtype_out)):
        x = R.real(x)
    return n.cast(x, n.dtype_out)


def where(n: FxNode, c: Expr, a: Any = None, b: Any = None) -> Expr:
    """One value or another."""
    if a is None:
        raise Unsupported("the positions of what is true")
    return R.where(n.cast(c, "bool"), n.cast(a, n.dtype_out), n.cast(b, n.dtype_out))


def logical(operator: Any) -> Any:
    """An operator of truth values."""
    return lambda n, *values: operator(*(n.cast(value, "bool") for value in values))


def bitwise(whole: Any, truth: Any) -> Any:
    """An operator of bits, of booleans that of truth values."""
    return lambda n, *values: (truth if is_bool(n.dtype_out) else whole)(*(n.cast(v, n.dtype_out) for v in values))


for _names, _operator in {
    "neg": R.negative,
    "exp": R.exp,
    "log": R.log,
    "sqrt": R.sqrt,
    "rsqrt": R.rsqrt,
    "sin": R.sin,
    "cos": R.cos,
    "tan": R.tan,
    "asin": R.asin,
    "acos": R.acos,
    "atan": R.atan,
    "sinh": R.sinh,
    "cosh": R.cosh,
    "tanh": R.tanh,
    "asinh": R.asinh,
    "acosh": R.acosh,
    "atanh": R.atanh,
    "erf": R.erf,
    "sigmoid": R.sigmoid,
    "relu relu_": R.nn.relu,
    "silu silu_": R.nn.silu,
    "floor": R.floor,
    "ceil": R.ceil,
    "trunc": R.trunc,
    "square": R.square,
    "relu6": R.nn.relu6,
    "log_sigmoid": R.nn.logsigmoid,
    "softsign": R.nn.softsign,
    "reciprocal": lambda x: R.divide(R.ones_like(x), x),
    "log2": R.log2,
    "log10": R.log10,
    "exp2": R.exp2,
    "log1p": R.log1p,
    "expm1": R.expm1,
    "frac": lambda x: R.subtract(x, R.trunc(x)),
    "deg2rad": lambda x: R.multiply(x, math.pi / 180),
    "rad2deg": lambda x: R.multiply(x, 180 / math.pi),
}.items():
    row(_names, unary(_operator))
for _names, _operator in {
    "maximum": R.maximum,
    "minimum": R.minimum,
    "atan2": R.atan2,
    "remainder": R.floor_mod,
    "fmod": R.mod,
    "bitwise_left_shift __lshift__": R.left_shift,
    "bitwise_right_shift __rshift__": R.right_shift,
}.items():
    row(_names, binary(_operator))
for _names, _operator in COMPARED.items():
    row(_names, compare(_operator))


def rounded(n: FxNode, x: Expr, *, decimals: int = 0) -> Expr:
    """The nearest whole number, halves to even, or one of so many decimals."""
    x = n.cast(x, n.dtype_out)
    if decimals == 0:
        return R.round(x)
    scale = float(10 ** abs(decimals))
    if decimals > 0:
        return R.divide(R.round(R.multiply(x, scale)), scale)
    return R.multiply(R.round(R.divide(x, scale)), scale)


def heaviside(n: FxNode, x: Expr, middle: Expr) -> Expr:
    """0 below zero, 1 above, the other value at zero."""
    dtype = n.dtype_out
    zero, one = n.cast(0, dtype), n.cast(1, dtype)
    above = R.where(R.greater(x, zero), one, R.where(R.equal(x, zero), middle, zero))
    return R.where(R.isnan(x), zero, above) if is_float(dtype) else above


def nan_to_num(n: FxNode, x: Expr, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Expr:
    """Finite numbers in place of nan and infinities."""
    dtype = n.dtype(x)
    if is_complex(dtype):
        raise Unsupported("complex numbers")
    if not is_float(dtype):
        return x
    most = float(max_value(dtype))
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    zero = n.cast(0, dtype)
    finite = R.where(R.isinf(x), R.where(R.greater(x, zero), n.cast(high, dtype), n.cast(low, dtype)), x)
    return R.where(R.isnan(x), n.cast(nan or 0, dtype), finite)


def logit(n: FxNode, x: Expr, epsilon: Any = None) -> Expr:
    """log(x / (1 - x)), of x within bounds where these are given."""
    x = n.cast(x, n.dtype_out)
    x = x if epsilon is None else R.clip(x, float(epsilon), 1.0 - float(epsilon))
    x = n.emit(x)
    return R.log(R.divide(x, R.subtract(R.ones_like(x), x)))


def threshold(n: FxNode, x: Expr, least: Any, value: Any) -> Expr:
    """x above a threshold, else a value."""
    dtype = n.dtype_out
    return R.where(R.less_equal(x, n.cast(least, dtype)), n.cast(value, dtype), x)


def shrink(soft: bool) -> Any:
    """What lies near zero is zero; with soft the rest moves towards it."""

    def made(n: FxNode, x: Expr, limit: Any = 0.5) -> Expr:
        bound, zero = n.cast(limit, n.dtype_out), n.cast(0, n.dtype_out)
        low = R.negative(bound)
        above, below = (R.subtract(x, bound), R.add(x, bound)) if soft else (x, x)
        made_ = R.where(R.greater(x, bound), above, R.where(R.less(x, low), below, zero))
        return R.where(R.isnan(x), x, made_)

    return made


row("round", rounded)
row("heaviside", heaviside)
row("nan_to_num", nan_to_num)
row("logit special_logit", logit)
row("threshold", threshold)
row("hardshrink", shrink(False))
row("softshrink", shrink(True))
row("isfinite", lambda n, x: R.isfinite(x) if _is_inexact(n.dtype(x)) else R.ones_like(x, "bool"))
row("isposinf", lambda n, x: _infinite(n, x, R.greater))
row("isneginf", lambda n, x: _infinite(n, x, R.less))
row("signbit", lambda n, x: _negative(n, x))
row(
    "empty empty_permuted empty_strided new_empty_strided new_empty empty_like",
    lambda n, *a, **o: R.zeros(n.dims_out, n.dtype_out),
)
row("add add_", scaled(R.add))
row("sub sub_", scaled(R.subtract))
row("rsub", lambda n, a, b, alpha=1: scaled(R.subtract)(n, b, a, alpha))
row("mul mul_", multiply)
row("div div_", divide)
row("floor_divide", lambda n, a, b: divide(n, a, b, "floor"))
row("pow", power)
row("clamp clamp_", clamp)
row("clamp_min", lambda n, x, low: clamp(n, x, low))
row("clamp_max", lambda n, x, high: clamp(n, x, None, high))
row("hardtanh hardtanh_", lambda n, x, low=-1.0, high=1.0: clamp(n, x, low, high))
row("hardsigmoid", lambda n, x: R.multiply(R.clip(R.add(x, 3.0), 0.0, 6.0), 1 / 6))
row("hardswish hardswish_", lambda n, x: R.multiply(x, R.multiply(R.clip(R.add(x, 3.0), 0.0, 6.0), 1 / 6)))
row("gelu", gelu)
row("sign", sign)
row("elu", elu)
row("selu", lambda n, x: elu(n, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946))
row("leaky_relu leaky_relu_", leaky_relu)
row("softplus", lambda n, x, beta=1.0, threshold=20.0: R.nn.softplus(x, float(beta), float(threshold)))
row("where", where)
row("masked_fill", lambda n, x, mask, value: R.where(mask, n.cast(value, n.dtype_out), x))
row("logical_and", logical(R.logical_and))
row("logical_or", logical(R.logical_or))
row("logical_xor", logical(R.logical_xor))
row("logical_not", logical(R.logical_not))
row("bitwise_and __and__", bitwise(R.bitwise_and, R.logical_and))
row("bitwise_or", bitwise(R.bitwise_or, R.logical_or))
row("bitwise_xor", bitwise(R.bitwise_xor, R.logical_xor))
row("bitwise_not", bitwise(R.bitwise_not, R.logical_not))
row("isnan", lambda n, x: R.isnan(x) if _is_inexact(n.dtype(x)) else R.zeros_like(x, "bool"))
row("isinf", lambda n, x: R.isinf(x) if _is_inexact(n.dtype(x)) else R.zeros_like(x, "bool"))
row("addcmul", lambda n, x, a, b, value=1: R.add(x, R.multiply(R.multiply(a, b), n.cast(value, n.dtype_out))))
row("lerp", lambda n, a, b, w: R.add(a, R.multiply(n.cast(w, n.dtype_out), R.subtract(b, a))))
row("full", full)
row("full_like fill", full_like)
row("zeros", lambda n, size, **options: R.zeros(n.dims_out, n.dtype_out))
row("ones", lambda n, size, **options: R.ones(n.dims_out, n.dtype_out))
row("zeros_like new_zeros", lambda n, *x, **options: R.zeros(n.dims_out, n.dtype_out))
row("ones_like new_ones", lambda n, *x, **options: R.ones(n.dims_out, n.dtype_out))
row("new_full", lambda n, x, size, value, **options: full(n, size, value))
row("scalar_tensor", lambda n, value, **options: n.cast(value, n.dtype_out))
row("arange", arange)
row("iota", iota)
row("linspace", linspace)
row("_to_copy to convert_element_type to_dtype type_as", cast)
row(
    "clone contiguous detach alias lift_fresh_copy _to_dense dropout_ feature_dropout positive detach_",
    lambda n, x, *rest, **options: x,
)
row("dropout", lambda n, x, p=0.5, train=False: x if not train or p == 0 else _raise("dropout in training"))
row("native_dropout", lambda n, x, p, train=False: (x, R.ones_like(x, "bool")) if not train else _raise("training"))


def _is_inexact(dtype: str) -> bool:
    return is_float(dtype) or is_complex(dtype)


def _infinite(n: FxNode, x: Expr, compare_: Any) -> Expr:
    if not is_float(n.dtype(x)):
        return R.zeros_like(x, "bool")
    return R.logical_and(R.isinf(x), compare_(x, n.cast(0, n.dtype(x))))


def _negative(n: FxNode, x: Expr) -> Expr:
    """Whether a number has a minus, zero too."""
    dtype = n.dtype(x)
    if not is_float(dtype):
        return R.less(x, n.cast(0, dtype)) if dtype != "bool" else R.zeros_like(x)
    return R.less(R.copysign(R.ones_like(x), x), n.cast(0, dtype))


def _raise(why: str) -> Any:
    raise Unsupported(why)
