"""Patterns of expressions: what each form accepts, what its parts stand for, and what is no pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import PassError, ScriptError
from weft.ir import Call, Constant, Expr, Function, PrimValue, TensorType, Var
from weft.ir.op import get_op
from weft.transform.pattern import (
    DFPattern,
    PatternContext,
    bindings_of_function,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_extern,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    reject,
    wildcard,
)

TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            y[i, j] = x[i, j] * T.float32(2)

    @R.function
    def layer(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        return x

    @R.function(pure=False)
    def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            product = R.matmul(x, w)
            biased = R.add(R.const([1, 2, 3, 4], "float32"), product)
            relu = R.nn.relu(biased)
            soft = R.nn.softmax(relu, axis=1)
            parts = R.split(soft, 2, axis=1)
            left = parts[0]
            both = R.concat((left, left), axis=1)
            flat = R.reshape(both, (4 * n,))
            scaled = R.call_tir(cls.scale, (both,), out_ty=R.Tensor((n, 4), "float32"))
            outside = R.call_dps_packed("example.dps", (scaled,), out_ty=R.Tensor((n, 4), "float32"))
            layered = cls.layer(outside)
            square = R.multiply(layered, layered)
            R.output(flat, square)
        packed = R.call_packed("example.packed", square, ty_args=R.Tensor((n, 4), "float32"))
        return flat, packed
"""


def read() -> Function:
    module = weft.parse(TEXT)
    assert isinstance(module, weft.IRModule)
    found = module["main"]
    assert isinstance(found, Function)
    return found


WIDE = ["product", "biased", "relu", "soft", "both", "scaled", "outside", "layered", "square", "packed"]
MAIN = read()
VALUES = bindings_of_function(MAIN)
NAMED: dict[str, Expr] = {var.name: value for var, value in VALUES.items()}
VARS: dict[str, Var] = {var.name: var for var in VALUES}


def names(pattern: DFPattern) -> list[str]:
    """The bindings whose value the pattern accepts."""
    return [var.name for var, value in VALUES.items() if pattern.match(value, VALUES)]


def any_call(name: str) -> DFPattern:
    """A call of an operator with whatever arguments."""
    return is_op(name)(wildcard(), varg_default_wildcard=True)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (is_op("matmul")(wildcard(), wildcard()), ["product"]),
        (is_op("relax.matmul")(is_var("x"), is_var("w")), ["product"]),
        (is_op("R.matmul")(is_var("w"), is_var("x")), []),
        (is_op("matmul")(wildcard()), []),
        (is_op("matmul")(wildcard(), varg_default_wildcard=True), ["product"]),
        (is_op("add")(is_const(), wildcard()), ["biased"]),
        (is_op("add")(any_call("matmul"), is_const()), ["biased"]),
        (is_op("nn.relu")(is_op("add")(any_call("matmul"), is_const())), ["relu"]),
        (is_op("nn.relu")(any_call("matmul")), []),
        (any_call("nn.softmax").has_attr({"axis": 1}), ["soft"]),
        (any_call("nn.softmax").has_attr({"axis": -1}), []),
        (has_attr({"axis": 1}), ["soft", "parts", "both"]),
        (has_attr({"axis": 1, "nothing": 2}), []),
        (is_tuple_get_item(any_call("split"), 0), ["left"]),
        (is_tuple_get_item(wildcard()), ["left"]),
        (any_call("split")[1], []),
        (is_op("concat")(is_tuple([wildcard(), wildcard()])), ["both"]),
        (is_op("concat")(is_tuple([wildcard()])), []),
        (is_op("reshape")(wildcard(), is_shape(("4 * n",))), ["flat"]),
        (is_op("reshape")(wildcard(), is_shape((None,))), ["flat"]),
        (is_op("reshape")(wildcard(), is_shape(("n",))), []),
        (is_call_tir("scale"), ["scaled"]),
        (is_call_tir("scale", [any_call("concat")]), ["scaled"]),
        (is_call_tir("scale", [any_call("add")]), []),
        (is_call_tir("other"), []),
        (is_call_dps_packed("example.dps"), ["outside"]),
        (is_call_dps_packed("example.dps", [is_call_tir()]), ["outside"]),
        (is_call_packed("example.packed"), ["packed"]),
        (is_call_packed("example.packed", [any_call("multiply")]), ["packed"]),
        (is_extern("example.packed")(wildcard()), ["packed"]),
        (is_gv("layer")(wildcard()), ["layered"]),
        (is_gv()(is_call_dps_packed()), ["layered"]),
        (has_shape(("n", 4)) & is_var(), WIDE),
        (has_shape((None, 2)), ["left"]),
        (has_shape(("4 * n",)), ["flat"]),
        (has_dtype("float16"), []),
        (has_dtype("float32") & any_call("matmul"), ["product"]),
        (has_type(TensorType(ndim=1)), ["flat"]),
        (is_op("nn.relu")(wildcard()) | is_op("matmul")(wildcard(), wildcard()), ["product", "relu"]),
        (has_shape(("n", 2)) & ~is_var("left"), []),
        (has_shape(("n", 2)) & reject(is_var("right")), ["left"]),
        (is_dfv("soft"), ["soft"]),
        (is_var("flat") & ~is_dfv(), ["flat"]),
        (make_fused_bias_activation_pattern("matmul", with_bias=True, activation="nn.relu"), ["relu"]),
        (make_fused_bias_activation_pattern("matmul", with_bias=True, allow_reshape=True), ["biased"]),
    ],
)
def test_a_form_accepts_exactly_the_values_of_that_form(pattern: DFPattern, expected: list[str]) -> None:
    assert names(pattern) == expected


