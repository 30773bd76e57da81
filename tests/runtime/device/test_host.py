"""Matrices in registers are features of this machine only where the system lets a process use them."""

from __future__ import annotations

from textwrap import dedent

import pytest

import weft
from weft.codegen.backends.llvm.machine import host_target
from weft.errors import ArtifactError, TargetError
from weft.ir import IRModule
from weft.runtime import archive
from weft.runtime.device.host import Host, allowed
from weft.target import Target

FOUND = Host(
    "x86_64-unknown-linux-gnu",
    "sapphirerapids",
    {"amx-bf16": True, "amx-tile": True, "avx2": True, "amx-fp16": False},
    "+amx-bf16,+amx-tile,+avx2,-amx-fp16",
    "1",
)


def test_a_system_that_refuses_leaves_the_features_off() -> None:
    refused = allowed(FOUND, lambda: "no leave")
    assert refused.features == {"amx-bf16": False, "amx-tile": False, "avx2": True, "amx-fp16": False}
    assert refused.flags == "-amx-bf16,-amx-tile,+avx2,-amx-fp16"
    assert refused.refused == "no leave"


def test_a_system_that_grants_them_changes_nothing_and_none_is_asked_in_vain() -> None:
    assert allowed(FOUND, lambda: "") is FOUND

    def asked() -> str:
        raise AssertionError("nothing to ask for")

    plain = Host(FOUND.triple, "znver4", {"avx2": True}, "+avx2", "1")
    assert allowed(plain, asked) is plain


def test_what_is_off_is_said_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_target, "host", lambda: allowed(FOUND, lambda: "no leave"))
    monkeypatch.setattr(archive, "host", lambda: allowed(FOUND, lambda: "no leave"))
    with pytest.raises(TargetError, match=r"W731: this machine lacks the feature amx-bf16: no leave"):
        host_target.host_target(Target("llvm -mattr=+amx-bf16"))
    with pytest.raises(ArtifactError, match=r"lacks amx-bf16 \(no leave\)"):
        archive._check_host([FOUND.triple, "sapphirerapids", "+amx-bf16,+avx2"], "a.weft")


def test_code_for_a_processor_by_name_has_its_instructions() -> None:
    """Assembly of another machine, which any machine can read: a program that asks Linux for leave as it starts."""
    module = weft.parse(
        dedent("""
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((64, 128), "bfloat16"), w: R.Tensor((128, 64), "bfloat16")):
            y = R.matmul(x, w)
            return y
    """)
    )
    assert isinstance(module, IRModule)
    target = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={}"
    codes = {cpu: b"".join(_objects(module, target.format(cpu))) for cpu in ("graniterapids", "icelake-server")}
    multiply, ask = bytes.fromhex("c4e24a5cc4"), b"\0syscall\0"  # tdpbf16ps %tmm6, %tmm4, %tmm0
    assert {cpu: (multiply in code, ask in code) for cpu, code in codes.items()} == {
        "graniterapids": (True, True),
        "icelake-server": (False, False),
    }


def _objects(module: IRModule, target: str) -> list[bytes]:
    made = weft.compile(module, target)
    return [item.data for item in made.values() if item.kind == "object"]
