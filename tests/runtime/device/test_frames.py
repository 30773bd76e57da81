"""What calls take of the stack is read from machine code."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm
import pytest

from weft.runtime.device import frames

TEXT = """
declare void @{callee}(ptr)

define void @{name}(ptr %other) {{
  %memory = alloca [{size} x i8], align {align}
  call void @{callee}(ptr %memory)
  ret void
}}
"""


def code(machine: str, name: str, callee: str, size: int, align: int = 16) -> bytes:
    """Object code of a function with so many bytes in its frame, which calls another one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = f"{machine}-unknown-linux-gnu"
    module = llvm.parse_assembly(TEXT.format(name=name, callee=callee, size=size, align=align))
    module.triple = triple
    return llvm.Target.from_triple(triple).create_target_machine(reloc="pic").emit_object(module)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_frames_of_calls_that_nest_are_added(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    small, large = code(machine, "inner", "use", 1 << 10), code(machine, "inner", "use", 3 << 20)
    outer, beside = code(machine, "outer", "inner", 40 << 10), code(machine, "beside", "use", 2 << 20)
    assert frames.stack_need([small]) == 0
    for objects, sizes in (
        ([outer, small], 40 << 10),
        ([large, outer], (3 << 20) + (40 << 10)),
        ([outer, beside], 2 << 20),
    ):
        assert sizes <= frames.stack_need(objects) <= sizes + (16 << 10)


def test_memory_that_is_aligned_takes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    made = code("x86_64", "aligned", "use", 64 << 10, align=32 << 10)
    assert frames.stack_need([made]) >= 96 << 10


def test_functions_that_reach_themselves_count_as_often_as_they_nest_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    objects = [code("x86_64", "outer", "inner", 40 << 10), code("x86_64", "inner", "outer", 40 << 10)]
    assert 16 * (40 << 10) < frames.stack_need(objects) <= frames.NESTED * (41 << 10) + (16 << 10)
