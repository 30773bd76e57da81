"""SplitCallTIRByPattern: parts of kernels that patterns find, as calls of library functions or kernels of their own."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import Call, Function, IRModule, Op, PrimFunc, te
from weft.ir.dim import Dim, symbol
from weft.ir.structure.visit import walk
from weft.testing import assert_round_trip, assert_same_meaning
from weft.transform import FuseOps, FuseTIR, LegalizeOps, Pipeline, SplitCallTIRByPattern
from weft.transform.target.split_call_tir_by_pattern import TIRMatch

MODEL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32"), b: R.Tensor((8,), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.add(y, b)
            r = R.nn.relu(z)
            R.output(r)
        return r
"""


def fused(text: str = MODEL) -> IRModule:
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return Pipeline([LegalizeOps(), FuseOps(), FuseTIR()])(module)


def product(n: Dim, k: Dim, m: Dim, name: str = "product") -> PrimFunc:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    axis = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.create_prim_func([a, b, c], name)


ANY = product(symbol("rows"), symbol("inner"), symbol("columns"))


def called(module: IRModule) -> list[str]:
    main = module["main"]
    assert isinstance(main, Function)
    return [call.op.name for call in walk(main) if isinstance(call, Call) and isinstance(call.op, Op)]


@pytest.mark.parametrize("pattern", [ANY, product(symbol("n"), 16, 8)])
def test_a_product_becomes_a_kernel_of_its_own(pattern: PrimFunc) -> None:
    before = fused()
    after = SplitCallTIRByPattern((pattern,))(before)
    assert weft.verify(after) == []
    assert_round_trip(after)
    assert [name for name, f in after.items() if f.attrs.get("pattern") == "product"] == [
        "fused_matmul_add_relu_product"
    ]
    assert "fused_matmul_add_relu" not in after  # nothing calls it any more
    assert called(after) == ["call_tir", "call_tir_inplace"]  # what follows works in the memory of the product
    assert_same_meaning(before, after, trials=2)
    assert_same_meaning(before, weft.compile(after), name="main", trials=2)


def test_a_library_function_computes_what_a_pattern_finds() -> None:
    seen: list[TIRMatch] = []

    def codegen(match: TIRMatch) -> str:
        seen.append(match)
        return "test_split.matmul"

    weft.register_func("test_split.matmul", lambda a, b, c: np.matmul(a, b, out=c), override=True)
    before = fused()
    after = SplitCallTIRByPattern((ANY,), codegen)(before)
    assert called(after) == ["call_dps_packed", "call_tir_inplace"]
    assert [(match.kernel.name, match.pattern.name) for match in seen] == [("fused_matmul_add_relu", "product")]
    assert_same_meaning(before, after, trials=2)
    assert_same_meaning(before, weft.compile(after), name="main", trials=2)
    with pytest.raises(weft.PassError, match="a library function has a name"):
        SplitCallTIRByPattern((ANY,), lambda match: 3)(before)  # type: ignore[arg-type,return-value]


def test_a_whole_kernel_may_be_a_pattern() -> None:
    text = MODEL.replace("z = R.add(y, b)", "z = y").replace(
        "r = R.nn.relu(z)", "r = R.negative(R.matmul(z, R.permute_dims(w)))"
    )
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    before = LegalizeOps()(module)
    after = SplitCallTIRByPattern((ANY,))(before)
    assert called(after) == ["call_tir"] * 4  # two products, each of them its own pattern, and two others
    assert sum(f.attrs.get("pattern") == "product" for f in after.functions.values()) == 2
    assert_same_meaning(before, after, trials=2)


@pytest.mark.parametrize(
    "pattern",
    [
        product(4, 16, 8),  # other sizes
        product(symbol("n"), symbol("n"), 8),  # sizes that are not equal here
    ],
)
def test_what_is_not_the_same_for_all_sizes_stays(pattern: PrimFunc) -> None:
    before = fused()
    assert SplitCallTIRByPattern((pattern,))(before) is before


def test_other_reductions_and_later_nests_stay() -> None:
    a, b = te.placeholder((symbol("n"), 16), name="A"), te.placeholder((16, 8), name="B")
    axis = te.reduce_axis((0, 16), name="r")
    c = te.compute((symbol("n"), 8), lambda i, j: te.max(a[i, axis] * b[axis, j], axis=axis), name="C")
    before = fused()
    assert SplitCallTIRByPattern((te.create_prim_func([a, b, c], "other"),))(before) is before
    x = te.placeholder((symbol("n"), 8), name="X")
    relu = te.create_prim_func([x, te.compute((symbol("n"), 8), lambda i, j: te.maximum(x[i, j], 0.0))], "relu")
    assert SplitCallTIRByPattern((relu,))(before) is before  # only what a kernel starts with
    with pytest.raises(weft.PassError, match="a pattern is a tensor function, got a str"):
        SplitCallTIRByPattern(("matmul",))  # type: ignore[arg-type]
