"""Small mistakes, and the words in which each is told."""

from __future__ import annotations

import pytest

import weft
from weft.script import parse

GRAPH = '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = {}\n    return y\n'
LOOP = '@T.prim_func\ndef main(x: T.Buffer((4,), "float32")):\n    for i in {}(4):\n        x[i] = 1.0\n'
TYPE = "@R.function\ndef main(x: {}):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (GRAPH.format("R.nn"), "W114", "`R.nn` is a namespace", "R.nn."),
        (GRAPH.format("R.add(x, R.nn)"), "W114", "`R.nn` is a namespace", "R.nn."),
        (GRAPH.format("R.zeros((2**64,), 'float32')"), "W142", "18446744073709551616 .*does not fit in 64 bits", ""),
        (GRAPH.format("lambda a: a"), "W114", "got a lambda", ""),
        (LOOP.format("T.paralel"), "W115", "cannot be looped over", "did you mean `T.parallel`?"),
        (LOOP.format("T.exp"), "W115", "cannot be looped over", "loop over"),
        (TYPE.format("R.any"), "W111", "`R.any` does not exist", "did you mean `R.Any`?"),
        (TYPE.format("3"), "W114", "expected a type, got 3", ""),
    ],
)
def test_a_small_mistake_is_told_in_its_own_words(text: str, code: str, message: str, hint: str) -> None:
    with pytest.raises(weft.WeftError, match=message) as caught:
        parse(text)
    assert caught.value.code == code
    assert hint in (caught.value.hint or "")
    assert caught.value.span is not None
