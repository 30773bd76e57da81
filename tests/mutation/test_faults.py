"""The faults stand on functions that exist, and the tool tells a fault that is noticed from one that is not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.mutation.catalogue import CATALOGUE
from tests.mutation.faults import Fault
from tests.mutation.run import ROOT, outcomes, survives

FILE = "tests/transform/infra/test_pipeline.py"
NOTICES = f"{FILE}::test_a_phase_is_a_name_and_a_later_one_brings_the_mandatory_ones_between"
CHEAP = f"{FILE}::test_an_empty_pipeline_returns_the_module_itself"


@pytest.mark.parametrize("fault", CATALOGUE, ids=lambda item: item.name)
def test_a_fault_replaces_a_function_and_names_tests_that_exist(fault: Fault) -> None:
    _, _, right = fault.original()
    assert fault.wrong(right) is not right
    assert fault.tests
    assert all(Path(ROOT / test.partition("::")[0]).is_file() for test in fault.tests)


def test_every_statement_has_a_fault() -> None:
    """H12: none is there without one, and none stands for a statement that is not there."""
    lines = (ROOT / "tests" / "requirements" / "statements.tsv").read_text("utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == list(dict.fromkeys(fault.statement for fault in CATALOGUE))


def test_outcomes_are_those_of_faults_that_are_there() -> None:
    assert set(outcomes()) <= {fault.name for fault in CATALOGUE}


def test_names_of_faults_are_their_own() -> None:
    assert len({fault.name for fault in CATALOGUE}) == len(CATALOGUE)


def test_the_tool_tells_what_is_noticed() -> None:
    fault = next(item for item in CATALOGUE if item.name == "a_later_phase_brings_nothing")
    assert not survives(dataclasses.replace(fault, tests=(NOTICES,)))
    assert survives(dataclasses.replace(fault, tests=(CHEAP,)))
