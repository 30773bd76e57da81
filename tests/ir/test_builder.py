"""BlockBuilder: what it builds, in normal form and with types, and how it refuses misuse."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.errors import ShapeError, VerifyError
from weft.ir import assert_structural_equal, te
from weft.ir.builder import BlockBuilder, is_normal, normalize_function
from weft.ir.dim import symbol
from weft.ir.graph import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.interpret import interpret
from weft.ir.op import get_op
from weft.ir.types import PrimType, ShapeType, TensorType, TupleType

n, m = symbol("n"), symbol("m")
add, multiply, relu = get_op("add"), get_op("multiply"), get_op("nn.relu")


def tensor(*dims: Any, dtype: str = "float32") -> TensorType:
    return TensorType(dims, dtype)


def parameter(name: str = "x", *dims: Any) -> Var:
    return Var(name, tensor(*(dims or (n, 4))))


def bindings(function: Any) -> list[Any]:
    assert isinstance(function, Function)
    return [binding for block in function.body.blocks for binding in block.bindings]


def double(a: te.Tensor) -> te.Tensor:
    return te.compute(a.shape, lambda *i: a(*i) * 2.0, name="double")


def test_nested_calls_become_typed_bindings_in_normal_form() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit(relu(add(x, multiply(x, x))))
        bb.emit_func_output(y)
    main = bb.get()["main"]
    assert isinstance(main, Function)
    assert [binding.value.op.name for binding in bindings(main)] == ["multiply", "add", "nn.relu"]
    assert all(binding.var.ty.shape == (n, 4) for binding in bindings(main))
    assert is_normal(main)
    assert main.ret_type.shape == (n, 4)  # type: ignore[attr-defined]
    array = np.asarray([[1, -2, 3, -4]], "float32")
    np.testing.assert_array_equal(interpret(bb.get())["main"](array), np.maximum(array + array * array, 0))


def test_an_expression_used_twice_is_bound_once() -> None:
    x = parameter()
    shared = add(x, x)
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(multiply(shared, shared)))
    assert len(bindings(bb.get()["main"])) == 2


def test_dataflow_variables_stay_inside_and_outputs_leave() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        assert not bb.current_block_is_dataflow()
        with bb.dataflow():
            assert bb.current_block_is_dataflow()
            inner = bb.emit(add(x, x))
            outer = bb.emit_output(relu(inner))
        bb.emit_func_output(outer)
    main = bb.get()["main"]
    assert isinstance(main, Function)
    assert isinstance(inner, DataflowVar)
    assert not isinstance(outer, DataflowVar)
    assert [type(block) for block in main.body.blocks] == [DataflowBlock]


def test_bindings_before_and_after_a_dataflow_block_are_in_blocks_of_their_own() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit(add(x, x))
        with bb.dataflow():
            z = bb.emit_output(add(y, y))
        bb.emit_func_output(bb.emit(add(z, z)))
    main = bb.get()["main"]
    assert isinstance(main, Function)
    assert [type(block) for block in main.body.blocks] == [BindingBlock, DataflowBlock, BindingBlock]


def test_equal_formulas_share_one_private_kernel() -> None:
    x, y = parameter("x"), parameter("y")
    bb = BlockBuilder()
    with bb.function("main", [x, y]):
        a = bb.emit_te(double, x)
        b = bb.emit_te(double, y)
        c = bb.emit_te(lambda t: te.compute(t.shape, lambda i, j: t[i, j] * 3.0, name="triple"), b)
        bb.emit_te(double, c)
        bb.emit_func_output(bb.emit((a, c)))
    module = bb.get()
    assert list(module) == ["double", "triple", "main"]
    assert module["double"].private  # type: ignore[union-attr]
    one = np.ones((2, 4), "float32")
    first, second = interpret(module)["main"](one, one)
    assert (first[0, 0], second[0, 0]) == (2, 6)


def test_a_kernel_of_another_formula_by_the_same_name_gets_a_number() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit_te(double, x)
        bb.emit_func_output(bb.emit_te(lambda t: te.compute((4,), lambda j: t[0, j], name="double"), y))
    assert list(bb.get()) == ["double", "double1", "main"]


def test_a_symbol_that_no_argument_binds_is_passed_by_the_call() -> None:
    x = Var("x", tensor(2 * n))
    bb = BlockBuilder()
    with bb.function("main", [x, Var("s", ShapeType((n,)))]):
        call = bb.call_te(lambda t: te.compute((2 * n,), lambda i: t[(i + n) % (2 * n)], name="turned"), x)
        bb.emit_func_output(bb.emit(call))
    assert isinstance(call.args[2], ShapeExpr)
    assert call.args[2].dims == (n,)
    np.testing.assert_array_equal(interpret(bb.get())["main"](np.arange(6, dtype="float32"), (3,)), [3, 4, 5, 0, 1, 2])


def test_formulas_take_lists_numbers_dimensions_and_several_results() -> None:
    x, y = parameter("x"), parameter("y")

    def formula(tensors: list[te.Tensor], factor: float, size: Any, *, offset: int) -> list[te.Tensor]:
        a, b = tensors
        first = te.compute((size, 4), lambda i, j: a[i, j] * factor + b[i, j], name="first")
        return [first, te.compute((size,), lambda i: first[i, offset], name="second")]

    bb = BlockBuilder()
    with bb.function("main", [x, y]):
        both = bb.emit_te(formula, [x, y], 0.5, n, offset=1)
        bb.emit_func_output(both)
    assert isinstance(both.ty, TupleType)
    array = np.arange(8, dtype="float32").reshape(2, 4)
    first, second = interpret(bb.get())["main"](array, array)
    np.testing.assert_array_equal(first, array * 1.5)
    np.testing.assert_array_equal(second, array[:, 1] * 1.5)


def test_a_formula_that_returns_its_input_copies_it() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(lambda t: t, x, primfunc_name_hint="same"))
    assert list(bb.get()) == ["same", "main"]
    array = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(interpret(bb.get())["main"](array), array)


def test_a_match_cast_gives_new_symbols() -> None:
    x = Var("x", TensorType(dtype="float32", ndim=2))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        y = bb.match_cast(x, tensor(n, m))
        z = bb.emit(add(y, y))
        bb.emit_func_output(z)
    assert z.ty.shape == (n, m)  # type: ignore[attr-defined]
    main = bb.get()["main"]
    assert isinstance(bindings(main)[0], MatchCast)
    # Nobody outside knows the symbols.
    assert (main.ret_type.shape, main.ret_type.ndim) == (None, 2)  # type: ignore[union-attr]


def test_python_values_become_expressions() -> None:
    bb = BlockBuilder()
    with bb.function("main", []):
        pair = bb.emit((np.ones(2, "float32"), 3, "text"))
        bb.emit_func_output(pair)
    (binding,) = bindings(bb.get()["main"])
    assert [type(item).__name__ for item in binding.value.fields] == ["Constant", "PrimValue", "StringImm"]


def test_names_are_unique_and_bindings_can_be_looked_up() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        first = bb.emit(add(x, x), "x")
        second = bb.emit(add(x, x), "x")
        assert (first.name, second.name, bb.get_unique_name("x")) == ("x1", "x2", "x3")
        assert isinstance(bb.lookup_binding(first), Call)
        assert bb.lookup_binding(x) is None
        bb.emit_func_output(second)


def test_functions_can_be_added_and_replaced() -> None:
    bb = BlockBuilder()
    a = te.placeholder((4,), name="A")
    kernel = te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="B")], "copy")
    assert bb.add_func(kernel).name == "copy"
    assert bb.add_func(kernel, "copy").name == "copy1"
    other = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="B")], "copy")
    bb.update_func(bb.add_func(kernel, "third"), other)
    assert_structural_equal(bb.get()["third"], other)
    assert BlockBuilder(bb.get()).add_func(kernel, "copy").name == "copy2"


def test_parameters_may_be_given_with_the_result() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", attrs={"num_input": 1}, private=True):
        bb.emit_func_output(x, params=[x])
    main = bb.get()["main"]
    assert isinstance(main, Function)
    assert (main.params, dict(main.attrs), main.private) == ((x,), {"num_input": 1}, True)


def test_a_chain_of_nested_calls_does_not_recurse_and_takes_linear_time() -> None:
    x = parameter()

    def build(length: int) -> float:
        value: Any = x
        for _ in range(length):
            value = add(value, x)
        start = time.process_time()
        bb = BlockBuilder()
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit(value))
        assert len(bindings(bb.get()["main"])) == length
        return time.process_time() - start

    build(100)
    assert build(8000) < 40 * max(build(800), 0.005)


# ---------------------------------------------------------------------------------------------------------------------
# normalize_function
# ---------------------------------------------------------------------------------------------------------------------


def function_of(x: Var, body: SeqExpr) -> Function:
    return Function((x,), body, tensor(n, 4))


def test_a_function_in_normal_form_is_returned_as_it_is() -> None:
    x = parameter()
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relu(add(x, x))))
    main = bb.get()["main"]
    assert isinstance(main, Function)
    assert normalize_function(main) is main


def test_normalising_flattens_operands_types_variables_and_keeps_meaning() -> None:
    x, y = parameter(), Var("y")
    nested = VarBinding(y, relu(add(x, TupleGetItem(Tuple((x, multiply(x, x))), 1))))
    function = function_of(x, SeqExpr((BindingBlock((nested,)),), add(y, y)))
    assert not is_normal(function)
    normal = normalize_function(function)
    assert is_normal(normal)
    assert all(binding.var.ty.shape == (n, 4) for binding in bindings(normal))
    array = np.asarray([[1, -2, 3, 0.5]], "float32")
    np.testing.assert_array_equal(interpret(normal)(array), 2 * np.maximum(array + array * array, 0))


def test_both_branches_of_a_condition_are_normalised() -> None:
    x = parameter()
    flag = Constant(np.asarray(True))
    one, other = SeqExpr((), relu(add(x, x))), SeqExpr((), multiply(x, x))
    result = Var("result")
    function = function_of(x, SeqExpr((BindingBlock((VarBinding(result, If(flag, one, other)),)),), result))
    normal = normalize_function(function)
    assert is_normal(normal)
    (binding,) = bindings(normal)
    assert len(binding.value.then_branch.blocks[0].bindings) == 2
    array = np.asarray([[1, -2, 3, 0.5]], "float32")
    np.testing.assert_array_equal(interpret(normal)(array), np.maximum(2 * array, 0))


def test_dataflow_blocks_stay_dataflow_blocks() -> None:
    x = parameter()
    y = Var("y", tensor(n, 4))
    block = DataflowBlock((VarBinding(y, relu(add(x, x))),))
    normal = normalize_function(function_of(x, SeqExpr((block,), y)))
    assert [type(block) for block in normal.body.blocks] == [DataflowBlock]
    assert [type(binding.var) for binding in bindings(normal)] == [DataflowVar, Var]


# ---------------------------------------------------------------------------------------------------------------------
# Misuse
# ---------------------------------------------------------------------------------------------------------------------


def outside() -> None:
    BlockBuilder().emit(parameter())


def no_result() -> None:
    with BlockBuilder().function("main", [parameter()]):
        pass


def nested_function() -> None:
    bb = BlockBuilder()
    with bb.function("main", []), bb.function("other", []):
        pass


def output_outside_dataflow() -> None:
    bb, x = BlockBuilder(), parameter()
    with bb.function("main", [x]):
        bb.emit_output(x)


def escaping_dataflow_variable() -> None:
    bb, x = BlockBuilder(), parameter()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(add(x, x))
        bb.emit_func_output(y)


def emit_after_the_result() -> None:
    bb, x = BlockBuilder(), parameter()
    with bb.function("main", [x]):
        bb.emit_func_output(x)
        bb.emit(add(x, x))


def formula_of_a_scalar() -> None:
    bb, x = BlockBuilder(), Var("x", PrimType("float32"))
    with bb.function("main", [x]):
        bb.emit_te(double, x)


def formula_without_result() -> None:
    bb, x = BlockBuilder(), parameter()
    with bb.function("main", [x]):
        bb.emit_te(lambda t: None, x)


def not_an_expression() -> None:
    bb = BlockBuilder()
    with bb.function("main", []):
        bb.emit(object())


@pytest.mark.parametrize(
    ("misuse", "code"),
    [
        (outside, "W483"),
        (no_result, "W484"),
        (nested_function, "W483"),
        (output_outside_dataflow, "W483"),
        (escaping_dataflow_variable, "W483"),
        (emit_after_the_result, "W483"),
        (formula_of_a_scalar, "W485"),
        (formula_without_result, "W485"),
        (not_an_expression, "W486"),
    ],
)
def test_misuse_is_an_error_with_a_code(misuse: Callable[[], None], code: str) -> None:
    with pytest.raises(VerifyError) as caught:
        misuse()
    assert caught.value.code == code


def test_a_wrong_operand_is_an_error_at_its_emit_and_the_builder_stays_usable() -> None:
    x, y = parameter("x", 3, 4), parameter("y", 3, 5)
    bb = BlockBuilder()
    with pytest.raises(ShapeError), bb.function("main", [x, y]):
        bb.emit(add(x, y))
    with bb.function("main", [x]):
        bb.emit_func_output(x)
    assert list(bb.get()) == ["main"]


def test_a_kernel_with_a_gradient_of_its_own_is_called() -> None:
    x, bb = Var("x", tensor(n, 4)), BlockBuilder()
    with bb.function("main", [x]):
        double = lambda t: te.compute(t.shape, lambda i, j: t[i, j] * 2.0, name="twice")
        call = bb.call_te_with_grad(double, x, te_grad_name="twice_grad", te_grad_kwargs={"k": 2.0})
        bb.emit_func_output(bb.emit(call))
    module = bb.get()
    assert 'te_grad_name="twice_grad"' in module.script()
    np.testing.assert_array_equal(interpret(module)["main"](np.ones((3, 4), "float32")), np.full((3, 4), 2))


def test_bindings_are_made_in_a_scope_without_a_function() -> None:
    x, bb = Var("x", tensor(n, 4)), BlockBuilder()
    bb.begin_scope([x])
    with bb.dataflow():
        y = bb.emit_output(relu(bb.emit(add(x, x))))
    assert y.ty == x.ty or y.ty.shape == (n, 4)  # type: ignore[union-attr]
    (block,) = bb.end_scope().blocks
    assert isinstance(block, DataflowBlock)
    assert [binding.var.name for binding in block.bindings] == ["lv", "gv"]
    with pytest.raises(VerifyError, match="no scope was begun"):
        bb.end_scope()


def test_the_current_builder_is_the_one_whose_function_is_built() -> None:
    outer, inner = BlockBuilder(), BlockBuilder()
    assert BlockBuilder.current() is None
    with outer.function("f", []):
        with inner.function("g", []):
            assert BlockBuilder.current() is inner
            inner.emit_func_output(Tuple(()))
        assert BlockBuilder.current() is outer
        outer.emit_func_output(Tuple(()))
    with pytest.raises(VerifyError), outer.function("h", []):
        raise VerifyError("left early")
    assert BlockBuilder.current() is None
