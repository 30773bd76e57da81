"""Hostile archives, cache entries, texts, sizes, calls and callbacks, and valid programs, for as long as one likes.

    python tests/fuzz/hostile.py [--seconds 60] [--start 0] [--only calls,texts]        make fuzz TIME=3600

Every seed is one case of each target, in a child process: a child that dies, an exception that is none of weft's, and a
value that is not the interpreter's are findings, told with their target and seed (`--start SEED --seconds 1` runs it
again). Exits with 1 when there are any. What must hold is in docs/guide/security.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # from the checkout, installed or not
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.fuzz import symbolic, symbolic_programs  # noqa: E402
from tests.fuzz.host_values import HOSTS, attempt  # noqa: E402
from tests.systems.test_random_claims import EXECUTORS, made, measure  # noqa: E402

import weft  # noqa: E402
from weft.testing import random_module  # noqa: E402

EDGES = (0, 1, 2, 3, 7, 16, 17, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, -1, -(2**63))
SECONDS_OF_A_CASE = 20
MEMORY = 8 << 30

PROGRAMS = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def shifted(a: T.Buffer(("s",), "float32"), b: T.Buffer(("s",), "float32"), k: T.int64):
        for i in range(s):
            b[i] = a[(i + k) % s]

    @T.prim_func(private=True)
    def window(a: T.Buffer(("s",), "float32"), b: T.Buffer(("s",), "float32"), k: T.int64):
        for i in range(s):
            v = T.decl_buffer((4,), "float32", data=a.data, elem_offset=k)
            b[i] = v[i % 4]

    @R.function
    def related(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n + 1",), "float32")) -> R.Tensor(("n", 4), "float32"):
        z = R.add(x, R.expand_dims(y[1:], 1))
        return z

    @R.function
    def claimed(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        z: R.Tensor(("n",), "float32") = R.multiply(x, y)
        return z

    @R.function
    def made(s: R.Shape(["n", "m"])) -> R.Tensor(("n * m", "n + m"), "int8"):
        z = R.zeros((n * m, n + m), "int8")
        return z

    @R.function
    def sliced(x: R.Tensor(("n",), "float32"), s: R.Shape(["m"])):
        z = R.strided_slice(x, [0], [m], [n])
        return z

    @R.function
    def chosen(x: R.Tensor(("n", 3), "float32"), i: R.Tensor(("k",), "int64")):
        z = R.take(x, i, axis=0)
        return z

    @R.function
    def moved(x: R.Tensor(("n",), "float32"), s: R.Shape(["m"])):
        z = R.call_tir(Module.shifted, (x,), out_ty=R.Tensor((n,), "float32"), tir_vars=R.shape([m]))
        return z

    @R.function
    def viewed(x: R.Tensor(("n",), "float32"), s: R.Shape(["m"])):
        z = R.call_tir(Module.window, (x,), out_ty=R.Tensor((n,), "float32"), tir_vars=R.shape([m]))
        return z

    @R.function
    def told(x: R.Tensor(("n",), "float32")):
        z = R.call_pure_packed("fuzz.answer", x, ty_args=[R.Tensor(("n",), "float32")])
        w = R.call_pure_packed("fuzz.answer", x, ty_args=[R.Shape(ndim=2)])
        return z, w
"""


@weft.register_func("fuzz.answer")
def answer(x: np.ndarray) -> Any:
    """What a careless function may return."""
    return _answer[0]


_answer: list[Any] = [None]


@cache
def programs() -> tuple[Any, Any, Any]:
    """The programs above: their module, compiled, interpreted."""
    module: Any = weft.parse(PROGRAMS)
    return module, weft.compile(module), weft.interpret(module)


