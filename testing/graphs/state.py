"""What a graph function in the making knows: its variables, symbols and budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import Dim, symbol
from weft.ir.graph import (
    Binding,
    Var,
)
from weft.ir.module import BaseFunc
from weft.ir.op import OpDef
from weft.ir.types import TensorType, Type, VDevice
from weft.transform.infra.generators.choices import Choices


class Rejected(Exception):
    """What was tried is not well formed."""


Makers = list[tuple[int, Callable[[], tuple[Any, bool]]]]
"""What may be bound next: a weight, and what makes a value and says whether it is exact."""


class Home(Protocol):
    """The module in the making, as its functions see it."""

    choices: Choices
    runnable: bool
    functions: dict[str, BaseFunc]
    devices: list[VDevice]
    operators: list[OpDef]

    def fresh(self, names: Sequence[str]) -> str:
        """A function name that is free."""
        ...


class FunctionState:
    """A graph function in the making."""

    def __init__(self, home: Home, name: str, budget: int, makers: Callable[[FunctionState], Makers]) -> None:
        self.home = home
        self.makers = makers
        self.choices = home.choices
        self.runnable = home.runnable
        self.name = name
        self.budget = budget
        self.params: list[Var] = []
        self.visible: list[Var] = []
        self.exact: set[Var] = set()
        self.symbols: list[str] = []
        self.used_symbols: set[str] = set()
        self.dataflow = False
        self.pure = True
        self.nested = 0
        self.before: list[Binding] = []  # what the binding in the making needs bound before it

    def context(self) -> TypeContext:
        """The context of a deduction."""
        return TypeContext(functions=self.home.functions)

    def parameter(self, ty: Type) -> Var:
        """A new parameter."""
        var = Var(self.choices.name(), ty)
        self.params.append(var)
        self.visible.append(var)
        self.exact.add(var)
        self.symbols.extend(name for name in sorted(type_symbols(ty)) if name not in self.symbols)
        self.used_symbols.update(self.symbols)
        return var

    def dim(self) -> Dim:
        """A dimension over visible symbols."""
        if self.symbols and self.choices.flip(60):
            base = symbol(self.choices.pick(self.symbols))
            return self.choices.pick((base, base * 2, base + 1, base // 2, base + 3)) if self.choices.flip(15) else base
        return self.choices.pick((4, 3, 1, 2, 8, 6)) if not self.choices.flip(2) else 0

    def tensors(self, exact: bool = False) -> list[Var]:
        """The visible tensors."""
        return [var for var in self.visible if isinstance(var.ty, TensorType) and (var in self.exact or not exact)]

    def known_tensors(self) -> list[Var]:
        """Tensors of known dtype and dimensions."""
        return [var for var in self.tensors() if var.ty.dtype is not None and var.ty.dims is not None]  # type: ignore[attr-defined]

    @contextmanager
    def inner(self) -> Iterator[None]:
        """What is defined inside is not visible outside; parameters added meanwhile stay."""
        visible, symbols, before = list(self.visible), list(self.symbols), len(self.params)
        self.nested += 1
        try:
            yield
        finally:
            self.nested -= 1
            self.visible = visible + self.params[before:]
            self.symbols = symbols

    def recent(self, candidates: Sequence[Var]) -> Var:
        """A variable, mostly one of the last."""
        return self.choices.pick(candidates[::-1][:3]) if self.choices.flip(80) else self.choices.pick(candidates)
