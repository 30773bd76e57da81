"""DeadCodeElimination."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transform.helpers import check, left_alone, module, of_rows, of_vector

import weft
from weft.errors import PassError
from weft.ir import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    IRModule,
    Op,
    SeqExpr,
    TensorType,
    Var,
    VarBinding,
)
from weft.ir.op import get_op
from weft.transform import DeadCodeElimination


def test_an_unused_pure_binding_goes_with_what_only_it_used() -> None:
    check(
        DeadCodeElimination(),
        of_rows(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                c = R.negative(x)
                R.output(c)
            return c
            """
        ),
        of_rows(
            """
            with R.dataflow():
                c = R.negative(x)
                R.output(c)
            return c
            """
        ),
    )


def test_an_output_of_a_dataflow_block_that_nothing_uses_goes() -> None:
    check(
        DeadCodeElimination(),
        of_vector(
            """
            with R.dataflow():
                a = R.exp(x)
                b = R.negative(x)
                R.output(a, b)
            with R.dataflow():
                c = R.tanh(x)
                R.output(c)
            return b
            """
        ),
        of_vector(
            """
            with R.dataflow():
                b = R.negative(x)
                R.output(b)
            return b
            """
        ),
    )


def test_dead_bindings_in_branches_go_and_an_unused_pure_conditional_too() -> None:
    check(
        DeadCodeElimination(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if c:
                a = R.exp(x)
                b = R.negative(x)
                y = b
            else:
                y = R.tanh(x)
            if c:
                z = R.exp(x)
            else:
                z = R.tanh(x)
            return y
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if c:
                b = R.negative(x)
                y = b
            else:
                y = R.tanh(x)
            return y
        """,
    )


def test_private_functions_that_no_public_one_reaches_go() -> None:
    check(
        DeadCodeElimination(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = Module.used(x)
            return y

        @R.function(private=True)
        def used(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

        @R.function(private=True)
        def unused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = Module.only_from_unused(x)
            return y

        @R.function(private=True)
        def only_from_unused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = Module.used(x)
            return y

        @R.function(private=True)
        def used(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x
        """,
    )


def test_entry_functions_are_kept() -> None:
    text = """
    @R.function(private=True)
    def entry(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x
    """
    left_alone(DeadCodeElimination(("entry",)), text)
    assert len(DeadCodeElimination()(module(text))) == 0
    with pytest.raises(PassError):
        DeadCodeElimination(("missing",))(module(text))


def test_impure_values_stay() -> None:
    """An operation without a declaration is impure; nothing impure is dropped."""
    left_alone(
        DeadCodeElimination(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32"), f: R.Callable) -> R.Tensor((4,), "float32"):
            a = R.call_packed("log_it", x, ty_args=R.Tensor((4,), "float32"))
            b = Module.effect(x)
            c = f(x)
            return x

        @R.function(pure=False)
        def effect(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.call_packed("log_it", x, ty_args=R.Tensor((4,), "float32"))
            return x
        """,
    )


def test_an_unused_match_cast_stays_because_it_is_a_check() -> None:
    left_alone(
        DeadCodeElimination(),
        of_rows(
            """
            y = R.match_cast(x, R.Tensor((3, 4), "float32"))
            return x
            """
        ),
    )


def test_a_conditional_with_a_check_or_an_effect_in_a_branch_stays() -> None:
    left_alone(
        DeadCodeElimination(),
        """
        @R.function
        def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n",), "float32"):
            if c:
                z = R.match_cast(x, R.Tensor((3,), "float32"))
                y = R.sum(z)
            else:
                y = R.sum(x)
            return x
        """,
    )


def test_an_unknown_operator_stays() -> None:
    """C13: an unknown operator makes a pass leave that region alone."""
    ty = TensorType((4,), "float32")
    x, y = Var("x", ty), Var("y", ty)
    body = SeqExpr((BindingBlock((VarBinding(y, Call(Op("not.declared"), (x,))),)),), x)
    module = IRModule({"main": Function((x,), body, ty)})
    assert DeadCodeElimination().run(module) is module


def test_shape_variables_that_types_mention_are_used() -> None:
    left_alone(
        DeadCodeElimination(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), s: R.Shape(ndim=1)) -> R.Tensor(ndim=1, dtype="float32"):
            t: R.Shape(ndim=1) = s
            y = R.call_pure_packed("f", x, ty_args=R.Tensor(t, "float32"))
            return y
        """,
    )


def test_a_chain_of_ten_thousand_bindings_is_swept() -> None:
    ty = TensorType((4,), "float32")
    x = Var("x", ty)
    bindings, last = [], x
    for _ in range(10_000):
        var = DataflowVar("a", ty)
        bindings.append(VarBinding(var, get_op("exp")(last)))
        bindings.append(VarBinding(DataflowVar("dead", ty), get_op("tanh")(var)))
        last = var
    out = Var("out", ty)
    bindings.append(VarBinding(out, get_op("exp")(last)))
    module = IRModule({"main": Function((x,), SeqExpr((DataflowBlock(tuple(bindings)),), out), ty)})
    new = DeadCodeElimination().run(module)["main"]
    assert isinstance(new, Function)
    assert len(new.body.blocks[0].bindings) == 10_001


COUNTED = """
            n = T.int64()
            y = x
            for i in range({steps}):
                y = R.{body}
            return R.exp(x)
"""
PLAIN = of_rows(
    """
            z = R.exp(x)
            return z
    """
)


@pytest.mark.parametrize("steps", ["n", "1, n, 2", "n, 0, -1"])
def test_a_loop_over_sizes_goes_when_nothing_uses_its_results(steps: str) -> None:
    check(DeadCodeElimination(), of_rows(COUNTED.format(steps=steps, body="add(y, x)")), PLAIN)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("for i in range(n):", 'take(y, R.const([7], "int64"), axis=0)'),
        ("while R.less(R.sum(y), R.const(1.0)):", "add(y, x)"),
    ],
)
def test_a_loop_that_may_fail_or_not_end_stays(head: str, body: str) -> None:
    text = of_rows(COUNTED.format(steps="n", body=body).replace("for i in range(n):", head))
    assert "R.loop(" in DeadCodeElimination()(module(text)).script()


@pytest.mark.parametrize("opt", range(4))
def test_what_a_rewritten_value_took_stays_where_it_may_fail(opt: int) -> None:
    """A rule makes a slice of the part, which is dead, and took the check of v0 with it at opt 1 to 3."""
    part = of_rows(
        """
            v0 = R.reshape(x, (16,))
            v1 = R.split(v0, [1], axis=0)[1]
            return R.add(x, x)
        """
    )
    main = weft.compile(module(part), opt=opt)["main"]
    assert main(np.ones((4, 4), "float32")).sum() == 32
    with pytest.raises(weft.ShapeError, match="do not fill"):
        main(np.ones((2, 4), "float32"))


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_a_dead_loop_is_none_for_executors_without_loops(executor: str) -> None:
    counted = """
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            R.func_attr({"tir_var_upper_bound": {"n": 8}})
            n = T.int64()
            for i in range(n):
                pass
            return R.exp(x)
    """
    x = np.ones(3, "float32")
    np.testing.assert_allclose(weft.compile(module(counted), executor=executor)["main"](x), np.exp(x), rtol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        # the type of a parameter of a local function
        """
            @R.function
            def inner(y: R.Tensor(s, "float32")) -> R.Tensor("float32", ndim=1):
                z: R.Tensor("float32", ndim=1) = R.exp(y)
                return z
            w: R.Tensor("float32", ndim=1) = inner(x)
        """,
        # the result that a call says it has
        """
            w: R.Tensor("float32", ndim=1) = R.call_pure_packed("double", x, ty_args=R.Tensor(s, "float32"))
        """,
    ],
)
def test_a_shape_that_only_a_type_names_stays(body: str) -> None:
    head = 'def main(x: R.Tensor(("n",), "float32")) -> R.Tensor("float32", ndim=1):'
    text = f"        @R.function\n        {head}\n            s = R.shape_of(x){body.rstrip()}\n            return w\n"
    left_alone(DeadCodeElimination(), text)
    assert "R.Tensor(s, " in module(text).script()
