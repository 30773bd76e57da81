"""What is claimed of memory: that what a kernel reads was written, that an output is whole, when a value's memory is
used for the last time, whose memory it may be, and which values may be dropped or merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.errors import BoundsError
from weft.ir import Function, IRModule, PrimFunc
from weft.ir.graph import Call, Var
from weft.transform.analysis.fresh_outputs import output_positions
from weft.transform.analysis.lifetimes import END, Lifetimes
from weft.transform.analysis.purity import checks_sizes, gives_fresh_memory
from weft.transform.analysis.value_numbering import data_key
from weft.transform.analysis.written import is_plainly_written, unproved_reads
from weft.transform.infra.rewriting import bindings_of

NAMES = "from weft.script import ir as I, relax as R, tir as T\n"


def kernel(*body: str) -> PrimFunc:
    """A kernel of x and the output y, with scratch c; `n` is any number from 0."""
    lines = "".join(f"    {line}\n" for line in ("c = T.alloc_buffer((8,), 'int64')", *body))
    found = weft.parse(
        f'{NAMES}@T.prim_func\ndef f(x: T.Buffer((8,), "int64"), n: T.int64, y: T.Buffer((8,), "int64")):\n{lines}'
    )
    assert isinstance(found, PrimFunc)
    return found


def outcome(function: PrimFunc, n: int) -> set[str]:
    """What the interpreter says: W901 a read of what nothing was written to, W902 an output that is not whole."""
    try:
        weft.interpret(IRModule({"f": function}))["f"](np.arange(8), n, np.zeros(8, "int64"))
    except BoundsError as error:
        return {error.code}
    return set()


def claims(function: PrimFunc) -> set[str]:
    """What is not proved."""
    y = function.params[-1]
    found = unproved_reads(function, {y})  # type: ignore[arg-type]
    return {code for code, names in (("W901", found.read), ("W902", found.partial)) if names or found.opaque}


HALF = "for i in range(4): c[i] = x[i]"
FILL = "for i in range(8): c[i] = x[i]"
OUT = "for i in range(8): y[i] = c[7 - i]"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ((FILL, OUT), set()),
        (("for i in range(7): c[i] = x[i]", OUT), {"W901"}),
        (("for i in range(1, 8): c[i] = x[i]", OUT), {"W901"}),
        (("for i in range(4): c[i * 2] = x[i]", OUT), {"W901"}),
        (("for i in range(4): c[i] = x[i]", "for i in range(4): c[i + 4] = x[i]", OUT), set()),
        (("for i in range(n): c[i] = x[i]", OUT), {"W901"}),
        ((FILL, "for i in range(7): y[i] = c[i]"), {"W902"}),
        ((FILL, "for i in range(8):", "    if i != 3: y[i] = c[i]"), {"W902"}),
        ((FILL, "for i in range(8):", "    if i < 3: y[i] = c[i]", "    else: y[i] = 0"), set()),
        (("if n > 2:", f"    {FILL}", OUT), {"W901"}),
        (("if n > 2:", f"    {FILL}", "else:", f"    {FILL}", OUT), set()),
        (("for i in range(8):", "    if i == 0: c[0] = 0", "    y[i] = c[0]"), set()),
        (("for i in range(8):", "    if i == 1: c[0] = 0", "    y[i] = c[0]"), {"W901"}),
        ((HALF, "for i in range(8):", "    y[i] = T.if_then_else(i < 4, c[i], x[i])"), set()),
        ((HALF, "for i in range(8):", "    y[i] = T.Select(i < 4, c[i], x[i])"), {"W901"}),
    ],
)
def test_each_claim_that_all_is_written_has_its_counter_example(body: tuple[str, ...], wrong: set[str]) -> None:
    function = kernel(*body)
    found = {code for n in (0, 1, 8) for code in outcome(function, n)}
    assert found == wrong
    assert claims(function) >= wrong
    if not wrong:
        assert claims(function) == set()


def test_a_vector_of_the_machines_length_reads_more_than_its_lanes_say() -> None:
    part = "T.Ramp(0, 1, T.vscale() * 4)"
    assert "W901" in claims(kernel(HALF, f"y[{part}] = c[{part}]"))


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, ...]:
    """Loops that fill parts of the scratch and of the output, some under conditions."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        step, first = draw(st.sampled_from((1, 1, 1, 2))), draw(st.integers(0, 3))
        count = draw(st.integers(1, (8 - first + step - 1) // step))
        store = f"c[i * {step} + {first}] = x[i]"
        guard = draw(st.sampled_from(("", "", "if i < 4: ", "if n > 0: ")))
        lines += [f"for i in range({count}):", f"    {guard}{store}"]
    low = draw(st.integers(0, 2))
    count, source = draw(st.integers(1, 8 - low)), draw(st.sampled_from(("i", "7 - i", "i // 2")))
    lines.append(f"for i in range({count}): y[i + {low}] = c[{source}]")
    if draw(st.booleans()):
        lines.append(f"for i in range({draw(st.integers(1, 8))}): y[i] = x[i]")
    return tuple(lines)


@settings(deadline=None, max_examples=60)
@given(programs())
def test_what_is_proved_to_be_written_is_written(body: tuple[str, ...]) -> None:
    function = kernel(*body)
    found = {code for n in (0, 1) for code in outcome(function, n)}
    assert found <= claims(function)
    if is_plainly_written(function.body, function.params[-1]):  # type: ignore[arg-type]
        assert "W902" not in found


# ---------------------------------------------------------------------------------------------------------------------
# Values of graph functions
# ---------------------------------------------------------------------------------------------------------------------

GRAPH = (
    NAMES
    + """
@I.ir_module
class M:
    @T.prim_func
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        s = R.memory.alloc_storage((16,), 0, "global", "float32")
        a = R.memory.alloc_tensor(s, 0, (4,), "float32")
        u = M.double(x, a)
        t = R.builtin.alloc_tensor((4,), "float32", 0)
        v = M.double(a, t)
        b = R.memory.view(t, (2, 2))
        k = R.builtin.alloc_tensor((4,), "float32", 0)
        w = M.double(x, k)
        e = M.double(k, k)
        if c:
            p = R.memory.view(t, (4,))
            r = p
        else:
            q = R.add(x, x)
            r = q
        return r
"""
)


@pytest.fixture(scope="module")
def graph() -> tuple[IRModule, Lifetimes, dict[str, Var]]:
    module = weft.parse(GRAPH)
    main = module["main"]
    assert isinstance(main, Function)
    lives = Lifetimes(main, module.functions)
    return module, lives, {var.name: var for var in (*main.params, *lives.made)}


def test_memory_is_used_until_the_last_step_of_all_that_may_share_it(graph: Any) -> None:
    _, lives, names = graph
    step = {name: lives.made[var] for name, var in names.items() if var in lives.made}
    last = {name: lives.last(names[name]) for name in "atk"}
    assert last == {"a": step["v"], "t": END, "k": step["e"]}  # t is seen again by b, and by p, which is returned
    assert lives.first(names["a"]) == step["u"]
    assert {name: lives.last_write(names[name]) for name in "atk"} == {"a": step["u"], "t": step["v"], "k": step["e"]}


def test_the_result_and_what_it_may_share_leave_the_function(graph: Any) -> None:
    _, lives, names = graph
    assert {name for name in "xatbkpqr" if lives.leaves(names[name])} == {"t", "b", "p", "q", "r", "x"}


def test_memory_of_parameters_is_not_the_functions_own(graph: Any) -> None:
    _, lives, names = graph
    assert lives.is_own(names["a"])
    assert lives.is_own(names["k"])
    assert not lives.is_own(names["x"])
    assert not lives.is_own(names["r"])  # in one branch what R.add gave, which may be its operand


def test_joined_memory_lives_as_long_as_the_longer_one(graph: Any) -> None:
    module, _, _ = graph
    main = module["main"]
    lives = Lifetimes(main, module.functions)
    names = {var.name: var for var in lives.made}
    lives.join(names["a"], names["k"])
    assert lives.last(names["a"]) == lives.last(names["k"]) == lives.made[names["e"]]
    assert lives.first(names["k"]) == lives.made[names["u"]]


def test_kernels_get_memory_that_nothing_was_written_to_where_it_is_fresh(graph: Any) -> None:
    module, _, _ = graph
    main = module["main"]
    found = sorted((kernel, positions) for _, kernel, positions in output_positions(main, module))
    assert found == [("double", (1,)), ("double", (1,)), ("double", (1,))]  # u, v and w; e reads what w wrote


PURE = (
    NAMES
    + """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32"), z: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        m = T.int64()
        a = R.add(x, z)
        b = R.add(x, y)
        c = R.concat([x, y], axis=1)
        d = R.builtin.alloc_tensor((4,), "float32", 0)
        e = R.memory.alloc_storage((16,), 0, "global", "float32")
        return a
"""
)


def test_values_that_compare_sizes_or_give_memory_of_their_own_are_known() -> None:
    module = weft.parse(PURE)
    main = module["main"]
    assert isinstance(main, Function)
    values = {binding.var.name: binding.value for binding in bindings_of(main.body)}  # type: ignore[attr-defined]
    assert {name for name, value in values.items() if checks_sizes(value, module)} == {"b", "c"}
    fresh = {name for name, value in values.items() if isinstance(value, Call) and gives_fresh_memory(value)}
    assert fresh == {"d", "e"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.0, True),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (1, 1.0, False),
        (1, True, False),
        ((1, 2), [1, 2], True),
        ((1, 2), (1, (2,)), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        (np.float32(1.0) * np.ones(2, "float32"), np.ones(2), False),
        (np.ones(2), np.ones((2, 1)), False),
        (np.ones(2), np.ones(2), True),
        (weft.ir.TensorType((2,), "float32"), weft.ir.TensorType((2,), "float16"), False),
    ],
)
def test_attributes_of_one_key_are_the_same_bits(one: Any, other: Any, same: bool) -> None:
    assert (data_key(one) == data_key(other)) is same
