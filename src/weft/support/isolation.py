"""Functions from outside work on arrays of their own.

    isolated(function)(*values)         values ::= Typed | array | tuple of values | anything else

The function gets copies: it may keep, change and free them, and what it returns is copied too (in native byte order),
so that neither side sees or frees memory of the other. What it writes into a writable array goes back when it returns;
arrays that overlap are copies that overlap in the same way. A copy does not own its memory, so that NumPy does not let
it be resized. An array whose dtype is known (`Typed`) comes as `weft.dtypes.array_dtype` says: bfloat16 and what else
NumPy lacks as arrays of `ml_dtypes`. Compiled code and the interpreter call registered functions through here, and
nowhere else.

Errors: ShapeError W223 for an array that the function gave another form, RecursionDepthError W951 for functions that
call compiled or interpreted functions which call them, so often that the stack of the thread would end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from weft.dtypes import held, offered_items, presented, stored
from weft.errors import RecursionDepthError, ShapeError
from weft.support.guards import is_array, is_listing, is_tuple
from weft.support.records import dataclass
from weft.support.stack import own_stack

__all__ = [
    "Isolated",
    "Typed",
    "apart_from",
    "arrays_in",
    "hand_over",
    "isolated",
    "map_items",
    "plain",
    "raised_outside",
    "refuse_nested",
    "shown",
    "tuple_items",
]


_CALL_BYTES = 64 << 10
"""More stack than a call takes from a registered function to the next one that it calls through weft."""
_MOST_LEVELS = 200
_own = threading.local()


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """An array of `weft.dtypes.storage`, and the dtype that it holds where that is known.

    Where nobody states one, it is the one that the array itself says (`weft.dtypes.held`).
    """

    array: np.ndarray
    dtype: str | None = None

    def __post_init__(self) -> None:
        if self.dtype is None:
            object.__setattr__(self, "dtype", held(self.array))

    @property
    def presented(self) -> np.ndarray:
        """The array as callers see it: over the same memory where the bits are the same."""
        return presented(self.array, self.dtype)


def plain(value: Any) -> Any:
    """A value with its arrays as they are stored.

    >>> plain((Typed(np.zeros(1, "uint16"), "bfloat16"), 3))
    (array([0], dtype=uint16), 3)
    """
    if isinstance(value, Typed):
        return value.array
    return map_items(value, tuple_items, plain) if isinstance(value, tuple) else value


def shown(value: Any) -> Any:
    """A value with its arrays as callers see them.

    >>> shown((Typed(np.full(1, 0x3F80, "uint16"), "bfloat16"), 3))
    (array([1], dtype=bfloat16), 3)
    """
    if isinstance(value, Typed):
        return value.presented
    if isinstance(value, np.ndarray):
        return presented(cast("np.ndarray", value), None)
    return map_items(value, tuple_items, shown) if isinstance(value, tuple) else value


class Isolated:
    """A function that works on copies, with its first arguments."""

    __slots__ = ("fixed", "function")

    def __init__(self, function: Callable[..., Any], fixed: tuple[Any, ...] = ()) -> None:
        self.function, self.fixed = function, fixed

    def __call__(self, /, *given: Any) -> Any:
        """Call it, and write back what it wrote."""
        depth = refuse_nested(2)  # what called the first took as much
        _own.depth = depth + 1
        try:
            return self._call(self.fixed + given)
        finally:
            _own.depth = depth

    def _call(self, values: tuple[Any, ...]) -> Any:
        found: list[Typed] = []
        _collect(values, found)
        copies = _copies(found)
        held = [copy.base for _, copy in copies]  # NumPy resizes no array that is held here too
        result = _run(self.function, _replaced(values, iter([copy for _, copy in copies])))
        for typed, copy in copies:
            if typed.array.flags.writeable:
                typed.array[...] = _written(copy, typed)
        result = _copied(result)
        del held
        return result


def refuse_nested(more: int = 1) -> int:
    """How many functions from outside this thread is in; RecursionDepthError W951 where it has no stack for `more`.

    A program that they call again asks as it begins, outside it gives 0.
    """
    depth = getattr(_own, "depth", 0)
    if depth and (depth + more) * _CALL_BYTES > own_stack():
        raise RecursionDepthError("calls of registered functions are nested too deep", code="W951")
    return depth


def _run(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Run a function from outside: the frame that `raised_outside` looks for."""
    return function(*values)


