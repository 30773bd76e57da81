"""Damaged scripts: whatever is changed in a valid text, reading gives a node or a WeftError, nothing else."""

from __future__ import annotations

import ast
import copy
import random
from typing import Any

import pytest
from tests.script.reader.tvm.test_spellings import PAIRS, PEER
from tests.script.test_round_trip import GRAPH, MODULE, PRIM, graph, prim

import weft
from weft.script import parse

CORPUS = [
    *(graph(body) for body in GRAPH.values()),
    *(prim(body) for body in PRIM.values()),
    *(text for pair in PAIRS.values() for text in pair),
    MODULE,
    PEER,
]
INSERTS = [
    "x",
    "A",
    "n",
    "i",
    "0",
    "-1",
    "1.5",
    '"n"',
    "None",
    "True",
    "()",
    "[]",
    "{}",
    "R",
    "T",
    "cls",
    "cls.f",
    "R.Any",
    "T.int64",
    "lambda: x",
    "float('nan')",
    "10**20",
    "T.Buffer",
    "R.Tensor",
    "R.exp(x)",
    "T.exp(1.0)",
    "f'{x}'",
    "...",
    "x.shape",
    "A.data",
    "A[0]",
    "A[0:4]",
    "(x, x)",
    "R.const(1)",
    "R.shape([n])",
    '"float32"',
    "x if x else x",
    "b''",
    "x < x",
    "not x",
    "T.Ramp(0, 1, 4)",
    "T.grid(2)",
    "range(3)",
    "{x: 1}",
    "[x for x in x]",
    "x @ x",
    "1 / 0",
    "1 << -1",
    "(-8) ** 0.5",
    "T.handle",
    "R.Tuple()",
    "T.call_extern()",
    "R.call_tir()",
    "T.float32",
    "R.nn",
    "x[x]",
    "T.min_value('handle')",
]
TREES = [ast.parse(text) for text in CORPUS]
EXPRESSIONS = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.expr)]
STATEMENTS = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.stmt)]


class _Damage(ast.NodeTransformer):
    """Replaces one expression or statement, chosen by its number."""

    def __init__(self, choose: random.Random, target: ast.AST) -> None:
        self.choose = choose
        self.target = target

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST] | None:
        if node is not self.target:
            return self.generic_visit(node)
        kind = self.choose.randrange(4)
        if isinstance(node, ast.stmt):
            other = copy.deepcopy(self.choose.choice(STATEMENTS))
            return [None, [node, copy.deepcopy(node)], other, [other, node]][kind]  # type: ignore[list-item]
        if kind < 2:
            return ast.parse(self.choose.choice(INSERTS), mode="eval").body
        return copy.deepcopy(self.choose.choice(EXPRESSIONS))


def damaged(seed: int) -> str:
    """A text of the corpus in which one or two parts are replaced, doubled or removed."""
    choose = random.Random(seed)
    tree: Any = copy.deepcopy(choose.choice(TREES))
    for _ in range(choose.randint(1, 2)):
        targets = [node for node in ast.walk(tree) if isinstance(node, (ast.expr, ast.stmt))]
        if targets:
            tree = _Damage(choose, choose.choice(targets)).visit(tree)
    for node in ast.walk(tree):  # an emptied body is still a body
        if isinstance(getattr(node, "body", None), list) and not node.body and not isinstance(node, ast.Module):  # type: ignore[attr-defined]
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
    try:
        return ast.unparse(tree)
    except Exception:  # some trees cannot be written
        return ""


def outcome(text: str) -> str:
    """ "read" or the code of the error."""
    try:
        parse(text)
    except weft.WeftError as error:
        str(error)
        return error.code
    return "read"


@pytest.mark.parametrize("chunk", range(6))
def test_damaged_text_gives_a_node_or_a_named_error(chunk: int) -> None:
    outcomes = {outcome(damaged(seed)) for seed in range(chunk * 400, chunk * 400 + 400)}
    assert len(outcomes) > 5, outcomes


def test_cut_text_gives_a_node_or_a_named_error() -> None:
    for end in range(0, len(MODULE), 7):
        outcome(MODULE[:end])
