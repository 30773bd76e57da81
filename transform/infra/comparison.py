"""The comparison of two modules on small random inputs.

Used by WEFT_CHECK=3 and by tests. Inputs come from `generators.arguments`; functions that are impure are not compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.ir import Function, IRModule
from weft.ir.interpret import interpret
from weft.ir.structure.references import reached_from
from weft.support.providers import provider
from weft.transform.infra.generators.arguments import random_arguments
from weft.transform.infra.generators.choices import SeededChoices

__all__ = ["comparable_functions", "first_difference", "needed_for", "results_differ"]

TRIALS = 3


def comparable_functions(old: IRModule, new: IRModule) -> Iterator[str]:
    """The public pure graph functions that both modules have with equally many parameters."""
    for name, function in new.functions.items():
        before = old.functions.get(name)
        if not isinstance(function, Function) or not isinstance(before, Function):
            continue
        if before.pure and not before.private and len(before.params) == len(function.params):
            yield name


def first_difference(old: IRModule, new: IRModule, name: str, trials: int = TRIALS) -> str | None:
    """What differs when both modules' function runs on the same random inputs, or None.

    Inputs on which the first module fails are passed over: there is nothing to compare with.
    """
    function = old[name]
    assert isinstance(function, Function)
    for trial in range(trials):
        try:
            arguments = random_arguments(function, SeededChoices(trial + zlib.crc32(name.encode())))
        except ArgumentError:
            return None
        try:
            expected = _run(old, name, arguments)
        except Exception:  # whatever it was, it was so before
            continue
        try:
            actual = _run(new, name, arguments)
        except Exception as error:
            return f"on inputs {_shapes(arguments)} it fails now: {error}"
        if results_differ(expected[0], actual[0]):
            where = _first_binding(expected[1], actual[1])
            given = f"on inputs {_shapes(arguments)} it gave {_short(expected[0])}, now {_short(actual[0])}"
            return given if where is None else f"{given}; {where}"
    return None


Values = list[tuple[str, Any]]
"""What each binding of a run gave, by name."""


def _first_binding(before: Values, after: Values) -> str | None:
    """The first binding of a name that both runs have whose values differ, in words."""
    known: dict[str, Any] = {}
    for name, value in before:
        known.setdefault(name, value)
    seen: set[str] = set()
    for name, value in after:
        if name in known and name not in seen and results_differ(known[name], value):
            return f"the first binding that differs is {name!r}: {_short(known[name])}, now {_short(value)}"
        seen.add(name)
    return None


def _run(module: IRModule, name: str, arguments: list[Any]) -> tuple[Any, Values]:
    copies = [np.array(value) if isinstance(value, np.ndarray) else value for value in arguments]
    with np.errstate(all="ignore"):
        return interpret(module, functions=_own)[name](*copies, trace=True)


def _own(name: str) -> Any:
    """weft's own function of a name, such as what `R.linalg` and `R.fft` become; those of the user are not run."""
    return provider("registered")(name) if name.startswith("weft.") else None


def needed_for(module: IRModule, name: str) -> IRModule:
    """The module with a function and what it refers to, and nothing else."""
    reached = reached_from(module, [name])
    return module.with_functions({key: function for key, function in module.items() if key in reached})


def results_differ(a: Any, b: Any) -> bool:
    """Whether two results differ by more than the rounding of a reordered computation."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) != len(b) or any(map(results_differ, a, b))
    if callable(a) and callable(b):
        return False  # functions are not compared by what they would do
    left, right = np.asarray(a), np.asarray(b)
    if left.shape != right.shape or left.dtype != right.dtype:
        return True
    if left.dtype.kind != "f":
        return not np.array_equal(left, right)
    tolerance = 1e-2 if left.dtype.itemsize == 2 else 1e-4
    return not np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)


def _shapes(arguments: list[Any]) -> str:
    return "(" + ", ".join(str(getattr(value, "shape", value)) for value in arguments) + ")"


def _short(value: Any) -> str:
    text = np.array2string(np.asarray(value), threshold=8) if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) < 200 else text[:197] + "..."
