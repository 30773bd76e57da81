"""Which parameters of a function are its weights: those after the first `num_input`, an attribute of the function."""

from __future__ import annotations

from weft.errors import PassError
from weft.ir import Function, Var
from weft.ir.attrs import NUM_INPUT

__all__ = ["NUM_INPUT", "split_parameters"]


def split_parameters(function: Function) -> tuple[tuple[Var, ...], tuple[Var, ...]] | None:
    """The inputs and the weights; None for a function without `num_input`, PassError W546 for a wrong number."""
    count = function.attrs.get(NUM_INPUT)
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= len(function.params):
        raise PassError(
            f"num_input of {function.name!r} is a number of its {len(function.params)} parameters, got {count!r}",
            code="W546",
            span=function.span,
        )
    return function.params[:count], function.params[count:]
