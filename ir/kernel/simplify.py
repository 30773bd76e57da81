"""Simplifying tensor-level code: constants, neutral operands, decided conditions, empty and unit loops.

    simplify(node)   the same code in simpler form; the same object when nothing applies

Sound: wherever the original evaluates without an error, the result evaluates to the same bits. Integers are exact in
their dtype (nothing is folded that would wrap), floats are folded in their own precision, never to a nan, and only
identities that hold for nan, infinities and -0.0 are used. Ranges of loop and block variables decide comparisons and
divisions. Expressions without effects may be dropped; calls that are not declared pure stay. The reader never calls
this.

The condition of a check of bounds (an assertion of kind BoundsError) means the exact numbers, and does not hold where
its arithmetic leaves 64 bits: there `a * b <= 2**63 - 1` is no tautology.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import numpy as np

from weft import dtypes
from weft.ir.kernel.comparisons import COMPARE
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.node import Node, replace
from weft.ir.structure.visit import rewrite, substitute, walk
from weft.ir.tensor import (
    COMPARISONS,
    LOGICAL,
    AssertStmt,
    Binary,
    Block,
    Cast,
    Evaluate,
    Extent,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
    Unary,
    While,
)

__all__ = ["is_pure", "simplify"]

N = TypeVar("N", bound=Node)
Interval = tuple[int, int]

_INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


def simplify(root: N) -> N:
    """The expression, statement or function in simpler form; itself when no rule applies.

    >>> i = PrimVar("i", "int64")
    >>> simplify(i * 1 + 0) is i
    True
    """
    return _Simplifier(_Ranges(root)).run(root)


def _imm(value: int | bool, dtype: str) -> IntImm:
    return IntImm(int(value), dtype)


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


_EXACT: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b,
    "floormod": operator.mod,
    "truncdiv": _truncdiv,
    "truncmod": lambda a, b: a - b * _truncdiv(a, b),
    "min": min,
    "max": max,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
}
_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: a / b,
}
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
_FOLDED_FLOATS = ("float32", "float64")


class _Ranges:
    """The intervals of variables, and those of the expressions already simplified."""

    exact = False
    """Whether signed arithmetic means exact numbers: it has values that its dtype does not hold."""

    def __init__(self, root: Node) -> None:
        self.ranges: dict[PrimVar, Interval] = {}
        self.known: dict[int, tuple[PrimExpr, Interval]] = {}
        if isinstance(root, PrimFunc):
            for variable in buffer_symbols(root):
                self.ranges[variable] = (0, int(dtypes.max_value(variable.dtype)))
        for part in walk(root):
            if isinstance(part, For):
                self._bound(part.loop_var, part.start, part.extent)
            elif isinstance(part, Block) and part.predicate is None:
                for axis in part.iter_vars:
                    self._bound(axis.var, axis.start, axis.extent)

    def _bound(self, variable: PrimVar, start: Extent, extent: Extent) -> None:
        """Record [start, start + extent); the hull where a variable is bound more than once."""
        low, first = self._ends(start)
        _, size = self._ends(extent)
        new = (low, first + size - 1)
        if not dtypes.is_integer(variable.dtype) or not self.fits(new, variable.dtype) or new[0] > new[1]:
            new = self.whole(variable.dtype) if dtypes.is_integer(variable.dtype) else (0, 1)
        old = self.ranges.get(variable, new)
        self.ranges[variable] = (min(old[0], new[0]), max(old[1], new[1]))

    def _ends(self, extent: Extent) -> Interval:
        if isinstance(extent, int):
            return extent, extent
        return self.interval(extent) or (-(2**63), 2**63 - 1)

    @staticmethod
    def whole(dtype: str) -> Interval:
        return int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))

    @staticmethod
    def fits(interval: Interval, dtype: str) -> bool:
        return dtypes.can_hold(dtype, interval[0]) and dtypes.can_hold(dtype, interval[1])

    def interval(self, value: PrimExpr) -> Interval | None:
        """Bounds of an integer scalar, None for other dtypes; looks one level deep, operands being known already."""
        if isinstance(value, IntImm):
            return value.value, value.value
        if not dtypes.is_integer(value.dtype) or dtypes.lanes(value.dtype) > 1:
            return None
        if isinstance(value, PrimVar):
            return self.ranges.get(value) or self.whole(value.dtype)
        found = self.known.get(id(value))
        return found[1] if found is not None else self.whole(value.dtype)

    def remember(self, value: PrimExpr) -> PrimExpr:
        if isinstance(value, (Binary, Cast, Select)) and id(value) not in self.known:
            if dtypes.is_integer(value.dtype) and dtypes.lanes(value.dtype) == 1:
                new = self._computed(value)
                wraps = not self.fits(new, value.dtype) and not (self.exact and _is_exact(value))
                self.known[id(value)] = (value, self.whole(value.dtype) if wraps else new)
        return value

    def exactly(self) -> _Ranges:
        """The same ranges of variables, for conditions of checks of bounds."""
        other = copy(self)
        other.known, other.exact = {}, True
        return other

    def _computed(self, value: Binary | Cast | Select) -> Interval:
        if isinstance(value, Cast):
            return self.interval(value.value) or self.whole(value.dtype)
        left, right = (value.true_value, value.false_value) if isinstance(value, Select) else (value.a, value.b)
        a, b = self.interval(left), self.interval(right)
        if a is None or b is None:
            return self.whole(value.dtype)
        if isinstance(value, Select):
            return min(a[0], b[0]), max(a[1], b[1])
        return _interval_of(value.kind, a, b) or self.whole(value.dtype)


class _Simplifier:
    """One run over a tree."""

    def __init__(self, ranges: _Ranges) -> None:
        self.ranges = ranges

    def run(self, root: N) -> N:
        return rewrite(root, self.post, pre=self.bounds_check)

    def bounds_check(self, current: Node) -> Stmt | None:
        """An assertion of bounds, whose condition has a meaning of its own."""
        if not isinstance(current, AssertStmt) or current.kind != "BoundsError":
            return None
        new = replace(current, condition=_Simplifier(self.ranges.exactly()).run(current.condition))
        return _check(self, new) or new

    def post(self, current: Node) -> Node | None:
        if isinstance(current, PrimExpr):
            return self.expression(current)
        rule = _STATEMENTS.get(type(current))
        return rule(self, current) if rule is not None else None

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, current: PrimExpr) -> PrimExpr:
        rule = _EXPRESSIONS.get(type(current))
        new = rule(self, current) if rule is not None else None
        return self.ranges.remember(current if new is None else new)

    def binary(self, current: Binary) -> PrimExpr | None:
        if dtypes.lanes(current.a.dtype) > 1:
            return None
        if current.kind in LOGICAL:
            return self.logical(current)
        if dtypes.is_float(current.a.dtype):
            return self.float_binary(current)
        folded = _folded(current)
        if folded is not None:
            return folded
        if current.kind in COMPARISONS:
            return self.comparison(current)
        return self.integer(current) if dtypes.is_integer(current.a.dtype) else None

    def logical(self, current: Binary) -> PrimExpr | None:
        stop = current.kind == "or"  # the constant that decides
        for constant, other, decided_first in ((current.a, current.b, True), (current.b, current.a, False)):
            if isinstance(constant, IntImm):
                if bool(constant.value) != stop:
                    return other
                # The right side of a decided left side never runs; a left side always does.
                if decided_first or is_pure(other):
                    return constant
        return None

    def comparison(self, current: Binary) -> PrimExpr | None:
        a, b = self.ranges.interval(current.a), self.ranges.interval(current.b)
        if current.a is current.b and isinstance(current.a, PrimVar):
            return _imm(current.kind in ("eq", "le", "ge"), "bool")
        if a is None or b is None:
            return None
        answer = _compare_intervals(current.kind, a, b)
        if answer is None or not (is_pure(current.a) and is_pure(current.b)):  # walked only where they go away
            return None
        return _imm(answer, "bool")

    def float_binary(self, current: Binary) -> PrimExpr | None:
        a, b = current.a, current.b
        if isinstance(a, FloatImm) and isinstance(b, FloatImm) and a.dtype in _FOLDED_FLOATS:
            return _folded_float(current.kind, a, b)
        if current.kind in ("mul", "div") and _is_float(b, 1.0):
            return a
        if current.kind == "mul" and _is_float(a, 1.0):
            return b
        # x + -0.0 and x - 0.0 are x for every x; x + 0.0 is not when x is -0.0.
        if (current.kind == "add" and _is_float(b, -0.0)) or (current.kind == "sub" and _is_float(b, 0.0)):
            return a
        return b if current.kind == "add" and _is_float(a, -0.0) else None

    def integer(self, current: Binary) -> PrimExpr | None:
        kind, a, b = current.kind, current.a, current.b
        right = b.value if isinstance(b, IntImm) else None
        left = a.value if isinstance(a, IntImm) else None
        if (right == 0 and kind in ("add", "sub", "shift_left", "shift_right", "bitwise_or", "bitwise_xor")) or (
            right == 1 and kind in ("mul", "floordiv", "truncdiv")
        ):
            return a
        if (left == 0 and kind in ("add", "bitwise_or", "bitwise_xor")) or (left == 1 and kind == "mul"):
            return b
        if 0 in (left, right) and kind in ("mul", "bitwise_and") and is_pure(a) and is_pure(b):
            return _imm(0, current.dtype)
        if right == 1 and kind in ("floormod", "truncmod") and is_pure(a):
            return _imm(0, current.dtype)
        if a is b and isinstance(a, PrimVar) and kind in ("sub", "min", "max"):
            return _imm(0, current.dtype) if kind == "sub" else a
        if right is not None:
            joined = _joined_constants(current, right)
            if joined is not None:
                return self.expression(joined)
        return self.ranged(current)

    def ranged(self, current: Binary) -> PrimExpr | None:
        """What the ranges of the operands decide."""
        kind, left, right = current.kind, current.a, current.b
        a, b = self.ranges.interval(left), self.ranges.interval(right)
        if a is None or b is None:
            return None
        if kind in ("min", "max") and (a[1] <= b[0] or b[1] <= a[0]):
            kept, dropped = (left, right) if (a[1] <= b[0]) == (kind == "min") else (right, left)
            if is_pure(dropped):
                return kept
        if kind in _DIVISIONS and b[0] > 0 and a[0] >= 0:
            if a[1] < b[0]:
                return left if kind.endswith("mod") else (_imm(0, current.dtype) if is_pure(left) else None)
            if isinstance(right, IntImm):
                return self.divided_sum(kind, left, right)
        return None

    def divided_sum(self, kind: str, value: PrimExpr, divisor: IntImm) -> PrimExpr | None:
        """(x * c + y) // c and % c for 0 <= y < c, where the sum does not wrap (its range is known to fit)."""
        product, rest = (value.a, value.b) if isinstance(value, Binary) and value.kind == "add" else (value, None)
        if not (isinstance(product, Binary) and product.kind == "mul" and isinstance(product.b, IntImm)):
            return None
        within = self.ranges.interval(rest) if rest is not None else (0, 0)
        factors = self.ranges.interval(product.a)
        if product.b.value != divisor.value or within is None or factors is None:
            return None
        exact = (factors[0] * divisor.value + within[0], factors[1] * divisor.value + within[1])
        apart = 0 <= within[0] and within[1] < divisor.value and factors[0] >= 0
        if not apart or not self.ranges.fits(exact, value.dtype):
            return None
        if kind.endswith("mod"):
            return (rest if rest is not None else _imm(0, value.dtype)) if is_pure(product.a) else None
        return product.a if rest is None or is_pure(rest) else None


