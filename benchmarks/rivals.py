"""How fast compiled code is beside other libraries: each case runs on all of them in turn, in one process.

    make bench                                          an environment of its own, then 1 and 2 threads
    python benchmarks/rivals.py [--threads 1 2] [--only TEXT] [--seconds 1.0] [--out FOLDER] [--rivals NAME ...]

Rivals: NumPy (its OpenBLAS; with `--core TYPE` also one that is told the processor), torch, onnxruntime, jax (jit) and
TVM (weft's module printed in its spelling, its default build). One that is not installed, or has no such operation, is
left out of the row. Weights of models are constants for weft and jax, which compile them, and arguments for the others.
Rounds alternate between the libraries; a figure is the median of its rounds, or one call where that takes longer than
all rounds may. `speed` is the time of the fastest rival over weft's: above 1, weft is faster.
Results agree within the stated tolerance or the row says so.

Written to the folder: results.json, table.md, speed.png (where matplotlib is installed).
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` only.

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
Call = Callable[[], Any]


@dataclass
class Row:
    """One case at one number of threads; times in milliseconds."""

    group: str
    name: str
    threads: int
    times: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    compile: float = 0.0
    compile_again: float = 0.0
    first_call: float = 0.0
    file_kib: float = 0.0

    @property
    def speed(self) -> float:
        """The fastest rival's time over weft's; nan without a rival."""
        rivals = [value for name, value in self.times.items() if name != "weft"]
        return min(rivals) / self.times["weft"] if rivals and self.times.get("weft") else math.nan


def environment(threads: int, core: str | None) -> dict[str, str]:
    """Variables that libraries read when they are loaded."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "WEFT_NUM_THREADS", "TVM_NUM_THREADS")
    found = {**os.environ, **dict.fromkeys(names, str(threads))}
    found["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    found["JAX_PLATFORMS"] = "cpu"
    found["NPROC"] = str(threads)  # jax's pool of threads
    if core:
        found["OPENBLAS_CORETYPE"] = core
    return found


# -- the libraries: each gives a call without arguments whose value is comparable with NumPy's


def numpy_call(case: Any, inputs: Sequence[Any], threads: int) -> Call | None:
    """The formula over NumPy."""
    import numpy as np

    return None if case.arrays is None else lambda: case.arrays(np, *inputs)


def torch_call(case: Any, inputs: Sequence[Any], threads: int) -> Call | None:
    """The formula over torch, eager, without gradients."""
    if case.torch is None:
        return None
    import torch

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(value) for value in inputs]

    def run() -> Any:
        with torch.inference_mode():
            return case.torch(torch, *tensors)

    return run


def jax_call(case: Any, inputs: Sequence[Any], threads: int) -> Call | None:
    """The formula over jax.numpy, compiled by jit."""
    if case.arrays is None:
        return None
    import jax
    import jax.numpy as jnp

    known = {index: jnp.asarray(value) for index, value in enumerate(inputs) if case.inputs[index].weight}

    def formula(*given: Any) -> Any:
        rest = iter(given)
        return case.arrays(jnp, *(known[index] if index in known else next(rest) for index in range(len(inputs))))

    compiled = jax.jit(formula)
    arrays = [jnp.asarray(value) for index, value in enumerate(inputs) if index not in known]
    return lambda: compiled(*arrays).block_until_ready()


