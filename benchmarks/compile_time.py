"""How long it takes until compiled code runs: compile cold, again, from the disk in a new process, the first call.

    make bench                                          after the speeds, in the same environment
    python benchmarks/compile_time.py [--only TEXT] [--repeats 5] [--out FOLDER] [--rivals NAME ...]

    cold      compile with an empty cache, everything imported
    again     the same module once more, with nothing kept in the process but imports: the program comes from the disk
    start     import weft, read the script, compile from the disk and call, in a new process
    first     the first call (pages of memory, threads)
    peak      memory of a process that compiles cold, over that of one that only imports
    file      the saved executable

Rivals: the creation of an onnxruntime session (with its optimisations), jax's jit with its first call, and TVM's build
of the module in its spelling (read first), where the case has a form for them and they are installed. Rounds alternate
between the libraries, each with modules of its own, so that none finds what it made before; a figure is the least of
its rounds, since others on the machine only add.

Written to the folder: compile_time.json, compile_time.md.
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` only.

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from shared.cases import Case, Input, cases, module_of

HERE = Path(__file__).parent
CHOSEN = (
    "gelu of a sum 4096x1024",
    "abs(tanh(exp)) 1M",
    "softmax 4096x1024",
    "layer_norm 4096x768",
    "matmul 512",
    "conv2d 128->128 28x28 3x3/1",
    "8 heads of 64, 256 long",
    "perceptron of 3 layers, batch 64",
    "ResNet-18, batch 1",
    "encoder, 4 layers of 512, 2x128 (symbolic)",
    "decoder step, 2 layers of 1024, cache of 255 (symbolic)",
)
LIMITS = {
    "one addition": 10.0,
    "gelu of a sum 4096x1024": 10.0,
    "abs(tanh(exp)) 1M": 10.0,
    "matmul 512": 130.0,
    "matmul of any rows": 130.0,
    "matmul of any sizes": 130.0,
    "ResNet-18, batch 1": 1500.0,
}
"""Milliseconds that a cold compile should stay below."""


def chosen() -> Iterator[Case]:
    """What is compiled: cases of the speed table, and the smallest and the most general program."""
    yield Case(
        "elementwise", "one addition", (Input((1024,)), Input((1024,))), ("y = R.add(x0, x1)",), lambda xp, a, b: a + b
    )
    for name, texts, symbols in (
        ("matmul of any rows", ('"m", 1024', "1024, 1024"), ("m",)),
        ("matmul of any sizes", ('"m", "k"', '"k", "n"'), ("m", "k", "n")),
    ):
        a, b = Input((33, 1024), text=texts[0]), Input((1024, 1024), text=texts[1])
        yield Case("matmul", name, (a, b), ("y = R.matmul(x0, x1)",), symbols=symbols)
    found = {case.name: case for case in cases()}
    yield from (found[name] for name in CHOSEN)


@dataclass
class Row:
    """One case; times in milliseconds, sizes in KiB."""

    group: str
    name: str
    cold: float = 0.0
    again: float = 0.0
    start: float = 0.0
    first: float = 0.0
    peak_kib: int = 0
    file_kib: float = 0.0
    rivals: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


# -- each gives the milliseconds of one compile


def milliseconds(action: Callable[[], Any]) -> float:
    """The time that an action takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def weft_round(case: Case, inputs: list[Any], row: Row) -> None:
    """Compile with an empty cache, compile again, call for the first time."""
    import weft

    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEFT_CACHE_DIR"] = folder
        module = module_of(case)
        made: list[Any] = []
        cold = milliseconds(lambda: made.append(weft.compile(module)["main"]))
        again = milliseconds(lambda: made.append(weft.compile(module)["main"]))
        first = milliseconds(lambda: made[0](*inputs))
        path = Path(folder) / "case.weft"
        weft.compile(module).save(path)
        row.file_kib = path.stat().st_size / 1024
    row.cold, row.again, row.first = least(row.cold, cold), least(row.again, again), least(row.first, first)


def onnxruntime_round(case: Case, inputs: list[Any]) -> float | None:
    """The creation of a session."""
    if not case.onnx:
        return None
    from rivals import onnxruntime_call

    return milliseconds(lambda: onnxruntime_call(case, inputs, 1))


def jax_round(case: Case, inputs: list[Any]) -> float | None:
    """Trace, compile and run a function that is new to jax."""
    if case.arrays is None:
        return None
    import jax
    from rivals import jax_call

    jax.clear_caches()

    def compile_and_run() -> None:
        call = jax_call(case, inputs, 1)
        assert call is not None
        call()

    return milliseconds(compile_and_run)


