"""Dataclasses that are quick to define.

The decorator of the standard library writes up to seven methods for each class and compiles their text when it is
imported, which takes most of the time of importing a module of them. Here all but `__init__` are the same functions
for every class, and `__init__` is written when it is first asked for: a process makes few of the classes that it
loads. What they give is what those of a dataclass give, and `dataclasses.replace`, `fields` and `asdict` take these.

dataclass    a dataclass as that of the standard library
record       a frozen one with slots, compared by its values
frozen       a frozen one with slots, compared and shown as its base class is
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

__all__ = ["dataclass", "frozen", "record"]

R = TypeVar("R")
_FIELDS, _PARAMS = "__dataclass_fields__", "__dataclass_params__"


@overload
def dataclass(cls: type[R], /) -> type[R]: ...
@overload
def dataclass(
    *, frozen: bool = False, eq: bool = True, repr: bool = True, slots: bool = False
) -> Callable[[type[R]], type[R]]: ...
@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    cls: type[Any] | None = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True, slots: bool = False
) -> Any:
    """Make a class a dataclass, as `dataclasses.dataclass` does with these options; fields are no `InitVar`.

    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), {Point(2, 3): "a"}[Point(2, 3)]
    (Point(x=1, y=0), True, 'a')
    """

    def made(cls: type[Any]) -> type[Any]:
        if slots and any(hasattr(base, _FIELDS) for base in cls.__bases__):
            return dataclasses.dataclass(frozen=frozen, eq=eq, repr=repr, slots=True)(cls)
        return _quick(cls, frozen=frozen, eq=eq, repr=repr, slots=slots)

    return made if cls is None else made(cls)


def _quick(cls: type[Any], *, frozen: bool, eq: bool, repr: bool, slots: bool) -> type[Any]:
    """A class as a dataclass; one with slots has no dataclass among its bases."""
    own = {name for name, value in cls.__dict__.items() if name != "__hash__" or value is not None}
    if slots:  # another class, which the library makes
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    else:
        _describe(cls)
    params = getattr(cls, _PARAMS)
    params.init, params.repr, params.eq, params.frozen = True, repr, eq, frozen
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _Initializer(cls, frozen)}
    if repr:
        methods["__repr__"] = _repr
    if eq:
        methods |= _compared([item for item in fields if item.compare])
        methods["__hash__"] = methods["__hash__"] if frozen else None
    if frozen:
        methods |= _refusals(cls, frozenset(item.name for item in fields))
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _restored}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return abc.update_abstractmethods(cls)


def _describe(cls: Any) -> None:
    """Say of a class which fields it has, those of its bases first.

    The library is asked of a class that has these fields and nothing else: it refuses some bases, by how they are made.
    """
    said = inspect.get_annotations(cls)
    values = {name: cls.__dict__[name] for name in said if name in cls.__dict__}
    alone: Any = type(
        cls.__name__, (), {"__doc__": "-", "__module__": cls.__module__, "__annotations__": said, **values}
    )
    dataclasses.dataclass(init=False, repr=False, eq=False)(alone)
    fields: dict[str, Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        fields |= base.__dict__.get(_FIELDS, {})
    setattr(cls, _FIELDS, {**fields, **getattr(alone, _FIELDS)})
    setattr(cls, _PARAMS, getattr(alone, _PARAMS))
    for name in values:
        if name in alone.__dict__:
            setattr(cls, name, alone.__dict__[name])
        else:
            delattr(cls, name)  # it was a field with a function that makes its default
    if "__match_args__" not in cls.__dict__:
        cls.__match_args__ = tuple(item.name for item in dataclasses.fields(cls) if item.init and not item.kw_only)
    if "__replace__" in alone.__dict__:  # from Python 3.13 on
        cls.__replace__ = alone.__dict__["__replace__"]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[R]) -> type[R]:
    """Make a class a frozen, slotted dataclass, compared by its values.

    Fields are those of a dataclass with positional parameters. Methods that the class defines itself stay.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), {Point(2, 3): "a"}[Point(2, 3)]
    (Point(x=1, y=0), True, 'a')
    """
    own = set(cls.__dict__)
    made = frozen(cls)
    fields = [item for item in dataclasses.fields(made) if item.compare]  # type: ignore[arg-type]
    for name, method in {"__repr__": _repr, **_compared(fields)}.items():
        if name not in own:
            setattr(made, name, method)
    return made


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def frozen(cls: type[R]) -> type[R]:
    """Make a class a frozen, slotted dataclass that is compared and shown as its base class is."""
    own = set(cls.__dict__)
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    methods = {
        "__init__": _Initializer(made, frozen=True),
        "__setattr__": _refused_assignment,
        "__delattr__": _refused_deletion,
        "__getstate__": _state,
        "__setstate__": _restored,
    }
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


class _Initializer:
    """`__init__` of a class, which gives way to the function when somebody asks for that."""

    def __init__(self, cls: type[Any], frozen: bool) -> None:
        self.cls: Any = cls
        self.frozen = frozen

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        made = _initializer(self.cls, self.frozen)
        if self.cls.__dict__.get("__init__") is self:
            self.cls.__init__ = made
        return made if instance is None else made.__get__(instance)


def _initializer(cls: type[Any], frozen: bool) -> Any:
    """`__init__`, which has a text of its own as its parameters are those of the class; a function of its module."""
    names: dict[str, Any] = {"_assign": object.__setattr__, "_absent": dataclasses.MISSING, "__name__": cls.__module__}
    params, keywords, lines = ["self"], list[str](), list[str]()
    fields = dataclasses.fields(cls)
    for item in fields:
        name = value = item.name
        param = value
        if item.default is not dataclasses.MISSING:
            if not item.init and getattr(cls, name, dataclasses.MISSING) is item.default:
                continue  # the class has it
            names[f"_default_{name}"] = item.default
            param, value = f"{name}=_default_{name}", name if item.init else f"_default_{name}"
        elif item.default_factory is not dataclasses.MISSING:
            names[f"_made_{name}"] = item.default_factory
            made = f"_made_{name}()"
            param, value = f"{name}=_absent", f"{made} if {name} is _absent else {name}" if item.init else made
        if item.init:
            (keywords if item.kw_only else params).append(param)
        elif value == name:  # `__post_init__` gives it a value
            continue
        lines.append(f" _assign(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    lines += [" self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    head = ", ".join([*params, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({head}):\n" + "\n".join(lines or [" pass"]), names)
    made = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**{item.name: item.type for item in fields if item.init}, "return": None}
    return made


def _compared(fields: Sequence[Field[Any]]) -> dict[str, Callable[..., Any]]:
    """`__eq__` and `__hash__` of the values of some fields."""
    get = _values_of([item.name for item in fields])

    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return get(self) == get(other)

    def hash_of(self: Any) -> int:
        return hash(get(self))

    return {"__eq__": equal, "__hash__": hash_of}


def _refusals(cls: type[Any], names: frozenset[str]) -> Mapping[str, Callable[..., None]]:
    """What keeps a frozen class from being changed; one that follows from it may have more than its fields."""

    def refuse_assignment(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            _refused_assignment(self, name, value)
        super(cls, self).__setattr__(name, value)

    def refuse_deletion(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            _refused_deletion(self, name)
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse_assignment, "__delattr__": refuse_deletion}


def _values_of(names: Sequence[str]) -> Callable[[Any], Any]:
    """What gives the values of some fields, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)

    def few(self: Any) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in names])

    return few


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refused_assignment(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refused_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _restored(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
