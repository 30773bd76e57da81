"""Tensor expressions: tensor-level functions written as formulas over indices.

    tensor    ::= placeholder(shape, dtype) | compute(shape, f) | scan(shape, f, axis)
    f         ::= (i, j, ...) -> expr | reduction | (expr, ...)       one expression per output
    reduction ::= sum | max | min | prod (expr, axis) | comm_reducer(combine, identity)((expr, ...), axis)
    function  ::= create_prim_func([tensor | scalar, ...])

A shape holds dimensions (int or `DimExpr`) or scalar expressions; a dimension used in arithmetic stands for its value.
Every computed tensor becomes one loop nest around one Block, in the order of first use; tensors that are not among the
arguments become local buffers. Index variables are int64. The symbols of the dimensions become int64 PrimVars, one per
name and function; those that no parameter's shape binds are appended as scalar parameters. Equal formulas give equal
functions.

Source: Ragan-Kelley et al., Halide, 2013; Chen et al., TVM, 2018 (tensor expressions).
"""

from __future__ import annotations

from weft.ir.te.functions import Check, Traced, check, create_prim_func, trace
from weft.ir.te.reductions import ReduceAxis, Reduction, comm_reducer, max, min, prod, reduce_axis, sum
from weft.ir.te.scalars import (
    abs,
    all,
    any,
    cast,
    ceil,
    const,
    cos,
    equal,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    if_then_else,
    isnan,
    log,
    maximum,
    minimum,
    not_equal,
    power,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from weft.ir.te.sizes import INDEX, Index, Size, index, size, var
from weft.ir.te.tensors import Tensor, compute, placeholder, scan

__all__ = [
    "INDEX",
    "Check",
    "Index",
    "ReduceAxis",
    "Reduction",
    "Size",
    "Tensor",
    "Traced",
    "abs",
    "all",
    "any",
    "cast",
    "ceil",
    "check",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "create_prim_func",
    "equal",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "index",
    "isnan",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "not_equal",
    "placeholder",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "scan",
    "select",
    "sigmoid",
    "sin",
    "size",
    "sqrt",
    "sum",
    "tanh",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
