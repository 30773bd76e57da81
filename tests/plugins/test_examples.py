"""The plug-ins of `examples/`, from copies outside of the repository: an accelerator, a library, both together."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded import quantised
from tests.plugins.examples import imported
from tests.script.test_typing import checked

import weft
from weft import Target, TargetError
from weft.codegen.backends.c import source_tree
from weft.codegen.backends.c.memory import greedy
from weft.codegen.backends.generators import generate_artifacts
from weft.ir import IRModule, merge
from weft.transform import InjectDoubleBuffer, InjectSoftwarePipeline, default_pipeline

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NPU, BOTH = "host: llvm; npu: npu", "host: llvm; npu: npu; blas: openblas"
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")


def copied(name: str, folder: Path) -> Path:
    """A copy of an example as an installed package: the modules, and what says which plug-in is in them."""
    package = f"weft_{name}"
    shutil.copytree(EXAMPLES / name / package, folder / package)
    about = folder / f"{package}-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: weft-{name}\nVersion: 0.1.0\n")
    project = (EXAMPLES / name / "pyproject.toml").read_text()
    (entry,) = re.findall(r'entry-points."weft.plugins"\]\n(\w+) = "(\w+)"', project)
    (about / "entry_points.txt").write_text("[weft.plugins]\n{} = {}\n".format(*entry))
    return folder


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """Both plug-ins, imported from copies, and everything of them gone afterwards."""
    folder = copied("openblas", copied("npu", tmp_path_factory.mktemp("site")))
    with imported([str(folder)]) as modules:
        yield modules


@pytest.fixture(scope="module")
def network() -> tuple[IRModule, np.ndarray, np.ndarray]:
    model = quantised.Quantised()
    images = model.images(2)
    return quantised.module(model, 2), images, model.logits(images)


def parsed(text: str) -> IRModule:
    found = weft.parse(text)
    return found if isinstance(found, IRModule) else IRModule({"main": found})


SESSION = """
import numpy as np, weft
from tests.embedded import quantised
from tests.script.test_typing import checked
try:
    weft.Target("npu")
except weft.TargetError as error:
    print(error.code)
