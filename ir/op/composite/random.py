"""Random numbers that follow from a key: the same bits on every target, for any number of threads.

    R.random.bits(key, (n, 3))          uint32, from the counter-based generator Philox 4x32 of ten rounds
    R.random.uniform(key, (n, 3))       float32 in [low, high), from the upper 24 bits
    R.random.normal(key, (n, 3))        float32, by Box and Muller from two streams
    R.random.bernoulli(key, p, (n, 3))  bool

A key is a pair of uint32. Element i of the result is word i % 4 of the block with the counter i // 4, so that a longer
result begins with a shorter one. Two calls with one key give the same numbers: take another key for other ones.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.errors import ScriptError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import symbol
from weft.ir.graph import Expr
from weft.ir.kernel.prim import binary
from weft.ir.op.common import Kernel, example, kernel_lowering, require_dtype, require_rank, shape_of_arg, tensor, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Arguments, Param, constant_like
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import Let, PrimExpr, PrimFunc, PrimVar
from weft.ir.types import TensorType

__all__ = ["philox"]

_MULTIPLIERS, _STEPS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
_WIDE, _LOW = "uint64", 0xFFFFFFFF
_KEY = Param("key")
_STREAM = Param("stream", "attr", 0, "int")


def philox(key: np.ndarray, count: int, stream: int = 0) -> np.ndarray:
    """`count` words of the generator for a key, in NumPy.

    >>> philox(np.array([0, 0], "uint32"), 4).tolist()
    [1713891541, 3781805453, 3159862348, 2600524760]
    """
    blocks = np.arange((count + 3) // 4, dtype=_WIDE)
    zero = np.zeros_like(blocks)
    words = [blocks & np.uint64(_LOW), blocks >> np.uint64(32), zero + np.uint64(stream), zero]
    keys = [int(key[0]), int(key[1])]
    for _ in range(_ROUNDS):
        products = [np.uint64(m) * words[place] for m, place in zip(_MULTIPLIERS, (0, 2), strict=True)]
        high = [product >> np.uint64(32) for product in products]
        low = [product & np.uint64(_LOW) for product in products]
        words = [high[1] ^ words[1] ^ np.uint64(keys[0]), low[1], high[0] ^ words[3] ^ np.uint64(keys[1]), low[0]]
        keys = [(part + step) & _LOW for part, step in zip(keys, _STEPS, strict=True)]
    return np.stack(words, 1).reshape(-1)[:count].astype("uint32")


def _constant(value: int) -> PrimExpr:
    return te.const(value, _WIDE)


def _word(place: PrimExpr, keys: tuple[PrimExpr, PrimExpr], stream: int) -> PrimExpr:
    """The word of the generator at a place, as 64 bits: rounds as nested lets."""
    index = PrimVar("index", _WIDE)
    block = binary("shift_right", index, _constant(2))
    start: list[PrimExpr] = [
        binary("bitwise_and", block, _constant(_LOW)),
        binary("shift_right", block, _constant(32)),
        _constant(stream),
        _constant(0),
    ]
    names = [[PrimVar(f"c{number}_{part}", _WIDE) for part in range(4)] for number in range(_ROUNDS + 1)]
    lets: list[tuple[PrimVar, PrimExpr]] = list(zip(names[0], start, strict=True))
    for number in range(_ROUNDS):
        c, new = names[number], names[number + 1]
        product = [PrimVar(f"p{number}_{part}", _WIDE) for part in range(2)]
        lets += [(product[0], c[0] * _constant(_MULTIPLIERS[0])), (product[1], c[2] * _constant(_MULTIPLIERS[1]))]
        for part in range(2):
            other = product[1 - part]
            key = binary("bitwise_and", keys[part] + _constant(number * _STEPS[part] & _LOW), _constant(_LOW))
            mixed = binary("bitwise_xor", binary("shift_right", other, _constant(32)), c[1 + 2 * part])
            lets.append((new[2 * part], binary("bitwise_xor", mixed, key)))
            lets.append((new[2 * part + 1], binary("bitwise_and", other, _constant(_LOW))))
    last, which = names[_ROUNDS], binary("bitwise_and", index, _constant(3))
    value: PrimExpr = last[3]
    for part in (2, 1, 0):
        value = te.select(te.equal(which, _constant(part)), last[part], value)
    for var, bound in reversed(lets):
        value = Let(var, bound, value)
    return Let(index, te.cast(_WIDE, place), value)


@kernel_lowering
def _lower_bits(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    key = kernel.input("key")

    def element(*i: PrimExpr) -> PrimExpr:
        place: Any = te.index(0) if not i else i[0]
        for size, at in zip(kernel.dims[1:], i[1:], strict=True):
            place = place * te.size(size) + at
        return _word(place, (te.cast(_WIDE, key(0)), te.cast(_WIDE, key(1))), args.stream)

    return kernel.compute(element)


@register_op(
    "random.bits",
    [_KEY, Param("shape", "shape"), _STREAM],
    lowering=_lower_bits,
    numpy=lambda key, shape, stream: philox(key, math.prod(shape), stream).reshape(shape),
    pure=True,
    family="create",
    examples=(
        example(typed("uint32", 2), (2, 3), ranges={"key": (0, 2**31)}),
        example(typed("uint32", 2), (symbol("n"), 3), stream=1, ranges={"key": (0, 2**31)}),
    ),
)
def bits(args: Arguments, context: TypeContext) -> TensorType:
    """Random words of 32 bits that follow from a key; streams of one key are independent."""
    if not 0 <= args.stream < 2**64:
        message = f"{args.name}: a stream is a number of 64 bits from 0 on, got {args.stream}"
        raise ScriptError(message, code="W141", span=args.span)
    key = tensor(args, "key", context)
    require_rank(args, "key", key, 1)
    require_dtype(args, "key", key, "integer")
    dims, ndim = shape_of_arg(args, "shape", context)
    if key.dims is not None:
        context.require_equal(key.dims[0], 2, f"{args.name}: the words of a key", args.span)
    return TensorType(dims, "uint32", ndim)


_SHAPE = Param("shape", "shape")
_SHOWN = (
    example(typed("uint32", 2), (2, 3), ranges={"key": (0, 2**31)}),
    example(typed("uint32", 2), (symbol("n"), 3), ranges={"key": (0, 2**31)}),
)


def _unit(key: Any, shape: Any, stream: int = 0) -> Any:
    words = philox(key, math.prod(shape), stream) >> np.uint32(8)
    return (words.astype("float32") * np.float32(2.0**-24)).reshape(shape)


def _fraction(args: Parts, stream: int) -> Expr:
    words = call("random.bits", args.key, args.shape, stream=stream)
    whole = call("astype", call("right_shift", words, 8), "float32")
    return call("multiply", whole, 2.0**-24)


@composite(
    "random.uniform",
    [_KEY, _SHAPE, Param("low", "attr", 0.0, "float"), Param("high", "attr", 1.0, "float")],
    numpy=lambda key, shape, low, high: _unit(key, shape) * np.float32(high - low) + np.float32(low),
    examples=_SHOWN,
    family="create",
)
def uniform(args: Parts) -> Expr:
    """float32 in [low, high), equally likely, that follow from a key."""
    return call("add", call("multiply", _fraction(args, 0), args.high - args.low), args.low)


def _normal(key: Any, shape: Any, *, mean: float, deviation: float) -> Any:
    radius = np.sqrt(np.float32(-2) * np.log(np.float32(1) - _unit(key, shape)))
    angle = np.cos(np.float32(2 * math.pi) * _unit(key, shape, 1))
    return radius * angle * np.float32(deviation) + np.float32(mean)


@composite(
    "random.normal",
    [_KEY, _SHAPE, Param("mean", "attr", 0.0, "float"), Param("deviation", "attr", 1.0, "float")],
    numpy=_normal,
    examples=_SHOWN,
    family="create",
)
def normal(args: Parts) -> Expr:
    """Normally distributed float32 that follow from a key, by Box and Muller."""
    rest = call("subtract", call("ones", args.shape, "float32"), _fraction(args, 0))
    radius = call("sqrt", call("multiply", call("log", rest), -2.0))
    angle = call("cos", call("multiply", _fraction(args, 1), 2 * math.pi))
    return call("add", call("multiply", call("multiply", radius, angle), args.deviation), args.mean)


@composite(
    "random.bernoulli",
    [_KEY, _SHAPE, Param("p", "attr", 0.5, "float")],
    numpy=lambda key, shape, p: _unit(key, shape) < np.float32(p),
    examples=_SHOWN,
    family="create",
)
def bernoulli(args: Parts) -> Expr:
    """True with probability p, that follow from a key; bool."""
    return call("less", _fraction(args, 0), constant_like(args.p, "float32"))


def _integers(key: Any, shape: Any, *, low: int, high: int, dtype: str) -> Any:
    words = philox(key, math.prod(shape)).astype("uint64") * np.uint64(high - low) >> np.uint64(32)
    return (words.astype("int64") + low).astype(dtype).reshape(shape)


@composite(
    "random.integers",
    [_KEY, _SHAPE, Param("low", "attr", of="int"), Param("high", "attr", of="int"), Param("dtype", "dtype", "int64")],
    numpy=_integers,
    family="create",
    examples=(
        example(typed("uint32", 2), (2, 3), 0, 6, ranges={"key": (0, 2**31)}),
        example(typed("uint32", 2), (symbol("n"),), -3, 4, "int32", ranges={"key": (0, 2**31)}),
    ),
)
def integers(args: Parts) -> Expr:
    """Whole numbers from low up to high, which is left out, that follow from a key: word * (high - low) / 2**32.

    All are equally likely up to (high - low) / 2**32, at most 2**32 of them.
    """
    if not 0 < args.high - args.low <= 2**32:
        raise args.error(f"high is greater than low, by at most 2**32: {args.low} and {args.high}")
    words = call("astype", call("random.bits", args.key, args.shape), _WIDE)
    count = call("full", (), args.high - args.low, _WIDE)
    place = call("right_shift", call("multiply", words, count), call("full", (), 32, _WIDE))
    return call("astype", call("add", call("astype", place, "int64"), call("full", (), args.low, "int64")), args.dtype)


@composite(
    "random.exponential",
    [_KEY, _SHAPE, Param("rate", "attr", 1.0, "float")],
    numpy=lambda key, shape, rate: -np.log(np.float32(1) - _unit(key, shape)) * np.float32(1 / rate),
    examples=_SHOWN,
    family="create",
)
def exponential(args: Parts) -> Expr:
    """Exponentially distributed float32 of a rate above 0, that follow from a key: -log(1 - u) / rate."""
    if args.rate <= 0:
        raise args.error(f"the rate is above 0, got {args.rate}")
    rest = call("subtract", call("ones", args.shape, "float32"), _fraction(args, 0))
    return call("multiply", call("negative", call("log", rest)), 1 / args.rate)


@composite(
    "random.permutation",
    [_KEY, Param("n", "shape")],
    family="create",
    numpy=lambda key, n: np.argsort(philox(key, n[0]), kind="stable").astype("int64"),
    examples=(
        example(typed("uint32", 2), 7, ranges={"key": (0, 2**31)}),
        example(typed("uint32", 2), (symbol("n"),), ranges={"key": (0, 2**31)}),
    ),
)
def permutation(args: Parts) -> Expr:
    """The numbers from 0 up to n in an order that follows from a key; int64. Costs a sort."""
    if shape_of_arg(args.arguments, "n", args.context)[1] != 1:
        raise args.error("n is one size")
    return call("argsort", call("random.bits", args.key, args.n), dtype="int64")


def _chosen(key: Any, probabilities: Any, *, num_samples: int, replacement: bool) -> Any:
    rows, size = probabilities.shape
    if not replacement:
        waits = -np.log(np.float32(1) - _unit(key, probabilities.shape)) / probabilities
        return np.argsort(waits, axis=1, kind="stable")[:, :num_samples].astype("int64")
    shares = np.cumsum(probabilities / probabilities.sum(1, keepdims=True, dtype="float32"), 1, dtype="float32")
    numbers = _unit(key, (rows, num_samples))
    found = [untyped_np.searchsorted(share, row, "right") for share, row in zip(shares, numbers, strict=True)]
    return np.minimum(np.array(found, "int64").reshape(rows, num_samples), max(size - 1, 0))


@composite(
    "random.multinomial",
    [_KEY, Param("probabilities"), Param("num_samples", "attr", 1, "int"), Param("replacement", "attr", True, "bool")],
    numpy=_chosen,
    family="create",
    examples=(
        example(typed("uint32", 2), typed("float32", 2, 5), 4, ranges={"key": (0, 2**31), "probabilities": (0.1, 1)}),
        example(
            typed("uint32", 2),
            typed("float32", "n", 5),
            3,
            False,
            ranges={"key": (0, 2**31), "probabilities": (0.1, 1)},
        ),
    ),
)
def multinomial(args: Parts) -> Expr:
    """Places chosen in each row by chances that are given, not necessarily of sum 1: (b, n) -> (b, num_samples), int64.

    Without replacement no place is chosen twice: those are chosen whose exponentially distributed waiting times, of
    rates that are the chances, end first.
    """
    ty, sizes = args.require("probabilities", "float"), args.dims("probabilities")
    if ty.dtype != "float32" or len(sizes) != 2:
        raise args.error("probabilities are a matrix of float32")
    size = sizes[1]
    if args.num_samples < 1 or (not args.replacement and isinstance(size, int) and args.num_samples > size):
        raise args.error(f"from 1 to {size} samples without replacement, got {args.num_samples}")
    if not args.replacement:
        waits = call("divide", call("random.exponential", args.key, sizes), args.probabilities)
        return call("topk", waits, args.num_samples, 1, "indices", False, "int64")
    total = call("sum", args.probabilities, axis=1, keepdims=True)
    ends = call("cumsum", call("divide", args.probabilities, total), axis=1)
    numbers = call("random.uniform", args.key, (sizes[0], args.num_samples))
    below = call("less_equal", call("expand_dims", ends, 1), call("expand_dims", numbers, 2))
    place = call("sum", call("astype", below, "int64"), axis=2)
    last = call("maximum", call("full", (), size - 1, "int64"), call("full", (), 0, "int64"))
    return call("minimum", place, last)