def test_parts_stand_for_values_and_wildcards_for_operands() -> None:
    x, bias = wildcard(), is_const()
    product = is_op("matmul")(x, wildcard())
    biased = is_op("add")(product, bias)
    found = is_op("nn.relu")(biased).extract_matched_expr(NAMED["relu"], VALUES)
    assert found is not None
    assert found[x] is MAIN.params[0]
    assert found[product] is NAMED["product"]
    assert found[biased] is NAMED["biased"]
    constant = found[bias]
    assert isinstance(constant, Constant)
    np.testing.assert_array_equal(constant.data, np.array([1, 2, 3, 4], "float32"))


def test_without_bindings_a_variable_is_only_a_variable() -> None:
    pattern = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    assert not pattern.match(NAMED["relu"])
    assert is_op("nn.relu")(is_var("biased")).match(NAMED["relu"])


def test_one_pattern_in_two_places_is_one_value() -> None:
    x = wildcard()
    assert names(is_op("multiply")(x, x)) == ["square"]
    assert names(is_op("multiply")(x, x.dup())) == ["square"]
    assert names(is_op("add")(x, x)) == []
    assert names(is_op("concat")(is_tuple([x, x]))) == ["both"]
    one = is_const()
    twice = get_op("add")(np.ones(2, "float32"), np.ones(2, "float32"))
    other = get_op("add")(np.ones(2, "float32"), np.zeros(2, "float32"))
    assert is_op("add")(one, one).match(twice)
    assert not is_op("add")(one, one).match(other)


def test_only_sums_and_products_take_their_operands_in_either_order() -> None:
    x, y = (Var(name, TensorType((2,), "float32")) for name in "xy")
    for name, either in (("add", True), ("multiply", True), ("subtract", False), ("divide", False)):
        assert is_op(name)(is_var("y"), is_var("x")).match(get_op(name)(x, y)) is either


def test_an_unordered_tuple_tries_every_order() -> None:
    x, y, z = (Var(name, TensorType((2,), "float32")) for name in "xyz")
    call = get_op("concat")((x, y, z))
    fields = [is_var("z"), wildcard(), is_var("x")]
    assert is_op("concat")(is_tuple(fields, unordered=True)).match(call)
    assert not is_op("concat")(is_tuple(fields)).match(call)
    assert not is_op("concat")(is_tuple([is_var("x"), is_var("x"), wildcard()], unordered=True)).match(call)


