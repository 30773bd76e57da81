"""The namespace `I`: modules, their attributes and global infos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from typing import TypeVar as _TypeVar

import numpy as np

from weft.ir.dim import Dim, parse_dim
from weft.ir.module import DummyGlobalInfo
from weft.ir.types import AnyType, StringType, VDevice
from weft.script.decorators import ir_module
from weft.support.providers import provider as _provider
from weft.target import Target

__all__ = [
    "AnyType",
    "Range",
    "StringType",
    "artifacts",
    "dim",
    "dummy_global_info",
    "float_bits",
    "ir_module",
    "meta_var",
    "module_attrs",
    "module_global_infos",
    "pyfunc",
    "target",
    "vdevice",
]

_T = _TypeVar("_T")


def module_attrs(attrs: Mapping[str, Any]) -> None:
    """Attributes of the module whose class body this stands in (read from its text)."""


def module_global_infos(infos: Mapping[str, Any]) -> None:
    """Global infos of the module whose class body this stands in (read from its text)."""


def vdevice(target: Any, index: int = 0, scope: str = "global") -> VDevice:
    """A virtual device: a target, an index, a memory scope."""
    return VDevice(target, index, scope)


def Range(begin: int, end: int) -> range:
    """Numbers that follow one another, such as those of the devices of a mesh."""
    return range(begin, end)


def target(spec: Any) -> Target:
    """A target: a string such as "llvm -mcpu=znver5", a dictionary, or JSON."""
    return Target(spec)


def artifacts(data: Any) -> Any:
    """Artifacts as attribute data: a list of dictionaries, one per artifact, the bytes of each in base 64."""
    return _provider("artifacts")(data)


def dummy_global_info() -> DummyGlobalInfo:
    """A global info without content."""
    return DummyGlobalInfo()


def meta_var(value: _T) -> _T:
    """The value itself: inside a script, a value that binds no variable."""
    return value


def pyfunc(func: _T) -> _T:
    """The function itself: in an @I.ir_module class a Python function, which `R.call_py` calls by its name."""
    return func


def dim(text: str) -> Dim:
    """The dimension that a text stands for.

    >>> dim("2 * n + 1")
    2 * n + 1
    """
    return parse_dim(text)


def float_bits(bits: int) -> float:
    """The float with the given 64 bits (a nan with a payload).

    >>> float_bits(0x3FF0000000000000)
    1.0
    """
    return float(np.uint64(bits).view(np.float64))
