"""Statements that grew from use: assignment by what the compiler knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.plugins import toy_accelerator

import weft
from weft import PassError, TargetError
from weft.ir import Call, Function, IRModule, TensorType
from weft.target.kinds import TargetKind
from weft.transform import AssignByCost, PassContext
from weft.transform.target.assign import Assign, assignment
from weft.transform.target.assign_by_cost import total_cost

SLOW_FIRST = "slow: llvm -mcpu=x86-64; fast: llvm -mcpu=host -vector-bits=512"
BOARDS = "low: c -mcpu=cortex-m0; high: c -mcpu=cortex-m7f"


def model(dtype: str = "float32", label: str = "", size: object = 64) -> IRModule:
    """A product, an elementwise operator, a product."""
    given = f', target="{label}"' if label else ""
    x, w = f'R.Tensor(({size!r}, 64), "{dtype}")', f'R.Tensor((64, 64), "{dtype}")'
    found = weft.parse(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: {x}, w: {w}) -> {x}:
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.maximum(a, x{given})
            c = R.matmul(b, w)
            R.output(c)
        return c
""")
    assert isinstance(found, IRModule)
    return found


def labels(module: IRModule, target: str) -> str:
    """The labels of a, b, c, where the compiler assigns them."""
    with PassContext(level=2):
        lowered = weft.lower(module, target, stop="assign")
    return " ".join(label for name, _, label in assignment(lowered, target) if name == "main")


@pytest.mark.parametrize(
    ("target", "dtype", "expected"),
    [
        (SLOW_FIRST, "float32", "fast fast fast"),
        ("fast: llvm -vector-bits=512; slow: llvm -mcpu=x86-64", "float32", "fast fast fast"),
        ("one: llvm; two: llvm", "float32", "one one one"),
        ("one: llvm -mcpu=x86-64; two: llvm -mcpu=x86-64", "float32", "one one one"),
        (BOARDS, "float32", "high high high"),  # one has a unit for floats
        (BOARDS, "int8", "low low low"),  # both do the same
        (BOARDS, "float64", "low low low"),  # neither has a unit for them
        ("host: llvm; board: llvm -mcpu=cortex-m7", "float32", "host host host"),  # which no program can call
        ("host: llvm -mcpu=x86-64; board: llvm -mcpu=neoverse-v1", "float32", "host host host"),  # nor this one
        ("host: llvm -mcpu=x86-64; c: c", "float32", "host host host"),
        ("host: c; board: c -mcpu=cortex-m7f", "float32", "host host host"),
    ],
)
def test_calls_go_where_they_take_less_as_far_as_that_is_known(target: str, dtype: str, expected: str) -> None:
    """H5: equal or unknown costs leave the first part; labels, copies and policies are not needed for that."""
    assert labels(model(dtype), target) == expected


def test_what_was_moved_is_explained_and_computes_the_same() -> None:
    """H5: two parts, no cost of the user: the cheaper one wins, and says why."""
    module = model()
    exe = weft.compile(module, SLOW_FIRST)
    line = next(line for line in exe.explain().splitlines() if "a: assign" in line)
    assert "part=fast" in line
    assert "cycles there" in line
    assert "on 'slow'" in line
    x, w = np.random.default_rng(0).normal(size=(2, 64, 64)).astype("float32")
    np.testing.assert_allclose(exe["main"](x, w), weft.interpret(module)["main"](x, w), rtol=1e-4, atol=1e-4)


def test_symbolic_sizes_are_compared_too() -> None:
    """H5: what a size is does not decide which part is faster."""
    assert labels(model(size="n"), SLOW_FIRST) == "fast fast fast"


def test_a_label_and_a_policy_win_over_what_is_known() -> None:
    """H5, B13: what a user says of a call or was asked about a function is not changed."""
    assert labels(model(label="slow"), SLOW_FIRST) == "fast slow fast"
    asked = Assign(SLOW_FIRST, lambda call, label, target: label)(model())
    assert labels(asked, SLOW_FIRST) == "slow slow slow"
    again = weft.parse(asked.script())
    assert isinstance(again, IRModule)
    assert labels(again, SLOW_FIRST) == "slow slow slow", "the text says that somebody was asked"
    flipped = Assign(SLOW_FIRST, lambda call, label, target: "fast" if call.op.name == "maximum" else label)(model())  # type: ignore[attr-defined]
    assert labels(flipped, SLOW_FIRST) == "slow fast slow"


