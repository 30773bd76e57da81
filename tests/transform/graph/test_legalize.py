"""LegalizeOps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transform.helpers import assert_same_meaning, left_alone, module

import weft
from weft.dtypes import array_dtype
from weft.errors import PassError, ScriptError
from weft.ir import (
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    SeqExpr,
    TensorType,
    Tuple,
    Var,
    VarBinding,
    assert_structural_equal,
    te,
)
from weft.ir.dim import symbol
from weft.ir.op import get_op
from weft.testing.checks import check_round_trip, check_well_formed
from weft.transform import BindParams, LegalizeOps, PassContext
from weft.transform.infra.rewriting import bindings_of


def calls_in(module: IRModule, name: str = "main") -> list[str]:
    """What each binding of a function calls: the kernel of a call_tir, else the operator."""
    function = module[name]
    assert isinstance(function, Function)
    found = []
    for binding in bindings_of(function.body):
        value = binding.value
        if isinstance(value, Call):
            callee = value.args[0] if value.op.name.startswith("call_tir") else value.op  # type: ignore[attr-defined]
            found.append(callee.name)  # type: ignore[attr-defined]
    return found


def test_an_operator_becomes_the_call_of_its_kernel() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y
    """)
    expected = module("""
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_tir(Module.exp, (x,), out_ty=R.Tensor((n, 4), "float32"))
            R.output(y)
        return y

    @T.prim_func(private=True)
    def exp(x: T.Buffer(("n", T.int64(4)), "float32"), out: T.Buffer(("n", T.int64(4)), "float32")):
        n = T.int64()
        for i0, i1 in T.grid(n, 4):
            with T.block("out"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                out[v_i0, v_i1] = T.exp(x[v_i0, v_i1])
    """)
    new = LegalizeOps()(before)
    assert_structural_equal(new["main"], expected["main"])
    assert isinstance(new["exp"], PrimFunc)
    assert new["exp"].private
    assert_same_meaning(before, new)
    assert LegalizeOps()(new) is new


def test_equal_calls_share_one_kernel_and_others_are_numbered() -> None:
    new = LegalizeOps()(
        module("""
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            a = R.exp(x)
            b = R.exp(a)
            c = R.exp(y)
            d = R.exp(c)
            return d

        @R.function
        def other(x: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32"):
            a = R.exp(x)
            return a
        """)
    )
    assert calls_in(new) == ["exp", "exp", "exp1", "exp1"]
    assert calls_in(new, "other") == ["exp"]  # (m, 4) is (n, 4) under another name
    assert list(new) == ["main", "other", "exp", "exp1"]


def test_a_name_that_the_module_has_is_not_taken() -> None:
    new = LegalizeOps()(
        module("""
        @R.function
        def exp(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            a = R.exp(x)
            return a
        """)
    )
    assert list(new) == ["exp", "exp1"]


def test_tuple_arguments_and_several_outputs() -> None:
    before = module("""
    @R.function
    def main(
        t: R.Tuple(R.Tensor((2, 4), "float32"), R.Tensor((2, 4), "float32"))
    ) -> R.Tuple(R.Tensor((2, 4), "float32"), R.Tensor((2, 4), "float32")):
        with R.dataflow():
            a = R.concat(t, axis=0)
            b = R.split(a, 2, axis=0)
            R.output(b)
        return b
    """)
    new = LegalizeOps()(before)
    assert calls_in(new) == ["concat", "split"]
    assert_same_meaning(before, new)


def test_symbols_that_only_attributes_mention_are_passed_along() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor((1, 4), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        z = R.broadcast_to(x, (n, 4))
        return z

    @R.function
    def other(x: R.Tensor((1, 4), "float32"), y: R.Tensor(("k",), "float32")) -> R.Tensor(("k", 4), "float32"):
        k = T.int64()
        z = R.broadcast_to(x, (k, 4))
        return z
    """)
    new = LegalizeOps()(before)
    assert calls_in(new) == calls_in(new, "other") == ["broadcast_to"]
    assert_same_meaning(before, new)


def test_operators_in_branches_are_legalized() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        if c:
            y = R.exp(x)
        else:
            y = R.tanh(x)
        return y
    """)
    new = LegalizeOps()(before)
    assert set(new) == {"main", "exp", "tanh"}
    assert_same_meaning(before, new)


def test_values_of_unknown_shape_stay_operators() -> None:
    left_alone(
        LegalizeOps(),
        """
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=2, dtype="float32"):
            y = R.exp(x)
            return y
        """,
    )


