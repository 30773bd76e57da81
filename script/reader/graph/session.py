"""The state of reading one graph function, and the blocks of a sequence while it is read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container
from dataclasses import field
from typing import Any

from weft.errors import Span
from weft.ir.deduction.infer import TypeContext
from weft.ir.graph import BindingBlock, Expr, MatchCast, Var, VarBinding
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.types import Type
from weft.script.reader.scope import Hidden, Scope
from weft.script.reader.session import Session
from weft.script.source.text import MISSING
from weft.support.records import dataclass

__all__ = ["Blocks", "GraphSession", "inner_session"]


@dataclass(eq=False)
class Blocks:
    """The binding blocks of a sequence while it is read."""

    done: list[BindingBlock] = field(default_factory=list)
    bindings: list[VarBinding | MatchCast] = field(default_factory=list)

    def flush(self) -> None:
        """Close the current plain block."""
        if self.bindings:
            self.done.append(BindingBlock(tuple(self.bindings)))
            self.bindings = []


@dataclass(eq=False)
class GraphSession(Session):
    """The state of reading one graph function."""

    context: TypeContext = field(default_factory=lambda: TypeContext({}))
    # the signature
    params: tuple[Var, ...] = ()
    defaults: dict[ast.arg, ast.expr | None] = field(
        default_factory=dict
    )  # parameters, with what callers may leave out
    ret_type: Type | None = None
    ret_tree: ast.expr | None = None
    outer_symbols: frozenset[str] = frozenset()  # of the function around a local one
    sizes_used: Collection[str] = ()  # names that the function uses as sizes
    result_symbols: set[str] = field(default_factory=set)  # named by the result type and by no parameter
    attrs: FrozenMap = EMPTY
    pure: bool = True
    # where the current statement stands
    blocks: Blocks = field(default_factory=Blocks)
    dataflow_names: dict[str, int] | None = None  # outputs of the current dataflow block -> last statement
    position: int = -1  # of the statement in the dataflow block
    place: ast.AST | None = None  # set while a value that the text does not name is bound
    branches: int = 0  # around the current place, of an if that returns
    raw_return: bool = False  # whether `return` gives a value as it is (of a macro), not a leaf
    return_span: Span | None = None
    # names
    stacked: set[Var] = field(default_factory=set)  # tensors that loops made of lists
    weak: set[Expr] = field(default_factory=set)  # numbers of Python: they take the dtype of the tensor that they meet
    weak_fields: dict[Expr, frozenset[int]] = field(default_factory=dict)  # such fields of tuples
    memory: Any = None  # which arrays values may be, where that matters: `sharing.Sharing`
    returned: list[tuple[Type, frozenset[int], ast.AST]] | None = None  # where types of what loops return are noted
    results: set[str] = field(default_factory=set)  # names of what a `return` in a loop gives
    wanted: Container[str] = ()  # names that are read after the current statement
    carried: Collection[str] = ()  # that a loop around the place hands on: tensors, not scalars
    counter: int = 0  # of values that the text does not name
    hidden: dict[str, str] = field(default_factory=dict)  # names bound elsewhere -> why they are not visible
    open_symbols: dict[str, ast.AST] = field(default_factory=dict)  # declared in the body, without a value yet

    def has_value(self, name: str) -> bool:
        """Whether a name has a value here, and only one."""
        value = self.scope.get(name)
        return value is not MISSING and not isinstance(value, Hidden)


def inner_session(session: GraphSession) -> GraphSession:
    """A session for a function inside of another one: it sees the names of the outer one."""
    return GraphSession(
        session.unit,
        session.module,
        session.level,
        Scope(session.scope),
        session.symbols,
        context=session.context,
        hidden=session.hidden,
        stacked=session.stacked,
        weak=session.weak,
        weak_fields=session.weak_fields,
        memory=session.memory,
        results=session.results,
    )
