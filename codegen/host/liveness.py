"""Where the memory of variables is used for the last time within a sequence of bindings.

Variables that may share memory (`weft.transform.analysis.lifetimes.may_share`) form one group, which lives until the
last use of any of them. The result of the sequence lives on.

`TextMemory` holds a text to what it says of memory itself: nothing is used after it was given back, and constants are
not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.codegen.host.kernels import written_positions
from weft.errors import BoundsError, Span, VerifyError
from weft.ir.graph import Binding, Call, Constant, Expr, GlobalVar, If, Var
from weft.ir.module import BaseFunc
from weft.ir.tensor import PrimFunc
from weft.transform.analysis.lifetimes import Groups, may_share, variables

__all__ = ["TextMemory", "last_uses"]


def last_uses(bindings: Sequence[Binding], result: Expr, functions: Mapping[str, BaseFunc]) -> dict[int, list[Var]]:
    """For each position the variables bound in the sequence whose memory is not used after it."""
    groups = Groups()
    last: dict[Var, int] = {}
    for index, binding in enumerate(bindings):
        used = list(variables(binding.value))
        for var in used:
            last[var] = index
        last.setdefault(binding.var, index)
        if may_share(binding.value, binding.var, functions):
            for var in used:
                groups.join(binding.var, var)
    kept = {groups.root(var) for var in variables(result)}
    ends: dict[Var, int] = {}
    for var, index in last.items():
        root = groups.root(var)
        ends[root] = max(ends.get(root, -1), index)
    found: dict[int, list[Var]] = {}
    for binding in bindings:
        root = groups.root(binding.var)
        if root not in kept:
            found.setdefault(ends[root], []).append(binding.var)
    return found


class TextMemory:
    """What a text says of memory, binding by binding: what was given back, and what lies in constants."""

    def __init__(self, functions: Mapping[str, BaseFunc]) -> None:
        self.functions = functions
        self.sources: dict[Var, frozenset[Var]] = {}  # what a variable's memory may be that of
        self.constants: set[Var] = set()
        self.gone: set[Var] = set()
        self.written: dict[str, set[int]] = {}  # the positions that a kernel writes, by the name it is called by

    def enter(self, binding: Binding) -> None:
        """Look at a binding; BoundsError W911 for what it uses too late, VerifyError W438 for a constant it writes."""
        value, var = binding.value, binding.var
        # The branches of a conditional come one after another.
        self.use(value.cond if isinstance(value, If) else value, binding.span or value.span)
        if may_share(value, var, self.functions):
            used = set(variables(value))
            self.sources[var] = frozenset(used.union(*(self.sources.get(item, frozenset()) for item in used)))
            if isinstance(value, Constant) or not used.isdisjoint(self.constants):
                self.constants.add(var)
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            self._check_written(value, value.op.name)

    def use(self, expr: Expr, span: Span | None) -> None:
        """BoundsError W911 when an expression uses memory that was given back."""
        if self.gone:
            for var in variables(expr):
                if var in self.gone or not self.gone.isdisjoint(self.sources.get(var, frozenset())):
                    raise BoundsError(f"{var.name!r} is used after its memory was given back", code="W911", span=span)

    def give_back(self, call: Call) -> None:
        """The memory of the arguments is gone, and with it that of what lies in it."""
        self.gone.update(arg for arg in call.args if isinstance(arg, Var))

    def _check_written(self, call: Call, callee: str) -> None:
        kernel = self.functions.get(callee)
        if not isinstance(kernel, PrimFunc):
            return
        if not self.constants and not any(_is_constant(arg) for arg in call.args):
            return
        if callee not in self.written:
            self.written[callee] = written_positions(kernel, self.functions)
        for position in self.written[callee]:
            arg = call.args[position] if position < len(call.args) else None
            if isinstance(arg, Constant) or arg in self.constants:
                name = kernel.params[position].name
                message = f"kernel {kernel.name} writes its parameter {name!r}, which is a constant here"
                raise VerifyError(message, code="W438", span=call.span)


def _is_constant(arg: Expr) -> bool:
    return isinstance(arg, Constant)
