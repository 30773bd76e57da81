"""Artifacts: data in the module, printed, parsed, hashed, saved, exported, loaded; and what never happens to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.plugins import toy_accelerator

import weft
import weft.codegen.generate  # its passes are named with the others, whatever was imported before
from weft import Artifact, ArtifactSet, transform
from weft.codegen.backends.generators import generate_artifacts
from weft.codegen.package import load_module, module_bytes, module_of, save_module
from weft.errors import ArtifactError, WeftError
from weft.ir import IRModule, VDevice, structural_hash
from weft.ir.op import OPS, Param, register_op
from weft.runtime import loading
from weft.runtime.artifact import NotSerializable, Symbol
from weft.runtime.loading import LoadedModule
from weft.runtime.registry import register_func, unregister_func
from weft.target import Target
from weft.transform.infra.registry import is_built_in, named_passes, pass_names

C = Artifact(
    "c",
    "twice.c",
    b'#include "twice.h"\nint32_t twice(int32_t x) { return 2 * x; }\n',
    Target("c").to_json(),
    (Symbol("twice", "int32_t twice(int32_t x)"),),
    codegen="c",
    loader="cc",
)
HEADER = Artifact(
    "header", "twice.h", b"#include <stdint.h>\nint32_t twice(int32_t x);\n", C.target, codegen="c", loader="cc"
)
NEEDY = Artifact(
    "c",
    "four.c",
    b'#include "twice.h"\nint32_t four(int32_t x) { return twice(twice(x)); }\n',
    C.target,
    (Symbol("four", "int32_t four(int32_t x)"),),
    (Symbol("twice"),),
    "c",
    "cc",
)
KINDS = ("object", "staticlib", "sharedlib", "c", "ptx", "llvm-ir", "vm-bytecode", "graph-json", "constants", "header")
MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def double(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_ty=R.Tensor(("n", 4), "float32"))
            b = R.add(a, R.const(1, "float32"))
            R.output(b)
        return b
"""
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


def module(text: str = MODULE) -> IRModule:
    found = weft.parse(textwrap.dedent(text))
    assert isinstance(found, IRModule)
    return found


def carrying(*artifacts: Artifact) -> IRModule:
    return module().with_attr("artifacts", ArtifactSet(artifacts))


def test_the_text_of_a_module_shows_kind_target_symbols_size_and_hash() -> None:
    """C1: and a text that states another size or hash is refused."""
    text = carrying(C).script()
    for part in ('"kind": "c"', "twice.c", '"int32_t twice(int32_t x)"'):
        assert part in text
    assert f'"size": {C.size}' in text
    assert f'"sha256": "{C.content_hash}"' in text
    assert Target(C.target) == Target("c")
    for old, new in ((f'"size": {C.size}', '"size": 3'), (C.content_hash, "0" * 64)):
        with pytest.raises(WeftError, match="states") as caught:
            weft.parse(text.replace(old, new))
        assert caught.value.code == "W811"
        assert caught.value.span is not None


