"""Errors: positions in characters, one screen of text, JSON."""

from __future__ import annotations

import json
import logging
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.__main__ import main
from weft.command.report import say
from weft.errors import ShapeError, Source, Span, WeftError
from weft.support.logs import start

TEXT = "first\nzwölf = añb + c\nlast"


def test_positions_count_characters_from_one() -> None:
    span = Span(Source("file.py", TEXT), TEXT.index("añb"), TEXT.index("añb") + 3)
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 9, 2, 12)
    assert (span.filename, span.source.offset(2, 9)) == ("file.py", TEXT.index("añb"))


def test_the_text_shows_place_caret_notes_and_hint() -> None:
    span = Span(Source("file.py", TEXT), TEXT.index("añb"), TEXT.index("añb") + 3)
    error = ShapeError("expected (2,), got (3,)", span=span, notes=["a is 3 long"], hint="reshape it")
    assert str(error).splitlines() == [
        "W200: expected (2,), got (3,)",
        " --> file.py:2:9",
        "  |",
        "2 | zwölf = añb + c",
        "  |         ^^^",
        "note: a is 3 long",
        "hint: reshape it",
    ]


def test_json_has_everything_a_tool_needs() -> None:
    span = Span(Source("file.py", TEXT), 0, 5)
    data = ShapeError("wrong", code="W201", span=span, hint="fix").to_json()
    assert data == {
        "code": "W201",
        "message": "wrong",
        "file": "file.py",
        "line": 1,
        "column": 1,
        "end_line": 1,
        "end_column": 6,
        "notes": [],
        "hint": "fix",
    }


def test_a_span_made_by_a_pass_names_it() -> None:
    span = Span(Source("file.py", TEXT), 0, 5).derived("LegalizeOps")
    assert "(made by LegalizeOps)" in span.render()


def test_an_error_keeps_its_first_place() -> None:
    first, second = Span(Source("a", "x"), 0, 1), Span(Source("b", "y"), 0, 1)
    assert ShapeError("wrong", span=first).at(second).span is first
    assert ShapeError("wrong").at(second).span is second


OBEYED = ("\x1b[2J", "\x9b", "\r", "\x00", "\u202e", "\u2028", "\ud800")
PIECES = ("a", "b c", "\t", *OBEYED, "name" * 30, "x" * 30_000, "word " * 9_000)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@settings(max_examples=40, deadline=None)
@given(message=TEXTS, notes=st.lists(TEXTS, max_size=30), hint=TEXTS, line=TEXTS, name=TEXTS)
def test_a_message_is_about_a_screen_and_shows_no_control_characters(
    message: str, notes: list[str], hint: str, line: str, name: str
) -> None:
    span = Span(Source(name, f"{line}END\n"), len(line), len(line) + 3)
    error = ShapeError(message, span=span, notes=notes, hint=hint)
    text = str(error)
    assert len(text) < 16_000
    assert len(text.splitlines()) < 60
    kinds = {unicodedata.category(char) for char in text if char not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    rows = text.split("\n")
    place = next(index for index, row in enumerate(rows) if row.lstrip().startswith("--> "))
    source, caret = rows[place + 2], rows[place + 3]
    assert source[caret.index("^") : caret.rindex("^") + 1] == "END"
    assert len(json.dumps(error.to_json())) < 100_000


def test_what_is_left_out_is_counted() -> None:
    error = ShapeError(f"the name {'a' * 100_000} is unknown")
    assert str(error) == (f"W200: the name {'a' * 40}...(99940 characters left out)...{'a' * 20} is unknown")
    assert "(11 lines left out)" in str(ShapeError("line\n" * 39))
    assert "(5 notes left out)" in str(ShapeError("x", notes=["note"] * 15))


@pytest.mark.parametrize(
    "text",
    [
        "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return " + "y" * 100_000 + "\n",
        "@R.function\ndef f(x: R.Tensor((2,), '" + "float" * 20_000 + "')):\n    return x\n",
        "@R.function\ndef f(x: R.Tensor((" + "9" * 4_000 + ",), 'float32')):\n    return R.nn.nothing(x)\n",
        "@R.function\ndef f(x: R.Tensor((2,), 'float32\\x1b[31m')):\n    return x\n",
        "@R.function\ndef f(x: R.Tensor(('" + "n + " * 20_000 + "n',), 'float32')):\n    return R.nn.nothing(x)\n",
    ],
)
def test_errors_about_long_and_odd_names_fit_a_screen(text: str) -> None:
    with pytest.raises(WeftError) as caught:
        weft.parse(text)
    assert len(str(caught.value)) < 4_000
    assert "\x1b" not in str(caught.value)


def test_json_on_a_terminal_shows_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", "no\x9b\u202efile.py"]) == 1
    out = capsys.readouterr().out
    assert not {"\x9b", "\u202e"} & set(out)
    assert json.loads(out)[0]["file"] == "no\x9b\u202efile.py"


def test_log_lines_show_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("weft")
    handlers, level = list(logger.handlers), logger.level
    try:
        start("info")
        logger.warning("compiled %s", "f\x1b[2J")
    finally:
        logger.handlers, logger.level = handlers, level
    assert capsys.readouterr().err == "weft: compiled f\\x1b[2J\n"


def test_words_about_names_show_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x9b31mname\u202e")
    assert capsys.readouterr().out == "\\x9b31mname\\u202e\n"


@pytest.mark.parametrize("way", ["interpreter", "native", "vm"])
def test_assertions_and_the_names_of_compiled_programs_are_printable(way: str) -> None:
    """What a text says is shown on terminals, which obey control characters."""
    text = (
        "@T.prim_func\ndef k(a: T.Buffer((4,), 'float32')):\n"
        "    assert a[0] > T.float32(1), '\x1b[2Jgone'\n    a[0] = T.float32(2)"
    )
    module = weft.IRModule({"na\x1bme": weft.parse(text)})  # type: ignore[dict-item]
    made = weft.interpret(module) if way == "interpreter" else weft.compile(module, executor=way)
    with pytest.raises(AssertionError) as caught:
        made["na\x1bme"](np.zeros(4, "float32"))
    assert str(caught.value) == r"\x1b[2Jgone"
    assert way == "interpreter" or repr(made) == r"<Executable of na\x1bme>"
    assert "\x1b" not in repr(made["na\x1bme"])


def test_one_long_line_is_held_once() -> None:
    source = Source("file.py", "x" * 5000 + "\nshort")
    assert source.line_text(1) is source.line_text(1)
    assert (len(source.line_text(1)), source.line_text(2)) == (5000, "short")
