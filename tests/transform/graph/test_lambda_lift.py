"""LambdaLift."""

from __future__ import annotations

import numpy as np
from tests.transform.helpers import check, left_alone, module

from weft.ir import Function
from weft.ir.interpret import interpret
from weft.transform import LambdaLift, PassContext


def test_a_local_function_that_captures_nothing_becomes_a_private_function() -> None:
    check(
        LambdaLift(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            @R.function
            def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                z = R.exp(y)
                return z

            a = inner(x)
            b = inner(a)
            return b
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = Module.main_inner(x)
            b = Module.main_inner(a)
            return b

        @R.function(private=True)
        def main_inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            z = R.exp(y)
            return z
        """,
    )


def test_captured_variables_become_leading_parameters() -> None:
    check(
        LambdaLift(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            v = R.exp(w)

            @R.function
            def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                z = R.add(y, v)
                u = R.multiply(z, w)
                return u

            a = inner(x)
            return a
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            v = R.exp(w)
            a = Module.main_inner(v, w, x)
            return a

        @R.function(private=True)
        def main_inner(
            v: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")
        ) -> R.Tensor((4,), "float32"):
            z = R.add(y, v)
            u = R.multiply(z, w)
            return u
        """,
    )


def test_a_function_that_is_returned_becomes_a_closure() -> None:
    new = check(
        LambdaLift(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            @R.function
            def add_x(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                z = R.add(x, y)
                return z

            t = (add_x, x)
            a = add_x(x)
            return a
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            add_x = R.make_closure(Module.main_add_x, (x,))
            t: R.Tuple(R.Any, R.Tensor((4,), "float32")) = (add_x, x)
            a = R.invoke_pure_closure(add_x, (x,), ty_args=R.Tensor((4,), "float32"))
            return a

        @R.function(private=True)
        def main_add_x(
            x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")
        ) -> R.Tensor((4,), "float32"):
            z = R.add(x, y)
            return z
        """,
    )
    assert set(new) == {"main", "main_add_x"}


def test_a_returned_function_works_through_a_call_of_the_function_that_made_it() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        f = Module.adder(x)
        a = f(y)
        return a

    @R.function
    def adder(
        x: R.Tensor((2,), "float32")
    ) -> R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True):
        @R.function
        def add_x(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            z = R.add(x, y)
            return z

        return add_x
    """)
    with PassContext(config={"check.level": 3}):
        new = LambdaLift()(before)
    assert "adder_add_x" in new
    x, y = np.array([1, 2], "float32"), np.array([10, 20], "float32")
    for item in (before, new):
        np.testing.assert_array_equal(interpret(item)["main"](x, y), x + y)


def test_a_recursive_local_function_calls_its_lifted_self() -> None:
    check(
        LambdaLift(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            @R.function
            def loop(y: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
                if c:
                    d = R.logical_not(c)
                    e = R.add(y, x)
                    z = loop(e, d)
                else:
                    z = y
                return z

            a = loop(x, c)
            return a
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            a = Module.main_loop(x, x, c)
            return a

        @R.function(private=True)
        def main_loop(
            x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")
        ) -> R.Tensor((4,), "float32"):
            if c:
                d = R.logical_not(c)
                e = R.add(y, x)
                z = Module.main_loop(x, e, d)
            else:
                z = y
            return z
        """,
    )


def test_nested_local_functions_pass_on_what_the_inner_ones_capture() -> None:
    check(
        LambdaLift(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            @R.function
            def helper(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                z = R.add(y, w)
                return z

            @R.function
            def outer(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                @R.function
                def inner(u: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                    v = R.multiply(u, y)
                    s = helper(v)
                    return s

                z = inner(y)
                return z

            a = outer(x)
            return a
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = Module.main_outer(w, x)
            return a

        @R.function(private=True)
        def main_helper(
            w: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")
        ) -> R.Tensor((4,), "float32"):
            z = R.add(y, w)
            return z

        @R.function(private=True)
        def main_outer(
            w: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")
        ) -> R.Tensor((4,), "float32"):
            z = Module.main_inner(y, w, y)
            return z

        @R.function(private=True)
        def main_inner(
            y: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), u: R.Tensor((4,), "float32")
        ) -> R.Tensor((4,), "float32"):
            v = R.multiply(u, y)
            s = Module.main_helper(w, v)
            return s
        """,
    )


def test_a_symbol_that_no_captured_variable_carries_is_captured_as_a_shape() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()

        @R.function
        def ones(y: R.Tensor((1,), "float32")) -> R.Tensor((n,), "float32"):
            z = R.broadcast_to(y, (n,))
            return z

        a = ones(R.const([1.0], "float32"))
        return a
    """)
    new = LambdaLift()(before)
    lifted = new["main_ones"]
    assert isinstance(lifted, Function)
    assert len(lifted.params) == 2
    np.testing.assert_array_equal(interpret(new)["main"](np.zeros(5, "float32")), np.ones(5, "float32"))
    assert LambdaLift()(new) is new


def test_a_function_without_local_functions_stays() -> None:
    left_alone(
        LambdaLift(),
        """
        @R.function
        def main(
            x: R.Tensor((4,), "float32"), f: R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,), "float32"), True)
        ) -> R.Tensor((4,), "float32"):
            a = f(x)
            return a
        """,
    )
