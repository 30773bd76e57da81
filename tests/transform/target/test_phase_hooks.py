"""One sealed lowering; customisation only by passes that target kinds supply to named phases."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.plugins import toy_accelerator

import weft
from weft.codegen.compile import compile
from weft.errors import PassError, TargetError, VerifyError
from weft.ir import Function, GlobalVar, IRModule, Node, PrimFunc, rewrite, structural_equal
from weft.target import Target, TargetKind
from weft.target.builtin import EXECUTORS, LLVM, RUNTIMES
from weft.target.kinds import KINDS
from weft.transform import PassContext, Pipeline, default_pipeline, function_pass, module_pass, parse_pipeline, phases
from weft.transform.target.phase_hooks import with_hooks

MODEL = """
@I.ir_module
class Module:
    @R.function(private=True)
    def block(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"target": "acc"})
        y = R.exp(x)
        z = R.add(y, x)
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.multiply(x, x)
        b = Module.block(a)
        c = R.add(b, a)
        return c
"""
TWO_PARTS = "host: llvm; acc: toy"


@pytest.fixture
def toy() -> Iterator[TargetKind]:
    with toy_accelerator.installed() as kind:
        yield kind


def model() -> IRModule:
    found = weft.parse(MODEL)
    assert isinstance(found, IRModule)
    return found


@function_pass(name="tests-seal")
def seal(function: Function) -> Function:
    return function.with_attr("sealed", True)


@module_pass(name="tests-append")
def append(module: IRModule, *, item: str = "a") -> IRModule:
    return module.with_attr("log", (*module.attrs.get("log", ()), item))


def appending(item: str) -> Pipeline:
    return parse_pipeline(f"tests-append{{item={item}}}")


def log(target: str) -> tuple[str, ...]:
    return default_pipeline(Target(target))(model()).attrs.get("log", ())


def test_lowering_takes_no_callback_and_other_kinds_do_not_change_it(toy: TargetKind) -> None:
    """A1: the pipeline depends on the target alone, and hooks of one kind leave every other target as it was."""
    assert list(inspect.signature(default_pipeline).parameters) == ["target"]
    before = default_pipeline(Target("llvm"))(model())
    for phase in phases():
        toy.hook(phase)(lambda target: seal)
    toy.lowering(toy_accelerator.lower)
    after = default_pipeline(Target("llvm"))(model())
    assert structural_equal(before, after)
    assert structural_equal(default_pipeline()(model()), default_pipeline(Target("c"))(model()))


def test_a_hook_after_legalization_sees_graph_functions_and_kernels(toy: TargetKind) -> None:
    """A3: both levels are in one module."""
    counts: dict[type, int] = {}

    @module_pass(name="tests-count")
    def count(module: IRModule) -> IRModule:
        for kind in (Function, PrimFunc):
            counts[kind] = sum(isinstance(function, kind) for _, function in module.items())
        return module

    toy.hook("legalize")(lambda target: count)
    default_pipeline(Target("toy"))(model())
    assert counts == {Function: 2, PrimFunc: 3}


def test_phases_are_listed_and_a_hook_names_one_of_them(toy: TargetKind) -> None:
    """A5: the list is the documented one; hooks do not change it; an unknown phase is refused when registering."""
    listed = phases()
    documented = inspect.getdoc(phases)
    assert documented is not None
    assert " > ".join(listed) in documented
    toy.hook("optimize")(lambda target: seal)
    assert phases() == listed
    with pytest.raises(PassError) as caught:
        toy.hook("optimise")(lambda target: seal)
    assert caught.value.code == "W507"
    assert caught.value.hint == "did you mean `optimize`?"


@pytest.mark.parametrize("phase", phases())
def test_a_hook_runs_in_the_phase_that_it_names(toy: TargetKind, phase: str) -> None:
    """A5: a hook of each phase runs there, after the passes that are built in."""
    toy.hook(phase)(lambda target: append)
    pipeline = {item.name: str(item) for item in default_pipeline(Target("toy"))}
    assert [name for name, text in pipeline.items() if "tests-append" in text] == [phase]
    assert pipeline[phase].endswith("tests-append")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "it returned None"),
        (42, "it returned an int"),
        (lambda module: module, "it returned the function"),
        (weft.transform.LegalizeOps, "it returned the class LegalizeOps"),
    ],
)
def test_a_hook_that_gives_no_pass_is_refused(toy: TargetKind, returned: object, said: str) -> None:
    """A6: the message names target, phase and type."""
    toy.hook("fuse")(lambda target: returned)
    with pytest.raises(PassError) as caught:
        default_pipeline(Target("host: llvm; acc: toy -lanes=8"))
    assert caught.value.code == "W560"
    for part in ("toy -lanes=8", "'fuse'", said):
        assert part in caught.value.message


def test_a_hook_is_called_with_the_target_of_its_part(toy: TargetKind) -> None:
    """A6: each part gets a pass of its own."""
    seen: list[Target] = []

    @toy.hook("fuse")
    def make(target: Target) -> weft.transform.Pass:
        seen.append(target)
        return seal

    labels: list[str] = []

    @toy.hook("fuse")
    def make_with_label(target: Target, label: str) -> weft.transform.Pass:
        labels.append(label)
        return seal

    with_hooks(Target("host: llvm; small: toy -lanes=2; large: toy -lanes=16"), "fuse", ())
    assert seen == [Target("toy -lanes=2"), Target("toy -lanes=16")]
    assert labels == ["small", "large"]


@pytest.mark.parametrize("returned", [None, (IRModule({}), 1), "text"])
def test_a_pass_returns_a_module_and_nothing_else(toy: TargetKind, returned: object) -> None:
    """A7: something else is a TypeError that names the pass."""

    @module_pass(name="tests-wrong")
    def wrong(module: IRModule) -> IRModule:
        return returned  # type: ignore[return-value]

    toy.hook("optimize")(lambda target: wrong)
    for target in ("toy", TWO_PARTS):
        with pytest.raises(TypeError, match="pass tests-wrong must return an IRModule"):
            default_pipeline(Target(target))(model())


def test_the_module_is_verified_after_the_pass_of_a_hook(toy: TargetKind) -> None:
    """A7: a pass that breaks a rule is named by the error, also where it sees one part only."""

    @function_pass(name="tests-break")
    def broken(function: Function) -> Function:
        def follow(item: object) -> GlobalVar | None:
            return GlobalVar("missing") if isinstance(item, weft.ir.Op) else None

        return rewrite(function, follow)

    toy.hook("import")(lambda target: broken)
    with PassContext(config={"check.level": 1}), pytest.raises(VerifyError) as caught:
        default_pipeline(Target(TWO_PARTS))(model())
    assert "tests-break" in str(caught.value)


def test_no_kind_executor_or_runtime_is_named_in_the_passes() -> None:
    """A10: no string of the passes is the name of one."""
    names = {*KINDS, *EXECUTORS, *RUNTIMES}
    folder = Path(weft.transform.__file__).parent
    found = [
        f"{path.name}:{item.lineno}: {item.value}"
        for path in sorted(folder.rglob("*.py"))
        for item in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value in names
    ]
    assert {"llvm", "c", "vm", "aot"} <= names
    assert found == []


def test_the_pass_of_one_part_changes_only_its_functions(toy: TargetKind) -> None:
    """A11: functions of the other part stay equal."""
    toy.hook("import")(lambda target: seal)
    before = default_pipeline(Target("host: llvm; acc: c"))
    after = default_pipeline(Target(TWO_PARTS))
    one, two = next(iter(before))(model()), next(iter(after))(model())
    assert structural_equal(one["main"], two["main"])
    assert not structural_equal(one["block"], two["block"])
    assert isinstance(block := two["block"], Function)
    assert block.attrs["sealed"] is True


def test_a_pass_sees_the_functions_of_its_part_and_signatures_of_others(toy: TargetKind) -> None:
    """A11: unless the hook asks for scope "module"."""
    seen: list[dict[str, str]] = []

    @module_pass(name="tests-look")
    def look(module: IRModule) -> IRModule:
        seen.append({name: type(function).__name__ for name, function in module.items()})
        return module

    toy.hook("import")(lambda target: look)
    toy.hook("import", scope="module")(lambda target: look)
    LLVM.hook("import")(make := lambda target: look)
    try:
        default_pipeline(Target(TWO_PARTS))(model())
    finally:
        LLVM.remove_hook(make)
    assert seen == [
        {"block": "ExternFunc", "main": "Function"},
        {"block": "Function"},
        {"block": "Function", "main": "Function"},
    ]


def test_a_kernel_that_two_parts_share_is_changed_for_one_of_them(toy: TargetKind) -> None:
    """A11: the changed kernel becomes one of its own, and the other part keeps calling the old one."""

    @module_pass(name="tests-mark-kernels")
    def mark(module: IRModule) -> IRModule:
        kernels = {name: f.with_attr("marked", 1) if isinstance(f, PrimFunc) else f for name, f in module.items()}
        return module.with_functions(kernels)

    toy.hook("legalize")(lambda target: mark)
    with PassContext(disabled=["fuse-ops"]):  # the kernels stay apart, each with its name
        new = default_pipeline(Target(TWO_PARTS))(model())
    marked = {name for name, f in new.items() if isinstance(f, PrimFunc) and "marked" in f.attrs}
    assert marked == {"exp", "add_1"}
    assert "cls.add(" in new["main"].script()
    assert "cls.add_1(" in new["block"].script()


def test_a_label_that_the_target_lacks_is_refused(toy: TargetKind) -> None:
    """A11: the error lists the labels."""
    toy.hook("import")(lambda target: seal)
    with pytest.raises(TargetError) as caught:
        default_pipeline(Target("host: llvm; npu: toy"))(model())
    assert caught.value.code == "W707"
    assert "'block' is labelled 'acc'" in caught.value.message
    assert caught.value.hint == "labels: host, npu"


def test_unloading_a_plug_in_restores_the_output(tmp_path: Path) -> None:
    """A12: the text and the executable are the same bytes as before."""

    def output() -> tuple[str, bytes]:
        compile(model(), "host: llvm; acc: llvm").save(tmp_path / "model.weft")
        return default_pipeline(Target("llvm"))(model()).script(), (tmp_path / "model.weft").read_bytes()

    @module_pass(name="tests-rename")
    def rename(module: IRModule) -> IRModule:
        def follow(item: Node) -> Node | None:
            return weft.ir.Op("tanh") if isinstance(item, weft.ir.Op) and item.name == "exp" else None

        return module.with_function("block", rewrite(module["block"], follow))

    before = output()
    LLVM.hook("import")(make := lambda target: rename)
    try:
        during = output()
    finally:
        LLVM.remove_hook(make)
    assert during[0] != before[0]
    assert during[1] != before[1]
    assert output() == before


def test_hooks_run_in_the_order_of_parts_and_of_registration() -> None:
    """A13: whatever the order in which the kinds were registered."""
    with toy_accelerator.installed("toy2") as second, toy_accelerator.installed("toy") as first:
        second.hook("fuse", scope="module")(lambda target: appending("c"))
        first.hook("fuse", scope="module")(lambda target: appending("a"))
        first.hook("fuse", scope="module")(lambda target: appending("b"))
        assert log("x: toy; acc: toy2") == ("a", "b", "c")
        assert log("x: toy2; acc: toy") == ("c", "a", "b")


def test_before_and_after_change_the_order(toy: TargetKind) -> None:
    """A13: hooks that say nothing keep their order."""
    toy.hook("fuse", name="one", after="three")(lambda target: appending("p"))
    toy.hook("fuse", name="two")(lambda target: appending("q"))
    toy.hook("fuse", name="three")(lambda target: appending("r"))
    toy.hook("fuse", name="four", before=["two"])(lambda target: appending("s"))
    assert log("toy") == ("r", "p", "s", "q")


def order(target: str, phase: str = "fuse") -> list[str]:
    """The passes of a phase, each by what it does where it stands for a part."""
    passes = next(item for item in default_pipeline(Target(target)) if item.name == phase)
    return [str(item) for item in passes]  # type: ignore[attr-defined]


def test_a_hook_stands_before_after_or_in_place_of_a_built_in_pass(toy: TargetKind) -> None:
    """H6, A13: at its place, with hooks that name no place at the end; hooks may name each other at that place."""
    builtin = ["convert-to-dataflow", "annotate-tir-op-pattern", "fuse-ops", "fuse-tir", "update-in-place"]
    assert order("toy") == builtin
    toy.hook("fuse", name="last")(lambda target: appending("last"))
    toy.hook("fuse", before="fuse-ops", after="first")(lambda target: appending("second"))
    toy.hook("fuse", name="first")(lambda target: appending("first"))
    toy.hook("fuse", after="convert-to-dataflow")(lambda target: appending("early"))
    toy.hook("fuse", instead="fuse-tir")(lambda target: appending("other"))

    def appended(item: str) -> str:
        return str(appending(item))

    assert order("toy") == [
        builtin[0],
        appended("early"),
        builtin[1],
        appended("first"),
        appended("second"),
        builtin[2],
        appended("other"),
        builtin[4],
        appended("last"),
    ]


def test_a_pass_is_replaced_for_the_functions_of_its_part(toy: TargetKind) -> None:
    """H6: the other parts keep the built-in pass, also where it runs for some parts only."""
    toy.hook("fuse", instead="fuse-ops")(lambda target: seal)
    got = order(TWO_PARTS)
    assert got.index("on-parts{parts=[acc], labels=[host, acc], item=tests-seal}") + 1 == got.index(
        "on-parts{parts=[host], labels=[host, acc], item=fuse-ops}"
    )
    assert "fuse-ops" not in got
    toy.hook("schedule", instead="vectorize-nests")(lambda target: seal)
    before, after = (order(target, "schedule") for target in ("host: llvm; acc: llvm", TWO_PARTS))
    assert sum("vectorize-nests" in item for item in before) == 2
    assert sum("vectorize-nests" in item for item in after) == 1
    assert not any("tests-seal" in item for item in after), "the part has no such pass, so there is nothing to replace"


def test_the_trace_shows_what_hooks_replace_and_add(toy: TargetKind) -> None:
    """H6: pass by pass, under the part that it runs for."""
    LLVM.hook("fuse", instead="fuse-ops")(replaced := lambda target: append)
    LLVM.hook("legalize", before="legalize-ops", scope="module")(added := lambda target: append)
    steps: list[weft.transform.Step] = []
    try:
        compile(model(), "host: llvm; acc: llvm", trace=steps)
    finally:
        LLVM.remove_hook(replaced)
        LLVM.remove_hook(added)
    items = [(step.phase, step.item.partition("{")[0], step.label) for step in steps]
    assert items.index(("legalize", "tests-append", "")) < items.index(("legalize", "legalize-ops", ""))
    assert ("fuse", "on-parts", "host") in items
    assert ("fuse", "fuse-ops", "") not in items


@pytest.mark.parametrize("place", ["before", "after", "instead"])
@pytest.mark.parametrize(("name", "hint"), [("fuse_opps", "did you mean"), ("legalize-ops", "it has: ")])
def test_a_hook_whose_place_there_is_not_is_refused(toy: TargetKind, place: str, name: str, hint: str) -> None:
    """H6, A13, E5: never run elsewhere instead."""
    toy.hook("fuse", name="mine", **{place: name})(lambda target: seal)  # type: ignore[arg-type]
    with pytest.raises(PassError) as caught:
        compile(model(), TWO_PARTS)
    assert caught.value.code == "W564"
    assert f"'mine' of target toy names {name!r}, which is no pass of phase 'fuse'" in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_pass_has_one_hook_in_its_place(toy: TargetKind) -> None:
    """H6: for each part; two kinds may each replace it for theirs."""
    toy.hook("fuse", name="one", instead="fuse-ops")(lambda target: seal)
    with toy_accelerator.installed("toy2") as other:
        other.hook("fuse", name="two", instead="fuse-ops")(lambda target: seal)
        assert sum("tests-seal" in item for item in order("host: llvm; acc: toy; more: toy2")) == 2
        other.hook("fuse", name="three", instead="fuse-ops", scope="module")(lambda target: seal)
        with pytest.raises(PassError, match="both stand in place of 'fuse-ops'"):
            order("host: llvm; acc: toy; more: toy2")


def test_a_hook_before_what_must_come_before_it_is_a_cycle(toy: TargetKind) -> None:
    """A13: passes have their order, too."""
    toy.hook("fuse", name="mine", before="convert-to-dataflow", after="fuse-ops")(lambda target: seal)
    with pytest.raises(PassError, match="phase 'fuse' is a cycle: mine"):
        order("toy")


def test_an_order_that_contradicts_itself_is_an_error(toy: TargetKind) -> None:
    """A13: the error names the hooks of the cycle."""
    for name, after in (("one", "three"), ("two", "one"), ("three", "two")):
        toy.hook("fuse", name=name, after=after)(lambda target: seal)
    with pytest.raises(PassError, match="phase 'fuse' is a cycle: one, two, three") as caught:
        default_pipeline(Target("toy"))
    assert caught.value.code == "W561"


def test_the_text_of_a_pipeline_with_hooks_reads_back(toy: TargetKind) -> None:
    toy.hook("fuse")(lambda target: append)
    toy.lowering(toy_accelerator.lower)
    text = str(default_pipeline(Target(TWO_PARTS)))
    assert "on-parts{parts=[acc], labels=[host, acc], item=tests-append}" in text
    assert str(parse_pipeline(text)) == text
    assert structural_equal(parse_pipeline(text)(model()), default_pipeline(Target(TWO_PARTS))(model()))
