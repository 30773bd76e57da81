"""Reductions of one value or of several at once, as an operation on what there is and what comes.

    fold  ::= part+                      part ::= buffer[indices] = combined(what all parts hold, what comes to them)
    choice                               the index and the value of a greatest element: all of one side, or the other

`fold_of(block)` reads a block as a fold that can be computed in pieces. Sums, products and the like are known to be
associative. A choice is made by comparisons alone, so that only the order of three elements counts: it is checked on
all orders that there are.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence

from weft.dtypes import highest, is_bool, lowest, max_value, min_value
from weft.ir import rewrite, structural_equal, substitute, walk
from weft.ir.node import Node
from weft.ir.tensor import (
    Binary,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    FloatImm,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    Stmt,
    Unary,
)
from weft.support.records import dataclass
from weft.transform.analysis.loops.dependence import ASSOCIATIVE
from weft.transform.schedule.buffers import require_sole_writer
from weft.transform.schedule.failure import failure
from weft.transform.schedule.tree import Tree, loads_in, sequence, statements_of

__all__ = ["Fold", "Part", "fold_of"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
_LOGIC: dict[str, Callable[[float, float], float]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class Part:
    """One of the values: where it is, what comes to it in an instance, what it starts with, and how it goes on.

    `combined` is over the variables `own` and `coming` of all parts.
    """

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    term: PrimExpr
    start: PrimExpr
    own: PrimVar
    coming: PrimVar
    combined: PrimExpr


@dataclass(frozen=True)
class Fold:
    """The values of a reduction; `any_order` says that elements may come in any order."""

    parts: tuple[Part, ...]
    any_order: bool

    def step(self, places: Sequence[BufferLoad], terms: Sequence[PrimExpr]) -> Stmt:
        """The statement that lets terms come to what is at some places."""
        values = {part.own: place for part, place in zip(self.parts, places, strict=True)}
        values |= {part.coming: term for part, term in zip(self.parts, terms, strict=True)}
        combined = [substitute(part.combined, values) for part in self.parts]
        if len(self.parts) == 1:
            return BufferStore(places[0].buffer, combined[0], places[0].indices)
        names = [PrimVar(f"v_{part.buffer.name}", part.buffer.dtype) for part in self.parts]
        binds = [Bind(name, value) for name, value in zip(names, combined, strict=True)]
        return sequence((*binds, stores(places, names)))


def stores(places: Sequence[BufferLoad], values: Sequence[PrimExpr]) -> Stmt:
    """Values stored at places, one after the other."""
    pairs = zip(places, values, strict=True)
    return sequence(BufferStore(place.buffer, value, place.indices) for place, value in pairs)


def fold_of(tree: Tree, block: Block) -> Fold:
    """The fold that a block is: it starts with what changes nothing, its operation is associative; W610 for others."""
    found = _stores(block.body)
    starts = None if block.init is None else _stores(block.init)
    if found is None or starts is None or len({store.buffer for store in found}) != len(found):
        raise _none(tree, block)
    odd = next((item for item in block.iter_vars if item.kind not in ("spatial", "reduce")), None)
    if odd is not None:
        raise failure("W610", f"the variable {odd.var.name!r} of block {block.name!r} is {odd.kind}", tree, block)
    for store in found:
        require_sole_writer(tree, block, store.buffer)
    owns = [PrimVar(f"own{i}", store.buffer.dtype) for i, store in enumerate(found)]
    values = [_with_owns(store.value, found, owns) for store in found]
    terms = [None if value is None else _term(value, own) for value, own in zip(values, owns, strict=True)]
    parts: list[Part] = []
    known = [term for term in terms if term is not None]
    if len(known) != len(found):
        raise _none(tree, block)
    comings = [PrimVar(f"coming{i}", store.buffer.dtype) for i, store in enumerate(found)]
    for position, store in enumerate(found):
        value = values[position]
        combined = None if value is None else _abstract(value, owns, known, comings, position)
        start = next((item.value for item in starts if _same_place(item, store)), None)
        if combined is None or start is None:
            raise _none(tree, block)
        part = Part(store.buffer, store.indices, known[position], start, owns[position], comings[position], combined)
        parts.append(part)
    return Fold(tuple(parts), _require_law(tree, block, parts))


def _none(tree: Tree, block: Block) -> Exception:
    return failure(
        "W610", f"the block {block.name!r} is no reduction: an init, then x = x + y or the like", tree, block
    )


def _stores(stmt: Stmt) -> list[BufferStore] | None:
    """The stores that a statement is, with the values that were bound before all of them in their places."""
    bound: dict[PrimVar, PrimExpr] = {}
    found: list[BufferStore] = []
    for item in statements_of(stmt):
        if isinstance(item, Bind) and not found:
            bound[item.var] = substitute(item.value, bound)
        elif isinstance(item, BufferStore) and item.predicate is None:
            late = item.value is not None and any(loads_in(item.value, store.buffer) for store in found)
            if late:  # it reads what has been stored already
                return None
            found.append(BufferStore(item.buffer, substitute(item.value, bound), item.indices, span=item.span))
        else:
            return None
    return found or None


def _same_place(a: BufferStore, b: BufferStore) -> bool:
    return a.buffer is b.buffer and structural_equal(a.indices, b.indices)


def _with_owns(value: PrimExpr, found: Sequence[BufferStore], owns: Sequence[PrimVar]) -> PrimExpr | None:
    """A value with variables for the elements that are stored to; None where it reads others of their buffers."""
    places = {store.buffer: (store.indices, own) for store, own in zip(found, owns, strict=True)}

    def post(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer in places and node.predicate is None:
            indices, own = places[node.buffer]
            return own if structural_equal(node.indices, indices) else None
        return None

    new = rewrite(value, post)
    return None if any(loads_in(new, buffer) for buffer in places) else new


def _branches(value: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr] | None:
    """(condition, one value, the other) of a choice."""
    if isinstance(value, Select):
        return value.condition, value.true_value, value.false_value
    if isinstance(value, PrimCall) and value.op == "if_then_else" and len(value.args) == 3:
        condition, a, b = value.args
        if isinstance(condition, PrimExpr) and isinstance(a, PrimExpr) and isinstance(b, PrimExpr):
            return condition, a, b
    return None


def _term(value: PrimExpr, own: PrimVar) -> PrimExpr | None:
    """What comes to an element: the other operand, or the other branch of a choice."""
    branches = _branches(value)
    if branches is not None:
        sides = branches[1:]
    elif isinstance(value, Binary) and value.kind in ASSOCIATIVE:
        sides = (value.a, value.b)
    else:
        return None
    others = [side for side in sides if side is not own]
    return others[0] if len(others) == 1 else None


def _abstract(
    value: PrimExpr, owns: Sequence[PrimVar], terms: Sequence[PrimExpr], comings: Sequence[PrimVar], position: int
) -> PrimExpr | None:
    """A value over the variables of the parts alone; None when it is more than choices and comparisons of them."""

    def leaf(expr: PrimExpr, wanted: int | None) -> PrimExpr | None:
        if expr in owns:
            return expr
        same = [i for i, term in enumerate(terms) if term is expr or structural_equal(term, expr)]
        if wanted in same:
            return comings[wanted]  # type: ignore[index]
        return comings[same[0]] if len(same) == 1 else None

    def condition(expr: PrimExpr) -> PrimExpr | None:
        if isinstance(expr, Unary) and expr.kind == "not":
            inner = condition(expr.a)
            return None if inner is None else Unary("not", inner)
        if not isinstance(expr, Binary):
            return None
        if expr.kind in ("and", "or"):
            sides = condition(expr.a), condition(expr.b)
        elif expr.kind in _COMPARE:
            at = next((owns.index(side) for side in (expr.a, expr.b) if side in owns), None)  # type: ignore[arg-type]
            sides = leaf(expr.a, at), leaf(expr.b, at)
            groups = [{(*owns, *comings).index(side) % len(owns)} for side in sides if side is not None]  # type: ignore[arg-type]
            if len(groups) != 2 or groups[0] != groups[1]:
                return None
        else:
            return None
        return None if sides[0] is None or sides[1] is None else Binary(expr.kind, sides[0], sides[1])

    branches = _branches(value)
    if branches is not None:
        parts = condition(branches[0]), leaf(branches[1], position), leaf(branches[2], position)
        return None if None in parts else Select(*parts)  # type: ignore[arg-type]
    assert isinstance(value, Binary)
    a, b = leaf(value.a, position), leaf(value.b, position)
    return None if a is None or b is None else Binary(value.kind, a, b)


# Laws ---------------------------------------------------------------------------------------------------------------


def _require_law(tree: Tree, block: Block, parts: Sequence[Part]) -> bool:
    """Whether the parts go on in any order; W610 when they cannot go on in pieces."""
    choices = [part for part in parts if isinstance(part.combined, Select)]
    used = {x for part in choices for x in walk(part.combined) if isinstance(x, PrimVar)}
    chosen = [part for part in parts if part.own in used or part.coming in used]
    for part in parts:
        if part in chosen and not isinstance(part.combined, Select) and part.combined.kind not in ("min", "max"):  # type: ignore[attr-defined]
            raise _none(tree, block)
        if part not in chosen and not is_identity(part.combined.kind, part.start):  # type: ignore[attr-defined]
            raise _not_neutral(tree, block)
    if not chosen:
        return True
    if len(chosen) > 2:
        raise failure("W610", f"the block {block.name!r} chooses among more than two values at once", tree, block)
    orders = list(itertools.product(range(3), repeat=len(chosen)))
    combine = _combiner(chosen)
    for a, b, c in itertools.product(orders, repeat=3):
        if combine(combine(a, b), c) != combine(a, combine(b, c)):
            raise failure(
                "W610", f"what block {block.name!r} chooses depends on how its elements are grouped", tree, block
            )
    _require_neutral_choice(tree, block, chosen, combine)
    return all(combine(a, b) == combine(b, a) for a, b in itertools.product(orders, repeat=2))


def _not_neutral(tree: Tree, block: Block) -> Exception:
    return failure(
        "W610",
        f"the init of block {block.name!r} is not neutral, so parts of the sum cannot start with it",
        tree,
        block,
    )


_Values = tuple[float, ...]


def _combiner(parts: Sequence[Part]) -> Callable[[_Values, _Values], _Values]:
    def combine(own: _Values, coming: _Values) -> _Values:
        known = {part.own: value for part, value in zip(parts, own, strict=True)}
        known |= {part.coming: value for part, value in zip(parts, coming, strict=True)}
        return tuple(_evaluated(part.combined, known) for part in parts)

    return combine


def _evaluated(expr: PrimExpr, known: dict[PrimVar, float]) -> float:
    if isinstance(expr, PrimVar):
        return known[expr]
    if isinstance(expr, Select):
        chosen = expr.true_value if _evaluated(expr.condition, known) else expr.false_value
        return _evaluated(chosen, known)
    if isinstance(expr, Unary):
        return not _evaluated(expr.a, known)
    assert isinstance(expr, Binary)
    return {**_COMPARE, **_LOGIC}[expr.kind](_evaluated(expr.a, known), _evaluated(expr.b, known))


def _require_neutral_choice(
    tree: Tree, block: Block, parts: Sequence[Part], combine: Callable[[_Values, _Values], _Values]
) -> None:
    """W610 unless the init, coming again later, changes nothing."""
    around: list[list[float]] = []
    for part in parts:
        if not isinstance(part.start, (FloatImm, IntImm)):
            raise _not_neutral(tree, block)
        start, dtype = part.start.value, part.start.dtype
        least, most = lowest(dtype), highest(dtype)
        around.append([start, *([least] if least < start else []), *([most] if start < most else [])])
    start = tuple(values[0] for values in around)
    reached = [combine(start, coming) for coming in itertools.product(*around)]
    if combine(start, start) != start or any(combine(held, start) != held for held in reached):
        raise _not_neutral(tree, block)


def is_identity(kind: str, value: PrimExpr) -> bool:
    """Whether a value is a number that changes nothing by an operation."""
    if not isinstance(value, (FloatImm, IntImm)):
        return False
    number, dtype = value.value, value.dtype
    if kind in ("min", "max"):
        worst = (highest, max_value) if kind == "min" else (lowest, min_value)
        return number in [limit(dtype) for limit in worst]
    neutral: dict[str, float] = {
        "add": 0,
        "mul": 1,
        "and": 1,
        "or": 0,
        "bitwise_or": 0,
        "bitwise_xor": 0,
        "bitwise_and": -1,
    }
    if kind == "bitwise_and" and (is_bool(dtype) or dtype.startswith("uint")):
        return number == max_value(dtype)
    return number == neutral[kind]
