"""Text of programs inside C, Makefiles and CMake files: one place that keeps it text, whatever is in it.

    literal   ::= '"' (plain | octal)* '"'      the UTF-8 bytes; plain is printable ASCII but `"`, `\\` and `?`
    octal     ::= '\\' three digits              of a fixed width, so that no digit after it joins it
    comment   ::= the text, which neither ends a comment nor continues a line
    word      ::= letters, digits and _ . / + - =    what a shell, make and CMake take as it is

`?` is written in octal because two of them start a trigraph: `??/` is a backslash in C99.
Errors: TargetError W743 for what is no word, or no C name.
"""

from __future__ import annotations

import re

from weft.errors import TargetError

__all__ = ["c_comment", "c_string", "check_model", "plain_word"]

_PLAIN = frozenset(range(32, 127)) - set(b'"\\?')
_WORD = re.compile(r"[\w./+=-]+", re.ASCII)


def c_string(text: str) -> str:
    r"""A C string literal of a text.

    >>> print(c_string('what??/ "é"'))
    "what\077\077/ \042\303\251\042"
    """
    content = text.encode("utf-8", "backslashreplace")
    return '"' + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in content) + '"'


def c_comment(text: str) -> str:
    r"""A comment of a text.

    >>> c_comment("float32[n*/m]"), c_comment("a??/")
    ('/* float32[n* /m] */', '/* a\\077\\077/ */')
    """
    inside = c_string(text)[1:-1].replace("*/", "* /").replace("/*", "/ *").replace("\\042", '"')
    return f"/* {inside} */"


def plain_word(text: str, what: str) -> str:
    """The text, if a shell, make and CMake take it as it is; TargetError W743 otherwise."""
    if not _WORD.fullmatch(text) or ".." in text.split("/"):
        hint = "letters, digits and _ . + - are"
        raise TargetError(f"c: {what} {text!r} cannot stand in build files", code="W743", hint=hint)
    return text


def check_model(name: str) -> str:
    """The name of a model, if C can have functions and files of that name; TargetError W743 otherwise."""
    if not (name.isidentifier() and name.isascii()):
        raise TargetError(f"c: {name!r} is no C name", code="W743")
    return name