def test_a_wrong_first_choice_is_taken_back() -> None:
    """The left side of | fits the sum alone; only the right side fits with what stands around it."""
    x, y = (Var(name, TensorType((2,), "float32")) for name in "xy")
    left, right = wildcard(), wildcard()
    operand = left | right
    pattern = is_op("subtract")(operand, right)
    found = pattern.extract_matched_expr(get_op("subtract")(x, x))
    assert found is not None
    assert found[operand] is x
    ordered = is_op("subtract")(is_op("add")(left, right), left)
    total = get_op("add")(x, y)
    for last, expected in ((x, (x, y)), (y, (y, x))):
        found = ordered.extract_matched_expr(get_op("subtract")(total, last))
        assert found is not None
        assert (found[left], found[right]) == expected


def test_a_rejected_form_stands_for_nothing() -> None:
    inner = wildcard()
    pattern = is_op("nn.relu")(~is_op("exp")(inner))
    found = pattern.extract_matched_expr(NAMED["relu"], VALUES)
    assert found is not None
    assert inner not in found


def test_shapes_of_parts_may_have_to_agree() -> None:
    def text(size: str) -> Function:
        source = f"""
@R.function
def f(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(({size}, 4), "float32")):
    z = R.add(x, y)
    return z
"""
        found = weft.parse(source)
        assert isinstance(found, Function)
        return found

    for size, expected in (('"n"', True), ("1", False)):
        function = text(size)
        y = wildcard()
        pattern = is_op("add")(is_var("x").same_shape_as(y), y)
        (value,) = bindings_of_function(function).values()
        assert pattern.match(value) is expected
    stranger = is_var("x").same_shape_as(wildcard())
    assert not is_op("add")(stranger, wildcard()).match(get_op("add")(MAIN.params[0], MAIN.params[0]))


def test_given_leaves_match_by_value_and_variables_by_identity() -> None:
    x, same_name = (Var("x", TensorType((2,), "float32")) for _ in range(2))
    call = get_op("add")(x, np.ones(2, "float32"))
    assert is_op("add")(is_expr(x), is_expr(Constant(np.ones(2, "float32")))).match(call)
    assert not is_op("add")(is_expr(same_name), wildcard()).match(call)
    assert not is_op("add")(wildcard(), is_expr(Constant(np.zeros(2, "float32")))).match(call)
    assert is_expr(PrimValue(3)).match(PrimValue(3))
    assert not is_expr(PrimValue(3)).match(PrimValue(4))


def test_what_a_match_cast_binds_is_not_looked_through() -> None:
    function = weft.parse("""
@R.function
def f(x: R.Tensor(ndim=1, dtype="float32")):
    y = R.exp(x)
    z = R.match_cast(y, R.Tensor(("n",), "float32"))
    u = R.exp(z)
    return u
""")
    assert isinstance(function, Function)
    values = bindings_of_function(function)
    assert [var.name for var in values] == ["y", "u"]
    (_, last) = values.values()
    assert is_op("exp")(is_var("z")).match(last, values)
    assert not is_op("exp")(is_op("exp")(wildcard())).match(last, values)


@given(st.lists(st.sampled_from(["exp", "tanh", "negative"]), min_size=1, max_size=8), st.data())
def test_a_chain_is_found_where_it_stands_and_nowhere_else(operators: list[str], data: st.DataObject) -> None:
    """A pattern of the last k operators of a chain fits its end, and another operator at any place does not."""
    value: Expr = Var("x", TensorType((2,), "float32"))
    for name in operators:
        value = get_op(name)(value)
    count = data.draw(st.integers(1, len(operators)))
    wrong = data.draw(st.integers(0, count - 1))

    def chain(names: list[str]) -> DFPattern:
        pattern: DFPattern = wildcard()
        for name in names:
            pattern = is_op(name)(pattern)
        return pattern

    ends = operators[-count:]
    assert chain(ends).match(value)
    ends[wrong] = "sqrt"
    assert not chain(ends).match(value)


