"""Small mistakes, and the words in which each is told."""

from __future__ import annotations

import re

import pytest

import weft
from weft.script import parse

GRAPH = '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = {}\n    return y\n'
LOOP = '@T.prim_func\ndef main(x: T.Buffer((4,), "float32")):\n    for i in {}(4):\n        x[i] = 1.0\n'
KERNEL = '@T.prim_func\ndef main(x: T.Buffer((4,), "float32")):\n    {}\n'
TYPE = "@R.function\ndef main(x: {}):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (GRAPH.format("R.nn"), "W114", "`R.nn` is a namespace", "R.nn."),
        (GRAPH.format("R.add(x, R.nn)"), "W114", "`R.nn` is a namespace", "R.nn."),
        (GRAPH.format("R.zeros((2**64,), 'float32')"), "W142", "18446744073709551616 .*does not fit in 64 bits", ""),
        (GRAPH.format("lambda a: a"), "W114", "got a lambda", ""),
        (GRAPH.format("R.nn(x)"), "W114", "`R.nn` is a namespace", "and .* more"),
        (GRAPH.format("R.add(x, lambda: 3)"), "W114", "x2 must be a value of the graph, got a lambda", "called"),
        (GRAPH.format("R.add(x, R.exp)"), "W142", "got the function R.exp", ""),
        (GRAPH.format("x\n    z: 3"), "W115", "`z: 3` declares a name without a value", "name: type = value"),
        (GRAPH.format("9" * 5000), "W101", r"5000 digits is refused \(limit 4300\)", "hexadecimal"),
        (GRAPH.format("R.rot90(R.zeros((2, 3), 'int8'), axes=[0])"), "W205", "two different ones, got", ""),
        (GRAPH.format("R.rot90(R.zeros((2, 3), 'int8'), axes=[1, 1])"), "W205", "two different ones, got", ""),
        (LOOP.format("T.paralel"), "W111", "`T.paralel` does not exist", "did you mean `T.parallel`?"),
        (LOOP.format("T.exp"), "W115", "cannot be looped over", "loop over"),
        (TYPE.format("R.any"), "W114", "expected a type, got the function R.any", "did you mean `R.Any`?"),
        (TYPE.format("R.Tensr((4,))"), "W111", "`R.Tensr` does not exist", "did you mean `R.Tensor`?"),
        (KERNEL.format("with T.blok('b'):\n        x[0] = 1.0"), "W111", "`T.blok` does not exist", "`T.block`"),
        (KERNEL.format("x[0] = lambda: 3"), "W114", "expected a scalar, got a lambda", ""),
        (KERNEL.format("y: 3"), "W114", "expected T.let or a dtype, got 3", "T.int32"),
        (TYPE.format("3"), "W114", "expected a type, got 3", ""),
    ],
)
def test_a_small_mistake_is_told_in_its_own_words(text: str, code: str, message: str, hint: str) -> None:
    with pytest.raises(weft.WeftError, match=message) as caught:
        parse(text)
    assert caught.value.code == code
    assert re.search(hint, caught.value.hint or "") or hint in (caught.value.hint or "")
    assert caught.value.span is not None


CALL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel({}):
        for i in range(4):
            {}

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.call_tir(Module.kernel, (x,), out_ty=R.Tensor((4,), "float32"))
        return y
"""


@pytest.mark.parametrize(
    ("parameters", "statement", "code"),
    [
        ('a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")', "a[i] = b[i]", "W433"),
        ('a: T.Buffer((5,), "float32"), b: T.Buffer((4,), "float32")', "b[i] = a[i]", "W201"),
        ('a: T.Buffer((4,), "int32"), b: T.Buffer((4,), "float32")', 'b[i] = T.Cast("float32", a[i])', "W320"),
    ],
)
def test_a_mistake_of_a_kernel_found_at_its_call_shows_the_kernel_too(
    parameters: str, statement: str, code: str
) -> None:
    with pytest.raises(weft.WeftError) as caught:
        weft.assert_well_formed(parse(CALL.format(parameters, statement)))
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.line == 11
    assert any("<text>:5: def kernel(a: T.Buffer" in note for note in caught.value.notes)