def _array(rng: random.Random) -> Any:
    """Arrays of odd shapes, strides, dtypes, and what is none."""
    shape = [rng.choice((0, 1, 2, 3, 4, 5)) for _ in range(rng.choice((1, 1, 2, 2, 0, 3)))]
    dtype = rng.choice(("float32",) * 6 + ("float64", "int64", "int64", "bool", "float16", ">f4"))
    array = np.arange(int(np.prod(shape, dtype=int)), dtype="float64").reshape(shape).astype(dtype)
    turns: tuple[Callable[[], Any], ...] = (
        lambda: array,
        lambda: array,
        lambda: array[::-1] if array.ndim else array,
        lambda: array.T,
        lambda: np.broadcast_to(array, (2, *array.shape)),
        lambda: array[::2] if array.ndim else array,
        lambda: array.tolist(),
        lambda: None,
        lambda: array.astype(object),
        lambda: "x",
        lambda: array.tobytes(),
        lambda: np.lib.stride_tricks.as_strided(array, array.shape, [0] * array.ndim),
        lambda: array.reshape(-1)[:4],
    )
    return rng.choice(turns[:3] * 3 + turns)()


def _argument(rng: random.Random) -> Any:
    if rng.random() < 0.3:
        return tuple(rng.choice(EDGES[:9] + EDGES) for _ in range(rng.choice((1, 2, 2, 3))))
    return rng.choice(EDGES) if rng.random() < 0.05 else _array(rng)


def _agree(first: Callable[[], Any], second: Callable[[], Any], told: str) -> None:
    """Where both give values, they are the same; what is no error of weft's is a finding."""
    values = []
    for run in (first, second):
        with contextlib.suppress(weft.WeftError):
            values.append(run())
    if len(values) == 2:
        flat = [value if isinstance(value, tuple) else (value,) for value in values]
        for left, right in zip(*flat, strict=True):
            if np.asarray(left).size < 1 << 20:
                np.testing.assert_allclose(left, right, rtol=1e-5, err_msg=told)


def calls(rng: random.Random) -> None:
    """Arguments of any kind: the values of the interpreter, or an error."""
    _, compiled, interpreted = programs()
    name = rng.choice(("related", "claimed", "made", "sliced", "chosen", "moved", "viewed"))
    args = [_argument(rng) for _ in range(rng.choice((2, 2, 2, 1, 3)) if name != "made" else 1)]
    if name == "made" and isinstance(args[0], tuple) and any(abs(size) > 1 << 20 for size in args[0]):
        with contextlib.suppress(weft.WeftError):  # too large to compare
            compiled["made"](*args)
        return
    _agree(lambda: compiled[name](*args), lambda: interpreted[name](*args), name)


def callbacks(rng: random.Random) -> None:
    """Registered functions that return anything, and keep what they were given."""
    _, compiled, interpreted = programs()
    _answer[0] = rng.choice((_array(rng), _argument(rng), (2, 3), [4, 5], {1: 2}, 1.9, (1.9, 2), (2**70, 1), object()))
    x = np.ones(rng.choice((0, 1, 4)), "float32")
    _agree(lambda: compiled["told"](x), lambda: interpreted["told"](x), "told")


def sizes(rng: random.Random) -> None:
    """Sizes near the ends of 32 and 64 bits, in dimensions and in indices."""
    a, b, c = (rng.choice(EDGES) for _ in range(3))
    dim = rng.choice((f"n * {a}", f"n + {a}", f"(n + {a}) * {b}", f"n // {a or 1}", f"n * n * {a}", f"n * {a} + {b}"))
    body = rng.choice(
        (
            f"R.zeros(({dim},), 'int8')",
            f"R.reshape(x, ({dim},))",
            f"R.broadcast_to(x, ({dim}, n))",
            f"x[{a}:{dim}]",
            f"R.strided_slice(x, [0], [{a}], [{dim}], [{c or 1}])",
        )
    )
    text = f'@R.function\ndef main(x: R.Tensor(("n",), "int8")):\n    y = {body}\n    return R.shape_of(y)\n'
    x = np.ones(rng.choice((0, 1, 2, 5)), "int8")
    with contextlib.suppress(weft.WeftError):
        module: Any = weft.parse(text)
        _agree(lambda: weft.compile(module)["main"](x), lambda: weft.interpret(module)["main"](x), text)


_TOKEN = re.compile(r"\w+|[^\w\s]")


