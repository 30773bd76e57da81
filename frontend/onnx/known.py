"""Values that are known while a model is imported: constants, and the sizes that shape subgraphs compute.

An array of known contents holds numbers, or dimensions (dtype object), for which NumPy's own functions give dimensions
again: a gather, concatenation or product of sizes is one of arrays. Where the answer depends on a symbol (is n equal to
4?) nothing is known and the node is imported as any other. What is large stays a constant of the program, which is
folded when it is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.dtypes import array_dtype, is_integer, is_numpy
from weft.frontend.emitter import UNFIT, Unsupported
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.values import Value, is_sizes, known_value
from weft.ir.dim import DimExpr, maximum, minimum, prove_equal, prove_le, prove_lt, prove_nonnegative
from weft.ir.types import TensorType

__all__ = ["evaluate_known"]

_MOST = 4096  # elements of a known value


class _Unknown(Exception):
    """The answer depends on the values of symbols."""


def evaluate_known(node: OnnxNode) -> list[Value] | None:
    """What the outputs of a node are, where they can be said now."""
    operator = node.operator
    if node.proto.domain not in ("", "ai.onnx"):
        return None
    try:
        if operator in ("Shape", "Size"):
            return _of_type(node, operator)
        if operator == "Constant":
            return [known_value(np.asarray(_constant(node)))]
        if operator == "CastLike":
            return _cast_like(node)
        values = node.inputs
        if not values or any(value.known is None and value.expr is not None for value in values):
            return None
        if any(value.items is not None for value in values):
            return None
        arrays = [value.known for value in values]
        if sum(array.size for array in arrays if array is not None) > _MOST:
            return None
        if any(array is not None and is_sizes(array) for array in arrays):
            rule = _RULES.get(operator)
            return None if rule is None else [_sized(rule(node, *arrays), values)]
        return _numbers(node, arrays)
    except (_Unknown, Unsupported, *UNFIT):
        return None


def _sized(result: Any, values: Sequence[Value]) -> Value:
    if isinstance(result, Value):
        return result
    array = np.asarray(result)
    if array.dtype != object:
        return known_value(array)
    return known_value(array, next((v.dtype for v in values if v.known is not None and is_sizes(v.known)), ""))


def _of_type(node: OnnxNode, operator: str) -> list[Value] | None:
    """Shape and Size: from the type of their input."""
    value = node.inputs[0]
    if value.known is not None:
        dims: tuple[Any, ...] | None = value.known.shape
    else:
        ty = node.type(node.need(0))
        dims = ty.dims if isinstance(ty, TensorType) else None
    if dims is None:
        return None
    if operator == "Size":
        return [known_value(_objects(math.prod(dims)))]
    start, end = node.attr("start", 0), node.attr("end")
    return [known_value(_objects(list(dims[slice(start, end)])))]


def _cast_like(node: OnnxNode) -> list[Value] | None:
    """Numbers in the dtype of a value, whose contents do not matter."""
    numbers, dtype = node.known(0), node.dtype(node.need(1))
    if numbers is None or is_sizes(numbers) or numbers.dtype.kind not in "biuf" or numbers.size > _MOST:
        return None
    if dtype in _FLOATS or (is_integer(dtype) and is_numpy(dtype) and numbers.dtype.kind != "f"):
        with np.errstate(all="ignore"):
            return [known_value(numbers.astype(array_dtype(dtype)))]
    return None


_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _objects(values: Any) -> np.ndarray:
    if not isinstance(values, list):
        made = np.empty((), object)
        made[()] = values
        return made
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _constant(node: OnnxNode) -> Any:
    for name, dtype in (
        ("value", None), ("sparse_value", None), ("value_float", "float32"), ("value_floats", "float32"),
        ("value_int", "int64"), ("value_ints", "int64"),
    ):
        found = node.attr(name)
        if found is not None:
            array = np.asarray(found, dtype)
            if array.dtype == object:
                raise Unsupported("a constant of strings")
            return array
    raise Unsupported("a constant of strings")


# Numbers -------------------------------------------------------------------------------------------------------------

_TRUSTED = frozenset(
    # element by element
    "Abs Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Clip Div Equal Erf Exp Floor Greater"
    " GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Log Max Mean Min Mod Mul Neg Not Or Pow Reciprocal Relu"
    " Round Sigmoid Sign Sqrt Sub Sum Tanh Where Xor Cos Sin"
    # along axes
    " ArgMax ArgMin CumSum MatMul ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    " TopK"
    # of other shapes
    " Compress Concat Expand EyeLike Flatten Gather GatherElements GatherND NonZero Pad Range Reshape ScatterElements"
    " ScatterND Slice Split Squeeze Tile Transpose Trilu Unsqueeze ConstantOfShape".split()
)
"""Operators that sizes and decisions are computed with, whose references give what the definition says. Others have
references that are wrong in places (a pool of constants, layers of an LSTM), and are computed by the program itself."""
_GROWING = frozenset(("ConstantOfShape", "Expand", "Tile", "Range", "Pad", "EyeLike"))
"""Operators whose results may be greater than their inputs by any factor."""


def _numbers(node: OnnxNode, arrays: Sequence[np.ndarray | None]) -> list[Value] | None:
    """An operator on numbers, by the reference implementation of the format."""
    if any(array is not None and (array.dtype == object or array.dtype.kind in "USO") for array in arrays):
        return None
    if node.operator not in _TRUSTED:
        return None
    if node.operator in _GROWING and not _is_small(node.operator, arrays):
        return None
    onnx = node.importer.onnx
    proto = node.importer.resolved_node(node.proto)
    try:
        helper = onnx.helper
        used = [(name, array) for name, array in zip(proto.input, arrays, strict=True) if name and array is not None]
        made = helper.make_model(
            helper.make_graph(
                [proto], "known", [helper.make_tensor_value_info(name, 0, None) for name in dict(used)],
                [helper.make_tensor_value_info(name, 0, None) for name in proto.output if name],
            ),
            opset_imports=[helper.make_opsetid("", node.version)], ir_version=10,
        )
        with np.errstate(all="ignore"):
            results = iter(onnx.reference.ReferenceEvaluator(made).run(None, dict(used)))
    except Exception:
        return None
    found = [next(results) if name else None for name in proto.output]
    if any(result is not None and not isinstance(result, (np.ndarray, np.generic)) for result in found):
        return None
    return [known_value(np.asarray(result)) if result is not None else Value() for result in found]


def _is_small(operator: str, arrays: Sequence[np.ndarray | None]) -> bool:
    given = [array for array in arrays if array is not None]
    if operator == "ConstantOfShape":
        return math.prod(int(size) for size in given[0].reshape(-1)) <= _MOST
    if operator == "Expand" and len(given) == 2:
        return max(given[0].size, 1) * math.prod(int(size) for size in given[1].reshape(-1)) <= _MOST
    if operator == "Range" and len(given) == 3 and given[2].item() != 0:
        return abs((float(given[1].item()) - float(given[0].item())) / float(given[2].item())) <= _MOST
    if operator == "Tile" and len(given) == 2:
        return max(given[0].size, 1) * math.prod(int(size) for size in given[1].reshape(-1)) <= _MOST
    return False


# Sizes ---------------------------------------------------------------------------------------------------------------


def _decided(answer: bool | None) -> bool:
    if answer is None:
        raise _Unknown
    return answer


def _whole(array: np.ndarray | None) -> np.ndarray:
    if array is None:
        raise _Unknown
    if not is_sizes(array) and array.dtype.kind not in "iub":
        raise _Unknown
    return array


def _plain(array: np.ndarray | None) -> list[int]:
    if array is None or is_sizes(array):
        raise _Unknown
    return [int(item) for item in array.reshape(-1)]


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def rule(node: OnnxNode, *arrays: np.ndarray | None) -> np.ndarray:
        given = [_whole(array).astype(object) for array in arrays]
        return np.asarray(np.frompyfunc(function, len(given), 1)(*given))

    return rule


def _compare(function: Callable[[Any, Any], bool | None]) -> Callable[..., Any]:
    rule = _elementwise(lambda a, b: _decided(function(a, b)))
    return lambda node, *arrays: rule(node, *arrays).astype(bool)


def _divided(a: Any, b: Any) -> Any:
    """The quotient towards zero, which is that towards below where nothing is negative."""
    if not isinstance(b, DimExpr) and b == 0:
        raise _Unknown
    if prove_nonnegative(a) is not True or prove_nonnegative(b) is not True:
        if isinstance(a, DimExpr) or isinstance(b, DimExpr):
            raise _Unknown
        return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    return a // b


def _remainder(a: Any, b: Any) -> Any:
    if not isinstance(b, DimExpr) and b == 0:
        raise _Unknown
    return a % b


def _chosen(c: Any, a: Any, b: Any) -> Any:
    return a if c else b


def _less(a: Any, b: Any) -> bool | None:
    return prove_lt(a, b)


def _several(function: Callable[..., Any]) -> Callable[..., Any]:
    def rule(node: OnnxNode, *arrays: np.ndarray | None) -> np.ndarray:
        result = _whole(arrays[0]).astype(object)
        for array in arrays[1:]:
            result = np.asarray(np.frompyfunc(function, 2, 1)(result, _whole(array).astype(object)))
        return result

    return rule


def _cast(node: OnnxNode, x: np.ndarray) -> Value:
    dtype = element_dtype(node.attr("to"))
    if dtype not in ("int64", "int32"):
        raise _Unknown
    return known_value(x, dtype)


def _slice(node: OnnxNode, x: np.ndarray, *rest: np.ndarray | None) -> np.ndarray:
    if not rest:
        starts, ends, axes = node.attr("starts"), node.attr("ends"), node.attr("axes")
        steps = None
    else:
        filled = [*rest, None, None, None][:4]
        starts, ends = _plain(filled[0]), _plain(filled[1])
        axes = _plain(filled[2]) if filled[2] is not None else None
        steps = _plain(filled[3]) if filled[3] is not None else None
    index = [slice(None)] * x.ndim
    for position, axis in enumerate(axes if axes is not None else range(len(starts))):
        index[axis] = slice(_bound(starts[position]), _bound(ends[position]), steps[position] if steps else None)
    return x[tuple(index)]


def _bound(value: int) -> int | None:
    return None if value <= -(2**31) else value


def _axes(node: OnnxNode, array: np.ndarray | None) -> tuple[int, ...] | None:
    if node.given("axes"):
        return tuple(node.attr("axes"))
    return None if array is None else tuple(_plain(array))


def _squeeze(node: OnnxNode, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    return np.squeeze(x, _axes(node, axes))


def _unsqueeze(node: OnnxNode, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    return np.expand_dims(x, _axes(node, axes) or ())


def _reshape(node: OnnxNode, x: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray:
    sizes = _plain(shape) if shape is not None else node.attr("shape")
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(sizes)])


def _reduced(function: Callable[[Any, Any], Any], start: Any) -> Callable[..., Any]:
    def rule(node: OnnxNode, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
        along = _axes(node, axes)
        if x.ndim > 1 or (along not in (None, (0,), (-1,))) or not x.size:
            raise _Unknown
        result = x.reshape(-1)[0] if start is None else start
        for item in x.reshape(-1)[1 if start is None else 0 :]:
            result = function(result, item)
        made = _objects(result)
        return made.reshape((1,) * x.ndim) if node.attr("keepdims", 1) else made

    return rule


_RULES: dict[str, Callable[..., Any]] = {
    "Identity": lambda n, x: x,
    "Cast": _cast,
    "Gather": lambda n, x, i: np.take(x, np.asarray(_plain(i)).reshape(np.shape(i)), n.attr("axis", 0)),
    "Concat": lambda n, *xs: np.concatenate([_whole(x).astype(object) for x in xs], n.attr("axis", 0)),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Flatten": lambda n, x: x.reshape(1, -1) if x.ndim < 2 else x.reshape(x.shape[0], -1),
    "Transpose": lambda n, x: np.transpose(x, n.attr("perm")),
    "Add": _elementwise(lambda a, b: a + b),
    "Sub": _elementwise(lambda a, b: a - b),
    "Mul": _elementwise(lambda a, b: a * b),
    "Div": _elementwise(_divided),
    "Mod": _elementwise(_remainder),
    "Neg": _elementwise(lambda a: -a),
    "Min": _several(minimum),
    "Max": _several(maximum),
    "Sum": _several(lambda a, b: a + b),
    "Equal": _compare(prove_equal),
    "Less": _compare(_less),
    "Greater": _compare(lambda a, b: _less(b, a)),
    "LessOrEqual": _compare(prove_le),
    "GreaterOrEqual": _compare(lambda a, b: prove_le(b, a)),
    "Where": _elementwise(_chosen),
    "ReduceProd": _reduced(lambda a, b: a * b, 1),
    "ReduceSum": _reduced(lambda a, b: a + b, 0),
    "ReduceMax": _reduced(maximum, None),
    "ReduceMin": _reduced(minimum, None),
}
"""Operators on sizes: arrays of dimensions in and out."""
