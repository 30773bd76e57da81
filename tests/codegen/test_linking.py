"""Compiled code refers to nothing but what its tables say: no library has to be loaded by luck."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from weft.codegen.backends.llvm.machine.cross import CrossMachine, emit_object
from weft.errors import ArtifactError
from weft.runtime.device.linker import Library, machine_code
from weft.runtime.device.object_symbols import HOST_SYMBOLS, PROCESS_SYMBOLS, absent_symbols, defined, needed

LINKING = Path(__file__).with_name("linking.py")


def object_of(text: str, cpu: str = "x86-64-v3") -> bytes:
    return emit_object(CrossMachine("x86_64-unknown-linux-gnu", cpu), text)


def test_every_operator_cast_and_executor_links_on_every_level_of_processor() -> None:
    """In a process of its own, where nothing that the tests load is there; `make test-linking` asks for more."""
    done = subprocess.run([sys.executable, str(LINKING), "quick"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_a_conversion_that_llvm_calls_its_own_library_for_would_be_found() -> None:
    code = object_of("define half @f(double %x) {\n  %y = fptrunc double %x to half\n  ret half %y\n}")
    assert needed(code) == {"__truncdfhf2"}
    assert not needed(code) & (HOST_SYMBOLS | PROCESS_SYMBOLS)


def test_symbols_are_read_as_the_linker_reads_them() -> None:
    code = object_of(
        "declare double @sin(double)\n@hidden = internal global i32 1\n"
        "define internal i32 @inside() noinline {\n  %x = load volatile i32, ptr @hidden\n  ret i32 %x\n}\n"
        "define double @f(double %x) {\n  %i = call i32 @inside()\n  %y = call double @sin(double %x)\n"
        "  ret double %y\n}"
    )
    assert (needed(code), defined(code)) == ({"sin"}, {"f"})


def test_a_symbol_that_the_process_lacks_is_named_when_code_is_loaded() -> None:
    text = "declare double @{0}(double)\ndefine double @{1}(double %x) {{\n  %y = call double @{0}(double %x)\n"
    text += "  ret double %y\n}}"
    first, second = (machine_code(text.format(*names)) for names in (("g", "f"), ("absent_here", "g")))
    for imports, wanted in (({}, ["absent_here"]), ({"absent_here": 1}, [])):
        assert absent_symbols([first, second], imports) == wanted
    with pytest.raises(ArtifactError, match="nothing provides absent_here") as info:
        Library([first, second], ["f"])
    assert (info.value.code, "RTLD_GLOBAL" in (info.value.hint or "")) == ("W815", True)


@pytest.mark.parametrize("code", [b"", b"\x7fELF\x01\x01" + bytes(64), b"\x7fELF\x02\x01" + b"\xff" * 64])
def test_what_is_no_object_is_refused(code: bytes) -> None:
    with pytest.raises(ArtifactError) as info:
        needed(code)
    assert info.value.code == "W819"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the tables are those of the GNU C library")
def test_the_process_has_what_the_tables_say() -> None:
    process = ctypes.CDLL(None)
    assert [name for name in sorted(HOST_SYMBOLS | PROCESS_SYMBOLS) if not hasattr(process, name)] == []