def texts(rng: random.Random) -> None:
    """Texts with tokens lost, doubled, exchanged and made extreme: read, verified, printed, compiled."""
    text = PROGRAMS
    if rng.random() < 0.6:
        text = random_module(rng.randrange(1 << 30), runnable=rng.random() < 0.7).script()
    tokens = [(found.start(), found.end()) for found in _TOKEN.finditer(text)]
    for _ in range(rng.choice((1, 1, 2, 5))):
        start, end = rng.choice(tokens)
        first, last = rng.choice(tokens)
        other = rng.choice((text[first:last], "", str(rng.choice(EDGES)), text[start:end] * 2, "-", "[", "'", "None"))
        if end <= len(text):
            text = text[:start] + other + text[end:]
    with contextlib.suppress(weft.WeftError):
        module: Any = weft.parse(text, limits=None)
        weft.verify(module)
        again = weft.parse(module.script())
        assert weft.structural_equal(module, again), "the text reads as another module"
        if rng.random() < 0.2:
            weft.compile(module)


@cache
def _saved() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.weft"
        programs()[1].save(path)
        return path.read_bytes()


def _damaged(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(max(1, len(data)))
        length = rng.choice((0, 1, 1, 4, 100))
        other = rng.choice((b"", rng.randbytes(length), b"\0" * length, data[:length]))
        data = data[:place] + other + data[place + length :]
    return data


def archives(rng: random.Random) -> None:
    """Saved executables, damaged as bytes or inside: refused, or as they were."""
    data = _saved()
    if rng.random() < 0.5:
        data = _damaged(data, rng)
    else:
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
            wrong = rng.choice(old.namelist())
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, _damaged(content, rng) if name == wrong else content)
        data = made.getvalue()
    x, y = np.ones((2, 4), "float32"), np.ones(3, "float32")
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(weft.WeftError):
        path = Path(folder) / "program.weft"
        path.write_bytes(data)
        np.testing.assert_array_equal(weft.load(path)["related"](x, y), np.full((2, 4), 2, "float32"))


def entries(rng: random.Random) -> None:
    """Damaged and exchanged entries of the cache of compiled code: the results are right all the same."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # others may still write there
        before, os.environ["WEFT_CACHE_DIR"] = os.environ.get("WEFT_CACHE_DIR"), folder
        try:
            for factor in (2.0, 3.0):
                weft.compile(_scaled(factor))
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            for path in rng.sample(files, min(2, len(files))):
                other = rng.choice(files).read_bytes()
                path.write_bytes(other if rng.random() < 0.4 else _damaged(path.read_bytes(), rng))
            for factor in (2.0, 3.0):
                out = weft.compile(_scaled(factor))["main"](np.ones(4, "float32"))
                np.testing.assert_array_equal(out, np.full(4, factor, "float32"))
        finally:
            os.environ.pop("WEFT_CACHE_DIR")
            if before is not None:
                os.environ["WEFT_CACHE_DIR"] = before


def _scaled(factor: float) -> Any:
    line = f'y = R.multiply(x, R.const({factor}, "float32"))'
    return weft.parse(f'@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    {line}\n    return y\n')


def results(rng: random.Random) -> None:
    """Hundreds of results, in nested tuples."""
    count = rng.choice((17, 64, 200))
    lines = "\n".join(f"    v{i} = R.add(x, R.const({i}.0, 'float32'))" for i in range(count))
    nested = ", ".join(f"(v{i}, x)" if rng.random() < 0.1 else f"v{i}" for i in range(count))
    module: Any = weft.parse(f'@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n{lines}\n    return {nested}\n')
    found = weft.compile(module, opt=0)["main"](np.zeros(rng.choice((0, 1, 5)), "float32"))
    for index, item in enumerate(found):
        value = item[0] if isinstance(item, tuple) else item
        assert (value == index).all(), f"result {index} of {count}"


def claims(rng: random.Random) -> None:
    """Valid programs over symbolic sizes: the values of NumPy on every executor, and of the interpreter."""
    seed = rng.randrange(1 << 30)
    found = measure(range(seed, seed + 1), ("interpreter", *EXECUTORS))
    assert "wrong" not in found.values(), made(seed).text()


def symbols(rng: random.Random) -> None:
    """Valid programs over several symbols, at sizes of 0, 1, 2 and odd ones: the values of NumPy, or an error."""
    program = symbolic_programs.made(rng.randrange(1 << 30))
    for executor in ("interpreter", *EXECUTORS):
        wrong = [one for one in symbolic.outcomes(program, executor) if one.kind in symbolic.FINDINGS]
        assert not wrong, f"{executor} {wrong} {program.text()}"


def hosts(rng: random.Random) -> None:
    """Values of other projects' kinds as arguments of guarded programs."""
    attempt(rng, rng.choice([*HOSTS]))


