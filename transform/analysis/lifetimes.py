"""Where the memory of each value of a graph function is made, written, read and used for the last time.

The bindings of a function, those of branches included, are numbered in the order of the text. A value lives from the
step that makes it to the last step that uses it or anything that may share its memory; the branches of a conditional
never run both, so what one of them makes is not in the way of the other. Tensors in one storage count as apart: whether
they are is what plans, and their checks, are about. What the result of the function may share
lives to the end (`END`).

Source: Galler and Fischer, An improved equivalence algorithm, 1964 (disjoint sets); Tarjan, 1975.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeVar

from weft.ir import (
    BaseFunc,
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Op,
    PrimFunc,
    SeqExpr,
    Tuple,
    TupleType,
    Var,
    walk,
)
from weft.ir.interpret.kernel import written_buffers
from weft.ir.node import Node
from weft.ir.op import OPS
from weft.support.records import dataclass, record
from weft.transform.analysis.ownership import loop_parts
from weft.transform.infra.rewriting import bindings_of

__all__ = ["END", "Groups", "Lifetimes", "may_share", "variables"]

END = 1 << 60
"""The step after all others: what lives until then leaves the function."""

_T = TypeVar("_T")
_FRESH = ("builtin.alloc_tensor", "memory.alloc_storage", "vm.alloc_storage", "shape_of", "shape_to_tensor")
_PLACES = ("memory.alloc_tensor", "vm.alloc_tensor")


def variables(expr: Node) -> Iterator[Var]:
    """The variables that occur in an expression."""
    return (node for node in walk(expr) if isinstance(node, Var))


def may_share(value: Expr, var: Var, functions: Mapping[str, BaseFunc]) -> bool:
    """Whether a binding's variable may refer to memory of the variables in its value."""
    if isinstance(var.ty, TupleType) and not var.ty.fields:
        return False
    if isinstance(value, Call):
        if isinstance(value.op, Op) and value.op.name in _FRESH:
            return False
        return not isinstance(value.op, GlobalVar) or isinstance(functions.get(value.op.name), Function)
    return True


class Groups:
    """Disjoint sets of variables that may share memory."""

    def __init__(self) -> None:
        self._parent: dict[Var, Var] = {}

    def root(self, var: Var) -> Var:
        """The variable that stands for the set."""
        while (parent := self._parent.get(var, var)) is not var:
            self._parent[var] = var = self._parent.get(parent, parent)
        return var

    def join(self, a: Var, b: Var) -> None:
        """Make the sets of two variables one."""
        self._parent[self.root(a)] = self.root(b)


@dataclass
class Use:
    """One step that uses a set: `writes` when it may change the memory, `through` the variables it names."""

    step: int
    writes: bool
    through: Var


@record
class _Span:
    """The steps at which a set is used: the first, the last, and the last that may change it."""

    first: int
    last: int
    last_write: int

    @staticmethod
    def of_use(use: Use) -> _Span:
        return _Span(use.step, use.step, use.step if use.writes else -1)

    @staticmethod
    def of(spans: Iterable[_Span]) -> _Span:
        """That of several together."""
        found = list(spans)
        return _Span(
            min(span.first for span in found), max(span.last for span in found), max(span.last_write for span in found)
        )


def _joined(lists: list[list[_T]]) -> list[_T]:
    """The lists as one: the shorter is added to the longer, so that joining n sets one by one takes n log n steps."""
    longest = max(lists, key=len)
    for other in lists:
        if other is not longest:
            longest.extend(other)
    return longest