def test_the_label_of_a_function_wins_over_what_is_known_and_over_a_policy() -> None:
    """B13, E5: its calls stay on the part that does it; a call of another label does not."""
    function = model()["main"].with_attr("target", "slow")  # type: ignore[attr-defined]
    assert labels(model().with_function("main", function), SLOW_FIRST) == "slow slow slow"
    asked = Assign(SLOW_FIRST, lambda call, label, target: "fast")(model().with_function("main", function))
    assert labels(asked, SLOW_FIRST) == "slow slow slow"
    one = AssignByCost(SLOW_FIRST, lambda call, part: 0.0 if part.cpu is None else 1.0)
    assert labels(one(model().with_function("main", function)), SLOW_FIRST) == "slow slow slow"
    function = model(label="fast")["main"].with_attr("target", "slow")  # type: ignore[attr-defined]
    assert labels(model().with_function("main", function), SLOW_FIRST) == "slow fast slow"


def test_assignment_by_knowledge_is_an_optimisation_that_can_be_left_out() -> None:
    """H5: at opt=0, or where the pass is disabled, everything is on the first part."""
    with PassContext(disabled=["assign-by-cost"]):
        assert labels(model(), SLOW_FIRST) == "slow slow slow"
    lowered = weft.lower(model(), SLOW_FIRST, stop="assign", opt=0)
    assert {label for _, _, label in assignment(lowered, SLOW_FIRST)} == {"slow"}


@pytest.fixture
def toy() -> Iterator[TargetKind]:
    with toy_accelerator.installed() as kind:
        kind.codegen(lambda module, target: [])
        yield kind


def price(call: Call, part: object) -> float | None:
    """A machine for products: any takes 100 cycles; it does nothing else."""
    return 100.0 if getattr(call.op, "name", "") == "matmul" else None


def test_a_kind_says_what_its_calls_take(toy: TargetKind) -> None:
    """H5: dear copies to a memory of its own keep small products at home; what it has no price for stays."""
    target = "host: llvm -vector-bits=512; toy: toy"
    assert labels(model(), target) == "host host host", "nothing is known of it"
    toy.cost(price)
    assert labels(model(), target) == "toy host toy"
    toy.memory = "sram"
    small = weft.parse(model().script().replace("64", "8"))
    assert isinstance(small, IRModule)
    for module, expected in ((model(), ["toy", "host", "toy"]), (small, ["host"] * 3)):
        placed = AssignByCost(target)(weft.lower(module, target, stop="partition"))
        assert [label for _, _, label in assignment(placed, target)] == expected
    assert "copy_to_sram" in weft.lower(model(), target, stop="assign").script()
    assert "copy_to_sram" not in weft.lower(small, target, stop="assign").script()
    with pytest.raises(TargetError) as caught:
        toy.cost(lambda call: 1.0)
    assert caught.value.code == "W706"


def test_copies_are_counted_once_for_all_readers(toy: TargetKind) -> None:
    """H5, G8: the sum that is made small is that of `total_cost`; moving one call at a time does not help here."""
    text = """
@R.function
def main(x: R.Tensor((64, 64), "float32")) -> R.Tensor((64, 64), "float32"):
    with R.dataflow():
        a = R.exp(x)
        b = R.tanh(a)
        c = R.multiply(b, x)
        d = R.add(b, c)
        R.output(d)
    return d
"""
    function = weft.parse(text)
    assert isinstance(function, Function)
    target = "host: llvm; toy: toy"
    toy.memory = "sram"

    def cost(call: Call, part: weft.Target) -> float:
        return 1.0 if part.kind.name == "toy" else 4.0

    def transfer(ty: TensorType, source: weft.Target, destination: weft.Target) -> float:
        return 3.0

    module = IRModule({"main": function})
    placed = AssignByCost(target, cost, transfer)(module)  # type: ignore[arg-type]
    assert {label for _, _, label in assignment(placed, target)} == {"toy"}
    assert total_cost(placed, target, cost, transfer) == 4 + 2 * 3  # type: ignore[arg-type]
    with pytest.raises(PassError) as caught:
        AssignByCost(target, lambda call, part: float("inf"))(module)
    assert caught.value.code == "W563"