print(weft.load_plugins(), weft.load_plugins())
import weft_npu
model = quantised.Quantised()
images = model.images(2)
run = weft.compile(quantised.module(model, 2), "host: llvm; npu: npu")["main"]
print((run(images) == model.logits(images)).all(), sum(weft_npu.cycles.values()) > 1000, weft_npu.__file__)
"""


def test_a_plug_in_is_found_by_its_entry_point_and_changes_no_file(tmp_path: Path) -> None:
    """A4: kind, pass, lowering and code generator come from a package outside; nothing of the repository changes."""
    site = copied("npu", tmp_path / "site")
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "ir").rglob("*.py")}
    environment = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}/src:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "W701",
        "['npu'] []",
        f"True True {site / 'weft_npu' / '__init__.py'}",
    ]
    assert {path: path.stat().st_mtime_ns for path in (ROOT / "ir").rglob("*.py")} == before


def installed_woofles(folder: Path) -> dict[str, str]:
    """The plug-in of the tests as an installed package, and the environment of a process that has it."""
    site = folder / "site"
    about = site / "weft_woofles-0.1.dist-info"
    about.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "plugins" / "woofles" / "weft_woofles.py", site)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-woofles\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text("[weft.plugins]\nwoofles = weft_woofles\n")
    return {**os.environ, "PYTHONPATH": f"{site}:{ROOT}/src"}


def test_a_plug_in_adds_operator_pass_kind_hook_code_generator_and_loader(tmp_path: Path) -> None:
    """A4: from a folder outside of the repository, found by its entry point; no file of weft is touched."""
    environment = installed_woofles(tmp_path)
    command = [sys.executable, ROOT / "tests" / "plugins" / "woofles" / "session.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    code, *lines = done.stdout.splitlines()
    assert code.startswith("W1")  # no such operator, as long as the plug-in is not there
    wanted = ["['woofles']", "2 True", "True True", "True", "True 2", "True woofles -volume=5"]
    assert lines == [*wanted, "woof.bark(x) Three times x."]


def test_the_operators_of_a_package_have_a_page_and_stubs(tmp_path: Path) -> None:
    """From their declarations alone: Markdown for its documentation, and names that type checkers know."""
    environment, work = installed_woofles(tmp_path), tmp_path / "work"
    work.mkdir()

    def weft_ops(*arguments: str) -> str:
        command = [sys.executable, "-m", "weft", "ops", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=work)
        assert done.returncode == 0, done.stderr
        return done.stdout

    page = weft_ops("--page", "weft_woofles")
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# Operators of weft_woofles",
        "## woof.bark",
    ]
    assert "Three times x." in page
    assert 'R.woof.bark(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")' in page
    weft_ops("--stubs", "typings")
    (work / "model.py").write_text(
        "from weft.script import relax as R\n\n\n@R.function\ndef main(x: R.Tensor((2,))):\n"
        "    return R.woof.bark(R.add(x, x))\n\n\nR.woof.bark()\nR.woof.brak(1)\n"
    )
    found = checked(work)
    assert [line.split(": ")[0].rpartition(":")[2] for line in found] == ["9", "10"], found


def test_a_plug_in_that_fails_to_load_is_named(tmp_path: Path) -> None:
    """A4: with what it raised."""
    site = copied("npu", tmp_path / "site")
    (site / "weft_npu" / "__init__.py").write_text("raise ImportError('no such device')\n")
    environment = {**os.environ, "PYTHONPATH": f"{site}:{ROOT}/src"}
    command = [sys.executable, "-c", "import weft; weft.load_plugins()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "W070: the plug-in 'npu' (weft_npu) does not load: ImportError: no such device" in done.stderr


def test_the_plug_in_of_the_accelerator_is_small() -> None:
    """B1: patterns, lowering and code generator are at most 150 lines."""
    assert len((EXAMPLES / "npu" / "weft_npu" / "__init__.py").read_text().splitlines()) <= 150


def test_the_network_on_the_accelerator_is_equal_to_that_on_the_host(plugins, network) -> None:
    """B1, B20: products and the convolution are offloaded, the rest is fused and compiled for the host."""
    module, images, expected = network
    npu = plugins["weft_npu"]
    npu.cycles.clear()
    executable = weft.compile(module, NPU)
    np.testing.assert_array_equal(executable["main"](images), expected)
    assert len(npu.cycles) == 3
    once = dict(npu.cycles)
    np.testing.assert_array_equal(executable["main"](images), expected)
    assert dict(npu.cycles) == {name: 2 * count for name, count in once.items()}

    lowered = default_pipeline(Target(NPU))(module)
    assert [name for name in lowered if name.startswith("npu_kernel")] == ["npu_kernel", "npu_kernel_1", "npu_kernel_2"]
    assert "fused_add_after_conv" in lowered  # fusion on the host goes on as ever
    assert "matmul" not in " ".join(name for name in lowered if not name.startswith("npu"))
    assert 'T.call_extern("int32", "npu_windows", T.address_of(x[0, 0, 0, 0])' in lowered["npu_kernel"].script()


@pytest.mark.parametrize("options", ["-array=5 -sram=512", "-array=16 -sram=65536"])
def test_the_size_of_the_machine_changes_cycles_and_no_bit(plugins, network, options: str) -> None:
    """B20: tiles follow from the target; a larger array is quicker."""
    module, images, expected = network
    cycles = plugins["weft_npu"].cycles
    np.testing.assert_array_equal(weft.compile(module, f"host: llvm; npu: npu {options}")["main"](images), expected)
    cycles.clear()
    weft.compile(module, f"host: llvm; npu: npu {options}")["main"](images)
    spent = sum(cycles.values())
    cycles.clear()
    weft.compile(module, NPU)["main"](images)
    assert (spent < sum(cycles.values())) == (options.startswith("-array=16"))


def test_the_next_tiles_are_copied_while_these_are_multiplied(plugins) -> None:
    """B20: software pipelining gives operands a second place, and then both units of the machine work at once."""
    text = MAIN.format((32, 256), "int8", (256, 32), "int8", "R.matmul(x, w, out_dtype='int32')")
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((32, 256), (256, 32)))
    npu, spent = plugins["weft_npu"], []
    for buffers in (1, 2):
        npu.cycles.clear()
        got, want = both_ways(text, x, w, f"host: llvm; npu: npu -sram=65536 -buffers={buffers}")
        np.testing.assert_array_equal(got, want)
        spent.append(sum(npu.cycles.values()))
    tiles, load, store, multiply = 16, 2 * 8 * 256 // 16, 4 * 8 * 8 // 16, 256 + 2 * 8 - 2
    assert spent[0] == tiles * (load + multiply + store)
    assert max(tiles * multiply, tiles * (load + store)) <= spent[1] <= load + tiles * (multiply + store)


@pytest.mark.parametrize(("inner", "sram"), [(16, 4096), (256, 4096), (256, 512)])
def test_more_tiles_let_more_run_at_once_and_change_no_bit(plugins, inner: int, sram: int) -> None:
    """B20: with three places sums are stored while the next ones are made, where one multiplication makes them."""
    text = MAIN.format((64, inner), "int8", (inner, 64), "int8", "R.matmul(x, w, out_dtype='int32')")
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((64, inner), (inner, 64)))
    npu, spent = plugins["weft_npu"], []
    for buffers in range(1, 6):
        npu.cycles.clear()
        got, want = both_ways(text, x, w, f"host: llvm; npu: npu -sram={sram} -buffers={buffers}")
        np.testing.assert_array_equal(got, want)
        spent.append(sum(npu.cycles.values()))
    assert spent[1] < spent[0]
    if inner == 16:
        load, store, multiply = 2 * 8 * inner // 16, 4 * 8 * 8 // 16, inner + 2 * 8 - 2
        assert spent[1] >= 64 * (multiply + store)  # one place for sums: they are stored before the next ones are made
        assert 64 * (load + store) <= spent[2] <= 64 * (load + store) + 2 * multiply
        assert spent[2] < spent[3] < spent[4] < spent[1]  # both units are at work: more only takes longer to start


def test_both_passes_make_the_commands(plugins) -> None:
    """B20: the loop says what runs ahead, and each pass does its own part."""
    tiles = plugins["weft_npu"].tiles
    shapes = {"x": (32, 16), "w": (16, 32), "y": (32, 32)}
    product = tiles.Product(shapes, ("x", "w", "y"), 32, 16, 32)
    made = {buffers: parsed(tiles.loop(product, 8, 4096, buffers)) for buffers in (2, 3)}
    assert InjectSoftwarePipeline()(made[2]) is made[2]
    assert InjectDoubleBuffer()(made[3]) is made[3]
    two, three = InjectDoubleBuffer()(made[2]).script(), InjectSoftwarePipeline()(made[3]).script()
    assert "a = T.alloc_buffer((2, 128)" in two
    assert "c = T.alloc_buffer((64,)" in two
    assert "a = T.alloc_buffer((3, 128)" in three
    assert "c = T.alloc_buffer((2, 64)" in three


def test_a_machine_without_room_for_two_tiles_has_one(plugins) -> None:
    """B20: nothing is copied ahead, and the product is the same."""
    text = MAIN.format((4, 5), "int8", (5, 4), "int8", "R.matmul(x, w, out_dtype='int32')")
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((4, 5), (5, 4)))
    got, want = both_ways(text, x, w, "host: llvm; npu: npu -array=3 -sram=42")
    np.testing.assert_array_equal(got, want)


def test_a_machine_without_room_for_one_tile_is_refused(plugins) -> None:
    """B20: when the target is built."""
    with pytest.raises(TargetError, match="at least one tile"):
        Target("host: llvm; npu: npu -buffers=0")
    with pytest.raises(TargetError, match="8 x 8 cells has no use for 100 bytes of memory"):
        Target("host: llvm; npu: npu -sram=100")


MAIN = "@R.function\ndef main(x: R.Tensor({}, '{}'), w: R.Tensor({}, '{}')):\n    with R.dataflow():\n"
MAIN += "        y = {}\n        R.output(y)\n    return y\n"


def both_ways(text: str, x: np.ndarray, w: np.ndarray, target: str) -> tuple[Any, Any]:
    return weft.compile(parsed(text), target)["main"](x, w), weft.interpret(parsed(text))["main"](x, w)


@settings(max_examples=12, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 7), st.integers(1, 7)),
    st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.sampled_from([1, 2, 3, 5]),
    st.sampled_from([64, 600]),
    st.integers(0, 2**32 - 1),
)
def test_convolutions_of_any_form_are_exact(plugins, image, kernel, strides, padding, buffers, sram, seed: int) -> None:
    """B20: against the interpreter, on random shapes, strides and paddings."""
    height, width = image[2] + padding[0] + padding[2], image[3] + padding[1] + padding[3]
    weight = (kernel[0], image[1], min(kernel[1], height), min(kernel[2], width))
    call = f"R.nn.conv2d(x, w, strides={strides}, padding={padding}, out_dtype='int32')"
    rng = np.random.default_rng(seed)
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in (image, weight))
    plugins["weft_npu"].cycles.clear()
    text = MAIN.format(image, "int8", weight, "int8", call)
    got, want = both_ways(text, x, w, f"host: llvm; npu: npu -array=3 -sram={sram} -buffers={buffers}")
    np.testing.assert_array_equal(got, want)
    assert plugins["weft_npu"].cycles


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_functions_of_hooks_run_under_every_executor(executor: str, plugins, tmp_path: Path) -> None:
    """B9: what a hook returns is a graph function that calls kernels; straight-line programs take its steps."""
    text = """
