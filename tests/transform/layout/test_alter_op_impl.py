"""AlterOpImpl and OptimizeLayoutTransform: kernels of other layouts, and what meets between them."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.ir import Call, Function, IRModule, Op, PrimFunc
from weft.ir.structure.visit import walk
from weft.testing import assert_round_trip, assert_same_meaning
from weft.transform import AlterOpImpl, OptimizeLayoutTransform

KERNEL = """
@T.prim_func(private=True)
def add(x: T.Buffer({0}, "float32"), y: T.Buffer({0}, "float32"), z: T.Buffer({0}, "float32")):
    T.func_attr({{"operator_name": "relax.add"}})
    for {1} in T.grid({2}):
        with T.sblock("add"):
            {3} = T.axis.remap("{4}", [{1}])
            z[{3}] = x[{3}] + y[{3}]
"""
PLAIN = KERNEL.format("(4, 8)", "i, j", "4, 8", "a, b", "SS")
BLOCKED = KERNEL.format("(4, 2, 4)", "i, j, k", "4, 2, 4", "a, b, c", "SSS")
MAIN = """
@R.function
def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((4, 8), "float32")):
    with R.dataflow():
        a = R.call_tir(Module.add, (x, y), out_ty=R.Tensor((4, 8), "float32"))
        b = R.call_tir(Module.add, (a, x), out_ty=R.Tensor((4, 8), "float32"))
        R.output(b)
    return b
"""


def module() -> IRModule:
    lines = (PLAIN + MAIN).splitlines()
    made = weft.parse("@I.ir_module\nclass Module:\n" + "\n".join(f"    {line}" for line in lines))
    assert isinstance(made, IRModule)
    return made


def kernel(text: str = BLOCKED) -> PrimFunc:
    made = weft.parse(text)
    assert isinstance(made, PrimFunc)
    return made


def count(program: IRModule, name: str) -> int:
    main = program["main"]
    assert isinstance(main, Function)
    calls = [node for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)]
    return sum(node.op.name == name for node in calls)  # type: ignore[union-attr]


SPLIT: Any = lambda i, j: (i, j // 4, j % 4)


def test_kernels_are_replaced_and_layouts_between_them_cancel() -> None:
    before = module()
    after = AlterOpImpl({"relax.add": kernel()}, {"relax.add": [SPLIT] * 3})(before)
    assert weft.verify(after) == []
    assert_round_trip(after)
    assert count(after, "layout_transform") == 6
    assert_same_meaning(before, after, trials=2)
    fewer = OptimizeLayoutTransform()(after)
    assert count(fewer, "layout_transform") == 4  # of the value between the kernels nothing is left
    assert_same_meaning(before, fewer, trials=2)
    assert_same_meaning(before, weft.compile(fewer), name="main", trials=2)


def test_buffers_without_a_layout_and_other_operators_stay() -> None:
    before = module()
    same = AlterOpImpl({"relax.add": kernel(PLAIN)}, {})(before)
    assert count(same, "layout_transform") == 0
    assert_same_meaning(before, same, trials=1)
    assert AlterOpImpl({"relax.multiply": kernel()}, {})(before) is before


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (lambda i, j: (i, j // 3, j % 3), "has no inverse without padding"),
        (lambda i, j: (i, j % 4, j % 4), "has no inverse without padding"),
        (lambda i, j: (i, j + 1, i), "has no inverse without padding"),
    ],
)
def test_layouts_without_an_inverse_are_refused(layout: Any, message: str) -> None:
    with pytest.raises(weft.PassError, match=message) as caught:
        AlterOpImpl({"relax.add": kernel()}, {"relax.add": [layout] * 3})(module())
    assert caught.value.code == "W506"


def test_replacements_are_checked() -> None:
    wrong: Any = "add"
    with pytest.raises(weft.PassError, match=r"the replacement of 'relax\.add' is a kernel, got"):
        AlterOpImpl({"relax.add": wrong}, {})
    with pytest.raises(weft.PassError, match="takes 3 layouts, one for each buffer, got 1"):
        AlterOpImpl({"relax.add": kernel()}, {"relax.add": [None]})


CHAIN = """
@R.function
def main(x: R.Tensor({0}, "float32")):
    with R.dataflow():
        a = R.layout_transform(x, "{1}")
        b = R.layout_transform(a, "{2}")
        out = R.exp(b)
        R.output(out)
    return out
"""


@pytest.mark.parametrize(
    ("shape", "first", "second", "left"),
    [
        ("(4, 6)", "lambda i, j: (j, i)", "lambda i, j: (j, i)", 0),
        ('("n", 8)', "lambda i, j: (i, j // 4, j % 4)", "lambda i, j, k: (i, j * 4 + k)", 0),
        ('("n", 8)', "lambda i, j: (j // 4, i, j % 4)", "lambda i, j, k: (j, i, k)", 1),
        ("(4, 6)", "lambda i, j: (i, j // 4, j % 4)", "lambda i, j, k: (i, j * 4 + k)", 2),  # 6 is padded to 8
        ("(4, 8)", "lambda i, j: (i, j // 4, j % 4)", "lambda i, j, k: (i, j * 2 + k)", 2),  # places are met twice
        ("(4, 4)", "lambda i, j: (i, i)", "lambda i, j: (j, i)", 2),
    ],
)
def test_layouts_join_where_nothing_is_padded_or_lost(shape: str, first: str, second: str, left: int) -> None:
    before = IRModule({"main": weft.parse(CHAIN.format(shape, first, second))})  # type: ignore[dict-item]
    after = OptimizeLayoutTransform()(before)
    assert count(after, "layout_transform") == left
    assert_same_meaning(before, after, trials=2)
