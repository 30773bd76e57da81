"""How target information and modules flow: phases resumed in other processes, labels, targets that modules carry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.plugins import toy_accelerator

import weft
from weft.errors import TargetError
from weft.ir import Call, Function, IRModule, PrimFunc, walk
from weft.runtime.artifact import ArtifactSet
from weft.target import Target
from weft.transform.infra.phases import phases
from weft.transform.target.assign import Assign, SpecialiseByLabel, VerifyTargets, assignment
from weft.transform.target.place_copies import PlaceCopies

MODEL = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"target": "b"})
        for i in range(4):
            y[i] = x[i] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.nn.relu(x, target="b")
            c = R.exp(a)
            d = R.call_tir(Module.scale, (c,), out_ty=R.Tensor((4,), "float32"))
            e = R.call_tir(Module.scale, (d,), out_ty=R.Tensor((4,), "float32"), target="a")
            f = R.nn.softmax(e, target="b")
            R.output(f)
        return f
"""
TARGET = "a: llvm; b: llvm -mcpu=host"
TARGETS = ("llvm", "c -mcpu=cortex-m4f")
X = np.linspace(-1, 1, 4, dtype="float32")


def parse(text: str = MODEL) -> IRModule:
    found = weft.parse(text)
    assert isinstance(found, IRModule)
    return found


def unlabelled() -> IRModule:
    return parse(MODEL.replace(', target="b"', "").replace(', target="a"', "").replace('"target": "b"', '"keep": 1'))


def operator() -> Function:
    found = weft.parse('@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = R.exp(x)\n    return y\n')
    assert isinstance(found, Function)
    return found


RESUME = """
import sys, weft
text = open(sys.argv[1]).read()
for target in sys.argv[3:]:
    module = weft.parse(open(f"{sys.argv[1]}.{target.split()[0]}").read())
    made = weft.compile(module, target, start=sys.argv[2], trust=sys.argv[2] == "link")
    print(getattr(made, "artifacts", made).content_hash)
"""


@pytest.mark.parametrize("phase", phases()[:-1])
def test_a_module_is_taken_on_in_another_process_after_each_phase(phase: str, tmp_path: Path) -> None:
    """A8: print, parse in a new process, resume: the artifacts have the same hash, for machine code and for C."""
    module = unlabelled()
    wanted = []
    (tmp_path / "m").write_text("")
    for target in TARGETS:
        made = weft.compile(module, target)
        wanted.append(getattr(made, "artifacts", made).content_hash)
        (tmp_path / f"m.{target.split()[0]}").write_text(weft.lower(module, target, stop=phase).script())
    following = phases()[phases().index(phase) + 1]
    command = [sys.executable, "-c", RESUME, str(tmp_path / "m"), following, *TARGETS]
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == wanted


def test_another_module_has_another_hash() -> None:
    """A8: the hash sees what is computed."""
    other = parse(MODEL.replace("float32(2.0)", "float32(3.0)"))
    hashes = {weft.compile(module, TARGET).artifacts.content_hash for module in (parse(), other)}
    assert len(hashes) == 2


def test_every_executor_sees_the_same_lowering() -> None:
    """A9: the traces of all executors are the same up to emission."""
    traces = []
    for executor in ("native", "vm", "graph", "aot"):
        steps: list[weft.transform.Step] = []
        weft.compile(unlabelled(), executor=executor, trace=steps)
        assert [step.item.partition("{")[0] for step in steps[-2:]] == ["generate-code", "link-artifacts"]
        traces.append([step.key for step in steps[:-2]])
    assert traces[0]
    assert all(trace == traces[0] for trace in traces)
    assert {step[0] for step in traces[0]} >= {"import", "legalize", "fuse", "schedule", "lower", "plan"}


def labels(module: IRModule, target: str = TARGET) -> dict[str, str]:
    return {name: label for function, name, label in assignment(module, target) if function == "main"}


def test_a_call_site_wins_over_the_function_and_both_over_automatic() -> None:
    """B13: c is automatic (its function's part), d follows the function called, e its own label."""
    assert labels(parse()) == {"a": "b", "c": "a", "d": "b", "e": "a", "f": "b"}