@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor((4, 64), "int8"), w: R.Tensor((64, 10), "int8")) -> R.Tensor((4, 10), "int32"):
        with R.dataflow():
            sums = R.matmul(x, w, out_dtype="int32")
            y = R.maximum(sums, R.const(0, "int32"))
            R.output(y)
        return y
"""
    x, w = (np.random.default_rng(0).integers(-128, 128, size).astype("int8") for size in ((4, 64), (64, 10)))
    executable = weft.compile(weft.parse(text), NPU, executor=executor)
    executable.save(tmp_path / "layer.weft")
    cycles = plugins["weft_npu"].cycles
    for made in (executable, weft.load(tmp_path / "layer.weft")):
        cycles.clear()
        np.testing.assert_array_equal(made["main"](x, w), np.maximum(x.astype("int32") @ w.astype("int32"), 0))
        assert sum(cycles.values()) > 0


@pytest.mark.parametrize(
    ("x", "w", "dtype", "call"),
    [
        ((4, 8), (8, 3), "float32", "R.matmul(x, w)"),
        ((4, 8), (8, 3), "int8", "R.matmul(x, w)"),
        ((2, 4, 8), (2, 8, 3), "int8", "R.matmul(x, w, out_dtype='int32')"),
        ((1, 4, 5, 5), (4, 1, 3, 3), "int8", "R.nn.conv2d(x, w, groups=4, out_dtype='int32')"),
        ((1, 4, 7, 7), (4, 4, 3, 3), "int8", "R.nn.conv2d(x, w, dilation=2, out_dtype='int32')"),
        (
            (1, 5, 5, 4),
            (2, 3, 3, 4),
            "int8",
            "R.nn.conv2d(x, w, data_layout='NHWC', kernel_layout='OHWI', out_dtype='int32')",
        ),
    ],
)
def test_what_the_machine_does_not_do_stays_on_the_host(plugins, x, w, dtype: str, call: str) -> None:
    """B1: and gives what it gives there."""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype(dtype) for shape in (x, w)]
    plugins["weft_npu"].cycles.clear()
    got, want = both_ways(MAIN.format(x, dtype, w, dtype, call), arrays[0], arrays[1], NPU)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert not plugins["weft_npu"].cycles


def test_sizes_that_are_not_known_stay_on_the_host(plugins) -> None:
    """B1: the machine's streams are for known sizes."""
    text = MAIN.format('("n", 8)', "int8", "(8, 3)", "int8", "R.matmul(x, w, out_dtype='int32')")
    rng = np.random.default_rng(0)
    plugins["weft_npu"].cycles.clear()
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((5, 8), (8, 3)))
    got, want = both_ways(text, x, w, NPU)
    np.testing.assert_array_equal(got, want)
    assert not plugins["weft_npu"].cycles


