"""Random valid programs over symbolic sizes, made together with what NumPy computes: slices, broadcasts, reshapes,
concatenations, splits, and annotations and declared results that relate sizes.

Each program is right for the sizes that it is made with (a step that NumPy refuses there is left out, and every claim
holds), so that weft may refuse hardly any: nothing but what is false for those sizes as weft reads it, such as a symbol
that is 1 by chance in a broadcast.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import weft
from weft import WeftError

Array = np.ndarray[Any, Any]
HEAD = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function
    def main({parameters}){result}:
"""
PARAMETERS = {"x": ("n",), "y": ("n", 3), "z": ("m",), "u": ("n", "m"), "w": (3,)}


@dataclass
class Program:
    """Lines of a script, and the values that NumPy gives for them at sizes n and m."""

    choose: random.Random
    sizes: dict[str, int]
    values: dict[str, Array]
    lines: list[str] = field(default_factory=list)

    def add(self, text: str, value: Array) -> None:
        name = f"v{len(self.lines)}"
        claim = f': R.Tensor({self.claim(value)}, "int64")' if self.choose.random() < 0.3 else ""
        self.lines.append(f"{name}{claim} = {text}")
        self.values[name] = value

    def claim(self, value: Array) -> str:
        """The shape of a value, with expressions over n and m that are right for the sizes."""
        dims = [self.choose.choice(self.names_of(size)) for size in value.shape]
        return "(" + ", ".join(dims) + ("," if len(dims) == 1 else "") + ")"

    def names_of(self, size: int) -> list[str]:
        n, m = self.sizes["n"], self.sizes["m"]
        named = {"n": n, "m": m, "n - 1": n - 1, "n - 2": n - 2, "2 * n": 2 * n, "n + m": n + m, "n * m": n * m}
        return [f'"{text}"' for text, value in named.items() if value == size] or [str(size)]

    def text(self) -> str:
        parameters = ", ".join(f'{name}: R.Tensor({_shape(dims)}, "int64")' for name, dims in PARAMETERS.items())
        last = f"v{len(self.lines) - 1}"
        result = f' -> R.Tensor({self.claim(self.values[last])}, "int64")' if self.choose.random() < 0.5 else ""
        body = [*self.lines, f"return {last}"]
        return HEAD.format(parameters=parameters, result=result) + "".join(f"        {line}\n" for line in body)


def _shape(dims: tuple[Any, ...]) -> str:
    return "(" + ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims) + ",)"


def _slice(program: Program, name: str) -> tuple[str, Array]:
    cuts = ["1:", ":-1", "1:-1", ":1", "-1:", ":2", "-2:", "::2", "n - 1:", ":n - 1", ":8", "1:3"]
    cut = program.choose.choice(cuts)
    array = program.values[name]
    if cut in ("n - 1:", ":n - 1") and array.shape[0] != program.sizes["n"]:
        cut = "1:"
    return f"{name}[{cut}]", eval(f"array[{cut}]", {"array": array, "n": program.sizes["n"]})  # one of `cuts`


def _binary(program: Program, name: str) -> tuple[str, Array]:
    other = program.choose.choice([*program.values])
    a, b = program.values[name], program.values[other]
    return f"{name} - {other}", a - b


def _reshape(program: Program, name: str) -> tuple[str, Array]:
    array = program.values[name]
    shape = program.choose.choice([(-1,), (1, -1), (-1, 1), array.shape[::-1]])
    text = ", ".join(str(dim) if dim in (-1, 1) else program.names_of(dim)[0].strip('"') for dim in shape)
    return f"R.reshape({name}, ({text},))", array.reshape(shape)


def _concat(program: Program, name: str) -> tuple[str, Array]:
    other = program.choose.choice([*program.values])
    return f"R.concat(({name}, {other}), axis=0)", np.concatenate([program.values[name], program.values[other]])


def _split(program: Program, name: str) -> tuple[str, Array]:
    which = program.choose.randrange(2)
    return f"R.split({name}, [1], axis=0)[{which}]", np.split(program.values[name], [1])[which]


def _squeeze(program: Program, name: str) -> tuple[str, Array]:
    return f"R.squeeze({name}[:1], axis=[0])", program.values[name][0]


STEPS: list[Callable[[Program, str], tuple[str, Array]]] = [
    _slice,
    _slice,
    _binary,
    _binary,
    _binary,
    _reshape,
    _concat,
    _split,
    _squeeze,
]


def made(seed: int) -> Program:
    choose = random.Random(seed)
    n = choose.randint(4, 7)
    sizes = {"n": n, "m": choose.choice([n, n, n - 1, choose.randint(4, 7)])}
    values = {
        name: np.arange(int(np.prod(shape)), dtype="int64").reshape(shape) + position
        for position, (name, dims) in enumerate(PARAMETERS.items())
        for shape in [tuple(sizes.get(str(dim), dim) for dim in dims)]
    }
    program = Program(choose, sizes, values)  # type: ignore[arg-type]
    wanted = choose.randint(2, 6)
    while len(program.lines) < wanted:
        name = choose.choice([*program.values])
        if program.values[name].ndim == 0:
            continue
        try:
            text, value = choose.choice(STEPS)(program, name)
        except (ValueError, IndexError):  # NumPy refuses it
            continue
        if value.size < 4000 and value.ndim <= 3:
            program.add(text, value)
    return program


def outcome(program: Program, compiled: bool) -> str:
    """ "right", "wrong", or why the program is refused."""
    try:
        module = weft.parse(program.text())
        run = weft.compile(module)["main"] if compiled else weft.interpret(module)["main"]
        got = run(*(program.values[name] for name in PARAMETERS))
    except WeftError as error:
        return f"{error.code}: {error.message}"
    want = program.values[f"v{len(program.lines) - 1}"]
    return "right" if got.shape == want.shape and np.array_equal(got, want) else "wrong"


def measure(seeds: range, *, compiled: bool = False) -> dict[int, str]:
    """What is not right among the programs of some seeds: python -m tests.systems.test_random_claims."""
    found = {seed: outcome(made(seed), compiled) for seed in seeds}
    return {seed: what for seed, what in found.items() if what != "right"}


def test_hardly_any_valid_program_is_refused_and_none_is_wrong() -> None:
    refused = measure(range(300))
    assert "wrong" not in refused.values()
    assert len(refused) < 6, refused


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_compiled_programs_are_what_numpy_computes(seed: int) -> None:
    assert outcome(made(seed), compiled=True) == "right"