def test_labels_of_call_sites_are_part_of_the_text_in_every_phase() -> None:
    """B13, E4: the text reads back equal, and kernels keep the label of their call."""
    module = parse()
    assert 'R.nn.relu(x, target="b")' in module.script()
    new = module
    for phase in phases():
        new = weft.lower(module, TARGET, stop=phase)
        assert weft.structural_equal(weft.parse(new.script()), new), phase
    kernels = weft.lower(module, TARGET, stop="plan")
    relu, exp = kernels["relu"], kernels["exp"]
    assert isinstance(relu, PrimFunc)
    assert isinstance(exp, PrimFunc)
    assert relu.attrs["target"] == "b"
    assert "target" not in exp.attrs


def test_a_function_called_under_two_labels_is_cloned() -> None:
    """B13: each part has its own, labelled, and the calls name it."""
    new = SpecialiseByLabel(TARGET)(parse())
    assert list(new) == ["scale", "scale__a", "main"]
    clone = new["scale__a"]
    assert isinstance(clone, PrimFunc)
    assert (clone.attrs["target"], clone.private) == ("a", True)
    called = [
        node.args[0].name  # type: ignore[attr-defined]
        for node in walk(new["main"])
        if isinstance(node, Call) and getattr(node.op, "name", "") == "call_tir"
    ]
    assert called == ["scale", "scale__a"]


def test_functions_without_labels_belong_to_one_part_the_same_way_in_every_process() -> None:
    """B15: deterministic; the first part is the default."""
    module = unlabelled()
    code = (
        "import sys, weft; from weft.transform.target.assign import assignment;"
        f"print(assignment(weft.parse(sys.stdin.read()), {TARGET!r}))"
    )
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": "11"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=module.script(), capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == str(assignment(module, TARGET))
    assert set(labels(module).values()) == {"a"}


def test_the_policy_is_a_pass_that_can_be_replaced() -> None:
    """B15: a policy that sends exponentials elsewhere flips one call; what users labelled stays."""

    def policy(call: Call, label: str, target: Target) -> str:
        return "b" if getattr(call.op, "name", "") == "exp" else label

    flipped = Assign(TARGET, policy=policy)(parse())
    assert labels(flipped) == {**labels(parse()), "c": "b"}
    np.testing.assert_allclose(weft.compile(flipped, TARGET)["main"](X), weft.interpret(parse())["main"](X), rtol=1e-5)


def test_a_policy_that_names_no_part_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        Assign(TARGET, policy=lambda call, label, target: "nowhere")(parse())
    assert caught.value.code == "W707"
    assert caught.value.hint == "labels: a, b"


@pytest.mark.parametrize("label", ["npu", "A"])
def test_a_call_with_an_unknown_label_is_refused_where_it_stands(label: str) -> None:
    """B14, E5: never ignored; the error lists the labels."""
    module = parse(MODEL.replace('R.nn.relu(x, target="b")', f'R.nn.relu(x, target="{label}")'))
    with pytest.raises(TargetError) as caught:
        weft.compile(module, TARGET)
    assert caught.value.code == "W707"
    assert caught.value.hint == "labels: a, b"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (13, 17)


def test_a_group_that_spans_parts_is_refused() -> None:
    """B16, E5: what a user made one kernel cannot belong to two parts."""
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def group(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"primitive": True})
        a = R.exp(x, target="a")
        b = R.tanh(a, target="b")
        return b

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = Module.group(x)
        return y
