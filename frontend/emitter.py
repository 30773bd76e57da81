"""Bindings of a module that is being imported: names and places of the foreign nodes, symbols for sizes of the run.

An `Emitter` is what every importer builds with. What a step has emitted before it gives up is taken back (`attempt`);
which operators a node has become, and what they are likely to cost, is noted for the report.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping

from weft.errors import Span, WeftError
from weft.frontend.costs import call_cost
from weft.frontend.spans import calls_in, placed
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import Dim, DimExpr, symbol
from weft.ir.graph import Expr, Op, Var
from weft.ir.types import ShapeType, TensorType, Type
from weft.script import relax as R

__all__ = ["UNFIT", "Emitter", "Unsupported", "identifier", "require_sizes"]

_MOST_SIZES = 256  # of a shape that only the run can tell
_RESERVED = {"R", "T", "I", "min", "max", "ceildiv", "self"}


class Unsupported(Exception):
    """A node has no native form, and why."""


def require_sizes(count: int) -> None:
    """Unsupported where a vector has more elements than a shape has sizes."""
    if count > _MOST_SIZES:
        raise Unsupported(f"{count} elements are more than a shape has sizes")


UNFIT = (TypeError, ValueError, IndexError, KeyError, OverflowError, ZeroDivisionError, AssertionError, MemoryError)
"""What a row raises for attributes and constants that no valid node has, or that no memory holds."""


def identifier(name: str, fallback: str = "v") -> str:
    """A name of the model as a name of a program.

    >>> identifier("/encoder/layer.0/Add_output"), identifier("12"), identifier("")
    ('encoder_layer_0_Add_output', 'v12', 'v')
    """
    made = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or fallback
    made = f"{fallback}{made}" if made[0].isdigit() else made
    return f"{made}_" if keyword.iskeyword(made) or made in _RESERVED else made


class Emitter:
    """The builder of one import, the place of the node that is being imported, and what it became so far."""

    def __init__(self) -> None:
        self.builder = BlockBuilder()
        self.span: Span | None = None
        self.used: list[str] = []
        self.cost = 0.0
        self.symbols: list[str] = []  # those that it made, in order

    def parameter(self, name: str, ty: Type) -> Var:
        """A parameter of the function, under a name that nothing else has."""
        return Var(self.builder.get_unique_name(identifier(name)), ty)

    def reserve(self, params: Iterable[Var]) -> None:
        """Keep the names of the symbols of parameters from becoming names of variables."""
        for param in params:
            for name in type_symbols(param.ty) if param.ty is not None else ():
                self.builder.get_unique_name(name)

    def fresh(self, name: str) -> DimExpr:
        """A symbol that nothing else has."""
        made = symbol(self.builder.get_unique_name(identifier(name, "n")))
        assert isinstance(made, DimExpr)
        self.symbols.append(str(made))
        return made

    def type(self, expr: Expr) -> Type:
        """The type of an expression, also of one that is not bound yet."""
        if isinstance(expr, Var) and expr.ty is not None:
            return expr.ty
        return self.builder.type_of(expr)

    def emit(self, expr: Expr, name: str) -> Var:
        """Bind an expression, at the place of the node that is being imported."""
        if isinstance(expr, Var):
            return expr
        expr = placed(expr, self.span)
        var = self.builder.emit(expr, identifier(name))
        for call in calls_in(expr):
            if isinstance(call.op, Op):
                self.used.append(call.op.name)
                self.cost += call_cost(call, self.type(call) if call is not expr else var.ty)
        return var

    def attempt(self, step: Callable[[], None]) -> str | None:
        """Run a step; take back what it emitted where it gives up, and tell why."""
        used, cost = list(self.used), self.cost
        try:
            with self.builder.collect() as bindings:
                step()
        except (Unsupported, WeftError, *UNFIT) as error:
            self.used, self.cost = used, cost
            if isinstance(error, UNFIT):
                return f"its attributes or constants do not fit: {type(error).__name__}: {error}"
            return error.message if isinstance(error, WeftError) else str(error)
        for binding in bindings:
            self.builder.emit_normalized(binding)
        return None

    # Sizes that only the run can tell

    def sizes_of(self, vector: Expr, name: str) -> tuple[Dim, ...]:
        """The elements of an integer vector of the run as sizes of their own, which must not be negative."""
        ty = self.type(vector)
        count = ty.dims[0] if isinstance(ty, TensorType) and ty.dims is not None and len(ty.dims) == 1 else None
        if not isinstance(count, int):
            raise Unsupported(f"the number of elements of {name!r} is not known")
        require_sizes(count)
        dims = tuple(self.fresh(f"{identifier(name)}_{index}") for index in range(count))
        self.builder.match_cast(placed(R.tensor_to_shape(vector), self.span), ShapeType(dims), "sizes")
        self.used.append("tensor_to_shape")
        return dims

    def named_result(self, expr: Expr, name: str, known: Mapping[int, Dim] | None = None) -> Var:
        """Bind a result whose sizes only the run can tell, with a symbol for each axis whose size is not known."""
        var = self.emit(expr, name)
        ty = var.ty
        if not isinstance(ty, TensorType) or ty.dtype is None or ty.ndim < 0 or ty.dims is not None:
            return var
        base = identifier(name)
        sizes = known or {}
        dims = tuple(sizes[axis] if axis in sizes else self.fresh(f"{base}_{axis}") for axis in range(ty.ndim))
        return self.builder.match_cast(var, TensorType(dims, ty.dtype), base)
