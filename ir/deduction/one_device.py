"""Programs over tensors that are spread over a mesh of one device: the programs of that device.

    R.DTensor(shape, dtype, mesh, placement)         R.Tensor(shape, dtype): the part of one device of one is the whole
    R.dist.redistribute(x), annotate_sharding(x)     x
    R.dist.call_tir(...), call_tir_local_view(...)   R.call_tir(...)

A module that speaks of a mesh of more devices stays as it is.
"""

from __future__ import annotations

from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType
from weft.ir.graph import Call, Op
from weft.ir.module import IRModule
from weft.ir.node import Node, replace
from weft.ir.structure.visit import rewrite, walk

__all__ = ["on_one_device"]

_SAME = frozenset({"dist.annotate_sharding", "dist.redistribute"})
_KERNELS = frozenset({"dist.call_tir", "dist.call_tir_local_view"})


def on_one_device(module: IRModule) -> IRModule:
    """The module on plain tensors where all its meshes are of one device; else the module.

    >>> on_one_device(IRModule({})).functions
    FrozenMap({})
    """
    parts = [part for function in module.functions.values() for part in walk(function, types=True)]
    values = [value for part in parts if isinstance(part, Call) for value in part.attrs.values()]
    meshes = [part for part in (*parts, *values) if isinstance(part, DeviceMesh)]
    spread = meshes or any(isinstance(part, DTensorType) or _operator(part) in _SAME | _KERNELS for part in parts)
    if not spread or any(len(mesh.devices) > 1 for mesh in meshes):
        return module
    memo: dict[int, object] = {}
    made = {name: rewrite(function, _plain, types=True, memo=memo) for name, function in module.functions.items()}
    return module.with_functions(made)


def _operator(part: Node) -> str:
    return part.op.name if isinstance(part, Call) and isinstance(part.op, Op) else ""


def _plain(part: Node) -> Node | None:
    if isinstance(part, DTensorType):
        return part.tensor
    name = _operator(part)
    if name in _SAME:
        assert isinstance(part, Call)
        return part.args[0]
    return replace(part, op=Op("call_tir")) if name in _KERNELS else None  # type: ignore[call-arg]
