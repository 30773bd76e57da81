"""Types and sizes in text for TVM."""

from __future__ import annotations

from typing import Any

from weft import dtypes
from weft.ir.deduction.device_mesh import DTensorType
from weft.ir.deduction.subtyping import type_text
from weft.ir.dim import DimExpr
from weft.ir.graph import PrimValue
from weft.ir.node import FrozenMap
from weft.ir.node import replace as node_replace
from weft.ir.types import AnyType, FuncType, PrimType, StringType, Type, VDevice
from weft.script.forms.holes import string_text
from weft.script.printer.tvm.dim import tvm_dim
from weft.script.printer.tvm.style import TVM, TvmPrinter
from weft.script.printer.tvm.values import typed_number
from weft.script.printer.types import (
    show_dim,
    show_func_type,
    show_lanes,
    show_prim_type,
    show_scalar_value,
    show_size,
    show_type,
    show_type_value,
    show_vdevice,
)
from weft.target.syntax import parse_target

__all__ = []


@TVM(show_type)
def _show_type(printer: TvmPrinter, ty: Type) -> str:
    """A type."""
    if isinstance(ty, StringType) and not printer.older:
        raise printer.refuse("the type of a string")
    if isinstance(ty, DTensorType) and (ty.mesh is None or ty.placement is None):
        hint = "annotate the variable with its placement"
        raise printer.refuse("a spread tensor whose place is not said", hint=hint)
    return show_type.plain(printer, ty)


@TVM(show_prim_type)
def _prim_type(printer: TvmPrinter, ty: PrimType) -> str:
    if ty.value is None:
        return show_prim_type.plain(printer, ty)
    if not printer.older:
        hint = 'say R.Prim("int64"), and the size by a shape'
        raise printer.refuse(f"the scalar type {type_text(ty)}", ty, hint)
    return f"R.Prim(value={show_scalar_value(printer, ty)})"


@TVM(show_scalar_value)
def _scalar_value(printer: TvmPrinter, ty: PrimType) -> str:
    """The value of a scalar type, which says the dtype too."""
    if ty.dims is not None:
        return show_dim(printer, ty.dims[0])
    return typed_number(printer, PrimValue(ty.value, ty.dtype))  # type: ignore[arg-type]


@TVM(show_func_type)
def _func_type(printer: TvmPrinter, ty: FuncType) -> str:
    if ty.derive is None and ty.params is not None:
        return show_func_type.plain(printer, ty)
    if ty.params is not None:
        raise printer.refuse("a function type with parameters and a derivation")
    if ty.derive and not isinstance(ty.ret, AnyType):
        raise printer.refuse("a function type with a result and a derivation")
    result = f"derive_func={string_text(ty.derive)}" if ty.derive else f"ret={show_type(printer, ty.ret)}"
    return f"R.Callable({result}, purity={ty.pure})"


@TVM(show_size)
def _dim_text(printer: TvmPrinter, value: DimExpr) -> str:
    """A dimension."""
    return tvm_dim(value, printer.order)


@TVM(show_vdevice)
def _show_vdevice(printer: TvmPrinter, value: Any) -> str:
    """A virtual device, whose target newer readers know as a dictionary only, or by a kind or tag."""
    target = value.target if isinstance(value, VDevice) else None
    if isinstance(target, str) and " " in target.strip() and not printer.older:
        parts = parse_target(target)
        told = {key: int(item) if str(item).isdecimal() else item for key, item in parts.items()}
        value = node_replace(value, target=FrozenMap(told))
    return show_vdevice.plain(printer, value)


@TVM(show_type_value)
def _type_value(printer: TvmPrinter, ty: Type) -> str:
    """A type as an argument, where that of strings has a form."""
    return "I.StringType()" if isinstance(ty, StringType) and not printer.older else show_type_value.plain(printer, ty)


@TVM(show_lanes)
def _show_lanes(printer: TvmPrinter, lanes: int) -> str:
    """A number of lanes; W116 for one lane for each unit of the vector length, which TVM has no dtype for."""
    if isinstance(lanes, dtypes.Scalable) and int(lanes) == 1:
        raise printer.refuse("a vector of T.vscale() lanes")
    return show_lanes.plain(printer, lanes)