"""
    with pytest.raises(TargetError, match="belong to several parts: a, b") as caught:
        VerifyTargets(TARGET)(parse(text))
    assert caught.value.code == "W737"


def test_a_part_that_nothing_makes_code_for_is_refused_by_name() -> None:
    """E5: the label, the kind and the function are named."""
    with toy_accelerator.installed(), pytest.raises(TargetError) as caught:
        weft.compile(parse(), "a: llvm; b: toy")
    assert caught.value.code == "W736"
    for part in ("part 'b' (toy)", "'scale'"):
        assert part in caught.value.message


@pytest.mark.parametrize("opt", [0, 2])
def test_parts_of_one_machine_run_in_one_executable(opt: int) -> None:
    """E5: each part has the instructions of its own processor."""
    exe = weft.compile(parse(), TARGET, opt=opt)
    np.testing.assert_allclose(exe["main"](X), weft.interpret(parse())["main"](X), rtol=1e-5)


def test_a_module_that_carries_its_target_needs_no_argument() -> None:
    """E6: the same target as argument is fine, another one is an error that shows both."""
    module = parse().with_attr("target", Target(TARGET))
    again = weft.parse(module.script())
    assert isinstance(again, IRModule)
    assert again.attrs["target"] == Target(TARGET)
    expected = weft.interpret(parse())["main"](X)
    for given in (None, TARGET):
        np.testing.assert_allclose(weft.compile(again, given)["main"](X), expected, rtol=1e-5)
    with pytest.raises(TargetError) as caught:
        weft.compile(again, "llvm")
    assert caught.value.code == "W734"
    assert repr(str(Target(TARGET))) in caught.value.message
    assert "'llvm'" in caught.value.message


@pytest.mark.parametrize("target", ["llvm", TARGET, "c -mcpu=cortex-m0"])
def test_one_target_argument_serves_kernels_operators_and_models(target: str) -> None:
    """E10: a kernel, one operator as a function, and a whole module."""
    kernel = weft.parse(
        '@T.prim_func\ndef twice(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n'
        "    for i in range(4):\n        y[i] = x[i] * T.float32(2.0)\n"
    )
    whole = IRModule({"main": operator()})
    for item, name in ((kernel, "twice"), (operator(), "main"), (whole, "main")):
        made = weft.compile(item, target)
        if isinstance(made, ArtifactSet):
            assert "model_main.c" in made
        elif name == "twice":
            made[name](X, y := np.zeros_like(X))
            np.testing.assert_array_equal(y, 2 * X)
        else:
            np.testing.assert_allclose(made[name](X), np.exp(X), rtol=1e-6)
    assert isinstance(weft.compile(whole, target), ArtifactSet) == target.startswith("c ")


def test_one_call_makes_c_for_a_board(tmp_path: Path) -> None:
    """E1: one call, one target; the artifacts are exported as a tree of sources."""
    made = weft.compile(operator(), "c -mcpu=cortex-m7")
    made.export(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"include", "src", "Makefile", "metadata.json"}
    assert "model_run" in (tmp_path / "out" / "include" / "model.h").read_text()


def test_the_smallest_build_needs_no_pass_of_the_users(tmp_path: Path) -> None:
    """D18: an empty pipeline, and every level, compute the same."""
    expected = weft.interpret(unlabelled())["main"](X)
    empty = weft.compile(unlabelled(), pipeline=weft.transform.Pipeline([]))
    np.testing.assert_allclose(empty["main"](X), expected, rtol=1e-5)
    for opt in range(4):
        np.testing.assert_allclose(weft.compile(unlabelled(), opt=opt)["main"](X), expected, rtol=1e-5)


def test_hooks_run_at_every_level() -> None:
    """D18: what a target asks for is no optimisation."""
    seen: list[int] = []

    @weft.transform.module_pass(name="tests-note")
    def note(module: IRModule) -> IRModule:
        seen.append(1)
        return module

    kind = Target("llvm").kind
    kind.hook("lower")(make := lambda target: note)
    try:
        for opt in (0, 2):
            weft.compile(unlabelled(), opt=opt)
    finally:
        kind.remove_hook(make)
    assert len(seen) == 2


def test_stages_with_text_between_them_give_what_one_call_gives(tmp_path: Path) -> None:
    """E2, E3: three stages, each from the text of the one before, without a pass of the user's: the same bytes."""
    module = unlabelled()
    for start, stop in ((None, "assign"), ("legalize", "fuse"), ("schedule", "lower")):
        module = parse(weft.lower(module, start=start, stop=stop).script())
    staged, direct = weft.compile(module, start="plan"), weft.compile(unlabelled())
    assert staged.artifacts == direct.artifacts


