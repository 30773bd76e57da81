"""HoistScratch, ShareMemory, StaticPlanBlockMemory and CheckMemoryPlan: the phase "plan"."""

from __future__ import annotations

import importlib.util
import random
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.test_tile_contractions import legalized
from tests.transform.helpers import assert_same_meaning, check, left_alone, module, of_rows

import weft
from weft.errors import BoundsError, ShapeError, VerifyError
from weft.ir import Function, IRModule, PrimFunc
from weft.ir.dim import Dim, Facts, evaluate, prove_le, symbol
from weft.transform import (
    CheckMemoryPlan,
    HoistScratch,
    LowerToMemory,
    ShareMemory,
    StaticPlanBlockMemory,
    default_pipeline,
)
from weft.transform.memory import pack_memory, share_memory
from weft.transform.memory.pack_memory import Request, live_bytes, pack
from weft.transform.memory.storage_map import storages_of

KERNELS = """
        @T.prim_func(private=True)
        def flip(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
            n = T.int64()
            for i, j in T.grid(n, 4):
                with T.block("flip"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, 3 - vj]

        @T.prim_func(private=True)
        def half(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
            n = T.int64()
            for i, j in T.grid(n, 4):
                with T.block("half"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] * T.float32(0.5)

        @T.prim_func(private=True)
        def flat(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n * 4",), "float32")):
            n = T.int64()
            for i in range(n * 4):
                with T.block("flat"):
                    vi = T.axis.spatial(n * 4, i)
                    y[vi] = x[vi // 4, vi % 4]
"""
MARKED = KERNELS.replace(
    'def half(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):',
    (
        'def half(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):\n'
        '            T.func_attr({"shares_memory": [[0, 1]]})'
    ),
)


def with_kernels(body: str, kernels: str = KERNELS) -> str:
    """A graph function of n rows and the kernels; ALLOCATED is the memory of as many rows."""
    allocated = 'R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)'
    body = textwrap.dedent(body.replace("ALLOCATED", allocated))
    return of_rows(f"n = T.int64()\n{body}") + kernels


def test_tensors_that_are_not_needed_together_share_one_block() -> None:
    """The plan is in the text: a block whose size and offsets are expressions over the symbols."""
    check(
        StaticPlanBlockMemory(),
        with_kernels("""
        a = ALLOCATED
        Module.flip(x, a)
        b = ALLOCATED
        Module.flip(a, b)
        c = ALLOCATED
        Module.flip(b, c)
        d = ALLOCATED
        Module.flip(c, d)
        return d
        """),
        with_kernels("""
        storage = R.memory.alloc_storage(R.shape([128 * ((n + 3) // 4)]), 0, "global", "uint8")
        a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), "float32")
        Module.flip(x, a)
        b = R.memory.alloc_tensor(storage, R.prim_value(64 * ((n + 3) // 4)), R.shape([n, 4]), "float32")
        Module.flip(a, b)
        c = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), "float32")
        Module.flip(b, c)
        d = ALLOCATED
        Module.flip(c, d)
        return d
        """),
    )


def test_a_kernel_that_reads_in_place_gets_its_dying_input_as_output() -> None:
    check(
        ShareMemory(),
        with_kernels("""
        a = ALLOCATED
        Module.half(x, a)
        b = ALLOCATED
        Module.half(a, b)
        c = ALLOCATED
        Module.flip(b, c)
        return c
        """),
        with_kernels(
            """
        a = ALLOCATED
        Module.half(x, a)
        b = R.memory.view(a, R.shape([n, 4]))
        Module.half(a, b)
        c = ALLOCATED
        Module.flip(b, c)
        return c
        """,
            MARKED,
        ),
    )


def test_a_copy_in_order_becomes_a_view() -> None:
    check(
        ShareMemory(),
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
            n = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.builtin.alloc_tensor(R.shape([n * 4]), dtype="float32", runtime_device_index=0)
            Module.flat(a, b)
            return b
        """
        + KERNELS,
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
            n = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.memory.view(a, R.shape([n * 4]))
            return b
        """
        + KERNELS,
    )


