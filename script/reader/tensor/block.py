"""Reading the head of a block: its axes, `T.reads`, `T.writes`, `T.where`, `T.block_attr`.

    axis ::= v = T.axis.<kind>(extent | (low, high), value)      kind: spatial, reduce, scan, opaque
           | v, ... = T.axis.remap("SR...", [loop variable, ...])

A clause outside of a block is W114, a second one of its kind W118.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from weft import dtypes
from weft.ir.node import FrozenMap
from weft.ir.tensor import BufferRegion, Extent, IntImm, IterVar, PrimExpr, PrimVar
from weft.script.forms.defaults import axis_dtype
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import CLAUSES
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.attributes import joined_attributes
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.unrolling import unpack_targets
from weft.script.reader.scope import Scope
from weft.script.reader.tensor.buffer import difference_of
from weft.script.reader.tensor.scalar import as_bool, read_extent
from weft.script.reader.tensor.session import BlockHeader, TensorSession

__all__ = ["add_axis", "axis_domain", "block_header", "extent_between", "remap_axes", "remap_starred"]

_AXIS_LETTERS = {"S": "spatial", "R": "reduce", "C": "scan", "O": "opaque"}


def block_header(session: TensorSession, tree: ast.AST, what: str) -> BlockHeader:
    """The head of the block around a clause; W114 outside of blocks."""
    if session.block is None:
        raise session.fail("W114", f"`{what}` belongs directly inside a `with T.block(...)`", tree)
    return session.block


@TENSOR.statement("T.reads")
def _reads(session: TensorSession, tree: ast.Call) -> None:
    header = block_header(session, tree, "T.reads")
    _once(session, header.reads, "T.reads", tree)
    header.reads = _regions(session, tree, "T.reads")


@TENSOR.statement("T.writes")
def _writes(session: TensorSession, tree: ast.Call) -> None:
    header = block_header(session, tree, "T.writes")
    _once(session, header.writes, "T.writes", tree)
    header.writes = _regions(session, tree, "T.writes")


def _regions(session: TensorSession, tree: ast.Call, name: str) -> tuple[BufferRegion, ...]:
    values = bind_arguments(session, CLAUSES[name], tree)["regions"]
    flat: list[BufferRegion] = []
    for value in values:
        flat.extend(value if isinstance(value, tuple) else (value,))
    return tuple(flat)


@TENSOR.statement("T.where")
def _where(session: TensorSession, tree: ast.Call) -> None:
    predicate = bind_arguments(session, CLAUSES["T.where"], tree)["predicate"]
    header = block_header(session, tree, "T.where")
    _once(session, header.predicate, "T.where", tree)
    header.predicate = as_bool(session, predicate, tree)


def _once(session: TensorSession, known: object, name: str, tree: ast.AST) -> None:
    if known is not None:
        raise session.fail("W118", f"a block has one {name}", tree)


@TENSOR.statement("T.block_attr")
def _block_attr(session: TensorSession, tree: ast.Call) -> None:
    header = block_header(session, tree, "T.block_attr")
    attrs = bind_arguments(session, CLAUSES["T.block_attr"], tree)["attrs"]
    if not isinstance(attrs, FrozenMap):
        raise session.fail("W114", "T.block_attr takes a dictionary", tree)
    header.annotations = joined_attributes(session, header.annotations, attrs, "block", tree)


def _bare_axis(session: TensorSession, tree: ast.Call) -> None:
    raise session.fail("W114", "a block variable needs a name", tree, "write `vi = T.axis.spatial(4, i)`")


def axis_domain(session: TensorSession, tree: ast.expr, start: Extent) -> tuple[Extent, Extent]:
    """The start and extent of an axis: one number, or the first and the one after the last."""
    pair = tree.elts if isinstance(tree, (ast.Tuple, ast.List)) else []
    if isinstance(tree, ast.Call) and dotted_name(session, tree.func) == "T.Range" and not tree.keywords:
        pair = tree.args
    if len(pair) == 2:
        low, high = (read_extent(session, item) for item in pair)
        return low, extent_between(session, low, high, tree)
    return start, read_extent(session, tree)


def extent_between(session: TensorSession, low: Extent, high: Extent, tree: ast.AST) -> Extent:
    """high - low, plain when both are."""
    if isinstance(low, int) and low == 0:
        return high
    if isinstance(low, IntImm) and isinstance(high, IntImm):
        return IntImm(high.value - low.value, high.dtype)
    return difference_of(session, low, high, tree)


def add_axis(
    session: TensorSession,
    header: BlockHeader,
    target: ast.Name,
    kind: str,
    start: Extent,
    extent: Extent,
    value: PrimExpr | None,
    dtype: str,
    tree: ast.AST,
) -> None:
    """A variable of the block."""
    if any(item.var.name == target.id for item in header.iter_vars):
        raise session.fail("W118", f"two variables of the block are named '{target.id}'", target)
    if value is not None and not dtypes.is_integer(value.dtype):
        raise session.fail("W123", f"a block variable is bound to an integer, not to {value.dtype}", tree)
    if isinstance(extent, int) and extent < 0:
        raise session.fail("W114", f"an extent cannot be negative, got {extent}", tree)
    var = PrimVar(target.id, dtype, span=session.span(target))
    header.iter_vars.append(IterVar(var, start, extent, kind, value, span=session.span(tree)))
    session.scope.names[target.id] = var


def remap_axes(session: TensorSession, names: list[ast.Name], tree: ast.Call) -> None:
    """`vi, vj = T.axis.remap("SR", [i, j])`."""
    header = block_header(session, tree, "T.axis.remap")
    values = bind_arguments(session, CLAUSES["T.axis.remap"], tree)
    letters, variables = values["kinds"], values["values"]
    if len(letters) != len(variables) or len(letters) != len(names):
        raise session.fail(
            "W113", f"T.axis.remap: {len(letters)} kinds, {len(variables)} loops, {len(names)} names", tree
        )
    for target, letter, variable in zip(names, letters, variables, strict=True):
        if letter not in _AXIS_LETTERS:
            raise session.fail("W114", f"axis kind {letter!r}: expected S (spatial) or R (reduce)", tree.args[0])
        domain = session.loops.get(variable) if isinstance(variable, PrimVar) else None
        if domain is None:
            raise session.fail(
                "W114", "T.axis.remap takes variables of enclosing loops", tree, "use T.axis.spatial(extent, value)"
            )
        start, extent = domain  # type: ignore[misc]
        add_axis(session, header, target, _AXIS_LETTERS[letter], start, extent, variable, variable.dtype, tree)


@TENSOR.assigned("T.axis.remap")
def _remap_one(session: TensorSession, target: ast.Name, tree: ast.Call) -> None:
    """`v = T.axis.remap("SS", [i, j])`: one variable, or the tuple of several."""
    kinds = session.constant(tree.args[0]) if tree.args else ""
    if not isinstance(kinds, str) or len(kinds) == 1:
        remap_axes(session, [target], tree)
        return
    session.scope.names[target.id] = _remap_unnamed(session, [target] * len(kinds), tree)


def _remap_unnamed(session: TensorSession, targets: list[ast.Name], tree: ast.Call) -> tuple[PrimExpr, ...]:
    """Block variables that the text names as parts of a tuple."""
    outer, session.scope = session.scope, Scope(session.scope)
    try:
        names = [
            ast.copy_location(ast.Name(f"{target.id}{axis}" if targets.count(target) > 1 else target.id), target)
            for axis, target in enumerate(targets)
        ]
        remap_axes(session, names, tree)
        return tuple(session.scope.names[name.id] for name in names)
    finally:
        session.scope = outer


def remap_starred(session: TensorSession, target: ast.Tuple | ast.List, tree: ast.Call) -> None:
    """`*v, k = T.axis.remap("SSR", [...])`: the starred name is the tuple of its variables."""
    kinds = session.constant(tree.args[0]) if tree.args else ""
    if not isinstance(kinds, str):
        raise session.fail("W114", "expected the kinds of the axes as a string", tree.args[0])
    groups = unpack_targets(session, target, list(range(len(kinds))), target)
    flat: list[ast.Name] = []
    for item, part in groups:
        if not isinstance(item, ast.Name):
            raise session.fail("W115", "only names can be unpacked into", item)
        flat.extend([item] * (len(part) if isinstance(part, list) else 1))
    made = _remap_unnamed(session, flat, tree)
    for item, part in groups:
        assert isinstance(item, ast.Name)
        session.scope.names[item.id] = tuple(made[axis] for axis in part) if isinstance(part, list) else made[part]


def _axis(kind: str) -> Callable[[TensorSession, ast.Name, ast.Call], None]:
    """The function that reads `v = T.axis.<kind>(...)`."""

    def read(session: TensorSession, target: ast.Name, tree: ast.Call) -> None:
        header = block_header(session, tree, f"T.axis.{kind}")
        values = bind_arguments(session, CLAUSES[f"T.axis.{kind}"], tree)
        start, extent = axis_domain(session, values["extent"], values["start"])
        value = values["value"]
        dtype = values["dtype"] or axis_dtype(extent, value)
        add_axis(session, header, target, kind, start, extent, value, dtype, tree)

    return read


for _kind in _AXIS_LETTERS.values():
    TENSOR.assigned(f"T.axis.{_kind}")(_axis(_kind))
    TENSOR.statement(f"T.axis.{_kind}")(_bare_axis)
