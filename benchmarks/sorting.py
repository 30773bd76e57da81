"""Sorting, selecting, searching, scanning, gathering and scattering beside other libraries: least times, at 100,
10,000 and 1,000,000 elements and as rows.

    python benchmarks/sorting.py [--seconds 0.2] [--only TEXT] [--dtype float32 --dtype int8] [--shape 64x1000]
                                 [--values four --values ordered] [--threads 2] [--below 1.0] [--prepare]

`sort` is shown beside both of NumPy's: the default, which may exchange equal elements, and the stable one, which
weft's is. torch and onnxruntime join where they are installed and have the operator for the dtype; a rival computes in
the dtype of the elements where it can be asked to. x is the quickest of the others over weft. Calls take turns in an
order that is drawn each time, since who comes after a call that gave much memory back pays for getting it; those that
take four times as long as the quickest have two turns. With more than one thread there is a pause before each turn:
the threads of others spin for a while after their work. Calls of microseconds are repeated within a turn.

`--prepare` compiles all programs (they are kept) and measures nothing; `--below` shows only lines below a ratio, which
are measured again first; at the end it says how many lines were below 1.0.
"""

# pyright: reportMissingImports=false
# torch, onnx and onnxruntime are no dependencies.

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

OPTIONS = argparse.ArgumentParser(description="Sorting beside other libraries.")
OPTIONS.add_argument("--seconds", type=float, default=0.2)
OPTIONS.add_argument("--only", action="append", default=None)
OPTIONS.add_argument("--dtype", action="append", default=None)
OPTIONS.add_argument("--values", action="append", default=None)
OPTIONS.add_argument("--shape", action="append", default=None)
OPTIONS.add_argument("--threads", type=int, default=1)
OPTIONS.add_argument("--below", type=float, default=float("inf"))
OPTIONS.add_argument("--prepare", action="store_true")
GIVEN = OPTIONS.parse_args() if __name__ == "__main__" else OPTIONS.parse_args([])
os.environ["WEFT_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(GIVEN.threads)

import numpy as np  # noqa: E402
from shared.selections import ARRAYS, CASES, VALUES, Case, drawn  # noqa: E402

import weft  # noqa: E402

FEWEST, FAR = 2, 4
"""The turns of calls that take so many times as long as the quickest."""
TURN, PAUSE = 3e-5, 0.1
"""The least seconds of a turn, and those between turns where there are several threads."""
SHAPES = ((100,), (10_000,), (64, 1000), (1_000_000,))
DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
Calls = dict[str, Callable[[], Any]]


def named(shape: tuple[int, ...]) -> str:
    """A shape as it is shown and asked for."""
    return "x".join(map(str, shape))


def with_torch(case: Case, arrays: dict[str, Any]) -> Calls:
    """The call of torch, where it is installed and has the operator."""
    if find_spec("torch") is None or case.torch is None:
        return {}
    import torch

    torch.set_num_threads(GIVEN.threads)
    formula = case.torch
    tensors = [torch.from_numpy(array) for array in arrays.values()]
    try:
        formula(torch, *tensors)
    except (RuntimeError, TypeError, NotImplementedError):
        return {}
    return {"torch": lambda: formula(torch, *tensors)}


def with_onnxruntime(case: Case, arrays: dict[str, Any], shape: tuple[int, ...]) -> Calls:
    """The call of onnxruntime, where it is installed and has the operator."""
    if find_spec("onnxruntime") is None or find_spec("onnx") is None or case.onnx is None:
        return {}
    import onnxruntime
    from onnx import helper, numpy_helper

    operator, takes, attributes = case.onnx
    attributes = dict(attributes)
    outputs, result = attributes.pop("outputs", 1), attributes.pop("dtype", None)
    values = {"AXIS": np.array(-1), "SIZE": np.array([shape[-1]]), "TEN": np.array([10])}
    names = takes.split()
    given = {name: arrays[name] for name in names if name in arrays}
    of = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in given.items()}
    inputs = [helper.make_tensor_value_info(name, of[name], array.shape) for name, array in given.items()]
    constants = [numpy_helper.from_array(values[name], name) for name in names if name in values]
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(result or given[names[0]].dtype)), 7][:outputs]
    found = [helper.make_tensor_value_info(f"out{n}", kind, None) for n, kind in enumerate(kinds)]
    node = helper.make_node(operator, names, [f"out{n}" for n in range(outputs)], **attributes)
    graph = helper.make_graph([node], "g", inputs, found, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = GIVEN.threads
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, given)
    except Exception:  # whatever it raises where it lacks the operator for a dtype
        return {}
    return {"onnxruntime": lambda: session.run(None, given)}