def test_streams_that_are_damaged_are_refused(plugins, network) -> None:
    """B20: by the machine, with a number, before anything is computed."""
    hardware = importlib.import_module("weft_npu.hardware")
    module = generate_artifacts(default_pipeline(Target(NPU))(network[0]), NPU)
    stream = module.attrs["artifacts"]["npu_kernel_1.npu"].data
    arrays = [np.zeros(100_000, "int8") for _ in range(4)]
    assert hardware.execute(stream, arrays) > 0
    small = stream[:8] + (16).to_bytes(4, "little") + stream[12:]
    for bad in (b"", b"NPU2" + stream[4:], stream[:-4], stream[:-1], stream + b"\x09\0\0\0", small):
        with pytest.raises(RuntimeError, match="the NPU refuses the stream: -"):
            hardware.execute(bad, arrays)


@needs_compiler
def test_another_machine_takes_the_place_of_the_model(plugins, network, tmp_path: Path, monkeypatch) -> None:
    """B20: what `NPU_LIBRARY` names runs the same streams, to the same bits, in the same cycles."""
    module, images, expected = network
    cycles = plugins["weft_npu"].cycles
    cycles.clear()
    np.testing.assert_array_equal(weft.compile(module, NPU)["main"](images), expected)
    by_model = dict(cycles)
    library = tmp_path / "libnpu.so"
    source = ROOT / "tests" / "plugins" / "npu_reference.c"
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run(["gcc", *strict, source, "-o", library], check=True)
    monkeypatch.setenv("NPU_LIBRARY", str(library))
    cycles.clear()
    np.testing.assert_array_equal(weft.compile(module, NPU)["main"](images), expected)
    assert dict(cycles) == by_model


