"""Kinds of values that were given as anything: what `isinstance` knows of the class, and that parts may be anything.

After `isinstance(value, list)` a type checker calls the items unknown; here they are `Any`, which is what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

__all__ = ["is_array", "is_listing", "is_mapping", "is_number", "is_tuple"]


def is_listing(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """Whether a value is a tuple or a list.

    >>> is_listing((1, 2)), is_listing("ab")
    (True, False)
    """
    return isinstance(value, (tuple, list))


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value is a tuple.

    >>> is_tuple((1, 2)), is_tuple([1, 2])
    (True, False)
    """
    return isinstance(value, tuple)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a mapping.

    >>> is_mapping({"a": 1}), is_mapping(["a"])
    (True, False)
    """
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[NDArray[Any]]:
    """Whether a value is a NumPy array.

    >>> is_array(np.zeros(2)), is_array(2)
    (True, False)
    """
    return isinstance(value, np.ndarray)


def is_number(value: object) -> TypeGuard[np.generic[Any]]:
    """Whether a value is a scalar of NumPy's.

    >>> is_number(np.int32(2)), is_number(2)
    (True, False)
    """
    return isinstance(value, np.generic)
