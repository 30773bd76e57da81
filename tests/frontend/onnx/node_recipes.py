"""Random inputs and attributes of ONNX operators, a recipe for each: also rare attributes, dtypes, ranks and sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(int16)": "int16",
    "tensor(uint16)": "uint16",
    "tensor(int32)": "int32",
    "tensor(uint32)": "uint32",
    "tensor(int64)": "int64",
    "tensor(uint64)": "uint64",
    "tensor(bool)": "bool",
}


def np_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


class Whole:
    """An input that says sizes, axes or such: rather a constant."""

    def __init__(self, value: Any, dtype: str = "int64") -> None:
        self.array = np.asarray(value, dtype)


class Draw:
    """What a recipe draws from."""

    def __init__(self, seed: int, operator: str, schema: Any) -> None:
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.operator, self.schema = operator, schema
        self.bound: dict[str, str] = {}
        self.empty = self.random.random() < 0.08

    def chance(self, share: float = 0.5) -> bool:
        return self.random.random() < share

    def choice(self, *items: Any) -> Any:
        return self.random.choice(items)

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def dtype(self, index: int = 0) -> str:
        """A dtype that the operator takes for an input."""
        formal = self.schema.inputs[min(index, len(self.schema.inputs) - 1)]
        name = formal.type_str
        if name not in self.bound:
            allowed = next(
                (c.allowed_type_strs for c in self.schema.type_constraints if c.type_param_str == name), [name]
            )
            known = sorted({DTYPES[item] for item in allowed if item in DTYPES})
            usual = [item for item in known if item in ("float32", "int64")]
            self.bound[name] = self.random.choice(usual) if usual and self.chance(0.45) else self.random.choice(known)
        return self.bound[name]

    def shape(self, low: int = 0, high: int = 4, least: int = 1) -> tuple[int, ...]:
        rank = self.int(low, high)
        dims = [self.int(least, 5) for _ in range(rank)]
        if self.empty and rank and self.chance(0.6):
            dims[self.int(0, rank - 1)] = 0
        return tuple(dims)

    def array(
        self, shape: Any, dtype: str | None = None, index: int = 0, low: float = -3, high: float = 3
    ) -> np.ndarray:
        name = dtype or self.dtype(index)
        kind = np_dtype(name)
        if name == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if kind.kind == "u":
            return self.rng.integers(max(int(low), 0), 9, shape).astype(kind)
        if kind.kind == "i":
            return self.rng.integers(int(low) * 3, int(high) * 3 + 1, shape).astype(kind)
        made = self.rng.uniform(low, high, shape)
        if self.chance(0.3):
            made = np.round(made * 2) / 2  # halves and ties
        return np.asarray(made).astype(kind)

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with another."""
        cut = self.int(0, len(shape))
        return tuple(1 if self.chance(0.3) else size for size in shape[cut:])

    def axis(self, rank: int) -> int:
        return self.int(-rank, rank - 1)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        found = self.random.sample(range(rank), self.int(min(least, rank), rank))
        return [axis - rank if self.chance(0.4) else axis for axis in found]

    def maybe(self, attributes: dict[str, Any], share: float = 0.5) -> dict[str, Any]:
        """Some of the attributes, those that the version has."""
        return {k: v for k, v in attributes.items() if k in self.schema.attributes and self.chance(share)}

    def has(self, attribute: str) -> bool:
        return attribute in self.schema.attributes

    @property
    def since(self) -> int:
        return self.schema.since_version


Drawn = tuple[list[Any], dict[str, Any]]
RECIPES: dict[str, Callable[[Draw], Drawn]] = {}


def recipe(*names: str) -> Any:
    def add(function: Any) -> Any:
        for name in names:
            RECIPES[name] = function
        return function

    return add


@recipe(
    *(
        "Abs Neg Sign Floor Ceil Round Relu Sigmoid Tanh Erf Exp Sin Cos Tan Atan Sinh Cosh Asinh Softplus"
        " Softsign HardSwish Mish Not IsNaN BitwiseNot Identity Sqrt Reciprocal"
    ).split()
)
def unary(d: Draw) -> Drawn:
    return [d.array(d.shape())], {}


@recipe("Acos", "Asin", "Atanh")
def unary_unit(d: Draw) -> Drawn:
    return [d.array(d.shape(), low=-1, high=1)], {}


@recipe("Log", "Acosh")
def unary_positive(d: Draw) -> Drawn:
    return [np.abs(d.array(d.shape())) + np_dtype(d.dtype()).type(1)], {}


@recipe("Elu", "LeakyRelu", "ThresholdedRelu", "Celu", "HardSigmoid", "Selu", "Shrink", "Gelu")
def unary_attributes(d: Draw) -> Drawn:
    alpha = d.choice(0.0, 0.5, 1.0, 2.5) if d.operator != "Celu" else d.choice(0.5, 1.0, 2.5)
    given = {
        "alpha": alpha,
        "beta": d.choice(0.0, 0.3, 1.5),
        "gamma": 1.5,
        "bias": d.choice(0.0, 0.7),
        "lambd": d.choice(0.0, 1.0),
    }
    if d.operator == "Gelu":
        given = {"approximate": d.choice("none", "tanh")}
    return [d.array(d.shape())], d.maybe(given)


@recipe("IsInf")
def isinf(d: Draw) -> Drawn:
    x = d.array(d.shape())
    x = np.where(d.rng.random(x.shape) < 0.3, np.inf * d.rng.choice([-1, 1], x.shape), x.astype("float64")).astype(
        x.dtype
    )
    return [x], d.maybe({"detect_positive": d.int(0, 1), "detect_negative": d.int(0, 1)})


@recipe(
    *(
        "Add Sub Mul Equal Less Greater LessOrEqual GreaterOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor PRelu"
    ).split()
)
def binary(d: Draw) -> Drawn:
    shape = d.shape()
    other = d.broadcast(shape)
    if d.operator != "PRelu" and d.chance(0.2):
        return [d.array(other), d.array(shape)], {}
    return [d.array(shape), d.array(other)], {}


@recipe("Div", "Mod")
def division(d: Draw) -> Drawn:
    shape = d.shape()
    x, y = d.array(shape), d.array(d.broadcast(shape))
    y = np.where(y == 0, np.asarray(1, y.dtype), y)
    if d.operator == "Div":
        return [x, y], {}
    return [x, y], {"fmod": 1} if x.dtype.kind not in "iu" or d.chance(0.4) else d.maybe({"fmod": 0})


