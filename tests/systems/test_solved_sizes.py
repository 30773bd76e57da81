"""A size that a symbol stands in linearly gives the symbol its value, or the program stops: a symbol is a size, never
negative, never a fraction, in whatever way a program runs. What does not determine a symbol is refused when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import WeftError
from weft.ir import replace
from weft.ir.dim import parse_dim
from weft.ir.types import TensorType

HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n"
TEXTS = {
    "a parameter": """@R.function
def main(k: R.Tensor(("m",), "float32"), x: R.Tensor(("{dim}",), "float32")):
    return x * 2.0
""",
    "a cast": """@R.function
def main(k: R.Tensor(("m",), "float32"), x: R.Tensor(("s",), "float32")):
    y = R.match_cast(x, R.Tensor(("{dim}",), "float32"))
    return y * 2.0
""",
    "a cast of a shape": """@R.function
def main(k: R.Tensor(("m",), "float32"), x: R.Tensor(("s",), "float32")):
    y = R.match_cast(R.shape_of(x), R.Shape(["{dim}"]))
    return x * 2.0
""",
    "a parameter of another function": """@I.ir_module
class M:
    @R.function
    def inner(k: R.Tensor(("m",), "float32"), x: R.Tensor(("{dim}",), "float32")):
        return x * 2.0

    @R.function
    def main(k: R.Tensor(("m",), "float32"), x: R.Tensor(("s",), "float32")):
        return M.inner(k, x)
""",
}
DIMS: dict[str, Callable[[int, int], float]] = {
    "n + 2": lambda size, m: size - 2,
    "2 * n": lambda size, m: size / 2,
    "3 * n - 5": lambda size, m: (size + 5) / 3,
    "5 - n": lambda size, m: 5 - size,
    "10 - 2 * n": lambda size, m: (10 - size) / 2,
    "m - n": lambda size, m: m - size,
    "m * n": lambda size, m: size / m if m else -1,
    "(m - 2) * n + 1": lambda size, m: (size - 1) / (m - 2) if m != 2 else -1,
}


def outcome(run: Callable[..., Any], *sizes: int) -> int | str:
    """The length of the result, or that the sizes are refused."""
    try:
        return len(run(*(np.ones(size, "float32") for size in sizes)))
    except WeftError as error:
        return "refused" if error.code in ("W222", "W852") else str(error)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("where", TEXTS)
def test_a_symbol_has_a_size_as_its_value_or_the_program_stops(where: str, dim: str) -> None:
    module = weft.parse(HEAD + TEXTS[where].format(dim=dim))
    ways = [weft.interpret(module), *(weft.compile(module, executor=name) for name in ("native", "vm"))]
    for m in (0, 2, 3) if "m" in dim else (1,):
        for size in range(8):
            value = DIMS[dim](size, m)
            wanted = size if value >= 0 and value == int(value) else "refused"
            assert [outcome(way["main"], m, size) for way in ways] == [wanted] * 3, (m, size)


@pytest.mark.parametrize("dim", ["n * n", "n // 2", "n + j", "min(n, 4)"])
def test_a_cast_that_does_not_determine_its_symbols_is_refused(dim: str) -> None:
    text = HEAD + TEXTS["a cast"].format(dim=dim)
    with pytest.raises(WeftError, match=r"nothing gives the symbol '[nj]' a value") as caught:
        weft.parse(text)
    span = caught.value.span
    assert span is not None
    assert text.splitlines()[span.line - 1].strip().startswith("y = R.match_cast")


def test_a_cast_without_a_value_for_a_symbol_is_not_well_formed() -> None:
    function: Any = weft.parse(HEAD + TEXTS["a cast"].format(dim="2 * n"))
    (block,) = function.body.blocks
    cast, last = block.bindings
    cast = replace(cast, ty=TensorType((parse_dim("n * n"),), "float32"))
    body = replace(function.body, blocks=(replace(block, bindings=(cast, last)),))
    changed = weft.IRModule({"main": replace(function, body=body)})
    assert "W406" in [error.code for error in weft.verify(changed)]


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
@pytest.mark.parametrize(("a", "b"), [(2, 3), (0, 3), (2, 0), (0, 0)])
def test_the_rest_of_an_empty_shape_is_what_the_type_says(executor: str, a: int, b: int) -> None:
    """NumPy has no answer for -1 beside a size of 0; the symbols leave 2."""
    text = """@R.function
def main(x: R.Tensor(("a", "b", 6), "float32")) -> R.Tensor(("3 * b", "a", 2), "float32"):
    a, b = T.int64(), T.int64()
    return R.reshape(x, (b * 3, a, -1))
"""
    module = weft.parse(HEAD + text)
    x = np.arange(a * b * 6, dtype="float32").reshape(a, b, 6)
    for run in (weft.interpret(module)["main"], weft.compile(module, executor=executor)["main"]):
        np.testing.assert_array_equal(run(x), x.reshape(3 * b, a, 2))


def test_zeros_in_the_shape_of_an_empty_tensor_are_zeros() -> None:
    text = """@R.function
def main(x: R.Tensor((3, 0), "float32"), k: R.Tensor(("m",), "float32")):
    m = T.int64()
    return R.reshape(x, (m, 0))
"""
    module = weft.parse(HEAD + text)
    for run in (weft.interpret(module)["main"], weft.compile(module)["main"]):
        assert run(np.zeros((3, 0), "float32"), np.zeros(0, "float32")).shape == (0, 0)
