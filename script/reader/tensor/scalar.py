"""Reading tensor-level expressions: scalars, their operators, the names they may use.

A plain number takes its dtype from its place (`as_prim`); operands are promoted as `weft.ir.kernel.prim` does, and
nothing is folded except arithmetic on plain numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.ir.dim import DimExpr
from weft.ir.graph import StringImm
from weft.ir.kernel.prim import as_expr, binary, const, intrinsic, lane_count, unary
from weft.ir.node import replace
from weft.ir.tensor import (
    Binary,
    Buffer,
    BufferLoad,
    BufferRegion,
    Extent,
    FloatImm,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
)
from weft.script.reader.base import ModuleScope, Reader, Scope, describe
from weft.script.source.text import MISSING, Unit

__all__ = ["ScalarReader", "extent_of", "index_const", "literal"]


# Operators of integers, with what does the same to floats.
_WHOLE = {"floordiv": ("//", "T.floor(a / b)"), "floormod": ("%", "T.fmod(a, b)")}


def index_const(value: int) -> IntImm:
    """The expression of a literal index."""
    made = as_expr(value)
    assert isinstance(made, IntImm)
    return made


class ScalarReader(Reader):
    """Reads scalar expressions of a tensor-level function."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.variables: dict[str, PrimVar] = {}  # the symbols of the function
        self.symbol_dtypes: dict[str, str] = {}

    def symbol_value(self, name: str, tree: ast.AST) -> PrimVar:
        """The variable of a symbol."""
        found = self.variables.get(name)
        if found is None:
            dtype = self.symbol_dtypes.get(name) or self.unit.symbols.get(name) or "int64"
            found = self.variables[name] = PrimVar(name, dtype, span=self.span(tree))
            self.symbols.add(name)
        return found

    def use_symbol(self, name: str, tree: ast.expr) -> None:
        """A name in a string shape: a symbol, or a scalar parameter."""
        if name in self.variables or name in self.symbols:
            return
        super().use_symbol(name, tree)

    def captured(self, value: Any, name: str, tree: ast.AST) -> Any:
        """Captured values; a symbol of weft becomes the function's variable of that name."""
        made = super().captured(value, name, tree)
        if isinstance(made, DimExpr):
            self.defining, before = True, self.defining
            try:
                return self.dim_text(str(made), tree)  # type: ignore[arg-type]
            finally:
                self.defining = before
        return made

    def declared_outside(self, name: str, variable: PrimVar, tree: ast.AST) -> PrimVar:
        """A symbol declared outside the script keeps its dtype."""
        self.symbol_dtypes.setdefault(name, variable.dtype)
        return self.symbol_value(name, tree)

    def dim_text(self, text: str, tree: ast.expr) -> Any:
        """A size written as a string: a scalar expression over symbols."""
        if text.isidentifier():
            self.use_symbol(text, tree)
            return self.symbol_value(text, tree)
        inner = self.text_tree(text, tree)
        for node in ast.walk(inner):
            if (
                isinstance(node, ast.Name)
                and node.id not in ("min", "max", "ceildiv")
                and self.unit.namespace(node.id) is None
            ):
                self.use_symbol(node.id, tree)
                self.symbol_value(node.id, tree)
        saved = self.scope
        self.scope = Scope()
        self.scope.names.update(self.variables)
        try:
            return self.value(inner)
        finally:
            self.scope = saved

    def lookup(self, name: str, tree: ast.AST) -> Any:
        """The meaning of a name; symbols count as names."""
        found = self.scope.get(name)
        if found is MISSING and name in self.variables:
            if not (self.foreign and self.unit.capture(name) is not MISSING):
                return self.variables[name]
        return super().lookup(name, tree)

    def prim(self, tree: ast.expr, like: str | None = None) -> PrimExpr:
        """A scalar expression; plain numbers take the dtype `like`."""
        return self.as_prim(self.value(tree), tree, like)

    def as_prim(self, value: Any, tree: ast.AST, like: str | None = None) -> PrimExpr:
        """A value as a scalar expression."""
        if isinstance(value, PrimExpr):
            return value
        if isinstance(value, BufferRegion):
            return self._vector_load(value, tree)
        if isinstance(value, Buffer):
            if value.shape in ((1,), ()) or value.name in self.scalars:
                zeros = tuple(index_const(0) for _ in value.shape)
                return BufferLoad(value, zeros, span=self.span(tree))
            raise self.fail("W121", f"'{value.name}' is a buffer: give {value.ndim} indices", tree)
        if isinstance(value, (bool, int, float)):
            return self.fold(lambda: as_expr(value) if like is None else literal(value, like), tree)
        raise self.fail("W114", f"expected a scalar, got {describe(value)}", tree)

    scalars: frozenset[str] = frozenset()

    def read_prim(self, tree: ast.expr) -> PrimExpr:
        """A scalar expression as an argument."""
        return self.prim(tree)

    def read_prims(self, tree: ast.expr) -> tuple[PrimExpr, ...]:
        """A list of scalar expressions."""
        value = self.value(tree)
        if isinstance(value, PrimExpr):
            return (value,)
        if not isinstance(value, (tuple, list)):
            raise self.fail("W114", f"expected a list, got {describe(value)}", tree)
        return tuple(self.as_prim(item, tree) for item in value)

    def read_extent(self, tree: ast.expr) -> Extent:
        """A size: a plain number or an expression (typed constants say the dtype of a loop variable)."""
        return self.as_extent(self.value(tree), tree)

    def as_extent(self, value: Any, tree: ast.expr) -> Extent:
        """A value as a size."""
        if isinstance(value, str):
            value = self.dim_text(value, tree)
        if isinstance(value, DimExpr):
            value = self.captured(value, str(value), tree)
        if isinstance(value, PrimExpr) and not isinstance(value, FloatImm) and dtypes.is_float(value.dtype):
            raise self.fail("W123", f"a size must be an integer, got {value.dtype}", tree)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float):
            raise self.fail("W123", f"a size must be an integer, got {value!r}", tree)
        return self.as_prim(value, tree)

    def read_extents(self, tree: ast.expr) -> tuple[Extent, ...]:
        """A shape: a tuple of sizes, or one size."""
        value = self.value(tree)
        if isinstance(value, str) and self._is_dtype(tree):
            raise self.fail("W114", f"expected a shape, got the dtype {value!r}", tree, 'T.Buffer((4,), "float32")')
        if isinstance(value, (tuple, list)):
            if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(value):
                return tuple(self.as_extent(item, place) for item, place in zip(value, tree.elts, strict=True))
            return tuple(self.as_extent(item, tree) for item in value)
        return (self.as_extent(value, tree),)

    def combine(self, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
        """A scalar operation."""
        if kind == "pow":
            return self.fold(
                lambda: intrinsic("pow", self._side(left, tree), self._side(right, tree), span=self.span(tree)), tree
            )
        if kind == "matmul":
            raise self.fail("W115", "`@` is not a scalar operation", tree, "write the loops of the product")
        a, b = self._side(left, tree), self._side(right, tree)
        if kind in ("and", "or"):
            a, b = self._as_bool(a, tree), self._as_bool(b, tree)
        if kind in _WHOLE and isinstance(tree, (ast.BinOp, ast.AugAssign)):
            self._check_whole(kind, (a, b), tree)
        return self.fold(lambda: binary(kind, a, b, self.span(tree)), tree)

    def _check_whole(self, kind: str, sides: Sequence[Any], tree: ast.AST) -> None:
        """W312: `//` and `%` are operators of integers; of floats they say nothing of rounding."""
        kinds = [side.dtype for side in sides if isinstance(side, PrimExpr)]
        floats = [dtype for dtype in kinds if dtypes.is_float(dtypes.element(dtype))]
        if floats:
            sign, other = _WHOLE[kind]
            raise self.fail("W312", f"{sign} of {floats[0]} values", tree, f"use {other}, or T.{kind}(a, b)")

    def _side(self, value: Any, tree: ast.AST) -> Any:
        if isinstance(value, (bool, int, float)):
            return value
        return self.as_prim(value, tree)

    def _as_bool(self, value: Any, tree: ast.AST, *, truthy: bool = False) -> Any:
        """A condition; where Python asks for truth (`truthy`), an integer is true unless it is 0."""
        if isinstance(value, (int, float)):
            return bool(value)
        if truthy and dtypes.lanes(value.dtype) != 1:
            hint = "T.Select chooses for each lane"
            raise self.fail("W123", f"a condition is one truth value, not {value.dtype}", tree, hint)
        if truthy and dtypes.is_integer(value.dtype):
            return self.fold(lambda: binary("ne", value, const(0, value.dtype), self.span(tree)), tree)
        if not dtypes.is_bool(dtypes.element(value.dtype)):
            raise self.fail("W123", f"expected a condition (bool), got {value.dtype}", tree, "compare it: `x != 0`")
        return value

    def combine_unary(self, kind: str, operand: Any, tree: ast.AST) -> Any:
        """A scalar operation on one operand."""
        value = self.as_prim(operand, tree)
        return self.fold(lambda: unary(kind, value, self.span(tree)), tree)

    def conditional(self, condition: Any, tree: ast.IfExp) -> PrimExpr:
        """`a if c else b`: only the chosen value is evaluated."""
        test = self._as_bool(self.as_prim(condition, tree.test), tree.test)
        a, b = self._common(self.value(tree.body), self.value(tree.orelse), tree)
        return PrimCall("if_then_else", (test, a, b), a.dtype, span=self.span(tree))

    def _common(self, left: Any, right: Any, tree: ast.AST) -> tuple[PrimExpr, PrimExpr]:
        """Two values in their common dtype."""
        a, b = self._side(left, tree), self._side(right, tree)
        if _says_nothing(a) and isinstance(b, PrimExpr):
            a = replace(a, dtype=b.dtype)
        elif _says_nothing(b) and isinstance(a, PrimExpr):
            b = replace(b, dtype=a.dtype)
        made = self.fold(lambda: binary("max", a, b), tree)
        assert isinstance(made, Binary)
        return made.a, made.b

    def builtin_of(self, name: str, values: list[Any], tree: ast.Call) -> Any:
        """`min(i, j)`, `abs(x)`, `float(i)` and the like on scalars."""
        if name in ("min", "max") and len(values) > 1:
            result = self._side(values[0], tree)
            for value in values[1:]:
                result = self.combine(name, result, value, tree)
            return result
        if name == "abs" and len(values) == 1:
            return self.fold(lambda: intrinsic("abs", self.as_prim(values[0], tree), span=self.span(tree)), tree)
        if name == "ceildiv" and len(values) == 2:
            return self._ceildiv(values[0], values[1], tree)
        return super().builtin_of(name, values, tree)

    def _ceildiv(self, a: Any, b: Any, tree: ast.AST) -> PrimExpr:
        above = self.binary("sub", self.binary("add", a, b, tree), 1, tree)
        return self.binary("floordiv", above, b, tree)

    def _data_of(self, buffer: Buffer, tree: ast.AST) -> PrimExpr:
        """The address of a buffer's first element."""
        zeros = tuple(index_const(0) for _ in buffer.shape)
        return PrimCall("address_of", (BufferLoad(buffer, zeros),), "handle", span=self.span(tree))

    def _index(self, value: Any, tree: ast.AST) -> PrimExpr:
        made = self.as_prim(value, tree)
        if isinstance(made, StringImm) or dtypes.is_float(made.dtype):
            raise self.fail("W123", f"an index must be an integer, got {getattr(made, 'dtype', 'a string')}", tree)
        return made

    def _vector_load(self, region: BufferRegion, tree: ast.AST) -> PrimExpr:
        return BufferLoad(region.buffer, self._vector_indices(region, tree), span=self.span(tree))

    def _vector_indices(self, region: BufferRegion, tree: ast.AST) -> tuple[PrimExpr, ...]:
        """Indices of a slice used as a value: the last dimension becomes a vector."""
        made: list[PrimExpr] = []
        for position, item in enumerate(region.region):
            start = as_expr(item.start)
            extent = item.extent.value if isinstance(item.extent, IntImm) else item.extent
            if isinstance(extent, int) and extent < 1:
                raise self.fail("W124", f"a slice of {extent} elements has no value", tree)
            if isinstance(extent, PrimExpr):
                extent = lane_count(extent)
            if not isinstance(extent, int):
                raise self.fail("W123", "a slice used as a value has a constant length", tree)
            if extent != 1 and position != len(region.region) - 1:
                raise self.fail("W123", "only the last dimension can be a slice", tree)
            made.append(start if extent == 1 else Ramp(start, const(1, start.dtype), extent))
        return tuple(made)


def _says_nothing(value: Any) -> bool:
    """Whether a value is a call that does not say what it gives."""
    return isinstance(value, PrimCall) and value.dtype == "void"


def literal(value: bool | int | float, dtype: str) -> PrimExpr:
    """A plain number in a dtype that its place asks for, where it has a value of that dtype; else in its own."""
    scalar = dtypes.element(dtype)
    if isinstance(value, float) and not dtypes.is_float(scalar):
        return as_expr(value)
    if dtypes.is_bool(scalar) and not isinstance(value, bool):
        return as_expr(value)
    return const(value, dtype)


def extent_of(value: Any) -> Extent:
    """A value as a size: the usual integer constants are plain."""
    return value.value if isinstance(value, IntImm) and value.dtype == "int32" else value
