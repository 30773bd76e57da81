"""Symbolic dimensions: canonical form, text, three-valued proofs, facts, solving (REQUIREMENTS D1, D5)."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product as cartesian
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weft import ShapeError
from weft.ir.dim import (
    Dim,
    DimExpr,
    Facts,
    as_dim,
    bounds,
    ceildiv,
    counterexample,
    counterexample_le,
    evaluate,
    floordiv,
    floormod,
    format_dim,
    free_symbols,
    fresh_name,
    is_symbolic,
    joined_axes,
    match_dims,
    maximum,
    minimum,
    operation,
    parse_dim,
    product,
    prove_equal,
    prove_le,
    prove_lt,
    prove_ne,
    prove_nonnegative,
    same,
    solve_for,
    substitute,
    symbol,
)

n, m, k = symbol("n"), symbol("m"), symbol("k")

NAMES = ("n", "m", "k")
GRID: list[dict[str, int]] = [
    dict(zip(NAMES, point, strict=True)) for point in cartesian((0, 1, 2, 3, 5, 8, 13), repeat=3)
]


def python_value(text: str, values: dict[str, int]) -> int | None:
    """What Python makes of the text: the meaning that `parse_dim` must keep; None at a division by zero."""
    scope = {"ceildiv": lambda a, b: -(-a // b), "min": min, "max": max, "__builtins__": {}}
    try:
        return eval(text, scope, dict(values))  # the tests' own text
    except ZeroDivisionError:
        return None


IDENTITIES = """
n * 2 * 4                      == 8 * n
(n + 1) * (n - 1)              == n * n - 1
(n + m) ** 2                   == n ** 2 + 2 * n * m + m ** 2
(n - m) * (n + m)              == n * n - m * m
(n + 1) ** 3                   == n ** 3 + 3 * n ** 2 + 3 * n + 1
n * m * k                      == k * m * n
n * (m + k)                    == n * m + n * k
n - n                          == 0
-(n - m)                       == m - n
0 * n                          == 0
n ** 0                         == 1
(4 * n) // 2                   == 2 * n
(4 * n + 1) // 2               == 2 * n
(4 * n + 3) // 4               == n
(6 * n) // 4                   == (3 * n) // 2
(6 * n + 1) // 4               == (3 * n) // 2
(2 * n + 3) // 2               == n + 1
(n + 4) // 4                   == n // 4 + 1
(n + 8 * m) // 4               == n // 4 + 2 * m
(n * 4 + m) // 4               == n + m // 4
(n - 4) // 4                   == n // 4 - 1
n // 1                         == n
n // 2 // 3                    == n // 6
(n // 4 + m) // 2              == (n + 4 * m) // 8
((n + 1) // 2 + 1) // 2        == (n + 3) // 4
(2 * n) % 2                    == 0
(2 * n + 1) % 2                == 1
(n + 4 * m) % 4                == n % 4
(4 * n + m) % 4                == m % 4
(n + 7) % 7                    == n % 7
n % 1                          == 0
n % 8 % 4                      == n % 4
(2 * n) % 4                    == 2 * (n % 2)
(2 * n + 1) % 4                == 2 * (n % 2) + 1
n - n // 2 * 2                 == n % 2
n // 4 * 4 + n % 4             == n
n % 7                          == n - 7 * (n // 7)
(n % 8) // 4                   == n // 4 - 2 * (n // 8)
(n % 8) // 4                   == (n // 4) % 2
(n // 2) % 2                   == (n % 4) // 2
(n // 7) % 3                   == (n % 21) // 7
(n % 4) // 4                   == 0
(n % 4 + 4) // 4               == 1
(n % 4) % 4                    == n % 4
(n % 3) // 5                   == 0
(n + 1) // 2 + n // 2          == n
(n + 2) // 3 + (n + 1) // 3 + n // 3 == n
(n + 1) // 2                   == n - n // 2
(n + 1) // 2                   == n // 2 + n % 2
ceildiv(n, 2)                  == (n + 1) // 2
ceildiv(n, 128)                == (n + 127) // 128
-(-n // 128)                   == ceildiv(n, 128)
ceildiv(4 * n, 4)              == n
ceildiv(n, 2**62)              == (n - 1) // 2**62 + 1
(n + 2**62 - 1) // 2**62       == (n - 1) // 2**62 + 1
ceildiv(n, 4) * 4 - n          == -n % 4
(n + 3) // 4 * 4               == n + (-n) % 4
(n - 1) // 2 + 1               == (n + 1) // 2
(n - 3 + 2) // 2 + 1           == (n + 1) // 2
ceildiv(ceildiv(n, 2), 3)      == ceildiv(n, 6)
(n + 127) // 128 * 128 % 128   == 0
n * (n + 1) % 2                == 0
n * (n + 1) // 2 * 2           == n * (n + 1)
n * n % 2                      == n % 2
n * n % 4                      == n % 2
(n * n * n - n) % 3            == 0
(n % 2) * (n % 2)              == n % 2
(n % 2) * ((n + 1) % 2)        == 0
(n % 2 + m % 2) % 2            == (n + m) % 2
(n * 3 + m * 3) % 3            == 0
(n + m) // 2 + (n + m) % 2     == (n + m + 1) // 2
(n + m) // 2 * 2               == n + m - (n + m) % 2
-n // 2                        == -((n + 1) // 2)
(-n) % 2                       == n % 2
n // -2                        == -((n + 1) // 2)
n % -2                         == -(n % 2)
(n * m) // m                   == n
(n * m + m) // m               == n + 1
(n * m) % m                    == 0
(n * m + k) % m                == k % m
(n * m + k) // m               == n + k // m
(n * n - 1) // (n + 1)         == n - 1
(2 * n) // (2 * m)             == n // m
(n * k) // (m * k)             == n // m
(2 * n + 1) // (2 * m)         == n // m
(n * k) % (m * k)              == k * (n % m)
n // m * m + n % m             == n
(n + m) // m                   == n // m + 1
n // (n + 1)                   == 0
n % (n + 1)                    == n
(n + 1) // (n + 1)             == 1
n // n                         == 1
n % n                          == 0
n // m // m                    == n // (m * m)
(n % m + k % m) % m            == (n + k) % m
n // (-m)                      == (-n) // m
ceildiv(n, m)                  == (n + m - 1) // m
ceildiv(n * m, m)              == n
min(n, n + 1)                  == n
max(n, n + 1)                  == n + 1
max(n, 0)                      == n
min(n, 0)                      == 0
max(n, -5)                     == n
min(n, n)                      == n
min(n, m)                      == min(m, n)
min(n, min(m, k))              == min(min(n, m), k)
max(n, m, n, max(m, k))        == max(k, m, n)
min(3, n, 7)                   == min(n, 3)
max(n, m) + min(n, m)          == n + m
max(n, m) * min(n, m)          == n * m
max(n, m) - min(n, m)          == max(n - m, m - n)
min(n, m) * 2                  == min(2 * n, 2 * m)
min(n + k, m + k)              == min(n, m) + k
-min(n, m)                     == max(-n, -m)
max(n - 8, 0) + min(n, 8)      == n
min(n // 2, n)                 == n // 2
max(n, n // 2)                 == n
min(n, m) // 2                 == min(n // 2, m // 2)
max(n, 4) // 4                 == max(n // 4, 1)
min(max(n, 2), 1)              == 1
max(min(n, 4), 4)              == 4
min(n % 8, 7)                  == n % 8
max(n, m, 0)                   == max(n, m)
-(n // 128) // 2 * 2 + -(n // 128) % 2 == -(n // 128)
(n + 128) // 256 + n // 256    == n // 128
(n + 255) // 256               == ((n + 127) // 128 + 1) // 2
n % 512 // 128 * 128 + n % 128 == n % 512
-((n // m + 1) // 2) // 2 * 2 + -((n // m + 1) // 2) % 2 == -((n // m + 1) // 2)
(n // m + 1) // 2 + (n // m) // 2 == n // m
min(n, m + n)                  == n
min(2 * n, 3 * n)              == 2 * n
"""

DIFFERENT = """
n, m | n, n + m | n, 2 * n | n, 4 | n * n, n | n * n, 2 * n | n * m, n | n * m, n + m | n ** 3, n ** 2 | n * n, m
n // 2, n | n // 2 * 2, n | n // 2, n // 3 | n // 2, (n + 1) // 2 | n // 4 * 4, n // 2 * 2 | (n + 1) // 2, n // 2 + 1
n % 2, 0 | n % 2, 1 | n % 2, n % 4 | n % 4, n | n % 4, n % 3 | (n + 1) % 4, n % 4 + 1 | n % 2 + m % 2, (n + m) % 2
(n + m) // 2, n // 2 + m // 2 | (n * 3) // 2, n // 2 * 3 | (n - m) // 2, n // 2 - m // 2 | (n * m) // 2, n // 2 * m
(n + 2) // 4, n // 4 | (3 * n) % 2, 0 | n * n % 4, n % 4 | n * n % 3, 1 | ceildiv(n, 4), n // 4 | ceildiv(n, 4) * 4, n
ceildiv(n, 128), (n + 128) // 128 | ceildiv(n, 2), n // 2 + 1 | -n % 4, n % 4 | -n // 2, -(n // 2) | n // 2 // 3, n // 5
min(n, m), n | min(n, m), m | max(n, m), n | max(n, m), n + m | min(n, 4), n | min(n, 4), 4
max(n, 4), n | max(n, 4), 4
min(n, m), max(n, m) | min(n, m, k), min(n, m) | min(n, m) * 2, min(2 * n, m) | min(n - 1, 0), 0 | max(n - 1, 0), n - 1
max(n - m, 0), n - m | min(n, m) + k, min(n + k, m) | max(n * m, n), n * m | min(n % 4, 2), n % 4 | min(n, 8) % 8, n % 8
n // m, n | n // m * m, n | n % m, n | n // m, m // n | (n + 1) // m, n // m | (n + k) // m, n // m + k // m
(n * k) // m, n // m * k | n % m, n % k | ceildiv(n, m), n // m | ceildiv(n, m), n // m + 1 | n // (m + 1), n // m
n // (m * k), n // m // 2 | (n + m) % k, n % k + m % k | n % (m + 1), n % m
n * m // k, n * (m // k) | n // m % 2, n % 2
2 * n, n + m | 3 * n, 2 * n + 4 | n + m, n + k | n + m, n - m | n - m, m - n | n * m, n * k | n * (m + 1), n * m + 1
(n + 1) ** 2, n ** 2 + 1 | (n + m) ** 2, n ** 2 + m ** 2 | n * n * m, n * m * m | 7 * n, n + 12 | 2 * n + 1, n + 2
n + 6, 8 | n * 6, 12 | n * 3, 12 * m | n * m, 12 | 6 * n, n * n + 8 | 128 * n, 128 * m | n, ceildiv(n, 2) | n, n * n * n
n // 3 * 3 + 1, n | n // 7, m | (n + 5) // 7, (n + 6) // 7 | n % 7, n % 14 | n // 16, n // 8 // 3 | n * 5 // 3, n * 2
(n // 2) * (n // 2), n * n // 4 | n % 2 * n, n | n % 2 * m, m | n // 2 + m // 2, m // 2 + k // 2 | n + n % 2, n + 1
"""

NEVER_EQUAL = """
n, n + 1 | 2 * n, 2 * m + 1 | 4 * n, 4 * m + 2 | n + 5, n + m + 6 | n % 4, 4 + m | n % 4, 7 | n * n + 1, 0 | n, -1
6 * n + 4 * m, 2 * k + 1 | (n + 1) * (m + 1), 0 | (n + 1) * (n + 2), 0 | n * n, 4 * m + 2 | n * n, 3 * m + 2
n * n + m * m + 1, 2 * n * m | n // 2, n + 1 | min(n, 4), 5 | max(n, 4), 3 | max(n, m) + 1, min(n, m) | n % 2 + m % 2, 3
n // 2 * 2, n + 1 | n % 2, (n + 1) % 2 | ceildiv(n, 4) * 4, n + 4 | n // m, n + 1 | n % m, m | n // 3 + n // 2, n + 1
"""


def pairs(table: str) -> list[tuple[str, str]]:
    items = [item for line in table.strip().splitlines() for item in line.split("|")]
    return [_split_pair(item) for item in items]


def _split_pair(item: str) -> tuple[str, str]:
    depth = 0
    for position, character in enumerate(item):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            return item[:position].strip(), item[position + 1 :].strip()
    raise AssertionError(f"no pair in {item!r}")


IDENTITY_PAIRS = [tuple(side.strip() for side in line.split("==")) for line in IDENTITIES.strip().splitlines()]


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(IDENTITY_PAIRS) >= 100
    assert len(pairs(DIFFERENT)) >= 100


@pytest.mark.parametrize(("left", "right"), IDENTITY_PAIRS)
def test_identity_is_proved_and_holds_at_all_small_values(left: str, right: str) -> None:
    a, b = parse_dim(left), parse_dim(right)
    assert prove_equal(a, b) is True
    assert prove_ne(a, b) is False
    assert prove_le(a, b) is True
    assert prove_le(b, a) is True
    assert counterexample(a, b) is None
    for values in GRID:
        want_left, want_right = python_value(left, values), python_value(right, values)
        if want_left is not None and want_right is not None:
            assert want_left == want_right == evaluate(a, values) == evaluate(b, values)


@pytest.mark.parametrize(("left", "right"), pairs(DIFFERENT))
def test_non_identity_is_undecided_and_has_a_counterexample(left: str, right: str) -> None:
    a, b = parse_dim(left), parse_dim(right)
    assert prove_equal(a, b) is None
    values = counterexample(a, b)
    assert values is not None
    assert set(values) == {*free_symbols(a), *free_symbols(b)}
    assert python_value(left, values) != python_value(right, values)


@pytest.mark.parametrize(("left", "right"), pairs(NEVER_EQUAL))
def test_what_is_never_equal_is_refuted(left: str, right: str) -> None:
    a, b = parse_dim(left), parse_dim(right)
    assert prove_equal(a, b) is False
    assert prove_ne(a, b) is True
    assert counterexample(a, b) is not None


@pytest.mark.parametrize(
    ("left", "right"),
    pairs(
        """
        n // 2, n | n, n * n | n % 4, 3 | n, ceildiv(n, 128) * 128 | ceildiv(n, 128) * 128, n + 127 | min(n, m), n
        2 * n * m, n * n + m * m | n // 2 + n // 3, n | n // m, n | n // m * m, n | n % m + 1, m | n // 2 * m, n * m
        min(n, m) ** 2, n * m | max(n, m), n + m | 2 * n, n * n + 1 | n // 8, n // 4 | (n + 1) // 2, n // 2 + 1
        (n - 1) // 2 * 2, n | n // 4 * 3, n | n // 3, n // 2 | n - m, n | 0, n | n, max(n, m) | min(n, 8), 8
        n // (m + 1), n | n % (m + 1), m | min(n, m) + min(n, k), 2 * n | n, n * (m + 1) | n // 128 * 128 + n % 128, n
        n // 256 * 2, n // 128 | ceildiv(n, 128), 2 * ceildiv(n, 256)
        """
    ),
)
def test_order_that_always_holds_is_proved(left: str, right: str) -> None:
    a, b = parse_dim(left), parse_dim(right)
    assert prove_le(a, b) is True
    assert prove_lt(b, a) is False
    assert prove_lt(a, b + 1) is True
    assert prove_nonnegative(b - a) is True
    assert counterexample_le(a, b) is None


@pytest.mark.parametrize(
    "left", ["128 * ((n * m + 63) // 64)", "64 * ((n * m + 7) // 8)", "64 * ((n * m * m + 3) // 4)"]
)
def test_greatest_of_many_sums_is_compared_sum_by_sum(left: str) -> None:
    """One sum that is proved to reach the left side is enough; all cases of which one is the greatest are too many."""
    right = parse_dim(
        "128 * n * m + max(1024 * n * m + 64 * ((n * m * m + 15) // 16) + 64 * ((n * m * m + 3) // 4) + 65536,"
        " 128 * n * m + 128 * ((n * m + 63) // 64) + 64 * ((n + 7) // 8) + 64 * ((m + 63) // 64),"
        " 128 * n * m + 64 * ((n * m * m + 15) // 16) + 192 * ((n * m * m + 3) // 4))"
    )
    facts = Facts().assume_bounds("n", 0, 64).assume_bounds("m", 2, 64)
    assert prove_le(parse_dim(left), right, facts) is True
    assert prove_le(right, parse_dim(left), facts) is not True


@pytest.mark.parametrize(("left", "right"), pairs("n, 4 | n, m | n * n, n | n, n // 2 | n, n % 4 | n * m, n + m"))
def test_order_that_depends_is_undecided_with_a_counterexample(left: str, right: str) -> None:
    a, b = parse_dim(left), parse_dim(right)
    assert prove_le(a, b) is None
    values = counterexample_le(a, b)
    assert values is not None
    assert evaluate(a, values) > evaluate(b, values)


# -- representation ---------------------------------------------------------------------------------------------------


def test_equal_polynomials_are_one_object() -> None:
    assert (n + 1) * (n - 1) is n * n - 1
    assert symbol("n") is n
    assert {n * 2: "a"}[n + n] == "a"
    assert n != m
    assert n != 3
    assert not n == "n"


def test_integers_in_give_integers_out() -> None:
    for value in (floordiv(-7, 2), floormod(-7, 2), ceildiv(7, 2), minimum(3, 1), maximum(3, 1), product([2, 3])):
        assert type(value) is int
    assert (floordiv(-7, 2), floormod(-7, 2), ceildiv(7, 2), ceildiv(-7, 2)) == (-4, 1, 4, -3)
    assert floordiv(7, -2) == 7 // -2
    assert floormod(7, -2) == 7 % -2
    assert n - n == 0
    assert type(n - n) is int
    assert product([]) == 1


def test_reflected_and_unary_operators_work() -> None:
    assert 1 + n == n + 1
    assert 1 - n == -(n - 1)
    assert 2 * n == n * 2
    assert +n is n
    assert format_dim(7 // n) == "7 // n"
    assert format_dim(7 % n) == "7 % n"
    assert n**2 == n * n
    assert n**0 == 1


def test_numpy_integers_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    assert n + numpy.int64(1) is n + 1
    assert numpy.int64(3) * n is 3 * n
    assert type(as_dim(numpy.int32(4))) is int


def test_copies_and_pickles_are_the_same_object() -> None:
    d = (n + 1) // 2 * m
    assert copy.copy(d) is d
    assert copy.deepcopy(d) is d
    assert pickle.loads(pickle.dumps(d)) is d


def test_printing_does_not_depend_on_the_order_of_construction_or_the_hash_seed() -> None:
    code = (
        "from weft.ir.dim import *\n"
        "a, b, c, q, x, z = map(symbol, ('alpha', 'b', 'c', 'q', 'x', 'zeta'))\n"
        "d = z * 3 + a ** 2 - minimum(q, b, 7) * c + 5 // x\n"
        "print(d, free_symbols(d), sorted(counterexample(d, 3).items()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "src:."},
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1
    assert outputs.pop().startswith("alpha ** 2 - c * min(b, q, 7) + 3 * zeta + 5 // x ('alpha',")


def test_plain_integers_and_proofs_about_linear_dimensions_load_neither_sympy_nor_lark() -> None:
    code = (
        "import sys\n"
        "from weft.ir.dim import *\n"
        "assert prove_equal(4, 4) and not prove_le(5, 4) and bounds(3) == (3, 3)\n"
        "assert parse_dim('7') == 7 and parse_dim('n') is symbol('n') and format_dim(7) == '7'\n"
        "assert minimum(3, 4) == 3 and evaluate(5, {}) == 5 and substitute(4, {}) == 4\n"
        "n = symbol('n'); assert prove_equal(n * 2 * 4, 8 * n) and prove_le(n, n + 1)\n"
        "print([name for name in ('sympy', 'lark') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "src:."}
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("n*2*4", "8 * n"),
        ("-n + m", "m - n"),
        ("1 - n", "1 - n"),
        ("-n", "-n"),
        ("-(n // 2)", "-(n // 2)"),
        ("m - n // 2", "m - n // 2"),
        ("2 * (n // 2) + n % 2", "n % 2 + 2 * (n // 2)"),
        ("n * n * m", "m * n ** 2"),
        ("(n // m) ** 2", "(n // m) ** 2"),
        ("(n + 1) // 2", "(n + 1) // 2"),
        ("n // (m + 1)", "n // (m + 1)"),
        ("2 * n // 3", "2 * n // 3"),
        ("(n // m) // k", "n // (k * m)"),
        ("ceildiv(n, 128) * 128", "128 * ((n + 127) // 128)"),
        ("max(n - 1, 4, m)", "max(m, n - 1, 4)"),
        ("max(max(n, 8) - 9, 0)", "max(n - 9, 0)"),
        ("max(2 * max(n - 1, 0) - 1, 0)", "max(2 * n - 3, 0)"),
        ("max(min(max(n - 1, 0) - 2, n // 2 + 6), 0)", "max(min(n - 3, n // 2 + 6), 0)"),
        ("max(min(max(n - 1, 0) - 2, m), -3)", "min(m, max(n - 3, -2))"),
        ("max(min(n, m) - 1, 0)", "max(min(m - 1, n - 1), 0)"),
        ("min(max(n - 1, 0), max(n - 2, 0))", "max(n - 2, 0)"),
        ("max(5 - min(n, 3), 0)", "max(5 - n, 2)"),
        ("(max(n - 1, 0) + 1) // 2", "n // 2"),
        ("(min(n, 8) + 3) // 4", "min((n + 3) // 4, 2)"),
        ("-n % 4", "-n % 4"),
        ("(-3) % n", "(-3) % n"),
        (" ( ( n ) ) ", "n"),
        ("007", "7"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("+n - -m", "m + n"),
        ("-n ** 2", "-n ** 2"),
        ("min + max * ceildiv", "ceildiv * max + min"),
    ],
)
def test_canonical_form_prints_as_ordinary_python(text: str, printed: str) -> None:
    d = parse_dim(text)
    assert format_dim(d) == repr(d) == printed
    assert parse_dim(printed) == d


def test_operation_shows_one_step_of_the_structure() -> None:
    assert operation(7) == ("constant", (7,))
    assert operation(n) == ("symbol", ("n",))
    assert operation(2 * n * m) == ("mul", (2, m, n))
    assert operation(n**3) == ("pow", (n, 3))
    assert operation((n + 1) // 2) == ("floordiv", (n + 1, 2))
    assert operation(n % m) == ("mod", (n, m))
    assert operation(minimum(n, 3)) == ("min", (n, 3))
    assert operation(maximum(n, 3)) == ("max", (n, 3))


def test_sympy_sees_the_same_expression() -> None:
    sympy = pytest.importorskip("sympy")
    d = (n + 1) // 2 * m + n % 3 - minimum(n, m) + maximum(n, 4)
    expression = sympy.sympify(d)
    for values in GRID[::17]:
        assert int(expression.subs({s: values[s.name] for s in expression.free_symbols})) == evaluate(d, values)


def test_substitution_is_simultaneous() -> None:
    assert substitute(n - 2 * m, {"n": m, "m": n}) is m - 2 * n
    assert substitute(minimum(n, m), {"n": m + 1}) is m
    assert substitute(n // m, {"n": 7, "m": 2}) == 3
    assert substitute(n, {"q": 1}) is n


def test_fresh_names_avoid_the_used_ones() -> None:
    assert fresh_name("n", []) == "n"
    assert fresh_name("n", ["n"]) == "n_1"
    assert fresh_name("n", {"n": 0, "n_1": 0}) == "n_2"


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("W280", lambda: n // 0),
        ("W280", lambda: n % 0),
        ("W280", lambda: floordiv(3, 0)),
        ("W280", lambda: ceildiv(3, 0)),
        ("W280", lambda: substitute(n // m, {"m": 0})),
        ("W280", lambda: evaluate(n // m, {"n": 1, "m": 0})),
        ("W281", lambda: n * 2**62 * 4),
        ("W282", lambda: (n + m) ** 60 * n**10),
        ("W283", lambda: symbol("")),
        ("W283", lambda: symbol("2n")),
        ("W283", lambda: symbol("lambda")),
        ("W283", lambda: symbol(3)),  # pyright: ignore[reportArgumentType]
        ("W284", lambda: as_dim("n")),  # pyright: ignore[reportArgumentType]
        ("W284", lambda: as_dim(2.0)),  # pyright: ignore[reportArgumentType]
        ("W285", lambda: n < 3),  # pyright: ignore[reportOperatorIssue]
        ("W285", lambda: 3 >= n),  # pyright: ignore[reportOperatorIssue]
        ("W285", lambda: bool(n)),
        ("W285", lambda: int(n)),
        ("W285", lambda: range(n)),
        ("W286", lambda: evaluate(n + m, {"n": 1})),
        ("W289", lambda: n**-1),
        ("W289", lambda: n**m),  # pyright: ignore[reportOperatorIssue]
        ("W289", lambda: minimum()),
        ("W290", lambda: match_dims([n], [1, 2])),
    ],
)
def test_misuse_is_a_shape_error_with_a_code(code: str, action: Callable[[], object]) -> None:
    with pytest.raises(ShapeError) as caught:
        action()
    assert caught.value.code == code
    assert caught.value.message


def test_the_missing_symbol_is_named() -> None:
    with pytest.raises(ShapeError, match="symbol m has no value"):
        evaluate(n + m, {"n": 1})


def test_a_dimension_does_not_mix_with_text_or_floats() -> None:
    for other in ("n", 1.5, None, [1]):
        with pytest.raises(TypeError):
            _ = n + other  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "W287"),
        ("n +", "W287"),
        ("n m", "W287"),
        ("n $ m", "W287"),
        ("n / 2", "W287"),
        ("n.shape", "W287"),
        ("n[0]", "W287"),
        ("(n", "W287"),
        ("n)", "W287"),
        ("min(n,)", "W287"),
        ("min()", "W287"),
        ("f(n)", "W287"),
        ("__import__('os')", "W287"),
        ("lambda: 0", "W287"),
        ("1.5", "W287"),
        ("0x10", "W287"),
        ("n if n else 1", "W287"),
        ("ceildiv(n)", "W287"),
        ("ceildiv(n, 2, 3)", "W287"),
        ("if", "W283"),
        ("n + while", "W283"),
        ("n // 0", "W280"),
        ("n % (1 - 1)", "W280"),
        ("99999999999999999999", "W281"),
        ("9223372036854775808", "W281"),
        ("9223372036854775807 + 1", "W281"),
        ("9223372036854775807 * n * 2", "W281"),
        ("9**9**9", "W281"),
        ("9" * 5000, "W281"),
        ("2 ** 64", "W281"),
        ("n ** 9999", "W289"),
        ("n ** n", "W289"),
        ("n ** -1", "W289"),
        ("2 ** -1", "W289"),
        ("(n + m + k + j) ** 64", "W282"),
        ("((n + m) ** 60) ** 60", "W282"),
        ("(" * 5000 + "n" + ")" * 5000, "W288"),
        ("n + " * 30000 + "n", "W288"),
        ("x" * 100_000, "W288"),
        ("\x00", "W287"),
        ("n\n+\n$", "W287"),
    ],
)
def test_hostile_text_is_refused(text: str, code: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_dim(text)
    assert caught.value.code == code
    assert len(caught.value.message) < 500


def test_long_chains_of_unary_signs_and_terms_are_read_without_recursion() -> None:
    assert parse_dim("-" * 10_000 + "n") is n
    assert parse_dim("n" + " + 1" * 5_000) is n + 5_000
    assert parse_dim(" ".join(["n", *["- (m // 2)"] * 1_000])) is n - 1000 * (m // 2)


def test_a_syntax_error_points_at_its_character() -> None:
    with pytest.raises(ShapeError) as caught:
        parse_dim("n + $")
    assert caught.value.span is not None
    assert (caught.value.span.start, caught.value.span.end) == (4, 5)
    with pytest.raises(ShapeError, match="a dimension ends too early"):
        parse_dim("n +")


def test_the_limits_on_text_can_be_set() -> None:
    with pytest.raises(ShapeError):
        parse_dim("n + 1", max_length=4)
    with pytest.raises(ShapeError):
        parse_dim("((n))", max_depth=1)


def test_dimensions_that_grow_without_bound_are_refused_quickly() -> None:
    def grow() -> None:
        d: Dim = n
        for _ in range(1000):
            d = (d * d + m) // (n + 2)

    with pytest.raises(ShapeError) as caught:
        grow()
    assert caught.value.code in ("W281", "W282")


# -- facts ------------------------------------------------------------------------------------------------------------


def test_an_equality_that_defines_a_symbol_is_used_both_ways() -> None:
    facts = Facts().assume_equal(n, 2 * m)
    assert prove_equal(n // 2, m, facts) is True
    assert prove_equal(2 * m * k, n * k, facts) is True
    assert prove_equal(n % 2, 0, facts) is True
    assert prove_equal(n, 2 * m + 1, facts) is False
    assert facts.simplify(n // 2) is m
    assert prove_equal(n // 2, m) is None


def test_divisibility_can_be_assumed() -> None:
    facts = Facts().assume_equal(n % 4, 0)
    assert prove_equal(n // 4 * 4, n, facts) is True
    assert prove_equal(n % 2, 0, facts) is True
    assert prove_equal(n % 8, 0, facts) is None
    assert prove_equal(n, 4 * k + 2, facts) is False
    values = counterexample(n, 8, facts)
    assert values is not None
    assert values["n"] % 4 == 0
    assert values["n"] != 8


def test_ratios_of_symbols_can_be_assumed() -> None:
    facts = Facts().assume_equal(2 * n, 3 * m)
    assert prove_equal(m % 2, 0, facts) is True
    assert prove_equal(n % 3, 0, facts) is True
    assert prove_le(m, n, facts) is True


def test_products_can_be_assumed_equal() -> None:
    facts = Facts().assume_equal(n * m, 4 * k)
    assert prove_equal(2 * n * m, 8 * k, facts) is True
    assert prove_equal(n * m // 2, 2 * k, facts) is True


def test_orders_and_bounds_can_be_assumed() -> None:
    facts = Facts().assume_le(n, m).assume_bounds("m", 2, 10)
    assert prove_le(n, 10, facts) is True
    assert prove_le(n * k, m * k, facts) is True
    assert prove_le(m, n, facts) is None
    assert prove_equal(m, 0, facts) is False
    assert prove_equal(minimum(n, m), n, facts) is True
    assert bounds(n, facts) == (0, 10)
    assert bounds(m, facts) == (2, 10)
    assert bounds(m - n, facts)[0] == 0
    assert counterexample_le(m, n + 3, facts) is not None
    assert counterexample_le(n, m, facts) is None


def test_a_lower_bound_makes_products_comparable() -> None:
    facts = Facts().assume_bounds("m", 1)
    assert prove_le(n, n * m) is None
    assert prove_le(n, n * m, facts) is True
    assert prove_equal(n * m, 0, facts) is None
    assert prove_equal((n + 1) * m, 0, facts) is False


def test_contradictory_facts_are_noticed() -> None:
    assert Facts().assume_le(n, 3).assume_le(4, n).contradictory
    assert Facts().assume_equal(n, m + 1).assume_le(n, m).contradictory
    assert not Facts().assume_le(n, 3).contradictory


def test_facts_are_values() -> None:
    assert Facts().assume_equal(n, m) == Facts().assume_equal(n, m)
    assert hash(Facts().assume_le(n, 3)) == hash(Facts().assume_le(n, 3))
    assert Facts().assume_equal(n, n) == Facts()


@pytest.mark.parametrize(
    ("d", "expected"),
    [
        (5, (5, 5)),
        (n, (0, None)),
        (n + 3, (3, None)),
        (3 - n, (None, 3)),
        (n - m, (None, None)),
        (n % 8, (0, 7)),
        (n % 8 + m % 4, (0, 10)),
        (minimum(n, 8), (0, 8)),
        (maximum(n, 8), (8, None)),
        (n - n // 2 * 2, (0, 1)),
        (n - n // 2, (0, None)),
        (n * n - 2 * n + 1, (0, None)),
        (ceildiv(n, 4) * 4 - n, (0, 3)),
        (n // (n + 1), (0, 0)),
        (minimum(n, 4) - maximum(n, 4), (None, 0)),
    ],
)
def test_bounds_are_sound_and_tight_in_common_cases(d: Dim, expected: tuple[int | None, int | None]) -> None:
    assert bounds(d) == expected


# -- solving and matching ---------------------------------------------------------------------------------------------


def test_linear_equations_are_solved_where_the_division_is_exact() -> None:
    assert solve_for(2 * n, "n", 2 * m) is m
    assert solve_for(2 * n, "n", m) is None
    assert solve_for(2 * n + 1, "n", 7) == 3
    assert solve_for(2 * n + 1, "n", 8) is None
    assert solve_for(n + 1, "n", 0) is None
    assert solve_for(n - 1, "n", m) is m + 1
    assert solve_for(n * (m + 1), "n", k * m + k) is k
    assert solve_for(n * m, "n", k * m) is None  # m may be 0: any n solves it
    assert solve_for(2 * n, "n", m * (m + 1)) is m * (m + 1) // 2
    assert solve_for(n * n, "n", 4) is None
    assert solve_for(n // 2, "n", 4) is None
    assert solve_for(m, "n", 4) is None
    assert solve_for(7, "n", 7) is None


def test_matching_binds_bare_symbols_first_and_then_solves() -> None:
    assert match_dims([n, 2 * n], [m, 2 * m]) == ({"n": m}, [])
    assert match_dims([2 * n, n], [8, 4]) == ({"n": 4}, [])
    assert match_dims([2 * n, n], [8, 5]) == ({"n": 5}, [(10, 8)])
    assert match_dims([n, n], [3, 4]) == ({"n": 3}, [(3, 4)])
    assert match_dims([2 * n + m, m], [11, 3]) == ({"m": 3, "n": 4}, [])
    assert match_dims([6, n], [m, 1]) == ({"n": 1}, [(6, m)])
    assert match_dims([], []) == ({}, [])


def test_matching_keeps_the_scopes_of_pattern_and_values_apart() -> None:
    assert match_dims([n, m, n + m], [m, n + 1, n + m + 1]) == ({"n": m, "m": n + 1}, [])


def test_matching_leaves_what_it_cannot_solve_to_be_checked() -> None:
    assert match_dims([2 * n], [m]) == ({}, [(2 * n, m)])
    assert match_dims([n // 2, n], [m, k]) == ({"n": k}, [(k // 2, m)])


def test_a_solution_that_may_be_negative_leaves_a_check_that_fails_where_it_is() -> None:
    bindings, checks = match_dims([n + 2], [m])
    assert bindings == {"n": m - 2}
    ((left, right),) = checks
    for value in range(6):
        assert (evaluate(left, {"m": value}) == evaluate(right, {"m": value})) == (value >= 2)


# -- properties -------------------------------------------------------------------------------------------------------


def texts(depth: int = 3) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(NAMES), st.integers(0, 9).map(str), st.sampled_from(("16", "128")))
    if depth == 0:
        return leaf
    inner = texts(depth - 1)
    binary = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    constant = st.integers(1, 8).flatmap(lambda c: st.sampled_from((f"{c}", f"(-{c})")))
    division = st.tuples(inner, st.sampled_from(("//", "%")), constant).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    symbolic = st.tuples(inner, st.sampled_from(("//", "%")), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    call = st.tuples(st.sampled_from(("min", "max")), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
    rounded = st.tuples(inner, constant).map(lambda t: f"ceildiv({t[0]}, {t[1]})")
    power = st.tuples(inner, st.integers(0, 2)).map(lambda t: f"({t[0]}) ** {t[1]}")
    negated = inner.map(lambda t: f"(-{t})")
    return st.one_of(leaf, binary, binary, division, division, symbolic, call, rounded, power, negated)


@contextmanager
def of_interest() -> Iterator[None]:
    """Rejects examples that divide by zero everywhere or grow past the limits."""
    try:
        yield
    except ShapeError as error:
        if error.code not in ("W280", "W281", "W282", "W289"):
            raise
        assume(False)


def read(text: str) -> Dim:
    with of_interest():
        return parse_dim(text)
    raise AssertionError("the example was rejected")


values_of_symbols = st.fixed_dictionaries({name: st.integers(0, 20) for name in NAMES})


@settings(max_examples=400, deadline=None)
@given(texts(), st.lists(values_of_symbols, min_size=4, max_size=8))
def test_canonical_form_has_the_value_that_python_gives(text: str, points: list[dict[str, int]]) -> None:
    d = read(text)
    for values in points:
        expected = python_value(text, values)
        if expected is not None:
            assert evaluate(d, values) == expected


def bounded_texts(depth: int = 4) -> st.SearchStrategy[str]:
    """Minima and maxima around each other, moved and scaled: what slices of slices have for sizes."""
    leaf = st.sampled_from(("n", "m", "n // 2", "n + m", "0", "3", "7", "-2", "2 * n - 5"))
    if depth == 0:
        return leaf
    inner = bounded_texts(depth - 1)
    call = st.tuples(st.sampled_from(("min", "max")), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
    offset = st.tuples(inner, st.sampled_from((" - 3", " + 2", " - m", " * 2", " * -1"))).map("".join)
    quotient = st.tuples(inner, st.integers(2, 4)).map(lambda t: f"({t[0]}) // {t[1]}")
    return st.one_of(leaf, call, call, offset.map(lambda text: f"({text})"), quotient)


@settings(max_examples=400, deadline=None)
@given(bounded_texts(), st.lists(values_of_symbols, min_size=8, max_size=12))
def test_minima_and_maxima_inside_of_each_other_keep_their_value(text: str, points: list[dict[str, int]]) -> None:
    d = read(text)
    assert same(parse_dim(format_dim(d)), d)
    assert all(evaluate(d, values) == python_value(text, values) for values in points)


def test_sizes_of_slices_of_slices_stay_small() -> None:
    size: Dim = n
    for cut in range(40):
        size = maximum(minimum(size, n // 2 + 40 - cut) - cut % 3, 0)
    assert size == maximum(minimum(n - 39, n // 2), 0)


@settings(max_examples=400, deadline=None)
@given(texts())
def test_printed_dimensions_read_back_as_the_same_object(text: str) -> None:
    d = read(text)
    again = parse_dim(format_dim(d))
    assert same(again, d)
    if isinstance(d, DimExpr):
        assert again is d
        assert is_symbolic(d)
        assert free_symbols(d) == tuple(sorted(d.names))
    names = {name: symbol(name) for name in NAMES}
    assert same(substitute(d, names), d)


@settings(max_examples=150, deadline=None)
@given(texts(2), st.dictionaries(st.sampled_from(NAMES), texts(1)), values_of_symbols)
def test_substitution_commutes_with_evaluation(text: str, images: dict[str, str], values: dict[str, int]) -> None:
    d, replaced = read(text), {name: read(image) for name, image in images.items()}
    with of_interest():
        inner = {**values, **{name: evaluate(image, values) for name, image in replaced.items()}}
        assume(all(value >= 0 for value in inner.values()))
        expected = python_value(text, inner)
        assume(expected is not None)
        assert evaluate(substitute(d, replaced), values) == expected


SMALL: list[dict[str, int]] = [dict(zip(NAMES, point, strict=True)) for point in cartesian(range(7), repeat=3)]


def values_at(d: Dim, e: Dim, grid: list[dict[str, int]]) -> list[tuple[int, int]]:
    found = []
    for values in grid:
        try:
            found.append((evaluate(d, values), evaluate(e, values)))
        except ShapeError:
            continue
    return found


@settings(max_examples=250, deadline=None)
@given(texts(2), texts(2))
def test_every_verdict_agrees_with_all_small_values(left: str, right: str) -> None:
    a, b = read(left), read(right)
    with of_interest():
        equal, order, strict = prove_equal(a, b), prove_le(a, b), prove_lt(a, b)
    for x, y in values_at(a, b, SMALL):
        assert equal is None or equal == (x == y)
        assert order is None or order == (x <= y)
        assert strict is None or strict == (x < y)


@settings(max_examples=150, deadline=None)
@given(texts(2), st.sampled_from([1, 2, 3, 4, 6]), st.integers(0, 3))
def test_rearranged_dimensions_are_never_refuted(text: str, divisor: int, offset: int) -> None:
    d = read(text)
    with of_interest():
        assert prove_equal(d // divisor * divisor + d % divisor, d) is not False
        assert prove_le(d % divisor, divisor - 1) is not False
        assert prove_equal((d + offset * divisor) // divisor, d // divisor + offset) is True
        assert prove_equal(maximum(d, offset) + minimum(d, offset), d + offset) is not False
        assert prove_equal(ceildiv(d, divisor), (d + divisor - 1) // divisor) is not False


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.sampled_from((1, n, m, k, n * m, n * n)))), st.integers(1, 12))
def test_division_with_remainder_of_any_polynomial_is_proved(terms: list[tuple[int, Dim]], divisor: int) -> None:
    d: Dim = 0
    for coefficient, term in terms:
        d = d + coefficient * term
    assert prove_equal(d // divisor * divisor + d % divisor, d) is True
    assert prove_equal(ceildiv(d, divisor) * divisor, d + -d % divisor) is True
    assert prove_le(d % divisor, divisor - 1) is True
    assert prove_nonnegative(d % divisor) is True


@settings(max_examples=150, deadline=None)
@given(texts(2))
def test_bounds_hold_at_all_small_values(text: str) -> None:
    d = read(text)
    with of_interest():
        low, high = bounds(d)
    for value, _ in values_at(d, 0, SMALL):
        assert low is None or low <= value
        assert high is None or value <= high


@settings(max_examples=200, deadline=None)
@given(
    texts(1), texts(1), st.lists(st.tuples(st.sampled_from(("eq", "le")), texts(1), texts(1)), min_size=1, max_size=3)
)
def test_verdicts_under_facts_agree_with_all_small_values(
    left: str, right: str, assumed: list[tuple[str, str, str]]
) -> None:
    a, b = read(left), read(right)
    facts = Facts()
    for kind, x, y in assumed:
        facts = facts.assume_equal(read(x), read(y)) if kind == "eq" else facts.assume_le(read(x), read(y))
    grid = [values for values in SMALL if facts.holds(values)]
    with of_interest():
        equal, order, (low, high) = prove_equal(a, b, facts), prove_le(a, b, facts), bounds(a, facts)
        witness = counterexample(a, b, facts)
        assert not (facts.contradictory and values_at(a, b, grid))
    for x, y in values_at(a, b, grid):
        assert equal is None or equal == (x == y)
        assert order is None or order == (x <= y)
        assert low is None or low <= x
        assert high is None or x <= high
    if witness is not None:
        complete = {**dict.fromkeys(NAMES, 0), **witness}
        assert facts.holds(complete)
        assert evaluate(a, complete) != evaluate(b, complete)


@given(st.lists(st.sampled_from((1, 2, 3, 4, 5, 6, n, m, n * m, 2 * n)), max_size=5), st.randoms(use_true_random=False))
def test_joined_axes_stand_for_equal_parts_of_both_shapes(source: list[Dim], random: Random) -> None:
    target: list[Dim] = []
    for size in source:  # some axes joined, some come apart, some of size 1 between
        choice = random.randrange(4)
        if choice == 0 and target:
            target[-1] = target[-1] * size
        elif choice == 1 and isinstance(size, int) and size % 2 == 0:
            target += [2, size // 2]
        else:
            target += [size, 1][: random.choice((1, 1, 2))]
    groups = joined_axes(source, target)
    for side, shape in enumerate((source, target)):
        assert [axis for group in groups for axis in group[side]] == list(range(len(shape)))
    for left, right in groups:
        assert same(product(source[axis] for axis in left), product(target[axis] for axis in right))
    assert sum(min(map(len, group)) > 1 for group in groups) <= 1


def test_axes_come_apart_as_far_as_one_side_has_a_single_one() -> None:
    assert joined_axes((n, m, 12, 32), (n * m, 384)) == [(range(2), range(1)), (range(2, 4), range(1, 2))]
    assert joined_axes((5, 80, 24, n), (5, 48, 40, n)) == [
        (range(1), range(1)),
        (range(1, 3), range(1, 3)),
        (range(3, 4), range(3, 4)),
    ]
    assert joined_axes((n, k), (m, k), lambda a, b: same(a, b) or {a, b} == {n, m}) == [
        (range(1), range(1)),
        (range(1, 2), range(1, 2)),
    ]
