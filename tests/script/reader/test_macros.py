# pyright: reportInvalidTypeForm=false, reportRedeclaration=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportUndefinedVariable=false, reportGeneralTypeIssues=false, reportArgumentType=false, reportIndexIssue=false
# ruff: noqa: E501  (scripts inside strings and inside decorated functions)
"""Metaprogramming: macros, lambdas, captured values and functions, kernels made by Python functions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.script import Limits, parse
from weft.script import relax as R
from weft.script import tir as T

CHOSEN = 3


@T.macro(hygienic=True)
def at_definition(A, B):
    B[0] = A[CHOSEN]


@T.macro(hygienic=False)
def at_call(A, B):
    B[0] = A[CHOSEN]


def same(made: Any, text: str) -> None:
    """The function is what a text without macros says, and its own text reads back."""
    weft.assert_structural_equal(made, parse(text))
    weft.assert_structural_equal(parse(made.script()), made)


def test_a_hygienic_macro_sees_the_names_of_its_definition() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for CHOSEN in range(8):  # noqa: B007
            at_definition(A, B)
            at_call(A, B)

    same(
        main,
        '@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
        "    for i in range(8):\n        B[0] = A[3]\n        B[0] = A[i]\n",
    )


def test_names_of_a_macro_end_with_it() -> None:
    with pytest.raises(weft.ScriptError) as caught:
        parse(
            "@T.macro\ndef m(A):\n    v: T.let = A[0]\n    A[1] = v\n"
            '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    m(A)\n    A[2] = v\n'
        )
    assert (caught.value.code, caught.value.span.line, caught.value.span.column) == ("W110", 8, 12)  # type: ignore[union-attr]


def test_a_macro_in_a_text_is_expanded_without_running_anything() -> None:
    made = parse(
        "K = 2\n\n@T.macro\ndef fill(A, value, *, at=K):\n    A[at] = value\n\n"
        '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    fill(A, T.float32(1))\n    fill(A, T.float32(2), at=5)\n'
    )
    same(made, '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    A[2] = T.float32(1)\n    A[5] = T.float32(2)\n')


def test_a_macro_may_be_a_member_of_a_module() -> None:
    module = parse(
        "@I.ir_module\nclass M:\n    @R.macro\n    def twice(x):\n        y = R.add(x, x)\n        return y\n\n"
        '    @R.function\n    def main(x: R.Tensor((2,), "float32")):\n        z = cls.twice(x)\n        return M.twice(z)\n'
    )
    assert list(module.functions) == ["main"]  # type: ignore[union-attr]
    assert weft.interpret(module)["main"](np.ones(2, "float32")).tolist() == [4.0, 4.0]


def test_a_nested_macro_sees_the_function_around_it() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        @T.inline
        def add(i, v):
            A[i] = A[i] + v

        for i in range(8):
            add(i, T.float32(2))

    same(
        main,
        '@T.prim_func\ndef main(A: T.Buffer((8,), "float32")):\n    for i in range(8):\n        A[i] = A[i] + T.float32(2)\n',
    )


def test_the_value_of_a_macro_is_computed_before_the_statement() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        @T.macro
        def dot(n):
            total = T.float32(0)
            for k in range(n):
                total = total + A[k]
            return total

        for i in range(8):
            B[i] = dot(4) * dot(3)

    a, b = np.arange(8, dtype="float32"), np.empty(8, "float32")
    weft.interpret(main)(a, b)
    assert b.tolist() == [18.0] * 8


EXPRESSIONS = {
    "writes memory": (
        "@T.macro\ndef m(A):\n    A[1] = A[0]\n    return A[0]\n",
        "    A[0] = A[1] + m(A)\n",
        ("W115", 3, 5, "writes memory"),
    ),
    "gives nothing": (
        "@T.macro\ndef m(A):\n    v: T.let = A[1]\n",
        "    A[0] = m(A)\n",
        ("W120", 3, 5, "gives no value"),
    ),
    "value not used": ("@T.macro\ndef m(A):\n    return A[1]\n", "    m(A)\n", ("W115", 3, 5, "is not used")),
    "other level": ("@R.macro\ndef m(A):\n    return A\n", "    m(A)\n", ("W115", 6, 5, "other level")),
    "too many": ("@T.macro\ndef m(A):\n    A[0] = A[1]\n", "    m(A, 1)\n", ("W113", 6, 5, "takes 1 argument, got 2")),
    "lacks one": ("@T.macro\ndef m(A, b):\n    A[0] = A[1]\n", "    m(A)\n", ("W113", 6, 5, "lacks its argument 'b'")),
    "no such name": (
        "@T.macro\ndef m(A, bias):\n    A[0] = A[1]\n",
        "    m(A, bios=1)\n",
        ("W113", 6, 5, "has no argument 'bios'"),
    ),
    "given twice": ("@T.macro\ndef m(A):\n    A[0] = A[1]\n", "    m(A, A=1)\n", ("W113", 6, 5, "got 'A' twice")),
    "inside": ("@T.macro\ndef m(A):\n    A[0] = A[x, 1]\n", "    m(A)\n", ("W110", 3, 14, "undefined name 'x'")),
    "endless": ("@T.macro\ndef m(A):\n    m(A)\n", "    m(A)\n", ("W103", 3, 5, "macros nest deeper than 200")),
    "doubling": (
        "@T.macro\ndef m(A, n):\n    if n > 0:\n        m(A, n - 1)\n        m(A, n - 1)\n",
        "    m(A, 150)\n",
        ("W103", 4, 9, "unroll to more than"),
    ),
    "option": (
        "@T.macro(hygiene=False)\ndef m(A):\n    A[0] = A[1]\n",
        "    m(A)\n",
        ("W113", 1, 10, "has no option 'hygiene'"),
    ),
    "in a branch": (
        "@T.macro\ndef m(A):\n    v = T.float32(0)\n    v = v + A[0]\n    return v\n",
        "    A[0] = A[1] if A[0] > 0.0 else m(A)\n",
        ("W115", 3, 5, "has statements, which cannot stand here"),
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_wrong_macro_is_an_error_at_its_line(name: str) -> None:
    macro, call, (code, line, column, message) = EXPRESSIONS[name]
    with pytest.raises(weft.WeftError) as caught:
        parse(f'{macro}@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n{call}', limits=Limits(unrolled=2000))
    error = caught.value
    assert error.code == code, error
    assert error.span is not None
    assert message in error.message, error
    assert (error.span.line, error.span.column) == (line, column), error


def test_an_error_in_a_macro_says_where_it_was_called() -> None:
    with pytest.raises(weft.ScriptError) as caught:
        parse(
            '@R.macro\ndef m(x):\n    return R.ad(x, x)\n@R.function\ndef f(x: R.Tensor((2,), "float32")):\n    return m(x)\n',
            filename="m.py",
        )
    assert (caught.value.span.line, caught.value.span.column) == (3, 12)  # type: ignore[union-attr]
    assert caught.value.notes == ("in the macro 'm' called at m.py:6:12",)


@R.macro
def layer(x, w, *, scale=2.0):
    h = R.matmul(x, w)
    return R.nn.relu(h) * scale


def test_a_graph_macro_gives_bindings_and_a_value() -> None:
    def network(depth: int, activation: Any) -> Any:
        @R.function
        def main(x: R.Tensor(("b", 4), "float32"), w: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                for i in range(depth):
                    x = layer(x, w, scale=float(i))
                y = activation(x)
                R.output(y)
            return y

        return main

    same(
        network(2, R.nn.gelu),
        '@R.function\ndef main(x: R.Tensor(("b", 4), "float32"), w: R.Tensor((4, 4), "float32")):\n    with R.dataflow():\n'
        "        a = R.matmul(x, w)\n        b = R.nn.relu(a)\n        c = b * 0.0\n"
        "        d = R.matmul(c, w)\n        e = R.nn.relu(d)\n        f = e * 1.0\n        y = R.nn.gelu(f)\n        R.output(y)\n    return y\n",
    )
    assert "R.add(x_1, x_1)" in network(1, lambda t: R.add(t, t)).script()


def test_a_macro_cannot_be_called_by_python() -> None:
    with pytest.raises(weft.ScriptError, match=r"the macro 'layer' is expanded inside an R\.function") as caught:
        layer(1, 2)
    assert caught.value.code == "W115"


class Tile:
    """A captured object with a macro for a method."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    @T.macro
    def load(self, source):
        for i in range(8):
            self.buffer[i] = source[i]


