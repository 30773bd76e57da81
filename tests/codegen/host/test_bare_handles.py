"""Bare handles and views: nothing looks beyond the memory that is behind them, whoever calls."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import weft

HEAD = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
"""
KERNEL = """
@T.prim_func
def k(h: T.handle, y: T.Buffer((1,), "float32")):
    A = T.decl_buffer((16,), "float32", data=h)
    for i in range(16):
        A[i] = A[i] + T.float32(1)
    y[0] = A[15]
"""


def module_of(*functions: str) -> weft.IRModule:
    """A module of functions."""
    found = weft.parse(HEAD + textwrap.indent("".join(map(textwrap.dedent, functions)), "    "))
    assert isinstance(found, weft.IRModule)
    return found


REFUTED = {
    "larger": 'B = T.decl_buffer((16,), "float32", data=A.data)',
    "behind": 'B = T.decl_buffer((8,), "float32", data=A.data, elem_offset=4)',
    "before": 'B = T.decl_buffer((4,), "float32", data=A.data, elem_offset=-1)',
    "of a wider dtype": 'B = T.decl_buffer((8,), "float64", data=A.data)',
    "with strides that leave": 'B = T.decl_buffer((4, 2), "float32", data=A.data, strides=[4, 1])',
    "for all sizes": 'B = T.decl_buffer((n + 1,), "float32", data=N.data)',
}


@pytest.mark.parametrize("view", REFUTED.values(), ids=REFUTED)
def test_a_view_that_leaves_its_memory_is_refused_when_it_is_read(view: str) -> None:
    kernel = f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), N: T.Buffer(("n",), "float32")):
    {view}
    T.evaluate(0)
"""
    with pytest.raises(weft.VerifyError) as error:
        module_of(kernel)
    assert error.value.code == "W477"


ALLOWED = (
    'B = T.decl_buffer((4, 2), "float32", data=A.data)',
    'B = T.decl_buffer((4,), "float64", data=A.data)',
    'B = T.decl_buffer((4,), "float32", data=A.data, elem_offset=4)',
    'B = T.decl_buffer((n - 1,), "float32", data=N.data)',
    'B = T.decl_buffer((n,), "float32", data=A.data)',  # depends on n: checked when it runs
)


@pytest.mark.parametrize("view", ALLOWED)
def test_a_view_that_fits_for_some_sizes_is_read(view: str) -> None:
    assert module_of(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), N: T.Buffer(("n",), "float32")):
    {view}
    T.evaluate(0)
""")


@pytest.mark.parametrize("shape", [(8,), (16,), (4, 4), (20,)])
@pytest.mark.parametrize("executor", ["native", "vm"])
def test_python_gives_a_handle_as_much_memory_as_the_kernel_looks_at(shape: tuple[int, ...], executor: str) -> None:
    run = weft.compile(module_of(KERNEL), executor=executor)["k"]
    x, y = np.zeros(shape, "float32"), np.zeros(1, "float32")
    if x.size < 16:
        with pytest.raises(weft.ArgumentError) as error:
            run(x, y)
        assert error.value.code == "W852"
    else:
        run(x, y)
        assert x.reshape(-1)[:16].tolist() == [1] * 16
        assert y[0] == 1


@pytest.mark.parametrize("given", ["number", "not in a row", "read-only"])
def test_only_arrays_that_can_be_written_are_memory(given: str) -> None:
    run = weft.compile(module_of(KERNEL))["k"]
    x = np.zeros(64, "float32")
    frozen = np.zeros(64, "float32")
    frozen.flags.writeable = False
    with pytest.raises(weft.ArgumentError):
        run({"number": x.ctypes.data, "not in a row": x[::2], "read-only": frozen}[given], np.zeros(1, "float32"))


@pytest.mark.parametrize(("size", "fits"), [(8, False), (16, True)])
def test_kernels_that_pass_memory_on_give_enough_of_it(size: int, fits: bool) -> None:
    caller = f"""
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), y: T.Buffer((1,), "float32")):
    M.k(A.data, y.data)
"""
    if fits:
        x, y = np.zeros(size, "float32"), np.zeros(1, "float32")
        weft.compile(module_of(KERNEL, caller))["main"](x, y)
        assert x.tolist() == [1] * size
    else:
        with pytest.raises(weft.VerifyError) as error:
            module_of(KERNEL, caller)
        assert error.value.code == "W477"


def test_sizes_that_are_known_when_it_runs_are_checked_then() -> None:
    caller = """
@T.prim_func
def main(A: T.Buffer(("n",), "float32"), y: T.Buffer((1,), "float32")):
    M.k(A.data, y.data)
"""
    run = weft.compile(module_of(KERNEL, caller))["main"]
    run(np.zeros(16, "float32"), np.zeros(1, "float32"))
    with pytest.raises(weft.BoundsError):
        run(np.zeros(15, "float32"), np.zeros(1, "float32"))


GRAPH = """
@R.function
def main(x: R.Tensor(({size},), "float32")) -> R.Tensor((1,), "float32"):
    with R.dataflow():
        y = R.call_tir(M.k, (x,), R.Tensor((1,), "float32"))
        R.output(y)
    return y
"""
READS = KERNEL.replace("    for i in range(16):\n        A[i] = A[i] + T.float32(1)\n", "")


@pytest.mark.parametrize("size", ["8", '"n"'])
def test_graph_functions_that_give_too_little_memory_are_refused(size: str) -> None:
    with pytest.raises(weft.VerifyError) as error:
        weft.compile(module_of(READS, GRAPH.format(size=size)))
    assert error.value.code == "W478"
    assert weft.compile(module_of(READS, GRAPH.format(size="16")))["main"](np.arange(16, dtype="float32")) == [15]


def test_memory_of_a_size_that_is_no_number_is_refused() -> None:
    kernel = """
@T.prim_func
def g(h: T.handle, n: T.int64):
    B = T.decl_buffer((n,), "float32", data=h)
    for i in range(n):
        B[i] = 1.0
"""
    with pytest.raises(weft.VerifyError) as error:
        weft.compile(module_of(kernel))
    assert error.value.code == "W478"