def tvm_round(case: Case, inputs: list[Any]) -> float | None:
    """Read the module in TVM's spelling and build it."""
    from rivals import tvm_call

    return milliseconds(lambda: tvm_call(case, inputs, 1))


RIVALS: dict[str, Callable[[Case, list[Any]], float | None]] = {
    "onnxruntime": onnxruntime_round,
    "jax": jax_round,
    "tvm": tvm_round,
}


def least(old: float, new: float) -> float:
    """The lesser of two times, of which 0 is none."""
    return new if not old else min(old, new)


def measure(case: Case, rivals: list[str], repeats: int) -> Row:
    """All rounds of one case."""
    row = Row(case.group, case.name)
    random = np.random.default_rng(0)
    inputs = [item.draw(random) for item in case.inputs]
    for _ in range(repeats):
        weft_round(case, inputs, row)
        for name in rivals:
            try:
                spent = RIVALS[name](case, inputs)
            except ImportError:
                continue
            except Exception as error:  # a rival that fails is a note in the row, not the end of the run
                note = f"{name}: {type(error).__name__}"
                row.notes += [note] if note not in row.notes else []
                continue
            if spent is not None:
                row.rivals[name] = least(row.rivals.get(name, 0.0), spent)
    return row


# -- in processes of their own


def in_process(case: Case, what: str, folder: str) -> dict[str, float]:
    """What a new process measures of itself."""
    environment = {**os.environ, "WEFT_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": ""}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "weft-bytecode")
    command = [sys.executable, __file__, "--only", case.name, "--process", what]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)


def peak_kib() -> int:
    """The most memory that this process has had; what the one before it had is left out where the system says so."""
    try:
        text = Path("/proc/self/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def report_on_process(case: Case, what: str) -> None:
    """Do one thing in this process, and print its time and the most memory there ever was."""
    random = np.random.default_rng(0)
    inputs = [item.draw(random) for item in case.inputs]
    start = time.perf_counter()
    import weft

    if what != "import":
        weft.compile(module_of(case))["main"](*inputs)
    spent = (time.perf_counter() - start) * 1e3
    print(json.dumps({"ms": spent, "kib": peak_kib()}))


def measure_processes(case: Case, row: Row) -> None:
    """The start of a process that finds the program on the disk, and the memory of one that does not."""
    with tempfile.TemporaryDirectory() as folder:
        idle = in_process(case, "import", folder)
        cold = in_process(case, "run", folder)
        row.peak_kib = int(cold["kib"] - idle["kib"])
        row.start = min(in_process(case, "run", folder)["ms"] for _ in range(3))


# -- all of them


def table(rows: list[Row], imported: float) -> str:
    """The rows in Markdown."""
    names = list(RIVALS)
    lines = [
        f"| group | case | cold ms | limit | again | start | first call | peak MiB | file KiB | {' | '.join(names)} |",
        "|" + "---|" * (9 + len(names)),
    ]
    for row in rows:
        limit = LIMITS.get(row.name)
        over = "" if limit is None else f"{limit:.0f}" if row.cold <= limit else f"{limit:.0f} (over)"
        cells = [row.group, row.name, f"{row.cold:.1f}", over, f"{row.again:.1f}", f"{row.start:.0f}"]
        cells += [f"{row.first:.2f}", f"{row.peak_kib / 1024:.0f}", f"{row.file_kib:.0f}"]
        cells += [f"{row.rivals[name]:.1f}" if name in row.rivals else "" for name in names]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"import weft: {imported:.1f} ms over NumPy", ""])


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", default="", help="cases whose group or name contains the text")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--process", choices=["import", "run"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    picked = [case for case in chosen() if arguments.only in f"{case.group} {case.name}"]
    if arguments.process:
        report_on_process(next(case for case in picked if case.name == arguments.only), arguments.process)
        return
    from rivals import import_milliseconds

    import weft

    weft.compile(module_of(next(chosen())))  # everything that the compiler imports is there
    rows = []
    for case in picked:
        row = measure(case, arguments.rivals, arguments.repeats)
        measure_processes(case, row)
        rows.append(row)
        print(table([row], 0.0).splitlines()[2], flush=True)
    imported = import_milliseconds()
    arguments.out.mkdir(parents=True, exist_ok=True)
    facts = {"import_ms": imported, "rows": [{**asdict(row), "limit": LIMITS.get(row.name)} for row in rows]}
    (arguments.out / "compile_time.json").write_text(json.dumps(facts, indent=1) + "\n")
    (arguments.out / "compile_time.md").write_text(table(rows, imported))
    print("\n" + table(rows, imported))


if __name__ == "__main__":
    main()