def test_methods_and_meta_variables_hold_any_object() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        tile = T.meta_var(Tile(A))
        tile.load(B)

    same(
        main,
        '@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n    for i in range(8):\n        A[i] = B[i]\n',
    )


def kernel(shape: tuple[int, ...], dtype: str, outer: Any, inner: Any) -> Any:
    @T.prim_func
    def main(A: T.Buffer(shape, dtype), B: T.Buffer(shape, dtype)):
        for i in T.grid(*shape):
            with T.block("b"):
                v = T.axis.remap("S" * len(shape), i)
                B[v] = outer(inner(A[v]) + T.Cast(dtype, math.prod(shape)))

    return main


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_one_python_function_makes_kernels_of_any_rank_and_dtype(shape: tuple[int, ...], dtype: str) -> None:
    made = kernel(shape, dtype, T.sqrt, lambda a: a * a)
    a = np.arange(math.prod(shape), dtype=dtype).reshape(shape)
    out = np.empty(shape, dtype)
    weft.interpret(made)(a, out)
    np.testing.assert_allclose(
        out, np.sqrt(a * a + np.array(a.size, dtype)), rtol=1e-2 if dtype == "float16" else 1e-12
    )
    weft.assert_structural_equal(parse(made.script()), made)


def test_grid_variables_may_be_starred_and_tuples_are_indices() -> None:
    def reduce_last(shape: tuple[int, ...]) -> Any:
        @T.prim_func
        def main(A: T.Buffer(shape, "float32"), B: T.Buffer(shape[:-1], "float32")):
            for *i, k in T.grid(*shape):
                with T.block("sum"):
                    *v, vk = T.axis.remap("S" * (len(shape) - 1) + "R", [*i, k])
                    B[v] = B[*v] + A[(*v, vk)]

        return main

    made = reduce_last((2, 3, 4))
    out = np.zeros((2, 3), "float32")
    weft.interpret(made)(np.ones((2, 3, 4), "float32"), out)
    assert (out == 4).all()


