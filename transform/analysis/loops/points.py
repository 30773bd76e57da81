"""Expressions at a point of a function as dimensions, and what is known of the loops around it.

    Point   names for variables, and the facts 0 <= i < extent of the loops that enclose the point

The dimension of a variable is a symbol, so it must not be negative: loops start at zero or more, and scalar parameters
count only where a loop runs to them (inside of it they are positive). What else there is has no dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.dtypes import is_integer
from weft.errors import ShapeError
from weft.ir import walk
from weft.ir.dim import Dim, Facts, as_dim, prove_equal, prove_le, symbol
from weft.ir.kernel.prim import as_expr, cast
from weft.ir.kernel.prim_dim import dim_to_prim, prim_to_dim
from weft.ir.kernel.regions import Bounds, Interval
from weft.ir.tensor import Block, Extent, For, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.transform.schedule.tree import Tree

__all__ = ["Point", "conjuncts", "strict_limit", "variables_in"]


def variables_in(*parts: Extent | None) -> set[PrimVar]:
    """The variables of expressions."""
    return {x for part in parts if isinstance(part, PrimExpr) for x in walk(part) if isinstance(x, PrimVar)}


def conjuncts(condition: PrimExpr | None) -> list[PrimExpr]:
    """The parts that must all hold."""
    if condition is None:
        return []
    kind = getattr(condition, "kind", "")
    if kind == "and":
        return [*conjuncts(condition.a), *conjuncts(condition.b)]  # type: ignore[attr-defined]
    return [condition]


class Point:
    """Dimensions of expressions at a place inside some loops."""

    def __init__(self, function: PrimFunc, loops: Iterable[For] = ()) -> None:
        self.names: dict[PrimVar, str] = {}
        self.facts = Facts()
        self.unknown: set[PrimVar] = {
            param for param in function.params if isinstance(param, PrimVar) and is_integer(param.dtype)
        }
        for loop in loops:
            self.enter(loop)

    @classmethod
    def inside(cls, tree: Tree, stmt: For | Block) -> Point:
        """The point of the body of a statement (of a block: over the loops around it, and its own variables)."""
        found = cls(tree.function)
        chain = [item for item in (*reversed(list(tree.above(stmt))), stmt) if isinstance(item, (For, Block))]
        for item in chain:
            if isinstance(item, For):
                found.enter(item)
            elif item is not stmt or isinstance(stmt, Block):
                found.enter_block(item)
        return found

    @classmethod
    def around(cls, tree: Tree, stmt: Stmt) -> Point:
        """The point just before a statement."""
        found = cls(tree.function)
        for item in reversed(list(tree.above(stmt))):
            if isinstance(item, For):
                found.enter(item)
            elif isinstance(item, Block):
                found.enter_block(item)
        return found

    def copy(self, loops: Iterable[For] = ()) -> Point:
        """The same point, or one inside further loops; names are shared."""
        new = Point.__new__(Point)
        new.names, new.facts, new.unknown = self.names, self.facts, set(self.unknown)
        for loop in loops:
            new.enter(loop)
        return new

    def whole_extents(self, loops: Iterable[For]) -> dict[str, Dim]:
        """The extents, by the names of their variables, of the loops that count from 0 in ones."""
        extents: dict[str, Dim] = {}
        for loop in loops:
            size = self.dim(loop.extent)
            if loop.start == 0 and loop.step in (None, 1) and size is not None:
                extents[self.name(loop.loop_var)] = size
        return extents

    def enter(self, loop: For) -> None:
        """Add a loop: its variable is in its range."""
        self.range(loop.loop_var, loop.start, loop.extent)

    def enter_block(self, block: Block) -> None:
        """Add a block: its variables are in their domains."""
        for item in block.iter_vars:
            self.range(item.var, item.start, item.extent)

    def range(self, variable: PrimVar, start: Extent, extent: Extent) -> None:
        """Add a variable that runs over [start, start + extent)."""
        if isinstance(extent, PrimVar):
            self.unknown.discard(extent)  # inside the loop there is an iteration
        low, size = self.dim(start), self.dim(extent)
        if low is None or prove_le(0, low, self.facts) is not True:
            self.unknown.add(variable)
            return
        here = symbol(self.name(variable))
        if size is not None:
            self.facts = self.facts.assume_le(here + 1, low + size)
        if not (isinstance(low, int) and low == 0):
            self.facts = self.facts.assume_le(low, here)

    def assume(self, condition: PrimExpr | None) -> None:
        """Add what a condition says, as far as it compares integers."""
        for part in conjuncts(condition):
            kind = getattr(part, "kind", "")
            if kind not in ("lt", "le", "gt", "ge", "eq"):
                continue
            a, b = self.dim(part.a), self.dim(part.b)  # type: ignore[attr-defined]
            if a is None or b is None:
                continue
            if kind in ("gt", "ge"):
                a, b, kind = b, a, {"gt": "lt", "ge": "le"}[kind]
            if kind == "eq":
                self.facts = self.facts.assume_equal(a, b)
            else:
                self.facts = self.facts.assume_le(a + 1 if kind == "lt" else a, b)

    def name(self, variable: PrimVar) -> str:
        """The symbol of a variable."""
        return Bounds(self.names).name(variable)

    def dim(self, expr: Extent) -> Dim | None:
        """The dimension of an integer expression, None when it has none."""
        if isinstance(expr, int):
            return expr
        found = variables_in(expr)
        if found & self.unknown or not all(is_integer(x.dtype) for x in found):
            return None
        for variable in found:
            self.name(variable)
        try:
            return prim_to_dim(expr, self.names)
        except ShapeError:  # over the limits of dimensions
            return None

    def expr(self, dim: Dim, dtype: str) -> PrimExpr:
        """An expression of a dtype for a dimension."""
        made = dim_to_prim(dim, {name: self.typed(variable, dtype) for variable, name in self.names.items()})
        return cast(dtype, as_expr(made, dtype))

    @staticmethod
    def typed(variable: PrimVar, dtype: str) -> PrimVar:
        """The variable in a dtype."""
        return variable if variable.dtype == dtype else cast(dtype, variable)  # type: ignore[return-value]

    def extent(self, dim: Dim, dtype: str) -> Extent:
        """A size for a dimension: a plain number where it is one."""
        return dim if isinstance(dim, int) else self.expr(dim, dtype)

    def equal(self, a: Extent, b: Extent) -> bool:
        """Whether two expressions are proved to be equal here."""
        left, right = self.dim(a), self.dim(b)
        return left is not None and right is not None and prove_equal(left, right, self.facts) is True

    def same(self, a: Dim | None, b: Dim | None) -> bool:
        """Whether two dimensions are proved to be equal here."""
        return a is not None and b is not None and prove_equal(a, b, self.facts) is True

    def at_most(self, a: Dim | None, b: Dim | None) -> bool:
        """Whether a <= b is proved here."""
        return a is not None and b is not None and prove_le(a, b, self.facts) is True

    def below(self, a: Dim | None, b: Dim | None) -> bool:
        """Whether a < b is proved here."""
        return a is not None and self.at_most(as_dim(a) + 1, b)

    def bounds(self, ranges: Mapping[PrimVar, Interval | None] | None = None) -> Bounds:
        """Intervals in which the variables of this point stand for themselves."""
        return Bounds(self.names, {**dict.fromkeys(self.unknown), **(ranges or {})})

    def relaxed(self, loops: Sequence[For]) -> Bounds:
        """Intervals in which the variables of some loops run over their ranges."""
        found = self.bounds()
        for loop in loops:
            found = found.with_range(loop.loop_var, loop.start, loop.extent)
            if loop.step not in (None, 1):
                known = found.ranges[loop.loop_var]
                found = found.with_interval(loop.loop_var, known and Interval(known.low, known.high, False))
        return found


def strict_limit(part: PrimExpr, point: Point) -> tuple[Dim, Dim] | None:
    """(value, limit) of a condition that says value < limit; None for any other."""
    kind = getattr(part, "kind", "")
    if kind not in ("lt", "le", "gt", "ge"):
        return None
    a, b = point.dim(part.a), point.dim(part.b)  # type: ignore[attr-defined]
    if a is None or b is None:
        return None
    if kind in ("gt", "ge"):
        a, b = b, a
    limit = b if kind in ("lt", "gt") else b + 1
    return (as_dim(a), limit)
