"""Arrays as the values of parameters: what `params=` of `weft.compile` and `weft.lower` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.errors import PassError, described
from weft.ir.module import IRModule
from weft.transform.graph.bind_params import BindParams

__all__ = ["bound"]


def bound(module: IRModule, params: Mapping[str, Any] | None) -> IRModule:
    """The module with arrays in place of parameters of `main`, or of its first function; PassError W543."""
    if params is not None and not isinstance(params, Mapping):
        hint = 'params={"w": array} gives the parameter `w` of the function its value'
        raise PassError(f"params maps names to arrays, got {described(params)}", code="W543", hint=hint)
    if not params:
        return module
    name = "main" if "main" in module else next(iter(module.functions))
    return BindParams(name, {key: np.asarray(value) for key, value in params.items()})(module)
