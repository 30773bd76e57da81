"""Sorting, selecting, searching and scattering beside other libraries: least times, at 100, 10,000 and 1,000,000
elements and as rows.

    python benchmarks/sorting.py [--seconds 0.5] [--only TEXT] [--dtype float32] [--values four --values ordered]
                                 [--shape 64x1000]

`sort` is shown beside both of NumPy's: the default, which may exchange equal elements, and the stable one, which
weft's is. torch and onnxruntime join where they are installed and have the operator for the dtype. Times are of the
processor, on one thread; calls take turns in an order that is drawn each time, since who comes after a call that gave
much memory back pays for getting it, and those that take four times as long as the quickest have two turns. x is the
quickest of the others over weft. `--values` are elements of other kinds than random ones (`VALUES`).
"""

# pyright: reportMissingImports=false
# torch, onnx and onnxruntime are no dependencies.

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("WEFT_NUM_THREADS", "1")

import numpy as np

import weft

FEWEST, FAR = 2, 4
"""The turns of calls that take so many times as long as the quickest."""
SHAPES = ((100,), (10_000,), (64, 1000), (1_000_000,))
Rivals = dict[str, Callable[..., Any]]


def scattered(x: Any, i: Any, y: Any) -> Any:
    """NumPy's scatter along the last axis."""
    out = x.copy()
    np.put_along_axis(out, i, y, -1)
    return out


NUMPY: dict[str, Rivals] = {
    "sort(x)": {"numpy": lambda x, i, y: np.sort(x), "stable": lambda x, i, y: np.sort(x, kind="stable")},
    "argsort(x)": {"numpy": lambda x, i, y: np.argsort(x), "stable": lambda x, i, y: np.argsort(x, kind="stable")},
    "topk(x, k=10)": {"numpy": lambda x, i, y: np.sort(np.partition(x, -10)[..., -10:])},
    "unique(x)": {"numpy": lambda x, i, y: np.unique(x)},
    "median(x, axis=-1)": {"numpy": lambda x, i, y: np.median(x, -1)},
    "cumsum(x, axis=-1)": {"numpy": lambda x, i, y: np.cumsum(x, axis=-1)},
    "searchsorted(s, x)": {"numpy": lambda x, i, y: np.searchsorted(SORTED, x)},
    "gather_elements(x, i, -1)": {"numpy": lambda x, i, y: np.take_along_axis(x, i, -1)},
    "take(x, j, axis=-1)": {"numpy": lambda x, i, y: np.take(x, i, -1)},
    "scatter_elements(x, i, y, -1)": {"numpy": scattered},
    "nonzero(x)": {"numpy": lambda x, i, y: np.nonzero(x)},
}
TORCH = {
    "sort(x)": lambda t, x, i, y: t.sort(x, stable=True),
    "argsort(x)": lambda t, x, i, y: t.argsort(x, stable=True),
    "topk(x, k=10)": lambda t, x, i, y: t.topk(x, 10),
    "unique(x)": lambda t, x, i, y: t.unique(x),
    "median(x, axis=-1)": lambda t, x, i, y: t.median(x, -1),
    "cumsum(x, axis=-1)": lambda t, x, i, y: t.cumsum(x, -1),
    "searchsorted(s, x)": lambda t, x, i, y: t.searchsorted(t.from_numpy(SORTED), x),
    "gather_elements(x, i, -1)": lambda t, x, i, y: t.gather(x, -1, i),
    "take(x, j, axis=-1)": lambda t, x, i, y: t.index_select(x, -1, i),
    "scatter_elements(x, i, y, -1)": lambda t, x, i, y: t.scatter(x, -1, i, y),
    "nonzero(x)": lambda t, x, i, y: t.nonzero(x),
}
"""What torch has of the same meaning. Its median, as weft's, is the lower of two and says where; NumPy's is a mean."""
CALLS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "x": lambda run: lambda x, i, y: run(x),
    "xs": lambda run: lambda x, i, y: run(x, SORTED),
    "xi": lambda run: lambda x, i, y: run(x, i),
    "xj": lambda run: lambda x, i, y: run(x, i),
    "xiy": lambda run: lambda x, i, y: run(x, i, y),
}
"""How a program is called, by the names that it takes: as directly as NumPy is."""
SORTED = np.sort(np.random.default_rng(1).standard_normal(1000, "float32"))
"""The boundaries of a search, in the dtype of the benchmark."""


def named(shape: tuple[int, ...]) -> str:
    """A shape as it is shown and asked for."""
    return "x".join(map(str, shape))


