"""Software pipelines: they keep what loops compute, for any stages and order that are taken, and refuse the rest."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import PassError
from weft.ir.module import IRModule
from weft.transform import InjectDoubleBuffer, InjectSoftwarePipeline

HEAD = """
@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.Buffer(({rows}, 8), "float32"), y: T.Buffer(({rows}, 8), "float32")):
{before}        for i in T.serial({rows}, annotations={annotations}):
"""
CHAIN = """
            a = T.alloc_buffer((8,), "float32")
            b = T.alloc_buffer((8,), "float32")
            for j in range(8):
                a[j] = x[i, j] * 2.0
            for j in range(8):
                b[j] = a[7 - j] + 1.0
            for j in range(8):
                a[j] = a[j] * b[j]
            for j in range(8):
                y[i, j] = b[7 - j] + a[j]
"""


def parsed(text: str) -> IRModule:
    """The module of a text."""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return module


def pipeline(body: str, rows: int | str, stages: list[int], order: list[int], before: str = "") -> IRModule:
    """A module with a loop over rows."""
    annotations = {"software_pipeline_stage": stages, "software_pipeline_order": order}
    return parsed(HEAD.format(rows=rows, annotations=annotations, before=before) + body)


def inputs(rows: int) -> np.ndarray:
    """Rows of whole numbers, so that it does not matter how sums and products are rounded."""
    return np.random.default_rng(rows).integers(-9, 9, (rows, 8)).astype("float32")


def results(module: IRModule, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """What the interpreter and compiled code make of the rows."""
    x = inputs(rows)
    made = np.zeros_like(x), np.zeros_like(x)
    weft.interpret(module)["f"](x, made[0])
    weft.compile(module)["f"](x, made[1])
    return made


@settings(max_examples=25)
@given(
    st.integers(1, 6),
    st.tuples(*[st.integers(0, 2)] * 4).filter(lambda stages: min(stages) == 0),
    st.permutations(range(4)),
)
def test_a_pipeline_computes_what_the_loop_does_or_is_refused(
    rows: int, stages: tuple[int, ...], order: list[int]
) -> None:
    module = pipeline(CHAIN, rows, list(stages), order)
    times = list(zip(stages, order, strict=True))
    if times != sorted(times):  # each part needs what the one before leaves
        with pytest.raises(PassError, match="W591"):
            InjectSoftwarePipeline()(module)
        return
    new = InjectSoftwarePipeline()(module)
    assert weft.verify(new) == []
    assert InjectSoftwarePipeline()(new) is new
    weft.assert_structural_equal(weft.parse(new.script()), new)
    for old, made in zip(results(module, rows), results(new, rows), strict=True):
        np.testing.assert_array_equal(made, old)


def test_a_loop_of_any_length_is_asked_for_it() -> None:
    text = HEAD.replace("x: T.Buffer", "n: T.int64, x: T.Buffer") + CHAIN
    annotations = {"software_pipeline_stage": [0, 0, 1, 2], "software_pipeline_order": [1, 2, 3, 0]}
    module = parsed(text.format(rows="n", annotations=annotations, before=""))
    new = InjectSoftwarePipeline()(module)
    assert "if n >= " in new.script()
    run = weft.compile(new)["f"]
    for rows in range(6):
        x = inputs(rows)
        old, made = np.zeros_like(x), np.zeros_like(x)
        weft.interpret(module)["f"](rows, x, old)
        run(rows, x, made)
        np.testing.assert_array_equal(made, old)


STEPS = """
            for j in range(8):
                t[i, j] = x[i, j]
            for j in range(8):
                y[i, j] = {read}
