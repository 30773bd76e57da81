"""Traces read from their text: what `Trace.script` and `Trace.steps` print.

    line   ::= [handles "="] "sch." name "(" [argument ("," argument)*] ")"
    value  ::= a literal | a handle | a list or tuple of values

Nothing is run: a line of another form is refused (W619).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from weft.errors import ScheduleError
from weft.support.records import dataclass
from weft.support.stack import with_stack
from weft.transform.infra.registry import nearest
from weft.transform.schedule.handles import BlockRV, ExprRV, Handle, LoopRV
from weft.transform.schedule.trace import PRIMITIVES, Instruction, Trace

__all__ = ["trace_of_steps"]

_HANDLES: dict[str, type[Handle]] = {kind.letter: kind for kind in (BlockRV, LoopRV, ExprRV)}


def trace_of_steps(lines: Iterable[str]) -> Trace:
    """The trace of lines that `Trace.steps` gave; ScheduleError W619 for a line of another form.

    >>> trace_of_steps(["l0 = sch.get_loop(name='i')", "l1, l2 = sch.split(loop=l0, factors=[None, 8])"]).steps()[1]
    'l1, l2 = sch.split(loop=l0, factors=[None, 8])'
    """
    found = _Reader()
    return Trace([step for line in lines for step in found.steps(line)])


@dataclass
class _Reader:
    handles: dict[str, Handle] = field(default_factory=dict)
    choices: tuple[Any, ...] = ()

    def steps(self, line: str) -> Iterable[Instruction]:
        """The steps of a line."""
        try:
            body = with_stack(lambda: ast.parse(line.strip())).body if isinstance(line, str) else []
        except (SyntaxError, ValueError):
            body = []
        if not body:
            raise _refused(line)
        for stmt in body:
            step = self._step(line, stmt)
            if step is not None:
                yield step

    def _step(self, line: str, stmt: ast.stmt) -> Instruction | None:
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) else None
        call = stmt.value if isinstance(stmt, (ast.Assign, ast.Expr)) else None
        function = call.func if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(function, ast.Attribute):
            raise _refused(line)
        given = [self._value(line, item) for item in call.args]
        if function.attr == "choose_next" and len(given) == 1:
            self.choices = tuple(given[0])
            return None
        primitive = PRIMITIVES.get(function.attr)
        if primitive is None:
            raise _refused(line, nearest(function.attr, list(PRIMITIVES)))
        named = {item.arg: self._value(line, item.value) for item in call.keywords if item.arg is not None}
        decision = named.pop("decision", None)
        try:
            bound = primitive.parameters.bind(*given, **named)
        except TypeError as error:
            raise _refused(line, str(error)) from None
        listed = isinstance(target, (ast.Tuple, ast.List))
        outputs = tuple(self._output(line, item) for item in (target.elts if listed else [target] if target else []))
        choices, self.choices = self.choices, ()
        return Instruction(function.attr, _plain(bound), outputs, decision, listed, choices)

    def _output(self, line: str, target: ast.expr) -> Handle:
        kind = _HANDLES.get(target.id[:1]) if isinstance(target, ast.Name) else None
        if not isinstance(target, ast.Name) or kind is None:
            raise _refused(line, f"handles begin with {', '.join(_HANDLES)}")
        self.handles[target.id] = kind(target.id)
        return self.handles[target.id]

    def _value(self, line: str, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            found = self.handles.get(node.id)
            if found is None:
                raise _refused(line, f"no step before gives {node.id}")
            return found
        if isinstance(node, (ast.List, ast.Tuple)):
            items = [self._value(line, item) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise _refused(line) from None


def _plain(bound: inspect.BoundArguments) -> dict[str, Any]:
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "decision"}


def _refused(line: object, hint: str | None = None) -> ScheduleError:
    return ScheduleError(f"this is no step of a trace: {line!r}", code="W619", hint=hint or "as in sch.split(loop=l0)")
