"""How a program says when its loops begin and end: by two functions that its user defines, and its header declares.

void weft_profile_start(int32_t number, const char *name);
void weft_profile_end(int32_t number);
"""

from __future__ import annotations

from collections.abc import Collection

from weft.codegen.backends.c.expressions import expression
from weft.codegen.backends.c.kernel import KernelWriter
from weft.codegen.backends.c.spelling import c_string
from weft.ir.graph import StringImm
from weft.ir.tensor import PrimCall

__all__ = ["PROFILE_CALLS", "profile_call", "profile_prototypes"]

_START, _END = "weft_profile_start", "weft_profile_end"
PROFILE_CALLS = {"start_profile_intrinsic": _START, "end_profile_intrinsic": _END}
"""The function that each intrinsic calls."""
_PROTOTYPES = {_START: f"void {_START}(int32_t number, const char *name);", _END: f"void {_END}(int32_t number);"}


def profile_call(writer: KernelWriter, call: PrimCall) -> str:
    """The call of a user's function; a loop without a name has an empty one."""
    name = PROFILE_CALLS[str(call.op)]
    writer.helpers.externs[name] = f"extern {_PROTOTYPES[name]}"
    number, *named = call.args
    values = [expression(writer, number)]
    if name == _START:
        values.append(c_string(named[0].value if named and isinstance(named[0], StringImm) else ""))
    return f"{name}({', '.join(values)})"


def profile_prototypes(externs: Collection[str]) -> list[str]:
    """Lines of the header for those functions of the user that a program calls."""
    used = [text for name, text in _PROTOTYPES.items() if name in externs]
    return ["/* Called around loops that are profiled: define them. */", *used, ""] if used else []
