"""The tensor passes by the peer's names: what each does, that it keeps what kernels compute, that a second run does
nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.errors import WeftError
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.testing.checks import check_round_trip, check_well_formed, run_kernel, same_bits
from weft.testing.meaning import random_arguments, random_kernel
from weft.transform import Pass, PassContext, parse_pipeline
from weft.transform.infra.registry import kebab_case

UNITS = Path(__file__).with_name("pairs.txt").read_text(encoding="utf-8")
PAIRS = [unit.partition("\n") for unit in UNITS.removeprefix("### ").split("\n\n### ")]
PASSES = sorted({kebab_case(name.partition("{")[0]) for name, _, _ in PAIRS})
KERNELS = 8
CUTS_AGAIN = {"loop-partition"}  # what is left of a loop may have a condition of its own


def kernel_module(text: str) -> IRModule:
    """The module of one kernel."""
    found = weft.parse(f"@T.prim_func\n{text.strip()}\n")
    return found if isinstance(found, IRModule) else IRModule({"f": found})


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, _, text in PAIRS])
def test_a_pass_makes_of_a_kernel_what_its_page_says(name: str, text: str) -> None:
    before, after = map(kernel_module, text.split("\n---\n"))
    head, brace, options = name.partition("{")
    item = parse_pipeline(kebab_case(head) + brace + options)
    made = item(before)
    weft.assert_structural_equal(made, after)
    assert item(made) is made


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_what_random_kernels_compute(name: str) -> None:
    (item,) = parse_pipeline(name).passes
    assert isinstance(item, Pass)
    for seed in range(KERNELS):
        kernel = random_kernel(seed)
        arguments = random_arguments(kernel, seed)
        try:
            wanted = run_kernel(kernel, arguments)
        except WeftError:  # the kernel refuses these sizes
            continue
        module = IRModule({kernel.name: kernel})
        with PassContext(config={"check.level": 0}):
            new = item(module)
            assert item(new) is new or name in CUTS_AGAIN, seed
        if new is not module:
            check_well_formed(new)
            check_round_trip(new)
            made = new[kernel.name]
            assert isinstance(made, PrimFunc)
            assert all(map(same_bits, wanted, run_kernel(made, arguments))), seed


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_leaves_any_kernel_well_formed(name: str) -> None:
    (item,) = parse_pipeline(name).passes
    for seed in (0, 9, 17, 19, 26, 47):
        kernel = random_kernel(seed, runnable=False)
        with PassContext(config={"check.level": 0}):
            new = item(IRModule({kernel.name: kernel}))
        check_well_formed(new)
        check_round_trip(new)