@recipe("Pow")
def power(d: Draw) -> Drawn:
    shape = d.shape()
    x, y = d.array(shape), d.array(d.broadcast(shape), index=1)
    if y.dtype.kind != "u":
        y = np.abs(y)
    return [
        np.abs(x) + np.asarray(1, x.dtype) if x.dtype.kind not in "u" else x,
        np.minimum(y, np.asarray(3, y.dtype)),
    ], {}


@recipe("BitShift")
def shifted(d: Draw) -> Drawn:
    shape = d.shape()
    return [d.array(shape), d.array(d.broadcast(shape))], {"direction": d.choice("LEFT", "RIGHT")}


@recipe("Min", "Max", "Sum", "Mean")
def several(d: Draw) -> Drawn:
    shape = d.shape()
    return [d.array(shape)] + [d.array(d.broadcast(shape)) for _ in range(d.int(0, 3))], {}


@recipe("Where")
def where(d: Draw) -> Drawn:
    shape = d.shape()
    parts = [d.array(shape, "bool"), d.array(d.broadcast(shape), index=1), d.array(d.broadcast(shape), index=1)]
    return parts, {}


@recipe("Clip")
def clip(d: Draw) -> Drawn:
    x = d.array(d.shape())
    if d.since < 11:
        return [x], d.maybe({"min": -1.0, "max": 1.5})
    low, high = sorted([d.array(()), d.array(())])
    if d.chance(0.1):
        low, high = high, low
    return [x, low if d.chance(0.7) else None, high if d.chance(0.7) else None], {}


@recipe("Cast")
def cast(d: Draw) -> Drawn:
    x = d.array(d.shape(), low=-300 if d.chance(0.1) else -3)
    allowed = next(c.allowed_type_strs for c in d.schema.type_constraints if c.type_param_str == "T2")
    to = d.random.choice(sorted({DTYPES[t] for t in allowed if t in DTYPES}))
    if np_dtype(to).kind == "u" or to == "bfloat16":
        x = np.abs(x.astype("float64")).astype(x.dtype)
    return [x], {"to": helper.np_dtype_to_tensor_dtype(np_dtype(to))}


@recipe("CastLike")
def cast_like(d: Draw) -> Drawn:
    x, y = d.array(d.shape()), d.array(d.shape(), index=1)
    return [np.abs(x.astype("float64")).astype(x.dtype) if y.dtype.kind == "u" else x, y], {}


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(d: Draw) -> Drawn:
    shape = d.shape(1)
    return [d.array(shape)], d.maybe({"axis": d.axis(len(shape))}, 0.7)


@recipe(
    *(
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp"
        " ReduceSumSquare"
    ).split()
)
def reduction(d: Draw) -> Drawn:
    shape = d.shape()
    x = d.array(shape, low=0.5 if d.operator in ("ReduceLogSum",) else -2, high=2)
    axes = d.axes(len(shape))
    given = d.maybe({"keepdims": d.int(0, 1), "noop_with_empty_axes": d.int(0, 1)}, 0.6)
    if d.has("axes"):
        return [x], given | ({"axes": axes} if axes and d.chance(0.8) else {})
    return [x] + ([Whole(axes)] if d.chance(0.7) else [None] if d.chance(0.3) else []), given


@recipe("ArgMax", "ArgMin")
def arg(d: Draw) -> Drawn:
    shape = d.shape(1)
    if 0 in shape:
        shape = tuple(s or 2 for s in shape)
    x = d.array(shape)
    return [x], d.maybe({"axis": d.axis(len(shape)), "keepdims": d.int(0, 1), "select_last_index": d.int(0, 1)}, 0.7)


@recipe("CumSum", "CumProd")
def cumsum(d: Draw) -> Drawn:
    shape = d.shape(1)
    axis = Whole(d.axis(len(shape)), d.choice("int32", "int64"))
    return [d.array(shape), axis], d.maybe({"exclusive": d.int(0, 1), "reverse": d.int(0, 1)}, 0.7)


@recipe("TopK")
def topk(d: Draw) -> Drawn:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    k = d.int(0, shape[axis])
    if d.since < 10:
        return [d.array(shape)], {"k": max(k, 1), "axis": axis}
    return [d.array(shape), Whole([k])], d.maybe({"axis": axis}, 1.0) | d.maybe({"largest": d.int(0, 1), "sorted": 1})


@recipe("Transpose")
def transpose(d: Draw) -> Drawn:
    shape = d.shape()
    return [d.array(shape)], {"perm": d.random.sample(range(len(shape)), len(shape))} if d.chance(0.8) and shape else {}


@recipe("Reshape")
def reshape(d: Draw) -> Drawn:
    shape = d.shape()
    total = int(np.prod(shape))
    wanted: list[int] = []
    left = total
    for _ in range(d.int(0, 3)):
        parts = [p for p in range(1, left + 1) if left % p == 0] or [0]
        part = d.random.choice(parts)
        wanted.append(part)
        left = left // part if part else 0
    if left != 1 or total == 0:
        wanted.append(left if total else 0)
    allow = {}
    if d.has("allowzero") and total == 0:
        allow = {"allowzero": 1}
    elif total:
        for at, size in enumerate(wanted):
            if at < len(shape) and shape[at] == size and d.chance(0.4):
                wanted[at] = 0
        if d.chance(0.5) and wanted:
            wanted[d.int(0, len(wanted) - 1)] = -1
        allow = {} if 0 in wanted else d.maybe({"allowzero": 1}, 0.3)
    return [d.array(shape), Whole(wanted)], allow


@recipe("Flatten")
def flatten(d: Draw) -> Drawn:
    shape = d.shape()
    return [d.array(shape)], d.maybe({"axis": d.int(-len(shape) if d.since >= 11 else 0, len(shape))}, 0.8)


@recipe("Squeeze")
def squeeze(d: Draw) -> Drawn:
    shape = tuple(1 if d.chance(0.5) else size for size in d.shape())
    axes = [
        a - len(shape) if d.chance(0.4) and d.since >= 11 else a
        for a, s in enumerate(shape)
        if s == 1 and d.chance(0.7)
    ]
    if d.since < 13:
        return [d.array(shape)], {"axes": axes} if axes else {}
    return [d.array(shape)] + ([Whole(axes)] if axes or d.chance(0.3) else []), {}