@dataclass
class Lifetimes:
    """The steps of one function. `steps` are its bindings by number, `sequence_of` tells in which body each stands."""

    function: Function
    functions: Mapping[str, BaseFunc]
    groups: Groups = field(default_factory=Groups)
    steps: list[Binding] = field(default_factory=list[Binding])
    sequence_of: list[SeqExpr] = field(default_factory=list[SeqExpr])
    made: dict[Var, int] = field(default_factory=dict[Var, int])
    uses: dict[Var, list[Use]] = field(default_factory=dict[Var, list[Use]])
    borrowed: set[Var] = field(default_factory=set[Var])
    """Variables over memory that is not the function's own: parameters, constants, results of calls out."""
    understood: bool = True
    """False where a local function stands, which may run at any time."""
    _roots: dict[Var, list[Use]] = field(default_factory=dict[Var, list[Use]])
    _outer: dict[SeqExpr, SeqExpr] = field(default_factory=dict[SeqExpr, SeqExpr])
    _changes: dict[PrimFunc, frozenset[Any]] = field(default_factory=dict[PrimFunc, frozenset[Any]])

    def __post_init__(self) -> None:
        self.borrowed.update(self.function.params)
        self._sequence(self.function.body)
        for var in variables(self.function.body.body):
            self._use(var, END, writes=False)
        for var, uses in self.uses.items():
            self._roots.setdefault(self.groups.root(var), []).extend(uses)
        self._spans = {root: _Span.of(map(_Span.of_use, uses)) for root, uses in self._roots.items()}
        self._borrowed_roots = {self.groups.root(var) for var in self.borrowed}
        self._members: dict[Var, list[Var]] = {}
        for var in self.made:
            self._members.setdefault(self.groups.root(var), []).append(var)

    # What is asked

    def uses_of(self, var: Var) -> list[Use]:
        """All uses of the memory that a variable may share."""
        return self._roots.get(self.groups.root(var), [])

    def first(self, var: Var) -> int:
        """The first step at which the memory of a variable is used, END where it is not."""
        span = self._spans.get(self.groups.root(var))
        return END if span is None else span.first

    def last(self, var: Var) -> int:
        """The last step at which the memory of a variable is used."""
        span = self._spans.get(self.groups.root(var))
        return self.made.get(var, -1) if span is None else span.last

    def last_write(self, var: Var) -> int:
        """The last step that may change the memory of a variable, -1 where there is none."""
        span = self._spans.get(self.groups.root(var))
        return -1 if span is None else span.last_write

    def leaves(self, var: Var) -> bool:
        """Whether the result of the function may share the memory."""
        return self.last(var) == END

    def is_own(self, var: Var) -> bool:
        """Whether the memory can only be what the function itself allocated."""
        return self.groups.root(var) not in self._borrowed_roots

    def members(self, var: Var) -> list[Var]:
        """The variables bound in the function that may share the memory."""
        return self._members.get(self.groups.root(var), [])

    def enclosing(self, step: int) -> list[SeqExpr]:
        """The sequences around a step, its own first."""
        found = [self.sequence_of[step]]
        while (outer := self._outer.get(found[-1])) is not None:
            found.append(outer)
        return found

    def join(self, a: Var, b: Var) -> None:
        """Let two variables share memory from now on."""
        old = {self.groups.root(a), self.groups.root(b)}
        if len(old) < 2:
            return
        uses = _joined([self._roots.pop(root, []) for root in old])
        members = _joined([self._members.pop(root, []) for root in old])
        spans = [span for root in old if (span := self._spans.pop(root, None)) is not None]
        self.groups.join(a, b)
        root = self.groups.root(a)
        self._roots[root], self._members[root] = uses, members
        if spans:
            self._spans[root] = _Span.of(spans)
        if old & self._borrowed_roots:
            self._borrowed_roots.add(root)

    # How it is found

    def _sequence(self, seq: SeqExpr) -> None:
        for binding in bindings_of(seq):
            step = len(self.steps)
            self.steps.append(binding)
            self.sequence_of.append(seq)
            self.made[binding.var] = step
            if isinstance(binding.value, If):
                self._conditional(binding, binding.value, step)
            else:
                self._plain(binding, step)

    def _conditional(self, binding: Binding, value: If, step: int) -> None:
        for var in variables(value.cond):
            self._use(var, step, writes=False)
        for branch in (value.then_branch, value.else_branch):
            self._outer[branch] = self.sequence_of[step]
            self._sequence(branch)
            for var in variables(branch.body):
                self._use(var, len(self.steps), writes=False)
                if may_share(branch.body, binding.var, self.functions):
                    self.groups.join(binding.var, var)
            if any(isinstance(node, Constant) for node in walk(branch.body)):
                self.borrowed.add(binding.var)

    def _plain(self, binding: Binding, step: int) -> None:
        value = binding.value
        if any(isinstance(node, Function) for node in walk(value)):
            self.understood = False
        shares = may_share(value, binding.var, self.functions) and not _is_call_of(value, _PLACES)
        if shares and _is_borrowed(value):
            self.borrowed.add(binding.var)
        written = self._written(value)
        for var in variables(value):
            self._use(var, step, writes=written is None or var in written)
            if shares:
                self.groups.join(binding.var, var)

    def _use(self, var: Var, step: int, *, writes: bool) -> None:
        self.uses.setdefault(var, []).append(Use(step, writes, var))

    def _written(self, value: Expr) -> set[Var] | None:
        """The variables whose memory a value's evaluation may change; None for all of them."""
        if not isinstance(value, Call):
            return set()
        if isinstance(value.op, Op):
            definition = OPS.get(value.op.name)
            pure = definition is not None and definition.pure and "call" not in value.op.name
            return _overwritten(value) if pure else None
        callee = self.functions.get(value.op.name) if isinstance(value.op, GlobalVar) else None
        if not isinstance(callee, PrimFunc) or len(callee.params) != len(value.args):
            return None
        if callee not in self._changes:
            self._changes[callee] = frozenset(written_buffers(callee))
        changed = self._changes[callee]
        pairs = zip(callee.params, value.args, strict=True)
        return {var for param, arg in pairs if param in changed for var in variables(arg)}


def _overwritten(value: Expr) -> set[Var] | None:
    """The variables in whose memory a loop begins with values that its iterations write over; None for all of them."""
    parts = loop_parts(value)
    if parts is None or not parts["overwrites"]:
        return set()
    initial, numbers = parts["initial"], tuple[int, ...](parts["overwrites"])
    if not isinstance(initial, Tuple):
        return None
    fields: tuple[Expr, ...] = initial.fields
    return {var for number in numbers for var in variables(fields[number])}


def _is_call_of(value: Expr, names: tuple[str, ...]) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in names


def _is_borrowed(value: Expr) -> bool:
    """Whether a value that shares memory may share some that no variable of the function stands for."""
    if isinstance(value, Call):
        return not _is_call_of(value, ("memory.view",))
    return any(isinstance(node, Constant) for node in walk(value))
