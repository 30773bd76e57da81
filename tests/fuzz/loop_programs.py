"""Random programs with loops, as text that Python on NumPy arrays and the reader of scripts read alike.

    program ::= first values, statements, return
    statement ::= loop | if | assignment | append | tail call
    loop ::= for over ranges, rows, enumerate, zip, reversed | while | while True

More than `weft.testing.loop_programs` has: matrices, slices with boundaries of the run, lists that loops append to,
concatenations with a bound, tail calls, arithmetic of integers and floats, membership, functions of Python, conditions
on tensors. Values are kept small, indices in range and divisors above 0. Where float32 and float64 lead to other values
(a condition that rounding decides), a program is undecided at that point.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from weft.support.forks import cached_property

__all__ = ["POINTS", "Program", "made"]

Array = np.ndarray[Any, Any]
POINTS = ({"n": 5, "m": 3, "k": 3}, {"n": 1, "m": 2, "k": 0}, {"n": 8, "m": 1, "k": 6})
PARAMETERS = {
    "x": 'R.Tensor(("n",), "float32")',
    "y": 'R.Tensor(("n",), "float32")',
    "z": 'R.Tensor(("m", "n"), "float32")',
    "u": 'R.Tensor(("n",), "int64")',
    "k": 'R.Tensor((), "int64")',
    "r": 'R.Tensor((), "float32")',
}
IN_NUMPY = SimpleNamespace(
    abs=np.abs, concat=np.concatenate, flip=np.flip, max=np.max, maximum=np.maximum, minimum=np.minimum,
    stack=np.stack, sum=np.sum, tanh=np.tanh, where=np.where, zeros=np.zeros, greater=np.greater,
)  # fmt: skip
STEP = """
def step(h, i, k):
    if i >= k:
        return h
    return step(h * 0.5 + i, i + 1, k)
"""
TAIL_CALL = """
    @R.function
    def step(
        h: R.Tensor(("n",), "float32"), i: R.Tensor((), "int64"), k: R.Tensor((), "int64")
    ) -> R.Tensor(("n",), "float32"):
        if i >= k:
            result = h
        else:
            result = Main.step(h * 0.5 + i, i + 1, k)
        return result
"""
SCRIPT = """from weft.script import ir as I, relax as R


