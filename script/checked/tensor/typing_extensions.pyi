"""`@T.prim_func`, with options or without (see ../__init__.pyi)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from weft.ir.tensor import PrimFunc
from weft.script.checked.tensor_then.typing_extensions import no_type_check as _decorator

_Result = TypeVar("_Result", default=PrimFunc)

class _Then(Generic[_Result]):
    def __init__(self, result: _Result) -> None: ...

def no_type_check(
    func: Callable[..., Any] | _Then[_Result] = _Then(_decorator), *,
    private: bool = False, check_well_formed: bool = True, s_tir: bool = False, persistent: bool = False,
    name: str | None = None,
) -> _Result:
    """Read a Python function as a tensor-level function."""
