"""Random valid programs over symbolic sizes, made together with what NumPy computes: slices, broadcasts, reshapes,
concatenations, splits, kernels, loops, calls of other functions, casts that name sizes, and annotations and declared
results that relate sizes.

Each program is right for the sizes that it is made with (a step that NumPy refuses there is left out, and every claim
holds), so that weft may refuse hardly any: nothing but what is false for those sizes as weft reads it, such as a symbol
that is 1 by chance in a broadcast.
"""

from __future__ import annotations

import random
import textwrap
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
    @T.prim_func(private=True)
    def mirrored(a: T.Buffer(("s",), "int64"), b: T.Buffer(("s",), "int64")):
        for i in range(s):
            b[i] = a[i] + a[s - 1 - i]

    @T.prim_func(private=True)
    def padded(a: T.Buffer(("s",), "int64"), b: T.Buffer(("s + 2",), "int64")):
        for i in range(s + 2):
            b[i] = T.if_then_else(i >= 1 and i <= s, a[i - 1], T.int64(-1))

    @R.function(private=True)
    def both(a: R.Tensor(("s",), "int64"), b: R.Tensor(("t",), "int64")):
        return R.concat((a, b)), (a[1:] - a[:-1], M.last(b))

    @R.function(private=True)
    def last(a: R.Tensor(("s + 1",), "int64")) -> R.Tensor(("s",), "int64"):
        return R.strided_slice(a, [0], [1], [s + 1])

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
        name = f"v{len(self.values)}"
        claimed = self.choose.random() < 0.3 and not text.startswith("R.match_cast")  # which states the type itself
        claim = f': R.Tensor({self.claim(value)}, "int64")' if claimed else ""
        self.lines.append(f"{name}{claim} = {text}")
        self.values[name] = value

    def claim(self, value: Array, known: tuple[str, ...] | None = None) -> str:
        """The shape of a value, with expressions over symbols, all or those that are known, right for the sizes."""
        dims = [self.choose.choice(self.names_of(size, known)) for size in value.shape]
        return "(" + ", ".join(dims) + ("," if len(dims) == 1 else "") + ")"

    def names_of(self, size: int, known: tuple[str, ...] | None = None) -> list[str]:
        n, m = self.sizes["n"], self.sizes["m"]
        named = {"n - 1": n - 1, "n - 2": n - 2, "2 * n": 2 * n, "n + m": n + m, "n * m": n * m}
        named |= {name: self.sizes[name] for name in known or self.sizes}
        return [f'"{text}"' for text, value in named.items() if value == size] or [str(size)]

    def text(self) -> str:
        parameters = ", ".join(f'{name}: R.Tensor({_shape(dims)}, "int64")' for name, dims in PARAMETERS.items())
        last = [*self.values][-1]
        result = (
            f' -> R.Tensor({self.claim(self.values[last], ("n", "m"))}, "int64")' if self.choose.random() < 0.5 else ""
        )
        body = [*self.lines, f"return {last}"]
        return HEAD.format(parameters=parameters, result=result) + textwrap.indent("\n".join(body), " " * 8) + "\n"


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


def _strided(program: Program, name: str) -> tuple[str, Array]:
    array, n, m = program.values[name], program.sizes["n"], program.sizes["m"]
    bounds = {"0": 0, "1": 1, "n": n, "m": m, "n - 1": n - 1, "m - 2": m - 2, "n + m": n + m, "-2": -2, **program.sizes}
    (begin, first), (end, last) = program.choose.choice([*bounds.items()]), program.choose.choice([*bounds.items()])
    step = program.choose.choice([1, 1, 2, -1])
    if not array[first:last:step].size:  # by their names the bounds may say one element, which is not there
        raise ValueError("nothing is left")
    return f"R.strided_slice({name}, [0], [{begin}], [{end}], [{step}])", array[first:last:step]


def _broadcast(program: Program, name: str) -> tuple[str, Array]:
    array = program.values[name]
    shape = (program.choose.choice([*program.sizes.values(), 2]), *array.shape)
    text = ", ".join(program.names_of(size)[0].strip('"') for size in shape)
    return f"R.broadcast_to({name}, ({text},))", np.broadcast_to(array, shape)


