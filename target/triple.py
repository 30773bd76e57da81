"""Target triples, in LLVM's component order, parsed and normalised without LLVM.

    triple ::= arch ["-" vendor] ["-" os] ["-" environment] ["-" format of objects]

Components are recognised by what they are, not by position, as LLVM's normalisation does: `thumbv6m-none-eabi` has no
vendor; `x86_64-linux-gnu` neither. Source: LLVM, Triple.h.
"""

from __future__ import annotations

import difflib
import re

from weft.errors import Source, Span, TargetError
from weft.support.records import record

__all__ = ["Triple"]

_ARCHITECTURES = {
    "x86_64": ("x86_64", 64), "amd64": ("x86_64", 64), "i386": ("i386", 32), "i586": ("i586", 32), "i686": ("i686", 32),
    "aarch64": ("aarch64", 64), "arm64": ("aarch64", 64), "arm": ("arm", 32), "thumb": ("thumb", 32),
    "riscv32": ("riscv32", 32), "riscv64": ("riscv64", 64), "wasm32": ("wasm32", 32), "wasm64": ("wasm64", 64),
    "nvptx": ("nvptx", 32), "nvptx64": ("nvptx64", 64),
}
_ARM = re.compile(r"(arm|thumb)v(4t|5te|6|6k|6m|7|7a|7r|7m|7em|7s|8a|8r|8m\.base|8m\.main|8\.1m\.main)")
_VENDORS = ("unknown", "pc", "apple", "nvidia", "w64", "none")
_SYSTEMS = (
    "none", "unknown", "linux", "macosx", "darwin", "windows", "wasi", "cuda", "freebsd", "netbsd", "openbsd", "ios",
    "tvos", "watchos", "emscripten", "fuchsia", "uefi",
)
_ENVIRONMENTS = (
    "gnu", "gnux32", "gnueabi", "gnueabihf", "musl", "musleabi", "musleabihf", "eabi", "eabihf", "msvc", "android",
    "androideabi", "simulator", "macabi", "ohos",
)
_FORMATS = ("elf", "coff", "macho", "wasm")


@record
class Triple:
    """A normalised triple.

    >>> str(Triple.parse("thumbv6m-none-eabi")), Triple.parse("x86_64-linux-gnu").os
    ('thumbv6m-none-none-eabi', 'linux')
    """

    arch: str
    vendor: str = "unknown"
    os: str = "unknown"
    env: str = ""
    format: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.arch, self.vendor, self.os, self.env, self.format) if part)

    @property
    def pointer_bits(self) -> int:
        """Width of an address."""
        return 32 if _ARM.fullmatch(self.arch) else _ARCHITECTURES[self.arch][1]

    @property
    def object_formats(self) -> tuple[str, ...]:
        """The formats of objects that LLVM writes for the architecture and the system, whatever the triple asks for.

        >>> Triple.parse("x86_64-linux-gnu").object_formats
        ('elf', 'macho')
        """
        if self.arch.startswith("wasm"):
            return ("wasm",)
        if self.arch.startswith("riscv"):
            return ("elf",)
        windows, arm = self.os in ("windows", "uefi"), bool(_ARM.fullmatch(self.arch)) or self.arch in ("arm", "thumb")
        apple = self.vendor == "apple" or self.os in ("macosx", "darwin", "ios", "tvos", "watchos")
        found = () if arm and (windows or apple) else ("elf",)
        found += ("coff",) if windows else ()
        return found if windows and (arm or self.arch == "aarch64") else (*found, "macho")

    @classmethod
    def parse(cls, text: str) -> Triple:
        """Read a triple; TargetError W720 under the component that is not known."""
        components = text.split("-")
        arch = cls._architecture(text, components[0])
        found = {"vendor": "", "os": "", "env": "", "format": ""}
        offset = len(components[0]) + 1
        for component in components[1:]:
            cls._place(text, component, offset, found)
            offset += len(component) + 1
        # The bare-metal form leaves one of vendor and system out: thumbv6m-none-eabi.
        system = found["os"] or ("none" if found["vendor"] == "none" else "unknown")
        return cls(arch, found["vendor"] or "unknown", system, found["env"], found["format"])

    @staticmethod
    def _architecture(text: str, name: str) -> str:
        if _ARM.fullmatch(name):
            return name
        if name in _ARCHITECTURES:
            return _ARCHITECTURES[name][0]
        known = [*_ARCHITECTURES, "thumbv6m", "thumbv7m", "thumbv7em", "thumbv8m.main", "thumbv8.1m.main", "armv7a"]
        raise _unknown(text, "architecture", name, 0, known)

    @staticmethod
    def _place(text: str, name: str, offset: int, found: dict[str, str]) -> None:
        base = re.sub(r"[\d.]+$", "", name)  # macosx14.2, ios17, android21
        if found["format"]:
            raise _unknown(text, "component", name, offset, [])
        if not found["os"] and not found["env"] and not found["vendor"] and name in _VENDORS:
            found["vendor"] = name
        elif not found["os"] and not found["env"] and (name in _SYSTEMS or base in _SYSTEMS):
            found["os"] = name
        elif not found["env"] and (name in _ENVIRONMENTS or base in ("android", "androideabi", "gnu", "msvc")):
            found["env"] = name
        elif name in _FORMATS:
            found["format"] = name
        else:
            raise _unknown(text, "component", name, offset, [*_VENDORS, *_SYSTEMS, *_ENVIRONMENTS, *_FORMATS])


def _unknown(text: str, what: str, name: str, offset: int, known: list[str]) -> TargetError:
    close = difflib.get_close_matches(name, known, 1)
    return TargetError(
        f"unknown {what} {name!r} in triple {text!r}",
        code="W720",
        span=Span(Source("<triple>", text), offset, offset + max(1, len(name))),
        hint=f"did you mean {close[0]!r}?" if close else None,
    )
