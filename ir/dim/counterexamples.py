"""Symbol values that make a claim about dimensions false."""

from __future__ import annotations

from collections.abc import Callable

from weft.errors import ShapeError
from weft.ir.dim.expression import Dim, as_dim, symbol
from weft.ir.dim.facts import NO_FACTS, Facts
from weft.ir.dim.inspection import evaluate, free_symbols, same
from weft.ir.dim.samples import candidate_points


def counterexample(a: Dim, b: Dim, facts: Facts | None = None) -> dict[str, int] | None:
    """Symbol values (small ones first) that satisfy the facts and make a != b; None when none was found.

    >>> n = symbol("n")
    >>> counterexample(n * n, n)
    {'n': 2}
    """
    return _search(a, b, facts, lambda left, right: left != right)


def counterexample_le(a: Dim, b: Dim, facts: Facts | None = None) -> dict[str, int] | None:
    """Symbol values (small ones first) that satisfy the facts and make a > b; None when none was found."""
    return _search(a, b, facts, lambda left, right: left > right)


def _search(a: Dim, b: Dim, facts: Facts | None, wanted: Callable[[int, int], bool]) -> dict[str, int] | None:
    facts = facts or NO_FACTS
    a, b = as_dim(a), as_dim(b)
    if same(a, b):
        return None
    names = sorted({*free_symbols(a), *free_symbols(b), *facts.names})
    translated = {name: facts.world.translate(symbol(name)) for name in names}
    images = {name: image for name, image in translated.items() if image is not None}
    if len(images) < len(translated):
        return None
    parameters = tuple(sorted({name for image in images.values() for name in free_symbols(image)}))
    for point in candidate_points(parameters):
        try:
            values = {name: evaluate(image, point) for name, image in images.items()}
            if min(values.values(), default=0) >= 0 and wanted(evaluate(a, values), evaluate(b, values)):
                if facts.holds(values):
                    return values
        except ShapeError:  # a division by zero: not a value to show
            continue
    return None
