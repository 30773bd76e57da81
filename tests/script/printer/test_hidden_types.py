"""Without annotations a text still reads as the same module: what deduction would not find keeps its annotation."""

from __future__ import annotations

import pytest
from tests.script.test_corpus import VALID

import weft
from weft.script import parse
from weft.script.printer.module import script_of
from weft.testing.strategies import generate

OPTIONS = ({}, {"types": "all"}, {"types": "hidden"})


def check(module: weft.ir.IRModule | weft.ir.Function | weft.ir.PrimFunc) -> str:
    """Every way of printing types reads back as the same module; the text without them prints as itself again."""
    for options in OPTIONS:
        again = parse(module.script(**options))
        weft.assert_structural_equal(again, module)
    text = module.script(types="hidden")
    assert parse(text).script(types="hidden") == text
    return text


@pytest.mark.parametrize("runnable", [True, False])
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_generated_modules_read_back_however_types_are_printed(first: int, runnable: bool) -> None:
    for seed in range(first, first + 25):
        check(generate(seed, runnable=runnable))


@pytest.mark.parametrize("name", VALID)
def test_corpus_units_read_back_however_types_are_printed(name: str) -> None:
    check(parse(VALID[name]))


HEAD = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), s: R.Shape(["n", 4]), o: R.Object, c: R.Tensor((), "bool")):
"""


def unit(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return HEAD + lines


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ('y: R.Tensor(dtype="float32") = R.exp(x)\nreturn y', 'y: R.Tensor(dtype="float32") = R.exp(x)'),
        ("y: R.Object = R.exp(x)\nreturn y", "y: R.Any = R.exp(x)"),
        ('y: R.Tensor(s, dtype="float32") = R.exp(x)\nreturn y', 'y: R.Tensor(s, "float32") = R.exp(x)'),
        (
            'f: R.Callable(None, R.Any, False) = R.ExternFunc("f")\nreturn x',
            'f: R.Callable(ret=R.Any, pure=False) = R.ExternFunc("f")',
        ),
        (
            'if c:\n    y: R.Tensor(ndim=2, dtype="float32") = R.exp(x)\n'
            'else:\n    y: R.Tensor(ndim=2, dtype="float32") = R.add(x, x)\nreturn y',
            'y_2: R.Tensor(dtype="float32", ndim=2) = R.add(x, x)',
        ),
        (
            "if c:\n    y: R.Object = x\nelse:\n    y: R.Object = x\nreturn y",
            "y: R.Any = x",
        ),
        (
            "with R.dataflow():\n    y: R.Object = R.exp(x)\n    z = R.exp(x)\n    R.output(y, z)\nreturn z",
            "y: R.Any = R.exp(x)",
        ),
    ],
)
def test_a_type_that_deduction_does_not_find_is_printed(body: str, kept: str) -> None:
    """A claim that says less, a shape as a value, a name that would be known while reading, branches."""
    assert kept in check(parse(unit(body)))


@pytest.mark.parametrize(
    ("body", "bare"),
    [
        ("y = R.exp(x)\nz = R.unique(y)\nw = R.exp(z)\nreturn w", ["y = ", "z = ", "w = "]),
        ("y = R.nonzero(x)\nz = R.add(y, y)\nreturn z", ["y = ", "z = "]),
        (
            'y = R.match_cast(o, R.Tensor(("m", "k"), "float32"))\nz = R.add(y, x)\nw = R.permute_dims(z)\nreturn w',
            ["z = ", "w = "],
        ),
        ('y = R.call_pure_packed("f", x, ty_args=R.Tensor(s))\nz = R.exp(y)\nreturn z', ["y = ", "z = "]),
        ("if c:\n    y = R.exp(x)\nelse:\n    y = R.add(x, x)\nz = R.exp(y)\nreturn z", ["y = ", "z = "]),
    ],
)
def test_a_type_that_deduction_finds_is_not_printed(body: str, bare: list[str]) -> None:
    """Also sizes that come from the data, that a cast names, and that a cast tells to be equal."""
    lines = [line.strip() for line in check(parse(unit(body))).split("\n")]
    assert all(any(line.startswith(start) for line in lines) for start in bare), lines


def test_kept_types_are_those_of_the_module_around() -> None:
    """A lone function of a module sees no other: what its callee gives is said."""
    module = parse(
        """
@I.ir_module
class M:
    @R.function
    def g(x: R.Tensor((2,), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        return x

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = cls.g(x)
        return y
"""
    )
    assert "        y = cls.g(x)" in check(module)
    assert 'y: R.Tensor(dtype="float32", ndim=1) = cls.g(x)' in module.script(types="hidden", only="main")


def test_fragments_hide_types_without_a_function_around() -> None:
    function = parse(unit("y = R.exp(x)\nreturn y"))
    assert isinstance(function, weft.ir.Function)
    assert script_of(function.body.blocks[0].bindings[0], types="hidden") == "y = R.exp(x)"
