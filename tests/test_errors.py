"""Errors: positions in characters, one screen of text, JSON."""

from __future__ import annotations

from weft.errors import ShapeError, Source, Span

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
