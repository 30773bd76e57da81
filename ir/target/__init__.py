"""Targets: what to compile for. The value, its grammar, the kinds, the processors, the triples."""

from weft.ir.target.config import Config
from weft.ir.target.cpus import CPU
from weft.ir.target.kinds import Bool, Field, Hook, Int, List, Str, TargetKind, remove_target_kind, target_kind
from weft.ir.target.triple import Triple
from weft.ir.target.value import Features, Target, tag
