"""Contexts of patterns in dataflow blocks, and functions rebuilt where patterns match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import PassError
from weft.ir import BindingBlock, Constant, Expr, Function, GlobalVar, IRModule, Var
from weft.ir.op import get_op
from weft.ir.verify import assert_well_formed
from weft.transform.pattern import (
    DFPattern,
    PatternContext,
    is_call_dps_packed,
    is_const,
    is_gv,
    is_op,
    is_var,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)

DIAMOND = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
    with R.dataflow():
        product = R.matmul(x, w)
        relu = R.nn.relu(product)
        tanh = R.tanh(product)
        total = R.add(relu, tanh)
        R.output(total)
    return total
"""


def read(text: str) -> Function:
    found = weft.parse(text)
    assert isinstance(found, Function)
    return found


def module_of(text: str) -> tuple[IRModule, Function]:
    """The module of a text, and its main function."""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    main = module["main"]
    assert isinstance(main, Function)
    return module, main


def block_of(function: Function) -> BindingBlock:
    (block,) = function.body.blocks
    return block


def called(name: str) -> DFPattern:
    return is_op(name)(wildcard(), varg_default_wildcard=True)


def named(found: Mapping[DFPattern, Expr] | None, *patterns: DFPattern) -> list[str] | None:
    return None if found is None else [getattr(found[pattern], "name", "?") for pattern in patterns]


def test_a_diamond_is_found_by_its_edges() -> None:
    with PatternContext() as context:
        product, relu, tanh, total = called("matmul"), called("nn.relu"), called("tanh"), called("add")
        product.fork_to(relu, tanh)
        relu >> total
        tanh >> total
    found = context.match_dfb(block_of(read(DIAMOND)))
    assert named(found, product, relu, tanh, total) == ["product", "relu", "tanh", "total"]


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (lambda a, b: a ^ b, True),
        (lambda a, b: a >> b, False),  # tanh uses the product too
        (lambda a, b: a.used_by(b, 0), True),
        (lambda a, b: a.used_by(b, 1), False),
    ],
)
def test_edges_tell_the_only_user_and_the_place(join: Any, expected: bool) -> None:
    with PatternContext() as context:
        join(called("matmul"), called("nn.relu"))
    assert (context.match_dfb(block_of(read(DIAMOND))) is not None) is expected


def test_an_output_of_the_block_has_users_that_nobody_sees() -> None:
    function = read(DIAMOND.replace("R.output(total)", "R.output(relu, total)"))
    for join, expected in ((PatternJoin.any, True), (PatternJoin.only, False)):
        with PatternContext() as context:
            join(called("nn.relu"), called("add"))
        assert (context.match_dfb(block_of(function)) is not None) is expected


class PatternJoin:
    """The two kinds of edges as functions."""

    @staticmethod
    def any(source: DFPattern, user: DFPattern) -> Any:
        return source ^ user

    @staticmethod
    def only(source: DFPattern, user: DFPattern) -> Any:
        return source >> user


def test_two_patterns_stand_for_two_bindings() -> None:
    with PatternContext() as context:
        called("nn.relu"), called("nn.relu")
    assert context.match_dfb(block_of(read(DIAMOND))) is None
    twice = read(DIAMOND.replace("R.tanh", "R.nn.relu"))
    assert context.match_dfb(block_of(twice)) is not None


def test_rows_of_edges_and_a_context_that_continues_another() -> None:
    with PatternContext() as outer:
        product, relu = called("matmul"), called("nn.relu")
        row = product ^ relu
        with PatternContext(incremental=True) as inner:
            total = called("add")
            row >> total
    block = block_of(read(DIAMOND))
    assert named(inner.match_dfb(block), product, relu, total) == ["product", "relu", "total"]
    found = outer.match_dfb(block)
    assert found is not None
    assert total not in found


def test_a_part_of_another_pattern_is_not_looked_for_on_its_own() -> None:
    with PatternContext() as context:
        pattern = called("nn.relu") | called("exp")
    assert named(context.match_dfb(block_of(read(DIAMOND))), pattern) == ["relu"]


