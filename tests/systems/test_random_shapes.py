"""Random programs with symbolic shapes against NumPy: nothing is accepted and then wrong.

A program is a chain of operators over tensors whose sizes are symbols and expressions of symbols. For random values of
the symbols, what weft computes must be what NumPy computes, in shape and value, or be refused where NumPy refuses too
or where a size of 1 would have to be stretched (which weft decides from types alone). The deduced shapes must be
NumPy's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import ShapeError, WeftError
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import evaluate
from weft.ir.interpret import interpret

Array = np.ndarray[Any, Any]
SYMBOLS = ("n", "m")
SIZES = ("n", "m", "n", "m", "1", "2", "4", "n + 1", "2 * n", "n * m", "n + m")
HEAD = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function
    def main(s: R.Shape(["n", "m"]), {parameters}):
        n = T.int64()
        m = T.int64()
{lines}
        return {result}
"""


@dataclass
class Program:
    """Lines of a script, and the same steps in NumPy; `values` grows as the steps run."""

    parameters: list[tuple[str, tuple[str, ...]]]
    lines: list[str] = field(default_factory=list)
    steps: list[Callable[[dict[str, Array], dict[str, int]], Array]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.parameters] + [f"v{index}" for index in range(len(self.lines))]

    def text(self) -> str:
        parameters = ", ".join(f'{name}: R.Tensor({_shape(dims)}, "int64")' for name, dims in self.parameters)
        lines = "\n".join(f"        v{index} = {line}" for index, line in enumerate(self.lines))
        return HEAD.format(parameters=parameters, lines=lines, result=self.names[-1])

    def arguments(self, symbols: dict[str, int]) -> dict[str, Array]:
        found = {}
        for position, (name, dims) in enumerate(self.parameters):
            shape = tuple(number(dim, symbols) for dim in dims)
            found[name] = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape) % 7 + position
        return found


def _shape(dims: tuple[str, ...]) -> str:
    return "(" + ", ".join(dim if dim.isdigit() else f'"{dim}"' for dim in dims) + ("," if len(dims) == 1 else "") + ")"


def number(dim: str, symbols: dict[str, int]) -> int:
    return int(eval(dim, {"__builtins__": {}}, dict(symbols)))  # a text of SIZES


def _binary(r: random.Random, program: Program) -> tuple[str, Any]:
    a, b = r.choice(program.names), r.choice(program.names)
    name = r.choice(["add", "multiply", "subtract", "maximum"])
    return f"R.{name}({a}, {b})", lambda v, s: getattr(np, name)(v[a], v[b])


def _matmul(r: random.Random, program: Program) -> tuple[str, Any]:
    a, b = r.choice(program.names), r.choice(program.names)
    return f"R.matmul({a}, {b})", lambda v, s: np.matmul(v[a], v[b])


def _reshape(r: random.Random, program: Program) -> tuple[str, Any]:
    a = r.choice(program.names)
    dims = [r.choice(SIZES) for _ in range(r.randint(1, 3))]
    if r.random() < 0.6:
        dims[r.randrange(len(dims))] = "-1"
    return f"R.reshape({a}, ({', '.join(dims)},))", lambda v, s: _reshaped(v[a], [number(dim, s) for dim in dims])


class Undecided(Exception):
    """NumPy cannot say what weft can: n where an array without elements has the sizes -1 and 0, and -1 stands for n."""


def _reshaped(value: Array, shape: list[int]) -> Array:
    if -1 in shape and 0 in shape and value.size == 0:
        raise Undecided
    return value.reshape(shape)


def _broadcast(r: random.Random, program: Program) -> tuple[str, Any]:
    a = r.choice(program.names)
    dims = [r.choice(SIZES) for _ in range(r.randint(1, 3))]
    text = f"R.broadcast_to({a}, ({', '.join(dims)},))"
    return text, lambda v, s: np.broadcast_to(v[a], [number(dim, s) for dim in dims])


def _concat(r: random.Random, program: Program) -> tuple[str, Any]:
    a, b, axis = r.choice(program.names), r.choice(program.names), r.randint(-1, 1)
    return f"R.concat(({a}, {b}), axis={axis})", lambda v, s: np.concatenate([v[a], v[b]], axis)


def _stack(r: random.Random, program: Program) -> tuple[str, Any]:
    a, b, axis = r.choice(program.names), r.choice(program.names), r.randint(-1, 1)
    return f"R.stack(({a}, {b}), axis={axis})", lambda v, s: np.stack([v[a], v[b]], axis)


def _sum(r: random.Random, program: Program) -> tuple[str, Any]:
    a, axis, keep = r.choice(program.names), r.randint(-1, 1), r.random() < 0.5
    return f"R.sum({a}, axis={axis}, keepdims={keep})", lambda v, s: v[a].sum(axis, keepdims=keep)


def _permute(r: random.Random, program: Program) -> tuple[str, Any]:
    a = r.choice(program.names)
    return f"R.permute_dims({a})", lambda v, s: v[a].transpose()


def _squeeze(r: random.Random, program: Program) -> tuple[str, Any]:
    a, axis = r.choice(program.names), r.randint(-1, 1)
    return f"R.squeeze({a}, axis=[{axis}])", lambda v, s: v[a].squeeze(axis)


def _expand(r: random.Random, program: Program) -> tuple[str, Any]:
    a, axis = r.choice(program.names), r.randint(-1, 1)
    return f"R.expand_dims({a}, axis={axis})", lambda v, s: np.expand_dims(v[a], axis)


