"""Nodes whose parts are of other kinds than their fields state, as Python lets anybody build them.

Nothing is looked at while all goes well: what fails on a module asks afterwards whether the module is at fault.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeVar

from weft.errors import ArgumentError, RecursionDepthError, Span, VerifyError, WeftError, described
from weft.ir.node import Node, fields_of
from weft.ir.structure.recursion import is_deep
from weft.support.guards import is_listing, is_mapping, is_tuple
from weft.support.records import dataclass

__all__ = ["FAILURES", "explained_by", "malformed"]

F = TypeVar("F", bound=Callable[..., Any])
FAILURES = (AttributeError, TypeError, ValueError, IndexError, KeyError, AssertionError)
"""What Python raises where a value is not what code takes it for."""


def explained_by(fault: Callable[[Any], WeftError | None]) -> Callable[[F], F]:
    """A decorator for functions of nodes: where one fails, `fault` is asked whether its first argument is at fault.

    Where the stack ends in one, and that argument nests deeply, in its types too, the error is W951.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(first: Any, *args: Any, **options: Any) -> Any:
            try:
                return function(first, *args, **options)
            except WeftError:
                raise
            except RecursionError:
                if not is_deep(first):
                    raise
                raise RecursionDepthError(
                    f"{described(first)} is nested too deeply for {function.__name__}",
                    code="W951",
                    hint="bind parts to variables, and nest types less",
                ) from None
            except FAILURES as error:
                if isinstance(error, TypeError):
                    _refuse_mismatch(function, (first, *args), options)
                raise fault(first) or error from error.__cause__

        return typing.cast(F, call)

    return decorate


class MisfitArgument(ArgumentError, TypeError):
    """Arguments that the parameters of a function of weft do not take (W850)."""


