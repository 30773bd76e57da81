"""CombineParallelMatmul."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.helpers import assert_same_meaning, check, left_alone, module

import weft
from weft import PassError
from weft.ir import Call, Constant, IRModule, VarBinding, walk
from weft.transform import BindParams, CombineParallelMatmul, default_pipeline
from weft.transform.fusion.combine_parallel_matmul import SharedOperand, combine_where_it_pays


def everything(shared: SharedOperand) -> list[list[int]]:
    """A decision that joins whatever there is."""
    return [list(range(len(shared.products)))]


def products(columns: tuple[int, ...], sums: int = 128, rows: str = '"n"', tail: str = "") -> IRModule:
    """`p0 = x @ w0 ...` with constant operands of these columns, each followed by `tail` (a format of its name)."""
    random = np.random.default_rng(0)
    weights = {f"w{i}": random.standard_normal((sums, n), "float32") for i, n in enumerate(columns)}
    lines = []
    for index in range(len(columns)):
        lines.append(f"p{index} = R.matmul(x, w{index})")
        lines.append(f"q{index} = {tail.format(f'p{index}') if tail else f'p{index}'}")
    outputs = ", ".join(f"q{index}" for index in range(len(columns)))
    params = "".join(f', w{i}: R.Tensor(({sums}, {n}), "float32")' for i, n in enumerate(columns))
    text = f"""
@R.function
def main(x: R.Tensor(({rows}, {sums}), "float32"){params}):
    with R.dataflow():
{textwrap.indent(chr(10).join(lines), "        ")}
        R.output({outputs})
    return ({outputs},)