def test_edges_reach_parts_of_patterns() -> None:
    with PatternContext() as context:
        left, right = called("nn.relu"), called("tanh")
        is_op("add")(left, right)
        product = called("matmul")
        product.fork_to(left, right)
    assert named(context.match_dfb(block_of(read(DIAMOND))), left, product) == ["relu", "product"]


def test_extern_calls_are_joined_through_their_tuples() -> None:
    function = read("""
@R.function
def f(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
    with R.dataflow():
        a = R.call_dps_packed("one", (x, y), out_ty=R.Tensor((2, 3), "float32"))
        b = R.call_dps_packed("two", (y, a), out_ty=R.Tensor((2, 3), "float32"))
        R.output(b)
    return b
""")
    for index, expected in ((-1, True), (0, False), (1, True)):
        with PatternContext() as context:
            is_call_dps_packed("one").only_used_by(is_call_dps_packed("two"), index)
        assert (context.match_dfb(block_of(function)) is not None) is expected


def test_a_context_without_patterns_or_outside_another_is_refused() -> None:
    with pytest.raises(PassError) as caught:
        PatternContext().match_dfb(block_of(read(DIAMOND)))
    assert caught.value.code == "W552"
    with pytest.raises(PassError) as caught, PatternContext(incremental=True):
        pass
    assert caught.value.code == "W552"
    with PatternContext() as context:
        wildcard()
    with pytest.raises(PassError) as caught:
        context.match_dfb(read(DIAMOND))  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.message) == ("W551", "match_dfb takes a dataflow block, got a Function")


# Rewriting -----------------------------------------------------------------------------------------------------------


def run(function: Function, *arrays: np.ndarray) -> Any:
    return weft.interpret(function)["main"](*arrays)


def arrays_of(function: Function) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.normal(size=param.ty.shape).astype("float32") for param in function.params]  # type: ignore[attr-defined]


def test_a_call_is_replaced_and_what_it_alone_used_goes_away() -> None:
    x, y = wildcard(), wildcard()
    old = read(DIAMOND)
    new = rewrite_call(
        is_op("add")(is_op("nn.relu")(x), is_op("tanh")(y)), lambda expr, found: get_op("exp")(found[x]), old
    )
    expected = read("""
@R.function
def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
    with R.dataflow():
        product = R.matmul(x, w)
        total = R.exp(product)
        R.output(total)
    return total
""")
    weft.assert_structural_equal(new, expected)
    weft.assert_structural_equal(old, read(DIAMOND))


def test_a_value_that_is_bound_already_is_not_computed_again() -> None:
    product = called("matmul")
    pattern = is_op("nn.relu")(product)
    new = rewrite_call(pattern, lambda expr, found: get_op("maximum")(found[product], 0.0), read(DIAMOND))
    assert new.script().count("R.matmul") == 1
    arrays = arrays_of(new)
    np.testing.assert_array_equal(run(new, *arrays), run(read(DIAMOND), *arrays))


def test_a_replacement_may_be_nested_and_hold_what_it_replaces() -> None:
    pattern = called("tanh")
    new = rewrite_call(
        pattern, lambda expr, found: get_op("add")(get_op("negative")(get_op("negative")(expr)), 0.0), read(DIAMOND)
    )
    assert_well_formed(IRModule({"main": new}))
    assert new.script().count("R.tanh") == 1
    assert new.script().count("R.negative") == 2
    arrays = arrays_of(new)
    np.testing.assert_array_equal(run(new, *arrays), run(read(DIAMOND), *arrays))


def test_a_rewriter_may_leave_values_alone() -> None:
    function = read(DIAMOND)
    assert rewrite_call(called("exp"), lambda expr, found: expr, function) is function
    assert rewrite_call(called("tanh"), lambda expr, found: expr, function) is function
    assert rewrite_call(called("tanh"), lambda expr, found: None, function) is function


