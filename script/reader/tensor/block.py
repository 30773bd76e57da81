"""Reading the head of a block: its axes, `T.reads`, `T.writes`, `T.where`, `T.block_attr`.

    axis ::= v = T.axis.<kind>(extent | (low, high), value)      kind: spatial, reduce, scan, opaque
           | v, ... = T.axis.remap("SR...", [loop variable, ...])

A clause outside of a block is W114, a second one of its kind W118.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.tensor import (
    Buffer,
    BufferRegion,
    Extent,
    IntImm,
    IterVar,
    MatchBufferRegion,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.script.forms.defaults import axis_dtype
from weft.script.forms.syntax import CLAUSES
from weft.script.reader.base import ModuleScope, Scope
from weft.script.reader.tensor.buffer import BufferReader
from weft.script.source.text import Unit

__all__ = ["AXES", "BlockHeader", "BlockReader"]

_AXIS_LETTERS = {"S": "spatial", "R": "reduce", "C": "scan", "O": "opaque"}


class BlockHeader:
    """What the clauses of a block say."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.iter_vars: list[IterVar] = []
        self.predicate: PrimExpr | None = None
        self.reads: tuple[BufferRegion, ...] | None = None
        self.writes: tuple[BufferRegion, ...] | None = None
        self.init: Stmt | None = None
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[MatchBufferRegion] = []
        self.annotations: FrozenMap = EMPTY


