"""CanonicalizeBindings."""

from __future__ import annotations

from tests.transform.helpers import check, left_alone, of_rows, of_vector

from weft.transform import CanonicalizeBindings


def test_chains_of_renamings_go() -> None:
    check(
        CanonicalizeBindings(),
        of_rows(
            """
            y = x
            z = y
            w = R.add(z, y)
            v = w
            return v
            """
        ),
        of_rows(
            """
            w = R.add(x, x)
            return w
            """
        ),
    )


def test_an_output_that_renames_a_dataflow_variable_takes_its_place() -> None:
    check(
        CanonicalizeBindings(),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                y = a
                R.output(y)
            return y
            """
        ),
        of_vector(
            """
            with R.dataflow():
                y = R.exp(x)
                b = R.add(y, y)
                R.output(y)
            return y
            """
        ),
    )


def test_fields_of_known_tuples_are_the_values_themselves() -> None:
    check(
        CanonicalizeBindings(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            t = (x, y)
            a = t[0]
            b = t[1]
            c = R.subtract(b, a)
            return c
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            t = (x, y)
            c = R.subtract(y, x)
            return c
        """,
    )


def test_a_tuple_of_all_fields_of_a_tuple_is_that_tuple() -> None:
    check(
        CanonicalizeBindings(),
        """
        @R.function
        def main(
            t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((2,), "float32"))
        ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((2,), "float32")):
            a = t[0]
            b = t[1]
            u = (a, b)
            return u
        """,
        """
        @R.function
        def main(
            t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((2,), "float32"))
        ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((2,), "float32")):
            a = t[0]
            b = t[1]
            return t
        """,
    )


def test_fields_in_another_order_or_not_all_make_a_new_tuple() -> None:
    left_alone(
        CanonicalizeBindings(),
        """
        @R.function
        def main(t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tuple(
            R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")), R.Tuple(R.Tensor((4,), "float32"))
        ):
            a = t[0]
            b = t[1]
            u = (b, a)
            v = (a,)
            w = (u, v)
            return w
        """,
    )


def test_a_cast_that_cannot_fail_goes() -> None:
    check(
        CanonicalizeBindings(),
        of_rows(
            """
            y = R.match_cast(x, R.Tensor(("n", 4), "float32"))
            w = R.exp(y)
            return w
            """
        ),
        of_rows(
            """
            w = R.exp(x)
            return w
            """
        ),
    )


def test_a_binding_that_says_less_than_its_value_stays() -> None:
    left_alone(
        CanonicalizeBindings(),
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
            y = R.match_cast(x, R.Tensor(ndim=2, dtype="float32"))
            z: R.Tensor(ndim=2, dtype="float32") = x
            w = R.add(y, z)
            return w
        """,
    )


def test_a_cast_that_can_fail_stays_and_a_new_symbol_is_the_size_that_it_names() -> None:
    check(
        CanonicalizeBindings(),
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((3, 4), "float32"):
            m = T.int64()
            y = R.match_cast(x, R.Tensor((m, 4), "float32"))
            w = R.reshape(y, (2, m, 2))
            z = R.match_cast(y, R.Tensor((3, 4), "float32"))
            return R.add(z, R.reshape(w, (m, 4)))
        """,
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((3, 4), "float32"):
            w = R.reshape(x, (2, n, 2))
            z = R.match_cast(x, R.Tensor((3, 4), "float32"))
            return R.add(z, R.reshape(w, (n, 4)))
        """,
    )


def test_a_cast_to_a_symbol_twice_checks_that_the_sizes_are_equal() -> None:
    check(
        CanonicalizeBindings(),
        """
        @R.function
        def main(x: R.Tensor(("n", "k"), "float32")) -> R.Tensor("float32", ndim=2):
            m = T.int64()
            y = R.match_cast(x, R.Tensor((m, m), "float32"))
            return R.add(y, x)
        """,
        """
        @R.function
        def main(x: R.Tensor(("n", "k"), "float32")) -> R.Tensor("float32", ndim=2):
            y = R.match_cast(x, R.Tensor((n, n), "float32"))
            return R.add(y, x)
        """,
    )


def test_what_only_its_own_block_uses_is_no_output() -> None:
    check(
        CanonicalizeBindings(),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.tanh(a)
                R.output(a, b)
            return b
            """
        ),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.tanh(a)
                R.output(b)
            return b
            """
        ),
    )


def test_fields_that_are_dataflow_variables_are_not_used_after_their_block() -> None:
    left_alone(
        CanonicalizeBindings(),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                t = (a, x)
                R.output(t)
            with R.dataflow():
                b = t[0]
                c = R.tanh(b)
                R.output(c)
            return c
            """
        ),
    )


def test_two_outputs_of_one_value_keep_one_of_them() -> None:
    check(
        CanonicalizeBindings(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                y = a
                z = a
                R.output(y, z)
            return (y, z)
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            return (y, y)
        """,
    )
