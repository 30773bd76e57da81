"""EliminateCommonSubexpr."""

from __future__ import annotations

from tests.transform.helpers import check, left_alone, of_rows, of_vector

from weft.transform import EliminateCommonSubexpr


def test_equal_pure_calls_are_one() -> None:
    check(
        EliminateCommonSubexpr(),
        of_rows(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(x)
                c = R.add(a, x)
                d = R.add(b, x)
                y = R.multiply(c, d)
                R.output(y)
            return y
            """
        ),
        of_rows(
            """
            with R.dataflow():
                a = R.exp(x)
                c = R.add(a, x)
                y = R.multiply(c, c)
                R.output(y)
            return y
            """
        ),
    )


def test_attributes_and_constants_tell_calls_apart() -> None:
    left_alone(
        EliminateCommonSubexpr(),
        """
        @R.function
        def main(x: R.Tensor((3, 4), "float32")) -> R.Tuple(
            R.Tensor((4,), "float32"), R.Tensor((3,), "float32"), R.Tensor((3, 4), "float32"),
            R.Tensor((3, 4), "float32")
        ):
            a = R.sum(x, axis=0)
            b = R.sum(x, axis=1)
            c = R.add(x, R.const(0.0, "float32"))
            d = R.add(x, R.const(-0.0, "float32"))
            return (a, b, c, d)
        """,
    )


def test_a_repeated_output_becomes_a_renaming() -> None:
    check(
        EliminateCommonSubexpr(),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.tanh(a)
                y = R.exp(x)
                z = R.add(b, y)
                R.output(y, z)
            w = R.add(y, z)
            return w
            """
        ),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.tanh(a)
                y = a
                z = R.add(b, y)
                R.output(y, z)
            w = R.add(y, z)
            return w
            """
        ),
        idempotent=True,
    )


def test_a_value_is_found_again_in_branches_but_not_after_them() -> None:
    check(
        EliminateCommonSubexpr(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            a = R.exp(x)
            if c:
                b = R.exp(x)
                t = R.tanh(x)
                y = R.add(b, t)
            else:
                t = R.tanh(x)
                y = R.subtract(t, a)
            t = R.tanh(x)
            z = R.add(y, t)
            return z
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            a = R.exp(x)
            if c:
                t = R.tanh(x)
                y = R.add(a, t)
            else:
                t = R.tanh(x)
                y = R.subtract(t, a)
            t = R.tanh(x)
            z = R.add(y, t)
            return z
        """,
    )


def test_a_dataflow_variable_is_not_found_after_its_block() -> None:
    left_alone(
        EliminateCommonSubexpr(),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                y = R.tanh(a)
                R.output(y)
            with R.dataflow():
                b = R.exp(x)
                z = R.add(b, y)
                R.output(z)
            return z
            """
        ),
    )


def test_impure_calls_are_not_merged() -> None:
    left_alone(
        EliminateCommonSubexpr(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.call_packed("next_random", x, ty_args=R.Tensor((4,), "float32"))
            b = R.call_packed("next_random", x, ty_args=R.Tensor((4,), "float32"))
            c = R.add(a, b)
            return c
        """,
    )


def test_call_only_leaves_tuples_alone() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(
        R.Tuple(R.Tensor((4,), "float32")), R.Tuple(R.Tensor((4,), "float32"))
    ):
        a = (x,)
        b = (x,)
        c = (a, b)
        return c
    """
    left_alone(EliminateCommonSubexpr(call_only=True), text)
    check(EliminateCommonSubexpr(), text, text.replace("b = (x,)\n", "\n").replace("(a, b)", "(a, a)"))


def test_a_local_function_does_not_take_values_from_outside() -> None:
    left_alone(
        EliminateCommonSubexpr(),
        of_vector(
            """
            a = R.exp(x)

            @R.function
            def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                b = R.exp(x)
                c = R.add(b, y)
                return c

            d = inner(a)
            return d
            """
        ),
    )


def test_equal_calls_of_different_declared_types_stay() -> None:
    """What is declared of the second would be lost."""
    left_alone(
        EliminateCommonSubexpr(),
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            a = R.add(x, x)
            b: R.Tensor(ndim=1, dtype="float32") = R.add(x, x)
            return (a, b)
        """,
    )


def test_two_allocations_are_two_pieces_of_memory() -> None:
    left_alone(
        EliminateCommonSubexpr(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            a = R.builtin.alloc_tensor((4,), dtype="float32")
            b = R.builtin.alloc_tensor((4,), dtype="float32")
            return (a, b)
        """,
    )
