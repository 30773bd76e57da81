"""What scripts say of devices by name: axes of threads, virtual devices of the module, kinds of targets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from weft.errors import WeftError
from weft.ir.node import FrozenMap
from weft.ir.types import VDevice
from weft.script.forms.defaults import DEVICE_KINDS
from weft.target import Target
from weft.target.kinds import find_kind

__all__ = ["FOREIGN_TARGETS", "THREAD_AXES", "is_target_kind", "is_thread_axis", "why_no_device"]

THREAD_AXES = "threadIdx.x, blockIdx.y, clusterCtaIdx.z, vthread.x, vthread"
_THREAD_AXIS = re.compile(r"(threadIdx|blockIdx|clusterCtaIdx)\.[xyz]|(v|c)thread(\.[xyz])?|pipeline|")

# Kinds of targets that texts for TVM name and that weft does not compile for.
FOREIGN_TARGETS = frozenset(
    "cuda nvptx rocm opencl metal vulkan webgpu hexagon c ext_dev test hybrid trn adreno aocl sdaccel composite "
    "qnn_dsp ccompiler iphoneos".split()
)


def is_thread_axis(tag: Any) -> bool:
    """Whether a text names an axis of threads.

    >>> is_thread_axis("threadIdx.x"), is_thread_axis("threadIdx.q")
    (True, False)
    """
    return isinstance(tag, str) and _THREAD_AXIS.fullmatch(tag) is not None


def _kind(target: Any) -> str | None:
    """The name of the kind of a target in any form."""
    if isinstance(target, Target):
        return target.kind.name
    stated = target.get("kind") if isinstance(target, Mapping) else target
    return stated.split()[0] if isinstance(stated, str) and stated.split() else None


def is_target_kind(target: Any) -> bool:
    """Whether a target, given as a string or a dictionary, is of a kind of weft or of TVM."""
    name = _kind(target)
    if name is None or name in FOREIGN_TARGETS or name in DEVICE_KINDS.values():
        return name is not None
    try:
        find_kind(name)
    except WeftError:
        return False
    return True


def why_no_device(text: str, infos: FrozenMap) -> str | None:
    """None when a text (`llvm`, `cuda:1`, `vdevice:2` by place) names a device of the module, else what it has."""
    devices = [item for item in infos.get("vdevice", ()) if isinstance(item, VDevice)]
    kinds = [_kind(item.target) for item in devices]
    name, _, rest = text.partition(":")
    number = rest.partition(":")[0] or "0"
    if name == "vdevice" and number.isdigit() and int(number) < len(devices):
        return None
    same = [item for item, kind in zip(devices, kinds, strict=True) if kind == name]
    if same and number.isdigit() and (int(number) < len(same) or any(item.index == int(number) for item in same)):
        return None
    known = dict.fromkeys(f"{kind}:{kinds[:place].count(kind)}" for place, kind in enumerate(kinds))
    return f"it has: {', '.join(known) or 'none'}"
