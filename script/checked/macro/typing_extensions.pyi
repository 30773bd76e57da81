"""`@T.macro` and `@R.macro`, with options or without (see ../__init__.pyi)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from weft.script.checked.macro_then.typing_extensions import no_type_check as _decorator
from weft.script.reader.macros import Macro

_Result = TypeVar("_Result", default=Macro)

class _Then(Generic[_Result]):
    def __init__(self, result: _Result) -> None: ...

def no_type_check(
    func: Callable[..., Any] | _Then[_Result] = _Then(_decorator), *, hygienic: bool = True
) -> _Result:
    """Statements (and, in a graph function, a result) that functions take over where they call the macro.

    Free names mean what they mean here, or with hygienic=False what they mean where the macro is called first.
    """
