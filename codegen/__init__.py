"""From lowered modules to artifacts: targets, code generators, linking, the compile driver."""

from __future__ import annotations

if __name__ != "weft.codegen":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.codegen, not codegen")