@needs_compiler
def test_the_network_in_c_hands_streams_to_the_machine(plugins, network, tmp_path: Path) -> None:
    """B20, B18, G5: streams are constants of a driver that the host calls; its memory is planned with the host's."""
    module, images, expected = network
    target = Target("host: c; npu: npu")
    sizes: list[int] = []

    def planner(requests: Any) -> tuple[list[int], int]:
        offsets, total = greedy(requests)
        windows = [request for request in requests if request.size == 9 * 64]
        assert windows
        others = [request for request in requests if request not in windows]
        sizes.extend([total, greedy(others)[1] + max(request.size for request in windows)])
        return offsets, total

    lowered = generate_artifacts(default_pipeline(target)(module), target)
    tree = source_tree(lowered, target, name="digits", planner=planner)
    assert sizes[0] < sizes[1]
    assert "static const uint32_t stream[] = {" in tree.files["src/npu_kernel.c"]
    assert "struct digits_device *npu;" in tree.files["include/digits.h"]
    glue = "#include <stdint.h>\nint32_t (*machine)(const uint8_t *, uint64_t, void *const *, uint64_t *);\n"
    entry = "int32_t npu_execute(const uint8_t *s, uint64_t n, void *const *r, uint64_t *c)"
    tree.write(tmp_path)
    (tmp_path / "glue.c").write_text(f"{glue}{entry};\n{entry} {{ return machine(s, n, r, c); }}\n")
    command = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared"]
    sources = [*(tmp_path / path for path in tree.sources), tmp_path / "glue.c"]
    include = ["-I", tmp_path / "include", "-I", tmp_path / "src"]
    done = subprocess.run(
        [*command, *include, *sources, "-lm", "-o", tmp_path / "digits.so"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(tmp_path / "digits.so"))
    model = importlib.import_module("weft_npu.hardware").c_abi()
    ctypes.c_void_p.in_dll(loaded, "machine").value = ctypes.cast(model, ctypes.c_void_p).value
    workspace = np.zeros(tree.metadata["memory"]["workspace"] + 16, "uint8")
    out = np.zeros_like(expected)
    pointers = [[images], [out], [workspace[-workspace.ctypes.data % 16 :]]]
    structs = [(ctypes.c_void_p * 1)(*(item.ctypes.data for item in items)) for items in pointers]
    assert loaded.digits_run(*structs, None) == 0
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("target", "executor"), [(NPU, "native"), (NPU, "aot"), ("host: c; npu: npu", None)])
def test_compiled_programs_with_drivers_of_one_name_are_merged(target: str, executor: str | None, plugins) -> None:
    """H8: the drivers in C get names of their own, and the program that calls one follows."""
    text = """
@I.ir_module
class M:
    @R.function
    def {0}(x: R.Tensor((4, 8), "int8"), w: R.Tensor((8, {1}), "int8")):
        y = R.matmul(x, w, out_dtype="int32")
        return y
"""
    first, second = (
        weft.lower(parsed(text.format(name, width)), target, executor=executor, stop="codegen")
        for name, width in (("main", 3), ("f", 5))
    )
    module = parsed(merge(first, second).module.script())
    artifacts = module.attrs["artifacts"]
    assert {"npu_kernel.c", "model_1_npu_kernel.c"} <= set(artifacts)
    assert b"model_1_npu_kernel(" in artifacts["model_1_npu_kernel.c"].data
    if executor is None:
        assert b"model_1_npu_kernel(" in artifacts["model_1_main.c"].data
        return
    made, ones = weft.load_module(module, trust=True), np.ones((4, 8), "int8")
    for name, width in (("main", 3), ("f", 5)):
        np.testing.assert_array_equal(made[name](ones, np.ones((8, width), "int8")), np.full((4, width), 8))
    assert executor != "aot" or "model_1_npu_kernel" in {item.name for item in artifacts["model_1.o"].needs}


