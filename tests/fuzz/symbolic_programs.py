"""Random graph programs over several symbols, together with what NumPy computes for each line at many sizes.

A program is lines of a script, one function of NumPy for each, and the values that those give at every point of
`POINTS`. A line stays in a program where NumPy takes it at every point whose sizes are `PLAIN`; at the others (0, 1, 2)
it may fail, and then weft must not return a value. Sizes in annotations, results, reshapes and kernels are written as
expressions over the symbols that are right at every point. `tests/fuzz/symbolic.py` runs them.
"""

from __future__ import annotations

import random
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Sizes = dict[str, int]
Step = Callable[[dict[str, Array], Sizes], Any]

POINTS: tuple[tuple[int, int, int], ...] = (
    (5, 3, 4),
    (4, 7, 3),
    (6, 6, 5),
    (7, 4, 6),
    (3, 5, 9),
    (8, 3, 3),
    (0, 3, 4),
    (1, 4, 3),
    (2, 5, 1),
    (5, 0, 2),
    (4, 1, 6),
    (3, 2, 0),
    (1, 1, 1),
    (0, 0, 0),
    (2, 2, 2),
)
"""What n, m and k are."""
PLAIN = 3
"""Programs are made to be right where all of n, m and k are at least this."""
_FAILURES = (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError)
_SIZES = [
    size.strip()
    for size in (
        "n; m; k; n + 1; n - 1; m - 1; k - 1; 2 * n; 2 * m; n + m; n * m; n * k; m * k; n // 2; m // 2; (n + 1) // 2;"
        "(m + 1) // 2; min(n, m); max(n, m); min(n, k); n + k; n - 2; 2 * n + 1; 3 * n; m + 1; k + 1; 2 * k; n * 3;"
        "n * m + 1; n + m + k; n + 2; m + 2; k + 2; n * m * k; 2 * n * m; n * n; k // 2"
    ).split(";")
]
_PARAMETERS: dict[str, tuple[tuple[str, ...], str]] = {
    "x": (("n",), "int64"),
    "y": (("n", "m"), "int64"),
    "z": (("m",), "int64"),
    "u": (("2 * n", "3"), "int64"),
    "q": (("n * m",), "int64"),
    "p": (("n + 1",), "int32"),
    "w": (("3",), "int64"),
    "h": (("m", "k"), "int64"),
    "d": (("n", "k", "2"), "int64"),
    "i": (("k",), "int64"),
    "f": (("n", "m"), "float64"),
    "b": (("n",), "bool"),
    "e": (("1", "m"), "int8"),
    "c": ((), "int64"),
}
HEAD = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
"""
PRIVATE = """
    @T.prim_func(private=True)
    def halves(a: T.Buffer(("s",), "int64"), b: T.Buffer(("s // 2",), "int64")):
        for i in range(s // 2):
            b[i] = a[2 * i + 1] - a[2 * i]

    @T.prim_func(private=True)
    def woven(a: T.Buffer(("s",), "int64"), b: T.Buffer(("t",), "int64"), c: T.Buffer(("2 * min(s, t)",), "int64")):
        for i in range(2 * min(s, t)):
            with T.block("woven"):
                v = T.axis.spatial(2 * min(s, t), i)
                c[v] = T.if_then_else(v % 2 == 0, a[v // 2], b[v // 2])

    @T.prim_func(private=True)
    def flat(a: T.Buffer(("s", "t"), "int64"), b: T.Buffer(("s * t",), "int64")):
        for i in range(s * t):
            b[i] = a[i // t, i % t] * 2

    @T.prim_func(private=True)
    def rows(a: T.Buffer(("s", "t"), "int64"), b: T.Buffer(("s",), "int64")):
        for i, j in T.grid(s, t):
            with T.block("rows"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    b[vi] = 7
                b[vi] = b[vi] + a[vi, vj]

    @T.prim_func(private=True)
    def running(a: T.Buffer(("s",), "int64"), b: T.Buffer(("s + 1",), "int64")):
        total = T.alloc_buffer((1,), "int64")
        total[0] = 0
        b[0] = 0
        for i in range(s):
            total[0] = total[0] + a[i]
            b[i + 1] = total[0]

    @T.prim_func(private=True)
    def turned(a: T.Buffer(("s",), "int64"), b: T.Buffer(("s",), "int64"), by: T.int64):
        for i in range(s):
            b[(i + by) % s] = a[i]

    @T.prim_func(private=True)
    def split(a: T.Buffer(("2 * s",), "int64"), b: T.Buffer(("s",), "int64"), c: T.Buffer(("s",), "int64")):
        scratch = T.alloc_buffer((2 * s,), "int64")
        for i in range(2 * s):
            scratch[2 * s - 1 - i] = a[i]
        for i in range(s):
            b[i] = scratch[i]
            c[i] = scratch[s + i]

    @T.prim_func(private=True)
    def changed(a: T.Buffer(("s",), "int64")):
        for i in range(s):
            if a[i] % 2 == 1:
                a[i] = a[i] + i

    @R.function(private=True)
    def power(a: R.Tensor(("s",), "int64"), k: R.Tensor((), "int64")) -> R.Tensor(("s",), "int64"):
        if k > 0:
            r = M.power(a * 3 + 1, k - 1)
        else:
            r = a
        return r

    @R.function(private=True)
    def edges(a: R.Tensor(("s + 1",), "int64"), b: R.Tensor(("t", "s"), "int64")):
        return (a[1:] - a[:-1], R.reshape(b, (s * t,))), b + a[:-1]

    @R.function(private=True)
    def folded(a: R.Tensor(("2 * s",), "int64")) -> R.Tensor(("s",), "int64"):
        return a[:s] - a[s:]

    @R.function(private=True)
    def product(a: R.Tensor(("s",), "int64"), b: R.Tensor(("t",), "int64")) -> R.Tensor(("s * t",), "int64"):
        return R.reshape(R.expand_dims(a, 1) * b, (s * t,))
"""
"""The functions that programs call; a script has those that it names."""


@dataclass
class Program:
    """Lines of a script, what they mean in NumPy, and the values of both at every point (None where NumPy fails)."""

    choose: random.Random
    points: list[Sizes]
    values: dict[str, list[Array | None]]
    parameters: list[str]
    lines: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=lambda: ["n", "m", "k"])
    result: str = ""
    returned: list[str] = field(default_factory=list)
    sizes_given: bool = True
    """Whether the sizes are an argument, or follow from the arrays."""
    undecided: set[int] = field(default_factory=set)
    """Points where NumPy cannot say what the program means."""

    def array(self, name: str) -> Array:
        """A value at the first point, which is plain."""
        value = self.values[name][0]
        assert value is not None
        return value

    def rank(self, name: str) -> int:
        return self.array(name).ndim

    def pick(self, *dtypes: str, rank: int | None = None, least: int = 0) -> str:
        """A value of one of some dtypes, of a rank or of at least a rank; ValueError where there is none."""
        names = [
            name
            for name in self.values
            if (not dtypes or self.array(name).dtype.name in dtypes)
            and (self.rank(name) == rank if rank is not None else self.rank(name) >= least)
        ]
        if not names:
            raise ValueError("no such value")
        return self.choose.choice(names[-6:] if self.choose.random() < 0.5 else names)

    def plain(self) -> list[int]:
        """The points whose sizes are all plain."""
        return [place for place, sizes in enumerate(self.points) if min(sizes[name] for name in "nmk") >= PLAIN]

    def vector(self, name: str, axis: int) -> list[int | None]:
        """One size of a value at all points."""
        return [None if value is None else value.shape[axis] for value in self.values[name]]

    def spelling(self, vector: list[int | None]) -> str:
        """An expression over the symbols that is this size at every point; ValueError where none is known."""
        names = [*_SIZES, *self.symbols[3:], "1", "2", "3", "4", "6"]
        self.choose.shuffle(names)
        for text in names:
            if all(
                size is None or size == number(text, sizes) for size, sizes in zip(vector, self.points, strict=True)
            ):
                return text
        raise ValueError("a size that has no name")

    def shape(self, name: str) -> list[str]:
        return [self.spelling(self.vector(name, axis)) for axis in range(self.rank(name))]

    def same(self, first: str, second: str) -> bool:
        """Whether two values have one shape at every point."""
        return self.rank(first) == self.rank(second) and all(
            a is None or b is None or a.shape == b.shape
            for a, b in zip(self.values[first], self.values[second], strict=True)
        )

    def add(self, text: str, step: Step) -> str:
        """Bind a name to a line where NumPy takes it at every plain point; ValueError where it does not."""
        name = f"v{len(self.lines)}_{len(self.values)}"
        found = [self._one(step, place) for place in range(len(self.points))]
        if any(found[place] is None for place in self.plain()):
            raise ValueError("NumPy refuses it")
        if any(value is not None and (value.size > 3000 or value.ndim > 4) for value in found):
            raise ValueError("too large")
        self.values[name] = found
        claim = ""
        if self.choose.random() < 0.25 and not text.startswith("R.match_cast"):
            try:
                claim = f": {self.type_of(name)}"
            except ValueError:
                claim = ""
        self.lines.append(f"{name}{claim} = {text}")
        return name

    def _one(self, step: Step, place: int) -> Array | None:
        known = {name: found[place] for name, found in self.values.items()}
        sizes = {name: size for name, size in self.points[place].items()}
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                value = step(_Known(known), sizes)
        except Undecided:
            self.undecided.add(place)
            return None
        except _FAILURES:
            return None
        return None if value is None else np.asarray(value)

    def type_of(self, name: str) -> str:
        return tensor_type(self.shape(name), self.array(name).dtype.name)

    def text(self) -> str:
        """The script."""
        given = [f"{name}: {tensor_type(list(dims), dtype)}" for name, (dims, dtype) in self._declared().items()]
        parameters = ", ".join(['sizes: R.Shape(["n", "m", "k"])', *given] if self.sizes_given else given)
        body = textwrap.indent("\n".join([*self.lines, f"return {', '.join(self.returned)}"]), " " * 8)
        called = [text for name, text in _functions().items() if f"M.{name}" in body]
        main = f"    @R.function\n    def main({parameters}){self.result}:\n{body}\n"
        return HEAD + "\n".join([*called, main])

    def _declared(self) -> dict[str, tuple[tuple[str, ...], str]]:
        return {name: _PARAMETERS[name] for name in self.parameters}

    def arguments(self, place: int) -> list[Any]:
        """What the script is called with at a point."""
        sizes = self.points[place]
        arrays = [self.values[name][place] for name in self.parameters]
        given = [(sizes["n"], sizes["m"], sizes["k"])] if self.sizes_given else []
        return [*given, *[array.copy() for array in arrays if array is not None]]

    def expected(self, place: int) -> list[Array] | None:
        """What NumPy computes at a point; None where any line fails there."""
        if any(found[place] is None for found in self.values.values()):
            return None
        return [value for name in self.returned if (value := self.values[name][place]) is not None]


class _Known(dict[str, Any]):
    """Values by their names; asking for one that NumPy has none of is a failure too."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if value is None:
            raise ValueError("no value here")
        return value


@cache
def _functions() -> dict[str, str]:
    """The texts of `PRIVATE` by name."""
    texts = re.split(r"\n(?=    @)", PRIVATE.strip("\n"))
    return {re.findall(r"def (\w+)\(", text)[0]: text for text in texts}


def number(text: str, sizes: Sizes) -> int:
    """The value of a size's expression."""
    return int(eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(sizes)))  # a text of this file


def tensor_type(dims: list[str], dtype: str) -> str:
    """A type as a script writes it."""
    texts = [dim if dim.isdigit() else f'"{dim}"' for dim in dims]
    return f'R.Tensor(({", ".join(texts)}{"," if len(texts) == 1 else ""}), "{dtype}")'


def _written(dims: list[str]) -> str:
    return f"({', '.join(dims)}{',' if dims else ''})"


WHOLE = ("int64", "int32", "int8")


def _slices(program: Program) -> None:
    name = program.pick(least=1)
    cuts = [
        ":",
        ":",
        "1:",
        ":-1",
        "1:-1",
        "::2",
        "::-1",
        "-2:",
        ":2",
        "n // 2:",
        ":n // 2",
        "1:n",
        ":m",
        "m - 1:",
        "k:",
        ":n - 1",
        "n - 1:n",
        "1::2",
        "-1:",
        ":min(n, m)",
        "n - 2:",
        "2:n + 1",
        ":-2:2",
        "m // 2:m",
        "-1::-1",
        "::3",
        "0:n:2",
    ]
    chosen = [program.choose.choice(cuts) for _ in range(program.rank(name))]
    for axis, cut in enumerate(chosen):  # what says one element by its names must have it
        if cut == "n - 1:n" and not _agree(program.vector(name, axis), [sizes["n"] for sizes in program.points]):
            raise ValueError("not the size that the slice is of")
    text = ", ".join(chosen)
    program.add(f"{name}[{text}]", lambda v, s: eval(f"a[{text}]", {"a": v[name], "min": min, **s}))


def _index(program: Program) -> None:
    name = program.pick(least=1)
    place = program.choose.choice(["0", "-1", "1", "n - 1", "n // 2", "m - 1", "k - 1"])
    program.add(f"{name}[{place}]", lambda v, s: v[name][number(place, s)])


def _binary(program: Program) -> None:
    name = program.pick(*WHOLE)
    like = [other for other in program.values if _meets(program, name, other)]
    other = program.choose.choice(like)
    sign = program.choose.choice("+-*")
    program.add(f"{name} {sign} {other}", lambda v, s: _ARITHMETIC[sign](v[name], v[other]))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _meets(program: Program, name: str, other: str) -> bool:
    """Whether two values have one dtype, and sizes that are equal at all points, or 1 at all of them."""
    first, second = program.array(name), program.array(other)
    if first.dtype != second.dtype:
        return False
    for axis in range(1, min(first.ndim, second.ndim) + 1):
        a, b = program.vector(name, -axis), program.vector(other, -axis)
        pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
        if not (all(x == y for x, y in pairs) or all(x == 1 for x, _ in pairs) or all(y == 1 for _, y in pairs)):
            return False
    return True


def _scaled(program: Program) -> None:
    name = program.pick("int64")
    size = program.choose.choice(["n", "m", "k", "n + m", "n // 2"])
    program.add(f"{name} * R.prim_value({size})", lambda v, s: v[name] * number(size, s))


def _concat(program: Program) -> None:
    name = program.pick(least=1)
    axis = program.choose.randrange(program.rank(name))
    rest = [place for place in range(program.rank(name)) if place != axis]
    others = [
        other
        for other in program.values
        if program.rank(other) == program.rank(name)
        and program.array(other).dtype == program.array(name).dtype
        and all(_agree(program.vector(other, place), program.vector(name, place)) for place in rest)
    ]
    names = [name, *program.choose.choices(others, k=program.choose.choice([1, 1, 2]))]
    program.add(
        f"R.concat(({', '.join(names)}), axis={axis})", lambda v, s: np.concatenate([v[part] for part in names], axis)
    )


def _agree(first: list[int | None], second: list[int | None]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(first, second, strict=True))


def _reshape(program: Program) -> None:
    name = program.pick()
    dims = program.shape(name)
    made: list[list[str]] = [["-1"], ["1", "-1"], ["-1", "1"], dims[::-1], ["1", *dims], [*dims, "1"]]
    if len(dims) >= 2:
        made += [
            [f"({dims[0]}) * ({dims[1]})", *dims[2:]],
            [*dims[:-2], f"({dims[-2]}) * ({dims[-1]})"],
            [dims[0], "-1"],
        ]
    for text, parts in {"n * m": "nm", "n * k": "nk", "m * k": "mk", "2 * n": "2n", "n * m * k": "nmk"}.items():
        if text in dims:
            place = dims.index(text)
            made += [[*dims[:place], *parts, *dims[place + 1 :]]] * 3
    shape = program.choose.choice(made)
    texts = f"R.reshape({name}, {_written(shape)})"
    program.add(texts, lambda v, s: _reshaped(v[name], [number(dim, s) for dim in shape]))


class Undecided(ValueError):
    """NumPy cannot say what weft can: the size in the place of -1 where an array has no elements."""


def _reshaped(array: Array, shape: list[int]) -> Array | None:
    if -1 in shape and array.size == 0:  # NumPy cannot say which size stands there
        known = [size for size in shape if size != -1]
        if 0 in known:
            raise Undecided
    return array.reshape(shape)


def _broadcast(program: Program) -> None:
    name = program.pick()
    dims = program.shape(name)
    front = [program.choose.choice(["n", "m", "k", "2", "n + 1", "n // 2"])] if program.choose.random() < 0.7 else []
    shape = front + [program.choose.choice(["n", "m", "3"]) if dim == "1" else dim for dim in dims]
    program.add(
        f"R.broadcast_to({name}, {_written(shape)})",
        lambda v, s: np.broadcast_to(v[name], [number(dim, s) for dim in shape]),
    )


def _reduction(program: Program) -> None:
    name = program.pick("int64", "int32", least=1)
    axes = program.choose.sample(range(program.rank(name)), program.choose.randint(1, program.rank(name)))
    keep, kind = program.choose.random() < 0.4, program.choose.choice(["sum", "max", "min", "prod"])
    program.add(
        f"R.{kind}({name}, axis={axes}, keepdims={keep})",
        lambda v, s: getattr(np, kind)(v[name], axis=tuple(axes), keepdims=keep).astype(v[name].dtype),
    )


def _arguments_of_extremes(program: Program) -> None:
    name = program.pick("int64", least=1)
    axis, kind = program.choose.randrange(program.rank(name)), program.choose.choice(["argmax", "argmin"])
    program.add(f"R.{kind}({name}, axis={axis})", lambda v, s: getattr(np, kind)(v[name], axis))


def _take(program: Program) -> None:
    name, axis = program.pick(least=1), 0
    axis = program.choose.randrange(program.rank(name))
    if program.choose.random() < 0.4:
        chosen = program.choose.choice([[0], [1, 0], [2, 2, 1], [-1, 0]])
        program.add(
            f'R.take({name}, R.const({chosen}, "int64"), axis={axis})', lambda v, s: np.take(v[name], chosen, axis)
        )
    else:
        index = program.pick("int64", rank=program.choose.choice([0, 1, 1]))
        size = program.spelling(program.vector(name, axis))
        program.add(
            f"R.take({name}, R.floor_mod({index}, R.prim_value({size})), axis={axis})",
            lambda v, s: np.take(v[name], _modulo(v[index], v[name].shape[axis]), axis),
        )


def _modulo(array: Array, size: int) -> Array:
    if size == 0 and array.size:
        raise ZeroDivisionError
    return array % size if array.size else array


def _branch(program: Program) -> None:
    name = program.pick(*WHOLE)
    other = program.choose.choice(
        [
            other
            for other in program.values
            if program.same(name, other) and program.array(other).dtype == program.array(name).dtype
        ]
    )
    made, kind = f"t{len(program.lines)}", program.choose.randrange(3)
    limit = program.choose.randint(-3, 20)
    tests: list[tuple[str, Step]] = [
        (f'R.greater(c, R.const({limit}, "int64"))', lambda v, s: v["c"] > limit),
        ("n > m", lambda v, s: s["n"] > s["m"]),
        ("k % 2 == 1", lambda v, s: s["k"] % 2 == 1),
    ]
    text, test = tests[kind]
    program.lines.append(f"if {text}:\n    {made} = {name} - {other} * 3\nelse:\n    {made} = {other} + 1")
    program.add(f"{made} * 1", lambda v, s: v[name] - v[other] * 3 if test(v, s) else v[other] + 1)


def _loop(program: Program) -> None:
    name = program.pick("int64", least=1)
    carried, kind = f"t{len(program.lines)}", program.choose.randrange(4)
    size = program.spelling(program.vector(name, 0))
    if kind == 0:
        program.lines.append(
            f"{carried} = {name}[0] * 2\nfor step in range({size}):\n    {carried} = {carried} - {name}[step] * step"
        )

        def run(v: dict[str, Array], s: Sizes) -> Any:
            total = v[name][0] * 2
            for place, row in enumerate(v[name]):
                total = total - row * place
            return total
    elif kind == 1:
        program.lines.append(f"{carried} = []\nfor row in {name}:\n    {carried}.append(row * 2 + 1)")
        program.add(f"R.stack({carried})", lambda v, s: v[name] * 2 + 1)
        return
    elif kind == 2:
        program.lines.append(
            f"{carried} = {name} + 0\nfor step in range(1, {size}):\n"
            f"    {carried}[step] = {carried}[step] - {carried}[step - 1]"
        )

        def run(v: dict[str, Array], s: Sizes) -> Any:
            value = v[name] + 0
            for place in range(1, len(value)):
                value[place] = value[place] - value[place - 1]
            return value
    else:
        counter = f"{carried}c"
        program.lines.append(
            f"{carried} = {name} * 1\n{counter} = 0\nwhile {counter} < k:\n    {carried} = {carried} * 3 - {counter}\n"
            f"    {counter} = {counter} + 1\n    if {counter} == n:\n        break"
        )

        def run(v: dict[str, Array], s: Sizes) -> Any:
            value = v[name] * 1
            for place in range(s["k"]):
                value = value * 3 - place
                if place + 1 == s["n"]:
                    break
            return value

    program.add(f"{carried} + 1", lambda v, s: run(v, s) + 1)


def _cast(program: Program) -> None:
    """Name the sizes of a value, or say what they are with other symbols."""
    name = program.pick(least=1)
    fresh, dtype = f"r{len(program.lines)}", program.array(name).dtype.name
    dims = program.shape(name)
    less, sized = program.choose.choice([0, 0, 1]), program.vector(name, 0)
    if any(size is not None and size < less for size in sized) or any(size is None for size in sized):
        raise ValueError("a size below zero")
    program.add(
        f"R.match_cast({name}, {tensor_type([f'{fresh} + {less}' if less else fresh, *dims[1:]], dtype)})",
        lambda v, s: v[name],
    )
    for sizes, size in zip(program.points, sized, strict=True):
        sizes[fresh] = (size or 0) - less
    program.symbols.append(fresh)


def _kernel(program: Program) -> None:
    kind = program.choose.choice(["halves", "woven", "flat", "rows", "running", "turned", "split", "changed"])
    name = program.pick("int64", rank=2 if kind in ("flat", "rows") else 1)
    size = program.spelling(program.vector(name, 0))
    if kind == "halves":
        step: Step = lambda v, s: (lambda a: a[1::2] - a[: len(a) // 2 * 2 : 2])(v[name])
        program.add(f'R.call_tir(M.halves, ({name},), out_ty=R.Tensor((({size}) // 2,), "int64"))', step)
    elif kind == "woven":
        other = program.pick("int64", rank=1)
        more = program.spelling(program.vector(other, 0))
        out = f'R.Tensor((2 * min({size}, {more}),), "int64")'

        def woven(v: dict[str, Array], s: Sizes) -> Any:
            least = min(len(v[name]), len(v[other]))
            return np.stack([v[name][:least], v[other][:least]], 1).reshape(-1)

        program.add(f"R.call_tir(M.woven, ({name}, {other}), out_ty={out})", woven)
    elif kind == "flat":
        second = program.spelling(program.vector(name, 1))
        out = f'R.Tensor((({size}) * ({second}),), "int64")'
        program.add(f"R.call_tir(M.flat, ({name},), out_ty={out})", lambda v, s: v[name].reshape(-1) * 2)
    elif kind == "rows":
        program.add(
            f'R.call_tir(M.rows, ({name},), out_ty=R.Tensor(({size},), "int64"))', lambda v, s: v[name].sum(1) + 7
        )
    elif kind == "running":
        out = f'R.Tensor(({size} + 1,), "int64")'
        program.add(f"R.call_tir(M.running, ({name},), out_ty={out})", lambda v, s: np.append([0], np.cumsum(v[name])))
    elif kind == "turned":
        by = program.choose.choice(["n", "m", "k", "n + m"])
        call = f'R.call_tir(M.turned, ({name},), out_ty=R.Tensor(({size},), "int64"), tir_vars=R.shape([{by}]))'
        program.add(call, lambda v, s: np.roll(v[name], number(by, s)))
    elif kind == "split":
        twice = [
            other
            for other in program.values
            if program.rank(other) == 1 and "2 *" in program.shape(other)[0] and program.array(other).dtype == "int64"
        ]
        other = program.choose.choice(twice or [""])
        if not other:
            raise ValueError("no even size")
        half = number_half = program.shape(other)[0].replace("2 * ", "", 1)
        part = program.choose.randrange(2)
        types = f'R.Tensor(({half},), "int64")'
        program.add(
            f"R.call_tir(M.split, ({other},), out_ty=[{types}, {types}])[{part}]",
            lambda v, s: v[other][::-1][: number(number_half, s)] if part == 0 else v[other][::-1][number(half, s) :],
        )
    else:
        call = f"R.call_tir_inplace(M.changed, ({name} + 1,), inplace_indices=[0], "
        call += f'out_ty=R.Tensor(({size},), "int64"))'
        program.add(call, lambda v, s: (lambda a: np.where(a % 2 == 1, a + np.arange(len(a)), a))(v[name] + 1))


def _private(program: Program) -> None:
    kind = program.choose.choice(["power", "edges", "folded", "product"])
    if kind == "power":
        name = program.pick("int64", rank=1)
        times = program.choose.randrange(4)

        def power(v: dict[str, Array], s: Sizes) -> Any:
            value = v[name]
            for _ in range(times):
                value = value * 3 + 1
            return value

        program.add(f'M.power({name}, R.const({times}, "int64"))', power)
    elif kind == "edges":
        table = program.pick("int64", rank=2)
        wanted = [None if size is None else size + 1 for size in program.vector(table, 1)]
        longer = [
            other
            for other in program.values
            if program.rank(other) == 1
            and program.array(other).dtype == "int64"
            and _agree(program.vector(other, 0), wanted)
        ]
        if not longer:
            raise ValueError("none is one longer")
        other = program.choose.choice(longer)
        part = program.choose.randrange(3)
        texts = ["[0][0]", "[0][1]", "[1]"]
        steps: list[Step] = [
            lambda v, s: v[other][1:] - v[other][:-1],
            lambda v, s: v[table].reshape(-1),
            lambda v, s: v[table] + v[other][:-1],
        ]
        program.add(f"M.edges({other}, {table}){texts[part]}", steps[part])
    elif kind == "folded":
        name = program.pick("int64", rank=1)
        twice = f"R.concat(({name}, {name} * 2), axis=0)"
        program.add(f"M.folded({twice})", lambda v, s: v[name] - v[name] * 2)
    else:
        name, other = program.pick("int64", rank=1), program.pick("int64", rank=1)
        program.add(f"M.product({name}, {other})", lambda v, s: np.outer(v[name], v[other]).reshape(-1))


def _moved(program: Program) -> None:
    name = program.pick(least=1)
    rank = program.rank(name)
    axis = program.choose.randrange(rank)
    order = program.choose.sample(range(rank), rank)
    twice = [2 if place == axis else 1 for place in range(rank)]
    by, pad = program.choose.choice([-1, 1, 2]), program.choose.choice([0, 1, 2])
    widths = [w for place in range(rank) for w in ((pad, 1) if place == axis else (0, 0))]
    size = program.choose.choice(["n", "m", "k"])
    made: list[tuple[str, Step]] = [
        (f"R.permute_dims({name}, {order})", lambda v, s: v[name].transpose(order)),
        (f"R.flip({name}, axis={axis})", lambda v, s: np.flip(v[name], axis)),
        (f"R.tile({name}, {twice})", lambda v, s: np.tile(v[name], twice)),
        (f"R.repeat({name}, repeats=2, axis={axis})", lambda v, s: np.repeat(v[name], 2, axis)),
        (f"R.roll({name}, {by}, {axis})", lambda v, s: np.roll(v[name], by, axis)),
        (f"R.stack(({name}, {name}), axis={axis})", lambda v, s: np.stack([v[name], v[name]], axis)),
        (f"R.expand_dims({name}, axis=[{axis}])", lambda v, s: np.expand_dims(v[name], axis)),
        (f"R.split({name}, [1], axis={axis})[{by % 2}]", lambda v, s: np.split(v[name], [1], axis)[by % 2]),
        (
            f"R.nn.pad({name}, {widths})",
            lambda v, s: np.pad(v[name], [(pad, 1) if place == axis else (0, 0) for place in range(rank)]),
        ),
        (
            f"R.broadcast_to(R.expand_dims({name}, axis=[0]), ({size}, {', '.join(program.shape(name))}))",
            lambda v, s: np.broadcast_to(v[name], (s[size], *v[name].shape)),
        ),
    ]
    program.add(*program.choose.choice(made))


def _ordered(program: Program) -> None:
    name = program.pick("int64", least=1)
    axis = program.choose.randrange(program.rank(name))
    made: list[tuple[str, Step]] = [
        (f"R.cumsum({name}, axis={axis})", lambda v, s: np.cumsum(v[name], axis)),
        (f"R.sort({name}, axis={axis})", lambda v, s: np.sort(v[name], axis)),
        (
            f"R.where(R.greater({name}, c), {name}, R.negative({name}))",
            lambda v, s: np.where(v[name] > v["c"], v[name], -v[name]),
        ),
        (f'R.astype({name}, "int32")', lambda v, s: v[name].astype("int32")),
        (f'R.astype(R.greater({name}, c), "int64")', lambda v, s: (v[name] > v["c"]).astype("int64")),
        (f"R.minimum({name}, c)", lambda v, s: np.minimum(v[name], v["c"])),
    ]
    program.add(*program.choose.choice(made))


def _made(program: Program) -> None:
    size, other = program.choose.choice(_SIZES[:20]), program.choose.choice(_SIZES[:10])
    made: list[tuple[str, Step]] = [
        (f'R.arange(0, {size}, 1, "int64")', lambda v, s: np.arange(0, number(size, s))),
        (f'R.arange(1, {size}, 2, "int64")', lambda v, s: np.arange(1, number(size, s), 2)),
        (
            f'R.full(({size}, {other}), R.const(3, "int64"), "int64")',
            lambda v, s: np.full((number(size, s), number(other, s)), 3),
        ),
        (f'R.zeros(({size},), "int64")', lambda v, s: np.zeros(number(size, s), "int64")),
        (f'R.eye({size}, dtype="int64")', lambda v, s: np.eye(number(size, s), dtype="int64")),
    ]
    program.add(*program.choose.choice(made))


def _products(program: Program) -> None:
    first = program.pick("int64", least=1)
    inner = program.vector(first, -1)
    whole = [other for other in program.values if program.array(other).dtype == "int64"]
    others = [other for other in whole if program.rank(other) == 1 and _agree(program.vector(other, 0), inner)]
    others += [other for other in whole if program.rank(other) == 2 and _agree(program.vector(other, 0), inner)]
    if not others:
        raise ValueError("nothing to multiply by")
    other = program.choose.choice(others)
    program.add(f"R.matmul({first}, {other})", lambda v, s: np.matmul(v[first], v[other]))


def _floats(program: Program) -> None:
    name = program.pick("float64") if program.choose.random() < 0.6 else program.pick(*WHOLE)
    rank, base = program.rank(name), f'R.astype({name}, "float64")'
    axis = program.choose.randrange(rank) if rank else None
    made: list[tuple[str, Step]] = [
        (f"R.tanh({base})", lambda v, s: np.tanh(v[name].astype("float64"))),
        (f"R.floor({base} / 3.0)", lambda v, s: np.floor(v[name].astype("float64") / 3.0)),
    ]
    if axis is not None:
        made += [
            (f"R.mean(R.tanh({base}), axis={axis})", lambda v, s: np.tanh(v[name].astype("float64")).mean(axis)),
            (
                f"R.nn.softmax(R.tanh({base}), axis={axis})",
                lambda v, s: _softmax(np.tanh(v[name].astype("float64")), axis),
            ),
            (
                f"R.sum(R.tanh({base}), axis={axis}, keepdims=True)",
                lambda v, s: np.tanh(v[name].astype("float64")).sum(axis, keepdims=True),
            ),
        ]
    program.add(*program.choose.choice(made))


def _softmax(array: Array, axis: int) -> Array:
    if array.size == 0:
        return array
    exponentials = np.exp(array - array.max(axis, keepdims=True))
    return exponentials / exponentials.sum(axis, keepdims=True)


STEPS: list[Callable[[Program], None]] = [
    *[_slices, _slices, _slices, _index, _binary, _binary, _binary, _scaled, _concat, _concat, _reshape, _reshape],
    *[_broadcast, _reduction, _reduction, _arguments_of_extremes, _take, _branch, _loop, _cast, _kernel, _kernel],
    *[_private, _private, _moved, _moved, _ordered, _made, _products, _floats],
]


def made(seed: int) -> Program:
    """The program of a seed."""
    choose = random.Random(seed)
    points = [dict(zip("nmk", sizes, strict=True)) for sizes in POINTS]
    parameters = [name for name in _PARAMETERS if name == "c" or choose.random() < 0.6]
    numbers = np.random.default_rng(seed)
    values: dict[str, list[Array | None]] = {name: [] for name in parameters}
    for sizes in points:
        for name in parameters:
            dims, dtype = _PARAMETERS[name]
            shape = tuple(number(dim, sizes) for dim in dims)
            values[name].append(np.asarray(numbers.integers(-9, 20, shape)).astype(dtype))
    program = Program(choose, points, values, parameters)
    told = {dim for name in parameters for dim in _PARAMETERS[name][0]}
    program.sizes_given = not told >= {"n", "m", "k"} or choose.random() < 0.3
    wanted, tries = len(values) + choose.randint(3, 8), 0
    while len(program.values) < wanted and tries < 200:
        tries += 1
        before = len(program.lines)
        try:
            choose.choice(STEPS)(program)
        except (ValueError, IndexError):
            del program.lines[before:]
    names = [*program.values]
    program.returned = names[-1:] + choose.sample(names[:-1], choose.choice([0, 1, 2]))
    if choose.random() < 0.4:
        try:
            types = [program.type_of(name) for name in program.returned]
            program.result = " -> " + (types[0] if len(types) == 1 else f"R.Tuple({', '.join(types)})")
        except ValueError:
            program.result = ""
    return program
