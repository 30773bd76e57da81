"""All errors of a text at once: what depends on an error is silent, what does not is reported."""

from __future__ import annotations

import pytest
from tests.script.reader.test_errors import CASES
from tests.script.test_mutations import CORPUS, damaged

import weft
from weft.script import parse, read_units

MODULE = """
@I.ir_module
class M:
    @T.prim_func
    def k(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float33")):
        for i in range(4):
            x[i, 0] = 1.0                           # W121
            y[i] = x[i]
        for j in T.grd(4):                          # W111
            x[j] = x[j]
        T.evalute(0)                                # W111

    @R.function
    def f(x: R.Tensor((2, 3), "float32"), y: R.Tnsor((4,))):
        a = R.add(x, q)                             # W110
        b = R.exp(a)
        c = R.nn.rel(x)                             # W140
        d = R.matmul(x, x)                          # W201
        e = R.add(y, x)
        for _ in range(3):
            g = R.reshape(x, (7,))                  # W201
        return R.add(b, d)

    @R.function
    def g(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            h = R.reshape(x, (7,))                  # W201
            m = R.nn.relu(h)
            R.output(m)
        s = R.match_cast(h, R.Tensor(("k",), "float32"))
        t = R.zeros((k,), "float32")
        u = cls.f(x)
        v = cls.missing(x)                          # W110
        w = cls.right(x, x)                         # W130
        return x + zz                               # W110

    @R.function
    def right(x: R.Tensor((2, 3), "float32")):
        return x
"""


def test_every_independent_error_of_a_unit_is_found_and_no_consequence() -> None:
    (unit,) = read_units(MODULE)
    found = [(error.span.line if error.span else 0, error.code) for error in unit.errors]
    stated = [(number, line.split("# ")[1]) for number, line in enumerate(MODULE.split("\n"), 1) if "# W" in line]
    assert sorted(found) == sorted([(5, "W301"), (14, "W140"), *stated])
    assert unit.value is unit.errors[0]


def test_each_unit_of_a_file_has_its_own_errors() -> None:
    text = "@R.function\ndef {}(x: R.Tensor((2,), 'int8')):\n    a = R.foo(x)\n    b = R.bar(a)\n    return b\n"
    first, second = read_units(text.format("f") + text.format("g"))
    assert [error.span.line for error in first.errors if error.span] == [3, 4]
    assert [error.span.line for error in second.errors if error.span] == [8, 9]


def test_what_is_certainly_wrong_with_several_functions_is_said_of_each() -> None:
    kernel = "    @T.prim_func\n    def {}(x: T.Buffer((4,), 'int8')):\n        x[4] = T.int8(1)\n"
    (unit,) = read_units("@I.ir_module\nclass M:\n" + kernel.format("a") + kernel.format("b"))
    assert [error.code for error in unit.errors] == ["W456", "W456"]


@pytest.mark.parametrize("name", CASES)
def test_the_first_error_is_that_of_reading_as_a_whole(name: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        parse(CASES[name][0])
    for unit in [] if caught.value.code == "W101" else read_units(CASES[name][0]):
        if isinstance(unit.value, weft.WeftError):
            assert unit.errors[0] is unit.value
            assert any(error.code == caught.value.code for error in unit.errors)


@pytest.mark.parametrize("text", CORPUS)
def test_right_units_have_no_errors(text: str) -> None:
    assert [unit.errors for unit in read_units(text)] == [()] * len(read_units(text))


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_damaged_units_give_errors_and_nothing_else(start: int) -> None:
    for seed in range(start, start + 100):
        try:
            parse(damaged(seed))
        except weft.WeftError as error:
            expected = error.code
            line = error.span.line if error.span is not None else 0
        else:
            continue
        lines = damaged(seed).splitlines()
        first = next((number for number, text in enumerate(lines, 1) if text.startswith("@")), 1)
        if expected in ("W101", "W104", "W103") or line < first:  # statements around units are no part of them
            continue
        for unit in read_units(damaged(seed)):
            if unit.errors:  # a file may hold what a text may not
                assert expected in [error.code for error in unit.errors], damaged(seed)