class BlockReader(BufferReader):
    """Reads what stands in a block before its statements."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.loops: dict[PrimVar, tuple[Extent, Extent]] = {}  # enclosing loops: start and extent
        self.block: BlockHeader | None = None

    def _header(self, tree: ast.AST, what: str) -> BlockHeader:
        if self.block is None:
            raise self.fail("W114", f"`{what}` belongs directly inside a `with T.block(...)`", tree)
        return self.block

    def _reads(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.reads")
        self._once(header.reads, "T.reads", tree)
        header.reads = self._regions(tree, "T.reads")

    def _writes(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.writes")
        self._once(header.writes, "T.writes", tree)
        header.writes = self._regions(tree, "T.writes")

    def _regions(self, tree: ast.Call, name: str) -> tuple[BufferRegion, ...]:
        values = self.bind(CLAUSES[name], tree)["regions"]
        flat: list[BufferRegion] = []
        for value in values:
            flat.extend(value if isinstance(value, tuple) else (value,))
        return tuple(flat)

    def _where(self, tree: ast.Call) -> None:
        predicate = self.bind(CLAUSES["T.where"], tree)["predicate"]
        header = self._header(tree, "T.where")
        self._once(header.predicate, "T.where", tree)
        header.predicate = self._as_bool(predicate, tree)

    def _once(self, known: object, name: str, tree: ast.AST) -> None:
        if known is not None:
            raise self.fail("W118", f"a block has one {name}", tree)

    def _block_attr(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.block_attr")
        attrs = self.bind(CLAUSES["T.block_attr"], tree)["attrs"]
        if not isinstance(attrs, FrozenMap):
            raise self.fail("W114", "T.block_attr takes a dictionary", tree)
        header.annotations = self.joined(header.annotations, attrs, "block", tree)

    def _bare_axis(self, tree: ast.Call) -> None:
        raise self.fail("W114", "a block variable needs a name", tree, "write `vi = T.axis.spatial(4, i)`")

    def _axis_domain(self, tree: ast.expr, start: Extent) -> tuple[Extent, Extent]:
        pair = tree.elts if isinstance(tree, (ast.Tuple, ast.List)) else []
        if isinstance(tree, ast.Call) and self.dotted(tree.func) == "T.Range" and not tree.keywords:
            pair = tree.args
        if len(pair) == 2:
            low, high = (self.read_extent(item) for item in pair)
            return low, self._difference(low, high, tree)
        return start, self.read_extent(tree)

    def _difference(self, low: Extent, high: Extent, tree: ast.AST) -> Extent:
        """high - low, plain when both are."""
        if isinstance(low, int) and low == 0:
            return high
        if isinstance(low, IntImm) and isinstance(high, IntImm):
            return IntImm(high.value - low.value, high.dtype)
        return self._length(low, high, tree)

    def _add_axis(
        self, header: BlockHeader, target: ast.Name, kind: str, start: Extent, extent: Extent, value: PrimExpr | None,
        dtype: str, tree: ast.AST,
    ) -> None:  # fmt: skip
        if any(item.var.name == target.id for item in header.iter_vars):
            raise self.fail("W118", f"two variables of the block are named '{target.id}'", target)
        if value is not None and not dtypes.is_integer(value.dtype):
            raise self.fail("W123", f"a block variable is bound to an integer, not to {value.dtype}", tree)
        if isinstance(extent, int) and extent < 0:
            raise self.fail("W114", f"an extent cannot be negative, got {extent}", tree)
        var = PrimVar(target.id, dtype, span=self.span(target))
        header.iter_vars.append(IterVar(var, start, extent, kind, value, span=self.span(tree)))
        self.scope.names[target.id] = var

    def _remap(self, names: list[ast.Name], tree: ast.Call) -> None:
        header = self._header(tree, "T.axis.remap")
        values = self.bind(CLAUSES["T.axis.remap"], tree)
        letters, variables = values["kinds"], values["values"]
        if len(letters) != len(variables) or len(letters) != len(names):
            raise self.fail(
                "W113", f"T.axis.remap: {len(letters)} kinds, {len(variables)} loops, {len(names)} names", tree
            )
        for target, letter, variable in zip(names, letters, variables, strict=True):
            if letter not in _AXIS_LETTERS:
                raise self.fail("W114", f"axis kind {letter!r}: expected S (spatial) or R (reduce)", tree.args[0])
            domain = self.loops.get(variable) if isinstance(variable, PrimVar) else None
            if domain is None:
                raise self.fail(
                    "W114", "T.axis.remap takes variables of enclosing loops", tree, "use T.axis.spatial(extent, value)"
                )
            start, extent = domain  # type: ignore[misc]
            self._add_axis(header, target, _AXIS_LETTERS[letter], start, extent, variable, variable.dtype, tree)

    def _remap_one(self, target: ast.Name, tree: ast.Call) -> None:
        """`v = T.axis.remap("SS", [i, j])`: one variable, or the tuple of several."""
        kinds = self.constant(tree.args[0]) if tree.args else ""
        if not isinstance(kinds, str) or len(kinds) == 1:
            self._remap([target], tree)
            return
        self.scope.names[target.id] = self._remap_unnamed([target] * len(kinds), tree)

    def _remap_unnamed(self, targets: list[ast.Name], tree: ast.Call) -> tuple[PrimExpr, ...]:
        """Block variables that the text names as parts of a tuple."""
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            names = [
                ast.copy_location(ast.Name(f"{target.id}{axis}" if targets.count(target) > 1 else target.id), target)
                for axis, target in enumerate(targets)
            ]
            self._remap(names, tree)
            return tuple(self.scope.names[name.id] for name in names)
        finally:
            self.scope = outer

    def _remap_starred(self, target: ast.Tuple | ast.List, tree: ast.Call) -> None:
        """`*v, k = T.axis.remap("SSR", [...])`: the starred name is the tuple of its variables."""
        kinds = self.constant(tree.args[0]) if tree.args else ""
        if not isinstance(kinds, str):
            raise self.fail("W114", "expected the kinds of the axes as a string", tree.args[0])
        groups = self.unpacked(target, list(range(len(kinds))), target)
        flat: list[ast.Name] = []
        for item, part in groups:
            if not isinstance(item, ast.Name):
                raise self.fail("W115", "only names can be unpacked into", item)
            flat.extend([item] * (len(part) if isinstance(part, list) else 1))
        made = self._remap_unnamed(flat, tree)
        for item, part in groups:
            assert isinstance(item, ast.Name)
            self.scope.names[item.id] = tuple(made[axis] for axis in part) if isinstance(part, list) else made[part]


def _axis(kind: str) -> Callable[[Any, ast.Name, ast.Call], None]:
    """The method that reads `v = T.axis.<kind>(...)`."""

    def read(self: BlockReader, target: ast.Name, tree: ast.Call) -> None:
        header = self._header(tree, f"T.axis.{kind}")
        values = self.bind(CLAUSES[f"T.axis.{kind}"], tree)
        start, extent = self._axis_domain(values["extent"], values["start"])
        value = values["value"]
        dtype = values["dtype"] or axis_dtype(extent, value)
        self._add_axis(header, target, kind, start, extent, value, dtype, tree)

    return read


AXES = {f"T.axis.{kind}": _axis(kind) for kind in _AXIS_LETTERS.values()}
