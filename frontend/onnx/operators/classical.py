"""Operators of classical models (domain ai.onnx.ml): scalers, encoders, linear models and ensembles of trees.

An ensemble is walked for all rows and trees at once: a step takes each from its node to the next, and as many steps are
taken as the deepest tree has levels; a leaf leads to itself. Labels that are strings are looked up in Python, and what
a row refuses is run by the reference. Source: the definitions of the operators; where onnxruntime and the reference
differ for two classes, the reference runs the node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.dtypes import is_float
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.frontend.onnx.values import Value, run_value
from weft.ir.graph import Constant, Expr
from weft.script import relax as R
from weft.support.records import dataclass

_ML = "ai.onnx.ml"
_DEEPEST = 64  # levels of a tree


def classical(operator: str, function: Any) -> None:
    """A row of the domain."""
    row(operator, function, domain=_ML)


def _floats(n: OnnxNode, x: Expr) -> Expr:
    """The values as they are computed with: float64 stays, all else is float32."""
    return x if n.dtype(x) in ("float32", "float64") else R.astype(x, "float32")


def _listed(n: OnnxNode, name: str, dtype: Any) -> np.ndarray:
    """An attribute that is a list of numbers, or a tensor in its place."""
    tensor = n.attr(f"{name}_as_tensor")
    return np.asarray(n.attr(name) if tensor is None else tensor).astype(dtype).reshape(-1)


def _matrix(n: OnnxNode, x: Expr) -> Expr:
    """The input as rows; a vector is one row."""
    rank = n.rank(x)
    if rank not in (1, 2):
        raise Unsupported(f"features of rank {rank}")
    return _floats(n, x if rank == 2 else R.expand_dims(x, [0]))


# Features -------------------------------------------------------------------------------------------------------------


def scaled(n: OnnxNode, x: Expr) -> Expr:
    """(x - offset) * scale."""
    x = _floats(n, x)
    dtype = n.dtype(x)
    offset, scale = (Constant(np.asarray(n.attr(name), dtype)) for name in ("offset", "scale"))
    return R.astype(R.multiply(R.subtract(x, offset), scale), "float32")


def normalized(n: OnnxNode, x: Expr) -> Expr:
    """Rows over their norm: the sum of absolute values, the square root of that of squares, or the greatest."""
    if n.rank(x) != 2:
        raise Unsupported(f"rows of rank {n.rank(x)}")
    x = n.emit(_floats(n, x), "rows")
    norm = {
        "MAX": lambda: R.max(R.abs(x), [1], True),
        "L1": lambda: R.sum(R.abs(x), [1], True),
        "L2": lambda: R.sqrt(R.sum(R.square(x), [1], True)),
    }[n.attr("norm", "MAX")]()
    return R.astype(R.divide(x, R.maximum(norm, 1e-30)), "float32")


def extracted(n: OnnxNode, x: Expr, places: Expr) -> Expr:
    """Some of the features, by their places."""
    taken = R.take(x, R.reshape(places, (-1,)), n.rank(x) - 1)
    return taken if n.rank(x) > 1 else R.expand_dims(taken, [0])


def imputed(n: OnnxNode, x: Expr) -> Expr:
    """Values in place of those that are missing, one for each feature or for all."""
    kind = "float" if is_float(n.dtype(x)) else "int64"
    values, missing = n.attr(f"imputed_value_{kind}s"), n.attr(f"replaced_value_{kind}", 0)
    if not values:
        raise Unsupported("values of another kind than the features")
    gone = R.isnan(x) if missing != missing else R.equal(x, Constant(np.asarray(missing, n.dtype(x))))
    return R.where(gone, Constant(np.asarray(values, n.dtype(x))), x)


def one_hot(n: OnnxNode, x: Expr) -> Expr:
    """One for the category of each value, zero for the others and for values of no category."""
    categories = n.attr("cats_int64s")
    if not categories or not n.attr("zeros", 1):
        raise Unsupported("categories that are strings, or values of no category refused")
    at = R.equal(R.expand_dims(x, [n.rank(x)]), Constant(np.asarray(categories, n.dtype(x))))
    return R.astype(at, "float32")


def encoded(n: OnnxNode, x: Expr) -> Expr:
    """The value that belongs to each key, numbers for numbers."""
    kinds = ("int64", "float")
    keys = next((n.attr(f"keys_{kind}s") for kind in kinds if n.given(f"keys_{kind}s")), None)
    kind = next((kind for kind in kinds if n.given(f"values_{kind}s")), None)
    if not keys or kind is None:
        raise Unsupported("keys or values that are strings or tensors")
    told = dict(zip(keys, n.attr(f"values_{kind}s"), strict=True))
    if any(key != key for key in told):
        raise Unsupported("a key that is nan")
    order = sorted(told)
    dtype = "int64" if kind == "int64" else "float32"
    values = Constant(np.asarray([told[key] for key in order], dtype))
    known = Constant(np.asarray(order, n.dtype(x)))
    place = n.emit(R.minimum(R.searchsorted(known, x), R.const(len(order) - 1, "int64")), "place")
    default = n.attr(f"default_{kind}", -1 if kind == "int64" else -0.0)
    found = R.equal(R.take(known, place, 0), x)
    return R.where(found, R.take(values, place, 0), R.full((), Constant(np.asarray(default, dtype)), dtype))


classical("Scaler", scaled)
classical("Normalizer", normalized)
classical("Binarizer", lambda n, x: R.astype(R.greater(x, float(n.attr("threshold", 0.0))), n.dtype(x)))
classical("ArrayFeatureExtractor", extracted)
classical("Imputer", imputed)
classical("OneHotEncoder", one_hot)
classical("LabelEncoder", encoded)

# Scores and labels ----------------------------------------------------------------------------------------------------

_TRANSFORMS: dict[str, Callable[[Expr], Expr]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": lambda scores: R.sigmoid(scores),
    "SOFTMAX": lambda scores: R.nn.softmax(scores, 1),
}


def _transformed(n: OnnxNode, scores: Expr) -> Expr:
    name = n.attr("post_transform", "NONE")
    if name not in _TRANSFORMS:
        raise Unsupported(f"the transform {name}")
    return n.emit(R.astype(_TRANSFORMS[name](n.emit(scores, "scores")), "float32"), "scores")


def _classified(n: OnnxNode, scores: Expr, ints: str, strings: str) -> Any:
    """(labels, scores): the label of the greatest score, the first of equal ones."""
    index = n.emit(R.argmax(scores, 1), "index")
    numbers, texts = n.attr(ints), n.attr(strings)
    if numbers:
        return R.take(Constant(np.asarray(numbers, "int64")), index, 0), scores
    return _texts(n, index, texts), scores


def _texts(n: OnnxNode, index: Expr, texts: list[str]) -> Value:
    """The strings at some places: a node that looks them up, which runs in Python."""
    name, made = f"{n.proto.output[0]}/index", n.proto.output[0]
    n.importer.names.current[name] = run_value(index)
    helper, keys = n.importer.onnx.helper, list(range(len(texts)))
    lookup = helper.make_node("LabelEncoder", [name], [made], domain=_ML, keys_int64s=keys, values_strings=texts)
    n.importer.nodes([lookup])
    return n.importer.names.value(made)


def linear_regressor(n: OnnxNode, x: Expr) -> Expr:
    """Products of the features with the coefficients of each target."""
    return _transformed(n, _products(n, x, int(n.attr("targets", 1))))


def _products(n: OnnxNode, x: Expr, count: int) -> Expr:
    x = _matrix(n, x)
    dtype = n.dtype(x)
    weights = np.asarray(n.attr("coefficients"), dtype).reshape(count, -1).T
    scores = R.matmul(x, Constant(np.ascontiguousarray(weights)))
    intercepts = n.attr("intercepts")
    return R.add(scores, Constant(np.asarray(intercepts, dtype))) if intercepts else scores


def linear_classifier(n: OnnxNode, x: Expr) -> Any:
    """Scores that are products, one for each class; one score for two classes counts for the second."""
    classes = len(n.attr("classlabels_ints") or n.attr("classlabels_strings") or [])
    count = len(n.attr("intercepts") or []) or len(n.attr("coefficients")) // n.dims(x, [n.rank(x) - 1])[0]
    if classes < 2 or count not in (1, classes) or (count == 1 and classes != 2):
        raise Unsupported(f"{count} scores for {classes} classes")
    scores = n.emit(_products(n, x, count), "scores")
    if count == 1:
        scores = R.concat([R.negative(scores), scores], 1)
    return _classified(n, _transformed(n, scores), "classlabels_ints", "classlabels_strings")


classical("LinearRegressor", linear_regressor)
classical("LinearClassifier", linear_classifier)

# Trees ----------------------------------------------------------------------------------------------------------------

_BRANCHES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "BRANCH_LEQ": lambda x, y: R.less_equal(x, y),
    "BRANCH_LT": lambda x, y: R.less(x, y),
    "BRANCH_GTE": lambda x, y: R.greater_equal(x, y),
    "BRANCH_GT": lambda x, y: R.greater(x, y),
    "BRANCH_EQ": lambda x, y: R.equal(x, y),
    "BRANCH_NEQ": lambda x, y: R.not_equal(x, y),
}


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees, by number: what each asks, and where each answer leads. A leaf leads to itself."""

    roots: np.ndarray
    features: np.ndarray
    values: np.ndarray
    then: np.ndarray
    otherwise: np.ndarray
    missing: np.ndarray
    branch: str
    depth: int
    numbers: dict[tuple[int, int], int]

    @staticmethod
    def of(n: OnnxNode) -> Forest:
        """The trees of a node's attributes."""
        trees, nodes = list(n.attr("nodes_treeids")), list(n.attr("nodes_nodeids"))
        numbers = {key: index for index, key in enumerate(zip(trees, nodes, strict=True))}
        modes = list(n.attr("nodes_modes"))
        branches = set(modes) - {"LEAF"}
        if len(branches) > 1 or not branches <= set(_BRANCHES):
            raise Unsupported(f"branches of the kinds {', '.join(sorted(branches))} in one ensemble")
        own = np.arange(len(modes))
        leads: list[np.ndarray] = []
        for name in ("nodes_truenodeids", "nodes_falsenodeids"):
            told = zip(own, trees, n.attr(name), modes, strict=True)
            leads.append(np.asarray([i if mode == "LEAF" else numbers[tree, to] for i, tree, to, mode in told]))
        roots = np.asarray([trees.index(tree) for tree in sorted(set(trees))])
        wide = "float64" if n.attr("nodes_values_as_tensor") is not None else "float32"
        missing = np.asarray(n.attr("nodes_missing_value_tracks_true") or [0] * len(modes), bool)
        features = np.where(np.asarray(modes) == "LEAF", 0, np.asarray(n.attr("nodes_featureids")))
        values = _listed(n, "nodes_values", wide)
        branch = next(iter(branches), "BRANCH_LEQ")
        then, otherwise = leads
        return Forest(roots, features, values, then, otherwise, missing, branch, _depth(roots, *leads), numbers)

    def leaves(self, n: OnnxNode, x: Expr) -> Expr:
        """The leaf that each row comes to in each tree, (rows, trees)."""
        x = n.emit(_matrix(n, x), "rows")
        dtype = n.dtype(x)
        rows = n.shape(x)[0]
        at: Expr = R.broadcast_to(Constant(self.roots.astype("int64")), (rows, len(self.roots)))
        for _ in range(self.depth):
            at = n.emit(at, "at")
            value = n.emit(R.gather_elements(x, R.take(Constant(self.features.astype("int64")), at, 0), 1), "value")
            answer = _BRANCHES[self.branch](value, R.take(Constant(self.values.astype(dtype)), at, 0))
            if self.missing.any():
                answer = R.logical_or(answer, R.logical_and(R.isnan(value), R.take(Constant(self.missing), at, 0)))
            then, otherwise = (Constant(leads.astype("int64")) for leads in (self.then, self.otherwise))
            at = R.where(answer, R.take(then, at, 0), R.take(otherwise, at, 0))
        return at

    def weights(self, n: OnnxNode, kind: str, columns: list[int], count: int) -> np.ndarray:
        """What each leaf adds to each score, (nodes, scores)."""
        made = np.zeros((len(self.features), count))
        told = zip(n.attr(f"{kind}_treeids"), n.attr(f"{kind}_nodeids"), columns, strict=True)
        for (tree, node, column), weight in zip(told, _listed(n, f"{kind}_weights", "float64"), strict=True):
            made[self.numbers[tree, node], column] += weight
        return made


