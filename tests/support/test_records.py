"""Records: what they give is what dataclasses give."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field

import pytest

from weft.support.records import frozen, record


@record
class Made:
    name: str
    sizes: tuple[int, ...] = ()
    more: list[int] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    sizes: tuple[int, ...] = ()
    more: list[int] = field(default_factory=list, compare=False, repr=False)


@record
class Longer(Made):
    last: int = 3

    def __repr__(self) -> str:
        return "mine"


@frozen
class Same:
    value: int
    twice: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.value)


@record
class Nothing:
    pass


def test_a_record_is_shown_compared_and_hashed_as_a_dataclass() -> None:
    a, b = Made("a", (1, 2)), Plain("a", (1, 2))
    assert repr(a) == repr(b).replace("Plain", "Made")
    assert (hash(a), a == Made("a", (1, 2), [5]), a == Made("b"), a == b) == (hash(b), True, False, False)
    assert list(inspect.signature(Made).parameters) == list(inspect.signature(Plain).parameters)
    assert [item.name for item in dataclasses.fields(a)] == ["name", "sizes", "more"]  # type: ignore[arg-type]
    assert Made("a").more is not Made("a").more
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


def test_a_record_is_not_changed() -> None:
    a = Made("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        a.name = "b"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del a.name  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Made()  # type: ignore[call-arg]
    assert not hasattr(a, "__dict__")


@pytest.mark.parametrize("value", [Made("a", (1,), [2]), Longer("b", (), [], 4), Nothing()])
def test_a_record_is_copied_pickled_and_replaced(value: object) -> None:
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert dataclasses.replace(value) == value  # type: ignore[type-var]


def test_methods_of_the_class_stay_and_fields_of_its_base_come_first() -> None:
    assert repr(Longer("a")) == "mine"
    assert (Longer("a", (1,)).last, Longer("a") == Longer("a", last=3)) == (3, True)
    assert dataclasses.replace(Longer("a"), last=5).last == 5


def test_a_class_that_is_frozen_alone_is_compared_by_identity() -> None:
    assert (Same(2).twice, Same(2) == Same(2), list(inspect.signature(Same).parameters)) == (4, False, ["value"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        Same(2).value = 3  # type: ignore[misc]