def test_the_streams_are_the_same_in_every_process(plugins, network) -> None:
    """B20, C9: equal modules give equal artifacts."""
    made = [
        generate_artifacts(default_pipeline(Target(NPU))(network[0]), NPU).attrs["artifacts"].content_hash
        for _ in range(2)
    ]
    assert made[0] == made[1]


# OpenBLAS, and both.

MIXED = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32"), a: R.Tensor((4, 8), "int8"),
        b: R.Tensor((8, 8), "int8")
    ) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            h = R.nn.relu(R.matmul(x, w))
            c = R.astype(R.matmul(a, b, out_dtype="int32"), "float32")
            y = R.matmul(h, R.permute_dims(c, axes=[1, 0]))
            R.output(y)
        return y
"""


def mixed() -> tuple[IRModule, list[np.ndarray]]:
    rng = np.random.default_rng(3)
    floats = [rng.normal(size=shape).astype("float32") for shape in ((5, 16), (16, 8))]
    return parsed(MIXED), [*floats, *(rng.integers(-128, 128, shape).astype("int8") for shape in ((4, 8), (8, 8)))]


@pytest.fixture
def counted(plugins) -> Iterator[list[tuple[int, ...]]]:
    """The shapes of the products that the library does."""
    try:
        plugins["weft_openblas"].library()
    except OSError:
        pytest.skip("this NumPy brings no OpenBLAS along")
    shapes: list[tuple[int, ...]] = []
    inner = plugins["weft_openblas"].matmul

    def counting(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        shapes.append((*x.shape, y.shape[1]))
        inner(x, y, out)

    weft.register_func("openblas_matmul", counting)
    yield shapes
    weft.register_func("openblas_matmul", inner)


def test_products_of_floats_are_given_to_the_library(counted) -> None:
    """B19, D14: for all sizes; its calls need no code generator."""
    module, arrays = mixed()
    run = weft.compile(module, "host: llvm; blas: openblas")["main"]
    want = weft.interpret(module)["main"](*arrays)
    np.testing.assert_allclose(run(*arrays), want, rtol=1e-4)
    assert counted == [(5, 16, 8), (5, 8, 4)]
    empty = np.zeros((0, 16), "float32")
    assert run(empty, *arrays[1:]).shape == (0, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_library_agrees_with_numpy(counted, dtype: str) -> None:
    """D14: in both types, for matrices that are not contiguous."""
    text = MAIN.format('("n", "k")', dtype, '("k", "m")', dtype, "R.matmul(x, w)")
    run = weft.compile(parsed(text), "host: llvm; blas: openblas")["main"]
    rng = np.random.default_rng(0)
    for n, k, m in ((1, 1, 1), (7, 5, 3), (64, 33, 17), (3, 0, 2)):
        x, w = rng.normal(size=(k, n)).astype(dtype).T, rng.normal(size=(k, m)).astype(dtype)
        np.testing.assert_allclose(run(x, w), x @ w, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)
    assert len(counted) == 4


@pytest.mark.parametrize("target", [BOTH, "host: llvm; blas: openblas; npu: npu"])
def test_both_work_together_in_either_order(plugins, counted, target: str) -> None:
    """D15: each takes its own calls, interleaved; the results are those of the host alone."""
    module, arrays = mixed()
    npu = plugins["weft_npu"]
    npu.cycles.clear()
    got = weft.compile(module, target)["main"](*arrays)
    np.testing.assert_allclose(got, weft.compile(module)["main"](*arrays), rtol=1e-4)
    assert counted == [(5, 16, 8), (5, 8, 4)]
    assert len(npu.cycles) == 1


def test_the_order_of_parts_does_not_change_what_is_offloaded(plugins) -> None:
    """D15: the two backends interleave to the same set of functions."""
    module, _ = mixed()

    def taken(target: str) -> list[str]:
        new = default_pipeline(Target(target))(module)
        text = new.script()
        return sorted(re.findall(r'"openblas_matmul"|"npu_\w+"', text))

    first = taken(BOTH)
    assert first.count('"openblas_matmul"') == 2
    assert '"npu_multiply"' in first
    assert taken("host: llvm; blas: openblas; npu: npu") == first


@pytest.mark.parametrize("name", ["npu", "openblas"])
def test_the_code_of_the_readme_runs(plugins, name: str, counted, tmp_path: Path) -> None:
    """A4: what the page says works as it stands."""
    text = (EXAMPLES / name / "README.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    assert "weft.compile" in code
    path = tmp_path / f"readme_{name}.py"
    path.write_text(code)
    exec(compile(code, str(path), "exec"), {"__name__": f"readme_{name}"})
