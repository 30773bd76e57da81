"""Intrinsics that are declared by a formula: a call of one becomes the formula of its operands.

T.softsign(x[i] + 1)          T.Let(v / (1 + T.abs(v)), where={v: x[i] + 1})
"""

from __future__ import annotations

from weft.errors import DTypeError
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr
from weft.ir.node import Node
from weft.ir.structure.visit import rewrite
from weft.ir.tensor import BufferLoad, FloatImm, IntImm, Let, PrimCall, PrimExpr, PrimVar

__all__ = ["expanded", "has_formula"]


def has_formula(call: PrimCall) -> bool:
    """Whether a call is of an intrinsic that is declared by a formula."""
    entry = INTRINSICS.get(call.op) if isinstance(call.op, str) else None
    return entry is not None and entry.formula is not None


def expanded(call: PrimCall, within: tuple[str, ...] = ()) -> PrimExpr:
    """The formula of a call whose intrinsic has one; an operand that is arithmetic is computed once.

    Raises: DTypeError W317 for a formula that gives another dtype than the rule of the intrinsic says, or uses itself.
    """
    within = (*within, str(call.op))
    formula = INTRINSICS[str(call.op)].formula
    assert formula is not None
    operands: list[PrimExpr] = []
    names: list[tuple[PrimVar, PrimExpr]] = []
    for position, operand in enumerate(call.args):
        assert isinstance(operand, PrimExpr)
        if not isinstance(operand, (PrimVar, IntImm, FloatImm, BufferLoad)):
            names.append((PrimVar(f"{call.op}_{position}", operand.dtype), operand))
            operand = names[-1][0]
        operands.append(operand)
    result = rewrite(as_expr(formula(*operands)), lambda node: _inner(node, call, within))
    if result.dtype != call.dtype:
        message = f"the formula of T.{call.op} gives {result.dtype}, its rule says {call.dtype}"
        raise DTypeError(message, code="W317", span=call.span)
    for name, operand in reversed(names):
        result = Let(name, operand, result, span=call.span)
    return result


def _inner(node: Node, call: PrimCall, within: tuple[str, ...]) -> PrimExpr | None:
    """The formula of an intrinsic that a formula uses."""
    if not isinstance(node, PrimCall) or not has_formula(node):
        return None
    if node.op in within:
        raise DTypeError(f"the formula of T.{node.op} uses T.{node.op}", code="W317", span=call.span)
    return expanded(node, within)
