"""What generated programs compute: the interpreter is the meaning, and nothing that works on a module may change it.

Floats are compared with what small changes of the inputs do to the result (`weft.testing.checks.assert_agree`), all
else exactly. Sizes at which a program has no result (an empty maximum, a window that does not fit) are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft import transform
from weft.errors import TargetError
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.testing.checks import (
    assert_agree,
    check_round_trip,
    check_well_formed,
    interpreted,
    nudged_value,
    precision,
    run_kernel,
    run_main,
    same_bits,
)
from weft.testing.meaning import compare_random, register_library, runner
from weft.testing.strategies import (
    SeededChoices,
    arguments_for,
    generate,
    generate_kernel,
    kernels,
    modules,
    random_arguments,
)
from weft.transform.infra.generators.arguments import copied

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

generated = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.fixture(autouse=True)
def _production(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of passes are made here, once."""
    monkeypatch.setenv("WEFT_CHECK", "0")
    register_library()


# ---------------------------------------------------------------------------------------------------------------------
# The interpreter
# ---------------------------------------------------------------------------------------------------------------------


def test_modules_run_on_arguments_that_fit_and_so_does_what_their_text_reads_as() -> None:
    """The same bits, and no error but those of sizes."""
    ran = 0
    for seed in range(120):
        module = generate(seed)
        arguments, result = interpreted(module, seed)
        if result is not None:
            ran += 1
            assert same_bits(result, run_main(weft.parse(module.script()), arguments))
    assert ran > 100


@generated
@given(kernels(), st.data())
def test_kernels_write_every_element_at_any_size(kernel: PrimFunc, data: st.DataObject) -> None:
    run_kernel(kernel, data.draw(arguments_for(kernel)))


@generated
@given(modules(bindings=5), st.data())
def test_drawn_modules_run(module: IRModule, data: st.DataObject) -> None:
    run_main(module, data.draw(arguments_for(module["main"])))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------------
# Passes
# ---------------------------------------------------------------------------------------------------------------------


def _passes() -> list[Any]:
    """One pass of every class that keeps meaning and needs no arguments."""
    found = []
    for name in transform.pass_names():
        cls = transform.find_pass(name)
        if cls.keeps_meaning and cls.__module__.startswith("weft."):
            try:
                found.append(cls())
            except TypeError:
                continue
    return found


def _lowered_first(item: transform.Pass) -> Callable[[IRModule], IRModule]:
    """The pass, after those that it needs."""
    if isinstance(item, transform.LowerToMemory):
        return lambda module: item(transform.LegalizeOps()(module))
    if isinstance(item, transform.ControlFlowToKernels):
        return lambda module: _unless_refused(item, transform.LambdaLift()(transform.LegalizeOps()(module)))
    return item


def _unless_refused(item: transform.Pass, module: IRModule) -> IRModule:
    """The module as it is where the pass says that no kernel can do what is in a branch."""
    try:
        return item(module)
    except TargetError as error:
        if error.code != "W741":
            raise
        return module


@pytest.mark.parametrize("item", _passes(), ids=lambda item: item.name)
def test_a_pass_keeps_what_a_module_computes_and_that_it_is_well_formed_and_readable(item: transform.Pass) -> None:
    """G10 after every pass; the interpreter agrees before and after."""
    run = _lowered_first(item)
    compared = 0
    for seed in range(40):
        module = generate(seed, bindings=10)
        changed = run(module)
        check_well_formed(changed)
        check_round_trip(changed)
        compared += compare_random(module, runner(changed), seed)
    assert compared > 25


def test_a_pass_that_has_nothing_to_do_twice_changes_nothing_the_second_time() -> None:
    """Cleaning passes are idempotent."""
    for item in (
        transform.DeadCodeElimination(),
        transform.Normalize(),
        transform.LegalizeOps(),
        transform.LambdaLift(),
    ):
        for seed in range(15):
            once = item(generate(seed, bindings=10))
            mismatch = weft.first_mismatch(once, item(once))
            assert mismatch is None, f"{item.name}, seed {seed}: {mismatch}"


def test_a_wrong_pass_is_caught() -> None:
    """The comparison can fail: a pass that swaps the operands of subtractions."""
    from weft.ir.graph import Call, Op
    from weft.ir.node import replace
    from weft.ir.structure.visit import rewrite
    from weft.ir.tensor import Binary

    def swap(node: Any) -> Any:
        if isinstance(node, Binary) and node.kind == "sub":
            return replace(node, a=node.b, b=node.a)
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "subtract":
            return replace(node, args=node.args[::-1])
        return None

    caught = 0
    for seed in range(120):
        module = generate(seed)
        wrong = rewrite(module, swap)
        if wrong is module:
            continue
        try:
            compare_random(module, runner(wrong), seed)
        except Exception:
            caught += 1
    assert caught > 0


# ---------------------------------------------------------------------------------------------------------------------
# Machine code
# ---------------------------------------------------------------------------------------------------------------------


def _compiled_agrees(kernel: PrimFunc, choices: SeededChoices, times: int = 2) -> None:
    executable = weft.compile(kernel)
    for _ in range(times):
        arguments = random_arguments(kernel, choices)
        expected = run_kernel(kernel, arguments)
        nearby = run_kernel(kernel, [nudged_value(value) for value in arguments])
        values = copied(arguments)
        executable["main"](*values)
        assert_agree(tuple(expected), tuple(values), tuple(nearby), precision(kernel))


@pytest.mark.parametrize("part", range(4))
def test_compiled_kernels_agree_with_the_interpreter(part: int) -> None:
    for seed in range(part * 20, part * 20 + 20):
        _compiled_agrees(generate_kernel(seed), SeededChoices(seed))


@pytest.mark.parametrize("part", range(4))
def test_compiled_modules_agree_with_the_interpreter(part: int) -> None:
    compared = 0
    for seed in range(part * 15, part * 15 + 15):
        module = generate(seed, bindings=10)
        compared += compare_random(module, runner(weft.compile(module)), seed)
    assert compared > 8


def test_compiled_code_leaves_its_inputs_alone() -> None:
    for seed in range(12):
        module = generate(seed, bindings=6)
        arguments, result = interpreted(module, seed)
        if result is None:
            continue
        before = copied(arguments)
        weft.compile(module)["main"](*arguments)
        for old, new in zip(before, arguments, strict=True):
            if isinstance(old, np.ndarray):
                assert old.tobytes() == new.tobytes()
