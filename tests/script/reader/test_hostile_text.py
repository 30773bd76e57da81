"""Text from anyone: nothing of it is evaluated, imported or opened, and what asks too much is refused by name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import weft
from weft.script import Limits, parse

GRAPH = '@R.function\ndef main(x: R.Tensor((2, 3), "float32")):\n'
PRIM = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32")):\n'

EVALUATIONS = [
    GRAPH + "    __import__('os').system('touch {path}')\n    return x\n",
    GRAPH + "    y = eval('open({path!r}, \"w\")')\n    return x\n",
    PRIM + "    __import__('os').system('touch {path}')\n",
    PRIM + "    for i in __builtins__.open({path!r}, 'w'):\n        pass\n",
    "@R.function\ndef main(x: R.Tensor((open({path!r}, 'w').write('x'),), 'float32')):\n    return x\n",
    "@R.function\ndef main(x: R.Tensor((\"open('{path}', 'w')\",), 'float32')):\n    return x\n",
    "@T.prim_func\ndef f(A: T.Buffer((open({path!r}, 'w'),), 'float32')):\n    pass\n",
    "@T.prim_func\ndef f(A: T.Buffer((\"T.__class__.__base__\",), 'float32')):\n    pass\n",
    "open({path!r}, 'w')\n",
    "@open({path!r}, 'w')\ndef f():\n    pass\n",
    "@R.function(pure=open({path!r}, 'w'))\ndef f(x: R.Tensor):\n    return x\n",
    "class M(open({path!r}, 'w')):\n    pass\n",
    "@I.ir_module\nclass M:\n    I.module_attrs({{'a': open({path!r}, 'w')}})\n",
    "@I.ir_module\nclass M:\n    x = open({path!r}, 'w')\n",
    GRAPH + "    z = T.__class__.__mro__[1].__subclasses__()\n    return x\n",
    GRAPH + "    z = R.add.__globals__['__builtins__']\n    return x\n",
    GRAPH + "    z = (1).__class__.__base__\n    return x\n",
    GRAPH + "    z = 'x'.format(x)\n    return x\n",
    GRAPH + "    z = f'{{x.__class__}}'\n    return x\n",
    GRAPH + "    z = x.__class__\n    return x\n",
    GRAPH + "    z = [c for c in ().__class__.__base__.__subclasses__()]\n    return x\n",
    GRAPH + "    z = (lambda: open({path!r}, 'w'))()\n    return x\n",
    GRAPH + "    import os\n    return x\n",
    "from os import system\n@R.function\ndef f(x: R.Tensor):\n    return x\n",
]


@pytest.mark.parametrize("template", EVALUATIONS)
def test_text_is_never_evaluated(template: str, tmp_path: Path) -> None:
    path = tmp_path / "written"
    with pytest.raises(weft.WeftError):
        parse(template.format(path=str(path)))
    assert not path.exists()


LARGE = {
    "power": '@R.function\ndef main(x: R.Tensor((9**9**9,), "float32")):\n    return x\n',
    "shift": PRIM + "    for i in range(1 << 100000000):\n        pass\n",
    "product": GRAPH + "    a = 10**1000\n" + "    a = a * a\n" * 20 + "    return x\n",
    "string": '@R.function\ndef main(x: R.Tensor(("a" * 10**10,), "float32")):\n    return x\n',
    "doubled string": GRAPH + "    s = 'aaaaaaaaaa'\n" + "    s = s + s\n" * 40 + "    return x\n",
    "doubled tuple": GRAPH + "    s = (1, 2)\n" + "    s = (s, s)\n" * 60 + "    return x\n",
    "doubled type": GRAPH + "    s = R.Tuple(R.Any)\n" + "    s = R.Tuple(s, s)\n" * 60 + "    return x\n",
    "static loop": GRAPH + "    r = range(10**15)\n    for i in r:\n        y = R.exp(x)\n    return x\n",
    "nested static loops": GRAPH
    + "    r = range(1000)\n"
    + "".join("    " * d + f"for i{d} in r:\n" for d in range(1, 8))
    + "    " * 8
    + "pass\n    return x\n",
    "parentheses": GRAPH + "    z = " + "(" * 100_000 + "x" + ")" * 100_000 + "\n    return z\n",
    "minus": GRAPH + "    z = " + "-" * 100_000 + "x\n    return z\n",
    "sum": GRAPH + "    z = x" + " + x" * 100_000 + "\n    return z\n",
    "attributes": GRAPH + "    z = x" + ".a" * 100_000 + "\n    return z\n",
    "subscripts": GRAPH + "    z = x" + "[0]" * 100_000 + "\n    return z\n",
    "elif": PRIM + "    if A[0, 0] > 1.0:\n        pass\n" + "    elif A[0, 0] > 2.0:\n        pass\n" * 50_000,
    "indentation": PRIM
    + "".join("    " * depth + "while A[0, 0] > 1.0:\n" for depth in range(1, 500))
    + "    " * 500
    + "pass\n",
    "long integer": GRAPH + f"    z = {'9' * 10_000}\n    return x\n",
    "dimension over 64 bits": '@R.function\ndef main(x: R.Tensor((99999999999999999999,), "float32")):\n    return x\n',
    "deep dimension": '@R.function\ndef main(x: R.Tensor(("'
    + "(" * 5000
    + "n"
    + ")" * 5000
    + '",), "float32")):\n    return x\n',
    "null": "\0",
    "surrogates": "\ud800",
    "bytes order mark": "\ufeff\ufeff@R.function",
}


@pytest.mark.parametrize("name", LARGE)
def test_text_that_asks_too_much_is_refused_quickly(name: str) -> None:
    start = time.process_time()
    with pytest.raises(weft.WeftError):
        parse(LARGE[name])
    assert time.process_time() - start < 20


def test_calls_nest_as_deep_as_the_limit() -> None:
    parse(GRAPH + "    return " + "R.exp(" * 90 + "x" + ")" * 90 + "\n")
    with pytest.raises(weft.ScriptError) as caught:
        parse(GRAPH + "    return " + "R.exp(" * 90 + "x" + ")" * 90 + "\n", limits=Limits(nesting=50))
    assert caught.value.code == "W103"


def test_limits_are_the_callers() -> None:
    with pytest.raises(weft.ScriptError, match="the limit is 10"):
        parse(GRAPH + "    return x\n", limits=Limits(size=10))


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(weft.ScriptError):
        parse(b"bytes")  # type: ignore[arg-type]
