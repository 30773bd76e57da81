"""What the LLVM code generator is asked to compile for.

    target ::= "llvm" option*       option ::= -mcpu=NAME | -mattr=+FEATURE,-FEATURE | -opt-level=0..3

Kinds and options that are not known are refused, never ignored.
"""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass

from weft.errors import TargetError

__all__ = ["HostTarget", "host_target"]

_OPTIONS = ("mcpu", "mattr", "opt-level")


@dataclass(frozen=True)
class HostTarget:
    """The CPU of this machine, or a more general one of its family; empty names mean the machine's own."""

    cpu: str = ""
    features: str = ""
    opt: int = 2

    def __str__(self) -> str:
        return (
            "llvm" + (f" -mcpu={self.cpu}" if self.cpu else "") + (f" -mattr={self.features}" if self.features else "")
        )


def host_target(target: object, opt: int) -> HostTarget:
    """Read a target; TargetError W701 unknown kind, W702 unknown option, W703 wrong value.

    >>> host_target("llvm -mcpu=x86-64-v2", 2).cpu
    'x86-64-v2'
    """
    if opt not in (0, 1, 2, 3) or isinstance(opt, bool):
        raise TargetError(f"opt is 0, 1, 2 or 3, got {opt!r}", code="W703")
    if target is None:
        return HostTarget(opt=opt)
    if isinstance(target, HostTarget):
        return target
    kind, *rest = _words(str(target))
    if kind != "llvm":
        close = difflib.get_close_matches(kind, ["llvm"], 1)
        hint = "did you mean 'llvm'?" if close else "the kinds are: llvm"
        raise TargetError(f"unknown target kind {kind!r}", code="W701", hint=hint)
    options = dict(_option(word) for word in rest)
    cpu = options.get("mcpu", "")
    if "opt-level" in options:
        if options["opt-level"] not in ("0", "1", "2", "3"):
            raise TargetError(f"-opt-level is 0, 1, 2 or 3, got {options['opt-level']!r}", code="W703")
        opt = int(options["opt-level"])
    return HostTarget("" if cpu == "native" else cpu, options.get("mattr", ""), opt)


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"target {text!r}: {error}", code="W703") from None
    if not words:
        raise TargetError("the target is empty", code="W701", hint='say "llvm"')
    return words


def _option(word: str) -> tuple[str, str]:
    name, equals, value = word.lstrip("-").partition("=")
    if not word.startswith("-") or name not in _OPTIONS:
        close = difflib.get_close_matches(name, _OPTIONS, 1)
        hint = f"did you mean -{close[0]}?" if close else f"the options are: {', '.join('-' + o for o in _OPTIONS)}"
        raise TargetError(f"target llvm has no option {word!r}", code="W702", hint=hint)
    if not equals or not value:
        raise TargetError(f"target option -{name} needs a value: -{name}=...", code="W703")
    return name, value
