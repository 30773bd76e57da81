"""The entry to the verifier."""

# What stands in a field may be anything until it is verified.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from weft.errors import WeftError, described
from weft.ir.attrs import GLOBAL_SYMBOL, REWRITER, Carrier
from weft.ir.graph import Call, ExternFunc, Function, GlobalVar, Op
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.malformed import FAILURES, explained_by, malformed
from weft.ir.structure.recursion import deeply
from weft.ir.structure.visit import walk
from weft.ir.tensor import BufferStore, PrimCall, PrimFunc
from weft.ir.types import FuncType
from weft.ir.verify.findings import Finding, Report
from weft.ir.verify.form import check_form
from weft.ir.verify.names import check_names, check_shared_parameters
from weft.ir.verify.purity import check_purity
from weft.ir.verify.sites import sites_of
from weft.ir.verify.tensor import check_tensor
from weft.ir.verify.values import Deduction, check_outputs, check_values

__all__ = [
    "assert_well_formed",
    "certain_findings",
    "fault_of",
    "refuse_ill_formed_kernels",
    "valueless_symbols",
    "verify",
]


def _verify(value: IRModule | BaseFunc) -> list[Finding]:
    module = value if isinstance(value, IRModule) else None
    functions: Mapping[str, BaseFunc] = module.functions if module is not None else _alone(value)  # type: ignore[arg-type]
    findings: list[Finding] = []
    shared = Report("")
    check_shared_parameters(functions, shared)
    if module is not None:
        for carrier in (Carrier.MODULE, *((Carrier.RULE,) if module.attrs.get(REWRITER) else ())):
            shared.add_attributes(module.attrs, carrier, "the module", module.span)
    findings.extend(shared.findings)
    deduction = Deduction(functions, closed=module is not None)
    for name, function in functions.items():
        findings.extend(_check(name, function, deduction))
    return findings


@explained_by(malformed)
def verify(value: IRModule | BaseFunc) -> list[Finding]:
    """Everything that is wrong with a module or a single function; the empty list when it is well formed.

    >>> verify(IRModule({}))
    []
    """
    try:
        findings = deeply(value, lambda: _verify(value))
    except FAILURES:
        if malformed(value) is None:
            raise
        findings = []
    error = malformed(value) if not findings else None  # what the checks have no code for
    return findings if error is None else [Finding(error.code, error.message, error.span, hint=error.hint)]


# What no call and no later change can make right.
_CERTAIN = frozenset({"W420", "W421", "W433", "W456", "W462", "W463", "W466", "W477"})


def certain_findings(functions: Mapping[str, BaseFunc], names: Iterable[str]) -> list[Finding]:
    """What is certainly wrong with some functions of a module, whatever calls them: a part of `verify`, and quick.

    A kernel that does nothing yet stands for one that is still to be written: its outputs are not missed.
    """
    deduction = Deduction(functions, closed=True)
    findings: list[Finding] = []
    for name in names:
        function = functions[name]
        report = Report(name)
        if isinstance(function, PrimFunc):
            findings.extend(found for found in _check_tensor(name, function, deduction) if found.code in _CERTAIN)
        elif isinstance(function, Function):
            check_purity(function, functions, report)
            for site in sites_of(function):
                call = site.value if site.binding is not None else None
                if isinstance(call, Call) and not _calls_a_stub(call, functions):
                    check_outputs(call, functions, report)
        findings.extend(found for found in report.findings if found.code in _CERTAIN)
    return findings


# What says how blocks are meant to be scheduled, and is not relied on.
_ABOUT_BLOCKS = frozenset({"W470", "W471", "W472", "W473", "W474", "W475", "W476"})


def refuse_ill_formed_kernels(module: IRModule) -> None:
    """Raise the first thing that is wrong with names, types and memory of the kernels of a module.

    What makes code of kernels relies on it: ill-typed expressions would end a code generator, and with it the process.
    """
    deduction = Deduction(module.functions, closed=True)
    for name, function in module.functions.items():
        for found in _check_tensor(name, function, deduction) if isinstance(function, PrimFunc) else ():
            if found.code not in _ABOUT_BLOCKS:
                raise found.error()


def valueless_symbols(function: Function, functions: Mapping[str, BaseFunc | FuncType]) -> list[Finding]:
    """W406 alone: symbols of a graph function that are used where they have no value."""
    report = Report(function.name or "main")
    check_names(function, Deduction(functions, closed=False), report)
    return [found for found in report.findings if found.code == "W406"]


def _calls_a_stub(call: Call, functions: Mapping[str, BaseFunc]) -> bool:
    """Whether a call names a kernel whose body stores nothing and calls nothing."""
    callee = call.args[0] if isinstance(call.op, Op) and call.args else None
    kernel = functions.get(callee.name) if isinstance(callee, GlobalVar) else None
    return isinstance(kernel, PrimFunc) and not any(isinstance(n, BufferStore | PrimCall) for n in walk(kernel.body))


def _alone(function: BaseFunc) -> dict[str, BaseFunc]:
    return {getattr(function, "name", "") or "main": function}


def _check(name: str, function: BaseFunc, deduction: Deduction) -> list[Finding]:
    report = Report(name)
    functions = deduction.context.functions
    if deduction.closed and isinstance(function, Function | PrimFunc):  # alone, it has no name to agree with
        _check_symbol_name(name, function, report)
    if isinstance(function, Function):
        report.add_attributes(function.attrs, Carrier.GRAPH, name, function.span)
        check_names(function, deduction, report)
        check_form(function, report)
        check_purity(function, functions, report)  # type: ignore[arg-type]
        check_values(function, deduction, report)
        return report.findings
    if isinstance(function, PrimFunc):
        return [*report.findings, *_check_tensor(name, function, deduction)]
    if not isinstance(function, ExternFunc):
        report.add("W413", f"{name} is {described(function)}, not a function")
    return report.findings


# A PrimFunc never changes, so unless it calls others its findings are those of the last time.
_known: WeakKeyDictionary[PrimFunc, list[Finding]] = WeakKeyDictionary()


def _check_tensor(name: str, function: PrimFunc, deduction: Deduction) -> list[Finding]:
    found = _known.get(function)
    if found is not None and all(finding.function == name for finding in found):
        return found
    report = Report(name)
    check_tensor(function, deduction, report)
    calls = any(isinstance(node, PrimCall) and isinstance(node.op, GlobalVar) for node in walk(function.body))
    if not calls:
        _known[function] = report.findings
    return report.findings


def _check_symbol_name(name: str, function: Function | PrimFunc, report: Report) -> None:
    stated = function.attrs.get(GLOBAL_SYMBOL)
    if stated is not None and stated != name:
        report.add("W434", f"function {name} has the global_symbol {stated!r}", function.span)


def fault_of(value: Any) -> WeftError | None:
    """What is wrong with a module or a function that something failed on; None where it is well formed."""
    found = malformed(value)
    if found is not None or not isinstance(value, (IRModule, BaseFunc)):
        return found
    try:
        assert_well_formed(value)
    except WeftError as error:
        return error
    except Exception:  # the verifier fails as well: the first failure says more
        return None
    return None


def assert_well_formed(value: IRModule | BaseFunc) -> None:
    """Raise the first finding as a VerifyError (its own code, span and reason); the others are in its notes."""
    findings = verify(value)
    if not findings:
        return
    error = findings[0].error()
    others = [f"also {finding.code} in {finding.function}: {finding.message}" for finding in findings[1:10]]
    if len(findings) > 10:
        others.append(f"and {len(findings) - 10} more")
    error.notes = (*error.notes, *others)
    raise error
