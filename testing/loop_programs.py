"""Random programs with loops, as text that Python and the reader of scripts read alike.

    program ::= first values, statements, return
    statement ::= for | while | if | assignment | append

Over vectors `a`, `b`, numbers `s`, `t`, counters `c`, `d` and a flag `p`, which begin as numbers of Python, of the
parameters `x`, a vector of size n >= 1, and `k`, an integer of rank 0. Loops go over ranges of sizes, of run-time
scalars and of numbers, over rows, both with their numbers; they are left by `break`, `continue` and `return`, and have
an `else`. Elements, slices and what a mask chooses are assigned and updated, numbers are conditions, and comprehensions
are summed. Indices are in range, divisors not 0, and values stay small: what differs from Python is a mistake.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from typing import Any

__all__ = ["PARAMETERS", "loop_program", "python_function"]

PARAMETERS = 'x: R.Tensor(("n",), "float32"), k: R.Tensor((), "int64")'
"""The parameters of the programs in a script."""

_VECTORS, _NUMBERS, _COUNTERS = ("a", "b"), ("s", "t"), ("c", "d")


def loop_program(seed: int) -> str:
    """The statements of a program.

    >>> print(loop_program(0).splitlines()[0])
    a = x * 0.5
    """
    return _Writer(random.Random(seed)).program()


def python_function(body: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The statements as a Python function of `x` and `k`; `names` are what else they may use."""
    place = dict(names)
    exec("def main(x, k):\n    n = len(x)\n" + textwrap.indent(body, "    "), place)  # the text is our own
    return place["main"]


