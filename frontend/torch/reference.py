"""Nodes without a native form: a call of a Python function that runs the operator in PyTorch.

    R.call_py("weft.frontend.torch:call", (R.str(data), x, ...), out_ty=...)

`data` is JSON: the operator, and its arguments, in which {"value": i} is the i-th operand of the call, {"torch": name}
a dtype. Importing `weft.frontend.torch` registers the function; it calls operators of PyTorch's own namespaces by name
and none that reads files. Other namespaces are allowed in a process by `allow`, which importing a program with such an
operator does as well: the program has run them already.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import ModelError
from weft.frontend.extras import require
from weft.frontend.references import as_reference
from weft.frontend.torch.program import array_of
from weft.runtime.registry import register_func
from weft.support.dlpack import to_dlpack

__all__ = ["FUNCTION", "allow", "call_data", "run_call"]

FUNCTION = "weft.frontend.torch:call"
_allowed = {"aten", "prims", "torchvision", "quantized_decomposed"}


def allow(namespace: str) -> None:
    """Let texts of modules call the operators of a namespace of PyTorch's in this process."""
    _allowed.add(namespace)


def call_data(target: Any, args: Any, kwargs: Any, operand: Callable[[Any], int | None]) -> str:
    """What the text of a module keeps of a call; `operand` numbers values of the run, None for others."""
    torch = require("torch", "torch")

    def strides(value: Any) -> dict[str, list[int]]:
        """How an operand lies in memory, where its operator looks at that."""
        made = value.meta["val"] if target._opname.startswith("as_strided") else None
        if made is None or made.is_contiguous() or not all(isinstance(step, int) for step in made.stride()):
            return {}
        return {"strides": list(made.stride())}

    def coded(value: Any) -> Any:
        number = operand(value)
        if number is not None:
            return {"value": number, **strides(value)}
        if isinstance(value, (list, tuple)):
            return [coded(item) for item in value]
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, complex):
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, float):
            return {"float": value.hex() if value == value else "nan"}
        raise ModelError(f"an argument of {target} has no text: {type(value).__name__}", code="W977")

    allow(target.namespace)
    name = f"{target.namespace}.{target._opname}.{target._overloadname}"
    return json.dumps({"op": name, "args": coded(list(args)), "kwargs": {k: coded(v) for k, v in kwargs.items()}})


def run_call(data: str, *values: Any) -> Any:
    """Run an operator on its operands; ModelError W976 where PyTorch has none of the name, W978 for what it raises."""
    torch = require("torch", "torch")
    call = json.loads(data)
    space, name, overload = call["op"].split(".")
    if "file" in name or not space.isidentifier():
        raise ModelError(f"{call['op']} is no operator that an imported program calls", code="W976")
    if space not in _allowed:
        raise ModelError(
            f"{call['op']} is an operator of another package, which has not been allowed here",
            code="W976",
            hint=f"import the package that defines it, and weft.frontend.torch.allow({space!r})",
        )
    try:
        operator = getattr(getattr(getattr(torch.ops, space), name), overload)
    except AttributeError:
        raise ModelError(f"PyTorch has no operator {call['op']}", code="W976") from None
    given = [_tensor(torch, value) for value in values]

    def decoded(value: Any) -> Any:
        if isinstance(value, list):
            return [decoded(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "strides" in value:
            return _lying(torch, given[value["value"]], value["strides"])
        ((kind, item),) = value.items()
        if kind == "value":
            return given[item]
        if kind == "torch":
            return getattr(torch, item)
        if kind == "complex":
            return complex(*map(float.fromhex, item))
        return torch.device(item) if kind == "device" else float("nan") if item == "nan" else float.fromhex(item)

    with torch.no_grad(), as_reference("PyTorch", call["op"]):
        result = operator(*decoded(call["args"]), **{key: decoded(item) for key, item in call["kwargs"].items()})
    return tuple(map(_array, result)) if isinstance(result, (tuple, list)) else _array(result)


def _tensor(torch: Any, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return torch.from_dlpack(to_dlpack(np.array(value, copy=True)))  # which has types that NumPy lacks


def _lying(torch: Any, tensor: Any, strides: list[int]) -> Any:
    """A tensor with these strides."""
    return torch.empty_strided(tuple(tensor.shape), strides, dtype=tensor.dtype).copy_(tensor)


def _array(value: Any) -> Any:
    """A dense tensor as an array; a sparse one, and what is none, as it is."""
    if not hasattr(value, "detach") or "strided" not in str(value.layout):
        return value
    return array_of(value.resolve_conj().resolve_neg())


register_func(FUNCTION, run_call)
