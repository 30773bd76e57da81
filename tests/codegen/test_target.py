"""What native code is compiled for: honoured or refused, never ignored."""

from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pytest

import weft
from weft.codegen.backends.llvm.machine.host_target import host_target
from weft.errors import TargetError
from weft.runtime.device.host import host
from weft.target.machine_model import MachineModel

SOURCE = """
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    y = R.tanh(x)
    return y
"""
X86 = host().triple.startswith("x86_64")


@pytest.mark.parametrize(
    "target", [None, "llvm", {"kind": "llvm"}, "llvm -mcpu=host", weft.target.Target("llvm"), "llvm -fast-math=1"]
)
def test_targets_of_this_machine_compile_and_run(target: object) -> None:
    x = np.linspace(-2, 2, 9, dtype="float32")
    np.testing.assert_allclose(weft.compile(weft.parse(SOURCE), target)["main"](x), np.tanh(x), rtol=1e-6)


@pytest.mark.skipif(not X86, reason="levels of x86-64")
def test_a_general_level_needs_less_of_the_machine_that_loads_it() -> None:
    x = np.linspace(-2, 2, 9, dtype="float32")
    exe = weft.compile(weft.parse(SOURCE), "llvm -mcpu=x86-64")
    np.testing.assert_allclose(exe["main"](x), np.tanh(x), rtol=1e-6)
    assert "ymm" not in exe.source("asm")
    assert host_target("llvm -mcpu=x86-64").needs == ""
    assert host_target("llvm -mcpu=x86-64-v2").needs.startswith("+cx16")


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("cuda", "W701"),
        ("llvm -foo=1", "W702"),
        ("llvm -mcpu=nope", "W721"),
        ("llvm -mattr=+no-such-feature", "W732"),
        ("llvm -mfpu=none", "W723"),
        ("llvm -threads=-1", "W703"),
        (3, "W730"),
    ],
)
def test_what_cannot_be_honoured_is_refused(target: object, code: str) -> None:
    with pytest.raises(TargetError) as info:
        weft.compile(weft.parse(SOURCE), target)
    assert info.value.code == code


def test_a_configuration_is_taken_as_the_target_that_it_is() -> None:
    """E8: `weft.compile` reads a Config; a wrong field of it is refused as in its text."""
    module = weft.parse(SOURCE)
    config = weft.Config("llvm", executor="vm")
    made, wanted = (weft.compile(module, target) for target in (config, config.to_target()))
    assert made.to_bytes() == wanted.to_bytes()
    with pytest.raises(TargetError) as info:
        weft.compile(module, weft.Config("llvm", executor="vmm"))
    assert info.value.code == "W703"


def test_a_feature_that_the_machine_lacks_is_refused() -> None:
    lacking = next((name for name, has in host().features.items() if not has), None)
    if lacking is None:
        pytest.skip("this machine has every feature of its family")
    with pytest.raises(TargetError, match="lacks the feature"):
        weft.compile(weft.parse(SOURCE), f"llvm -mattr=+{lacking}")


@pytest.mark.parametrize("opt", [-1, 4, True, "2", None])
def test_a_wrong_optimisation_level_is_refused(opt: object) -> None:
    with pytest.raises(TargetError, match="opt is 0, 1, 2 or 3"):
        weft.compile(weft.parse(SOURCE), opt=opt)  # type: ignore[arg-type]


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(weft.PassError, match="cannot compile an int"):
        weft.compile(3)  # type: ignore[arg-type]


@pytest.mark.skipif(not X86, reason="features of x86-64")
@pytest.mark.parametrize("feature", ["avx512f", "avx2", "avx", "fma", "f16c", "sse3"])
def test_code_keeps_to_the_features_that_are_left(feature: str) -> None:
    """A rule that took an instruction which LLVM had been told not to use ended the process."""
    x = np.linspace(-2, 2, 33, dtype="float32")
    exe = weft.compile(weft.parse(SOURCE.replace("R.tanh(x)", "R.tanh(R.exp(x))")), f"llvm -mattr=-{feature}")
    np.testing.assert_allclose(exe["main"](x), np.tanh(np.exp(x)), rtol=1e-6)
    text = exe.source("asm")
    if feature in ("avx512f", "avx2", "avx"):
        assert "zmm" not in text
    if feature == "avx":
        assert "ymm" not in text
    if feature == "fma":
        assert "vfmadd" not in text


@pytest.mark.parametrize(
    "target",
    [
        "llvm -mcpu=x86-64 -mattr=-sse2",
        "llvm -mtriple=i686-linux-gnu -mattr=-sse",
        "llvm -mcpu=x86-64-v4 -mattr=+avx2,-sse",
    ],
)
def test_the_x87_unit_is_not_computed_with(target: str) -> None:
    """It keeps more digits than float64 has: exp was wrong by a factor there."""
    with pytest.raises(TargetError, match="x87") as info:
        weft.Target(target)
    assert info.value.code == "W727"
    weft.Target("llvm -mcpu=x86-64 -mattr=-sse2,+sse3")  # which brings it back


def test_code_for_32_bit_x86_has_the_registers_of_sse() -> None:
    made = weft.compile(weft.parse(SOURCE.replace("tanh", "exp")), "llvm -mtriple=i686-unknown-linux-gnu")
    assert b"sse2" in b"".join(str(item.provenance).encode() for item in made.values())


@pytest.mark.skipif(not X86, reason="features of x86-64")
def test_flags_decide_how_wide_vectors_are() -> None:
    widths = {
        flags: weft.Target(f"llvm -mcpu=x86-64-v4 {flags}").features.vector_bits
        for flags in ("", "-mattr=-avx512f", "-mattr=-fma", "-mattr=-avx2,+avx512f", "-mattr=-sse4.2")
    }
    assert list(widths.values()) == [512, 256, 256, 512, 128]


@pytest.mark.skipif(not X86, reason="features of x86-64")
def test_what_llvm_ends_the_process_on_is_an_error() -> None:
    for _ in range(2):  # the process in which it happened is replaced
        with pytest.raises(TargetError) as info:
            weft.compile(weft.parse(SOURCE), "llvm -mattr=-64bit")
        assert info.value.code == "W749"
        assert "64-bit code requested" in info.value.message
    x = np.linspace(-2, 2, 9, dtype="float32")
    np.testing.assert_allclose(weft.compile(weft.parse(SOURCE), "llvm -mattr=-fma")["main"](x), np.tanh(x), rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=host", f"llvm -mcpu={host().cpu}", "llvm -vector-bits=128"])
def test_explain_shows_the_machine_that_code_is_scheduled_for(target: str) -> None:
    """For `llvm` that is the processor of this machine, not what every processor of its architecture has."""
    shape = "R.Tensor((256, 256), 'float32')"
    text = f"@R.function\ndef main(x: {shape}, y: {shape}) -> {shape}:\n    return R.matmul(x, y)"
    found = re.search(r"lanes=(\d+)", str(weft.compile(weft.parse(text), target).explain()))
    assert found
    part = weft.Target(f"a: {target}; b: c").parts["a"]
    for explained in (weft.Target(target), weft.Target(target).complete(), part):
        assert f"machine.vector_bits = {32 * int(found[1])} (" in explained.explain()


def test_explain_shows_the_table_for_another_machine() -> None:
    lines = weft.Target("llvm -mcpu=cortex-a53").explain().splitlines()
    assert lines[-len(fields(MachineModel)) :] == weft.Target("llvm -mcpu=cortex-a53").machine.explain()