# -- what becomes of a node of a kind: a function for each row of the tables -------------------------------------------


def _unary(simplifier: _Simplifier, current: Unary) -> PrimExpr | None:
    a = current.a
    if current.kind == "not":
        if isinstance(a, IntImm):
            return _imm(not a.value, "bool")
        if isinstance(a, Binary) and a.kind in _INVERSE and dtypes.is_integer(dtypes.element(a.a.dtype)):
            return simplifier.expression(replace(a, kind=_INVERSE[a.kind]))
    if isinstance(a, Unary) and a.kind == current.kind:
        return a.a
    if current.kind == "neg" and isinstance(a, IntImm) and dtypes.can_hold(a.dtype, -a.value):
        return _imm(-a.value, a.dtype)
    if current.kind == "neg" and isinstance(a, FloatImm) and a.value == a.value:
        return replace(a, value=-a.value)
    return None


def _cast(simplifier: _Simplifier, current: Cast) -> PrimExpr | None:
    value = current.value
    if value.dtype == current.dtype:
        return value
    if isinstance(value, IntImm):
        if dtypes.is_integer(current.dtype) and dtypes.can_hold(current.dtype, value.value):
            return _imm(value.value, current.dtype)
        if dtypes.is_bool(current.dtype):
            return _imm(bool(value.value), "bool")
        if current.dtype in _FOLDED_FLOATS and abs(value.value) < 2**24:
            return FloatImm(float(value.value), current.dtype)
    return None


