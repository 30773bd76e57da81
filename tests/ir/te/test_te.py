"""Tensor expressions: what functions they become, and what those compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import weft
from weft.errors import DTypeError, ShapeError, VerifyError, WeftError
from weft.ir import assert_structural_equal, te
from weft.ir.dim import DimExpr, symbol
from weft.ir.interpret import interpret
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.structure.structural import structural_hash
from weft.ir.structure.visit import walk
from weft.ir.tensor import AllocBuffer, Block, Buffer, For, IfThenElse, PrimFunc, PrimVar
from weft.script import tir as T

n, m = symbol("n"), symbol("m")


def run(
    function: PrimFunc, *inputs: Any, shape: tuple[int, ...], dtype: str = "float32", scalars: tuple[int, ...] = ()
) -> Any:
    """The function's one output, written into memory full of garbage."""
    out = np.full(shape, 77, dtype)
    interpret(function)(*inputs, out, *scalars)
    return out


def blocks(function: PrimFunc) -> list[Block]:
    return [node for node in walk(function) if isinstance(node, Block)]


def matmul() -> PrimFunc:
    a, b = te.placeholder((n, 8), name="A"), te.placeholder((8, m), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def test_one_definition_becomes_one_loop_nest_over_the_output_and_the_reduction() -> None:
    """A2."""
    function = matmul()
    loops = [node for node in walk(function) if isinstance(node, For)]
    (block,) = blocks(function)
    assert [loop.loop_var.name for loop in loops] == ["i", "j", "k"]
    assert [axis.kind for axis in block.iter_vars] == ["spatial", "spatial", "reduce"]
    assert block.name == "C"
    assert block.init is not None
    assert [param.name for param in function.params] == ["A", "B", "C"]
    assert [loop.extent for loop in loops] == [*function.params[2].shape, 8]  # type: ignore[union-attr]


def test_equal_formulas_give_equal_functions_with_equal_hashes() -> None:
    """A2: two runs are equal."""
    assert_structural_equal(matmul(), matmul())
    assert structural_hash(matmul()) == structural_hash(matmul())


def test_a_graph_of_formulas_may_be_made_into_functions_twice_without_sharing_variables() -> None:
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    first, second = te.create_prim_func([a, b]), te.create_prim_func([a, b])
    shared = {id(node) for node in walk(first)} & {id(node) for node in walk(second)}
    assert not [node for node in walk(first) if isinstance(node, (PrimVar, Buffer)) and id(node) in shared]
    assert_structural_equal(first, second)


def test_a_matmul_computes_a_product_for_every_size() -> None:
    rng = np.random.default_rng(0)
    for rows, columns in ((3, 4), (1, 1), (0, 2)):
        a, b = rng.random((rows, 8), "float32"), rng.random((8, columns), "float32")
        np.testing.assert_allclose(run(matmul(), a, b, shape=(rows, columns)), a @ b, rtol=1e-5)


def test_intermediate_tensors_become_local_buffers_in_the_order_of_first_use() -> None:
    a = te.placeholder((4, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="total")
    share = te.compute((4, n), lambda i, j: a[i, j] / total[i], name="share")
    function = te.create_prim_func([a, share])
    assert [node.buffer.name for node in walk(function) if isinstance(node, AllocBuffer)] == ["total"]
    x = np.arange(12, dtype="float32").reshape(4, 3)
    np.testing.assert_allclose(run(function, x, shape=(4, 3)), x / x.sum(1, keepdims=True))


def test_a_reduction_over_nothing_is_its_neutral_value() -> None:
    a = te.placeholder((4, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    function = te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="total")])
    assert run(function, np.zeros((4, 0), "float32"), shape=(4,)).tolist() == [0, 0, 0, 0]
    none = te.placeholder((4, 0), name="A")
    e = te.reduce_axis((0, 0), name="k")
    constant = te.create_prim_func([none, te.compute((4,), lambda i: te.prod(none[i, e], axis=e), name="product")])
    assert not [block for block in blocks(constant) if block.init is not None]
    assert run(constant, np.zeros((4, 0), "float32"), shape=(4,)).tolist() == [1, 1, 1, 1]


def test_a_constant_reduction_needs_no_case_for_nothing() -> None:
    assert not [node for node in walk(matmul()) if isinstance(node, IfThenElse)]


def test_a_reducer_of_pairs_reads_both_old_values_before_it_stores() -> None:
    a = te.placeholder((5,), "int32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    swap = te.comm_reducer(lambda x, y: (x[1] + y[0], x[0] + y[1]), lambda s, t: (te.const(0, s), te.const(0, t)))
    first, second = te.compute((), lambda: swap((a[k], a[k]), axis=k), name="both")
    function = te.create_prim_func([a, first, second])
    one, two = np.zeros((), "int32"), np.zeros((), "int32")
    interpret(function)(np.arange(5, dtype="int32"), one, two)
    x = y = 0
    for value in range(5):
        x, y = y + value, x + value
    assert (one, two) == (x, y)


def test_the_greatest_and_least_start_from_the_ends_of_the_dtype() -> None:
    for dtype, value in (("int8", -128), ("uint8", 0), ("float32", -np.inf), ("int64", -(2**63))):
        a = te.placeholder((2,), dtype, name="A")
        k = te.reduce_axis((0, 2), name="k")
        function = te.create_prim_func([a, te.compute((), lambda a=a, k=k: te.max(a[k], axis=k), name="top")])
        assert run(function, np.full(2, value, dtype), shape=(), dtype=dtype) == np.asarray(value, dtype)


def test_a_scan_uses_what_it_computed_before() -> None:
    a = te.placeholder((2, n), name="A")
    out = te.scan(
        (2, n),
        lambda out, i, j: a[i, j] + te.if_then_else(j > 0, out[i, j - 1], 0.0),
        axis=1,
        dtype="float32",
        name="sums",
    )
    function = te.create_prim_func([a, out])
    assert [axis.kind for axis in blocks(function)[0].iter_vars] == ["spatial", "scan"]
    x = np.arange(8, dtype="float32").reshape(2, 4)
    np.testing.assert_array_equal(run(function, x, shape=(2, 4)), np.cumsum(x, 1))


def test_dimensions_stand_for_their_values_in_arithmetic() -> None:
    a = te.placeholder((n,), name="A")
    function = te.create_prim_func([a, te.compute((n,), lambda i: a[n - 1 - i], name="reversed")])
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(run(function, x, shape=(5,)), x[::-1])


def test_a_symbol_that_no_shape_binds_becomes_a_scalar_parameter_at_the_end() -> None:
    a = te.placeholder((2 * n,), name="A")
    traced = te.trace([a, te.compute((2 * n,), lambda i: a[i] * te.cast("float32", te.size(n)), name="B")])
    assert traced.scalars == ("n",)
    (scalar,) = (param for param in traced.function.params if isinstance(param, PrimVar))
    assert (scalar.name, scalar.dtype) == ("n", "int64")
    assert [str(ty.shape) for ty in kernel_signature(traced.function)[:2]] == ["(2 * n,)", "(2 * n,)"]  # type: ignore[union-attr]
    assert run(traced.function, np.ones(6, "float32"), shape=(6,), scalars=(3,)).tolist() == [3] * 6


def test_scalar_variables_may_stand_in_shapes_and_among_the_arguments() -> None:
    size, factor = PrimVar("size", "int64"), te.var("factor", "float32")
    a, k = te.placeholder((size,), name="A"), te.reduce_axis((0, size), name="k")
    total = te.compute((), lambda: te.sum(a[k] * factor, axis=k), name="total")
    function = te.create_prim_func([a, factor, total])
    out = np.zeros((), "float32")
    interpret(function)(np.arange(4, dtype="float32"), np.float32(0.5), out)
    assert out == 3


FUNCTIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (te.exp, np.exp),
    (te.log, np.log),
    (te.sqrt, np.sqrt),
    (te.tanh, np.tanh),
    (te.sin, np.sin),
    (te.cos, np.cos),
    (te.floor, np.floor),
    (te.ceil, np.ceil),
    (te.trunc, np.trunc),
    (te.round, np.rint),
    (te.abs, np.abs),
    (te.isnan, np.isnan),
    (te.rsqrt, lambda x: 1 / np.sqrt(x)),
    (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
]


@pytest.mark.parametrize(("formula", "reference"), FUNCTIONS, ids=[formula.__name__ for formula, _ in FUNCTIONS])
def test_functions_of_scalars_are_those_of_numpy(formula: Callable[..., Any], reference: Callable[..., Any]) -> None:
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: te.cast("float32", formula(a[i])), name="B")
    values = np.asarray([0.5, 1.5, 2.5, 0.25, 7], "float32")
    np.testing.assert_allclose(run(te.create_prim_func([a, b]), values, shape=(5,)), reference(values), rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [(te.floordiv, [-4, 3, -4]), (te.floormod, [1, 1, -1]), (te.truncdiv, [-3, 3, -3]), (te.truncmod, [-1, 1, 1])],
)
def test_divisions_of_integers_round_as_they_say(formula: Callable[..., Any], expected: list[int]) -> None:
    a, b = (te.placeholder((3,), "int32", name=name) for name in "AB")
    c = te.compute((3,), lambda i: formula(a[i], b[i]), name="C")
    x, y = np.asarray([-7, 7, 7], "int32"), np.asarray([2, 2, -2], "int32")
    assert run(te.create_prim_func([a, b, c]), x, y, shape=(3,), dtype="int32").tolist() == expected


def test_several_outputs_of_one_formula_share_a_loop_nest() -> None:
    a = te.placeholder((3,), name="A")
    double, triple = te.compute((3,), lambda i: (a[i] * 2.0, a[i] * 3.0), name="both")
    function = te.create_prim_func([a, double, triple])
    assert len(blocks(function)) == 1
    x, y = np.zeros(3, "float32"), np.zeros(3, "float32")
    interpret(function)(np.ones(3, "float32"), x, y)
    assert (x.tolist(), y.tolist()) == ([2] * 3, [3] * 3)


def test_names_of_buffers_and_blocks_are_unique() -> None:
    a = te.placeholder((3,), name="T")
    b = te.compute((3,), lambda i: a[i] + 1.0, name="T")
    c = te.compute((3,), lambda i: b[i] + 1.0, name="T")
    function = te.create_prim_func([a, c])
    names = [param.name for param in function.params] + [
        node.buffer.name for node in walk(function) if isinstance(node, AllocBuffer)
    ]
    assert sorted(names) == ["T", "T_1", "T_2"]
    assert len({block.name for block in blocks(function)}) == 2


def test_a_check_stops_the_function_with_its_kind_of_error() -> None:
    a = te.placeholder((n,), "int64", name="A")
    b = te.compute((n,), lambda i: a[i], name="B")
    valid = te.check((n,), lambda i: a[i] >= 0, "an index is negative")
    function = te.create_prim_func([a, b], checks=[valid])
    assert run(function, np.arange(3), shape=(3,), dtype="int64").tolist() == [0, 1, 2]
    with pytest.raises(ShapeError, match="an index is negative"):
        run(function, np.asarray([0, -1]), shape=(2,), dtype="int64")


def misuse_missing_placeholder() -> Any:
    a = te.placeholder((3,), name="A")
    return te.create_prim_func([te.compute((3,), lambda i: a[i], name="B")])


def misuse_reduction_in_expression() -> Any:
    a, k = te.placeholder((3,), name="A"), te.reduce_axis((0, 3), name="k")
    return te.compute((3,), lambda i: te.sum(a[k], axis=k) + 1.0)


def misuse_truth_of_an_expression() -> Any:
    a = te.placeholder((3,), name="A")
    return te.compute((3,), lambda i: a[i] if i > 0 else 0.0)


def misuse_chained_comparison() -> Any:
    return te.compute((3,), lambda i: te.select(0 < i < 2, 1.0, 0.0))


def test_a_tensor_is_no_iterable_of_its_elements() -> None:
    with pytest.raises(TypeError):
        list(te.placeholder((3,), name="A"))  # type: ignore[call-overload]


MISUSES: list[tuple[Callable[[], Any], type[WeftError], str]] = [
    (lambda: te.placeholder((2, 3), name="A")[0], ShapeError, "W240"),
    (lambda: te.compute((2, 3), lambda i: te.const(1)), ShapeError, "W241"),
    (lambda: te.if_then_else(te.const(1, "int32"), 1, 2), DTypeError, "W313"),
    (misuse_truth_of_an_expression, DTypeError, "W315"),
    (misuse_chained_comparison, DTypeError, "W315"),
    (misuse_reduction_in_expression, VerifyError, "W480"),
    (misuse_missing_placeholder, VerifyError, "W481"),
    (lambda: te.create_prim_func([cast(DimExpr, 2 * n)]), VerifyError, "W482"),
]


@pytest.mark.parametrize(("misuse", "kind", "code"), MISUSES, ids=range(len(MISUSES)))
def test_misuse_is_an_error_with_a_code(misuse: Callable[[], Any], kind: type[WeftError], code: str) -> None:
    with pytest.raises(kind) as caught:
        misuse()
    assert caught.value.code == code


@pytest.mark.parametrize(
    "formula",
    [lambda i: None, lambda i: "x", lambda i: te.placeholder((4,))[i] * 10**400],
    ids=["nothing", "a text", "a large integer"],
)
def test_a_formula_is_made_of_numbers_and_expressions(formula: Callable[[Any], Any]) -> None:
    with pytest.raises(WeftError, match="is not a value of float32") as caught:
        te.compute((4,), formula)
    assert caught.value.code == "W310"


@pytest.mark.parametrize("extent", [float("nan"), float("inf"), 1.5])
def test_a_size_is_a_whole_number(extent: Any) -> None:
    with pytest.raises(WeftError) as caught:
        te.placeholder((extent,))
    assert caught.value.code == "W310"


def test_an_argument_is_a_tensor_or_a_symbol() -> None:
    with pytest.raises(WeftError, match="an int is no argument") as caught:
        te.create_prim_func([3])  # type: ignore[list-item]
    assert caught.value.code == "W482"


def test_every_scalar_function_is_that_of_numpy() -> None:
    a = te.placeholder((6,), "float32", name="A")
    x = np.array([0.25, 0.5, -0.75, 0.9, -0.1, 1.0], "float32")
    formulas: dict[str, tuple[Any, Any]] = {
        **{name: (getattr(te, name), getattr(np, name)) for name in ("sinh", "cosh", "tan")},
        **{f"a{name}": (getattr(te, f"a{name}"), getattr(np, f"arc{name}")) for name in ("sin", "cos", "tan", "sinh")},
        "atanh": (lambda v: te.atanh(v * 0.5), lambda v: np.arctanh(v * 0.5)),
        "acosh": (lambda v: te.acosh(v + 2.0), lambda v: np.arccosh(v + 2)),
        "log2": (lambda v: te.log2(v + 2.0), lambda v: np.log2(v + 2)),
        "log10": (lambda v: te.log10(v + 2.0), lambda v: np.log10(v + 2)),
        "nearbyint": (lambda v: te.nearbyint(v * 3.0), lambda v: np.rint(v * 3)),
        "fmod": (lambda v: te.fmod(v, 0.3), lambda v: np.fmod(v, np.float32(0.3))),
        "div": (lambda v: te.div(v, 2.0), lambda v: v / 2),
        "logaddexp": (lambda v: te.logaddexp(v, 1.0), lambda v: np.logaddexp(v, np.float32(1))),
    }
    for name, (formula, reference) in formulas.items():
        b = te.compute((6,), lambda i, formula=formula: formula(a[i]), name=name)
        function = te.create_prim_func([a, b], "kernel")
        for run in (weft.interpret(function), weft.compile(function)["kernel"]):
            out = np.empty(6, "float32")
            run(x, out)
            np.testing.assert_allclose(out, reference(x), rtol=1e-5, atol=1e-6, err_msg=name)


def test_logaddexp_of_infinities_and_whole_numbers() -> None:
    a = te.placeholder((4,), "float32", name="A")
    b = te.compute((4,), lambda i: te.logaddexp(a[i], a[3 - i]), name="B")
    out, x = np.empty(4, "float32"), np.array([np.inf, -np.inf, -np.inf, 0.0], "float32")
    weft.compile(te.create_prim_func([a, b], "kernel"))["kernel"](x, out)
    np.testing.assert_array_equal(out, np.logaddexp(x, x[::-1]))
    i = te.placeholder((4,), "int32", name="I")
    j = te.compute(
        (4,), lambda k: te.popcount(i[k]) + te.div(i[k], 3) + te.indexdiv(i[k], 2) * 2 + te.indexmod(i[k], 2)
    )
    given, found = np.array([-7, 7, 0, 4], "int32"), np.empty(4, "int32")
    weft.compile(te.create_prim_func([i, j], "kernel"))["kernel"](given, found)
    bits = [bin(int(value) & 0xFFFFFFFF).count("1") for value in given]
    np.testing.assert_array_equal(found, bits + np.trunc(given / 3).astype("int32") + given)
    ends = te.compute((2,), lambda k: te.if_then_else(k > 0, te.max_value("int8"), te.min_value("int8")), name="E")
    least = np.empty(2, "int8")
    weft.compile(te.create_prim_func([ends], "kernel"))["kernel"](least)
    assert least.tolist() == [-128, 127]


def test_an_extern_stage_calls_what_the_formula_names() -> None:
    a = te.placeholder((n, 3), name="A")
    b = te.compute((n, 3), lambda i, j: a[i, j] + 1.0, name="B")
    call = lambda ins, outs: T.call_packed("test_te.twice_and_sum", ins[0], outs[0], outs[1])
    c, d = te.extern([(n, 3), (n,)], [b], call, name="C", dtype=["float32", "float64"])
    e = te.compute((n,), lambda i: te.cast("float64", c[i, 0]) + d[i], name="E")
    function = te.create_prim_func([a, e], "kernel")
    assert weft.verify(function) == []

    def twice_and_sum(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        y[...] = x * 2
        z[...] = x.sum(axis=1)

    weft.register_func("test_te.twice_and_sum", twice_and_sum, override=True)
    x = np.arange(12, dtype="float32").reshape(4, 3)
    for run in (weft.interpret(function), weft.compile(function)["kernel"]):
        out = np.empty(4)
        run(x, out)
        np.testing.assert_allclose(out, (x[:, 0] + 1) * 2 + (x + 1).sum(axis=1))
    with pytest.raises(VerifyError, match="dtype of the result is not told"):
        te.extern((n,), [], call)
    with pytest.raises(VerifyError, match="no statement"):
        te.extern((n,), [a], lambda ins, outs: "f")


@pytest.mark.parametrize(
    "make",
    [
        lambda: te.placeholder((4, -3)),
        lambda: te.placeholder(-1),
        lambda: te.compute((-3,), lambda i: i),
        lambda: te.reduce_axis((2, 1)),
    ],
)
def test_negative_sizes_are_refused_at_once(make: Callable[[], Any]) -> None:
    with pytest.raises(ShapeError, match="negative size") as error:
        make()
    assert error.value.code == "W221"


def test_sizes_may_be_text() -> None:
    assert te.placeholder(("n + 1", 3)).shape == (n + 1, 3)
    with pytest.raises(ShapeError, match="W287"):
        te.placeholder(("n +", 3))
