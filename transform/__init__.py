"""IRModule to IRModule: the passes and the pipelines made of them.

    infra/          what a pass is, its name and options as text; contexts, pipelines, phases, checks, rewriting
    analysis/       questions about programs: accesses, indices, dependence, lifetimes, purity
    graph/          passes over graph functions               fusion/    operators and kernels put together
    kernel/         passes over tensor-level functions        memory/    explicit memory, and its plan
    target/         parts of targets, copies between them     pattern/   what stands in a graph, found and replaced
    rewrite/        rules: sets, what they cost, passes       interface/ what functions take and give
    autoschedule/   the default schedule of loops             schedule/  loops changed step by step by users

`weft.transform.phases` names the phases and what runs in each. The names are those of `public`, which is loaded when
one of them is first used: a program that comes from the disk needs no pass.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.transform.public import *

if __name__ != "weft.transform":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.transform, not transform")


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__all__":  # Python asks for such names where there are none
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = importlib.import_module("weft.transform.public")
    if name in globals():  # a folder, which was loaded with it
        return globals()[name]
    try:
        value = globals()[name] = getattr(public, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return value


def __dir__() -> list[str]:
    public = importlib.import_module("weft.transform.public")
    return sorted({*globals(), *public.__all__})
