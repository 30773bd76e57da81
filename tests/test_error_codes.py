"""The table of error codes beside the source: the same codes, the same classes, messages that the source makes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import weft
from weft import errors
from weft.error_codes import ERROR_CODES, ErrorCode
from weft.errors import WeftError

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ("src/weft", "ir", "target", "script", "transform", "codegen", "runtime", "frontend", "testing")
CODE = re.compile(r"W\d{3}")
HOLE = "…"


@cache
def sources() -> tuple[ast.Module, ...]:
    """The files of the library that name a code, but for the table itself."""
    paths = (path for folder in LIBRARY for path in sorted((ROOT / folder).rglob("*.py")))
    texts = (path.read_text(encoding="utf-8") for path in paths if not path.is_symlink())
    return tuple(ast.parse(text) for text in texts if re.search(r'"W\d{3}"', text) and "_TABLE: dict" not in text)


def is_code(value: ast.AST) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and bool(CODE.fullmatch(value.value))


def test_every_code_of_the_source_has_a_row_and_every_row_occurs() -> None:
    used = {node.value for tree in sources() for node in ast.walk(tree) if is_code(node)}  # type: ignore[attr-defined]
    assert sorted(used - set(ERROR_CODES)) == []
    assert sorted(set(ERROR_CODES) - used) == []


def test_the_rows_are_in_order_and_lie_in_the_ranges_of_their_classes() -> None:
    codes = list(ERROR_CODES)
    assert codes == sorted(codes)
    starts = sorted({row.kind.default_code for row in ERROR_CODES.values()})
    for row in ERROR_CODES.values():
        assert row.kind.default_code == max(start for start in starts if start <= row.code), row.code


def raised() -> Iterator[tuple[str, ast.Call]]:
    """Every call that is given a code, with the code."""
    for tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for value in (*node.args, *(item.value for item in node.keywords)):
                    if is_code(value):
                        yield value.value, node  # type: ignore[attr-defined]


def test_errors_are_made_with_codes_of_their_classes() -> None:
    checked = 0
    for code, call in raised():
        made = getattr(errors, getattr(call.func, "id", ""), None)
        if isinstance(made, type) and issubclass(made, WeftError):
            checked += 1
            assert issubclass(made, ERROR_CODES[code].kind), f"line {call.lineno}: {made.__name__} with {code}"
    assert checked > 400


def texts(value: ast.expr, assigned: dict[str, list[ast.expr]]) -> Iterator[str]:
    """What an expression may be as a text, with a mark for what differs from case to case."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in value.values)
    elif isinstance(value, ast.IfExp):
        yield from texts(value.body, assigned)
        yield from texts(value.orelse, assigned)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for left in [*texts(value.left, assigned)] or [HOLE]:
            yield from (left + right for right in [*texts(value.right, assigned)] or [HOLE])
    elif isinstance(value, ast.Name):
        for other in assigned.get(value.id, ()):
            yield from texts(other, {})


@cache
def messages() -> dict[str, set[str]]:
    """Code -> the messages of calls with it, as patterns; variables count with what their function gives them."""
    found: dict[str, set[str]] = defaultdict(set)
    for tree in sources():
        for scope in ast.walk(tree):
            if not isinstance(scope, (ast.FunctionDef, ast.Module)) or not any(map(is_code, ast.walk(scope))):
                continue
            assigned: dict[str, list[ast.expr]] = defaultdict(list)
            inside = list(ast.walk(scope))
            for node in inside:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    assigned[node.targets[0].id].append(node.value)
            for node in inside:
                values = [*node.args, *(item.value for item in node.keywords)] if isinstance(node, ast.Call) else []
                codes = [text for value in values for text in texts(value, {}) if CODE.fullmatch(text)]
                said = {text for value in values for text in texts(value, assigned) if codes and " " in text}
                for code in codes:
                    found[code] |= said
    return found


def is_made(row: ErrorCode) -> bool:
    """Whether the source makes the example: a message with the code, perhaps after the name of an operator or file."""
    patterns = (re.escape(text).replace(HOLE, ".*") for text in messages().get(row.code, ()))
    return any(re.fullmatch(rf"(?:[\w.]+: )?{pattern}", row.example, re.DOTALL) for pattern in patterns)


def test_examples_are_messages_that_the_source_makes() -> None:
    """Where it makes any in sight of the code; and only codes of errors of others have no example."""
    wrong = [row.code for row in ERROR_CODES.values() if row.example and messages().get(row.code) and not is_made(row)]
    assert wrong == []
    assert sum(1 for row in ERROR_CODES.values() if is_made(row)) > 300
    bare = {row.code for row in ERROR_CODES.values() if not row.example}
    assert bare <= {cls.default_code for cls in (WeftError, *WeftError.__subclasses__())}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("W110", "@R.function\ndef main(x: R.Tensor((2,))):\n    return c\n"),
        ("W111", "@T.prim_func\ndef main(x: T.Buffer((2,))):\n    x[0] = T.expp(x[1])\n"),
        ("W201", "@R.function\ndef main(x: R.Tensor((3,)), y: R.Tensor((4,))):\n    return R.add(x, y)\n"),
    ],
)
def test_an_example_is_what_a_user_sees(code: str, text: str) -> None:
    with pytest.raises(WeftError) as caught:
        weft.parse(text)
    assert (caught.value.code, caught.value.message) == (code, ERROR_CODES[code].example)