def raised_outside(error: BaseException) -> bool:
    """Whether a function from outside raised an error: it is the user's and stays what it is."""
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code is _run.__code__:
            return True
        step = step.tb_next
    return False


def isolated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on arrays of its own: it may keep them, and what it writes goes back when it returns.

    >>> kept, x = [], np.zeros(2)
    >>> isolated(kept.append)(x)
    >>> np.may_share_memory(kept[0], x)
    False
    """
    return function if isinstance(function, Isolated) else Isolated(function)


def hand_over(function: Callable[..., Any], *values: Any) -> Any:
    """Call any function on values whose arrays are `Typed`: one of weft's own works on them as they are stored."""
    return function(*(values if isinstance(function, Isolated) else map(plain, values)))


def map_items(value: Any, parts: Callable[[Any], Sequence[Any] | None], leaf: Callable[[Any], Any]) -> Any:
    """A value with `leaf` of what is no tuple or list in it, each tuple and list once, however often it is held.

    `parts` gives None for leaves. Raises RecursionDepthError W951 for what nests deeper than 200 levels, or
    holds itself.

    >>> map_items((1, (2, [3])), offered_items, str)
    ('1', ('2', ['3']))
    """
    if parts(value) is None:
        return leaf(value)
    known: dict[int, tuple[Any, Any]] = {}  # with what has the number, so that nothing else gets it

    def mapped(item: Any, levels: int) -> Any:
        inside: Any = parts(item)
        if inside is None:
            return leaf(item)
        if id(item) not in known:
            if levels > _MOST_LEVELS:
                raise RecursionDepthError(f"a value nests deeper than {_MOST_LEVELS} levels", code="W951")
            made = [mapped(part, levels + 1) for part in inside]
            if all(new is old for new, old in zip(made, inside, strict=True)):
                known[id(item)] = item, item
            else:
                known[id(item)] = item, tuple(made) if is_tuple(item) else made
        return known[id(item)][1]

    return mapped(value, 1)


def tuple_items(value: Any) -> tuple[Any, ...] | None:
    """What a tuple holds; None for anything else.

    >>> tuple_items((1, 2)), tuple_items([1])
    ((1, 2), None)
    """
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else None


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """The arrays in tuples and lists, each of which is looked at once.

    >>> [array.shape for array in arrays_in((np.zeros(2), [np.zeros(3)]))]
    [(3,), (2,)]
    """
    pending, known = [value], set[int]()
    while pending:
        item = pending.pop()
        if is_array(item):
            yield item
        elif is_listing(item) and id(item) not in known:
            known.add(id(item))
            pending.extend(item)


