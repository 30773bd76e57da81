"""Sizes and indices near the limits of 64 bits: exact, or an error of ours; no wrapped number, no dead process."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

PROGRAM = Path(__file__).with_name("sizes_program.py")
COUNT = 14
_PARTLY_WRITTEN = ["error", "W902"]  # what the interpreter says of an output of which one element is written


@cache
def outcomes(executor: str, seed: int) -> list[tuple[str, Any]]:
    """(program, what it gave) of random programs, run in a process of their own."""
    command = [sys.executable, str(PROGRAM), executor, str(seed), str(COUNT)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    names = [line["name"] for line in lines if "name" in line]
    assert run.returncode == 0, f"the process ended with {run.returncode} in: {names[-1:]}\n{run.stderr[-800:]}"
    found = [line["outcome"] for line in lines if "outcome" in line]
    assert len(found) == COUNT
    return list(zip(names, found, strict=True))


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_sizes_near_the_limits_are_exact_or_refused_as_the_interpreter_refuses_them(executor: str) -> None:
    for (name, wanted), (_, got) in zip(outcomes("interpret", 1), outcomes(executor, 1), strict=True):
        if wanted == _PARTLY_WRITTEN:
            assert got[0] == "value", name
        elif wanted[0] == "error" and wanted[1].startswith("W90"):
            assert got[0] == "error" and got[1].startswith("W90"), (name, wanted, got)  # noqa: PT018
        else:
            assert got == wanted, name


def _module(body: str, params: str = "n: T.int64") -> weft.IRModule:
    head = "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass M:\n"
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return weft.parse(f'{head}    @T.prim_func\n    def k(A: T.Buffer((8,), "float32"), {params}):\n{lines}\n')


@pytest.mark.parametrize(
    ("body", "n"),
    [
        ("A[n * n] = T.float32(7)", 3037000500),
        ("A[8 * n] = T.float32(7)", 2**61),
        ("if n >= 0:\n    if 8 * n < 8:\n        A[n] = T.float32(7)", 2**61),
        ("A[(8 * n) % 8] = T.float32(7)", 2**61),
        ("A[(8 * n) // 8 - 1] = T.float32(7)", 2**61),
        ("for i in range(8 * n + 1):\n    A[i] = T.float32(7)", 2**61),
        ("for i in range(n, n + 3):\n    A[i - n] = T.float32(7)", 2**63 - 3),
        ("for i in range((16 * n) // 2**60):\n    A[i] = T.float32(7)", 2**60),
        ("for i in range(T.min(16 * n, 4)):\n    A[i] = T.float32(7)", 2**60),
    ],
)
@pytest.mark.parametrize("executor", ["interpret", "native"])
def test_an_index_whose_arithmetic_leaves_64_bits_is_an_error(body: str, n: int, executor: str) -> None:
    array = np.ones(8, "float32")
    run = weft.interpret(_module(body)) if executor == "interpret" else weft.compile(_module(body))
    with pytest.raises(weft.BoundsError):
        run["k"](array, n)
    assert array.tolist() == [1.0] * 8


@pytest.mark.parametrize(
    ("body", "n"),
    [
        ("A[n * 8 - n * 8 + 3] += T.float32(7)", 2**61),
        ("A[(n + n) - n - n + 3] += T.float32(7)", 2**62),
        ("for i in range(4 * n + 3, 4 * n + 4):\n    A[i - n * 4] += T.float32(7)", 3),
    ],
)
@pytest.mark.parametrize("executor", ["interpret", "native"])
def test_an_index_that_fits_is_one_though_its_parts_leave_64_bits(body: str, n: int, executor: str) -> None:
    array = np.zeros(8, "float32")
    run = weft.interpret(_module(body)) if executor == "interpret" else weft.compile(_module(body))
    run["k"](array, n)
    assert array.tolist() == [0.0] * 3 + [7.0] + [0.0] * 4


@pytest.mark.parametrize("executor", ["interpret", "native"])
def test_a_loop_whose_range_leaves_64_bits_is_the_same_error(executor: str) -> None:
    for body in (
        "for i in range(n - 2, n * 2):\n    A[0] = 1.0",
        "for i in range(n * 2 - 2, n * 2 - 1):\n    A[0] = 1.0",
    ):
        run = weft.interpret(_module(body)) if executor == "interpret" else weft.compile(_module(body))
        with pytest.raises(weft.BoundsError) as caught:
            run["k"](np.zeros(8, "float32"), 2**62 + 2)
        assert caught.value.code == "W900"
        assert "the range of the loop of 'i' does not fit 64 bits" in str(caught.value)


def test_a_slice_that_begins_past_all_sizes_is_empty() -> None:
    text = "@R.function\ndef main(x: R.Tensor(('n',), 'float32'), s: R.Shape(['m'])):\n    y = x[m:n]\n    return y\n"
    main = weft.compile(weft.parse(text))["main"]
    for begin in (2**62, 2**63 - 65, 2**63 - 1):  # the process ended where m - n + 63 left 64 bits
        for length in (0, 1, 3):
            assert main(np.ones(length, "float32"), (begin,)).shape == (0,)


def test_a_condition_in_32_bits_proves_nothing_of_an_index_in_64() -> None:
    module = _module("if a * a < 8:\n    A[a * a] = T.float32(7)", "a: T.int32")
    array = np.ones(8, "float32")
    with pytest.raises(weft.BoundsError):
        weft.compile(module)["k"](array, 65536)
    weft.compile(module)["k"](array, 2)
    assert array.tolist() == [1.0] * 4 + [7.0] + [1.0] * 3


def test_scratch_whose_size_wraps_is_an_error() -> None:
    module = _module("B = T.alloc_buffer((n * n,), 'float32')\nB[0] = A[0]\nA[1] = B[0]")
    for run in (weft.interpret(module), weft.compile(module)):
        with pytest.raises((weft.OutOfMemoryError, weft.BoundsError)):  # compiled code checks B[0] first
            run["k"](np.ones(8, "float32"), 2**32)


def test_a_tensor_that_no_memory_holds_is_refused_before_it_runs() -> None:
    text = (
        "from weft.script import relax as R\n\n@R.function\ndef main():\n"
        "    y = R.zeros((2**40, 2**40), 'float32')\n    return y\n"
    )
    for executor in ("native", "vm"):
        with pytest.raises(weft.OutOfMemoryError) as caught:
            weft.compile(weft.parse(text), executor=executor)
        assert caught.value.code == "W950"


@pytest.mark.parametrize("shape", ["(n * n * n * n,)", "(n * n, n * n)"])
@pytest.mark.parametrize("opt", [0, 2])
def test_a_size_is_checked_though_fusion_leaves_its_tensor_out(opt: int, shape: str) -> None:
    """H9: the sum of as many ones as 64 bits do not hold was 0: the loop over them wrapped."""
    module = weft.parse(
        '@R.function\ndef main(s: R.Shape(["n"])) -> R.Tensor((), "int64"):\n'
        f'    return R.sum(R.astype(R.ones({shape}, "int8"), "int64"))\n'
    )
    for executor in ("native", "vm"):
        exe = weft.compile(module, opt=opt, executor=executor)
        assert exe["main"]((5,)) == 625
        with pytest.raises((weft.BoundsError, weft.OutOfMemoryError), match="fit 64 bits"):
            exe["main"]((2**16,))


@pytest.mark.parametrize("repeated", ["R.tile(x, (n * m,))", "R.repeat(x, n * m)", "R.linspace(0, 1, n * m)"])
def test_repetitions_that_no_memory_holds_are_refused_alike(repeated: str) -> None:
    text = f"""
