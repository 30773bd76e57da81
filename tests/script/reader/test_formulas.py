# pyright: reportInvalidTypeForm=false, reportRedeclaration=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportUndefinedVariable=false, reportGeneralTypeIssues=false, reportArgumentType=false, reportIndexIssue=false
"""`R.emit_te`: Python functions over te tensors, called while a decorated module is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import te
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

SCALE = 3.0


def double(a: te.Tensor) -> te.Tensor:
    return te.compute(a.shape, lambda *i: a(*i) * 2.0, name="double")


def sum_and_first(tensors: list[te.Tensor], offset: int, *, scale: float = 1.0) -> tuple[te.Tensor, te.Tensor]:
    a, b = tensors
    total = te.compute(a.shape, lambda i, j: a[i, j] + b[i, j] * scale, name="total")
    return total, te.compute((a.shape[0],), lambda i: total[i, offset], name="first")


def same(made: Any, text: str) -> None:
    """The module is what a text says, and its own text reads back."""
    assert weft.first_mismatch(made, weft.parse(text)) is None
    assert weft.first_mismatch(weft.parse(made.script()), made) is None
    assert weft.verify(made) == []


def test_a_formula_becomes_a_private_kernel_and_a_call_of_it() -> None:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            with R.dataflow():
                y = R.emit_te(double, x)
                R.output(y)
            return y

    same(
        M,
        """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n, 4), "float32"))
            R.output(y)
        return y

    @T.prim_func(private=True)
    def double(x: T.Buffer(("n", 4), "float32"), double: T.Buffer(("n", 4), "float32")):
        for i0, i1 in T.grid(n, T.int64(4)):
            with T.block("double"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                double[vi0, vi1] = x[vi0, vi1] * T.float32(2)
""",
    )
    x = np.ones((3, 4), "float32")
    assert (weft.interpret(M)["main"](x) == 2).all()


def test_nested_calls_are_bound_first_and_equal_kernels_are_one() -> None:
    @I.ir_module
    class M:
        @R.function
        def main(a: R.Tensor((3,), "float32")):
            b = R.emit_te(double, R.exp(a))
            c = R.exp(R.emit_te(double, R.exp(b)))
            return c

    assert list(M.functions) == ["main", "double"]
    out = weft.interpret(M)["main"](np.zeros(3, "float32"))
    np.testing.assert_allclose(out, np.exp(2 * np.exp(np.full(3, 2.0))), rtol=1e-5)


def test_lists_numbers_and_several_results_are_taken_and_the_kernel_can_be_named() -> None:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
            total, first = R.emit_te(
                sum_and_first, [x, y], 1, scale=0.5, primfunc_name_hint="both", primfunc_attrs={"op_pattern": 8}
            )
            return total, first

    kernel = M["both"]
    assert (kernel.private, dict(kernel.attrs)) == (True, {"op_pattern": 8})
    x = np.arange(8, dtype="float32").reshape(2, 4)
    total, first = weft.interpret(M)["main"](x, x)
    np.testing.assert_array_equal(total, x * 1.5)
    np.testing.assert_array_equal(first, x[:, 1] * 1.5)


def test_a_symbol_that_no_tensor_binds_is_passed_by_the_call() -> None:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), s: R.Shape(["m"])) -> R.Tensor(("2 * m",), "float32"):
            return R.emit_te(lambda a: te.compute((2 * m,), lambda i: a[i % n] * SCALE, name="turn"), x)

    assert "tir_vars=(m,)" in M.script()
    assert weft.verify(M) == []
    out = weft.interpret(M)["main"](np.array([1, 2, 3], "float32"), (2,))
    assert out.tolist() == [3, 6, 9, 3]


def test_a_function_of_the_module_by_the_same_name_keeps_it() -> None:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.emit_te(double, x)

        @T.prim_func
        def double(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(0)

    assert sorted(M.functions) == ["double", "double_1", "main"]


def test_a_lambda_sees_the_values_around_it() -> None:
    factor = 4.0

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            offset = 1
            x = R.emit_te(lambda x: te.compute((3,), lambda i: x[i + offset] * factor, name="moved"), x)
            return x

    assert weft.interpret(M)["main"](np.arange(4, dtype="float32")).tolist() == [4, 8, 12]


def test_the_builder_and_the_script_make_the_same_module() -> None:
    x = weft.ir.Var("x", R.Tensor((weft.ir.dim.symbol("n"), 4), "float32"))
    bb = weft.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(sum_and_first, [x, x], 0))

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            y = R.emit_te(sum_and_first, [x, x], 0)
            return y

    assert weft.first_mismatch(bb.get(), M) is None


def no_tensor(a: te.Tensor) -> int:
    return 3


def raising(a: te.Tensor) -> te.Tensor:
    raise KeyError("nothing")


def wrong_rank(a: te.Tensor) -> te.Tensor:
    return te.compute((4,), lambda i: a[i, i], name="b")


def _line_of(function: Callable[..., Any], mark: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if mark in line)


def _number() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.exp(x)
            z = R.emit_te(no_tensor, y)  # here
            return z

    return M


def _raising() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.emit_te(raising, x)  # here

    return M


def _rank() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.emit_te(wrong_rank, x)  # here

    return M


def _unknown_shape() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32")):
            return R.emit_te(double, x)  # here

    return M


def _no_function() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.emit_te(x, x)  # here

    return M


def _nothing() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.emit_te()  # here

    return M


def _graph_value_in_a_lambda() -> Any:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            return R.emit_te(lambda a: te.compute((4,), lambda i: a[i] + y[i]), x)  # here

    return M


def _outside_a_module() -> Any:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        return R.emit_te(double, x)  # here

    return main


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_number, "W485"),
        (_raising, "W153"),
        (_rank, "W240"),
        (_unknown_shape, "W485"),
        (_no_function, "W114"),
        (_nothing, "W113"),
        (_graph_value_in_a_lambda, "W114"),
        (_outside_a_module, "W150"),
    ],
)
def test_what_goes_wrong_is_an_error_at_the_line_of_the_call(make: Callable[[], Any], code: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        make()
    span = caught.value.span
    assert span is not None
    assert (caught.value.code, span.line, span.filename) == (code, _line_of(make, "# here"), __file__)


def test_a_text_names_the_formula_that_it_cannot_run() -> None:
    text = 'F = 3\n@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return R.emit_te(F, x)\n'
    with pytest.raises(weft.ScriptError) as caught:
        weft.parse(text)
    span = caught.value.span
    assert span is not None
    assert (caught.value.code, span.line, span.column) == ("W115", 4, 12)
    assert "never runs" in caught.value.message
