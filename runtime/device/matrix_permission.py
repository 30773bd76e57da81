"""The system's leave to use matrices in registers (Intel AMX), whose state is too large to be kept for every process.

Linux gives it to a process that asks, once and for all of its threads and children (`arch_prctl`, `ARCH_REQ_XCOMP_PERM`
of Linux 5.16 and later); an instruction without it ends the process. A system that refuses, or that is not known here,
leaves these features of the processor off.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

__all__ = ["refusal_of_matrices"]

_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18  # of asm/unistd_64.h, asm/prctl.h, and the number of the state


@functools.cache
def refusal_of_matrices() -> str:
    """Why this process may not use matrices in registers, which is asked for once; empty where it may."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        return "only Linux is asked for leave to use them"
    try:
        library = ctypes.CDLL(None, use_errno=True)
        refused = library.syscall(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_REQUEST), ctypes.c_long(_TILE_DATA)) != 0
    except (AttributeError, OSError) as error:
        return f"the system was not asked: {error}"
    return f"the system refuses to let this process use them: {os.strerror(ctypes.get_errno())}" if refused else ""
