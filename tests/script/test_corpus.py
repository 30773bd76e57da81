"""A corpus of scripts as people write them, in the spellings of several releases of the field.

A file of `corpus/valid` holds units under `### name` lines; after `|` stand the codes of what the verifier says about
a unit, if it says anything. A file of `corpus/refused` holds units that are refused: `# error W110` marks the line and
the code. A file of `corpus/printed` holds units as weft prints them, to the last parenthesis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from weft.ir.graph import Call, Function, If, MatchCast, Tuple, Var, VarBinding
from weft.ir.node import Node
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, IterVar, PrimCall, PrimFunc, PrimVar, SeqStmt, Stmt

_CORPUS = Path(__file__).parent / "corpus"
_MARK = re.compile(r"# error (W\d+)")


def _units(folder: str) -> Iterator[tuple[str, str]]:
    for path in sorted((_CORPUS / folder).glob("*.txt")):
        head, text = "", []
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.startswith("### "):
                if head:
                    yield f"{path.stem}: {head}", "\n".join(text)
                head, text = line[4:].strip(), []
            else:
                text.append(line)
        yield f"{path.stem}: {head}", "\n".join(text).rstrip("\n") + "\n"


VALID = dict(_units("valid"))
REFUSED = dict(_units("refused"))
PRINTED = dict(_units("printed"))
_HEADER = "# weft-script 1\nfrom weft.script import ir as I, relax as R, tir as T\n\n\n"


# What a text states by itself; the rest (constants, operators, sequences) is part of it.
_PLACED = (Stmt, Function, PrimFunc, Var, PrimVar, Buffer, IterVar, VarBinding, MatchCast, Call, PrimCall, If, Tuple)


def _check_places(module: Node, text: str) -> None:
    """Every statement, variable, buffer and call knows where it stands."""
    for node in walk(module):
        if isinstance(node, _PLACED) and not isinstance(node, SeqStmt):
            span = node.span
            assert span is not None, f"{type(node).__name__} {getattr(node, 'name', '')}"
            assert span.source.text == text
            assert 0 <= span.start < span.end <= len(text)


@pytest.mark.parametrize("name", VALID)
def test_a_valid_unit_reads_verifies_and_reads_back(name: str) -> None:
    module = weft.parse(VALID[name])
    _check_places(module, VALID[name])
    _, _, expected = name.partition(" | ")
    assert {finding.code for finding in weft.verify(module)} == set(expected.split())
    text = module.script()
    again = weft.parse(text)
    assert weft.first_mismatch(module, again) is None
    assert again.script() == text
    assert weft.structural_hash(module) == weft.structural_hash(again)


@pytest.mark.parametrize("name", PRINTED)
def test_a_unit_is_printed_as_it_stands(name: str) -> None:
    assert weft.parse(PRINTED[name]).script().rstrip() == (_HEADER + PRINTED[name]).rstrip()


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_unit_is_refused_at_the_marked_line(name: str) -> None:
    text = REFUSED[name]
    marks = [(number, found[1]) for number, line in enumerate(text.split("\n"), 1) if (found := _MARK.search(line))]
    assert len(marks) == 1, "a unit has one mark"
    with pytest.raises(weft.WeftError) as caught:
        weft.parse(text)
    span = caught.value.span
    assert span is not None, caught.value
    assert (span.line, caught.value.code) == marks[0], caught.value


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    heads = Counter(name for folder in ("valid", "refused") for name, _ in _units(folder))
    assert [name for name, count in heads.items() if count > 1] == []
    assert len(VALID) >= 250
    assert len(REFUSED) >= 200
