"""UnrollLoops: loops with few iterations, as many as the text says, become calls of their bodies.

    s = R.loop(body, (x,), range=(0, 2, 1))      s_0 = body(0, x);  s_1 = body(1, s_0[0]);  s = (s_1[0],)

Straight lines of calls are seen by passes that look across iterations. A loop with a condition, with branches in its
body, with bounds that only a run decides, or with more than `limit` iterations stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from weft.ir import (
    Binding,
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Op,
    PrimValue,
    Tuple,
    TupleGetItem,
    VarBinding,
    replace,
    walk,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.op import get_op
from weft.ir.op.program.loop import carried_types, row_type, stacked_types
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.options import AtLeast
from weft.transform.infra.rewriting import FunctionRewriter, derived

__all__ = ["UnrollLoops"]


@dataclass(frozen=True)
class UnrollLoops(Pass):
    """Unroll loops over ranges of at most `limit` iterations that are written out.

    >>> UnrollLoops(limit=4).limit
    4
    """

    aliases: ClassVar[tuple[str, ...]] = ("unroll-loops",)
    limit: Annotated[int, AtLeast(0)] = 64

    def run(self, module: IRModule) -> IRModule:
        """Unroll in every graph function."""
        return map_functions(module, lambda name, function: self._function(function, module))

    def _function(self, function: Function, module: IRModule) -> Function:
        return _Unroller(module, self.limit, self.text_name).run(function)


class _Unroller(FunctionRewriter):
    def __init__(self, module: IRModule, limit: int, origin: str) -> None:
        super().__init__()
        self.context = TypeContext(module.functions)
        self.limit, self.origin = limit, origin
        self.functions: dict[Expr, Function] = {}

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if isinstance(value, Function):
            self.functions[binding.var] = value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or not isinstance(value.op, Op):
            return binding
        if value.op.name not in ("loop", "loop_with_effects"):
            return binding
        indices = _indices(value)
        if indices is None or len(indices) > self.limit or (not indices and value.attrs.get("stacked")):
            return binding
        return binding if self._branches(value) else self._calls(binding, value, indices)

    def _branches(self, loop: Call) -> bool:
        """Whether the body chooses: what it leaves out for an index may be wrong for that index."""
        body = self.functions.get(get_op("loop").values(replace(loop, op=Op("loop")))["body"])
        return body is not None and any(isinstance(node, If) for node in walk(body))

    def _calls(self, binding: VarBinding, loop: Call, indices: range) -> list[Binding]:
        parts, span = get_op("loop").values(replace(loop, op=Op("loop"))), derived(binding.span, self.origin)
        initial, types = parts["initial"], carried_types(parts["out_ty"], parts["stacked"])
        stacked = stacked_types(parts["out_ty"], parts["stacked"])
        kept: list[list[Expr]] = [[] for _ in stacked]
        fields = initial.fields if isinstance(initial, Tuple) else None
        carried: list[Expr] = list(fields or (TupleGetItem(initial, number) for number in range(len(types))))
        made: list[Binding] = []
        for index in indices:
            call = Call(parts["body"], (PrimValue(index, "int64"), *carried), span=span)
            result = self.fresh(binding.var.name, infer_type(call, self.context), span)
            made.append(VarBinding(result, call, span=span))
            carried = []
            for number, ty in enumerate((*types, *map(row_type, stacked))):
                item = self.fresh(f"{binding.var.name}_{number}", ty, span)
                made.append(VarBinding(item, TupleGetItem(result, number), span=span))
                (carried if number < len(types) else kept[number - len(types)]).append(item)
        for rows, ty in zip(kept, stacked, strict=True):
            item = self.fresh(f"{binding.var.name}_rows", ty, span)
            made.append(VarBinding(item, get_op("stack").bind([Tuple(tuple(rows))], {"axis": 0}, span), span=span))
            carried.append(item)
        return [*made, replace(binding, value=Tuple(tuple(carried), span=span))]


def _indices(loop: Call) -> range | None:
    """The indices of a loop whose bounds are written out; None for another one."""
    parts = get_op("loop").values(replace(loop, op=Op("loop")))
    bounds = parts["range"]
    if parts["condition"] is not None or not isinstance(bounds, Tuple):
        return None
    numbers = [bound.value for bound in bounds.fields if isinstance(bound, PrimValue) and isinstance(bound.value, int)]
    if len(numbers) != 3 or not numbers[2]:
        return None
    return range(*numbers)
