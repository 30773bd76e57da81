"""A call whose sizes do not fit is told in the variables and symbols of the user's function, whatever runs it."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import BlockBuilder
from weft.errors import ArtifactError, ShapeError
from weft.ir import IRModule
from weft.ir.dim import symbol
from weft.ir.graph import Var
from weft.runtime.programs.bytecode import check_program
from weft.script import relax as R

HEADER = 'R.func_attr({"tir_var_upper_bound": {"n": 64, "k": 64, "j": 64, "m": 64}})'
MODEL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(a: T.Buffer(("s",), "float32"), b: T.Buffer(("2 * s",), "float32"), c: T.Buffer(("s",), "float32")):
        for i in range(s):
            with T.block("c"):
                v = T.axis.spatial(s, i)
                c[v] = a[v] + b[v]

    @R.function
    def main(%s) -> R.Tensor:
        %s
        %s
        return y
"""
TWO = 'x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("j", "m"), "float32")'
FIXED = 'x: R.Tensor((2, 3), "float32"), w: R.Tensor(("j", "m"), "float32")'
ROWS = 'x: R.Tensor(("n",), "float32"), w: R.Tensor(("j",), "float32")'


def parsed(parameters: str, *lines: str) -> IRModule:
    found = weft.parse(MODEL % (parameters, HEADER, "\n        ".join(lines)))
    assert isinstance(found, IRModule)
    return found


MATMUL = parsed(TWO, "h = R.exp(x)", "y = R.matmul(h, w)")
ADD = parsed(TWO, "h = R.exp(x)", "y = h + w")
STATIC = parsed(FIXED, "h = R.exp(x)", "y = R.matmul(h, w)")
KERNEL = parsed(ROWS, "h = R.exp(x)", 'y = R.call_tir(Module.kernel, (h, w), out_ty=R.Tensor((n,), "float32"))')


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot", "interpreter"])
@pytest.mark.parametrize(
    ("module", "args", "line", "said"),
    [
        (MATMUL, (ones(2, 3), ones(4, 5)), 15, ("k of `h`", "j of `w`", "3", "4")),
        (ADD, (ones(2, 3), ones(4, 5)), 15, ("n of `h`", "j of `w`", "2", "4")),
        (STATIC, (ones(2, 3), ones(4, 5)), 15, ("j of `w`", "4", "3")),
        (KERNEL, (ones(2), ones(3)), 15, ("2*n", "j of `w`", "3")),
    ],
    ids=["matmul", "add", "static", "kernel"],
)
def test_a_call_that_does_not_fit_is_told_in_the_words_of_its_caller(
    executor: str, module: IRModule, args: tuple[np.ndarray, ...], line: int, said: tuple[str, ...]
) -> None:
    run = weft.interpret(module) if executor == "interpreter" else weft.compile(module, executor=executor)
    with pytest.raises(ShapeError) as caught:
        run["main"](*args)
    error = caught.value
    text = " ".join((error.message, *error.notes)).replace(" * ", "*")
    words = [item.split(" of ")[0] for item in said] if executor == "interpreter" else said
    assert all(word in text for word in words), text
    assert "x1" not in text
    assert "x2" not in text
    assert error.span is not None
    assert error.span.line == line


def test_a_part_of_an_expression_is_told_by_its_place() -> None:
    module = parsed(TWO, "y = R.matmul(R.exp(x), w)")
    with pytest.raises(ShapeError) as caught:
        weft.compile(module)["main"](ones(2, 3), ones(4, 5))
    assert caught.value.message == "matmul: k of argument 1 is 3, j of `w` is 4, and they must be equal"


def test_a_size_without_a_symbol_is_told_by_its_axis() -> None:
    x, w = (Var(name, R.Tensor((symbol(size),), "float32")) for name, size in (("x", "n"), ("w", "j")))
    builder = BlockBuilder()
    with builder.function("main", [x, w]):
        builder.emit_func_output(builder.emit(R.add(x, R.strided_slice(w, [0], [0], [4]))))
    with pytest.raises(ShapeError) as caught:
        weft.compile(builder.get())["main"](ones(3), ones(9))
    assert "n of `x` is 3" in caught.value.message
    assert "4" in caught.value.message


@pytest.mark.parametrize("sizes", [[1], {"0": 3}, {"0": [[["text", 2]]]}, {"0": [[[None]]]}])
def test_messages_of_another_form_are_refused_before_the_program_runs(sizes: object) -> None:
    program = weft.compile(MATMUL, executor="vm")._program.driver
    assert program is not None
    function = {**program["functions"][0], "sizes": sizes}
    with pytest.raises(ArtifactError) as caught:
        check_program({**program, "functions": [function]}, ["matmul", "exp"], 0)
    assert caught.value.code == "W840"
