"""The parts that patterns are made of: data compared by identity, and how each looks at an expression.

The grammar is that of the package. `_solutions` of a part yields once for each way in which an expression is of its
form; `matching` keeps what was found. Edges between patterns are noted by the `PatternContext` that is open.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol, TypeVar, dataclass_transform

from weft.dtypes import check_dtype
from weft.errors import PassError, described
from weft.ir import (
    Call,
    Constant,
    DataflowVar,
    Expr,
    ExternFunc,
    FrozenMap,
    GlobalVar,
    Op,
    PrimType,
    ShapeExpr,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    Var,
)
from weft.ir.deduction.infer import is_base_of
from weft.ir.dim import Dim, DimExpr, parse_dim, prove_equal
from weft.ir.node import freeze
from weft.ir.op import OPS, get_op
from weft.ir.op.declare import FIXED, ParamKind
from weft.support.records import dataclass
from weft.transform.analysis.value_numbering import data_key, expr_key
from weft.transform.infra.registry import nearest
from weft.transform.pattern.matching import Match, extract

__all__ = [
    "RECORDER",
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DTypePattern",
    "DataflowVarPattern",
    "Edge",
    "ExprPattern",
    "ExternFuncPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PatternSeq",
    "SameShapePattern",
    "ShapeExprPattern",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "UnorderedTuplePattern",
    "VarPattern",
    "WildcardPattern",
    "checked_pattern",
    "checked_sizes",
]

P = TypeVar("P")
COMMUTATIVE = ("add", "multiply")
"""Operators whose two operands may stand in either order."""


class Recorder(Protocol):
    """What patterns tell the context that is open."""

    def made(self, pattern: DFPattern, parts: Sequence[DFPattern]) -> None:
        """A pattern is written, out of parts."""

    def joined(self, edge: Edge) -> None:
        """An edge is written."""


RECORDER: ContextVar[Recorder | None] = ContextVar("pattern_context", default=None)
"""The innermost `PatternContext` that is open."""


class DFPattern:
    """The base of patterns; two of them are the same only when they are one object."""

    def __post_init__(self) -> None:
        recorder = RECORDER.get()
        if recorder is not None:
            recorder.made(self, self._parts())

    def _parts(self) -> tuple[DFPattern, ...]:
        """The patterns that this one is made of."""
        return ()

    # How it looks at an expression -----------------------------------------------------------------------------------

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        """Each way in which the expression is of this form."""
        raise NotImplementedError(type(self).__name__)

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        """What a match says of the part: the operand as it stands, or the value behind it."""
        return match.behind(expr)

    def _agrees(self, match: Match) -> bool:
        """Whether what the part says of other parts is so; asked when all are found."""
        return True

    def match(self, expr: Expr, var2val: Mapping[Var, Expr] | None = None) -> bool:
        """Whether an expression is of this form, looking through the variables of `var2val`.

        Raises PassError W551 for what is no expression.
        """
        return extract(self, expr, var2val or {}) is not None

    def extract_matched_expr(
        self, expr: Expr, var2val: Mapping[Var, Expr] | None = None
    ) -> dict[DFPattern, Expr] | None:
        """What each part stands for, None when the expression is not of this form.

        Calls, tuples and their like stand for the values themselves, wildcards for the operands. Raises PassError W551.
        """
        return extract(self, expr, var2val or {})

    # What is made of it ----------------------------------------------------------------------------------------------

    def __call__(self, *args: DFPattern, varg_default_wildcard: bool = False) -> CallPattern:
        """A call of what this one stands for; with `varg_default_wildcard` the call may have more arguments."""
        checked = tuple(checked_pattern(arg, "an argument of a call") for arg in args)
        if isinstance(self, ExprPattern) and isinstance(self.expr, Op):
            params = get_op(self.expr.name).params
            if len(checked) > len(params) and not any(param.kind == ParamKind.VARIADIC for param in params):
                message = f"R.{self.expr.name} has {len(params)} parameters, the pattern gives {len(checked)}"
                raise PassError(message, code="W550")
        return CallPattern(self, checked, varg_default_wildcard)

    def __or__(self, other: DFPattern) -> OrPattern:
        """This one, or else the other."""
        return OrPattern(self, checked_pattern(other, "the right side of |"))

    def __and__(self, other: DFPattern) -> AndPattern:
        """Both at once."""
        return AndPattern(self, checked_pattern(other, "the right side of &"))

    def __invert__(self) -> NotPattern:
        """Anything else."""
        return NotPattern(self)

    def __getitem__(self, index: int) -> TupleGetItemPattern:
        """A field of the tuple that this one stands for."""
        return TupleGetItemPattern(self, checked_index(index))

    def __iter__(self) -> Iterator[DFPattern]:
        raise PassError("a pattern has no length to unpack", code="W550", hint="write pattern[0], pattern[1]")

    def __bool__(self) -> bool:
        raise PassError("a pattern is neither true nor false", code="W550", hint="combine patterns with |, & and ~")

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """The same, where attributes have these values: of a call (defaults count) or of a function."""
        return AttrPattern(self, _checked_attributes(self, attrs))

    def has_dtype(self, dtype: str) -> DTypePattern:
        """The same, as a tensor or scalar of a dtype."""
        return DTypePattern(self, check_dtype(dtype))

    def has_shape(self, shape: Sequence[Dim | str | None]) -> ShapePattern:
        """The same, as a tensor whose sizes are proved to be these; None is any size."""
        return ShapePattern(self, checked_sizes(shape))

    def has_type(self, ty: Type) -> TypePattern:
        """The same, where every value is proved to be of a type."""
        if not isinstance(ty, Type):
            raise PassError(f"has_type takes a type, got {described(ty)}", code="W550")
        return TypePattern(self, ty)

    has_ty = has_struct_info = has_type

    def same_shape_as(self, *others: DFPattern) -> SameShapePattern:
        """The same, where the shape is proved to be that of other parts of what is matched."""
        return SameShapePattern(self, tuple(checked_pattern(other, "same_shape_as") for other in others))

    def dup(self: P) -> P:
        """Another pattern of this form, which may stand for another value; its parts are shared."""
        return replace(self)  # type: ignore[type-var]

    # Edges -----------------------------------------------------------------------------------------------------------

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """That the value is an operand of another: the one at `index`, or any (-1). Raises PassError W552."""
        return PatternSeq((self,)).used_by(other, index)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The same, and nothing else uses the value. Raises PassError W552."""
        return PatternSeq((self,)).only_used_by(other, index)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def fork_to(self, *others: DFPattern) -> None:
        """That each of several values uses this one. Raises PassError W552."""
        for other in others:
            self.used_by(other)


