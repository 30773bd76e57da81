"""`return` in loops: the value is carried, and ends the function after the loop.

for ...: A                      returned = False; result = zeros
    if t: return v              for ...: A; if t: result = v; returned = True; break
B                               if returned: return result
                                B
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.ir.deduction.infer import check_claim, type_text
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.graph import Expr, Tuple
from weft.ir.op import get_op
from weft.ir.structure.structural import structural_equal
from weft.ir.types import TensorType, TupleType, Type
from weft.script.forms.reading import GRAPH
from weft.script.reader.graph.bindings import WHOLE, as_leaf, bind_value, type_of, weak_parts
from weft.script.reader.graph.expressions.numbers import joined_dtype
from weft.script.reader.graph.joined import at, bound_names, fresh_name, name_at
from weft.script.reader.graph.loops.body import LoopTree, Returned, leaves, without_else, without_returns
from weft.script.reader.graph.loops.carried import handed_on
from weft.script.reader.graph.loops.loop import read_loop, unroll
from weft.script.reader.graph.loops.source import Source, changed_names, source_of, table_source
from weft.script.reader.graph.loops.trial import undone
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.statements import read_statement

__all__ = ["loop_and_rest"]


@GRAPH.tree(Returned)
def _returned(session: GraphSession, tree: Returned) -> None:
    """Bind what the loop returns; its type is noted where it is asked for."""
    value = handed_on(session, session.value(tree.value), tree.value)
    if session.returned is not None:
        session.returned.append((type_of(session, value, tree.value), weak_parts(session, value), tree))
    target = tree.targets[0]
    assert isinstance(target, ast.Name)
    made = value if isinstance(value, Tuple) else bind_value(session, target, value, None, tree)
    session.scope.names[target.id] = made


def loop_and_rest(session: GraphSession, tree: LoopTree, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Read a loop that may return; gives what is read after it, in place of the statements that follow it.

    The value is carried, and is zeros until then: the loop is read first for the type of what it returns.
    """
    changed = changed_names(tree.body)
    found = source_of(session, tree.iter, changed) if isinstance(tree, ast.For) else None
    source = table_source(session, found) if isinstance(found, ast.expr) else found
    if isinstance(tree, ast.For) and source is None and isinstance(found, ast.expr):
        unroll(session, tree, found)
    taken = set(bound_names([tree]))
    is_taken = lambda name: name in taken or session.has_value(name)  # noqa: E731
    returned, result = fresh_name("returned", is_taken), fresh_name("result", is_taken)
    session.results.add(result)
    plain = without_returns(tree, returned, result)
    after: list[ast.stmt] = []
    if plain.orelse:
        first, plain, *after = without_else(plain, is_taken)
        read_statement(session, first)
    assert isinstance(plain, (ast.For, ast.While))
    session.scope.names[returned] = False
    ty = _returned_type(session, plain, source)
    if ty is None:  # what is known while reading keeps every `return` from being reached
        read_loop(session, plain, source)
        return [*after, *rest]
    session.scope.names[result] = _zeros(session, ty, tree)
    read_loop(session, plain, source)
    last = at(tree, ast.Return(name_at(result, ast.Load(), tree)))
    if isinstance(tree, ast.While) and isinstance(tree.test, ast.Constant) and not leaves(tree):
        return [last]
    return [at(tree, ast.If(name_at(returned, ast.Load(), tree), [last], [])), *after, *rest]


def _returned_type(session: GraphSession, loop: LoopTree, source: Source | None) -> Type | None:
    """The type of what a loop returns, which all its returns share; None for no returns."""
    known, noted = set(session.symbols), list[tuple[Type, frozenset[int], ast.AST]]()
    with undone(session):
        session.returned = noted
        read_loop(session, loop, source)
    first = _with_joined_numbers([(ty, weak) for ty, weak, _ in noted]) if noted else None
    for ty, _, place in noted:
        new = type_symbols(ty) - known
        if new or not _has_zeros(ty):
            what = f"is known to an iteration only ({', '.join(sorted(new))})" if new else "is not known"
            message = f"the shape of what a `return` in a loop gives {what}: {type_text(ty)}"
            raise session.fail("W115", message, place, "give a tensor of a size that is known before the loop")
        if first is not None and not structural_equal(ty, first):
            what = "what a `return` in a loop gives, as another does,"
            check_claim(_with_dtypes(first, ty), ty, session.context, what, session.span(place), at_run_time=True)
    return first


def _with_joined_numbers(returned: Sequence[tuple[Type, frozenset[int]]]) -> Type:
    """The type of the first return, with numbers in the dtype that holds those of all of them."""
    first = returned[0][0]
    fields = list(first.fields) if isinstance(first, TupleType) else [first]
    for place, ty in enumerate(fields):
        found = [
            (_part(other, place), (place if isinstance(other, TupleType) else WHOLE) in weak)
            for other, weak in returned
        ]
        if not all(isinstance(part, TensorType) and part.ndim == 0 and part.dtype for part, _ in found):
            continue
        dtype = joined_dtype([(str(part.dtype), weak) for part, weak in found])  # type: ignore[union-attr]
        fields[place] = TensorType((), dtype) if dtype is not None else ty
    return TupleType(tuple(fields)) if isinstance(first, TupleType) else fields[0]


def _part(ty: Type, place: int) -> Type | None:
    if not isinstance(ty, TupleType):
        return ty if place == 0 else None
    return ty.fields[place] if place < len(ty.fields) else None


def _with_dtypes(claimed: Type, found: Type) -> Type:
    """What is claimed of a return, with numbers in the dtype that it has: they are converted."""
    if isinstance(claimed, TupleType) and isinstance(found, TupleType) and len(claimed.fields) == len(found.fields):
        return TupleType(tuple(map(_with_dtypes, claimed.fields, found.fields)))
    both = isinstance(claimed, TensorType) and isinstance(found, TensorType) and claimed.ndim == found.ndim == 0
    return found if both and joined_dtype([(claimed.dtype or "", False), (found.dtype or "", True)]) else claimed  # type: ignore[attr-defined]


def _has_zeros(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return all(map(_has_zeros, ty.fields))
    return isinstance(ty, TensorType) and ty.dims is not None and ty.dtype is not None


def _zeros(session: GraphSession, ty: Type, tree: ast.AST) -> Expr:
    if isinstance(ty, TupleType):
        return Tuple(tuple(_zeros(session, field, tree) for field in ty.fields), span=session.span(tree))
    assert isinstance(ty, TensorType)
    return as_leaf(session, get_op("zeros").bind([ty.dims, ty.dtype], {}, session.span(tree)), tree)
