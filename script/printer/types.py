"""Showing types, and the sizes, devices and placements in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType, Placement, placement_text, same_mesh
from weft.ir.dim import DimExpr, format_dim, free_symbols
from weft.ir.graph import Var
from weft.ir.tensor import IntImm, PrimVar
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.holes import string_text
from weft.script.forms.showing import SHOWN
from weft.script.forms.syntax import BY_CLASS, TYPES
from weft.script.printer.forms import fill_form, join, node_values
from weft.script.printer.state import RESERVED, Piece, Printer, separated, varies

__all__ = [
    "show_declaration",
    "show_dim",
    "show_dims",
    "show_extent",
    "show_extents",
    "show_func_type",
    "show_lanes",
    "show_mesh",
    "show_placement",
    "show_prim_type",
    "show_scalar_value",
    "show_shape",
    "show_size",
    "show_type",
    "show_type_value",
    "show_types",
    "show_variable_type",
    "show_vdevice",
    "show_whole_mesh",
]


@SHOWN.hole("dim")
def show_dim(printer: Printer, value: Any) -> str:
    """A dimension: bare where its symbols are names already, else a string."""
    if isinstance(value, int):
        return str(value)
    text = show_size(printer, value)
    if printer.quoted:
        return string_text(text)
    if any(name in RESERVED or name not in printer.symbols for name in free_symbols(value)):
        return string_text(text)
    return text


@varies
def show_size(printer: Printer, value: DimExpr) -> str:
    """The text of an expression over sizes."""
    return format_dim(value)


@SHOWN.hole("dims")
def show_dims(printer: Printer, values: Sequence[Any]) -> str:
    """Dimensions in brackets."""
    return f"[{', '.join(show_dim(printer, item) for item in values)}]"


@SHOWN.hole("shape")
def show_shape(printer: Printer, value: Any) -> str:
    """The shape of a tensor type."""
    if isinstance(value, Var):
        return printer.name(value)
    sizes = [str(size) if type(size) is int else show_dim(printer, size) for size in value]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


@SHOWN.hole("extent")
def show_extent(printer: Printer, value: Any) -> list[Piece]:
    """A size."""
    if isinstance(value, int):
        return [str(value)]
    if isinstance(value, str):
        return [value]
    if printer.quoted and not isinstance(value, IntImm):
        return [string_text(join(printer, [(value, 0)]))]
    return [(value, 0)]


@SHOWN.hole("extents")
def show_extents(printer: Printer, values: Sequence[Any]) -> list[Piece]:
    """A shape."""
    inner = separated(show_extent(printer, value) for value in values)
    return ["(", *inner, ",)" if len(values) == 1 else ")"]


@SHOWN.hole("vdevice")
@varies
def show_vdevice(printer: Printer, value: Any) -> str:
    """A virtual device."""
    return (
        string_text(value)
        if isinstance(value, str)
        else join(printer, fill_form(printer, TYPES["I.vdevice"], node_values(printer, TYPES["I.vdevice"], value)))
    )


@SHOWN.hole("types")
def show_types(printer: Printer, values: Sequence[Type]) -> str:
    """One type, or a list."""
    if len(values) == 1:
        return show_type_value(printer, values[0])
    return f"[{', '.join(show_type_value(printer, item) for item in values)}]"


@varies
def show_type_value(printer: Printer, ty: Type) -> str:
    """A type where it is an argument, not an annotation."""
    return show_type(printer, ty)


@SHOWN.hole("type")
@varies
def show_type(printer: Printer, ty: Type) -> str:
    """A type."""
    if type(ty) is TensorType:
        return _tensor_type(printer, ty)
    if isinstance(ty, DTensorType):
        return _spread_type(printer, ty)
    if isinstance(ty, ShapeType):
        if ty.dims is not None:
            return f"R.Shape({show_dims(printer, ty.dims)})"
        return "R.Shape" if ty.ndim < 0 else f"R.Shape(ndim={ty.ndim})"
    if isinstance(ty, PrimType):
        return show_prim_type(printer, ty)
    if isinstance(ty, TupleType):
        return f"R.Tuple({', '.join(show_type(printer, item) for item in ty.fields)})"
    if isinstance(ty, FuncType):
        return show_func_type(printer, ty)
    form = BY_CLASS.get(type(ty))
    if form is None:
        return repr(ty)
    text = join(printer, fill_form(printer, form, node_values(printer, form, ty)))
    return text[:-2] if text.endswith("()") else text


@varies
def show_prim_type(printer: Printer, ty: PrimType) -> str:
    """The type of a scalar."""
    if ty.value is None:
        return f'R.Prim("{ty.dtype}")'
    return f'R.Prim("{ty.dtype}", value={show_scalar_value(printer, ty)})'


@varies
def show_scalar_value(printer: Printer, ty: PrimType) -> str:
    """The value that a scalar type states."""
    if ty.dims is not None:
        return show_dim(printer, ty.dims[0])
    return SHOWN.hole["literal"](printer, ty.value)


def _tensor_type(printer: Printer, ty: TensorType) -> str:
    if ty.shape is not None and ty.vdevice is None and ty.dtype is not None:
        return f'R.Tensor({show_shape(printer, ty.shape)}, "{ty.dtype}")'
    values = {
        "shape": ty.shape,
        "dtype": ty.dtype,
        "vdevice": ty.vdevice,
        "ndim": ty.ndim if ty.shape is None else -1,
    }
    text = join(printer, fill_form(printer, TYPES["R.Tensor"], values))
    return "R.Tensor" if text == "R.Tensor()" else text


def _spread_type(printer: Printer, ty: DTensorType) -> str:
    tensor = ty.tensor
    values = {
        "shape": tensor.shape,
        "dtype": tensor.dtype,
        "device_mesh": ty.mesh,
        "placement": ty.placement,
        "ndim": tensor.ndim if tensor.shape is None else -1,
    }
    return join(printer, fill_form(printer, TYPES["R.DTensor"], values))


@SHOWN.hole("mesh")
def show_mesh(printer: Printer, mesh: DeviceMesh) -> str:
    """A mesh of devices by its place in the module's infos, or written out."""
    found = next((place for place, known in printer.meshes if same_mesh(known, mesh)), None)
    return string_text(found) if found is not None else show_whole_mesh(printer, mesh)