@R.function
def main(s: R.Shape(["n", "m"]), x: R.Tensor((1,), "float32")):
    n = T.int64()
    m = T.int64()
    return {repeated}
"""
    module, sizes = weft.parse(text), ((2**62, 2), (2**32, 2**32), (2**63 - 1, 2**63 - 1))
    for main in (weft.interpret(module)["main"], weft.compile(module)["main"]):
        for size in sizes:
            with pytest.raises(weft.WeftError) as caught:
                main(size, np.ones(1, "float32"))
            assert caught.value.code == "W950"


_INDIRECT = {
    "extent": "for i in range(X[X[0]]):\n    A[i % 8] = 1.0",
    "start": "for i in range(X[X[0]], X[X[0]] + 2):\n    A[i % 8] = 1.0",
    "condition": "if X[X[0]] > 0:\n    A[0] = 1.0",
    "inner loop": "for i in range(2):\n    for j in range(X[X[i]]):\n        A[j % 8] = 1.0",
    "predicate": "for i in range(8):\n    with T.sblock('b'):\n        v = T.axis.spatial(8, i)\n"
    "        T.where(X[X[0]] > 0)\n        A[v] = 1.0",
    "block variable": "for i in range(1):\n    with T.sblock('b'):\n        v = T.axis.opaque(8, X[X[0]] % 8)\n"
    "        A[v] = 1.0",
}


@pytest.mark.parametrize("kind", _INDIRECT)
def test_what_a_statement_reads_before_it_begins_is_checked(kind: str) -> None:
    module = _module(_INDIRECT[kind], 'X: T.Buffer((8,), "int64")')
    for run in (weft.interpret(module), weft.compile(module)):
        for place in (2**40, -(2**40), 8, -1):
            with pytest.raises(weft.BoundsError):
                run["k"](np.ones(8, "float32"), np.full(8, place))


_READ_ONCE = {
    "allocation": "B = T.alloc_buffer((X[0],), 'float32')\nX[0] = 1000000\nB[500000] = 1.0\nA[0] = B[500000]",
    "view": "B = T.decl_buffer((X[0],), 'float32', data=A.data)\nX[0] = 1000000\nB[500000] = 1.0",
    "block": "for i in range(1):\n    with T.sblock('b'):\n        v = T.axis.spatial(1, i)\n"
    "        B = T.alloc_buffer((X[v],), 'float32')\n        X[0] = 1000000\n        B[500000] = 1.0\n"
    "        A[0] = B[500000]",
    "size of an allocation": "B = T.alloc_buffer((X[X[5]],), 'float32')\nB[0] = A[0]\nA[1] = B[0]",
    "size of a view": "B = T.decl_buffer((X[X[5]],), 'float32', data=A.data)\nB[0] = 1.0",
    "place of a view": "B = T.decl_buffer((2,), 'float32', data=A.data, elem_offset=X[X[5]])\nB[0] = 1.0",
    "region": "for i in range(1):\n    with T.sblock('b'):\n        v = T.axis.spatial(1, i)\n"
    "        B = T.match_buffer(A[X[X[5]] : X[X[5]] + 2], (2,))\n        B[1] = 1.0",
}


@pytest.mark.parametrize("kind", _READ_ONCE)
def test_a_buffer_has_the_sizes_that_memory_said_when_it_was_declared(kind: str) -> None:
    module = _module(_READ_ONCE[kind], 'X: T.Buffer((8,), "int64")')
    for run in (weft.interpret(module), weft.compile(module)):
        with pytest.raises(weft.BoundsError):
            run["k"](np.zeros(8, "float32"), np.array([2, 2, 2, 2, 2, 10**12, 2, 2]))


def test_a_size_of_memory_is_used_as_it_was() -> None:
    body = "B = T.alloc_buffer((X[0],), 'float32')\nX[0] = 7\nfor i in range(2):\n    B[i] = A[i] + 1.0\nA[2] = B[1]"
    for run in (
        weft.interpret(_module(body, 'X: T.Buffer((8,), "int64")')),
        weft.compile(_module(body, 'X: T.Buffer((8,), "int64")')),
    ):
        array, sizes = np.zeros(8, "float32"), np.full(8, 2)
        run["k"](array, sizes)
        assert array.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
        assert sizes.tolist() == [7] + [2] * 7


_UNSIGNED = {
    "parameter": "A[n] = 1.0",
    "cast": "A[T.Cast('int64', n)] = 1.0",
    "condition": "if n > T.uint64(5):\n    A[n - T.uint64(6)] = 1.0",
    "variable": "k: T.uint64 = n + T.uint64(0)\nA[k] = 1.0",
    "range": "for i in range(n):\n    A[i] = 1.0",
    "allocation": "B = T.alloc_buffer((n,), 'float32')\nB[0] = 1.0\nA[0] = B[0]",
    "view": "B = T.decl_buffer((2,), 'float32', data=A.data, elem_offset=n)\nB[0] = 1.0",
}


@pytest.mark.parametrize("kind", _UNSIGNED)
def test_unsigned_numbers_of_64_bits_are_indices_below_the_size_only(kind: str) -> None:
    module = _module(_UNSIGNED[kind], "n: T.uint64")
    for run in (weft.interpret(module), weft.compile(module)):
        for number in (2**64 - 1, 2**63, 2**63 + 1, 2**64 - 2**32):
            with pytest.raises((weft.BoundsError, weft.OutOfMemoryError)):
                run["k"](np.zeros(8, "float32"), number)


def test_unsigned_numbers_keep_their_meaning_in_quotients_and_minima() -> None:
    module = _module("A[n % T.uint64(7)] += 1.0\nA[T.min(n, T.uint64(7))] += 2.0", "n: T.uint64")
    for run in (weft.interpret(module), weft.compile(module)):
        for number in (0, 3, 8, 2**63 - 1, 2**63, 2**64 - 1):
            array, wanted = np.zeros(8, "float32"), np.zeros(8, "float32")
            wanted[number % 7] += 1
            wanted[min(number, 7)] += 2
            run["k"](array, number)
            np.testing.assert_array_equal(array, wanted)


_MOVED = {
    "store": "A[X[0]] = T.Cast('float32', {call})",
    "sum": "A[0] = T.Cast('float32', {call}) + A[X[0]]",
    "variable": "k: T.float32 = T.Cast('float32', {call}) + A[X[0]]\nA[0] = k",
    "argument": "T.evaluate(T.call_packed('tests.moves', X.data, {call}, A[X[0]], dtype='void'))",
    "condition": "if {call} + T.Cast('int32', A[X[0]]) == 1:\n    A[0] = 1.0",
}


@pytest.mark.parametrize("kind", _MOVED)
def test_a_function_that_changes_what_a_place_is_read_from_is_checked(kind: str) -> None:
    weft.register_func("tests.moves", lambda x, *more: x.__setitem__(0, 10**12) or 0)
    body = _MOVED[kind].format(call="T.call_packed('tests.moves', X.data, dtype='int32')")
    module = _module(body, 'X: T.Buffer((8,), "int64")')
    for run in (weft.interpret(module), weft.compile(module)):
        with pytest.raises(weft.BoundsError):
            run["k"](np.zeros(8, "float32"), np.zeros(8, "int64"))


@pytest.mark.parametrize("step", [2**63 - 1, 2**63 - 2, 2**62, 2**33])
def test_a_number_of_steps_near_the_end_of_64_bits_is_exact(step: int) -> None:
    """Rounded up as (n + step - 1) // step, it left 64 bits."""
    module = weft.parse(f"""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    a = R.strided_slice(x, (0,), (0,), (n,), ({step},))
    b = R.arange(0, n, {step}, "int64")
    return (a, b)
""")
    runs = [weft.interpret(module), *(weft.compile(module, executor=executor) for executor in ("native", "vm"))]
    for size in (0, 1, 2, 5):
        for run in runs:
            a, b = run["main"](np.arange(3, 3 + size, dtype="float32"))
            assert (a.tolist(), b.tolist()) == (([3.0], [0]) if size else ([], []))


