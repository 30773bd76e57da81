"""Records: what they give is what dataclasses give."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from weft.support.records import dataclass as quick
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


@dataclass(frozen=True)
class Base:
    kinds: ClassVar[tuple[str, ...]] = ("base",)
    name: str = "x"

    def shown(self) -> str:
        return self.name


@quick(frozen=True)
class QuickBase:
    kinds: ClassVar[tuple[str, ...]] = ("base",)
    name: str = "x"

    def shown(self) -> str:
        return self.name


@dataclass(frozen=True)
class Derived(Base):
    kinds: ClassVar[tuple[str, ...]] = ("derived",)
    name: str = "y"
    found: list[int] = field(default_factory=list, compare=False, repr=False)
    fixed: int = field(default=4, init=False)
    more: tuple[int, ...] = field(default=(), kw_only=True)

    def shown(self) -> str:
        return super().shown() + "!"


@quick(frozen=True)
class QuickDerived(QuickBase):
    kinds: ClassVar[tuple[str, ...]] = ("derived",)
    name: str = "y"
    found: list[int] = field(default_factory=list, compare=False, repr=False)
    fixed: int = field(default=4, init=False)
    more: tuple[int, ...] = field(default=(), kw_only=True)

    def shown(self) -> str:
        return super().shown() + "!"


@dataclass(frozen=True)
class OfQuick(QuickBase):
    more: int = 1


@quick(frozen=True)
class OfPlain(Base):
    more: int = 1


@quick
class Open:
    one: int
    two: list[int] = field(default_factory=list)
    three: int = field(init=False)

    def __post_init__(self) -> None:
        self.three = self.one + 2


@quick(frozen=True, slots=True)
class Slotted:
    one: int = 1
    two: int = field(default=2, init=False)


@quick(eq=False, repr=False)
class Identified:
    one: int


@quick(frozen=True)
class Shown:
    one: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shown)

    def __hash__(self) -> int:
        return 7


def facts(cls: Any) -> tuple[Any, ...]:
    fields = [(x.name, x.type, x.init, x.repr, x.compare, x.kw_only) for x in dataclasses.fields(cls)]
    parameters = [(x.name, x.kind, x.annotation) for x in inspect.signature(cls).parameters.values()]
    options = cls.__dataclass_params__
    return fields, parameters, cls.__match_args__, cls.kinds, cls.fixed, (options.frozen, options.eq, options.init)


def test_a_quick_dataclass_says_of_itself_what_a_dataclass_says() -> None:
    assert facts(QuickDerived) == facts(Derived)
    a, b = QuickDerived("a", [1], more=(2,)), Derived("a", [1], more=(2,))
    assert repr(a) == "Quick" + repr(b)
    assert (a.shown(), vars(a), hash(a)) == (b.shown(), vars(b), hash(b))
    assert a == QuickDerived("a", [5], more=(2,)) != QuickDerived("a")
    assert QuickDerived().found is not QuickDerived().found
    assert dataclasses.asdict(a) == dataclasses.asdict(b)
    assert dataclasses.replace(a, name="b") == QuickDerived("b", more=(2,))
    assert "found" not in vars(QuickDerived)
    assert QuickBase() != QuickDerived("x")


def test_quick_dataclasses_and_those_of_the_library_follow_from_one_another() -> None:
    assert (OfQuick("a", 2), OfPlain("a", 2)) == (OfQuick("a", more=2), OfPlain("a", more=2))
    assert repr(OfPlain()) == "OfPlain(name='x', more=1)"
    for value in (OfQuick(), OfPlain(), QuickBase()):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
            value.name = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match="non-frozen"):
        dataclass(type("Thawed", (QuickBase,), {"__annotations__": {"z": "int"}}))
    later = type("Later", (QuickBase,), {})()
    later.other = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        later.name = "b"


def test_a_quick_dataclass_that_is_not_frozen_is_changed_and_has_no_hash() -> None:
    a = Open(1)
    a.one = 5
    assert (a.one, a.three, a == Open(5), a != Open(5)) == (5, 3, False, True)
    assert Open(1) == Open(1)
    assert Open.__hash__ is None
    assert Identified(1) != Identified(1)
    assert "Identified object" in repr(Identified(1))
    assert (Shown(1) == Shown(2), hash(Shown(1))) == (True, 7)


def test_a_quick_dataclass_with_slots_has_nothing_else() -> None:
    a = Slotted()
    assert (a.two, a, pickle.loads(pickle.dumps(a)), copy.copy(a)) == (2, Slotted(1), a, a)
    assert not hasattr(a, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.two = 3  # type: ignore[misc]


def test_arguments_of_a_quick_dataclass_are_refused_by_its_name() -> None:
    with pytest.raises(TypeError, match=re.escape("Open.__init__() missing 1 required positional argument: 'one'")):
        Open()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="mutable default"):
        quick(type("Wrong", (), {"__annotations__": {"x": "list"}, "x": []}))
