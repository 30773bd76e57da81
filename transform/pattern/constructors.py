"""The functions that patterns are written with; each gives one part of the grammar in the package.

Errors: PassError W550 a wrong part, ScriptError W140 an operator that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import PassError, described
from weft.ir import Call, Expr, Function, If, Op, SeqExpr, Type
from weft.ir.dim import Dim
from weft.ir.op import get_op
from weft.transform.pattern.language import (
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DFPattern,
    DTypePattern,
    ExprPattern,
    ExternFuncPattern,
    GlobalVarPattern,
    NotPattern,
    ShapeExprPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
    checked_index,
    checked_pattern,
    checked_sizes,
)

__all__ = [
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_call_dps_packed",
    "is_call_packed",
    "is_call_tir",
    "is_const",
    "is_dfv",
    "is_expr",
    "is_extern",
    "is_gv",
    "is_op",
    "is_shape",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "make_fused_bias_activation_pattern",
    "reject",
    "wildcard",
]


def wildcard() -> WildcardPattern:
    """Any value; each wildcard stands for one, which may be that of another wildcard too.

    >>> x = wildcard()
    >>> square = is_op("multiply")(x, x)
    """
    return WildcardPattern()


def is_op(op_name: str) -> ExprPattern:
    """An operator, with or without the `R.` or `relax.` of other spellings; call the result for calls of it.

    Raises ScriptError W140 with the nearest names for an operator that does not exist.

    >>> sums = is_op("add")(wildcard(), wildcard())
    """
    if not isinstance(op_name, str):
        raise PassError(f"is_op takes the name of an operator, got {described(op_name)}", code="W550")
    return ExprPattern(Op(get_op(op_name.removeprefix("relax.").removeprefix("R.")).name))


def is_const() -> ConstantPattern:
    """An array known at compile time.

    >>> biased = is_op("add")(wildcard(), is_const())
    """
    return ConstantPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable, of a name where one is given.

    >>> weight = is_var("w")
    """
    return VarPattern(_checked_name(name, "is_var"))


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable that does not leave its dataflow block."""
    return DataflowVarPattern(_checked_name(name, "is_dfv"))


def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module, of a name where one is given; call the result for calls of it.

    >>> calls = is_gv("layer")(wildcard())
    """
    return GlobalVarPattern(_checked_name(name, "is_gv"))


def is_extern(name: str = "") -> ExternFuncPattern:
    """A function outside the module, of a name where one is given."""
    return ExternFuncPattern(_checked_name(name, "is_extern"))


def _checked_name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise PassError(f"{where} takes a name, got {described(name)}", code="W550")
    return name


def is_expr(expr: Expr) -> ExprPattern:
    """One given leaf: a variable, or a constant, number or string of this value. Raises PassError W550 for others.

    >>> from weft.ir import PrimValue
    >>> one = is_expr(PrimValue(1))
    """
    if not isinstance(expr, Expr) or isinstance(expr, (Call, If, SeqExpr, Function)):
        hint = "is_op(name)(...) is a call" if isinstance(expr, Call) else None
        raise PassError(f"is_expr takes a leaf, got {described(expr)}", code="W550", hint=hint)
    return ExprPattern(expr)


def is_shape(shape: Sequence[Dim | str | None]) -> ShapeExprPattern:
    """A shape as a value, such as `reshape` takes; None is any size.

    >>> rows = is_op("reshape")(wildcard(), is_shape(("n", None)))
    """
    return ShapeExprPattern(checked_sizes(shape))


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> TuplePattern:
    """A tuple with these fields, in any order where `unordered`.

    >>> pair = is_op("concat")(is_tuple([is_const(), wildcard()], unordered=True))
    """
    if isinstance(fields, DFPattern) or not isinstance(fields, Sequence):
        raise PassError(f"is_tuple takes a list of patterns, got {described(fields)}", code="W550")
    kind = UnorderedTuplePattern if unordered else TuplePattern
    return kind(tuple(checked_pattern(item, "a field of a tuple") for item in fields))


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple, any of them without `index`.

    >>> first = is_tuple_get_item(is_op("split")(wildcard()), 0)
    """
    value = checked_pattern(tuple_value, "what a field is taken of")
    return TupleGetItemPattern(value, None if index is None else checked_index(index))


def _call_with_tuple(op: str, callee: DFPattern, args: Any) -> CallPattern:
    if args is not None and not isinstance(args, DFPattern):
        args = is_tuple(args)
    return CallPattern(is_op(op), (callee, wildcard() if args is None else args), more_arguments=True)


def is_call_tir(func_name: str = "", args: Sequence[DFPattern] | DFPattern | None = None) -> CallPattern:
    """A call of a kernel of the module, of a name where one is given; `args` None are any.

    >>> calls = is_call_tir("scale", [wildcard()])
    """
    return _call_with_tuple("call_tir", is_gv(func_name), args)


def is_call_dps_packed(func_name: str = "", args: Sequence[DFPattern] | DFPattern | None = None) -> CallPattern:
    """A call of an extern function that writes its results; `args` None are any."""
    return _call_with_tuple("call_dps_packed", is_extern(func_name), args)


def is_call_packed(func_name: str = "", args: Sequence[DFPattern] | None = None) -> CallPattern:
    """A call of an extern function that returns its result; `args` None are any."""
    checked = None if args is None else tuple(checked_pattern(arg, "an argument of a call") for arg in args)
    return CallPattern(is_extern(func_name), checked)


def reject(pattern: DFPattern) -> NotPattern:
    """A value that is not of a form; `~pattern` is the same."""
    return ~checked_pattern(pattern, "what is rejected")


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """A call or function whose attributes have these values; see `DFPattern.has_attr`."""
    return _wrapped(pattern).has_attr(attrs)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DTypePattern:
    """A tensor or scalar of a dtype; see `DFPattern.has_dtype`."""
    return _wrapped(pattern).has_dtype(dtype)


def has_shape(shape: Sequence[Dim | str | None], pattern: DFPattern | None = None) -> ShapePattern:
    """A tensor whose sizes are proved to be these; see `DFPattern.has_shape`.

    >>> rows = has_shape(("n", 4)) & is_var()
    """
    return _wrapped(pattern).has_shape(shape)


def has_type(ty: Type, pattern: DFPattern | None = None) -> TypePattern:
    """A value that is proved to be of a type; see `DFPattern.has_type`."""
    return _wrapped(pattern).has_type(ty)


def _wrapped(pattern: DFPattern | None) -> DFPattern:
    return wildcard() if pattern is None else checked_pattern(pattern, "what has a property")


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None, allow_reshape: bool = False
) -> DFPattern:
    """A product or convolution of two operands, then a sum with a bias and an activation where they are asked for.

    With `allow_reshape` the bias may be reshaped first.

    >>> layer = make_fused_bias_activation_pattern("nn.conv2d", with_bias=True, activation="nn.relu")
    """
    out: DFPattern = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        bias: DFPattern = wildcard()
        if allow_reshape:
            bias = is_op("reshape")(bias, wildcard()) | bias
        out = is_op("add")(out, bias)
    return out if activation is None else is_op(activation)(out)