@I.ir_module
class Main:{functions}
    @R.function
    def main({parameters}):
{body}
"""


@dataclass(frozen=True)
class Program:
    """The statements of a program, and what they give at each point."""

    body: str

    def text(self) -> str:
        """The script."""
        given = ", ".join(f"{name}: {ty}" for name, ty in PARAMETERS.items())
        body = textwrap.indent(self.body.replace("step(", "Main.step("), " " * 8)
        return SCRIPT.format(functions=TAIL_CALL if "step(" in body else "", parameters=given, body=body)

    @cached_property
    def python(self) -> Callable[..., Any]:
        """The same as a function of NumPy arrays."""
        place: dict[str, Any] = {"R": IN_NUMPY}
        head = f"{STEP}\ndef main({', '.join(PARAMETERS)}):\n    m, n = z.shape\n"
        exec(head + textwrap.indent(self.body, "    "), place)  # the text is our own
        return place["main"]

    def arguments(self, place: int) -> list[Array]:
        """The arrays at a point: multiples of an eighth, and integers from 0 to 3."""
        sizes, values = POINTS[place], np.random.default_rng(len(self.body) + place)
        n, m = sizes["n"], sizes["m"]
        x, y, z, r = (np.asarray(values.integers(-12, 13, shape) / 8, "float32") for shape in (n, n, (m, n), ()))
        return [x, y, z, values.integers(0, 4, n), np.array(sizes["k"]), r]

    def expected(self, place: int) -> tuple[Array, ...] | None:
        """What Python gives at a point; None where rounding decides it."""
        found = []
        for dtype in ("float32", "float64"):
            given = [a.astype(dtype) if a.dtype.kind == "f" else a.copy() for a in self.arguments(place)]
            with np.errstate(all="ignore"):
                value = self.python(*(a if a.ndim else a[()] for a in given))
            found.append(tuple(map(np.asarray, value if isinstance(value, tuple) else (value,))))
        return found[0] if all(map(is_close, *found)) else None


def is_close(got: Array, want: Array) -> bool:
    """Whether two results are the same value but for rounding."""
    return got.shape == want.shape and np.allclose(got, want, 1e-4, 1e-4, equal_nan=True)


def made(seed: int) -> Program:
    """The program of a seed.

    >>> made(0).body.splitlines()[0]
    'a = x * 0.5'
    """
    return Program(_Writer(random.Random(seed)).program())


@dataclass
class _Writer:
    choose: random.Random
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    loops: list[str] = field(default_factory=list)  # the heads of the loops around
    indices: list[str] = field(default_factory=list)  # that are in range for x here
    result: str = ""
    lists: int = 0

    def program(self) -> str:
        first = ["a = x * 0.5", "b = y.copy()", "q = z * 0.25", "h = R.zeros((4,), 'float32')", "v = r"]
        first += ["s = 0", "t = 0.5", "c = 0", "d = 1", "e = k", "p = False", "g = {'a': x * 0.25, 'n': 0, 's': 0.0}"]
        for line in first:
            self.write(line)
        results = ["a * 0.25 + b, s + t, c - d", "a, q, h, e", "x * (s if p else t) + c", "b + v, h, d", "c, t", "q"]
        results += ["g['a'] + a, g['n'], g['s']", "x, y, s", "y * 0.5 + x, g['a']"]
        self.result = self.choose.choice(results)
        for _ in range(self.choose.randint(3, 4)):
            self.statement()
        self.write(f"return {self.result}")
        return "\n".join(self.lines)

    def write(self, text: str) -> None:
        for line in text.splitlines():
            self.lines.append("    " * self.depth + line)

    def one(self, *texts: str) -> str:
        return self.choose.choice(texts)

    def block(self, head: str, first: str = "", last: str = "") -> None:
        """A head and what stands under it."""
        self.write(head)
        self.depth += 1
        self.write(first)
        for _ in range(self.choose.randint(1, 2)):
            self.statement()
        self.write(last)
        self.depth -= 1

    def statement(self) -> None:
        kind = self.choose.random()
        if kind < 0.3 and len(self.loops) < 2 and self.depth < 4:
            self.loop()
        elif kind < 0.45 and self.depth < 4:
            self.condition()
        elif kind < 0.52 and not self.loops and not self.depth:
            self.rows()
        elif kind < 0.56 and not self.loops:
            self.write(self.one("a = step(a * 0.5, 0, k)", "b = step(b * 0.5, c % 3, 4)", "a = step(x + 0, e - e, k)"))
        else:
            self.assignment()

    # Loops

    def loop(self) -> None:
        index, known = "ij"[len(self.loops)], list(self.indices)
        inside = {
            f"for {index} in range(n):": [index],
            f"for {index} in range(len(x)):": [index],
            f"for {index} in reversed(range(n)):": [index],
            f"for {index} in range(n - 1, -1, -1):": [index],
            f"for {index} in range(0, n, 2):": [index],
            f"for {index}, w in enumerate(x):": [index],
            f"for {index}, (w, o) in enumerate(zip(x, y)):": [index],
            f"for {index}, w in enumerate(x[1:], 1):": [index],
            f"for {index} in range(min(k, n)):": [index],
        }
        others = {
            f"for {index} in range(k):",
            f"for {index} in range(1, k + 2):",
            f"for {index} in range(k, 0, -1):",
            f"for {index} in range(0, k, 2):",
            f"for {index} in range(d % 4):",
            f"for {index} in range(4):",
            f"for {index} in (1, 0, 2):",
            "for w in x:",
            "for w in reversed(y):",
            "for w, o in zip(x, y[::-1]):",
            "for row in z:",
            "for row, w in zip(z, x):",
            "while c < 7:",
            "while True:",
            "while R.max(R.abs(a)) > 0.25:",
            "while e and c < 9:",
            "while e > 0:",
        }
        head = self.one(*inside, *sorted(others))
        self.loops.append(head)
        self.indices = [*known, *inside.get(head, [])]
        getattr(self, "_while" if head.startswith("while") else "_for")(head)
        self.indices = known
        self.loops.pop()
        if self.choose.random() < 0.15 and head != "while True:":
            self.block("else:")

    def _for(self, head: str) -> None:
        self.block(head, self.one("", "", "a = a * 0.5 + row", "b = b * 0.5 - row") if "row" in head else "")

    def _while(self, head: str) -> None:
        """A loop that counts first, so that `continue` does not go round for ever."""
        counts = {"while c < 7:": "c += 1", "while e > 0:": "e -= 2", "while e and c < 9:": "e = e // 2\nc += 1"}
        first = counts.get(head, "c += 1\nif c > 8:\n    break")
        if "R.max" in head:
            first = "a = a * 0.5\nc += 1\nif c > 20:\n    break"
        self.write(head)
        self.depth += 1
        self.write(first)
        self.leave()
        self.assignment(counters=False)
        self.depth -= 1

    def leave(self) -> None:
        """An `if` that ends the iteration, the loop or the function."""
        self.write(f"if {self.test()}:")
        self.write(f"    {self.one('break', 'continue', f'return {self.result}')}")

    def rows(self) -> None:
        """A list with a value for each iteration, or a concatenation of a known number."""
        name = f"l{self.lists}"
        self.lists += 1
        kind = self.choose.random()
        if kind < 0.3:
            head, value = self.choose.choice([("for w in x:", "w * 2"), ("for i in range(n):", "x[i] + i")])
            self.write(f"{name} = []\n{head}\n    s = s * 0.5 + 1\n    {name}.append({value})")
            self.write(f"a = a + R.stack({name})")
        elif kind < 0.6:
            self.write(f"{name} = []\nfor i in range(n):\n    b = R.tanh(b + x[i])\n    {name}.append(b)")
            self.write(f"a = a * 0.5 + R.sum(R.stack({name}), 0)")
        elif kind < 0.7:
            self.write(f"{name} = R.stack([b * 0.5 + i for i in range(k + 1)])\na = a * 0.5 + {name}[-1] * 0.25")
        elif kind < 0.8:
            self.write(f"{name} = R.stack([w * 0.5 + i for i, w in enumerate(x)])\nb = b * 0.5 + {name}")
        else:
            self.write(f"{name} = x\nfor i in range(3):\n    {name} = R.concat([{name}, x * i])")
            self.write(f"s = s + R.sum({name}[n:]) * 0.125")

    # Conditions

    def condition(self) -> None:
        self.block(f"if {self.test()}:")
        for _ in range(self.choose.choice([0, 0, 1, 2])):
            self.block(f"elif {self.test()}:")
        if self.choose.random() < 0.5:
            self.block("else:")
        if self.loops and self.choose.random() < 0.4:
            self.leave()

    def test(self) -> str:
        count, number = (
            self.one("c", "d", "e", "k", "u[0]", *self.indices),
            self.one("s", "t", "v", "r", self.element()),
        )
        simple = [
            f"{number} > {self.one('0', '0.5', 's', 'v', 'c')}",
            f"{count} % {self.one('2', '3')} == {self.one('0', '1')}",
            f"{count} in (1, 2, 5)",
            f"{count} not in (0, k)",
            f"{count} in range(1, 4)",
            f"0 <= {count} < {self.one('3', 'n', 'k')}",
            f"-0.5 < {number} <= 1",
            "p",
            "not p",
            f"{count}",
            f"not {count} % 3",
            f"{count} > 1.5",
            f"R.sum({self.one('a', 'b')}) > {self.one('0', 'c')}",
            f"{self.index()} > 0 and x[{self.index()} - 1] > 0",
            f"c >= n or x[c % n] < {number}",
        ]
        first, second = self.one(*simple), self.one(*simple)
        return self.one(first, first, f"{first} and {second}", f"({first} or {second})", f"not ({first})")

    # Assignments

    def index(self) -> str:
        return self.one(*self.indices) if self.indices else self.one("0", "n - 1", "n // 2")

    def element(self) -> str:
        index = self.one(self.index(), "c % n", "-1", "d % n", "u[0] % n")
        return self.one(f"x[{index}]", f"b[{index}]", f"z[0, {index}]", f"y[{index}]", f"q[-1][{index}]")

    def assignment(self, counters: bool = True) -> None:
        kinds = [self.vector, self.number, self.number, self.elements, self.flag]
        self.write(self.choose.choice([*kinds, self.counter] if counters else kinds)())

    def vector(self) -> str:
        name, other = self.one("a b", "b a").split()
        return self.one(
            f"{name} = {name} * 0.5 + {other} * 0.25",
            f"{name} = {name} * 0.5 - {self.one('s', 'v', 't')} * 0.125",
            f"{name} = {name} * 0.5 + {self.one('c', 'd', 'k')} % 5",
            f"{name} = {other} * {self.one('c % 3', 'd / 8', 'e % 2')} * 0.25",
            "a, b = b, a * 0.5",
            "a, b = b, a",
            "a, b = b * 0.25, a * 0.5 + b * 0.25",
            f"{name} = {name} * 0.5 + z[{self.one('0', '-1', 'd % m')}]",
            f"{name} = R.where(R.greater({name}, 0.5), {other} * 0.5, {name})",
            f"{name} = R.tanh({name})",
            f"{name} = R.maximum({name} * 0.5, {other})",
            "q = q * 0.5 + x * 0.25",
            f"{name} = {name} * 0.5 if {self.test()} else {other} + 0",
        )

    def number(self) -> str:
        name, other = self.one("s t", "t s", "v s", "s v").split()
        count = self.one("c", "d", "k", *self.indices)
        return self.one(
            f"{name} = {name} * 0.5 - {other} * 0.25 + {self.element()}",
            f"{name} = {name} * 0.5 + {count} * 0.125",
            f"{name} = {name} * 0.5 + {count} % 5 / 4",
            f"{name} = {other} * 0.5 + {count} % 3 * r * 0.25",
            f"{name} = {self.element()} if {self.test()} else {other} * 0.5",
            f"{name} = max({name} * 0.5, {self.element()})",
            f"{name} = min({name} * 0.5, {count}, 2)",
            f"{name} = abs({other}) * 0.25 + float({count} % 4)",
            f"{name} = {name} * 0.25 + round({self.element()} * 3) + int({other} * 2) % 5",
            f"{name} = {other} * 0.5 + [0.5, 1.0, -0.25][{count} % 3]",
            f"{name} = sum(w * 0.5 for w in {self.one('a', 'x', 'y')}) * 0.0625",
            f"{name} = R.sum(x[:{count} % (n + 1)]) * 0.125 + {name} * 0.5",
            f"{name} = R.sum(a[c % n :]) * 0.0625 + max({other} * 0.25, -1)",
            f"{name} = {name} * 0.25 + ({count} % 7) ** 2 * 0.125",
            f"{name} = {name} * 0.5 + 2 ** ({count} % 4) * 0.125",
            f"{name} -= {name} * 0.5 + 0.125",
            "s, t = t, s * 0.5",
            f"{name} = {name} * 0.5 + R.sum(x[x > {self.one('0', '0.5')}]) * 0.0625",
            f"{name} = {name} * 0.5 + R.sum(b[:: -(d % 3) - 1]) * 0.0625",
            f"{name} = {name} * 0.25 + g['s'] * 0.5",
            f"g['s'] = g['s'] * 0.5 + {other} * 0.25",
            f"g['n'] = (g['n'] + {count}) % 9",
            "g['a'] = g['a'] * 0.5 + b * 0.25",
            "g = {'s': g['s'] * 0.5, 'n': g['n'] + 1, 'a': a * 0.5}",
        )

    def counter(self) -> str:
        name = self.one("c", "d")
        return self.one(
            f"{name} = ({name} * 3 + 1) % 11",
            f"{name} += 2",
            f"{name} = {name} // 2 + {self.one('k', 'u[0]', 'e % 3')}",
            f"{name} = abs({name} - k) % 9",
            f"{name} = max({name}, k) % 13",
            f"{name} = int({self.element()} * 4) % 6",
            "c, d = d % 7, (c + d) % 9",
            "c, d = divmod(c * 5 + k, 7)",
            f"{name} = sum(1 for w in x if w > 0) + {name} % 2",
            f"{name} = ({name} << 1 | 1) % 23 ^ 2",
            "e = (e * 2 + 1) % 8",
        )

    def elements(self) -> str:
        name, other = self.one("a b", "b a", "x b", "y a").split()
        index, number = self.one(self.index(), "c % n", "d % n", "-1"), self.one("s", "t", "v", "c % 4", "0.5", "1")
        return self.one(
            f"{name}[{index}] = {number} * 0.5",
            f"{name}[{index}] += {self.element()}",
            f"{name}[{index}] *= 0.5",
            f"{name}[{index}], {name}[0] = {name}[0], {name}[{index}]",
            f"{name}[1:] = {other}[:-1] * 0.5",
            f"{name}[c % n :] *= 0.5",
            f"{name}[: d % (n + 1)] = {number}",
            f"{name}[{other} > {number}] = 0.5",
            f"{name}[{name} > 0] *= 0.5",
            f"{name}[{other} > 0] = {other}[{other} > 0] * 0.5",
            f"{name}[c % n :: d % 3 + 1] *= 0.5",
            f"{name}[::2] = {name}[::2] * 0.5",
            f"{name}[::-1] = {other} * 0.5",
            f"h[u[{index}]] += {number}",
            f"q[{self.one('0', 'd % m')}, {index}] = {number}",
            f"q[:, {index}] = {number}",
            f"q[d % m] = {name} * 0.5",
            f"q[-1] += {name} * 0.25",
        )

    def flag(self) -> str:
        compared = self.one("s > t", "c > k", "v < 0.5", "r > 0", f"{self.element()} > 0", "c in (1, 3)")
        return f"p = {self.one(compared, f'not p and {compared}')}"
