"""What can go wrong while reading a script: the stable codes, limits and suggestions.

    W100  anything else                              W117  a symbol is used but not defined
    W101  not Python syntax                          W118  a name is defined twice
    W102  no source text to read                     W119  a name is not visible here (dataflow, branches)
    W103  a limit is exceeded (size, nesting)        W120  return missing, doubled or out of place
    W104  not a script unit                          W121  wrong number of indices or dimensions
    W110  undefined name                             W122  a recursive function needs a return annotation
    W111  unknown name in I, R or T                  W123  wrong type of an index, condition or stored value
    W116  no form in another reader's spelling       W124  a division by zero or a number out of range in a constant
    W113  wrong arguments of a form                  W150  a captured Python value cannot be used
    W114  the wrong kind of thing                    W151  a blob is missing or damaged
    W115  Python that the script does not read       W152  a number, string or dtype that cannot be read
                                                     W153  a captured Python function raised an exception

W130-W134 (calls) come from `weft.ir.deduction.infer`, W140-W143 (operators) from `weft.ir.op`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from weft.errors import ScriptError, Span
from weft.support.records import record

__all__ = ["Consequence", "Limits", "did_you_mean", "fail"]


class Consequence(ScriptError):
    """What cannot be read because something that it needs could not: that was reported where it stands."""


@record
class Limits:
    """How much a text may ask of the reader.

    `size` counts characters, `nesting` levels of expressions, `digits` decimal digits of an integer, `unrolled`
    statements and rounds of static loops and macros, `parts` elements of a constant tuple, list or string, `work`
    steps of everything that is computed while reading (see `weft.script.source.budget`).
    """

    size: int = 256 * 1024 * 1024
    nesting: int = 200
    digits: int = 400
    unrolled: int = 50_000
    parts: int = 1_000_000
    work: int = 5_000_000


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """A hint that names the closest known name, or None."""
    known = list(known)
    same = [one for one in known if one.lower() == name.lower()]  # `R.any` is nearer to `R.Any` than to `R.tan`
    close = same or difflib.get_close_matches(name, known, 1, 0.6)
    return f"did you mean `{prefix}{close[0]}`?" if close else None


def fail(
    code: str, message: str, span: Span | None = None, hint: str | None = None, notes: Iterable[str] = ()
) -> ScriptError:
    """The error to raise for a script."""
    return ScriptError(message, code=code, span=span, hint=hint, notes=notes)
