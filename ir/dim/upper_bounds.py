"""The greatest values of symbols that a function states: the attribute `tir_var_upper_bound`, symbol to size.

Planners rely on it, so calling the function with a greater value is an error.
"""

from __future__ import annotations

from weft.errors import VerifyError
from weft.ir.attrs import UPPER_BOUNDS
from weft.ir.graph import Function
from weft.ir.tensor import IntImm

__all__ = ["UPPER_BOUNDS", "upper_bounds"]


def upper_bounds(function: Function) -> dict[str, int]:
    """The stated bounds by symbol; VerifyError W439 when the attribute is no mapping of symbols to sizes."""
    stated = function.attrs.get(UPPER_BOUNDS)
    if stated is None:
        return {}
    try:
        found = {str(name): bound.value if isinstance(bound, IntImm) else bound for name, bound in dict(stated).items()}
    except (TypeError, ValueError):
        found = {"": None}
    if not all(isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0 for bound in found.values()):
        raise VerifyError(
            f"{UPPER_BOUNDS} of {function.name} must map symbols to sizes, got {stated!r}",
            code="W439",
            span=function.span,
            hint=f'write R.func_attr({{"{UPPER_BOUNDS}": {{"n": 2048}}}})',
        )
    return found
