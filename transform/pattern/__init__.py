"""Patterns of graph functions: finding calls that belong together, and putting others in their place.

    pattern ::= wildcard() | is_const() | is_var(name) | is_dfv(name) | is_gv(name) | is_extern(name) | is_expr(leaf)
              | is_op(name) | pattern(pattern, ...)          an operator or function; a call of it
              | is_call_tir(name, args) | is_call_packed(name, args) | is_call_dps_packed(name, args)
              | is_tuple(patterns, unordered) | is_tuple_get_item(pattern, index) | pattern[index] | is_shape(sizes)
              | pattern | pattern    pattern & pattern    ~pattern
              | pattern.has_attr({...})  .has_dtype(dtype)  .has_shape(sizes)  .has_type(type)  .same_shape_as(pattern)
    edge    ::= pattern ^ pattern (used_by)   pattern >> pattern (only_used_by)   pattern.fork_to(pattern, ...)

A pattern is compared by identity: one that stands in two places means one value. `pattern.match(expr, bindings)` looks
at a single expression, through the variables in `bindings` (`bindings_of_function` gives those of a function);
`extract_matched_expr` says what each part stands for. A `PatternContext` finds several patterns and the edges between
them in a dataflow block. `rewrite_call` and `rewrite_bindings` rebuild a function; `FuseOpsByPattern` outlines matches.
A `PatternMatchingRewriter` has both sides as functions, as `@R.rewriter` writes them.

Errors: PassError W550 a wrong part of a pattern, W551 what is matched is no expression, W552 a wrong context, W553 a
replacement that does not fit, W554 a rewriting that does not end; ScriptError W140 an operator that does not exist.

>>> from weft.ir import TensorType, Var
>>> from weft.ir.op import get_op
>>> x = Var("x", TensorType((2, 3), "float32"))
>>> is_op("nn.relu")(wildcard().has_shape((2, 3))).match(get_op("nn.relu")(x))
True
"""

from __future__ import annotations

from weft.transform.pattern.constructors import (
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_extern,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    reject,
    wildcard,
)
from weft.transform.pattern.context import PatternContext
from weft.transform.pattern.declared import PatternMatchingRewriter
from weft.transform.pattern.language import (
    AndPattern,
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
    OrPattern,
    PatternSeq,
    SameShapePattern,
    ShapeExprPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)
from weft.transform.pattern.matching import bindings_of_function
from weft.transform.pattern.rewriting import rewrite_bindings, rewrite_call

__all__ = [
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DTypePattern",
    "DataflowVarPattern",
    "ExprPattern",
    "ExternFuncPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PatternContext",
    "PatternMatchingRewriter",
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
    "bindings_of_function",
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
    "rewrite_bindings",
    "rewrite_call",
    "wildcard",
]