def _choice(simplifier: _Simplifier, current: Select) -> PrimExpr | None:
    return _chosen(current.condition, current.true_value, current.false_value, lazy=False)


def _call(simplifier: _Simplifier, current: PrimCall) -> PrimExpr | None:
    if current.op == "if_then_else":
        condition, true_value, false_value = (arg for arg in current.args if isinstance(arg, PrimExpr))
        return _chosen(condition, true_value, false_value, lazy=True)
    if current.op == "likely" and isinstance(current.args[0], IntImm):
        return current.args[0]
    return None


def _let(simplifier: _Simplifier, current: Let) -> PrimExpr | None:
    if isinstance(current.value, (IntImm, FloatImm, PrimVar)):
        return simplifier.run(substitute(current.body, {current.var: current.value}))
    used = any(part is current.var for part in walk(current.body))
    return current.body if not used and is_pure(current.value) else None


def _sequence(simplifier: _Simplifier, current: SeqStmt) -> Stmt | None:
    kept = tuple(stmt for stmt in current.stmts if not (isinstance(stmt, SeqStmt) and not stmt.stmts))
    if len(kept) == 1:
        return kept[0]
    return None if len(kept) == len(current.stmts) else replace(current, stmts=kept)


def _condition(simplifier: _Simplifier, current: IfThenElse) -> Stmt | None:
    if isinstance(current.condition, IntImm):
        if current.condition.value:
            return current.then_body
        return current.else_body if current.else_body is not None else SeqStmt((), span=current.span)
    if isinstance(current.else_body, SeqStmt) and not current.else_body.stmts:
        return replace(current, else_body=None)
    return None


