"""More random programs over symbolic sizes beside what NumPy computes: branches, callbacks, views of memory, several
results, slices of several axes, parameters that relate their sizes. What `test_random_claims` makes is in them too.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.systems import test_random_claims as claims

import weft
from weft import WeftError

Array = np.ndarray[Any, Any]
PARAMETERS: dict[str, tuple[Any, ...]] = {**claims.PARAMETERS, "p": ("n + m",), "q": ("2 * n", "m"), "c": ()}
KERNELS = """
    @T.prim_func(private=True)
    def windowed(a: T.Buffer(("s + 1",), "int64"), b: T.Buffer(("s",), "int64")):
        v = T.decl_buffer((s,), "int64", data=a.data, elem_offset=1)
        for i in range(s):
            b[i] = v[i] * 3 - a[i]

    @T.prim_func(private=True)
    def turned(a: T.Buffer(("s", "t"), "int64"), b: T.Buffer(("t", "s"), "int64")):
        for i, j in T.grid(t, s):
            with T.block("turned"):
                vi, vj = T.axis.remap("SS", [i, j])
                r = T.match_buffer(a[vj, vi : vi + 1], (1,), "int64", strides=("q",))
                b[vi, vj] = r[0] + 1

    @R.function(pure=False)
    def main("""
HEAD = claims.HEAD.replace("\n    @R.function\n    def main(", KERNELS)


@dataclass
class Program(claims.Program):
    """A program with some results."""

    results: int = 1

    def names_of(self, size: int, known: tuple[str, ...] | None = None) -> list[str]:
        n, m = self.sizes["n"], self.sizes["m"]
        named = {"n // 2": n // 2, "(n + m) // 2": (n + m) // 2, "3 * n": 3 * n, "m + 1": m + 1, "n * n": n * n}
        more = [f'"{text}"' for text, value in named.items() if value == size]
        return [*super().names_of(size, known), *more]

    def claim(self, value: Array, known: tuple[str, ...] | None = None) -> str:
        return super().claim(value, known) if value.ndim else "()"

    def text(self) -> str:
        """The script; half of them declare the types of the results, with symbols that only the body binds as well."""
        given = ", ".join(
            f'{name}: R.Tensor({claims._shape(dims) if dims else "()"}, "int64")' for name, dims in PARAMETERS.items()
        )
        names = [*self.values][-self.results :]
        types = [f'R.Tensor({self.claim(self.values[name])}, "int64")' for name in names]
        declared = types[0] if len(types) == 1 else f"R.Tuple({', '.join(types)})"
        result = f" -> {declared}" if self.choose.random() < 0.5 else ""
        body = "\n".join([*self.lines, f"return {', '.join(names)}"])
        return HEAD.format(parameters=given, result=result) + textwrap.indent(body, " " * 8) + "\n"

    def like(self, array: Array) -> str:
        """The name of a value of the same shape."""
        return self.choose.choice([name for name, value in self.values.items() if value.shape == array.shape])


def _branch(program: Program, name: str) -> tuple[str, Array]:
    array, other, made = program.values[name], program.like(program.values[name]), f"b{len(program.values)}"
    limit, sign = program.choose.randint(-5, 30), program.choose.choice("+-")
    test = f'R.greater(c, R.const({limit}, "int64"))'
    program.lines.append(f"if {test}:\n    {made} = {name} {sign} {other}\nelse:\n    {made} = {name} - 1")
    value = program.values[other]
    taken = array + value if sign == "+" else array - value
    return f"{made} + 0", taken if program.values["c"] > limit else array - 1


def _callback(program: Program, name: str) -> tuple[str, Array]:
    array = program.values[name]
    shape = program.claim(array)
    if program.choose.random() < 0.5:
        return f'R.call_packed("test.turned", {name}, ty_args=R.Tensor({shape}, "int64"))', array[::-1]
    return f'R.call_dps_packed("test.doubled", ({name},), out_ty=R.Tensor({shape}, "int64"))', array * 2


def _view(program: Program, name: str) -> tuple[str, Array]:
    array, size = program.values[name], f"{name}.shape[0]"
    if array.ndim == 1 and len(array) > 1:
        call = f'R.call_tir(M.windowed, ({name},), out_ty=R.Tensor(({size} - 1,), "int64"))'
        return call, array[1:] * 3 - array[:-1]
    if array.ndim != 2:
        raise ValueError("the kernels take vectors and matrices")
    return f'R.call_tir(M.turned, ({name},), out_ty=R.Tensor(({name}.shape[1], {size}), "int64"))', array.T + 1


def _slices(program: Program, name: str) -> tuple[str, Array]:
    array, n, m = program.values[name], program.sizes["n"], program.sizes["m"]
    cuts = [
        ":",
        "1:",
        "-2:",
        ":-1",
        "::2",
        "::-1",
        "n - 2:n",
        "n // 2:",
        "1:m",
        "m - 3:",
        ":n // 2",
        ":m - 1",
        "2:-1:2",
    ]
    text = ", ".join(program.choose.choice(cuts) for _ in array.shape)
    value = eval(f"array[{text}]", {"array": array, "n": n, "m": m})  # some of `cuts`
    if not value.size:
        raise ValueError("nothing is left")
    return f"{name}[{text}]", value


def _operator(program: Program, name: str) -> tuple[str, Array]:
    array, axis = program.values[name], program.choose.randrange(program.values[name].ndim)
    twice = [2 if place == axis else 1 for place in range(array.ndim)]
    return program.choose.choice(
        [
            (f"R.flip({name}, axis={axis})", np.flip(array, axis)),
            (f"R.cumsum({name}, axis={axis})", np.cumsum(array, axis)),
            (f"R.sum({name}, axis=[{axis}], keepdims=True)", array.sum(axis, keepdims=True)),
            (
                f"R.where(R.greater({name}, c), {name}, R.negative({name}))",
                np.where(array > program.values["c"], array, -array),
            ),
            (f"R.tile({name}, {twice})", np.tile(array, twice)),
            (f"R.expand_dims({name}, axis=[{axis}])", np.expand_dims(array, axis)),
            (f"R.stack(({name}, {name}), axis=0)", np.stack([array, array])),
        ]
    )


STEPS: list[Callable[[Any, str], tuple[str, Array]]] = [
    *claims.STEPS,
    *[_branch, _callback, _view, _slices, _slices, _operator, _operator],
]


def made(seed: int) -> Program:
    """The program of a seed."""
    choose = random.Random(seed)
    n = choose.randint(4, 7)
    sizes = {"n": n, "m": choose.choice([n, n - 1, choose.randint(4, 7)])}
    shapes = {
        name: tuple(eval(dim, dict(sizes)) if isinstance(dim, str) else dim for dim in dims)  # one of `PARAMETERS`
        for name, dims in PARAMETERS.items()
    }
    values = {name: np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1 for name, shape in shapes.items()}
    program = Program(choose, sizes, values, results=choose.randint(1, 3))
    wanted = len(values) + choose.randint(3, 7)
    while len(program.values) < wanted:
        name, before = choose.choice([name for name, value in program.values.items() if value.ndim]), len(program.lines)
        try:
            text, value = choose.choice(STEPS)(program, name)
        except (ValueError, IndexError):  # NumPy refuses it
            text, value = "", np.zeros(0)
        if 0 < value.size < 3000 and value.ndim <= 3 and np.abs(value).max() < 2**50:
            program.add(text, value)
        else:
            del program.lines[before:]
    return program


def outcome(program: Program, executor: str) -> str:
    """ "right", "wrong", or why the program is refused."""
    try:
        module = weft.parse(program.text())
        run = weft.interpret(module) if executor == "interpreter" else weft.compile(module, executor=executor)
        got = run["main"](*(program.values[name].copy() for name in PARAMETERS))
    except WeftError as error:
        return f"{error.code}: {error.message}"
    found = got if isinstance(got, tuple) else (got,)
    want = [program.values[name] for name in [*program.values][-program.results :]]
    same = [a.shape == b.shape and np.array_equal(a, b) for a, b in zip(found, want, strict=True)]
    return "right" if all(same) else "wrong"


@pytest.fixture(autouse=True)
def callbacks() -> Iterator[None]:
    """The functions that programs call out to."""

    def doubled(array: Array, out: Array) -> None:
        out[...] = array * 2

    weft.register_func("test.turned", lambda array: array[::-1].copy())
    weft.register_func("test.doubled", doubled)
    yield
    for name in ("test.turned", "test.doubled"):
        weft.runtime.unregister_func(name)


def test_hardly_any_program_is_refused_and_none_is_wrong() -> None:
    found = {seed: outcome(made(seed), "interpreter") for seed in range(60)}
    refused = {seed: what for seed, what in found.items() if what != "right"}
    assert "wrong" not in refused.values(), refused
    assert len(refused) < 3, refused


@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_compiled_programs_are_what_numpy_computes(seed: int, executor: str) -> None:
    assert outcome(made(seed), executor) == "right"
