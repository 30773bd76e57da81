"""Back ends: what makes code of the functions of one kind of target (`base` is the protocol, for plug-ins too)."""

from __future__ import annotations

from weft.codegen.backends.c import backend as c_back_end
from weft.codegen.backends.llvm import backend as llvm_back_end

__all__ = ["c_back_end", "llvm_back_end"]
