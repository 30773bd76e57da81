"""Checks of the form of graph functions: A-normal form, where sequences and conditionals may stand."""

# What stands in a field may be anything until it is verified.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from weft.ir.graph import Call, Expr, Function, If, SeqExpr, Tuple, TupleGetItem
from weft.ir.tensor import PrimFunc
from weft.ir.verify.findings import Report
from weft.ir.verify.sites import Site, sites_of

__all__ = ["check_form"]

_COMPOUND = (Call, TupleGetItem, If, SeqExpr, Function, PrimFunc)


def check_form(function: Function, report: Report) -> None:
    """W410-W414 for a function and those nested in it."""
    for site in sites_of(function):
        if site.event == "value":
            report.path = site.binding.var.name if site.binding is not None else "the result"
            _check_site(site, report)
    report.path = ""


def _check_site(site: Site, report: Report) -> None:
    value = site.value
    if site.binding is None:
        if (bad := _compound_in(value)) is not None:
            report.add("W414", f"the result is a {type(bad).__name__}, not a leaf", bad.span or value.span)
        return
    if isinstance(value, SeqExpr):
        report.add("W412", "a sequence is bound to a variable", value.span)
        return
    if isinstance(value, PrimFunc):
        report.add(
            "W413",
            "a tensor-level function is bound to a variable",
            value.span,
            hint="make it a function of the module",
        )
        return
    if isinstance(value, If):
        _check_if(site, value, report)
    for operand in _operands(value):
        bad = _compound_in(operand)
        if bad is not None:
            code = "W413" if isinstance(bad, PrimFunc) else "W410"
            report.add(
                code,
                f"an operand is a {type(bad).__name__}, not a leaf",
                bad.span or value.span,
                hint="bind it to a variable first",
            )


def _check_if(site: Site, value: If, report: Report) -> None:
    if site.dataflow:
        report.add("W411", "an If stands in a dataflow block", value.span or (site.binding and site.binding.span))
    for branch in (value.then_branch, value.else_branch):
        if not isinstance(branch, SeqExpr):
            report.add("W412", f"a branch is a {type(branch).__name__}, not a sequence", value.span)


def _operands(value: Expr) -> tuple[Expr, ...]:
    if isinstance(value, Call):
        return (value.op, *value.args)
    if isinstance(value, Tuple):
        return value.fields
    if isinstance(value, TupleGetItem):
        return (value.value,)
    return (value.cond,) if isinstance(value, If) else ()


def _compound_in(expr: Expr) -> Expr | None:
    """The expression or a field of it, if a tuple, that is not a leaf."""
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, _COMPOUND):
            return current
        if isinstance(current, Tuple):
            stack.extend(current.fields)
    return None