@dataclass(frozen=True, eq=False)
class Edge:
    """That `user` has `source` as an operand; `only`: and that nothing but the users named does."""

    source: DFPattern
    user: DFPattern
    index: int
    only: bool


@dataclass(frozen=True, eq=False)
class PatternSeq:
    """Patterns in a row, each an operand of the next: a ^ b >> c."""

    patterns: tuple[DFPattern, ...]

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The row, whose last value is an operand of the other (of its first)."""
        return self._linked(other, index, only=False)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The row, whose last value nothing but the other (its first) uses."""
        return self._linked(other, index, only=True)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def _linked(self, other: DFPattern | PatternSeq, index: int, only: bool) -> PatternSeq:
        following = other.patterns if isinstance(other, PatternSeq) else (checked_pattern(other, "an edge"),)
        recorder = RECORDER.get()
        if recorder is None:
            hint = "with PatternContext() as context: ..."
            raise PassError("an edge between patterns is written outside a PatternContext", code="W552", hint=hint)
        if isinstance(index, bool) or not isinstance(index, int) or index < -1:
            raise PassError(f"the place of an operand is a number from 0, or -1 for any, got {index!r}", code="W550")
        recorder.joined(Edge(self.patterns[-1], following[0], index, only))
        return PatternSeq((*self.patterns, *following))


def checked_pattern(value: Any, where: str) -> DFPattern:
    """The value, if it is a pattern; PassError W550."""
    if isinstance(value, DFPattern):
        return value
    hint = "is_expr(value) stands for one given leaf" if isinstance(value, Expr) else "wildcard() is any value"
    raise PassError(f"{where} is a pattern, got {described(value)}", code="W550", hint=hint)


def checked_index(index: Any) -> int:
    """The number of a field; PassError W550."""
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise PassError(f"a field of a tuple has a number from 0, got {index!r}", code="W550")
    return index