def onnxruntime_call(case: Any, inputs: Sequence[Any], threads: int) -> Call | None:
    """The nodes as a model in a session."""
    if not case.onnx:
        return None
    import onnxruntime
    from onnx import TensorProto, helper

    kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
    nodes = [helper.make_node(kind, list(a), list(b), **attributes) for kind, a, b, attributes in case.onnx]
    given = [helper.make_tensor_value_info(f"x{i}", kinds[str(x.dtype)], x.shape) for i, x in enumerate(inputs)]
    result = helper.make_tensor_value_info("y", kinds["int64" if case.onnx[-1][0] == "ArgMax" else "float32"], None)
    opset = [helper.make_opsetid("", 20)]
    model = helper.make_model(helper.make_graph(nodes, "case", given, [result]), opset_imports=opset, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {f"x{index}": value for index, value in enumerate(inputs)}
    return lambda: session.run(["y"], feed)[0]


def tvm_call(case: Any, inputs: Sequence[Any], threads: int) -> Call | None:
    """The module in TVM's spelling, built by its default pipeline for this processor."""
    import llvmlite.binding as llvm
    import tvm
    from shared.cases import module_of
    from tvm import relax
    from tvm.script import from_source

    module = from_source(module_of(case).script(spelling="tvm-0.27"))
    target = tvm.target.Target({"kind": "llvm", "mcpu": llvm.get_host_cpu_name(), "num-cores": threads})
    machine = relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
    arrays = [tvm.runtime.tensor(value) for value in inputs]
    return lambda: machine["main"](*arrays)


RIVALS: dict[str, Callable[[Any, Sequence[Any], int], Call | None]] = {
    "numpy": numpy_call,
    "torch": torch_call,
    "onnxruntime": onnxruntime_call,
    "jax": jax_call,
    "tvm": tvm_call,
}


def as_array(value: Any) -> Any:
    """A result of any of the libraries as a NumPy array."""
    import numpy as np

    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


# -- one case


def measure(case: Any, threads: int, rivals: Sequence[str], seconds: float) -> Row:
    """Compile, compare, and time all libraries in turn."""
    import numpy as np
    from shared.cases import module_of

    import weft

    row = Row(case.group, case.name, threads)
    random = np.random.default_rng(0)
    inputs = [item.draw(random) for item in case.inputs]
    module = module_of(case)
    weights = {f"x{index}": inputs[index] for index, item in enumerate(case.inputs) if item.weight}
    given = [value for value, item in zip(inputs, case.inputs, strict=True) if not item.weight]
    executable = None
    for name in ("compile", "compile_again"):
        start = time.perf_counter()
        executable = weft.compile(module, params=weights)
        setattr(row, name, (time.perf_counter() - start) * 1e3)
    assert executable is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.weft"
        executable.save(path)
        row.file_kib = path.stat().st_size / 1024
    main = executable["main"]
    start = time.perf_counter()
    expected = as_array(main(*given))
    row.first_call = (time.perf_counter() - start) * 1e3
    calls: dict[str, Call] = {"weft": lambda: main(*given)}
    for name in rivals:
        try:
            call = RIVALS[name](case, inputs, threads)
            if call is None:
                continue
            np.testing.assert_allclose(as_array(call()), expected, rtol=case.tolerance, atol=case.tolerance)
            calls[name] = call
        except ImportError:
            continue
        except Exception as error:  # a rival that fails is a note in the row, not the end of the run
            row.notes.append(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[0][:80]}")
    row.times = timed(calls, seconds, PAUSE if threads > 1 else 0.0)
    return row


PAUSE = 0.1
"""Seconds after which the threads of a library have gone to sleep and no longer take the cores of the next one."""
WARM = 0.02
"""Seconds that a library then runs before it is timed: the system takes some milliseconds to give threads a core."""


def timed(calls: dict[str, Call], seconds: float, pause: float = 0.0) -> dict[str, float]:
    """Medians in milliseconds; a round runs each call often enough to be measurable, in turn.

    The order changes from round to round: whoever comes next finds the inputs in the cache, if they were shared.
    With a `pause`, a library waits that long before its turn and runs for a while before its calls count.
    """
    repeats, slow = {}, {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
        repeats[name] = max(1, min(1000, int(2e-3 / max(1e-7, elapsed))))
        if elapsed > seconds and name != "weft":
            slow[name] = elapsed * 1e3
    calls = {name: call for name, call in calls.items() if name not in slow}
    random = Random(0)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds * len(calls)
    while len(samples["weft"]) < 5 or (time.perf_counter() < end and len(samples["weft"]) < 200):
        for name, call in random.sample(list(calls.items()), len(calls)):
            if pause:
                time.sleep(pause)
                warm = time.perf_counter() + WARM
                while time.perf_counter() < warm:
                    call()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - start) * 1e3 / repeats[name])
    return {name: statistics.median(values) for name, values in samples.items()} | slow


