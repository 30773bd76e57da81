"""IRModule to IRModule: the passes and the pipelines made of them."""

from __future__ import annotations

if __name__ != "weft.transform":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.transform, not transform")
