"""Targets: what to compile for. The value, its grammar, the kinds, the processors, the triples."""

from weft.target.boards import BOARDS, Board
from weft.target.config import Config
from weft.target.kinds import Bool, Field, Hook, Int, List, Size, Str, TargetKind, remove_target_kind, target_kind
from weft.target.machine_model import DOT_PRODUCTS, DotProduct, MachineModel
from weft.target.processors import CPU
from weft.target.triple import Triple
from weft.target.value import Features, Target, tag

__all__ = [
    "BOARDS",
    "CPU",
    "DOT_PRODUCTS",
    "Board",
    "Bool",
    "Config",
    "DotProduct",
    "Features",
    "Field",
    "Hook",
    "Int",
    "List",
    "MachineModel",
    "Size",
    "Str",
    "Target",
    "TargetKind",
    "Triple",
    "remove_target_kind",
    "tag",
    "target_kind",
]

if __name__ != "weft.target":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.target, not target")