def test_nothing_that_loads_is_imported_before_load() -> None:
    """C2: an artifact cannot be called or indexed, and importing it imports no loader."""
    assert not callable(C)
    assert not hasattr(C, "__getitem__")
    code = (
        "import sys, weft.runtime.artifact as a; x = a.Artifact('c', 'a.c', b'');"
        "a.ArtifactSet.from_bytes(a.ArtifactSet([x]).to_bytes());"
        "print([n for n in sys.modules if 'llvmlite' in n or n == 'weft.runtime.loading'])"
    )
    environment = {"PYTHONPATH": "src", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_survives_file_bytes_json_and_text(kind: str, tmp_path: Path) -> None:
    """C3: save and load give an equal artifact with equal fields."""
    artifact = Artifact(
        kind,
        f"one.{kind}",
        bytes(range(256)),
        Target("llvm -mcpu=x86-64-v3").to_json(),
        (Symbol("f", "int f(int)"),),
        (Symbol("g"),),
        "some",
        "loader",
        {"weft": "1", "flags": ["-O2", {"x": None}]},
    )
    ArtifactSet([artifact]).save(tmp_path / "a.weft")
    save_module(carrying(artifact), tmp_path / "m.weft")
    found = [
        ArtifactSet.load(tmp_path / "a.weft")[artifact.name],
        ArtifactSet.from_bytes(ArtifactSet([artifact]).to_bytes())[artifact.name],
        Artifact.from_data(json.loads(json.dumps(artifact.to_data()))),
        module(carrying(artifact).script()).attrs["artifacts"][artifact.name],
        load_module(tmp_path / "m.weft").attrs["artifacts"][artifact.name],
    ]
    for item in found:
        assert item == artifact
        assert (item.header(), item.data) == (artifact.header(), artifact.data)


# C4: the edges, one test each.


@needs_compiler
def test_artifacts_are_exported_to_a_shared_object_and_loaded(tmp_path: Path) -> None:
    """C4: Artifact => export => shared object => load => LoadedModule."""
    path = ArtifactSet([C, HEADER, NEEDY]).export(tmp_path / "lib.so")
    library = loading.load_library(path, [*C.provides, *NEEDY.provides])
    assert isinstance(library, LoadedModule)
    assert (library["four"](5), library["twice"](-4)) == (20, -8)
    again = Artifact("sharedlib", "lib.so", path.read_bytes(), provides=C.provides)
    assert again.kind == "sharedlib"
    copy = ArtifactSet([again]).export(tmp_path / "copy.so")
    assert loading.load_library(copy, C.provides)["twice"](21) == 42


def object_code() -> Artifact:
    """`int32_t twice(int32_t)` as object code of this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = "define i32 @twice_object(i32 %x) {\n  %y = shl i32 %x, 1\n  ret i32 %y\n}\n"
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    data = machine.emit_object(llvm.parse_assembly(text))
    provides = (Symbol("twice_object", "int32_t twice_object(int32_t x)"),)
    return Artifact("object", "twice.o", data, Target("llvm").to_json(), provides, codegen="llvm", loader="llvm")


def test_object_code_is_linked_in_the_process() -> None:
    """C4: jit-able Artifact => JIT => LoadedModule."""
    loaded = object_code().load()
    assert isinstance(loaded, LoadedModule)
    assert loaded["twice_object"](21) == 42
    assert ArtifactSet([object_code()]).load_module()["twice_object"](1) == 2


def test_a_folder_of_files_is_written(tmp_path: Path) -> None:
    """C4: an export to a folder is the contents as they are."""
    ArtifactSet([C, HEADER]).export(tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {
        "twice.c": C.data,
        "twice.h": HEADER.data,
    }


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        (lambda folder: C.load(), "kind 'c' cannot be loaded"),
        (lambda folder: Artifact("sharedlib", "a.so", b"").load(), "kind 'sharedlib' cannot be loaded"),
        (lambda folder: Artifact("ptx", "a.ptx", b"").load(), "kind 'ptx' cannot be loaded"),
        (lambda folder: loading.jit([C]), "kind 'c' is no object code"),
        (lambda folder: loading.jit([Artifact("object", "a.o", b"\x7fELF" + bytes(60))]), "another machine"),
        (lambda folder: ArtifactSet([Artifact("ptx", "a.ptx", b"")]).export(folder / "a.so"), "cannot be part of a"),
        (lambda folder: ArtifactSet([NEEDY]).export(folder / "a.so"), "nothing provides twice"),
        (lambda folder: loading.load_library(folder / "none.so", []), "cannot load"),
        (lambda folder: Artifact("header", "a.h", b"").load(), "cannot be loaded"),
        (lambda folder: Artifact("constants", "a.bin", b"").load(), "cannot be loaded"),
    ],
)
def test_there_are_no_other_edges(edge: Any, message: str, tmp_path: Path) -> None:
    """C4: any other step of the chart is an error that says what to do."""
    with pytest.raises(ArtifactError, match=message):
        edge(tmp_path)
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_code_that_does_not_compile_and_flags_that_run_things_stay_without_effect(tmp_path: Path) -> None:
    """C4: of the flags that an archive states only the choice of a processor reaches the compiler."""
    broken = Artifact("c", "a.c", b"int f(void) { return }\n")
    with pytest.raises(ArtifactError, match="refuses the code") as caught:
        ArtifactSet([broken]).export(tmp_path / "a.so")
    assert caught.value.code == "W805"
    assert any("a.c" in note for note in caught.value.notes)
    hostile = with_fields(C, provenance={"flags": ["-fplugin=/tmp/evil.so", "-wrapper", "touch,x", "-o/tmp/x"]})
    ArtifactSet([hostile, HEADER]).export(tmp_path / "b.so")
    assert [path.name for path in tmp_path.iterdir()] == ["b.so"]


def test_code_whose_plug_in_is_absent_is_named_when_it_is_called() -> None:
    """C4: a function registered under the name of its symbol does instead."""
    stream = Artifact("toy-stream", "scale.bin", b"3", provides=(Symbol("toy.scale"),), loader="toy")
    found = loading.loadable([stream, C])
    assert list(found) == ["toy.scale"]
    with pytest.raises(ArtifactError, match=r"'scale\.bin' of kind 'toy-stream' cannot be loaded") as caught:
        found["toy.scale"](1)
    assert (caught.value.code, "import the plug-in" in (caught.value.hint or "")) == ("W819", True)
    register_func("toy.scale", lambda x: 3 * x)
    try:
        assert found["toy.scale"](2) == 6
    finally:
        unregister_func("toy.scale")


def test_a_loader_of_a_plug_in_gives_the_promised_symbols() -> None:
    """C4: a kind from outside has the loader that its plug-in registered."""
    stream = Artifact("toy-stream", "a.bin", b"\x02", provides=(Symbol("scale"),))
    loading.register_loader("toy-stream", lambda artifact: {"scale": lambda x: x * artifact.data[0]})
    try:
        assert stream.load()["scale"](21) == 42
        with pytest.raises(ArtifactError, match="have a loader already"):
            loading.register_loader("toy-stream", lambda artifact: {})
        with pytest.raises(ArtifactError, match="does not give other"):
            with_fields(stream, provides=(Symbol("other"),)).load()
    finally:
        loading.unregister_loader("toy-stream")
    with pytest.raises(ArtifactError, match="cannot be loaded"):
        stream.load()


def test_what_is_only_in_memory_is_flagged_and_refuses_to_be_saved(tmp_path: Path) -> None:
    """C5: it stands in a module and in its text without data; saving and exporting name the symbol."""
    live = loading.in_memory("live", LoadedModule({"kernel": lambda: 7}))
    assert not live.serialisable
    assert live.load()["kernel"]() == 7
    holder = carrying(live)
    text = holder.script()
    assert '"data": None' in text
    again = module(text)
    assert weft.structural_equal(again, holder)
    assert again.script() == text
    saves = (
        live.to_data,
        ArtifactSet([live]).to_bytes,
        lambda: module_bytes(holder),
        lambda: ArtifactSet([live]).save(tmp_path / "x.weft"),
        lambda: ArtifactSet([live]).export(tmp_path / "x.so"),
    )
    for save in saves:
        with pytest.raises(NotSerializable, match="kernel"):
            save()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ArtifactError, match="memory of another process"):
        again.attrs["artifacts"]["live"].load()
    with pytest.raises(ArtifactError, match="exists only in memory, so it has no bytes"):
        Artifact("jit", "a", b"bytes", serialisable=False)


DEVICE = VDevice("llvm", 0, "global")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "alter-op-impl": {"op_impl_map": {}, "op_buffer_transforms": {}},
    "update-param-type": {"ty_func": lambda param: None},
    "update-vdevice": {"new_vdevice": VDevice("llvm -mcpu=x86-64", 0, "global"), "index": 0},
    "assign-by-cost": {"target": "a: llvm; b: c", "cost": lambda call, part: 1.0},
    "generate-code": {"trust": True},
    "bind-params": {"func_name": "main", "params": {}},
    "bind-symbolic-vars": {"binding_map": {"n": 3}},
    "on-parts": {"parts": ("a",), "labels": ("a", "b"), "item": "canonicalize"},
    "partition-calls": {"label": "a", "patterns": {"a.add": ("add",)}},
    **{
        name: {"target": "a: llvm; b: c"}
        for name in (
            "assign",
            "outline-labelled",
            "place-copies",
            "run-lowering-hooks",
            "specialise-by-label",
            "verify-targets",
        )
    },
    "fuse-ops-by-pattern": {"patterns": ()},
    "split-call-tir-by-pattern": {"patterns": ()},
    "lower-to-entry": {"function": "double"},
    "tile-contractions": {"machine": {"vector_bits": 256, "vector_registers": 16}},
}


@pytest.mark.parametrize("name", [name for name in pass_names() if is_built_in(named_passes()[name])])
def test_every_pass_keeps_artifacts(name: str) -> None:
    """C6: a pass that knows nothing of artifacts keeps them, by their hash."""
    cls = named_passes()[name]
    try:
        item = cls(**ARGUMENTS.get(name, {}))
    except TypeError:
        pytest.fail(f"the test does not know the arguments of {name}")
    before = carrying(C, HEADER).with_global_infos({"vdevice": (DEVICE,)})
    try:
        after = item(before)
    except WeftError:  # some take the explicit-memory form only, for known sizes
        after = item(transform.default_pipeline()(transform.BindSymbolicVars({"n": 3})(before)))
    kept = after.attrs["artifacts"]
    if name == "generate-code":  # it knows of artifacts: it adds more
        kept = ArtifactSet(kept[name] for name in before.attrs["artifacts"])
    assert kept.content_hash == before.attrs["artifacts"].content_hash


def test_modules_compare_by_the_contents_of_their_artifacts() -> None:
    """C7: one flipped byte makes modules unequal, with another hash."""
    flipped = with_fields(C, data=bytes([C.data[0] ^ 1]) + C.data[1:])
    assert weft.structural_equal(carrying(C), carrying(with_fields(C)))
    assert structural_hash(carrying(C)) == structural_hash(carrying(with_fields(C)))
    assert not weft.structural_equal(carrying(C), carrying(flipped))
    assert structural_hash(carrying(C)) != structural_hash(carrying(flipped))


def test_an_artifact_has_the_fields_of_the_schema() -> None:
    """C8: producer, loader, unique file name, content; sets unite, order and refuse."""
    header = C.header()
    assert (header["codegen"], header["loader"], header["name"]) == ("c", "cc", "twice.c")
    assert set(header) == {
        "kind",
        "name",
        "target",
        "provides",
        "needs",
        "codegen",
        "loader",
        "provenance",
        "serialisable",
    }
    both = ArtifactSet([C]).union([HEADER, C])
    assert both.names == ("twice.c", "twice.h")
    assert both == ArtifactSet([HEADER, C])
    assert both != ArtifactSet([C])
    with pytest.raises(ArtifactError, match="two different artifacts are named"):
        ArtifactSet([C, with_fields(HEADER, name="twice.c")])
    data = C.to_data()
    for name in [*header, "data"]:
        with pytest.raises(ArtifactError) as caught:
            Artifact.from_data({key: value for key, value in data.items() if key != name})
        assert caught.value.code == "W810"
    with pytest.raises(ArtifactError, match="no field 'extra'"):
        Artifact.from_data({**data, "extra": 1})


GENERATE = """
import hashlib, sys
from tests.plugins import toy_accelerator
from tests.runtime.test_artifacts_in_modules import module
from weft.codegen.backends.generators import generate_artifacts
from weft.codegen.package import module_bytes
from weft.transform import default_pipeline
with toy_accelerator.installed() as one, toy_accelerator.installed("toy2") as two:
    for kind in (one, two):
        kind.codegen(toy_accelerator.named)
    new = generate_artifacts(default_pipeline()(module()).with_attr("mixed", {"b": 1, "a": 2}), "x: toy; y: toy2")
    print(new.attrs["artifacts"].content_hash, hashlib.sha256(module_bytes(new)).hexdigest())
    print(list(new.attrs["artifacts"]))
"""


def test_two_processes_make_the_same_artifacts() -> None:
    """C9: with shuffled hashes of strings, the same content hash and the same bytes of the archive."""
    results = set()
    for seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "src:."}
        command = [sys.executable, "-c", GENERATE]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        results.add(done.stdout)
    assert len(results) == 1


def test_the_order_of_several_code_generators_is_that_of_names() -> None:
    """C10: whatever the order in which artifacts come."""
    artifacts = [Artifact("x", f"{name}.bin", name.encode(), codegen=name) for name in "qwertyuiopasdfghjklz"]
    expected = tuple(sorted(artifact.name for artifact in artifacts))
    hashes = set()
    for seed in range(20):
        shuffled = [artifacts[i] for i in np.random.default_rng(seed).permutation(len(artifacts))]
        assert ArtifactSet(shuffled).names == expected
        hashes.add(ArtifactSet(shuffled).to_bytes())
    assert len(hashes) == 1


def test_constants_are_artifacts_and_kept_once() -> None:
    """C11: two uses of a weight are one blob, found by its hash."""
    weight = np.arange(400, dtype="float32")
    text = f"""
    @R.function
    def main(x: R.Tensor((400,), "float32")) -> R.Tensor((400,), "float32"):
        a = R.add(x, R.const({weight.tolist()}, "float32"))
        b = R.multiply(a, R.const({weight.tolist()}, "float32"))
        c = R.add(b, R.const({(weight + 1).tolist()}, "float32"))
        return c
    """
    function = weft.parse(textwrap.dedent(text))
    assert not isinstance(function, IRModule)
    whole = IRModule({"main": function})
    content = module_bytes(whole)
    artifacts, source, _ = ArtifactSet.contents(content)
    assert [(item.kind, item.size) for item in artifacts.values()] == [("constants", 1600)] * 2
    assert source is not None
    assert len(source) < 2000
    assert weft.structural_equal(module_of(content), whole)


def test_effects_are_unknown_unless_declared() -> None:
    """C12: an operator without a declaration of purity is neither dropped nor merged."""

    @register_op("test.effect", [Param("x")], builtin="a test")
    def effect(args: Any, context: Any) -> Any:
        """Something with an effect."""
        return context.type_of(args.x)

    try:
        before = module("""
        @I.ir_module
        class Module:
            @R.function(pure=False)
            def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                a = R.test.effect(x)
                b = R.test.effect(x)
                c = R.exp(x)
                d = R.exp(x)
                e = R.add(d, c)
                return e
        """)
        passes = (transform.EliminateCommonSubexpr(), transform.DeadCodeElimination(), transform.CanonicalizeBindings())
        after = transform.Pipeline(passes)(before)
        assert after.script().count("R.test.effect(x)") == 2
        assert after.script().count("R.exp(x)") == 1
        assert after.script().index("test.effect") < after.script().index("R.exp")
    finally:
        del OPS["test.effect"]


def test_texts_of_before_versions_are_read() -> None:
    """C14: without a version line, with attributes that are fields now; a later version is refused."""
    path = Path(__file__).parent / "data" / "version_0.txt"
    old = module(path.read_text("utf-8"))
    text = old.script()
    assert text.startswith("# weft-script 1\n")
    assert weft.structural_equal(module(text), old)
    x = np.ones((3, 4), "float32")
    np.testing.assert_array_equal(weft.interpret(old)["main"](x), 2 * x)
    with pytest.raises(WeftError, match="weft-script 2; this weft reads version 1"):
        weft.parse(text.replace("# weft-script 1", "# weft-script 2"))


def test_an_artifact_says_what_it_was_made_from_and_by() -> None:
    """C15: the hashes of the functions, the expanded target, the versions of tools, the flags."""
    with toy_accelerator.installed() as toy:
        toy.codegen(toy_accelerator.compile_functions)
        lowered = transform.default_pipeline()(module())
        new = generate_artifacts(lowered, "toy -lanes=8")
    (artifact,) = new.attrs["artifacts"].values()
    assert artifact.provenance["weft"] == weft.__version__
    assert artifact.provenance["flags"] == ["--fast"]
    expected = {name: f"{structural_hash(function):016x}" for name, function in lowered.items()}
    assert artifact.provenance["functions"] == expected
    assert json.loads(artifact.target) == {"kind": "toy", "lanes": 8}
    with toy_accelerator.installed() as toy:  # another function, another hash
        toy.codegen(toy_accelerator.compile_functions)
        changed = transform.default_pipeline()(module(MODULE.replace("T.float32(2)", "T.float32(3)")))
        (other,) = generate_artifacts(changed, "toy").attrs["artifacts"].values()
    assert other.provenance["functions"] != artifact.provenance["functions"]