def _depth(roots: np.ndarray, then: np.ndarray, otherwise: np.ndarray) -> int:
    """How many steps lead from the roots to the deepest leaf."""
    at, depth = set(roots.tolist()), 0
    while True:
        following = {int(leads[i]) for leads in (then, otherwise) for i in at} - {i for i in at if then[i] == i}
        if not following:
            return depth
        at, depth = following, depth + 1
        if depth > _DEEPEST:
            raise Unsupported(f"a tree deeper than {_DEEPEST}")


def _summed(n: OnnxNode, forest: Forest, x: Expr, weights: np.ndarray, dtype: str) -> Expr:
    """The sum over the trees of what the leaves add, and the base values."""
    scores = R.sum(R.take(Constant(weights.astype(dtype)), forest.leaves(n, x), 0), [1])
    tensor = n.attr("base_values_as_tensor")
    base = n.attr("base_values") if tensor is None else tensor.reshape(-1).tolist()
    return R.add(scores, Constant(np.asarray(base, dtype))) if base else scores


def tree_regressor(n: OnnxNode, x: Expr) -> Expr:
    """The sum or the mean over the trees."""
    forest, how = Forest.of(n), n.attr("aggregate_function", "SUM")
    if how not in ("SUM", "AVERAGE"):
        raise Unsupported(f"the aggregate {how}")
    weights = forest.weights(n, "target", list(n.attr("target_ids")), int(n.attr("n_targets")))
    if how == "AVERAGE":
        weights = weights / len(forest.roots)
    wide = n.dtype(x) if n.attr("target_weights_as_tensor") is not None else "float32"
    return _transformed(n, _summed(n, forest, x, weights, wide))


