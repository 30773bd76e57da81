"""FoldConstant."""

from __future__ import annotations

import numpy as np
from tests.transform.helpers import assert_same_meaning, check, left_alone, module

from weft.ir import Call, Constant, Function, structural_equal
from weft.transform import FoldConstant, LegalizeOps
from weft.transform.infra.rewriting import bindings_of


def test_calls_on_constants_become_constants_all_the_way() -> None:
    check(
        FoldConstant(),
        """
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            with R.dataflow():
                a = R.add(R.const([1.0, 2.0, 3.0], "float32"), R.const([1.0, 1.0, 1.0], "float32"))
                b = R.multiply(a, a)
                c = R.add(x, b)
                R.output(c)
            return c
        """,
        """
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            with R.dataflow():
                a = R.const([2.0, 3.0, 4.0], "float32")
                b = R.const([4.0, 9.0, 16.0], "float32")
                c = R.add(x, b)
                R.output(c)
            return c
        """,
    )


def test_fields_of_constant_tuples_are_known() -> None:
    check(
        FoldConstant(),
        """
        @R.function
        def main(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            t = R.split(R.const([1.0, 2.0], "float32"), 2, axis=0)
            a = t[1]
            b = R.negative(a)
            c = R.add(x, b)
            return c
        """,
        """
        @R.function
        def main(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            t = (R.const([1.0], "float32"), R.const([2.0], "float32"))
            a = t[1]
            b = R.const([-2.0], "float32")
            c = R.add(x, b)
            return c
        """,
    )


def test_a_large_result_is_folded_only_when_it_is_not_larger_than_what_it_comes_from() -> None:
    left_alone(
        FoldConstant(max_bytes=100),
        """
        @R.function
        def main(x: R.Tensor((100,), "float32")) -> R.Tensor((100,), "float32"):
            a = R.zeros(R.shape([100]), dtype="float32")
            b = R.add(x, a)
            return b
        """,
    )
    data = ", ".join(["1.0"] * 64)
    text = f"""
    @R.function
    def main(x: R.Tensor((64,), "float32")) -> R.Tensor((64,), "float32"):
        a = R.negative(R.const([{data}], "float32"))
        b = R.add(x, a)
        return b
    """
    new = FoldConstant(max_bytes=100)(module(text))["main"]
    assert isinstance(new, Function)
    first = next(bindings_of(new.body)).value
    assert isinstance(first, Constant)
    np.testing.assert_array_equal(first.data, np.full(64, -1, "float32"))


def test_small_kernels_are_folded_and_large_ones_stay() -> None:
    legal = LegalizeOps()(
        module("""
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            a = R.negative(R.const([1.0, 2.0, 3.0], "float32"))
            b = R.add(x, a)
            return b
        """)
    )
    folded = FoldConstant()(legal)
    assert not structural_equal(folded, legal)
    assert_same_meaning(legal, folded)
    limited = FoldConstant(max_kernel_elements=5)
    assert limited(legal) is legal


def test_impure_external_and_symbolic_values_are_not_folded() -> None:
    left_alone(
        FoldConstant(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            a = R.call_packed("f", R.const([1.0], "float32"), ty_args=R.Tensor((1,), "float32"))
            b = R.call_pure_packed("f", R.const([1.0], "float32"), ty_args=R.Tensor((1,), "float32"))
            c = R.call_dps_packed("f", (R.const([1.0], "float32"),), out_ty=R.Tensor((1,), "float32"))
            d = R.broadcast_to(R.const([1.0], "float32"), (n,))
            e = R.add(x, d)
            return e
        """,
    )


def test_memory_is_never_a_constant() -> None:
    left_alone(
        FoldConstant(),
        """
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            a = R.builtin.alloc_tensor(R.shape([2]), dtype="float32", runtime_device_index=0)
            Module.copy(x, a)
            return a

        @T.prim_func(private=True)
        def copy(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
            for i in range(2):
                y[i] = x[i]
        """,
    )


def test_a_call_that_fails_is_left_to_fail_when_it_runs() -> None:
    check(
        FoldConstant(),
        """
        @R.function
        def main(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            i = R.add(R.const([3], "int64"), R.const([2], "int64"))
            a = R.take(R.const([1.0, 2.0], "float32"), i, axis=0)
            b = R.add(x, a)
            return b
        """,
        """
        @R.function
        def main(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            i = R.const([5], "int64")
            a = R.take(R.const([1.0, 2.0], "float32"), i, axis=0)
            b = R.add(x, a)
            return b
        """,
    )


def test_dtypes_that_numpy_lacks_are_folded_by_their_values() -> None:
    new = FoldConstant()(
        module("""
        @R.function
        def main() -> R.Tensor((2,), "float32"):
            a = R.astype(R.const([1.5, -2.0], "float32"), "bfloat16")
            b = R.add(a, a)
            c = R.astype(b, "float32")
            return c
        """)
    )["main"]
    assert isinstance(new, Function)
    *_, last = bindings_of(new.body)
    assert isinstance(last.value, Constant)
    np.testing.assert_array_equal(last.value.data, np.array([3.0, -4.0], "float32"))
    assert not any(isinstance(binding.value, Call) for binding in bindings_of(new.body))


def test_pure_functions_of_the_module_are_computed() -> None:
    new = FoldConstant()(
        module("""
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            a = Module.twice(R.const([1.0, 2.0], "float32"))
            b = R.add(x, a)
            return b

        @R.function(private=True)
        def twice(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.add(x, x)
            return y
        """)
    )["main"]
    assert isinstance(new, Function)
    first = next(bindings_of(new.body)).value
    assert isinstance(first, Constant)
    np.testing.assert_array_equal(first.data, np.array([2, 4], "float32"))
