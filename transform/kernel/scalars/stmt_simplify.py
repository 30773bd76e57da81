"""StmtSimplify: statements in simpler form, by the loops, conditions and values around them.

    for i in range(n):                      for i in range(n):
        k = i * 8                               k = i * 8
        if i < n:                               y[i] = x[i * 8]
            y[i] = x[k + i * 4 - i * 4]

Comparisons that are decided where they stand become `True` or `False`, and what they guard follows. Index arithmetic
gets its shortest form, with what bound variables stand for. Names for constants and for other names disappear, and so
do loops that never run. Nothing is assumed of accesses: the result has the same bits wherever the original has a value.
"""

from __future__ import annotations

from typing import ClassVar

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import IRModule, Node, replace, rewrite, substitute
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.kernel.simplify import is_pure, simplify
from weft.ir.tensor import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Bind,
    FloatImm,
    For,
    IntImm,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
    Unary,
)
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import Facts
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.facts_rewriter import FactsRewriter
from weft.transform.kernel.scalars.normal_form import is_arithmetic, shortest

__all__ = ["StmtSimplify", "decided", "simplified"]

_ROUNDS = 4


@dataclass(frozen=True)
class StmtSimplify(FunctionPass):
    """Simplify the statements of kernels by what loops, conditions and bindings say."""

    aliases: ClassVar[tuple[str, ...]] = ("simplify",)
    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function in simpler form; the same object when nothing applies."""
        return simplified(function)


def simplified(function: PrimFunc) -> PrimFunc:
    """A tensor-level function in simpler form; itself when nothing applies."""
    for _ in range(_ROUNDS):
        new = simplify(_Simplifier(function).rewritten())
        if new is function:
            return new
        function = new
    return function


class _Simplifier(FactsRewriter):
    def value(self, value: PrimExpr, facts: Facts) -> PrimExpr:
        """Conditions that are decided, and arithmetic in its shortest form."""
        answer = decided(self, value, facts)
        if answer is not None:
            return IntImm(int(answer), "bool")
        return shortest(self.known, self._chosen(value, facts), facts)

    def _chosen(self, value: PrimExpr, facts: Facts) -> PrimExpr:
        """Arithmetic with the side of each minimum and maximum that is known to be it."""

        def side(node: Node) -> Node | None:
            if not isinstance(node, Binary) or node.kind not in ("min", "max") or not is_arithmetic(node):
                return None
            low, high = (node.a, node.b) if node.kind == "min" else (node.b, node.a)
            if is_pure(node.b) and self._is_ordered(low, high, facts):
                return node.a
            return node.b if is_pure(node.a) and self._is_ordered(high, low, facts) else None

        def done(node: Node) -> Node | None:
            return None if is_arithmetic(node) else node

        return rewrite(value, side, pre=done) if is_arithmetic(value) else value

    def _is_ordered(self, a: PrimExpr, b: PrimExpr, facts: Facts) -> bool:
        try:
            return self.known.holds(self.known.closed(binary("le", a, b)), facts)
        except ShapeError:  # over the limits of dimensions
            return False

    def goes_together(self, value: PrimExpr) -> bool:
        """Arithmetic is looked at as a whole."""
        return is_arithmetic(value)

    def done(self, stmt: Stmt, facts: Facts) -> Stmt:
        """Loops that never run are gone, and names for names."""
        if isinstance(stmt, For):
            return SeqStmt((), span=stmt.span) if self._never_runs(stmt, facts) else stmt
        return _without_names(stmt) if isinstance(stmt, SeqStmt) else stmt

    def _never_runs(self, loop: For, facts: Facts) -> bool:
        extent = loop.extent
        if not isinstance(extent, PrimExpr) or not is_pure(extent):
            return False
        return self.known.holds(binary("le", extent, as_expr(0, extent.dtype)), facts)


def decided(rewriter: FactsRewriter, value: PrimExpr, facts: Facts) -> bool | None:
    """What a condition without effects is known to be; None where nothing is known, and for other values."""
    logical = isinstance(value, Binary) and (value.kind in COMPARISONS or value.kind in LOGICAL)
    if not logical and not (isinstance(value, Unary) and value.kind == "not"):
        return None
    if dtypes.lanes(value.dtype) > 1 or not is_pure(value):
        return None
    closed = rewriter.known.closed(value)
    try:
        if rewriter.known.holds(closed, facts):
            return True
        return False if rewriter.known.holds(Unary("not", closed), facts) else None
    except ShapeError:  # over the limits of dimensions
        return None


def _without_names(stmt: SeqStmt) -> Stmt:
    """The sequence with what is bound to a constant or to another name in place of its name."""
    direct = {
        part.var: part.value
        for part in stmt.stmts
        if isinstance(part, Bind) and isinstance(part.value, (IntImm, FloatImm, PrimVar))
    }
    if not direct:
        return stmt
    while any(isinstance(value, PrimVar) and value in direct for value in direct.values()):
        direct = {var: direct.get(value, value) for var, value in direct.items()}  # type: ignore[call-overload]
    kept = tuple(part for part in stmt.stmts if not (isinstance(part, Bind) and part.var in direct))
    return substitute(replace(stmt, stmts=kept), direct)