def checked_sizes(shape: Any) -> tuple[Dim | None, ...]:
    """Sizes as dimensions, strings read; PassError W550."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise PassError(f"a shape is a list of sizes, got {described(shape)}", code="W550")
    return tuple(_checked_size(size) for size in shape)


def _checked_size(size: Any) -> Dim | None:
    if isinstance(size, str):
        return parse_dim(size)
    if size is None or isinstance(size, DimExpr) or (isinstance(size, int) and not isinstance(size, bool)):
        return size
    raise PassError(f"a size is a number, a dimension or its text, or None, got {described(size)}", code="W550")


def _checked_attributes(pattern: DFPattern, attrs: Any) -> FrozenMap:
    if not isinstance(attrs, Mapping) or not all(isinstance(key, str) for key in attrs):
        raise PassError(f"has_attr takes a dictionary of attributes by name, got {described(attrs)}", code="W550")
    callee = pattern.op if isinstance(pattern, CallPattern) else None
    if isinstance(callee, ExprPattern) and isinstance(callee.expr, Op):
        known = [param.name for param in get_op(callee.expr.name).params if param.kind in FIXED]
        for key in attrs:
            if key not in known:
                hint = nearest(key, known) or (f"it has: {', '.join(known)}" if known else None)
                raise PassError(f"R.{callee.expr.name} has no attribute {key!r}", code="W550", hint=hint)
    return FrozenMap(attrs)


@dataclass_transform(eq_default=False, frozen_default=True)
def _pattern(cls: type[P]) -> type[P]:
    return dataclass(frozen=True, eq=False)(cls)


# Leaves --------------------------------------------------------------------------------------------------------------


@_pattern
class WildcardPattern(DFPattern):
    """Any value."""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        yield

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        return expr


@_pattern
class VarPattern(DFPattern):
    """A variable, of a name where one is given."""

    name: str = ""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        place = match.place(expr)
        if isinstance(place, Var) and self.name in ("", place.name):
            yield

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        return match.place(expr)


@_pattern
class DataflowVarPattern(VarPattern):
    """A variable that does not leave its dataflow block."""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        if isinstance(match.place(expr), DataflowVar):
            yield from VarPattern._solutions(self, expr, match)


@_pattern
class GlobalVarPattern(DFPattern):
    """A function of the module, of a name where one is given."""

    name: str = ""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        expr = match.behind(expr)
        if isinstance(expr, GlobalVar) and self.name in ("", expr.name):
            yield


@_pattern
class ExternFuncPattern(DFPattern):
    """A function outside the module, of a name where one is given."""

    name: str = ""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        expr = match.behind(expr)
        if isinstance(expr, ExternFunc) and self.name in ("", expr.name):
            yield


@_pattern
class ConstantPattern(DFPattern):
    """An array known at compile time."""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        if isinstance(match.behind(expr), Constant):
            yield


@_pattern
class ExprPattern(DFPattern):
    """One given leaf: an operator, a variable, a constant of this value, a number, a string."""

    expr: Expr

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        behind = match.behind(expr)
        if expr is self.expr or behind is self.expr or expr_key(behind) == expr_key(self.expr):
            yield


@_pattern
class ShapeExprPattern(DFPattern):
    """A shape as a value, of sizes that are proved to be these; None is any size."""

    sizes: tuple[Dim | None, ...]

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        expr = match.behind(expr)
        if isinstance(expr, ShapeExpr) and _same_sizes(self.sizes, expr.dims):
            yield


# Calls and tuples ----------------------------------------------------------------------------------------------------


@_pattern
class CallPattern(DFPattern):
    """A call; `args` None are any. The two operands of `add` and `multiply` may stand in either order."""

    op: DFPattern
    args: tuple[DFPattern, ...] | None = None
    more_arguments: bool = False

    def _parts(self) -> tuple[DFPattern, ...]:
        return (self.op, *(self.args or ()))

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        call = match.behind(expr)
        if not isinstance(call, Call):
            return
        for _ in match.solutions(self.op, call.op):
            if self.args is None:
                yield
                continue
            given = call.args[: len(self.args)] if self.more_arguments else call.args
            if len(given) != len(self.args):
                continue
            yield from match.sequences(self.args, given)
            if len(given) == 2 and isinstance(call.op, Op) and call.op.name in COMMUTATIVE:
                yield from match.sequences(self.args, given[::-1])


@_pattern
class TuplePattern(DFPattern):
    """A tuple with these fields."""

    fields: tuple[DFPattern, ...]

    def _parts(self) -> tuple[DFPattern, ...]:
        return self.fields

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        expr = match.behind(expr)
        if isinstance(expr, Tuple) and len(expr.fields) == len(self.fields):
            yield from match.sequences(self.fields, expr.fields)


@_pattern
class UnorderedTuplePattern(TuplePattern):
    """A tuple with these fields in any order."""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        expr = match.behind(expr)
        if isinstance(expr, Tuple) and len(expr.fields) == len(self.fields):
            yield from _assignments(self.fields, expr.fields, match)


def _assignments(patterns: Sequence[DFPattern], exprs: Sequence[Expr], match: Match) -> Generator[None]:
    """Each way in which expressions are of the forms, in any order."""
    if not patterns:
        yield
        return
    for position, expr in enumerate(exprs):
        for _ in match.solutions(patterns[0], expr):
            yield from _assignments(patterns[1:], (*exprs[:position], *exprs[position + 1 :]), match)


@_pattern
class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any of them where `index` is None."""

    tuple_value: DFPattern
    index: int | None = None

    def _parts(self) -> tuple[DFPattern, ...]:
        return (self.tuple_value,)

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        expr = match.behind(expr)
        if isinstance(expr, TupleGetItem) and self.index in (None, expr.index):
            yield from match.solutions(self.tuple_value, expr.value)