_FILLED = "for f in range(8):\n    A[f] = 0.0\n"
_COMPUTED = {
    "name": "k: T.int64 = (n * m) % 8\nA[k] = 1.0",
    "names": "j: T.int64 = n * m\nk: T.int64 = j % 8\nl: T.int64 = k // 1\nA[l] = 1.0",
    "cast": "k = T.Cast('int64', (n * m) % 8)\nA[k] = 1.0",
    "minimum": "k: T.int64 = T.min(n * m, 7)\nA[T.max(k, 0)] = 1.0",
    "condition": "k: T.int64 = (n * m) % 8\nif k >= 0 and k < 8:\n    A[k] = 1.0",
    "choice": "A[T.Select(n > 0, (n * m) % 8, T.int64(7))] = 1.0",
    "named choice": "k: T.int64 = T.if_then_else(n > 0, (n * m) % 8, T.int64(7))\nA[k] = 1.0",
    "range": "k: T.int64 = (n * m) % 8\nfor i in range(k, k + 1):\n    A[i] = 1.0",
    "allocation": "k: T.int64 = (n * m) % 8\nB = T.alloc_buffer((k + 1,), 'float32')\nB[k] = 1.0\nA[k] = B[k]",
    "block": "with T.block('z'):\n    v = T.axis.spatial(8, (n * m) % 8)\n    A[v] = 1.0",
    "memory": "X = T.alloc_buffer((1,), 'int64')\nX[0] = n\nk: T.int64 = (X[0] * m) % 8\nX[0] = 0\nA[k] = 1.0",
    "product of memory": "X = T.alloc_buffer((1,), 'int64')\nX[0] = n\nk: T.int64 = X[0] * m\nX[0] = 0\nA[k % 8] = 1.0",
}


