"""What the tests of passes share: modules written as script text, and the three things that each pass promises."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from weft.ir import Function, IRModule, assert_structural_equal
from weft.script import parse
from weft.transform.infra.comparison import comparable_functions, first_difference

__all__ = ["assert_same_meaning", "check", "graph_function", "left_alone", "module", "of_rows", "of_vector", "parsed"]


def parsed(text: str) -> IRModule:
    """The module that a whole text is."""
    found = parse(text)
    assert isinstance(found, IRModule)
    return found


def graph_function(program: IRModule, name: str = "main") -> Function:
    """A function of a module, which is one of the graph."""
    found = program[name]
    assert isinstance(found, Function)
    return found


def module(body: str) -> IRModule:
    """The module whose functions are the given script text."""
    found = parse("@I.ir_module\nclass Module:\n" + textwrap.indent(textwrap.dedent(body), "    "))
    assert isinstance(found, IRModule)
    return found


def of_vector(body: str) -> str:
    """The text of a graph function of a vector x of 4 numbers, which gives such a vector."""
    return _main('(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32")', body)


def of_rows(body: str) -> str:
    """The text of a graph function of n rows x of 4 numbers, which gives as many."""
    return _main('(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32")', body)


def _main(signature: str, body: str) -> str:
    """The function as it stands in the text of a test: eight columns from the left."""
    inside = textwrap.indent(textwrap.dedent(body), " " * 12)
    return f"\n        @R.function\n        def main{signature}:\n{inside}\n"


def check(run: Callable[[IRModule], IRModule], before: str, expected: str, *, idempotent: bool = True) -> IRModule:
    """Run a pass on a module: it gives the expected one, a second run changes nothing, and results stay the same."""
    old = module(before)
    new = run(old)
    assert_structural_equal(new, module(expected))
    assert_structural_equal(old, module(before))
    if idempotent:
        assert run(new) is new
    assert_same_meaning(old, new)
    return new


def assert_same_meaning(old: IRModule, new: IRModule) -> None:
    """The interpreter gives the same results before and after, for every function that it can compare."""
    for name in comparable_functions(old, new):
        before, after = old[name], new[name]
        assert isinstance(before, Function)
        assert isinstance(after, Function)
        if len(before.params) == len(after.params):
            assert first_difference(old, new, name) is None


def left_alone(run: Callable[[IRModule], IRModule], text: str) -> None:
    """The pass returns the very same module."""
    old = module(text)
    assert run(old) is old