@recipe("Unsqueeze")
def unsqueeze(d: Draw) -> Drawn:
    shape = d.shape(0, 3)
    count = d.int(1, 3)
    rank = len(shape) + count
    axes = d.random.sample(range(rank), count)
    axes = [a - rank if d.chance(0.4) and d.since >= 11 else a for a in axes]
    return ([d.array(shape)], {"axes": axes}) if d.since < 13 else ([d.array(shape), Whole(axes)], {})


@recipe("Expand")
def expand(d: Draw) -> Drawn:
    shape = d.shape()
    own = d.broadcast(shape)
    wanted = [
        1 if d.chance(0.3) and at >= len(shape) - len(own) and own[at - len(shape) + len(own)] == s else s
        for at, s in enumerate(shape)
    ]
    while wanted and wanted[0] == 1 and len(wanted) > 1 and d.chance(0.3):
        wanted = wanted[1:]
    return [d.array(own), Whole(wanted)], {}


@recipe("Tile")
def tile(d: Draw) -> Drawn:
    shape = d.shape()
    return [d.array(shape), Whole([d.int(0 if d.chance(0.1) else 1, 3) for _ in shape])], {}


@recipe("Concat")
def concat(d: Draw) -> Drawn:
    shape = d.shape(1)
    axis = d.axis(len(shape)) if d.since >= 11 else d.int(0, len(shape) - 1)
    parts = []
    for _ in range(d.int(1, 4)):
        own = list(shape)
        own[axis] = d.int(0 if d.chance(0.2) else 1, 4)
        parts.append(d.array(own))
    return parts, {"axis": axis}


@recipe("Split")
def split(d: Draw) -> Drawn:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    if d.since < 11:
        axis %= len(shape)
    if d.since >= 18 and d.chance(0.5):
        count = d.int(1, max(shape[axis], 1))
        part = -(-shape[axis] // count)
        if part * (count - 1) > shape[axis]:
            count = 1
        return [d.array(shape)], {"axis": axis, "num_outputs": count, "#": count}
    cuts = sorted(d.int(0, shape[axis]) for _ in range(d.int(0, 3)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, shape[axis]], strict=True)]
    if d.since < 13:
        return [d.array(shape)], {"axis": axis, "split": sizes, "#": len(sizes)}
    return [d.array(shape), Whole(sizes)], {"axis": axis, "#": len(sizes)}


@recipe("Slice")
def slices(d: Draw) -> Drawn:
    shape = d.shape(1)
    axes = d.axes(len(shape), 1)
    if d.since < 10:
        axes = [a % len(shape) for a in axes]
    starts, ends, steps = [], [], []
    for axis in axes:
        size = shape[axis]
        starts.append(
            d.choice(0, d.int(-size - 2, size + 2), -(2**31), 2**31 - 1) if d.chance(0.4) else d.int(-size, size)
        )
        ends.append(d.choice(2**63 - 1, -(2**63), 2**31 - 1, -(2**31)) if d.chance(0.3) else d.int(-size - 2, size + 2))
        steps.append(d.choice(1, 1, 2, 3, -1, -2) if d.since >= 10 else 1)
    if d.since < 10:
        return [d.array(shape)], {"starts": starts, "ends": ends} | (
            {"axes": axes} if axes != list(range(len(axes))) or d.chance() else {}
        )
    kind = d.choice("int64", "int64", "int32")
    if kind == "int32":
        starts, ends = ([max(min(v, 2**31 - 1), -(2**31)) for v in list_] for list_ in (starts, ends))
    default = axes == list(range(len(axes)))
    rest = [None if default and d.chance() else Whole(axes, kind)]
    if any(s != 1 for s in steps) or d.chance(0.3):
        rest.append(Whole(steps, kind))
    while rest and rest[-1] is None:
        rest.pop()
    return [d.array(shape), Whole(starts, kind), Whole(ends, kind), *rest], {}


@recipe("Pad")
def pad(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 2)
    mode = (
        d.choice("constant", "edge", "reflect", "constant")
        if d.since < 19
        else d.choice("constant", "edge", "reflect", "wrap")
    )
    if 0 in shape:
        mode = "constant"
    axes = d.axes(len(shape), 1) if d.since >= 18 and d.chance(0.4) else None
    along = [shape[a] for a in axes] if axes else list(shape)
    most = [min(s - 1, 3) if mode in ("reflect", "wrap") else 3 for s in along]
    low = -1 if mode == "constant" and d.chance(0.2) and min(along) > 2 else 0
    pads = [d.int(low, m) for m in most * 2]
    if d.since < 11:
        return [d.array(shape)], {"pads": pads, "mode": mode} | d.maybe({"value": 1.5})
    value = d.array(()) if d.chance() else None
    rest = [value] + ([Whole(axes, d.choice("int32", "int64"))] if axes else [])
    while rest and rest[-1] is None:
        rest.pop()
    return [d.array(shape), Whole(pads), *rest], {"mode": mode} if mode != "constant" or d.chance() else {}


@recipe("Gather")
def gather(d: Draw) -> Drawn:
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    size = shape[axis]
    index = d.rng.integers(-size if d.since >= 11 else 0, size, d.shape(0, 2)) if size else np.zeros((0,))
    return [d.array(shape), Whole(index, d.choice("int32", "int64"))], d.maybe({"axis": axis}, 1.0)


@recipe("GatherElements")
def gather_elements(d: Draw) -> Drawn:
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    own = [d.int(1, s) if s else 0 for s in shape]
    own[axis] = d.int(1, 6) if shape[axis] else 0
    index = d.rng.integers(-shape[axis], max(shape[axis], 1), own)
    return [d.array(shape), Whole(index, d.choice("int32", "int64"))], {"axis": axis}


@recipe("GatherND")
def gather_nd(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 4))
    batch = d.int(0, len(shape) - 1) if d.since >= 12 else 0
    depth = d.int(1, len(shape) - batch)
    outer = [*shape[:batch], *d.shape(0, 2)]
    index = np.stack([d.rng.integers(-s, s, outer) for s in shape[batch : batch + depth]], -1)
    return [d.array(shape), Whole(index)], {"batch_dims": batch} if d.since >= 12 else {}


