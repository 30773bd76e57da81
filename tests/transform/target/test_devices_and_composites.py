"""RealizeVDevice, UpdateVDevice, MergeCompositeFunctions and AllocateWorkspace."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transform.helpers import graph_function, parsed

import weft
from weft.ir import Call, GlobalVar, IRModule, TensorType, VDevice
from weft.ir.deduction.infer import type_text
from weft.ir.structure.visit import walk
from weft.testing import assert_round_trip, assert_same_meaning
from weft.transform import AllocateWorkspace, LambdaLift, MergeCompositeFunctions, RealizeVDevice, UpdateVDevice

DEVICES = """
@I.ir_module
class Module:
    I.module_global_infos({{"vdevice": [I.vdevice("llvm", 0), I.vdevice("llvm", 1)]}})

    @R.function
    def main(x: R.Tensor((4,), "float32"{0}), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.hint_on_device(a, "vdevice:1")
            c = R.negative(b)
            d = R.exp(y)
            R.output(c, d)
        return (c, d)
"""


def device(ty: Any) -> Any:
    assert isinstance(ty, TensorType)
    return ty.vdevice


def test_a_hint_reaches_what_it_is_computed_from_and_what_is_computed_with_it() -> None:
    after = RealizeVDevice()(parsed(DEVICES.format("")))
    assert weft.verify(after) == []
    assert "hint_on_device" not in after.script()
    assert "to_vdevice" not in after.script()
    assert device(graph_function(after).params[0].ty) == "vdevice:1"
    assert device(graph_function(after).params[1].ty) is None  # another part of the graph
    assert_same_meaning(parsed(DEVICES.format("")), after, trials=1)


def test_a_value_on_another_device_is_copied() -> None:
    after = RealizeVDevice()(parsed(DEVICES.format(', "vdevice:0"')))
    assert weft.verify(after) == []
    assert after.script().count("R.to_vdevice") == 1
    types = {b.var.name: device(b.var.ty) for block in graph_function(after).body.blocks for b in block.bindings}
    assert (types["a"], types["b"], types["c"], types["d"]) == ("vdevice:0", "vdevice:1", "vdevice:1", None)
    plain = parsed(DEVICES.format("").replace('R.hint_on_device(a, "vdevice:1")', "R.negative(a)"))
    assert RealizeVDevice()(plain) is plain


def test_a_device_is_exchanged_everywhere() -> None:
    before = RealizeVDevice()(parsed(DEVICES.format(', "vdevice:0"')))
    new = VDevice("c", 2, "global")
    after = UpdateVDevice(new, 1)(before)
    assert weft.verify(after) == []
    assert weft.structural_equal(after.global_infos["vdevice"][1], new)
    assert UpdateVDevice(before.global_infos["vdevice"][0], 0)(before) is before
    with pytest.raises(weft.PassError, match="the module has 2 virtual devices, none with index 2"):
        UpdateVDevice(new, 2)(before)
    wrong: Any = "llvm"
    with pytest.raises(weft.PassError, match="new_vdevice is a virtual device, got"):
        UpdateVDevice(wrong, 0)


COMPOSITES = """
@I.ir_module
class Module:
    @R.function(private=True)
    def add(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        R.func_attr({{"Composite": "npu.add"}})
        out = R.add(x, y)
        return out

    @R.function(private=True)
    def exp(x: R.Tensor(("n",), "float32")):
        R.func_attr({{"Composite": "npu.exp"}})
        out = R.exp(x)
        return out

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        with R.dataflow():
            {0}
            R.output({1})
        return {1}
"""


def composites(lines: str, result: str = "out") -> IRModule:
    return parsed(COMPOSITES.format(lines.replace("\n", "\n            "), result))


def calls(program: IRModule) -> list[str]:
    return [n.op.name for n in walk(graph_function(program)) if isinstance(n, Call) and isinstance(n.op, GlobalVar)]


@pytest.mark.parametrize(
    ("lines", "result", "merged"),
    [
        ("a = Module.add(x, y)\nout = Module.exp(a)", "out", 1),
        ("a = Module.add(x, y)\nb = Module.exp(a)\nout = Module.add(b, a)", "out", 1),
        # through what is no composite: out of the group and into it again
        ("a = Module.exp(x)\nb = R.negative(a)\nout = Module.add(a, b)", "out", 2),
        ("a = Module.exp(x)\nb = R.negative(a)\nc = Module.exp(a)\nout = Module.add(c, b)", "out", 2),
        ("a = Module.exp(x)\nb = Module.exp(y)\nout = R.add(a, b)", "out", 2),
        ("a = Module.exp(x)\nb = Module.exp(a)\nc = R.negative(a)\nout = R.add(b, c)", "out", 1),  # two results
        ("a = Module.exp(x)\nb = Module.exp(a)", "a, b", 1),
    ],
)
def test_composites_of_one_code_generator_become_one_function(lines: str, result: str, merged: int) -> None:
    before = composites(lines, result)
    after = MergeCompositeFunctions()(before)
    assert weft.verify(after) == []
    assert_round_trip(after)
    assert len(calls(after)) == merged
    for name in calls(after):
        assert graph_function(after, name).attrs["Codegen"] == "npu"
    assert set(after.functions) == {"main", *calls(after)}  # the composites are inside
    assert_same_meaning(before, after, trials=2)
    assert_same_meaning(before, LambdaLift()(after), name="main", trials=1)
    assert MergeCompositeFunctions()(after) is after


WORKSPACE = """
@I.ir_module
class Module:
    @R.function
    def npu(x: R.Tensor((4,), "float32")):
        R.func_attr({"Codegen": "npu", "WorkspaceSize": 24})
        return R.exp(x)

    @R.function
    def other(x: R.Tensor((4,), "float32")):
        R.func_attr({"Codegen": "npu", "WorkspaceSize": 8})
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        a = Module.npu(x)
        b = Module.other(a)
        return b
"""


def test_callers_allocate_as_much_as_the_greatest_call_needs() -> None:
    before = parsed(WORKSPACE)
    after = AllocateWorkspace()(before)
    assert weft.verify(after) == []
    assert_round_trip(after)
    assert after.script().count("R.zeros(R.shape([24])") + after.script().count("R.zeros((24,)") == 1
    assert [type_text(graph_function(after, name).params[-1].ty) for name in ("npu", "other")] == [
        'R.Tensor((24,), "uint8")',
        'R.Tensor((8,), "uint8")',
    ]
    assert_same_meaning(before, after, name="main", trials=1)
    assert AllocateWorkspace()(after) is after
    with pytest.raises(weft.PassError, match="WorkspaceSize of 'npu' is a number of bytes, got -1"):
        AllocateWorkspace()(parsed(WORKSPACE.replace("24", "-1")))
