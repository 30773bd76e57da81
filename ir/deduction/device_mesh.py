"""Tensors that are spread over a mesh of devices.

    mesh       ::= device_mesh(shape, devices)       a grid of device numbers, in row-major order
    placement  ::= one entry for each dimension of the mesh: "S[i]" splits dimension i of the tensor, "R" repeats it
    type       ::= DTensor(tensor, mesh, placement)  mesh and placement are None where nothing has said them yet

The tensor of the type is the whole one; `local_tensor` is the part on one device. Types speak of spread tensors and
programs are read, checked and transformed; running them on several devices is not part of the toolkit.
"""

from __future__ import annotations

import math
import re

from weft.errors import ScriptError, ShapeError, Span
from weft.ir.dim import Dim
from weft.ir.node import Node, ignored, node, replace
from weft.ir.types import TensorType, TupleType, Type

__all__ = [
    "DTensorType",
    "DeviceMesh",
    "Placement",
    "check_placement",
    "is_spread",
    "local_tensor",
    "parse_placement",
    "placement_text",
    "same_mesh",
    "whole_tensors",
]

Placement = tuple[int | None, ...]
_SHARD = re.compile(r"S\[(\d{1,9})\]")


@node
class DeviceMesh(Node):
    """A grid of devices by number; ShapeError W205 when the shape has another number of places than devices.

    >>> DeviceMesh((2, 2), (0, 1, 2, 3)).shape
    (2, 2)
    """

    shape: tuple[int, ...]
    devices: tuple[int, ...]
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "devices", tuple(self.devices))
        if any(size < 1 for size in self.shape):
            raise ShapeError(f"a mesh of shape {self.shape} has no devices", code="W205", span=self.span)
        if math.prod(self.shape) != len(self.devices):
            places, given = math.prod(self.shape), len(self.devices)
            raise ShapeError(
                f"a mesh of shape {self.shape} has {places} place{'s' * (places != 1)}, got {given} device"
                f"{'s' * (given != 1)}",
                code="W205",
                span=self.span,
            )
        if len(set(self.devices)) != len(self.devices):
            raise ShapeError("a device stands twice in the mesh", code="W205", span=self.span)


@node
class DTensorType(Type):
    """A tensor that is spread over a mesh as its placement says.

    >>> DTensorType(TensorType((4, 4), "float32"), DeviceMesh((2,), (0, 1)), (0,)).placement
    (0,)
    """

    tensor: TensorType
    mesh: DeviceMesh | None = None
    placement: Placement | None = None
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        if self.placement is not None:
            object.__setattr__(self, "placement", tuple(self.placement))
            check_placement(self.placement, self.mesh, self.tensor.ndim, self.span)


def check_placement(placement: Placement, mesh: DeviceMesh | None, ndim: int, span: Span | None = None) -> None:
    """ShapeError W205 for another number of entries than the mesh has dimensions, W203 for a dimension out of range."""
    size = len(mesh.shape) if mesh is not None else 0
    if len(placement) != size:
        raise ShapeError(
            f"the mesh has {size} dimension{'s' * (size != 1)}, the placement {len(placement)} "
            f"entr{'ies' if len(placement) != 1 else 'y'}",
            code="W205",
            span=span,
            hint='one entry for each dimension of the mesh: "S[i]" or "R"',
        )
    for axis in placement:
        if axis is not None and 0 <= ndim <= axis:
            raise ShapeError(f"dimension {axis} of a tensor of {ndim} dimensions is split", code="W203", span=span)


def parse_placement(text: str, span: Span | None = None) -> Placement:
    """The placement that a text says; ScriptError W114 for anything else.

    >>> parse_placement("S[0], R")
    (0, None)
    """
    placement: list[int | None] = []
    for part in text.split(",") if text.strip() else ():
        found = _SHARD.fullmatch(part.strip())
        if found is None and part.strip() != "R":
            raise ScriptError(
                f"{part.strip()!r} is no entry of a placement", code="W114", span=span, hint='write "S[0], R"'
            )
        placement.append(int(found[1]) if found is not None else None)
    return tuple(placement)


def placement_text(placement: Placement) -> str:
    """The text of a placement.

    >>> placement_text((0, None))
    'S[0], R'
    """
    return ", ".join("R" if axis is None else f"S[{axis}]" for axis in placement)


def same_mesh(a: DeviceMesh | None, b: DeviceMesh | None) -> bool:
    """Whether two meshes are the same grid of the same devices."""
    if a is None or b is None:
        return a is b
    return a is b or (a.shape == b.shape and a.devices == b.devices)


def is_spread(ty: Type | None) -> bool:
    """Whether a type is, or has as a field, that of a spread tensor."""
    pending, seen = [ty], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, DTensorType):
            return True
        if isinstance(part, TupleType) and id(part) not in seen:
            seen.add(id(part))
            pending.extend(part.fields)
    return False


def whole_tensors(ty: Type) -> Type:
    """The type with spread tensors as the whole tensors that they are."""
    if isinstance(ty, TupleType):
        return replace(ty, fields=tuple(map(whole_tensors, ty.fields))) if is_spread(ty) else ty
    return ty.tensor if isinstance(ty, DTensorType) else ty


def local_tensor(ty: DTensorType) -> TensorType:
    """The part of a spread tensor that one device has; ShapeError W201 where a size is not divided evenly."""
    dims = ty.tensor.dims
    if dims is None or ty.mesh is None or ty.placement is None:
        return ty.tensor
    result: list[Dim] = list(dims)
    for size, axis in zip(ty.mesh.shape, ty.placement, strict=True):
        if axis is None:
            continue
        dim = result[axis]
        if isinstance(dim, int) and dim % size:
            raise ShapeError(f"dimension {axis}, of size {dim}, on {size} devices", code="W201", span=ty.span)
        result[axis] = dim // size
    return replace(ty.tensor, shape=tuple(result))
