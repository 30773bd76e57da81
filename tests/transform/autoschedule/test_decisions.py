"""Decisions of the scheduler: recorded in the text, pinned, replaced, and obeyed or refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import PassError
from weft.ir import FrozenMap, IRModule, PrimFunc, replace, rewrite
from weft.ir.structure.visit import statements
from weft.ir.tensor import For, Stmt
from weft.target.machine_model import MachineModel
from weft.transform import Knobs, ParallelizeOuterLoops
from weft.transform.autoschedule.registry import (
    Rule,
    Site,
    is_builtin,
    register_rule,
    remove_rule,
    replace_decide,
    rules,
)
from weft.transform.infra.decisions import DECISIONS, Decision, decisions_of, without_decisions
from weft.transform.schedule import Schedule
from weft.transform.schedule.trace_text import trace_of_steps

TARGET = "llvm -mcpu=x86-64-v3"
KERNELS = {
    "gemm": ("x: R.Tensor((90, 300), 'float32'), w: R.Tensor((300, 700), 'float32')", "R.matmul(x, w)"),
    "elementwise": ("x: R.Tensor((9, 300), 'float32')", "R.exp(x)"),
    "reduction": ("x: R.Tensor((9, 300), 'float32')", "R.sum(x, axis=[1])"),
    "transpose": ("x: R.Tensor((64, 96), 'float32')", "R.permute_dims(x, axes=[1, 0])"),
    "argreduce": ("x: R.Tensor((9, 300), 'float32')", "R.argmax(x, axis=1)"),
    "scan": ("x: R.Tensor((9, 300), 'float32')", "R.cumsum(x, axis=1)"),
    "split_reduction": ("x: R.Tensor((300000,), 'float32')", "R.sum(x)"),
    "attention": (
        "x: R.Tensor((1, 300, 2, 8), 'float32'), k: R.Tensor((1, 700, 2, 8), 'float32')",
        "R.nn.attention(x, k, k)",
    ),
}


def fused(kind: str) -> IRModule:
    params, value = KERNELS[kind]
    text = f"@I.ir_module\nclass M:\n    @R.function\n    def main({params}):\n        y = {value}\n        return y\n"
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return weft.lower(module, TARGET, stop="fuse")


def kernel(module: IRModule) -> tuple[str, PrimFunc]:
    return next((name, f) for name, f in module.items() if isinstance(f, PrimFunc))


def scheduled(module: IRModule, **options: Any) -> IRModule:
    return weft.lower(module, TARGET, start="schedule", stop="schedule", **options)


def decision(module: IRModule, kind: str) -> Decision:
    return next(item for item in decisions_of(kernel(module)[1]) if item.kind == kind)


def pinned(module: IRModule, *records: dict[str, Any]) -> IRModule:
    name, function = kernel(module)
    marked = replace(function, attrs=function.attrs.set(DECISIONS, tuple(FrozenMap(record) for record in records)))
    found = weft.parse(module.with_functions({**module.functions, name: marked}).script())
    assert isinstance(found, IRModule)
    return found


def loops(module: IRModule) -> PrimFunc:
    return without_decisions(kernel(module)[1])


@pytest.mark.parametrize("kind", KERNELS)
def test_what_was_decided_is_in_the_text_and_gives_the_same_loops_again(kind: str) -> None:
    module = fused(kind)
    new = scheduled(module)
    made = decision(new, kind)
    assert made.reason
    assert made.is_intact
    read = weft.parse(new.script())
    weft.assert_structural_equal(read, new)
    assert isinstance(read, IRModule)
    assert all(item.is_intact for item in decisions_of(kernel(read)[1]))
    again = scheduled(pinned(module, dict(made.to_attribute())))
    weft.assert_structural_equal(loops(again), loops(new))
    assert decision(again, kind) == made


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("gemm", {"mc": 30, "kc": 100}),
        ("gemm", {"mr": 4, "nr_vectors": 1}),
        ("gemm", {"form": "direct"}),
        ("gemm", {"mc": 30, "nc": 160}),
        ("gemm", {"chunks": 2}),
        ("elementwise", {"lanes": 4}),
        ("elementwise", {"vectors": 1}),
        ("reduction", {"vectors": 2}),
        ("transpose", {"lanes": 4}),
        ("argreduce", {"group": 2}),
        ("split_reduction", {"chunks": 4}),
        ("attention", {"row_block": 20}),
        ("attention", {"key_block": 64}),
    ],
)
def test_a_decision_that_was_edited_changes_the_loops_and_not_the_results(kind: str, values: dict[str, Any]) -> None:
    module = fused(kind)
    plain = scheduled(module)
    made = decision(plain, kind)
    new = scheduled(pinned(module, {**made.to_attribute(), **values}))
    assert not weft.structural_equal(loops(new), loops(plain))
    found = decision(new, kind)
    assert {name: found.values[name] for name in values} == values
    assert found.reason == "pinned: " + ", ".join(values)
    only = scheduled(pinned(module, {"about": made.about, "kind": kind, **values}))
    weft.assert_structural_equal(loops(only), loops(new))
    random = np.random.default_rng(0)
    params = module["main"].params  # type: ignore[attr-defined]
    arrays = [random.standard_normal(tuple(map(int, param.ty.shape)), "float32") for param in params]
    got, expected = (weft.compile(item, start="lower")["main"](*arrays) for item in (new, plain))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "values", "why"),
    [
        ("gemm", {"mr": 9, "nr_vectors": 4}, "needs 38 registers, the machine has 16"),
        ("gemm", {"mc": 31}, "no multiple of the 6 rows of a tile"),
        ("gemm", {"nc": 160}, "changes nothing"),
        ("gemm", {"chunks": 99}, "there are"),
        ("gemm", {"kc": 9999}, "it is 1 to 300"),
        ("gemm", {"form": "folded"}, "has no form 'folded'"),
        ("gemm", {"form": "packed or direct"}, "all sizes are known"),
        ("gemm", {"mcc": 4}, "has no 'mcc'"),
        ("gemm", {"lanes": 4}, "lanes=4 follows from the other"),
        ("gemm", {"mr": "many"}, "mr='many' cannot be"),
        ("elementwise", {"lanes": 3}, "a power of two"),
        ("transpose", {"lanes": 128}, "it is 2 to"),
        ("reduction", {"vectors": 3}, "a power of two"),
        ("reduction", {"form": "columns"}, "follows from the other"),
        ("split_reduction", {"chunks": 1}, "it is 2 to 1024"),
        ("attention", {"row_block": 0}, "it is 1 to 65536"),
    ],
)
def test_a_decision_that_cannot_be_followed_is_refused_with_the_reason(
    kind: str, values: dict[str, Any], why: str
) -> None:
    module = fused(kind)
    about = decision(scheduled(module), kind).about
    with pytest.raises(PassError) as caught:
        scheduled(pinned(module, {"about": about, "kind": kind, **values}))
    assert caught.value.code == "W528"
    assert why in str(caught.value)


def test_a_pin_about_nothing_and_one_that_is_no_record_are_refused() -> None:
    for record, why in (
        ({"about": "matmul", "kind": "gemm", "mc": 6}, "no loops called 'matmul'"),
        ({"about": "exp", "mc": 6}, "a decision has a text as 'kind'"),
    ):
        with pytest.raises(PassError) as caught:
            scheduled(pinned(fused("elementwise"), record))
        assert caught.value.code == "W528"
        assert why in str(caught.value)


def test_a_record_that_was_edited_after_its_loops_were_made_is_refused() -> None:
    new = scheduled(fused("gemm"))
    assert scheduled(new) is not None
    edited = weft.parse(new.script().replace('"mc": 90', '"mc": 30'))
    assert isinstance(edited, IRModule)
    with pytest.raises(PassError) as caught:
        scheduled(edited)
    assert caught.value.code == "W529"


def test_another_function_decides_within_a_block() -> None:
    def narrow(site: Site, machine: MachineModel, knobs: Knobs, own: Decision) -> Decision:
        assert (site.name, machine.vector_bits, knobs.mc) == ("matmul", 256, 168)
        return own.with_values(mr=3)

    plain = scheduled(fused("gemm"))
    with replace_decide("gemm", narrow):
        assert not is_builtin()
        new = scheduled(fused("gemm"))
    assert (decision(plain, "gemm").values["mr"], decision(new, "gemm").values["mr"]) == (6, 3)
    assert is_builtin()
    with pytest.raises(PassError, match="no rule 'gem'"), replace_decide("gem", narrow):
        pass


class Backwards(Rule):
    """Loops of one variable run from the end."""

    name = "backwards"
    order = 50
    pins = frozenset(("unroll",))

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        return Decision(site.name, self.name, {"unroll": False}, "a test")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        kind = "unrolled" if decision.values["unroll"] else "serial"
        return replace(site.stmt, kind=kind, annotations=FrozenMap({"mine": 1}))


@pytest.fixture
def backwards() -> Iterator[Rule]:
    yield register_rule(Backwards())
    remove_rule("backwards")


@pytest.mark.parametrize(("order", "kind"), [(50, "gemm"), (250, "elementwise")])
def test_a_rule_from_outside_is_asked_in_its_place(backwards: Rule, order: int, kind: str) -> None:
    backwards.order = order
    assert [rule.name for rule in rules()][:2] == ["backwards", "attention"]
    new = scheduled(fused(kind))
    marked = [part for part in statements(kernel(new)[1].body) if isinstance(part, For) and "mine" in part.annotations]
    assert len(marked) == 1
    assert [item.kind for item in decisions_of(kernel(new)[1])] == ["backwards", "parallel"]
    about = decision(new, "backwards").about
    unrolled = scheduled(pinned(fused(kind), {"about": about, "kind": "backwards", "unroll": True}))
    found = [part for part in statements(kernel(unrolled)[1].body) if isinstance(part, For) and part.kind == "unrolled"]
    assert "mine" in found[0].annotations
    with pytest.raises(PassError, match="taken"):
        register_rule(Backwards())


def test_without_the_rule_schedules_are_as_before() -> None:
    assert is_builtin()
    assert "backwards" not in [rule.name for rule in rules()]


def elementwise_steps(module: IRModule) -> tuple[str, ...]:
    return decision(scheduled(module), "elementwise").values["schedule"]


@pytest.mark.parametrize("columns", ["300", "7", "16", "'n'"])
@pytest.mark.parametrize("value", ["R.exp(x)", "R.add(x, x)"])
def test_the_steps_of_an_elementwise_kernel_repeat_it_in_a_schedule_of_ones_own(columns: str, value: str) -> None:
    text = f"@R.function\ndef main(x: R.Tensor((9, {columns}), 'float32')):\n    y = {value}\n    return y\n"
    module = weft.lower(weft.parse(text), TARGET, stop="fuse")
    name, function = kernel(module)
    sch = Schedule(function)
    trace_of_steps(elementwise_steps(module)).apply_to(sch)
    own = module.with_functions({**module.functions, name: sch.func})
    x = np.linspace(-2, 2, 9 * 21, dtype="float32").reshape(9, 21) if columns == "'n'" else np.ones((9, int(columns)))
    results = [weft.compile(each, TARGET, start="schedule")["main"](x.astype("float32")) for each in (module, own)]
    np.testing.assert_array_equal(*results)
    assert str(trace_of_steps(sch.trace.steps())) == str(sch.trace)


def test_steps_can_be_edited_and_are_obeyed() -> None:
    module = fused("elementwise")
    steps = ("l0 = sch.get_loop(name='i0')", "l1 = sch.get_loop(name='i1')", "l2 = sch.fuse(l0, l1)")
    steps += ("l3, l4 = sch.split(loop=l2, factors=[None, 4])", "sch.vectorize(loop=l4)")
    edited = scheduled(pinned(module, {"about": "out", "kind": "elementwise", "schedule": steps}))
    assert decision(edited, "elementwise").values["schedule"] == steps
    (vectors,) = (
        part for part in statements(loops(edited).body) if isinstance(part, For) and part.kind == "vectorized"
    )
    assert vectors.extent == 4
    x = np.linspace(-3, 3, 9 * 300, dtype="float32").reshape(9, 300)
    compiled = weft.compile(edited, TARGET, start="lower")
    np.testing.assert_allclose(compiled["main"](x), np.exp(x), rtol=1e-5)
    assert "        sch.vectorize(loop=l4)\n" in compiled.explain() + "\n"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"schedule": ["l0 = sch.get_loop(name='k')"]}, "W602"),
        ({"schedule": ["l0 = sch.get_loop(name='i0')", "sch.split(loop=l0, factors=[2, 2])"]}, "W604"),
        ({"schedule": ["import os"]}, "W619"),
        ({"schedule": ["sch.vectorize(loop=l9)"]}, "W619"),
        ({"schedule": "sch.vectorize(loop=l9)"}, "a list of steps"),
        ({"schedule": [], "lanes": 4}, "what lanes and vectors say"),
    ],
)
def test_steps_that_do_not_apply_are_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(PassError, match=why) as caught:
        scheduled(pinned(fused("elementwise"), {"about": "out", "kind": "elementwise", **values}))
    assert caught.value.code == "W528"


PARALLEL_ABOUT = {"elementwise": "exp", "gemm": "matmul", "transpose": "permute_dims"}
LARGE = {
    "elementwise": ("x: R.Tensor((900, 300), 'float32')", "R.exp(x)"),
    "gemm": KERNELS["gemm"],
    "transpose": ("x: R.Tensor((640, 960), 'float32')", "R.permute_dims(x, axes=[1, 0])"),
}


def large(kind: str) -> IRModule:
    params, value = LARGE[kind]
    text = f"@R.function\ndef main({params}):\n    y = {value}\n    return y\n"
    return weft.lower(weft.parse(text), TARGET, stop="fuse")


def marks(function: PrimFunc) -> list[str]:
    return [
        part.loop_var.name for part in statements(function.body) if isinstance(part, For) and part.kind == "parallel"
    ]


@pytest.mark.parametrize("kind", LARGE)
def test_the_marks_of_threads_are_steps_that_a_schedule_proves_again(kind: str) -> None:
    made = scheduled(large(kind))
    _, function = kernel(made)
    record = decision(made, "parallel")
    body = rewrite(function.body, lambda part: replace(part, kind="serial") if is_parallel(part) else None)
    sch = Schedule(replace(function, body=body))
    trace_of_steps(record.values["schedule"]).apply_to(sch)
    assert marks(sch.func) == marks(function)
    assert sorted(record.values["loops"]) == sorted(marks(function))


def is_parallel(part: object) -> bool:
    return isinstance(part, For) and part.kind == "parallel"


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("steps", [(), ("l0 = sch.get_loop(name='{loop}'{number})", "sch.parallel(loop=l0)")])
def test_marks_of_threads_can_be_edited_and_are_obeyed(kind: str, steps: tuple[str, ...]) -> None:
    loop = decision(scheduled(large(kind)), "parallel").values["loops"][-1]
    several = marks(kernel(scheduled(large(kind)))[1]).count(loop) > 1
    steps = tuple(step.format(loop=loop, number=", number=1" if several else "") for step in steps)
    pin = {"about": PARALLEL_ABOUT[kind], "kind": "parallel", "schedule": steps}
    edited = scheduled(pinned(large(kind), pin))
    assert marks(kernel(edited)[1]) == [loop] * (len(steps) // 2)
    assert decision(edited, "parallel").values["schedule"] == steps
    assert scheduled(edited) is not None  # what was applied is not asked for again


@pytest.mark.parametrize(
    ("values", "code", "why"),
    [
        ({"schedule": ["l0 = sch.get_loop(name='k')"]}, "W528", "W602"),
        ({"schedule": ["l0 = sch.get_loop(name='vk')", "sch.parallel(loop=l0)"]}, "W528", "W602|W608"),
        ({"schedule": "sch.parallel(loop=l9)"}, "W528", "a list of steps"),
        ({"loops": ["i0"]}, "W528", "follow from schedule"),
        ({"schedule": [], "threads": 4}, "W528", "has no 'threads'"),
        ({"about": "other", "schedule": []}, "W528", "no loops called 'other'"),
    ],
)
def test_marks_of_threads_that_cannot_be_are_refused(values: dict[str, Any], code: str, why: str) -> None:
    with pytest.raises(PassError, match=why) as caught:
        scheduled(pinned(large("elementwise"), {"about": "exp", "kind": "parallel", **values}))
    assert caught.value.code == code


def test_marks_of_threads_that_are_edited_too_late_are_refused() -> None:
    made = scheduled(large("elementwise"))
    name, function = kernel(made)
    records = tuple(
        FrozenMap({**record, "schedule": ()}) if record["kind"] == "parallel" else record
        for record in function.attrs[DECISIONS]
    )
    edited = made.with_functions({**made.functions, name: function.with_attr(DECISIONS, records)})
    with pytest.raises(PassError, match="edited after its loops were made") as caught:
        ParallelizeOuterLoops()(edited)
    assert caught.value.code == "W529"


def test_iterations_that_meet_are_not_shared_whoever_asks_for_it() -> None:
    module = weft.parse("""
@I.ir_module
class M:
    @T.prim_func
    def total(x: T.Buffer((9000,), "float32"), y: T.Buffer((1,), "float32")):
        T.func_attr({"decisions": [{"about": "total", "kind": "parallel",
                                    "schedule": ["l0 = sch.get_loop(name='i')", "sch.parallel(loop=l0)"]}]})
        for i in range(9000):
            y[0] = y[0] + x[i]
""")
    with pytest.raises(PassError, match="W608") as caught:
        ParallelizeOuterLoops()(module)
    assert caught.value.code == "W528"


@pytest.mark.parametrize(
    "change", [{"about": "b"}, {"kind": "rows"}, {"values": {"mc": 9}}, {"values": {"nc": 8}}, {"reason": "B is small"}]
)
def test_a_record_is_intact_until_anything_of_it_is_changed(change: dict[str, Any]) -> None:
    """H11: what was applied is told from what was edited afterwards."""
    item = Decision("a", "gemm", {"mc": 8}, "B is large").done()
    assert item.is_intact
    assert Decision.of_attribute(item.to_attribute()).is_intact
    assert not dataclasses.replace(item, **change).is_intact
