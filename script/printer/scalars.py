"""Showing tensor-level expressions, with the parentheses and typed constants that reading them back needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import dtypes
from weft.errors import ScriptError
from weft.ir.graph import (
    Expr,
    GlobalVar,
    StringImm,
)
from weft.ir.kernel.intrinsics import INTRINSICS, result_dtype
from weft.ir.kernel.prim import never_defined
from weft.ir.tensor import (
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    Cast,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Range,
    Select,
    Unary,
)
from weft.script.forms.constants import float_text
from weft.script.forms.defaults import DTYPE_FIRST, RESULT_DTYPES
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import (
    ATOM,
    BINARY,
    BINARY_CALLS,
    BY_CLASS,
    SCALARS,
    UNARY,
)
from weft.script.printer.base import BasePrinter, Piece, raised, separated

__all__ = ["ScalarPrinter"]


class ScalarPrinter(BasePrinter):
    """Prints scalar expressions and regions."""

    def operand(self, value: PrimExpr) -> list[Piece]:
        """An expression where a bare number would take another dtype: only the usual integers are bare."""
        return [(value, 0)]

    def immediate(self, value: IntImm | FloatImm) -> str:
        """A typed constant."""
        if isinstance(value, IntImm):
            number = str(bool(value.value)) if value.dtype == "bool" else str(value.value)
            return f"T.{value.dtype}({number})"
        text = float_text(value.value)
        text = {'float("inf")': '"inf"', 'float("-inf")': '"-inf"', 'float("nan")': '"nan"'}.get(text, text)
        return f"T.{value.dtype}({text})"

    def prim_pieces(self, expr: PrimExpr) -> tuple[list[Piece], int]:
        """The pieces of an expression and its precedence."""
        method = self._PRIMS.get(type(expr))
        if method is not None:
            return method(self, expr)
        form = BY_CLASS.get(type(expr))
        if form is not None and form.name in SCALARS:
            return self.fill(form, self.node_values(form, expr)), ATOM
        raise ScriptError(f"a {type(expr).__name__} has no text form", code="W114")

    def _int(self, expr: IntImm) -> tuple[list[Piece], int]:
        if expr.dtype == "bool" and expr.value in (0, 1):
            return [str(bool(expr.value))], ATOM
        if expr.dtype == "int32" and -(2**31) <= expr.value < 2**31:
            return [str(expr.value)], ATOM if expr.value >= 0 else UNARY["neg"].precedence
        return [self.immediate(expr)], ATOM

    def _binary(self, expr: Binary) -> tuple[list[Piece], int]:
        row = BINARY.get(expr.kind)
        # `/` is an operator of floats, `//` and `%` are operators of integers: the rest are calls.
        of_floats = dtypes.is_float(dtypes.element(expr.a.dtype))
        called = expr.kind in (("floordiv", "floormod") if of_floats else ("div",))
        left, right = self._sides(expr)
        if row is None or called or never_defined(expr.kind, expr.a, expr.b):
            return [f"{BINARY_CALLS[expr.kind]}(", *left, ", ", *right, ")"], ATOM
        low = row.precedence + (0 if row.associative else 1)
        return [*raised(left, low), f" {row.text} ", *raised(right, row.precedence + 1)], row.precedence

    def _sides(self, expr: Binary) -> tuple[list[Piece], list[Piece]]:
        """Both operands: an integer constant is bare where the other side gives it its dtype."""
        a, b = expr.a, expr.b
        immediate_a, immediate_b = isinstance(a, (IntImm, FloatImm)), isinstance(b, (IntImm, FloatImm))
        if immediate_a and immediate_b:
            return [self.immediate(a)], [self.immediate(b)]  # type: ignore[arg-type]
        if immediate_a and expr.kind in ("and", "or"):  # a bare one on the left decides before the rest is read
            return [self.immediate(a)], [(b, 0)]  # type: ignore[arg-type]
        left = self._side(a, b) if immediate_a else [(a, 0)]
        right = self._side(b, a) if immediate_b else [(b, 0)]
        return left, right

    def _side(self, value: Any, other: PrimExpr) -> list[Piece]:
        if isinstance(value, IntImm) and value.dtype == other.dtype and dtypes.is_integer(value.dtype):
            if dtypes.can_hold(value.dtype, value.value):
                return [str(value.value)] if value.value >= 0 else [f"({value.value})"]
        if isinstance(value, IntImm) and value.dtype == "bool" == other.dtype and value.value in (0, 1):
            return [str(bool(value.value))]
        return [self.immediate(value)]

    def _unary(self, expr: Unary) -> tuple[list[Piece], int]:
        row = UNARY[expr.kind]
        if isinstance(expr.a, (IntImm, FloatImm)):
            return [row.text, self.immediate(expr.a)], row.precedence
        return [row.text, (expr.a, row.precedence)], row.precedence

    def _select(self, expr: Select) -> tuple[list[Piece], int]:
        return self.fill(SCALARS["T.Select"], self.node_values(SCALARS["T.Select"], expr)), ATOM

    def _load(self, expr: BufferLoad) -> tuple[list[Piece], int]:
        if expr.predicate is not None:
            position = self._position(expr.indices)
            return [f"{self.name(expr.buffer)}.vload(", *position, ", predicate=", (expr.predicate, 0), ")"], ATOM
        return self._element(expr.buffer, expr.indices), ATOM

    def _position(self, indices: Sequence[PrimExpr]) -> list[Piece]:
        return ["[", *separated([(index, 0)] for index in indices), "]"]

    def _element(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> list[Piece]:
        if not indices:
            return [f"{self.name(buffer)}[()]"]
        return [f"{self.name(buffer)}[", *separated([(index, 0)] for index in indices), "]"]

    def _let(self, expr: Let) -> tuple[list[Piece], int]:
        name = self.name(expr.var)
        return ["T.Let(", (expr.body, 0), f", where={{{name}: ", (expr.value, 0), "})"], ATOM

    def _cast(self, expr: Cast) -> tuple[list[Piece], int]:
        if isinstance(expr.value, (IntImm, FloatImm)):
            return [f'T.Cast("{expr.dtype}", {self.immediate(expr.value)})'], ATOM
        return [f'T.Cast("{expr.dtype}", ', (expr.value, 0), ")"], ATOM

    def _broadcast(self, expr: Broadcast) -> tuple[list[Piece], int]:
        return ["T.Broadcast(", *self.operand(expr.value), f", {self.show_lanes(expr.lanes)})"], ATOM

    def show_lanes(self, lanes: int) -> str:
        """A number of lanes: a constant, or a multiple of `T.vscale()`."""
        return f"T.vscale() * {int(lanes)}" if isinstance(lanes, dtypes.Scalable) else str(lanes)

    def _prim_call(self, expr: PrimCall) -> tuple[list[Piece], int]:
        args = separated([self._call_argument(argument)] for argument in expr.args)
        if isinstance(expr.op, GlobalVar):
            dtype = [] if expr.dtype == "void" else [f'{", " if expr.args else ""}dtype="{expr.dtype}"']
            return [f"{self.global_name(expr.op)}(", *args, *dtype, ")"], ATOM
        name = str(expr.op)
        entry = INTRINSICS.get(name)
        if name == "if_then_else" and len(expr.args) == 3 and not expr.attrs:
            return ["T.if_then_else(", *args, ")"], ATOM
        if name == "comm_reducer" and expr.args and isinstance(expr.args[0], StringImm) and not expr.attrs:
            rest = separated([self._call_argument(argument)] for argument in expr.args[1:])
            return [f"T.comm_reducer({expr.args[0].value}, [", *rest, "])"], ATOM
        if entry is None or (entry.rule != "given" and not self._is_regular(entry, expr)):
            return self._call_intrin(name, expr)
        if entry.rule != "given":
            return [f"T.{name}(", *args, ")"], ATOM
        if name in DTYPE_FIRST:
            first = f'T.{name}("{expr.dtype}"'
            tail = [", ", *args] if expr.args else []
        else:
            first, tail = f"T.{name}(", list(args)
            if expr.dtype != RESULT_DTYPES.get(name, "void"):
                tail.append(f'{", " if expr.args else ""}dtype="{expr.dtype}"')
        if expr.attrs:
            tail.append(f"{', ' if expr.args or name in DTYPE_FIRST else ''}attrs={self.show_literal(expr.attrs)}")
        return [first, *tail, ")"], ATOM

    @staticmethod
    def _is_regular(entry: Any, expr: PrimCall) -> bool:
        """Whether reading the plain call gives the same node."""
        if expr.attrs or not all(isinstance(argument, PrimExpr) for argument in expr.args):
            return False
        operands = [argument.dtype for argument in expr.args]  # type: ignore[union-attr]
        if entry.promotes and len(set(operands)) > 1:
            return False
        try:
            return result_dtype(entry, operands) == expr.dtype
        except Exception:  # a call that the table would refuse keeps its plain form
            return False

    def _call_intrin(self, name: str, expr: PrimCall) -> tuple[list[Piece], int]:
        values = {"dtype": expr.dtype, "op": name, "args": expr.args, "attrs": dict(expr.attrs)}
        return self.fill(SCALARS["T.call_intrin"], values), ATOM

    def _call_argument(self, value: Expr) -> Piece:
        if isinstance(value, StringImm):
            return string_text(value.value)
        if isinstance(value, PrimExpr):
            return (value, 0)
        return self.leaf(value)

    def region(self, region: BufferRegion) -> list[Piece]:
        """A box: single elements and `start:stop` slices."""
        if not region.region:
            return [f"{self.name(region.buffer)}[()]"]
        return [f"{self.name(region.buffer)}[", *separated(self._range(item) for item in region.region), "]"]

    def _range(self, item: Range) -> list[Piece]:
        start, extent = item.start, item.extent
        if isinstance(extent, int) and extent == 1:
            return self.show_extent(start)
        if isinstance(start, int):
            if isinstance(extent, int):
                return [f"{start}:{start + extent}"]
            if start == 0:
                return ["0:", (extent, 0)]
            return [f"{start}:{start} + ", (extent, BINARY["add"].precedence + 1)]
        stop: list[Piece] = [str(extent)] if isinstance(extent, int) else [(extent, BINARY["add"].precedence + 1)]
        return [(start, 0), ":", (start, BINARY["add"].precedence), " + ", *stop]

    _PRIMS: ClassVar[dict[type, Callable[[Any, Any], tuple[list[Piece], int]]]] = {
        PrimVar: lambda self, expr: ([self.name(expr)], ATOM), IntImm: _int,
        FloatImm: lambda self, expr: ([self.immediate(expr)], ATOM), Binary: _binary, Unary: _unary, BufferLoad: _load,
        Let: _let, Cast: _cast, Broadcast: _broadcast, PrimCall: _prim_call, Select: _select,
        StringImm: lambda self, expr: ([string_text(expr.value)], ATOM),
    }  # fmt: skip