"""
    return BindParams("main", weights)(module(text))


def operators(found: IRModule) -> list[str]:
    """The operators that the bindings of main call, in order."""
    calls = [node.value for node in walk(found["main"]) if isinstance(node, VarBinding)]
    return [call.op.name for call in calls if isinstance(call, Call)]  # type: ignore[attr-defined]


def test_narrow_products_of_one_operand_become_one_and_slices() -> None:
    old = products((4, 5, 3))
    new = CombineParallelMatmul()(old)
    assert operators(new) == ["matmul", "strided_slice", "strided_slice", "strided_slice"]
    assert [node.data.shape for node in walk(new["main"]) if isinstance(node, Constant)] == [(128, 12)]
    assert CombineParallelMatmul()(new) is new
    assert_same_meaning(old, new)


@pytest.mark.parametrize(
    "kept",
    [
        products((64, 64, 64)),  # whole vectors
        products((16, 16)),
        products((1, 1, 1)),  # sums of products
        products((4, 4), sums=8),  # too few terms for what the slices cost
        products((4, 4), rows="1"),
        products((4,)),
    ],
)
def test_products_that_lose_by_it_stay_apart(kept: IRModule) -> None:
    assert CombineParallelMatmul()(kept) is kept


@pytest.mark.parametrize(
    ("columns", "rows", "joined"),
    [
        ((512, 512, 512), "1", 3),
        ((512, 1024), "16", 2),
        ((512, 512), "17", 0),
        ((512, 512), '"n"', 0),
        ((512, 500), "4", 0),
        ((256, 256), "4", 0),
        ((2048, 2048), "4", 0),
        ((512, 512, 8, 8), "4", 4),
    ],
)
def test_wide_products_join_where_there_are_few_rows(columns: tuple[int, ...], rows: str, joined: int) -> None:
    new = CombineParallelMatmul()(products(columns, 512, rows))
    assert operators(new).count("strided_slice") == joined


def test_narrow_products_join_beside_a_wide_one() -> None:
    new = CombineParallelMatmul()(products((512, 8, 8), sums=512))
    assert sorted(operators(new)) == ["matmul", "matmul", "strided_slice", "strided_slice"]


def test_run_time_operands_stay_apart() -> None:
    left_alone(
        CombineParallelMatmul(),
        """
        @R.function
        def main(x: R.Tensor(("n", 64), "float32"), a: R.Tensor((64, 4), "float32"), b: R.Tensor((64, 4), "float32")):
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                y = R.add(p, q)
                R.output(y)
            return y
        """,
    )


def test_a_decision_may_join_operands_of_the_caller_of_any_size() -> None:
    check(
        CombineParallelMatmul(decide=everything),
        """
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), a: R.Tensor((6, "k"), "float32"), b: R.Tensor((6, 4), "float32")):
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                R.output(p, q)
            return (p, q)
        """,
        """
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), a: R.Tensor((6, "k"), "float32"), b: R.Tensor((6, 4), "float32")):
            with R.dataflow():
                weights = R.concat((a, b), axis=-1)
                p_q = R.matmul(x, weights)
                p = R.strided_slice(p_q, axes=[-1], begin=[0], end=[k], assume_inbound=True)
                q = R.strided_slice(p_q, axes=[-1], begin=[k], end=[k + 4], assume_inbound=True)
                R.output(p, q)
            return (p, q)
        """,
    )


def test_groups_of_the_user_labels_and_other_attributes_are_respected() -> None:
    run = CombineParallelMatmul(decide=everything)
    head = 'x: R.Tensor((3, 6), "float16"), a: R.Tensor((6, 4), "float16"), b: R.Tensor((6, 4), "float16")'
    left_alone(
        run,
        f"""
        @R.function
        def main({head}):
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b, out_dtype="float32")
                r = R.matmul(x, a, target="one")
                s = R.matmul(x, b, target="two")
                R.output(p, q, r, s)
            return (p, q, r, s)

        @R.function(private=True)
        def group({head}):
            R.func_attr({{"primitive": True}})
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                y = R.add(p, q)
                R.output(y)
            return y
        """,
    )


def test_the_label_of_joined_products_is_that_of_the_slices() -> None:
    new = CombineParallelMatmul(decide=everything)(
        module("""
        @R.function
        def main(x: R.Tensor((3, 6), "float32"), a: R.Tensor((6, 4), "float32")):
            with R.dataflow():
                p = R.matmul(x, a, target="one")
                q = R.matmul(x, a, target="one")
                R.output(p, q)
            return (p, q)
        """)
    )
    calls = [node.value for node in walk(new["main"]) if isinstance(node, VarBinding)]
    assert [call.attrs.get("target") for call in calls if isinstance(call, Call)] == ["one"] * 4


def test_values_that_are_computed_later_are_not_needed_earlier() -> None:
    left_alone(
        CombineParallelMatmul(decide=everything),
        """
        @R.function
        def main(x: R.Tensor((4, 4), "float32"), a: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, p)
                R.output(q)
            return q
        """,
    )


def test_branches_are_joined_by_themselves() -> None:
    check(
        CombineParallelMatmul(decide=everything),
        """
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((4, 4), "float32"), a: R.Tensor((4, 2), "float32")):
            if c:
                p = R.matmul(x, a)
                q = R.matmul(x, a)
                y = R.add(p, q)
            else:
                y = R.matmul(x, a)
            return y
        """,
        """
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((4, 4), "float32"), a: R.Tensor((4, 2), "float32")):
            if c:
                weights = R.concat((a, a), axis=-1)
                p_q = R.matmul(x, weights)
                p = R.strided_slice(p_q, axes=[-1], begin=[0], end=[2], assume_inbound=True)
                q = R.strided_slice(p_q, axes=[-1], begin=[2], end=[4], assume_inbound=True)
                y = R.add(p, q)
            else:
                y = R.matmul(x, a)
            return y
        """,
    )


def test_biases_and_activations_are_computed_where_the_slices_are() -> None:
    found = products((4, 4, 4), tail="R.nn.relu(R.add({}, R.const(1.0, 'float32')))")
    kernels = [name for name in default_pipeline("llvm")(found).functions if name != "main"]
    assert len([name for name in kernels if "matmul" in name]) == 1
    assert all("slice" in name for name in kernels if "relu" in name)


def test_decisions_are_told() -> None:
    assert CombineParallelMatmul().explain(products((4, 4, 512))) == (
        "main: products of x over 128 terms: p0 (4 columns), p1 (4 columns) joined; p2 (512 columns) apart"
    )
    assert CombineParallelMatmul().explain(products((7,))) == "no products share an operand"


@pytest.mark.parametrize("groups", [[[0, 2]], [[0, 1], [1]], [[-1, 0]]])
def test_groups_that_are_none_are_refused(groups: list[list[int]]) -> None:
    with pytest.raises(PassError) as raised:
        CombineParallelMatmul(decide=lambda shared: groups)(products((4, 4)))
    assert raised.value.code == "W534"
    assert "2 products of x" in raised.value.message


@settings(max_examples=6)
@given(
    st.lists(st.integers(2, 31), min_size=2, max_size=4),
    st.integers(1, 130),
    st.integers(2, 70),
    st.booleans(),
    st.booleans(),
)
def test_results_are_those_of_the_products(
    columns: list[int], sums: int, rows: int, symbolic: bool, all_of_them: bool
) -> None:
    decide = everything if all_of_them else combine_where_it_pays
    old = products(tuple(columns), sums, '"n"' if symbolic else str(rows), "R.nn.relu({})")
    x = np.random.default_rng(1).standard_normal((rows, sums), "float32")
    expected = weft.interpret(old)["main"](x)
    for found in (old, CombineParallelMatmul(decide=decide)(old)):
        for value, wanted in zip(weft.compile(found)["main"](x), expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)
