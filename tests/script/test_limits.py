"""Text from anyone, in bounded time and memory; every limit is named in its error and can be set."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
import tokenize
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from tests.script.test_mutations import CORPUS

import weft
from weft.ir.graph import Constant
from weft.script import Limits, parse
from weft.script import ir as I
from weft.script import relax as R

GRAPH = '@R.function\ndef main(x: R.Tensor((2, 3), "float32")):\n'
PRIM = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32"), n: T.int32):\n'
DEEP = 100_000


def signature(dim: str) -> str:
    return f'@R.function\ndef main(x: R.Tensor(({dim},), "float32")):\n    return x\n'


REFUSED = {
    "zeros and a one in a shape": signature("0" * 5_000_000 + "1"),
    "digits in a shape": signature("1" * 5_000_000),
    "hexadecimal digits": signature("0x" + "f" * 3_000_000),
    "digits in a string": signature('"' + "7" * 1_000_000 + '"'),
    "brackets": GRAPH + "    return " + "[" * DEEP + "x" + "]" * DEEP,
    "calls": GRAPH + "    return " + "R.exp(" * DEEP + "x" + ")" * DEEP,
    "types": "@R.function\ndef main(x: " + "R.Tuple(" * DEEP + "R.Any" + ")" * DEEP + "):\n    return x\n",
    "dictionaries": "@I.ir_module\nclass M:\n    I.module_attrs(" + '{"a":' * DEEP + "1" + "}" * DEEP + ")\n",
    "conditional expressions": PRIM + "    A[0, 0] = " + "1.0 if n > 0 else " * DEEP + "0.0\n",
    "lambdas": GRAPH + "    f = " + "lambda: " * DEEP + "1\n    return x\n",
    "negations": PRIM + "    if " + "not " * DEEP + "n > 0:\n        pass\n",
    "a tower of powers": GRAPH + "    y = " + "2**" * DEEP + "2\n    return x\n",
    "comprehensions inside one another": GRAPH
    + "    y = "
    + "[" * 150
    + "1"
    + " for i in range(2)]" * 150
    + "\n    return x\n",
    "a product of loops": GRAPH + "    y = [0 " + "for i in range(100) " * 10 + "]\n    return x\n",
    "a list that doubles": GRAPH + "    y = [1]\n" + "    y += y\n" * 60 + "    return x\n",
    "a list that grows by itself": GRAPH + "    y = [1]\n" + "    y.extend(y)\n" * 60 + "    return x\n",
    "a long list": GRAPH + "    y = [0] * 10**12\n    return x\n",
    "a tuple of a variable": PRIM + "    t = (n,) * 10**9\n",
    "lists of lists": GRAPH + "    y = [0] * 1000\n" + "    y = [y] * 1000\n" * 10 + "    return R.shape([len(y)])\n",
    "a string that doubles": GRAPH + "    y = 'aaaaaaaaaa'\n" + "    y = f'{y}{y}{y}{y}'\n" * 30 + "    return x\n",
    "text of a list": GRAPH + "    y = [1]\n" + "    y = [y, y]\n" * 60 + "    z = str(y)\n    return x\n",
    "a sum of lists": GRAPH + "    y = sum([[0] * 1000] * 1000, [])\n    return x\n",
    "the largest of a range": GRAPH + "    y = max(range(10**12))\n    return x\n",
    "the rest of a range": GRAPH + "    a, *b = range(10**30)\n    return x\n",
    "lists of lists compared": GRAPH + "    y = [[[0] * 200] * 200] * 200\n    z = y == y\n    return x\n",
    "lists of lists searched": GRAPH + "    y = [[[0] * 200] * 200] * 200\n    z = 1 in y\n    return x\n",
    "many long lists": GRAPH + "    y = [[0] * 100000 for i in range(5000)]\n    return x\n",
    "many long strings": GRAPH + "    y = ['x' * 1000000 for i in range(5000)]\n    return x\n",
    "many parts of a list": GRAPH + "    y = [0] * 1000000\n    z = [y[1:] for i in range(5000)]\n    return x\n",
    "many texts of a list": GRAPH + "    y = [0] * 100000\n    z = [len(str(y)) for i in range(5000)]\n    return x\n",
    "many searches": GRAPH + "    y = 'ab' * 400000\n    z = ['ac' in y for i in range(50000)]\n    return x\n",
    "many sortings": GRAPH + "    y = [0] * 100000\n    z = [len(sorted(y)) for i in range(5000)]\n    return x\n",
    "many tests of a list": GRAPH + "    y = [0] * 1000000\n    z = [1 for i in range(50000) if y]\n    return x\n",
    "dictionaries of dictionaries": GRAPH
    + "    y = {'a': 1}\n"
    + "    y = {'a': y, 'b': y}\n" * 60
    + "    z = str(y)\n    return x\n",
    "a wide format": GRAPH + "    y = '%999999999d' % 5\n    return x\n",
    "a format of a given width": GRAPH + "    y = '%*d' % (10**9, 5)\n    return x\n",
    "sorting": GRAPH + "    y = sorted(range(10**12))\n    return x\n",
    "a tuple variable that doubles": GRAPH + "    y = x\n" + "    y = (y, y)\n" * 60 + "    return x\n",
    "a macro that doubles": "@R.macro\ndef m(a):\n    return (a, a)\n"
    + GRAPH
    + "    y = x\n"
    + "    y = m(y)\n" * 60
    + "    return x\n",
    "lambdas that double": GRAPH
    + "    f0 = lambda: 1\n"
    + "".join(f"    f{i + 1} = lambda: f{i}() + f{i}()\n" for i in range(60))
    + "    return R.shape([f60()])\n",
    "a lambda of itself": GRAPH + "    f = lambda g: g(g)\n    return f(f)\n",
    "a constant of a shape that no array has": GRAPH + "    return R.const([], 'int8', shape=(0, 10**30))\n",
    "a product of sums": signature('"' + " * ".join(f"(n{i} + m{i})" for i in range(40)) + '"'),
    "a power of a sum": signature('"(n + m + k + q) ** 200"'),
    "attributes": GRAPH + "    return x" + ".shape" * 1000 + "\n",
    "a misspelt long name": GRAPH + "    return R." + "a" * 1_000_000 + "(x)\n",
    "decorators": "@R.function\n" * 10_000 + "def f(x: R.Tensor):\n    return x\n",
    "a name that is no text": GRAPH + "    \ud800 = x\n    return x\n",
    "a direction mark": GRAPH + "    \u202e = x\n    return x\n",
    "a null in a size": signature('"n\0"'),
}

READ = {
    "a fraction in a range": GRAPH + "    y = 0.5 in range(10**12)\n    return x\n",
    "a string in a range": GRAPH + "    y = 'a' in range(10**12)\n    return x\n",
    "rounding to nothing": GRAPH + "    y = round(5, -10**9)\n    return R.shape([y])\n",
    "zeros": signature("0" * 1_000_000),
    "many names": GRAPH + "".join(f"    y{i} = R.exp(x)\n" for i in range(3000)) + "    return x\n",
    "one name": GRAPH + "    x = R.exp(x)\n" * 3000 + "    return x\n",
    "a long name": GRAPH + "    " + "a" * 1_000_000 + " = R.exp(x)\n    return x\n",
    "a long line": GRAPH + "    t = (" + "x, " * 20_000 + ")\n    return x\n",
    "a long comparison": PRIM + "    if " + " and ".join(["n > 0"] * 3000) + ":\n        A[0, 0] = 1.0\n",
    "a byte order mark": "\ufeff" + GRAPH + "    return x\n",
    "many keys": "@I.ir_module\nclass M:\n    I.module_attrs({"
    + ", ".join(f"'k{i}': {i}" for i in range(20_000))
    + "})\n",
}


def test_hostile_text_is_refused_within_time_and_memory(tmp_path: Path) -> None:
    """One process with 3 GiB of address space reads all of it, and each text within seconds."""
    program = textwrap.dedent(
        """
        import resource, sys, time
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        import weft
        from tests.script.test_limits import READ, REFUSED
        for expected, texts in (("refused", REFUSED), ("read", READ)):
            for name, text in texts.items():
                start = time.process_time()
                try:
                    weft.parse(text)
                    found = "read"
                except weft.WeftError as error:
                    found = "refused"
                    if len(str(error)) > 4000:
                        found = "a long error"
                except BaseException as error:
                    found = type(error).__name__
                seconds = time.process_time() - start
                if found != expected or seconds > 30:
                    print(f"{name}: {found} in {seconds:.1f} s")
        """
    )
    root = str(Path(__file__).parent.parent.parent)
    sources = str(Path(weft.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path[:0] = [{sources!r}, {root!r}]\n{program}"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == ""


LIMITS = {
    "size": (GRAPH + "    return x\n", Limits(size=20), "the limit is 20", "Limits(size=...)"),
    "nesting": (
        GRAPH + "    return " + "R.exp(" * 30 + "x" + ")" * 30 + "\n",
        Limits(nesting=20),
        "deeper than 20",
        "Limits(nesting=...)",
    ),
    "digits": (
        GRAPH + "    y = 12345678901234567890123\n    return x\n",
        Limits(digits=10),
        "more than 10 digits",
        "Limits(digits=...)",
    ),
    "unrolled": (
        GRAPH + "    for i in range(30):\n        x = R.exp(x)\n    return x\n",
        Limits(unrolled=20),
        "the limit is 20",
        "Limits(unrolled=...)",
    ),
    "statements": (
        GRAPH + "    for i in range(15):\n        x = R.exp(x)\n    return x\n",
        Limits(unrolled=20),
        "more than 20 statements",
        "Limits(unrolled=...)",
    ),
    "work": (
        GRAPH + "    y = [[i] * 100 for i in range(100)]\n    return x\n",
        Limits(work=2000),
        "more than the limit of 2000 steps",
        "Limits(work=...)",
    ),
    "repetition": (
        GRAPH + "    y = [" + "+".join("i" * 200) + " for i in range(100)]\n    return x\n",
        Limits(work=2000),
        "more than the limit of 2000 steps",
        "Limits(work=...)",
    ),
    "operations": (
        GRAPH + "    y = [" + "+".join("x" * 200) + " for i in range(9)]\n    return x\n",
        Limits(work=2000),
        "more than the limit of 2000 steps",
        "Limits(work=...)",
    ),
    "parts": (GRAPH + "    y = [0] * 30\n    return x\n", Limits(parts=20), "more than 20 parts", "Limits(parts=...)"),
    "macros": (
        "@R.macro\ndef m(x, n):\n    return x if n == 0 else m(x, n - 1)\n" + GRAPH + "    return m(x, 30)\n",
        Limits(nesting=20),
        "deeper than 20",
        "Limits(nesting=...)",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_named_and_can_be_set(name: str) -> None:
    text, limits, message, hint = LIMITS[name]
    with pytest.raises(weft.ScriptError) as caught:
        parse(text, limits=limits)
    assert caught.value.code == "W103"
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    parse(text)


def test_a_long_line_is_shown_around_the_caret() -> None:
    with pytest.raises(weft.ScriptError) as caught:
        parse(GRAPH + "    t = (" + "x, " * 50_000 + "yy, " + "x, " * 50_000 + ")\n    return x\n")
    *_, line, carets, _ = [text for text in str(caught.value).split("\n") if "|" in text] + [""]
    assert len(line) < 300
    start = carets.index("^")
    assert line[start : carets.rindex("^") + 1] == "yy"


def outcome(text: str) -> str:
    start = time.process_time()
    try:
        parse(text)
        found = "read"
    except weft.WeftError as error:
        str(error)
        found = error.code
    assert time.process_time() - start < 10, text
    return found


@pytest.mark.parametrize("chunk", range(4))
def test_damaged_bytes_give_a_node_or_a_named_error(chunk: int) -> None:
    outcomes = set()
    for seed in range(chunk * 250, chunk * 250 + 250):
        choose = random.Random(seed)
        data = bytearray(choose.choice(CORPUS).encode())
        for _ in range(choose.randint(1, 4)):
            at = choose.randrange(len(data))
            kind = choose.randrange(4)
            if kind == 0:
                data[at] = choose.randrange(256)
            elif kind == 1:
                del data[at : at + choose.randint(1, 9)]
            elif kind == 2:
                data[at:at] = bytes(choose.choices(b'()[]{}:,."=+-*/@ \n\t0aRT\\#\0', k=choose.randint(1, 5)))
            else:
                other = choose.choice(CORPUS).encode()
                start = choose.randrange(len(other))
                data[at:at] = other[start : start + choose.randint(1, 40)]
            if not data:
                break
        outcomes.add(outcome(data.decode("utf-8", "surrogateescape")))
    assert len(outcomes) > 3, outcomes


TOKENS = [[token.string for token in tokenize.generate_tokens(StringIO(text).readline)] for text in CORPUS]
WORDS = sorted({token for tokens in TOKENS for token in tokens if token.strip()})


@pytest.mark.parametrize("chunk", range(4))
def test_damaged_tokens_give_a_node_or_a_named_error(chunk: int) -> None:
    outcomes = set()
    for seed in range(chunk * 250, chunk * 250 + 250):
        choose = random.Random(seed)
        text = choose.choice(CORPUS)
        tokens = list(tokenize.generate_tokens(StringIO(text).readline))
        lines = text.split("\n")
        for _ in range(choose.randint(1, 3)):
            token = choose.choice([item for item in tokens if item.string.strip() and item.start[0] == item.end[0]])
            row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
            lines[row] = f"{lines[row][:start]}{choose.choice(['', *choose.choices(WORDS, k=3)])}{lines[row][end:]}"
        outcomes.add(outcome("\n".join(lines)))
    assert len(outcomes) > 5, outcomes


def test_a_constant_of_64_dimensions_is_read_and_printed() -> None:
    text = f"@R.function\ndef f():\n    return R.const({'[' * 64}0{']' * 64}, 'int8')\n"
    assert weft.structural_equal(parse(text), parse(parse(text).script()))


def test_an_array_is_one_value_and_is_copied_once() -> None:
    weight = np.zeros((2500, 2500), "float32")  # more elements than `Limits.work`

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((1, 2500), "float32")):
            y = R.matmul(x, R.const(weight))
            z = R.matmul(y, R.const(weight))
            return z

    held = [node.data for node in weft.ir.walk(M) if isinstance(node, Constant)]
    assert held[0] is held[1]
    assert not np.shares_memory(held[0], weight)
    assert not held[0].flags.writeable
