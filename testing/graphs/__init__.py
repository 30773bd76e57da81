"""Random modules of graph functions, kernels and library calls, well formed at both levels.

    module(choices)                    a module that runs: `weft.interpret(module, functions=extern)["main"](...)`
    module(choices, runnable=False)    with anything that can be written: opaque calls, refutable casts, odd data

Operators come from the registry: arguments are tried (visible variables, constants, numbers, attributes) until the
operator's own type rule accepts them, or taken from the examples of its declaration. In a module that runs, nothing is
left that might fail at run time: casts hold, constraints are proved, values stay in the ranges that operators state.
A value is *exact* when rounding cannot change it much (see `scalars`); only such values decide anything (comparisons,
rounding, indices).
"""

from __future__ import annotations

from weft.testing.graphs.library import EXTERN, extern
from weft.testing.graphs.modules import module

__all__ = ["EXTERN", "extern", "module"]
