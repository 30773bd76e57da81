"""Checks of types in graph functions: present, and consistent with what deduction finds."""

# A variable of a function that is not typed yet has no type.
# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from weft.errors import Span, WeftError
from weft.ir.deduction.infer import ShapeCheck, TypeContext, check_claim, exact_type, infer_type, is_base_of, type_text
from weft.ir.graph import Call, Expr, Function, GlobalVar, MatchCast, Op, PrimValue, Tuple
from weft.ir.module import BaseFunc
from weft.ir.tensor import Buffer, PrimFunc, PrimVar
from weft.ir.types import FuncType, TupleType, Type
from weft.ir.verify.findings import Report
from weft.ir.verify.outputs import stored_buffers, unset_output
from weft.ir.verify.sites import Site, sites_of

__all__ = ["Deduction", "check_outputs", "check_values"]


class Deduction:
    """The types of values, each deduced once; a failure is kept as its error.

    `closed` says that `functions` are all there are: a name that is not among them is wrong.
    """

    def __init__(self, functions: Mapping[str, BaseFunc | FuncType], closed: bool = True) -> None:
        self.closed = closed
        self.context = TypeContext(functions)
        self._found: dict[int, tuple[Expr, Type | WeftError, Sequence[ShapeCheck]]] = {}

    def of(self, value: Expr) -> Type | WeftError:
        """The type of a value, or why it has none."""
        found = self._found.get(id(value))
        if found is None:
            before = len(self.context.checks)
            try:
                result: Type | WeftError = infer_type(value, self.context)
            except WeftError as error:
                result = error
            found = self._found[id(value)] = (value, result, self.context.checks[before:])
        for check in found[2]:
            self.context.learn_check(check)
        return found[1]


def check_values(function: Function, deduction: Deduction, report: Report) -> None:
    """W430-W433 and the errors of deduction for a function and those nested in it."""
    scopes: list[ExitStack] = []
    for site in sites_of(function):
        if site.event == "enter":
            scopes.append(ExitStack())
            scopes[-1].enter_context(deduction.context.scope())
            if site.region.is_body:
                _check_signature(site.region.function, report)
        elif site.event == "leave":
            scopes.pop().close()
        elif site.event == "value":
            report.path = site.binding.var.name if site.binding is not None else "the result"
            _check_site(site, deduction, report)
            report.path = ""


def _check_signature(function: Function, report: Report) -> None:
    for param in function.params:
        if param.ty is None:
            report.add("W430", f"parameter {param.name!r} has no type", param.span)
    if function.ret_type is None:
        report.add("W431", f"function {function.name} does not state the type of its result", function.span)


def _check_site(site: Site, deduction: Deduction, report: Report) -> None:
    binding = site.binding
    found = deduction.of(site.value)
    if isinstance(found, WeftError):
        if found.code == "W132":  # an unknown function is reported by the check of names
            return
        report.add_error(found, site.value.span or (binding.span if binding is not None else None))
        return
    if binding is None:
        _check_result(site, found, deduction, report)
        return
    if isinstance(site.value, Call):
        check_outputs(site.value, deduction.context.functions, report)
    if binding.var.ty is None:
        report.add("W430", f"variable {binding.var.name!r} has no type", binding.var.span or binding.span)
        return
    if isinstance(binding, MatchCast):
        if is_base_of(binding.ty, found) is False:
            report.add(
                "W432", f"a {type_text(found)} is never a {type_text(binding.ty)}", binding.span or site.value.span
            )
        deduction.context.learn(binding.ty, found)
        found = binding.ty
    elif isinstance(site.value, PrimValue):
        found = exact_type(site.value, deduction.context)
    _check_claim(
        binding.var.ty, found, deduction, report, f"the type of {binding.var.name}", site.value.span or binding.span
    )


def _check_result(site: Site, found: Type, deduction: Deduction, report: Report) -> None:
    declared = site.region.function.ret_type
    if site.region.is_body and declared is not None:
        span = site.value.span or site.region.function.span
        _check_claim(declared, found, deduction, report, "the declared result", span, at_run_time=True)


def _check_claim(
    declared: Type,
    found: Type,
    deduction: Deduction,
    report: Report,
    what: str,
    span: Span | None,
    *,
    at_run_time: bool = False,
) -> None:
    try:
        check_claim(declared, found, deduction.context, what, span, at_run_time=at_run_time)
    except WeftError as error:
        report.add_error(error, span)


def _place(param: Buffer | PrimVar, kernel: PrimFunc) -> tuple[str, ...]:
    """Where a kernel declares a parameter, as a note."""
    span = param.span or kernel.span
    return (f"declared at {span.quoted()}",) if span is not None else ()


def check_outputs(call: Call, functions: Mapping[str, object], report: Report) -> None:
    """W433: what `call_tir` takes from a kernel, the kernel writes. W435: it writes nothing else."""
    if not isinstance(call.op, Op) or call.op.name not in ("call_tir", "call_tir_with_grad"):
        return
    callee, inputs = call.args[0], call.args[1]
    kernel = functions.get(callee.name) if isinstance(callee, GlobalVar) else None
    if not isinstance(kernel, PrimFunc) or not isinstance(inputs, Tuple) or not call.ty_args:
        return
    for param in kernel.params[: len(inputs.fields)]:
        if param in stored_buffers(kernel):
            hint = "use R.call_tir_inplace"
            message = f"kernel {kernel.name} writes its input {param.name!r}"
            report.add("W435", message, call.span, hint=hint, notes=_place(param, kernel))
    outputs = len(call.ty_args[0].fields) if isinstance(call.ty_args[0], TupleType) else 1
    for param in kernel.params[len(inputs.fields) : len(inputs.fields) + outputs]:
        problem = unset_output(kernel, param) if isinstance(param, Buffer) else None
        if problem is not None:
            notes = _place(param, kernel)
            report.add("W433", f"kernel {kernel.name} {problem}", call.span, notes=notes)
