"""Whether a part of a target does what it is given, or refuses it with a reason: the cases that plug-ins get wrong.

    report = check_part("host: llvm; npu: npu", "npu", programs=[mine], seeds=5)
    report.assert_clean()

What must hold, for every operator in `operators`, each in float32, float64, int8 and int32, plain and in dataflow, and
for some of them in other shapes:

    labelled      `R.exp(x, target="npu")` computes what the interpreter says, or is refused: a TargetError or
                  ArtifactError with its code that names the part, never an error of the plug-in's own insides
    whole         a function with the label: the same
    unlabelled    the compiler may give the part what it likes: the result is that of the interpreter
    random        random modules without labels: the same
    programs      the author's: each computes the same, and something of it went to the part

Results are computed into arrays that hold other values each time, so that what nobody wrote shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.codegen import compile, lower
from weft.errors import ArtifactError, TargetError, WeftError
from weft.ir.attrs import LABEL
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.runtime import Executable
from weft.script import parse
from weft.support.records import dataclass
from weft.target import Target
from weft.testing.fuzzing import FuzzFailure
from weft.testing.meaning import Program, compare, random_arguments, random_module, register_library
from weft.transform.infra.generators.arguments import copied
from weft.transform.target.labels import leaf_parts

__all__ = ["PartReport", "check_part"]

OPERATORS = (
    "R.exp(x)",
    "R.negative(x)",
    "R.add(x, y)",
    "R.multiply(x, x)",
    "R.matmul(x, y)",
    "R.sum(x, axis=[0])",
    "R.permute_dims(x)",
    "R.concat((x, y), axis=0)",
    'R.astype(x, "float32")',
    'R.matmul(x, y, out_dtype="int32")',
    "R.add(x, x)",
    "R.subtract(y, x)",
    'R.add(x, R.const(1, "{dtype}"))',
)
"""Calls on two square matrices; those that a type does not allow are left out."""
DTYPES = ("float32", "float64", "int8", "int32")
SQUARE = "(4, 4)", "(4, 4)"
SHAPES = (
    ("(4,)", "(4,)"),
    ("(2, 3, 4)", "(2, 3, 4)"),
    ("()", "()"),
    ("(0, 4)", "(0, 4)"),
    ('("n", 4)', '("n", 4)'),
    ("(4, 4)", "(4,)"),
    ("(4, 1)", "(1, 4)"),
)
"""Other shapes of the two operands: ranks, nothing, sizes that only the call knows, shapes that are broadcast."""


@dataclass(frozen=True)
class PartReport:
    """What a part did: how many programs it computed, how many it refused with a reason, and what was wrong."""

    computed: int
    refused: int
    failures: tuple[FuzzFailure, ...] = ()

    def __str__(self) -> str:
        head = f"{self.computed} computed, {self.refused} refused, {len(self.failures)} failures"
        return "\n".join([head, *map(str, self.failures[:5])])

    def assert_clean(self) -> None:
        """AssertionError with the first failures, unless there are none."""
        if self.failures:
            raise AssertionError(str(self)) from self.failures[0].error


def check_part(
    target: str,
    label: str,
    *,
    programs: Sequence[Program] = (),
    operators: Sequence[str] = OPERATORS,
    seeds: int = 3,
    executors: Sequence[str] = ("native", "vm"),
) -> PartReport:
    """Try a part of a target on the cases above; `programs` are those that it must take.

    >>> print(check_part("host: llvm; other: llvm", "other", operators=["R.exp(x)"], seeds=0, executors=["native"]))
    22 computed, 0 refused, 0 failures
    """
    part = dict(leaf_parts(Target(target)))[label]
    computed = refused = 0
    failures: list[FuzzFailure] = []
    for number, (where, module, must) in enumerate(_cases(label, operators, programs, seeds)):
        for executor in executors:
            try:
                if must:
                    _assert_taken(module, target, label)
                outcome = _tried(module, target, executor, number)
            except (ArtifactError, TargetError) as error:
                if not must and _says_why(error, label, part):
                    refused += 1
                    continue
                failures.append(FuzzFailure(number, f"{where}, {executor}", error))
            except Exception as error:
                failures.append(FuzzFailure(number, f"{where}, {executor}", error))
            else:
                computed += outcome is not None
    return PartReport(computed, refused, tuple(failures))


def _says_why(error: WeftError, label: str, part: Target) -> bool:
    """Whether an error is a refusal with a reason: it names the part, and is nothing that went wrong inside."""
    return f"{label!r}" in error.message or f"({part})" in error.message or str(part) in error.message


def _cases(
    label: str, operators: Sequence[str], programs: Sequence[Program], seeds: int
) -> Iterator[tuple[str, IRModule, bool]]:
    """(what it is, a module, whether the part must take it)."""
    for program in programs:
        module = program if isinstance(program, IRModule) else IRModule({program.name or "main": program})  # type: ignore[union-attr]
        yield f"the program of {', '.join(module)}", module, True
    for what, text in _all_texts(label, operators):
        try:
            module = parse(text)
        except WeftError:  # the operator does not take the types
            continue
        if isinstance(module, IRModule):
            yield what, module, False
    for seed in range(seeds):
        yield f"random module {seed}", random_module(seed, bindings=8), False


def _all_texts(label: str, operators: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(what it is, the text of a module): every operator in every type and form, some in other shapes."""
    for operator in operators:
        for dtype in DTYPES:
            for form, text in _texts(operator, dtype, SQUARE, label):
                yield f"{form} {operator} of {dtype}", text
    shaped = dict.fromkeys([*operators[:1], *({"R.add(x, y)", "R.subtract(y, x)"} & set(operators))])
    for operator in sorted(shaped):
        for shapes in SHAPES:
            for dtype in ("float32", "int8"):
                for form, text in _texts(operator, dtype, shapes, label):
                    if form in ("labelled", "unlabelled"):
                        yield f"{form} {operator} of {dtype} {' and '.join(shapes)}", text