def show_whole_mesh(printer: Printer, mesh: DeviceMesh) -> str:
    """A mesh of devices, written out."""
    shape = f"({', '.join(map(str, mesh.shape))}{',' if len(mesh.shape) == 1 else ''})"
    first = mesh.devices[0]
    in_row = mesh.devices == tuple(range(first, first + len(mesh.devices)))
    devices = f"I.Range({first}, {first + len(mesh.devices)})" if in_row else str(list(mesh.devices))
    return f"R.device_mesh({shape}, {devices})"


@SHOWN.hole("placement")
def show_placement(printer: Printer, placement: Placement) -> str:
    """A placement."""
    return string_text(placement_text(placement))


@varies
def show_func_type(printer: Printer, ty: FuncType) -> str:
    """The type of a function."""
    if ty.params is not None:
        params = f"({', '.join(show_type(printer, item) for item in ty.params)}{',' if len(ty.params) == 1 else ''})"
        derive = f", derive={string_text(ty.derive)}" if ty.derive else ""
        return f"R.Callable({params}, {show_type(printer, ty.ret)}, {ty.pure}{derive})"
    derive = f", derive={string_text(ty.derive)}" if ty.derive else ""
    return f"R.Callable(ret={show_type(printer, ty.ret)}, pure={ty.pure}{derive})"


@SHOWN.hole("lanes")
@varies
def show_lanes(printer: Printer, lanes: int) -> str:
    """A number of lanes: a constant, or a multiple of `T.vscale()`."""
    return f"T.vscale() * {int(lanes)}" if isinstance(lanes, dtypes.Scalable) else str(lanes)


@varies
def show_variable_type(printer: Printer, variable: PrimVar) -> str:
    """The type of a variable."""
    if variable.dtype != "handle":
        return f"T.{variable.dtype}"
    if variable.pointee is None:
        return "T.handle"
    scope = "" if variable.scope == "global" else f", {string_text(variable.scope)}"
    return f"T.handle({string_text(variable.pointee)}{scope})"


def show_declaration(printer: Printer, variable: PrimVar) -> str:
    """What declares a variable that occurs where nothing binds it."""
    if variable in printer.threads:
        dtype = "" if variable.dtype == "int32" else f', "{variable.dtype}"'
        return f"T.env_thread({string_text(printer.threads[variable])}{dtype})"
    text = show_variable_type(printer, variable)
    return text if text.endswith(")") else f"{text}()"
