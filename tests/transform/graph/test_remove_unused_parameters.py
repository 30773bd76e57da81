"""RemoveUnusedParameters."""

from __future__ import annotations

from tests.transform.helpers import check, left_alone

from weft.transform import RemoveUnusedParameters


def test_unused_parameters_go_with_their_arguments_through_calls() -> None:
    check(
        RemoveUnusedParameters(),
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor(("n",), "float32"):
            a = Module.outer(x, y)
            return a

        @R.function(private=True)
        def outer(x: R.Tensor(("n",), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor(("n",), "float32"):
            a = Module.inner(y, x)
            return a

        @R.function(private=True)
        def inner(y: R.Tensor((4,), "float32"), x: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            a = R.exp(x)
            return a
        """,
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor(("n",), "float32"):
            a = Module.outer(x)
            return a

        @R.function(private=True)
        def outer(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            a = Module.inner(x)
            return a

        @R.function(private=True)
        def inner(x: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            a = R.exp(x)
            return a
        """,
    )


def test_parameters_that_bind_symbols_or_carry_a_check_stay() -> None:
    left_alone(
        RemoveUnusedParameters(),
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("k",), "float32")) -> R.Tensor(("n",), "float32"):
            t = (x, y)
            a = Module.binds(x)
            c = Module.binds_in_a_tuple(t)
            b = Module.checks(x, y)
            return a

        @R.function(private=True)
        def binds(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            a = R.zeros(R.shape([n]), dtype="float32")
            return a

        @R.function(private=True)
        def binds_in_a_tuple(
            t: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("m",), "float32"))
        ) -> R.Tensor(("m",), "float32"):
            m = T.int64()
            a = R.zeros(R.shape([m]), dtype="float32")
            return a

        @R.function(private=True)
        def checks(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            a = R.exp(x)
            return a
        """,
    )


def test_public_functions_and_functions_used_as_values_stay() -> None:
    left_alone(
        RemoveUnusedParameters(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Any:
            f = R.make_closure(Module.value, (x,))
            return f

        @R.function(private=True)
        def value(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return y
        """,
    )
