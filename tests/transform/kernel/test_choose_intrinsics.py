"""ChooseIntrinsics: which form of a kernel a machine gets."""

from __future__ import annotations

import pytest

import weft
from weft.errors import PassError, TargetError
from weft.ir.structure.structural import assert_structural_equal
from weft.transform import ChooseIntrinsics
from weft.transform.infra.decisions import without_decisions

TEXT = """
@T.prim_func(private=True)
def k(x: T.Buffer((64,), "uint32"), y: T.Buffer((64,), "uint32"), n: T.int64):
    if {condition}:
        T.evaluate(T.sort_keys(T.address_of(x[0]), T.address_of(y[0]), 64))
    else:
        x[0] = T.uint32(1)
"""
QUERY = 'T.has_intrinsic("sort_keys", "uint32")'
SORTED = TEXT.split("    if")[0] + "    T.evaluate(T.sort_keys(T.address_of(x[0]), T.address_of(y[0]), 64))\n"
OTHER = TEXT.split("    if")[0] + "    x[0] = T.uint32(1)\n"
WIDE = {"vector_bits": 512, "compress": True}


def chosen(condition: str, machine: dict[str, object], known: tuple[str, ...] = ("sort_keys",)) -> object:
    module = weft.IRModule({"k": weft.parse(TEXT.format(condition=condition))})  # type: ignore[dict-item]
    return without_decisions(ChooseIntrinsics(machine, known)(module)["k"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("machine", "known", "expected"),
    [
        (WIDE, ("sort_keys",), SORTED),
        (WIDE, (), OTHER),
        ({"vector_bits": 512}, ("sort_keys",), OTHER),
        ({"vector_bits": 128, "compress": True}, ("sort_keys",), OTHER),
    ],
)
def test_the_branch_that_the_machine_takes_is_left(
    machine: dict[str, object], known: tuple[str, ...], expected: str
) -> None:
    assert_structural_equal(chosen(QUERY, machine, known), weft.parse(expected))


def test_what_else_decides_stays() -> None:
    both = f"T.And({QUERY}, n < T.int64(9))"
    assert_structural_equal(chosen(both, WIDE), weft.parse(TEXT.format(condition="n < T.int64(9)")))
    assert_structural_equal(chosen(both, {}), weft.parse(OTHER))


def test_kernels_that_ask_nothing_are_left_alone() -> None:
    module = weft.IRModule({"k": weft.parse(OTHER)})  # type: ignore[dict-item]
    assert ChooseIntrinsics()(module) is module


def test_keys_that_nobody_sorts_are_refused_with_the_question_to_ask() -> None:
    module = weft.IRModule({"k": weft.parse(SORTED.replace("(private=True)", ""))})  # type: ignore[dict-item]
    with pytest.raises(TargetError, match=r"no T\.sort_keys") as caught:
        weft.compile(module, "llvm -mcpu=x86-64-v3")
    assert caught.value.code == "W742"
    assert "T.has_intrinsic" in str(caught.value)


def test_a_machine_without_such_a_field_is_refused() -> None:
    with pytest.raises(PassError, match="no 'compres'") as caught:
        ChooseIntrinsics({"compres": True})  # type: ignore[arg-type]
    assert caught.value.code == "W502"
