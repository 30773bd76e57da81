"""The decorators: they find the Python source of what they decorate and read it with the user's live names.

    @I.ir_module                                   a class of functions
    @R.function, @R.function(pure=, private=)      a graph function
    @T.prim_func, @T.prim_func(private=, ...)      a tensor-level function
    @R.rewriter                                    a class of two graph functions: a rule that is called on modules

A decorated function inside a class waits for the class: it stays as it is until @I.ir_module reads the whole.
Where their texts are found: `live_source`.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from weft.errors import Source, WeftError, described
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.ir.node import EMPTY
from weft.ir.tensor import PrimFunc
from weft.script.reader.macros import Macro
from weft.script.reader.module.unit import read_unit
from weft.script.source.diagnostics import Limits, fail
from weft.script.source.namespace_guard import placed
from weft.script.source.source_lookup import no_source, program_text
from weft.script.source.text import Unit, read_deeply
from weft.support.providers import provider

__all__ = ["function", "graph_macro", "inline", "ir_module", "macro", "prim_func", "rewriter"]

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


if TYPE_CHECKING:

    class ScriptModule(IRModule):
        """A decorated class: a module whose functions are also named as members (`Module.main`, inside the class)."""

        def __getattr__(self, name: str) -> Any: ...


@overload
def ir_module(
    cls: type, *, check_well_formed: bool = True, s_tir: bool = False, target: Any = None
) -> ScriptModule: ...
@overload
def ir_module(
    *, check_well_formed: bool = True, s_tir: bool = False, target: Any = None
) -> Callable[[type], ScriptModule]: ...
def ir_module(
    cls: type | None = None, *, check_well_formed: bool = True, s_tir: bool = False, target: Any = None
) -> Any:
    """Read a class of decorated functions as an IRModule; `target` is kept as its attribute of that name.

    Raises: ScriptError and the errors of type deduction, with the place in the user's file.
    """
    frame = sys._getframe(1)
    if cls is None:
        return lambda decorated: _read_class(decorated, _caller(frame))
    return _read_class(cls, _caller(frame))


def rewriter(cls: type) -> Any:
    """Read a class of the functions `pattern` and `replacement` as a `weft.transform.pattern.PatternMatchingRewriter`.

    Raises: ScriptError and the errors of type deduction with the place in the user's file; PassError W550 for a class
    that states no rule.
    """
    return provider("rewriter")(_read_class(cls, _caller(sys._getframe(1))))


def _decorated(func: Callable[..., Any] | None, frame: tuple[FrameType, int]) -> Any:
    """The function that is read, or what reads it where the decorator was called with options."""
    return _read_function(func, frame) if func is not None else lambda decorated: _read_function(decorated, frame)


@placed("R.function")
def function(
    func: Callable[..., Any] | None = None,
    *,
    pure: bool = True,
    private: bool = False,
    check_well_formed: bool = True,
    name: str | None = None,
) -> Any:
    """Read a Python function as a graph function."""
    return _decorated(func, _caller(sys._getframe(2)))


@placed("T.prim_func")
def prim_func(
    func: Callable[..., Any] | None = None,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = False,
    persistent: bool = False,
    name: str | None = None,
) -> Any:
    """Read a Python function as a tensor-level function."""
    return _decorated(func, _caller(sys._getframe(2)))


@overload
def macro(func: Callable[_P, _Result], *, hygienic: bool = True) -> Callable[_P, _Result]: ...
@overload
def macro(*, hygienic: bool = True) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]: ...
def macro(func: Any = None, *, hygienic: bool = True) -> Any:
    """Statements that tensor-level functions take over where they call them (`@T.macro`).

    Free names mean what they mean here, or with hygienic=False what they mean where the macro is called first.
    """
    return _macro_decorator(func, "T", hygienic, _caller(sys._getframe(1)))


def inline(func: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Statements that tensor-level functions take over where they call them; names follow Python's rules."""
    return _macro_decorator(func, "T", True, _caller(sys._getframe(1)))


@overload
def graph_macro(func: Callable[_P, _Result], *, hygienic: bool = True) -> Callable[_P, _Result]: ...
@overload
def graph_macro(*, hygienic: bool = True) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]: ...
def graph_macro(func: Any = None, *, hygienic: bool = True) -> Any:
    """Bindings and a result that graph functions take over where they call the macro (`@R.macro`)."""
    return _macro_decorator(func, "R", hygienic, _caller(sys._getframe(1)))


def _macro_decorator(func: Any, level: str, hygienic: bool, caller: tuple[FrameType, int]) -> Any:
    if func is None:
        return lambda decorated: _read_macro(decorated, level, hygienic, caller)
    return _read_macro(func, level, hygienic, caller)


