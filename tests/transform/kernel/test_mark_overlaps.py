"""Buffers of one memory: kernels that kernels call run in order, and what calls from outside share is copied."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.errors import TargetError
from weft.ir import IRModule, PrimFunc
from weft.ir.attrs import NOALIAS, attribute
from weft.transform.kernel.mark_overlaps import MarkOverlaps

CALLS = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def k(x: T.Buffer(({size},), "float32"), y: T.Buffer(({size},), "float32")):
        {body}
    @T.prim_func(private=True)
    def between(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        M.k(x, y)
    @T.prim_func
    def main(a: T.Buffer((16,), "float32"), b: T.Buffer((8,), "float32")):
        M.{call}
"""
BODIES = (
    "for i in range(8):\n            x[i] = y[7 - i] + T.float32(1)",
    "for i in T.vectorized(8):\n            x[i] = y[7 - i] + T.float32(1)",
    "for i in T.parallel(8):\n            x[i] = y[7 - i] + T.float32(1)",
    "for i in range(8):\n            x[i] = T.float32(i)\n            y[i] = x[7]",
)
OVERLAPPING = (
    "k(a.data, a.data)",
    "k(T.address_of(a[1]), T.address_of(a[0]))",
    "k(T.address_of(a[0]), T.address_of(a[1]))",
    "between(T.address_of(a[0]), T.address_of(a[1]))",
)


def module(text: str) -> IRModule:
    made = weft.parse(text)
    return made if isinstance(made, IRModule) else IRModule({"main": made})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("call", OVERLAPPING)
@pytest.mark.parametrize("body", BODIES)
def test_a_kernel_that_gets_one_memory_twice_runs_in_the_order_of_its_text(body: str, call: str) -> None:
    made = module(CALLS.format(size='"n"' if "between" in call else 8, body=body, call=call))
    wanted = np.arange(16, dtype="float32")
    weft.interpret(made)["main"](wanted, np.zeros(8, "float32"))
    for opt in (0, 3):
        got = np.arange(16, dtype="float32")
        weft.compile(made, opt=opt)["main"](got, np.zeros(8, "float32"))
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("call", "apart"), [("k(a.data, a.data)", False), ("k(b, a.data)", True), ("between(a.data, a.data)", False)]
)
def test_only_kernels_whose_buffers_may_overlap_are_marked(call: str, apart: bool) -> None:
    kernel = MarkOverlaps()(module(CALLS.format(size=8, body=BODIES[0], call=call)))["k"]
    assert isinstance(kernel, PrimFunc)
    assert attribute(kernel.attrs, NOALIAS, True) is apart


@pytest.mark.parametrize("executor", ["interpreter", "native", "vm"])
def test_arrays_of_a_call_that_overlap_are_copied(executor: str) -> None:
    text = f'@T.prim_func\ndef main(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):\n    {BODIES[0]}\n'
    made = module(text.replace("            x[", "        x["))
    run = weft.interpret(made)["main"] if executor == "interpreter" else weft.compile(made, executor=executor)["main"]
    memory = np.arange(9, dtype="float32")
    run(memory[1:], memory[:8])
    np.testing.assert_array_equal(memory, [0, 8, 7, 6, 5, 4, 3, 2, 1])


@pytest.mark.parametrize("executor", ["interpreter", "native", "vm", "graph", "aot"])
def test_a_tensor_that_a_graph_function_passes_twice_is_read_as_it_was(executor: str) -> None:
    made = module(f"""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def k(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        {BODIES[0]}
    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")):
        a = R.add(x, x)
        _ = M.k(a, a)
        return R.add(a, x)
""")
    if executor in ("graph", "aot"):
        with pytest.raises(TargetError, match="one tensor that it reads and writes"):
            weft.compile(made, executor=executor)
        return
    run = weft.interpret(made)["main"] if executor == "interpreter" else weft.compile(made, executor=executor)["main"]
    np.testing.assert_array_equal(run(np.arange(8, dtype="float32")), [15, 14, 13, 12, 11, 10, 9, 8])
