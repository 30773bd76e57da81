"""Compiled modules taken apart and put together: each program stays whole, no name is taken in silence."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.ir import extract, merge
from weft.ir.graph import ExternFunc
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol, members_of
from weft.runtime.merging import implementations, merge_artifacts
from weft.runtime.registry import unregister_func
from weft.script import ir as I
from weft.script import relax as R

EXECUTORS = ("native", "vm", "graph", "aot")


@I.ir_module
class First:
    @R.function
    def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        w = R.const([[1.0, 2.0, 3.0, 4.0]] * 4, "float32")
        return R.matmul(x, w)


@I.ir_module
class Second:
    @R.function
    def f(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        w = R.const([[1.0, 2.0, 3.0, 5.0]] * 4, "float32")
        return R.matmul(x, w)


@I.ir_module
class Caller:
    @R.function
    def g(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        cls = Caller
        y = cls.f(x)
        return R.add(y, x)

    f = R.ExternFunc("f", R.Callable((R.Tensor((2, 4), "float32"),), R.Tensor((2, 4), "float32")))


X = np.arange(8, dtype="float32").reshape(2, 4)
ONE, TWO = (X @ np.array([[1, 2, 3, last]] * 4, "float32") for last in (4, 5))


def parsed(module: weft.IRModule) -> weft.IRModule:
    """The module after its text."""
    found = weft.parse(module.script())
    assert isinstance(found, weft.IRModule)
    assert weft.structural_equal(found, module)
    return found


def named(module: weft.IRModule, old: str, new: str) -> weft.IRModule:
    found = weft.parse(module.script().replace(f"def {old}(", f"def {new}("))
    assert isinstance(found, weft.IRModule)
    return found


def values(module: weft.IRModule) -> dict[str, np.ndarray]:
    """What each function of a compiled module gives."""
    return {name: function(X) for name, function in weft.load_module(module, trust=True).items()}


def assert_values(module: weft.IRModule, **wanted: np.ndarray) -> None:
    found = values(module)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("phase", ["codegen", "link"])
@pytest.mark.parametrize("left", EXECUTORS)
def test_programs_of_two_modules_are_merged_and_taken_apart(left: str, phase: str) -> None:
    """H8, H1: both have matmul kernels, constants and files of the same names; each keeps its own."""
    first = weft.lower(First, executor=left, stop=phase)
    for right in EXECUTORS:
        second = weft.lower(Second, executor=right, stop=phase)
        merged = parsed(merge(first, second).module)
        assert_values(merged, main=ONE, f=TWO)
        linked = weft.lower(merged, start="link", stop="link")
        assert weft.structural_equal(weft.load_module(merged, trust=True).module, linked)
        kept = linked.attrs["artifacts"]
        for item in kept.values():
            assert item.kind != "weft-program" or set(members_of(item) or ()) <= set(kept)
        assert_values(parsed(extract(merged, "main")), main=ONE)
        assert_values(parsed(extract(merged, "f")), f=TWO)
        again = merge(extract(merged, "f"), extract(merged, "main")).module
        assert_values(again, main=ONE, f=TWO)


def test_a_merged_executable_shows_and_exports_every_program(tmp_path: Path) -> None:
    """H8: not the last one alone; machine code keeps no text that it was made from."""
    first, second = (weft.lower(module, executor="vm", stop="link") for module in (First, Second))
    listing = weft.load_module(merge(first, second).module, trust=True).source("vm")
    assert all(f"{name}(r0 x)" in listing for name in ("main", "f"))
    native = weft.load_module(weft.lower(First, stop="link"), trust=True)
    with pytest.raises(weft.ArtifactError, match="W806: no 'llvm' source: a compiled module holds code"):
        native.source()
    caller = weft.compile(merge(Caller, weft.lower(Second, stop="link")).module, trust=True)
    assert "define" in caller.source()
    made = [
        weft.lower(module, weft.Config("llvm", executor="aot", package={"name": name}).to_target(), stop="codegen")
        for module, name in ((First, "one"), (Second, "two"))
    ]
    folder = weft.load_module(merge(*made).module, trust=True).export(tmp_path / "both")
    assert {"one.h", "two.h"} <= {path.name for path in folder.rglob("*")}


def test_what_is_taken_apart_is_what_was_put_together() -> None:
    first, second = (weft.lower(module, stop="link") for module in (First, Second))
    merged = merge(first, second).module
    for name, whole in (("main", first), ("f", second)):
        part = extract(merged, name)
        assert len(part.attrs["artifacts"]) == len(whole.attrs["artifacts"])
        assert set(implementations(part.attrs["artifacts"])) == {name}
    assert weft.structural_equal(extract(merged, "main", "f"), merged)
    with pytest.raises(weft.PassError) as caught:
        extract(merged, "absent")
    assert caught.value.code == "W510"


def test_one_function_is_taken_out_of_a_program_of_several() -> None:
    both = merge(First, Second).module
    compiled = weft.lower(both, stop="link")
    alone = parsed(extract(compiled, "f"))
    assert_values(alone, f=TWO)
    assert_values(merge(alone, extract(compiled, "main")).module, main=ONE, f=TWO)


def test_the_same_program_is_there_once() -> None:
    module = weft.lower(First, stop="link")
    merged = merge(module, parsed(module)).module
    assert len(merged.attrs["artifacts"]) == len(module.attrs["artifacts"])
    assert_values(merged, main=ONE)


def test_public_functions_of_one_name_are_refused_or_renamed() -> None:
    """B7, H8: their declarations are equal, their code is not."""
    first, second = (weft.lower(m, stop="link") for m in (First, named(Second, "f", "main")))
    with pytest.raises(weft.PassError, match="different public function 'main'") as caught:
        merge(first, second)
    assert caught.value.code == "W530"
    assert "they are compiled to different code" in caught.value.notes
    result = merge(first, second, public="rename")
    assert result.mapping == {"main": "main_1"}
    assert_values(parsed(result.module), main=ONE, main_1=TWO)
    once_more = merge(result.module, named_main(), public="rename")
    assert_values(parsed(once_more.module), main=ONE, main_1=TWO, main_2=X + X)


def named_main() -> weft.IRModule:
    x = "x: R.Tensor((2, 4), 'float32')"
    text = f"from weft.script import relax as R\n@R.function\ndef main({x}):\n    return R.add(x, x)\n"
    return weft.lower(weft.parse(text), executor="vm", stop="link")


def test_functions_that_programs_provide_under_one_name_are_refused_when_loading() -> None:
    """H8: artifacts put together by hand."""
    first, second = (weft.lower(m, stop="link") for m in (First, named(Second, "f", "main")))
    with pytest.raises(weft.ArtifactError, match="both provide 'main'") as caught:
        merge_artifacts(first.attrs["artifacts"], second.attrs["artifacts"])
    assert caught.value.code == "W814"


def test_merged_programs_are_saved_and_pickled(tmp_path: Path) -> None:
    first, second = weft.lower(First, stop="link"), weft.lower(Second, executor="vm", stop="link")
    exe = weft.load_module(merge(first, second).module, trust=True)
    exe.save(tmp_path / "both.weft")
    for again in (weft.load(tmp_path / "both.weft"), pickle.loads(pickle.dumps(exe))):
        assert weft.structural_equal(again.module, exe.module)
        assert_values(again.module, main=ONE, f=TWO)
        np.testing.assert_array_equal(again["f"](X), TWO)


def test_the_names_of_what_was_taken_out_are_saved(tmp_path: Path) -> None:
    """H8: a file shows what the module showed."""
    alone = extract(weft.lower(merge(First, Second).module, stop="link"), "f")
    renamed = merge(weft.lower(named(First, "main", "f"), stop="link"), alone, public="rename").module
    for module, wanted in ((alone, {"f": TWO}), (renamed, {"f": ONE, "f_1": TWO})):
        weft.load_module(module, trust=True).save(tmp_path / "part.weft")
        assert_values(weft.load(tmp_path / "part.weft").module, **wanted)


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_a_program_calls_a_function_that_was_compiled_before(executor: str, tmp_path: Path) -> None:
    """H8: the one that it was compiled with, whatever it is called afterwards and whatever is registered."""
    weft.register_func("f", lambda x: x * 0)
    try:
        mixed = merge(merge(weft.lower(First, stop="link"), weft.lower(Second, stop="link")).module, Caller).module
        with pytest.raises(weft.ArtifactError) as caught:
            weft.compile(mixed)
        assert caught.value.code == "W830"
        exe = weft.compile(mixed, trust=True, executor=executor)
        for module in (exe.module, weft.lower(mixed, executor=executor, stop="link", trust=True)):
            assert_values(parsed(module), main=ONE, f=TWO, g=TWO + X)
        exe.save(tmp_path / "mixed.weft")
        np.testing.assert_array_equal(weft.load(tmp_path / "mixed.weft")["g"](X), TWO + X)
        alone = extract(exe.module, "g")
        assert_values(parsed(alone), g=TWO + X)
        assert set(implementations(alone.attrs["artifacts"])) == {"g"}
        other = weft.lower(named(First, "main", "f"), stop="link")
        renamed = merge(other, extract(exe.module, "f", "g"), public="rename")
        assert_values(parsed(renamed.module), f=ONE, f_1=TWO, g=TWO + X)
        np.testing.assert_array_equal(weft.interpret(mixed, trust=True)["g"](X), TWO + X)
    finally:
        unregister_func("f")


def test_one_caller_of_two_functions_of_a_name_is_two_functions() -> None:
    """H8: what a program calls is part of what it does, so neither caller is taken for the other."""
    first, second = (
        extract(weft.compile(merge(weft.lower(module, stop="link"), Caller).module, trust=True).module, "g")
        for module in (named(First, "main", "f"), Second)
    )
    with pytest.raises(weft.PassError, match="W530: both modules have a different public function 'g'"):
        merge(first, second)
    assert_values(merge(first, second, public="rename").module, g=ONE + X, g_1=TWO + X)


def test_new_functions_follow_a_compiled_one_that_is_renamed() -> None:
    """B6, H8: its declaration, the calls, and what is run."""
    mixed = merge(weft.lower(Second, stop="link"), Caller).module
    result = merge(weft.lower(named(First, "main", "f"), stop="link"), mixed, public="rename")
    assert result.mapping == {"f": "f_1", "g": "g"}
    declared = result.module["f_1"]
    assert isinstance(declared, ExternFunc)
    assert declared.name == "f_1"
    np.testing.assert_array_equal(weft.interpret(result.module, trust=True)["g"](X), TWO + X)
    exe = weft.compile(parsed(result.module), trust=True)
    assert_values(exe.module, f=ONE, f_1=TWO, g=TWO + X)


@pytest.mark.parametrize("phase", ["codegen", "link"])
def test_a_compiled_module_compiles_to_what_it_is_and_to_nothing_else(phase: str) -> None:
    """E5: another machine or executor is refused, not overlooked."""
    module = merge(weft.lower(First, stop=phase), weft.lower(Second, executor="vm", stop=phase)).module
    for start in (None, "link"):
        made = weft.compile(module, "llvm", start=start, trust=True)
        assert isinstance(made, weft.Executable)
        np.testing.assert_array_equal(made["main"](X), ONE)
        for target, executor, code in (("c", None, "W736"), (None, "graph", "W739")):
            with pytest.raises(weft.TargetError) as caught:
                weft.compile(module, target, executor=executor, start=start, trust=True)
            assert caught.value.code == code
    with pytest.raises(weft.ArtifactError):
        weft.compile(module)


def test_code_of_this_process_is_refused_for_a_target_that_cannot_call_it() -> None:
    mixed = merge(weft.lower(Second, stop="link"), Caller).module
    for target in ("c", "llvm -mcpu=cortex-m4"):
        with pytest.raises(weft.TargetError) as caught:
            weft.compile(mixed, target, trust=True)
        assert caught.value.code == "W736"


@pytest.mark.parametrize("target", ["c", "llvm -mcpu=cortex-m4"])
@pytest.mark.parametrize("phase", ["codegen", "link"])
def test_libraries_for_c_are_merged_where_their_names_differ(target: str, phase: str, tmp_path: Path) -> None:
    """H8: models that were given one name are refused, unless they may be renamed; files for builds stay beside."""
    made = [
        weft.lower(module, weft.Config(target, package={"name": name}).to_target(), stop=phase)
        for module, name in ((First, "one"), (Second, "two"))
    ]
    merged = parsed(merge(*made).module)
    names = merged.attrs["artifacts"].names
    assert set(made[0].attrs["artifacts"]) < set(names)
    provided = {symbol.name for item in merged.attrs["artifacts"].values() for symbol in item.provides}
    assert {"one_run", "two_run"} <= provided
    if target == "c":
        assert {"Makefile", "Makefile_1", "metadata.json", "metadata_1.json"} <= set(names)
    other = weft.lower(Second, weft.Config(target, package={"name": "one"}).to_target(), stop=phase)
    with pytest.raises(weft.ArtifactError) as caught:
        merge(made[0], other)
    assert caught.value.code == "W814"
    assert 'public="rename"' in (caught.value.hint or "")
    renamed = merge(made[0], other, public="rename").module.attrs["artifacts"]
    assert {"one_run", "one_1_run"} <= {symbol.name for item in renamed.values() for symbol in item.provides}


RUN = """
import sys, weft
from pathlib import Path
import numpy as np
from weft.ir import extract, merge
from weft.transform import Pass
Pass.__call__ = None  # no pass may run
x = np.arange(8, dtype="float32").reshape(2, 4)
parts = [weft.parse(path.read_text()) for path in sorted(Path(sys.argv[1]).glob("part*.py"))]
whole = parts[0]
for part in parts[1:]:
    whole = merge(whole, part).module
