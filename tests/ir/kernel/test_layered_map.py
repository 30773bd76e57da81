"""Mappings that grow by sharing what they hold with those that they grew from."""

from __future__ import annotations

import random

import pytest

from weft.ir.kernel.layered_map import LayeredMap


def test_every_step_stays_what_it_was() -> None:
    choose = random.Random(0)
    steps: list[tuple[LayeredMap[int, int | None], dict[int, int | None]]] = [(LayeredMap(), {})]
    for _ in range(600):
        made, known = choose.choice(steps[-3:])
        key, value = choose.randrange(200), choose.choice([None, choose.randrange(9)])
        steps.append((made.with_item(key, value), {**known, key: value}))
    for made, known in steps[::7]:
        assert dict(made) == known
        assert len(made) == len(known)
        assert all((key in made) == (key in known) and made.get(key, 1) == known.get(key, 1) for key in range(200))
    with pytest.raises(KeyError):
        steps[0][0][1]


def test_few_items_are_copied_for_many() -> None:
    made: LayeredMap[int, int] = LayeredMap()
    kept: dict[int, dict[int, int]] = {}
    for number in range(5000):
        made = made.with_item(number, number)
        kept |= {id(layer): layer for layer in made._layers[:-1]}
    assert sum(map(len, kept.values())) < 5000 * 10
