"""Which operands may be written over: memory that only the function has, and that nothing reads afterwards.

    place   ::= the memory of a value, by the variable that it was made for; `OTHER` is memory of somebody else
    value   ::= the places that it may be in: a set of them, or a tuple for a tuple

An operand may be written over where all of its places are the function's own, no variable that may be in one of them is
used later (what is made by the call itself aside), and no other operand of the call is in one. Own are results of
kernels, and the carried values that a loop says its iterations may overwrite (`R.loop(..., overwrites=[0])`), in its
body. An iteration hands such a value on in own memory, which no other result of it has: `Iteration` says of a body
which carried values that holds for. The branches of a conditional never run both.

Bodies are local functions, functions of the module, and closures of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from weft.ir import (
    BaseFunc,
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    SeqExpr,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    walk,
)
from weft.ir.node import Node
from weft.ir.op import get_op
from weft.ir.op.program.loop import carried_types
from weft.support.records import dataclass
from weft.transform.infra.rewriting import bindings_of

__all__ = ["LOOPS", "OTHER", "Iteration", "Ownership", "loop_parts", "overwritable"]

LOOPS = ("loop", "loop_with_effects")
OTHER = "memory of somebody else"
Place = Any
Value: TypeAlias = "frozenset[Any] | tuple[Value, ...]"
_NOWHERE: frozenset[Place] = frozenset()
_OTHER: frozenset[Place] = frozenset((OTHER,))
ALLOCATIONS = ("builtin.alloc_tensor", "memory.alloc_tensor", "vm.alloc_tensor")
_KERNEL_CALLS = ("call_tir", "call_tir_with_grad", "call_dps_packed")
Use = tuple[Var, int | None]  # a variable, or one field of it


def loop_parts(value: Expr) -> dict[str, Any] | None:
    """The arguments of a loop by name; None for another value."""
    if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in LOOPS:
        return get_op(value.op.name).values(value)
    return None


@dataclass(frozen=True)
class Iteration:
    """One iteration of a loop: what each carried value is handed on in, after the iteration.

    `carried` are the parameters of the body for the carried values; `overwritten` those of them whose memory is
    written over.
    """

    function: Function
    carried: tuple[Var, ...]
    overwritten: frozenset[Var]
    results: tuple[Value, ...]
    own: frozenset[Place]

    def shared(self, numbers: frozenset[int], owned: frozenset[int]) -> frozenset[int]:
        """The carried values of those given that are not handed on in memory which they alone have."""
        places = [frozenset(_flat(value)) for value in self.results]
        found = Counter(place for part in places for place in part)
        allowed = self.own | {self.carried[number] for number in owned}
        return frozenset(
            number
            for number in numbers
            if not places[number] <= allowed or any(found[place] > 1 for place in places[number])
        )

    def needed(self) -> frozenset[int]:
        """The carried values whose memory an iteration writes over, now or after it was handed on."""
        numbers = {var: number for number, var in enumerate(self.carried)}
        pending = [numbers[var] for var in self.overwritten if var in numbers]
        found = set(pending)
        while pending:
            for place in _flat(self.results[pending.pop()]):
                number = numbers.get(place)
                if number is not None and number not in found:
                    found.add(number)
                    pending.append(number)
        return frozenset(found)

    def places(self, number: int) -> frozenset[Place]:
        """Where a carried value may be that some iteration handed on."""
        sources = (source for source in self.sources(number) if source < len(self.results))
        return frozenset(place for source in sources for place in _flat(self.results[source]))

    def sources(self, number: int) -> frozenset[int]:
        """The carried values that a carried value may be after some iterations: itself, and those handed on to it."""
        numbers = {var: place for place, var in enumerate(self.carried)}
        found, pending = {number}, [number]
        while pending:
            new = {numbers[place] for place in _flat(self.results[pending.pop()]) if place in numbers} - found
            found |= new
            pending.extend(new)
        return frozenset(found)


def _no_indices(call: Call) -> tuple[int, ...] | None:
    return None


def _stated(parts: Mapping[str, Any], body: Function) -> frozenset[int]:
    return frozenset(parts["overwrites"])


@dataclass
class Ownership:
    """Answers for the functions of a module.

    `in_place` says of a call of a kernel which input each output may take the memory of, as `inplace_indices` do, or
    None; `overwrites` which carried values a loop may overwrite: what the text says, by default.
    """

    functions: Mapping[str, BaseFunc]
    in_place: Callable[[Call], tuple[int, ...] | None] = _no_indices
    overwrites: Callable[[Mapping[str, Any], Function], frozenset[int]] = _stated
    found: dict[Var, frozenset[int]] = field(default_factory=dict[Var, frozenset[int]])
    """By the variable of a binding: the operands that the call may write over. Of a loop, carried values by number."""
    owned: dict[Var, frozenset[int]] = field(default_factory=dict[Var, frozenset[int]])
    """By the variable of a loop: the carried values that its iterations overwrite."""
    uses: Counter[str] = field(default_factory=Counter[str])
    bodies: set[Function] = field(default_factory=set[Function])
    iterations: dict[tuple[Function, frozenset[int]], Iteration] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Iteration]
    )

    def __post_init__(self) -> None:
        for function in self.functions.values():
            if isinstance(function, Function):
                self.uses.update(node.name for node in walk(function) if isinstance(node, GlobalVar))

    def function(self, function: Function) -> None:
        """Find the answers for a function that may be called from anywhere, and for the loops in it."""
        if function not in self.bodies:
            _Frame(self, function, frozenset()).run()

    def iteration(self, function: Function, count: int, owned: frozenset[int]) -> Iteration:
        """What an iteration does with its carried values, the last `count` parameters, where it owns some of them."""
        if (function, owned) not in self.iterations:
            carried = function.params[len(function.params) - count :]
            frame = _Frame(self, function, frozenset(carried[number] for number in owned))
            result = frame.run()
            results = result if isinstance(result, tuple) else (result,)
            self.bodies.add(function)
            made = Iteration(function, carried, frozenset(frame.overwritten), results, frozenset(frame.own))
            self.iterations[function, owned] = made
        return self.iterations[function, owned]


def overwritable(functions: Mapping[str, BaseFunc]) -> dict[Var, frozenset[int]]:
    """By the variable of a binding: the operands that its call may write over, where the text states what it writes."""
    home = Ownership(functions)
    for function in functions.values():
        if isinstance(function, Function):
            home.function(function)
    return home.found


def _flat(value: Value) -> Iterator[Place]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield from value


def _merged(a: Value, b: Value) -> Value:
    """What a value is that is one of two."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(_merged, a, b))
    return frozenset((*_flat(a), *_flat(b)))


