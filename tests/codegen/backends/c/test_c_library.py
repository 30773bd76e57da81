"""Source trees of C: files by label, memory pools, devices, several models in one library."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.embedded import network
from tests.plugins import toy_accelerator

import weft
from weft import Artifact, ArtifactSet, Target, TargetError, transform
from weft.codegen.backends.c import SourceTree, generate, source_tree
from weft.codegen.backends.c.memory import Pool, greedy, place
from weft.codegen.backends.generators import generate_artifacts
from weft.ir import IRModule
from weft.runtime import loading
from weft.runtime.artifact import Symbol
from weft.transform.memory.pack_memory import Request

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O1", "-fPIC"]
STRICT += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
TWO = "a: c; b: c"


def parsed(text: str) -> IRModule:
    found = weft.parse(text)
    assert isinstance(found, IRModule)
    return found


def lowered(module: IRModule, target: str = "c") -> IRModule:
    return transform.default_pipeline(Target(target))(module)


def library(tree: SourceTree, folder: Path, *more: Path) -> ctypes.CDLL:
    """The tree as a shared object, every file compiled strictly and by itself."""
    tree.write(folder)
    objects = []
    for path in [*(folder / source for source in tree.sources), *more]:
        objects.append(folder / f"{path.stem}.o")
        command = ["gcc", *STRICT, "-I", folder / "include", "-I", folder / "src", "-c", path, "-o", objects[-1]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    shared = folder / "lib.so"
    subprocess.run(["gcc", "-shared", "-fsanitize=undefined", *objects, "-lm", "-o", shared], check=True)
    return ctypes.CDLL(str(shared))


def call(
    loaded: ctypes.CDLL,
    model: str,
    inputs: list[np.ndarray],
    outputs: list[np.ndarray],
    sizes: list[int],
    devices: list[int] | None = None,
) -> int:
    """One call of a model's entry, with a block of memory for each pool."""
    blocks = [np.zeros(size + 16, "uint8") for size in sizes]
    pools = [block.ctypes.data + -block.ctypes.data % 16 for block in blocks]
    structs = ([x.ctypes.data for x in inputs], [x.ctypes.data for x in outputs], pools, devices or [0])
    return getattr(loaded, f"{model}_run")(*((ctypes.c_void_p * max(1, len(item)))(*item) for item in structs))


@pytest.fixture(scope="module")
def digits() -> tuple[IRModule, np.ndarray, list[np.ndarray]]:
    module = network.divided(2)
    image = network.images(2)
    return module, image, list(weft.interpret(module)["main"](image))


LABELS = "low_power_cpu: c; inference_cpu: c"