def _loop(simplifier: _Simplifier, current: For) -> Stmt | None:
    if isinstance(current.extent, int) and current.extent <= 0:
        return SeqStmt((), span=current.span)
    if isinstance(current.body, SeqStmt) and not current.body.stmts and current.kind != "thread_binding":
        return current.body if isinstance(current.extent, int) or is_pure(current.extent) else None
    unit = current.extent == 1 if isinstance(current.extent, int) else False
    if unit and current.kind in ("serial", "unrolled", "parallel", "vectorized") and not current.annotations:
        start = current.start
        value = _imm(start, current.loop_var.dtype) if isinstance(start, int) else start
        if value.dtype == current.loop_var.dtype:
            return simplifier.run(substitute(current.body, {current.loop_var: value}))
    return None


def _block(simplifier: _Simplifier, current: Block) -> Stmt | None:
    if isinstance(current.predicate, IntImm) and current.predicate.value:
        return replace(current, predicate=None)
    return None


def _check(simplifier: _Simplifier, current: AssertStmt) -> Stmt | None:
    done = isinstance(current.condition, IntImm) and current.condition.value
    return SeqStmt((), span=current.span) if done else None


def _evaluate(simplifier: _Simplifier, current: Evaluate) -> Stmt | None:
    return SeqStmt((), span=current.span) if isinstance(current.value, (IntImm, FloatImm)) else None


def _repeat(simplifier: _Simplifier, current: While) -> Stmt | None:
    never = isinstance(current.condition, IntImm) and not current.condition.value
    return SeqStmt((), span=current.span) if never else None


_EXPRESSIONS: dict[type, Callable[[_Simplifier, Any], PrimExpr | None]] = {
    Binary: _Simplifier.binary,
    Unary: _unary,
    Cast: _cast,
    Select: _choice,
    PrimCall: _call,
    Let: _let,
}
_STATEMENTS: dict[type, Callable[[_Simplifier, Any], Stmt | None]] = {
    SeqStmt: _sequence,
    IfThenElse: _condition,
    For: _loop,
    Block: _block,
    AssertStmt: _check,
    Evaluate: _evaluate,
    While: _repeat,
}


def _is_exact(value: PrimExpr) -> bool:
    return isinstance(value, Binary) and dtypes.is_signed(value.dtype)