def _texts(operator: str, dtype: str, shapes: tuple[str, str], label: str) -> Iterator[tuple[str, str]]:
    operator = operator.replace("{dtype}", dtype)
    labelled = f'{operator[:-1]}, target="{label}")'
    plain = "    z = {}\n    return z\n"
    dataflow = "    with R.dataflow():\n        z = {}\n        R.output(z)\n    return z\n"
    head = f'def main(x: R.Tensor({shapes[0]}, "{dtype}"), y: R.Tensor({shapes[1]}, "{dtype}")):\n'
    whole = f'    R.func_attr({{"target": "{label}"}})\n'
    bodies = {
        "labelled": plain.format(labelled),
        "labelled in dataflow": dataflow.format(labelled),
        "unlabelled": plain.format(operator),
    }
    for form, body in bodies.items():
        yield form, _module(f"@R.function\n{head}{body}")
    called = "@R.function(private=True)\n" + head.replace("def main", "def part") + whole + plain.format(operator)
    caller = f"@R.function\n{head}    cls = Module\n    z = cls.part(x, y)\n    return z\n"
    yield "a labelled function of", _module(called, caller)


def _module(*functions: str) -> str:
    lines = [f"    {line}" for function in functions for line in function.splitlines()]
    return "\n".join(["@I.ir_module", "class Module:", *lines])


def _assert_taken(module: IRModule, target: str, label: str) -> None:
    """Assert that the part gets some function of a module."""
    assigned = lower(module, target, stop="assign")
    mine = [name for name, function in assigned.items() if getattr(function, "attrs", {}).get(LABEL) == label]
    assert mine, f"nothing of {', '.join(module)} went to part {label!r}"


def _tried(module: IRModule, target: str, executor: str, seed: int) -> bool | None:
    """Compile and compare; None where there is nothing to compare."""
    register_library()
    made = compile(module, target, executor=executor)
    if not isinstance(made, Executable):
        return None
    for name, function in module.items():
        if isinstance(function, Function) and not function.private:
            for trial, fill in enumerate((0x00, 0x5A)):
                compare(module, _into_filled(made, fill), name, random_arguments(function, seed + trial))
    return True


def _into_filled(made: Executable, fill: int) -> Callable[..., Any]:
    """The run into arrays that hold something else: what nobody writes keeps it."""

    def filled(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(filled, value))
        return np.full(value.nbytes, fill, np.uint8).view(value.dtype).reshape(value.shape)

    def run(name: str, arguments: Sequence[Any]) -> Any:
        first = made[name](*copied(arguments))
        if not all(isinstance(item, np.ndarray) for item in (first if isinstance(first, tuple) else (first,))):
            return first
        return made[name](*copied(arguments), out=filled(first))

    return run
