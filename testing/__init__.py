"""What the author of a pass, a rule, a back end or an operator tests with: random programs, and what must hold of them.

    random_module(seed), random_kernel(seed)       programs that run on any arguments that fit
    random_arguments(function, seed)               arguments that fit a signature, sizes from 0 up
    assert_same_meaning(before, after)             two modules compute the same, up to rounding
    assert_round_trip(node)                        the text reads back as the node, with the same text and hash
    fuzz(passes=..., targets=...)                  many seeds through passes, targets and a check of one's own: a report
    check_part(target, label)                      a part of a target computes what it is given, or says why not
    check_operator(name)                           types, kernel, text and programs of an operator fit its reference
    strategies                                     the same generators for hypothesis, whose examples shrink

The reference interpreter is the judge. Files: `graphs`, `kernels`, `opaque`, `scalars` generate; `checks` states what
must hold of every module; `meaning` compares; `fuzzing` repeats; `conformance` tries parts, `operators` operators.
Decisions and arguments come from `transform.infra.generators`, which the checks of passes (`WEFT_CHECK=3`) draw from
too. Only `strategies` needs hypothesis (the extra `test`).
"""

from __future__ import annotations

from weft.testing.checks import check_round_trip as assert_round_trip
from weft.testing.conformance import PartReport, check_part
from weft.testing.fuzzing import FuzzFailure, FuzzReport, fuzz
from weft.testing.meaning import assert_same_meaning, random_arguments, random_kernel, random_module
from weft.testing.operators import check_operator

__all__ = [
    "FuzzFailure",
    "FuzzReport",
    "PartReport",
    "assert_round_trip",
    "assert_same_meaning",
    "check_operator",
    "check_part",
    "fuzz",
    "random_arguments",
    "random_kernel",
    "random_module",
]

if __name__ != "weft.testing":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.testing, not testing")
