"""Machine code for other machines: emitted in a child process, checked by the header of the object file."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import weft
from weft.codegen.backends.llvm.machine.cross import CrossMachine, cross_machine, emit_object
from weft.codegen.backends.llvm.math import arithmetic
from weft.errors import TargetError
from weft.ir import Function
from weft.runtime.artifact import ArtifactSet
from weft.runtime.device.object_symbols import HOST_SYMBOLS, needed
from weft.target import Target

# ELF machine numbers: Arm 40, x86-64 62, AArch64 183, RISC-V 243. Source: the ELF specification.
MACHINES = {
    "llvm -mcpu=cortex-m0": (1, 40),
    "llvm -mcpu=cortex-m7f": (1, 40),
    "llvm -mcpu=cortex-a72": (2, 183),
    "llvm -mcpu=generic-rv64": (2, 243),
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4": (2, 62),
}


def model() -> Function:
    found = weft.parse(
        """
@R.function
def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
    with R.dataflow():
        y = R.nn.softmax(R.matmul(x, R.const([[1.0, 2.0, 3.0, 4.0]] * 4, "float32")))
        R.output(y)
    return y
""".replace("[[1.0, 2.0, 3.0, 4.0]] * 4", str([[1.0, 2.0, 3.0, 4.0]] * 4))
    )
    assert isinstance(found, Function)
    return found


@pytest.mark.parametrize(("target", "expected"), MACHINES.items())
def test_an_object_is_for_the_machine_of_the_target(target: str, expected: tuple[int, int]) -> None:
    """E1, E5: word size and machine of the ELF header; the header for C and the symbol stand beside it."""
    made = weft.compile(model(), target)
    if not isinstance(made, ArtifactSet):
        assert "x86_64" in target  # this machine has every feature asked for
        return
    assert made.names == ("model.h", "model.o")
    code = made["model.o"]
    assert code.data[:4] == b"\x7fELF"
    assert (code.data[4], struct.unpack_from("<H", code.data, 18)[0]) == expected
    assert [symbol.name for symbol in code.provides] == ["model_message", "model_run"]
    assert b"model_run\0" in code.data
    assert Target(code.target) == Target(target)
    assert "int32_t model_run(" in made["model.h"].data.decode()


EXTREMES = """
@R.function
def main(x: R.Tensor((8,), "float32"), y: R.Tensor((8,), "float64")):
    return R.minimum(x, R.maximum(x, R.const(0.5, "float32"))), R.max(y), R.min(y), R.round(x), R.floor(y)
"""


BOARDS = ["llvm -mcpu=cortex-m0", "llvm -mcpu=cortex-m4", "llvm -mtriple=riscv32-unknown-elf"]


@pytest.mark.parametrize("target", BOARDS)
def test_objects_for_boards_need_what_c99_and_the_compilers_library_have(target: str) -> None:
    """E5: without a floating-point unit LLVM calls fmaximum of C23 for a maximum, which no C library there has."""
    made = weft.compile(weft.parse(EXTREMES), target)
    assert isinstance(made, ArtifactSet)
    needs = needed(made["model.o"].data)
    assert needs
    assert {name for name in needs if not name.startswith("__")} <= HOST_SYMBOLS


def test_extremes_by_comparisons_are_nan_where_either_side_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "EXTREMES", frozenset())
    monkeypatch.setenv("WEFT_CACHE_DIR", "off")
    module = weft.parse(
        "@R.function\ndef main(x: R.Tensor((21,), 'float64'), y: R.Tensor((21,), 'float64')):\n"
        "    return R.maximum(x, y), R.minimum(x, y), R.max(x), R.min(y)\n"
    )
    values = [np.nan, np.inf, -np.inf, 1.0, -2.0, 0.0, 5.0]
    x, y = np.array(values * 3), np.array(values + values[1:] + values[:1] + values[2:] + values[:2])
    exe = weft.compile(module)
    assert "fcmp ogt" in exe.source("llvm") or "fcmp olt" in exe.source("llvm")
    for found, expected in zip(exe["main"](x, y), (np.maximum(x, y), np.minimum(x, y), x.max(), y.min()), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("triple", "magic"),
    [
        ("x86_64-linux-gnu-macho", b"\xcf\xfa\xed\xfe"),
        ("x86_64-linux-musl", b"\x7fELF"),
        ("x86_64-linux-gnux32", None),
    ],
)
def test_what_a_triple_says_of_this_family_besides_is_obeyed_or_refused(triple: str, magic: bytes | None) -> None:
    """E5: an environment or a format of objects that is not this machine's gives objects, not code that runs here."""
    if magic is None:
        with pytest.raises(TargetError, match="pointers of 32 bits"):
            weft.compile(model(), f"llvm -mtriple={triple}")
        return
    made = weft.compile(model(), f"llvm -mtriple={triple}")
    assert isinstance(made, ArtifactSet)
    assert made["model.o"].data.startswith(magic)


