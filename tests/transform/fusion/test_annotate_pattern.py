"""AnnotateTIROpPattern: the kind of a kernel comes from its loops (D13, D17)."""

from __future__ import annotations

import pytest
from tests.transform.helpers import check, module

from weft.ir import TensorType, Var
from weft.ir.builder import BlockBuilder
from weft.ir.dim import Dim, symbol
from weft.ir.op import get_op
from weft.transform import LegalizeOps
from weft.transform.fusion.annotate_pattern import AnnotateTIROpPattern

N = symbol("n")


def kinds(text: str) -> list[object]:
    return [function.attrs["op_pattern"] for function in AnnotateTIROpPattern()(module(text)).functions.values()]


def kind_of(name: str, *shapes: tuple[Dim, ...], dtype: str = "float32", **options: object) -> object:
    params = [Var(f"x{i}", TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    builder = BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(get_op(name).bind(params, options, None)))
    new = AnnotateTIROpPattern()(LegalizeOps()(builder.get()))
    return list(new.functions.values())[-1].attrs["op_pattern"]


@pytest.mark.parametrize(
    ("expected", "name", "shapes", "options"),
    [
        ("elementwise", "exp", [(N, 4)], {}),
        ("elementwise", "add", [(N, 4), (N, 4)], {}),
        ("broadcast", "add", [(N, 4), (4,)], {}),
        ("broadcast", "multiply", [(N, 1), (N, 4)], {}),
        ("injective", "permute_dims", [(N, 4)], {}),
        ("injective", "reshape", [(N, 4)], {"shape": (4 * N,)}),
        ("injective", "flip", [(N, 4)], {"axis": 0}),
        ("reduction", "sum", [(N, 4)], {"axis": 1}),
        ("reduction", "nn.softmax", [(N, 4)], {}),
        ("contraction", "matmul", [(N, 4), (4, 6)], {}),
        ("contraction", "nn.conv2d", [(N, 1, 5, 5), (2, 1, 3, 3)], {}),
        ("opaque", "cumsum", [(N, 4)], {"axis": 0}),
    ],
)
def test_kernels_of_operators_have_the_kind_of_their_loops(
    expected: str, name: str, shapes: list[tuple[Dim, ...]], options: dict[str, object]
) -> None:
    assert kind_of(name, *shapes, **options) == expected


def test_the_attribute_is_all_that_is_added() -> None:
    check(
        AnnotateTIROpPattern(),
        """
        @T.prim_func
        def anything(x: T.Buffer((4, 8), "float32"), y: T.Buffer((8, 4), "float32")):
            for i, j in T.grid(8, 4):
                with T.block("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vj, vi]
        """,
        """
        @T.prim_func
        def anything(x: T.Buffer((4, 8), "float32"), y: T.Buffer((8, 4), "float32")):
            T.func_attr({"op_pattern": "injective"})
            for i, j in T.grid(8, 4):
                with T.block("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vj, vi]
        """,
    )


def test_loops_without_blocks_are_understood_and_names_mean_nothing() -> None:
    assert kinds(
        """
        @T.prim_func
        def matmul(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
            for i in range(n):
                y[i] = x[i] * T.float32(2.0)
        """
    ) == ["elementwise"]


def test_what_a_user_says_is_kept() -> None:
    assert kinds(
        """
        @T.prim_func
        def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            T.func_attr({"op_pattern": "opaque"})
            for i in range(4):
                y[i] = x[i]
        """
    ) == ["opaque"]


def test_loops_in_which_elements_depend_on_others_are_opaque() -> None:
    assert (
        kinds(
            """
        @T.prim_func
        def running(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = T.if_then_else(i > 0, y[T.max(i - 1, 0)], T.float32(0.0)) + x[i]
        @T.prim_func
        def accumulated(x: T.Buffer((4,), "float32"), y: T.Buffer((1,), "float32")):
            y[0] = T.float32(0.0)
            for i in range(4):
                y[0] = y[0] + x[i]
        @T.prim_func
        def with_effects(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = T.call_extern("next_value", x[i], dtype="float32")
        @T.prim_func
        def early(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                if x[i] > T.float32(0.0):
                    y[i] = x[i]
        @T.prim_func
        def triangle(x: T.Buffer((4, 4), "float32"), y: T.Buffer((4, 4), "float32")):
            for i in range(4):
                for j in range(i):
                    y[i, j] = x[i, j]
        """
        )
        == ["opaque"] * 5
    )


def test_asserts_do_not_change_the_kind() -> None:
    assert kinds(
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
            assert n > 1, "too short"
            for i in range(n):
                with T.block("y"):
                    vi = T.axis.spatial(n, i)
                    y[vi] = x[vi]
        """
    ) == ["elementwise"]
