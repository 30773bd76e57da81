"""Normalize and ToNonDataflow."""

from __future__ import annotations

from tests.transform.helpers import check, left_alone, module

from weft.ir import (
    BindingBlock,
    Function,
    IRModule,
    SeqExpr,
    TensorType,
    Tuple,
    TupleType,
    Var,
    VarBinding,
    assert_structural_equal,
)
from weft.ir.op import get_op
from weft.transform import Normalize, ToNonDataflow

NORMAL = """
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    with R.dataflow():
        a = R.exp(x)
        b = R.add(a, x)
        R.output(b)
    return b
"""


def test_nested_calls_get_bindings_and_variables_get_types() -> None:
    ty = TensorType((4,), "float32")
    x, y = Var("x", ty), Var("y")
    nested = get_op("add")(get_op("exp")(x), get_op("tanh")(x))
    body = SeqExpr((BindingBlock((VarBinding(y, nested),)),), Tuple((y, get_op("negative")(y))))
    # The type of the result is stated; those of the variables are not.
    new = Normalize()(IRModule({"main": Function((x,), body, TupleType((ty, ty)))}))
    expected = module("""
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        gv = R.exp(x)
        gv1 = R.tanh(x)
        y = R.add(gv, gv1)
        gv2 = R.negative(y)
        return (y, gv2)
    """)
    assert_structural_equal(new, expected)
    assert Normalize()(new) is new


def test_a_function_in_normal_form_stays() -> None:
    left_alone(Normalize(), NORMAL)


def test_dataflow_blocks_become_plain_blocks_joined_with_their_neighbours() -> None:
    check(
        ToNonDataflow(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            z = R.tanh(x)
            with R.dataflow():
                a = R.exp(z)
                b = R.add(a, x)
                R.output(b)
            with R.dataflow():
                c = R.exp(b)
                R.output(c)
            return c
        """,
        """
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            z = R.tanh(x)
            a = R.exp(z)
            b = R.add(a, x)
            c = R.exp(b)
            return c
        """,
    )


def test_a_function_without_dataflow_blocks_stays() -> None:
    left_alone(
        ToNonDataflow(),
        """
        @R.function
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            if c:
                y = R.exp(x)
            else:
                y = R.tanh(x)
            return y
        """,
    )