def test_each_label_has_a_file_of_its_own(digits, tmp_path: Path) -> None:
    """G1, G4: the tree compiles strictly file by file, calls no allocator, states its memory in the header."""
    module, image, expected = digits
    tree = source_tree(lowered(module, LABELS), LABELS, name="digits")
    assert list(tree.files) == [
        "include/digits.h",
        "src/digits_ops.h",
        "src/digits_data.c",
        "src/digits_main.c",
        "src/digits_ops_low_power_cpu.c",
        "src/digits_ops_inference_cpu.c",
        "Makefile",
        "CMakeLists.txt",
        "metadata.json",
    ]
    assert "digits_conv2d(" in tree.files["src/digits_ops_inference_cpu.c"]
    assert "digits_conv2d(" not in tree.files["src/digits_ops_low_power_cpu.c"]
    outputs = [np.empty_like(item) for item in expected]
    loaded = library(tree, tmp_path)
    size = tree.metadata["memory"]["workspace"]
    assert f"#define DIGITS_WORKSPACE_BYTES {size}" in tree.files["include/digits.h"]
    assert call(loaded, "digits", [image], outputs, [size]) == 0
    for got, want in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    objects = sorted(tmp_path.glob("*.o"))
    symbols = subprocess.run(["nm", "-u", *objects], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(malloc|calloc|realloc|free|alloca)\b", symbols)


def test_the_makefile_builds_the_library(digits, tmp_path: Path) -> None:
    """G4: with the flags of each part."""
    target = "low_power_cpu: c -mcpu=x86-64; inference_cpu: c -mcpu=x86-64-v3"
    tree = source_tree(lowered(digits[0], target), target, name="digits")
    tree.write(tmp_path)
    done = subprocess.run(["make", "-C", tmp_path, "CROSS="], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "-c src/digits_ops" in line]
    assert sorted(re.findall(r"-march=(\S+) .*_ops_(\w+)\.c", " ".join([f"{line}\n" for line in lines]))) == [
        ("x86-64", "low_power_cpu"),
        ("x86-64-v3", "inference_cpu"),
    ]
    assert (tmp_path / "libdigits.a").is_file()
    option = 'src/digits_ops_inference_cpu.c PROPERTIES COMPILE_OPTIONS "-march=x86-64-v3"'
    assert option in tree.files["CMakeLists.txt"]


def test_a_tree_is_a_set_of_artifacts_that_can_be_exported(digits, tmp_path: Path) -> None:
    """C4: sources as artifacts, exported to a shared object, loaded, called."""
    module, image, expected = digits
    tree = source_tree(lowered(module, LABELS), LABELS, name="digits")
    artifacts = ArtifactSet.from_bytes(tree.artifacts().to_bytes())
    assert [item.kind for item in artifacts.values()].count("c") == 4
    assert Target(artifacts["digits_ops_inference_cpu.c"].target) == Target("c")
    assert artifacts["digits_main.c"].provenance["functions"]["digits"].keys() == set(lowered(module, LABELS))
    path = artifacts.export(tmp_path / "digits.so")
    run = loading.load_library(path, artifacts["digits_main.c"].provides)["digits_run"]
    outputs = [np.empty_like(item) for item in expected]
    workspace = np.zeros(tree.metadata["memory"]["workspace"] + 16, "uint8")
    pointers = [[image], outputs, [workspace[-workspace.ctypes.data % 16 :]], [workspace]]
    structs = [(ctypes.c_void_p * len(items))(*(item.ctypes.data for item in items)) for items in pointers]
    assert run(*structs) == 0
    np.testing.assert_array_equal(outputs[0], expected[0])


# Memory.


def test_scratch_memory_of_kernels_shares_the_arena_of_tensors(digits) -> None:
    """B18: planned together, they need less than planned apart."""
    program = source_tree(lowered(digits[0], LABELS), LABELS, name="digits")
    together = program.metadata["memory"]["workspace"]
    operators = program.metadata["models"]["digits"]["memory"]["operators"]
    scratch = max(item["scratch"] for item in operators)
    assert scratch > 0
    sizes: list[int] = []

    def watching(requests):
        brief = [request for request in requests if request.first == request.last]
        assert sorted(item.size for item in brief) == sorted(item["scratch"] for item in operators if item["scratch"])
        sizes.append(greedy([request for request in requests if request.first != request.last])[1])
        return greedy(requests)

    source_tree(lowered(digits[0], LABELS), LABELS, name="digits", planner=watching)
    assert together < sizes[0] + scratch


POOLS = "config -memory.sram.bytes={} -memory.sram.rw=low_power_cpu,inference_cpu {} {{ {} }}"


def test_tensors_live_in_pools_and_overflow_is_an_error_with_numbers(digits, tmp_path: Path) -> None:
    """G3: SRAM of 16 KiB holds the network for two images, of 4 KiB it does not; another pool takes what is left."""
    module, image, expected = digits
    fits = POOLS.format("16K", "", LABELS)
    tree = source_tree(lowered(module, fits), fits, name="digits")
    needed = tree.metadata["memory"]["sram"]
    assert 8000 < needed <= 16384
    assert "uint8_t *sram; /* DIGITS_SRAM_BYTES bytes, aligned to 16 */" in tree.files["include/digits.h"]
    small = POOLS.format("4K", "", LABELS)
    with pytest.raises(TargetError) as caught:
        source_tree(lowered(module, small), small, name="digits")
    assert caught.value.code == "W746"
    found = re.search(r"need (\d+) bytes at one time, 'sram' has 4096 bytes", caught.value.message)
    assert found
    assert 4096 < int(found.group(1)) <= needed

    both = POOLS.format("4K", "-memory.dram.bytes=1M", LABELS)
    tree = source_tree(lowered(module, both), both, name="digits")
    sizes = tree.metadata["memory"]
    assert list(sizes) == ["sram", "dram"]
    assert 0 < sizes["sram"] <= 4096
    assert 0 < sizes["dram"] <= needed
    outputs = [np.empty_like(item) for item in expected]
    assert call(library(tree, tmp_path), "digits", [image], outputs, list(sizes.values())) == 0
    np.testing.assert_allclose(outputs[1], expected[1], rtol=1e-5, atol=1e-5)


def test_a_part_writes_only_the_pools_that_it_may(digits) -> None:
    """G3: access rights by label; constants need room in memory that is only read."""
    module = digits[0]
    fast = "-memory.tcm.bytes=1M -memory.tcm.rw=inference_cpu "
    target = f"config {fast} -memory.sram.bytes=1M {{ {LABELS} }}"
    sizes = source_tree(lowered(module, target), target, name="digits").metadata["memory"]
    assert min(sizes.values()) > 0
    alone = f"config {fast} {{ {LABELS} }}"
    with pytest.raises(TargetError, match=r"no memory pool that .*low_power_cpu.* may write is there") as caught:
        source_tree(lowered(module, alone), alone, name="digits")
    assert caught.value.code == "W746"
    flash = f"config -memory.flash.bytes=64K -memory.flash.ro -memory.sram.bytes=1M {{ {LABELS} }}"
    with pytest.raises(TargetError, match=r"the constants need 69\d\d\d bytes, 'flash' has 65536") as caught:
        source_tree(lowered(module, flash), flash, name="digits")
    assert caught.value.code == "W746"
    enough = flash.replace("64K", "128K")
    assert list(source_tree(lowered(module, enough), enough, name="digits").metadata["memory"]) == ["sram"]


def test_requests_go_to_the_first_pool_with_room() -> None:
    """G2, G3: the planner is asked for each pool and knows nothing of pools."""
    requests = [Request(64, 0, 1), Request(32, 0, 1), Request(16, 0, 1)]
    users = [frozenset("a")] * 3
    pools = [Pool("small", 64), Pool("other", None, frozenset("b")), Pool("large", 100)]
    placed = place(requests, users, pools)
    assert [pool for pool, _ in placed.places] == ["small", "large", "large"]
    assert placed.sizes == {"small": 64, "other": 0, "large": 48}
    with pytest.raises(TargetError, match=r"need 112 bytes at one time, 'small' has 64 bytes"):
        place(requests, users, pools[:2])


# Devices.

DEVICE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"target": "acc"})
        assert x[0] < T.float32(100), "too large"
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @T.prim_func(private=True)
    def more(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.call_tir(cls.double, (x,), out_ty=R.Tensor((4,), "float32"))
        b = R.call_tir(cls.more, (a,), out_ty=R.Tensor((4,), "float32"))
        c = R.call_tir(cls.double, (b,), out_ty=R.Tensor((4,), "float32"))
        return c
"""
_TELL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def device(events: list[str], failing: str = "", label: str = "") -> tuple[ctypes.Array, list[object]]:
    """A device that writes down what it is told, after its label."""
    names = ("activate", "open", "close", "deactivate")

    def told(name: str):
        def tell(context: int) -> int:
            events.append(label + name)
            return 77 if name == failing else 0

        return _TELL(tell)

    functions = [told(name) for name in names]
    block = (ctypes.c_void_p * 5)(0, *(ctypes.cast(item, ctypes.c_void_p).value for item in functions))
    return block, functions


def test_calls_of_devices_bracket_their_operators(tmp_path: Path) -> None:
    """G5: activate, open and close around each operator, deactivate, also when something fails."""
    with toy_accelerator.installed("acc-kind"):
        target = "host: c; acc: acc-kind"
        module = transform.LowerToMemory()(parsed(DEVICE))
        tree = source_tree(module, target, name="model")
    assert "struct model_device *acc;" in tree.files["include/model.h"]
    loaded = library(tree, tmp_path)
    x, out = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    size = [tree.metadata["memory"]["workspace"]]
    cases = [
        ("", 1, 0, ["activate", "open", "close", "open", "close", "deactivate"]),
        ("activate", 1, 77, ["activate"]),
        ("open", 1, 77, ["activate", "open", "deactivate"]),
        ("close", 1, 77, ["activate", "open", "close", "deactivate"]),
        ("deactivate", 1, 77, ["activate", "open", "close", "open", "close", "deactivate"]),
        ("", 1000, 1, ["activate", "open", "close", "deactivate"]),
    ]
    for failing, scale, code, expected in cases:
        events: list[str] = []
        block, keep = device(events, failing)
        x[0] = 0 if scale == 1 else scale
        assert call(loaded, "model", [x], [out], size, [ctypes.addressof(block)]) == code, failing
        assert events == expected, failing
        del keep
    x[0] = 0
    assert call(loaded, "model", [x], [out], size) == 0  # no device: nothing to tell
    np.testing.assert_array_equal(out, (x * 2 + 1) * 2)


def test_several_devices_are_switched_off_in_the_reverse_order(tmp_path: Path) -> None:
    """G5: also when one of them cannot be switched on; each operator is for its own device."""
    two = DEVICE.replace(
        '    def more(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n',
        (
            '    def more(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n'
            '        T.func_attr({"target": "other"})\n'
        ),
    )
    with toy_accelerator.installed("acc-kind"), toy_accelerator.installed("other-kind"):
        target = "host: c; acc: acc-kind; other: other-kind"
        tree = source_tree(transform.LowerToMemory()(parsed(two)), target, name="model")
    loaded = library(tree, tmp_path)
    x, out, size = np.zeros(4, "float32"), np.zeros(4, "float32"), [tree.metadata["memory"]["workspace"]]
    steps = ["a open", "a close", "o open", "o close", "a open", "a close"]
    expected = {
        "": ["a activate", "o activate", *steps, "o deactivate", "a deactivate"],
        "activate": ["a activate", "o activate", "a deactivate"],
    }
    for failing, told in expected.items():
        events: list[str] = []
        first, keep = device(events, label="a ")
        second, kept = device(events, failing, "o ")
        both = [ctypes.addressof(first), ctypes.addressof(second)]
        assert call(loaded, "model", [x], [out], size, both) == (77 if failing else 0)
        assert events == told
        del keep, kept


def test_a_kernel_of_a_kind_with_its_own_code_is_refused() -> None:
    """B10: the code generator of the kind must run first."""
    with toy_accelerator.installed("acc-kind") as kind:
        kind.codegen(toy_accelerator.compile_functions)
        module = transform.LowerToMemory()(parsed(DEVICE))
        with pytest.raises(TargetError, match="kernel 'double' belongs to part 'acc'") as caught:
            source_tree(module, "host: c; acc: acc-kind", name="model")
        assert caught.value.code == "W747"
        with pytest.raises(TargetError, match=r"artifact 'toy\.bin' of kind 'toy-program' cannot be part of C sources"):
            source_tree(generate_artifacts(module, "host: c; acc: acc-kind"), "host: c; acc: acc-kind", name="model")


def test_sources_of_another_code_generator_join_the_tree(tmp_path: Path) -> None:
    """B19, G5: the host calls the driver that it gives, and hands on what it fails with."""
    driver = (
        "#include <stdint.h>\nint32_t double_(const float *x, float *y);\n"
        "int32_t double_(const float *x, float *y) {\n"
        "  for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];\n  return x[0] < 100 ? 0 : -5;\n}\n"
    )
    symbol = Symbol("double_", "int32_t double_(const float *x, float *y)")
    with toy_accelerator.installed("acc-kind") as kind:
        kind.codegen(lambda module, part: Artifact("c", "driver.c", driver.encode(), provides=(symbol,)))
        module = transform.LowerToMemory()(parsed(DEVICE.replace("double", "double_")))
        module = generate_artifacts(module, "host: c; acc: acc-kind")
        tree = source_tree(module, "host: c; acc: acc-kind", name="model")
    assert tree.files["src/driver.c"] == driver
    made = tree.artifacts()
    assert made["driver.c"].provides == made["model_main.c"].needs == (symbol,)
    made.link_check()
    loaded = library(tree, tmp_path)
    x, out = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    size = [tree.metadata["memory"]["workspace"]]
    events: list[str] = []
    block, _keep = device(events)
    assert call(loaded, "model", [x], [out], size, [ctypes.addressof(block)]) == 0
    np.testing.assert_array_equal(out, (x * 2 + 1) * 2)
    assert events.count("open") == 2
    x[0] = 1000
    assert call(loaded, "model", [x], [out], size, [ctypes.addressof(block)]) == -5


# Several models.


EXTERN = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.evaluate(T.call_extern("int32", "arm_thing_f32", y.data, x.data, 4))

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.call_tir(cls.copy, (x,), out_ty=R.Tensor((4,), "float32"))
        b = R.call_dps_packed("vendor_step", (a,), out_ty=R.Tensor((4,), "float32"))
        return b
"""


def test_sources_say_which_functions_the_linker_has_to_find() -> None:
    """H2: declared functions of kernels and of the entry, with the prototypes that the C declares."""
    tree = weft.compile(parsed(EXTERN), "c", externs=("arm_thing_f32", "vendor_step"))
    assert isinstance(tree, ArtifactSet)
    needs = {name: item.needs for name, item in tree.items() if item.needs}
    assert needs == {
        "model_main.c": (Symbol("vendor_step", "void vendor_step(void *, void *)"),),
        "model_ops_host.c": (Symbol("arm_thing_f32", "int32_t arm_thing_f32(void *, void *, int32_t)"),),
    }
    for name, item in tree.items():
        assert all(f"extern {symbol.signature};" in item.data.decode() for symbol in item.needs), name
    with pytest.raises(weft.ArtifactError, match=r"W815: nothing provides arm_thing_f32 \(for model_ops_host.c\)"):
        ArtifactSet([tree["model_ops_host.c"]]).link_check()


@pytest.mark.parametrize("host", ["c", "llvm"])
def test_a_code_generator_that_fails_is_named(host: str) -> None:
    def broken(module: IRModule, part: Target) -> Artifact:
        raise KeyError("lost")

    with toy_accelerator.installed("acc-kind") as kind:
        kind.codegen(broken)
        where = r"in the code generator of acc-kind -lanes=8 \(part 'acc'\): KeyError: 'lost'"
        with pytest.raises(weft.PassError, match=f"W520: pass generate-code failed {where}"):
            weft.compile(parsed(DEVICE), f"host: {host}; acc: acc-kind -lanes=8")


def test_a_lowering_hook_that_fails_is_named() -> None:
    def broken(module: IRModule, function: object) -> tuple[IRModule, object]:
        raise KeyError("lost")

    text = """
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return R.add(x, x, target="acc")
"""
    with toy_accelerator.installed("acc-kind") as kind:
        kind.lowering(broken)
        where = r"in the lowering hook of acc-kind \(part 'acc'\) for '\w+': KeyError: 'lost'"
        with pytest.raises(weft.PassError, match=f"W520: pass run-lowering-hooks failed {where}"):
            weft.compile(weft.parse(text), "host: llvm; acc: acc-kind")


def test_two_models_share_memory_for_the_larger_one(digits, tmp_path: Path) -> None:
    """G6: one library, one arena that is the maximum of both; the metadata says what each needs."""
    module, image, expected = digits
    small = transform.LowerToMemory()(parsed(DEVICE))
    labels = "low_power_cpu: c; inference_cpu: c; acc: c"
    models = {"digits": lowered(module, labels), "tiny": small}
    tree = source_tree(models, labels, name="board")
    described = json.loads(tree.files["metadata.json"])
    entries = described["models"]
    sizes = {model: entries[model]["memory"]["functions"]["main"]["pools"]["workspace"] for model in models}
    assert described["version"] == 1
    assert described["memory"]["workspace"] == max(sizes.values()) < sum(sizes.values())
    assert Target(described["target"]) == Target(labels)
    assert described["models"]["tiny"]["inputs"] == [{"name": "x", "dtype": "float32", "shape": [4], "bytes": 16}]
    assert f"#define BOARD_WORKSPACE_BYTES {max(sizes.values())}" in tree.files["include/board.h"]
    loaded = library(tree, tmp_path)
    workspace = [described["memory"]["workspace"]]
    outputs = [np.empty_like(item) for item in expected]
    x, out = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    for _ in range(2):
        assert call(loaded, "digits", [image], outputs, workspace) == 0
        assert call(loaded, "tiny", [x], [out], workspace) == 0
    np.testing.assert_array_equal(outputs[0], expected[0])
    np.testing.assert_array_equal(out, (x * 2 + 1) * 2)
    archive = tree.artifacts().to_bytes(metadata=tree.metadata)
    assert ArtifactSet.contents(archive)[2] == described


# Calls of functions.


def test_a_kernel_is_compiled_for_every_part_that_calls_it(tmp_path: Path) -> None:
    """B17: its name tells the label; sizes of a call are constants in it."""
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = x[i] * T.float32(2)

    @R.function(private=True)
    def one(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"target": "a"})
        y = R.call_tir(cls.double, (x,), out_ty=R.Tensor(("n",), "float32"))
        return y

    @R.function(private=True)
    def two(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        R.func_attr({"target": "b"})
        y = R.call_tir(cls.double, (x,), out_ty=R.Tensor(("n",), "float32"))
        z = cls.one(y)
        return y, z

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tuple(
        R.Tensor((4,), "float32"), R.Tensor((3,), "float32"), R.Tensor((4,), "float32")
    ):
        a = cls.one(x)
        b = cls.one(y)
        c = cls.two(a)
        d = c[1]
        return a, b, d
"""
    module = transform.LowerToMemory()(parsed(text))
    tree = source_tree(module, TWO, name="m")
    names = {label: re.findall(r"^int32_t (m_\w+)\(", tree.files[f"src/m_ops_{label}.c"], re.M) for label in "ab"}
    assert names == {"a": ["m_double", "m_double_1"], "b": ["m_double__b"]}
    x, y = np.arange(4, dtype="float32"), np.arange(3, dtype="float32")
    outputs = [np.zeros(4, "float32"), np.zeros(3, "float32"), np.zeros(4, "float32")]
    assert call(library(tree, tmp_path), "m", [x, y], outputs, [tree.metadata["memory"]["workspace"]]) == 0
    for got, want in zip(outputs, (2 * x, 2 * y, 8 * x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_recursion_is_refused() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def again(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = cls.again(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = cls.again(x)
        return y
"""
    with pytest.raises(TargetError, match="recursion is not supported") as caught:
        generate(parsed(text))
    assert caught.value.code == "W741"
    assert caught.value.span is not None
    assert caught.value.span.line == 6


@pytest.mark.parametrize(
    ("name", "function", "message"), [("9", "main", "no C name"), ("m", "mian", "no function 'mian'")]
)
def test_names_that_are_none_are_refused(name: str, function: str, message: str) -> None:
    module = transform.LowerToMemory()(parsed(DEVICE.replace('"acc"', '"a"')))
    with pytest.raises(TargetError, match=message) as caught:
        source_tree(module, TWO, name=name, function=function)
    assert caught.value.code == "W743"
