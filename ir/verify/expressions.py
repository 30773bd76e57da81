"""Checks of tensor-level expressions: dtypes of operands, conditions, indices, vectors, intrinsics."""

# What stands in a field may be anything until it is verified.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from weft import dtypes
from weft.errors import Span
from weft.ir.kernel.prim import OF_COMPLEX
from weft.ir.node import Node
from weft.ir.tensor import (
    BINARY_KINDS,
    LOGICAL,
    UNARY_KINDS,
    Binary,
    Broadcast,
    Cast,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    Ramp,
    Select,
    Shuffle,
    Unary,
)
from weft.ir.verify.calls import check_intrinsic
from weft.ir.verify.findings import Report

__all__ = ["check_condition", "check_expression", "check_integer", "check_same"]


def check_same(dtype: str, value: object, what: str, report: Report, span: Span | None, code: str = "W459") -> None:
    """The value has the dtype that is wanted."""
    if isinstance(value, PrimExpr) and value.dtype != dtype:
        report.add(code, f"{what} is {dtype}, and gets a {value.dtype}", value.span or span, hint="cast the value")


def check_condition(value: PrimExpr, report: Report, span: Span | None) -> None:
    """W461: a scalar truth value."""
    if value.dtype != "bool":
        report.add(
            "W461", f"a condition is {value.dtype}, not bool", value.span or span, hint="compare it with something"
        )


def check_integer(value: PrimExpr, what: str, report: Report, span: Span | None) -> None:
    """W457: a scalar integer."""
    if not dtypes.is_integer(value.dtype) or dtypes.lanes(value.dtype) != 1:
        report.add("W457", f"{what} is {value.dtype}, not an integer", value.span or span)


def check_expression(node: Node, report: Report) -> None:
    """The rule of one node; what is below it is checked on its own."""
    if isinstance(node, Binary):
        _binary(node, report)
    elif isinstance(node, Unary):
        _unary(node, report)
    elif isinstance(node, Select):
        _select(node, report)
    elif isinstance(node, Cast):
        if "handle" in (node.dtype, node.value.dtype) and not _keeps_address(node.dtype, node.value.dtype):
            report.add("W460", f"a cast of a {node.value.dtype} to {node.dtype}", node.span)
        elif dtypes.lanes(node.dtype) != dtypes.lanes(node.value.dtype):
            report.add("W458", f"a cast of {node.value.dtype} to {node.dtype} changes the number of lanes", node.span)
        elif dtypes.is_complex(node.value.dtype) and not dtypes.is_complex(node.dtype):
            report.add("W460", f"a cast of {node.value.dtype} to {node.dtype}", node.span, hint="use T.real or T.imag")
    elif isinstance(node, (Ramp, Broadcast)):
        _vector(node, report)
    elif isinstance(node, Shuffle):
        _shuffle(node, report)
    elif isinstance(node, Let):
        check_same(node.var.dtype, node.value, f"variable {node.var.name!r}", report, node.span)
    elif isinstance(node, PrimCall):
        check_intrinsic(node, report)


def _keeps_address(*kinds: str) -> bool:
    """Whether a conversion is one between pointers and integers that hold them."""
    return all(kind == "handle" or (dtypes.is_integer(kind) and dtypes.bits(kind) == 64) for kind in kinds)


def _shuffle(node: Shuffle, report: Report) -> None:
    kinds = {dtypes.element(vector.dtype) for vector in node.vectors}
    if len(kinds) != 1 or "handle" in kinds:
        report.add("W460", f"the vectors of a shuffle are {' and '.join(sorted(kinds))}", node.span)
    total = sum(int(dtypes.lanes(vector.dtype)) for vector in node.vectors)
    for index in node.indices:
        if not isinstance(index, PrimExpr) or not dtypes.is_integer(index.dtype) or dtypes.lanes(index.dtype) != 1:
            report.add("W457", "a lane of a shuffle is not an integer", node.span)
        elif isinstance(index, IntImm) and not 0 <= index.value < total:
            report.add("W458", f"lane {index.value} of a shuffle of {total} lanes", node.span)


def _binary(node: Binary, report: Report) -> None:
    a, b = node.a.dtype, node.b.dtype
    if node.kind not in BINARY_KINDS:
        report.add("W463", f"unknown operation {node.kind!r}", node.span)
    elif dtypes.lanes(a) != dtypes.lanes(b):
        report.add("W458", f"{node.kind} of {a} and {b}", node.span)
    elif a != b:
        report.add("W460", f"{node.kind} of {a} and {b}", node.span, hint="cast one side")
    elif a == "handle" and node.kind not in ("eq", "ne"):
        report.add("W460", f"{node.kind} of pointers", node.span)
    elif node.kind in LOGICAL and not dtypes.is_bool(dtypes.element(a)):
        report.add("W461", f"{node.kind} of {a} values", node.span)
    elif dtypes.is_complex(a) and node.kind not in OF_COMPLEX:
        report.add("W460", f"{node.kind} of {a} values", node.span, hint="complex numbers have no order")
    elif (node.kind.startswith(("bitwise", "shift"))) and dtypes.is_float(dtypes.element(a)):
        report.add("W460", f"{node.kind} of {a} values", node.span)


def _unary(node: Unary, report: Report) -> None:
    scalar = dtypes.element(node.a.dtype)
    if node.kind not in UNARY_KINDS:
        report.add("W463", f"unknown operation {node.kind!r}", node.span)
    elif scalar == "handle":
        report.add("W460", f"{node.kind} of a pointer", node.span)
    elif node.kind == "not" and not dtypes.is_bool(scalar):
        report.add("W461", f"not of a {node.a.dtype}", node.span)
    elif node.kind == "bitwise_not" and (dtypes.is_float(scalar) or dtypes.is_complex(scalar)):
        report.add("W460", f"bitwise_not of a {node.a.dtype}", node.span)


def _select(node: Select, report: Report) -> None:
    if not dtypes.is_bool(dtypes.element(node.condition.dtype)):
        report.add("W461", f"a condition is {node.condition.dtype}, not bool", node.span)
    if node.true_value.dtype != node.false_value.dtype:
        report.add("W460", f"a choice between {node.true_value.dtype} and {node.false_value.dtype}", node.span)
    lanes = dtypes.lanes(node.condition.dtype)
    if lanes not in (1, dtypes.lanes(node.true_value.dtype)):
        report.add("W458", f"a condition of {lanes} lanes chooses among {node.true_value.dtype}", node.span)


def _vector(node: Ramp | Broadcast, report: Report) -> None:
    parts = (node.base, node.stride) if isinstance(node, Ramp) else (node.value,)
    if "handle" in (part.dtype for part in parts):
        report.add("W460", "a vector of pointers", node.span)
    if int(node.lanes) < 1 or any(dtypes.lanes(part.dtype) != 1 for part in parts):
        report.add("W458", f"a vector of {node.lanes} lanes of {parts[0].dtype}", node.span)
    if isinstance(node, Ramp) and node.base.dtype != node.stride.dtype:
        report.add("W460", f"a ramp from {node.base.dtype} by {node.stride.dtype}", node.span)