# -- all of them


def worker(arguments: argparse.Namespace) -> None:
    """One number of threads: rows as lines of JSON."""
    sys.path.insert(0, str(HERE))
    from shared.cases import cases

    kept = tempfile.TemporaryDirectory()  # what earlier runs compiled is not found
    os.environ["WEFT_CACHE_DIR"] = kept.name
    for case in cases():
        if arguments.only and arguments.only not in f"{case.group} {case.name}":
            continue
        row = measure(case, arguments.worker, arguments.rivals, arguments.seconds)
        print(json.dumps(asdict(row)), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak_mib": peak}), flush=True)


def run(arguments: argparse.Namespace) -> list[Row]:
    """A process for each number of threads, since libraries read it when they are loaded."""
    rows = []
    for threads in arguments.threads:
        command = [sys.executable, __file__, "--worker", str(threads), "--seconds", str(arguments.seconds)]
        command += ["--only", arguments.only, "--rivals", *arguments.rivals]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment(threads, arguments.core)
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                data = json.loads(line)
                if "name" in data:
                    rows.append(Row(**data))
                    print(text_of(rows[-1]), flush=True)
        if process.returncode:
            raise SystemExit(process.returncode)
    return rows


def text_of(row: Row) -> str:
    """A row as a line."""
    times = "  ".join(f"{name} {value:.3f}" for name, value in row.times.items())
    notes = f"  ({'; '.join(row.notes)})" if row.notes else ""
    return f"{row.speed:6.2f}  {row.group:12} {row.name:44} {row.threads} threads  {times}{notes}"


def table(rows: Sequence[Row]) -> str:
    """The rows and the geometric means of the groups, in Markdown."""
    names = ["weft", *RIVALS]
    lines = [
        f"| group | case | threads | speed | {' | '.join(names)} | compile | again | first call | file KiB |",
        "|" + "---|" * (len(names) + 8),
    ]
    for row in rows:
        times = [f"{row.times[name]:.3f}" if name in row.times else "" for name in names]
        first = [row.group, row.name, str(row.threads), f"{row.speed:.2f}"]
        last = [f"{value:.0f}" for value in (row.compile, row.compile_again)]
        cells = [*first, *times, *last, f"{row.first_call:.2f}", f"{row.file_kib:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| group | threads | geometric mean of speed | least |", "|---|---|---|---|"]
    for group in dict.fromkeys((row.group, row.threads) for row in rows):
        speeds = [row.speed for row in rows if (row.group, row.threads) == group and not math.isnan(row.speed)]
        if speeds:
            lines.append(f"| {group[0]} | {group[1]} | {statistics.geometric_mean(speeds):.2f} | {min(speeds):.2f} |")
    return "\n".join(lines) + "\n"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Bars of speed, a line at 1; nothing where matplotlib is missing."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return
    shown = [row for row in rows if not math.isnan(row.speed)]
    figure, axes = pyplot.subplots(figsize=(9, 0.22 * len(shown) + 1))
    axes.barh([f"{row.name} ({row.threads})" for row in shown], [row.speed for row in shown])
    axes.axvline(1.0, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("time of the fastest rival / time of weft")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def import_milliseconds() -> float:
    """The time of `import weft` beside that of NumPy, which it needs: the least of five processes."""
    code = "import numpy, time; s = time.perf_counter(); import weft; print((time.perf_counter() - s) * 1e3)"
    return min(float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(5))


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="cases whose group or name contains the text")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each library and case")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--core", help="the processor that OpenBLAS is told, such as SKYLAKEX")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments)
        return
    rows = run(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    facts = {"import_ms": import_milliseconds(), "rows": [{**asdict(row), "speed": row.speed} for row in rows]}
    (arguments.out / "results.json").write_text(json.dumps(facts, indent=1) + "\n")
    (arguments.out / "table.md").write_text(table(rows))
    plot(rows, arguments.out / "speed.png")
    _, _, summary = table(rows).rpartition("| group |")
    print(f"\n| group |{summary}import weft: {facts['import_ms']:.1f} ms over NumPy")


if __name__ == "__main__":
    main()