class _Writer:
    def __init__(self, choose: random.Random) -> None:
        self.choose, self.lines = choose, list[str]()
        self.indices = list[str]()  # that are in range for x here
        self.heads = list[str]()  # of the loops around
        self.depth = 0

    def program(self) -> str:
        first = ["a = x * 0.5", "b = x + 1", "s = 0", "t = 0.5", "c = 0", "d = 1", "p = False", "i = 0"]
        self.lines = first
        results = ["a * 0.25 + b + s - t", "a, s + t, c - d", "x * (s if p else t) + c", "b + i"]
        self.result = self.choose.choice(results)
        for _ in range(self.choose.randint(2, 3)):
            self.statement()
        return "\n".join([*self.lines, f"return {self.result}"])

    def write(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, head: str, least: int = 1, *last: str) -> None:
        """A head and what stands under it."""
        self.write(head)
        self.depth += 1
        for _ in range(self.choose.randint(least, 2)):
            self.statement()
        for text in last:
            self.write(text)
        self.depth -= 1

    def statement(self) -> None:
        kind = self.choose.random()
        if kind < 0.3 and len(self.heads) < 2 and self.depth < 4:
            self.loop()
        elif kind < 0.5 and self.depth < 5:
            self.condition()
        else:
            self.assignment()

    def loop(self) -> None:
        index, known = "ij"[len(self.heads)], list(self.indices)
        over = {
            f"for {index} in range(n):": [index],
            f"for {index} in range(n - 1, -1, -1):": [index],
            f"for {index} in range(0, n, 2):": [index],
            f"for {index} in range(1, k):": [],
            f"for {index} in range(k + 1):": [],
            f"for {index} in range(5):": [],
            "for v in x:": [],
            f"for {index}, v in enumerate(x):": [index],
            f"for {index}, (v, w) in enumerate(zip(x, x[::-1])):": [index],
            f"while c < {self.choose.randint(2, 9)}:": [],
        }
        head = self.choose.choice(list(over))
        self.heads.append(head)
        self.indices = [*known, *over[head]]
        last = ["c = c + 1"] if head.startswith("while") else []
        if last:  # a `continue` would go round for ever: the counter goes up first
            self.block(head, 0, *last) if self.choose.random() < 0.5 else self.counted(head)
        else:
            self.block(head)
        self.indices = known
        self.heads.pop()
        if self.choose.random() < 0.2:
            self.block("else:")

    def counted(self, head: str) -> None:
        self.write(head)
        self.depth += 1
        self.write("c = c + 1")
        self.leave_early()
        self.assignment()
        self.depth -= 1

    def condition(self) -> None:
        self.block(f"if {self.test()}:", 1)
        if self.choose.random() < 0.3:
            self.block(f"elif {self.test()}:", 1)
        if self.choose.random() < 0.5:
            self.block("else:", 1)
        if self.heads and self.choose.random() < 0.4:
            self.leave_early()

    def leave_early(self) -> None:
        """An `if` that ends the iteration, the loop or the function; `while` counts up before it."""
        ways = ["break", f"return {self.result}", *(["continue"] if self.heads[-1].startswith("for") else [])]
        self.write(f"if {self.test()}:")
        self.write(f"    {self.choose.choice(ways)}")

    def test(self, is_value: bool = False) -> str:
        """A condition; one that is a value is no number."""
        simple = [
            f"{self.choose.choice(_NUMBERS)} > {self.choose.choice(['0', '0.5', '-1'])}",
            f"{self.choose.choice(_COUNTERS)} % 2 == {self.choose.randint(0, 1)}",
            "p",
            "not p",
            f"{self.element()} < {self.choose.choice(_NUMBERS)}",
            "0 < s < 2",
            "k > 2",
        ]
        if not is_value:
            simple += ["k", f"{self.choose.choice(_COUNTERS)} % 2", f"not {self.choose.choice(_COUNTERS)} % 3"]
        if self.indices:
            index = self.choose.choice(self.indices)
            simple += [
                f"{index} > 0 and x[{index} - 1] > 0",
                f"{index} == 0 or x[{index} - 1] < 0.5",
                f"{index} + 1 < n and x[{index} + 1] > s",
            ]
        first, second = self.choose.choice(simple), self.choose.choice(simple)
        return self.choose.choice([first, first, f"{first} and {second}", f"({first} or {second})"])

    def element(self) -> str:
        index = self.choose.choice(self.indices) if self.indices else self.choose.choice(["0", "-1", "n // 2"])
        return f"x[{index}]"

    def elements(self) -> None:
        """An assignment to elements of a vector."""
        name, other = self.choose.choice([_VECTORS, _VECTORS[::-1]])
        index = self.choose.choice([*self.indices, "0", "-1", "c % n", "d % n", "n // 2"])
        self.write(
            self.choose.choice(
                [
                    f"{name}[{index}] = {self.choose.choice(_NUMBERS)} * 0.5",
                    f"{name}[{index}] += {self.element()}",
                    f"{name}[{index}] *= 0.5",
                    f"{name}[{index}], {name}[0] = {name}[0], {name}[{index}]",
                    f"{name}[1:] = {other}[:-1] * 0.5",
                    f"{name}[::2] -= 0.25",
                    f"{name}[:] = {other} * 0.25",
                    f"{name}[{other} > s] = 0.5",
                    f"{name}[{name} > 1] *= 0.5",
                ]
            )
        )

    def assignment(self) -> None:
        if self.choose.random() < 0.25:
            self.elements()
        else:
            self.binding()

    def binding(self) -> None:
        """A name that gets another value."""
        kind, element = self.choose.random(), self.element()
        if kind < 0.3:
            name, other = self.choose.choice([_VECTORS, _VECTORS[::-1]])
            values = [
                f"{name} * 0.5 + {other} * 0.25",
                f"{name} * 0.5 - s * 0.125",
                f"{other} * t * 0.25",
                f"{name} * 0.5 + c % 5",
            ]
            self.write(f"{name} = {self.choose.choice(values)}")
        elif kind < 0.65:
            name, other = self.choose.choice([_NUMBERS, _NUMBERS[::-1]])
            values = [
                f"{name} * 0.5 - {other} * 0.25 + {element}",
                f"{element} if {self.test()} else {other} * 0.5",
                f"max({name} * 0.5, {element})",
                f"{other} * 0.5 + 1",
                f"{element} / (d % 3 + 2)",
                f"abs({name}) * 0.25",
                f"max({name} * 0.25, {element}, {other} * 0.5)",
                f"sum(v * {other} for v in {self.choose.choice(_VECTORS)}) * 0.0625",
                f"sum(v for v in x if v > {other}) * 0.125",
            ]
            self.write(f"{name} = {self.choose.choice(values)}")
        elif kind < 0.8:
            self.write(self.choose.choice(["d = d % 7 + 1", "d += 2", "d = d + c % 3", "d = (d * 3 + 1) % 11"]))
        elif kind < 0.9:
            self.write(f"p = {self.test(is_value=True)}")
        else:
            self.write(self.choose.choice(["a, b = b * 0.5, a + 0.5", "s, t = t, s * 0.5", "s += 0.25", "t -= 0.125"]))
