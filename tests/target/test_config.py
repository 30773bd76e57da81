"""Configurations: structured fields, defaults, memory pools, the flat view, merging of separate arguments."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import Config, Target, TargetError, tag

FULL = (
    "config -executor=aot -runtime=bare -memory.sram.bytes=16K -memory.sram.rw=host,npu -memory.flash.bytes=1M"
    " -memory.flash.ro -package.format=tree -package.name=kws { host: c -mcpu=cortex-m7; npu: llvm }"
)


def four_forms(target: Target) -> None:
    assert Target(target.to_str()) == Target(target.to_dict()) == Target(target.to_json()) == Target(target) == target
    assert len({hash(Target(form)) for form in (target.to_str(), target.to_dict(), target.to_json())}) == 1


def test_a_field_that_a_configuration_has_not_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TargetError) as caught:
        Config("c", executer="vm")
    assert str(caught.value) == "W702: a configuration has no field 'executer'\nhint: did you mean 'executor'?"
    assert copy.deepcopy(Config("c", executor="vm")) == dataclasses.replace(Config("c"), executor="vm")


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("config -executor.knd=aot { a: c }", "W702", "field 'executor' has no 'knd'", "did you mean 'kind'?"),
        ("config -runtime.kind=bar { a: c }", "W703", "option 'kind' of field 'runtime' cannot be 'bar'", "'bare'?"),
        ("config -package=zip { a: c }", "W703", "option 'format' of field 'package' cannot be 'zip'", "one of"),
        ("config -memory.sram.byte=3 { a: c }", "W702", "memory pool 'sram' has no 'byte'", "did you mean 'bytes'?"),
        ("config -memory.sram.bytes=3Q { a: c }", "W703", "memory pool 'sram' has no size '3Q'", "as in 16384"),
        ("config -memory.sram.bytes=0 { a: c }", "W703", "memory pool 'sram' has 0 bytes", None),
        ("config -memory.sram=16K { a: c }", "W703", "memory pool 'sram' takes named values", None),
        ("config -memory=16K { a: c }", "W703", "field 'memory' takes pools by name", None),
        ("config -memory.sram.rw=abc { ab: c }", "W703", "is for 'abc', which is no part", "did you mean 'ab'?"),
        ("config -memory.f.ro -memory.f.rw=a { a: c }", "W703", "'f' is read only, and a may write it", None),
    ],
)
def test_what_a_field_cannot_be_is_refused_with_the_nearest_name(
    text: str, code: str, message: str, hint: str | None
) -> None:
    """E7: at its place in the text."""
    with pytest.raises(TargetError) as caught:
        Target(text)
    error = caught.value
    assert error.code == code
    assert message in error.message
    assert hint is None or hint in (error.hint or "")
    assert error.span is not None
    assert error.span.column == 8


def test_fields_are_typed_and_pools_keep_their_order() -> None:
    """E7: sizes are numbers, rights are lists of labels; the first pool is the preferred one."""
    target = Target(FULL)
    memory = target.options["memory"]
    assert list(memory) == ["sram", "flash"]
    assert (memory["sram"]["bytes"], memory["flash"]["ro"]) == (16384, True)
    assert tuple(memory["sram"]["rw"]) == ("host", "npu")
    four_forms(target)
    other = FULL.replace("-memory.flash.bytes=1M", "")
    other = other.replace("-memory.sram.bytes", "-memory.flash.bytes=1M -memory.sram.bytes")
    assert list(Target(other).options["memory"]) == ["flash", "sram"]
    assert Target(other) != target
    assert Target("a: c; b: c") != Target("b: c; a: c")
    assert Target("config -executor.entry=struct -executor.kind=aot { a: c }") == Target(
        {"kind": "config", "executor": {"kind": "aot", "entry": "struct"}, "parts": {"a": "c"}}
    )


def test_a_pool_is_named_like_a_variable() -> None:
    """E7: its name stands in generated C."""
    with pytest.raises(TargetError, match="a memory pool is named like a variable of C, got 'a-b'"):
        Target({"kind": "config", "memory": {"a-b": {"bytes": 1}}, "parts": {"a": "c"}})


def test_a_configuration_is_a_target_that_can_be_tagged_and_nested() -> None:
    """E8: named, recorded with its fields, a part of another one."""
    tag.register("example/board", FULL)
    try:
        board = Target("example/board -host.mcpu=cortex-m4")
        assert board.tag == "example/board"
        assert board.part("host").cpu == "cortex-m4"
        assert board.options["executor"]["kind"] == "aot"
        four_forms(board)
        outer = Target({"kind": "config", "executor": "vm", "parts": {"edge": board, "main": "llvm"}})
        four_forms(outer)
    finally:
        tag.unregister("example/board")
    assert Target(outer.to_json()).part("edge").part("host").cpu == "cortex-m4"  # what was recorded stays


@pytest.mark.parametrize("field", ["executor", "runtime", "memory", "package"])
@pytest.mark.parametrize("leaf", ["c", "llvm"])
def test_what_belongs_to_a_configuration_is_refused_by_a_leaf(leaf: str, field: str) -> None:
    """E12, E9: `-runtime=bare` is for a configuration; the schema of a kind has no such field."""
    with pytest.raises(TargetError, match=f"'{field}' belongs to a compilation configuration") as caught:
        Target(f"{leaf} -{field}=bare")
    assert caught.value.code == "W704"
    config = Target(f"config -runtime=bare {{ main: {leaf} }}")
    assert config.options["runtime"]["kind"] == "bare"
    assert field not in config.part("main").kind.fields


def test_defaults_are_enough_and_explained() -> None:
    """E16: each field says whether it was given, is a default, comes from a tag, or follows from the processor."""
    completed = Target("config -executor=aot { host: c -mcpu=cortex-m4 }").complete()
    lines = completed.explain().splitlines()
    assert 'executor = {"kind": "aot", "entry": "struct"} (given)' in lines
    assert 'runtime = {"alloc": "none"} (default)' in lines
    assert "  mcpu = cortex-m4 (given)" in lines
    assert "  std = c99 (default)" in lines
    assert "  mfpu = none (derived)" in lines
    assert "  mtriple = thumbv7em-none-none-eabi (derived)" in lines
    assert 'runtime = {"alloc": "none"} (default)' in Target("config { a: c }").explain().splitlines()


BOARDS = [f"c -mcpu=cortex-{name}" for name in ("m0", "m4f", "m55")]
LEAVES = st.sampled_from(["c", "llvm", "llvm -mcpu=znver4", *BOARDS])
SIZES = st.one_of(st.integers(1, 2**40), st.sampled_from(["1K", "16M", "2G"]))


@st.composite
def configurations(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    labels = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=3, unique=True))
    inner = configurations(depth=depth - 1) if depth else LEAVES
    parts = {label: draw(st.one_of(LEAVES, inner)) for label in labels}
    data: dict[str, Any] = {"kind": "config", "parts": parts}
    if draw(st.booleans()):
        graph = {"entry": "struct", "kind": "graph"}
        data["executor"] = draw(st.sampled_from(["native", "vm", {"kind": "aot"}, {}, graph]))
    if draw(st.booleans()):
        data["runtime"] = {"kind": draw(st.sampled_from(["host", "bare", "rtos"]))}
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(["sram", "dram", "flash", "tcm"]), max_size=3, unique=True))
        rights = [{}, {"rw": labels}, {"ro": True}, {"rw": [labels[0]]}]
        data["memory"] = {name: {"bytes": draw(SIZES), **draw(st.sampled_from(rights))} for name in names}
    if draw(st.booleans()):
        data["package"] = {"name": draw(st.text(max_size=8)), "format": "shared"}
    return data


@settings(max_examples=150, deadline=None)
@given(configurations())
def test_random_configurations_have_four_equal_forms_and_can_be_completed(data: dict[str, Any]) -> None:
    """E14, E20: completing states what holds, once and for all; the flat view gives the same target."""
    target = Target(data)
    four_forms(target)
    completed = target.complete()
    four_forms(completed)
    assert completed.complete() == completed
    assert [str(part.triple) for part in completed.walk() if part.is_leaf] == [
        str(part.triple) for part in target.walk() if part.is_leaf
    ]
    assert [part.features for part in completed.walk() if part.is_leaf] == [
        part.features for part in target.walk() if part.is_leaf
    ]
    assert Config.of(target).to_target().to_dict()["parts"] == target.to_dict()["parts"]


def test_the_common_case_needs_no_nesting() -> None:
    """E20: the view is flat, and the same object in the end."""
    config = Config("c -mcpu=cortex-m7", executor="aot", runtime="bare", package={"name": "kws"})
    target = config.to_target()
    assert target == Target("config -executor=aot -runtime=bare -package.name=kws { main: c -mcpu=cortex-m7 }")
    again = Config.of(target)
    assert (again.target, again.executor, again.package) == (
        Target("c -mcpu=cortex-m7"),
        {"kind": "aot"},
        {"name": "kws"},
    )
    assert again.to_target() == target
    assert Config("c").to_target() == Target("c")
    full = Target(FULL)
    assert Config.of(full).to_target() == full
    assert json.loads(full.to_json())["parts"]["npu"] == {"kind": "llvm"}


def test_separate_arguments_are_merged_into_one_target() -> None:
    """E17: target, host, executor and runtime in one place; what contradicts is an error that shows both."""
    assert Config("llvm", host="c").to_target() == Target("host: c; llvm: llvm")
    assert Config("a: c; b: llvm", host="c").to_target() == Target("host: c; a: c; b: llvm")
    assert Config("host: c; b: llvm", host="c").to_target() == Target("host: c; b: llvm")
    assert Config("llvm", host="llvm").to_target() == Target("llvm")
    merged = Config(FULL, executor="aot", host="c -mcpu=cortex-m7").to_target()
    assert merged == Target(FULL)
    assert Config("config { b: c }", host="llvm", runtime="rtos").to_target() == Target(
        "config -runtime=rtos { host: llvm; b: c }"
    )
    with pytest.raises(TargetError, match=r"says executor .*'aot'.*the argument says .*'vm'") as caught:
        Config(FULL, executor="vm").to_target()
    assert caught.value.code == "W709"
    with pytest.raises(TargetError, match="says host 'c -mcpu=cortex-m7', the argument says 'llvm'"):
        Config(FULL, host="llvm").to_target()
    with pytest.raises(TargetError, match="cannot be 'sideways'"):
        Config("c", executor="sideways").to_target()
