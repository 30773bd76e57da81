"""MachineModel: what schedules go by, from the table of processors and from what a target says instead."""

from __future__ import annotations

import pytest

import weft
from weft.errors import TargetError
from weft.target.machine_model import DOT_PRODUCTS, OVERRIDES, MachineModel, machine_model, widest_vector
from weft.target.processors import CPUS


def test_a_processor_says_what_its_machine_has() -> None:
    machine = weft.Target("llvm -mcpu=sapphirerapids").machine
    assert (machine.vector_bits, machine.vector_registers, machine.has_masks, machine.gather) == (512, 32, True, True)
    assert (machine.l1_bytes, machine.l2_bytes) == (48 << 10, 2 << 20)
    assert {dot.instruction for dot in machine.dot_products} >= {"vpdpbusd", "tdpbf16ps"}
    old = weft.Target("llvm -mcpu=x86-64").machine
    assert (old.vector_bits, old.has_masks, old.gather, old.dot_products) == (128, False, False, ())
    assert weft.Target("c -mcpu=cortex-m0").machine.vector_bits == 0


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("-vector-bits=256", "vector_bits", 256),
        ("-l2-cache=256K", "l2_bytes", 256 << 10),
        ("-masks=false", "masks", False),
        ("-vector-registers=8", "vector_registers", 8),
        ("-stack-bytes=4K", "stack_bytes", 4096),
        ("-cores=4", "cores", 4),
    ],
)
def test_what_a_target_says_of_its_machine_wins(option: str, field: str, value: object) -> None:
    target = weft.Target(f"llvm -mcpu=x86-64-v4 {option}")
    assert getattr(target.machine, field) == value
    assert weft.Target(str(target)).machine == target.machine
    assert f"machine.{field} = {str(value).lower()} (given)" in target.explain().splitlines()
    assert f"machine.{field} = {str(value).lower()} (given)" not in weft.Target("llvm -mcpu=x86-64-v4").explain()


@pytest.mark.parametrize(
    ("options", "cores"), [("", 0), ("-threads=1", 1), ("-threads=2", 0), ("-threads=1 -cores=4", 4)]
)
def test_code_of_one_thread_is_cut_for_one_core(options: str, cores: int) -> None:
    assert weft.Target(f"llvm -mcpu=sapphirerapids {options}").machine.cores == cores


def test_features_add_and_remove_instructions() -> None:
    assert "dotprod" in weft.Target("llvm -mcpu=neoverse-n1").machine.dot_features
    assert "dotprod" not in weft.Target("llvm -mcpu=neoverse-n1 -mattr=-dotprod").machine.dot_features
    assert weft.Target("llvm -mcpu=x86-64-v4 -mattr=+avx512vnni").machine.dot_features == ("avx512vnni",)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("llvm -l2-cash=1", "W702", "l2_cache"),
        ("llvm -vector-bits=96", "W703", "128"),
        ("llvm -l1-cache=x", "W703", "256K"),
        ("llvm -cores=-1", "W703", None),
        ("llvm -stack-bytes=1G", "W703", None),
    ],
)
def test_what_a_machine_cannot_be_is_refused(text: str, code: str, hint: str | None) -> None:
    with pytest.raises(TargetError) as caught:
        weft.Target(text)
    assert caught.value.code == code
    assert hint is None or hint in str(caught.value)


def test_the_table_of_instructions_is_told_by_features_of_processors() -> None:
    named = {feature for facts in CPUS.values() for feature in facts.features}
    assert {dot.feature for dot in DOT_PRODUCTS} <= named
    assert set(OVERRIDES) <= set(weft.Target("llvm").kind.fields)
    assert widest_vector() == max(machine_model(facts, {}).vector_bits for facts in CPUS.values()) == 512


def test_a_model_prints_what_differs() -> None:
    assert str(MachineModel()) == "{}"
    assert str(MachineModel(vector_bits=128, masks=False)) == "{vector_bits: 128, masks: false}"


@pytest.mark.parametrize(
    "name", ["alderlake", "raptorlake", "meteorlake", "arrowlake", "lunarlake", "rocketlake", "cannonlake"]
)
def test_names_that_llvm_has_for_hosts_are_known(name: str) -> None:
    machine = weft.Target(f"llvm -mcpu={name}").machine
    assert machine.vector_bits == (512 if name in ("rocketlake", "cannonlake") else 256)