def _cast(program: Program, name: str) -> tuple[str, Array]:
    """Give a name to the first size of a value, or to what it is a sum or product of."""
    array, symbol = program.values[name], f"k{len(program.values)}"
    half = [("2 * {}", len(array) // 2)] if len(array) % 2 == 0 else []
    told, size = program.choose.choice([("{}", len(array)), ("{} + 1", len(array) - 1), *half])
    if size < 0:
        raise ValueError("a size below zero")
    program.sizes[symbol] = size
    rest = "".join(f", {dim}" for dim in array.shape[1:])
    return f'R.match_cast({name}, R.Tensor(("{told.format(symbol)}"{rest},), "int64"))', array


def _kernel(program: Program, name: str) -> tuple[str, Array]:
    array = program.values[name]
    if array.ndim != 1:
        raise ValueError("the kernels take vectors")
    size = f"{name}.shape[0]"
    if program.choose.random() < 0.5:
        return f'R.call_tir(M.mirrored, ({name},), out_ty=R.Tensor(({size},), "int64"))', array + array[::-1]
    return f'R.call_tir(M.padded, ({name},), out_ty=R.Tensor(({size} + 2,), "int64"))', np.pad(
        array, 1, constant_values=-1
    )


def _function(program: Program, name: str) -> tuple[str, Array]:
    """A part of the nested tuple that another function gives, which calls a third."""
    other = program.choose.choice([*program.values])
    a, b = program.values[name], program.values[other]
    if a.ndim != 1 or b.ndim != 1 or not len(a) or not len(b):
        raise ValueError("the function takes vectors that are not empty")
    part, value = program.choose.choice(
        [("[0]", np.concatenate([a, b])), ("[1][0]", a[1:] - a[:-1]), ("[1][1]", b[1:])]
    )
    return f"M.both({name}, {other}){part}", value


def _loop(program: Program, name: str) -> tuple[str, Array]:
    """A loop over the first size, which carries a tensor or collects rows."""
    array, carried = program.values[name], f"t{len(program.lines)}"
    if program.choose.random() < 0.5:
        first, step, value = f"{name} * 2", f"{carried} = {carried} + {name}[i] * i", array * 2
        for index, row in enumerate(array):
            value = value + row * index
    else:
        first, step = "[]", f"{carried}.append({name}[i] - {name})"
        value = np.stack([row - array for row in array])
    program.lines.append(f"{carried} = {first}\nfor i in range({name}.shape[0]):\n    {step}")
    return f"R.stack({carried})" if first == "[]" else f"{carried} + 1", value if first == "[]" else value + 1


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
    _strided,
    _strided,
    _broadcast,
    _cast,
    _cast,
    _kernel,
    _function,
    _function,
    _loop,
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


EXECUTORS = ("native", "vm")
INTERPRETER = ("interpreter",)


def outcome(program: Program, executor: str) -> str:
    """ "right", "wrong", or why the program is refused."""
    try:
        module = weft.parse(program.text())
        made = weft.interpret(module) if executor in INTERPRETER else weft.compile(module, executor=executor)
        got = made["main"](*(program.values[name] for name in PARAMETERS))
    except WeftError as error:
        return f"{error.code}: {error.message}"
    want = [*program.values.values()][-1]
    return "right" if got.shape == want.shape and np.array_equal(got, want) else "wrong"


def measure(seeds: range, executors: tuple[str, ...] = INTERPRETER) -> dict[tuple[int, str], str]:
    """What is not right among the programs of some seeds."""
    found = {(seed, executor): outcome(made(seed), executor) for seed in seeds for executor in executors}
    return {case: what for case, what in found.items() if what != "right"}


def test_hardly_any_valid_program_is_refused_and_none_is_wrong() -> None:
    refused = measure(range(300))
    assert "wrong" not in refused.values()
    assert len(refused) < 6, refused


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_compiled_programs_are_what_numpy_computes(seed: int) -> None:
    assert measure(range(seed, seed + 1), EXECUTORS) == {}
