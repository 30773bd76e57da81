"""Operators that sort, select, search, scan, gather and scatter, beside NumPy's, torch's and onnxruntime's.

A case is a weft expression over named arrays (`ARRAYS` says which there are) and the same as functions of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["ARRAYS", "CASES", "VALUES", "Case", "drawn"]

Arrays = dict[str, Any]
Formula = Callable[..., Any]
FLOATS, INTEGERS, NUMBERS, ALL = "f", "iu", "iuf", "iufb"
SORTED, SEGMENTS, BINS = 1000, 1000, 100


@dataclass(frozen=True)
class Case:
    """One operator; formulas take the arrays that the text names, torch's the module too."""

    text: str
    numpy: dict[str, Formula] = field(default_factory=dict[str, Formula])
    torch: Formula | None = None
    onnx: tuple[str, str, dict[str, Any]] | None = None
    """The operator, what it takes (in capitals: constants), attributes; `outputs` is how many there are."""
    kinds: str = NUMBERS
    """The kinds of dtypes that it is for, as NumPy's letters."""
    shapes: str = "all"
    """Whether it is for vectors or for matrices only."""

    @property
    def names(self) -> list[str]:
        """The arrays that it takes, in the order of the text."""
        return list(
            dict.fromkeys(word for word in re.findall(r"(?<=[( \[])\w+(?=[,)\]])", self.text) if word in ARRAYS)
        )