def test_calls_that_are_no_operators_stay() -> None:
    left_alone(
        LegalizeOps(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            a = R.call_dps_packed("f", (x,), out_ty=R.Tensor((4,), "float32"))
            b = R.call_packed("g", a, ty_args=R.Tensor((4,), "float32"))
            c = Module.other(b)
            return c

        @R.function
        def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x
        """,
    )


def test_an_unknown_operator_stays() -> None:
    """C13: an unknown operator makes a pass leave that region alone."""
    ty = TensorType((4,), "float32")
    x, y = Var("x", ty), Var("y", ty)
    body = SeqExpr((DataflowBlock((VarBinding(y, Call(Op("not.declared"), (x,))),)),), y)
    module = IRModule({"main": Function((x,), body, ty)})
    assert LegalizeOps().run(module) is module


EXP = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    with R.dataflow():
        y = R.exp(x)
        z = R.negative(y)
        R.output(z)
    return z
"""


def test_what_an_operator_is_written_in_has_the_declared_type() -> None:
    before = module("""
    @R.function
    def main(x: R.Tensor(("n", 66, "m"), "float32")) -> R.Tensor(("n", 66, "m"), "float32"):
        y = R.linalg.cholesky(x, upper=True)
        return y
    """)
    new = LegalizeOps()(before)
    check_well_formed(new)  # (n, m, 66) after the transposition: that it is (n, 66, m) needs that m is 66
    check_round_trip(new)
    assert LegalizeOps()(new) is new


def test_a_users_rule_writes_an_operator_in_others() -> None:
    def through_power(builder: Any, call: Call) -> Any:
        base = builder.emit(get_op("multiply")(call.args[0], 1.0))
        return get_op("exp")(base)

    before = module(EXP)
    new = LegalizeOps({"exp": through_power})(before)
    assert calls_in(new) == ["multiply", "exp", "negative"]
    assert_same_meaning(before, new)


def test_a_users_rule_writes_an_operator_as_a_formula() -> None:
    def formula(builder: Any, call: Call) -> Any:
        return builder.call_te(lambda x: te.compute(x.shape, lambda i, j: te.exp(x[i, j])), call.args[0])

    before = module(EXP)
    new = LegalizeOps({"exp": formula})(before)
    assert len(calls_in(new)) == 2
    assert_same_meaning(before, new)


def test_a_users_rule_may_leave_the_call_to_the_declaration() -> None:
    assert_structural_equal(LegalizeOps({"exp": lambda builder, call: call})(module(EXP)), LegalizeOps()(module(EXP)))


def test_a_users_rule_for_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ScriptError) as caught:
        LegalizeOps({"expp": lambda builder, call: call})(module(EXP))
    assert "exp" in (caught.value.hint or "")


def test_a_users_rule_that_gives_no_expression_is_refused() -> None:
    with pytest.raises(PassError) as caught:
        LegalizeOps({"exp": lambda builder, call: None})(module(EXP))  # type: ignore[dict-item, arg-type, return-value]
    assert caught.value.code == "W531"


def test_new_bindings_point_at_the_text_they_come_from() -> None:
    new = LegalizeOps()(module(EXP))["main"]
    assert isinstance(new, Function)
    spans = [binding.span for binding in bindings_of(new.body)]
    assert [span.origin for span in spans if span is not None] == ["legalize-ops", "legalize-ops"]
    assert [span.source.text[span.start : span.end] for span in spans if span is not None] == [
        "y = R.exp(x)",
        "z = R.negative(y)",
    ]


def test_ten_thousand_operators_share_their_kernels() -> None:
    ty = TensorType((symbol("n"), 4), "float32")
    x = Var("x", ty)
    bindings, last = [], x
    for position in range(10_000):
        var = DataflowVar("a", ty)
        bindings.append(VarBinding(var, get_op("exp" if position % 2 else "tanh")(last)))
        last = var
    out = Var("out", ty)
    bindings.append(VarBinding(out, get_op("add")(last, x)))
    module = IRModule({"main": Function((x,), SeqExpr((DataflowBlock(tuple(bindings)),), out), ty)})
    new = LegalizeOps().run(module)
    assert list(new) == ["main", "tanh", "exp", "add"]
    assert calls_in(new)[:2] == ["tanh", "exp"]


def test_the_arguments_of_the_kernel_are_the_tensors_of_the_call() -> None:
    new = LegalizeOps()(module(EXP))["main"]
    assert isinstance(new, Function)
    first = next(bindings_of(new.body)).value
    assert isinstance(first, Call)
    assert isinstance(first.args[0], GlobalVar)
    assert isinstance(first.args[1], Tuple)
    assert first.args[1].fields == (new.params[0],)


_LAYER = """
    @R.function
    def main(x: R.Tensor(("t", 1, 2), "float32"), w: R.Tensor((1, 12, 2), "float32"), r: R.Tensor((1, 12, 3), "float32")
    ):
        return R.nn.lstm(x, w, r)[0]
    """


def test_what_constants_give_in_an_operator_written_out_is_folded() -> None:
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(1, 12, 2)).astype("float32"), "r": rng.normal(size=(1, 12, 3)).astype("float32")}
    before = BindParams("main", weights)(module(_LAYER))
    new = LegalizeOps()(before)
    assert not {"permute_dims", "squeeze", "strided_slice"} & set(calls_in(new))
    check_well_formed(new)
    assert_same_meaning(before, new)
    for context in (PassContext(disabled=["fold-constant"]), PassContext(opt=0)):
        with context:
            assert "permute_dims" in calls_in(LegalizeOps()(before))
    assert "permute_dims" in calls_in(LegalizeOps()(module(_LAYER)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_a_number_of_any_float_is_part_of_the_kernel(dtype: str) -> None:
    """As an argument it would be read again for each element."""
    text = f"""
@R.function
def main(x: R.Tensor((3, 14), "{dtype}")):
    return R.minimum(x, R.const(1.5, "{dtype}"))
"""
    legal = LegalizeOps()(weft.IRModule({"main": weft.parse(text)}))
    assert f"T.{dtype}(1.5)" in legal.script()
    assert "R.const" not in legal.script()
    x = np.linspace(-3, 3, 42).reshape(3, 14).astype(array_dtype(dtype))
    got = weft.compile(weft.parse(text))["main"](x)
    np.testing.assert_array_equal(got.astype("float32"), np.minimum(x.astype("float32"), 1.5))


@pytest.mark.parametrize("ty", ['dtype="int32"', 'dtype="complex64"', "ndim=2", 'ndim=2, dtype="complex64"', ""])
def test_products_of_unknown_ranks_stay(ty: str) -> None:
    text = f"@R.function\ndef main(x: R.Tensor({ty})):\n    y = R.matmul(x, x)\n    return y\n"
    module = weft.IRModule({"main": weft.parse(text)})
    weft.assert_structural_equal(LegalizeOps()(module), module)