def with_numpy(case: Case, arrays: dict[str, Any]) -> Calls:
    """The calls of NumPy."""
    given = list(arrays.values())
    return {name: lambda formula=formula: formula(*given) for name, formula in case.numpy.items()}


def turn(call: Callable[[], Any], times: int) -> float:
    """The seconds of a call, as the mean of several."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def leasts(calls: Calls, seconds: float) -> dict[str, float]:
    """The least time of each call in microseconds; they take turns, those that take far longer than others a few."""
    found = {name: turn(call, 1) for name, call in calls.items()}
    turns = list(calls.items())
    rounds, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end or rounds < FEWEST:
        if rounds == FEWEST:
            turns = [(name, call) for name, call in turns if found[name] < FAR * min(found.values())]
        rounds += 1
        random.shuffle(turns)
        for name, call in turns:
            if GIVEN.threads > 1:
                time.sleep(PAUSE)
            found[name] = min(found[name], turn(call, max(int(TURN / found[name]), 1)))
    return {name: value * 1e6 for name, value in found.items()}


def compiled(case: Case, shape: tuple[int, ...], arrays: dict[str, Any]) -> Callable[..., Any]:
    """The operator of weft on arrays of these shapes."""
    types = {name: f'R.Tensor({array.shape}, "{array.dtype}")' for name, array in arrays.items()}
    head = ", ".join(f"{name}: {ty}" for name, ty in types.items())
    text = case.text.replace("HALF", str(max(shape[-1] // 2, 1)))
    return weft.compile(weft.parse(f"@R.function\ndef main({head}):\n    out = R.{text}\n    return out"))["main"]


def wanted() -> Iterator[tuple[tuple[int, ...], np.dtype[Any], Case]]:
    """What was asked for."""
    for name in GIVEN.dtype or DTYPES:
        dtype = np.dtype(name)
        for shape in SHAPES:
            for case in CASES:
                fits = dtype.str[1:] == case.kinds or dtype.kind in case.kinds
                fits = fits and (case.shapes == "all" or len(shape) == 1)
                asked = named(shape) in (GIVEN.shape or [named(shape)])
                if fits and asked and any(part in case.text for part in GIVEN.only or [""]):
                    yield shape, dtype, case


def measure(case: Case, shape: tuple[int, ...], dtype: np.dtype[Any], kind: str) -> tuple[str, float] | None:
    """A line, and its ratio; None where there is nothing to compare with."""
    generator = np.random.default_rng(0)
    x, y = (drawn(generator, shape, dtype) for _ in range(2))
    x = VALUES[kind](x, y)
    arrays = {name: ARRAYS[name](x, y, generator) for name in case.names}
    try:
        run = compiled(case, shape, arrays)
    except weft.WeftError as error:
        return f"{named(shape):<10} {dtype} {case.text}: {str(error).splitlines()[0]}", float("inf")
    if GIVEN.prepare:
        return None
    given = list(arrays.values())
    with np.errstate(all="ignore"):
        others = with_numpy(case, arrays) | with_torch(case, arrays) | with_onnxruntime(case, arrays, shape)
        ratio, times = 0.0, dict[str, float]()
        for _ in range(1 if GIVEN.below == float("inf") else 3):
            again = leasts({"weft": lambda: run(*given), **others}, GIVEN.seconds)
            times = {name: min(value, times.get(name, value)) for name, value in again.items()}
            ratio = max(ratio, min(v for n, v in again.items() if n != "weft") / again["weft"]) if others else 1.0
            if ratio >= GIVEN.below:
                break
    rest = "  ".join(f"{name} {value:9.1f}" for name, value in times.items() if name != "weft")
    return (
        f"{named(shape):<8} {dtype!s:<8} {case.text:<44} {kind:<8} {times['weft']:9.1f} us {ratio:6.2f}x  {rest}",
        ratio,
    )


def main() -> None:
    """Print a line for each operator, shape, dtype and kind of elements."""
    lines = below = 0
    for shape, dtype, case in wanted():
        for kind in GIVEN.values or ["random"]:
            found = measure(case, shape, dtype, kind)
            if found is not None:
                line, ratio = found
                lines, below = lines + 1, below + (ratio < 1)
                if ratio < GIVEN.below or ratio == float("inf"):
                    print(line, flush=True)
    print(f"{below} of {lines} lines are below 1.0")


if __name__ == "__main__":
    main()
