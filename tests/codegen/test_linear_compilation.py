"""Compiling takes time in proportion to the program: results, parameters, bindings and kernels by the hundred.

Counted are the lines that each function of weft runs: when a program doubles, they may double, not grow fourfold.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.dim import Facts, proofs, symbol
from weft.transform.memory.pack_memory import Request, pack

ROOT = str(Path(weft.__file__).resolve().parent.parent.parent)
VECTOR = 'R.Tensor((4,), "float32")'


def results(count: int) -> str:
    names = ", ".join(f"y{i}" for i in range(count))
    sums = "".join(f"        y{i} = R.add(x, R.const({float(i)}, 'float32'))\n" for i in range(count))
    return (
        f"@R.function\ndef main(x: {VECTOR}):\n    with R.dataflow():\n{sums}        R.output({names})\n"
        f"    return ({names},)\n"
    )


def fields(count: int) -> str:
    """The results of one operator, which are one kernel."""
    taken = "".join(f"        y{i} = s[{i}]\n" for i in range(count))
    names = ", ".join(f"y{i}" for i in range(count))
    return (
        f'@R.function\ndef main(x: R.Tensor(({count}, 4), "float32")):\n    with R.dataflow():\n'
        f"        s = R.split(x, {count}, axis=0)\n{taken}        R.output({names})\n    return ({names},)\n"
    )


def parameters(count: int) -> str:
    given = ", ".join(f"x{i}: R.Tensor((4, 4), 'float32')" for i in range(count))
    products = "".join(f"    y = R.matmul(y, x{i})\n" for i in range(1, count))
    return f"@R.function\ndef main({given}):\n    y = x0\n{products}    return y\n"


def kernels(count: int) -> str:
    kernel = (
        "    @T.prim_func\n    def k{0}(a: T.Buffer((4,), 'float32'), b: T.Buffer((4,), 'float32')):\n"
        "        for i in range(4):\n            b[i] = a[i] + T.float32({0})\n"
    )
    calls = "".join(f"        y = R.call_tir(M.k{i}, (y,), out_ty={VECTOR})\n" for i in range(count))
    members = "".join(kernel.format(i) for i in range(count))
    main = f"    @R.function\n    def main(x: {VECTOR}):\n        y = x\n{calls}        return y\n"
    return f"@I.ir_module\nclass M:\n{members}{main}"


def chained_kernels(count: int) -> str:
    """Each kernel calls the next one."""
    head = "    @T.prim_func(private=True)\n    def k{0}(a: T.Buffer((4,), 'float32'), b: T.Buffer((4,), 'float32')):\n"
    sums = "        c = T.alloc_buffer((4,), 'float32')\n        for i in range(4):\n            c[i] = a[i] + 1\n"
    members = "".join(f"{head}{sums}        M.k{{1}}(c, b)\n".format(i, i + 1) for i in range(count))
    last = f"{head.format(count)}        for i in range(4):\n            b[i] = a[i]\n"
    main = f"    @R.function\n    def main(x: {VECTOR}):\n        return R.call_tir(M.k0, (x,), out_ty={VECTOR})\n"
    return f"@I.ir_module\nclass M:\n{members}{last}{main}"


def buffers(count: int) -> str:
    made = "".join(f"    c{i} = T.alloc_buffer((4,), 'float32')\n" for i in range(count))
    loops = "".join(
        f"    for i in range(4):\n        c{i}[i] = {f'c{i - 1}' if i else 'a'}[i] * T.float32({i})\n"
        for i in range(count)
    )
    return (
        f"@T.prim_func\ndef main(a: T.Buffer((4,), 'float32'), b: T.Buffer((4,), 'float32')):\n{made}{loops}"
        f"    for i in range(4):\n        b[i] = c{count - 1}[i]\n"
    )


def _kernel(lines: list[str]) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    parameters = 'A: T.Buffer((64,), "int64"), B: T.Buffer((64,), "int64")'
    return f"@T.prim_func\ndef main({parameters}):\n    for i in range(64):\n{body}"


def _chain(first: str, step: str, count: int, last: str = "A[v{} % 64]") -> str:
    """A variable made of the one before, again and again."""
    made = [f"v{j + 1}: T.let = {step.format(v=f'v{j}', j=j)}" for j in range(count)]
    return _kernel([f"v0: T.let = {first}", *made, f"B[i] = {last.format(count)}"])


def remainders(count: int) -> str:
    return _chain("A[i] % 3", "({v} + {v}) % 61", count)


def minima(count: int) -> str:
    return _chain("A[i]", "T.min(T.max({v} + {v}, {j}), A[{v} % 64])", count)


def choices(count: int) -> str:
    return _chain("i", "T.Select({v} > {j}, {v} // 2, ({v} + 1) % 60)", count)


def indices(count: int) -> str:
    """An index with as many minima of elements in one another."""
    index = "i"
    for j in range(count):
        index = f"T.{('min', 'max')[j % 2]}({index}, A[{j}])"
    return _kernel([f"B[i] = A[{index} % 64]"])


@contextmanager
def counted_lines() -> Iterator[Counter[CodeType]]:
    """Count the lines that functions of the package run, in all threads."""
    counts: Counter[CodeType] = Counter()

    def inside(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            counts[frame.f_code] += 1
        return inside

    def entered(frame: FrameType, event: str, arg: Any) -> Any:
        return inside if frame.f_code.co_filename.startswith(ROOT) and ".venv" not in frame.f_code.co_filename else None

    before = sys.gettrace()
    threading.settrace(entered)
    sys.settrace(entered)
    try:
        yield counts
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]


def lines_of(text: str) -> Counter[CodeType]:
    module = weft.parse(text)
    with counted_lines() as counts:
        weft.compile(module)
    return counts


@pytest.mark.parametrize(
    ("program", "size"), [(results, 12), (fields, 16), (parameters, 12), (kernels, 20), (buffers, 12)]
)
def test_twice_the_program_takes_twice_the_work(program: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", "off")
    weft.compile(weft.parse(program(3)))  # imports, and what is computed once
    small, large = lines_of(program(size)), lines_of(program(2 * size))
    grown = {
        f"{code.co_filename.removeprefix(ROOT)}:{code.co_firstlineno} {code.co_name}: {small[code]} to {lines} lines"
        for code, lines in large.items()
        if lines > 20 * size and lines > 3.2 * small[code]
    }
    assert not grown
    assert sum(large.values()) < 2.4 * sum(small.values())


@pytest.mark.parametrize(("program", "size"), [(remainders, 8), (minima, 8), (choices, 8), (indices, 20)])
def test_twice_as_deep_takes_at_most_three_times_the_work(
    program: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are made of values, and each of their checks looks at all of them: never at each of their uses."""
    monkeypatch.setenv("WEFT_CACHE_DIR", "off")
    weft.compile(weft.parse(program(3)))
    small, large = lines_of(program(size)), lines_of(program(2 * size))
    assert sum(large.values()) < 3 * sum(small.values())


