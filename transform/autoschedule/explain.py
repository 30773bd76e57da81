"""explain: everything that was decided about a module, as plain records.

    fusion        which calls became one kernel, and why
    gemm, elementwise, reduction, ...      what the rules of the scheduler decided (with what of it can be pinned)
    packing       constants that are copied into another order when the module is compiled, and their bytes
    memory        blocks of memory that are planned for one call: bytes, tensors that share them
    parallel      the loops that threads share, or why there are none
    placement     the part of the target that a function belongs to
    checks        assertions that are left for the call; relations of sizes that only a declared type states (W213)

Decisions are read from the functions themselves (`weft.transform.infra.decisions`), whatever phase the module is after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.errors import WeftError
from weft.ir import IRModule, walk
from weft.ir.attrs import FUSION, IN_PLACE, LABEL
from weft.ir.deduction.infer import TypeContext, check_claim, infer_type
from weft.ir.dim import Dim
from weft.ir.graph import Call, Function, Op, SeqExpr, ShapeExpr, Var, VarBinding
from weft.ir.structure.visit import statements
from weft.ir.tensor import AssertStmt, PrimFunc
from weft.transform.autoschedule.parallelize_outer_loops import PARALLEL
from weft.transform.autoschedule.registry import rules
from weft.transform.infra.decisions import Decision, decisions_of

__all__ = ["explain"]


def explain(module: IRModule) -> list[dict[str, Any]]:
    """The records of all functions: dictionaries of plain values, `function` first.

    >>> explain(IRModule({}))
    []
    """
    pins = {rule.name: sorted(rule.pins) for rule in rules()} | {PARALLEL: ["schedule"]}
    found = []
    for name, function in module.items():
        if not isinstance(function, (Function, PrimFunc)):
            continue
        for item in (*_decisions(name, function), *_relations(name, function, module)):
            record: dict[str, Any] = {"function": name, "about": item.about, "kind": item.kind}
            record.update((key, _plain(value)) for key, value in item.values.items())
            if item.reason:
                record["reason"] = item.reason
            if can := [key for key in pins.get(item.kind, ()) if key in item.values]:
                record["pins"] = can
            found.append(record)
    return found


def _decisions(name: str, function: Function | PrimFunc) -> Iterator[Decision]:
    if FUSION in function.attrs:
        yield Decision(name, "fusion", {}, str(function.attrs[FUSION]))
    if IN_PLACE in function.attrs:
        yield Decision(name, "in_place", {}, str(function.attrs[IN_PLACE]))
    yield from decisions_of(function)
    if LABEL in function.attrs:
        yield Decision(name, "placement", {"part": str(function.attrs[LABEL])})
    if isinstance(function, Function):
        yield from _memory(function)
    if isinstance(function, PrimFunc):
        left = sum(isinstance(part, AssertStmt) for part in statements(function.body))
        if left:
            yield Decision(name, "checks", {"assertions": left}, "sizes or indices that only the call knows")


def _relations(name: str, function: Function | PrimFunc, module: IRModule) -> Iterator[Decision]:
    """What a graph function's declared result says of sizes that nothing else does: checked when it runs."""
    if not isinstance(function, Function) or not isinstance(function.body, SeqExpr) or function.ret_type is None:
        return
    context = TypeContext(module.functions)
    try:
        found = infer_type(function.body.body, context)
        context.checks.clear()
        check_claim(function.ret_type, found, context, f"the result of {name}", at_run_time=True)
    except WeftError:  # the verifier's to report
        return
    for check in dict.fromkeys(map(str, context.checks)):
        yield Decision(name, "checks", {"relation": check}, "only a declared type says so (W213)")


def _memory(function: Function) -> Iterator[Decision]:
    """The blocks of memory that were planned, as they stand in the text (`StaticPlanBlockMemory`)."""
    tensors: dict[Var, int] = {}
    blocks: dict[Var, Dim] = {}
    for node in walk(function.body):
        call = node.value if isinstance(node, VarBinding) else None
        if not isinstance(node, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, Op):
            continue
        first = call.args[0] if call.args else None
        if call.op.name == "memory.alloc_storage" and isinstance(first, ShapeExpr):
            blocks[node.var] = first.dims[0]
        elif call.op.name == "memory.alloc_tensor" and isinstance(first, Var):
            tensors[first] = tensors.get(first, 0) + 1
    for var, size in blocks.items():
        values = {"bytes": size if isinstance(size, int) else str(size), "tensors": tensors.get(var, 0)}
        yield Decision(var.name, "memory", values, "one block, which tensors that live within the call use in turn")


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
