"""One module from script to machine code: its text after `link` is the program, which another process loads."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import transform
from weft.ir.graph import ExternFunc
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.device.artifact_symbols import check_symbols
from weft.runtime.device.object_symbols import defined, needed
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

EXECUTORS = ("native", "vm", "graph", "aot")


@I.ir_module
class Layer:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            B[i, j] = A[i, j] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 3), "float32"):
        cls = Layer
        w = R.const([[1.0, 2.0, 3.0]] * 4, "float32")
        y = R.matmul(x, w)
        z = R.call_tir(cls.twice, (y,), out_ty=R.Tensor((2, 3), "float32"))
        return z


X = np.ones((2, 4), "float32")
WANTED = [[8.0, 16.0, 24.0], [8.0, 16.0, 24.0]]


def parsed(text: str) -> weft.IRModule:
    found = weft.parse(text)
    assert isinstance(found, weft.IRModule)
    return found


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("phase", ["codegen", "link"])
def test_the_text_of_a_compiled_module_is_the_program(executor: str, phase: str) -> None:
    module = weft.lower(Layer, stop=phase, executor=executor)
    assert all(isinstance(function, ExternFunc) for function in module.functions.values())
    assert "main" in module
    again = parsed(module.script())
    assert weft.structural_equal(again, module)
    np.testing.assert_array_equal(weft.load_module(again, trust=True)["main"](X), WANTED)
    np.testing.assert_array_equal(weft.interpret(again, trust=True)["main"](X), WANTED)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_compile_is_the_phases_and_loading(executor: str) -> None:
    made = weft.compile(Layer, executor=executor)
    linked = weft.lower(Layer, stop="link", executor=executor)
    assert weft.structural_equal(made.module, linked)
    assert weft.structural_equal(weft.load_module(linked, trust=True).module, linked)
    generated = weft.lower(Layer, stop="codegen", executor=executor)
    assert weft.structural_equal(weft.lower(generated, start="link", stop="link"), linked)
    planned = weft.lower(Layer, stop="plan", executor=executor)
    lowered = parsed(planned.script())
    assert (weft.compile(lowered, start="codegen", executor=executor)["main"](X) == WANTED).all()
    assert (weft.compile(linked, start="link", trust=True)["main"](X) == WANTED).all()


def test_machine_code_in_a_module_is_data_until_it_is_trusted() -> None:
    module = weft.lower(Layer, stop="link")
    for load in (weft.load_module, weft.interpret, lambda item: weft.compile(item, start="link")):
        with pytest.raises(weft.ArtifactError) as caught:
            load(module)
        assert caught.value.code == "W830"


def test_a_module_without_a_program_is_not_loaded() -> None:
    sources = weft.lower(Layer, "c", stop="link")
    assert "c" in {item.kind for item in sources.attrs["artifacts"].values()}
    for module in (Layer, sources):
        with pytest.raises(weft.ArtifactError) as caught:
            weft.load_module(module, trust=True)
        assert caught.value.code == "W823"


@pytest.mark.parametrize("name", ["program.json", "signatures.json"])
@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b"{", b'{"functions": [1]}', b'{"sites": 3, "constants": 1, "objects": []}']
)
def test_a_damaged_program_is_refused(name: str, data: bytes) -> None:
    artifacts = weft.lower(Layer, stop="link").attrs["artifacts"]
    kept = [item for item in artifacts.values() if item.name != name]
    wrong = Artifact(artifacts[name].kind, name, data, codegen="weft")
    module = weft.IRModule({}).with_attr("artifacts", ArtifactSet([*kept, wrong]))
    with pytest.raises(weft.ArtifactError) as caught:
        weft.load_module(module, trust=True)
    assert caught.value.code == "W823"


def test_another_process_runs_the_text(tmp_path: Path) -> None:
    path = tmp_path / "compiled.py"
    path.write_text(weft.lower(Layer, stop="link").script())
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-m", "weft", "run", str(path), "--input", f"x={tmp_path / 'x.npy'}"]
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "W830" in done.stderr
    done = subprocess.run([*command, "--trust"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "24" in done.stdout


@pytest.mark.parametrize("executor", EXECUTORS)
def test_objects_provide_and_need_what_their_tables_say(executor: str) -> None:
    artifacts = weft.compile(Layer, executor=executor).artifacts
    objects = [item for item in artifacts.values() if item.kind == "object"]
    assert objects
    for item in objects:
        assert {symbol.name for symbol in item.provides} == defined(item.data)
        assert {symbol.name for symbol in item.needs} == needed(item.data)
        check_symbols(item)


def test_objects_of_other_machines_say_the_truth_too() -> None:
    for target in ("llvm -mcpu=cortex-m4", "llvm -mtriple=aarch64-linux-gnu"):
        artifacts = weft.compile(Layer, target)
        (item,) = (item for item in artifacts.values() if item.kind == "object")
        check_symbols(item)
        assert {"model_run", "model_message"} <= {symbol.name for symbol in item.provides}


@pytest.mark.parametrize("name", ["model.o", "code0.o"])
def test_an_object_that_does_not_say_the_truth_is_found_by_reading(name: str, tmp_path: Path) -> None:
    artifacts = weft.compile(Layer, executor="aot").artifacts
    item = artifacts[name]
    assert name == "model.o" or item.needs
    for wrong in ({"provides": (*item.provides, Symbol("more"))}, {"needs": ()}):
        made: Any = replace(item, **wrong)
        if made == item:
            continue
        with pytest.raises(weft.ArtifactError) as caught:
            check_symbols(made)
        assert caught.value.code == "W821"
        ArtifactSet([made]).save(tmp_path / "wrong.zip")
        command = [sys.executable, "-m", "weft", "artifact", "verify", str(tmp_path / "wrong.zip")]
        environment = {**os.environ, "PYTHONPATH": "src"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, "W821" in done.stderr) == (1, True)


def test_a_program_says_what_it_was_made_from() -> None:
    made = weft.compile(Layer)
    facts = made.artifacts["program.json"].provenance
    assert set(facts["functions"]) == set(weft.lower(Layer, stop="plan"))
    assert (facts["target"], facts["opt"], facts["executor"]) == ("llvm", 2, "native")
    assert {"weft", "llvm"} <= set(facts)
    planned = weft.lower(Layer, stop="plan")
    assert weft.compile(planned, start="codegen").artifacts["program.json"].provenance == facts
    other = weft.compile(parsed(Layer.script().replace("T.float32(2.0)", "T.float32(3.0)"))).artifacts["program.json"]
    assert other.provenance["functions"] != facts["functions"]


PARTS = "host: llvm; other: llvm -mcpu=host"
EVERYWHERE = [
    ("llvm", "native"),
    ("llvm", "vm"),
    ("llvm", "graph"),
    ("llvm", "aot"),
    (PARTS, "native"),
    ("c", None),
    ("c -mcpu=cortex-m4", None),
    ("llvm -mcpu=cortex-m4", None),
    ("llvm -mtriple=aarch64-linux-gnu", None),
]
READ = """
import sys, weft
from pathlib import Path
import numpy as np
from weft.transform import Pass
Pass.__call__ = None  # no pass may run
for path in sorted(Path(sys.argv[1]).glob("*.py")):
    module = weft.parse(path.read_text())
    artifacts = module.attrs["artifacts"]
    text, loaded = module.script() == path.read_text(), "none"
    if any(item.kind == "weft-program" for item in artifacts.values()):
        loaded = weft.load_module(module, trust=True)["main"](np.ones((2, 4), "float32")).tolist()
    taken = weft.compile(module, start="link", trust=True)
    again = getattr(taken, "artifacts", taken).content_hash
    print(path.name, artifacts.content_hash, again, text, loaded)
