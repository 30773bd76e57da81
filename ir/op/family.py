"""Families of operators that differ in a few facts: one class with their rule, kernel and reference.

@dataclass(frozen=True)
class Convolution(OperatorFamily):
    count: int                                             what the operators of the family differ in
    ...
Convolution(2).declare("The convolution over two axes ...", examples)
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.ir.deduction.infer import TypeContext
from weft.ir.op.common import Kernel, kernel_lowering
from weft.ir.op.declare import Arguments, Example, OpDef, Param
from weft.ir.op.precision import UNDECLARED, Precision
from weft.ir.op.registry import add_op, family_of
from weft.ir.tensor import PrimFunc
from weft.ir.types import Type

__all__ = ["OperatorFamily"]


class OperatorFamily:
    """What an operator of a family is, by the facts in which it differs from the others: the fields of a subclass."""

    @property
    def name(self) -> str:
        """The name of the operator."""
        raise NotImplementedError

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        raise NotImplementedError

    def rule(self, args: Arguments, context: TypeContext) -> Type:
        """The type of a call."""
        raise NotImplementedError

    def lower(self, kernel: Kernel, /) -> PrimFunc | None:
        """The kernel of a call whose shapes and dtypes are known."""
        raise NotImplementedError

    def reference(self, data: Any, *values: Any, **attrs: Any) -> Any:
        """The result by NumPy."""
        raise NotImplementedError

    @property
    def selects(self) -> str:
        """As in OpDef: the parameter whose elements the result consists of."""
        return ""

    layout: ClassVar[Any] = ""
    """As in OpDef: how it computes on operands whose axes lie otherwise, or why it does not."""
    precision: ClassVar[Precision] = UNDECLARED
    """As in OpDef: whether it may compute in half precision."""

    def declare(self, doc: str, examples: tuple[Example, ...]) -> OpDef:
        """Declare the operator; its pages stand where those of its module do."""
        family = family_of(type(self).__module__)
        return add_op(
            OpDef(
                self.name,
                self.params,
                self.rule,
                doc,
                kernel_lowering(self.lower),
                numpy=self.reference,
                pure=True,
                examples=examples,
                family=family,
                selects=self.selects,
                layout=type(self).layout,
                precision=type(self).precision,
            )
        )