def layers_of_attention(count: int, names: tuple[str, str]) -> list[Request]:
    """What layers of any batch and length need: rows, scores, and masks of narrower dtypes."""
    n, m = map(symbol, names)
    found = [Request(8 * m, 0, 3), Request(n * m, 1, 5 * count), Request(m, 1, 6 * count)]
    for step in range(2, 6 * count + 2, 6):
        sizes = (128 * n * m, 384 * n * m, 4 * n * m * m, n * m * m, 4 * m * m, 4 * n * m * m, 256 * n * m, 2 * m)
        steps = ((0, 6), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5), (5, 6), (4, 5))
        found += [Request(size, step + a, step + b) for size, (a, b) in zip(sizes, steps, strict=True)]
    return found


def test_sizes_that_are_the_greatest_of_sums_are_compared_sum_by_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of the second layer stands on the greatest of sums: all cases of these were 16 times as many."""
    cases: Counter[int] = Counter()
    looked_at = proofs._substituted

    for count in (1, 2):

        def counting(*given: Any, layers: int = count) -> Any:
            cases[layers] += 1
            return looked_at(*given)

        monkeypatch.setattr(proofs, "_substituted", counting)
        n, m = f"batch_{count}", f"length_{count}"  # symbols of its own: nothing is proved before
        pack(layers_of_attention(count, (n, m)), Facts().assume_bounds(n, 1, 64).assume_bounds(m, 2, 512))
    assert 0 < cases[2] < 3 * cases[1]


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_a_chain_of_kernels_is_looked_at_once(executor: str) -> None:
    """Two looks at each callee would be 2**60 at the last."""
    exe = weft.compile(weft.parse(chained_kernels(60)), opt=0, executor=executor)
    np.testing.assert_array_equal(exe["main"](np.zeros(4, "float32")), np.full(4, 60))


def test_a_chain_of_choices_between_quotients_computes_what_it_says() -> None:
    """With more ways through them than are looked at."""
    exe = weft.compile(weft.parse(choices(40)))
    a = np.arange(64)[::-1].copy()
    want = np.arange(64)
    for j in range(40):
        want = np.where(want > j, want // 2, (want + 1) % 60)
    out = np.zeros(64, "int64")
    exe["main"](a, out)
    np.testing.assert_array_equal(out, a[want % 64])


def test_quotients_in_one_another_beyond_64_bits_compile() -> None:
    index = "i"
    for j in range(80):
        index = f"(({index} + {j}) // 2)"
    a, out = np.arange(64), np.zeros(64, "int64")
    weft.compile(weft.parse(_kernel([f"B[i] = A[{index} % 64]"])))["main"](a, out)
    want = np.arange(64)
    for j in range(80):
        want = (want + j) // 2
    np.testing.assert_array_equal(out, a[want % 64])


def test_a_hundred_results_go_into_arrays_of_the_caller() -> None:
    exe = weft.compile(weft.parse(results(100)))
    x = np.arange(4, dtype="float32")
    out = tuple(np.full(4, -1, "float32") for _ in range(100))
    given = exe["main"](x, out=out)
    for number, array in enumerate(out):
        assert given[number] is array
        np.testing.assert_array_equal(array, x + number)


def test_arrays_of_the_caller_that_overlap_get_their_values_one_after_the_other() -> None:
    exe = weft.compile(weft.parse(results(40)))
    x = np.arange(4, dtype="float32")
    memory = np.zeros(44, "float32")
    out = tuple(memory[i : i + 4] for i in range(40))
    exe["main"](x, out=out)
    np.testing.assert_array_equal(memory[:40], np.arange(40, dtype="float32"))
    np.testing.assert_array_equal(memory[39:43], x + 39)