def test_a_copy_stays_where_what_was_copied_is_written_again() -> None:
    left_alone(
        ShareMemory(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
            n = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.builtin.alloc_tensor(R.shape([n * 4]), dtype="float32", runtime_device_index=0)
            Module.flat(a, b)
            Module.half(x, a)
            return b
        """
        + KERNELS,
    )


SIZED = """
        @T.prim_func(private=True)
        def flat(x: T.Buffer(("4 * n",), "float32"), y: T.Buffer(("2 * n", 2), "float32"), n: T.int64):
            for i, j in T.grid(2 * n, 2):
                with T.block("flat"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi * 2 + vj]
"""


@pytest.mark.parametrize(("size", "views"), [("n", 1), ("m", 0)])
def test_a_copy_that_is_passed_its_sizes_becomes_a_view_where_they_fit(size: str, views: int) -> None:
    """D5: the tensors alone do not say n; another size than theirs is found when it runs."""
    before = module(
        f"""
        @R.function
        def main(x: R.Tensor(("4 * n",), "float32"), s: R.Shape(["n", "m"])) -> R.Tensor(("2 * n", 2), "float32"):
            a = R.cumsum(x, axis=0)
            b = R.call_tir(cls.flat, (a,), out_ty=R.Tensor((2 * n, 2), "float32"), tir_vars=({size},))
            return R.cumsum(b, axis=0)
        """
        + SIZED
    )
    planned = weft.lower(before, stop="plan")
    assert planned.script().count("cls.flat(") == 1 - views
    x, exe = np.arange(8, dtype="float32"), weft.compile(before)
    np.testing.assert_array_equal(exe["main"](x, (2, 2)), np.cumsum(np.cumsum(x).reshape(4, 2), 0))
    if not views:
        with pytest.raises(ShapeError, match="4 \\* m is 12"):
            exe["main"](x, (2, 3))


def test_an_output_of_another_size_is_no_view_of_an_input() -> None:
    left_alone(
        ShareMemory(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor(("n", 4), "float32"), s: R.Shape(["m"])) -> R.Tensor(("m", 4), "float32"):
            n = T.int64()
            m = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.builtin.alloc_tensor(R.shape([m, 4]), dtype="float32", runtime_device_index=0)
            Module.half(a, b)
            return b
        """
        + MARKED,
    )


@pytest.mark.parametrize("executor", ["native", "graph", "aot"])
def test_the_first_of_elements_that_may_not_be_there_is_no_view(executor: str) -> None:
    made = module("""
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor((3,), "float32")):
        a, b = x[0], y[1]
        for i in range(200):
            a, b = b, a * 0.5 + b * 0.25
        return a
    """)
    main = weft.compile(made, executor=executor)["main"]
    np.testing.assert_array_equal(main(np.ones(1, "float32"), np.zeros(3, "float32")) >= 0, True)
    with pytest.raises(BoundsError):
        main(np.ones(0, "float32"), np.zeros(3, "float32"))


def test_a_view_has_the_shape_of_its_allocation_where_the_type_says_less() -> None:
    lowered = module("""
    @R.function
    def main(x: R.Tensor((6, "n"), "int32")) -> R.Tensor((6, "n"), "int32"):
        n = T.int64()
        y: R.Tensor(dtype="int32", ndim=2) = R.builtin.alloc_tensor(R.shape([6, n]), dtype="int32")
        Module.same(x, y)
        return x

    @T.prim_func(private=True)
    def same(x: T.Buffer((6, "n"), "int32"), y: T.Buffer((6, "n"), "int32")):
        for i, j in T.grid(6, n):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj]
    """)
    assert "R.memory.view(x, (6, n))" in ShareMemory()(lowered).script()


@pytest.mark.parametrize(
    "body",
    [
        """
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.half(x, a)
            return a
        """,
        """
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(a, b)
            return b
        """,
        """
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.half(a, b)
            c = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(a, c)
            Module.flip(b, a)
            return a
        """,
        """
            a = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(x, a)
            b = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.half(x, b)
            c = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(b, c)
            Module.half(a, b)
            return b
        """,
    ],
    ids=[
        "a parameter is not ours to change",
        "a kernel that reads elsewhere",
        "an input that is used again",
        "memory that held something else before",
    ],
)
def test_memory_is_not_shared_where_it_would_change_a_result(body: str) -> None:
    left_alone(
        ShareMemory(),
        f"""
        @R.function(pure=False)
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
{body.strip(chr(10))}
        """
        + KERNELS,
    )


def test_a_view_of_a_parameter_does_not_leave_the_function() -> None:
    """A result that shares memory with an argument would change with it."""
    left_alone(
        ShareMemory(),
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
            n = T.int64()
            b = R.builtin.alloc_tensor(R.shape([n * 4]), dtype="float32", runtime_device_index=0)
            Module.flat(x, b)
            return b
        """
        + KERNELS,
    )


def test_a_block_of_memory_comes_before_a_dataflow_block() -> None:
    """The dataflow block stays one: its variables are seen by nothing else."""
    planned = StaticPlanBlockMemory()(
        module(
            with_kernels("""
        with R.dataflow():
            y = R.exp(x)
            a = ALLOCATED
            R.output(a)
        Module.flip(x, a)
        return x
        """)
        )
    )
    assert storages_of(main_of(planned), planned)
    assert weft.verify(planned) == []
    weft.assert_structural_equal(weft.parse(planned.script()), planned)


SCRATCH = """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            y = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.k(x, y)
            return y

        @T.prim_func(private=True)
        def k(x: T.Buffer(("m", 4), "float32"), y: T.Buffer(("m", 4), "float32")):
            m = T.int64()
            t = T.alloc_buffer((m, 4), "float32")
            s = T.alloc_buffer((4,), "float32")
            for i, j in T.grid(m, 4):
                t[i, 3 - j] = x[i, j]
            s[0] = T.float32(2)
            for i, j in T.grid(m, 4):
                y[i, j] = t[i, j] * s[0]
"""


def test_large_scratch_memory_of_a_kernel_becomes_a_parameter() -> None:
    new = HoistScratch()(module(SCRATCH))
    kernel = new["k"]
    assert isinstance(kernel, PrimFunc)
    assert [param.name for param in kernel.params] == ["x", "y", "t"]
    assert kernel.attrs["scratch"] == (2,)
    assert_same_meaning(module(SCRATCH), new)
    assert HoistScratch()(new) is new
    planned = StaticPlanBlockMemory()(new)
    (storage,) = storages_of(main_of(planned), planned)
    assert [place.var.name for place in storage.places] == ["t"]
    assert storage.bytes_at({"n": 5}) == 128
    CheckMemoryPlan()(planned)


def test_small_scratch_memory_that_the_stack_has_no_room_for_becomes_a_parameter() -> None:
    """Each is small enough; the largest ones leave, and registers (`local`) never do."""
    sizes = {"a": 2500, "b": 3000, "c": 2400}
    allocated = "".join(f'            {name} = T.alloc_buffer(({size},), "float32")\n' for name, size in sizes.items())
    before, rest = SCRATCH.split('            s = T.alloc_buffer((4,), "float32")\n')
    registers = '            s = T.alloc_buffer((4000,), "float32", scope="local")\n'
    used = "s[0] * a[0] * b[0] * c[0]"
    filled = "".join(f"            {name}[0] = T.float32(3)\n" for name in sizes)
    source = before + registers + allocated + filled + rest.replace("t[i, j] * s[0]", f"t[i, j] * {used}")
    new = HoistScratch()(module(source))
    kernel = new["k"]
    assert isinstance(kernel, PrimFunc)
    assert [param.name for param in kernel.params] == ["x", "y", "t", "b"]
    assert_same_meaning(module(source), new)
    assert HoistScratch()(new) is new


def test_packed_rows_take_what_the_rows_of_a_call_need() -> None:
    text = """
        @R.function
        def main(x: R.Tensor(("n", 1024), "float16"), w: R.Tensor((1024, 512), "float16")):
            return R.matmul(x, w)
    """
    lowered = weft.lower(module(text), stop="plan")
    held = [sum(storage.bytes_at({"n": n}) for storage in storages_of(main_of(lowered), lowered)) for n in (4, 40, 400)]
    assert held[0] < held[1] < held[2]
    main = weft.compile(module(text))["main"]
    random = np.random.default_rng(0)
    w = random.standard_normal((1024, 512)).astype("float16")
    for n in (4, 40, 181, 182, 183, 400):
        x = random.standard_normal((n, 1024)).astype("float16")
        wanted = (x.astype("float32") @ w.astype("float32")).astype("float16")
        np.testing.assert_allclose(main(x, w), wanted, rtol=2e-3, atol=0.1)


def test_scratch_memory_of_a_block_that_states_its_regions() -> None:
    """The block then does more than it said: it is left to be derived again."""
    before, loops = SCRATCH.split("            t = T.alloc")
    regions = "T.reads(x[0:m, 0:4])\n                T.writes(y[0:m, 0:4])\n                "
    inner = "".join(f"        {line}\n" for line in f"            t = T.alloc{loops}".splitlines() if line.strip())
    stated = f'{before}            with T.block("root"):\n                {regions}for r in range(1):\n{inner}'
    new = HoistScratch()(module(stated))
    kernel = new["k"]
    assert isinstance(kernel, PrimFunc)
    assert [param.name for param in kernel.params] == ["x", "y", "t"]
    assert weft.verify(new) == []
    assert_same_meaning(module(stated), new)


def test_scratch_memory_of_parallel_iterations_and_of_public_kernels_stays() -> None:
    left_alone(HoistScratch(), SCRATCH.replace("@T.prim_func(private=True)", "@T.prim_func"))
    inside = """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            y = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.k(x, y)
            return y

        @T.prim_func(private=True)
        def k(x: T.Buffer(("m", 4), "float32"), y: T.Buffer(("m", 4), "float32")):
            m = T.int64()
            for i in T.parallel(m):
                t = T.alloc_buffer((m, 4), "float32")
                for j in range(4):
                    t[i, j] = x[i, j]
                    y[i, j] = t[i, j]
    """
    left_alone(HoistScratch(), inside)


def test_each_of_a_few_parallel_iterations_has_its_own_copy_of_scratch_memory() -> None:
    inside = """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((3, "n", 4), "float32"):
            n = T.int64()
            y = R.builtin.alloc_tensor(R.shape([3, n, 4]), dtype="float32", runtime_device_index=0)
            Module.k(x, y)
            return y

        @T.prim_func(private=True)
        def k(x: T.Buffer(("m", 4), "float32"), y: T.Buffer((3, "m", 4), "float32")):
            m = T.int64()
            for p in T.parallel(3):
                t = T.alloc_buffer((m, 4), "float32")
                for i, j in T.grid(m, 4):
                    t[i, 3 - j] = x[i, j]
                for i, j in T.grid(m, 4):
                    y[p, i, j] = t[i, j] + T.cast(p, "float32")
    """
    new = HoistScratch()(module(inside))
    kernel = new["k"]
    assert isinstance(kernel, PrimFunc)
    assert [param.name for param in kernel.params] == ["x", "y", "t"]
    assert weft.verify(new) == []
    assert_same_meaning(module(inside), new)
    planned = StaticPlanBlockMemory()(new)
    (storage,) = storages_of(main_of(planned), planned)
    assert storage.bytes_at({"n": 8}) == 3 * 8 * 16
    CheckMemoryPlan()(planned)


BAD = of_rows(
    """
            n = T.int64()
            storage = R.memory.alloc_storage(R.shape([{size}]), 0, "global", "uint8")
            a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), "float32")
            Module.flip(x, a)
            b = R.memory.alloc_tensor(storage, R.prim_value({offset}), R.shape([n, 4]), "float32")
            Module.flip(x, b)
            c = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(a, c)
            d = R.builtin.alloc_tensor(R.shape([n, 4]), dtype="float32", runtime_device_index=0)
            Module.flip(b, d)
            return d
            """
)


@pytest.mark.parametrize(
    ("size", "offset", "code", "name"),
    [
        ("n * 32", "n * 8", "W437", "b"),
        ("n * 32 + 64", "64", "W437", "b"),
        ("n * 24", "n * 16", "W438", "b"),
    ],
)
def test_a_wrong_plan_is_refused_with_sizes_at_which_it_fails(size: str, offset: str, code: str, name: str) -> None:
    plan = module(BAD.format(size=size, offset=offset) + KERNELS)
    with pytest.raises(VerifyError) as caught:
        CheckMemoryPlan()(plan)
    assert caught.value.code == code
    assert f"{name!r}" in caught.value.message
    assert any(note.startswith("for example n=") for note in caught.value.notes)


def test_a_tensor_in_a_storage_that_nobody_knows_is_refused() -> None:
    text = """
        @R.function
        def main(storage: R.Any) -> R.Tensor((4,), "float32"):
            a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), "float32")
            return a
    """
    with pytest.raises(VerifyError, match="W438: of 'a' nobody can tell where it lies in a storage"):
        CheckMemoryPlan()(module(text))


def test_a_tensor_does_not_begin_before_its_storage() -> None:
    plan = module(BAD.format(size="n * 32", offset="n * -16") + KERNELS)
    with pytest.raises(VerifyError, match="W438: 'b' lies in bytes") as caught:
        CheckMemoryPlan()(plan)
    assert "to 0 of a storage" in caught.value.message


def test_a_tensor_begins_at_a_multiple_of_the_bytes_of_an_element() -> None:
    plan = module(BAD.format(size="n * 32 + 4", offset="n * 16 + 2") + KERNELS)
    with pytest.raises(VerifyError, match="W438: 'b' lies in bytes"):
        CheckMemoryPlan()(plan)


def test_a_right_plan_passes_the_check() -> None:
    plan = module(BAD.format(size="n * 32", offset="n * 16") + KERNELS)
    assert CheckMemoryPlan()(plan) is plan


def test_the_interpreter_finds_a_use_after_the_memory_was_given_to_another_tensor() -> None:
    plan = module(BAD.format(size="n * 32", offset="n * 8") + KERNELS)
    with pytest.raises(BoundsError) as caught:
        weft.interpret(plan)["main"](np.ones((2, 4), "float32"))
    assert caught.value.code == "W911"


BOUNDED = of_rows(
    """
            R.func_attr({"tir_var_upper_bound": {"n": 6}})
            n = T.int64()
            with R.dataflow():
                y = R.cumsum(x, axis=0)
                R.output(y)
            return y
            """
)


def test_a_call_above_a_stated_bound_is_an_error_everywhere() -> None:
    """What is planned with the help of a bound holds: the bound is checked."""
    whole = module(BOUNDED)
    for function in (weft.interpret(whole)["main"], weft.compile(whole)["main"]):
        assert function(np.ones((6, 4), "float32")).shape == (6, 4)
        with pytest.raises(ShapeError) as caught:
            function(np.ones((7, 4), "float32"))
        assert caught.value.code == "W229"
        assert "n is 7" in caught.value.message


def test_a_bound_that_is_no_size_is_refused() -> None:
    with pytest.raises(VerifyError) as caught:
        StaticPlanBlockMemory()(module(BOUNDED.replace('"n": 6', '"n": "six"')))
    assert caught.value.code == "W439"


CONTROL = """
        @R.function
        def main(x: R.Tensor(("n", 64), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 64), "float32"):
            n = T.int64()
            with R.dataflow():
                h = R.cumsum(x, axis=1)
                h1 = R.permute_dims(h, [1, 0])
                R.output(h, h1)
            if c:
                g1 = R.permute_dims(h1, [1, 0])
                g2 = R.cumsum(g1, axis=0)
                g = R.add(g2, h)
            else:
                k1 = R.nn.softmax(h1)
                k2 = R.permute_dims(k1, [1, 0])
                g = k2
            with R.dataflow():
                z = R.cumsum(R.permute_dims(g, [1, 0]), axis=1)
                y = R.permute_dims(z, [1, 0])
                R.output(y)
            return y