def drawn(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Random elements: normal floats, integers of the whole range."""
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return generator.integers(info.min, info.max, shape, dtype, endpoint=True)


def _rows(x: Any) -> Any:
    """A matrix of the elements: rows of 16 of a vector."""
    return x if x.ndim == 2 else x[: x.size // 4 * 4].reshape(-1, 4 if x.size < 1000 else 16)


def _pairs(x: Any) -> Any:
    """A matrix of the elements: rows of 8 bytes."""
    columns = max(8 // x.itemsize, 1)
    return x.reshape(-1)[: x.size // columns * columns].reshape(-1, columns)


def _places(random: Any, rows: int) -> Any:
    return random.permutation(rows).astype("int64")


ARRAYS: dict[str, Callable[[Any, Any, np.random.Generator], Any]] = {
    "x": lambda x, y, random: x,
    "y": lambda x, y, random: y,
    "i": lambda x, y, random: np.argsort(random.standard_normal(x.shape), -1),
    "j": lambda x, y, random: _places(random, x.shape[-1]),
    "s": lambda x, y, random: np.sort(np.resize(y.reshape(-1), SORTED)),
    "m": lambda x, y, random: random.integers(0, 2, x.shape).astype(bool),
    "g": lambda x, y, random: np.sort(random.integers(0, SEGMENTS, x.shape[:1])),
    "b": lambda x, y, random: random.integers(0, BINS, x.size),
    "r": lambda x, y, random: _rows(x),
    "q": lambda x, y, random: _rows(y),
    "k": lambda x, y, random: _places(random, len(_rows(x))),
    "kk": lambda x, y, random: _places(random, len(_rows(x)))[:, None],
    "h": lambda x, y, random: np.sort(random.integers(0, max(len(_rows(x)) // 8, 1), len(_rows(x)))),
    "bags": lambda x, y, random: random.integers(0, len(_rows(x)), (max(len(_rows(x)) // 8, 1), 8)),
    "p": lambda x, y, random: _pairs(x),
    "pp": lambda x, y, random: _pairs(y),
    "l": lambda x, y, random: _places(random, len(_pairs(x))),
    "ll": lambda x, y, random: _places(random, len(_pairs(x)))[:, None],
    "z": lambda x, y, random: np.zeros_like(x),
    "t": lambda x, y, random: np.resize(y.reshape(-1), 20).copy(),
}
"""How the arrays come from elements of a shape."""


def _put(x: Any, i: Any, y: Any) -> Any:
    """NumPy's scatter along the last axis."""
    out = x.copy()
    np.put_along_axis(out, i, y, -1)
    return out


def _at(ufunc: Any) -> Formula:
    """NumPy's scatter of rows, or of the elements of a vector, that are combined."""

    def scattered(x: Any, i: Any, y: Any) -> Any:
        out = x.copy()
        if x.ndim == 1 or i.ndim == 1 or i.shape[-1] == 1 != x.shape[-1]:
            ufunc.at(out, i.reshape(-1), y)
        else:
            ufunc.at(out, (np.arange(len(x))[:, None], i), y)
        return out

    return scattered


def _set_rows(x: Any, i: Any, y: Any) -> Any:
    out = x.copy()
    out[i.reshape(-1)] = y
    return out


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
_TORCH = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax", "mean": "mean"}


def _scatters() -> list[Case]:
    """Scatters with each reduction: of elements, of slices, along an axis, of segments."""
    cases = [
        Case(
            "scatter_elements(x, i, y, -1)",
            {"numpy": _put},
            lambda t, x, i, y: t.scatter(x, -1, i, y),
            ("ScatterElements", "x i y", {"axis": -1}),
            ALL,
        )
    ]
    for name, ufunc in _REDUCTIONS.items():
        other = _TORCH[name]
        cases += [
            Case(
                f'scatter_elements(x, i, y, -1, reduction="{name}")',
                {"numpy": _at(ufunc)},
                lambda t, x, i, y, other=other: t.scatter_reduce(x, -1, i, y, other),
                ("ScatterElements", "x i y", {"axis": -1, "reduction": name}),
            ),
            Case(
                f'scatter_nd(r, kk, q, reduction="{name}")',
                {"numpy": _at(ufunc)},
                None,
                ("ScatterND", "r kk q", {"reduction": name}),
            ),
        ]
    for name, other in _TORCH.items():
        ufunc = _REDUCTIONS.get(name)
        index = None if ufunc is None else {"numpy": lambda r, k, q, at=ufunc: _at(at)(r, k, q)}
        if other == "sum":
            rows: Formula = lambda t, r, k, q: t.index_add(r, 0, k, q)  # noqa: E731
        else:
            rows = lambda t, r, k, q, how=other: t.index_reduce(r, 0, k, q, how)  # noqa: E731
        cases += [
            Case(f'index_reduce(r, k, q, 0, "{other}")', index or {}, rows),
            Case(f'index_reduce(r, h, q, 0, "{other}")', index or {}, rows),
            Case(
                f'segment_reduce(x, g, (1000,), "{other}")',
                {"numpy": lambda x, g: np.bincount(g, x, 1000)} if other == "sum" else {},
                lambda t, x, g, how=other: t.zeros(1000, dtype=x.dtype).scatter_reduce(
                    0, g, x, how, include_self=False
                ),
                kinds=FLOATS if other == "mean" else NUMBERS,
                shapes="vectors",
            ),
        ]
    return [
        *cases,
        Case(
            "scatter_nd(r, kk, q)",
            {"numpy": _set_rows},
            lambda t, r, k, q: t.index_copy(r, 0, k[:, 0], q),
            ("ScatterND", "r kk q", {}),
            ALL,
        ),
        Case(
            "scatter_nd(p, ll, pp)",
            {"numpy": _set_rows},
            lambda t, p, k, q: t.index_copy(p, 0, k[:, 0], q),
            ("ScatterND", "p ll pp", {}),
            ALL,
        ),
        Case("index_put(r, [k], q)", {"numpy": _set_rows}, lambda t, r, k, q: t.index_put(r, (k,), q), None, ALL),
        Case("index_put(p, [l], pp)", {"numpy": _set_rows}, lambda t, r, k, q: t.index_put(r, (k,), q), None, ALL),
        Case(
            "index_put(x, [j], y)",
            {"numpy": _set_rows},
            lambda t, x, k, q: t.index_put(x, (k,), q),
            None,
            ALL,
            "vectors",
        ),
        Case(
            "index_put(x, [j], y, accumulate=True)",
            {"numpy": _at(np.add)},
            lambda t, x, k, q: t.index_put(x, (k,), q, accumulate=True),
            shapes="vectors",
        ),
        Case("bincount(b, (100,))", {"numpy": np.bincount}, lambda t, b: t.bincount(b), kinds="i8", shapes="vectors"),
        Case(
            "bincount(b, (100,), x)",
            {"numpy": np.bincount},
            lambda t, b, x: t.bincount(b, x),
            kinds=FLOATS,
            shapes="vectors",
        ),
        Case(
            "histc(x, 100, -3.0, 3.0)",
            {"numpy": lambda x: np.histogram(x, 100, (-3, 3))},
            lambda t, x: t.histc(x, 100, -3, 3),
            kinds=FLOATS,
        ),
        Case("histc(x, 100)", {"numpy": lambda x: np.histogram(x, 100)}, lambda t, x: t.histc(x, 100), kinds=FLOATS),
        Case(
            'nn.embedding_bag(r, bags, mode="sum")',
            {"numpy": lambda r, bags: r[bags].sum(1)},
            lambda t, r, bags: t.nn.functional.embedding_bag(bags, r, mode="sum"),
            kinds=FLOATS,
        ),
        Case(
            'nn.embedding_bag(r, bags, mode="mean")',
            {"numpy": lambda r, bags: r[bags].mean(1)},
            lambda t, r, bags: t.nn.functional.embedding_bag(bags, r, mode="mean"),
            kinds=FLOATS,
        ),
        Case(
            'nn.embedding_bag(r, bags, mode="max")',
            {"numpy": lambda r, bags: r[bags].max(1)},
            lambda t, r, bags: t.nn.functional.embedding_bag(bags, r, mode="max"),
            kinds=FLOATS,
        ),
        Case(
            "one_hot(b, R.prim_value(1), R.prim_value(0), 100)",
            {"numpy": lambda b: np.eye(100, dtype="int64")[b]},
            lambda t, b: t.nn.functional.one_hot(b, 100),
            kinds="i8",
            shapes="vectors",
        ),
    ]


def _gathers() -> list[Case]:
    """Elements and slices at indices."""
    return [
        Case(
            "gather_elements(x, i, -1)",
            {"numpy": lambda x, i: np.take_along_axis(x, i, -1)},
            lambda t, x, i: t.gather(x, -1, i),
            ("GatherElements", "x i", {"axis": -1}),
            ALL,
        ),
        Case(
            "take(x, j, axis=-1)",
            {"numpy": lambda x, j: np.take(x, j, -1)},
            lambda t, x, j: t.index_select(x, -1, j),
            ("Gather", "x j", {"axis": -1}),
            ALL,
        ),
        Case(
            "take(r, k, axis=0)",
            {"numpy": lambda r, k: np.take(r, k, 0)},
            lambda t, r, k: t.index_select(r, 0, k),
            ("Gather", "r k", {"axis": 0}),
            ALL,
        ),
        Case(
            "take(p, l, axis=0)",
            {"numpy": lambda r, k: np.take(r, k, 0)},
            lambda t, r, k: t.index_select(r, 0, k),
            ("Gather", "p l", {"axis": 0}),
            ALL,
        ),
        Case(
            "gather_nd(r, kk)",
            {"numpy": lambda r, k: r[k[:, 0]]},
            lambda t, r, k: r[k[:, 0]],
            ("GatherND", "r kk", {}),
            ALL,
        ),
        Case(
            "gather_nd(p, ll)",
            {"numpy": lambda r, k: r[k[:, 0]]},
            lambda t, r, k: r[k[:, 0]],
            ("GatherND", "p ll", {}),
            ALL,
        ),
        Case("masked_select(x, m)", {"numpy": lambda x, m: x[m]}, lambda t, x, m: t.masked_select(x, m), None, ALL),
        Case(
            "nonzero(x)",
            {"numpy": lambda x: np.nonzero(x)},
            lambda t, x: t.nonzero(x),
            ("NonZero", "x", {"dtype": "int64"}),
            ALL,
        ),
        Case(
            "nonzero(m)",
            {"numpy": lambda x: np.nonzero(x)},
            lambda t, x: t.nonzero(x),
            ("NonZero", "m", {"dtype": "int64"}),
            "b",
        ),
    ]


def _scans() -> list[Case]:
    """Running sums and the like."""
    return [
        Case(
            "cumsum(x, axis=-1)",
            {"numpy": lambda x: np.cumsum(x, -1, x.dtype)},
            lambda t, x: t.cumsum(x, -1, dtype=x.dtype),
            ("CumSum", "x AXIS", {}),
        ),
        Case(
            "cumprod(x, axis=-1)",
            {"numpy": lambda x: np.cumprod(x, -1, x.dtype)},
            lambda t, x: t.cumprod(x, -1, dtype=x.dtype),
        ),
        Case(
            "cummax(x, -1)",
            {"numpy": lambda x: np.maximum.accumulate(x, -1)},
            lambda t, x: t.cummax(x, -1),
        ),
        Case(
            "cummin(x, -1)",
            {"numpy": lambda x: np.minimum.accumulate(x, -1)},
            lambda t, x: t.cummin(x, -1),
        ),
        Case(
            "logcumsumexp(x, -1)",
            {"numpy": lambda x: np.logaddexp.accumulate(x, -1)},
            lambda t, x: t.logcumsumexp(x, -1),
            kinds=FLOATS,
        ),
        Case("any(z, axis=-1)", {"numpy": lambda z: z.any(-1)}, lambda t, z: z.any(-1), kinds=ALL),
        Case("all(x, axis=-1)", {"numpy": lambda x: x.all(-1)}, lambda t, x: x.all(-1), kinds=ALL),
        Case("any(x, axis=-1)", {"numpy": lambda x: x.any(-1)}, lambda t, x: x.any(-1), kinds=ALL),
    ]


def _sorts() -> list[Case]:
    """Sorts and selections."""
    lowest = lambda x: np.partition(x, (x.shape[-1] - 1) // 2, -1)[..., (x.shape[-1] - 1) // 2]  # noqa: E731
    return [
        Case(
            "sort(x)",
            {"numpy": lambda x: np.sort(x), "stable": lambda x: np.sort(x, kind="stable")},
            lambda t, x: t.sort(x, stable=True),
            ("TopK", "x SIZE", {"largest": 0, "outputs": 2}),
            ALL,
        ),
        Case(
            "argsort(x)",
            {"numpy": lambda x: np.argsort(x), "stable": lambda x: np.argsort(x, kind="stable")},
            lambda t, x: t.argsort(x, stable=True),
            ("TopK", "x SIZE", {"largest": 0, "outputs": 2}),
            ALL,
        ),
        Case(
            "topk(x, k=10)",
            {"numpy": lambda x: np.sort(np.partition(x, -10)[..., -10:])},
            lambda t, x: t.topk(x, 10),
            ("TopK", "x TEN", {"outputs": 2}),
        ),
        Case(
            "unique(x)",
            {"numpy": lambda x: np.unique(x)},
            lambda t, x: t.unique(x),
            ("Unique", "x", {}),
            ALL,
        ),
        Case("median(x, axis=-1)", {"numpy": lambda x: np.median(x, -1)}, lambda t, x: t.median(x, -1)),
        Case("kthvalue(x, 30)", {"numpy": lambda x: np.partition(x, 29)[..., 29]}, lambda t, x: t.kthvalue(x, 30)),
        Case("kthvalue(x, HALF)", {"numpy": lowest}, lambda t, x: t.kthvalue(x, max(x.shape[-1] // 2, 1))),
        Case("mode(x)", {}, lambda t, x: t.mode(x)),
        Case(
            "searchsorted(s, x)",
            {"numpy": np.searchsorted},
            lambda t, s, x: t.searchsorted(s, x),
        ),
        Case("isin(x, t)", {"numpy": lambda x, t: np.isin(x, t)}, lambda t, x, y: t.isin(x, y)),
        Case("isin(x, s)", {"numpy": lambda x, t: np.isin(x, t)}, lambda t, x, y: t.isin(x, y)),
    ]


CASES = [*_sorts(), *_scans(), *_gathers(), *_scatters()]


def _moved(x: Any) -> Any:
    """Rows in order but for one element, a third from the front, that stands in the middle."""
    third, half = x.shape[-1] // 3, x.shape[-1] // 2
    return np.concatenate([x[..., :third], x[..., third + 1 : half], x[..., third : third + 1], x[..., half:]], -1)


def _added(x: Any, y: Any) -> Any:
    """Rows in order behind which ten other elements stand."""
    return np.concatenate([np.sort(x)[..., 10:], y[..., :10]], -1)


VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "random": lambda x, y: x,
    "ordered": lambda x, y: np.sort(x),
    "reversed": lambda x, y: np.sort(x)[..., ::-1].copy(),
    "equal": lambda x, y: np.full_like(x, 3),
    "four": lambda x, y: (y.view(f"u{y.itemsize}") % 4).astype(x.dtype),
    "hundred": lambda x, y: (y.view(f"u{y.itemsize}") % 100).astype(x.dtype),
    "moved": lambda x, y: _moved(np.sort(x)),
    "added": _added,
    "runs": lambda x, y: np.concatenate([np.sort(h) for h in np.array_split(x, 2, -1)], -1),
}
"""The elements of a row, from two rows of random ones."""
