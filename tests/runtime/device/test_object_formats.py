"""What an object provides and needs is read from it, in each format that LLVM writes (H2, E5, E11)."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.codegen.backends.llvm.machine.cross import cross_machine, emit_object
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.device.artifact_symbols import check_symbols
from weft.runtime.device.object_formats import object_symbols
from weft.runtime.device.object_symbols import defined, needed
from weft.script import relax as R

TRIPLES = {
    "x86_64-linux-gnu-macho": "macho",
    "x86_64-linux-musl": "elf",
    "aarch64-linux-gnu": "elf",
    "riscv64-linux-gnu": "elf",
    "thumbv7em-none-eabi": "elf",
    "i686-linux-gnu": "elf",
    "x86_64-apple-macosx": "macho",
    "arm64-apple-ios": "macho",
    "i686-apple-macosx": "macho",
    "x86_64-pc-windows-msvc": "coff",
    "aarch64-pc-windows-msvc": "coff",
    "i686-pc-windows-msvc": "coff",
    "wasm32-unknown-unknown": "wasm",
    "wasm64-unknown-unknown": "wasm",
}
MAGIC = {"elf": (b"\x7fELF",), "wasm": (b"\0asm",), "coff": (b"\x64\x86", b"\x64\xaa", b"\x4c\x01")}
MAGIC["macho"] = (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")


@R.function
def model(x: R.Tensor((4, 3), "float32"), y: R.Tensor((4, 3), "float32")):
    return R.power(x, R.exp(y))


_made: dict[str, Artifact] = {}


def made(triple: str) -> Artifact:
    """The object of a small model that calls the C library."""
    if triple not in _made:
        (_made[triple],) = (a for a in weft.compile(model, f"llvm -mtriple={triple}").values() if a.kind == "object")
    return _made[triple]


@pytest.mark.parametrize("triple", TRIPLES)
def test_an_object_says_itself_what_it_provides_and_needs(triple: str, tmp_path: Path) -> None:
    item = made(triple)
    assert item.data.startswith(MAGIC[TRIPLES[triple]])
    assert {symbol.name for symbol in item.provides} == defined(item.data) >= {"model_run", "model_message"}
    assert {symbol.name for symbol in item.needs} == needed(item.data)
    check_symbols(item)
    for wrong in ((*item.provides, Symbol("more")), item.provides[1:]):
        with pytest.raises(weft.ArtifactError) as caught:
            check_symbols(Artifact(item.kind, item.name, item.data, provides=wrong, needs=item.needs))
        assert caught.value.code == "W821"
    tool = shutil.which("llvm-nm")
    if tool is not None:
        (tmp_path / "code.o").write_bytes(item.data)
        done = subprocess.run([tool, "--extern-only", tmp_path / "code.o"], capture_output=True, text=True, check=True)
        rows = [line.split()[-2:] for line in done.stdout.splitlines() if line.strip()]
        prefix = "_" if TRIPLES[triple] == "macho" or (triple.startswith("i686") and "windows" in triple) else ""
        names = {kind: {name.removeprefix(prefix) for k, name in rows if (k == "U") == kind} for kind in (True, False)}
        assert names == {True: needed(item.data), False: defined(item.data)}


def test_artifacts_of_other_machines_are_verified_by_reading(tmp_path: Path) -> None:
    from weft.__main__ import main

    for triple in ("x86_64-apple-macosx", "i686-pc-windows-msvc", "wasm32-unknown-unknown"):
        ArtifactSet([made(triple)]).save(tmp_path / "made.zip")
        assert main(["artifact", "verify", str(tmp_path / "made.zip")]) == 0


@pytest.mark.parametrize(
    ("triple", "others"),
    [
        ("x86_64-linux-gnu-wasm", "elf, macho"),
        ("x86_64-linux-gnu-coff", "elf, macho"),
        ("aarch64-linux-gnu-coff", "elf, macho"),
        ("aarch64-windows-msvc-macho", "elf, coff"),
        ("riscv64-linux-gnu-macho", "elf"),
        ("thumbv7em-apple-none-elf", "macho"),
        ("wasm32-unknown-unknown-elf", "wasm"),
    ],
)
def test_a_format_that_llvm_does_not_write_for_a_machine_is_refused(triple: str, others: str) -> None:
    """E5: LLVM ends the process at most of them."""
    with pytest.raises(weft.TargetError, match="llvm writes no") as caught:
        weft.compile(model, f"llvm -mtriple={triple}")
    assert caught.value.code == "W749"
    assert (caught.value.hint or "").endswith(f"say one of: {others}")


SYMBOLS = """
@shared = common global i32 0
@hidden = internal global i32 3
@elsewhere = external global i32
@own = global i32 5
declare i32 @callee(i32)
declare extern_weak i32 @maybe(i32)
define weak i32 @replaced(i32 %x) {
  ret i32 %x
}
define internal i32 @inner(i32 %x) noinline {
  %p = load volatile i32, ptr @hidden
  %r = add i32 %x, %p
  ret i32 %r
}
define i32 @outer(i32 %x) {
  %a = call i32 @callee(i32 %x)
  %b = load volatile i32, ptr @elsewhere
  %c = call i32 @inner(i32 %b)
  %d = load volatile i32, ptr @shared
  %e = icmp ne ptr @maybe, null
  %f = zext i1 %e to i32
  %g = add i32 %a, %c
  %h = add i32 %g, %d
  %i = add i32 %h, %f
  ret i32 %i
}
"""


@pytest.mark.parametrize("triple", [t for t in TRIPLES if "musl" not in t])
def test_symbols_of_every_kind_are_told_apart(triple: str) -> None:
    """H2: common, local, weak ones and data, which no code of weft's has today."""
    wasm = triple.startswith("wasm")  # has no common symbols
    text = SYMBOLS.replace("common global", "global") if wasm else SYMBOLS
    code = emit_object(cross_machine(weft.Target(f"llvm -mtriple={triple}")), text)
    of_linker = {name for name in needed(code) if name.startswith(("__", "_GLOBAL_OFFSET_TABLE_"))}
    assert {name for name in defined(code) if "." not in name} == {"shared", "own", "replaced", "outer"}
    assert needed(code) - of_linker == {"elsewhere", "callee", "maybe"}