def drawn(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Random elements: normal floats, integers of the whole range."""
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return generator.integers(info.min, info.max, shape, dtype, endpoint=True)


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


def with_torch(text: str, rivals: Rivals, arrays: tuple[Any, ...]) -> Rivals:
    """The rivals, and torch where it is installed and has the operator."""
    if find_spec("torch") is None or text not in TORCH:
        return rivals
    import torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(array) for array in arrays]
    return {**rivals, "torch": lambda x, i, y: TORCH[text](torch, *tensors)}


ONNX: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sort(x)": ("TopK", "xk", {"largest": 0}),
    "argsort(x)": ("TopK", "xk", {"largest": 0}),
    "topk(x, k=10)": ("TopK", "xk", {}),
    "unique(x)": ("Unique", "x", {}),
    "cumsum(x, axis=-1)": ("CumSum", "xk", {}),
    "gather_elements(x, i, -1)": ("GatherElements", "xi", {"axis": -1}),
    "take(x, j, axis=-1)": ("Gather", "xi", {"axis": -1}),
    "scatter_elements(x, i, y, -1)": ("ScatterElements", "xiy", {"axis": -1}),
    "nonzero(x)": ("NonZero", "x", {}),
}
"""The operator of ONNX, what it takes (k: a constant) and its attributes; a sort is a choice of all elements."""


def with_onnxruntime(text: str, rivals: Rivals, arrays: tuple[Any, ...]) -> Rivals:
    """The rivals, and onnxruntime where it is installed and has the operator."""
    if find_spec("onnxruntime") is None or find_spec("onnx") is None or text not in ONNX:
        return rivals
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    operator, takes, attributes = ONNX[text]
    given = {name: array for name, array in zip("xiy", arrays, strict=True) if name in takes}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in given.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in given.items()]
    constant = np.array(-1 if operator == "CumSum" else [10 if "k=10" in text else arrays[0].shape[-1]], "int64")
    constants = [numpy_helper.from_array(constant, "k")] if "k" in takes else []
    names = ["values", "indices"] if operator == "TopK" else ["values"]
    kinds |= {"values": TensorProto.INT64 if operator == "NonZero" else kinds["x"], "indices": TensorProto.INT64}
    outputs = [helper.make_tensor_value_info(name, kinds[name], None) for name in names]
    node = helper.make_node(operator, list(takes), names, **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, given)
    except Exception as error:  # whatever it raises where it lacks the operator for a dtype
        print(f"onnxruntime: {str(error).splitlines()[0][:100]}")
        return rivals
    return {**rivals, "onnxruntime": lambda x, i, y: session.run(None, given)}


def leasts(calls: Rivals, arrays: tuple[Any, ...], seconds: float) -> dict[str, float]:
    """The least time of each call in microseconds; they take turns, those that take far longer than others a few."""
    found = dict.fromkeys(calls, float("inf"))
    turns = list(calls.items())
    rounds, end = 0, time.process_time() + seconds * len(calls)
    while time.process_time() < end or rounds < FEWEST:
        if rounds == FEWEST:
            turns = [(name, call) for name, call in turns if found[name] < FAR * min(found.values())]
        rounds += 1
        random.shuffle(turns)
        for name, call in turns:
            start = time.process_time_ns()
            call(*arrays)
            found[name] = min(found[name], (time.process_time_ns() - start) / 1e3)
    return found


def compiled(text: str, shape: tuple[int, ...], dtype: str) -> Callable[..., Any]:
    """The operator on arrays x and y of a shape, places i, places j of one row, and the sorted s where it is there."""
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    types = {"x": f'R.Tensor(({dims}), "{dtype}")', "i": f'R.Tensor(({dims}), "int64")'}
    types |= {"j": f'R.Tensor(({shape[-1]},), "int64")', "y": types["x"], "s": f'R.Tensor((1000,), "{dtype}")'}
    used = "".join(name for name in types if any(f"{start}{name}{end}" in text for start in "( " for end in ",)"))
    head = ", ".join(f"{name}: {types[name]}" for name in used)
    run = weft.compile(weft.parse(f"@R.function\ndef main({head}):\n    y1 = R.{text}\n    return y1"))["main"]
    return CALLS[used](run)


def main() -> None:
    """Print a line for each operator and shape."""
    parser = argparse.ArgumentParser(description="Sorting beside other libraries.")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--values", action="append", choices=VALUES)
    parser.add_argument("--shape", action="append", choices=[named(shape) for shape in SHAPES])
    options = parser.parse_args()
    dtype = np.dtype(options.dtype)
    globals()["SORTED"] = np.sort(drawn(np.random.default_rng(1), (1000,), dtype))
    generator = np.random.default_rng(0)
    for shape in (shape for shape in SHAPES if named(shape) in (options.shape or [named(shape)])):
        raw, y = (drawn(generator, shape, dtype) for _ in range(2))
        i = np.argsort(generator.standard_normal(shape), -1)
        for text, rivals in NUMPY.items():
            if options.only in text:
                run = compiled(text, shape, options.dtype)
                for kind in options.values or ["random"]:
                    arrays = VALUES[kind](raw, y), i.reshape(-1, shape[-1])[0] if "j" in text else i, y
                    others = with_onnxruntime(text, with_torch(text, rivals, arrays), arrays)
                    print_row(shape, text, kind, leasts({"weft": run, **others}, arrays, options.seconds))


def print_row(shape: tuple[int, ...], text: str, kind: str, times: dict[str, float]) -> None:
    """Print how long each took."""
    own = times.pop("weft")
    rest = "  ".join(f"{name} {value:9.1f}" for name, value in times.items())
    ratio = min(times.values()) / own
    print(f"{named(shape):<10} {text:<30} {kind:<9} {own:9.1f} us {ratio:6.2f}x  {rest}", flush=True)


if __name__ == "__main__":
    main()