@pytest.mark.parametrize("kind", _COMPUTED)
def test_an_index_says_the_exact_number_whatever_names_its_parts_have(kind: str) -> None:
    """The product leaves 64 bits: (n * m) % 8 is another element with numbers that wrap, and is an error everywhere."""
    module = _module(f"{_FILLED}{_COMPUTED[kind]}", "n: T.int64, m: T.int64")
    for run in (weft.interpret(module), weft.compile(module, opt=0), weft.compile(module)):
        array = np.zeros(8, "float32")
        run["k"](array, 1, 5)
        assert array.tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
        for n, m in ((2**62, 4), (2**32 + 1, 2**32 + 1), (2**63 - 1, 2**63 - 1)):
            with pytest.raises((weft.BoundsError, weft.OutOfMemoryError)):
                run["k"](array, n, m)


def test_a_choice_that_is_not_taken_is_not_held_against_64_bits() -> None:
    module = _module(_FILLED + _COMPUTED["choice"], "n: T.int64, m: T.int64")
    for run in (weft.interpret(module), weft.compile(module)):
        array = np.zeros(8, "float32")
        run["k"](array, -(2**62), 2**62)
        assert array.tolist() == [0, 0, 0, 0, 0, 0, 0, 1]


def test_values_wrap_in_64_bits() -> None:
    module = _module(_FILLED + "A[0] = T.Cast('float32', (n * m) % 8)", "n: T.int64, m: T.int64")
    for run in (weft.interpret(module), weft.compile(module)):
        array = np.zeros(8, "float32")
        run["k"](array, 2**32 + 1, 2**32 + 3)
        assert array[0] == 3


@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize(
    "value",
    [
        "x",  # which does not use it
        "R.sum(y, axis=[1])",
        "R.sum(y * c)",
        "R.sum(R.exp(R.concat((y, y, R.zeros((4, n), 'float32')), axis=1)), axis=[1])",
    ],
)
def test_a_value_whose_size_is_negative_is_an_error_where_fusion_makes_it_elsewhere_too(
    value: str, executor: str
) -> None:
    text = f"""
@R.function
def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "float32")):
    y = R.broadcast_to(c, (4, n - 1))
    return {value}
"""
    module, c = weft.parse(text), np.float32(2)
    run = weft.compile(module, executor=executor)["main"]
    for size in (3, 1):
        x = np.ones(size, "float32")
        np.testing.assert_allclose(run(x, c), weft.interpret(module)["main"](x, c), rtol=1e-6)
    with pytest.raises(weft.WeftError, match="negative size"):
        run(np.ones(0, "float32"), c)
