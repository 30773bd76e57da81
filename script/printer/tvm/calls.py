"""Calls of graph functions in text for TVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from weft.ir.dim import DimExpr
from weft.ir.graph import Call, Constant, ExternFunc, Op, PrimValue, Var
from weft.ir.node import FrozenMap
from weft.ir.op import OPS
from weft.ir.op.declare import RUN_TIME, ParamKind
from weft.ir.types import TensorType, VDevice
from weft.script.forms.defaults import DEVICE_KINDS
from weft.script.printer.literals import show_literal
from weft.script.printer.tvm.style import TVM, TvmPrinter
from weft.script.printer.values import (
    is_declared,
    show_argument,
    show_call,
    show_constant,
    show_leaf,
    show_operator,
    show_scalar,
)
from weft.support.records import dataclass

__all__ = []


@dataclass(frozen=True)
class _Form:
    """How a call of an operator differs from ours.

    `required` arguments cannot be left out, `names` are other names of arguments, `single` ones take no list, `plain`
    ones no symbols, `called` is its name there.
    """

    required: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    single: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    called: str = ""


_CALLS: dict[str, _Form] = {
    "flip": _Form(single=("axis",)),
    "one_hot": _Form(plain=("depth",)),
    "repeat": _Form(plain=("repeats",)),
    "tile": _Form(plain=("repeats",)),
    "zeros": _Form(("dtype",)),
    "ones": _Form(("dtype",)),
    "call_pure_packed": _Form(("ty_args",)),
    "call_inplace_packed": _Form(("ty_args",)),
    "call_py": _Form(names={"func_name": "py_func_name"}, called="call_py_func"),
    "invoke_closure": _Form(("ty_args",)),
    "invoke_pure_closure": _Form(("ty_args",)),
    "builtin.alloc_tensor": _Form(("runtime_device_index",)),
    "memory.alloc_storage": _Form(("virtual_device_index", "storage_scope", "dtype")),
    "vm.alloc_storage": _Form(("runtime_device_index", "dtype"), {"size": "shape"}),
    "vm.alloc_tensor": _Form(names={"runtime_device_index": "runtime_device_ind"}),
}
_OF_NUMBERS = frozenset({"arange", "clip", "eye", "eye_like", "tril", "triu"})  # these take no tensors as numbers
_LOGICAL = frozenset({"logical_and", "logical_not", "logical_or", "logical_xor"})  # these give the dtype that they take
_OWN = ("dynamic.", "inspect.")  # operators that only weft has a spelling for


@TVM(show_call)
def _call(printer: TvmPrinter, call: Call) -> str:
    """A call."""
    if isinstance(call.op, Op):
        definition = OPS.get(call.op.name)
        if definition is None or call.op.name.startswith(_OWN) or not is_declared(definition, call):
            raise printer.refuse(f"R.{call.op.name}", call)
        printer.operator = call.op.name
        if call.op.name in _LOGICAL and any(_not_bool(argument) for argument in call.args):
            raise printer.refuse(f"R.{call.op.name} of numbers", call, hint='convert them: R.astype(x, "bool")')
    if isinstance(call.op, ExternFunc) and call.op.ty is not None and not call.attrs and not call.ty_args:
        # call_packed takes a name only
        return f"{show_leaf(printer, call.op)}({', '.join(show_leaf(printer, item) for item in call.args)})"
    return show_call.plain(printer, call)


@TVM(show_operator)
def _operator(printer: TvmPrinter, name: str, definition: Any, call: Call) -> str:
    """A call as the operator's declaration says it is called there."""
    form = _CALLS.get(name)
    if form is None:
        return show_operator.plain(printer, name, definition, call)
    values = definition.values(call)
    given = {param.name for param, _ in definition.unbind(call)}
    parts: list[str] = []
    in_order = True
    for param in definition.params:
        value = values[param.name]
        if param.kind == ParamKind.VARIADIC:
            parts.extend(show_leaf(printer, item) for item in value)
            in_order = False
            continue
        if param.name not in given and param.name not in form.required:
            in_order = False
            continue
        in_order = in_order and param.kind in RUN_TIME
        if param.name in form.plain and any(isinstance(item, DimExpr) for item in _items(value)):
            raise printer.refuse(f"a symbol as the argument '{param.name}' of R.{name}", call)
        if param.name in form.single and isinstance(value, tuple):
            if len(value) != 1:
                raise printer.refuse(f"R.{name} with {len(value)} values of '{param.name}'", call)
            value = value[0]
        text = _required_argument(printer, param, value)
        parts.append(text if in_order else f"{form.names.get(param.name, printer.spelled(param.name))}={text}")
    return f"R.{form.called or name}({', '.join(parts)})"


def _required_argument(printer: TvmPrinter, param: Any, value: Any) -> str:
    if value is None and param.kind == ParamKind.TYPES:
        raise printer.refuse(f"a call without {printer.spelled(param.name)}")
    if value is None:
        return show_literal(printer, param.default)
    if param.kind == ParamKind.TYPES and printer.operator in ("invoke_closure", "invoke_pure_closure"):
        text = show_argument(printer, param, value)  # these take types, and no names that stand for one
        return text if text.endswith((")", "]")) else f"{text}()"
    return show_argument(printer, param, value)


@TVM(show_argument)
def _argument(printer: TvmPrinter, param: Any, value: Any) -> str:
    """An argument of an operator by the kind of its parameter."""
    if param.name == "fill_value" and isinstance(value, PrimValue):
        return _filling(printer, value)
    if param.kind == ParamKind.PRIM and isinstance(value, (PrimValue, Var)):
        return show_scalar(printer, value) if isinstance(value, PrimValue) else show_leaf(printer, value)
    if param.kind == ParamKind.PRIM and isinstance(value, Constant) and printer.operator in _OF_NUMBERS:
        raise printer.refuse(f"a constant tensor as the argument '{param.name}'", value, hint="use R.prim_value")
    if param.name == "tir_vars" and not printer.older:
        raise printer.refuse("a kernel call with tir_vars", value, hint="give the kernel its sizes by its buffers")
    if param.of.startswith("index_map") and isinstance(value, str):
        return f"T.index_map({value})"
    if param.of.startswith("device") and isinstance(value, VDevice) and printer.operator == "hint_on_device":
        return _device(printer, value)
    return show_argument.plain(printer, param, value)


def _filling(printer: TvmPrinter, value: PrimValue) -> str:
    """A number that fills a tensor, which is a tensor there."""
    if isinstance(value.value, DimExpr):
        raise printer.refuse(f"the size '{value.value}' as the value that fills a tensor", value)
    return show_constant(printer, Constant(np.array(value.value, value.dtype), value.dtype))


def _device(printer: TvmPrinter, value: VDevice) -> str:
    """A device of the run time, which is told by its number."""
    kind = value.target.get("kind") if isinstance(value.target, FrozenMap) else str(value.target)
    number = next((number for number, name in DEVICE_KINDS.items() if name == kind), None)
    if number is None or value.scope != "global":
        raise printer.refuse("a hint with a target", value)
    return f"R.device({number}, {value.index})"


def _items(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _not_bool(value: Any) -> bool:
    ty = value.ty
    return isinstance(ty, TensorType) and ty.dtype is not None and ty.dtype != "bool"
