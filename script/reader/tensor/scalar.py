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
from weft.ir.kernel.prim import as_expr, binary, const, intrinsic, lane_count, pair, unary
from weft.ir.node import replace
from weft.ir.tensor import (
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
from weft.script.forms.reading import TENSOR
from weft.script.reader.expression.dims import is_dtype, tree_of_text, use_symbol_name
from weft.script.reader.expression.names import captured_value, lookup_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.expression.python_functions import refuse_builtin
from weft.script.reader.scope import Scope, describe
from weft.script.reader.tensor.session import TensorSession
from weft.script.source.text import MISSING

__all__ = [
    "address_of_data",
    "as_bool",
    "as_extent",
    "as_index",
    "as_prim",
    "as_side",
    "builtin_of_scalars",
    "captured_scalar",
    "combine_scalar",
    "combine_scalars",
    "conditional_scalar",
    "declared_variable",
    "divided_up",
    "extent_of",
    "in_common_dtype",
    "index_const",
    "literal",
    "lookup_scalar",
    "read_extent",
    "read_extents",
    "read_prim",
    "read_prims",
    "read_scalar",
    "scalar_of_text",
    "symbol_variable",
    "use_scalar_symbol",
    "vector_indices",
]

# Operators of integers, with what does the same to floats.
_WHOLE = {"floordiv": ("//", "T.floor(a / b)"), "floormod": ("%", "T.fmod(a, b)")}


def index_const(value: int) -> IntImm:
    """The expression of a literal index."""
    made = as_expr(value)
    assert isinstance(made, IntImm)
    return made


def symbol_variable(session: TensorSession, name: str, tree: ast.AST) -> PrimVar:
    """The variable of a symbol."""
    found = session.variables.get(name)
    if found is None:
        dtype = session.symbol_dtypes.get(name) or session.unit.symbols.get(name) or "int64"
        found = session.variables[name] = PrimVar(name, dtype, span=session.span(tree))
        session.symbols.add(name)
    return found


def use_scalar_symbol(session: TensorSession, name: str, tree: ast.expr) -> None:
    """A name in a string shape: a symbol, or a scalar parameter."""
    if name in session.variables or name in session.symbols:
        return
    use_symbol_name(session, name, tree)


def captured_scalar(session: TensorSession, value: Any, name: str, tree: ast.AST) -> Any:
    """Captured values; a symbol of weft becomes the function's variable of that name."""
    made = captured_value(session, value, name, tree)
    if isinstance(made, DimExpr):
        session.defining, before = True, session.defining
        try:
            return session.level.dim_text(session, str(made), tree)  # type: ignore[arg-type]
        finally:
            session.defining = before
    return made


def declared_variable(session: TensorSession, name: str, variable: PrimVar, tree: ast.AST) -> PrimVar:
    """A symbol declared outside the script keeps its dtype."""
    session.symbol_dtypes.setdefault(name, variable.dtype)
    return session.level.symbol_value(session, name, tree)


def scalar_of_text(session: TensorSession, text: str, tree: ast.expr) -> Any:
    """A size written as a string: a scalar expression over symbols."""
    if text.isidentifier():
        session.level.use_symbol(session, text, tree)
        return session.level.symbol_value(session, text, tree)
    inner = tree_of_text(session, text, tree)
    for node in ast.walk(inner):
        if (
            isinstance(node, ast.Name)
            and node.id not in ("min", "max", "ceildiv")
            and session.unit.namespace(node.id) is None
        ):
            session.level.use_symbol(session, node.id, tree)
            session.level.symbol_value(session, node.id, tree)
    saved = session.scope
    session.scope = Scope()
    session.scope.names.update(session.variables)
    try:
        return session.value(inner)
    finally:
        session.scope = saved


def lookup_scalar(session: TensorSession, name: str, tree: ast.AST) -> Any:
    """The meaning of a name; symbols count as names."""
    found = session.scope.get(name)
    if found is MISSING and name in session.variables:
        if not (session.foreign and session.unit.capture(name) is not MISSING):
            return session.variables[name]
    return lookup_name(session, name, tree)


def read_scalar(session: TensorSession, tree: ast.expr, like: str | None = None) -> PrimExpr:
    """A scalar expression; plain numbers take the dtype `like`."""
    return as_prim(session, session.value(tree), tree, like)


def as_prim(session: TensorSession, value: Any, tree: ast.AST, like: str | None = None) -> PrimExpr:
    """A value as a scalar expression."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, BufferRegion):
        return _vector_load(session, value, tree)
    if isinstance(value, Buffer):
        if value.shape in ((1,), ()) or value.name in session.scalars:
            zeros = tuple(index_const(0) for _ in value.shape)
            return BufferLoad(value, zeros, span=session.span(tree))
        indices = "an index" if value.ndim == 1 else f"{value.ndim} indices"
        hint = "a kernel computes element by element, in loops over indices: `for i in range(n): b[i] = a[i] + 1`"
        raise session.fail("W121", f"'{value.name}' is a buffer: give {indices}", tree, hint)
    if isinstance(value, (bool, int, float, complex)):
        return session.fold(lambda: as_expr(value) if like is None else literal(value, like), tree)
    raise session.fail("W114", f"expected a scalar, got {describe(value)}", tree)


@TENSOR.hole("prim")
def read_prim(session: TensorSession, tree: ast.expr) -> PrimExpr:
    """A scalar expression as an argument."""
    return read_scalar(session, tree)


@TENSOR.hole("prims")
def read_prims(session: TensorSession, tree: ast.expr) -> tuple[PrimExpr, ...]:
    """A list of scalar expressions."""
    value = session.value(tree)
    if isinstance(value, PrimExpr):
        return (value,)
    if not isinstance(value, (tuple, list)):
        raise session.fail("W114", f"expected a list, got {describe(value)}", tree)
    return tuple(as_prim(session, item, tree) for item in value)


@TENSOR.hole("extent")
def read_extent(session: TensorSession, tree: ast.expr) -> Extent:
    """A size: a plain number or an expression (typed constants say the dtype of a loop variable)."""
    return as_extent(session, session.value(tree), tree)


def as_extent(session: TensorSession, value: Any, tree: ast.expr) -> Extent:
    """A value as a size."""
    if isinstance(value, str):
        value = session.level.dim_text(session, value, tree)
    if isinstance(value, DimExpr):
        value = session.level.captured(session, value, str(value), tree)
    if isinstance(value, PrimExpr) and not isinstance(value, FloatImm) and dtypes.is_float(value.dtype):
        raise session.fail("W123", f"a size must be an integer, got {value.dtype}", tree)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float):
        raise session.fail("W123", f"a size must be an integer, got {value!r}", tree)
    return as_prim(session, value, tree)


@TENSOR.hole("extents")
def read_extents(session: TensorSession, tree: ast.expr) -> tuple[Extent, ...]:
    """A shape: a tuple of sizes, or one size."""
    value = session.value(tree)
    if isinstance(value, str) and is_dtype(session, tree):
        raise session.fail("W114", f"expected a shape, got the dtype {value!r}", tree, 'T.Buffer((4,), "float32")')
    if isinstance(value, (tuple, list)):
        if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(value):
            return tuple(as_extent(session, item, place) for item, place in zip(value, tree.elts, strict=True))
        return tuple(as_extent(session, item, tree) for item in value)
    return (as_extent(session, value, tree),)


def combine_scalars(session: TensorSession, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
    """A scalar operation."""
    if kind == "pow":
        return session.fold(
            lambda: intrinsic(
                "pow", as_side(session, left, tree), as_side(session, right, tree), span=session.span(tree)
            ),
            tree,
        )
    if kind == "matmul":
        raise session.fail("W115", "`@` is not a scalar operation", tree, "write the loops of the product")
    a, b = as_side(session, left, tree), as_side(session, right, tree)
    if kind in ("and", "or"):
        a, b = as_bool(session, a, tree), as_bool(session, b, tree)
    if kind in _WHOLE and isinstance(tree, (ast.BinOp, ast.AugAssign)):
        _check_whole(session, kind, (a, b), tree)
    return session.fold(lambda: binary(kind, a, b, session.span(tree)), tree)


def _check_whole(session: TensorSession, kind: str, sides: Sequence[Any], tree: ast.AST) -> None:
    """W312: `//` and `%` are operators of integers; of floats they say nothing of rounding."""
    kinds = [side.dtype for side in sides if isinstance(side, PrimExpr)]
    floats = [dtype for dtype in kinds if dtypes.is_float(dtypes.element(dtype))]
    if floats:
        sign, other = _WHOLE[kind]
        raise session.fail("W312", f"{sign} of {floats[0]} values", tree, f"use {other}, or T.{kind}(a, b)")


def as_side(session: TensorSession, value: Any, tree: ast.AST) -> Any:
    """An operand: a plain number as it is, anything else as a scalar."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    return as_prim(session, value, tree)


def combine_scalar(session: TensorSession, kind: str, operand: Any, tree: ast.AST) -> Any:
    """A scalar operation on one operand."""
    value = as_prim(session, operand, tree)
    return session.fold(lambda: unary(kind, value, session.span(tree)), tree)


def as_bool(session: TensorSession, value: Any, tree: ast.AST, *, truthy: bool = False) -> Any:
    """A condition; where Python asks for truth (`truthy`), an integer is true unless it is 0."""
    if isinstance(value, (int, float)):
        return bool(value)
    if truthy and dtypes.lanes(value.dtype) != 1:
        hint = "T.Select chooses for each lane"
        raise session.fail("W123", f"a condition is one truth value, not {value.dtype}", tree, hint)
    if truthy and dtypes.is_integer(value.dtype):
        return session.fold(lambda: binary("ne", value, const(0, value.dtype), session.span(tree)), tree)
    if not dtypes.is_bool(dtypes.element(value.dtype)):
        raise session.fail("W123", f"expected a condition (bool), got {value.dtype}", tree, "compare it: `x != 0`")
    return value


def _choice(session: TensorSession, condition: Any, tree: ast.IfExp) -> PrimExpr:
    """`a if c else b`: only the chosen value is evaluated."""
    test = as_bool(session, as_prim(session, condition, tree.test), tree.test)
    a, b = in_common_dtype(session, session.value(tree.body), session.value(tree.orelse), tree)
    return PrimCall("if_then_else", (test, a, b), a.dtype, span=session.span(tree))


def in_common_dtype(session: TensorSession, left: Any, right: Any, tree: ast.AST) -> tuple[PrimExpr, PrimExpr]:
    """Two values in their common dtype."""
    a, b = as_side(session, left, tree), as_side(session, right, tree)
    if _says_nothing(a) and isinstance(b, PrimExpr):
        a = replace(a, dtype=b.dtype)
    elif _says_nothing(b) and isinstance(a, PrimExpr):
        b = replace(b, dtype=a.dtype)
    return session.fold(lambda: pair(a, b, "a choice"), tree)


def builtin_of_scalars(session: TensorSession, name: str, values: list[Any], tree: ast.Call) -> Any:
    """`min(i, j)`, `abs(x)`, `float(i)` and the like on scalars."""
    if name in ("min", "max") and len(values) > 1:
        result = as_side(session, values[0], tree)
        for value in values[1:]:
            result = session.level.combine(session, name, result, value, tree)
        return result
    if name == "abs" and len(values) == 1:
        return session.fold(lambda: intrinsic("abs", as_prim(session, values[0], tree), span=session.span(tree)), tree)
    if name == "ceildiv" and len(values) == 2:
        return divided_up(session, values[0], values[1], tree)
    return refuse_builtin(session, name, values, tree)


def divided_up(session: TensorSession, a: Any, b: Any, tree: ast.AST) -> PrimExpr:
    """a / b rounded up."""
    above = apply_binary(session, "sub", apply_binary(session, "add", a, b, tree), 1, tree)
    return apply_binary(session, "floordiv", above, b, tree)


def address_of_data(session: TensorSession, buffer: Buffer, tree: ast.AST) -> PrimExpr:
    """The address of a buffer's first element."""
    zeros = tuple(index_const(0) for _ in buffer.shape)
    return PrimCall("address_of", (BufferLoad(buffer, zeros),), "handle", span=session.span(tree))


def as_index(session: TensorSession, value: Any, tree: ast.AST) -> PrimExpr:
    """An index: an integer."""
    made = as_prim(session, value, tree)
    if isinstance(made, StringImm) or dtypes.is_float(made.dtype):
        raise session.fail("W123", f"an index must be an integer, got {getattr(made, 'dtype', 'a string')}", tree)
    return made


def _vector_load(session: TensorSession, region: BufferRegion, tree: ast.AST) -> PrimExpr:
    return BufferLoad(region.buffer, vector_indices(session, region, tree), span=session.span(tree))


def vector_indices(session: TensorSession, region: BufferRegion, tree: ast.AST) -> tuple[PrimExpr, ...]:
    """Indices of a slice used as a value: the last dimension becomes a vector."""
    made: list[PrimExpr] = []
    for position, item in enumerate(region.region):
        start = as_expr(item.start)
        extent = item.extent.value if isinstance(item.extent, IntImm) else item.extent
        if isinstance(extent, int) and extent < 1:
            raise session.fail("W124", f"a slice of {extent} elements has no value", tree)
        if isinstance(extent, PrimExpr):
            extent = lane_count(extent)
        if not isinstance(extent, int):
            raise session.fail("W123", "a slice used as a value has a constant length", tree)
        if extent != 1 and position != len(region.region) - 1:
            raise session.fail("W123", "only the last dimension can be a slice", tree)
        made.append(start if extent == 1 else Ramp(start, const(1, start.dtype), extent))
    return tuple(made)


def conditional_scalar(session: TensorSession, condition: Any, tree: ast.IfExp) -> PrimExpr:
    """`a if c else b`: what only one side computes cannot stand before the statement."""
    before, session.pending = session.pending, None
    try:
        return _choice(session, condition, tree)
    finally:
        session.pending = before


def _says_nothing(value: Any) -> bool:
    """Whether a value is a call that does not say what it gives."""
    return isinstance(value, PrimCall) and value.dtype == "void"


def literal(value: bool | int | float | complex, dtype: str) -> PrimExpr:
    """A plain number in a dtype that its place asks for, where it has a value of that dtype; else in its own."""
    scalar = dtypes.element(dtype)
    if isinstance(value, float) and not (dtypes.is_float(scalar) or dtypes.is_complex(scalar)):
        return as_expr(value)
    if dtypes.is_bool(scalar) and not isinstance(value, bool):
        return as_expr(value)
    return const(value, dtype)


def extent_of(value: Any) -> Extent:
    """A value as a size: the usual integer constants are plain."""
    return value.value if isinstance(value, IntImm) and value.dtype == "int32" else value
