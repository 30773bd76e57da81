"""The benchmarks work: every case reads, and what is compared are equal computations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import compile_time
import rivals
from shared.cases import Case, cases, module_of

ALL = list(cases())
QUICK = [case for case in ALL if case.arrays is not None and sum(np.prod(item.shape) for item in case.inputs) < 100_000]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_case_reads_and_states_its_result(case: Case) -> None:
    function = module_of(case)["main"]
    assert isinstance(function, weft.ir.Function)
    assert [param.name for param in function.params] == [f"x{index}" for index in range(len(case.inputs))]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_a_case_computes_what_its_formula_over_numpy_does(case: Case) -> None:
    row = rivals.measure(case, 1, ["numpy"], 0.001)
    assert row.notes == []
    assert set(row.times) == {"weft", "numpy"}
    assert row.speed == pytest.approx(row.times["numpy"] / row.times["weft"])


def test_a_result_that_differs_is_noted_and_not_timed() -> None:
    wrong: dict[str, Any] = {**QUICK[0].__dict__, "arrays": lambda xp, a, b: xp.matmul(b, a) + 1}
    row = rivals.measure(Case(**wrong), 1, ["numpy"], 0.001)
    assert "numpy" not in row.times
    assert row.notes[0].startswith("numpy: AssertionError")


def test_the_table_has_a_row_for_each_case_and_a_mean_for_each_group() -> None:
    rows = [
        rivals.Row("g", f"case {index}", 1, {"weft": 1.0, "numpy": speed}) for index, speed in enumerate((2.0, 8.0))
    ]
    text = rivals.table(rows)
    assert "| g | case 0 | 1 | 2.00 |" in text
    assert "| g | 1 | 4.00 | 2.00 |" in text


@pytest.mark.parametrize("case", list(compile_time.chosen()), ids=lambda case: case.name)
def test_what_is_compiled_for_its_time_reads(case: Case) -> None:
    assert isinstance(module_of(case)["main"], weft.ir.Function)


def test_a_row_of_compile_times_has_every_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    row = compile_time.measure(next(compile_time.chosen()), [], 1)
    assert min(row.cold, row.again, row.first, row.file_kib) > 0
    assert row.notes == []
    text = compile_time.table([row], 1.0)
    assert text.count("\n") == 5
    assert "one addition" in text


def test_compile_times_of_rivals_that_are_not_there_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> float:
        raise ImportError

    def broken(*_: object) -> float:
        raise RuntimeError

    monkeypatch.setattr(compile_time, "RIVALS", {"absent": absent, "broken": broken, "there": lambda *_: 2.0})
    row = compile_time.measure(next(compile_time.chosen()), ["absent", "broken", "there"], 2)
    assert row.rivals == {"there": 2.0}
    assert row.notes == ["broken: RuntimeError"]