"""


def main_of(whole: IRModule) -> Function:
    """The function `main`."""
    found = whole["main"]
    assert isinstance(found, Function)
    return found


def planned(before: IRModule) -> IRModule:
    """The module after the whole pipeline, its plan proved."""
    new = default_pipeline(weft.Target("llvm"))(before)
    return CheckMemoryPlan()(new)


def test_branches_and_what_lives_across_them_are_planned() -> None:
    before = module(CONTROL)
    after = planned(before)
    assert storages_of(main_of(after), after)
    compiled = weft.compile(before)["main"]
    for count in (0, 1, 5):
        x = np.random.default_rng(count).uniform(-1, 1, (count, 64)).astype("float32")
        for choice in (np.array(True), np.array(False)):
            want = weft.interpret(before)["main"](x, choice)
            for got in (weft.interpret(after)["main"](x, choice), compiled(x, choice)):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_sizes_that_have_no_value_at_some_sizes_are_planned() -> None:
    """`m * n // (n // 2)` has none where n is 0 or 1, and the program has no result there."""
    before = module(
        """
        @R.function
        def main(s: R.Shape(["n", "m"]), x: R.Tensor(("m", "2 * n"), "int64")):
            n = T.int64()
            v = R.cumsum(R.cumsum(R.reshape(x, (n // 2, -1, 2)), axis=0), axis=1)
            w = R.cumsum(x, axis=1)
            return (R.flip(v, axis=0), R.add(w, R.flip(w, axis=0)))
        """
    )
    planned(before)
    run = weft.compile(before)["main"]
    x = np.arange(24, dtype="int64").reshape(3, 8)
    first, second = run((4, 3), x)
    np.testing.assert_array_equal(first, x.reshape(2, -1, 2).cumsum(0).cumsum(1)[::-1])
    np.testing.assert_array_equal(second, x.cumsum(1) + x.cumsum(1)[::-1])
    few = np.zeros((3, 2), "int64")
    with pytest.raises(weft.ShapeError, match="n // 2"):
        run((1, 3), few)


def test_sizes_that_a_match_cast_defines_are_planned_where_they_are_known() -> None:
    before = module(
        """
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=2, dtype="float32"):
            k = T.int64()
            m = T.int64()
            y = R.match_cast(x, R.Tensor((k, m), "float32"))
            with R.dataflow():
                a = R.cumsum(y, axis=0)
                b = R.permute_dims(a, [1, 0])
                c = R.cumsum(b, axis=0)
                d = R.permute_dims(c, [1, 0])
                R.output(d)
            return d
        """
    )
    after = planned(before)
    assert len(storages_of(main_of(after), after)) == 1
    x = np.arange(12, dtype="float32").reshape(3, 4)
    want = weft.interpret(before)["main"](x)
    np.testing.assert_allclose(weft.interpret(after)["main"](x), want)
    np.testing.assert_allclose(weft.compile(before)["main"](x), want)


# The packing alone ----------------------------------------------------------------------------------------------------

N, M = symbol("n"), symbol("m")
SIZES = st.sampled_from(
    [64, 100, 4096, 64 * N, 4 * N, 128 * N, 64 * M, 64 * N * M, 4 * N * M + 8, 256 * N + 64 * M, 64 * N * N]
)
REQUESTS = st.lists(st.tuples(SIZES, st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=14)


@settings(max_examples=60, deadline=None)
@given(REQUESTS, st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=3, max_size=6))
def test_packed_memory_never_overlaps_for_any_size(
    items: list[tuple[Dim, int, int]], points: list[tuple[int, int]]
) -> None:
    """Two requests that are needed at one step are apart, and all lie inside of the total."""
    requests = [Request(size, first, first + length) for size, first, length in items]
    packing = pack(requests)
    for n, m in points:
        values = {"n": n, "m": m}
        total = evaluate(packing.total, values)
        starts = [evaluate(offset, values) for offset in packing.offsets]
        places = [(start, evaluate(r.size, values)) for start, r in zip(starts, requests, strict=True)]
        assert all(start >= 0 and start % 64 == 0 and start + size <= total for start, size in places)
        for i, (start, size) in enumerate(places):
            for j, (other, length) in enumerate(places[:i]):
                if requests[i].meets(requests[j]):
                    assert start + size <= other or other + length <= start
        assert total >= live_bytes(requests, values)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=16))
def test_packing_of_known_sizes_is_near_the_live_bytes(items: list[tuple[int, int, int]]) -> None:
    """At most a fifth more than any plan needs (the best order of several is taken), usually exactly that."""
    requests = [Request(size, first, first + length) for size, first, length in items]
    assert pack(requests).total <= 1.2 * live_bytes(requests, {}) + 64


def test_offsets_of_many_sizes_that_cannot_be_compared_stay_short() -> None:
    """Greatest ends of greatest ends were beyond the limits of dimensions: a model did not compile (W282)."""
    chosen = random.Random(0)
    names = [f"s{index}" for index in range(50)]
    sizes = [4 * symbol(name) * symbol("m") + 1 for name in names]
    requests = [Request(size, step, step + chosen.randint(1, 30)) for step, size in enumerate(sizes)]
    packing = pack(requests)
    for values in ({name: chosen.choice((1, 3, 100, 1000)) for name in ("m", *names)} for _ in range(5)):
        offsets = [evaluate(offset, values) for offset in packing.offsets]
        ends = [offset + evaluate(size, values) for offset, size in zip(offsets, sizes, strict=True)]
        assert max(ends) <= evaluate(packing.total, values)
        pairs = ((i, j) for i in range(50) for j in range(i) if requests[i].meets(requests[j]))
        assert all(ends[i] <= offsets[j] or ends[j] <= offsets[i] for i, j in pairs)


@pytest.mark.parametrize("scratch", [64, 4096, 1431872])
def test_memory_of_known_size_fits_beside_sizes_that_are_not_known(scratch: int) -> None:
    """It is below what lies above at usual sizes, which moves up at smaller ones: as much as is needed at each size."""
    requests = [
        Request(8192 * N, 0, 6),
        Request(8192 * N, 1, 2),
        Request(57344 * N, 2, 4),
        Request(scratch, 2, 2),
        Request(28672 * N, 4, 6),
        Request(scratch, 6, 6),
    ]
    total = pack(requests).total
    for size in (0, 1, 2, 20, 64, 128, 1024, 5000):
        assert evaluate(total, {"n": size}) == live_bytes(requests, {"n": size})


def test_what_stands_too_high_is_placed_before_what_it_stands_on() -> None:
    """By size or by time alone first fit leaves a gap here."""
    items = [(5, 10, 15), (1, 6, 12), (1, 5, 9), (6, 6, 6), (2, 9, 12)]
    requests = [Request(64 * size, first, last) for size, first, last in items]
    assert pack(requests).total == live_bytes(requests, {})


def test_a_bound_makes_a_smaller_plan() -> None:
    """n * n fits where 64 * n was once n is known to be at most 64."""
    requests = [Request(64 * N * N, 0, 1), Request(4096 * N, 2, 3), Request(64 * N, 1, 2)]
    free, bounded = pack(requests), pack(requests, Facts().assume_bounds("n", 0, 64))
    assert evaluate(bounded.total, {"n": 64}) == 64 * 64 * 64 + 64 * 64
    assert evaluate(free.total, {"n": 64}) >= evaluate(bounded.total, {"n": 64})


# Random graphs --------------------------------------------------------------------------------------------------------

STEPS = ["exp", "negative", "cumsum", "flip", "softmax", "add", "multiply", "turn", "fold", "sum", "branch"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A graph over (n, 4) tensors whose values are used again, in branches too; the result is one or two of them."""
    lines: list[str] = []
    values = ["x"]
    for i in range(draw(st.integers(3, 12))):
        step, a, b = draw(st.sampled_from(STEPS)), draw(st.sampled_from(values)), draw(st.sampled_from(values))
        text = {
            "exp": f"R.tanh({a})",
            "negative": f"R.negative({a})",
            "cumsum": f"R.cumsum({a}, axis=0)",
            "flip": f"R.flip({a}, axis=1)",
            "softmax": f"R.nn.softmax({a})",
            "add": f"R.add({a}, {b})",
            "multiply": f"R.multiply({a}, {b})",
            "turn": f"R.permute_dims(R.cumsum(R.permute_dims({a}, [1, 0]), axis=1), [1, 0])",
            "fold": f"R.reshape(R.flip(R.reshape({a}, (n * 2, 2)), axis=0), (n, 4))",
            "sum": f"R.subtract({a}, R.mean({b}, axis=[1], keepdims=True))",
        }.get(step)
        if text is None:
            lines += [
                "if c:",
                f"    t{i} = R.cumsum({a}, axis=1)",
                f"    v{i} = R.flip(t{i}, axis=0)",
                "else:",
                f"    v{i} = R.add({a}, {b})",
            ]
        else:
            lines.append(f"v{i} = {text}")
        values.append(f"v{i}")
    results = draw(st.lists(st.sampled_from(values[1:]), min_size=1, max_size=2, unique=True))
    body = "\n".join(f"            {line}" for line in [*lines, f"return ({', '.join(results)},)"])
    return (
        '        @R.function\n        def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):\n'
        f"            n = T.int64()\n{body}\n"
    )


@settings(max_examples=15, deadline=None)
@given(programs(), st.sampled_from([0, 1, 3, 5]), st.booleans(), st.booleans())
def test_a_planned_program_computes_what_it_did(text: str, count: int, choice: bool, whole: bool) -> None:
    """The plan is proved, the interpreter sees no use of memory that is gone, and the results are the same bits."""
    lowered = LowerToMemory()(weft.transform.LegalizeOps()(module(text)))
    after = default_pipeline(weft.Target("llvm"))(module(text)) if whole else lowered
    for item in (HoistScratch(), ShareMemory(), StaticPlanBlockMemory()):
        after = item(after)
    CheckMemoryPlan()(after)
    x = np.random.default_rng(count).uniform(-1, 1, (count, 4)).astype("float32")
    want = weft.interpret(lowered)["main"](x, np.array(choice))
    got = weft.interpret(after)["main"](x, np.array(choice))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@settings(max_examples=8, deadline=None)
@given(programs(), st.booleans())
def test_compiled_code_honours_the_plan(text: str, choice: bool) -> None:
    whole = module(text)
    x = np.random.default_rng(7).uniform(-1, 1, (5, 4)).astype("float32")
    want = weft.interpret(whole)["main"](x, np.array(choice))
    got = weft.compile(whole)["main"](x, np.array(choice))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


# A decoder ------------------------------------------------------------------------------------------------------------


def benchmark() -> ModuleType:
    """benchmarks/passes/memory_plan.py as a module."""
    path = Path(__file__).parents[3] / "benchmarks" / "passes" / "memory_plan.py"
    spec = importlib.util.spec_from_file_location("memory_plan", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["memory_plan"] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(("program", "attention"), [("prefill", "opaque"), ("prefill", "matmul"), ("decode", "matmul")])
def test_the_plan_of_a_decoder_is_as_small_as_its_live_values(program: str, attention: str) -> None:
    """Two layers of the sizes of Llama-3-8B: less than another planner takes, and what live values take.

    What kernels need to run half products in tiles is among the live values: packed panels and the sums of a block.
    """
    sizes = benchmark()
    row = sizes.measure(sizes.Shape(layers=2), program, attention, True)
    assert row.held < row.peer
    assert row.held <= 1.02 * max(row.live)
    most = {("prefill", "opaque"): 76, ("prefill", "matmul"): 100, ("decode", "matmul"): 136}
    assert row.held < most[program, attention]


@pytest.mark.parametrize(
    ("program", "attention", "most", "slack"),
    [("prefill", "opaque", 46, 0.03), ("prefill", "matmul", 97.2, 0.03), ("decode", "opaque", 4, 0.75)],
)
def test_sums_of_half_products_and_parts_of_splits_have_no_memory(
    program: str, attention: str, most: float, slack: float
) -> None:
    """As exporters write it: one product of gate and up, and a split; sums in float32, and a cast of each.

    Decoding steps of few sequences take up to `slack` MiB more than is alive at once.
    """
    sizes = benchmark()
    row = sizes.measure(sizes.Shape(layers=2, joined=True), program, attention, False)
    assert row.held < most
    assert all(planned <= live + slack for planned, live in zip(row.planned, row.live, strict=True))


def test_a_function_without_anything_to_plan_is_left_alone() -> None:
    before = LowerToMemory()(weft.transform.LegalizeOps()(module(BOUNDED)))
    assert isinstance(before["main"], Function)
    assert StaticPlanBlockMemory()(before) is before


def test_places_of_tensors_that_are_needed_together_take_a_proof_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the tensors, twice the proofs: that starts are in order is known from neighbour to neighbour."""
    proofs = 0

    def counted(a: Dim, b: Dim, facts: Facts) -> bool | None:
        nonlocal proofs
        proofs += 1
        return prove_le(a, b, facts)

    monkeypatch.setattr(pack_memory, "prove_le", counted)
    counts: list[int] = []
    for size in (40, 80):
        found = pack([Request(4 * symbol("n"), 0, step) for step in range(size)])
        values = sorted(evaluate(offset, {"n": 3}) for offset in found.offsets)
        assert values == [64 * step for step in range(size)]
        counts.append(proofs)
        proofs = 0
    assert counts[0] >= 40
    assert counts[1] <= 2.2 * counts[0]


def test_nothing_is_proved_where_no_input_can_give_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a product packs into is new and has the size of the result; the matrices are the caller's."""

    def asked(function: PrimFunc) -> tuple[tuple[int, int], ...]:
        raise AssertionError(f"{function.name} was asked")

    square = legalized("matmul", (512, 512), (512, 512))
    hoisted = HoistScratch()(weft.lower(square, "llvm -vector-bits=512", stop="lower"))
    (kernel,) = (item for item in hoisted.functions.values() if isinstance(item, PrimFunc))
    assert len(kernel.params) > 3  # what it packs into is an argument
    monkeypatch.setattr(share_memory, "sharing_pairs", asked)
    assert ShareMemory()(hoisted) is hoisted
