"""Symbols of object files under other names, in every format that is rewritten, read back and linked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from weft.codegen.backends.llvm.machine.cross import CrossMachine, emit_object
from weft.errors import ArtifactError
from weft.runtime.device.linker import Library, machine_code
from weft.runtime.device.object_formats import object_symbols
from weft.runtime.device.object_renaming import renamed_symbols

TEXT = """
@short_v = internal global i32 1
declare double @m_outside(double)
declare double @sin(double)
define internal double @m_inside(double %x) noinline {
  %y = call double @sin(double %x)
  ret double %y
}
define double @m_f(double %x) {
  %y = call double @m_inside(double %x)
  %z = call double @m_outside(double %y)
  ret double %z
}
"""


def rename(name: str) -> str:
    return f"another_longer_{name}" if name.startswith("m_") else name


@pytest.mark.parametrize(
    ("triple", "cpu"),
    [
        ("x86_64-unknown-linux-gnu", "x86-64"),
        ("thumbv7em-none-eabi", "cortex-m4"),
        ("arm64-apple-macosx", "apple-m1"),
        ("x86_64-pc-windows-msvc", "x86-64"),
        ("i686-pc-windows-msvc", "i686"),
    ],
)
def test_every_symbol_gets_its_name_and_nothing_else_changes(triple: str, cpu: str) -> None:
    code = emit_object(CrossMachine(triple, cpu), TEXT)
    made = renamed_symbols(code, rename, "m.o")
    before, after = object_symbols(code), object_symbols(made)
    assert [(rename(item.name), item.defined, item.local) for item in before] == [
        (item.name, item.defined, item.local) for item in after
    ]
    assert {"another_longer_m_f", "another_longer_m_outside", "sin"} <= {item.name for item in after}
    assert renamed_symbols(code, str, "m.o") is code
    assert {item.name for item in object_symbols(renamed_symbols(made, lambda name: name[-3:], "m.o"))} >= {
        "m_f",
        "sin",
    }


def test_renamed_code_is_linked_by_its_new_names(tmp_path: Path) -> None:
    outside = machine_code("define double @another_longer_m_outside(double %x) {\n  ret double %x\n}")
    code = renamed_symbols(machine_code(TEXT), rename, "m.o")
    assert Library([code, outside], ["another_longer_m_f"]).addresses["another_longer_m_f"]
    if (nm := shutil.which("nm")) is not None:
        (tmp_path / "m.o").write_bytes(code)
        listed = subprocess.run([nm, str(tmp_path / "m.o")], capture_output=True, text=True, check=True).stdout
        assert {" T another_longer_m_f", " U another_longer_m_outside", " U sin"} <= {
            line[16:] for line in listed.splitlines()
        }


def test_wasm_is_refused_where_something_would_change() -> None:
    code = emit_object(CrossMachine("wasm32-unknown-unknown", ""), TEXT)
    assert renamed_symbols(code, str, "m.o") is code
    with pytest.raises(ArtifactError) as caught:
        renamed_symbols(code, rename, "m.o")
    assert caught.value.code == "W814"