exe = weft.load_module(whole, trust=True)
print({name: exe[name](x).tolist() for name in exe})
for name in whole:
    Path(sys.argv[1], f"apart_{name}.py").write_text(extract(whole, name).script())
print("weft.codegen.backends.llvm.program" in sys.modules)
"""


def test_modules_are_put_together_and_taken_apart_in_another_process(tmp_path: Path) -> None:
    """H1, H8, A8: one program of each executor."""
    wanted = {}
    for executor, phase in itertools.product(EXECUTORS, ("codegen", "link")):
        name = f"{executor}_{phase}"
        model, old, value = (First, "main", ONE) if phase == "link" else (Second, "f", TWO)
        module = weft.lower(named(model, old, name), executor=executor, stop=phase)
        (tmp_path / f"part_{name}.py").write_text(module.script())
        wanted[name] = value.tolist()
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "src"})
    results, compiler = done.stdout.splitlines()
    assert (eval(results), compiler) == (wanted, "False")
    for name, value in wanted.items():
        part = weft.parse((tmp_path / f"apart_{name}.py").read_text())
        assert isinstance(part, weft.IRModule)
        assert_values(part, **{name: np.array(value)})


@pytest.mark.parametrize("uses", [{"f": ["absent.json", "f"]}, {"f": ["program.json", "f"]}, {"f": 3}, [1], 3])
def test_a_program_that_uses_what_is_not_there_is_refused(uses: object) -> None:
    module = weft.lower(First, stop="link")
    artifacts = module.attrs["artifacts"]
    item = artifacts["program.json"]
    text = item.data.decode()
    assert text.startswith("{")
    wrong = Artifact(item.kind, item.name, f'{{"uses":{str(uses).replace(chr(39), chr(34))},{text[1:]}'.encode())
    kept = [other for other in artifacts.values() if other is not item]
    with pytest.raises(weft.ArtifactError) as caught:
        weft.load_module(module.with_attr("artifacts", ArtifactSet([*kept, wrong])), trust=True)
    assert caught.value.code == "W823"


def test_symbols_of_programs_do_not_meet_and_others_do() -> None:
    def provides(name: str, data: bytes) -> Artifact:
        return Artifact("object", name, data, provides=(Symbol("k"),))

    alone = [ArtifactSet([provides(f"{n}.o", n.encode())]) for n in "ab"]
    with pytest.raises(weft.ArtifactError) as caught:
        merge_artifacts(alone[0], alone[1])
    assert caught.value.code == "W814"
    programs = [
        ArtifactSet([*item.values(), Artifact("weft-program", "program.json", b'{"objects":["%s.o"]}' % n.encode())])
        for n, item in zip("ab", alone, strict=True)
    ]
    merged = merge_artifacts(programs[0], programs[1])
    assert {"a.o", "b.o", "program.json", "program_1.json"} == set(merged)
    merged.link_check()


def test_a_program_does_not_find_what_another_one_provides() -> None:
    """H8: each is loaded with its own artifacts, and with those of none."""

    def program(name: str, *objects: Artifact) -> ArtifactSet:
        data = f'{{"artifacts": {[item.name for item in objects]}}}'.replace("'", '"').encode()
        return ArtifactSet([*objects, Artifact("weft-program", f"{name}.json", data)])

    has = Artifact("object", "a.o", b"a", provides=(Symbol("k"),))
    wants = Artifact("object", "b.o", b"b", needs=(Symbol("k"),))
    merge_artifacts(program("one", has, wants), program("two")).link_check()
    merge_artifacts(ArtifactSet([has]), program("two", wants)).link_check()
    with pytest.raises(weft.ArtifactError, match=r"W815: nothing provides k \(for b\.o\)"):
        merge_artifacts(program("one", has), program("two", wants)).link_check()


def test_a_declaration_meets_its_code_but_not_other_code() -> None:
    """H8: a declaration that nothing provides is shared with an equal one that is."""
    compiled = weft.lower(Second, stop="link")
    for result in (merge(Caller, compiled), merge(compiled, Caller)):
        assert isinstance(result.module["f"], ExternFunc)
        np.testing.assert_array_equal(weft.compile(result.module, trust=True)["g"](X), TWO + X)