def _slice(r: random.Random, program: Program) -> tuple[str, Any]:
    a, axis = r.choice(program.names), r.randint(0, 1)
    begin, end = r.choice(["0", "1", "n - 1", "-2"]), r.choice(["n", "m", "2", "-1", "n + m"])
    step = r.choice([1, 1, 2])
    text = f"R.strided_slice({a}, axes=[{axis}], begin=[{begin}], end=[{end}], strides=[{step}])"
    return text, lambda v, s: v[a][(slice(None),) * axis + (_checked(v[a], axis, begin, end, step, s),)]


def _checked(value: Array, axis: int, begin: str, end: str, step: int, symbols: dict[str, int]) -> slice:
    if axis >= value.ndim:
        raise ValueError("no such axis")
    return slice(number(begin, symbols), number(end, symbols), step)


def _tile(r: random.Random, program: Program) -> tuple[str, Any]:
    a, count = r.choice(program.names), r.choice(["2", "n", "m + 1"])
    return f"R.tile({a}, ({count}, 1))", lambda v, s: np.tile(v[a], (number(count, s), 1))


def _repeat(r: random.Random, program: Program) -> tuple[str, Any]:
    a, axis = r.choice(program.names), r.randint(-1, 1)
    return f"R.repeat({a}, repeats=2, axis={axis})", lambda v, s: np.repeat(v[a], 2, axis)


STEPS = [
    _binary,
    _binary,
    _binary,
    _matmul,
    _reshape,
    _reshape,
    _broadcast,
    _concat,
    _concat,
    _stack,
    _sum,
    _permute,
    _squeeze,
    _expand,
    _slice,
    _tile,
    _repeat,
]


def grown(seed: int) -> Program:
    """A program of two to six steps; steps that reading refuses are left out (and judged by `refusal_is_right`)."""
    r = random.Random(seed)
    parameters = [(f"x{index}", tuple(r.choice(SIZES) for _ in range(r.randint(1, 3)))) for index in range(2)]
    program = Program(parameters)
    for _ in range(r.randint(2, 6)):
        for _ in range(12):
            line, step = r.choice(STEPS)(r, program)
            trial = Program(parameters, [*program.lines, line], [*program.steps, step])
            try:
                weft.parse(trial.text())
            except WeftError as error:
                refusal_is_right(trial, error)
                continue
            program = trial
            break
    return program


def reference(program: Program, symbols: dict[str, int]) -> dict[str, Array] | None:
    """All values in NumPy; None where NumPy refuses."""
    values = program.arguments(symbols)
    try:
        for index, step in enumerate(program.steps):
            values[f"v{index}"] = np.asarray(step(values, symbols))
    except (ValueError, IndexError, np.exceptions.AxisError):
        return None
    return values


def _takes(program: Program, symbols: dict[str, int]) -> bool:
    try:
        return reference(program, symbols) is not None
    except Undecided:
        return True


def refusal_is_right(program: Program, error: WeftError) -> None:
    """What is refused for its sizes fails in NumPy for some symbol values."""
    if error.code not in ("W201", "W210"):  # a number of dimensions or an axis: no question of sizes
        return
    choices = [{"n": n, "m": m} for n in range(5) for m in range(5)]
    if all(_takes(program, symbols) for symbols in choices):
        found = [reference(program, symbols) for symbols in choices if min(symbols.values()) > 1]
        if all(values is not None and _stretches(program, values, {}) for values in found):
            return
        raise AssertionError(f"refused, but NumPy takes it for all sizes:\n{program.text()}\n{error}")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**9), n=st.integers(0, 5), m=st.integers(0, 5))
def test_a_random_program_is_what_numpy_computes_or_is_refused(seed: int, n: int, m: int) -> None:
    """D3, D5: in the interpreter."""
    program, symbols = grown(seed), {"n": n, "m": m}
    _agree(program, symbols, interpret(weft.parse(program.text())))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_program_is_what_numpy_computes_when_compiled(seed: int) -> None:
    """D3, D5: one compiled function for all sizes."""
    program = grown(seed)
    run = weft.compile(weft.parse(program.text()))["main"]
    for n in range(4):
        for m in range(4):
            _agree(program, {"n": n, "m": m}, run)


def _agree(program: Program, symbols: dict[str, int], run: Callable[..., Any]) -> None:
    module = weft.parse(program.text())
    try:
        expected = reference(program, symbols)
    except Undecided:
        return
    arguments = program.arguments(symbols)
    try:
        got = run((symbols["n"], symbols["m"]), *arguments.values())
    except ShapeError as error:
        if expected is not None and not _stretches(program, expected, symbols):
            raise AssertionError(f"NumPy takes this with {symbols}:\n{program.text()}") from error
        return
    assert expected is not None, f"NumPy refuses this with {symbols}:\n{program.text()}"
    for binding in module["main"].body.blocks[0].bindings:  # type: ignore[union-attr]
        dims = dims_of(binding.var.ty)
        assert dims is not None
        assert tuple(evaluate(dim, symbols) for dim in dims) == expected[binding.var.name].shape, program.text()
    result = expected[program.names[-1]]
    assert got.shape == result.shape
    assert got.tolist() == result.tolist(), f"{program.text()}\n{symbols}"


def _stretches(program: Program, values: dict[str, Array], symbols: dict[str, int]) -> bool:
    """Whether some step meets a size of 1 that no type states, or no elements: weft asks for equal sizes there."""
    return any(1 in value.shape or value.size == 0 for value in values.values()) or 1 in symbols.values()