def _refuse_mismatch(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """MisfitArgument where the function does not take such arguments."""
    taken = inspect.signature(function)
    try:
        taken.bind(*args, **options)
    except TypeError as error:
        unknown = [name for name in options if name not in taken.parameters]
        near = difflib.get_close_matches(unknown[0], taken.parameters, 1) if unknown else []
        hint = f"did you mean `{near[0]}`?" if near else f"it takes: {', '.join(taken.parameters)}"
        raise MisfitArgument(f"{function.__name__}: {error}", code="W850", hint=hint) from None


_PLAIN = frozenset({bool, int, float, str, type(None), Span})
"""What holds no parts."""


def malformed(root: Any) -> VerifyError | None:
    """W467 for the first part that is not what its field states, among all that a value holds; else None.

    >>> from weft.ir.tensor import Evaluate
    >>> malformed(Evaluate(3)).message
    '`value` of Evaluate takes an Expr, got an int'
    """
    return None if _is_sound(root) else _first_fault(root)


@dataclass
class _Field:
    """A field of a class of nodes: its test, and the classes of values, and of items of tuples, known to pass it."""

    name: str
    fits: Callable[[Any], bool]
    items_decide: bool
    values: set[type] = field(default_factory=set[type])
    items: set[type] | None = None

    def takes(self, value: Any) -> bool:
        """Whether a value passes; what its class decides is noted."""
        if not self.fits(value):
            return False
        if not is_tuple(value):
            self.values.add(value.__class__)
        elif self.items_decide:
            self.items = {*(self.items or ()), *map(type, value)}
        return True


def _is_sound(root: Any) -> bool:
    """Whether every part is what its field states: the quick form of `_first_fault`, which nearly all values pass."""
    pending, seen, known = [root], set[int](), _FIELDS
    while pending:
        value = pending.pop()
        fields = known.get(value.__class__)
        if fields is None:
            if isinstance(value, Node):
                fields = known[type(value)] = _fields(type(value))
            else:
                if is_listing(value):
                    pending.extend(value)
                elif is_mapping(value):
                    pending.extend(value.values())
                continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        for item in fields:
            part: Any = getattr(value, item.name, None)
            kind = part.__class__
            if kind is tuple:
                if (item.items is None or not item.items.issuperset(map(type, part))) and not item.takes(part):
                    return False
                pending.extend(part)
                continue
            if kind not in item.values and not item.takes(part):
                return False
            if kind not in _PLAIN:
                pending.append(part)
    return True


def _first_fault(root: Any) -> VerifyError | None:
    pending: list[tuple[Any, Span | None]] = [(root, None)]
    seen: set[int] = set()
    while pending:
        value, span = pending.pop()
        if id(value) in seen:
            continue
        if isinstance(value, Node):
            seen.add(id(value))
            span = getattr(value, "span", None) or span
            found = _wrong_field(value, span)
            if found is not None:
                return found
            parts = (getattr(value, item.name, None) for item in reversed(fields_of(type(value))))
            pending.extend((part, span) for part in parts if part.__class__ not in _PLAIN)
        elif is_listing(value):
            pending.extend((item, span) for item in reversed(value))
        elif is_mapping(value):
            pending.extend((item, span) for item in value.values())
    return None


def _wrong_field(node: Node, span: Span | None) -> VerifyError | None:
    for name, hint, fits in _tests(type(node)):
        value = getattr(node, name, None)
        if not fits(value):
            shown = described(value) if not is_listing(value) else _first_wrong(value, hint)
            message = f"`{name}` of {type(node).__name__} takes {_words(hint)}, got {shown}"
            where = span if isinstance(span, Span) else None
            return VerifyError(message, code="W467", span=where, hint="weft.ir.kernel.prim.const makes one of a number")
    return None


_FIELDS: dict[type, tuple[_Field, ...]] = {}


def _fields(cls: type) -> tuple[_Field, ...]:
    stated = {name: (hint, fits) for name, hint, fits in _tests(cls)}
    everything: tuple[Any, Callable[[Any], bool]] = (Any, lambda value: True)
    found = ((item.name, *stated.get(item.name, everything)) for item in fields_of(cls))
    return tuple(_Field(name, fits, _items_decide(hint)) for name, hint, fits in found)


def _items_decide(hint: Any) -> bool:
    """Whether a tuple is what a type says wherever the classes of its items are those of one that was."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    tuples = [typing.get_args(option) for option in options if typing.get_origin(option) is tuple]
    if any(len(arguments) != 2 or arguments[1] is not Ellipsis for arguments in tuples):
        return False
    return len(tuples) == 1 and "tuple" not in str(tuples[0][0])


@functools.cache
def _tests(cls: type) -> tuple[tuple[str, Any, Callable[[Any], bool]], ...]:
    """The fields of a class of nodes that not everything fits: name, type, test. Types are taken apart once."""
    try:
        hints = typing.get_type_hints(cls)
    except (NameError, TypeError):  # a class of a local scope, say: nothing to hold its fields against
        return ()
    found = ((item.name, hints.get(item.name, Any)) for item in fields_of(cls))
    return tuple((name, hint, _test(hint)) for name, hint in found if hint is not Any)


def _test(hint: Any) -> Callable[[Any], bool]:
    """Whether a value is what a type says, as a function."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        parts = [_test(part) for part in arguments]
        return lambda value: any(part(value) for part in parts)
    if origin is tuple:
        if not (len(arguments) == 2 and arguments[1] is Ellipsis):
            return is_tuple
        item = _test(arguments[0])
        return lambda value: is_tuple(value) and all(map(item, value))
    kind = origin or hint
    if hint is Any or not isinstance(kind, type):  # a class since Python 3.11, though nothing is an instance of it
        return lambda value: True
    if kind is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)


def _first_wrong(value: Any, hint: Any) -> str:
    tuples = [part for part in (hint, *typing.get_args(hint)) if typing.get_origin(part) is tuple]
    if not is_tuple(value) or not tuples:
        return described(value)
    wanted = typing.get_args(tuples[0])[0]
    return next((f"{described(item)} among them" for item in value if not _test(wanted)(item)), described(value))


def _words(hint: Any) -> str:
    """A type as words: `a PrimExpr or None`, `a tuple of PrimExpr`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("None" if part is type(None) else _words(part) for part in arguments)
    if origin is tuple:
        return f"a tuple of {getattr(arguments[0], '__name__', arguments[0])}"
    name = getattr(origin or hint, "__name__", str(hint))
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
