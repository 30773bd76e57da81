"""LowerToMemory."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transform.helpers import check, left_alone, module

from weft.errors import PassError
from weft.ir import (
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    IRModule,
    Op,
    SeqExpr,
    TensorType,
    Tuple,
    Var,
    VarBinding,
    assert_structural_equal,
)
from weft.ir.interpret import interpret
from weft.transform import LegalizeOps, LowerToMemory, default_pipeline

SCALE = """
@T.prim_func(private=True)
def scale(x: T.Buffer(("n", T.int64(4)), "float32"), y: T.Buffer(("n", T.int64(4)), "float32")):
    n = T.int64()
    for i, j in T.grid(n, 4):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * T.float32(0.5)
"""


def test_a_kernel_call_becomes_an_allocation_and_a_call_that_writes_into_it() -> None:
    check(
        LowerToMemory(),
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            with R.dataflow():
                a = R.call_tir(Module.scale, (x,), out_ty=R.Tensor((n, 4), "float32"))
                b = R.call_tir(Module.scale, (a,), out_ty=R.Tensor((n, 4), "float32"))
                R.output(b)
            return b
        """
        + indented(SCALE),
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.scale(x, a)
            b = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.scale(a, b)
            return b
        """
        + indented(SCALE),
    )


def indented(text: str) -> str:
    """The text at the depth of the texts above."""
    return "".join(f"        {line}\n" for line in text.splitlines())


TWO = """
@T.prim_func(private=True)
def two(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("two"):
            vi = T.axis.spatial(4, i)
            y[vi] = x[vi] + T.float32(1)
            z[vi] = x[vi] * T.float32(2)
"""


def test_several_outputs_are_allocated_one_by_one() -> None:
    check(
        LowerToMemory(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            with R.dataflow():
                t = R.call_tir(
                    Module.two, (x,), out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")]
                )
                R.output(t)
            return t
        """
        + indented(TWO),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            a = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
            b = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
            Module.two(x, a, b)
            t = (a, b)
            return t
        """
        + indented(TWO),
    )


def test_the_fields_of_a_tuple_variable_are_passed_one_by_one() -> None:
    check(
        LowerToMemory(),
        """
        @R.function
        def main(t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
            y = R.call_tir(Module.join, t, out_ty=R.Tensor((4,), "float32"))
            return y
        """
        + indented(JOIN),
        """
        @R.function
        def main(t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
            a = t[0]
            b = t[1]
            y = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
            Module.join(a, b, y)
            return y
        """
        + indented(JOIN),
    )


JOIN = """
@T.prim_func(private=True)
def join(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("join"):
            vi = T.axis.spatial(4, i)
            z[vi] = x[vi] + y[vi]
"""


BUMP = """
    @T.prim_func(private=True)
    def bump(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("bump"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi] * T.float32(2)
                x[vi] = x[vi] + T.float32(1)

    @T.prim_func(private=True)
    def negative(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("negative"):
                vi = T.axis.spatial(4, i)
                y[vi] = -x[vi]
"""


def test_an_output_in_place_is_the_input() -> None:
    check(
        LowerToMemory(),
        """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        a = R.call_tir(Module.negative, (x,), out_ty=R.Tensor((4,), "float32"))
        t = R.call_tir_inplace(
            Module.bump, (a,), inplace_indices=[0, -1],
            out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")],
        )
        return t
        """
        + BUMP,
        """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        a = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        Module.negative(x, a)
        b = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        Module.bump(a, b)
        t = (a, b)
        return t
        """
        + BUMP,
    )


@pytest.mark.parametrize(
    "text",
    [
        """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            t = R.call_tir_inplace(
                Module.bump, (x,), inplace_indices=[0, -1],
                out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")],
            )
            a = t[0]
            R.output(a)
        return a
        """,
        """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        a = R.call_tir(Module.negative, (x,), out_ty=R.Tensor((4,), "float32"))
        t = R.call_tir_inplace(
            Module.bump, (a,), inplace_indices=[0, -1],
            out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")],
        )
        b = t[0]
        return (a, b)
        """,
        """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        t = R.call_tir_inplace(
            Module.bump, (R.const([1.0, 2.0, 3.0, 4.0], "float32"),), inplace_indices=[0, -1],
            out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")],
        )
        a = t[0]
        return a
        """,
    ],
    ids=["parameter", "used-again", "constant"],
)
def test_what_is_not_the_functions_own_or_is_used_again_is_copied_before_it_is_overwritten(text: str) -> None:
    before = module(text + BUMP)
    new = LowerToMemory()(before)
    assert "copy" in new
    x = np.array([1, 2, 3, 4], "float32")
    expected, found = interpret(before)["main"](x), interpret(new)["main"](x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    np.testing.assert_array_equal(x, np.array([1, 2, 3, 4], "float32"))
    assert LowerToMemory()(new) is new


def test_symbols_that_a_call_passes_come_after_the_outputs() -> None:
    kernel = """
    @T.prim_func(private=True)
    def fill(y: T.Buffer((4,), "float32"), n: T.int64):
        for i in range(4):
            with T.block("fill"):
                vi = T.axis.spatial(4, i)
                y[vi] = T.Cast("float32", n)
    """
    check(
        LowerToMemory(),
        """
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor((4,), "float32"):
        n = T.int64()
        y = R.call_tir(Module.fill, (), out_ty=R.Tensor((4,), "float32"), tir_vars=(n,))
        return y
        """
        + kernel,
        """
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor((4,), "float32"):
        n = T.int64()
        y = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        Module.fill(y, R.prim_value(n))
        return y
        """
        + kernel,
    )


def test_a_library_call_gets_its_output_last() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_dps_packed("double_it", (x,), out_ty=R.Tensor((n, 4), "float32"))
            R.output(y)
        return y
    """)
    expected = module("""
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        y = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
        R.call_packed("double_it", x, y, attrs={"dps": True})
        return y
    """)
    new = LowerToMemory()(before)
    assert_structural_equal(new, expected)

    def double_it(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = 2 * x

    x = np.arange(8, dtype="float32").reshape(2, 4)
    for item in (before, new):
        found = interpret(item, functions={"double_it": double_it}.get)["main"](x)
        np.testing.assert_array_equal(found, 2 * x)


def test_kernels_in_branches_are_lowered() -> None:
    lowered = LowerToMemory()(
        LegalizeOps()(
            module("""
            @R.function
            def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
                if c:
                    y = R.exp(x)
                else:
                    y = R.negative(x)
                return y
            """)
        )
    )
    x = np.array([0, 1, 2, 3], "float32")
    run = interpret(lowered)["main"]
    np.testing.assert_allclose(run(x, np.array(True)), np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(run(x, np.array(False)), -x)
    assert "call_tir" not in lowered.script()


def test_an_output_of_unknown_shape_is_refused_with_its_type() -> None:
    unknown = TensorType(None, "float32", 1)
    x, y = Var("x", unknown), Var("y", unknown)
    call = Call(Op("call_dps_packed"), (ExternFunc("f"), Tuple((x,))), ty_args=(unknown,))
    body = SeqExpr((BindingBlock((VarBinding(y, call),)),), y)
    with pytest.raises(PassError) as caught:
        LowerToMemory()(IRModule({"main": Function((x,), body, unknown)}))
    assert caught.value.code == "W530"
    assert "'y'" in caught.value.message
    assert "ndim=1" in caught.value.message


def test_an_output_may_have_the_shape_that_a_variable_holds() -> None:
    check(
        LowerToMemory(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), s: R.Shape(ndim=1)) -> R.Tensor(ndim=1, dtype="float32"):
            y = R.call_dps_packed("f", (x,), out_ty=R.Tensor(s, "float32"))
            return y
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), s: R.Shape(ndim=1)) -> R.Tensor(ndim=1, dtype="float32"):
            y: R.Tensor(s, "float32") = R.builtin.alloc_tensor(s, dtype="float32", runtime_device_index=0)
            R.call_packed("f", x, y, attrs={"dps": True})
            return y
        """,
    )


def test_calls_that_return_their_own_value_and_operators_without_kernels_stay() -> None:
    left_alone(
        LowerToMemory(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.call_pure_packed("f", x, ty_args=R.Tensor((4,), "float32"))
            b = R.exp(a)
            return b
        """,
    )


def test_the_default_pipeline_ends_in_explicit_memory() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.nn.softmax(b)
            dead = R.exp(c)
            R.output(c)
        return c
    """)
    new = default_pipeline()(before)
    assert set(new) == {"main", "fused_matmul_relu", "softmax"}
    x, w = np.ones((5, 4), "float32"), np.ones((4, 3), "float32")
    np.testing.assert_allclose(interpret(new)["main"](x, w), interpret(before)["main"](x, w), rtol=1e-5)