def test_deep_patterns_match() -> None:
    value: Expr = Var("x", TensorType((2,), "float32"))
    pattern: DFPattern = wildcard()
    for _ in range(1500):
        value, pattern = get_op("exp")(value), is_op("exp")(pattern)
    assert pattern.match(value)


X: Any = wildcard()
SOFTMAX = is_op("nn.softmax")(X)
LEAF = "is_expr(value) stands for one given leaf"
CALL = NAMED["product"]
assert isinstance(CALL, Call)


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda: is_op(3), "is_op takes the name of an operator, got an int", None),  # type: ignore[arg-type]
        (lambda: is_op("add")(X, X, X), "R.add has 2 parameters, the pattern gives 3", None),
        (lambda: is_op("add")(X, 1), "an argument of a call is a pattern, got an int", "wildcard() is any value"),  # type: ignore[arg-type]
        (lambda: X | MAIN.params[0], "the right side of | is a pattern, got a Var", LEAF),
        (lambda: X & None, "the right side of & is a pattern, got None", "wildcard() is any value"),
        (lambda: SOFTMAX.has_attr({"axes": 1}), "R.nn.softmax has no attribute 'axes'", "did you mean `axis`?"),
        (lambda: X.has_attr(["axis"]), "has_attr takes a dictionary of attributes by name, got a list", None),
        (lambda: X.has_shape("n"), "a shape is a list of sizes, got a str", None),
        (lambda: X.has_shape((1.5,)), "a size is a number, a dimension or its text, or None, got a float", None),
        (lambda: X.has_type("float32"), "has_type takes a type, got a str", None),
        (lambda: X[-1], "a field of a tuple has a number from 0, got -1", None),
        (lambda: is_tuple_get_item(X, "0"), "a field of a tuple has a number from 0, got '0'", None),  # type: ignore[arg-type]
        (lambda: is_tuple(X), "is_tuple takes a list of patterns, got a WildcardPattern", None),
        (lambda: is_tuple([X, 2]), "a field of a tuple is a pattern, got an int", "wildcard() is any value"),  # type: ignore[list-item]
        (lambda: is_expr(CALL), "is_expr takes a leaf, got a Call", "is_op(name)(...) is a call"),
        (lambda: is_expr(3), "is_expr takes a leaf, got an int", None),  # type: ignore[arg-type]
        (lambda: is_var(3), "is_var takes a name, got an int", None),  # type: ignore[arg-type]
        (lambda: reject(3), "what is rejected is a pattern, got an int", "wildcard() is any value"),  # type: ignore[arg-type]
        (lambda: has_dtype("float32", 3), "what has a property is a pattern, got an int", "wildcard() is any value"),  # type: ignore[arg-type]
        (lambda: list(X), "a pattern has no length to unpack", "write pattern[0], pattern[1]"),
        (lambda: bool(X), "a pattern is neither true nor false", "combine patterns with |, & and ~"),
    ],
)
def test_a_wrong_part_is_refused_by_what_it_is(make: Any, message: str, hint: str | None) -> None:
    with pytest.raises(PassError) as caught:
        make()
    assert (caught.value.code, caught.value.message, caught.value.hint) == ("W550", message, hint)


def test_an_operator_that_does_not_exist_is_named_with_its_neighbours() -> None:
    with pytest.raises(ScriptError) as caught:
        is_op("relax.nn.softmx")
    assert caught.value.code == "W140"
    assert caught.value.hint is not None
    assert "R.nn.softmax" in caught.value.hint


def test_only_expressions_and_functions_are_looked_at() -> None:
    for make in (lambda: X.match(3), lambda: bindings_of_function(3)):  # type: ignore[arg-type]
        with pytest.raises(PassError) as caught:
            make()
        assert caught.value.code == "W551"


def test_edges_are_written_inside_a_context() -> None:
    with pytest.raises(PassError) as caught:
        wildcard() >> wildcard()
    assert (caught.value.code, caught.value.hint) == ("W552", "with PatternContext() as context: ...")
    with PatternContext(), pytest.raises(PassError) as caught:
        wildcard().used_by(wildcard(), -2)
    assert caught.value.code == "W550"
