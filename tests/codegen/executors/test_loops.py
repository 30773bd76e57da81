"""Loops of graph functions: each text is run as Python on NumPy arrays, and by every executor."""

from __future__ import annotations

import os
import signal
import tempfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codegen.backends.c.test_c import generate
from tests.codegen.backends.c.test_c import run as run_in_c

import weft
from weft.errors import ArgumentError, ShapeError, TargetError
from weft.ir import Call, Function, IRModule, Op, structural_equal, walk
from weft.testing.loop_programs import loop_program, python_function
from weft.transform import BindSymbolicVars, UnrollLoops

HEAD = "from weft.script import relax as R\n\n\n"
SIGNATURE = '@R.function\ndef main(x: R.Tensor(("n",), "float32"), k: R.Tensor((), "int64")):\n'


def read(body: str, signature: str = SIGNATURE) -> Any:
    return weft.parse(HEAD + signature + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")


def in_python(body: str, *names: str) -> Callable[..., Any]:
    """The same statements as a Python function of NumPy arrays."""
    place: dict[str, Any] = {"np": np, "R": np, "abs": abs}
    exec(f"def main({', '.join(names)}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "), place)
    return place["main"]


PROGRAMS = {
    "over a size": """
        h = x
        for i in range(n):
            h = h * 0.5 + x[i]
        return h
    """,
    "over a scalar": """
        h = x
        for i in range(k):
            h = h + 1.0
        return h
    """,
    "from, to, by": """
        s = 0.0
        for i in range(1, n, 2):
            s = s * 0.5 + x[i]
        return x + s
    """,
    "downward": """
        s = 0.0
        for i in range(n - 1, -1, -1):
            s = s * 0.5 + x[i]
        return x * s
    """,
    "while": """
        j = 0
        h = x
        while j * j < k:
            h = h + 0.5
            j = j + 1
        return h
    """,
    "nested": """
        s = 0.0
        for i in range(n):
            t = 0.0
            for j in range(k):
                t = t + x[i]
            s = s + t * 0.25
        return x + s
    """,
    "swapped": """
        a = x
        b = x * 2.0
        for i in range(k):
            a, b = b, a + 1.0
        return a - b
    """,
    "break and continue": """
        s = 0.0
        last = 0
        for i in range(n):
            v = x[i]
            if v < 0.0:
                continue
            if v > 1.5:
                last = i
                break
            s = s + v
        return x * s
    """,
    "two names in an if": """
        best = x[0]
        seen = 0
        for i in range(n):
            if x[i] > best:
                best = x[i]
                seen = seen + 1
            else:
                seen = seen + 2
        while True:
            seen = seen + 3
            if seen > 20:
                break
        return x + best * 0.5
    """,
    "unchanged": """
        a = x
        b = x + 1.0
        for i in range(k):
            a = a
            b = b * 0.5
        return a + b
    """,
    "none": """
        h = x
        for i in range(n, n):
            h = h * 2.0
        return h
    """,
    "twice": """
        h = x
        for i in range(k):
            h = h + 1.0
        for i in range(k):
            h = h * 0.5
        return h
    """,
}


