"""Declaring an operator by what it is in terms of others.

    @composite("logsumexp", [Param("x"), Param("axis", "attr", None, "ints?")], numpy=..., examples=(...))
    def logsumexp(args):            args has the arguments by name, expressions and attributes
        "..."                       the documentation
        return call("log", ...)     an expression in other operators: it says the type, too

Errors are those of the operators that it is written in, at the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import WeftError
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.graph import Constant, Expr
from weft.ir.op.common import axis_of, dtype_error, require_dtype, shape_error, tensor, tensors
from weft.ir.op.declare import Arguments, Example, OpDef, Param, Reference, constant_like
from weft.ir.op.precision import UNDECLARED, Precision
from weft.ir.op.registry import OPS, add_op
from weft.ir.types import TensorType, Type

__all__ = ["Parts", "call", "composite"]


def call(name: str, *args: Any, **kwargs: Any) -> Expr:
    """A call of another operator."""
    return OPS[name].bind(args, kwargs)


class Parts:
    """The arguments of a composite operator, and what is known of them."""

    def __init__(self, args: Arguments, context: TypeContext) -> None:
        self._args, self.context = args, context

    @property
    def arguments(self) -> Arguments:
        """The arguments as rules take them."""
        return self._args

    def __getattr__(self, name: str) -> Any:
        return getattr(self._args, name)

    def type(self, name: str) -> TensorType:
        """The type of a tensor argument."""
        return tensor(self._args, name, self.context)

    def types(self, name: str) -> list[TensorType]:
        """The types of the tensors of an argument that holds several."""
        return tensors(self._args, name, self.context)

    def require(self, name: str, domain: str) -> TensorType:
        """The type of a tensor argument, whose dtype must lie in a domain (DTypeError W321)."""
        ty = self.type(name)
        require_dtype(self._args, name, ty, domain)
        return ty

    def dims(self, name: str) -> tuple[Dim, ...]:
        """The sizes of a tensor argument; ShapeError W202 where they are not known."""
        dims = dims_of(self.type(name))
        if dims is None:
            raise shape_error(self._args, f"the sizes of {name} have to be known", "W202")
        return dims

    def place_of(self, axis: int, ndim: int) -> int:
        """An axis counted from the front; ShapeError W203."""
        return axis_of(self._args, axis, ndim)

    def axis_of(self, name: str, ndim: int) -> int:
        """The axis that an attribute gives, counted from the front; ShapeError W203."""
        return axis_of(self._args, self._args[name], ndim)

    def number(self, value: float, name: str) -> Constant:
        """A number in the dtype of a tensor argument; DTypeError W320 where that is not known."""
        dtype = self.type(name).dtype
        if dtype is None:
            raise dtype_error(self._args, f"the dtype of {name} has to be known")
        return constant_like(value, dtype, self._args.span)

    def error(self, message: str) -> WeftError:
        """A ShapeError W205 about the call."""
        return shape_error(self._args, message, "W205")


Definition = Callable[[Parts], Expr]


def composite(
    name: str,
    params: Sequence[Param],
    *,
    numpy: Reference,
    examples: tuple[Example, ...],
    family: str,
    doc: str = "",
    layout: Any = "",
    precision: Precision = UNDECLARED,
) -> Callable[[Definition], OpDef]:
    """Declare an operator by a function that writes it in others."""

    def declare(definition: Definition) -> OpDef:
        def rule(args: Arguments, context: TypeContext) -> Type:
            try:
                return infer_type(definition(Parts(args, context)), context)
            except WeftError as error:
                if error.span is None:
                    error.span = args.span
                raise

        def decompose(args: Arguments, builder: Any) -> Expr:
            return definition(Parts(args, builder.types))

        return add_op(
            OpDef(
                name,
                tuple(params),
                rule,
                doc or definition.__doc__ or "",
                decompose=decompose,
                numpy=numpy,
                pure=True,
                examples=examples,
                family=family,
                layout=layout,
                precision=precision,
            )
        )

    return declare
