"""Coloured text on terminals and in notebooks."""

from __future__ import annotations

import io
import re

import pytest

from weft.script import parse, script_of, show, to_html

FUNCTION = parse(
    '@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    y = R.add(x, R.const(1.5, "float32"))\n    return y\n'
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def shown(stream: io.StringIO) -> str:
    show(FUNCTION, file=stream)
    return stream.getvalue()


def without_colours(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_a_pipe_gets_plain_text_that_parses() -> None:
    assert shown(io.StringIO()) == script_of(FUNCTION)


def test_a_terminal_gets_colours_over_the_same_text() -> None:
    text = shown(Terminal())
    assert "\x1b[32m" in text
    assert without_colours(text) == script_of(FUNCTION)


def test_no_color_and_force_color_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in shown(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in shown(Terminal())


def test_html_holds_the_same_text() -> None:
    import html

    text = to_html(FUNCTION)
    assert html.unescape(re.sub("<[^>]*>", "", text)) == script_of(FUNCTION)
    assert "<span" in text
    assert FUNCTION._repr_html_() == text


def test_nodes_show_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    FUNCTION.show()
    assert capsys.readouterr().out == script_of(FUNCTION)
