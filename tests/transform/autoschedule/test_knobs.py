"""Knobs: the tunables of the scheduler, their ranges, and every way of turning them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import weft
from weft.errors import PassError
from weft.ir import IRModule
from weft.target import MachineModel
from weft.transform import Knobs, PassContext, TileContractions, parse_pipeline
from weft.transform.autoschedule.knobs import LEVELS, as_knobs
from weft.transform.infra.decisions import decisions_of

PRODUCT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((200, 700), "float32"), w: R.Tensor((700, 600), "float32")):
        y = R.matmul(x, w)
        return y
"""


def module() -> IRModule:
    found = weft.parse(PRODUCT)
    assert isinstance(found, IRModule)
    return found


def test_knobs_print_what_differs_and_say_what_they_mean() -> None:
    assert str(Knobs()) == "{}"
    assert str(Knobs(mc=96, level=3)) == "{level: 3, mc: 96}"
    assert "mc = 96 (1 to 65536): rows of A in a packed block" in Knobs(mc=96).explain()
    assert LEVELS == tuple(Knobs(level=level) for level in range(4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Knobs().mc = 3  # type: ignore[misc]


@pytest.mark.parametrize("item", Knobs.known(), ids=lambda item: item.name)
def test_a_knob_out_of_its_range_is_refused(item: dataclasses.Field[int]) -> None:
    low, high = item.metadata["range"]
    assert low <= item.default <= high  # pyright: ignore[reportOperatorIssue]
    for wrong in (low - 1, high + 1, True, "7"):
        with pytest.raises(PassError) as caught:
            Knobs(**{item.name: wrong})
        assert caught.value.code == "W527"
        assert f"knob {item.name} is {low} to {high}" in str(caught.value)


def test_a_knob_that_is_none_is_refused_with_the_nearest() -> None:
    for attempt in (
        lambda: as_knobs({"mcc": 3}),
        lambda: PassContext(config={"knobs": {"mcc": 3}}),
        lambda: parse_pipeline("tile-contractions{knobs={mcc: 3}}"),
    ):
        with pytest.raises(PassError) as caught:
            attempt()
        assert caught.value.code == "W526"
        assert "mc" in str(caught.value.hint)


def test_every_way_of_turning_a_knob_gives_the_same_loops() -> None:
    knobs, target = Knobs(kc=96, mc=28), "llvm -mcpu=x86-64-v3"
    plain, wanted = (weft.lower(module(), target, opt=opt, stop="schedule") for opt in (2, knobs))
    assert not weft.structural_equal(plain, wanted)
    with PassContext(config={"knobs": {"kc": 96, "mc": 28}}):
        weft.assert_structural_equal(weft.lower(module(), target, stop="schedule"), wanted)
    with PassContext(config={"tile-contractions.knobs": {"kc": 96, "mc": 28}}):
        weft.assert_structural_equal(weft.lower(module(), target, stop="schedule"), wanted)


def test_knobs_and_machine_are_in_the_text_of_a_pass() -> None:
    item = TileContractions(MachineModel(512, 32, dot_features=("dotprod",)), Knobs(mc=96))
    machine = "{vector_bits: 512, vector_registers: 32, dot_features: [dotprod]}"
    text = f"tile-contractions{{machine={machine}, knobs={{mc: 96}}}}"
    assert str(item) == text
    assert parse_pipeline(text).passes == (item,)
    old = parse_pipeline("tile-contractions{vector_bits=512, registers=32, block_rows=96}").passes[0]
    assert old == TileContractions(MachineModel(512, 32), Knobs(mc=96))


LINEAR = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((ROWS, 512), "TYPE"), w: R.Tensor((40, 512), "TYPE")):
        y = R.linear(x, w, out_dtype="float32")
        return y
"""


@pytest.mark.parametrize(
    ("rows", "dtype", "text", "form", "nr_vectors"),
    [
        (8, "float32", "{}", "inner", 4),
        (8, "float32", "{inner_columns: 2}", "inner", 2),
        (8, "float32", "{inner_rows: 8}", "packed", None),
        (8, "float32", "{inner_k: 513}", "packed", None),
        (8, "bfloat16", "{}", "packed", None),
        (8, "bfloat16", "{inner_dot_pair_rows: 9}", "inner", 4),
    ],
)
def test_limits_of_inner_products_are_knobs(
    rows: int, dtype: str, text: str, form: str, nr_vectors: int | None
) -> None:
    machine = "{vector_bits: 512, vector_registers: 32, dot_features: [avx512bf16]}"
    linear = weft.parse(LINEAR.replace("ROWS", str(rows)).replace("TYPE", dtype))
    tiled = parse_pipeline(f"legalize,tile-contractions{{machine={machine}, knobs={text}}}")(linear)
    (decided,) = (item for name in tiled.functions for item in decisions_of(tiled[name]) if item.kind == "gemm")
    assert decided.values["form"] == form
    assert nr_vectors in (None, decided.values["nr_vectors"])


def test_a_smaller_second_cache_gives_smaller_blocks() -> None:
    wide, small = (
        weft.lower(module(), f"llvm -mcpu=x86-64-v3 -l2-cache={size}", stop="schedule") for size in ("1M", "128K")
    )
    assert not weft.structural_equal(wide, small)


def test_a_program_that_was_compiled_with_other_knobs_is_another_one() -> None:
    x, w = np.ones((200, 700), "float32"), np.ones((700, 600), "float32")
    made = [weft.compile(module(), opt=opt) for opt in (2, Knobs(kc=64, nr_vectors=1))]
    assert made[0].source("llvm") != made[1].source("llvm")
    for exe in made:
        np.testing.assert_allclose(exe["main"](x, w), x @ w)