def test_a_wasm_object_has_the_header_of_one() -> None:
    """E5: the magic number and version of WebAssembly."""
    made = weft.compile(model(), "llvm -mtriple=wasm32-unknown-unknown")
    assert made["model.o"].data[:8] == b"\0asm\x01\0\0\0"


def test_the_same_module_gives_the_same_object() -> None:
    """C9: byte for byte."""
    target = "llvm -mcpu=cortex-m4"
    assert weft.compile(model(), target) == weft.compile(model(), target)


def test_a_fatal_error_of_llvm_does_not_end_this_process() -> None:
    """E5: what LLVM dies of is an error with its words."""
    text = (
        "declare float @llvm.exp.f32(float)\n"
        "define float @f(float %x) {\n  %y = call float @llvm.exp.f32(float %x)\n  ret float %y\n}\n"
    )
    with pytest.raises(TargetError, match="llvm cannot compile this for nvptx64-nvidia-cuda") as caught:
        emit_object(CrossMachine("nvptx64-nvidia-cuda", "sm_80"), text)
    assert caught.value.code == "W749"
    with pytest.raises(TargetError, match="llvm cannot compile this for thumbv6m") as caught:
        emit_object(cross_machine(Target("llvm -mcpu=cortex-m0")), "this is no assembly")
    assert caught.value.code == "W749"


def test_triples_are_spelt_in_full_for_llvm() -> None:
    """E11: bare metal in four components, the convention of floats in the last one."""
    spelled = {
        "llvm -mcpu=cortex-m4f -mfloat-abi=hard": "thumbv7em-none-unknown-eabihf",
        "llvm -mcpu=cortex-m0": "thumbv6m-none-unknown-eabi",
        "llvm -mcpu=cortex-a72": "aarch64-unknown-linux-gnu",
        "llvm -mtriple=wasm32-unknown-unknown": "wasm32-unknown-unknown",
    }
    assert {text: cross_machine(Target(text)).triple for text in spelled} == spelled
    assert "+soft-float" in cross_machine(Target("llvm -mcpu=cortex-m4")).features
    assert "+soft-float" not in cross_machine(Target("llvm -mcpu=cortex-m4f")).features


@pytest.mark.parametrize(
    ("target", "executor", "code"),
    [
        ("llvm -mcpu=cortex-m0", "vm", "W739"),
        ("a: llvm -mcpu=cortex-m0; b: llvm -mcpu=cortex-m7", None, None),
        ("host: llvm; b: llvm -mcpu=cortex-m7", None, None),
    ],
)
def test_parts_that_nothing_belongs_to_need_no_code(target: str, executor: str | None, code: str | None) -> None:
    """E5: an executor that another machine does not have is refused; parts without functions are fine."""
    if code is None:
        assert weft.compile(model(), target, executor=executor) is not None
        return
    with pytest.raises(TargetError) as caught:
        weft.compile(model(), target, executor=executor)
    assert caught.value.code == code


def test_a_part_of_another_machine_cannot_be_called_from_this_one() -> None:
    """E5: the label, the machine and the function are named."""
    text = model().script().replace("R.nn.softmax(lv)", 'R.nn.softmax(lv, target="board")')
    module = weft.parse(text)
    assert 'target="board"' in module.script()
    with pytest.raises(TargetError) as caught:
        weft.compile(module, "host: llvm; board: llvm -mcpu=cortex-m7")
    assert caught.value.code == "W736"
    for part in ("'softmax'", "part 'board' (llvm -mcpu=cortex-m7)"):
        assert part in caught.value.message