TARGETS: dict[str, tuple[Callable[[random.Random], None], float]] = {
    "calls": (calls, 20),
    "callbacks": (callbacks, 10),
    "sizes": (sizes, 0.15),
    "texts": (texts, 0.5),
    "archives": (archives, 0.3),
    "entries": (entries, 0.1),
    "claims": (claims, 0.1),
    "results": (results, 0.01),
    "symbols": (symbols, 0.05),
    "hosts": (hosts, 20),
    "_wrong": (lambda rng: np.testing.assert_equal(1, 2), 1),
    "_dies": (lambda rng: os.abort(), 1),
}
"""Target -> what runs one case, and how many cases a seed has; those with _ show that findings are found."""
EVERY = [name for name in TARGETS if not name.startswith("_")]


class Slow(BaseException):
    """A case took longer than a case may; no finding by itself."""


def _too_slow(*_: Any) -> None:
    raise Slow


def _one(name: str, seed: int, run: Callable[[random.Random], None], rng: random.Random) -> None:
    signal.alarm(SECONDS_OF_A_CASE)
    try:
        run(rng)
    except Slow:
        print(f"slow {name} {seed}", flush=True)
    except MemoryError:
        pass  # of NumPy, where the test itself compares
    except BaseException as error:
        print(f"finding {name} {seed} {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    finally:
        signal.alarm(0)


def work(start: int, seconds: float, names: list[str]) -> None:
    """Run cases, and print each before it runs and each finding after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _too_slow)
    logging.disable()
    ends, seed = time.monotonic() + seconds, start
    while time.monotonic() < ends:
        for name in names:
            run, share = TARGETS[name]
            rng = random.Random(f"{name} {seed}")
            for _ in range(int(share + rng.random())):
                print(f"case {name} {seed}", flush=True)
                _one(name, seed, run, rng)
        seed += 1
    print(f"case done {seed}", flush=True)


def fuzz(seconds: float, start: int = 0, names: list[str] | None = None) -> Iterator[str]:
    """The findings of a run, and at its end the number of cases."""
    ends, cases, seed = time.monotonic() + seconds, 0, start
    while (left := ends - time.monotonic()) > 0:
        chosen = ",".join(names or EVERY)
        command = [sys.executable, __file__, "--work", "--seconds", str(left), "--start", str(seed), "--only", chosen]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        last = ""
        assert child.stdout is not None
        try:
            for line in child.stdout:
                if line.startswith("case "):
                    cases, last = cases + 1, line[5:].strip()
                elif line.startswith("finding "):
                    yield line[8:].strip()
            _, said = child.communicate()
        finally:
            child.kill()
        name, _, number = last.partition(" ")
        if child.returncode:
            yield f"{last} ended the process with {child.returncode}: {' '.join(said.split())[-300:]}"
        if name == "done" or not number:
            break
        seed = int(number) + 1
    yield f"{cases} cases in {seconds:.0f} s"


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description="hostile archives, cache entries, texts, sizes, calls, callbacks")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default=",".join(EVERY), help="targets, separated by commas")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only.split(",")
    if options.work:
        work(options.start, options.seconds, names)
        return 0
    findings = 0
    for line in fuzz(options.seconds, options.start, names):
        print(line, flush=True)
        findings += 1
    return 1 if findings > 1 else 0  # the last line is the count


if __name__ == "__main__":
    sys.exit(main())
