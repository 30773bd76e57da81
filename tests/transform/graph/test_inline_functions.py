"""InlinePrivateFunctions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.transform.helpers import check, left_alone, module

from weft.errors import PassError, ResourceError, WeftError
from weft.ir import BindingBlock, Call, Function, GlobalVar, IRModule, SeqExpr, TensorType, Var, VarBinding
from weft.ir.interpret import interpret
from weft.ir.structure.visit import nodes_of
from weft.script import relax as R
from weft.transform import InlinePrivateFunctions


def test_a_call_becomes_the_body_over_its_arguments() -> None:
    check(
        InlinePrivateFunctions(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                b = Module.square_plus(a)
                c = Module.square_plus(b)
                R.output(c)
            return c

        @R.function(private=True)
        def square_plus(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            with R.dataflow():
                b = R.multiply(a, a)
                c = R.add(b, a)
                R.output(c)
            return c
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                b = R.multiply(a, a)
                c = R.add(b, a)
                d = R.multiply(c, c)
                e = R.add(d, c)
                f = e
                R.output(f)
            return f
        """,
    )


def test_functions_that_call_functions_are_inlined_in_one_run() -> None:
    check(
        InlinePrivateFunctions(),
        """
        @R.function(private=True)
        def outer(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            b = Module.inner(a)
            return b

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = Module.outer(x)
            return y

        @R.function(private=True)
        def inner(a: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            b = R.exp(a)
            return b
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = R.exp(x)
            return y
        """,
    )


def test_the_callees_own_symbols_get_names_that_are_free() -> None:
    check(
        InlinePrivateFunctions(),
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32"), z: R.Tensor(("m",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
            a = Module.inner(x)
            b = Module.inner(z)
            return b

        @R.function(private=True)
        def inner(a: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
            m = T.int64()
            b = R.match_cast(a, R.Tensor((m,), "float32"))
            c = R.exp(b)
            return c
        """,
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32"), z: R.Tensor(("m",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
            m_1 = T.int64()
            m_2 = T.int64()
            b = R.match_cast(x, R.Tensor((m_1,), "float32"))
            c = R.exp(b)
            a: R.Tensor(ndim=1, dtype="float32") = c
            d = R.match_cast(z, R.Tensor((m_2,), "float32"))
            e = R.exp(d)
            f: R.Tensor(ndim=1, dtype="float32") = e
            return f
        """,
    )


def test_control_flow_makes_the_block_it_goes_into_plain() -> None:
    check(
        InlinePrivateFunctions(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = Module.choose(x, c)
                b = R.exp(a)
                R.output(b)
            return b

        @R.function(private=True)
        def choose(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if c:
                y = R.tanh(x)
            else:
                y = R.negative(x)
            return y
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if c:
                y = R.tanh(x)
            else:
                y = R.negative(x)
            b = R.exp(y)
            return b
        """,
    )


def test_an_argument_of_which_less_is_known_is_checked_as_the_call_did() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor((3,), "float32"):
        y = Module.three(x)
        return y

    @R.function(private=True)
    def three(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        b = R.exp(a)
        return b
    """)
    new = InlinePrivateFunctions()(before)
    assert list(new) == ["main"]
    for item in (before, new):
        run = interpret(item)["main"]
        np.testing.assert_allclose(run(np.zeros(3, "float32")), np.ones(3, "float32"))
        with pytest.raises(WeftError):
            run(np.zeros(4, "float32"))


def test_recursive_public_and_attributed_functions_stay() -> None:
    left_alone(
        InlinePrivateFunctions(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            a = Module.public(x)
            b = Module.labelled(a)
            d = Module.again(b, c)
            return d

        @R.function
        def public(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

        @R.function(private=True)
        def labelled(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Codegen": "somewhere"})
            return x

        @R.function(private=True)
        def again(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if c:
                y = Module.again(x, c)
            else:
                y = x
            return y
        """,
    )


TWO = """
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    a = Module.f(x)
    b = Module.g(a)
    return b

@R.function(private=True)
def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    y = R.exp(x)
    return y

@R.function(private=True)
def g(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    y = R.tanh(x)
    return y
"""


def test_only_the_named_functions_are_inlined() -> None:
    check(
        InlinePrivateFunctions(("f",)),
        TWO,
        """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.exp(x)
        b = Module.g(a)
        return b

    @R.function(private=True)
    def g(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.tanh(x)
        return y
    """,
        idempotent=False,
    )
    with pytest.raises(PassError):
        InlinePrivateFunctions(("h",))(module(TWO))


def test_calls_that_double_from_function_to_function_are_refused() -> None:
    """24 functions that call the next one twice are 16 million bindings."""
    signature = 'x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):'
    text = f"@R.function\ndef main({signature}\n    y = Module.f0(x)\n    return y\n"
    for number in range(24):
        body = [f"y = Module.f{number + 1}(x)", f"z = Module.f{number + 1}(y)"] if number < 23 else ["z = R.exp(x)"]
        lines = "".join(f"    {line}\n" for line in [*body, "return z"])
        text += f"\n@R.function(private=True)\ndef f{number}({signature}\n{lines}"
    with pytest.raises(
        ResourceError, match=r"W952: with its calls written out f\d+ has over 16,384 bindings more than the"
    ):
        InlinePrivateFunctions()(module(text))


@pytest.mark.parametrize("long", ["main", "step"])
def test_a_long_function_is_no_repetition(long: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bindings of a text are written out once however many they are."""
    monkeypatch.setattr("weft.transform.graph.inline_functions._MOST_REPEATED", 8)

    def function(name: str, callee: str | None, length: int) -> Function:
        values = [x := Var("x", TensorType((4,), "float32"))]
        for number in range(length):
            values.append(Var(f"y{number}", x.ty))
        bindings = [VarBinding(new, R.exp(old)) for old, new in pairwise(values)]
        if callee:
            bindings.append(VarBinding(Var("z", x.ty), Call(GlobalVar(callee), (values[-1],))))
        body = SeqExpr((BindingBlock(tuple(bindings)),), bindings[-1].var)
        return Function((x,), body, x.ty, private=callee is None, name=name)

    functions = {"main": function("main", "step", 1), "step": function("step", None, 1)}
    functions[long] = function(long, "step" if long == "main" else None, 30)
    (main,) = InlinePrivateFunctions()(IRModule(functions)).functions.values()
    assert len(nodes_of(main, VarBinding)) == 31
