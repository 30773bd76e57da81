"""What lowered kernels check, what they promise about odd values, and what external packages can declare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import BoundsError, ScriptError, WeftError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import symbol
from weft.ir.graph import Call, Constant, GlobalVar, Op, ShapeExpr, Tuple, Var
from weft.ir.interpret import interpret
from weft.ir.op import OPS, Example, OpDef, Param, add_op, get_op, register_op
from weft.ir.op.common import Kernel, kernel_call, kernel_lowering
from weft.ir.op.declare import constant_like
from weft.ir.structure.visit import walk
from weft.ir.tensor import AssertStmt, PrimFunc, PrimVar
from weft.ir.types import PrimType, TensorType

n, m = symbol("n"), symbol("m")


def lowered(name: str, *args: Any, **kwargs: Any) -> Any:
    """The kernel of a call; types stand for variables."""
    variables = [Var(f"a{i}", arg) if isinstance(arg, (TensorType, PrimType)) else arg for i, arg in enumerate(args)]
    call = get_op(name).bind(variables, kwargs)
    kernel = get_op(name).lower(call, TypeContext(), "kernel")
    assert kernel is not None
    return kernel


def run(
    kernel: Any, *inputs: Any, out: tuple[int, ...], dtype: str = "float32", scalars: tuple[int, ...] = ()
) -> np.ndarray:
    """The output of a kernel on inputs."""
    result = np.zeros(out, dtype)
    interpret(kernel)(*inputs, result, *scalars)
    return result


def f32(*dims: Any) -> TensorType:
    return TensorType(dims, "float32")


def i64(*dims: Any) -> TensorType:
    return TensorType(dims, "int64")


# ---------------------------------------------------------------------------------------------------------------------
# Indices
# ---------------------------------------------------------------------------------------------------------------------

X = np.arange(12, dtype="float32").reshape(4, 3)


def test_take_counts_negative_indices_from_the_end() -> None:
    kernel = lowered("take", f32(n, 3), i64(m), axis=0)
    assert run(kernel, X, np.array([-1, 0, -4]), out=(3, 3)).tolist() == X[[-1, 0, -4]].tolist()


@pytest.mark.parametrize("index", [4, -5, 2**40, -(2**63)])
def test_take_stops_at_an_index_out_of_range(index: int) -> None:
    kernel = lowered("take", f32(n, 3), i64(m), axis=0)
    with pytest.raises(BoundsError, match=r"R\.take"):
        run(kernel, X, np.array([0, index]), out=(2, 3))


def test_take_of_a_constant_index_is_checked_when_the_size_is_known() -> None:
    kernel = lowered("take", f32(n, 3), 3, axis=0)
    assert run(kernel, X, out=(3,)).tolist() == X[3].tolist()
    with pytest.raises(BoundsError):
        run(kernel, X[:3].copy(), out=(3,))


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_take_that_makes_indices_fit_still_needs_something_to_index(mode: str) -> None:
    kernel = lowered("take", f32(n, 3), i64(m), axis=0, mode=mode)
    indices = np.array([-9, -1, 3, 4, 99])
    assert run(kernel, X, indices, out=(5, 3)).tolist() == np.take(X, indices, 0, mode=mode).tolist()  # type: ignore[arg-type]
    with pytest.raises(BoundsError):
        run(kernel, np.zeros((0, 3), "float32"), np.array([0]), out=(1, 3))
    assert run(kernel, np.zeros((0, 3), "float32"), np.zeros(0, "int64"), out=(0, 3)).size == 0


def test_gathers_stop_at_an_index_out_of_range() -> None:
    with pytest.raises(BoundsError):
        run(lowered("gather_elements", f32(n, 3), i64(m, 3)), X, np.array([[0, 0, 4]]), out=(1, 3))
    with pytest.raises(BoundsError):
        run(lowered("gather_nd", f32(n, 3), i64(m, 2)), X, np.array([[3, 2], [0, 3]]), out=(2,))


def test_a_promise_about_a_slice_is_checked() -> None:
    kernel = lowered("strided_slice", f32(n), [0], [1], [4], assume_inbound=True)
    assert run(kernel, X[:, 0].copy(), out=(3,)).tolist() == [3, 6, 9]
    with pytest.raises(BoundsError):
        run(kernel, X[:2, 0].copy(), out=(3,))


def test_one_hot_of_an_index_out_of_range_is_off_everywhere() -> None:
    kernel = lowered("one_hot", i64(n), 1.0, 0.0, 3)
    assert run(kernel, np.array([2, 3, -1]), out=(3, 3)).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


# ---------------------------------------------------------------------------------------------------------------------
# Shapes
# ---------------------------------------------------------------------------------------------------------------------


def test_sizes_that_do_not_broadcast_stop_the_kernel() -> None:
    """D3: n against m is checked where the kernel is called."""
    kernel = lowered("add", f32(n, 4), f32(m, 4))
    ones = np.ones((2, 4), "float32")
    assert run(kernel, ones, ones, out=(2, 4)).tolist() == (2 * ones).tolist()
    with pytest.raises(WeftError):
        run(kernel, ones, np.ones((3, 4), "float32"), out=(2, 4))
    with pytest.raises(WeftError):
        run(kernel, ones, np.ones((1, 4), "float32"), out=(2, 4))


def test_a_broadcast_to_another_size_never_reads_outside() -> None:
    kernel = lowered("broadcast_to", f32(n, 4), (m, 4))
    with pytest.raises(WeftError):
        run(kernel, np.ones((2, 4), "float32"), out=(7, 4))


def test_a_reshape_that_does_not_fit_stops_with_a_shape_error() -> None:
    kernel = lowered("reshape", f32(n, 4), (m,))
    assert [s.kind for s in walk(kernel) if isinstance(s, AssertStmt)] == ["ShapeError"]
    assert run(kernel, np.ones((2, 4), "float32"), out=(8,)).tolist() == [1] * 8
    with pytest.raises(WeftError, match=r"R\.reshape"):
        run(kernel, np.ones((2, 4), "float32"), out=(7,))


def test_a_reshape_with_a_computed_size_that_does_not_divide_stops() -> None:
    kernel = lowered("reshape", f32(n), (-1, 3))
    assert run(kernel, np.ones(6, "float32"), out=(2, 3)).shape == (2, 3)
    with pytest.raises(WeftError, match=r"R\.reshape"):
        run(kernel, np.ones(7, "float32"), out=(2, 3))


def test_a_squeezed_axis_must_have_size_one() -> None:
    kernel = lowered("squeeze", f32(n, 4), [0])
    with pytest.raises(WeftError):
        run(kernel, np.ones((2, 4), "float32"), out=(4,))


def test_parts_that_differ_in_another_axis_are_not_joined() -> None:
    kernel = lowered("concat", (Var("a", f32(2, n)), Var("b", f32(3, m))))
    with pytest.raises(WeftError):
        run(kernel, np.ones((2, 5), "float32"), np.ones((3, 4), "float32"), out=(5, 5))


def test_a_proved_shape_needs_no_assert() -> None:
    for kernel in (
        lowered("reshape", f32(n, 4), (-1, 2)),
        lowered("flatten", f32(n, m)),
        lowered("add", f32(n), f32(n)),
    ):
        assert not any(isinstance(s, AssertStmt) for s in walk(kernel))


# ---------------------------------------------------------------------------------------------------------------------
# Odd values
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("name", ["floor_divide", "floor_mod", "mod"])
def test_integer_division_is_defined_for_every_pair(name: str, dtype: str) -> None:
    """Zero divisors give 0, and the least integer divided by -1 wraps: nothing traps."""
    least = int(np.iinfo(dtype).min)
    values = np.array([least, least + 1, -7, -1, 0, 1, 7, -(least + 1)], dtype)
    a, b = (grid.ravel().astype(dtype) for grid in np.meshgrid(values, values))
    ty = TensorType((len(a),), dtype)
    with np.errstate(all="ignore"):
        expected = {"floor_divide": np.floor_divide, "floor_mod": np.remainder, "mod": np.fmod}[name](a, b)
    got = run(lowered(name, ty, ty), a, b, out=a.shape, dtype=dtype)
    assert np.where(b == 0, got, 0).tolist() == [0] * len(a)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["floor_divide", "floor_mod", "mod"])
def test_float_division_is_that_of_numpy(name: str) -> None:
    """Zeros too have its signs."""
    values = np.array([-np.inf, -7.5, -1, -0.1, -0.0, 0, 0.1, 1, 7.5, np.inf, np.nan])
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    ty = TensorType((len(a),), "float64")
    with np.errstate(all="ignore"):
        expected = {"floor_divide": np.floor_divide, "floor_mod": np.remainder, "mod": np.fmod}[name](a, b)
    got = run(lowered(name, ty, ty), a, b, out=a.shape, dtype="float64")
    np.testing.assert_allclose(got, expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[is_number]), np.signbit(expected[is_number]))


@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shifts_by_any_amount_are_defined(name: str) -> None:
    values, amounts = np.array([-5, -1, 0, 1, 5], "int32"), np.array([-3, -1, 0, 1, 31, 32, 33, 1000], "int32")
    a, b = (grid.ravel() for grid in np.meshgrid(values, amounts))
    ty = TensorType((len(a),), "int32")
    expected = [
        0 if not 0 <= s < 32 and name == "left_shift" else (v << s if name == "left_shift" else v >> min(s % 2**40, 31))
        for v, s in zip(a.tolist(), b.tolist(), strict=True)
    ]
    got = run(lowered(name, ty, ty), a, b, out=a.shape, dtype="int32")
    assert got.tolist() == np.array(expected, "int64").astype("int32").tolist()


def test_integer_powers_wrap_and_negative_exponents_truncate() -> None:
    a = np.array([3, -2, 1, -1, -1, 2, 0, 7], "int32")
    b = np.array([40, 31, -5, -5, -4, -1, 0, 2], "int32")
    ty = TensorType((8,), "int32")
    got = run(lowered("power", ty, ty), a, b, out=(8,), dtype="int32")
    wrapped = (3**40 + 2**31) % 2**32 - 2**31
    assert got.tolist() == [wrapped, -(2**31), 1, -1, 1, 0, 1, 49]


def test_values_that_are_not_numbers_pass_through() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0], "float32")
    for name, args in (("clip", (-1.0, 1.0)), ("sign", ()), ("maximum", (0.0,)), ("nn.relu", ())):
        got = run(lowered(name, f32(4), *args), x, out=(4,))
        assert np.isnan(got[0])
        assert not np.isnan(got[1:]).any()
    both = np.array([np.inf, -np.inf], "float32")
    assert run(lowered("log_add_exp", f32(2), f32(2)), both, both, out=(2,)).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_both_zeros_have_the_sign_zero(dtype: str) -> None:
    got = run(lowered("sign", TensorType((3,), dtype)), np.array([-0.0, 0.0, -3], dtype), out=(3,), dtype=dtype)
    assert got.tolist() == [0, 0, -1]
    assert not np.signbit(got[:2]).any()


def test_empty_tensors_are_fine() -> None:
    empty = np.zeros((0, 4), "float32")
    assert run(lowered("add", f32(n, 4), f32(4)), empty, np.ones(4, "float32"), out=(0, 4)).size == 0
    assert run(lowered("flatten", f32(n, 4)), empty, out=(0,)).size == 0
    assert run(lowered("concat", (Var("a", f32(n, 4)), Var("b", f32(m, 4)))), empty, empty, out=(0, 4)).size == 0


# ---------------------------------------------------------------------------------------------------------------------
# Frames
# ---------------------------------------------------------------------------------------------------------------------


def test_symbols_that_no_buffer_binds_are_passed_after_the_outputs() -> None:
    x = Var("x", f32(2 * n))
    call = get_op("exp")(x)
    kernel = get_op("exp").lower(call, TypeContext(), "exp")
    assert kernel is not None
    replaced = kernel_call(call, kernel, GlobalVar("exp"), TypeContext())
    assert isinstance(kernel.params[-1], PrimVar)
    assert replaced.args[1].fields == (x,)  # type: ignore[attr-defined]
    assert isinstance(replaced.args[2], ShapeExpr)
    assert replaced.args[2].dims == (n,)
    infer_type(replaced, TypeContext({"exp": kernel}))


def test_tuples_are_flattened_and_numbers_are_part_of_the_kernel() -> None:
    a, b = Var("a", f32(n, 4)), Var("b", f32(m, 4))
    call = get_op("concat")((a, b))
    kernel = get_op("concat").lower(call, TypeContext(), "concat")
    assert kernel is not None
    replaced = kernel_call(call, kernel, GlobalVar("concat"), TypeContext())
    assert isinstance(replaced.args[1], Tuple)
    assert replaced.args[1].fields == (a, b)
    scaled = get_op("multiply")(a, 2.0)
    kernel = get_op("multiply").lower(scaled, TypeContext(), "multiply")
    assert kernel is not None
    assert len(kernel.params) == 2


def test_a_scalar_variable_is_a_parameter_of_the_kernel() -> None:
    kernel = lowered("clip", f32(n), PrimType("float32"), 6)
    result = np.zeros(3, "float32")
    interpret(kernel)(np.array([-3, 1, 9], "float32"), np.float32(-1), result)
    assert result.tolist() == [-1, 1, 6]


def test_there_is_no_kernel_where_a_shape_is_unknown() -> None:
    call = get_op("exp")(Var("x", TensorType(ndim=2, dtype="float32")))
    assert get_op("exp").lower(call, TypeContext(), "exp") is None


# ---------------------------------------------------------------------------------------------------------------------
# Declarations
# ---------------------------------------------------------------------------------------------------------------------


def test_another_package_declares_an_operator_in_one_place() -> None:
    def lower(args: Any, context: TypeContext, name: str) -> Any:
        kernel = Kernel(args, context, name)
        x = kernel.input("x")
        return kernel.compute(lambda *i: x(*i) * te.const(args.factor, x.dtype))

    @register_op(
        "demo.scale",
        [Param("x"), Param("factor", "attr", 2.0, "float")],
        lowering=lower,
        numpy=lambda x, factor: x * np.float32(factor),
        pure=True,
        examples=(Example((f32(2, 3),)),),
    )
    def scale(args: Any, context: TypeContext) -> Any:
        """The tensor times a factor."""
        return context.type_of(args.x)

    try:
        call = get_op("demo.scale")(Var("x", f32(2)), factor=3)
        assert call.attrs["factor"] == 3.0
        kernel = scale.lower(call, TypeContext(), "scale")
        assert run(kernel, np.ones(2, "float32"), out=(2,)).tolist() == [3, 3]
        with pytest.raises(ValueError, match="declared twice"):
            add_op(scale)
    finally:
        del OPS["demo.scale"]


@pytest.mark.parametrize("missing", ["doc", "numpy", "examples", "lowering"])
def test_an_incomplete_declaration_fails_when_made(missing: str) -> None:
    facts: dict[str, Any] = {
        "doc": "A thing.",
        "numpy": np.exp,
        "examples": (Example((f32(2),)),),
        "lowering": lambda args, context, name: None,
    }
    facts[missing] = () if missing == "examples" else "" if missing == "doc" else None
    with pytest.raises(TypeError, match=missing):
        OpDef("demo.thing", (Param("x"),), lambda args, context: context.type_of(args.x), **facts)


def test_operators_are_impure_unless_declared_pure() -> None:
    def rule(args: Any, context: TypeContext) -> Any:
        return context.type_of(args.x)

    assert OpDef("demo.thing", (Param("x"),), rule, "A thing.", builtin="nobody").pure is False
    assert get_op("exp").pure
    assert not get_op("print").pure
    assert not get_op("call_packed").pure


def test_an_unknown_operator_is_answered_with_near_names() -> None:
    with pytest.raises(ScriptError) as caught:
        get_op("sofmax")
    assert caught.value.code == "W140"
    assert "R.nn.softmax" in (caught.value.hint or "")
    with pytest.raises(ScriptError, match=r"R\.permute_dim"):
        get_op("permute_dim")


def test_absent_values_before_present_ones_are_named() -> None:
    arange = get_op("arange")
    call = arange(5)
    assert call.attrs["absent"] == ("end",)
    assert [(param.name) for param, _ in arange.unbind(call)] == ["start"]
    assert arange.arguments(call).end is None


def test_an_attribute_equal_to_its_default_leaves_no_trace() -> None:
    x = Var("x", f32(2, 3))
    assert get_op("concat")((x, x), axis=0).attrs == {}
    assert get_op("concat")((x, x), axis=1).attrs == {"axis": 1}


def test_constants_of_numbers_hold_exactly_what_was_written() -> None:
    assert constant_like(1.0, "bfloat16").data.item() == 0x3F80
    assert constant_like(True, "float32").data.item() == 1.0
    assert constant_like(-1, "int8").dtype == "int8"
    with pytest.raises(WeftError):
        constant_like(-1, "uint8")


def test_a_call_keeps_its_operator_by_name() -> None:
    call = get_op("add")(Var("x", f32(2)), Constant(np.ones(2, "float32")))
    assert isinstance(call, Call)
    assert isinstance(call.op, Op)
    assert call.op.name == "add"


# ---------------------------------------------------------------------------------------------------------------------
# Sorting
# ---------------------------------------------------------------------------------------------------------------------


def test_sorting_puts_what_is_not_a_number_last_and_first_when_descending() -> None:
    x = np.array([2, np.nan, -1, np.inf, np.nan, -np.inf], "float32")
    up = run(lowered("sort", f32(n)), x, out=(6,))
    down = run(lowered("sort", f32(n), descending=True), x, out=(6,))
    np.testing.assert_array_equal(up, np.sort(x))
    np.testing.assert_array_equal(down, np.sort(x)[::-1])


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_keeps_the_order_of_equal_elements(descending: bool) -> None:
    x = np.array([1, 0, 1, 0, 1, 1, 0], "int64")
    got = run(lowered("argsort", i64(n), descending=descending), x, out=(7,), dtype="int32")
    assert got.tolist() == ([0, 2, 4, 5, 1, 3, 6] if descending else [1, 3, 6, 0, 2, 4, 5])


def test_an_axis_shorter_than_k_stops_the_kernel() -> None:
    kernel = lowered("topk", f32(n), 3, ret_type="values")
    assert run(kernel, np.array([4, 9, 1, 7], "float32"), out=(3,)).tolist() == [9, 7, 4]
    with pytest.raises(WeftError, match="topk"):
        run(kernel, np.array([4, 9], "float32"), out=(3,))
    with pytest.raises(WeftError):
        infer_type(get_op("topk")(Var("x", f32(2)), 3))


# ---------------------------------------------------------------------------------------------------------------------
# Scattering
# ---------------------------------------------------------------------------------------------------------------------


def test_a_scatter_stops_where_an_index_is_out_of_range_and_leaves_its_data_alone() -> None:
    kernel = lowered("scatter_elements", f32(n), i64(m), f32(m))
    data, out = np.zeros(4, "float32"), np.full(4, 7, "float32")
    for wrong in (4, -5):
        with pytest.raises(BoundsError, match="scatter_elements: index out of range"):
            interpret(kernel)(data, np.array([0, wrong]), np.ones(2, "float32"), out)
        assert data.tolist() == [0] * 4
    interpret(kernel)(data, np.array([-1, 0]), np.array([5, 6], "float32"), out)
    assert out.tolist() == [6, 0, 0, 5]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_counts_of_indices_are_those_of_numpy_and_refuse_all_others(dtype: str) -> None:
    kernel = lowered("count_indices", TensorType((n, m), dtype), (5,))
    for shape in ((0, 3), (1, 1), (40, 7)):
        given = np.random.default_rng(0).integers(0, 5, shape).astype(dtype)
        assert run(kernel, given, out=(5,), dtype="int64").tolist() == np.bincount(given.ravel(), None, 5).tolist()
    for wrong in (5, 255 if dtype == "uint8" else -1):
        with pytest.raises(BoundsError, match="index out of range"):
            run(kernel, np.full((2, 2), wrong, dtype), out=(5,), dtype="int64")


def test_a_scatter_writes_in_the_order_of_the_updates() -> None:
    updates = np.array([1, 2, 3], "float32")
    for reduction, expected in (("update", 3), ("add", 16), ("mul", 60), ("min", 1), ("max", 10)):
        kernel = lowered("scatter_elements", f32(1), i64(3), f32(3), reduction=reduction)
        assert run(kernel, np.array([10], "float32"), np.zeros(3, "int64"), updates, out=(1,)).tolist() == [expected]


def test_indices_that_do_not_fit_the_data_stop_a_scatter() -> None:
    kernel = lowered("scatter_elements", f32(3, n), i64(2, m), f32(2, m))
    zeros = np.zeros((2, 5), "int64")
    with pytest.raises(WeftError, match="scatter_elements"):
        run(kernel, np.zeros((3, 4), "float32"), zeros, np.ones((2, 5), "float32"), out=(3, 4))


def test_what_is_computed_has_a_reference_whoever_gives_it_meaning() -> None:
    with pytest.raises(TypeError, match="numpy"):
        OpDef(
            "demo.thing",
            (Param("x"),),
            lambda args, context: context.type_of(args.x),
            "A thing.",
            decompose=lambda args, builder: args.x,
            builtin="somebody",
        )


def test_a_lowering_of_a_kernel_gives_none_where_a_shape_is_not_known() -> None:
    @kernel_lowering
    def doubled(kernel: Kernel) -> PrimFunc | None:
        x = kernel.input("x")
        return kernel.compute(lambda *i: x(*i) * 2.0)

    definition = OpDef(
        "demo.doubled",
        (Param("x"),),
        lambda args, context: context.type_of(args.x),
        "Twice x.",
        lowering=doubled,
        numpy=lambda x: 2 * x,
        examples=(Example((f32(2, 3),)),),
    )
    add_op(definition)
    try:
        for shape, known in (((2, 3), True), (None, False)):
            call = definition.bind([Var("x", TensorType(shape, "float32"))], {})
            made = definition.lower(call, TypeContext(), "doubled")
            assert (made is not None) is known
    finally:
        OPS.pop("demo.doubled")


def test_concatenations_of_many_tensors_are_kernels_of_few() -> None:
    params = ", ".join(f'x{number}: R.Tensor(("n",), "float32")' for number in range(100))
    names = ", ".join(f"x{number}" for number in range(100))
    module = weft.parse(f"@R.function\ndef main({params}):\n    return R.concat(({names}), axis=0)")
    lowered = weft.lower(module, stop="legalize")
    kernels = [function for function in lowered.functions.values() if isinstance(function, PrimFunc)]
    assert 0 < max(len(kernel.params) for kernel in kernels) <= 33
