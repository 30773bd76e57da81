"""H3, E5: every field of every kind of target, and of configurations: change it, see the effect or the refusal."""

from __future__ import annotations

import importlib
import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest

import weft
from weft.target.builtin import LLVM, C
from weft.target.obeyed import OBEYED
from weft.target.schema import POOL, SCHEMA
from weft.transform.memory.planners import remove_memory_planner

FLOATS = """
@R.function
def main(x: R.Tensor((40,), "float32"), d: R.Tensor((7,), "float64")):
    with R.dataflow():
        a = R.exp(x)
        s = R.multiply(d, d)
        R.output(a, s)
    return (a, s)
"""
STRIDED = """
@R.function
def main(x: R.Tensor((48, 200), "float32")):
    k = R.strided_slice(R.tanh(x), axes=[1], begin=[0], end=[150], strides=[7])
    return k
"""
LOOPS = """
@R.function
def main(x: R.Tensor((24, 40), "float32"), w: R.Tensor((40, 70), "float32")):
    y = R.nn.softmax(R.matmul(x, w))
    return y
"""
PRODUCT = """
@R.function
def main(x: R.Tensor((256, 512), "float32"), w: R.Tensor((512, 4096), "float32")) -> R.Tensor((256, 4096), "float32"):
    y = R.matmul(x, w)
    return y
"""
COLUMNS = """
@R.function
def main(x: R.Tensor((600, 4096), "float32")) -> R.Tensor((4096,), "float32"):
    y = R.sum(x, axis=0)
    return y
"""
SCHEDULED = """
@T.prim_func
def main(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    T.func_attr({"tir.is_scheduled": True})
    for i in range(64):
        y[i] = (x[i] * T.float32(3.0)) * (x[i] * T.float32(5.0))
"""
LANES = """
@T.prim_func
def main(x: T.Buffer((1050,), "float32"), y: T.Buffer((150,), "float32")):
    T.func_attr({"tir.is_scheduled": True})
    for i in range(10):
        for j in T.vectorized(16):
            if i * 16 + j < 150:
                y[i * 16 + j] = x[(i * 16 + j) * 7] * T.float32(3.0)
"""
SCRATCH = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def turn(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        t = T.alloc_buffer((512,), "float32")
        for i in range(512):
            t[i] = x[i % 64]
        for i in range(64):
            y[i] = t[511 - i]

    @R.function
    def main(x: R.Tensor((64,), "float32")):
        y = R.call_tir(Module.turn, (x,), out_ty=R.Tensor((64,), "float32"))
        return y
"""
MODELS = {
    "product": PRODUCT,
    "columns": COLUMNS,
    "scheduled": SCHEDULED,
    "scratch": SCRATCH,
    "strided": STRIDED,
    "loops": LOOPS,
    "lanes": LANES,
}
# kind and field | the model that shows the change, or the code of the refusal | a target | it changed (+: with more)
# and for configurations: ... | parts | options | options changed
TABLE = """
llvm   mtriple          | floats     | llvm | + -mtriple=x86_64-pc-windows-msvc
llvm   mtriple          | floats     | llvm -mcpu=cortex-m7f | + -mtriple=thumbv7em-none-eabihf
llvm   mtriple          | floats     | llvm -mtriple=x86_64-unknown-none | llvm -mtriple=x86_64-unknown-none-macho
llvm   mtriple          | W722       | llvm -mcpu=cortex-m7f | + -mtriple=x86_64-linux-gnu
llvm   mtriple          | W724       | llvm -mcpu=cortex-m7f | + -mtriple=thumbv6m-none-eabihf
llvm   mcpu             | floats     | llvm | + -mcpu=x86-64
llvm   mcpu             | floats     | llvm -mcpu=cortex-m4f | llvm -mcpu=cortex-m7f
llvm   mcpu             | W721       | llvm | + -mcpu=m77
llvm   mattr            | floats     | llvm -mcpu=x86-64-v3 | + -mattr=-avx2
llvm   mattr            | floats     | llvm -mcpu=cortex-m7f | + -mattr=-dsp
llvm   mattr            | W732       | llvm | + -mattr=+nonsense
llvm   mattr            | W732       | llvm -mcpu=cortex-m7f | + -mattr=+nonsense
llvm   mattr            | W732       | llvm -mcpu=cortex-m4f | + -mattr=+neon
llvm   mattr            | floats     | llvm -mtriple=riscv64-linux-gnu | + -mattr=+v
llvm   mfpu             | floats     | llvm -mcpu=cortex-m7f | + -mfpu=none
llvm   mfpu             | floats     | llvm -mcpu=cortex-m7f | + -mfpu=fpv5-d16
llvm   mfpu             | floats     | llvm -mcpu=cortex-a7 | + -mfpu=none
llvm   mfpu             | floats     | llvm -mcpu=cortex-a7 | + -mfpu=neon
llvm   mfpu             | floats     | llvm -mcpu=cortex-a7 | + -mfpu=vfpv3-d16
llvm   mfpu             | W723       | llvm | + -mfpu=neon
llvm   mfpu             | W723       | llvm -mcpu=cortex-m7f | + -mfpu=neon
llvm   mfpu             | W723       | llvm -mcpu=cortex-a72 | + -mfpu=neon
llvm   mfpu             | W723       | llvm -mcpu=cortex-m0 | + -mfpu=fpv5-d16
llvm   mfpu             | W723       | llvm -mtriple=wasm32 | + -mfpu=none
llvm   mfloat_abi       | floats     | llvm -mcpu=cortex-m7f | + -mfloat-abi=hard
llvm   mfloat_abi       | floats     | llvm -mcpu=cortex-m7f | + -mfloat-abi=soft
llvm   mfloat_abi       | floats     | llvm -mcpu=cortex-a7 | + -mfloat-abi=softfp
llvm   mfloat_abi       | floats     | llvm -mcpu=cortex-a7 | + -mfloat-abi=soft
llvm   mfloat_abi       | W724       | llvm | + -mfloat-abi=hard
llvm   mfloat_abi       | W724       | llvm -mcpu=cortex-m3 | + -mfloat-abi=softfp
llvm   mfloat_abi       | W724       | llvm -mcpu=cortex-m7f | + -mtriple=thumbv7em-none-eabihf -mfloat-abi=softfp
llvm   mfloat_abi       | W724       | llvm -mcpu=cortex-m7f | + -mtriple=thumbv7em-none-eabi -mfloat-abi=hard
llvm   fast_math        | scheduled  | llvm | + -fast-math=true
llvm   fast_math        | scheduled  | llvm -mcpu=cortex-a72 | + -fast-math=true
llvm   strict_math      | floats     | llvm | + -strict-math=true
llvm   strict_math      | floats     | llvm -mcpu=cortex-a72 | + -strict-math=true
llvm   threads          | product    | llvm | + -threads=1
llvm   threads          | W738       | llvm -mcpu=cortex-m7f | + -threads=2
llvm   planner          | loops      | llvm | + -planner=tests-padded
llvm   planner          | W754       | llvm | + -planner=nosuch
llvm   vector_bits      | loops      | llvm | + -vector-bits=128
llvm   vector_bits      | floats     | llvm -mcpu=cortex-m7f | + -vector-bits=128
llvm   vector_registers | loops      | llvm | + -vector-registers=8
llvm   vector_registers | W726       | llvm -mcpu=cortex-m7f | + -vector-registers=8
llvm   masks            | loops      | llvm -vector-bits=256 | + -masks=false
llvm   masks            | W726       | llvm -mcpu=cortex-m7f | + -masks=true
llvm   gather           | lanes      | llvm -mcpu=x86-64-v4 -mtriple=x86_64-unknown-none | + -gather=false
llvm   gather           | W726       | llvm -mcpu=cortex-m7f | + -gather=true
llvm   gather           | W726       | llvm -mcpu=cortex-a72 | + -gather=true
llvm   l1_cache         | columns    | llvm | + -l1-cache=2K
llvm   l1_cache         | W726       | llvm -mcpu=cortex-m7f | + -l1-cache=2K
llvm   l2_cache         | product    | llvm | + -l2-cache=64K
llvm   l2_cache         | W726       | llvm -mcpu=cortex-m7f | + -l2-cache=2K
llvm   l3_cache         | product    | llvm | + -l3-cache=256K
llvm   l3_cache         | W726       | llvm -mcpu=cortex-m7f | + -l3-cache=2K
llvm   l3_cache         | product    | llvm -mcpu=cortex-a72 | + -l3-cache=512K
llvm   cores            | product    | llvm | + -cores=2
llvm   cores            | W726       | llvm -mcpu=cortex-m7f | + -cores=2
llvm   streaming_bytes  | strided    | llvm | + -streaming-bytes=1000
llvm   streaming_bytes  | W726       | llvm -mcpu=cortex-m7f | + -streaming-bytes=9
llvm   streaming_bytes  | W726       | llvm -mcpu=cortex-a72 | + -streaming-bytes=9
llvm   streaming_bytes  | W726       | llvm -mtriple=arm64-apple-macosx | + -streaming-bytes=9
llvm   streaming_bytes  | strided    | llvm -mtriple=x86_64-pc-windows-msvc | + -streaming-bytes=1000
llvm   stack_bytes      | scratch    | llvm | + -stack-bytes=0
llvm   stack_bytes      | scratch    | llvm -mcpu=cortex-m7f | + -stack-bytes=0
c      mtriple    | floats     | c -mcpu=cortex-m4f | + -mtriple=thumbv7em-none-eabihf
c      mtriple    | W725       | c | + -mtriple=x86_64-linux-gnu
c      mtriple    | W725       | c -mcpu=x86-64-v3 | + -mtriple=x86_64-apple-darwin
c      mtriple    | W725       | c -mcpu=cortex-m4f | + -mtriple=thumbv7em-linux-gnueabi
c      mtriple    | W725       | c -mcpu=x86-64-v3 | + -mtriple=x86_64-linux-gnu-macho
c      mcpu       | floats     | c | + -mcpu=x86-64-v3
c      mcpu       | floats     | c -mcpu=cortex-m4f | c -mcpu=cortex-m0
c      mattr      | W725       | c | + -mattr=+avx
c      mattr      | W725       | c -mcpu=cortex-m0 | + -mattr=+dsp
c      mfpu       | floats     | c -mcpu=cortex-m4f | + -mfpu=none
c      mfpu       | floats     | c -mcpu=cortex-m7f | + -mfpu=fpv5-d16
c      mfpu       | floats     | c -mcpu=cortex-a7 | + -mfpu=vfpv3-d16
c      mfpu       | W723       | c | + -mfpu=neon
c      mfpu       | W723       | c -mcpu=cortex-m4f | + -mfpu=fpv5-d16
c      mfpu       | W723       | c -mcpu=x86-64-v3 | + -mfpu=none
c      mfloat_abi | floats     | c -mcpu=cortex-m4f | + -mfloat-abi=hard
c      mfloat_abi | floats     | c -mcpu=cortex-m4f | + -mfloat-abi=soft
c      mfloat_abi | floats     | c -mcpu=cortex-a7 | + -mfloat-abi=softfp
c      mfloat_abi | W724       | c | + -mfloat-abi=soft
c      mfloat_abi | W724       | c -mcpu=cortex-a72 | + -mfloat-abi=soft
c      std        | floats     | c | + -std=c11
c      std        | floats     | c -mcpu=cortex-m4f | + -std=c11
c      std        | W748       | a: c; b: c | + -std=c11
c      std        | labelled   | a: llvm; b: c | + -std=c11
c      planner    | loops      | c | + -planner=tests-padded
c      planner    | W754       | c | + -planner=nosuch
c      planner    | W738       | a: c; b: c | + -planner=tests-padded
config executor.kind  | floats     | main: llvm |  | -executor=vm
config executor.kind  | floats     | main: llvm |  | -executor=graph
config executor.kind  | floats     | main: llvm |  | -executor=aot
config executor.kind  | W739       | main: c |  | -executor=vm
config executor.kind  | W703       | main: c |  | -executor=vmm
config executor.entry | W703       | main: c |  | -executor.entry=packed
config runtime.kind   | floats     | main: c |  | -runtime=host
config runtime.kind   | W738       | main: c -mcpu=cortex-m4 |  | -runtime=host
config runtime.kind   | W738       | main: c -mcpu=cortex-m4 |  | -runtime=rtos
config runtime.kind   | W738       | main: llvm |  | -runtime=bare
config runtime.alloc  | W703       | main: c |  | -runtime.alloc=heap
config package.format | floats     | main: llvm |  | -package=tree
config package.format | floats     | main: c |  | -package=shared
config package.format | W738       | main: c -mcpu=cortex-m4 |  | -package=shared
config package.format | W703       | main: c |  | -package=zip
config package.name   | floats     | main: c |  | -package.name=kws
config package.name   | W743       | main: c |  | -package.name=9
config memory.bytes   | loops      | main: c | -memory.sram.bytes=1M | -memory.sram.bytes=64 -memory.more.bytes=1M
config memory.bytes   | W746 loops | main: c |  | -memory.sram.bytes=16
config memory.bytes   | W738       | main: llvm |  | -memory.sram.bytes=1M
config memory.bytes   | W703       | main: c |  | -memory.sram.bytes=x
config memory.rw      | loops      | x: c; y: c | -memory.a.bytes=1M | + -memory.a.rw=y -memory.b.bytes=1M
config memory.rw      | W746 loops | x: c; y: c | -memory.a.bytes=1M | + -memory.a.rw=y
config memory.rw      | W703       | main: c | -memory.a.bytes=1M | + -memory.a.rw=nobody
config memory.ro      | loops      | main: c | -memory.a.bytes=1M -memory.b.bytes=1M | + -memory.a.ro=true
config memory.ro      | W703       | main: c | -memory.a.bytes=1M | + -memory.a.ro=true -memory.a.rw=main
"""


def cases() -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """By kind and field: the target, the changed target, what shows it."""
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for line in TABLE.strip().splitlines():
        field, shows, *parts, base, changed = map(str.strip, line.split("|"))
        kind, _, name = field.partition(" ")
        changed = f"{base} {changed[2:]}" if changed.startswith("+ ") else changed
        if parts:
            base, changed = (f"config {options} {{ {parts[0]} }}" for options in (base, changed))
        found.setdefault((kind, name.strip()), []).append((base, changed, shows))
    return found


CASES = cases()


def test_the_table_has_every_field_and_names_code_that_is_there() -> None:
    config = {f"{name}.{key}" for name, keys in {**SCHEMA, "memory": POOL}.items() for key in keys}
    kinds = {kind.name: set(kind.fields) for kind in (LLVM, C)} | {"config": config}
    fields = {(kind, name) for kind, names in kinds.items() for name in names}
    assert set(OBEYED) == fields == set(CASES)
    for place in OBEYED.values():
        module, _, path = place.partition(":")
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)


@pytest.fixture(autouse=True, scope="module")
def planner() -> Any:
    @weft.memory_planner("tests-padded")
    def padded(requests: Any) -> Any:
        offsets, place = [], 0
        for request in requests:
            offsets.append(place)
            place += (request.size + 255) // 64 * 64
        return offsets, place

    yield
    remove_memory_planner("tests-padded")


@cache
def made(target: str, model: str) -> Any:
    """What is produced, by name: the bytes, without what only says the target; the executor of an executable."""
    text = MODELS.get(model, FLOATS)
    if model == "labelled":
        text = FLOATS.replace("R.multiply(d, d)", 'R.multiply(d, d, target="b")')
    found = weft.compile(weft.parse(text), target)
    artifacts = found.artifacts if isinstance(found, weft.Executable) else found
    kept = {}
    for name, item in artifacts.items():
        if name != "metadata.json":
            kept[name] = item.provenance["flags"] if item.kind == "c-kernels" else item.data
    return kept


def test_lanes_that_are_loaded_one_by_one_compute_the_same() -> None:
    random = np.random.default_rng(0)
    x, w, z = (random.normal(size=size).astype("float32") for size in ((24, 40), (40, 70), 1050))
    for target in ("llvm", "llvm -gather=false", "llvm -masks=false"):
        product = weft.parse(LOOPS)
        assert isinstance(product, weft.ir.Function)
        np.testing.assert_allclose(
            weft.compile(product, target)["main"](x, w), weft.interpret(product)(x, w), rtol=1e-4
        )
        weft.compile(weft.parse(LANES), target)["main"](z, y := np.zeros(150, "float32"))
        np.testing.assert_array_equal(y, z[::7] * np.float32(3))


FLIPS = [(*key, *case) for key, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(
    ("kind", "field", "base", "changed", "shows"), FLIPS, ids=[f"{flip[0]}-{flip[1]}-{flip[3]}" for flip in FLIPS]
)
def test_a_field_has_its_effect_or_is_refused(kind: str, field: str, base: str, changed: str, shows: str) -> None:
    """E5, H3: never accepted and ignored."""
    if field == "package.format" and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    if not shows.startswith("W"):
        assert made(base, shows) != made(changed, shows)
        return
    code, _, model = shows.partition(" ")
    with pytest.raises(weft.WeftError) as caught:
        made(changed, model or "floats")
    assert caught.value.code == code


OF_A_PART = [flip[1:] for flip in FLIPS if flip[0] == "llvm" and flip[2] == "llvm" and not flip[4].startswith("W")]


@pytest.mark.parametrize(
    ("field", "base", "changed", "shows"), [flip for flip in OF_A_PART if flip[3] != "scheduled"], ids=lambda item: item
)
def test_a_field_of_a_part_has_its_effect_on_the_calls_of_the_part_or_is_refused(
    field: str, base: str, changed: str, shows: str
) -> None:
    """E5: every field that changes code of this machine, where another part drives."""

    def labelled(node: Any) -> Any:
        if not isinstance(node, weft.ir.Call) or not isinstance(node.op, weft.ir.Op):
            return None
        return weft.ir.replace(node, attrs=node.attrs.set("target", "b"))

    found = weft.parse(MODELS.get(shows, FLOATS))
    module = found if isinstance(found, weft.IRModule) else weft.IRModule({"main": found})
    module = module.with_function("main", weft.ir.rewrite(module["main"], labelled))
    codes = []
    for part in (base, changed):
        try:
            exe = weft.compile(module, f"a: llvm; b: {part}")
        except weft.TargetError as error:
            assert field in ("mtriple", "planner")  # another machine, and what the driving part says
            assert error.code in ("W736", "W738")  # noqa: PT017
        else:
            codes.append([item.data for item in exe.artifacts.values() if item.kind == "object"])
    assert len(codes) == 1 or codes[0] != codes[1]