@settings(max_examples=60, deadline=None)
@given(data=st.data(), triple=st.sampled_from(list(TRIPLES)))
def test_a_damaged_object_is_an_error(data: st.DataObject, triple: str) -> None:
    """H10: bytes cut off or changed are read as something, or refused; nothing else is raised."""
    code = bytearray(made(triple).data)
    for _ in range(data.draw(st.integers(0, 3))):
        code[data.draw(st.integers(4, len(code) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(code[: data.draw(st.integers(0, len(code)))])
    with contextlib.suppress(weft.ArtifactError):
        assert all(isinstance(symbol.name, str) for symbol in object_symbols(cut))
    with pytest.raises(weft.ArtifactError) as caught:
        object_symbols(cut[:3])
    assert caught.value.code == "W819"


def test_imports_of_every_kind_of_wasm_are_passed_over() -> None:
    """H2: a function is found behind a tag, a table, a memory and a global."""
    kinds = [b"\x04\x00\x00", b"\x01\x70\x01\x01\x02", b"\x02\x00\x01", b"\x03\x7f\x00", b"\x00\x05"]
    imports = bytes([len(kinds)]) + b"".join(b"\x03env\x01" + bytes([97 + i]) + kind for i, kind in enumerate(kinds))
    table = b"\x01\x00\x10\x00"  # one symbol: the first function, undefined
    linking = b"\x07linking\x02\x08" + bytes([len(table)]) + table
    sections = b"".join(bytes([kind, len(data)]) + data for kind, data in ((2, imports), (0, linking)))
    assert [item.name for item in object_symbols(b"\0asm\x01\0\0\0" + sections)] == ["e"]