def test_later_matches_see_what_earlier_ones_became() -> None:
    function = read(DIAMOND.replace("R.tanh(product)", "R.nn.relu(relu)"))
    x = wildcard()
    inner = is_op("nn.relu")(x)
    new = rewrite_call(is_op("nn.relu")(inner), lambda expr, found: found[inner], function)
    assert new.script().count("R.nn.relu") == 1
    arrays = arrays_of(new)
    np.testing.assert_array_equal(run(new, *arrays), run(function, *arrays))


def test_branches_and_effects_are_rewritten_in_place() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.exp(x)
        _ = R.print(y, format="{}")
        if c:
            z = R.exp(y)
            r = R.negative(z)
        else:
            r = R.tanh(x)
        return r
"""
    module, main = module_of(text)
    x = wildcard()
    new = rewrite_call(is_op("exp")(x), lambda expr, found: get_op("sqrt")(get_op("abs")(found[x])), main, module)
    changed = module.with_function("main", new)
    assert_well_formed(changed)
    script = changed.script()
    assert "R.exp" not in script
    assert script.count("R.sqrt") == 2
    assert script.count("R.print") == 1
    value = np.array([1, -4], "float32")
    got = weft.interpret(changed)["main"](np.array(True), value)
    np.testing.assert_array_equal(got, -np.sqrt(np.sqrt(np.abs(value))))


def test_types_of_calls_of_the_module_are_known_with_the_module() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def layer(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return x

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.exp(x)
        return y
"""
    module, main = module_of(text)
    x = wildcard()
    new = rewrite_call(is_op("exp")(x), lambda expr, found: weft.ir.Call(GlobalVar("layer"), (found[x],)), main, module)
    assert_well_formed(module.with_function("main", new))
    (value,) = weft.transform.pattern.bindings_of_function(new).values()
    assert is_gv("layer")(is_var("x")).match(value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda expr, found: 3, "the replacement for 'tanh' is an int, not an expression"),
        (
            lambda expr, found: get_op("sum")(expr),
            'the replacement for \'tanh\' has type R.Tensor((), "float32"), and R.Tensor((2, 3), "float32") is wanted',
        ),
        (
            lambda expr, found: Var("z", weft.ir.TensorType((2, 3), "float32")),
            "the replacement for 'tanh' uses 'z', which is not bound before it",
        ),
    ],
)
def test_a_replacement_that_does_not_fit_is_refused_where_it_would_stand(make: Any, message: str) -> None:
    with pytest.raises(PassError) as caught:
        rewrite_call(called("tanh"), make, read(DIAMOND))
    assert (caught.value.code, caught.value.message) == ("W553", message)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (7, 16)


def test_only_functions_are_rewritten() -> None:
    for make in (
        lambda: rewrite_call(wildcard(), lambda expr, found: None, 3),  # type: ignore[arg-type]
        lambda: rewrite_bindings(PatternContext(), lambda found, values: {}, 3),  # type: ignore[arg-type]
    ):
        with pytest.raises(PassError) as caught:
            make()
        assert caught.value.code == "W551"


QKV = """
@R.function
def main(x: R.Tensor((2, 4), "float32"), a: R.Tensor((4, 3), "float32"), b: R.Tensor((4, 5), "float32")):
    with R.dataflow():
        q = R.matmul(x, a)
        k = R.matmul(x, b)
        R.output(q, k)
    return q, k
"""