# Conditions ----------------------------------------------------------------------------------------------------------


class _Wrapper(DFPattern):
    """A pattern with a condition: it stands for what the pattern in it stands for."""

    pattern: DFPattern

    def _parts(self) -> tuple[DFPattern, ...]:
        return (self.pattern,)

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        if self._accepts(expr, match):
            yield from match.solutions(self.pattern, expr)

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        return match.found[self.pattern]

    def _accepts(self, expr: Expr, match: Match) -> bool:
        """Whether the condition holds of the expression."""
        return True


@_pattern
class AttrPattern(_Wrapper):
    """Attributes of a call or of a function have these values."""

    pattern: DFPattern
    attrs: FrozenMap

    def _accepts(self, expr: Expr, match: Match) -> bool:
        value = match.behind(expr)
        if isinstance(value, GlobalVar):
            value = match.context.functions.get(value.name)
        given = _attributes_of(value)
        return all(key in given and data_key(freeze(given[key])) == data_key(want) for key, want in self.attrs.items())


def _attributes_of(value: Any) -> Mapping[str, Any]:
    """The attributes of a call, with the defaults of its operator, or of a function."""
    if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in OPS:
        definition = OPS[value.op.name]
        names = [param.name for param in definition.params if param.kind in FIXED]
        arguments = definition.arguments(value)
        return {**value.attrs, **{name: arguments[name] for name in names}}
    return getattr(value, "attrs", {})


@_pattern
class DTypePattern(_Wrapper):
    """A tensor or scalar of a dtype."""

    pattern: DFPattern
    dtype: str

    def _accepts(self, expr: Expr, match: Match) -> bool:
        ty = match.type_of(expr)
        return isinstance(ty, (TensorType, PrimType)) and ty.dtype == self.dtype


@_pattern
class ShapePattern(_Wrapper):
    """A tensor whose sizes are proved to be these; None is any size."""

    pattern: DFPattern
    sizes: tuple[Dim | None, ...]

    def _accepts(self, expr: Expr, match: Match) -> bool:
        dims = _dims(match.type_of(expr))
        return dims is not None and _same_sizes(self.sizes, dims)


def _dims(ty: Type | None) -> tuple[Dim, ...] | None:
    return ty.dims if isinstance(ty, TensorType) else None


def _same_sizes(wanted: Sequence[Dim | None], dims: Sequence[Dim]) -> bool:
    pairs = zip(wanted, dims, strict=False)
    return len(wanted) == len(dims) and all(want is None or prove_equal(want, dim) is True for want, dim in pairs)


@_pattern
class TypePattern(_Wrapper):
    """A value that is proved to be of a type."""

    pattern: DFPattern
    ty: Type

    def _accepts(self, expr: Expr, match: Match) -> bool:
        ty = match.type_of(expr)
        return ty is not None and is_base_of(self.ty, ty) is True


@_pattern
class SameShapePattern(_Wrapper):
    """A tensor whose shape is proved to be that of other parts."""

    pattern: DFPattern
    others: tuple[DFPattern, ...]

    def _agrees(self, match: Match) -> bool:
        dims = _dims(match.type_of(match.found[self]))
        found = [_dims(match.type_of(match.found[other])) if other in match.found else None for other in self.others]
        return dims is not None and all(other is not None and _same_sizes(dims, other) for other in found)


# Combinations --------------------------------------------------------------------------------------------------------


@_pattern
class AndPattern(DFPattern):
    """A value of both forms; it stands for what the first one stands for."""

    left: DFPattern
    right: DFPattern

    def _parts(self) -> tuple[DFPattern, ...]:
        return (self.left, self.right)

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        for _ in match.solutions(self.left, expr):
            yield from match.solutions(self.right, expr)

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        return match.found[self.left]


@_pattern
class OrPattern(DFPattern):
    """A value of the first form, else of the second; only the parts of that one stand for something."""

    left: DFPattern
    right: DFPattern

    def _parts(self) -> tuple[DFPattern, ...]:
        return (self.left, self.right)

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        yield from match.solutions(self.left, expr)
        yield from match.solutions(self.right, expr)

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        return next((match.found[part] for part in self._parts() if part in match.found), expr)


@_pattern
class NotPattern(DFPattern):
    """A value that is not of a form; the parts of that form stand for nothing."""

    rejected: DFPattern

    def _parts(self) -> tuple[DFPattern, ...]:
        return (self.rejected,)

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]:
        attempt = match.solutions(self.rejected, expr)
        accepted = any(True for _ in attempt)
        attempt.close()  # what was tried is undone
        if not accepted:
            yield

    def _stands_for(self, expr: Expr, match: Match) -> Expr:
        return expr
