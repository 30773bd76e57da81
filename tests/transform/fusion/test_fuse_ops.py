"""FuseOps: which kernels become one function, and what that function is (D17, B16)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.transform.helpers import assert_same_meaning, check, left_alone, module

import weft
from weft.errors import PassError
from weft.ir import Function, IRModule
from weft.transform import Pipeline
from weft.transform.fusion.annotate_pattern import AnnotateTIROpPattern
from weft.transform.fusion.fuse_ops import FuseOps, KernelCall, group_by_consumers

KERNELS = """
@T.prim_func(private=True)
def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    T.func_attr({"op_pattern": "elementwise"})
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            y[vi] = x[vi] * T.float32(2.0)
@T.prim_func(private=True)
def plus(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    T.func_attr({"op_pattern": "elementwise"})
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            y[vi] = a[vi] + b[vi]
@T.prim_func(private=True)
def power(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    T.func_attr({"op_pattern": "elementwise"})
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            y[vi] = T.exp(x[vi])
@T.prim_func(private=True)
def backwards(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    T.func_attr({"op_pattern": "injective"})
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            y[vi] = x[n - 1 - vi]
@T.prim_func(private=True)
def total(x: T.Buffer(("n",), "float32"), y: T.Buffer((1,), "float32")):
    T.func_attr({"op_pattern": "reduction"})
    for i, k in T.grid(1, n):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0.0)
            y[vi] = y[vi] + x[vk]
"""

OUT = 'out_ty=R.Tensor(("n",), "float32")'


def main(*lines: str, results: tuple[str, ...] = ("z",), params: str = 'x: R.Tensor(("n",), "float32")') -> str:
    """The kernels and a function with one dataflow block; a line `a = f(b)` is a kernel call."""
    body = "".join(f"        {_call(line)}\n" for line in lines)
    names = ", ".join(results)
    value = f"({names})" if len(results) > 1 else names
    return f"""{KERNELS}
@R.function
def main({params}):
    with R.dataflow():
{body}        R.output({names})
    return {value}
"""


def _call(line: str) -> str:
    name, _, call = line.partition(" = ")
    kernel, _, args = call.partition("(")
    if "." in kernel:
        return line
    out = OUT if kernel != "total" else 'out_ty=R.Tensor((1,), "float32")'
    args = args.rstrip(")")
    return f"{name} = R.call_tir(cls.{kernel}, ({args},), {out})"


def groups(text: str, **options: object) -> list[tuple[str, ...]]:
    """The kernels of each group, after the checks that every use of the pass has to pass."""
    old = module(text)
    new = FuseOps(**options)(old)  # type: ignore[arg-type]
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    assert FuseOps(**options)(new) is new  # type: ignore[arg-type]
    assert_same_meaning(old, new)
    return [f.attrs["kernels"] for f in new.functions.values() if isinstance(f, Function) and "kernels" in f.attrs]


def test_a_chain_becomes_a_private_function_that_says_what_it_is() -> None:
    check(
        FuseOps(),
        main("y = double(x)", "z = power(y)"),
        f"""
{KERNELS}
@R.function
def main(x: R.Tensor(("n",), "float32")):
    with R.dataflow():
        z: R.Tensor(("n",), "float32") = cls.fused_double_power(x)
        R.output(z)
    return z
@R.function(private=True)
def fused_double_power(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    R.func_attr({{
        "primitive": True, "fusion": "double + power: computed at each element", "kernels": ("double", "power"),
    }})
    with R.dataflow():
        y = R.call_tir(cls.double, (x,), {OUT})
        z = R.call_tir(cls.power, (y,), {OUT})
        R.output(z)
    return z
""",
    )


def test_equal_groups_share_one_function() -> None:
    new = FuseOps()(module(main("a = double(x)", "b = power(a)", "c = total(b)", "y = double(b)", "z = power(y)")))
    assert [name for name in new if name.startswith("fused")] == ["fused_double_power"]


def test_diamonds_end_up_in_one_group() -> None:
    assert groups(main("t = double(x)", "a = power(t)", "b = double(t)", "z = plus(a, b)")) == [
        ("double", "power", "double", "plus")
    ]


def test_a_value_that_is_needed_elsewhere_is_not_computed_twice() -> None:
    assert groups(main("t = power(x)", "s = total(t)", "z = double(t)", results=("z", "s"))) == []
    assert groups(main("y = power(x)", "z = double(y)", results=("y", "z"))) == []


def test_expensive_values_are_not_moved_to_where_they_are_read_in_another_order() -> None:
    assert groups(main("y = double(x)", "z = backwards(y)")) == [("double", "backwards")]
    assert groups(main("y = power(x)", "z = backwards(y)")) == []


def test_sums_take_what_is_cheap_before_them() -> None:
    assert groups(main("y = double(x)", "z = total(y)")) == [("double", "total")]
    assert groups(main("y = power(x)", "z = total(y)")) == []


def test_products_that_double_again_and_again_stay_small() -> None:
    lines = [f"y{i + 1} = plus(y{i}, y{i})" for i in range(12)]
    found = groups(main("y0 = double(x)", *lines[:-1], "z = plus(y11, y11)"))
    assert max(map(len, found)) <= 4


def test_the_number_of_kernels_of_a_group_is_bounded() -> None:
    lines = ["y0 = double(x)", *(f"y{i + 1} = double(y{i})" for i in range(6)), "z = double(y6)"]
    assert [len(group) for group in groups(main(*lines), max_ops=3)] == [2, 3]  # 2 + 3 + 3, the equal ones shared


def test_kernels_with_different_labels_stay_apart() -> None:
    text = main("y = double(x)", "z = power(y)").replace(
        'T.func_attr({"op_pattern": "elementwise"})', 'T.func_attr({"op_pattern": "elementwise", "target": "npu"})', 1
    )
    left_alone(FuseOps(), text)


def test_groups_of_labelled_kernels_keep_the_label() -> None:
    text = main("y = double(x)", "z = double(y)").replace(
        'T.func_attr({"op_pattern": "elementwise"})', 'T.func_attr({"op_pattern": "elementwise", "target": "npu"})', 1
    )
    assert FuseOps()(module(text))["fused_double_double"].attrs["target"] == "npu"  # type: ignore[union-attr]


def test_nothing_is_fused_through_a_library_call() -> None:
    library = f'y = R.call_dps_packed("test.copy", (t,), {OUT})'
    left_alone(FuseOps(), main("t = double(x)", library, "z = power(y)"))


def test_nothing_is_moved_across_a_call_that_overwrites_its_argument() -> None:
    inplace = f"b = R.call_tir_inplace(cls.over, (x,), inplace_indices=[0], {OUT})"
    over = """
@T.prim_func(private=True)
def over(x: T.Buffer(("n",), "float32")):
    for i in range(n):
        with T.block("x"):
            vi = T.axis.spatial(n, i)
            x[vi] = x[vi] + T.float32(1.0)
"""
    left_alone(FuseOps(), over + main("a = double(x)", inplace, "z = plus(a, b)"))


def test_shapes_that_are_only_checked_when_the_program_runs_are_not_fused() -> None:
    params = 'x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")'
    left_alone(FuseOps(), main("y = double(x)", "z = plus(y, w)", params=params))


def test_opaque_kernels_and_primitive_functions_stay() -> None:
    text = main("y = double(x)", "z = power(y)")
    left_alone(FuseOps(), text.replace('"elementwise"', '"opaque"'))
    primitive = text.replace("    with R.dataflow", '    R.func_attr({"primitive": True})\n    with R.dataflow')
    left_alone(FuseOps(), primitive)


def test_outside_of_dataflow_blocks_nothing_is_fused() -> None:
    left_alone(
        FuseOps(),
        f"""
{KERNELS}
@R.function
def main(x: R.Tensor(("n",), "float32")):
    y = R.call_tir(cls.double, (x,), {OUT})
    z = R.call_tir(cls.power, (y,), {OUT})
    return z
""",
    )


def test_sizes_that_no_tensor_has_are_handed_over() -> None:
    text = main("y = double(x)", "z = power(y)", params='x: R.Tensor(("2 * n",), "float32"), w: R.Shape(["n"])')
    text = text.replace('R.Tensor(("n",), "float32"))\n', 'R.Tensor((2 * n,), "float32"))\n')
    new = FuseOps()(module(text))
    assert weft.verify(new) == []
    assert len(new["fused_double_power"].params) == 2  # type: ignore[union-attr]


# Decisions ----------------------------------------------------------------------------------------------------------


def test_the_decision_can_be_replaced_and_may_ask_for_several_results() -> None:
    def all_of_them(calls: Sequence[KernelCall], max_ops: int) -> list[list[int]]:
        return [[call.index for call in calls]]

    text = main("y = power(x)", "z = double(y)", results=("y", "z"))
    assert groups(text, decide=all_of_them) == [("power", "double")]
    text = main("y = power(x)", f'w = R.call_dps_packed("test.copy", (x,), {OUT})', "z = plus(y, w)")
    assert groups(text, decide=all_of_them) == [("power", "plus")]


@pytest.mark.parametrize("wrong", [[[0, 0]], [[0], [0, 1]], [[7, 0]], [[0, 2]]])
def test_decisions_that_cannot_be_applied_are_errors(wrong: list[list[int]]) -> None:
    fuse = FuseOps(decide=lambda calls, max_ops: wrong)
    with pytest.raises(PassError, match="W534"):
        fuse(module(main("y = power(x)", "w = double(y)", "z = plus(y, w)")))


def test_decisions_are_explained_in_words() -> None:
    old = module(main("y = double(x)", "z = total(y)"))
    assert FuseOps().explain(old) == ("fused_double_total: double + total: total with what is computed at its elements")
    assert FuseOps().explain(IRModule({})) == "nothing to fuse"


def test_the_decision_is_a_function_of_plain_data() -> None:
    call = KernelCall(0, "y", "f", "elementwise", None)  # type: ignore[arg-type]
    assert group_by_consumers([call], 4) == []


def test_a_relu_written_by_hand_is_fused_after_a_product() -> None:
    """D13: two steps, a kernel and its call; nothing is registered."""
    old = module(
        """
        @T.prim_func
        def my_relu(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
            for i, j in T.grid(n, 4):
                y[i, j] = T.max(x[i, j], T.float32(0.0))
        @R.function
        def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.call_tir(cls.my_relu, (y,), out_ty=R.Tensor((n, 4), "float32"))
                R.output(z)
            return z
        """
    )
    new = Pipeline([weft.transform.LegalizeOps(), AnnotateTIROpPattern(), FuseOps()])(old)
    assert new["fused_matmul_my_relu"].attrs["kernels"] == ("matmul", "my_relu")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("first", "second", "escapes", "group"),
    [
        (12, 3, False, ("matmul", "add", "add1", "relu")),  # and the short product stays alone
        (6, 3, False, ("add", "matmul1", "add1", "relu")),
        (3, 12, False, ("add", "matmul1", "add1", "relu")),
        (12, 3, True, ("matmul1", "add1", "relu")),
    ],
)
def test_of_two_products_that_are_added_the_long_one_has_the_sum(
    first: int, second: int, escapes: bool, group: tuple[str, ...]
) -> None:
    results = "z, a" if escapes else "z"
    old = module(
        f"""
        @R.function
        def main(
            x: R.Tensor(("n", {first}), "float32"), v: R.Tensor(({first}, 4), "float32"), b: R.Tensor((4,), "float32"),
            y: R.Tensor(("n", {second}), "float32"), w: R.Tensor(({second}, 4), "float32")
        ):
            with R.dataflow():
                a = R.add(R.matmul(x, v), b)
                z = R.nn.relu(R.add(a, R.matmul(y, w)))
                R.output({results})
            return {f"({results})" if escapes else results}
        """
    )
    before = Pipeline([weft.transform.CanonicalizeBindings(), weft.transform.LegalizeOps(), AnnotateTIROpPattern()])(
        old
    )
    new = FuseOps()(before)
    kernels = [f.attrs["kernels"] for f in new.functions.values() if isinstance(f, Function) and "kernels" in f.attrs]
    assert group in kernels
    assert_same_meaning(before, new)


@pytest.mark.parametrize("last", ["R.multiply(R.nn.silu(s[0]), s[1])", "R.nn.softmax(y, axis=-1)"])
def test_what_rounds_sums_stays_with_the_product(last: str) -> None:
    """What reads them elsewhere, or sums them, gets the short type: no float32 sums are stored between kernels."""
    old = module(
        f"""
        @R.function
        def main(x: R.Tensor(("n", 6), "float16"), w: R.Tensor((6, 8), "float16"), b: R.Tensor((8,), "float32")):
            with R.dataflow():
                y = R.astype(R.add(R.matmul(x, w, out_dtype="float32"), b), "float16")
                s = R.split(y, 2, axis=1)
                z = {last}
                R.output(z)
            return z
        """
    )
    steps = [weft.transform.SplitToSlices(), weft.transform.CanonicalizeBindings(), weft.transform.LegalizeOps()]
    before = Pipeline([*steps, AnnotateTIROpPattern()])(old)
    new = FuseOps()(before)
    assert new["fused_matmul_add_astype"].attrs["kernels"] == ("matmul", "add", "astype")  # type: ignore[union-attr]
    assert_same_meaning(before, new)


@pytest.mark.parametrize("last", ["R.concat((y, y2), axis=1)", "R.permute_dims(y)"])
def test_what_is_computed_from_sums_stays_with_the_product_where_others_only_move_it(last: str) -> None:
    """Tiles do it for nothing; a kernel that moves results would be arithmetic over them once more."""
    old = module(
        f"""
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), w: R.Tensor((6, 8), "float32"), v: R.Tensor((6, 4), "float32"),
                 b: R.Tensor((8,), "float32")):
            with R.dataflow():
                y = R.nn.relu(R.add(R.matmul(x, w), b))
                y2 = R.nn.relu(R.matmul(x, v))
                z = {last}
                R.output(z)
            return z
        """
    )
    steps = [weft.transform.DeadCodeElimination(), weft.transform.CanonicalizeBindings(), weft.transform.LegalizeOps()]
    before = Pipeline([*steps, AnnotateTIROpPattern()])(old)
    new = FuseOps()(before)
    kernels = [f.attrs["kernels"] for f in new.functions.values() if isinstance(f, Function) and "kernels" in f.attrs]
    assert len(kernels) == 1 + ("concat" in last)
    assert all(group[0].startswith("matmul") and group[-1].startswith("relu") for group in kernels)
    assert_same_meaning(before, new)


def test_functions_with_different_labels_share_no_group() -> None:
    """B16."""
    chain = main("y = double(x)", "z = power(y)")
    other = chain.removeprefix(KERNELS).replace("def main", "def other")
    other = other.replace("    with R.dataflow", '    R.func_attr({"target": "npu"})\n    with R.dataflow')
    new = FuseOps()(module(chain + other))
    assert [name for name in new if name.startswith("fused")] == ["fused_double_power", "fused_double_power_1"]


def test_kernels_whose_buffers_may_overlap_stay() -> None:
    text = main("y = double(x)", "z = power(y)")
    left_alone(FuseOps(), text.replace('"elementwise"}', '"elementwise", "tir.noalias": False}'))
