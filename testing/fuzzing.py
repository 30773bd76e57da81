"""Many random programs through passes, targets and checks of one's own.

    fuzz(passes=[MyPass()], count=200)             well formed, readable, same meaning after the pass
    fuzz(targets=["llvm", "c"], count=50)          compiled, they agree with the interpreter
    fuzz(check=lambda module: ...)                 anything else that must hold of every module

A failure is data: its seed makes the module again (`weft.testing.random_module(seed)`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import field
from typing import Any

from weft.ir.module import IRModule
from weft.runtime.device.guards import guarded
from weft.support.records import dataclass
from weft.testing.checks import check_round_trip, check_well_formed
from weft.testing.meaning import compare_random, random_module, runner

__all__ = ["FuzzFailure", "FuzzReport", "fuzz"]


@dataclass(frozen=True)
class FuzzFailure:
    """One seed at which something does not hold: under which pass, target or check, and what it said."""

    seed: int
    where: str
    error: BaseException = field(compare=False)

    @property
    def kind(self) -> str:
        """What went wrong without names and numbers, for grouping."""
        first = str(self.error).splitlines()[0] if str(self.error) else ""
        return f"{type(self.error).__name__} " + re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+", "#", first)[:100]

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.where}: {type(self.error).__name__}: {self.error}"


@dataclass(frozen=True)
class FuzzReport:
    """What a run found: how many seeds, how many results were compared, and the failures."""

    count: int
    compared: int
    failures: tuple[FuzzFailure, ...] = ()

    def __str__(self) -> str:
        head = f"{self.count} seeds, {self.compared} results compared, {len(self.failures)} failures"
        return "\n".join([head, *map(str, self.failures[:5])])

    def assert_clean(self) -> None:
        """AssertionError with the first failures, unless there are none."""
        if self.failures:
            raise AssertionError(str(self)) from self.failures[0].error


Work = tuple[str, Callable[[IRModule, int], int]]


def _through_pass(item: Callable[[IRModule], IRModule]) -> Callable[[IRModule, int], int]:
    def work(module: IRModule, seed: int) -> int:
        after = item(module)
        check_well_formed(after)
        check_round_trip(after)
        return compare_random(module, runner(after), seed)

    return work


def _through_target(target: Any) -> Callable[[IRModule, int], int]:
    return lambda module, seed: compare_random(module, runner(module, target), seed)


def _works(
    passes: Sequence[Callable[[IRModule], IRModule]],
    targets: Sequence[Any],
    check: Callable[[IRModule], object] | None,
) -> Iterator[Work]:
    for item in passes:
        yield f"pass {getattr(item, 'name', item)}", _through_pass(item)
    for target in targets:
        yield f"target {target}", _through_target(target)
    if check is not None:
        yield "check", lambda module, seed: 0 * bool(check(module))


def fuzz(
    *,
    passes: Sequence[Callable[[IRModule], IRModule]] = (),
    targets: Sequence[Any] = (),
    check: Callable[[IRModule], object] | None = None,
    count: int = 100,
    start: int = 0,
    bindings: int = 15,
    stop: int = 20,
    guard: bool = False,
) -> FuzzReport:
    """Run `count` random modules, from seed `start`, through each pass, each target and a check.

    After a pass a module must be well formed, read back from its text and compute what it computed; compiled for a
    target it must compute what the interpreter says; `check` fails by raising. Stops after `stop` failures. The report
    says how many results were compared (some modules have none at the sizes tried). With `guard`, compiled programs
    work in guarded memory (`weft.runtime.device.guards`): a write beside a buffer is a failure, one far away ends the
    process.

    >>> import weft
    >>> report = fuzz(passes=[weft.transform.FoldConstant()], count=3)
    >>> report.count, report.failures
    (3, ())
    """
    works = list(_works(passes, targets, check))
    failures: list[FuzzFailure] = []
    compared = done = 0
    for seed in range(start, start + count):
        module = random_module(seed, bindings=bindings)
        for where, work in works:
            try:
                with guarded() if guard else nullcontext():
                    compared += work(module, seed)
            except Exception as error:
                failures.append(FuzzFailure(seed, where, error))
        done += 1
        if len(failures) >= stop:
            break
    return FuzzReport(done, compared, tuple(failures))
