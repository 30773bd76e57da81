"""This machine as LLVM sees it: triple, processor, features, and which LLVM that is.

Only LLVM knows, and to load it takes longer than to load most programs. What it says follows from the processor, which
the system describes, and from its own library, so it is kept among compiled code under a hash of both and of the time
that the system was started. Where the system describes no processor, LLVM is asked.

Matrices in registers (Intel AMX, features of the name `amx-*`) have a state that is too large to be kept for every
process. Linux lets a process use them that asks, once and for all of its threads and children (`arch_prctl` with
`ARCH_REQ_XCOMP_PERM`, from 5.16 on); an instruction without it ends the process. Where the system refuses, or is not
known here, these features are off.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.device.code_cache import object_cache
from weft.support.forks import in_child, no_fork
from weft.support.records import dataclass
from weft.version import VERSION

__all__ = ["ASKS_FOR_MATRICES", "Host", "allowed", "binding", "host", "llvm_version", "refusal_of_matrices"]

ASKS_FOR_MATRICES = (158, 0x1023, 18)
"""The system call: SYS_arch_prctl of asm/unistd_64.h, ARCH_REQ_XCOMP_PERM of asm/prctl.h, the number of the state."""
_VARIES = ("cpu mhz", "bogomips")
"""Lines of the description that are another at other times."""
_MOST = 1 << 14
"""Bytes of it that are read: the first processor is in them."""


@dataclass(frozen=True)
class Host:
    """What LLVM says of this machine; `version` is that of LLVM and its binding."""

    triple: str
    cpu: str
    features: Mapping[str, bool]
    """Every feature of this family of processors, and whether this one has it."""
    flags: str
    """The same as LLVM takes it: `+a,-b`."""
    version: str
    refused: str = ""
    """Why features of matrices that the processor has are off; empty where none is."""

    def refusal(self, lacking: Iterable[str]) -> str:
        """Why features that the processor may have are off; empty where none of them was refused.

        >>> Host("", "", {}, "", "", "not permitted").refusal(["amx-int8"])
        'not permitted'
        """
        return self.refused if any(map(_is_of_matrices, lacking)) else ""


def _is_of_matrices(feature: str) -> bool:
    return feature.startswith("amx-")


@functools.cache
def binding() -> Any:
    """llvmlite's binding with the host's code generator ready; ArtifactError W809 where it is not installed."""
    with no_fork():
        try:
            import llvmlite.binding as llvm  # a heavy import, so only when something is compiled
        except ImportError as error:
            raise ArtifactError(
                "machine code is made by llvmlite, which is not installed", code="W809", hint="pip install llvmlite"
            ) from error
        in_child(functools.partial(_free_lock, llvm))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm


def _free_lock(llvm: Any) -> None:
    """Give a child of a fork the lock of llvmlite, which another thread of the parent may have held."""
    lock: Any = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)
    if hasattr(lock, "_at_fork_reinit"):
        lock._at_fork_reinit()


@functools.cache
def host() -> Host:
    """This machine, as far as this process may use it."""
    return allowed(_described(), refusal_of_matrices)


def allowed(found: Host, refusal: Callable[[], str]) -> Host:
    """A machine without matrices in registers if the system refuses them, which is asked where there are any."""
    matrices = [name for name, has in found.features.items() if has and _is_of_matrices(name)]
    refused = refusal() if matrices else ""
    if not refused:
        return found
    features = {name: has and name not in matrices for name, has in found.features.items()}
    flags = ",".join(f"{'-' if flag[1:] in matrices else flag[0]}{flag[1:]}" for flag in found.flags.split(","))
    return replace(found, features=features, flags=flags, refused=refused)


@functools.cache
def refusal_of_matrices() -> str:
    """Why this process may not use matrices in registers, which is asked for once; empty where it may."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        return "only Linux is asked for leave to use them"
    try:
        library = ctypes.CDLL(None, use_errno=True)
        refused = library.syscall(*map(ctypes.c_long, ASKS_FOR_MATRICES)) != 0
    except (AttributeError, OSError) as error:
        return f"the system was not asked: {error}"
    return f"the system refuses to let this process use them: {os.strerror(ctypes.get_errno())}" if refused else ""


def _described() -> Host:
    """This machine by the answers of LLVM."""
    key = _key()
    found = object_cache().get(key) if key else None
    if found is not None:
        return Host(**json.loads(found[1]))
    made = _asked()
    if key:
        object_cache().put(key, [], json.dumps(vars(made)))
    return made


def llvm_version() -> str:
    """What else code follows from: the versions of LLVM and of weft."""
    return f"{host().version} {VERSION}"


def _asked() -> Host:
    llvm = binding()
    import llvmlite

    version = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    features = llvm.get_host_cpu_features()
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(features), features.flatten(), version)


def _key() -> str:
    """The hash of what the answers follow from; empty where that is not known."""
    try:
        import llvmlite
        from llvmlite.utils import get_library_name  # neither loads LLVM

        library = os.stat(os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name()))
        with open("/proc/cpuinfo", "rb") as file:
            processor = file.read(_MOST).partition(b"\n\n")[0].decode("ascii", "replace")
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            started = file.read().decode()
    except (ImportError, AttributeError, OSError):
        return ""
    lines = [line for line in processor.split("\n") if not line.lower().startswith(_VARIES)]
    facts = ("host 1", *lines, started, llvmlite.__version__, str(library.st_size), str(library.st_mtime_ns))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest() if len(lines) > 1 else ""