def apart_from(value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """A value whose arrays share no memory with others: those that do are copied.

    >>> x = np.zeros(2)
    >>> apart_from((x, 1), [x])[0] is x
    False
    """

    def own(item: Any) -> Any:
        return item.copy() if is_array(item) and any(np.may_share_memory(item, array) for array in arrays) else item

    return map_items(value, tuple_items, own)


def _collect(values: tuple[Any, ...], found: list[Typed]) -> None:
    """The arrays of values in order."""
    for value in values:
        if isinstance(value, Typed):
            found.append(value)
        elif isinstance(value, np.ndarray):
            found.append(Typed(cast("np.ndarray", value)))
        elif is_tuple(value):
            map_items(value, tuple_items, lambda item: _collect((item,), found))


def _replaced(values: tuple[Any, ...], given: Iterator[np.ndarray]) -> tuple[Any, ...]:
    """Values with other arrays in the places of their own, in the order of `_collect`."""
    return tuple(
        next(given)
        if isinstance(item, (Typed, np.ndarray))
        else map_items(item, tuple_items, lambda part: _replaced((part,), given)[0])
        if isinstance(item, tuple)
        else item
        for item in values
    )


def _copies(found: Sequence[Typed]) -> list[tuple[Typed, np.ndarray]]:
    """The arrays with what the function gets for each: the same for the same, overlapping where they overlap."""
    places = [_place(typed.array) for typed in found] if len(found) > 1 else []
    if not places or not _touch(places):
        copies = [presented(np.array(typed.array, order="C"), typed.dtype) for typed in found]
        return [(typed, _handed(copy, typed.array)) for typed, copy in zip(found, copies, strict=True)]
    memory: dict[Any, np.ndarray] = {}
    made: dict[Any, np.ndarray] = {}
    pairs: list[tuple[Typed, np.ndarray]] = []
    groups = _overlapping([typed.array for typed in found], places)
    for index, typed in enumerate(found):
        array = typed.array
        key = (*places[index], array.shape, array.strides, array.dtype, typed.dtype)
        if key not in memory:
            memory[key] = presented(groups[index] if index in groups else np.array(array, order="C"), typed.dtype)
        key = (*key, array.flags.writeable)  # two views of one memory may differ in that
        if key not in made:
            made[key] = _handed(memory[key[:-1]], array)
        pairs.append((typed, made[key]))
    return pairs


def _handed(copy: np.ndarray, array: np.ndarray) -> np.ndarray:
    """A copy of an array as a function gets it."""
    view = copy.view()
    if not array.flags.writeable:
        view.flags.writeable = False
    return view


def _place(array: np.ndarray) -> tuple[int, int]:
    """The first byte of an array and the one behind the last; an empty one has none."""
    if not array.size:
        return 0, 0
    if array.flags.c_contiguous:
        start = array.__array_interface__["data"][0]
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def _touch(places: Sequence[tuple[int, int]]) -> bool:
    """Whether some of the places have a byte in common.

    >>> _touch([(8, 12), (0, 8)]), _touch([(8, 12), (0, 9)])
    (False, True)
    """
    ordered = sorted(place for place in places if place[1])
    return any(second[0] < first[1] for first, second in pairwise(ordered))


def _overlapping(arrays: Sequence[np.ndarray], bounds: Sequence[tuple[int, int]]) -> dict[int, np.ndarray]:
    """By number of an array that overlaps another one: a copy that overlaps its copy in the same way."""
    places = {index: place for index, place in enumerate(bounds) if place[1]}
    found: dict[int, np.ndarray] = {}
    group: list[int] = []
    end = 0

    def close() -> None:
        if len({(places[index], arrays[index].shape, arrays[index].strides) for index in group}) > 1:
            found.update(_group(group, arrays, places))

    for index in sorted(places, key=lambda index: places[index]):
        if group and places[index][0] >= end:
            close()
            group, end = [], 0
        group.append(index)
        end = max(end, places[index][1])
    close()
    return found


def _group(
    group: Sequence[int], arrays: Sequence[np.ndarray], places: dict[int, tuple[int, int]]
) -> dict[int, np.ndarray]:
    """Copies of arrays in one piece of memory, at the distances that they have."""
    start, end = min(places[index][0] for index in group), max(places[index][1] for index in group)
    memory = np.zeros(end - start, np.uint8)
    made: dict[int, np.ndarray] = {}
    for index in group:
        array = arrays[index]
        offset = array.__array_interface__["data"][0] - start
        copy = np.ndarray(array.shape, array.dtype, memory.data, offset, array.strides)
        copy[...] = array
        made[index] = copy
    return made


def _written(copy: np.ndarray, typed: Typed) -> np.ndarray:
    """What a function wrote, as it is stored; ShapeError W223 when the array is no longer of the same form."""
    array = typed.array
    values = copy if typed.dtype is None else stored(copy, typed.dtype)
    if copy.shape != array.shape or values.dtype != array.dtype:
        given = typed.presented if array.size else array
        message = f"an array of {given.dtype}[{array.shape}] was made one of {copy.dtype}[{copy.shape}] by the function"
        raise ShapeError(message, code="W223", hint="write into the array: out[...] = values")
    return values


def _copied(value: Any) -> Any:
    """What a function returned, apart from what it keeps: arrays in tuples and lists are copied."""
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray", value)
        return np.array(array, array.dtype if array.dtype.isnative else array.dtype.newbyteorder("="))
    return map_items(value, offered_items, _copied) if isinstance(value, (tuple, list)) else value