def is_pure(root: Node) -> bool:
    """Whether evaluating an expression has no effect but its value."""
    for part in walk(root):
        if isinstance(part, PrimCall):
            entry = INTRINSICS.get(part.op) if isinstance(part.op, str) else None
            if entry is None or not entry.pure:
                return False
    return True


def _is_float(value: PrimExpr, wanted: float) -> bool:
    return isinstance(value, FloatImm) and value.value.hex() == wanted.hex()


def _folded(current: Binary) -> PrimExpr | None:
    a, b = current.a, current.b
    if not (isinstance(a, IntImm) and isinstance(b, IntImm)):
        return None
    kind = current.kind
    if kind in COMPARISONS:
        return _imm(COMPARE[kind](a.value, b.value), "bool")
    exact = _EXACT.get(kind)
    if exact is None or (kind in _DIVISIONS and b.value == 0):
        return None
    if kind.startswith("shift") and not 0 <= b.value < dtypes.bits(a.dtype):
        return None
    value = exact(a.value, b.value)
    return _imm(value, current.dtype) if dtypes.can_hold(current.dtype, value) else None


def _folded_float(kind: str, a: FloatImm, b: FloatImm) -> PrimExpr | None:
    with np.errstate(over="ignore"):  # a value beyond those of its dtype is an infinity
        left, right = np.dtype(a.dtype).type(a.value), np.dtype(a.dtype).type(b.value)
    if kind in COMPARISONS:
        return _imm(bool(COMPARE[kind](left, right)), "bool")
    if kind not in _FLOAT:
        return None
    with np.errstate(all="ignore"):
        value = float(_FLOAT[kind](left, right))
    return FloatImm(value, a.dtype) if value == value else None


def _joined_constants(current: Binary, right: int) -> Binary | None:
    """(x + a) + b as x + (a + b), and the same for subtraction and products, when the new constant fits."""
    inner = current.a
    if not (isinstance(inner, Binary) and isinstance(inner.b, IntImm)):
        return None
    if current.kind in ("add", "sub") and inner.kind in ("add", "sub"):
        total = (inner.b.value if inner.kind == "add" else -inner.b.value) + (
            right if current.kind == "add" else -right
        )
        kind = "add" if total >= 0 else "sub"
        total = abs(total)
    elif current.kind == "mul" and inner.kind == "mul":
        kind, total = "mul", inner.b.value * right
    else:
        return None
    return (
        Binary(kind, inner.a, _imm(total, current.dtype), span=current.span)
        if dtypes.can_hold(current.dtype, total)
        else None
    )


def _chosen(condition: PrimExpr, true_value: PrimExpr, false_value: PrimExpr, lazy: bool) -> PrimExpr | None:
    if isinstance(condition, IntImm):
        taken, left = (true_value, false_value) if condition.value else (false_value, true_value)
        return taken if lazy or is_pure(left) else None
    return None


def _interval_of(kind: str, a: Interval, b: Interval) -> Interval | None:
    if kind == "add":
        return a[0] + b[0], a[1] + b[1]
    if kind == "sub":
        return a[0] - b[1], a[1] - b[0]
    if kind in ("mul", "floordiv") and (kind == "mul" or b[0] > 0):
        corners = [_EXACT[kind](x, y) for x in a for y in b]
        return min(corners), max(corners)
    if kind == "truncdiv" and b[0] > 0 and a[0] >= 0:
        return a[0] // b[1], a[1] // b[0]
    if kind == "floormod" and b[0] > 0:
        return 0, b[1] - 1 if a[0] < 0 else min(a[1], b[1] - 1)
    if kind == "truncmod" and b[0] > 0 and a[0] >= 0:
        return 0, min(a[1], b[1] - 1)
    if kind in ("min", "max"):
        pick = _EXACT[kind]
        return pick(a[0], b[0]), pick(a[1], b[1])
    return None


def _compare_intervals(kind: str, a: Interval, b: Interval) -> bool | None:
    if kind in ("gt", "ge"):
        return _compare_intervals("lt" if kind == "gt" else "le", b, a)
    if kind == "lt":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if kind == "le":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    apart = a[1] < b[0] or b[1] < a[0]
    same = a[0] == a[1] == b[0] == b[1]
    if not apart and not same:
        return None
    return apart == (kind == "ne")