"""


@pytest.mark.parametrize(
    ("read", "stages", "taken"),
    [
        ("t[i, j]", [0, 1], True),
        ("t[T.max(i - 1, 0), j]", [0, 1], True),
        ("t[T.min(i + 1, 5), j]", [0, 1], False),  # the loop reads what is not written yet
        ("t[i, j]", [1, 0], False),
        ("x[i, j]", [1, 0], True),
    ],
)
def test_memory_of_all_iterations_keeps_its_order(read: str, stages: list[int], taken: bool) -> None:
    before = '        t = T.alloc_buffer((6, 8), "float32")\n        T.evaluate(0)\n'
    module = pipeline(STEPS.format(read=read), 6, stages, [0, 1], before)
    if taken:
        new = InjectSoftwarePipeline()(module)
        if "max" not in read:
            for old, made in zip(results(module, 6), results(new, 6), strict=True):
                np.testing.assert_array_equal(made, old)
        return
    with pytest.raises(PassError, match=r"W591.*elements of 't'") as caught:
        InjectSoftwarePipeline()(module)
    assert "plan-and-update" in str(caught.value)


@pytest.mark.parametrize(
    ("stages", "order", "message"),
    [
        ([0, 0, 1], [0, 1, 2], "it has 4 parts, and 3 stages and 3 places"),
        ([0, 0, 1, 1], [0, 1, 2, 2], "does not give its 4 parts each a place from 0 to 3"),
        ([1, 1, 1, 1], [0, 1, 2, 3], "do not start at 0"),
    ],
)
def test_numbers_that_are_none_of_the_parts_are_refused(stages: list[int], order: list[int], message: str) -> None:
    with pytest.raises(PassError, match=f"W590.*{message}"):
        InjectSoftwarePipeline()(pipeline(CHAIN, 4, stages, order))


CALLS = """
            t = T.alloc_buffer((8,), "float32")
            with T.block("load"):
                {load}
                T.evaluate(T.call_extern("int32", "load", T.address_of(t[0]), T.address_of(x[i, 0])))
            with T.block("use"):
                {use}
                T.evaluate(T.call_extern("int32", "use", T.address_of(y[i, 0]), T.address_of(t[0])))
"""


def test_calls_of_unknown_functions_may_overlap_where_blocks_say_what_they_touch() -> None:
    load, use = (f"T.reads({a}); T.writes({b})" for a, b in (("x[i, 0:8]", "t[0:8]"), ("t[0:8]", "y[i, 0:8]")))
    stated = pipeline(CALLS.format(load=load, use=use), 4, [0, 1], [0, 1])
    text = InjectSoftwarePipeline()(stated).script()
    assert "T.address_of(t[(i + 1) % 2, 0])" in text
    assert "T.reads(t[i % 2, 0:8])" in text
    for given_load, given_use in itertools.product((load, "T.evaluate(0)"), (use, "T.evaluate(0)")):
        if (given_load, given_use) == (load, use):
            continue
        with pytest.raises(PassError, match=r"W591.*order cannot be changed") as caught:
            InjectSoftwarePipeline()(pipeline(CALLS.format(load=given_load, use=given_use), 4, [0, 1], [0, 1]))
        assert "T.reads and T.writes" in str(caught.value)


def test_stages_may_count_allocations_as_texts_for_tvm_do() -> None:
    new = InjectSoftwarePipeline()(pipeline(CHAIN, 4, [0, 0, 0, 0, 0, 1], [0, 2, 1, 3, 4, 5]))
    weft.assert_structural_equal(new, InjectSoftwarePipeline()(pipeline(CHAIN, 4, [0, 0, 0, 1], [0, 1, 2, 3])))


def test_stages_that_run_by_themselves_are_refused() -> None:
    module = pipeline(CHAIN, 4, [0, 0, 0, 1], [0, 1, 2, 3])
    text = module.script().replace(
        '{"software_pipeline_stage"', '{"software_pipeline_async_stages": [0], "software_pipeline_stage"'
    )
    with pytest.raises(PassError, match=r"W590.*run by themselves"):
        InjectSoftwarePipeline()(parsed(text))


def test_a_value_that_is_no_list_of_stages_is_refused_where_it_stands() -> None:
    text = pipeline(CHAIN, 4, [0, 0, 0, 1], [0, 1, 2, 3]).script().replace("[0, 0, 0, 1]", '"two"')
    (found,) = weft.verify(parsed(text))
    assert (found.code, found.span is not None) == ("W436", True)


def test_double_buffering_takes_the_innermost_loop_with_other_parts() -> None:
    module = parsed(
        """
@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.Buffer((3, 4, 8), "float32"), y: T.Buffer((3, 4, 8), "float32")):
        for k in range(3):
            for i in range(4):
                a = T.alloc_buffer((8,), "float32")
                for j in range(8):
                    with T.block("load"):
                        T.block_attr({"double_buffer_scope": 0})
                        a[j] = x[k, i, j]
                for j in range(8):
                    y[k, i, j] = a[7 - j]
"""
    )
    new = InjectDoubleBuffer()(module)
    assert "double_buffer_scope" not in new.script()
    assert "a[(i + 1) % 2, " in new.script()
    x = np.random.default_rng(0).random((3, 4, 8), "float32")
    y = np.zeros_like(x)
    weft.compile(new)["f"](x, y)
    np.testing.assert_array_equal(y, x[..., ::-1])
