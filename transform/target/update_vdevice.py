"""UpdateVDevice: one virtual device of a module becomes another, wherever it stands.

    UpdateVDevice(VDevice("llvm", 0, "global"), 0)          the first of `global_infos["vdevice"]`

Types, attributes of calls and the list of the module follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.errors import PassError, described
from weft.ir import IRModule, VDevice, rewrite, structural_equal
from weft.support.records import dataclass
from weft.transform.infra.base import Pass
from weft.transform.infra.generators.choices import Choices

__all__ = ["UpdateVDevice"]

VDEVICES = "vdevice"
"""The key of the devices among the global infos of a module."""


@dataclass(frozen=True)
class UpdateVDevice(Pass):
    """Put a virtual device in the place of the one with an index in the module.

    Raises PassError W506 for an index that the module does not have, or what is no device.
    """

    text_name: ClassVar[str] = "update-vdevice"
    keeps_types: ClassVar[bool] = False
    new_vdevice: VDevice
    index: int | None

    def __post_init__(self) -> None:
        if not isinstance(self.new_vdevice, VDevice):
            message = f"new_vdevice is a virtual device, got {described(self.new_vdevice)}"
            raise PassError(message, code="W506", hint='VDevice("llvm", 0, "global")')

    @classmethod
    def sample(cls, choices: Choices) -> tuple[UpdateVDevice, str]:
        """Two devices, one of which changes."""
        index = choices.integer(0, 1)
        return (
            cls(VDevice("llvm -mcpu=x86-64", 3, "global"), index),
            """@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm", 0, "global"), I.vdevice("llvm", 1, "global")]})

    @R.function
    def main(x: R.Tensor((4,), "float32", "vdevice:0")):
        with R.dataflow():
            y = R.exp(x)
            out = R.to_vdevice(y, "vdevice:1")
            R.output(out)
        return out
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """The module with the device in all its functions."""
        devices = module.global_infos.get(VDEVICES, ())
        listed = tuple(devices) if isinstance(devices, Sequence) else ()
        if self.index is None or isinstance(self.index, bool) or not 0 <= self.index < len(listed):
            raise PassError(f"the module has {len(listed)} virtual devices, none with index {self.index}", code="W506")
        old = listed[self.index]
        if structural_equal(old, self.new_vdevice):
            return module

        def changed(node: object) -> VDevice | None:
            return self.new_vdevice if isinstance(node, VDevice) and structural_equal(node, old) else None

        functions = {name: rewrite(function, changed, types=True) for name, function in module.items()}
        infos = {**module.global_infos, VDEVICES: (*listed[: self.index], self.new_vdevice, *listed[self.index + 1 :])}
        return module.with_functions(functions).with_global_infos(infos)