class _Frame:
    """One function while its bindings are walked in order.

    `own` is the memory that it makes, `owned` that of its parameters which it may overwrite, and `overwritten` what it
    does overwrite of both.
    """

    def __init__(self, home: Ownership, function: Function, owned: frozenset[Var]) -> None:
        self.home, self.body = home, function
        self.values: dict[Var, Value] = {param: frozenset((param,)) for param in function.params}
        self.local: dict[Var, Function] = {}
        self.closures: dict[Var, Call] = {}
        self.owned = set[Place](owned)
        self.own = set[Place]()
        self.overwritten = set[Place]()
        self.counts: Counter[Var] | None = None

    def run(self) -> Value:
        return self.sequence(self.body.body)

    # Values

    def value(self, expr: Expr) -> Value:
        """The places of an operand; a variable of a function around stands for its own memory."""
        if isinstance(expr, Var):
            return self.values.get(expr, frozenset((expr,)))
        if isinstance(expr, Tuple):
            return tuple(map(self.value, expr.fields))
        if isinstance(expr, TupleGetItem):
            whole = self.value(expr.value)
            return whole[expr.index] if isinstance(whole, tuple) else whole
        if isinstance(expr, Constant):
            return _OTHER
        return self.union(expr) if isinstance(expr, (Call, Function, If, SeqExpr)) else _NOWHERE

    def union(self, node: Node) -> frozenset[Place]:
        """Any memory that an expression names, and that of somebody else."""
        named = (self.value(part) for part in walk(node) if isinstance(part, Var))
        return _OTHER.union(place for value in named for place in _flat(value))

    def fresh(self, var: Var, ty: Type | None) -> Value:
        """New memory for the tensors of a type."""
        if isinstance(ty, TupleType):
            made = tuple((var, number) for number in range(len(ty.fields)))
            self.own |= {*made}
            return tuple(frozenset((place,)) for place in made)
        self.own.add(var)
        return frozenset((var,))

    # Sequences

    def sequence(self, seq: SeqExpr, around: tuple[_Scope, int] | None = None) -> Value:
        """The places of what a sequence gives."""
        bindings = list(bindings_of(seq))
        parts = [*(binding.value for binding in bindings), seq.body]
        scope = _Scope(((step, use) for step, part in enumerate(parts) for use in _uses(part)), around)
        for var in scope.last.keys() - {binding.var for binding in bindings}:
            scope.define(var, self.value(var))
        for step, binding in enumerate(bindings):
            made = self.values[binding.var] = self.binding(binding, step, scope)
            scope.define(binding.var, made)
        return self.value(seq.body)

    def binding(self, binding: Binding, step: int, scope: _Scope) -> Value:
        value, var = binding.value, binding.var
        if isinstance(binding, MatchCast):
            return self.value(value)
        if isinstance(value, If):
            return self.branches(value, step, scope)
        if isinstance(value, Function):
            self.local[var] = value
            return self.union(value)
        if not isinstance(value, Call):
            return self.value(value)
        name = value.op.name if isinstance(value.op, Op) else ""
        if name == "make_closure":
            self.closures[var] = value
        if name in ALLOCATIONS:
            return self.fresh(var, var.ty)
        if name == "memory.view":
            return self.value(value.args[0])
        if name == "call_tir_inplace" or name in _KERNEL_CALLS:
            return self.kernel(value, var, step, scope)
        parts = loop_parts(value)
        return self.union(value) if parts is None else self.loop(parts, var, step, scope)

    def branches(self, value: If, step: int, scope: _Scope) -> Value:
        around = scope, step
        return _merged(self.sequence(value.then_branch, around), self.sequence(value.else_branch, around))

    def kernel(self, call: Call, var: Var, step: int, scope: _Scope) -> Value:
        """The results of a kernel: memory of their own, or that of operands which it may write over."""
        stated = call.attrs["inplace_indices"] if "inplace_indices" in call.attrs else self.home.in_place(call)
        made = self.fresh(var, call.ty_args[0])
        if stated is None:
            return made
        indices = (stated,) if isinstance(stated, int) else tuple(stated)
        given = self.given(call.args[1])
        allowed = {index for index in indices if index >= 0 and self.may_overwrite(index, given, step, scope)}
        self.note(var, allowed, given)
        parts = made if isinstance(call.ty_args[0], TupleType) else (made,)
        parts = tuple(given[i] if i in allowed else part for i, part in zip(indices, parts, strict=True))
        return parts if isinstance(call.ty_args[0], TupleType) else parts[0]

    def given(self, arguments: Expr) -> Sequence[Value]:
        value = self.value(arguments)
        return value if isinstance(value, tuple) else (value,)

    def may_overwrite(self, index: int, given: Sequence[Value], step: int, scope: _Scope) -> bool:
        """Whether an operand is own memory that nothing else is in, and that is not used afterwards."""
        if index >= len(given) or isinstance(given[index], tuple):
            return False
        places = set(given[index])
        if not places or not all(place in self.own or place in self.owned for place in places):
            return False
        others = (place for number, value in enumerate(given) if number != index for place in _flat(value))
        return scope.is_done(places, step) and places.isdisjoint(others)

    def note(self, var: Var, allowed: set[int], given: Sequence[Value]) -> None:
        self.home.found[var] = frozenset(allowed)
        self.overwritten.update(place for number in allowed for place in _flat(given[number]))

    # Loops

    def loop(self, parts: Mapping[str, Any], var: Var, step: int, scope: _Scope) -> Value:
        """The carried values after a loop, and its rows."""
        initial, body = self.given(parts["initial"]), self.function_of(parts["body"])
        count = len(carried_types(parts["out_ty"], parts["stacked"]))
        outside = frozenset(place for name in ("body", "condition", "range") for place in self.named(parts[name]))
        if body is None or len(initial) != count:
            everything = frozenset((OTHER, *outside, *_flat(tuple(initial))))
            return (*[everything] * count, *self.rows(var, count, parts["stacked"]))
        function, fixed = body
        owned = self.home.overwrites(parts, function) if self.is_used_once(parts["body"]) else frozenset[int]()
        iteration, self.home.owned[var] = self.home.iteration(function, count, owned), owned
        given = [*initial, outside]
        allowed = {number for number in owned if self.may_overwrite(number, given, step, scope)}
        self.note(var, allowed, given)
        before = [
            value if number not in owned or number in allowed else self.fresh_part(var, number)
            for number, value in enumerate(initial)
        ]
        known = dict(zip(function.params, fixed, strict=False))
        return (
            *(self.after(iteration, number, before, known, var) for number in range(count)),
            *self.rows(var, count, parts["stacked"]),
        )

    def after(
        self, iteration: Iteration, number: int, before: Sequence[Value], known: Mapping[Var, Value], var: Var
    ) -> Value:
        """A carried value after the loop: an initial one, or what some iteration made."""
        found: set[Place] = set()
        for source in iteration.sources(number):
            found.update(_flat(before[source]))
            for place in _flat(iteration.results[source]) if source < len(iteration.results) else ():
                if place in iteration.own:
                    self.own.add((var, place))
                    found.add((var, place))
                elif place in known:
                    found.update(_flat(known[place]))
                elif place not in iteration.carried:
                    found.update(_flat(self.value(place)) if isinstance(place, Var) else (place,))
        return frozenset(found)

    def fresh_part(self, var: Var, number: int) -> Value:
        self.own.add((var, number))
        return frozenset(((var, number),))

    def rows(self, var: Var, count: int, stacked: int) -> list[Value]:
        return [self.fresh_part(var, number) for number in range(count, count + stacked)]

    def named(self, operand: Expr | None) -> Iterator[Place]:
        """The memory that a function around a loop's values, or its range, refers to."""
        return _flat(self.value(operand)) if operand is not None else iter(())

    def function_of(self, body: Expr) -> tuple[Function, Sequence[Value]] | None:
        """A body that is known, and the values that come before its arguments."""
        if isinstance(body, Var) and body in self.local:
            return self.local[body], ()
        if isinstance(body, Var) and body in self.closures:
            callee, fixed = self.closures[body].args[:2]
            found = self.function_of(callee)
            return None if found is None else (found[0], (*found[1], *self.given(fixed)))
        function = self.home.functions.get(body.name) if isinstance(body, GlobalVar) else None
        return (function, ()) if isinstance(function, Function) else None

    def is_used_once(self, body: Expr) -> bool:
        """Whether nothing but one loop calls a body."""
        if isinstance(body, Var) and body in self.closures:
            return self.is_used_once_here(body) and self.is_used_once(self.closures[body].args[0])
        return self.home.uses[body.name] == 1 if isinstance(body, GlobalVar) else self.is_used_once_here(body)

    def is_used_once_here(self, var: Expr) -> bool:
        if self.counts is None:  # a variable occurs where it is bound and where it is used
            self.counts = Counter(node for node in walk(self.body) if isinstance(node, Var))
        return isinstance(var, Var) and self.counts[var] == 2


