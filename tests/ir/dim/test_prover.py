"""The prover at length: families of identities, orders and non-identities, each member judged by counting as well.

A line is a pair of texts with parameters in braces; it stands for one statement per choice of the parameters. What
Python computes at all small values judges the table itself, so that a wrong line is found in the table and not in the
prover; z3, where it is installed, is a second judge.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import math
import re
import types
from typing import Any

import pytest

from weft.ir.dim import (
    Facts,
    counterexample,
    counterexample_le,
    evaluate,
    free_symbols,
    parse_dim,
    prove_equal,
    prove_le,
    prove_ne,
    symbol,
)

Statement = tuple[str, str]

SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33)
SMALL_OF_TWO = (0, 1, 2, 3, 5, 7, 8, 12, 17)
SMALL_OF_THREE = (0, 1, 2, 3, 4, 7)

IDENTITIES = """
{a} * n * {b}                              == n * {ab}
(n + {a}) * (m + {b})                      == n * m + {b} * n + {a} * m + {ab}
(n + {a}) ** 2 - (n - {a}) ** 2            == 4 * {a} * n
({a} * n) // {a}                           == n
({ab} * n) // {a}                          == {b} * n
({a} * n + m) // {a}                       == n + m // {a}
({a} * n + m) % {a}                        == m % {a}
(n + {ab}) // {a}                          == n // {a} + {b}
(n + {ab}) % {a}                           == n % {a}
n // {a} * {a} + n % {a}                   == n
n // {a} // {b}                            == n // {ab}
(n % {ab}) % {a}                           == n % {a}
(n // {a} % {b}) * {a} + n % {a}           == n % {ab}
n // {ab} * {b} + n // {a} % {b}           == n // {a}
(n + {a} - 1) // {a}                       == ceildiv(n, {a})
ceildiv({a} * n, {a})                      == n
ceildiv(ceildiv(n, {a}), {b})              == ceildiv(n, {ab})
(n + n // {a}) - n // {a}                  == n
(-n) // {a}                                == -ceildiv(n, {a})
(-n) % {a}                                 == ceildiv(n, {a}) * {a} - n
(n % {a} + m % {a}) % {a}                  == (n + m) % {a}
(n % {a} * m) % {a}                        == n * m % {a}
max(n, {a}) + min(n, {a})                  == n + {a}
max(n - {a}, 0) + min(n, {a})              == n
min(n, {a}) * {b}                          == min({b} * n, {ab})
max(n, {ab}) // {a}                        == max(n // {a}, {b})
min(n + {a}, m + {a})                      == min(n, m) + {a}
min(n // {a}, m // {a})                    == min(n, m) // {a}
max({a}, min(n, {a}))                      == {a}
min(n % {a}, {a})                          == n % {a}
{a} * max(n, m) - {a} * m                  == {a} * max(n - m, 0)
(n * {a} * m) // m                         == {a} * n
(n * m + {a} * m) // m                     == n + {a}
({ab} * n + {a} * m) // {a}                == {b} * n + m
({ab} * n) // ({a} * m)                    == ({b} * n) // m
n * {a} % (m * {a})                        == (n % m) * {a}
"""

DIFFERENT = """
{a} * n               != {b} * m
n + {a}               != {b} * n
n * n                 != {a} * n
n // {a}              != n // {a1}
n // {a} * {a}        != n
n % {a}               != n
n % {a}               != n % {a1}
(n + 1) // {a}        != n // {a} + 1
(n + m) // {a}        != n // {a} + m // {a}
(n + m) % {a}         != n % {a} + m % {a}
(n * m) // {a}        != (n // {a}) * m
n * {a} // {a1}       != n
ceildiv(n, {a})       != n // {a}
ceildiv(n, {a})       != n // {a} + 1
ceildiv(n, {a}) * {a} != n
ceildiv(n + m, {a})   != ceildiv(n, {a}) + ceildiv(m, {a})
(-n) // {a}           != -(n // {a})
(-n) % {a}            != n % {a}
min(n, {a})           != n
max(n, {a})           != n
min(n, {a})           != {a}
max(n, {a}) // {a1}   != max(n // {a1}, {a})
min(n, m) + {a}       != min(n + {a}, m)
max(n - {a}, 0)       != n - {a}
min(n % {a1}, {a} - 1) != n % {a1}
(n + {a}) ** 2        != n ** 2 + {a} ** 2
n // (m + {a})        != n // (m + {a1})
n % (m + {a})         != n % (m + {a1})
n * m // {a}          != n * m // {a1}
(n // {a}) // {b}     != n // ({a} + {b})
n // {a} + n % {a}    != n
max(n, m) * {a}       != max(n * {a}, m)
(n + {a}) * (m + {b}) != n * m + {ab}
max(n, m) // {a}      != max(n, m // {a})
"""

ORDERS = """
n // {a}                       <= n
n // {a1}                      <= n // {a}
n // {a} * {a}                 <= n
n                              <= ceildiv(n, {a}) * {a}
ceildiv(n, {a}) * {a}          <= n + {a} - 1
n % {a}                        <= {a} - 1
(n % {a}) * {b}                <= {ab} - {b}
min(n, {a})                    <= n
n                              <= max(n, {a})
n // {a} + m // {a}            <= (n + m) // {a}
ceildiv(n + m, {a})            <= ceildiv(n, {a}) + ceildiv(m, {a})
{a} * min(n, m)                <= {a} * n
2 * {a} * n                    <= n * n + {a} * {a}
min(n, {a}) + min(m, {b})      <= {a} + {b}
n // {a} * {a} + n % {a}       <= n
"""

HOLDS_BY_CHANCE = {("(-n) % 2", "n % 2"), ("(n // 2) // 2", "n // (2 + 2)")}

PARAMETERS = [(2, 2), (2, 4), (3, 2), (4, 3), (5, 7), (8, 4), (16, 8), (7, 3), (128, 2), (12, 5)]


def members(table: str, sign: str) -> list[Statement]:
    """Every line with every choice of the parameters that gives another text, without those that happen to hold."""
    found: dict[Statement, None] = {}
    for line in table.strip().splitlines():
        left, right = (side.strip() for side in line.split(f" {sign} "))
        for a, b in PARAMETERS:
            chosen = {"a": a, "b": b, "ab": a * b, "a1": a + 1}
            found[left.format(**chosen), right.format(**chosen)] = None
    return [statement for statement in found if sign != "!=" or statement not in HOLDS_BY_CHANCE]


EQUAL, UNEQUAL, ORDERED = members(IDENTITIES, "=="), members(DIFFERENT, "!="), members(ORDERS, "<=")


@functools.cache
def _code(text: str) -> types.CodeType:
    return compile(text, "<table>", "eval")


def python_value(text: str, values: dict[str, int]) -> int | None:
    """What Python makes of the text; None at a division by zero."""
    scope = {"ceildiv": lambda a, b: -(-a // b), "min": min, "max": max, "__builtins__": {}}
    try:
        return eval(_code(text), scope, dict(values))  # the text is the table's own
    except ZeroDivisionError:
        return None


def small_values(*texts: str) -> list[dict[str, int]]:
    """Many small values of all the symbols of the texts, those around the constants of the table included."""
    names = sorted({name for text in texts for name in re.findall(r"\b[nmk]\b", text)})
    choices = {0: (0,), 1: (*SMALL, 127, 128, 129, 255, 256, 257), 2: SMALL_OF_TWO, 3: SMALL_OF_THREE}[len(names)]
    return [dict(zip(names, point, strict=True)) for point in itertools.product(choices, repeat=len(names))]


def test_the_tables_hold_three_hundred_statements_each() -> None:
    assert len(EQUAL) >= 300
    assert len(UNEQUAL) >= 300
    assert len(ORDERED) >= 100


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_an_identity_is_proved(left: str, right: str) -> None:
    """D5: proved for all values, and true at small ones."""
    a, b = parse_dim(left), parse_dim(right)
    for values in small_values(left, right):
        expected = python_value(left, values), python_value(right, values)
        if None not in expected:
            assert expected[0] == expected[1] == evaluate(a, values) == evaluate(b, values)
    assert prove_equal(a, b) is True
    assert prove_equal(b, a) is True
    assert prove_ne(a, b) is False


@pytest.mark.parametrize(("left", "right"), UNEQUAL)
def test_what_is_no_identity_is_never_proved(left: str, right: str) -> None:
    """D5: numbers tell the two apart."""
    a, b = parse_dim(left), parse_dim(right)
    assert prove_equal(a, b) is not True
    values = counterexample(a, b)
    assert values is not None
    assert python_value(left, values) != python_value(right, values)


@pytest.mark.parametrize(("left", "right"), ORDERED)
def test_an_order_is_proved(left: str, right: str) -> None:
    a, b = parse_dim(left), parse_dim(right)
    for values in small_values(left, right):
        low, high = python_value(left, values), python_value(right, values)
        if low is not None and high is not None:
            assert low <= high
    assert prove_le(a, b) is True
    assert counterexample_le(a, b) is None


def test_a_long_chain_of_products_and_sums_stays_canonical() -> None:
    """Reordering 40 terms, each a product, gives the same dimension."""
    names = [symbol(f"s{index}") for index in range(12)]
    terms = [a * b + 3 * a - b for a, b in itertools.combinations(names, 2)][:40]
    forward = sum(terms, start=symbol("s0"))
    backward = sum(reversed(terms), start=symbol("s0"))
    assert prove_equal(forward, backward) is True


@pytest.mark.parametrize(
    ("facts", "left", "right", "verdict"),
    [
        (["n == 4 * q"], "n // 4 * 4", "n", True),
        (["n == 4 * q"], "n % 4", "0", True),
        (["n == 4 * q"], "n % 8", "0", None),
        (["n == m"], "n * m", "n ** 2", True),
        (["n == m + 1"], "n * n - m * m", "n + m", True),
        (["n * m == 12"], "m * n * 2", "24", True),
        (["n + m == 7"], "n + m + k", "k + 7", True),
        (["n <= 8"], "min(n, 8)", "n", True),
        (["n <= 8"], "min(n, 7)", "n", None),
        (["8 <= n"], "max(n, 8)", "n", True),
        (["n <= m"], "max(n, m)", "m", True),
        (["n <= m", "m <= n"], "n", "m", True),
        (["n + 1 <= m"], "n // m", "0", True),
        (["n + 1 <= m"], "n % m", "n", True),
        (["1 <= n", "n <= 1"], "n * m", "m", True),
        (["n % 2 == 0"], "n // 2 * 2", "n", True),
        (["n % 4 == 0"], "n // 2 * 2", "n", True),
        (["n % 4 == 2"], "n % 2", "0", True),
        (["n == 3", "m == 2 * n"], "m", "6", True),
        (["n == 3", "m == 2 * n"], "m", "7", False),
        (["n <= 3"], "n", "4", False),
    ],
)
def test_what_was_learnt_is_used(facts: list[str], left: str, right: str, verdict: bool | None) -> None:
    """D5: equalities from checks and `match_cast` decide later questions, and only those that they decide."""
    known = Facts()
    for fact in facts:
        sign = "==" if "==" in fact else "<="
        a, b = (parse_dim(side) for side in fact.split(sign))
        known = known.assume_equal(a, b) if sign == "==" else known.assume_le(a, b)
    a, b = parse_dim(left), parse_dim(right)
    assert prove_equal(a, b, known) is verdict
    names = sorted({*known.names, *free_symbols(a), *free_symbols(b)})
    agree = [
        evaluate(a, values) == evaluate(b, values)
        for point in itertools.product(range(13), repeat=len(names))
        if known.holds(values := dict(zip(names, point, strict=True))) and _defined(left, right, values)
    ]
    assert agree
    assert {True: all(agree), False: not any(agree), None: not all(agree)}[verdict]


def _defined(left: str, right: str, values: dict[str, int]) -> bool:
    return python_value(left, values) is not None and python_value(right, values) is not None


@pytest.mark.skipif(importlib.util.find_spec("z3") is None, reason="the second judge z3 is not installed")
def test_the_second_judge_finds_no_counter_example() -> None:
    """z3 on the same text: integers of at least 0, divisors of at least 1, one second for each."""
    z3: Any = importlib.import_module("z3")
    refuted = [statement for statement in EQUAL if _z3_refutes(z3, *statement)]
    assert refuted == []


def _z3_refutes(z3: Any, left: str, right: str) -> bool:
    names = sorted(set(re.findall(r"\b[nmk]\b", left + right)))
    variables = {name: z3.Int(name) for name in names}
    solver = z3.Solver()
    solver.set("timeout", 1000)
    solver.add(*(variable >= 0 for variable in variables.values()))
    if re.search(r"(//|%) \(?m", left + right):
        solver.add(variables["m"] >= 1)
    solver.add(_z3_term(z3, left, variables) != _z3_term(z3, right, variables))
    return solver.check() == z3.sat


def _z3_term(z3: Any, text: str, variables: dict[str, Any]) -> Any:
    """The text over z3's integers, whose division rounds down for a positive divisor as Python's does."""

    class Term:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __add__(self, other: Any) -> Term:
            return Term(self.value + _bare(other))

        def __sub__(self, other: Any) -> Term:
            return Term(self.value - _bare(other))

        def __mul__(self, other: Any) -> Term:
            return Term(self.value * _bare(other))

        def __rmul__(self, other: Any) -> Term:
            return Term(_bare(other) * self.value)

        def __rsub__(self, other: Any) -> Term:
            return Term(_bare(other) - self.value)

        def __radd__(self, other: Any) -> Term:
            return Term(_bare(other) + self.value)

        def __neg__(self) -> Term:
            return Term(-self.value)

        def __pow__(self, exponent: int) -> Term:
            return Term(math.prod([self.value] * exponent))

        def __floordiv__(self, other: Any) -> Term:
            return Term(self.value / _bare(other))

        def __mod__(self, other: Any) -> Term:
            return Term(self.value % _bare(other))

    def _bare(value: Any) -> Any:
        return value.value if isinstance(value, Term) else value

    def extremum(first_wins: Any) -> Any:
        return lambda a, b: Term(z3.If(first_wins(_bare(a), _bare(b)), _bare(a), _bare(b)))

    scope = {
        "ceildiv": lambda a, b: -((-a) // b),
        "min": extremum(lambda a, b: a <= b),
        "max": extremum(lambda a, b: a >= b),
        "__builtins__": {},
    }
    terms = {name: Term(variable) for name, variable in variables.items()}
    return _bare(eval(text, scope, terms))  # the text is the table's own


def test_a_sum_of_many_symbols_is_at_least_its_parts() -> None:
    total: Any = parse_dim(" + ".join(f"s{i}" for i in range(40)))
    done = total // 64 * 64
    assert prove_le(done + (total - done) // 16 * 16, total) is True
    assert prove_le(total, done) is not True


def test_a_sum_of_many_quotients_is_at_least_its_parts() -> None:
    total: Any = parse_dim(" + ".join(f"n // {i}" for i in range(1, 60)))
    assert prove_le(total // 64 * 64, total) is True
    assert prove_le(total // 64 * 64, total // 16 * 16) is True
    assert prove_le(total // 16 * 17, total) is not True
    assert prove_le(total // 16 * 16 + 1, total) is not True


def test_facts_about_a_product_of_many_symbols_leave_what_they_say_of_some() -> None:
    names = [f"n{i}" for i in range(16)]
    facts = Facts().assume_le(1, parse_dim(" * ".join(names)))
    for name in names:
        facts = facts.assume_le(1, symbol(name))
    assert prove_le(parse_dim("n3 + 1"), parse_dim("2 * n3"), facts) is True
    assert prove_le(2, parse_dim("n3 + n5"), facts) is True
    assert prove_le(3, parse_dim("n3 + n5"), facts) is not True


@pytest.mark.parametrize(
    "text", ["max(n - 3 * m // 5 - min(m, 9), 0)", "max(-(max(m - 3, -1) - min(n, m // 2)) // 2, 0)"]
)
def test_whole_multiples_of_a_divisor_are_at_most_the_dividend(text: str) -> None:
    size: Any = parse_dim(text)
    assert prove_le(16 * (size // 16), size) is True
    assert prove_le(16 * (size // 16) + 1, size) is not True