@recipe("ScatterElements", "Scatter")
def scatter_elements(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 3))
    axis = d.axis(len(shape))
    own = [d.int(1, s) for s in shape]
    mode = (
        d.choice("none", "add", "mul", "max", "min")
        if d.since >= 18
        else d.choice("none", "add")
        if d.since >= 16
        else "none"
    )
    x = d.array(shape)
    if x.dtype == bool:
        mode = "none"
    if mode == "none":
        index = np.argsort(d.rng.random([*own[: axis % len(shape)], shape[axis], *own[axis % len(shape) + 1 :]]), axis)
        index = np.take(index, range(own[axis]), axis)
        if d.since >= 11:
            index = np.where(d.rng.random(index.shape) < 0.3, index - shape[axis], index)
    else:
        index = d.rng.integers(-shape[axis], shape[axis], own)
    return [x, Whole(index, d.choice("int32", "int64")), d.array(own)], {"axis": axis} | (
        {"reduction": mode} if mode != "none" else {}
    )


@recipe("ScatterND")
def scatter_nd(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 3))
    depth = d.int(1, len(shape))
    count = int(np.prod(shape[:depth]))
    x = d.array(shape)
    mode = (
        d.choice("none", "add", "mul", "max", "min")
        if d.since >= 18
        else d.choice("none", "add")
        if d.since >= 16
        else "none"
    )
    if x.dtype == bool:
        mode = "none"
    picked = d.rng.permutation(count)[: d.int(1, count)] if mode == "none" else d.rng.integers(0, count, d.int(1, 6))
    index = np.stack(np.unravel_index(picked, shape[:depth]), -1)
    return [x, Whole(index), d.array((len(picked), *shape[depth:]))], {"reduction": mode} if mode != "none" else {}


@recipe("OneHot")
def one_hot(d: Draw) -> Drawn:
    shape, depth = d.shape(0, 3), d.int(1, 5)
    index = d.rng.integers(-depth, depth + 1, shape)
    kind = d.choice("int64", "int32", "float32")
    return [
        Whole(index, kind),
        Whole(d.choice(depth, [depth]), d.choice("int64", "int32", "float32")),
        d.array((2,), index=2),
    ], {"axis": d.int(-len(shape) - 1, len(shape))} if d.chance(0.8) else {}


@recipe("NonZero")
def nonzero(d: Draw) -> Drawn:
    return [d.array(d.shape())], {}


@recipe("Compress")
def compress(d: Draw) -> Drawn:
    shape = d.shape(1, 3)
    axis = d.axis(len(shape)) if d.chance(0.7) else None
    if d.since < 11 and axis is not None:
        axis %= len(shape)
    size = int(np.prod(shape)) if axis is None else shape[axis]
    return [d.array(shape), d.rng.integers(0, 2, max(d.int(0, size), 0)).astype(bool)], {} if axis is None else {
        "axis": axis
    }


@recipe("Unique")
def unique(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 3))
    return [d.array(shape)], d.maybe({"axis": d.axis(len(shape)), "sorted": 1}) | {"#": d.int(1, 4)}


@recipe("Shape")
def shape_of(d: Draw) -> Drawn:
    return [d.array(d.shape())], d.maybe({"start": d.int(-5, 5), "end": d.int(-5, 5)})


@recipe("Size")
def size_of(d: Draw) -> Drawn:
    return [d.array(d.shape())], {}


@recipe("Range")
def range_(d: Draw) -> Drawn:
    dtype = d.dtype()
    step = d.choice(1, 2, 3, -1, -2)
    a, b = d.int(-5, 5), d.int(-5, 9)
    scale = 1 if np_dtype(dtype).kind == "i" else d.choice(1, 0.5)
    return [Whole(a * scale, dtype), Whole(b * scale, dtype), Whole(step * scale, dtype)], {}


@recipe("ConstantOfShape")
def constant_of_shape(d: Draw) -> Drawn:
    value = d.array((1,), d.choice("float32", "int64", "bool", "uint8", "float16", "float64", "int32"))
    return [Whole(d.shape())], {"value": numpy_helper.from_array(value)} if d.chance(0.8) else {}


@recipe("EyeLike")
def eye_like(d: Draw) -> Drawn:
    return [d.array(d.shape(2, 2))], d.maybe({"k": d.int(-4, 4), "dtype": d.choice(1, 7, 11, 6)})


@recipe("Trilu")
def trilu(d: Draw) -> Drawn:
    shape = d.shape(2, 4)
    k = [Whole(d.int(-5, 5))] if d.chance(0.7) else []
    return [d.array(shape), *k], d.maybe({"upper": d.int(0, 1)}, 0.7)


@recipe("ReverseSequence")
def reverse_sequence(d: Draw) -> Drawn:
    shape = d.shape(2, 4)
    batch = d.int(0, 1)
    lengths = d.rng.integers(1, shape[1 - batch] + 1, shape[batch]) if 0 not in shape else np.zeros(shape[batch])
    return [d.array(shape), Whole(lengths)], {"batch_axis": batch, "time_axis": 1 - batch}


@recipe("DepthToSpace", "SpaceToDepth")
def blocks(d: Draw) -> Drawn:
    size = d.int(1, 3)
    b, c, h, w = (d.int(1, 3) for _ in range(4))
    if d.operator == "DepthToSpace":
        return [d.array((b, c * size * size, h, w))], {"blocksize": size} | d.maybe({"mode": d.choice("DCR", "CRD")})
    return [d.array((b, c, h * size, w * size))], {"blocksize": size}


@recipe("MatMul")
def matmul(d: Draw) -> Drawn:
    k, batch = d.int(1, 5), d.shape(0, 2)
    left = (*d.broadcast(batch), *([d.int(1, 4)] if d.chance(0.8) or batch else []), k)
    right = (*d.broadcast(batch), k, d.int(1, 4)) if d.chance(0.8) else (k,)
    return [d.array(left), d.array(right)], {}


@recipe("Gemm")
def gemm(d: Draw) -> Drawn:
    m, k, n = (d.int(0 if d.empty else 1, 5) for _ in range(3))
    ta, tb = d.int(0, 1), d.int(0, 1)
    c = [d.array(d.choice((), (n,), (1,), (m, 1), (m, n), (1, n)))] if d.chance(0.7) or d.since < 11 else []
    attributes = {"transA": ta, "transB": tb} | d.maybe({"alpha": d.choice(0.5, 2.0), "beta": d.choice(0.0, 0.25, 2.0)})
    return [d.array((k, m) if ta else (m, k)), d.array((n, k) if tb else (k, n)), *c], attributes