def test_bindings_of_a_context_change_together_until_it_is_not_found() -> None:
    """Two products of one operand become slices of one product."""
    with PatternContext() as context:
        x, a, b = wildcard(), wildcard(), wildcard()
        one, two = is_op("matmul")(x, a), is_op("matmul")(x, b)
        x.fork_to(one, two)

    def rewriter(found: dict[DFPattern, Expr], values: dict[Var, Expr]) -> dict[Var, Expr]:
        whole = get_op("matmul")(found[x], get_op("concat")((found[a], found[b]), axis=1))
        slices = get_op("split")(whole, (3,), axis=1)
        first, second = found[one], found[two]
        assert isinstance(first, Var)
        assert isinstance(second, Var)
        return {first: slices[0], second: slices[1]}

    function = read(QKV)
    new = rewrite_bindings(context, rewriter, function)
    assert_well_formed(IRModule({"main": new}))
    assert new.script().count("R.matmul") == 1
    arrays = arrays_of(function)
    for got, expected in zip(run(new, *arrays), run(function, *arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_what_is_found_once_is_changed_once() -> None:
    with PatternContext() as context:
        product = called("matmul")
        relu = is_op("nn.relu")(product)
        product ^ relu

    def rewriter(found: dict[DFPattern, Expr], values: dict[Var, Expr]) -> dict[Var, Expr]:
        target = found[relu]
        assert isinstance(target, Var)
        assert values[target].args[0] is found[product]  # type: ignore[attr-defined]
        return {target: get_op("maximum")(found[product], 0.0)}

    function = read(DIAMOND)
    new = rewrite_bindings(context, rewriter, function)
    assert_well_formed(IRModule({"main": new}))
    assert "R.nn.relu" not in new.script()
    arrays = arrays_of(function)
    np.testing.assert_array_equal(run(new, *arrays), run(function, *arrays))
    assert rewrite_bindings(context, rewriter, new) is new
    assert rewrite_bindings(context, lambda found, values: {}, function) is function


def test_values_of_strangers_and_endless_changes_are_refused() -> None:
    with PatternContext() as context:
        tanh = called("tanh")
    function = read(DIAMOND)

    def again(found: dict[DFPattern, Expr], values: dict[Var, Expr]) -> dict[Var, Expr]:
        target = found[tanh]
        assert isinstance(target, Var)
        return {target: get_op("tanh")(get_op("negative")(function.params[0]))}

    for rewriter, code in (
        (again, "W554"),
        (lambda found, values: {function.params[0]: found[tanh]}, "W553"),
        (lambda found, values: 3, "W553"),
    ):
        with pytest.raises(PassError) as caught:
            rewrite_bindings(context, rewriter, function)  # type: ignore[arg-type]
        assert caught.value.code == code


STEPS = st.tuples(st.sampled_from(["exp", "negative", "add", "multiply"]), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(STEPS, min_size=1, max_size=8))
def test_rewriting_a_sum_keeps_the_meaning_of_every_program(steps: list[tuple[str, int, int]]) -> None:
    """a + b becomes b - (-a) wherever it stands in a random program; results differ by nothing."""
    lines, known = [], ["x", "y"]
    for number, (name, first, second) in enumerate(steps):
        operands = [known[first % len(known)], known[second % len(known)]]
        arguments = operands if name in ("add", "multiply") else operands[:1]
        known.append(f"v{number}")
        lines.append(f"        v{number} = R.{name}({', '.join(arguments)})")
    head = 'def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):\n    with R.dataflow():\n'
    function = read(
        "@R.function\n" + head + "\n".join([*lines, f"        R.output({known[-1]})", f"    return {known[-1]}"])
    )
    a, b = wildcard(), wildcard()
    new = rewrite_call(
        is_op("add")(a, b), lambda expr, found: get_op("subtract")(found[b], get_op("negative")(found[a])), function
    )
    assert_well_formed(IRModule({"main": new}))
    assert "R.add" not in new.script()
    values = [np.array([0.5, -1, 2], "float32"), np.array([3, 0.25, -0.5], "float32")]
    np.testing.assert_array_equal(run(new, *values), run(function, *values))


def test_constants_are_found_behind_nothing_but_themselves() -> None:
    function = read(DIAMOND.replace("R.tanh(product)", 'R.multiply(product, R.const(2.0, "float32"))'))
    constant = is_const()
    with PatternContext() as context:
        is_op("multiply")(wildcard(), constant)
    found = context.match_dfb(block_of(function))
    assert found is not None
    value = found[constant]
    assert isinstance(value, Constant)
    assert value.data == 2
