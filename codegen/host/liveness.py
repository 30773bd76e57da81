"""Where the memory of variables is used for the last time within a sequence of bindings.

Variables that may share memory (`weft.transform.analysis.lifetimes.may_share`) form one group, which lives until the
last use of any of them. The result of the sequence lives on.

`TextMemory` holds a text to what it says of memory itself: nothing is used after it was given back, and constants are
not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.codegen.host.kernels import written_positions
from weft.errors import BoundsError, Span, VerifyError
from weft.ir.graph import Binding, Call, Constant, Expr, Function, GlobalVar, If, Op, Tuple, TupleGetItem, Var
from weft.ir.module import BaseFunc
from weft.ir.op.program.loop import carried_types
from weft.ir.structure.visit import walk
from weft.ir.tensor import PrimFunc
from weft.transform.analysis.lifetimes import Groups, may_share, variables
from weft.transform.analysis.ownership import OTHER, Ownership, loop_parts

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


Constancy = bool | tuple["Constancy", ...]


class TextMemory:
    """What a text says of memory, binding by binding: what was given back, and what lies in constants."""

    def __init__(self, functions: Mapping[str, BaseFunc]) -> None:
        self.functions = functions
        self.sources: dict[Var, frozenset[Var]] = {}  # what a variable's memory may be that of
        self.constants: dict[Var, Constancy] = {}  # whether they may lie in constants; those that are not there do not
        self.closures: dict[Var, Call] = {}
        self.gone: set[Var] = set()
        self.written: dict[str, set[int]] = {}  # the positions that a kernel writes, by the name it is called by

    def enter(self, binding: Binding) -> None:
        """Look at a binding; BoundsError W911 for what it uses too late, VerifyError W438 for a constant it writes."""
        value = binding.value
        # The branches of a conditional come one after another.
        self.use(value.cond if isinstance(value, If) else value, binding.span or value.span)
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            self._check_written(value, value.op.name)

    def bound(self, binding: Binding) -> None:
        """Remember what a binding that was looked at gives, the branches of a conditional too."""
        value, var = binding.value, binding.var
        if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "make_closure":
            self.closures[var] = value
        if may_share(value, var, self.functions):
            used = set(variables(value))
            self.sources[var] = frozenset(used.union(*(self.sources.get(item, frozenset()) for item in used)))
            if _is_any(found := self._constancy(value)):
                self.constants[var] = found

    def _constancy(self, value: Expr) -> Constancy:
        """Whether a value may lie in a constant; of a tuple, of each field."""
        if isinstance(value, Constant):
            return True
        if isinstance(value, Var):
            return self.constants.get(value, False)
        if isinstance(value, Tuple):
            return tuple(map(self._constancy, value.fields))
        if isinstance(value, TupleGetItem):
            whole = self._constancy(value.value)
            return whole[value.index] if isinstance(whole, tuple) else whole
        if isinstance(value, If):
            return _either(self._constancy(value.then_branch.body), self._constancy(value.else_branch.body))
        parts = loop_parts(value)
        if parts is not None:
            return self._of_loop(parts)
        return any(_is_any(self._constancy(part)) for part in walk(value) if isinstance(part, (Var, Constant)))

    def _of_loop(self, parts: Mapping[str, Any]) -> Constancy:
        """The carried values after a loop: initial ones, and what its body may hand on as them."""
        count = len(carried_types(parts["out_ty"], parts["stacked"]))
        initial, body, fixed = self._constancy(parts["initial"]), parts["body"], ()
        if isinstance(body, Var) and body in self.closures:
            body, given = self.closures[body].args[:2]
            found = self._constancy(given)
            fixed = found if isinstance(found, tuple) else (found,)
        function = self.functions.get(body.name) if isinstance(body, GlobalVar) else None
        if not isinstance(function, Function) or not isinstance(initial, tuple):
            return _is_any((initial, fixed))
        iteration = Ownership(self.functions).iteration(function, count, frozenset(parts["overwrites"]))
        written = {OTHER, *(param for param, item in zip(function.params, fixed, strict=False) if _is_any(item))}
        after = (
            any(_is_any(initial[source]) for source in iteration.sources(number))
            or not written.isdisjoint(iteration.places(number))
            for number in range(count)
        )
        return (*after, *[False] * parts["stacked"])

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
            if isinstance(arg, Constant) or (isinstance(arg, Var) and _is_any(self.constants.get(arg, False))):
                name = kernel.params[position].name
                message = f"kernel {kernel.name} writes its parameter {name!r}, which is a constant here"
                raise VerifyError(message, code="W438", span=call.span)


def _is_any(constancy: Constancy) -> bool:
    return any(map(_is_any, constancy)) if isinstance(constancy, tuple) else constancy


def _either(a: Constancy, b: Constancy) -> Constancy:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(_either, a, b))
    return _is_any(a) or _is_any(b)


def _is_constant(arg: Expr) -> bool:
    return isinstance(arg, Constant)