class _Scope:
    """The uses in one sequence, which stands at a step of the sequence around it."""

    def __init__(self, uses: Iterable[tuple[int, Use]], around: tuple[_Scope, int] | None) -> None:
        self.around = around
        self.last: dict[Var, dict[int | None, int]] = {}
        for step, (var, part) in uses:
            self.last.setdefault(var, {})[part] = step
        self.latest: dict[Place, int] = {}

    def define(self, var: Var, value: Value) -> None:
        """A variable that is used in the sequence, and where it may be."""
        steps = self.last.get(var)
        if steps is None:
            return
        if isinstance(value, tuple):
            for number, part in enumerate(value):
                self.note(part, max(steps.get(None, -1), steps.get(number, -1)))
        else:
            self.note(value, max(steps.values()))

    def note(self, value: Value, step: int) -> None:
        for place in _flat(value):
            self.latest[place] = max(self.latest.get(place, -1), step)

    def is_done(self, places: set[Place], step: int) -> bool:
        """Whether no variable that may be in these places is used after a step, nor after the sequence."""
        if any(self.latest.get(place, -1) > step for place in places):
            return False
        return self.around is None or self.around[0].is_done(places, self.around[1])


def _uses(value: Node) -> Iterator[Use]:
    """The variables that an expression uses; of a tuple from which a field is taken, the field."""
    if isinstance(value, TupleGetItem) and isinstance(value.value, Var):
        yield value.value, value.index
        return
    for node in walk(value):
        if isinstance(node, Var):
            yield node, None