def _read_macro(func: Any, level: str, hygienic: bool, caller: tuple[FrameType, int]) -> Macro:
    if not isinstance(func, FunctionType) or func.__name__ == "<lambda>":
        raise _no_function(func)
    code = func.__code__
    source, tree = program_text(caller[0], code, func.__globals__)
    definition = _definition_at(tree, code.co_firstlineno, func.__name__, ast.FunctionDef)
    if definition is None:
        raise no_source(func.__name__, source.name, "the file has changed since it was loaded")
    captured = ChainMap(_Cells(func), dict(caller[0].f_locals), func.__globals__)  # type: ignore[arg-type]
    unit = Unit(source, Limits(), captured=captured)
    return Macro(func.__name__, definition.args, definition.body, unit, level, hygienic)


def _no_function(value: object) -> WeftError:
    """The error for what a decorator of functions decorates, or was called with, where that is no `def`."""
    if isinstance(value, FunctionType):
        return fail("W104", "the decorator takes a `def`, got a lambda", hint="a lambda's parameters have no types")
    hint = "@I.ir_module decorates a class" if isinstance(value, type) else "options are named: @R.function(pure=False)"
    return fail("W104", f"the decorator takes a Python function, got {described(value)}", hint=hint)


class _Cells(Mapping[str, Any]):
    """The closure of a function, as it is when a name is looked up: a macro may be defined before what it uses."""

    def __init__(self, func: FunctionType) -> None:
        self.cells = dict(zip(func.__code__.co_freevars, func.__closure__ or (), strict=True))

    def __getitem__(self, name: str) -> Any:
        try:
            return self.cells[name].cell_contents
        except ValueError:  # not assigned yet
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


def _caller(frame: FrameType) -> tuple[FrameType, int]:
    """The frame of the user and the line it is at now (the decorator's line)."""
    return frame, frame.f_lineno


def _read_class(cls: type, caller: tuple[FrameType, int]) -> IRModule:
    if not isinstance(cls, type):
        hint = "@R.function or @T.prim_func decorates a function"
        raise fail("W104", f"@I.ir_module decorates a class, got {described(cls)}", hint=hint)
    frame, line = caller
    captured = ChainMap(dict(frame.f_locals), *_function_closures(cls), frame.f_globals)  # type: ignore[arg-type]
    text = program_text(frame, frame.f_code, frame.f_globals)
    return _read(text, line, cls.__name__, ast.ClassDef, captured, vars(cls))


def _function_closures(cls: type) -> Iterator[Mapping[str, Any]]:
    for member in vars(cls).values():
        if isinstance(member, FunctionType):
            yield _Cells(member)


def _read_function(func: Any, caller: tuple[FrameType, int]) -> Function | PrimFunc | FunctionType:
    if not isinstance(func, FunctionType) or func.__name__ == "<lambda>":
        raise _no_function(func)
    if _inside_class(func):
        return func
    func = inspect.unwrap(func)  # a decorator below: the reader refuses it by name
    frame, _ = caller
    captured = ChainMap(_Cells(func), dict(frame.f_locals), func.__globals__)  # type: ignore[arg-type]
    text = program_text(frame, func.__code__, func.__globals__)
    return _read(text, func.__code__.co_firstlineno, func.__name__, ast.FunctionDef, captured)


def _inside_class(func: FunctionType) -> bool:
    """Whether the function is defined in a class body: the class reads it."""
    outer = func.__qualname__.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")


def _read(
    text: tuple[Source, ast.Module],
    line: int,
    name: str,
    kind: type,
    captured: Mapping[str, Any],
    members: Mapping[str, Any] = EMPTY,
) -> Any:
    source, tree = text
    definition = _definition_at(tree, line, name, kind)
    if definition is None:
        waiting = _definition_at(tree, line, name, ast.AsyncFunctionDef)
        if waiting is not None:
            place = Unit(source).span(waiting)
            raise fail("W115", "`async` is not part of the script", place, "write `def`: a call returns its result")
        raise no_source(name, source.name, "the file has changed since it was loaded")
    return read_deeply(
        definition, lambda: read_unit(Unit(source, Limits(), captured=captured, members=members), definition)
    )


def _definition_at(tree: ast.Module, line: int, name: str, kind: type) -> Any:
    """The definition with a decorator (or its own first line) at a line."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, kind) and getattr(node, "name", None) == name:
            lines = [(item.lineno, item.end_lineno or item.lineno) for item in node.decorator_list]  # type: ignore[attr-defined]
            if any(first <= line <= last for first, last in lines) or node.lineno == line:  # type: ignore[attr-defined]
                return node
        stack.extend(
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
        )
    return None
