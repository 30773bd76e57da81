"""Errors of kernels that graph functions call: they show the kernel's line and that of the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft

X = np.ones(8, "float32")
INDICES = np.array([1, 2, 3, 9])
TEXT = """
@I.ir_module
class M:
    @T.prim_func
    def pick(x: T.Buffer((8,), "float32"), i: T.Buffer((4,), "int64"), y: T.Buffer((4,), "float32")):
        for k in range(4):
            y[k] = x[i[k]]
    @T.prim_func
    def claim(x: T.Buffer((8,), "float32"), i: T.Buffer((4,), "int64"), y: T.Buffer((4,), "float32")):
        assert i[3] < 8, "too large"
        for k in range(4):
            y[k] = x[k]
    @R.function
    def main(x: R.Tensor((8,), "float32"), i: R.Tensor((4,), "int64")) -> R.Tensor((4,), "float32"):
        h = R.exp(x)
        z = R.call_tir(M.pick, (h, i), out_ty=R.Tensor((4,), "float32"))
        return R.sin(z)
    @R.function
    def outer(x: R.Tensor((8,), "float32"), i: R.Tensor((4,), "int64")) -> R.Tensor((4,), "float32"):
        y = M.main(x, i)
        return y
    @R.function
    def claims(x: R.Tensor((8,), "float32"), i: R.Tensor((4,), "int64")) -> R.Tensor((4,), "float32"):
        z = R.call_tir(M.claim, (x, i), out_ty=R.Tensor((4,), "float32"))
        return z
    @R.function
    def takes(x: R.Tensor((8,), "float32"), i: R.Tensor((4,), "int64")) -> R.Tensor((4,), "float32"):
        z = R.take(R.exp(x), i, axis=0)
        return R.sin(z)
"""


def called(line: str) -> str:
    number = next(n for n, text in enumerate(TEXT.splitlines(), 1) if line in text)
    return f"called at <text>:{number}: {TEXT.splitlines()[number - 1].strip()}"


@pytest.fixture(scope="module", params=["native", "vm", "interpreter", "saved"])
def functions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    module = weft.parse(TEXT)
    if request.param == "interpreter":
        return weft.interpret(module)
    if request.param == "saved":
        path = tmp_path_factory.mktemp("saved") / "program.weft"
        weft.compile(module).save(path)
        return weft.load(path)
    return weft.compile(module, executor=request.param)


def failure(call: Callable[[], Any]) -> Exception:
    with pytest.raises((weft.WeftError, AssertionError)) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("name", ["main", "outer"])
def test_the_error_of_a_kernel_shows_its_line_and_that_of_its_call(functions: Mapping[str, Any], name: str) -> None:
    error = failure(lambda: functions[name](X, INDICES))
    assert isinstance(error, weft.BoundsError)
    assert error.span is not None
    assert error.span.quoted().endswith("y[k] = x[i[k]]")
    assert [note for note in error.notes if note.startswith("called")] == [called("R.call_tir(M.pick")]


def test_assertions_of_kernels_show_the_call(functions: Mapping[str, Any]) -> None:
    error = failure(lambda: functions["claims"](X, INDICES))
    assert isinstance(error, AssertionError)
    assert called("R.call_tir(M.claim") in error.__notes__


def test_the_error_of_an_operator_shows_its_line_once(functions: Mapping[str, Any]) -> None:
    error = failure(lambda: functions["takes"](X, INDICES))
    assert isinstance(error, weft.BoundsError)
    assert error.span is not None
    assert "R.take" in error.span.quoted()
    assert not [note for note in error.notes if note.startswith("called")]
