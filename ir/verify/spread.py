"""The refusal of what no executor runs: programs over tensors that are spread over a mesh of devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.errors import Span, TargetError
from weft.ir.deduction.device_mesh import is_spread
from weft.ir.deduction.subtyping import type_text
from weft.ir.graph import Call, Function, Op, Var
from weft.ir.module import BaseFunc
from weft.ir.structure.visit import walk

__all__ = ["refuse_spread"]

_OPERATORS = frozenset({"dist.annotate_sharding", "dist.redistribute", "dist.call_tir", "dist.call_tir_local_view"})


def refuse_spread(functions: Iterable[BaseFunc]) -> None:
    """TargetError W741 at the first spread tensor, or operator of such, of the functions; nothing where there is none.

    >>> refuse_spread([])
    """
    for function in functions:
        for what, span in _spread_parts(function) if isinstance(function, Function) else ():
            raise TargetError(
                f"tensors that are spread over a mesh of devices cannot run: this is {what}",
                code="W741",
                span=span or function.span,
                hint="write the program of one device, on R.Tensor",
            )


def _spread_parts(function: Function) -> Iterator[tuple[str, Span | None]]:
    seen: set[Var] = set()
    for part in walk(function):
        if isinstance(part, Var) and part not in seen:
            seen.add(part)
            if not is_spread(part.ty):
                continue
            yield f"{part.name}: {type_text(part.ty)}", part.span
        elif isinstance(part, Call) and isinstance(part.op, Op) and part.op.name in _OPERATORS:
            yield f"R.{part.op.name}", part.span
        elif isinstance(part, Function) and is_spread(part.ret_type):
            yield f"the result {type_text(part.ret_type)} of {part.name}", part.span
