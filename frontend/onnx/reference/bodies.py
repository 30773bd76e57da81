"""References of operators that the package of ONNX lacks, or has wrong.

    Loop               as there; without a condition it goes on, without steps it has no rows, and rows are stacked
    Unique             as there; in the order of occurrence also of slices and of tensors
    ZipMap             rows of scores -> a list of mappings from labels to scores
    CategoryMapper     strings <-> integers
    CastMap            a mapping from places to values -> one row
    SVMClassifier      as there, with the probabilities of several classes as LIBSVM has them

Those from ZipMap on are of the domain ai.onnx.ml. Source: the definitions of the operators; Wu, Lin and Weng 2004
(probability estimates by pairwise coupling).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from weft.frontend.extras import require

__all__ = ["coupled_probabilities", "own_bodies"]


def distinct(x: np.ndarray, axis: int | None = None, sorted: int = 1) -> tuple[np.ndarray, ...]:
    """The distinct elements or slices, where each is first, which each element is, and how often each occurs."""
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse.reshape(-1)]
    return values, first.astype("int64"), inverse.reshape(-1).astype("int64"), counts.astype("int64")


def no_rows(item: Any) -> np.ndarray:
    """What a loop without steps has collected of a result of its body."""
    helper = require("onnx.helper", "onnx")
    tensor = item.type.tensor_type
    return np.zeros(
        (0, *(dim.dim_value for dim in tensor.shape.dim)), helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    )


def zip_map(x: np.ndarray, classlabels_int64s: Any = None, classlabels_strings: Any = None) -> list[dict[Any, float]]:
    """A mapping from labels to scores for each row."""
    labels = classlabels_int64s or classlabels_strings
    return [dict(zip(labels, row.tolist(), strict=True)) for row in np.atleast_2d(x)]


def map_categories(
    x: np.ndarray, cats_int64s: Any, cats_strings: Any, default_int64: int = -1, default_string: str = "_Unused"
) -> np.ndarray:
    """The number of each string, or the string of each number."""
    if x.dtype.kind in "iu":
        texts = dict(zip(cats_int64s, cats_strings, strict=True))
        return np.asarray([texts.get(int(item), default_string) for item in x.flat], object).reshape(x.shape)
    numbers = dict(zip(cats_strings, cats_int64s, strict=True))
    return np.asarray([numbers.get(str(item), default_int64) for item in x.flat], "int64").reshape(x.shape)


def cast_map(x: Any, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> np.ndarray:
    """The values of a mapping in the order of its keys; with zeros between them where the form is sparse."""
    dtype = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": object}[cast_to]
    if map_form == "DENSE":
        return np.asarray([[x[key] for key in sorted(x)]]).astype(dtype)
    made = np.full((1, max_map), "" if dtype is object else 0, dtype)
    for key, value in x.items():
        made[0, key] = value
    return made


def coupled_probabilities(pairs: np.ndarray) -> np.ndarray:
    """The probabilities of k classes from those of one in each pair, by LIBSVM's iteration and tolerance.

    >>> coupled_probabilities(np.array([[0, 0.75], [0.25, 0]])).round(2).tolist()
    [0.75, 0.25]
    """
    count = len(pairs)
    products = -pairs.T * pairs
    np.fill_diagonal(products, 0)
    np.fill_diagonal(products, (pairs**2).sum(0) - np.diagonal(pairs) ** 2)
    found = np.full(count, 1.0 / count)
    for _ in range(max(100, count)):
        slopes = products @ found
        total = found @ slopes
        if np.abs(slopes - total).max() < 0.005 / count:
            break
        for at in range(count):
            step = (total - slopes[at]) / products[at, at]
            found[at] += step
            total = (total + step * (step * products[at, at] + 2 * slopes[at])) / (1 + step) ** 2
            slopes = (slopes + step * products[at]) / (1 + step)
            found /= 1 + step
    return found


@cache
def own_bodies() -> list[Any]:
    """The operators for the evaluator of the package."""
    base = require("onnx.reference.op_run", "onnx").OpRun
    loop = require("onnx.reference.ops.op_loop", "onnx").Loop
    machine = require("onnx.reference.ops.aionnxml.op_svm_classifier", "onnx").SVMClassifier

    class Loop(loop):
        def __init__(self, node: Any, parameters: Any) -> None:
            super().__init__(node, parameters)
            body = self._run_body

            def run_body(*args: Any, **options: Any) -> list[Any]:
                results = list(body(*args, **options))
                first = len(results) - self.K
                return [*results[:first], *(np.expand_dims(row, 0) for row in results[first:])]

            self._run_body = run_body

        def _run(self, times: Any, going: Any, *values: Any, **options: Any) -> Any:
            going = np.asarray(True) if going is None else going
            if not going or (times is not None and times < 1):
                return (*values[: self.N], *map(no_rows, self.body.proto_.output[1 + self.N :]))
            return super()._run(times, going, *values, **options)

    class Unique(base):
        def _run(self, x: Any, **options: Any) -> Any:
            return distinct(x, **options)[: len(self.onnx_node.output)]

    class ZipMap(base):
        op_domain = "ai.onnx.ml"

        def _run(self, x: Any, **options: Any) -> Any:
            return (zip_map(x, **options),)

    class CategoryMapper(base):
        op_domain = "ai.onnx.ml"

        def _run(self, x: Any, **options: Any) -> Any:
            return (map_categories(x, **options),)

    class CastMap(base):
        op_domain = "ai.onnx.ml"

        def _run(self, x: Any, **options: Any) -> Any:
            return (cast_map(x, **options),)

    class SVMClassifier(machine):
        op_domain = "ai.onnx.ml"

        def _probabilities(self, scores: np.ndarray, class_count_: int) -> np.ndarray:
            machine = self._svm.atts
            pairs = np.zeros((class_count_, class_count_))
            upper = np.triu_indices(class_count_, 1)
            chance = 1 / (1 + np.exp(scores.astype("float64") * machine.prob_a + machine.prob_b))
            pairs[upper] = np.clip(chance, 1e-7, 1 - 1e-7)
            pairs.T[upper] = 1 - pairs[upper]
            return coupled_probabilities(pairs)

    return [Loop, Unique, ZipMap, CategoryMapper, CastMap, SVMClassifier]
