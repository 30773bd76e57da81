"""Targets: one immutable value with four equal forms, checked when built."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import TargetError
from weft.target import Int, List, Str, Target, Triple, tag, target_kind
from weft.target.kinds import KINDS

TWO_CPUS = "low_power_cpu: c -mcpu=cortex-m0; inference_cpu: c -mcpu=cortex-m7f"
CONFIG = {
    "kind": "config",
    "parts": {"host": "c -mcpu=cortex-m7", "wide": "llvm -threads=2"},
    "executor": {"kind": "aot", "entry": "struct"},
    "runtime": {"kind": "bare", "alloc": "none"},
    "memory": {"sram": {"bytes": 16384, "rw": ["host", "wide"]}, "flash": {"bytes": "256K", "ro": True}},
    "package": {"format": "archive", "name": "kws"},
}


def test_two_labelled_processors_read_exactly_as_written() -> None:
    """B12: the composite string gives labels, kinds and normalised processors."""
    target = Target(TWO_CPUS)
    assert target.labels == ("low_power_cpu", "inference_cpu")
    assert target.part("inference_cpu").cpu == "cortex-m7"
    assert target["inference_cpu"].cpu.fpu == "fpv5-sp-d16"
    assert target["low_power_cpu"].kind.name == "c"
    assert str(target["low_power_cpu"].triple) == "thumbv6m-none-none-eabi"


def test_features_follow_from_the_processor() -> None:
    """B21: m0 has nothing, m4 dsp, m55 dsp and mve; nobody can set them."""
    m0, m4, m55 = (Target(f"c -mcpu=cortex-{name}").features for name in ("m0", "m4", "m55"))
    assert (m0.has_dsp, m0.has_mve, m0.has_fpu) == (False, False, False)
    assert (m4.has_dsp, m4.has_mve, m4.has_fpu) == (True, False, False)
    assert (m55.has_dsp, m55.has_mve, m55.has_fpu) == (True, True, True)
    assert Target("c -mcpu=cortex-m4f").features.has_fpu
    with pytest.raises(AttributeError):
        m0.has_dsp = True  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Target("c").kind = None  # type: ignore[assignment]
    target = Target("c -mcpu=cortex-m4f")
    assert Target(target) is target
    assert pickle.loads(pickle.dumps(target)) == target


@pytest.mark.parametrize(
    "spec", ["llvm", "c -mcpu=cortex-m4 -mfpu=none", TWO_CPUS, CONFIG, "only: llvm", "a: {b: c; d: llvm}"]
)
def test_the_four_forms_are_one_value(spec: object) -> None:
    """E14: string, dict and JSON give the target back."""
    target = Target(spec)  # type: ignore[arg-type]
    assert Target(str(target)) == target
    assert Target(target.to_dict()) == target
    assert Target(target.to_json()) == target
    assert hash(Target(str(target))) == hash(target)
    assert json.loads(target.to_json()) == target.to_dict()


def test_a_configuration_nests_three_deep() -> None:
    """E8: a configuration is a target: part of another, tagged, recorded."""
    inner = Target(CONFIG)
    middle = Target({"kind": "config", "parts": {"inner": inner}, "executor": "vm"})
    outer = Target({"kind": "config", "parts": {"middle": middle.to_dict()}, "executor": "native"})
    assert outer["middle"]["inner"] == inner
    assert Target(str(outer)) == outer
    assert len(list(outer.walk())) == 5


def test_a_one_part_composite_is_not_a_leaf() -> None:
    assert Target("only: llvm") != Target("llvm")
    assert Target("only: llvm").labels == ("only",)


def test_sizes_of_memory_pools_are_bytes() -> None:
    assert Target(CONFIG).options["memory"]["flash"]["bytes"] == 256 * 1024


def test_a_tag_is_recorded_with_the_expanded_fields() -> None:
    """E13, E15: a later change of the tag does not change what was recorded."""
    tag.register("tests/board", TWO_CPUS)
    try:
        target = Target("tests/board -inference_cpu.mcpu=cortex-m4f")
        assert target.tag == "tests/board"
        assert target["inference_cpu"].cpu == "cortex-m4"
        assert target["inference_cpu"].cpu.fpu == "fpv4-sp-d16"
        recorded = target.to_json()
    finally:
        tag.unregister("tests/board")
    assert Target(recorded) == target
    assert Target(str(target)) == target
    with pytest.raises(TargetError):
        Target("tests/board")


def test_explain_says_what_was_given_defaulted_and_derived() -> None:
    """E16: one word is enough, and explain shows the rest."""
    text = Target("c -mcpu=cortex-m4").explain()
    assert "mcpu = cortex-m4 (given)" in text
    assert "std = c99 (default)" in text
    assert "has_dsp = True (derived)" in text


def test_the_current_target_is_the_innermost() -> None:
    assert Target.current() is None
    with Target("llvm") as outer:
        with Target("c") as inner:
            assert Target.current() is inner
        assert Target.current() is outer
    assert Target.current() is None


@pytest.mark.parametrize(
    ("spec", "code", "column", "hint"),
    [
        ("cc", "W701", None, "did you mean 'c'?"),
        ("c -mcup=x", "W702", 3, "did you mean 'mcpu'?"),
        ("llvm -threads=x", "W703", 6, None),
        ("c -std=c98", "W703", 3, "did you mean 'c99'?"),
        ("c -executor=aot", "W704", 3, "wrap it: config -executor=... { main: c }"),
        ("a: c; a: llvm", "W707", 7, None),
        ("c -mcpu=", "W708", 8, None),
        ("", "W708", 1, None),
        ("c -mcpu=cortex-m77", "W721", 3, "did you mean 'cortex-m7'?"),
        ("c -mtriple=thumbv6m-none-eabi -mcpu=cortex-m7", "W722", 31, None),
        ("c -mcpu=cortex-m0 -mfpu=fpv5-d16", "W723", None, None),
        ("c -mcpu=cortex-m0 -mfloat-abi=hard", "W724", None, None),
        ("config -executor=aott { a: c }", "W703", 8, "did you mean 'aot'?"),
        ("config -executr=aot { a: c }", "W702", 8, "did you mean 'executor'?"),
    ],
)
def test_wrong_targets_are_refused_at_the_right_place(
    spec: str, code: str, column: int | None, hint: str | None
) -> None:
    """E5, E7, E9, E11: unknown fields, wrong values and contradictions are errors when the target is built."""
    with pytest.raises(TargetError) as caught:
        Target(spec)
    assert caught.value.code == code
    if column is not None:
        assert caught.value.span is not None
        assert caught.value.span.column == column
    if hint is not None:
        assert caught.value.hint == hint


def test_an_unknown_label_lists_the_labels() -> None:
    """B14."""
    with pytest.raises(TargetError) as caught:
        Target(TWO_CPUS).part("gpu")
    assert caught.value.hint == "labels: low_power_cpu, inference_cpu"


def test_a_kind_is_added_from_outside() -> None:
    """A4, B10: fields, hooks, lowering and code generator belong to the kind."""
    kind = target_kind("tests-npu", {"macs": Int(128), "modes": List(), "name": Str()}, device="npu")
    try:
        target = Target("tests-npu -macs=64 -modes=a,b")
        assert (target.get("macs"), target.get("modes"), target.get("name")) == (64, ("a", "b"), None)
        assert Target("tests-npu -modes=a").get("modes") == ("a",)
        with pytest.raises(TargetError, match="must take 2 arguments"):
            kind.lowering(lambda module: module)
    finally:
        del KINDS["tests-npu"]


TRIPLES = """
x86_64-linux-gnu                  x86_64-unknown-linux-gnu           64
x86_64-pc-linux-gnu               x86_64-pc-linux-gnu                64
x86_64-unknown-linux-musl         x86_64-unknown-linux-musl          64
x86_64-linux-gnux32               x86_64-unknown-linux-gnux32        64
amd64-unknown-freebsd             x86_64-unknown-freebsd             64
x86_64-unknown-netbsd             x86_64-unknown-netbsd              64
x86_64-unknown-openbsd            x86_64-unknown-openbsd             64
x86_64-pc-windows-msvc            x86_64-pc-windows-msvc             64
x86_64-pc-windows-gnu             x86_64-pc-windows-gnu              64
x86_64-pc-windows-msvc-elf        x86_64-pc-windows-msvc-elf         64
x86_64-pc-windows-msvc-macho      x86_64-pc-windows-msvc-macho       64
x86_64-apple-macosx14.2           x86_64-apple-macosx14.2            64
x86_64-apple-darwin-macho         x86_64-apple-darwin-macho          64
x86_64-unknown-none-elf           x86_64-unknown-none-elf            64
x86_64-unknown-fuchsia            x86_64-unknown-fuchsia             64
x86_64                            x86_64-unknown-unknown             64
i686-linux-gnu                    i686-unknown-linux-gnu             32
i386-pc-linux-gnu                 i386-pc-linux-gnu                  32
i686-pc-windows-msvc              i686-pc-windows-msvc               32
aarch64-linux-gnu                 aarch64-unknown-linux-gnu          64
aarch64-unknown-linux-musl        aarch64-unknown-linux-musl         64
aarch64-pc-windows-msvc           aarch64-pc-windows-msvc            64
arm64-apple-darwin                aarch64-apple-darwin               64
arm64-apple-ios17-simulator       aarch64-apple-ios17-simulator      64
aarch64-none-elf                  aarch64-none-none-elf              64
aarch64-linux-android             aarch64-unknown-linux-android      64
aarch64-linux-android21           aarch64-unknown-linux-android21    64
armv7a-linux-gnueabihf            armv7a-unknown-linux-gnueabihf     32
armv7a-linux-androideabi          armv7a-unknown-linux-androideabi   32
arm-linux-gnueabi                 arm-unknown-linux-gnueabi          32
arm-none-eabi                     arm-none-none-eabi                 32
armv6m-none-eabi                  armv6m-none-none-eabi              32
thumbv6m-none-eabi                thumbv6m-none-none-eabi            32
thumbv7m-none-eabi                thumbv7m-none-none-eabi            32
thumbv7em-none-eabihf             thumbv7em-none-none-eabihf         32
thumbv7em-none-eabi-elf           thumbv7em-none-none-eabi-elf       32
thumbv8m.base-none-eabi           thumbv8m.base-none-none-eabi       32
thumbv8m.main-none-eabi           thumbv8m.main-none-none-eabi       32
thumbv8.1m.main-none-eabi         thumbv8.1m.main-none-none-eabi     32
thumb-none-eabi                   thumb-none-none-eabi               32
riscv32-unknown-elf               riscv32-unknown-unknown-elf        32
riscv64-linux-gnu                 riscv64-unknown-linux-gnu          64
riscv64-unknown-linux-musl        riscv64-unknown-linux-musl         64
wasm32                            wasm32-unknown-unknown             32
wasm32-wasi                       wasm32-unknown-wasi                32
wasm32-unknown-unknown            wasm32-unknown-unknown             32
wasm32-unknown-emscripten         wasm32-unknown-emscripten          32
wasm64-unknown-unknown            wasm64-unknown-unknown             64
nvptx64-nvidia-cuda               nvptx64-nvidia-cuda                64
"""
"""As written, as weft has it, the width of an address."""
ROWS = [line.split() for line in TRIPLES.strip().splitlines()]


@pytest.mark.parametrize(("text", "normal", "bits"), ROWS)
def test_triples_are_normalised(text: str, normal: str, bits: str) -> None:
    """E11."""
    triple = Triple.parse(text)
    assert (str(triple), triple.pointer_bits) == (normal, int(bits))
    assert Triple.parse(normal) == triple


def components(triple: str) -> tuple[str, ...]:
    """What a triple says: no system is one that is not known, and arm64 is aarch64."""
    same = {"none": "unknown", "amd64": "x86_64", "arm64": "aarch64", "i686": "i386"}
    words = [same.get(word, word) for word in [*triple.split("-"), *["unknown"] * 5][:5]]
    return words[0], *(re.sub(r"(?<=[a-z])[\d.]+$", "", word) for word in words[1:])


EFFECTIVE = {"arm": "armv4t", "armv6m": "thumbv6m", "armv7a": "armv7", "thumb": "armv4t"}
"""The architectures that clang calls by another name: what it compiles for where a triple says no more."""
LLC = next(filter(None, map(shutil.which, ("llc", "llc-19", "llc-18", "llc-16", "llc-14"))), None)
CLANG = shutil.which("clang")


@pytest.mark.skipif(LLC is None and CLANG is None, reason="needs llc or clang")
@pytest.mark.parametrize("text", [row[0] for row in ROWS])
def test_triples_mean_what_they_mean_to_llvm(text: str) -> None:
    """E11: as written and as weft has it, LLVM reads the same triple."""
    normal = str(Triple.parse(text))
    readings = []
    for triple in (text, normal):
        if CLANG is not None:
            command, source = [CLANG, f"--target={triple}", "-print-effective-triple"], ""
        else:
            command, source = [str(LLC), f"-mtriple={triple}", "-stop-before=finalize-isel", "-o", "-"], EMPTY
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if "unable to get target" in done.stderr or "No available targets" in done.stderr:
            pytest.skip(f"this LLVM has no {text}")
        assert done.returncode == 0, done.stderr
        said = re.search(r'target triple = "(.*)"', done.stdout)
        readings.append(components(said.group(1) if said else done.stdout.strip()))
    assert readings[0] == readings[1]
    own = components(normal)[0]
    assert readings[1][0] in (own, EFFECTIVE.get(own) if CLANG is not None else own)


EMPTY = "define void @f() {\n  ret void\n}\n"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("x86_65-linux-gnu", 1),
        ("x86_64-linx-gnu", 8),
        ("x86_64-linux-gnuu", 14),
        ("thumbv9-none-eabi", 1),
        ("", 1),
        ("x86_64-linux-gnu-gnu", 18),
        ("armv5z-none-eabi", 1),
        ("aarch64--linux", 9),
        ("x86_64-linux-gnu-elf-macho", 22),
        ("aarch64-linux-elf-gnu", 19),
    ],
)
def test_wrong_triples_are_refused_at_the_component(text: str, column: int) -> None:
    """E11."""
    with pytest.raises(TargetError) as caught:
        Triple.parse(text)
    assert caught.value.code == "W720"
    assert caught.value.span is not None
    assert caught.value.span.column == column


LABELS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=8)


@st.composite
def targets(draw: st.DrawFn, depth: int = 2) -> Target:
    choice = draw(st.integers(0, 3 if depth else 1))
    if choice <= 1:
        fields = {"name": TEXTS, "modes": st.lists(TEXTS, min_size=1, max_size=3), "macs": st.integers(-5, 10**9)}
        return Target({"kind": "tests-any", **draw(st.fixed_dictionaries({}, optional=fields))})
    parts = draw(st.dictionaries(LABELS, targets(depth=depth - 1), min_size=1, max_size=3))
    if choice == 2:
        return Target({"kind": "composite", "parts": parts})
    return Target(
        {
            "kind": "config",
            "parts": parts,
            "executor": draw(st.sampled_from(["vm", "aot"])),
            "package": {"name": draw(TEXTS)},
        }
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_nested_targets_round_trip(data: st.DataObject) -> None:
    """E14: any nesting, any characters."""
    target_kind("tests-any", {"name": Str(), "modes": List(), "macs": Int()})
    try:
        target = data.draw(targets())
        assert Target(str(target)) == target
        assert Target(target.to_json()) == target
    finally:
        del KINDS["tests-any"]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ac: ;{}-=,\"\\m\n'.", max_size=40))
def test_any_text_is_a_target_or_a_clear_error(text: str) -> None:
    try:
        target = Target(text)
    except TargetError:
        return
    assert Target(str(target)) == target