def expected(body: str, x: np.ndarray, k: int) -> Any:
    return in_python("n = len(x)\n" + textwrap.dedent(body), "x", "k")(x, k)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_means_what_python_says(name: str) -> None:
    function = read(PROGRAMS[name])
    ways = [weft.interpret(function), weft.compile(function), weft.compile(function, executor="vm")]
    for size, count in ((1, 0), (5, 3), (17, 6)):
        x = np.random.default_rng(size).normal(size=size).astype("float32")
        want = expected(PROGRAMS[name], x, count)
        for run in ways:
            np.testing.assert_allclose(run(x, np.array(count)), want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_is_read_back_as_it_was_printed(name: str) -> None:
    function = read(PROGRAMS[name])
    again = weft.parse(function.script())
    assert structural_equal(again, function)
    assert again.script() == function.script()


PYTHON = {
    "return in a loop": """
        h = x
        for i in range(n):
            h = h + 1
            if x[i] > 0.5:
                return h * 10, h[i]
        return h * 2, x[0]
    """,
    "return in the inner of two": """
        for i in range(n):
            for j in range(k):
                if x[i] * j > 1:
                    return i * 10 + j
        return -1
    """,
    "return is the only way out": """
        c = 0
        while True:
            for v in x:
                c += 1
                if c > k:
                    return x + c
    """,
    "else of a loop": """
        i = 0
        for i in range(n):
            if x[i] > 1:
                break
        else:
            return x * 10
        while i > 0:
            i -= 1
        else:
            i = 5
        return x * i
    """,
    "else that leaves the loop around": """
        s = 0
        for i in range(n):
            for j in range(i):
                if x[j] > x[i]:
                    break
            else:
                if i > 1:
                    break
            s += i
        return x * s
    """,
    "inner and outer break": """
        s = 0.0
        for i in range(n):
            for j in range(n):
                if j > i:
                    break
                if x[j] < 0:
                    continue
                s = s + x[j]
            if s > 1:
                break
        return x * s
    """,
    "rows": """
        s = 0
        for v in x:
            s += v
        for i, v in enumerate(x):
            s = s * 0.5 + v * i
        for (a, b), i in zip(enumerate(reversed(x)), range(n)):
            s = s - b * a + i
        return x * s
    """,
    "index after the loop": """
        i = 10
        for i in range(n):
            if x[i] < -1:
                break
        return x * i
    """,
    "numbers take the dtype of what they meet": """
        s, c, top = 0, 0, x[0]
        for v in x:
            if v > 0:
                s += v
                c += 1
            top = max(top, v)
        return x * s + c, top / (c + 1), c
    """,
    "asked only where it is in range": """
        j = 0
        while j < n and x[j] < 0.5:
            j += 1
        c = 0
        for i in range(n):
            if i == 0 or x[i - 1] < x[i]:
                c += 1
        return x * j + c
    """,
    "conditional expressions": """
        s = 0
        for i in range(n):
            s = s + (x[i] if x[i] > 0 else -1)
        return x * s
    """,
    "lists as tuples": """
        s = [0, 1]
        for v in x:
            s = [s[1], s[0] + v]
        a, b = s
        return x * a + b
    """,
    "several names of a branch": """
        if k > 2:
            a = x + 1
            b = x * 2
        else:
            a, b = x, x * 3
        if k > 4:
            for v in x:
                a = a + v
        return a - b
    """,
    "remainders": """
        count = 0
        for a in range(2, 12):
            prime = True
            for b in range(2, a):
                if a % b == 0:
                    prime = False
                    break
            if prime:
                count += 1
        return x * count
    """,
    "many rounds written out": """
        h = x
        for i in range(100):
            h = h * 0.5 + i % 3
        return h
    """,
}


def python_value(body: str, x: np.ndarray, k: int) -> Any:
    text = textwrap.dedent(body).strip("\n").replace("h = x\n", "h = x.copy()\n")
    return python_function(text, {})(x, k)


def assert_results(found: Any, wanted: Any) -> None:
    pairs = zip(*(value if isinstance(value, tuple) else (value,) for value in (found, wanted)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PYTHON)
def test_what_python_says_about_loops_is_read(name: str) -> None:
    function = read(PYTHON[name])
    assert structural_equal(weft.parse(function.script()), function)
    run = weft.interpret(function)
    for size, count in ((1, 0), (5, 3), (9, 6)):
        x = np.random.default_rng(size).normal(size=size).astype("float32")
        assert_results(run(x, np.array(count)), python_value(PYTHON[name], x, count))


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_what_python_says_about_loops_is_compiled(executor: str) -> None:
    chosen = ["return in a loop", "rows", "numbers take the dtype of what they meet", "asked only where it is in range"]
    module = IRModule({f"f{number}": read(PYTHON[name]) for number, name in enumerate(chosen)})
    run = weft.compile(module, executor=executor)
    for size, count in ((1, 0), (9, 6)):
        x = np.random.default_rng(size).normal(size=size).astype("float32")
        for number, name in enumerate(chosen):
            assert_results(run[f"f{number}"](x, np.array(count)), python_value(PYTHON[name], x, count))


REFUSED = {
    "what grows": ("h = x\nfor i in range(k):\n    h = R.concat([h, x])\nreturn h", "W210", "append to a list"),
    "a value of another kind": ("m = 'a'\nfor i in range(k):\n    m = 'b'\nreturn x", "W115", "use another name"),
    "a list that gets a value in some iterations": (
        "hs = []\nfor i in range(n):\n    if x[i] > 0.0:\n        hs.append(x[i])\nreturn hs",
        "W115",
        "each iteration",
    ),
    "a list of an inner loop": (
        "hs = []\nfor i in range(n):\n    for j in range(n):\n        hs.append(x[j])\nreturn hs",
        "W115",
        "where it is made",
    ),
    "a size that only an iteration knows": (
        "for i in range(n):\n    if x[i] > 0.0:\n        return x[:i]\nreturn x",
        "W115",
        "known before the loop",
    ),
    "rows of a scalar": ("for v in k:\n    pass\nreturn x", "W115", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_loop_cannot_hand_on_is_refused_with_what_to_write(name: str) -> None:
    body, code, hint = REFUSED[name]
    with pytest.raises(weft.WeftError) as caught:
        read(body)
    assert caught.value.code == code
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_loops_agree_with_python(seed: int) -> None:
    body = loop_program(seed)
    function = read(body)
    assert structural_equal(weft.parse(function.script()), function)
    runs = [weft.interpret(function)]
    if seed % 20 == 7:
        runs += [weft.compile(function), weft.compile(function, executor="vm")]
    for size, count in ((1, 0), (6, 4)):
        x = np.random.default_rng(seed).normal(size=size).astype("float32")
        for run in runs:
            assert_results(run(x, np.array(count)), python_function(body, {})(x, count))


def fixed() -> IRModule:
    function = read(
        """
        h = x
        for i in range(R.prim_value(4)):
            h = R.tanh(h * 0.5 + x[i])
        return h
        """
    )
    return BindSymbolicVars({"n": 6})(IRModule({"main": function}))


@pytest.mark.parametrize("executor", ["graph", "aot", "native", "vm"])
def test_a_loop_of_known_length_runs_in_every_executor(executor: str) -> None:
    x = np.linspace(-1, 1, 6).astype("float32")
    want = x
    for i in range(4):
        want = np.tanh(want * np.float32(0.5) + x[i])
    found = weft.compile(fixed(), executor=executor)(x, np.array(0))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_c_unrolls_a_loop_of_known_length() -> None:
    sources = weft.compile(fixed(), "c")
    assert any(artifact.name.endswith(".c") for artifact in sources.values())


def loops_in(module: IRModule) -> int:
    return sum(isinstance(n, Call) and isinstance(n.op, Op) and n.op.name == "loop" for n in walk(module["main"]))


ROWS = """
    h = x
    hs = []
    sums = []
    for i in range(n - 1, -1, -2):
        h = R.tanh(h * 0.5 + x[i])
        hs.append(h)
        sums.append(R.sum(h))
    return R.stack(hs), h, sums
"""


@pytest.mark.parametrize("executor", ["native", "vm", None])
@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_list_that_a_loop_appends_to_is_a_tensor(executor: str | None, size: int) -> None:
    function = read(ROWS)
    assert structural_equal(weft.parse(function.script()), function)
    run = weft.interpret(function) if executor is None else weft.compile(function, executor=executor)
    x = np.linspace(-1, 1, size).astype("float32")
    h, rows = x, []
    for i in range(size - 1, -1, -2):
        h = np.tanh(h * np.float32(0.5) + x[i])
        rows.append(h)
    whole, last, sums = run(x, np.array(0))
    np.testing.assert_allclose(whole, np.reshape(rows, (len(rows), size)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, [row.sum() for row in rows], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_rows_of_a_loop_of_known_length_are_stacked_everywhere(executor: str) -> None:
    module = BindSymbolicVars({"n": 5})(IRModule({"main": read(ROWS)}))
    x = np.linspace(-1, 1, 5).astype("float32")
    want = weft.interpret(module)(x, np.array(0))
    for found, wanted in zip(weft.compile(module, executor=executor)(x, np.array(0)), want, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_list_that_a_run_ends_early_is_refused() -> None:
    with pytest.raises(weft.ScriptError, match="of a number that only a run decides") as caught:
        read("hs = []\nfor i in range(k):\n    hs.append(x)\n    if i > 3:\n        break\nreturn hs")
    assert caught.value.code == "W115"


def test_unrolling_stops_at_its_limit() -> None:
    assert loops_in(fixed()) == 1
    assert loops_in(UnrollLoops(limit=4)(fixed())) == 0
    assert loops_in(UnrollLoops(limit=3)(fixed())) == 1


EVERYWHERE = [
    "return in a loop",
    "rows",
    "asked only where it is in range",
    "conditional expressions",
    "lists as tuples",
]


@pytest.mark.parametrize("executor", ["graph", "aot"])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_loops_that_a_run_decides_are_kernels_of_straight_line_programs(name: str, executor: str) -> None:
    module = BindSymbolicVars({"n": 5})(IRModule({"main": read(PYTHON[name])}))
    run = weft.compile(module, executor=executor)
    for seed, count in ((1, 0), (2, 6)):
        x = np.random.default_rng(seed).normal(size=5).astype("float32")
        assert_results(run(x, np.array(count)), python_value(PYTHON[name], x, count))


@pytest.mark.parametrize("seed", [3])
def test_random_programs_with_loops_run_as_straight_lines(seed: int) -> None:
    body = loop_program(seed)
    module = BindSymbolicVars({"n": 4})(IRModule({"main": read(body)}))
    x = np.random.default_rng(seed).normal(size=4).astype("float32")
    wanted = python_function(body, {})(x, 3)
    assert_results(weft.compile(module, executor="aot")(x, np.array(3)), wanted)
    source = generate(weft.lower(module, "c", stop="plan"), model="model")
    results = [np.asarray(part) for part in weft.interpret(module)["main"](x, np.array(3))]
    results = results if isinstance(wanted, tuple) else [np.asarray(weft.interpret(module)["main"](x, np.array(3)))]
    outputs = [np.empty_like(item) for item in results]
    with tempfile.TemporaryDirectory() as folder:
        assert run_in_c(source, "model", [x, np.array(3)], outputs, Path(folder)) == 0
    assert_results(tuple(outputs), wanted if isinstance(wanted, tuple) else (wanted,))


OF_RUN_TIME_SIZE = """
s, j = 0.0, 0
c = k % 4 + 1
for i in range(k):
    j = (j * 2 + 1) % (n - 1)
    s = s * 0.5 + R.sum(x[j:j + 1 + i])
    if x[j] > 0.0:
        s = s + R.sum(x[j:]) * R.sum(x[:n - j])
a = x.copy()
a[c:] += 1.0
for row in m:
    s = s + R.sum(row[c:])
return s, a, R.sum(x[c:]) * R.sum(x[:c])
"""


@pytest.mark.parametrize("executor", ["graph", "aot", "c"])
def test_slices_whose_bounds_values_decide_are_parts_of_straight_lines(executor: str) -> None:
    """In loops, branches and outside of them; C has memory for the greatest that they may be."""
    parameters = 'x: R.Tensor(("n",), "float32"), m: R.Tensor((3, 4), "float32"), k: R.Tensor((), "int64")'
    function = read(OF_RUN_TIME_SIZE, f"@R.function\ndef main({parameters}):\n")
    module = BindSymbolicVars({"n": 6})(IRModule({"main": function}))
    python = in_python("n = len(x)\n" + OF_RUN_TIME_SIZE, "x", "m", "k")
    x, m = (np.random.default_rng(0).normal(size=shape).astype("float32") for shape in (6, (3, 4)))
    for count in (0, 1, 6):
        wanted = python(x, m, count)
        if executor != "c":
            assert_results(weft.compile(module, executor=executor)(x, m, np.array(count)), wanted)
            continue
        outputs = [np.empty_like(np.asarray(part, "float32")) for part in wanted]
        source = generate(weft.lower(module, "c", stop="plan"), model="model")
        with tempfile.TemporaryDirectory() as folder:
            assert run_in_c(source, "model", [x, m, np.array(count)], outputs, Path(folder)) == 0
        assert_results(tuple(outputs), wanted)


def test_a_result_whose_size_values_decide_is_none_of_a_straight_line() -> None:
    module = BindSymbolicVars({"n": 6})(IRModule({"main": read("y = x[:k]\nreturn y * 2.0")}))
    with pytest.raises(TargetError, match="a result of main, whose size only values decide") as caught:
        weft.compile(module, executor="aot")
    assert caught.value.code == "W741"


def test_a_loop_of_many_known_rounds_is_one_kernel_of_c() -> None:
    function = read("h = x\nfor i in range(512):\n    h = R.tanh(h * 0.5 + 1.0)\nreturn h")
    module = BindSymbolicVars({"n": 6})(IRModule({"main": function}))
    kernels = weft.lower(module, "c", stop="lower").functions
    assert len(kernels) == 3  # the entry, the loop, and the kernel of its body


def test_a_call_of_python_in_a_loop_is_refused_by_straight_lines() -> None:
    function = read('h = x\nfor i in range(k):\n    h = R.call_py("f", (h,), R.Tensor((n,), "float32"))\nreturn h')
    module = BindSymbolicVars({"n": 6})(IRModule({"main": function}))
    with pytest.raises(TargetError, match=r"R.call_py cannot be in a loop or a branch") as caught:
        weft.compile(module, executor="aot")
    assert caught.value.code == "W741"


@pytest.mark.parametrize("executor", ["native", "vm", None])
def test_a_step_of_zero_is_an_error(executor: str | None) -> None:
    function = read("h = x\nfor i in range(0, n, 0):\n    h = h + 1.0\nreturn h")
    run = weft.interpret(function) if executor is None else weft.compile(function, executor=executor)
    with pytest.raises(ArgumentError, match="the step of a loop is 0") as caught:
        run(np.ones(3, "float32"), np.array(0))
    assert caught.value.code == "W868"


def test_a_million_iterations_need_no_more_memory_than_one() -> None:
    import resource

    function = read("h = x\nfor i in range(k):\n    h = h * 0.5 + 1.0\nreturn h")
    run = weft.compile(function)
    x = np.zeros(20_000, "float32")
    run(x, np.array(10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(x, np.array(5_000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000  # kB; each value has 80


def test_a_loop_of_the_graph_can_be_interrupted() -> None:
    run = weft.compile(read("h = x\nfor i in range(k):\n    h = h * 0.5 + 1.0\nreturn h"))
    x = np.zeros(4, "float32")
    run(x, np.array(1))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(x, np.array(10**12))
    assert run(x, np.array(1)).tolist() == [1, 1, 1, 1]


def test_an_error_in_an_iteration_leaves_nothing_held() -> None:
    function = read("h = x\nfor i in range(k):\n    h = h + x[i]\nreturn h")
    run = weft.compile(function)
    with pytest.raises((ShapeError, weft.errors.BoundsError)):
        run(np.ones(3, "float32"), np.array(9))
    np.testing.assert_array_equal(run(np.ones(3, "float32"), np.array(2)), np.full(3, 3, "float32"))


def test_the_body_is_fused_as_any_function() -> None:
    run = weft.compile(read("h = x\nfor i in range(k):\n    h = R.tanh(h * 0.5 + 1.0)\nreturn h"))
    assert "fusion (multiply + add + tanh" in str(run.explain())


def test_a_loop_is_one_node_with_what_it_carries_stated() -> None:
    function = read(PROGRAMS["swapped"])
    assert isinstance(function, Function)
    (loop,) = [n for n in walk(function) if isinstance(n, Call) and isinstance(n.op, Op) and n.op.name == "loop"]
    assert len(loop.ty_args[0].fields) == 2  # type: ignore[attr-defined]
