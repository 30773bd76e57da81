"""Strategies of hypothesis for well-formed modules, and the same generators from a seed.

    modules(), kernels(), opaque_kernels()      strategies; examples shrink
    generate(seed), generate_kernel(seed)       the same value for the same seed, in any process; fast
    arguments_for(function)                     a strategy of argument lists that fit a signature
    random_arguments(function, choices)         one such list

`runnable` modules have a meaning: the interpreter runs their `main` (with `extern` for external functions) on any
arguments that fit, up to sizes that an operator refuses. Others hold anything that can be written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.testing.graphs import extern, module
from weft.testing.kernels import free_kernel
from weft.testing.meaning import random_kernel, random_module
from weft.testing.opaque import opaque_kernel
from weft.transform.infra.generators.arguments import random_arguments
from weft.transform.infra.generators.choices import Choices, SeededChoices

__all__ = [
    "Choices",
    "DrawnChoices",
    "SeededChoices",
    "arguments_for",
    "extern",
    "generate",
    "generate_kernel",
    "kernels",
    "modules",
    "opaque_kernels",
    "random_arguments",
]


class DrawnChoices(Choices):
    """Decisions drawn from hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low if low == high else self.draw(st.integers(low, high))

    def any_float(self) -> float:
        """A float of any bits."""
        return self.draw(st.floats())

    def any_text(self) -> str:
        """A short string of any characters that text files can hold."""
        return self.draw(st.text(st.characters(exclude_categories=("Cs",)), max_size=5))


@st.composite
def modules(draw: Callable[[Any], Any], runnable: bool = True, bindings: int = 8) -> IRModule:
    """Modules of both levels with a function `main`."""
    return module(DrawnChoices(draw), runnable=runnable, bindings=bindings)


@st.composite
def kernels(draw: Callable[[Any], Any]) -> PrimFunc:
    """Kernels that write every element of their outputs."""
    return free_kernel(DrawnChoices(draw))


@st.composite
def opaque_kernels(draw: Callable[[Any], Any]) -> PrimFunc:
    """Tensor-level functions of any constructs."""
    return opaque_kernel(DrawnChoices(draw))


@st.composite
def arguments_for(draw: Callable[[Any], Any], function: Function | PrimFunc) -> list[Any]:
    """Arguments that fit the signature of a function."""
    return random_arguments(function, DrawnChoices(draw))


generate, generate_kernel = random_module, random_kernel