def test_static_loops_unroll_in_a_kernel() -> None:
    weights = [0.5, 0.0, 2.0]

    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = T.float32(0)
            for k, w in enumerate(weights):
                if w == 0.0:
                    continue
                if k > 3:
                    break
                B[i] += A[(i + k) % 8] * T.float32(w)

    assert main.script().count("B[i] = B[i] + ") == 2  # type: ignore[attr-defined]
    a, b = np.arange(8, dtype="float32"), np.empty(8, "float32")
    weft.interpret(main)(a, b)
    np.testing.assert_allclose(b, 0.5 * a + 2.0 * np.roll(a, -2))


def test_a_captured_list_is_not_changed() -> None:
    sizes = [1, 2]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        mine = sizes
        mine.append(3)
        return R.reshape(x, (1, mine[2] + 1))

    assert sizes == [1, 2]
    assert main.ret_type.shape[1] == 4  # type: ignore[attr-defined]


def test_captured_values_of_every_kind() -> None:
    flag, size, scale, name, dtype, dtype_object = True, 4, 0.5, "float16", T.float32, np.dtype("int32")
    nested = {"shapes": [(2, 2), (4, 1)], "op": {"act": R.nn.relu}}
    table = np.arange(4, dtype="float32")
    buffer = T.Buffer((4,), "float32")

    @R.function
    def main(x: R.Tensor((size,), "float32")):
        y = x + R.const(table)
        z = R.astype(y, name) if flag else y
        w = nested["op"]["act"](R.reshape(z, nested["shapes"][1]))
        v = R.astype(w, dtype_object)
        return R.astype(v, dtype) * scale

    assert main.ret_type.dtype == "float32"  # type: ignore[attr-defined]

    @T.prim_func
    def kernel(A: buffer, B: T.Buffer((size,), dtype)):
        for i in range(size):
            B[i] = A[i] + dtype(scale)

    assert "T.float32(0.5)" in kernel.script()  # type: ignore[attr-defined]


def helper(value: int) -> int:
    return value // 0


def test_an_exception_in_a_captured_function_is_told_with_its_call() -> None:
    with pytest.raises(weft.ScriptError, match="`helper` raised ZeroDivisionError") as caught:

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return R.add(x, helper(1))

    assert caught.value.code == "W153"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    span = caught.value.span
    assert span is not None
    line = Path(__file__).read_text().split("\n")[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1] == "helper(1)"