print("weft.codegen.backends.llvm.program" in sys.modules)
"""


def test_modules_of_every_target_are_taken_apart_and_put_together_in_another_process(tmp_path: Path) -> None:
    """H1, A8, C3: after codegen and after link; what runs here runs there, and nothing is compiled."""
    wanted = {}
    for number, (target, executor) in enumerate(EVERYWHERE):
        made: Any = weft.compile(Layer, target, executor=executor)
        final = getattr(made, "artifacts", made).content_hash
        for phase in ("codegen", "link"):
            module = weft.lower(Layer, target, executor=executor, stop=phase)
            name = f"{number}{phase}.py"
            (tmp_path / name).write_text(module.script())
            run = WANTED if hasattr(made, "artifacts") else "none"
            own = module.attrs["artifacts"].content_hash
            if phase == "link" and executor != "aot":  # whose code for C to link is not loaded
                assert own == final
            wanted[name] = [own, final if phase == "codegen" else own, "True", str(run)]
    command = [sys.executable, "-c", READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "src"})
    *lines, compiler = done.stdout.splitlines()
    got = {name: rest.split(" ", 3) for name, _, rest in (line.partition(" ") for line in lines)}
    assert got == wanted
    assert compiler == "False"


@pytest.mark.parametrize(("target", "executor"), EVERYWHERE)
def test_every_artifact_says_what_it_was_made_from_and_by(target: str, executor: str | None) -> None:
    """H2, C15: hashes of the functions that are in it, versions, options, flags, decisions, its target in full."""
    lowered = weft.lower(Layer, target, executor=executor, stop="plan")
    artifacts = weft.lower(Layer, target, executor=executor, stop="codegen").attrs["artifacts"]
    for item in artifacts.values():
        if item.kind not in ("object", "c", "weft-program", "signatures", "weft-bytecode", "weft-graph", "weft-aot"):
            continue
        if item.target != "{}":  # what belongs to no part: the data of C sources
            assert weft.Target(item.target).to_json() == item.target
            assert weft.Target(item.target).kind.name in target
        facts = item.provenance
        assert facts["weft"] == weft.__version__
        assert facts["opt"] == 2
        assert "decisions" in facts
        functions = facts["functions"].get("model", facts["functions"])
        assert set(functions) <= set(lowered), item.name
        if item.kind == "object":
            assert facts["llvm"]
            assert facts["flags"][0].startswith("-mtriple=")
    named = {name for item in artifacts.values() for name in item.provenance.get("functions", {})} - {"model"}
    assert "main" in named or "main" in artifacts["model_main.c"].provenance["functions"]["model"]


def test_an_object_names_its_own_functions_and_what_was_decided_about_them() -> None:
    """H2, H11: not those of the whole program."""
    artifacts = weft.compile(Layer).artifacts
    (kernel,) = (item for item in artifacts.values() if any("matmul" in symbol.name for symbol in item.provides))
    (name,) = kernel.provenance["functions"]
    assert f"weft.kernel.{name}" in {symbol.name for symbol in kernel.provides}
    assert set(kernel.provenance["decisions"]) == {name}
    assert {item[0] for item in kernel.provenance["decisions"][name]} >= {"gemm"}
    whole = artifacts["program.json"].provenance
    assert whole["functions"][name] == kernel.provenance["functions"][name]
    assert weft.Target(whole["parts"][""]) == weft.Target(kernel.target)
    assert weft.Target(kernel.target).options["mcpu"].startswith(("x86-64", "generic-"))


def test_a_declaration_without_code_of_this_process_is_an_error_that_names_its_artifacts() -> None:
    """H1: C sources and objects for others do not run here; what nobody trusts does not run at all."""
    sources = weft.lower(Layer, "c", stop="codegen")
    with pytest.raises(weft.ArtifactError, match="'main' is declared") as caught:
        weft.interpret(sources, trust=True)["main"](X)
    assert caught.value.code == "W819"
    assert "model_main.c" in caught.value.message


@pytest.mark.parametrize("wrong", [lambda module: module, 3, None.__class__, "codegen", "legalize,plan,link"])
def test_a_pipeline_is_a_pass_or_the_text_of_one_up_to_code(wrong: object) -> None:
    """H6: a bare function has no name, no checks and no place in a trace."""
    with pytest.raises(weft.PassError) as caught:
        weft.compile(Layer, pipeline=wrong)
    assert caught.value.code == ("W543" if isinstance(wrong, str) else "W511")
    if callable(wrong):
        assert "module_pass" in (caught.value.hint or "")


def test_code_is_generated_by_passes_that_hooks_stand_around() -> None:
    """H1, H6: a hook before sees lowered functions, one after sees declarations and artifacts, and may change them."""
    seen: list[tuple[str, set[str], bool]] = []

    def noting(place: str) -> Any:
        @weft.transform.module_pass(name=f"tests-note-{place}")
        def note(module: weft.IRModule) -> weft.IRModule:
            kinds = {type(function).__name__ for function in module.functions.values()}
            seen.append((place, kinds, "artifacts" in module.attrs))
            return module if place == "before" else module.with_attr("signed", place)

        return lambda target: note

    kind = weft.Target("llvm").kind
    before, after, linked = noting("before"), noting("after"), noting("linked")
    kind.hook("codegen", before="generate-code")(before)
    kind.hook("codegen")(after)
    kind.hook("link")(linked)
    try:
        assert (weft.compile(Layer)["main"](X) == WANTED).all()
        assert weft.lower(Layer, stop="link").attrs["signed"] == "linked"
    finally:
        for hook in (before, after, linked):
            kind.remove_hook(hook)
    lowered, declared = {"Function", "PrimFunc"}, {"ExternFunc"}
    assert seen == [("before", lowered, False), ("after", declared, True), ("linked", declared, True)] * 2


def test_a_hook_that_changes_an_artifact_changes_what_runs() -> None:
    """H1: what is loaded is what the module holds."""

    @weft.transform.module_pass(name="tests-other-constants")
    def other(module: weft.IRModule) -> weft.IRModule:
        artifacts = module.attrs["artifacts"]
        new = Artifact(**{**vars(artifacts["constant0.bin"]), "data": np.full(12, 5, "float32").tobytes()})
        kept = [item for item in artifacts.values() if item.name != new.name]
        return module.with_attr("artifacts", ArtifactSet([*kept, new]))

    kind = weft.Target("llvm").kind
    kind.hook("codegen")(make := lambda target: other)
    try:
        assert (weft.compile(Layer)["main"](X) == 40).all()
    finally:
        kind.remove_hook(make)
    assert (weft.compile(Layer)["main"](X) == WANTED).all()


def test_the_phases_of_code_are_named_in_pipelines() -> None:
    """H1: the text of a pipeline runs them as the other phases."""
    module = transform.parse_pipeline('import,codegen{target="c -mcpu=cortex-m4"},link')(Layer)
    assert "model_main.c" in module.attrs["artifacts"]
    bytecode = transform.parse_pipeline("import,codegen{executor=vm},link")(Layer)
    assert "driver.json" in bytecode.attrs["artifacts"]
    assert (weft.load_module(bytecode, trust=True)["main"](X) == WANTED).all()
