"""The page of proofs is what the catalogue of faults, its outcomes and the tests say today."""

from __future__ import annotations

from tests.requirements import proofs


def test_the_page_is_up_to_date() -> None:
    assert proofs.page() == proofs.PAGE.read_text("utf-8"), "run python tests/requirements/proofs.py"


def test_what_proves_a_requirement_is_a_test_that_is_there() -> None:
    """A file that is named in the page exists, and defines the test."""
    root = proofs.ROOT
    missing = []
    for planted in proofs.faults().values():
        for test in (name for item in planted for name in item.tests):
            file, _, function = test.partition("[")[0].partition("::")
            if f"def {function}" not in (root / file).read_text("utf-8"):
                missing.append(test)
    assert missing == []


def test_every_requirement_is_stated_once_in_order() -> None:
    known = list(proofs.statements())
    assert known == sorted(known, key=lambda name: (name[0], int(name[1:])))
    assert len(known) == len((proofs.HERE / "statements.tsv").read_text("utf-8").splitlines())
