"""Dimensions as TVM's readers take them mean what they are, whatever stands in them."""

from __future__ import annotations

import random

import pytest

from weft.ir.dim import Dim, maximum, minimum, symbol, value_at
from weft.script.printer.tvm.dim import tvm_dim

n, m, k = symbol("n"), symbol("m"), symbol("k")


class _Tensor:
    """Stands for `T` in a text."""

    min, max = min, max


def value_of(text: str, values: dict[str, int]) -> int | None:
    """What a text is worth; None where it divides by zero."""
    try:
        return eval(text, {"__builtins__": {}, "T": _Tensor}, dict(values))
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (n - 2 * m, "n - m * 2"),
        (3 - n, "3 - n"),
        (-n, "n * (-1)"),
        (-2 * n - 3, "n * (-2) - 3"),
        (minimum(n, m, 4), "T.min(T.min(m, n), 4)"),
        (maximum(n, 8) * 2, "T.max(n, 8) * 2"),
        (n // 2 % 3 * m, "m * (n // 2 % 3)"),
        (n // (m + 1), "n // (m + 1)"),
        ((n + m) % 4 - 1, "(m + n) % 4 - 1"),
        (n * n * m, "m * n * n"),
        (7, "7"),
        (-7, "-7"),
    ],
)
def test_a_dimension_is_written_with_its_coefficients_last(dim: Dim, text: str) -> None:
    assert tvm_dim(dim) == text


def test_random_dimensions_are_worth_what_their_texts_are() -> None:
    choose = random.Random(7)

    def grown(depth: int) -> Dim:
        if depth == 0:
            return choose.choice((n, m, k, 1, 2, 5))
        divisor = choose.choice((n, m + 1, 3, k * 2))
        a, b = grown(depth - 1), grown(choose.randrange(depth))
        return choose.choice(
            (
                lambda: a + b,
                lambda: a - b,
                lambda: a * b,
                lambda: a // divisor,
                lambda: a % divisor,
                lambda: minimum(a, b),
                lambda: maximum(a, b),
                lambda: a - 3 * b,
            )
        )()

    compared = 0
    for _ in range(400):
        dim = grown(choose.randint(1, 3))
        text = tvm_dim(dim)
        for _ in range(4):
            values = {name: choose.randint(0, 9) for name in ("n", "m", "k")}
            wanted = value_at(dim, values)
            if wanted is not None:
                assert value_of(text, values) == wanted, (dim, text, values)
                compared += 1
    assert compared > 1000
