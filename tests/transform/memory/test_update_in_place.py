"""Elements that a loop assigns are written where they are: no step copies the tensor, in any executor."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.codegen.backends.c.test_c import generate
from tests.codegen.backends.c.test_c import run as run_in_c

import weft
from weft.ir import Call, Function, IRModule, Op, PrimFunc, structural_equal, walk
from weft.ir.attrs import IN_PLACE
from weft.transform.autoschedule.explain import explain

HEAD = "from weft.script import relax as R\n\n\n@R.function\n"
SIGNATURE = (
    'def main(x: R.Tensor((6,), "float32"), m: R.Tensor((3, 4), "float32"), '
    'b: R.Tensor((6,), "int64"), k: R.Tensor((), "int64")):\n'
)

IN_PLACE_PROGRAMS = {
    "an element": """
        for i in range(k):
            x[i % 6] = x[(i + 1) % 6] * 0.5 + 1
        return x
    """,
    "new memory": """
        h = R.zeros((6,), "float32")
        for i in range(k):
            h[b[i]] += x[i]
        return h
    """,
    "a slice": """
        for i in range(k):
            x[1:3] += x[2:4] * 0.5
            x[-2:] = 1.5
        return x
    """,
    "rows and columns": """
        for i in range(k):
            m[i % 3, i % 4] += 1.5
            m[:, i % 4] *= 0.5
            m[1:, i % 2] = m[:-1, 3]
            m[i % 3] = m[(i + 1) % 3] * 2
        return m
    """,
    "branches": """
        for i in range(k):
            if x[i] > 0:
                x[i] = 0.5
            elif i > 2:
                x[0] += x[i]
        return x
    """,
    "nested": """
        for i in range(k):
            for j in range(k):
                m[i % 3, j % 4] += m[(i + 1) % 3, j % 4] * 0.5
        return m
    """,
    "while in for": """
        a = x.copy()
        for i in range(1, k):
            v = a[i]
            j = i - 1
            while j >= 0 and a[j] > v:
                a[j + 1] = a[j]
                j -= 1
            a[j + 1] = v
        return a
    """,
    "break and continue": """
        for i in range(k):
            if b[i] == 1:
                continue
            x[i] = x[i] * 2 + 0.5
            if x[i] > 2:
                break
        return x
    """,
    "several tensors": """
        a = x * 2
        c = x + 1
        for i in range(k):
            a[i] = c[5 - i]
            c[i] += a[0] * 0.25
        return a, c
    """,
    "exchanged": """
        a = x * 2
        c = x + 1
        for i in range(k):
            a[i] += 1
            a, c = c, a
        return a - c
    """,
    "captured": """
        h = x * 1.0
        for i in range(k):
            h[i] = x[5 - i] + i
        return h, x
    """,
}
"""Programs of which no step may copy a tensor."""
COPYING_PROGRAMS = {
    "read after it changed": """
        s = x * 0.0
        for i in range(k):
            old = x * 2.0
            x[i] = 2.5
            s = s + old + x
        return s, x
    """,
    "carried as it was": """
        h = x * 1.0
        last = x * 2.0
        for i in range(k):
            new = h.copy()
            new[i] = last[i] + 1.0
            h, last = new, h
        return h, last
    """,
    "beside a constant": """
        h = x * 1.0
        c = R.zeros((6,), "float32")
        for i in range(k):
            c, h = c * 0.5 + h, h * 0.25
        h[0] = 1.5
        return h, c
    """,
    "given up in a branch": """
        h = x * 1.0
        for i in range(k):
            if x[i] > 0:
                h[i] = 4.0
            else:
                h = h * 0.5
        return h
    """,
}
PROGRAMS = IN_PLACE_PROGRAMS | COPYING_PROGRAMS


def read(body: str) -> Any:
    return weft.parse(HEAD + SIGNATURE + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")


def in_python(body: str) -> Callable[..., Any]:
    """The same statements as a Python function of NumPy arrays, which get copies."""
    place: dict[str, Any] = {"R": SimpleNamespace(zeros=np.zeros)}
    exec("def main(x, m, b, k):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "), place)
    return lambda *arrays: place["main"](*(array.copy() for array in arrays[:-1]), arrays[-1])


def arrays(k: int) -> list[np.ndarray]:
    values = np.random.default_rng(k)
    x, m = (values.normal(size=shape).astype("float32") for shape in (6, (3, 4)))
    return [x, m, values.integers(0, 6, 6), np.array(k)]


def parts(value: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in value] if isinstance(value, tuple) else [np.asarray(value)]


def assert_same(found: Any, wanted: Any) -> None:
    for a, b in zip(parts(found), parts(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@cache
def modules() -> IRModule:
    return IRModule({f"f{at}": read(body) for at, body in enumerate(PROGRAMS.values())})


@pytest.mark.parametrize("executor", [None, "native", "vm"])
def test_elements_are_assigned_as_in_python(executor: str | None) -> None:
    run = weft.interpret(modules()) if executor is None else weft.compile(modules(), executor=executor)
    for k in (0, 3, 5):
        for at, body in enumerate(PROGRAMS.values()):
            given, kept = arrays(k), arrays(k)
            assert_same(run[f"f{at}"](*given), in_python(body)(*kept))
            for array, old in zip(given, kept, strict=True):  # arguments are values
                np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize(
    ("executor", "name"),
    [
        ("graph", "nested"),
        ("graph", "exchanged"),
        ("aot", "rows and columns"),
        ("aot", "while in for"),
        ("aot", "branches"),
        ("aot", "carried as it was"),
        ("aot", "given up in a branch"),
    ],
)
def test_elements_are_assigned_in_straight_lines(executor: str, name: str) -> None:
    run = weft.compile(IRModule({"main": read(PROGRAMS[name])}), executor=executor)["main"]
    for k in (0, 3, 5):
        given, kept = arrays(k), arrays(k)
        assert_same(run(*given), in_python(PROGRAMS[name])(*kept))
        for array, old in zip(given, kept, strict=True):
            np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("name", ["nested", "exchanged"])
def test_elements_are_assigned_in_c(name: str) -> None:
    module, given = IRModule({"main": read(PROGRAMS[name])}), arrays(3)
    wanted = parts(in_python(PROGRAMS[name])(*given))
    outputs = [np.empty_like(item) for item in wanted]
    with tempfile.TemporaryDirectory() as folder:
        source = generate(weft.lower(module, "c", stop="plan"), model="model")
        assert run_in_c(source, "model", given, outputs, Path(folder)) == 0
    assert_same(tuple(outputs), tuple(wanted))


def whole_tensors(module: IRModule) -> int:
    """How many kernels in the bodies of loops have a result as large as what the programs carry."""
    bodies = {id(node): node for node in walk(module["main"]) if isinstance(node, Function) and node.name != "main"}
    calls = {id(node): node for body in bodies.values() for node in walk(body) if isinstance(node, Call)}
    made = [call for call in calls.values() if isinstance(call.op, Op) and call.op.name == "call_tir"]
    return sum(getattr(call.ty_args[0], "dims", None) in ((6,), (3, 4)) for call in made)


@pytest.mark.parametrize("name", ["rows and columns", "branches", "nested", "while in for", "exchanged", "captured"])
def test_no_step_makes_a_whole_tensor(name: str) -> None:
    assert whole_tensors(weft.lower(IRModule({"main": read(PROGRAMS[name])}), stop="fuse")) == 0


@pytest.mark.parametrize("name", ["carried as it was", "given up in a branch"])
def test_what_is_needed_later_is_kept(name: str) -> None:
    assert whole_tensors(weft.lower(IRModule({"main": read(PROGRAMS[name])}), stop="fuse")) == 1


def test_the_choice_is_text_and_says_why() -> None:
    module = weft.lower(IRModule({"main": read(PROGRAMS["an element"])}), stop="fuse")
    assert "overwrites=[0]" in module.script()
    assert structural_equal(weft.parse(module.script()), module)
    reasons = [f.attrs[IN_PLACE] for f in module.functions.values() if isinstance(f, PrimFunc) and IN_PLACE in f.attrs]
    assert reasons == ["nothing reads `data` afterwards: only what changes is written, and no copy is made"]
    assert [item["reason"] for item in explain(module) if item["kind"] == "in_place"] == reasons


def test_a_pinned_loop_that_overwrites_what_others_have_is_right_all_the_same() -> None:
    """`overwrites` allows, and says nothing of what the values are."""
    text = weft.lower(IRModule({"main": read(PROGRAMS["an element"])}), stop="fuse").script()
    module = weft.parse(text)
    given = arrays(5)
    assert_same(weft.interpret(module)["main"](*given), in_python(PROGRAMS["an element"])(*given))
    pinned = weft.parse(text.replace(", overwrites=[0]", ""))
    run = weft.compile(pinned, start="schedule")
    assert_same(run["main"](*given), in_python(PROGRAMS["an element"])(*given))


def test_carried_values_that_are_none_cannot_be_overwritten() -> None:
    text = weft.lower(IRModule({"main": read(PROGRAMS["an element"])}), stop="fuse").script()
    with pytest.raises(weft.WeftError, match=r"overwrites \(1,\) must name some of the 1 carried values from 0"):
        weft.parse(text.replace("overwrites=[0]", "overwrites=[1]"))


def test_conditions_ask_for_elements_as_they_were() -> None:
    module = weft.parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def put(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            y[i] = T.if_then_else(i >= 2, T.Select(x[i] > T.float32(0), T.float32(-1), T.float32(5)), x[i])

    @R.function
    def main(x: R.Tensor((8,), "float32"), n: R.Prim("int64")):
        h = x
        for i in range(n):
            h = R.call_tir(Module.put, (h,), out_ty=R.Tensor((8,), "float32"))
        return h
""")
    x = np.array([1, -2, 3, -4, 5, -6, 7, -8], "float32")
    once = [1, -2, -1, 5, -1, 5, -1, 5]
    np.testing.assert_array_equal(weft.compile(module)["main"](x, 1), once)
    np.testing.assert_array_equal(weft.compile(module)["main"](x, 2), [1, -2, *[-value + 4 for value in once[2:]]])
