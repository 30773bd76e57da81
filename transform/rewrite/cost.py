"""What rewriting costs and saves: operations and bytes (`weft.transform.analysis.op_cost`) as one number.

    cost(call) ::= flops + bytes / 4 * BYTES_AS_FLOPS        a dimension: a number, or an expression of sizes

What is known at compile time costs nothing, since `FoldConstant` computes it then. Costs are compared for all sizes:
`cheaper` is a proof.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir import Call, Expr, Tuple, TupleGetItem
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import Dim, floordiv, prove_equal, prove_le
from weft.transform.analysis.op_cost import flops, memory_traffic
from weft.transform.pattern.rule import Site

__all__ = ["call_cost", "cheaper", "replacement_costs"]

BYTES_AS_FLOPS = 1
"""What four bytes of memory traffic are worth, in operations: little enough that large products decide."""


def call_cost(call: Call, context: TypeContext) -> Dim | None:
    """Operations and traffic as one number; None where sizes are not known."""
    operations, traffic = flops(call, context), memory_traffic(call, context)
    return None if operations is None or traffic is None else operations + floordiv(traffic, 4) * BYTES_AS_FLOPS


def cheaper(new: Dim, old: Dim) -> bool:
    """Whether a cost is proved to be no greater for any sizes, and is another one.

    >>> from weft.ir.dim import symbol
    >>> n = symbol("n")
    >>> cheaper(4 * n, 8 * n + 1), cheaper(4 * n, 4 * n), cheaper(n, 3 + 0 * n)
    (True, False, False)
    """
    return prove_le(new, old) is True and prove_equal(new, old) is not True


def replacement_costs(site: Site, new: Expr) -> tuple[Dim, Dim] | None:
    """The cost of what is replaced and nothing else uses, and of what takes its place; None for unknown sizes."""
    context = TypeContext()
    given = {id(site.value(expr)) for expr in site.found.values()}
    old = [
        call for call in _calls(site.call, site) if call is site.call or (id(call) in given and site.is_used_once(call))
    ]
    made = [call for call in _nested(new) if id(call) not in given or call is site.call]
    costs = [_total(calls, site, context) for calls in (old, made)]
    return None if costs[0] is None or costs[1] is None else (costs[0], costs[1])


def _total(calls: Iterable[Call], site: Site, context: TypeContext) -> Dim | None:
    found: Dim = 0
    for call in calls:
        if all(site.is_constant(arg) for arg in call.args):
            continue
        cost = call_cost(call, context)
        if cost is None:
            return None
        found = found + cost
    return found


def _calls(root: Expr, site: Site) -> list[Call]:
    """The calls behind a value that only it needs."""
    found: dict[int, Call] = {}
    pending: list[Expr] = [root]
    while pending:
        expr = pending.pop()
        value = expr if expr is root else site.value(expr)
        if expr is not root and not site.is_used_once(expr):
            continue
        if isinstance(value, Call):
            if id(value) in found:
                continue
            found[id(value)] = value
        pending.extend(_parts(value))
    return list(found.values())


def _nested(root: Expr) -> list[Call]:
    """The calls of an expression that is not bound yet."""
    found: dict[int, Call] = {}
    pending = [root]
    while pending:
        expr = pending.pop()
        if isinstance(expr, Call):
            if id(expr) in found:
                continue
            found[id(expr)] = expr
        pending.extend(_parts(expr))
    return list(found.values())


def _parts(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return (expr.value,) if isinstance(expr, TupleGetItem) else ()