def test_what_a_configuration_asks_for_is_honoured_or_refused() -> None:
    """E5, E9: executors that contradict, a runtime that this process is not, memory pools for machine code."""
    module = unlabelled()
    config = {"kind": "config", "parts": {"host": "llvm"}, "executor": "vm"}
    assert weft.compile(module, config).executor == "vm"
    with pytest.raises(TargetError) as caught:
        weft.compile(module, config, executor="native")
    assert caught.value.code == "W735"
    for field, value in (("runtime", "bare"), ("memory", {"sram": {"bytes": 1024, "rw": ["host"]}})):
        with pytest.raises(TargetError) as caught:
            weft.compile(module, {"kind": "config", "parts": {"host": "llvm"}, field: value})
        assert caught.value.code == "W738"
    with pytest.raises(TargetError) as caught:
        weft.compile(module, {"kind": "llvm", "executor": "vm"})
    assert caught.value.code == "W704"
    with pytest.raises(TargetError) as caught:
        weft.compile(operator(), "c -mcpu=cortex-m0", executor="vm")
    assert caught.value.code == "W739"


def test_the_common_case_needs_no_nesting() -> None:
    """E20: a configuration of one part."""
    exe = weft.compile(unlabelled(), "config -executor=vm { host: llvm }")
    assert exe.executor == "vm"


NESTED = """
@I.ir_module
class Module:
    @R.function(private=True)
    def block(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"target": "acc"})
        y = R.nn.relu(R.exp(x))
        return y

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        a = R.multiply(x, x)
        b = Module.block(a)
        c = R.add(b, a)
        return c
"""


@pytest.mark.parametrize("outer", ["native", "vm"])
@pytest.mark.parametrize("inner", ["native", "vm"])
def test_a_part_may_be_a_configuration_of_its_own(outer: str, inner: str, tmp_path: Path) -> None:
    """E19, E8: it is compiled by itself, with its own executor and parts, and the whole is saved as one file."""
    deepest = {"kind": "config", "executor": inner, "parts": {"host": "llvm -mcpu=host"}}
    target = Target({"kind": "config", "executor": outer, "parts": {"host": "llvm", "acc": deepest}})
    assert Target(target.to_str()) == Target(target.to_json()) == target
    exe = weft.compile(parse(NESTED), target)
    assert exe.executor == outer
    part = exe.artifacts["acc.weft"]
    assert part.kind == "weft-executable"
    assert Target(part.target) == Target(deepest)
    assert [symbol.name for symbol in part.provides] == ["block"]
    exe.save(tmp_path / "model.weft")
    for loaded in (exe, weft.load(tmp_path / "model.weft")):
        for n in (1, 3):
            x = np.linspace(-1, 1, 4 * n, dtype="float32").reshape(n, 4)
            np.testing.assert_allclose(loaded["main"](x), weft.interpret(parse(NESTED))["main"](x), rtol=1e-5)


def test_a_nested_configuration_that_cannot_run_here_is_refused() -> None:
    """E19: the label and the machine are named."""
    board = {"kind": "config", "executor": "aot", "parts": {"core": "c -mcpu=cortex-m4"}}
    with pytest.raises(TargetError, match=r"part 'acc' is a configuration of its own, and part 'core'") as caught:
        weft.compile(parse(NESTED), {"kind": "config", "parts": {"host": "llvm", "acc": board}})
    assert caught.value.code == "W736"


@pytest.mark.parametrize(
    ("field", "value"), [("runtime", "bare"), ("executor", "aot"), ("memory", {"a": {"bytes": 1}})]
)
def test_choices_of_runtime_live_in_configurations(field: str, value: object) -> None:
    """E12, E9: a configuration takes them, a leaf refuses them and says where they belong."""
    target = Target({"kind": "config", "parts": {"host": "c"}, field: value})
    assert field in target.options
    for kind in ("c", "llvm"):
        with pytest.raises(TargetError) as caught:
            Target({"kind": kind, field: value})
        assert caught.value.code == "W704"
        assert caught.value.hint is not None
        assert "config" in caught.value.hint


def test_a_lowered_call_turns_back_into_a_library_call() -> None:
    """D11: after fusion and through text, a kernel is swapped for a library function; the rest goes on as usual."""
    module = parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor((3, 2), "float32"):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.softmax(y)
            R.output(z)
        return z