def tree_classifier(n: OnnxNode, x: Expr) -> Any:
    """Scores that are sums over the trees; where all leaves name one class, the score of the other of two follows."""
    forest, ids = Forest.of(n), list(n.attr("class_ids"))
    classes = len(n.attr("classlabels_int64s") or n.attr("classlabels_strings") or [])
    one, transform = len(set(ids)) == 1, n.attr("post_transform", "NONE")
    if classes < 2 or (one and classes != 2):
        raise Unsupported(f"scores of {len(set(ids))} among {classes} classes")
    weights = forest.weights(n, "class", [0] * len(ids) if one else ids, 1 if one else classes)
    if one and (transform not in ("NONE", "LOGISTIC") or (transform == "NONE" and (weights < 0).any())):
        raise Unsupported(f"one score for two classes, some of it negative, and the transform {transform}")
    scores = n.emit(_summed(n, forest, x, weights, "float32"), "scores")
    if one:
        other = R.subtract(R.const(1.0, "float32"), scores) if transform == "NONE" else R.negative(scores)
        scores = R.concat([other, scores], 1)
    return _classified(n, _transformed(n, scores), "classlabels_int64s", "classlabels_strings")


classical("TreeEnsembleRegressor", tree_regressor)
classical("TreeEnsembleClassifier", tree_classifier)
