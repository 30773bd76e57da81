"""Sorting, selecting, searching and scattering beside other libraries: least times, at 100, 10,000 and 1,000,000
elements and as rows.

    python benchmarks/sorting.py [--seconds 0.5] [--only TEXT]

`sort` is shown beside both of NumPy's: the default, which may exchange equal elements, and the stable one, which
weft's is. torch joins where it is installed. Calls alternate, on one thread; x is the quickest of the others over weft.
"""

# pyright: reportMissingImports=false
# torch is no dependency.

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("WEFT_NUM_THREADS", "1")

import numpy as np

import weft

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
    "scatter_elements(x, i, y, -1)": {"numpy": scattered},
    "nonzero(x)": {"numpy": lambda x, i, y: np.nonzero(x)},
}
TORCH = {
    "sort(x)": lambda t, x, i, y: t.sort(x, stable=True),
    "argsort(x)": lambda t, x, i, y: t.argsort(x, stable=True),
    "topk(x, k=10)": lambda t, x, i, y: t.topk(x, 10),
    "unique(x)": lambda t, x, i, y: t.unique(x),
    "cumsum(x, axis=-1)": lambda t, x, i, y: t.cumsum(x, -1),
    "searchsorted(s, x)": lambda t, x, i, y: t.searchsorted(t.from_numpy(SORTED), x),
    "gather_elements(x, i, -1)": lambda t, x, i, y: t.gather(x, -1, i),
    "scatter_elements(x, i, y, -1)": lambda t, x, i, y: t.scatter(x, -1, i, y),
    "nonzero(x)": lambda t, x, i, y: t.nonzero(x),
}
"""What torch has of the same meaning; its median is the lower of two."""
CALLS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "x": lambda run: lambda x, i, y: run(x),
    "xs": lambda run: lambda x, i, y: run(x, SORTED),
    "xi": lambda run: lambda x, i, y: run(x, i),
    "xiy": lambda run: lambda x, i, y: run(x, i, y),
}
"""How a program is called, by the names that it takes: as directly as NumPy is."""
SORTED = np.sort(np.random.default_rng(1).standard_normal(1000, "float32"))


def with_torch(text: str, rivals: Rivals, arrays: tuple[Any, ...]) -> Rivals:
    """The rivals, and torch where it is installed and has the operator."""
    if find_spec("torch") is None or text not in TORCH:
        return rivals
    import torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(array) for array in arrays]
    return {**rivals, "torch": lambda x, i, y: TORCH[text](torch, *tensors)}


def leasts(calls: Rivals, arrays: tuple[Any, ...], seconds: float) -> dict[str, float]:
    """The least time of each call in microseconds; they take turns."""
    found = dict.fromkeys(calls, float("inf"))
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            call(*arrays)
            found[name] = min(found[name], (time.perf_counter() - start) * 1e6)
    return found


def compiled(text: str, shape: tuple[int, ...]) -> Callable[..., Any]:
    """The operator on arrays x and y of a shape, places i, and the sorted s where it is there."""
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    types = {"x": f'R.Tensor(({dims}), "float32")', "i": f'R.Tensor(({dims}), "int64")'}
    types |= {"y": types["x"], "s": 'R.Tensor((1000,), "float32")'}
    used = "".join(name for name in types if any(f"{start}{name}{end}" in text for start in "( " for end in ",)"))
    head = ", ".join(f"{name}: {types[name]}" for name in used)
    run = weft.compile(weft.parse(f"@R.function\ndef main({head}):\n    y1 = R.{text}\n    return y1"))["main"]
    return CALLS[used](run)


def main() -> None:
    """Print a line for each operator and shape."""
    parser = argparse.ArgumentParser(description="Sorting beside other libraries.")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    for shape in SHAPES:
        x, y = (random.standard_normal(shape, "float32") for _ in range(2))
        i = np.argsort(random.standard_normal(shape), -1)
        for text, rivals in NUMPY.items():
            if options.only in text:
                calls = {"weft": compiled(text, shape), **with_torch(text, rivals, (x, i, y))}
                times = leasts(calls, (x, i, y), options.seconds)
                own = times.pop("weft")
                rest = "  ".join(f"{name} {value:9.1f}" for name, value in times.items())
                name, ratio = "x".join(map(str, shape)), min(times.values()) / own
                print(f"{name:<10} {text:<30} {own:9.1f} us {ratio:6.2f}x  {rest}", flush=True)


if __name__ == "__main__":
    main()
