"""Running one operator on arrays, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import symbol
from weft.ir.graph import Var
from weft.ir.interpret import interpret
from weft.ir.op import get_op
from weft.ir.op.common import kernel_call
from weft.ir.types import TensorType

__all__ = ["apply", "reference"]


def apply(name: str, *arrays: Any, symbolic: bool = False, **attrs: Any) -> Any:
    """An operator's lowered loops on arrays (None: absent); `symbolic` hides every size from the compiler."""
    variables: list[Any] = []
    for position, array in enumerate(arrays):
        if array is None:
            variables.append(None)
            continue
        dims = [symbol(f"s{position}_{axis}") if symbolic else size for axis, size in enumerate(array.shape)]
        variables.append(Var(f"x{position}", TensorType(tuple(dims), str(array.dtype))))
    definition = get_op(name)
    call = definition.bind(variables, attrs)
    context = TypeContext()
    kernel = definition.lower(call, context, "kernel")
    assert kernel is not None
    bb = BlockBuilder()
    params = [variable for variable in variables if variable is not None]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(kernel_call(call, kernel, bb.add_func(kernel, "kernel"), context)))
    return interpret(bb.get())["main"](*(array for array in arrays if array is not None))


def reference(name: str, *arrays: Any, **attrs: Any) -> Any:
    """The operator's NumPy reference on the same arrays."""
    variables = [None if array is None else Var("x", TensorType(array.shape, str(array.dtype))) for array in arrays]
    definition = get_op(name)
    with np.errstate(all="ignore"):
        return definition.run(definition.bind(variables, attrs), [array for array in arrays if array is not None], {})