@recipe("Einsum")
def einsum(d: Draw) -> Drawn:
    text, shapes = d.choice(
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("bij,bjk->bik", ((2, 2, 3), (2, 3, 4))),
        ("ij->ji", ((2, 3),)),
        ("ii->i", ((3, 3),)),
        ("ii", ((3, 3),)),
        ("...ij,...jk->...ik", ((2, 2, 3), (3, 4))),
        ("ij,j", ((2, 3), (3,))),
        ("i,j->ij", ((2,), (3,))),
        ("ijk->", ((2, 3, 2),)),
        ("b...,b...->...", ((2, 3), (2, 3))),
        (" i j , j k -> i k ", ((2, 3), (3, 2))),
        ("ij,ij,ij->i", ((2, 3),) * 3),
    )
    return [d.array(shape) for shape in shapes], {"equation": text}


def windows(d: Draw, rank: int, dilates: bool = True) -> tuple[list[int], dict[str, Any]]:
    """The attributes of windows, and their sizes."""
    kernel = [d.int(1, 3) for _ in range(rank)]
    dilations = [d.int(1, 2) for _ in range(rank)] if dilates and d.chance(0.4) else [1] * rank
    given: dict[str, Any] = {"kernel_shape": kernel}
    if dilations != [1] * rank:
        given["dilations"] = dilations
    if d.chance(0.6):
        given["strides"] = [d.int(1, 3) for _ in range(rank)]
    way = d.choice("pads", "pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    if way in ("pads", "NOTSET"):
        given["pads"] = [d.int(0, min(k - 1, 2)) for k in kernel * 2]
        if way == "NOTSET":
            given["auto_pad"] = way
    elif way != "none":
        given["auto_pad"] = way
    return kernel, given


@recipe("Conv", "ConvTranspose")
def conv(d: Draw) -> Drawn:
    rank, group = d.int(1, 3), d.choice(1, 1, 2, 3)
    sizes = [d.int(5, 8) for _ in range(rank)]
    kernel, given = windows(d, rank)
    c, m, b = group * d.int(1, 2), group * d.int(1, 3), d.int(0 if d.empty else 1, 2)
    if d.chance(0.3):
        del given["kernel_shape"]
    if group > 1 or d.chance(0.2):
        given["group"] = group
    if d.operator == "Conv":
        weight = d.array((m, c // group, *kernel))
        bias = m
    else:
        weight = d.array((c, m // group, *kernel))
        bias = m
        strides = given.get("strides", [1] * rank)
        if d.chance(0.3):
            given["output_padding"] = [d.int(0, s - 1) for s in strides]
        if d.chance(0.2):
            given.pop("pads", None)
            given.pop("output_padding", None)
            given["output_shape"] = [s * st + d.int(0, 1) for s, st in zip(sizes, strides, strict=True)]
            if given.get("auto_pad") == "VALID":
                del given["auto_pad"]
    return [d.array((b, c, *sizes)), weight, *([d.array((bias,))] if d.chance() else [])], given


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(d: Draw) -> Drawn:
    rank = d.int(1, 3)
    sizes = [d.int(5, 9) for _ in range(rank)]
    _, given = windows(d, rank, "dilations" in d.schema.attributes)
    given |= d.maybe(
        {"ceil_mode": d.int(0, 1), "count_include_pad": d.int(0, 1), "storage_order": d.int(0, 1), "p": d.int(1, 3)}
    )
    if given.get("auto_pad", "NOTSET") != "NOTSET":
        given.pop("ceil_mode", None)
    if d.operator == "MaxPool":
        given["#"] = d.int(1, 2) if rank < 4 else 1
    return [d.array((d.int(0 if d.empty else 1, 2), d.int(1, 3), *sizes))], given


@recipe("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
def global_pool(d: Draw) -> Drawn:
    return [d.array((d.int(1, 2), d.int(1, 3), *[d.int(1, 5) for _ in range(d.int(1, 3))]))], d.maybe(
        {"p": d.int(1, 3)}
    )


@recipe("BatchNormalization")
def batch_norm(d: Draw) -> Drawn:
    c = d.int(1, 4)
    x = d.array((d.int(1, 3), c, *d.shape(0, 3)), "float32")
    parts = [np.abs(d.array((c,), "float32")) + np.float32(0.5) for _ in range(4)]
    return [x, *parts], d.maybe({"epsilon": 1e-3, "momentum": 0.8})


@recipe("InstanceNormalization")
def instance_norm(d: Draw) -> Drawn:
    c = d.int(1, 4)
    return [
        d.array((d.int(1, 3), c, *[d.int(2, 5) for _ in range(d.int(1, 3))])),
        d.array((c,)),
        d.array((c,)),
    ], d.maybe({"epsilon": 1e-2})


@recipe("GroupNormalization")
def group_norm(d: Draw) -> Drawn:
    g = d.int(1, 3)
    c = g * d.int(1, 3)
    own = c if d.since >= 21 else g
    return [d.array((d.int(1, 3), c, *[d.int(2, 5) for _ in range(d.int(1, 3))])), d.array((own,)), d.array((own,))], {
        "num_groups": g
    } | d.maybe({"epsilon": 1e-2})


@recipe("LayerNormalization", "RMSNormalization")
def layer_norm(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 4, 2))
    axis = d.axis(len(shape))
    rest = shape[axis:]
    more = [d.array(rest)] if d.operator == "LayerNormalization" and d.chance() else []
    many = {"#": d.int(1, 3)} if d.operator == "LayerNormalization" else {}
    return [d.array(shape), d.array(rest), *more], {"axis": axis} | d.maybe({"epsilon": 1e-2}) | many


@recipe("LRN")
def lrn(d: Draw) -> Drawn:
    return [d.array((d.int(1, 2), d.int(1, 6), *d.shape(0, 2)))], {"size": d.choice(1, 2, 3, 5)} | d.maybe(
        {"alpha": 0.01, "beta": 0.5, "bias": 2.0}
    )


@recipe("LpNormalization")
def lp_norm(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 3))
    return [d.array(shape)], d.maybe({"axis": d.axis(len(shape)), "p": d.int(1, 2)}, 0.7)


@recipe("MeanVarianceNormalization")
def mvn(d: Draw) -> Drawn:
    return [d.array((2, 3, 4, 5))], {"axes": d.random.sample(range(4), d.int(1, 4))} if d.chance() else {}


@recipe("Dropout")
def dropout(d: Draw) -> Drawn:
    if d.since < 12:
        return [d.array(d.shape())], d.maybe({"ratio": 0.3}) | {"#": d.int(1, 2)}
    rest = [None if d.chance() else Whole(0.3, d.dtype(1))] + ([np.asarray(False)] if d.chance() else [])
    return [d.array(d.shape()), *rest], d.maybe({"seed": 3}) | {"#": d.int(1, 2)}


@recipe("QuantizeLinear")
def quantize(d: Draw) -> Drawn:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    per_axis = d.chance()
    dims = (shape[axis],) if per_axis else ()
    x = d.array(shape, low=-9, high=9)
    scale = (np.abs(d.array(dims, "float32")) + np.float32(0.05)).astype(
        "float32" if d.since < 19 else x.dtype if x.dtype.kind == "f" else "float32"
    )
    kinds = ["uint8", "int8"] + (["uint16", "int16"] if d.since >= 21 else [])
    zero = d.array(dims, d.random.choice(kinds)) if d.chance(0.8) else None
    given = {"axis": axis} if d.has("axis") and per_axis else {}
    if per_axis and not d.has("axis"):
        scale, zero = (
            scale.reshape(-1)[:1].reshape(()) if scale.size else np.float32(0.5),
            None if zero is None else zero.reshape(-1)[:1].reshape(()) if zero.size else None,
        )
    if zero is None and d.since >= 21 and d.chance():
        given["output_dtype"] = d.choice(2, 3, 4, 5)
    return [x, scale, *([zero] if zero is not None else [])], given


@recipe("DequantizeLinear")
def dequantize(d: Draw) -> Drawn:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    dims = (shape[axis],) if d.chance() and d.has("axis") else ()
    x = d.array(shape)
    scale = np.abs(d.array(dims, "float32")) + np.float32(0.05)
    if d.since >= 19 and d.chance(0.3):
        scale = scale.astype("float16")
    zero = d.array(dims, x.dtype.name) if d.chance(0.7) and x.dtype != np.int32 else None
    return [x, scale, *([zero] if zero is not None else [])], {"axis": axis} if dims else {}


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(d: Draw) -> Drawn:
    return [d.array(tuple(s or 1 for s in d.shape()))], {"#": 3}


@recipe("MatMulInteger")
def matmul_integer(d: Draw) -> Drawn:
    m, k, n = (d.int(1, 5) for _ in range(3))
    a, b = d.array((m, k), index=0), d.array((k, n), index=1)
    rest = [
        d.array((), a.dtype.name) if d.chance(0.7) else None,
        d.array(d.choice((), (n,)), b.dtype.name) if d.chance() else None,
    ]
    while rest and rest[-1] is None:
        rest.pop()
    return [a, b, *rest], {}


@recipe("QLinearMatMul")
def qlinear_matmul(d: Draw) -> Drawn:
    m, k, n = (d.int(1, 5) for _ in range(3))
    kind = d.choice("uint8", "int8")
    one = lambda: np.abs(d.array((), "float32")) + np.float32(0.1)
    return [
        d.array((m, k), kind),
        one(),
        d.array((), kind),
        d.array((k, n), kind),
        one(),
        d.array((), kind),
        one(),
        d.array((), kind),
    ], {}


@recipe("ConvInteger", "QLinearConv")
def conv_integer(d: Draw) -> Drawn:
    kernel, given = windows(d, 2)
    group = d.choice(1, 2)
    c, m = group * d.int(1, 2), group * d.int(1, 2)
    given["group"] = group
    x, w = (
        d.array((1, c, 6, 6), "uint8"),
        d.array((m, c // group, *kernel), d.choice("uint8", "int8") if d.operator == "QLinearConv" else "uint8"),
    )
    if d.operator == "ConvInteger":
        rest = [d.array((), "uint8"), d.array((), "uint8")][: d.int(0, 2)]
        return [x, w, *rest], given
    one = lambda: np.abs(d.array((), "float32")) + np.float32(0.1)
    bias = [d.array((m,), "int32")] if d.chance() else []
    return [x, one(), d.array((), "uint8"), w, one(), np.zeros((), w.dtype), one(), d.array((), "uint8"), *bias], given


@recipe("Resize")
def resize(d: Draw) -> Drawn:
    if d.since < 11:
        return [d.array((1, 2, 4, 5), "float32"), np.asarray([1, 1, 2, 1.5], "float32")], d.maybe(
            {"mode": d.choice("nearest", "linear")}
        )
    shape = (d.int(1, 2), d.int(1, 2), d.int(2, 5), d.int(2, 5))
    mode = d.choice("nearest", "linear", "cubic")
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"] + (
        ["half_pixel_symmetric"] if d.since >= 19 else []
    )
    way = d.random.choice(ways)
    given: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        given |= d.maybe({"nearest_mode": d.choice("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")}, 0.8)
    if mode == "cubic":
        given |= d.maybe({"cubic_coeff_a": -0.5, "exclude_outside": d.int(0, 1)})
    if mode != "nearest" and d.has("antialias") and way != "tf_crop_and_resize" and d.chance(0.25):
        given["antialias"] = 1
    roi = (
        np.asarray([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1], "float32")
        if way == "tf_crop_and_resize"
        else np.zeros((0,), "float32")
        if d.since < 13
        else None
    )
    if way == "tf_crop_and_resize":
        given |= d.maybe({"extrapolation_value": 7.0})
    x = d.array(shape)
    if d.chance():
        scales = [1.0, 1.0, d.choice(0.6, 1.5, 2.0, 0.75), d.choice(0.5, 1.0, 2.5)]
        if d.since >= 18 and d.chance(0.3):
            if roi is not None and roi.size:
                roi = roi[[2, 3, 6, 7]]
            return [x, _roi(roi), Whole(scales[2:], "float32")], given | {"axes": [2, 3]}
        return [x, _roi(roi), Whole(scales, "float32")], given
    sizes = [*shape[:2], d.int(1, 8), d.int(1, 8)]
    blank = np.zeros((0,), "float32") if d.since < 13 else None
    if d.since >= 18 and d.chance(0.4):
        if roi is not None and roi.size:
            roi = roi[[2, 3, 6, 7]]
        return [x, _roi(roi), blank, Whole(sizes[2:])], given | {"axes": d.choice([2, 3], [-2, -1])} | d.maybe(
            {"keep_aspect_ratio_policy": d.choice("stretch", "not_larger", "not_smaller")}
        )
    return [x, _roi(roi), blank, Whole(sizes)], given


def _roi(roi: Any) -> Any:
    return None if roi is None else Whole(roi, "float32")


@recipe("Upsample")
def upsample(d: Draw) -> Drawn:
    x = d.array((1, 2, 3, 4), "float32")
    scales = [1.0, 1.0, d.choice(1.0, 2.0, 1.5), d.choice(1.0, 2.0, 3.0)]
    given = {"mode": d.choice("nearest", "linear")}
    return ([x], given | {"scales": scales}) if d.since < 9 else ([x, Whole(scales, "float32")], given)


@recipe("GridSample")
def grid_sample(d: Draw) -> Drawn:
    rank = 2 if d.since < 20 or d.chance(0.7) else 3
    modes = ("bilinear", "nearest", "bicubic") if d.since < 20 else ("linear", "nearest", "cubic")
    x = d.array((2, d.int(1, 2), *[d.int(2, 5) for _ in range(rank)]), "float32")
    grid = d.rng.uniform(-1.4, 1.4, (2, *[d.int(1, 4) for _ in range(rank)], rank)).astype("float32")
    mode = d.random.choice(modes[: 3 if rank == 2 else 2])
    return [x, grid], {"mode": mode} | d.maybe(
        {"padding_mode": d.choice("zeros", "border", "reflection"), "align_corners": d.int(0, 1)}
    )


@recipe("AffineGrid")
def affine_grid(d: Draw) -> Drawn:
    rank = d.int(2, 3)
    return [d.array((2, rank, rank + 1)), Whole([2, 1, *[d.int(1, 4) for _ in range(rank)]])], d.maybe(
        {"align_corners": d.int(0, 1)}
    )


@recipe("RoiAlign")
def roi_align(d: Draw) -> Drawn:
    x = d.array((2, 2, 6, 7), "float32")
    rois = np.sort(d.rng.uniform(0, 6, (3, 2, 2)), 1).reshape(3, 4).astype("float32")
    given = d.maybe(
        {
            "output_height": d.int(1, 3),
            "output_width": d.int(1, 3),
            "sampling_ratio": d.int(0, 3),
            "spatial_scale": d.choice(0.5, 1.0),
            "coordinate_transformation_mode": d.choice("half_pixel", "output_half_pixel"),
            "mode": d.choice("avg", "avg", "max"),
        }
    )
    return [x, rois, Whole(d.rng.integers(0, 2, 3))], given


@recipe("MaxRoiPool")
def max_roi(d: Draw) -> Drawn:
    x = d.array((2, 2, 6, 7), "float32")
    box = np.sort(d.rng.integers(0, 6, (3, 2, 2)), 1).reshape(3, 4)
    rois = np.concatenate([d.rng.integers(0, 2, (3, 1)), box], 1).astype("float32")
    return [x, rois], {"pooled_shape": [d.int(1, 3), d.int(1, 3)]} | d.maybe({"spatial_scale": 0.5})


@recipe("NonMaxSuppression")
def nms(d: Draw) -> Drawn:
    count = d.int(1, 8)
    corner = d.rng.uniform(0, 5, (2, count, 2))
    boxes = np.concatenate([corner, corner + d.rng.uniform(0.5, 4, (2, count, 2))], -1).astype("float32")
    scores = d.rng.random((2, 2, count)).astype("float32")
    rest = [
        Whole(d.choice(0, 1, 3, [2]), "int64") if d.chance(0.8) else None,
        Whole(d.choice(0.1, 0.5, [0.7]), "float32") if d.chance(0.8) else None,
        Whole(d.choice(0.2, [0.5]), "float32") if d.chance() else None,
    ]
    while rest and rest[-1] is None:
        rest.pop()
    return [boxes, scores, *rest], d.maybe({"center_point_box": d.int(0, 1)})


@recipe("RNN", "GRU", "LSTM")
def recurrent(d: Draw) -> Drawn:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.operator]
    way = d.choice("forward", "reverse", "bidirectional")
    n, t, b, i, h = (2 if way == "bidirectional" else 1), d.int(1, 4), d.int(1, 3), d.int(1, 4), d.int(1, 4)
    dtype = "float32"
    batch_first = d.has("layout") and d.chance(0.2)
    x = d.array((b, t, i) if batch_first else (t, b, i), dtype, low=-1, high=1)
    w, r = d.array((n, gates * h, i), dtype, low=-1, high=1), d.array((n, gates * h, h), dtype, low=-1, high=1)
    state = (b, n, h) if batch_first else (n, b, h)
    rest = [
        d.array((n, 2 * gates * h), dtype, low=-1, high=1) if d.chance() else None,
        Whole(d.rng.integers(1, t + 1, b), "int32") if d.chance(0.4) else None,
        d.array(state, dtype, low=-1, high=1) if d.chance() else None,
    ]
    if d.operator == "LSTM":
        rest += [
            d.array(state, dtype, low=-1, high=1) if d.chance() else None,
            d.array((n, 3 * h), dtype, low=-1, high=1) if d.chance(0.4) else None,
        ]
    while rest and rest[-1] is None:
        rest.pop()
    given = {"hidden_size": h, "direction": way, "#": d.int(1, 3 if d.operator == "LSTM" else 2)}
    if batch_first:
        given["layout"] = 1
    if d.chance(0.3):
        given["clip"] = 0.5
    if d.operator == "GRU" and d.chance():
        given["linear_before_reset"] = 1
    if d.operator == "LSTM" and d.chance(0.2):
        given["input_forget"] = 1
    if d.chance(0.4):
        names = {"RNN": 1, "GRU": 2, "LSTM": 3}[d.operator] * n
        made = [
            d.choice(
                "Tanh",
                "Sigmoid",
                "Relu",
                "HardSigmoid",
                "Softsign",
                "Softplus",
                "LeakyRelu",
                "Elu",
                "ScaledTanh",
                "Affine",
                "ThresholdedRelu",
            )
            for _ in range(names)
        ]
        given["activations"] = made
        if d.chance(0.4) or {"ScaledTanh", "Affine", "ThresholdedRelu"} & set(made):
            given["activation_alpha"] = [0.3] * names
            given["activation_beta"] = [0.6] * names
    return [x, w, r, *rest], given


@recipe("STFT")
def stft(d: Draw) -> Drawn:
    n = d.int(8, 16)
    length = d.int(3, 6)
    x = d.array((2, n, 1) if d.chance(0.8) else (2, n), "float32")
    way = d.int(0, 2)
    rest = [np.abs(d.array((length,), "float32")) if way != 1 else None, Whole(length) if way != 0 else None]
    while rest and rest[-1] is None:
        rest.pop()
    return [x, Whole(d.int(1, 3)), *rest], d.maybe({"onesided": d.int(0, 1)})


@recipe("DFT")
def dft(d: Draw) -> Drawn:
    shape = (*[d.int(2, 5) for _ in range(d.int(2, 3))], d.int(1, 2))
    onesided = shape[-1] == 1 and d.chance(0.4)
    given = {"onesided": 1} if onesided else d.maybe({"inverse": d.int(0, 1)})
    axis = d.int(0, len(shape) - 2) - (len(shape) if d.chance() else 0)
    length = Whole(d.int(2, 6)) if d.chance(0.4) else None
    if d.since < 20:
        return [d.array(shape, "float32"), *([length] if length else [])], given | {"axis": axis}
    return [d.array(shape, "float32"), *([length, Whole(axis)] if d.chance(0.8) else [length] if length else [])], given


@recipe("Col2Im")
def col2im(d: Draw) -> Drawn:
    rank = d.int(1, 3)
    image, block = [d.int(3, 6) for _ in range(rank)], [d.int(1, 3) for _ in range(rank)]
    strides, pads, dil = [d.int(1, 2) for _ in range(rank)], [d.int(0, 1) for _ in range(2 * rank)], [1] * rank
    count = [(image[i] + pads[i] + pads[rank + i] - dil[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    x = d.array((2, 2 * int(np.prod(block)), int(np.prod(count))))
    return [x, Whole(image), Whole(block)], {"strides": strides, "pads": pads} | (
        {"dilations": dil} if d.chance() else {}
    )


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d: Draw) -> Drawn:
    return [Whole(d.int(2, 9), d.choice("int64", "int32"))], d.maybe(
        {"periodic": d.int(0, 1), "output_datatype": d.choice(1, 11)}
    )


@recipe("CenterCropPad")
def crop(d: Draw) -> Drawn:
    shape = tuple(s or 1 for s in d.shape(1, 3))
    axes = d.axes(len(shape), 1) if d.chance() else None
    return [d.array(shape), Whole([d.int(1, 7) for _ in (axes or shape)])], {"axes": axes} if axes else {}


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d: Draw) -> Drawn:
    n, c = d.int(1, 3), d.int(2, 4)
    rest = d.shape(0, 2)
    x = d.array((n, c, *rest), "float32")
    labels = Whole(d.rng.integers(0, c, (n, *rest)), d.choice("int64", "int32"))
    weight = [np.abs(d.array((c,), "float32")) + np.float32(0.1)] if d.chance() else []
    return [x, labels, *weight], d.maybe(
        {"reduction": d.choice("none", "sum", "mean"), "ignore_index": d.int(0, c - 1)}, 0.6
    )


@recipe("Det")
def det(d: Draw) -> Drawn:
    n = d.int(1, 4)
    return [d.array((*d.shape(0, 2), n, n))], {}


@recipe("MaxUnpool")
def unpool(d: Draw) -> Drawn:
    x = d.array((1, 1, 2, 2), "float32")
    index = Whole(np.asarray([[[[5, 7], [13, 15]]]]))
    return [x, index], {"kernel_shape": [2, 2], "strides": [2, 2]}


@recipe("Swish")
def swish(d: Draw) -> Drawn:
    return [d.array(d.shape())], d.maybe({"alpha": 0.5})


@recipe("TensorScatter")
def tensor_scatter(d: Draw) -> Drawn:
    b, m, s, k = d.int(1, 3), d.int(4, 6), d.int(1, 3), d.int(1, 3)
    index = d.rng.integers(0, m - s + 1, b)
    return [d.array((b, 2, m, k)), d.array((b, 2, s, k)), Whole(index)], d.maybe(
        {"mode": d.choice("linear", "circular")}
    )


@recipe("RotaryEmbedding")
def rotary(d: Draw) -> Drawn:
    b, h, s, k = d.int(1, 2), d.int(1, 3), d.int(1, 4), 2 * d.int(1, 4)
    part = d.choice(0, 0, 2 * d.int(1, k // 2))
    half = (part or k) // 2
    given = d.maybe({"interleaved": d.int(0, 1)}) | ({"rotary_embedding_dim": part} if part else {})
    if d.chance():
        tables = [d.array((9, half)), d.array((9, half)), Whole(d.rng.integers(0, 9, (b, s)))]
    else:
        tables = [d.array((b, s, half)), d.array((b, s, half))]
    x = d.array((b, h, s, k)) if d.chance() else d.array((b, s, h * k))
    return [x, *tables], given | ({"num_heads": h} if x.ndim == 3 or part else {})


@recipe("Attention")
def attention(d: Draw) -> Drawn:
    b, h, g, s, t, k, v = d.int(1, 2), d.int(1, 2), d.choice(1, 2), d.int(1, 4), d.int(1, 5), d.int(1, 4), d.int(1, 4)
    flat = d.chance(0.3)
    q, kk, vv = (
        d.array((b, h * g, s, k), low=-1, high=1),
        d.array((b, h, t, k), low=-1, high=1),
        d.array((b, h, t, v), index=2, low=-1, high=1),
    )
    given = d.maybe({"is_causal": 1, "scale": 0.7, "softcap": 2.0})
    if flat:
        q, kk, vv = (a.transpose(0, 2, 1, 3).reshape(b, a.shape[2], -1) for a in (q, kk, vv))
        given |= {"q_num_heads": h * g, "kv_num_heads": h}
    past = d.chance(0.3)
    p = d.int(1, 3) if past else 0
    total = t + p
    mask = None
    if d.chance(0.5):
        dims = d.choice((s, total), (1, s, total), (b, 1, s, total), (b, h * g, s, total))[-4:]
        mask = (
            d.rng.integers(0, 2, dims).astype(bool) | (np.arange(total) == 0)
            if d.chance()
            else d.array(dims, d.bound.get("T1", "float32"))
        )
    rest = [mask]
    if past:
        rest += [
            d.array((b, h, p, k), d.bound["T1"], low=-1, high=1),
            d.array((b, h, p, v), d.bound.get("T2", d.bound["T1"]), low=-1, high=1),
        ]
    while rest and rest[-1] is None:
        rest.pop()
    return [q, kk, vv, *rest], given | {"#": 3 if past else 1}


@recipe("BitCast")
def bitcast(d: Draw) -> Drawn:
    x = d.array(d.shape())
    kinds = {
        1: ["uint8", "int8"],
        2: ["float16", "int16", "uint16", "bfloat16"],
        4: ["float32", "int32", "uint32"],
        8: ["float64", "int64", "uint64"],
    }
    return [x], {"to": helper.np_dtype_to_tensor_dtype(np_dtype(d.random.choice(kinds[x.dtype.itemsize])))}