""")
    tuned = weft.lower(module, stop="fuse").script()
    assert tuned.count("R.call_tir(cls.matmul, ") == 1
    swapped = parse(tuned.replace("R.call_tir(cls.matmul, ", 'R.call_dps_packed("tests.library.matmul", '))
    calls = []

    @weft.register_func("tests.library.matmul")
    def library(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        calls.append(a.shape)
        np.matmul(a, b, out=out)

    x, w = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4), np.linspace(0, 1, 8, dtype="float32").reshape(4, 2)
    got = weft.compile(swapped, start="schedule")["main"](x, w)
    np.testing.assert_allclose(got, weft.interpret(module)["main"](x, w), rtol=1e-5)
    assert calls == [(3, 4)]
    assert library


def test_copies_stand_where_memories_differ() -> None:
    """E5: a part with a memory of its own takes and gives copies; what it made is used again without another one."""
    text = MODEL.replace("R.exp(a)", 'R.exp(a, target="b")').replace('target="a"', 'target="b"')
    with toy_accelerator.installed() as toy:
        toy.memory = "sram"
        new = weft.lower(parse(text), "a: llvm; b: toy", stop="assign")
        shared = weft.lower(parse(text), "a: llvm; b: llvm", stop="assign")
    calls = [line.strip() for line in new["main"].script().splitlines() if "= R." in line]
    copies = [line for line in calls if "copy_" in line]
    assert "copy_" not in shared.script()
    assert calls[0].startswith("x_sram: ")
    assert "cls.copy_to_sram, (x,)" in calls[0]
    assert len([line for line in copies if "copy_to_sram" in line]) == 1  # the argument; the rest is there already
    assert len([line for line in copies if "copy_from_sram" in line]) == 5  # unused ones are left out later
    assert weft.structural_equal(weft.parse(new.script()), new)
    kernel = new["copy_to_sram"]
    assert isinstance(kernel, PrimFunc)
    assert kernel.attrs["target"] == "a"
    got = weft.interpret(new)["main"](X)
    np.testing.assert_allclose(got, weft.interpret(parse())["main"](X), rtol=1e-5)


def test_what_a_function_of_another_memory_calls_at_home_is_copied_too() -> None:
    """E5: the label of the function says where its values are; those of a call of the first part are there alone."""
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def inner(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"target": "b"})
        y = R.exp(x)
        z = R.sqrt(y, target="a")
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = Module.inner(x)
        return y
"""
    with toy_accelerator.installed() as toy:
        toy.memory = "sram"
        new = PlaceCopies("a: llvm; b: toy")(parse(text))
    lines = [line.split(":")[0].strip() for line in new["inner"].script().splitlines() if ": R.Tensor" in line]
    assert lines[-4:] == ["y", "y_", "z_", "z"], "y is copied to the memory of a, z comes back"
    np.testing.assert_allclose(weft.interpret(new)["main"](np.abs(X)), np.sqrt(np.exp(np.abs(X))), rtol=1e-6)


def test_copies_of_a_dataflow_block_stay_in_it() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.exp(x, target="b")
            b = R.tanh(x, target="b")
            y = R.add(a, b, target="b")
            R.output(y)
        z = R.sqrt(x, target="b")
        w = R.add(y, z)
        return w
"""
    with toy_accelerator.installed() as toy:
        toy.memory = "sram"
        new = PlaceCopies("a: llvm; b: toy")(parse(text))
    assert new["main"].script().count("cls.copy_to_sram, (x,)") == 2, "one in the block, one after it"
    assert weft.verify(new) == []
    x = np.abs(X)
    np.testing.assert_allclose(weft.interpret(new)["main"](x), np.exp(x) + np.tanh(x) + np.sqrt(x), rtol=1e-6)


def test_copies_of_a_branch_stay_in_it() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        if c:
            y = R.exp(x, target="b")
        else:
            y = R.tanh(x, target="b")
        z = R.sqrt(x, target="b")
        w = R.add(y, z)
        return w
"""
    with toy_accelerator.installed() as toy:
        toy.memory = "sram"
        new = weft.lower(parse(text), "a: llvm; b: toy", stop="assign")
    assert new["main"].script().count("cls.copy_to_sram, (x,)") == 3
    for flag in (True, False):
        c = np.array(flag)
        wanted = weft.interpret(parse(text))["main"](c, np.abs(X))
        np.testing.assert_allclose(weft.interpret(new)["main"](c, np.abs(X)), wanted, rtol=1e-6)
