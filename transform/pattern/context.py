"""PatternContext: several patterns at once, and which value uses which, in a dataflow block.

    with PatternContext() as context:
        product = is_op("matmul")(wildcard(), wildcard())
        left, right = is_op("nn.relu")(product), is_op("tanh")(product)
        product.fork_to(left, right)
    found = context.match_dfb(block)          {pattern: variable} or None

What is written inside `with` and is no part of another pattern has to be found, each at a binding of its own, and so do
the ends of edges. A block is searched in its order, so that the first match comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import Token
from types import TracebackType
from typing import Any

from weft.errors import PassError, described
from weft.ir import BaseFunc, BindingBlock, Call, DataflowBlock, DataflowVar, Expr, Op, Tuple, Var, VarBinding
from weft.ir.structure.recursion import deeply
from weft.transform.infra.rewriting import operands
from weft.transform.pattern.language import RECORDER, DFPattern, Edge, ExprPattern, Recorder
from weft.transform.pattern.matching import Match, bindings_of_block

__all__ = ["PatternContext"]


class PatternContext:
    """Notes the patterns and edges that are written while it is open.

    `incremental` begins with those of the context around it. Raises PassError W552 for a context without patterns.
    """

    def __init__(self, incremental: bool = False) -> None:
        self.incremental = incremental
        self.roots: dict[DFPattern, None] = {}
        self.edges: list[Edge] = []
        self._opened: list[Token[Recorder | None]] = []

    def __enter__(self) -> PatternContext:
        outer = RECORDER.get()
        if self.incremental:
            if not isinstance(outer, PatternContext):
                raise PassError("an incremental PatternContext is opened inside another one", code="W552")
            self.roots = {**outer.roots, **self.roots}
            self.edges = [*outer.edges, *self.edges]
        self._opened.append(RECORDER.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        RECORDER.reset(self._opened.pop())

    def made(self, pattern: DFPattern, parts: Sequence[DFPattern]) -> None:
        """A pattern is written: it is looked for on its own until it is a part of another."""
        for part in parts:
            self.roots.pop(part, None)
        if not isinstance(pattern, ExprPattern):  # an operator by itself is no value of a block
            self.roots[pattern] = None

    def joined(self, edge: Edge) -> None:
        """An edge is written."""
        self.edges.append(edge)

    def match_dfb(self, block: BindingBlock) -> dict[DFPattern, Expr] | None:
        """The variable that each part stands for (a constant or shape for itself), None when something is not there.

        Raises PassError W551 for what is no dataflow block, W552 when no pattern was written.
        """
        if not isinstance(block, DataflowBlock):
            raise PassError(f"match_dfb takes a dataflow block, got {described(block)}", code="W551")
        return BlockSearch(self, block).first()


class BlockSearch:
    """The search for the patterns of a context in one block."""

    def __init__(
        self, context: PatternContext, block: BindingBlock, functions: dict[str, BaseFunc] | None = None
    ) -> None:
        ends = (end for edge in context.edges for end in (edge.source, edge.user))
        self.nodes = tuple(dict.fromkeys((*context.roots, *ends)))
        if not self.nodes:
            hint = "patterns are written inside `with context:`"
            raise PassError("the PatternContext has no patterns", code="W552", hint=hint)
        self.edges = context.edges
        self.match = Match(bindings_of_block(block), functions)
        self.own = {item.var for item in block.bindings}
        self.users: dict[Expr, dict[Var, None]] = {}
        self.operands: dict[Var, tuple[Expr, ...]] = {}
        for binding in block.bindings:
            value = binding.value
            self.operands[binding.var] = tuple(_placed(value)) if isinstance(binding, VarBinding) else ()
            for operand in operands(value):
                self.users.setdefault(operand, {})[binding.var] = None
        self.outside = tuple(leaf for leaf in self.users if isinstance(leaf, Var) and leaf not in self.own)

    def first(self) -> dict[DFPattern, Expr] | None:
        """The first match."""
        return deeply(None, self._first)

    def _first(self) -> dict[DFPattern, Expr] | None:
        self.match.found.clear()
        for _ in self.assignments(()):
            if self.match.holds() and self.edges_hold(final=True):
                return {pattern: self.match.place(expr) for pattern, expr in self.match.found.items()}
        return None

    def assignments(self, taken: tuple[Expr, ...]) -> Iterator[None]:
        """Each way to find what is still to be found."""
        pattern = self.next_node()
        if pattern is None:
            yield
            return
        for place in self.candidates(pattern):
            if place in taken:
                continue
            for _ in self.match.solutions(pattern, place):
                if self.edges_hold(final=False):
                    yield from self.assignments((*taken, place))

    def next_node(self) -> DFPattern | None:
        """What to look for next: a neighbour of something found, where there is one."""
        found = self.match.found
        open_nodes = [node for node in self.nodes if node not in found]
        near = (
            end
            for edge in self.edges
            for end, other in ((edge.source, edge.user), (edge.user, edge.source))
            if end not in found and other in found
        )
        return next(near, open_nodes[0] if open_nodes else None)

    def candidates(self, pattern: DFPattern) -> Sequence[Expr]:
        """Where a pattern may be found, given what is found already."""
        for edge in self.edges:
            if edge.user is pattern and edge.source in self.match.found:
                return tuple(self.users.get(self.place(edge.source), ()))
            if edge.source is pattern and edge.user in self.match.found:
                return tuple(dict.fromkeys(self.operands.get(self.place(edge.user), ())))  # type: ignore[call-overload]
        return (*self.operands, *self.outside)

    def place(self, pattern: DFPattern) -> Expr:
        """The variable that a found pattern stands for."""
        return self.match.place(self.match.found[pattern])

    def edges_hold(self, final: bool) -> bool:
        """Whether the edges between what is found are there; `final` when everything is."""
        found = self.match.found
        return all(self.edge_holds(edge) for edge in self.edges if edge.source in found and edge.user in found) and (
            not final or all(self.is_used_by_named(edge.source) for edge in self.edges if edge.only)
        )

    def edge_holds(self, edge: Edge) -> bool:
        source, used = self.place(edge.source), self.operands.get(self.place(edge.user), ())  # type: ignore[call-overload]
        return source in (used if edge.index < 0 else used[edge.index : edge.index + 1])

    def is_used_by_named(self, source: DFPattern) -> bool:
        """Whether nothing but the values at the ends of the edges of `source` uses what it stands for."""
        place = self.place(source)
        named = {self.place(edge.user) for edge in self.edges if edge.source is source}
        leaves = place in self.own and not isinstance(place, DataflowVar)
        return not leaves and all(user in named for user in self.users.get(place, ()))


def _placed(value: Any) -> Iterator[Expr]:
    """The operands of a value by place: arguments, where the arguments of `call_tir` and its kin are those of the
    function that it calls."""
    if not isinstance(value, Call):
        yield from operands(value)
        return
    args = value.args
    if isinstance(value.op, Op) and len(args) > 1 and isinstance(args[1], Tuple) and value.op.name.startswith("call_"):
        args = args[1].fields
    for arg in args:
        yield from arg.fields if isinstance(arg, Tuple) else (arg,)
