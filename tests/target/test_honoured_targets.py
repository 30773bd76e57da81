"""What a target says is obeyed, or refused with the reason: change the field, see the effect."""

from __future__ import annotations

import struct

import pytest

import weft

MODEL = '@R.function\ndef main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):\n{}    return y\n'
PLAIN = weft.parse(MODEL.format("    y = R.exp(x)\n"))
CALL = weft.parse(MODEL.format('    y = R.exp(x, target="gpu")\n'))
WHOLE = weft.parse(MODEL.format('    R.func_attr({"target": "gpu"})\n    y = R.exp(x)\n'))


def made(target: str) -> weft.ArtifactSet:
    found = weft.compile(PLAIN, target)
    assert isinstance(found, weft.ArtifactSet)
    return found


@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_the_standard_of_c_is_what_the_compiler_is_told(standard: str) -> None:
    for name in ("Makefile", "CMakeLists.txt"):
        assert f"-std={standard} " in made(f"c -std={standard}")[name].data.decode()


@pytest.mark.parametrize(("triple", "convention"), [("eabi", "softfp"), ("eabihf", "hard")])
def test_the_environment_of_a_triple_says_how_c_passes_floats(triple: str, convention: str) -> None:
    flags = str(made(f"c -mcpu=cortex-m7 -mfpu=fpv5-d16 -mtriple=thumbv7em-none-{triple}")["model_main.c"].provenance)
    assert f"-mfloat-abi={convention}" in flags


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("c -mcpu=cortex-m0 -mattr=+dsp", "W725"),
        ("c -mtriple=thumbv7em-none-eabi", "W725"),
        ("llvm -mcpu=cortex-m4 -mattr=+nonsense", "W732"),
        ("llvm -mattr=+nonsense", "W732"),
        ("llvm -mtriple=thumbv6m-none-eabihf", "W724"),
        ("llvm -mtriple=armv6m-none-eabihf", "W724"),
        ("llvm -mtriple=armv7em-none-eabi -mattr=+neon", "W732"),
        ("llvm -mcpu=cortex-m0 -mtriple=thumbv6m-none-eabihf", "W724"),
        ("llvm -mcpu=cortex-m3 -mtriple=thumbv7m-none-eabihf", "W724"),
        ("cuda", "W701"),
        ("ptx", "W701"),
        ("nvptx", "W701"),
    ],
)
def test_what_nothing_obeys_is_refused(target: str, code: str) -> None:
    with pytest.raises(weft.TargetError) as caught:
        weft.compile(PLAIN, target)
    assert caught.value.code == code


@pytest.mark.parametrize("target", ["llvm -mtriple=nvptx64-nvidia-cuda", "llvm -mcpu=sm_80"])
def test_graphics_processors_are_described_and_not_compiled_for(target: str) -> None:
    """E5: what there is and what there is not, in weft's words."""
    assert weft.Target(target).triple.arch == "nvptx64"
    with pytest.raises(weft.TargetError, match="W749: no code is made for graphics processors yet"):
        weft.compile(PLAIN, target)


def test_features_that_are_known_are_obeyed_after_one_that_was_not() -> None:
    """The process that LLVM runs in is asked again."""
    with pytest.raises(weft.TargetError):
        made("llvm -mcpu=cortex-m4 -mattr=+nonsense")
    assert made("llvm -mcpu=cortex-m4 -mattr=+dsp").names == ("model.h", "model.o")


@pytest.mark.parametrize(
    ("triple", "magic"),
    [
        ("x86_64-pc-windows-msvc", struct.pack("<H", 0x8664)),
        ("x86_64-apple-darwin", struct.pack("<I", 0xFEEDFACF)),
        ("x86_64-unknown-none", b"\x7fELF"),
    ],
)
def test_the_format_of_objects_is_that_of_the_system(triple: str, magic: bytes) -> None:
    assert made(f"llvm -mtriple={triple}")["model.o"].data.startswith(magic)


@pytest.mark.parametrize("module", [CALL, WHOLE])
@pytest.mark.parametrize("target", [None, "llvm", "c"])
def test_labels_are_refused_where_there_are_no_parts(module: object, target: str | None) -> None:
    with pytest.raises(weft.TargetError, match=r"is labelled 'gpu', and the target \w+ has no parts") as caught:
        weft.compile(module, target)  # type: ignore[arg-type]
    assert caught.value.code == "W707"


@pytest.mark.parametrize("executor", ["native", "vm", "graph"])
def test_c_has_no_executor_but_its_own(executor: str) -> None:
    with pytest.raises(weft.TargetError) as caught:
        weft.compile(PLAIN, "c", executor=executor)
    assert (caught.value.code, caught.value.hint) == ("W739", "leave the executor out, or say one of: aot")


def test_a_runtime_that_changes_nothing_is_refused() -> None:
    with pytest.raises(weft.TargetError, match="changes nothing") as caught:
        weft.compile(PLAIN, weft.Config("c -mcpu=cortex-m7", runtime="rtos"))
    assert caught.value.code == "W738"
