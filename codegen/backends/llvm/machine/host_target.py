"""What native code is compiled for: this machine's own processor, or a general level that it has.

    target ::= a `weft.Target` of kind llvm, in any of its forms

An executable runs in this process, so a processor that the machine is not, another triple, or a feature that it lacks
is refused; so is every option that this code generator could not honour.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from weft.dtypes import is_float
from weft.errors import TargetError
from weft.runtime.device.host import host
from weft.support.records import dataclass
from weft.target import Target
from weft.target.builtin import LLVM
from weft.target.features import LEVELS, named_features, with_flags
from weft.target.machine_model import DOT_PRODUCTS, OVERRIDES, MachineModel, useful_dots
from weft.target.processors import CPUS, CPUFacts
from weft.target.triple import Triple

__all__ = ["LEVELS", "HostTarget", "host_target", "scheduled_machine"]


@dataclass(frozen=True)
class HostTarget:
    """A processor (empty: the machine's own), features switched on or off, an optimisation level.

    `threads` is the most that a parallel loop may use, 0 for what the process says; `overrides` what the target says
    of its machine instead of the processor (`weft.target.machine_model`), `planner` its memory planner.
    """

    cpu: str = ""
    features: str = ""
    opt: int = 2
    fast_math: bool = False
    strict_math: bool = False
    threads: int = 0
    overrides: tuple[tuple[str, int], ...] = ()
    planner: str = ""

    def described(self) -> Target:
        """The target whose derived features hold for the processor: the architecture level that it reaches."""
        return _described(self)

    @property
    def names(self) -> frozenset[str]:
        """The features that the code may use."""
        return _names(self.cpu, self.features)

    @property
    def needs(self) -> str:
        """The features that a machine needs to run the code, as `+a,+b`, then those that it must not use, as `-c`."""
        return _needs(self.cpu, self.features)


_ASKED = ("avx512vbmi2",)
"""Features beyond an architecture level that models of machines ask for, beside those of `DOT_PRODUCTS`."""


@functools.lru_cache(maxsize=64)
def _described(target: HostTarget) -> Target:
    has = target.names
    useful = useful_dots(CPUS.get(host().cpu, CPUFacts("")), has)
    # Instructions that sum floats in an order of their own are not taken where that is asked for to the letter.
    exact = {dot.feature for dot in DOT_PRODUCTS if not (target.strict_math and is_float(dot.types[2]))}
    added = sorted({f"+{name}" for name in useful if name in exact} | {f"+{name}" for name in _ASKED if name in has})
    chosen: dict[str, Any] = {**dict(target.overrides), **({"mattr": added} if added else {})}
    if target.planner:
        chosen["planner"] = target.planner
    if target.threads == 1:  # loops are cut for one core
        chosen["threads"] = 1
    if host().triple.startswith("aarch64"):
        return Target({"kind": "llvm", "mcpu": "generic-aarch64", **chosen})
    level = "x86-64-v4" if "avx512f" in has else "x86-64-v3" if {"avx2", "fma"} <= has else "x86-64"
    return Target({"kind": "llvm", "mcpu": level, **chosen})


@functools.lru_cache(maxsize=64)
def _needs(cpu: str, features: str) -> str:
    names, flags = _names(cpu, features), [flag for flag in features.split(",") if flag]
    base = [f"+{name}" for name in LEVELS.get(cpu, ())] if cpu else host().flags.split(",")
    kept = [item for item in base if item.startswith("-") or item[1:] in names]
    added = [flag for flag in flags if flag.startswith("+") and flag[1:] in names]
    return ",".join(dict.fromkeys([*kept, *added, *(flag for flag in flags if flag.startswith("-"))]))


@functools.lru_cache(maxsize=64)
def _names(cpu: str, features: str) -> frozenset[str]:
    own = host()
    if cpu:
        return named_features(own.triple.split("-")[0], cpu, features)
    return with_flags((name for name, has in own.features.items() if has), features)


def host_target(target: object, opt: int = 2) -> HostTarget:
    """Read a target; TargetError for an unknown kind, option or processor, and for one that this machine cannot run.

    Codes: those of `weft.Target`; W730 not a leaf of kind llvm, W731 another machine, W732 an option that cannot be
    honoured, W733 a wrong optimisation level.

    >>> host_target("llvm -mcpu=x86-64").cpu
    'x86-64'
    """
    if opt not in (0, 1, 2, 3) or isinstance(opt, bool):
        raise TargetError(f"opt is 0, 1, 2 or 3, got {opt!r}", code="W733")
    if isinstance(target, HostTarget):
        return target
    if target is None or target == "llvm":
        return HostTarget(opt=opt)
    wanted = target if isinstance(target, Target) else Target(_spec(target))
    if not wanted.is_leaf or wanted.kind is not LLVM:
        raise TargetError(
            f"machine code of this machine is for targets of kind llvm; got {wanted}", code="W730", hint='say "llvm"'
        )
    options = wanted.to_dict()
    for name in ("mfpu", "mfloat_abi"):
        if name in options:
            raise TargetError(f"native code for {host().triple} has no option -{name}", code="W732")
    _check_triple(options.get("mtriple"))
    features = [str(feature) for feature in options.get("mattr", ())]
    for feature in features:
        _check_feature(feature)
    cpu = _checked_cpu(str(options.get("mcpu", "host")))
    fast, strict = (bool(options.get(name, False)) for name in ("fast_math", "strict_math"))
    threads = max(0, int(options.get("threads") or 0))
    overrides = tuple((name, options[name]) for name in OVERRIDES if options.get(name) is not None)
    planner = str(options.get("planner") or "")
    return HostTarget(cpu, ",".join(features), opt, fast, strict, threads, overrides, planner)


def scheduled_machine(target: Target | None = None) -> MachineModel:
    """The model that code for a leaf is scheduled by: of this machine where the code is for it, else the target's own.

    Without a target it is that of this machine.

    >>> scheduled_machine(Target("llvm -mcpu=cortex-m4")) == Target("llvm -mcpu=cortex-m4").machine
    True
    """
    target = Target("llvm") if target is None else target
    if target.kind is not LLVM:
        return target.machine
    try:
        return host_target(target).described().machine
    except TargetError:  # code for another machine
        return target.machine


def _spec(target: object) -> Any:
    if isinstance(target, (str, Mapping)):
        return target
    raise TargetError(f"a target is text, a dict or a weft.Target, got {type(target).__name__}", code="W730")


def _check_triple(triple: object) -> None:
    own = host().triple
    if triple is None:
        return
    wanted, mine = Triple.parse(str(triple)), Triple.parse(own)
    native = {"linux": "elf", "darwin": "macho", "windows": "coff"}.get(mine.os, "")
    same = (wanted.arch, wanted.os) == (mine.arch, mine.os) and wanted.env in ("", mine.env)
    if not same or wanted.format not in ("", native):
        raise TargetError(f"native code for {triple} cannot run on this machine ({own})", code="W731")


def _check_feature(feature: str) -> None:
    known = host().features
    name = feature.lstrip("+-")
    if name not in known:
        raise TargetError(f"this processor family has no feature {name!r}", code="W732")
    if feature.startswith("+") and not known[name]:
        why = host().refusal([name])
        raise TargetError(f"this machine lacks the feature {name}{why and f': {why}'}", code="W731")


def _checked_cpu(cpu: str) -> str:
    triple, own = host().triple, host().cpu
    if cpu in ("host", "native", own):
        return ""
    if cpu in LEVELS and triple.startswith("x86_64"):
        known = host().features
        lacks = [name for name in LEVELS[cpu] if not known.get(name)]
        if not lacks:
            return cpu
        raise TargetError(f"this machine cannot run code for {cpu}: it lacks {', '.join(lacks)}", code="W731")
    levels = f", {', '.join(LEVELS)}" if triple.startswith("x86_64") else ""
    raise TargetError(f"this machine is no {cpu}; it is {own}", code="W731", hint=f"choose one of: host, {own}{levels}")
