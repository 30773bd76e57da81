"""Where the functions that read the forms of the script are registered, by level and by the place where a form stands.

    @TENSOR.value("T.Cast")         a call inside an expression         f(session, call) -> value
    @TENSOR.statement("T.reads")    a bare call as a statement          f(session, call) -> statement, several, or None
    @TENSOR.assigned("T.bind")      `name = form(...)`                  f(session, name, call) -> the same
    @TENSOR.scope("T.block")        `with form(...) as target:`         f(session, with, call, target) -> the same
    @COMMON.type("R.Tensor")        a type                              f(session, call) -> type
    @COMMON.tree(ast.BinOp)         a kind of Python's syntax tree      f(session, tree) -> value or statement
    @COMMON.hole("type")            a kind of argument (see `holes`)    f(session, tree) -> value

A statement may also give a function from the statements that follow it in its block to the statement around them.
`COMMON` is what both levels read; `GRAPH` and `TENSOR` add what one of them reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["COMMON", "GRAPH", "TENSOR", "Readers", "Table"]

_Key = TypeVar("_Key")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Table(dict[_Key, Callable[..., Any]], Generic[_Key]):
    """Functions by what they read."""

    def __call__(self, *keys: _Key) -> Callable[[_Function], _Function]:
        """A decorator that registers a function for keys; ValueError for a key that has one."""

        def register(read: _Function) -> _Function:
            for key in keys:
                if key in self:
                    raise ValueError(f"two functions read {key}")
                self[key] = read
            return read

        return register


class Readers:
    """The functions that read the forms of one level."""

    def __init__(self) -> None:
        self.value: Table[str] = Table()
        self.statement: Table[str] = Table()
        self.assigned: Table[str] = Table()
        self.scope: Table[str] = Table()
        self.type: Table[str] = Table()
        self.hole: Table[str] = Table()
        self.tree: Table[type] = Table()


COMMON, GRAPH, TENSOR = Readers(), Readers(), Readers()
