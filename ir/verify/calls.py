"""Checks of calls in tensor-level functions: what intrinsics and other kernels are given.

T.vectorlow(0)          W463: the table of intrinsics says a vector
M.k(p[0])               W463 where k takes a handle: a number is no pointer
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft import dtypes
from weft.errors import DTypeError, described
from weft.ir.graph import StringImm
from weft.ir.kernel.intrinsics import INTRINSICS, Intrinsic, result_dtype
from weft.ir.tensor import Buffer, BufferLoad, PrimCall, PrimExpr, PrimFunc
from weft.ir.verify.findings import Report

__all__ = ["check_intrinsic", "check_kernel_call"]


def check_intrinsic(node: PrimCall, report: Report) -> None:
    """W460, W461, W463 for a call by name; one that the table does not have is opaque."""
    entry = INTRINSICS.get(node.op) if isinstance(node.op, str) else None
    if entry is None:
        return  # a later stage knows it, or refuses it
    if entry.arity >= 0 and len(node.args) != entry.arity:
        report.add("W463", f"T.{entry.name} takes {entry.arity} operands, got {len(node.args)}", node.span)
    elif entry.rule == "given":
        _check_operands(node, entry, report)
    else:
        _check_values(node, entry, report)


def check_kernel_call(node: PrimCall, callee: PrimFunc, name: str, report: Report) -> None:
    """W463 for a call of another kernel: as many arguments as it takes, pointers for buffers, scalars for scalars."""
    if len(callee.params) != len(node.args):
        report.add("W463", f"{name} takes {len(callee.params)} arguments, got {len(node.args)}", node.span)
        return
    for param, arg in zip(callee.params, node.args, strict=True):
        if isinstance(param, Buffer):
            fits, wanted = _is_pointer(arg), "a buffer"
        elif param.dtype == "handle":
            fits, wanted = _is_pointer(arg), "a pointer"
        else:
            fits, wanted = _is_scalar(arg), f"a {param.dtype}"
        if not fits:
            report.add("W463", f"{name} takes {wanted} as {param.name!r}, got {_told(arg)}", node.span)


def _check_values(node: PrimCall, entry: Intrinsic, report: Report) -> None:
    """The operands of mathematics: values of one dtype that the rule takes."""
    operands = [getattr(arg, "dtype", "") if isinstance(arg, PrimExpr) else "" for arg in node.args]
    if "" in operands or "handle" in operands:
        if entry.name != "if_then_else" or "" in operands:
            wrong = next(arg for arg, dtype in zip(node.args, operands, strict=True) if dtype in ("", "handle"))
            report.add("W463", f"T.{entry.name} takes numbers, got {_told(wrong)}", node.span)
            return
    if entry.name == "if_then_else":
        if operands[0] != "bool":
            report.add("W461", f"a condition is {operands[0]}, not bool", node.span)
        if operands[1] != operands[2]:
            report.add("W460", f"a choice between {operands[1]} and {operands[2]}", node.span)
    elif (reason := _disagree(entry.name, operands)) is not None:
        report.add("W460", f"T.{entry.name} of {reason}", node.span, hint="cast one side")
        return
    try:
        expected = result_dtype(entry, operands)
    except DTypeError as error:
        report.add("W463", error.message, node.span)
        return
    if expected != node.dtype:
        report.add("W463", f"T.{entry.name} of {operands[0]} gives {expected}, not {node.dtype}", node.span)


def _disagree(name: str, operands: list[str]) -> str | None:
    """What is wrong among the operands of a function of several; None for nothing."""
    text = " and ".join(dict.fromkeys(operands))
    if name == "dot_product":
        sums, (a, b) = dtypes.lanes(operands[0]), map(dtypes.lanes, operands[1:])
        return None if a == b and a % sums == 0 else text
    if name == "ldexp":
        value, exponent = operands
        return None if dtypes.lanes(value) == dtypes.lanes(exponent) else text
    return None if len(set(operands)) < 2 else text


def _check_operands(node: PrimCall, entry: Intrinsic, report: Report) -> None:
    """The operands that the table spells, and how their lanes and bits fit the result."""
    if not entry.operands:
        return
    kinds, args = entry.operands, list(node.args)
    while kinds and kinds != "*":
        kind, optional = kinds[0], kinds[1:2] == "?"
        kinds = kinds[2:] if optional else kinds[1:]
        if args and _KINDS[kind][1](args[0]):
            args.pop(0)
        elif not optional:
            got = _told(args[0]) if args else "nothing"
            report.add("W463", f"T.{entry.name} takes {_KINDS[kind][0]}, got {got}", node.span)
            return
    if args and kinds != "*":
        report.add("W463", f"T.{entry.name} takes fewer operands than {len(node.args)}", node.span)
    elif (reason := _RESULTS.get(entry.name, lambda node: None)(node)) is not None:
        report.add("W463", f"T.{entry.name} {reason}", node.span)


def _bits_differ(node: PrimCall) -> str | None:
    value: Any = node.args[0]
    if "handle" in (value.dtype, node.dtype):
        other = node.dtype if value.dtype == "handle" else value.dtype
        return None if other == "handle" or _is_address(other) else f"makes no {node.dtype} of a {value.dtype}"
    sizes = [dtypes.bits(dtype) * dtypes.lanes(dtype) for dtype in (value.dtype, node.dtype)]
    return None if sizes[0] == sizes[1] else f"of a {value.dtype} is no {node.dtype}: they differ in size"


def _is_address(dtype: str) -> bool:
    return dtypes.is_integer(dtype) and dtypes.bits(dtype) == 64 and dtypes.lanes(dtype) == 1


def _half_differs(node: PrimCall) -> str | None:
    value: Any = node.args[-1]
    fits = dtypes.element(value.dtype) == dtypes.element(node.dtype) and dtypes.lanes(value.dtype) == 2 * dtypes.lanes(
        node.dtype
    )
    return None if fits else f"of a {value.dtype} is no {node.dtype}"


def _joined_differs(node: PrimCall) -> str | None:
    low, high = (arg.dtype for arg in node.args[-2:] if isinstance(arg, PrimExpr))
    whole = dtypes.with_lanes(dtypes.element(low), 2 * dtypes.lanes(low))
    return None if low == high and whole == node.dtype else f"of {low} and {high} is no {node.dtype}"


def _mask_differs(node: PrimCall) -> str | None:
    return None if dtypes.element(node.dtype) in ("bool", "uint1") else f"gives truth values, not {node.dtype}"


_RESULTS: Mapping[str, Callable[[PrimCall], str | None]] = {
    "reinterpret": _bits_differ,
    "vectorlow": _half_differs,
    "vectorhigh": _half_differs,
    "vectorcombine": _joined_differs,
    "get_active_lane_mask": _mask_differs,
}


def _lanes(arg: object) -> Any:
    return dtypes.lanes(arg.dtype) if isinstance(arg, PrimExpr) else 0


def _is_scalar(arg: object) -> bool:
    return isinstance(arg, PrimExpr) and arg.dtype not in ("handle", "void") and _lanes(arg) == 1


def _is_pointer(arg: object) -> bool:
    return isinstance(arg, Buffer) or (isinstance(arg, PrimExpr) and arg.dtype == "handle")


def _is_element(arg: object) -> bool:
    """Whether an argument is an element of a buffer, which stands for its address."""
    return isinstance(arg, BufferLoad) and all(dtypes.lanes(index.dtype) == 1 for index in arg.indices)


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "i": ("an integer", lambda arg: _is_scalar(arg) and dtypes.is_integer(arg.dtype)),
    "b": ("a truth value", lambda arg: _is_scalar(arg) and dtypes.is_bool(arg.dtype)),
    "x": ("a value", lambda arg: isinstance(arg, PrimExpr) and arg.dtype != "void"),
    "v": ("a vector", lambda arg: isinstance(arg, PrimExpr) and _lanes(arg) != 1 and arg.dtype != "handle"),
    "p": ("a pointer", lambda arg: _is_pointer(arg) or _is_element(arg)),
    "e": ("an element of a buffer", lambda arg: isinstance(arg, Buffer) or _is_element(arg)),
    "s": ("a text", lambda arg: isinstance(arg, StringImm)),
}


def _told(arg: object) -> str:
    return arg.dtype if isinstance(arg, PrimExpr) else described(arg)
