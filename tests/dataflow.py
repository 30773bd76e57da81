"""Modules of one graph function, for tests that vary what it computes."""

from __future__ import annotations

import weft
from weft.ir import IRModule

__all__ = ["dataflow_module"]


def dataflow_module(params: str, body: str) -> IRModule:
    """A module whose `main` binds, in one dataflow block, the lines of a body; the last one binds `y`."""
    lines = "\n            ".join(body.strip().splitlines())
    found = weft.parse(f"""
@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
            {lines}
            R.output(y)
        return y
""")
    assert isinstance(found, IRModule)
    return found
